"""Mappings from the columns of a table to the attributes of a job, from TOML files and from presets."""

from __future__ import annotations

import importlib.resources
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, check_keys, require_known
from gridsim.files import read_toml
from gridsim.schema import NUMBER, POSITIVE, Table, check

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

_RULE = Table(
    {
        **dict.fromkeys(("column?", "time?", "unit?", "times?", "key?", "separator?", "since?"), str),
        "value?": (str, NUMBER),
        "scale?": POSITIVE,
        "missing?": (str, NUMBER),
        "unlimited?": [str],
        "count?": bool,
    }
)
_COLUMNS = Table({f"{name}?": (str, _RULE) for name in FIELDS})
_CELLS = {"format?": str, "delimiter?": str, "header?": [str]}
_AMOUNTS = Table({str: POSITIVE})
_MAPPING = Table(
    {
        **_CELLS,
        **dict.fromkeys(("timezone?", "unverified?", "title?", "source?"), str),
        "sort?": bool,
        "columns?": _COLUMNS,
        "resources?": Table({str: (str, _RULE)}),
        "status?": Table({str: str}),
        "filter?": Table({str: Table({"column": str, "values": [str]})}),
        "join?": Table({str: Table({"file": str, "key": str, "columns": _COLUMNS, **_CELLS})}),
        "capacity?": Table({"gpu_kinds?": _AMOUNTS, str: POSITIVE}),
    }
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
    require_known("mapping", [*known, "FILE.toml"], given)
    return _mapping(read_toml(known[given]), given, given)


def _mapping(tables: Mapping[str, Any], name: str, path: str) -> TableMapping:
    check(tables, _MAPPING, path=path)
    form = tables.get("format", "csv")
    require_known(f"format of a table in {path}", FORMATS, form)
    delimiter, header = _cells(tables, "", form, path)
    columns = _rules(tables, "columns", path)
    joins = _joins(tables, columns, path)
    if "submit" not in columns:
        raise InputError("is missing; expected the column of the submit time", path=path, field="columns.submit")
    if "runtime" not in columns and not {"start", "end"} <= {*columns}:
        raise InputError("is missing; expected a run time, or start and end", path=path, field="columns.runtime")
    resources = _rules(tables, "resources", path)
    if not resources and not columns.keys() & {"cores", "gpus", "memory"}:
        raise InputError("is missing; expected the columns of requested resources", path=path, field="columns.cores")
    zone = tables.get("timezone", "UTC")
    _check_zone(zone, path)
    kinds = {name: float(amount) for name, amount in tables.get("capacity", {}).get("gpu_kinds", {}).items()}
    capacity = {name: float(amount) for name, amount in tables.get("capacity", {}).items() if name != "gpu_kinds"}
    check_keys(capacity, ("cores", "memory", "gpus", "nodes", *resources), "[capacity]", path)
    status = tables.get("status", {})
    for word, meaning in status.items():
        require_known(f"status (status.{word} in {path})", STATUSES, meaning)
    return TableMapping(
        name=name,
        delimiter=delimiter,
        header=header,
        timezone=zone,
        sort=tables.get("sort", True),
        columns=columns,
        resources=resources,
        status=status,
        filters={name: (it["column"], frozenset(it["values"])) for name, it in tables.get("filter", {}).items()},
        joins=joins,
        capacity={**({"gpus": sum(kinds.values())} if kinds else {}), **capacity},
        gpu_kinds=kinds,
        form=form,
        unverified=tables.get("unverified", ""),
    )


def _cells(tables: Mapping[str, Any], where: str, form: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the delimiter of a table, and the names of its columns if its file has no header."""
    for key in ("delimiter", "header") if not FORMATS[form] else ():
        if key in tables:
            raise InputError(f"applies to csv and tsv; the format is {form}", path=path, field=f"{where}{key}")
    delimiter, header = tables.get("delimiter", FORMATS[form]), tables.get("header", [])
    if len(delimiter) != 1 and FORMATS[form]:
        raise InputError(f"is {delimiter!r}; expected one character", path=path, field=f"{where}delimiter")
    if len(set(header)) < len(header):
        raise InputError("lists a column twice", path=path, field=f"{where}header")
    return delimiter, tuple(header)


def _joins(tables: Mapping[str, Any], columns: dict[str, ColumnRule], path: str) -> tuple[Joined, ...]:
    """Return the further tables, and add their attributes of jobs to *columns*."""
    found = []
    for name, table in tables.get("join", {}).items():
        where, form = f"join.{name}", table.get("format", "csv")
        require_known(f"format of a joined table in {path}", [it for it in FORMATS if FORMATS[it]], form)
        delimiter, header = _cells(table, f"{where}.", form, path)
        rules = _rules(table, "columns", path, f"{where}.")
        if both := sorted(rules.keys() & columns.keys()):
            raise InputError(
                "is also in another table; expected it once", path=path, field=f"{where}.columns.{both[0]}"
            )
        columns.update({key: replace(rule, table=name) for key, rule in rules.items()})
        found.append(Joined(name, table["file"], table["key"], delimiter, header))
    return tuple(found)


def _check_zone(zone: str, path: str) -> None:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        message = f"'{zone}' is not in the tz database; expected a zone such as Europe/Berlin or UTC"
        raise InputError(message, path=path, field="timezone") from error


def _rules(tables: Mapping[str, Any], name: str, path: str, above: str = "") -> dict[str, ColumnRule]:
    return {
        key: _rule(value, f"{above}{name}.{key}", "amount" if name == "resources" else FIELDS[key], path)
        for key, value in tables.get(name, {}).items()
    }


def _rule(table: Any, where: str, kind: str, path: str) -> ColumnRule:
    if isinstance(table, str):
        return ColumnRule(kind, table)
    if ("column" in table) == ("value" in table):
        raise InputError("has both a column and a value, or neither; expected one of them", path=path, field=where)
    names = ("column", "times", "key", "separator", "since", "value", "missing")
    texts = {key: str(table[key]) for key in names if key in table}
    if "since" in table and kind != "duration":
        raise InputError("applies to durations; expected runtime or estimate", path=path, field=f"{where}.since")
    time = table.get("time", "iso")
    if "time" in table and kind != "instant" and "since" not in table:
        raise InputError("applies to times; expected submit, start or end", path=path, field=f"{where}.time")
    require_known(f"way to write a time ({where}.time in {path})", ("iso", *TIMES), time)
    if "unlimited" in table and kind != "duration":
        raise InputError("applies to limits; expected columns.estimate", path=path, field=f"{where}.unlimited")
    return ColumnRule(
        kind,
        time=time,
        factor=_factor(table, where, kind, path),
        count=table.get("count", False),
        unlimited=frozenset(table.get("unlimited", [])),
        **texts,
    )


def _factor(table: Mapping[str, Any], where: str, kind: str, path: str) -> float:
    """Return the factor for numbers: unit times scale."""
    factor = 1.0
    if "unit" in table:
        if kind not in _UNITS:
            raise InputError("applies to durations and memory; numbers have a scale", path=path, field=f"{where}.unit")
        require_known(f"unit ({where}.unit in {path})", _UNITS[kind], table["unit"])
        factor = _UNITS[kind][table["unit"]]
    return factor * float(table.get("scale", 1.0))
