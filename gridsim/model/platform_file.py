"""Platforms from TOML: nested tables of routers and clusters, with what lies between them and who has which share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError
from gridsim.files import read_toml
from gridsim.model.capacity import Capacity, NodeGroup
from gridsim.model.network import Network
from gridsim.model.node_file import groups_of, pools_of
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import ANY_KIND

__all__ = ["TABLES", "platform_of", "platform_of_tree", "read_platform", "tree_of"]

TABLES = ("platform", "network", "shares")
"""Tables of a platform, in a file of its own or in a recipe."""

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
    """Platform of a TOML file: tables ``platform``, and optionally ``network`` and ``shares``.

    Raises
    ------
    InputError
        Naming the file, the key and what was expected.
    """
    path = Path(path)
    tables = read_toml(path)
    _known(tables, TABLES, "platform file", path)
    return platform_of(tables, path=path, origin=str(path))


def platform_of(tables: Mapping[str, Any], *, path: Path | None = None, origin: str = "given") -> Platform:
    """Platform of the tables of `TABLES`, as a file holds them; other tables are not looked at.

    Parameters
    ----------
    path : Path, optional
        File that they came from, for errors.
    origin : str
        As `Platform` keeps it.

    Examples
    --------
    >>> cluster = {"cluster": "small", "cores": 8}
    >>> platform_of({"platform": {"router": "root", "children": [cluster]}, "network": {"ccr": "1/5"}}).cores
    8
    """
    if "platform" not in tables:
        message = "is not there; expected a table [platform] with a router and its children"
        raise InputError(message, path=path, field="platform")
    root = _node(_typed(tables["platform"], dict, "platform", path), "platform", path)
    if not isinstance(root, RouterSpec):  # a machine of one cluster needs none
        root = RouterSpec("root" if root.name != "root" else "(all)", (root,))
    network, shares = _network(tables.get("network", {}), path), _shares(tables.get("shares"), path)
    with _errors_at(path):
        return Platform(root, origin, network, shares)


def _node(table: Mapping[str, Any], where: str, path: Path | None) -> RouterSpec | ClusterSpec:
    if ("router" in table) == ("cluster" in table):
        what = "both" if "router" in table else "neither"
        raise InputError(
            f"names {what} a router {'and' if what == 'both' else 'nor'} a cluster", path=path, field=where
        )
    if "cluster" in table:
        return _cluster(table, where, path)
    _known(table, ("router", "children"), where, path)
    name = _text(table, "router", where, path)
    children = _value(table, "children", list, where, path)
    places = [f"{where}.children[{number}]" for number in range(len(children))]
    nodes = [
        _node(_typed(child, dict, place, path), place, path) for child, place in zip(children, places, strict=True)
    ]
    with _errors_at(path, where):
        return RouterSpec(name, tuple(nodes))


def _cluster(table: Mapping[str, Any], where: str, path: Path | None) -> ClusterSpec:
    """A cluster; its cores are those of its nodes, or of its pool ``cores``, where it has either."""
    _known(table, ("cluster", "kind", "cores", "rate", "nodes", "pools"), where, path)
    name = _text(table, "cluster", where, path)
    kind = _text(table, "kind", where, path) if "kind" in table else ANY_KIND
    rate = _value(table, "rate", int | float, where, path) if "rate" in table else 1.0
    if isinstance(rate, int) and abs(rate) > 2**53:
        raise InputError("is too large; a number up to 2**53 was expected", path=path, field=f"{where}.rate")
    nodes = groups_of(table["nodes"], f"{where}.nodes", path) if "nodes" in table else ()
    pools = pools_of(table["pools"], f"{where}.pools", path) if "pools" in table else {}
    with _errors_at(path, where):
        known = Capacity.of(nodes, pools).cores
    cores = _value(table, "cores", int, where, path) if "cores" in table or not known else known
    if not nodes and "cores" in pools:
        if "cores" in table:
            raise InputError("is a pool too; give it once", path=path, field=f"{where}.cores")
        pools = {each: amount for each, amount in pools.items() if each != "cores"}
    with _errors_at(path, where):
        return ClusterSpec(name, cores, kind, float(rate), nodes, pools)


def tree_of(node: RouterSpec | ClusterSpec) -> dict[str, Any]:
    """A router or cluster with all below it in JSON types, as ``run.json`` holds it; `platform_of_tree` reads it.

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
    """A group of nodes as a platform file has it, without what it would have anyhow."""
    usual = NodeGroup(group=group.group, count=group.count, capacity={})
    told = {it.name: getattr(group, it.name) for it in fields(NodeGroup)}
    kept = {name: value for name, value in told.items() if value != getattr(usual, name) or name in ("group", "count")}
    return {
        name: list(value) if isinstance(value, tuple) else dict(value) if name == "capacity" else value
        for name, value in kept.items()
    }


def platform_of_tree(tree: Mapping[str, Any], *, path: Path | None = None, origin: str = "given") -> Platform:
    """Platform of the tree that `tree_of` told.

    Raises
    ------
    InputError
        Naming the key.
    """
    return platform_of({"platform": _tables(tree)}, path=path, origin=origin)


def _tables(node: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a platform file that a node of a tree stands for."""
    if "children" in node:
        return {"router": node.get("name"), "children": [_tables(child) for child in node["children"]]}
    return {"cluster" if key == "name" else key: value for key, value in node.items()}


def _network(table: Any, path: Path | None) -> Network:
    table = _typed(table, dict, "network", path)
    _known(table, _NETWORK, "network", path)
    words: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(f"is {value!r}; a text or a number was expected", path=path, field=f"network.{name}")
        words[name] = str(value) if name in _RATIONAL else value
    if isinstance(words.get("bandwidth", 1.0), str):
        raise InputError(f"is {words['bandwidth']!r}; a number was expected", path=path, field="network.bandwidth")
    with _errors_at(path, "network"):
        return Network(**words)


def _shares(table: Any, path: Path | None) -> ShareTree | None:
    if table is None:
        return None
    table = _typed(table, dict, "shares", path)
    for name, value in table.items():
        _typed(value, int, f'shares."{name}"', path)
    with _errors_at(path, "shares", whole=True):
        return ShareTree(table)


def _text(table: Mapping[str, Any], key: str, where: str, path: Path | None) -> str:
    value: str = _value(table, key, str, where, path)
    if not value:
        raise InputError("is empty; a name was expected", path=path, field=f"{where}.{key}")
    return value


def _value(table: Mapping[str, Any], key: str, wanted: Any, where: str, path: Path | None) -> Any:
    if key not in table:
        raise InputError(f"is not there; a {_WORDS[wanted]} was expected", path=path, field=f"{where}.{key}")
    return _typed(table[key], wanted, f"{where}.{key}", path)


def _typed(value: Any, wanted: Any, where: str, path: Path | None) -> Any:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InputError(f"is {value!r}; a {_WORDS[wanted]} was expected", path=path, field=where)
    return value


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str, path: Path | None) -> None:
    for key in table:
        if key not in keys:
            raise UnknownNameError(f"key of {where} in {path or 'the platform'}", key, keys)


@contextmanager
def _errors_at(path: Path | None, where: str = "", *, whole: bool = False) -> Iterator[None]:
    """Let what is wrong with a part be told with the file and the key below *where*, or *where* as a whole."""
    try:
        yield
    except InputError as error:
        inner = [] if whole or not error.field else [error.field]
        field = ".".join([where, *inner] if where else inner)
        raise InputError(error.message, path=path, field=field or None) from error
