"""Jobs, machine and windows of a run that starts from the state of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridsim.entities.beginning import Beginning, Condition
from gridsim.errors import InputError, name_of
from gridsim.model.capacity import NodeGroup
from gridsim.model.cluster_state import LABELS, ClusterState, RunningJob, StateJob, WaitingJob
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.site import Reservation
from gridsim.model.site_file.reservations import allowed, evenly
from gridsim.model.site_file.syntax import expanded
from gridsim.model.time import MICROSECOND, NEVER, IntArray, seconds
from gridsim.model.windows import AtBegin, Window
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.protocols import Placement

LEAST_LEFT = 30 * MICROSECOND
"""Remaining limit of a job that has reached or exceeded its limit (Slurm checks limits about every 30 s)."""

MOST_CORES = 2_000_000
"""Largest number of cores of a state with windows, each of which is a node of the run."""

CLOSED = "nodes without new jobs"
"""Identifier of the windows of nodes that are closed at the moment."""

_SITE_LABELS = (*LABELS, "reservation")

_SITE = "features, memory, GPUs, licences and nodes that jobs request are ignored"
_WHY = {"held": "held; starts after its release at the earliest", "never": ""}
"""Kinds of waiting jobs without a forecast, with the reason if it is not that of Slurm."""


@dataclass(frozen=True)
class StartingPoint:
    """A state as the input of a run, in which time 0 is the moment of the state.

    Attributes
    ----------
    jobs : Workload
        Running jobs, by start, then waiting ones in the order of the queue. Submit times are negative, except of jobs
        that enter the queue later; run times are the limits.
    beginning : Beginning
        Running jobs in place, and dependencies.
    platform : Platform
        One pool of cores; with windows one node for each core. Of a policy with a site: that of the site.
    windows : tuple of Window
        Nodes without new jobs, and reservations.
    ids : tuple of str
        Ids of the jobs.
    left_out : mapping of str to str
        Jobs without a forecast, with the reason.
    notes : tuple of str
        Assumptions, and features that are not modelled.
    policy : object or None
        A policy with a site, to which reservations of the state are added; None if there are none to add.
    """

    jobs: Workload
    beginning: Beginning
    platform: Platform
    windows: tuple[Window, ...]
    ids: tuple[str, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]
    policy: Any = None

    @classmethod
    def of(
        cls, state: ClusterState, default_limit: int | None = None, *, on_nodes: bool = False, policy: Any = None
    ) -> StartingPoint:
        """Return the starting point of a state; jobs without a limit have *default_limit* (s), or the longest one.

        The machine is one pool of cores; *on_nodes*, or if the state has windows, it is one node for each core. If the
        *policy* has a site, it is the machine of the site.

        Raises
        ------
        InputError
            If running jobs hold more cores than the machine has, or no job has a limit.
        """
        if not isinstance(state, ClusterState):
            what = name_of(state)[:60]  # type: ignore[unreachable]
            raise InputError(f"is {what}; expected a ClusterState, such as of read_slurm_state", field="state")
        sited = policy is not None and capabilities_of(policy).site
        at, running = state.at, [job for job in state.running if not job.stopped]
        waiting = [job for job in state.waiting if job.kind not in _WHY]
        jobs: list[RunningJob | WaitingJob] = [*running, *waiting]
        many, known = len(running), [job.limit for job in (*state.running, *state.waiting) if job.limit]
        if jobs and not known and not default_limit:
            raise InputError("no job and no partition has a time limit; expected one", field="limit")
        longest = default_limit or max(known, default=0)
        elapsed = np.array([job.elapsed for job in running], dtype=np.int64)
        limit = np.array([job.limit or longest for job in jobs], dtype=np.int64) * MICROSECOND
        limit[:many] = with_time_left(limit[:many], elapsed * MICROSECOND)
        enters = [max((job.eligible or 0) - at, 0) or min(job.submit - at, 0) for job in waiting]
        texts = {label: [getattr(job, label) for job in jobs] for label in (_SITE_LABELS if sited else LABELS)}
        names = {label: tuple(sorted(set(column))) for label, column in texts.items()}
        workload = Workload.from_columns(
            submit=np.zeros(len(jobs)),
            runtime=seconds(limit),
            cores=[max(job.cores, 1) for job in jobs],
            labels={label: [names[label].index(text) for text in column] for label, column in texts.items()},
            provenance={"clock": {"origin": at, "zone": "epoch"}},
        )
        submit = np.append(-elapsed, np.array(enters, dtype=np.int64)) * MICROSECOND
        machine = _machine_of_site(state, running, policy) if sited else _machine(state, running, on_nodes=on_nodes)
        platform, places, windows = machine
        if (held := sum(job.cores for job in running)) > (most := platform.cores):
            message = f"has running jobs on {held} cores, but nodes with {most}; expected at most what the nodes have"
            raise InputError(message, field="nodes")
        base = [job.job.partition("_")[0] for job in jobs]  # numbers of arrays
        throttles = {str(job.array): (job.array, job.throttle) for job in waiting if job.array and job.throttle}
        beginning = Beginning(
            [(job.elapsed * MICROSECOND, place) for job, place in zip(running, places, strict=True)],
            after={row: found for row in range(many, len(jobs)) if (found := _conditions(row, jobs, base))},
            any_one=frozenset(row for row, job in enumerate(waiting, many) if job.any_one),
            throttles={row: throttles[number] for row, number in enumerate(base) if number in throttles},
        )
        kind = "each core is a node" if next(platform.clusters()).nodes else "the machine is one pool of cores"
        plain = f"{kind}; features, partitions, memory and GPUs are ignored"
        notes = [*state.notes, _SITE if sited else plain]
        if sited and (closed := [node for it in windows for node in it.nodes]):  # type: ignore[union-attr]
            more = f" and {len(closed) - 5} others" * (len(closed) > 5)
            notes.append(f"{CLOSED} until the end of the horizon: {', '.join(closed[:5])}{more}")
        if stopped := len(state.running) - many:
            notes.append(f"suspended jobs hold no cores, and when they continue is not modelled: {stopped}")
        left_out = {job.job: _WHY[job.kind] or job.reason for job in state.waiting if job.kind in _WHY}
        given = (beginning, platform, windows, tuple(job.job for job in jobs), left_out, tuple(notes))
        reserving = _with_reservations(policy, state) if sited else None
        return cls(replace(workload, submit=submit, names=names), *given, reserving)

    def with_windows(self, failures: Failures | None) -> Failures:
        """Return failures with the windows of the state in addition.

        Without a site, the nodes of windows are the cores of those that are named.

        Raises
        ------
        InputError
            For a node that the state has not.
        """
        failures = failures or Failures()
        groups, named = next(self.platform.clusters()).nodes, []
        if not groups:  # of a site
            return replace(failures, windows=(*failures.windows, *self.windows))
        node_of = {core: core.rpartition(".")[0] for group in groups for core in group.names or ()}
        known = {*node_of.values()}
        for it in failures.windows:
            texts = () if isinstance(it.nodes, int) else [text for text in it.nodes if text.upper() != "ALL"]
            nodes = {node for text in texts for node in expanded(text)}
            if lost := sorted(nodes - known):
                raise InputError(f"the state has no node '{lost[0]}' that is up", path=it.origin or None, field="nodes")
            named.append(replace(it, nodes=[core for core in node_of if node_of[core] in nodes]) if nodes else it)
        return replace(failures, windows=(*named, *self.windows))

    def after(self, past: Workload, at: int) -> tuple[Workload, IntArray]:
        """Return the jobs behind those of a log, at its moment *at* (s), by submission, and their rows.

        Names of users and other labels are those of the log, followed by new ones. Tasks of arrays have the number 0.
        """
        labels, names, more = {}, {}, {}
        for label, own in self.jobs.names.items():
            place = {name: number for number, name in enumerate(dict.fromkeys((*past.names.get(label, ()), *own)))}
            more[label] = np.array([place[name] for name in own], dtype=np.int64)[self.jobs.labels[label]]
            known = past.labels if label in LABELS else {}  # reservations of the past are over
            labels[label], names[label] = known.get(label, np.full(len(past), UNKNOWN)), tuple(place)
        plain: dict[str, Any] = dict.fromkeys(("tolerance", "restartable", "moldable", "demands"))
        columns: dict[str, Any] = {name: getattr(self.jobs, name) for name in ("runtime", "estimate", "cores")}
        columns |= {"submit": np.minimum(self.jobs.submit, 0) + at * MICROSECOND}
        columns |= {"job": [int(name) if name.isdigit() else 0 for name in self.ids]}
        whole = replace(past, labels=labels, names=names, **plain).with_more(more, **columns)
        order = np.argsort(whole.submit, kind="stable")
        return whole.select(order), np.argsort(order)[len(past) :]


def with_time_left(limit: IntArray, elapsed: IntArray) -> IntArray:
    """Return limits of running jobs, where those that are reached or exceeded leave 30 s, whole microseconds."""
    return np.where(limit > elapsed, limit, elapsed + LEAST_LEFT)


def _conditions(row: int, jobs: Sequence[StateJob], base: Sequence[str]) -> list[Condition]:
    """Return the dependencies of a waiting job with the rows of the jobs that it waits for."""
    found: list[Condition] = []
    for kind, name, _ in jobs[row].after:  # type: ignore[attr-defined]
        number, task = name.rstrip("_*"), jobs[row].job.partition("_")[2]
        wanted = f"{number}_{task}" if kind == "aftercorr" and task else number
        rows: Iterable[int] = (it for it in range(len(jobs)) if wanted in (jobs[it].job, base[it]))
        if kind == "singleton":
            rows = (it for it in range(row) if jobs[it].user == jobs[row].user)
        found.append((kind, tuple(rows)))
    return found


def _machine(
    state: ClusterState, running: Sequence[RunningJob], *, on_nodes: bool
) -> tuple[Platform, Sequence[Placement | None], tuple[Window, ...]]:
    """Return the machine without nodes that are down, the places of the running jobs, and the windows.

    It is one pool of cores; with windows, or *on_nodes*, one node for each core.
    """
    up = {node.node: node for node in state.nodes if node.state != "down"}
    total, closed = sum(node.cores for node in up.values()), [it for it in up if up[it].state == "no new jobs"]
    if not total:
        raise InputError("no node of the state is up, so no job can start", field="nodes")
    reserved = [it for it in state.reservations if (it.end is None or it.end > state.at) and up.keys() & {*it.nodes}]
    if not (reserved or on_nodes or closed):
        return Platform.single(total), [None] * len(running), ()
    if total > MOST_CORES:
        raise InputError(f"have {total} cores; with windows, expected at most {MOST_CORES}", field="nodes")
    cores = {node.node: [f"{node.node}.{core}" for core in range(node.cores)] for node in up.values()}
    names = [name for each in cores.values() for name in each]
    windows = [Window(tuple(cores[name]), 0, kind="drain", id=CLOSED) for name in closed]
    for one in reserved:
        within = [core for name in one.nodes for core in cores.get(name, ())][: one.cores]
        begin, end = max(one.start - state.at, 0), np.inf if one.end is None else float(one.end - state.at)
        how: AtBegin = "requeue" if one.maintenance else "wait"
        windows.append(Window(within, begin, end, announced=0, at_begin=how, id=one.name))
    first, places = dict(zip(cores, np.cumsum([0, *map(len, cores.values())]).tolist(), strict=False)), []
    for share in _shares(running, {name: len(each) for name, each in cores.items()}):
        taken = [place for name, many in share.items() for place in range(first[name], first[name] + many)]
        first |= {name: first[name] + many for name, many in share.items()}
        places.append(_placement(taken, [1] * len(taken)))
    group = NodeGroup(group="cores", count=len(names), capacity={"cores": 1}, names=tuple(names))
    return Platform.of_nodes([group]), places, tuple(windows)


def _placement(nodes: Sequence[int], cores: Sequence[int]) -> Placement:
    return Placement(nodes, {"cores": cores}, (), cores)


def _shares(running: Sequence[RunningJob], sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the cores that each running job holds of nodes with some *sizes*.

    Evenly from its nodes; if their list is incomplete, from any. Jobs on few nodes are first, as their cores on each
    are better known.
    """
    free, found = dict(sizes), list[dict[str, int]]([{} for _ in running])
    for row in sorted(range(len(running)), key=lambda row: len(running[row].on) or len(free)):
        own, left = [name for name in running[row].on if name in free], running[row].cores
        for among, name in (*zip(range(len(own), 0, -1), own, strict=True), *((1, name) for name in free)):
            if many := min(-(-left // among), free[name]):
                found[row][name] = found[row].get(name, 0) + many
                free[name] -= many
                left -= many
            if not left:
                break
    return found


def _machine_of_site(
    state: ClusterState, running: Sequence[RunningJob], policy: Any
) -> tuple[Platform, Sequence[Placement | None], tuple[Window, ...]]:
    """Return the machine of a policy with a site, the places of the running jobs, and the nodes without new jobs.

    Without known nodes, the policy itself places the running jobs.
    """
    sizes = _sizes(policy)
    for node in state.nodes:
        if node.state == "up" and node.cores != (own := sizes.get(node.node)):
            what = f"has {own} cores" if own else "does not exist"
            message = f"{node.node} has {node.cores} cores in the state, and {what} in the configuration of the policy"
            raise InputError(f"{message}; expected the same", field="nodes")
    up = {node.node for node in state.nodes if node.state == "up"}
    closed = tuple(name for name in sizes if name not in up)
    windows = (Window(closed, 0, kind="drain", id=CLOSED),) if closed else ()
    if not any(job.on for job in running):
        return policy.machine(), [None] * len(running), windows
    number = {name: row for row, name in enumerate(sizes)}
    shares = _shares(running, sizes)
    places = [_placement([number[name] for name in share], list(share.values())) for share in shares]
    return policy.machine(), places, windows


def _sizes(policy: Any) -> dict[str, int]:
    """Return the cores of each node of a policy's site."""
    capacity = policy.capacity()
    return dict(zip(capacity.nodes, capacity.amounts["cores"].tolist(), strict=True))


def _with_reservations(policy: Any, state: ClusterState) -> Any:
    """Return a policy with the reservations of the state that it has not; None if it has all."""
    dated = replace(policy, epoch=state.at, timezone=policy.timezone or "UTC")  # names do not depend on the zone
    booked, found = {each.name for each in dated.resolved().reservations}, []
    sizes = _sizes(policy)
    clock = state.at * MICROSECOND + MICROSECOND // 2  # as for reservations in a file: events are within their seconds
    for it in state.reservations:
        own = {name: sizes[name] for name in it.nodes if name in sizes}
        if it.name in booked or not own or (it.end is not None and it.end <= state.at):
            continue
        cores = evenly(it.cores, own) if it.cores and it.cores < sum(own.values()) else own
        made = Reservation(
            name=it.name,
            nodes=tuple(own),
            start=it.start * MICROSECOND - clock,
            end=NEVER if it.end is None else it.end * MICROSECOND - clock,
            users=allowed(it.users),
            accounts=allowed(it.accounts),
            cores=tuple((name, many) for name, many in cores.items() if many < own[name]),
            flags=frozenset({"MAINT"} if it.maintenance else ()),
        )
        found.append(made)
    reserved = replace(policy.site, reservations=(*policy.site.reservations, *found))
    return replace(policy, site=reserved) if found else None
