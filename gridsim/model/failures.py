"""Failures of nodes and GPUs (a recorded trace, or drawn times), windows, and their consequences for jobs."""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError, check_keys, located
from gridsim.files import csv_records
from gridsim.model.capacity import Capacity
from gridsim.model.checkpoints import Checkpoints, checkpoints_from
from gridsim.model.dates import duration, epoch_of, instant, needed_calendar, zone_name_of
from gridsim.model.site_file.node_events import Absent, NodeEvents, absences, read_node_events
from gridsim.model.site_file.reservations import SiteClock
from gridsim.model.time import MICROSECOND, NEVER, IntArray, to_us
from gridsim.model.windows import Time, Window, planned
from gridsim.schema import ANY_TABLE, NAME, POSITIVE, Number, check_fields, typed

Failing = Literal["exponential", "weibull"]
Repairing = Literal["exponential", "lognormal", "fixed"]
Repair = Literal["unknown", "announced"]
Requeue = Literal["original", "behind"]
Scope = Literal["node", "gpu", "group"]

Part = tuple[int, int]
"""Number of a node and of its GPU; -1 for the whole node."""


class Failure(NamedTuple):
    """Nodes and GPUs of one cluster that are absent in ``[down, up)``, whole microseconds; *up* is `NEVER` if lost."""

    down: int
    up: int
    cluster: int
    parts: tuple[Part, ...]


class Machines(NamedTuple):
    """Nodes of the clusters of a run, and the names of the clusters."""

    capacities: Sequence[Capacity]
    names: Sequence[str]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes, of several clusters as ``cluster/node``."""
        pairs = zip(self.names, self.capacities, strict=True)
        return tuple(node if len(self.names) == 1 else f"{name}/{node}" for name, it in pairs for node in it.nodes)

    def parts(self, nodes: Sequence[str]) -> dict[int, list[Part]]:
        """Return nodes and GPUs (``node``, ``cluster/node``, ``node:gpu``) by cluster.

        Raises
        ------
        InputError
            If a node or GPU does not exist.
        """
        found: dict[int, list[Part]] = {}
        for text in nodes:
            before, colon, gpu = text.rpartition(":")
            name, number = (before, int(gpu)) if colon and gpu.isdigit() else (text, -1)
            cluster, node = self.node(name)
            if number >= (count := int(self.capacities[cluster].gpus[node])):
                raise InputError(f"node '{name}' has no GPU {number}; it has {count}, from 0", field="failures.gpus")
            found.setdefault(cluster, []).append((node, number))
        return found

    def node(self, name: str) -> tuple[int, int]:
        """Return the cluster and the number of a node."""
        prefix, slash, inner = name.partition("/")
        within = range(len(self.names))
        if slash and prefix in self.names:
            name, within = inner, range(self.names.index(prefix), self.names.index(prefix) + 1)
        there = [cluster for cluster in within if name in self.capacities[cluster].nodes]
        if len(there) > 1:
            raise InputError(f"several clusters have a node '{name}'; expected cluster/node", field="failures.node")
        if not there:
            known = self.capacities[0].nodes
            some = ", ".join([*known[:3], *(["…"] if len(known) > 3 else [])])
            raise InputError(f"no node of the machine is named '{name}'; it has {some}", field="failures.node")
        return there[0], self.capacities[there[0]].nodes.index(name)


@dataclass(frozen=True)
class FailureModel:
    """Random failures; each node, GPU or group has its own stream of up and down times.

    Parameters
    ----------
    mtbf : float
        Mean time to a failure of one node, GPU or group, s.
    mttr : float
        Mean time to repair, s; for ``lognormal`` and ``fixed`` too.
    scope : {"node", "gpu", "group"}
        What fails: single nodes, single GPUs, or all nodes of each group together.
    time : {"exponential", "weibull"}
        Distribution of the times to failure; ``weibull`` with *shape*.
    repair : {"exponential", "lognormal", "fixed"}
        Distribution of the repair times; ``lognormal`` with *sigma*.
    groups : mapping of str to sequence of str
        For groups: the nodes of each, such as those of a rack.
    feature : sequence of str
        For groups, instead: one group for each feature, of the nodes with it.

    Notes
    -----
    All nodes are up and new at time 0, and age whether they are busy or idle.
    """

    mtbf: float
    mttr: float = 4 * 3600.0
    scope: Scope = "node"
    time: Failing = "exponential"
    shape: float = 1.0
    repair: Repairing = "exponential"
    sigma: float = 1.0
    groups: Mapping[str, Sequence[str]] | None = None
    feature: Sequence[str] = ()

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("mtbf", "mttr", "shape", "sigma"), POSITIVE)
        parts = {"groups": ({str: [NAME]}, None), "feature": [NAME]}
        check_fields(self, {"scope": Scope, "time": Failing, "repair": Repairing, **numbers, **parts}, "failures")
        if (self.scope == "group") != bool(self.groups or self.feature):
            raise InputError("is needed for scope = 'group', and only there: give groups or feature", field="groups")

    def failures(self, machines: Machines, seeds: np.random.SeedSequence) -> Iterator[Failure]:
        """Yield the failures in order of time, without end."""
        parts = list(self.parts(machines))
        made = seeds.spawn(len(parts))
        streams = (self._stream(*each, np.random.default_rng(seed)) for each, seed in zip(parts, made, strict=True))
        return heapq.merge(*streams, key=lambda failure: failure.down)

    def _stream(self, cluster: int, parts: tuple[Part, ...], rng: np.random.Generator) -> Iterator[Failure]:
        now = 0
        while True:
            down = now + max(1, to_us(self._up(rng)))
            now = down + max(1, to_us(self._down(rng)))
            yield Failure(down, now, cluster, parts)

    def _up(self, rng: np.random.Generator) -> float:
        if self.time == "exponential":
            return float(rng.exponential(self.mtbf))
        return float(self.mtbf / math.gamma(1 + 1 / self.shape) * rng.weibull(self.shape))

    def _down(self, rng: np.random.Generator) -> float:
        if self.repair == "fixed":
            return self.mttr
        if self.repair == "exponential":
            return float(rng.exponential(self.mttr))
        return float(rng.lognormal(math.log(self.mttr) - self.sigma**2 / 2, self.sigma))

    def parts(self, machines: Machines) -> Iterator[tuple[int, tuple[Part, ...]]]:
        """Yield the cluster, and the nodes and GPUs that fail together."""
        for cluster, machine in enumerate(machines.capacities):
            if self.scope == "node":
                yield from ((cluster, ((node, -1),)) for node in range(len(machine.nodes)))
            elif self.scope == "gpu":
                counts = machine.gpus.tolist()
                yield from ((cluster, ((node, gpu),)) for node, count in enumerate(counts) for gpu in range(count))
        if self.scope == "group":
            for cluster, nodes in self._groups(machines):
                yield cluster, tuple((node, -1) for node in nodes)

    def _groups(self, machines: Machines) -> Iterator[tuple[int, list[int]]]:
        for nodes in (self.groups or {}).values():
            found = [machines.node(node) for node in nodes]
            for cluster in sorted({cluster for cluster, _ in found}):
                yield cluster, [node for other, node in found if other == cluster]
        for feature in self.feature:
            with_it = [
                (cluster, [node for node, has in enumerate(machine.features) if feature in has])
                for cluster, machine in enumerate(machines.capacities)
            ]
            if not any(nodes for _, nodes in with_it):
                raise InputError(f"no node has the feature '{feature}'", field="failures.feature")
            yield from ((cluster, nodes) for cluster, nodes in with_it if nodes)


_FIELDS = {
    "repair": Repair,
    "requeue": Requeue,
    "on_failure": Literal["requeue", "cancel"],
    "repeat": Number(0),
    "requeue_delay": Number(0),
    "spares": (Number(0, whole=True), [str]),
    "max_restarts": (Number(0, whole=True), None),
}


@dataclass(frozen=True)
class Failures:
    """Failures and windows of a run, and what follows for jobs and schedulers.

    Parameters
    ----------
    trace : sequence of (nodes, down, up)
        Recorded failures: names of nodes (``node``, ``node:gpu`` for one GPU; on a grid ``cluster/node``), and the
        interval of absence, s, or dates if the log has dates; *up* infinite if they are never repaired.
    models : sequence of FailureModel
        Random failures, in addition.
    windows : sequence of Window
        Maintenance windows and drains.
    repair : {"unknown", "announced"}
        Whether schedulers know the end of a repair when a failure begins.
    requeue : {"original", "behind"}
        Place in the queue of an interrupted job: that of its submission, or as if it was submitted when interrupted.
    requeue_delay : float
        Time before an interrupted job waits again, s.
    on_failure : {"requeue", "cancel"}
        Whether an interrupted job is queued again, or fails.
    spares : int or sequence of str
        Nodes that only interrupted jobs may use, until they end: names, or the number of last nodes of each cluster.
    max_restarts : int, optional
        Number of restarts after which the next interruption of a job ends it.
    checkpoints : Checkpoints, optional
        Checkpoints of the jobs; without them an interruption loses all work of a run.
    repeat : float
        Period with which the trace is repeated, s; 0: once.
    events : sequence of NodeEvents
        Recorded failures in files of Slurm, in addition to the trace.
    inferred : sequence of sequence of (nodes, down, up)
        Failures inferred from runs in such files (`dated`), by run.
    origin : str
        Source of the trace, for reports.

    Examples
    --------
    >>> Failures([(["n1", "n2"], 3600, 7200)], repair="announced").repair
    'announced'
    """

    trace: Sequence[tuple[Sequence[str], Time, Time]] = ()
    models: Sequence[FailureModel] = ()
    windows: Sequence[Window] = ()
    repair: Repair = "unknown"
    requeue: Requeue = "original"
    requeue_delay: float = 0.0
    on_failure: Literal["requeue", "cancel"] = "requeue"
    max_restarts: int | None = None
    spares: int | Sequence[str] = 0
    checkpoints: Checkpoints | None = None
    repeat: float = 0.0
    events: Sequence[NodeEvents] = ()
    inferred: Sequence[Sequence[Absent]] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS, "failures")

    def __str__(self) -> str:
        parts = {"failures": bool(self.trace or self.models or self.origin), "maintenance": bool(self.windows)}
        parts["checkpoints"] = self.checkpoints is not None
        return " and ".join(name for name, there in parts.items() if there) or "failures"

    @property
    def need_nodes(self) -> bool:
        """True if anything but the checkpoints of jobs is defined."""
        return self.checkpoints is None or bool(self.trace or self.models or self.origin or self.windows or self.spares)

    @property
    def only_windows(self) -> bool:
        """True if windows are defined, and no failures or spare nodes; one node for each core suffices then."""
        return bool(self.windows) and not (self.trace or self.models or self.origin or self.spares)

    def mtbf(self, machines: Machines) -> float:
        """Return the mean time between failures of one node, s; infinite without failures.

        Rates of several models are added, those of a group and of a GPU for each of its nodes. Of a trace, it is the
        time that nodes were up until its last instant, over the number of failures of nodes.
        """
        nodes = len(machines.nodes)
        counts = [Counter(node for _, parts in model.parts(machines) for node in parts) for model in self.models]
        rate = sum(sum(count.values()) / model.mtbf for count, model in zip(counts, self.models, strict=True))
        failed = [(down, up) for names, down, up in self._recorded() for name in names if not _GPU.search(name)]
        if failed:
            last = self.repeat or max(time for times in failed for time in times if time < math.inf)
            up_seconds = nodes * last - sum(min(up, last) - down for down, up in failed)
            rate += nodes * len(failed) / up_seconds if up_seconds > 0 else math.inf
        return nodes / rate if rate else math.inf

    def failures(self, machines: Machines, seed: int) -> Iterator[Failure]:
        """Yield all failures in order of time; they depend on the seed of the scenario, and not on the policy."""
        recorded = [
            Failure(begin, end, cluster, tuple(parts))
            for nodes, down, up in self._recorded()
            if nodes and (begin := to_us(down)) < (end := min(to_us(up), NEVER))
            for cluster, parts in self._parts(machines, nodes).items()
        ]
        seeds = np.random.SeedSequence(entropy=seed, spawn_key=(_ROLE,)).spawn(len(self.models))
        streams = [model.failures(machines, each) for model, each in zip(self.models, seeds, strict=True)]
        recorded.sort(key=lambda failure: failure.down)
        periods = itertools.count(0, to_us(self.repeat)) if self.repeat and recorded else [0]
        past = (it._replace(down=it.down + begin, up=it.up + begin) for begin in periods for it in recorded)
        return heapq.merge(past, *streams, key=lambda failure: failure.down)

    def dated(self, provenance: Mapping[str, Any]) -> Failures:
        """Return these failures with all times in seconds, and without those that ended before time 0.

        Parameters
        ----------
        provenance : mapping
            Provenance of the workload, which may define the dates of its clock.

        Raises
        ------
        InputError
            For a date if the log has no dates, and for a failure that does not end within the period of `repeat`.
        """
        with located(self.origin or None):
            trace = [_in_time(each, provenance) for each in self.trace]
        found, inferred = absences(self.events, trace, slurm_clock(provenance))
        trace = _from_zero((*trace, *found))
        inferred = [kept for each in (*self.inferred, *inferred) if (kept := _from_zero(each))]
        for nodes, _, up in (*trace, *itertools.chain(*inferred)):
            if self.repeat and up > self.repeat:
                message = f"node '{nodes[0]}' is absent until {up:g} s, beyond the period of {self.repeat:g} s"
                raise InputError(message, path=self.origin or None, field="failures.repeat")
        return replace(self, trace=trace, inferred=inferred, events=[replace(it, rows=()) for it in self.events])

    def from_moment(self, at: float, provenance: Mapping[str, Any]) -> Failures:
        """Return these failures on a clock that begins at a moment, s, without those and windows that are over.

        Parameters
        ----------
        provenance : mapping
            Provenance of the workload, which may define the dates of its clock.

        Raises
        ------
        InputError
            If the trace is repeated, and as for `dated`.
        """
        if self.repeat:
            raise InputError("is not supported from a moment on; expected 0", field="failures.repeat")
        dated = self.dated(provenance)
        trace, *inferred = (
            _from_zero((nodes, float(down) - at, float(up) - at) for nodes, down, up in each)
            for each in (dated.trace, *dated.inferred)
        )
        windows = [it.from_moment(at, provenance) for it in self.windows]
        left = [it for it in windows if it.end > 0 and it.deleted > 0]  # type: ignore[operator]
        return replace(dated, trace=trace, inferred=inferred, windows=left)

    def _recorded(self) -> list[Absent]:
        """Return all recorded and inferred failures; their times must be in seconds."""
        trace: list[Absent] = [(nodes, float(down), float(up)) for nodes, down, up in self.trace]
        return [*trace, *itertools.chain(*self.inferred)]

    def _parts(self, machines: Machines, nodes: Sequence[str]) -> dict[int, list[Part]]:
        with located(self.origin or None, field="node"):
            return machines.parts(nodes)

    def known_at(self, machines: Machines, seed: int, now: int, provenance: Mapping[str, Any]) -> Failures:
        """Return what schedulers know at an instant, whole microseconds: unknown repairs never end.

        Parameters
        ----------
        machines, seed, provenance
            As for `failures` and `dated`.
        """
        trace: list[Absent] = []
        for down, up, cluster, parts in itertools.takewhile(lambda it: it.down <= now, self.failures(machines, seed)):
            prefix = "" if len(machines.names) == 1 else f"{machines.names[cluster]}/"
            nodes = [prefix + machines.capacities[cluster].nodes[node] for node, _ in parts]
            names = [node if gpu < 0 else f"{node}:{gpu}" for node, (_, gpu) in zip(nodes, parts, strict=True)]
            unknown = up >= NEVER or (up > now and self.repair == "unknown")
            trace.append((names, down / MICROSECOND, math.inf if unknown else up / MICROSECOND))
        windows = []
        for window in self.windows:
            for it in planned([window], machines.nodes, provenance):
                if it.announced <= now:
                    windows.append(window if it.deleted <= now else replace(window, deleted=None))
        saving, mtbf = self.checkpoints, self.mtbf(machines)
        if saving is not None and saving.mtbf is None and mtbf < math.inf:
            saving = replace(saving, mtbf=mtbf)
        more: dict[str, Any] = {"models": (), "repeat": 0.0, "inferred": (), "checkpoints": saving}
        return replace(self, trace=trace, windows=windows, **more)

    def spare_nodes(self, machine: Capacity) -> IntArray:
        """Return the numbers of the spare nodes of a cluster; names of other clusters are left out."""
        if isinstance(self.spares, int):
            return np.arange(max(0, len(machine.nodes) - self.spares), len(machine.nodes))
        return np.array([at for at, node in enumerate(machine.nodes) if node in self.spares], dtype=np.int64)

    def written(self) -> dict[str, Any]:
        """Return the settings as JSON types; the trace as its number of failures."""
        values: dict[str, Any] = {
            "repair": self.repair,
            "requeue": self.requeue,
            "requeue_delay": self.requeue_delay,
            "on_failure": self.on_failure,
            **({"repeat": self.repeat} if self.repeat else {}),
            **({} if self.max_restarts is None else {"max_restarts": self.max_restarts}),
            **({} if self.checkpoints is None else {"checkpoint": self.checkpoints.written()}),
        }
        if self.spares:
            values["spares"] = self.spares if isinstance(self.spares, int) else list(self.spares)
        if self.trace:
            values |= {"trace": len(self.trace), "file": self.origin}
        if self.events:
            values |= {"file": self.origin, "inferred": len(self.inferred)}
            values["damaged_lines"] = {str(it.path): list(it.damaged) for it in self.events if it.damaged}
        if self.windows:
            values["windows"] = [window.written() for window in self.windows]
        if self.models:
            values["models"] = [
                {it.name: getattr(model, it.name) for it in fields(model) if getattr(model, it.name) != it.default}
                for model in self.models
            ]
        return values


def _in_time(failure: tuple[Sequence[str], Time, Time], provenance: Mapping[str, Any]) -> Absent:
    """Return a failure with its times in seconds."""
    nodes, *times = failure
    down, up = (instant(time, "date", provenance) if isinstance(time, str) else time for time in times)
    if up < down:
        raise InputError(f"of node '{nodes[0]}' is {times[1]}, before down ({times[0]})", field="up")
    return nodes, down, up


def slurm_clock(provenance: Mapping[str, Any]) -> Callable[[str, Path, int], float]:
    """Return the function that converts a date in a line of a file of Slurm to seconds of the simulation.

    It raises `InputError` if the clock of the log is unknown.
    """
    clock = SiteClock(epoch_of(provenance), zone_name_of(provenance))

    def instant_of(text: str, path: Path, line: int) -> float:
        with located(path, line=line):
            needed_calendar(text, "date", provenance)
            return clock.instant(text, field="date") / MICROSECOND

    return instant_of


def _from_zero(failures: Iterable[Absent]) -> list[Absent]:
    return [(nodes, max(down, 0.0), up) for nodes, down, up in failures if up > 0]


_GPU = re.compile(r":\d+$")

_ROLE = 0x66616C73
"""Key of the random streams of failures below the seed of a scenario."""


_MODEL = ("mtbf", "mttr", "scope", "time", "shape", "repair_time", "sigma", "groups", "feature")
_SOURCES = ("file", "mtbf", "mttr", "model")
_OWN = ("repeat", "repair", "requeue", "requeue_delay", "on_failure", "max_restarts", "spares")
_DURATIONS = ("mtbf", "mttr", "repeat", "requeue_delay")


def failures_from(
    table: Mapping[str, Any],
    folder: Path | None = None,
    origin: object = "the options",
    windows: Sequence[Window] = (),
    checkpoint: Mapping[str, Any] | None = None,
) -> Failures:
    """Return the failures of a table ``[failures]`` of a recipe, or of the options of a command.

    Parameters
    ----------
    table : mapping
        ``file`` (a trace, or a file of Slurm; or a list of files), or ``mtbf`` and ``mttr`` of single nodes (s, or
        text such as ``2000h``); ``model``, a list of tables with the parameters of `FailureModel`, in which
        ``repair_time`` is the distribution of repair times; and the parameters of `Failures`.
    folder : Path, optional
        The trace is relative to it.
    origin : object
        File of the table, for errors.
    windows : sequence of Window
        Maintenance windows and drains.
    checkpoint : mapping, optional
        The table ``[checkpoint]``.

    Examples
    --------
    >>> failures_from({"mtbf": "2000h", "repair": "announced"}).models[0].mtbf
    7200000.0
    """
    check_keys(table, (*_SOURCES, *_OWN), "[failures]", origin)
    given = _in_seconds(table)
    if "file" in given and "mtbf" in given:
        raise InputError("is given together with a trace; expected one of them", field="failures.mtbf")
    if "mttr" in given and "mtbf" not in given:
        raise InputError("is given without mtbf", field="failures.mttr")
    single = {name: given[name] for name in ("mtbf", "mttr") if name in given}
    models = [FailureModel(**single)] if single else []
    for each in typed(given.get("model", []), [ANY_TABLE], "failures.model", origin):
        check_keys(each, _MODEL, "[[failures.model]]", origin)
        if "mtbf" not in each:
            raise InputError("is missing in a model", field="failures.model.mtbf")
        words = {"repair" if name == "repair_time" else name: value for name, value in _in_seconds(each).items()}
        models.append(FailureModel(**words))
    files = [given["file"]] if isinstance(given.get("file"), str) else given.get("file", [])
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise InputError(f"is {files!r}; expected the name of a file, or a list of names", field="failures.file")
    if "repeat" in given and not files:
        raise InputError("is given without a trace", field="failures.repeat")
    trace: list[tuple[Sequence[str], Time, Time]] = []
    events: list[NodeEvents] = []
    for path in ((folder or Path()) / file for file in files):
        lines = _lines(path)
        if (slurm := read_node_events(path, lines)) is not None:
            events.append(slurm)
        else:
            trace += _trace(path, lines)
    own = {name: given[name] for name in _OWN if name in given}
    own |= {"checkpoints": checkpoints_from(checkpoint or {}, origin), "origin": ", ".join(files)}
    return Failures(trace, events=events, models=tuple(models), windows=tuple(windows), **own)


def _in_seconds(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table with texts such as ``4h`` as seconds."""
    texts = {name: value for name, value in table.items() if name in _DURATIONS and isinstance(value, str)}
    return {**table, **{name: duration(value, f"failures.{name}") for name, value in texts.items()}}


def read_trace(path: str | Path) -> list[tuple[list[str], Time, Time]]:
    """Read a trace of failures: CSV with columns ``node``, ``down``, ``up`` in seconds, and optionally ``gpus``.

    Rows with the same times are one failure of several nodes; an empty ``up`` means that the node is never repaired.
    With ``gpus`` (``0 2``), these GPUs of the node fail, and the node stays. A time can be a date, which is returned
    as text (`Failures.dated`).

    Raises
    ------
    InputError
        With file, line and field, for a missing column or a time that is neither a number of seconds nor a date.
    """
    return _trace(Path(path), _lines(Path(path)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}; expected a CSV table node,down,up", path=path) from error


def _trace(path: Path, lines: Sequence[str]) -> list[tuple[list[str], Time, Time]]:
    header, rows = csv_records(lines, path)
    check_keys(header, ("node", "down", "up", "gpus"), "trace of failures", path)
    for name in ("node", "down", "up"):
        if name not in header:
            raise InputError("is missing; expected the columns node, down, up", path=path, line=1, field=name)
    found: dict[tuple[Time, Time], list[str]] = {}
    for line, row in rows:
        if not row["node"]:
            raise InputError("is empty; expected the name of a node", path=path, line=line, field="node")
        down, up = (_seconds(row, name, path, line) for name in ("down", "up"))
        if isinstance(down, float) and isinstance(up, float) and up < down:
            raise InputError(f"is {row['up']}, before down ({row['down']})", path=path, line=line, field="up")
        gpus = row.get("gpus", "").split()
        if not all(gpu.isdigit() for gpu in gpus):
            raise InputError(f"is '{row['gpus']}'; expected numbers of GPUs", path=path, line=line, field="gpus")
        names = [f"{row['node']}:{gpu}" for gpu in gpus] or [row["node"]]
        if up != down:
            found.setdefault((down, up), []).extend(names)
    return [(nodes, down, up) for (down, up), nodes in found.items()]


def _seconds(row: Mapping[str, str], name: str, path: Path, line: int) -> Time:
    """Return seconds, or the text of a date."""
    text = row[name].strip()
    if name == "up" and text.lower() in ("", "nan"):
        return math.inf
    try:
        if re.match(r"\d{4}-\d\d-\d\d", text):
            datetime.fromisoformat(text)
            return text
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        message = f"is '{text}'; expected seconds from 0, or a date such as 2026-11-21T07:00"
        raise InputError(message, path=path, line=line, field=name)
    return value
