"""Maintenance windows, drains and reservations of nodes, which are announced before they begin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from gridsim.errors import InputError, check_keys, located
from gridsim.files import read_toml
from gridsim.model.dates import duration, instant
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.site_file.reservations import is_reservations, window_tables
from gridsim.model.site_file.syntax import expanded
from gridsim.model.time import NEVER, to_us
from gridsim.schema import NAME, Number, check, check_fields

WindowKind = Literal["maintenance", "drain", "reservation"]
AtBegin = Literal["requeue", "wait"]
Time = float | str
"""Seconds of the simulation, or a text such as ``51h`` or ``2026-11-21T07:00``."""


_FIELDS = {
    "kind": WindowKind,
    "at_begin": (AtBegin, None),
    "users": [NAME],
    "accounts": [NAME],
    "node_cores": (Number(1, MOST_CORES, whole=True), None),
    "id": str,
}


@dataclass(frozen=True)
class Window:
    """Nodes that are absent in ``[begin, end)``, which schedulers know from *announced* on.

    Parameters
    ----------
    nodes : sequence of str, or int
        Names or host lists such as ``n-[0-7]``, of a grid ``cluster/node``; ``ALL`` for all nodes. For a reservation
        also a number of nodes: the first ones that are in no window with named nodes at that time.
    begin, end : float or str
        Interval, s, or dates if the log has dates; *end* infinite if it is unknown.
    kind : {"maintenance", "drain", "reservation"}
        Reason of the absence; a reservation is an absence only for requests of others than its members.
    announced : float or str, optional
        Instant from which schedulers know it; by default *begin*.
    at_begin : {"requeue", "wait"}, optional
        What happens to jobs that run on the nodes at *begin*: they are interrupted as by a failure (default of
        ``maintenance``), or run to their end (default of the others), and no other job starts there.
    deleted : float or str, optional
        Instant at which the window ends early, or before its begin is cancelled; unknown before.
    id : str
        Identifier. A window with the same identifier that is announced later replaces this one from then on.
    users, accounts : sequence of str
        Members of a reservation: jobs whose label ``reservation`` is its identifier, and that have one of these users
        or accounts.
    node_cores : int, optional
        Cores of each node that are reserved, and no other resources; by default whole nodes.
    origin : str
        File that contains it, for errors.

    Examples
    --------
    >>> Window(["n-[0-3]"], 3600, 7200, announced=0).stops
    True
    """

    nodes: Sequence[str] | int
    begin: Time
    end: Time = math.inf
    kind: WindowKind = "maintenance"
    announced: Time | None = None
    at_begin: AtBegin | None = None
    deleted: Time | None = None
    id: str = ""
    users: Sequence[str] = ()
    accounts: Sequence[str] = ()
    node_cores: int | None = None
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        reserves = self.kind == "reservation"
        nodes = ([NAME], Number(1, whole=True)) if reserves else [NAME]
        check_fields(self, {**_FIELDS, "nodes": nodes})
        given = bool(self.users or self.accounts)
        if reserves and not (self.id and given):
            raise InputError("is missing for a reservation, which jobs name", field="users" if self.id else "id")
        if not reserves and (given or self.node_cores is not None):
            raise InputError(f"is '{self.kind}'; only a reservation has users, accounts or node_cores", field="kind")

    @property
    def stops(self) -> bool:
        """True if jobs that run on the nodes at its begin are interrupted."""
        return (self.at_begin or ("requeue" if self.kind == "maintenance" else "wait")) == "requeue"

    def from_moment(self, at: float, provenance: Mapping[str, Any]) -> Window:
        """Return the window on a clock that begins at a moment, s; times before it are 0."""
        times: dict[str, Time] = {"begin": self.begin, "end": self.end}
        times["announced"] = self.begin if self.announced is None else self.announced
        times["deleted"] = math.inf if self.deleted is None else self.deleted
        with located(self.origin or None, below=f"window.{self.id}"):
            left = {name: _seconds(it, name, provenance) - at for name, it in times.items()}
        return replace(self, **{name: max(it, 0.0) for name, it in left.items()})  # type: ignore[arg-type]

    def written(self) -> dict[str, Any]:
        """Return the parameters that are given as JSON types."""
        values = {name: getattr(self, name) for name in _KEYS}
        lists = {
            name: list(values[name]) for name in ("nodes", "users", "accounts") if not isinstance(values[name], int)
        }
        return {name: value for name, value in (values | lists).items() if value not in (None, math.inf, "", [])}


@dataclass(frozen=True)
class PlannedWindow:
    """Window with names of nodes and times in whole microseconds; *end* is `NEVER` if it is unknown."""

    id: str
    kind: WindowKind
    nodes: tuple[str, ...]
    begin: int
    end: int
    announced: int
    deleted: int
    stops: bool
    origin: str
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    node_cores: int | None = None

    @property
    def over(self) -> int:
        """Instant at which it ends, or is deleted."""
        return min(self.end, self.deleted)


def planned(windows: Sequence[Window], names: Sequence[str], provenance: Mapping[str, Any]) -> list[PlannedWindow]:
    """Return the windows with a length and nodes, in the given order.

    Parameters
    ----------
    names : sequence of str
        All nodes of the machine.
    provenance : mapping
        Provenance of the workload, which may define the dates of its clock.

    Raises
    ------
    InputError
        For a date if the log has no dates, and for a window that ends before it begins.
    """
    found: list[PlannedWindow] = []
    for number, it in enumerate(windows):
        with located(it.origin or None, below=f"window.{it.id or number}"):
            begin, end = _at(it.begin, "begin", provenance), _at(it.end, "end", provenance)
            announced = begin if it.announced is None else min(begin, _at(it.announced, "announced", provenance))
            deleted = NEVER if it.deleted is None else _at(it.deleted, "deleted", provenance)
            if end < begin:
                raise InputError(f"is {it.end}, before begin ({it.begin})", field="end")
            if end >= NEVER and announced < begin:
                raise InputError("is given without end; such a window is known from its begin", field="announced")
            texts = () if isinstance(it.nodes, int) else it.nodes
            listed = [name for text in texts for name in (names if text.upper() == "ALL" else expanded(text))]
        times = (begin, end, announced, deleted, it.stops, it.origin)
        members = (frozenset(it.users), frozenset(it.accounts), it.node_cores)
        found.append(PlannedWindow(it.id, it.kind, tuple(dict.fromkeys(listed)), *times, *members))
    counts = {at: it.nodes for at, it in enumerate(windows) if isinstance(it.nodes, int)}
    chosen = {
        at: replace(found[at], nodes=_first_nodes(found[at], count, found, names)) for at, count in counts.items()
    }
    found = [chosen.get(at, each) for at, each in enumerate(found)]
    kept = [replace(each, deleted=min([each.deleted, *_replaced(each, found)])) for each in found]
    return [each for each in kept if each.nodes and each.end > each.begin and each.over > each.announced]


def _first_nodes(
    window: PlannedWindow, count: int, windows: Sequence[PlannedWindow], names: Sequence[str]
) -> tuple[str, ...]:
    """Return the first nodes that are in no window with named nodes at the same time."""
    others = [it for it in windows if it.begin < window.end and window.begin < it.end and it.id != window.id]
    free = [node for node in names if not any(node in it.nodes for it in others)]
    if len(free) < count:
        with located(window.origin or None, field=f"window.{window.id}.nodes"):
            raise InputError(f"is {count}, but {len(free)} nodes are in no other window at that time")
    return tuple(free[:count])


def _replaced(window: PlannedWindow, windows: Sequence[PlannedWindow]) -> list[int]:
    """Return the instants at which windows with the same identifier are announced later."""
    same = [it.announced for it in windows if it.id == window.id != ""]
    return [at for at in same if at > window.announced]


def _seconds(value: Time, field: str, provenance: Mapping[str, Any]) -> float:
    date, _, more = str(value).partition(_PLUS)
    return instant(date, field, provenance) + duration(more or "0", field) if isinstance(value, str) else value


def _at(value: Time, field: str, provenance: Mapping[str, Any]) -> int:
    seconds = _seconds(value, field, provenance)
    if not seconds >= 0:
        raise InputError(f"is {value!r}; expected a time from 0", field=field)
    return min(to_us(seconds), NEVER)


_PLUS = " + "
"""Between a date and a number of seconds that is added to it, for windows of rolling maintenance."""

_KEYS = tuple(it.name for it in fields(Window) if it.name != "origin")
_ROLLING = ("id", "nodes", "at_once", "begin", "length", "gap", "announced", "kind", "at_begin")


def windows_from(tables: Any, origin: object = "the recipe") -> list[Window]:
    """Return the windows of tables ``[[window]]``.

    Parameters
    ----------
    tables : list of mapping
        Keys are the parameters of `Window`. A table with ``at_once`` is rolling maintenance: windows of the next
        ``at_once`` of its nodes each, ``length`` s long, with ``gap`` s (default 0) between them, from ``begin`` on.
    origin : object
        File of the tables, for errors.

    Examples
    --------
    >>> found = windows_from([{"nodes": ["n-[0-2]"], "at_once": 2, "begin": 0, "length": 60, "gap": 10}])
    >>> [(it.nodes, it.begin, it.end) for it in found]
    [(('n-0', 'n-1'), 0.0, 60.0), (('n-2',), 70.0, 130.0)]
    """
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise InputError("is no list of tables; expected [[window]]", field="window")
    found: list[Window] = []
    for number, table in enumerate(tables):
        rolling = "at_once" in table
        check_keys(table, _ROLLING if rolling else _KEYS, "a window", origin)
        with located(below=f"window.{table.get('id', number)}"):
            for name in ("nodes", "begin"):
                if name not in table:
                    raise InputError("is missing", field=name)
            if rolling:
                found += _rolling(table, f"{table.get('id', f'rolling-{number}')}")
            elif isinstance(table["nodes"], bool):
                raise InputError(f"is {table['nodes']!r}; expected names, or a number", field="nodes")
            else:
                times = {name: _time(table[name], name) for name in _TIMES if name in table}
                found.append(Window(**{**table, **times}))
    return found


_TIMES = ("begin", "end", "announced", "deleted")


def _time(value: Any, field: str) -> Time:
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"is {value!r}; expected seconds, or a text such as 51h or 2026-11-21T07:00", field=field)
    return value if isinstance(value, str) else float(value)


_NUMBERS = {"length": Number(1), "gap": Number(0), "at_once": Number(1)}


def _rolling(table: Mapping[str, Any], name: str) -> list[Window]:
    values = {"gap": 0, **table}
    check({key: values.get(key) for key in ("length", "gap", "at_once")}, _NUMBERS)
    values |= {name: _time(values[name], name) for name in ("begin", "announced") if name in values}
    more = {key: values[key] for key in ("kind", "announced", "at_begin") if key in values}
    whole_list = Window(values["nodes"], 0).nodes
    assert not isinstance(whole_list, int)
    nodes = [node for text in whole_list for node in expanded(text)]
    each, length, step = int(values["at_once"]), float(values["length"]), float(values["length"] + values["gap"])
    found = []
    for k in range(math.ceil(len(nodes) / each)):
        begin, end = (_later(values["begin"], after) for after in (k * step, k * step + length))
        found.append(Window(tuple(nodes[k * each : (k + 1) * each]), begin, end, id=f"{name}-{k}", **more))
    return found


def _later(begin: Time, seconds: float) -> Time:
    """Return an instant so many seconds after another, which may be a date of an unknown clock."""
    return f"{begin}{_PLUS}{seconds:.12g}" if isinstance(begin, str) else begin + seconds


def read_windows(path: str | Path) -> list[Window]:
    """Read windows from a TOML file with tables ``[[window]]``, or from the output of ``scontrol show reservation``.

    Raises
    ------
    InputError
        With file and key, for a file that is no TOML, unknown keys, and invalid values.
    """
    path = Path(path)
    table = {"window": window_tables(path)} if is_reservations(path) else read_toml(path)
    check_keys(table, ("window",), "windows", path)
    with located(path):
        return [replace(it, origin=str(path)) for it in windows_from(table.get("window", []), path)]
