"""Schedules packed for the page's Gantt chart: typed arrays as text, one set of common columns for all policies.

The drawing itself is `templates/gantt.js`. Times are whole ticks from the first submit; a policy adds to the common
columns only its waits and the cores that `gridsim.report.core_assignment` gives each job; of moldable jobs also how
many.

On machines of nodes the chart is one of nodes (`by_node`), and of each resource there is one.

Of DAG jobs each task is a row: clusters lie one below the other, and edges, critical paths and what is known of the
network are packed too. The critical path of a job is the chain that attains the rank of the job: from the task of the
largest upward rank (by estimates, unavoidable delays included) along the successor whose delay and rank make up the
rest, the first of equal ones, to a task that has none. It depends on the job alone, so it is the same under all
policies.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.metrics.stranding import lacking
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.dates import calendar_of
from gridsim.model.job_id import JobIds
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.ranks import unavoidable_delays
from gridsim.questions.parts import parts_of
from gridsim.questions.schedules import JobSchedule, cut_runs_of
from gridsim.record import Record, Status
from gridsim.report.calendar import embedded
from gridsim.report.core_assignment import CoreAssignment, assign_cores
from gridsim.report.gantt_rows import Axis, Bands, by_node, by_partition, placed
from gridsim.report.markup import texts
from gridsim.words import between, duration

_text = texts("gantt")


TICKS = 2**31 - 1
"""The largest number of a column of whole ones; larger numbers are floats."""

_PLAIN_BYTES = 200_000
"""Up to here columns are embedded as they are; beyond they are deflated and the browser inflates them.

Before that the bytes of a column are put in order of their place in a number, all lowest bytes first: those of high
places are much alike, and a fifth is saved.
"""


def encoded(*groups: Mapping[str, Any]) -> bool:
    """Turn all columns into text; whether that is deflated."""
    columns = [column for group in groups for column in _columns(group)]
    packed = sum(int(column["bytes"]) for column in columns) > _PLAIN_BYTES
    for column in columns:
        _encode(column, packed)
    return packed


def narrowed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Narrowest type that holds the values; text comes later, when the size of all is known."""
    if values.dtype.kind == "f" or (len(values) and values.max() > TICKS):
        exact = values.astype("<f8")
        return {"type": "f8", "length": len(exact), "bytes": exact.nbytes, "data": exact}
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = "u1" if low >= 0 and high < 2**8 else "u2" if low >= 0 and high < 2**16 else "i4"
    array = values.astype(f"<{kind}")
    return {"type": kind, "length": len(array), "bytes": array.nbytes, "data": array}


def _columns(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in group.values() if isinstance(value, dict)]


def _encode(column: dict[str, Any], deflate: bool) -> None:
    values = column.pop("data")
    del column["bytes"]
    if deflate:
        planes = values.view(np.uint8).reshape(len(values), values.itemsize).T.tobytes()
        column["data"] = base64.b64encode(zlib.compress(planes, 7)).decode("ascii")
    else:
        column["data"] = base64.b64encode(values.tobytes()).decode("ascii")


MOST_JOBS = 150_000
"""Jobs that a page holds at most."""

MOST_ROWS = 450_000
"""Jobs times policies that a page holds at most."""


class Window(NamedTuple):
    """Rows of the workload that the chart shows, and a sentence if they are not all of them."""

    rows: slice
    note: str | None


def window(records: Mapping[str, Record], *, jobs: int = MOST_JOBS, rows: int = MOST_ROWS) -> Window:
    """Consecutive jobs that fit on the page: all of them, else the stretch with the most waiting under any policy."""
    record = next(iter(records.values()))
    most = min(jobs, rows // len(records))
    if len(record) <= most:
        return Window(slice(0, len(record)), None)
    total = np.zeros(len(record) + 1)
    for each in records.values():
        total[1:] += np.nan_to_num(each.wait)
    total = np.cumsum(total)
    first = int(np.argmax(total[most:] - total[:-most]))
    given = record.workload_given
    begin, end = (float(seconds(int(given.submit[row]))) for row in (first, first + most - 1))
    note = _text("jobs_shown", most=most, count=len(record), during=_during(begin, end, given))
    return Window(slice(first, first + most), note)


def _during(begin: float, end: float, workload: Workload) -> str:
    """Two instants as dates, or as times after the first submit."""
    calendar = calendar_of(workload.provenance)
    if calendar is not None:
        return between(begin, end, calendar)
    zero = float(seconds(int(workload.submit[0])))
    return f"{duration(begin - zero)} to {duration(end - zero)} after the first one"


def pack(
    records: Mapping[str, Record],
    *,
    first: str | None = None,
    jobs: int = MOST_JOBS,
    rows: int = MOST_ROWS,
    platform: Platform | None = None,
    platforms: Mapping[str, Platform] | None = None,
    tick: int = MICROSECOND,
) -> dict[str, Any]:
    """What the page embeds, JSON types only.

    Parameters
    ----------
    records : mapping of str to Record
        By label, all on the same workload.
    first : str, optional
        The policy to show where there is room for one.
    jobs, rows : int
        Limits of `window`; of DAG jobs both count tasks.
    platform : Platform, optional
        Clusters, and of DAG jobs the delays between them; one cluster where left out.
    platforms : mapping of str to Platform, optional
        The machine of policies that see another one.
    tick : int
        To whole multiples of which delays are rounded up, microseconds.
    """
    record = next(iter(records.values()))
    if record.tasks is not None:
        return _pack_tasks(
            records, first, min(jobs, rows // len(records)), platform or Platform.single(record.cores), tick
        )
    axes = by_node(records)
    shown, note = window(records, jobs=jobs, rows=rows // max(1, len(axes)))
    workload = record.workload.select(shown)
    parts = [record.select(shown) for record in records.values()]
    logged = parts[0].workload_given.submit
    origin = int(min(map(np.min, (logged, *(part.workload.submit for part in parts))))) if len(workload) else 0
    clock = _Clock.of(origin, parts)
    submit = clock.ticks(logged)
    runtime = clock.held(record.select(shown))
    places = {label: found for label in _PLACES if (found := _names(workload, label))}
    colours = {label: _told(workload, label) for label in _COLOURS if _several(workload, label)}
    columns = _of_jobs(workload, submit, runtime, clock, {**places, **colours})
    bands = None if axes else by_partition(records, platform)
    policies = [
        _policy(label, each, shown, clock, submit, runtime)
        | ({} if axes else _pieces(placement(each, bands), shown))
        | _explaining(each, shown, clock, (platforms or {}).get(label, platform))
        for label, each in records.items()
    ]
    nodes = [_axis(axis, shown) for axis in axes]
    return {
        "deflated": encoded(columns, *policies, *nodes, *(held for axis in nodes for held in axis["held"])),
        "jobs": len(workload),
        "cores": record.cores,
        "tick": clock.tick / MICROSECOND,
        "origin": seconds(origin),
        "since": seconds(origin - int(record.workload.submit[0])) if len(workload) else 0.0,
        "shown": 0 if first is None else list(records).index(first),
        "note": note,
        "sizes": _size_classes(record.cores),
        "users": _names(workload, "user"),
        "places": places,
        "colours": colours,
        **({} if bands is None else {"bands": _bands(bands), "sized": bands.sized}),
        **({"axes": nodes, "nodes": _node_names(record)} if axes else {}),
        **_dates(workload, origin, parts),
        "statuses": [status.name for status in Status],
        "columns": columns,
        "policies": policies,
    }


def _of_jobs(
    workload: Workload, submit: IntArray, runtime: IntArray, clock: _Clock, labels: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Columns of what jobs are, whoever schedules them; times in ticks."""
    columns = {
        "job": narrowed(np.diff(workload.job, prepend=0)),
        "submit": narrowed(np.diff(submit, prepend=0)),
        "runtime": narrowed(runtime),
        "cores": narrowed(workload.cores),
    }
    if "user" in workload.labels:
        columns["user"] = narrowed(workload.labels["user"])
    columns |= _ids(workload)
    columns |= {label: narrowed(workload.labels[label]) for label in labels}
    estimate = np.rint(workload.estimate / clock.tick).astype(np.int64)
    if (estimate != runtime).any():
        columns["estimate"] = narrowed(estimate)
    return columns


def _predicted(prediction: IntArray, clock: _Clock) -> npt.NDArray[Any]:
    """What was believed when each job came, ticks, in parts where they are coarser; -1 of jobs not taken in."""
    taken = np.where(prediction < NEVER, prediction, -clock.tick)
    return taken // clock.tick if not (taken % clock.tick).any() else taken / clock.tick


def _ids(workload: Workload) -> dict[str, Any]:
    """What jobs are called beside their numbers: array or group of parts, task, part; nothing where there are none."""
    ids = JobIds.of(workload)
    columns = {"whole": ids.group, "task": ids.task, "part": ids.part}  # a group is one of users, in a log
    return {name: narrowed(column.astype(np.int64)) for name, column in columns.items() if column is not None}


_PLACES = ("account", "partition", "qos")
"""What else than its user is told of a job, where the workload has names."""

_COLOURS = {"account": "account", "partition": "partition", "qos": "QOS", "group": "group", "queue": "queue"}
"""Labels that jobs are coloured by, beside their users."""


def _several(workload: Workload, label: str) -> bool:
    """Whether jobs differ in a label, and it is no other one by another name."""
    column = workload.labels.get(label)
    same = {"group": "account", "queue": "qos"}.get(label)
    if column is None or (same in workload.labels and np.array_equal(column, workload.labels[str(same)])):
        return False
    return len(np.unique(column[column != UNKNOWN])) > 1


def _told(workload: Workload, label: str) -> dict[str, Any]:
    """What a label is called, and names of its numbers where there are any."""
    return {"title": _COLOURS[label], "names": _names(workload, label)}


def _bands(bands: Bands) -> list[dict[str, Any]]:
    return [{"name": name, "cores": cores} for name, cores in zip(bands.names, bands.cores, strict=True) if cores]


def _dates(workload: Workload, origin: int, parts: Sequence[Record]) -> dict[str, Any]:
    """What the page counts dates with, where the log has any."""
    last = max(int(part.end_us[part.ran].max(initial=origin)) for part in parts)
    found = embedded(calendar_of(workload.provenance), seconds(origin), seconds(last))
    return {} if found is None else {"dates": found}


def _names(workload: Workload, label: str) -> dict[str, str]:
    """Names of the users (accounts and so on) that have jobs, by number, where the workload has names."""
    names = workload.names.get(label, ())
    known = np.unique(workload.labels[label]).tolist() if names and label in workload.labels else []
    return {str(value): names[value] for value in known if UNKNOWN < value < len(names) and names[value]}


def _explaining(record: Record, shown: slice, clock: _Clock, platform: Platform | None) -> dict[str, Any]:
    """What it takes to explain waits beside what is drawn.

    ``complete`` is from when to when (ticks, None for no limit) no job outside the chart held cores or waited, and
    ``unran`` the status of each shown job that did not run.
    """
    ends, starts, ran = record.end_us[: shown.start], record.start_us[shown.stop :], record.ran
    before, after = ran[: shown.start], ran[shown.stop :]
    ended = int(clock.ticks(ends[before].max())) + 1 if before.any() else None
    began = int(clock.ticks(starts[after].min())) if after.any() else None
    packed: dict[str, Any] = {"complete": [ended, began]}
    part = record.select(shown)
    if (lacked := lacking(record)) is not None:
        words, word = np.unique(lacked[shown], return_inverse=True)
        packed |= {"lacks": words.tolist(), "lacked": narrowed(word.reshape(-1).astype(np.int64))}
    if part.predictions is not None:
        packed["predicted"] = narrowed(_predicted(part.predictions.prediction_us, clock))
    if not part.ran.all():
        packed["unran"] = narrowed(part.status[~part.ran].astype(np.int64))
    parts = parts_of(part, platform)
    if parts is None:
        return packed | {"pooled": JobSchedule.of(part).pooled}
    packed |= {"pool": narrowed(parts.pool), "parts": [list(each) for each in parts.clusters]}
    if parts.reach is not None and parts.free is not None:
        words, word = np.unique(parts.word, return_inverse=True)
        packed |= {"reach": narrowed(parts.reach), "free": narrowed(parts.free), "words": words.tolist()}
        packed |= {"told": narrowed(np.diff(parts.job, prepend=0)), "word": narrowed(word.astype(np.int64))}
        packed |= {"spans": narrowed(parts.held)}
        packed["refused"] = [[row, why._asdict()] for row, why in sorted(parts.refused.items())]
    return packed


def placement(record: Record, bands: Bands | None = None) -> CoreAssignment:
    """Cores that each job of a record is drawn on, within its band where there are any."""
    workload = record.workload
    if bands is not None:
        times = (record.start_us, record.end_us, record.given)
        return placed(*times, bands.of, bands.cores, job=workload.job)
    return assign_cores(record.start_us, record.end_us, record.given, record.cores, job=workload.job)


class _Clock(NamedTuple):
    """Ticks of *tick* microseconds from *origin*."""

    origin: int
    tick: int

    @classmethod
    def of(cls, origin: int, records: list[Record]) -> _Clock:
        """Whole seconds where they say it all or the log is long, else the finest power of ten that fits 31 bits."""
        last = max((int(record.end_us[record.ran].max(initial=origin)) for record in records), default=origin)
        tick = MICROSECOND
        sparse = all(
            not (column[column < NEVER] % MICROSECOND).any()
            for record in records
            for column in (record.workload.submit, record.start_us, record.end_us)
        )
        while not sparse and tick > 1 and (last - origin) // tick < 10_000_000:
            tick //= 10
        while (last - origin) // tick > TICKS:
            tick *= 10
        return cls(origin, tick)

    def ticks(self, instants: IntArray) -> IntArray:
        """Instants as ticks, rounded down: what did not overlap still does not."""
        return (instants - self.origin) // self.tick

    def held(self, record: Record) -> IntArray:
        """Ticks for which each job held its cores; -1 for jobs that did not run."""
        return np.where(record.ran, self.ticks(record.end_us) - self.ticks(record.start_us), -1)


def _pieces(placed: CoreAssignment, shown: slice, *, sizes: bool = False) -> dict[str, Any]:
    """Rows that jobs are drawn on; *sizes* of all pieces, else of jobs in several: one has the cores of its job."""
    count = np.diff(placed.offset)[shown]
    pieces = slice(int(placed.offset[shown.start]), int(placed.offset[shown.stop]))
    told = np.repeat(count, count) > (0 if sizes else 1)
    return {
        "pieces": narrowed(count),
        "low": narrowed(placed.low[pieces]),
        "size": narrowed(placed.size[pieces][told]),
    }


def _axis(axis: Axis, shown: slice) -> dict[str, Any]:
    """A resource by node: where its bands begin, and what jobs held of it under each policy."""
    edges = np.r_[0, np.cumsum(axis.rows)]
    bands, first = [], 0
    for name, nodes in axis.bands:
        rows = int(edges[first + nodes] - edges[first])
        bands.append({"name": name, "cores": rows, "amount": rows * axis.unit})
        first += nodes
    return {
        "title": {GPU: "GPUs", "memory": "memory, GiB"}.get(axis.resource, axis.resource),
        "scale": {GPU: WHOLE_GPU, "memory": 1024}.get(axis.resource, 1),
        "bands": bands,
        "node": narrowed(axis.node),
        "rows": narrowed(axis.rows),
        "held": [
            _pieces(held.placement, shown, sizes=True) | {"amount": narrowed(held.amount[shown])}
            for held in axis.held.values()
        ],
    }


def _node_names(record: Record) -> list[str]:
    assert record.capacity is not None
    return list(record.capacity.nodes)


def _policy(
    label: str, record: Record, shown: slice, clock: _Clock, submit: IntArray, runtime: IntArray
) -> dict[str, Any]:
    """Waits of the shown jobs (-1: did not run), and how long each ran where that is not common."""
    part = record.select(shown)
    own = clock.ticks(part.workload.submit)
    packed = {
        "label": label,
        "wait": narrowed(np.where(part.ran, clock.ticks(part.start_us) - own, -1)),
    }
    if (own != submit).any():  # where users reacted
        packed["later"] = narrowed(own - submit)
    if (part.given != part.workload.cores).any():
        packed["cores"] = narrowed(part.given)
    if part.beyond is not None and part.beyond.pieces.any():
        packed |= {"chain": narrowed(part.beyond.pieces + 1), "earlier": narrowed(part.beyond.held_us // clock.tick)}
    if (runs := cut_runs_of(part)) is not None:
        row, began, ended = runs[0], *map(clock.ticks, runs[1:])
        packed |= {
            "cut": narrowed(np.diff(row, prepend=0)),
            "began": narrowed(began),
            "lasted": narrowed(ended - began),
        }
    held = clock.held(part)
    if (held != runtime).any():
        packed["runtime"] = narrowed(held)
    return packed


# ---- DAG jobs -----------------------------------------------------------------------------------------------------


def task_window(records: Mapping[str, Record], most: int = MOST_JOBS) -> Window:
    """Consecutive jobs whose tasks fit on the page, as rows of jobs; always at least one job.

    All of them, else the stretch with the longest responses under any policy.
    """
    record = next(iter(records.values()))
    tasks = _tasks(record)
    weight = tasks.first + tasks.edge_first[tasks.first] // _EDGES_A_TASK  # edges are four bytes, tasks many
    if weight[-1] <= most:
        return Window(slice(0, len(record)), None)
    total = np.zeros(len(record) + 1)
    for each in records.values():
        total[1:] += np.nan_to_num(each.response)
    total = np.cumsum(total)
    last = np.searchsorted(weight, weight[:-1] + most, side="right") - 1
    last = np.maximum(last, np.arange(len(record)) + 1)
    begin = int(np.argmax(total[last] - total[:-1]))
    rows = slice(begin, int(last[begin]))
    count = int(tasks.first[rows.stop] - tasks.first[rows.start])
    note = _text("dags_shown", shown=rows.stop - rows.start, jobs=len(record), tasks=count)
    return Window(rows, note)


_EDGES_A_TASK = 4


def task_placement(record: Record, platform: Platform) -> CoreAssignment:
    """Cores that each task of a record is drawn on; clusters one after the other in tree order."""
    tasks, times = _tasks(record), record.tasks
    assert times is not None
    clusters = [cluster.cores for cluster in platform.clusters()]
    where = times.cluster if len(clusters) > 1 else np.zeros(len(tasks), dtype=np.int16)
    job = record.workload.job[tasks.job_rows()]
    return placed(times.start_us, times.end_us, record.given, where.astype(np.int64), clusters, job=job)


def critical_tasks(record: Record, platform: Platform, tick: int = MICROSECOND) -> npt.NDArray[np.bool_]:
    """Which tasks are on the critical path of their job; see the head of this module for which chain that is."""
    tasks = _tasks(record)
    chosen = np.zeros(len(tasks), dtype=np.bool_)
    delays = unavoidable_delays(tasks, platform, tick)
    rank = tasks.chains(tasks.estimate, delays)
    after, first, target = rank - tasks.estimate, tasks.edge_first.tolist(), tasks.edge_to
    attains = delays + rank[target] == np.repeat(after, np.diff(tasks.edge_first))
    for job in range(tasks.jobs):
        begin, end = int(tasks.first[job]), int(tasks.first[job + 1])
        row = begin + int(np.argmax(rank[begin:end]))
        chosen[row] = True
        while first[row] < first[row + 1]:
            row = int(target[first[row] + int(np.argmax(attains[first[row] : first[row + 1]]))])
            chosen[row] = True
    return chosen


def _tasks(record: Record) -> Tasks:
    tasks = record.workload.tasks
    if tasks is None:
        raise InputError("the jobs of this record have no tasks", field="tasks")
    return tasks


def _by_task(record: Record) -> Record:
    """The record with every task as a rigid job that is submitted with its job: what the packing of logs takes."""
    tasks, times, workload = _tasks(record), record.tasks, record.workload
    assert times is not None
    job = tasks.job_rows()
    rigid = Workload(
        job=workload.job[job],
        submit=workload.submit[job],
        runtime=tasks.runtime,
        estimate=tasks.estimate,
        cores=tasks.cores,
        deadline=workload.deadline[job],
        labels={name: workload.labels[name][job] for name in ("user",) if name in workload.labels},
    )
    return Record(
        rigid, times.start_us, times.end_us, times.status, times.cluster, record.cores, cores_used=times.cores_used
    )


def _pack_tasks(
    records: Mapping[str, Record], first: str | None, most: int, platform: Platform, tick: int
) -> dict[str, Any]:
    """The same of DAG jobs: a row a task, beside what a log has."""
    jobs, note = task_window(records, most)
    record = next(iter(records.values()))
    tasks = _tasks(record)
    shown = slice(int(tasks.first[jobs.start]), int(tasks.first[jobs.stop]))
    rigid = {label: _by_task(each) for label, each in records.items()}
    common = rigid[next(iter(rigid))].select(shown)
    origin = int(common.workload.submit[0])
    clock = _Clock.of(origin, [each.select(shown) for each in rigid.values()])
    submit, held = clock.ticks(common.workload.submit), clock.held(common)
    edges = slice(int(tasks.edge_first[shown.start]), int(tasks.edge_first[shown.stop]))
    columns = {
        "job": narrowed(np.diff(common.workload.job, prepend=0)),
        "submit": narrowed(np.diff(submit, prepend=0)),
        "runtime": narrowed(held),
        "cores": narrowed(common.workload.cores),
        "tasks": narrowed(np.diff(tasks.first)[jobs]),
        "successors": narrowed(np.diff(tasks.edge_first)[shown]),
        "successor": narrowed(tasks.edge_to[edges] - shown.start),
        "critical": narrowed(critical_tasks(record.select(jobs), platform, tick).astype(np.int64)),
        "path": narrowed(_path_ticks(record, clock)[jobs]),
    }
    if "user" in common.workload.labels:
        columns["user"] = narrowed(common.workload.labels["user"])
    several = len(list(platform.clusters())) > 1
    network = platform.network
    if several and not network.free:
        columns["volume"] = narrowed(_volumes(tasks, platform, tick)[edges])
    policies = []
    for label, each in records.items():
        packed = _policy(label, rigid[label], shown, clock, submit, held)
        packed |= _pieces(task_placement(each, platform), shown)
        times = each.tasks
        assert times is not None
        packed["queued"] = narrowed(
            np.where(times.start_us < NEVER, clock.ticks(times.start_us) - clock.ticks(times.ready_us), -1)[shown]
        )
        if several:
            packed["cluster"] = narrowed(times.cluster[shown])
        policies.append(packed)
    between = platform.levels()
    clusters = list(platform.clusters())
    return {
        "deflated": encoded(columns, *policies),
        "jobs": shown.stop - shown.start,
        "cores": record.cores,
        "tick": clock.tick / MICROSECOND,
        "origin": seconds(origin),
        "since": seconds(origin - int(record.workload.submit[0])),
        "shown": 0 if first is None else list(records).index(first),
        "note": note,
        "sizes": _size_classes(record.cores),
        **_dates(record.workload, origin, [each.select(shown) for each in rigid.values()]),
        "clusters": [{"name": cluster.name, "cores": cluster.cores} for cluster in clusters],
        "levels": [[between[one.name, other.name] for other in clusters] for one in clusters],
        "power": network.delay_levels_power or 0,
        "delay_tick": tick / clock.tick,
        "contended": network.kind != "ccr",
        "names": None if tasks.names is None else list(tasks.names[shown]),
        "columns": columns,
        "policies": policies,
    }


def _path_ticks(record: Record, clock: _Clock) -> IntArray:
    """Critical path of each job, ticks of the chart, rounded up."""
    path = record.workload.runtime if record.critical_path is None else record.critical_path
    return -(-path // clock.tick)


def _volumes(tasks: Tasks, platform: Platform, tick: int) -> FloatArray:
    """Data along each edge, in *tick* of one idle link."""
    network = platform.network
    if network.transfer == "files":
        sent = np.zeros(len(tasks.edge_to)) if tasks.volume is None else tasks.volume
        return np.asarray(sent / network.bandwidth * (MICROSECOND / tick))
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    return np.asarray(float(network.volume(1_000_000, None, 1)) / 1_000_000 * tasks.runtime[source] / tick)


def _size_classes(cores: int) -> list[int]:
    """Upper bounds of the size classes that colour the chart, the last one the whole machine."""
    bounds = [1, 8, 64, 256] if cores <= 4096 else [16, 128, 1024, 8192]
    return [*(bound for bound in bounds if bound < cores), cores]
