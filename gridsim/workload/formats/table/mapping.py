"""Mappings from the columns of a table to the attributes of a job, from TOML files and from presets."""

from __future__ import annotations

import importlib.resources
import math
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError, check_keys
from gridsim.files import read_toml

FIELDS: Mapping[str, str] = {
    "job": "text",
    "name": "text",
    "user": "text",
    "group": "text",
    "account": "text",
    "reservation": "text",
    "queue": "text",
    "partition": "text",
    "status": "text",
    "gpu_kind": "words",
    "features": "words",
    "submit": "instant",
    "start": "instant",
    "end": "instant",
    "runtime": "duration",
    "estimate": "duration",
    "cores": "amount",
    "memory": "memory",
    "gpus": "amount",
    "nodes": "count",
    "tasks": "count",
    "exclusive": "flag",
    "priority": "integer",
    "preemptible": "flag",
    "node_list": "words",
}
"""Fields of a mapping, and the contents of their columns."""

STATUSES = ("completed", "failed", "cancelled", "killed_walltime", "pending")
"""Possible meanings of the status words of a table."""

TIMES: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of numeric instants, s."""

DURATIONS: Mapping[str, float] = {**TIMES, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Units of durations, s."""

MEMORIES: Mapping[str, float] = {
    "B": 2.0**-20,
    "KB": 1000 / 2**20,
    "KiB": 2.0**-10,
    "MB": 1000**2 / 2**20,
    "MiB": 1.0,
    "GB": 1000**3 / 2**20,
    "GiB": 2.0**10,
}
"""Units of memory, MiB."""

_UNITS: Mapping[str, Mapping[str, float]] = {"duration": DURATIONS, "memory": MEMORIES}
FORMATS: Mapping[str, str] = {"csv": ",", "tsv": "\t", "parquet": "", "json": ""}
"""Formats of tables, with the delimiter of the cells in a row."""

_KEYS = (
    "format",
    "delimiter",
    "header",
    "timezone",
    "sort",
    "unverified",
    "columns",
    "resources",
    "status",
    "filter",
    "join",
    "capacity",
)
_RULE = (
    "column",
    "value",
    "time",
    "unit",
    "scale",
    "times",
    "missing",
    "unlimited",
    "key",
    "separator",
    "since",
    "count",
)


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """Source of one attribute of a job in the table.

    Attributes
    ----------
    kind : str
        Kind of the attribute, one of the values of `FIELDS`.
    column : str
        Name of the column; empty if *value* applies to all rows.
    value, missing : str or None
        Value of all rows; value of rows with an empty cell.
    time : str
        Format of instants: ``iso``, or numbers of ``s``, ``ms``, ``us``, ``ns`` from any origin.
    factor : float
        Factor for numbers: unit times scale.
    times : str
        Column by which the number is multiplied; empty for none.
    key : str
        Key of the item to use in a text such as ``1=4,2=8000``; empty for the whole text.
    separator : str
        Separator of the words in a cell.
    since : str
        Column with the starts of durations that end at *column*; several durations in a cell are added.
    count : bool
        Whether the value is the number of words in the cell.
    unlimited : frozenset of str
        Words that mean no limit.
    table : str
        Joined table that contains the columns; empty for the table itself.
    """

    kind: str
    column: str = ""
    value: str | None = None
    missing: str | None = None
    time: str = "iso"
    factor: float = 1.0
    times: str = ""
    key: str = ""
    separator: str = "|"
    since: str = ""
    count: bool = False
    unlimited: frozenset[str] = frozenset()
    table: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Columns of its table that it needs."""
        return tuple(filter(None, (self.column, self.times, self.since)))

    def of(self, column: str) -> str:
        """Return the name of one of its columns among those of all tables."""
        return f"{self.table}: {column}" if self.table else column


@dataclass(frozen=True, slots=True)
class Joined:
    """Further table, kept in memory, with at most one row for each row of the first table.

    Attributes
    ----------
    name : str
        Its name in the mapping.
    file : str
        Its file, in the folder of the first table.
    key : str
        Column in both tables; of several rows with one key, the first is used.
    delimiter : str
        Delimiter of the cells in a row.
    header : tuple of str
        Names of the columns if the file has no header.
    """

    name: str
    file: str
    key: str
    delimiter: str = ","
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableMapping:
    """Description of the columns and the format of a table.

    Attributes
    ----------
    name : str
        Name of a preset, or the file.
    delimiter : str
        Delimiter of the cells in a row.
    header : tuple of str
        Names of the columns if the file has no header; empty if it has one.
    timezone : str
        Time zone of times without one.
    sort : bool
        Whether jobs are sorted by submit time, with equal ones in row order; otherwise the file must be in order.
    columns : mapping of str to ColumnRule
        Rules by attribute of a job (`FIELDS`).
    resources : mapping of str to ColumnRule
        Other node resources that jobs request, by name.
    status : mapping of str to str
        Meaning of the words of the table, from `STATUSES`.
    filters : mapping of str to (str, frozenset of str)
        Filters that exclude rows, by name: the column, and its excluded values.
    joins : tuple of Joined
        Further tables.
    capacity : mapping of str to float
        Total capacity of the machine: ``cores``, ``memory`` (MiB), ``gpus``, ``nodes``, other resources.
    gpu_kinds : mapping of str to float
        GPUs of the machine by type.
    form : str
        Format, one of `FORMATS`.
    unverified : str
        Parts that were not verified with a published file; empty if none.
    """

    name: str
    delimiter: str = ","
    header: tuple[str, ...] = ()
    timezone: str = "UTC"
    sort: bool = True
    columns: Mapping[str, ColumnRule] = field(default_factory=dict)
    resources: Mapping[str, ColumnRule] = field(default_factory=dict)
    status: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    joins: tuple[Joined, ...] = ()
    capacity: Mapping[str, float] = field(default_factory=dict)
    gpu_kinds: Mapping[str, float] = field(default_factory=dict)
    form: str = "csv"
    unverified: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Columns of the table that are read, each once."""
        return tuple(
            dict.fromkeys(
                [*self.named_of(""), *(column for column, _ in self.filters.values()), *(it.key for it in self.joins)]
            )
        )

    def named_of(self, table: str) -> tuple[str, ...]:
        """Return the columns with attributes of jobs in a joined table, or in the first one."""
        rules = (rule for rule in (*self.columns.values(), *self.resources.values()) if rule.table == table)
        return tuple(dict.fromkeys(name for rule in rules for name in rule.named))


def presets() -> dict[str, Path]:
    """Return the mappings that are part of gridsim, by name.

    Examples
    --------
    >>> "alibaba-2023" in presets()
    True
    """
    folder = importlib.resources.files("gridsim.workload.formats.table") / "mappings"
    with importlib.resources.as_file(folder) as path:
        return {file.stem: file for file in sorted(path.glob("*.toml"))}


def mapping_of(given: str) -> TableMapping:
    """Return the mapping of a TOML file, or of a preset by its name.

    Raises
    ------
    InputError
        With the file, the key and the expected value.
    """
    if given.endswith(".toml"):
        return _mapping(read_toml(given), given, given)
    known = presets()
    if given not in known:
        raise UnknownNameError("mapping", given, [*known, "FILE.toml"])
    return _mapping(read_toml(known[given]), given, given)


def _mapping(tables: Mapping[str, Any], name: str, path: str) -> TableMapping:
    check_keys(tables, (*_KEYS, "title", "source"), "mapping", path)
    form = _typed(tables.get("format", "csv"), str, "format", path)
    if form not in FORMATS:
        raise UnknownNameError(f"format of a table in {path}", form, FORMATS)
    delimiter, header = _cells(tables, "", form, path)
    columns = _rules(tables, "columns", path, FIELDS)
    joins = _joins(tables, columns, path)
    if "submit" not in columns:
        raise InputError("is missing; expected the column of the submit time", path=path, field="columns.submit")
    if "runtime" not in columns and not {"start", "end"} <= {*columns}:
        raise InputError("is missing; expected a run time, or start and end", path=path, field="columns.runtime")
    resources = _rules(tables, "resources", path, None)
    if not resources and not columns.keys() & {"cores", "gpus", "memory"}:
        raise InputError("is missing; expected the columns of requested resources", path=path, field="columns.cores")
    zone = _typed(tables.get("timezone", "UTC"), str, "timezone", path)
    _check_zone(zone, path)
    capacity, kinds = _capacity(tables, resources, path)
    return TableMapping(
        name=name,
        delimiter=delimiter,
        header=header,
        timezone=zone,
        sort=_flag(tables.get("sort", True), "sort", path),
        columns=columns,
        resources=resources,
        status=_statuses(tables, path),
        filters=_filters(tables, path),
        joins=joins,
        capacity=capacity,
        gpu_kinds=kinds,
        form=form,
        unverified=_typed(tables.get("unverified", ""), str, "unverified", path),
    )


def _cells(tables: Mapping[str, Any], where: str, form: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter of a table, and the names of its columns if its file has no header."""
    for key in ("delimiter", "header") if not FORMATS[form] else ():
        if key in tables:
            raise InputError(f"applies to csv and tsv; the format is {form}", path=path, field=f"{where}{key}")
    delimiter = _typed(tables.get("delimiter", FORMATS[form]), str, f"{where}delimiter", path)
    if len(delimiter) != 1 and FORMATS[form]:
        raise InputError(f"is {delimiter!r}; expected one character", path=path, field=f"{where}delimiter")
    header = _strings(tables.get("header", []), f"{where}header", path)
    if len(set(header)) < len(header):
        raise InputError("lists a column twice", path=path, field=f"{where}header")
    return delimiter, tuple(header)


def _joins(tables: Mapping[str, Any], columns: dict[str, ColumnRule], path: str) -> tuple[Joined, ...]:
    """Return the further tables, and add their attributes of jobs to *columns*."""
    found = []
    for name, table in _typed(tables.get("join", {}), dict, "join", path).items():
        where = f"join.{name}"
        check_keys(
            _typed(table, dict, where, path),
            ("file", "key", "columns", "format", "delimiter", "header"),
            f"[{where}]",
            path,
        )
        for key in ("file", "key", "columns"):
            if key not in table:
                raise InputError("is missing", path=path, field=f"{where}.{key}")
        form = _typed(table.get("format", "csv"), str, f"{where}.format", path)
        if not FORMATS.get(form):
            raise UnknownNameError(f"format of a joined table in {path}", form, [it for it in FORMATS if FORMATS[it]])
        delimiter, header = _cells(table, f"{where}.", form, path)
        rules = _rules(table, "columns", path, FIELDS, f"{where}.")
        if both := sorted(rules.keys() & columns.keys()):
            raise InputError(
                "is also in another table; expected it once", path=path, field=f"{where}.columns.{both[0]}"
            )
        columns.update({key: replace(rule, table=name) for key, rule in rules.items()})
        file, key = (_typed(table[it], str, f"{where}.{it}", path) for it in ("file", "key"))
        found.append(Joined(name, file, key, delimiter, header))
    return tuple(found)


def _capacity(
    tables: Mapping[str, Any], resources: Mapping[str, ColumnRule], path: str
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the total capacity of the machine, and its GPUs by type."""
    table = dict(_typed(tables.get("capacity", {}), dict, "capacity", path))
    kinds = _typed(table.pop("gpu_kinds", {}), dict, "capacity.gpu_kinds", path)
    check_keys(table, ("cores", "memory", "gpus", "nodes", *resources), "[capacity]", path)

    def amounts(given: Mapping[str, Any], where: str) -> dict[str, float]:
        for name, amount in given.items():
            if not 0 < _typed(amount, int | float, f"{where}.{name}", path) < math.inf:
                raise InputError(f"is {amount}; expected a number above 0", path=path, field=f"{where}.{name}")
        return {name: float(amount) for name, amount in given.items()}

    of_kind = amounts(kinds, "capacity.gpu_kinds")
    return {**({"gpus": sum(of_kind.values())} if of_kind else {}), **amounts(table, "capacity")}, of_kind


def _check_zone(zone: str, path: str) -> None:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        message = f"'{zone}' is not in the tz database; expected a zone such as Europe/Berlin or UTC"
        raise InputError(message, path=path, field="timezone") from error


def _rules(
    tables: Mapping[str, Any], name: str, path: str, fields: Mapping[str, str] | None, above: str = ""
) -> dict[str, ColumnRule]:
    where = above + name
    table = _typed(tables.get(name, {}), dict, where, path)
    if fields is not None:
        check_keys(table, tuple(fields), f"[{where}]", path)
    return {
        key: _rule(value, f"{where}.{key}", "amount" if fields is None else fields[key], path)
        for key, value in table.items()
    }


def _rule(value: Any, where: str, kind: str, path: str) -> ColumnRule:
    if isinstance(value, str):
        return ColumnRule(kind, value)
    table = _typed(value, dict, where, path)
    check_keys(table, _RULE, f"[{where}]", path)
    if ("column" in table) == ("value" in table):
        raise InputError("has both a column and a value, or neither; expected one of them", path=path, field=where)
    texts = {
        key: _typed(table[key], str, f"{where}.{key}", path)
        for key in ("column", "times", "key", "separator", "since")
        if key in table
    }
    for key in ("value", "missing"):
        if key in table:
            given = table[key]
            texts[key] = given if isinstance(given, str) else str(_typed(given, int | float, f"{where}.{key}", path))
    if "since" in table and kind != "duration":
        raise InputError("applies to durations; expected runtime or estimate", path=path, field=f"{where}.since")
    time = _typed(table.get("time", "iso"), str, f"{where}.time", path)
    if "time" in table and kind != "instant" and "since" not in table:
        raise InputError("applies to times; expected submit, start or end", path=path, field=f"{where}.time")
    if time != "iso" and time not in TIMES:
        raise UnknownNameError(f"way to write a time ({where}.time in {path})", time, ("iso", *TIMES))
    if "unlimited" in table and kind != "duration":
        raise InputError("applies to limits; expected columns.estimate", path=path, field=f"{where}.unlimited")
    return ColumnRule(
        kind,
        time=time,
        factor=_factor(table, where, kind, path),
        count=_flag(table.get("count", False), f"{where}.count", path),
        unlimited=frozenset(_strings(table.get("unlimited", []), f"{where}.unlimited", path)),
        **texts,
    )


def _factor(table: Mapping[str, Any], where: str, kind: str, path: str) -> float:
    """Return the factor for numbers: unit times scale."""
    factor = 1.0
    if "unit" in table:
        if kind not in _UNITS:
            raise InputError("applies to durations and memory; numbers have a scale", path=path, field=f"{where}.unit")
        unit = _typed(table["unit"], str, f"{where}.unit", path)
        if unit not in _UNITS[kind]:
            raise UnknownNameError(f"unit ({where}.unit in {path})", unit, _UNITS[kind])
        factor = _UNITS[kind][unit]
    if "scale" in table:
        scale = float(_typed(table["scale"], int | float, f"{where}.scale", path))
        if not 0 < scale < math.inf:
            raise InputError(f"is {scale:g}; expected a number above 0", path=path, field=f"{where}.scale")
        factor *= scale
    return factor


def _strings(given: Any, where: str, path: str) -> list[str]:
    words: list[str] = _typed(given, list, where, path)
    for place, word in enumerate(words):
        _typed(word, str, f"{where}[{place}]", path)
    return words


def _statuses(tables: Mapping[str, Any], path: str) -> dict[str, str]:
    table: dict[str, str] = _typed(tables.get("status", {}), dict, "status", path)
    for word, meaning in table.items():
        if _typed(meaning, str, f"status.{word}", path) not in STATUSES:
            raise UnknownNameError(f"status (status.{word} in {path})", meaning, STATUSES)
    return table


def _filters(tables: Mapping[str, Any], path: str) -> dict[str, tuple[str, frozenset[str]]]:
    found = {}
    for name, table in _typed(tables.get("filter", {}), dict, "filter", path).items():
        where = f"filter.{name}"
        check_keys(_typed(table, dict, where, path), ("column", "values"), f"[{where}]", path)
        for key in ("column", "values"):
            if key not in table:
                raise InputError("is missing", path=path, field=f"{where}.{key}")
        values = _strings(table["values"], f"{where}.values", path)
        found[name] = (_typed(table["column"], str, f"{where}.column", path), frozenset(values))
    return found


_WORDS: dict[Any, str] = {
    str: "text",
    int | float: "number",
    list: "list of texts",
    dict: "table, or the name of a column",
}


def _typed(value: Any, wanted: Any, where: str, path: str) -> Any:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InputError(f"is {value!r}; a {_WORDS[wanted]} was expected", path=path, field=where)
    return value


def _flag(value: Any, where: str, path: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"is {value!r}; true or false was expected", path=path, field=where)
    return value
