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

from gridsim.errors import InputError, check_keys, located, require_known
from gridsim.files import DAMAGED, csv_records, read_toml, unpacked
from gridsim.model.capacity import GPU, Capacity, NodeGroup
from gridsim.model.decimal_numbers import rational
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import ANY_KIND
from gridsim.schema import ANY, ANY_TABLE, NAME, NUMBER, POSITIVE, WHOLE, Number, Table, typed

TABLES = ("platform", "network", "shares")
"""Tables of a platform, in a platform file or in a scenario file."""

_RATIONAL = ("ccr", "capacity", "transfer_rate_cap")
_NETWORK = Table(
    {f"{it.name}?": NUMBER if it.name == "bandwidth" else (str, NUMBER) for it in fields(Network) if it.init}
)
_SHARES = Table({str: WHOLE})
GROUP = {
    "group": NAME,
    "count?": Number(-(2**53), 1_000_000, whole=True),
    "capacity?": Table({str: WHOLE}),
    "gpus?": Number(-(2**53), 1_000_000, whole=True),
    "gpu_kind?": NAME,
    "features?": [NAME],
    "partitions?": [NAME],
    "weight?": WHOLE,
    "names?": [NAME],
}
"""Schema of a group of nodes."""

CLUSTER = {"kind?": NAME, "cores?": WHOLE, "rate?": NUMBER, "nodes?": ANY, "pools?": Table({str: WHOLE})}
"""Schema of a cluster, without its name."""

_ROUTER = Table({"router": NAME, "children": [ANY_TABLE]})
_COLUMNS = ("name", "group", "gpus", "gpu_kind", "features", "partitions", "weight", "separator")
_AMOUNT = (NAME, Table({"column": NAME, "scale?": POSITIVE}))
_LISTED = Table(
    {"file": NAME, "capacity?": Table({str: _AMOUNT}), **dict.fromkeys((f"{name}?" for name in _COLUMNS), NAME)}
)


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
    root = _node(typed(tables["platform"], ANY_TABLE, "platform", path), "platform", path)
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
    typed(table, _ROUTER, where, path)
    nodes = [_node(child, f"{where}.children[{number}]", path) for number, child in enumerate(table["children"])]
    with located(path, below=where):
        return RouterSpec(table["router"], tuple(nodes))


def _cluster(table: Mapping[str, Any], where: str, path: Path | None) -> ClusterSpec:
    """Return a cluster; its cores are those of its nodes, or of its pool ``cores``, if it has either."""
    typed(table, Table({"cluster": NAME, **CLUSTER}), where, path)
    nodes = groups_of(table["nodes"], f"{where}.nodes", path) if "nodes" in table else ()
    pools = table.get("pools", {})
    with located(path, below=where):
        cores = table.get("cores", Capacity.of(nodes, pools).cores)
        if "cores" not in table and not cores:
            raise InputError("is missing; expected a whole number", field="cores")
        if not nodes and "cores" in pools:
            if "cores" in table:
                raise InputError("is also a pool; give it once", field="cores")
            pools = {each: amount for each, amount in pools.items() if each != "cores"}
        rate = float(table.get("rate", 1.0))
        return ClusterSpec(table["cluster"], cores, table.get("kind", ANY_KIND), rate, nodes, pools)


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
    typed(table, _NETWORK, "network", path)
    values: dict[str, Any] = {name: str(value) if name in _RATIONAL else value for name, value in table.items()}
    with located(path, below="network"):
        return Network(**values)


def _shares(table: Any, path: Path | None) -> ShareTree | None:
    if table is None:
        return None
    typed(table, _SHARES, "shares", path)
    with located(path, field="shares"):
        return ShareTree(table)


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
        wrong = f"is {given!r}; expected a list of groups of nodes, or a table with the file that lists them"
        raise InputError(wrong, path=path, field=where)
    return tuple(_group(table, f"{where}[{place}]", path) for place, table in enumerate(given))


def _group(table: Any, where: str, path: Path | None) -> NodeGroup:
    typed(table, Table(GROUP), where, path)
    values: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in table.items()}
    with located(path, below=where):
        return NodeGroup(**{"capacity": {}, **values})


@dataclass(frozen=True, slots=True)
class _Amount:
    """Column of amounts, and their factor."""

    column: str
    scale: Fraction = Fraction(1)


class _NodeTable:
    """Table of nodes, one per row; equal nodes in consecutive rows form a group."""

    def __init__(self, table: Mapping[str, Any], where: str, path: Path | None) -> None:
        typed(table, _LISTED, where, path)
        self._file = Path(table["file"]) if path is None else path.parent / table["file"]
        self._columns = {key: table[key] for key in _COLUMNS if key in table}
        self._separator = self._columns.pop("separator", "|")
        self._capacity = {
            name: _Amount(rule)
            if isinstance(rule, str)
            else _Amount(rule["column"], Fraction(str(rule.get("scale", 1))))
            for name, rule in table.get("capacity", {}).items()
        }
        self._line = 1

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
            columns = (*self._columns.values(), *(it.column for it in self._capacity.values()))
            require_known(f"column of {self._file}", header, *columns)
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
        message = f"is {text!r}; expected a whole number from 0"
        raise InputError(message, path=self._file, line=self._line, field=column)
