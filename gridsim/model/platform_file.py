"""Platforms from TOML: nested tables of routers and clusters, groups or a CSV table of nodes, links, shares."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NoReturn

from gridsim.errors import InputError, UnknownNameError, check_keys, located
from gridsim.files import DAMAGED, csv_records, read_toml, unpacked
from gridsim.model.capacity import GPU, Capacity, NodeGroup
from gridsim.model.decimal_numbers import rational
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import ANY_KIND

TABLES = ("platform", "network", "shares")
"""Tables of a platform, in a platform file or in a scenario file."""

_NETWORK = tuple(option.name for option in fields(Network) if option.init)
_RATIONAL = ("ccr", "capacity", "transfer_rate_cap")
_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    int | float: "number",
    list: "list of tables",
    dict: "table",
}


def read_platform(path: str | Path) -> Platform:
    """Return the platform of a TOML file: tables ``platform``, and optionally ``network`` and ``shares``.

    Instead of a file, ``128x64`` is a machine of 128 nodes of 64 cores, ``n1`` to ``n128``.

    Raises
    ------
    InputError
        With the file, the key and the expected value.
    """
    if nodes := re.fullmatch(r"(\d+)x(\d+)", Path(path).name):
        count, cores = (int(part) for part in nodes.groups())
        with located(None, field="platform"):
            return Platform.of_nodes([NodeGroup(group="n", count=count, capacity={"cores": cores})])
    path = Path(path)
    tables = read_toml(path)
    check_keys(tables, TABLES, "platform file", path or "the platform")
    return platform_of(tables, path=path, origin=str(path))


def platform_of(tables: Mapping[str, Any], *, path: Path | None = None, origin: str = "given") -> Platform:
    """Return the platform of the tables of `TABLES`; other tables are ignored.

    Parameters
    ----------
    path : Path, optional
        File of the tables, for errors.
    origin : str
        Value of `Platform.origin`.

    Examples
    --------
    >>> cluster = {"cluster": "small", "cores": 8}
    >>> platform_of({"platform": {"router": "root", "children": [cluster]}, "network": {"ccr": "1/5"}}).cores
    8
    """
    if "platform" not in tables:
        message = "is missing; expected a table [platform] with a router and its children"
        raise InputError(message, path=path, field="platform")
    root = _node(_typed(tables["platform"], dict, "platform", path), "platform", path)
    if not isinstance(root, RouterSpec):  # a machine of one cluster needs none
        root = RouterSpec("root" if root.name != "root" else "(all)", (root,))
    network, shares = _network(tables.get("network", {}), path), _shares(tables.get("shares"), path)
    with located(path):
        return Platform(root, origin, network, shares)


def _node(table: Mapping[str, Any], where: str, path: Path | None) -> RouterSpec | ClusterSpec:
    if ("router" in table) == ("cluster" in table):
        what = "both" if "router" in table else "neither"
        raise InputError(f"has {what} a router {'and' if what == 'both' else 'nor'} a cluster", path=path, field=where)
    if "cluster" in table:
        return _cluster(table, where, path)
    check_keys(table, ("router", "children"), where, path or "the platform")
    name = _text(table, "router", where, path)
    children = _value(table, "children", list, where, path)
    places = [f"{where}.children[{number}]" for number in range(len(children))]
    nodes = [
        _node(_typed(child, dict, place, path), place, path) for child, place in zip(children, places, strict=True)
    ]
    with located(path, below=where):
        return RouterSpec(name, tuple(nodes))


def _cluster(table: Mapping[str, Any], where: str, path: Path | None) -> ClusterSpec:
    """Return a cluster; its cores are those of its nodes, or of its pool ``cores``, if it has either."""
    check_keys(table, ("cluster", "kind", "cores", "rate", "nodes", "pools"), where, path or "the platform")
    name = _text(table, "cluster", where, path)
    kind = _text(table, "kind", where, path) if "kind" in table else ANY_KIND
    rate = _value(table, "rate", int | float, where, path) if "rate" in table else 1.0
    if isinstance(rate, int) and abs(rate) > 2**53:
        raise InputError("is too large; a number up to 2**53 was expected", path=path, field=f"{where}.rate")
    nodes = groups_of(table["nodes"], f"{where}.nodes", path) if "nodes" in table else ()
    pools = _amounts(table["pools"], f"{where}.pools", path) if "pools" in table else {}
    with located(path, below=where):
        known = Capacity.of(nodes, pools).cores
    cores = _value(table, "cores", int, where, path) if "cores" in table or not known else known
    if not nodes and "cores" in pools:
        if "cores" in table:
            raise InputError("is also a pool; give it once", path=path, field=f"{where}.cores")
        pools = {each: amount for each, amount in pools.items() if each != "cores"}
    with located(path, below=where):
        return ClusterSpec(name, cores, kind, float(rate), nodes, pools)


def tree_of(node: RouterSpec | ClusterSpec) -> dict[str, Any]:
    """Return a router or cluster with its descendants as JSON types, for ``run.json``; `platform_of_tree` reads it.

    Examples
    --------
    >>> tree_of(Platform.single(4).root)["children"]
    [{'name': 'cluster', 'cores': 4, 'kind': 'any', 'rate': 1.0}]
    """
    if isinstance(node, RouterSpec):
        return {"name": node.name, "children": [tree_of(child) for child in node.children]}
    told: dict[str, Any] = {"name": node.name, "cores": node.cores, "kind": node.kind, "rate": node.rate}
    if node.nodes:
        told["nodes"] = [_written(group) for group in node.nodes]
    return {**told, "pools": dict(node.pools)} if node.pools else told


def _written(group: NodeGroup) -> dict[str, Any]:
    """Return a group of nodes as in a platform file, without default values."""
    usual = NodeGroup(group=group.group, count=group.count, capacity={})
    told = {it.name: getattr(group, it.name) for it in fields(NodeGroup)}
    kept = {name: value for name, value in told.items() if value != getattr(usual, name) or name in ("group", "count")}
    return {
        name: list(value) if isinstance(value, tuple) else dict(value) if name == "capacity" else value
        for name, value in kept.items()
    }


def platform_of_tree(tree: Mapping[str, Any], *, path: Path | None = None, origin: str = "given") -> Platform:
    """Return the platform of a tree from `tree_of`.

    Raises
    ------
    InputError
        With the key.
    """
    return platform_of({"platform": _tables(tree)}, path=path, origin=origin)


def _tables(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a platform file for a node of a tree."""
    if "children" in node:
        return {"router": node.get("name"), "children": [_tables(child) for child in node["children"]]}
    return {"cluster" if key == "name" else key: value for key, value in node.items()}


def _network(table: Any, path: Path | None) -> Network:
    table = _typed(table, dict, "network", path)
    check_keys(table, _NETWORK, "network", path or "the platform")
    words: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(f"is {value!r}; a text or a number was expected", path=path, field=f"network.{name}")
        words[name] = str(value) if name in _RATIONAL else value
    if isinstance(words.get("bandwidth", 1.0), str):
        raise InputError(f"is {words['bandwidth']!r}; a number was expected", path=path, field="network.bandwidth")
    with located(path, below="network"):
        return Network(**words)


def _shares(table: Any, path: Path | None) -> ShareTree | None:
    if table is None:
        return None
    table = _typed(table, dict, "shares", path)
    for name, value in table.items():
        _typed(value, int, f'shares."{name}"', path)
    with located(path, field="shares"):
        return ShareTree(table)


def _text(table: Mapping[str, Any], key: str, where: str, path: Path | None) -> str:
    value: str = _value(table, key, str, where, path)
    if not value:
        raise InputError("is empty; a name was expected", path=path, field=f"{where}.{key}")
    return value


def _value(table: Mapping[str, Any], key: str, wanted: Any, where: str, path: Path | None) -> Any:
    if key not in table:
        raise InputError(f"is missing; a {_WORDS[wanted]} was expected", path=path, field=f"{where}.{key}")
    return _typed(table[key], wanted, f"{where}.{key}", path)


def _typed(value: Any, wanted: Any, where: str, path: Path | None) -> Any:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InputError(f"is {value!r}; a {_WORDS[wanted]} was expected", path=path, field=where)
    return value


_GROUP = ("group", "count", "capacity", "gpus", "gpu_kind", "features", "partitions", "weight", "names")
_TABLE = ("file", "name", "group", "capacity", "gpus", "gpu_kind", "features", "partitions", "weight", "separator")
_MOST = 1_000_000
_NUMBERS = ("count", "gpus", "weight")
_LISTS = ("features", "partitions", "names")


def groups_of(given: Any, where: str, path: Path | None) -> tuple[NodeGroup, ...]:
    """Return groups of nodes from a platform file: a list of tables, or one table with the name of a file of nodes.

    Parameters
    ----------
    given : object
        Value of the key.
    where : str
        Key, for errors.
    path : Path or None
        The platform file; paths of node files are relative to its folder.

    Returns
    -------
    tuple of NodeGroup
        Groups in their order.

    Raises
    ------
    InputError
        With the file, the key or the line, and the expected value.
    """
    if isinstance(given, Mapping):
        return _NodeTable(given, where, path).groups()
    if not isinstance(given, list) or not given:
        wrong = f"is {given!r}; a list of groups of nodes was expected, or a table with the file that lists them"
        raise InputError(wrong, path=path, field=where)
    return tuple(_group(table, f"{where}[{place}]", path) for place, table in enumerate(given))


def _group(table: Any, where: str, path: Path | None) -> NodeGroup:
    if not isinstance(table, Mapping):
        raise InputError(f"is {table!r}; a table was expected", path=path, field=where)
    check_keys(table, _GROUP, where, path or "the platform")
    if not isinstance(table.get("group", ""), str) or not table.get("group"):
        raise InputError("is missing; the name of the group was expected", path=path, field=f"{where}.group")
    values: dict[str, Any] = {"group": table["group"]}
    values["capacity"] = _amounts(table.get("capacity", {}), f"{where}.capacity", path)
    for key in _NUMBERS:
        if key in table:
            values[key] = _integer(table[key], f"{where}.{key}", path)
    if values.get("count", 1) > _MOST:
        wrong = f"is {values['count']}; at most {_MOST:,} nodes were expected"
        raise InputError(wrong, path=path, field=f"{where}.count")
    for key in _LISTS:
        if key in table:
            values[key] = _strings(table[key], f"{where}.{key}", path)
    if "gpu_kind" in table:
        values["gpu_kind"] = _word(table["gpu_kind"], f"{where}.gpu_kind", path)
    with located(path, below=where):
        return NodeGroup(**values)


def _amounts(given: Any, where: str, path: Path | None) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise InputError(f"is {given!r}; a table of amounts was expected", path=path, field=where)
    return {name: _integer(amount, f"{where}.{name}", path) for name, amount in given.items()}


def _integer(value: Any, where: str, path: Path | None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**53) < value < 2**53:
        value = value if not isinstance(value, int) else "beyond 2**53"
        raise InputError(f"is {value!r}; a whole number was expected", path=path, field=where)
    return value


def _word(value: Any, where: str, path: Path | None) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"is {value!r}; a word was expected", path=path, field=where)
    return value


def _strings(value: Any, where: str, path: Path | None) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"is {value!r}; a list of words was expected", path=path, field=where)
    return tuple(_word(word, f"{where}[{place}]", path) for place, word in enumerate(value))


@dataclass(frozen=True, slots=True)
class _Amount:
    """Column of amounts, and their factor."""

    column: str
    scale: Fraction = Fraction(1)


class _NodeTable:
    """Table of nodes, one per row; equal nodes in consecutive rows form a group."""

    def __init__(self, table: Mapping[str, Any], where: str, path: Path | None) -> None:
        check_keys(table, _TABLE, where, path or "the platform")
        if "file" not in table:
            raise InputError("is missing; the file of the nodes was expected", path=path, field=f"{where}.file")
        name = _word(table["file"], f"{where}.file", path)
        self._file = Path(name) if path is None else path.parent / name
        self._columns = {
            key: _word(table[key], f"{where}.{key}", path)
            for key in _TABLE
            if key not in ("capacity", "file")
            if key in table
        }
        self._separator = self._columns.pop("separator", "|")
        self._capacity = self._amounts_of(table.get("capacity", {}), f"{where}.capacity", path)
        self._line = 1

    @staticmethod
    def _amounts_of(given: Any, where: str, path: Path | None) -> dict[str, _Amount]:
        if not isinstance(given, Mapping):
            raise InputError(f"is {given!r}; a table of columns was expected", path=path, field=where)
        found = {}
        for name, rule in given.items():
            inner = f"{where}.{name}"
            if isinstance(rule, Mapping):
                check_keys(rule, ("column", "scale"), inner, path or "the platform")
                scale = rule.get("scale", 1)
                if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < 2**53:
                    raise InputError(f"is {scale!r}; a number above 0 was expected", path=path, field=f"{inner}.scale")
                found[name] = _Amount(_word(rule.get("column"), f"{inner}.column", path), Fraction(str(scale)))
            else:
                found[name] = _Amount(_word(rule, inner, path))
        return found

    def groups(self) -> tuple[NodeGroup, ...]:
        nodes = list(self._rows())
        found = []
        for _, alike in groupby(nodes, key=lambda node: (node[0], *node[2:])):
            members = list(alike)
            group, name, capacity, gpus, kind, features, partitions, weight = members[0]
            with located(self._file):
                made = NodeGroup(
                    group=group or name,
                    count=len(members),
                    capacity=dict(capacity),
                    gpus=gpus,
                    gpu_kind=kind,
                    features=features,
                    partitions=partitions,
                    weight=weight,
                    names=tuple(member[1] for member in members),
                )
            found.append(made)
        if not found:
            raise InputError("lists no nodes", path=self._file)
        return tuple(found)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        with self._text() as text:
            header, rows = csv_records(text, self._file)
            for column in (*self._columns.values(), *(it.column for it in self._capacity.values())):
                if column not in header:
                    raise UnknownNameError(f"column of {self._file}", column, header)
            for number, (self._line, row) in enumerate(rows):
                yield (
                    self._cell(row, "group", ""),
                    self._cell(row, "name", f"node-{number}"),
                    tuple((name, self._amount(row, rule)) for name, rule in self._capacity.items()),
                    self._number(row, "gpus", 0),
                    self._cell(row, "gpu_kind", GPU) or GPU,
                    self._several(row, "features"),
                    self._several(row, "partitions"),
                    self._number(row, "weight", 1),
                )

    def _text(self) -> IO[str]:
        try:
            return io.StringIO(unpacked(self._file.read_bytes()).decode("utf-8-sig"), newline="")
        except DAMAGED as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot be read: {reason}; expected a table of nodes", path=self._file) from error
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8 text; expected a table of nodes", path=self._file) from error

    def _cell(self, row: Mapping[str, str], key: str, otherwise: str) -> str:
        return otherwise if key not in self._columns else row[self._columns[key]].strip()

    def _several(self, row: Mapping[str, str], key: str) -> tuple[str, ...]:
        return tuple(filter(None, self._cell(row, key, "").split(self._separator)))

    def _number(self, row: Mapping[str, str], key: str, otherwise: int) -> int:
        return otherwise if key not in self._columns else self._amount(row, _Amount(self._columns[key]))

    def _amount(self, row: Mapping[str, str], rule: _Amount) -> int:
        text = row[rule.column].strip()
        try:
            amount = rational(text) * rule.scale
        except (ValueError, ZeroDivisionError):
            self._wrong(rule.column, text)
        if not 0 <= amount < 2**53 or amount.denominator != 1:
            self._wrong(rule.column, text if rule.scale == 1 else f"{text} times {rule.scale}")
        return int(amount)

    def _wrong(self, column: str, text: str) -> NoReturn:
        message = f"is {text!r}; a whole number from 0 was expected"
        raise InputError(message, path=self._file, line=self._line, field=column)
