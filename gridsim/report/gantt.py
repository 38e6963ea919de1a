"""Packing of schedules for the page's Gantt chart: typed arrays as text, with common columns for all policies.

The chart is drawn by `templates/gantt.js`. Times are whole ticks from the first submission. For each policy there are
only its waits and the cores assigned by `gridsim.report.core_assignment`; for moldable jobs also their number.

On machines of nodes there is a chart by node (`by_node`) for each resource.

For DAG jobs each task is a row. Clusters are drawn one below the other, and edges, critical paths and network data are
included. The critical path of a job is the chain that determines the rank of the job. It begins at the task of the
largest upward rank (by estimates, unavoidable delays included) and follows the successor whose delay and rank equal
the remainder (the first of equal ones) to a task without successors. It depends only on the job and is the same under
all policies.
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
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.number_formatting import between, duration
from gridsim.policy.dag_ordering import unavoidable_delays
from gridsim.questions.partition_view import parts_of
from gridsim.questions.schedules import JobSchedule, cut_runs_of
from gridsim.record import Record, Status
from gridsim.report.calendar import embedded
from gridsim.report.core_assignment import CoreAssignment
from gridsim.report.curves import busy_share_by
from gridsim.report.gantt_rows import Axis, Bands, Held, absent_rows, by_node, by_partition, on_pool, placed
from gridsim.report.markup import texts

_text = texts("gantt")


TICKS = 2**31 - 1
"""Largest value of an integer column; larger numbers are floats."""

_PLAIN_BYTES = 200_000
"""Size up to which columns are embedded uncompressed; larger ones are deflated, and the browser inflates them.

Before compression, the bytes of a column are grouped by significance, lowest first. High bytes are similar, which
saves a fifth.
"""


def encoded(*groups: Mapping[str, Any]) -> bool:
    """Convert all columns to text; return whether it is deflated."""
    columns = [column for group in groups for column in _columns(group)]
    packed = sum(int(column["bytes"]) for column in columns) > _PLAIN_BYTES
    for column in columns:
        _encode(column, packed)
    return packed


def narrowed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Return the values in the narrowest type; conversion to text follows when the total size is known."""
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
"""Largest number of jobs on a page."""

MOST_ROWS = 450_000
"""Largest number of jobs times policies on a page."""


class Window(NamedTuple):
    """Rows of the workload in the chart, and a sentence if these are not all rows."""

    rows: slice
    note: str | None


def window(records: Mapping[str, Record], *, jobs: int = MOST_JOBS, rows: int = MOST_ROWS) -> Window:
    """Return consecutive jobs that fit on the page: all, else the period with the most waiting under any policy."""
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
    """Return two instants as dates, or as times after the first submission."""
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
    """Return the data embedded in the page; JSON types only.

    Parameters
    ----------
    records : mapping of str to Record
        Records by label, all of the same workload.
    first : str, optional
        The policy to show if there is space for one.
    jobs, rows : int
        Limits of `window`; for DAG jobs both count tasks.
    platform : Platform, optional
        Clusters, and for DAG jobs the delays between them; by default one cluster.
    platforms : mapping of str to Platform, optional
        Machines of policies with a different machine.
    tick : int
        Unit for rounding up delays, microseconds.
    """
    given, records = records, {label: each.in_stretches for label, each in records.items()}
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
    colours = {label: _titled(workload, label) for label in _COLOURS if _several(workload, label)}
    columns = _of_jobs(workload, submit, runtime, clock, {**places, **colours})
    bands = None if axes else by_partition(records, platform)
    policies = [
        _policy(label, each, shown, clock, submit, runtime)
        | ({} if axes else _held(on_pool(each, bands), shown, clock))
        | _explaining(each, shown, clock, (platforms or {}).get(label, platform))
        for label, each in records.items()
    ]
    nodes = [_axis(axis, shown, records, clock) for axis in axes]
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
        **({"earlier": True} if any("ofJob" in held for axis in nodes for held in axis["held"]) else {}),
        **({"suspended": True} if any(each is not given[label] for label, each in records.items()) else {}),
        **_dates(workload, origin, parts),
        **_opening(records[first or next(iter(records))], clock, workload),
        "statuses": [status.name for status in Status],
        "columns": columns,
        "policies": policies,
    }


def _opening(record: Record, clock: _Clock, workload: Workload) -> dict[str, list[int]]:
    """Return the day with the highest utilisation as ticks, among those in which shown jobs are submitted.

    Empty if the log is shorter than two days.
    """
    days = busy_share_by("day", {"": record})
    if not days or not len(workload):
        return {}
    edges = to_us(days[""].times_s)
    first, last = int(workload.submit.min()), int(workload.submit.max())
    shown = (edges[1:] > first) & (edges[:-1] <= last)
    used = days[""].values[:-1] * np.diff(edges)  # the first and the last day may be short
    day = int(np.argmax(np.where(shown, used, -1.0)))
    return {"opens": [max(0, int(tick)) for tick in clock.ticks(edges[day : day + 2])]}


def _of_jobs(
    workload: Workload, submit: IntArray, runtime: IntArray, clock: _Clock, labels: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return columns of properties of jobs, independent of the policy; times in ticks."""
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
    """Return the predicted run times at submission, ticks, with fractions if needed; -1 for jobs not admitted."""
    taken = np.where(prediction < NEVER, prediction, -clock.tick)
    return taken // clock.tick if not (taken % clock.tick).any() else taken / clock.tick


def _ids(workload: Workload) -> dict[str, Any]:
    """Return the ids of jobs: array or group of parts, task, part; empty if there are none."""
    ids = JobIds.of(workload)
    columns = {"whole": ids.group, "task": ids.task, "part": ids.part}  # "group" denotes a group of users in a log
    return {name: narrowed(column.astype(np.int64)) for name, column in columns.items() if column is not None}


_PLACES = ("account", "partition", "qos")
"""Labels of a job, other than its user, that are shown if the workload has names."""

_COLOURS = {"account": "account", "partition": "partition", "qos": "QOS", "group": "group", "queue": "queue"}
"""Labels that define colours of jobs, in addition to users."""


def _several(workload: Workload, label: str) -> bool:
    """Return whether jobs have different values of a label, which is not equivalent to another one."""
    column = workload.labels.get(label)
    same = {"group": "account", "queue": "qos"}.get(label)
    if column is None or (same in workload.labels and np.array_equal(column, workload.labels[str(same)])):
        return False
    return len(np.unique(column[column != UNKNOWN])) > 1


def _titled(workload: Workload, label: str) -> dict[str, Any]:
    """Return the name of a label, and names of its values, if there are any."""
    return {"title": _COLOURS[label], "names": _names(workload, label)}


def _bands(bands: Bands) -> list[dict[str, Any]]:
    return [{"name": name, "cores": cores} for name, cores in zip(bands.names, bands.cores, strict=True) if cores]


def _dates(workload: Workload, origin: int, parts: Sequence[Record]) -> dict[str, Any]:
    """Return the data for dates on the page, if the log has any."""
    last = max(int(part.end_us[part.ran].max(initial=origin)) for part in parts)
    found = embedded(calendar_of(workload.provenance), seconds(origin), seconds(last))
    return {} if found is None else {"dates": found}


def _names(workload: Workload, label: str) -> dict[str, str]:
    """Return the names of users (accounts and so on) with jobs, by number, if the workload has names."""
    names = workload.names.get(label, ())
    known = np.unique(workload.labels[label]).tolist() if names and label in workload.labels else []
    return {str(value): names[value] for value in known if UNKNOWN < value < len(names) and names[value]}


def _explaining(record: Record, shown: slice, clock: _Clock, platform: Platform | None) -> dict[str, Any]:
    """Return additional data for explanations of waits.

    ``complete`` is the interval (ticks, None for no limit) without running or waiting jobs outside the chart.
    ``unran`` is the status of each shown job that did not run.
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
    if parts.eligible is not None and parts.free is not None:
        words, word = np.unique(parts.word, return_inverse=True)
        packed |= {"eligible": narrowed(parts.eligible), "free": narrowed(parts.free), "words": words.tolist()}
        packed |= {"reported": narrowed(np.diff(parts.job, prepend=0)), "word": narrowed(word.astype(np.int64))}
        packed |= {"spans": narrowed(parts.held)}
        packed["refused"] = [[row, why._asdict()] for row, why in sorted(parts.refused.items())]
    return packed


def placement(record: Record, bands: Bands | None = None) -> CoreAssignment:
    """Return the cores that each job of a record is drawn on, within its band if there are bands."""
    return on_pool(record, bands).placement


class _Clock(NamedTuple):
    """Clock with ticks of *tick* microseconds from *origin*."""

    origin: int
    tick: int

    @classmethod
    def of(cls, origin: int, records: list[Record]) -> _Clock:
        """Return a clock in seconds if exact or the log is long, else in the finest power of ten for 31 bits."""
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
        """Return instants as ticks, rounded down, so that jobs that do not overlap remain so."""
        return (instants - self.origin) // self.tick

    def held(self, record: Record) -> IntArray:
        """Return the ticks for which each job held its cores; -1 for jobs that did not run."""
        return np.where(record.ran, self.ticks(record.end_us) - self.ticks(record.start_us), -1)


def _pieces(placed: CoreAssignment, shown: slice, *, sizes: bool = False) -> dict[str, Any]:
    """Return the rows that jobs are drawn on; *sizes* of all pieces, else only for jobs in several pieces."""
    count = np.diff(placed.offset)[shown]
    pieces = slice(int(placed.offset[shown.start]), int(placed.offset[shown.stop]))
    sized = np.repeat(count, count) > (0 if sizes else 1)
    return {
        "pieces": narrowed(count),
        "low": narrowed(placed.low[pieces]),
        "size": narrowed(placed.size[pieces][sized]),
    }


def _axis(axis: Axis, shown: slice, records: Mapping[str, Record], clock: _Clock) -> dict[str, Any]:
    """Return a resource by node: offsets of its bands, and under each policy the amounts held and the absences."""
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
            _held(held, shown, clock, sizes=True)
            | {"amount": narrowed(held.amount[shown])}
            | _absences(axis, records[label], clock)
            for label, held in axis.held.items()
        ],
    }


def _held(held: Held, shown: slice, clock: _Clock, *, sizes: bool = False) -> dict[str, Any]:
    """Return the rows of the shown jobs, and rows and times of their earlier runs and stretches if there are any."""
    packed, pieces = _pieces(held.placement, shown, sizes=sizes), held.earlier
    there = np.flatnonzero((pieces[0] >= shown.start) & (pieces[0] < shown.stop))
    if not len(there):
        return packed
    job, low, size, *times = (each[there] for each in pieces)
    columns = (job - shown.start, low, size, *map(clock.ticks, times))
    return packed | dict(zip(("ofJob", "at", "wide", "since", "until"), map(narrowed, columns), strict=True))


def _absences(axis: Axis, record: Record, clock: _Clock) -> dict[str, Any]:
    """Return the rows of absent nodes and GPUs, and reasons and ticks of the absences; empty if there are none."""
    low, size, kind, down, up = absent_rows(axis, record)
    if not len(low):
        return {}
    times = (np.clip(clock.ticks(each), 0, TICKS) for each in (down, up))
    return dict(zip(("away", "many", "kind", "down", "up"), map(narrowed, (low, size, kind, *times)), strict=True))


def _node_names(record: Record) -> list[str]:
    assert record.capacity is not None
    return list(record.capacity.nodes)


def _policy(
    label: str, record: Record, shown: slice, clock: _Clock, submit: IntArray, runtime: IntArray
) -> dict[str, Any]:
    """Return the waits of the shown jobs (-1: did not run), and run times if they depend on the policy."""
    part = record.select(shown)
    own = clock.ticks(part.workload.submit)
    packed: dict[str, Any] = {
        "label": label,
        "wait": narrowed(np.where(part.ran, clock.ticks(part.start_us) - own, -1)),
    }
    if (own != submit).any():  # users reacted
        packed["later"] = narrowed(own - submit)
    if (part.given != part.workload.cores).any():
        packed["cores"] = narrowed(part.given)
    if part.beyond is not None and part.beyond.pieces.any():
        packed |= {"chain": narrowed(part.beyond.pieces + 1), "earlier": narrowed(part.beyond.held_us // clock.tick)}
    if (runs := cut_runs_of(part)) is not None:
        row, began, ended = runs[0], *map(clock.ticks, runs[1:3])
        packed |= {
            "cut": narrowed(np.diff(row, prepend=0)),
            "began": narrowed(began),
            "lasted": narrowed(ended - began),
        }
        if runs[3].any():
            packed["stopped"] = narrowed(runs[3])
    held = clock.held(part)
    if (held != runtime).any():
        packed["runtime"] = narrowed(held)
    return packed


# ---- DAG jobs -----------------------------------------------------------------------------------------------------


def task_window(records: Mapping[str, Record], most: int = MOST_JOBS) -> Window:
    """Return consecutive jobs whose tasks fit on the page, as rows of jobs; always at least one job.

    These are all jobs, else the period with the longest responses under any policy.
    """
    record = next(iter(records.values()))
    tasks = _tasks(record)
    weight = tasks.first + tasks.edge_first[tasks.first] // _EDGES_A_TASK  # an edge takes four bytes, a task many
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
    """Return the cores that each task of a record is drawn on; clusters are adjacent in tree order."""
    tasks, times = _tasks(record), record.tasks
    assert times is not None
    clusters = [cluster.cores for cluster in platform.clusters()]
    where = times.cluster if len(clusters) > 1 else np.zeros(len(tasks), dtype=np.int16)
    job = record.workload.job[tasks.job_rows()]
    return placed(times.start_us, times.end_us, record.given, where.astype(np.int64), clusters, job=job)


def critical_tasks(record: Record, platform: Platform, tick: int = MICROSECOND) -> npt.NDArray[np.bool_]:
    """Return a mask of the tasks on the critical path of their job, as defined in the docstring of this module."""
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
    """Return the record with each task as a rigid job, submitted with its job, for the packing of logs."""
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
    """Return the data of DAG jobs: one row per task, with the additional columns of DAGs."""
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
        **_opening(records[first or next(iter(records))], clock, common.workload),
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
    """Return the critical path of each job, ticks of the chart, rounded up."""
    path = record.workload.runtime if record.critical_path is None else record.critical_path
    return -(-path // clock.tick)


def _volumes(tasks: Tasks, platform: Platform, tick: int) -> FloatArray:
    """Return the data volume of each edge, as time (in *tick*) on one idle link."""
    network = platform.network
    if network.transfer == "files":
        sent = np.zeros(len(tasks.edge_to)) if tasks.volume is None else tasks.volume
        return np.asarray(sent / network.bandwidth * (MICROSECOND / tick))
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    return np.asarray(float(network.volume(1_000_000, None, 1)) / 1_000_000 * tasks.runtime[source] / tick)


def _size_classes(cores: int) -> list[int]:
    """Return the upper bounds of the size classes that colour the chart, the last one the whole machine."""
    bounds = [1, 8, 64, 256] if cores <= 4096 else [16, 128, 1024, 8192]
    return [*(bound for bound in bounds if bound < cores), cores]
