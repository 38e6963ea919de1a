"""Gantt charts of small schedules with task names: Figures 3, 4 and 5 of Burkimsher, Bate and Indrusiak.

The chart for thousands of jobs is `gridsim.report.gantt`, which the report page uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gridsim import InputError, Record
from gridsim.metrics.schedule import Schedule
from gridsim.model.time import IntArray
from gridsim.report.core_assignment import assign_cores
from gridsim.report.figures import INK, PALETTE, RC, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "PRINTED_SCHEDULES", "Example", "chart", "charts"]

MOST_TASKS = 400
"""Maximum number of tasks in a chart with names."""


class Example(NamedTuple):
    """A schedule with a title, and a name for each of its tasks."""

    title: str
    schedule: Schedule
    tasks: tuple[str, ...]


def chart(
    what: Schedule | Record, *, title: str = "", tasks: Sequence[str] = (), clusters: Sequence[int] = ()
) -> Figure:
    """Draw a Gantt chart of one schedule: a row per core, a colour per job, a name in each task.

    Parameters
    ----------
    what : Schedule or Record
        A record is converted with a tick of one second.
    tasks : sequence of str
        Names of the tasks in their order; by default the job and task numbers.
    clusters : sequence of int
        Cores of each cluster of a record with several; tasks stay on the cores of their cluster.

    Raises
    ------
    InputError
        For more tasks than the chart can name, or clusters that do not match the record.
    """
    schedule, where = _with_clusters(what, clusters)
    example = Example(title, schedule, tuple(tasks) or _numbered(schedule))
    with drawing(height=_height(schedule)) as (figure, axes):
        _draw(axes, example, where, list(clusters) or [schedule.cores])
        _clock(axes, schedule.makespan)
        return figure


def charts(examples: Sequence[Example]) -> Figure:
    """Draw several schedules of one workload above one another, with a common time axis."""
    import matplotlib  # the import takes half a second, so it happens only when a figure is drawn
    from matplotlib.figure import Figure

    heights = [_height(example.schedule) for example in examples]
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(5.4, sum(heights)), layout="constrained")
        rows = figure.subplots(len(examples), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, example in zip(rows, examples, strict=True):
            _draw(axes, example, np.zeros(len(example.tasks), dtype=np.int64), [example.schedule.cores])
        _clock(rows[-1], max(example.schedule.makespan for example in examples))
        return figure


def _height(schedule: Schedule) -> float:
    return 0.75 + min(0.28 * schedule.cores, 5.0)


def _numbered(schedule: Schedule) -> tuple[str, ...]:
    """Job and task numbers from 1: 2.3 is the third task of the second job; jobs with one task have one number."""
    counts = np.bincount(schedule.task_job, minlength=len(schedule))
    seen = np.zeros(len(schedule), dtype=np.int64)
    names = []
    for job in schedule.task_job.tolist():
        seen[job] += 1
        names.append(f"{job + 1}.{seen[job]}" if counts[job] > 1 else f"{job + 1}")
    return tuple(names)


def _with_clusters(what: Schedule | Record, clusters: Sequence[int]) -> tuple[Schedule, IntArray]:
    """The schedule, and the cluster of each of its tasks; without *clusters*, all tasks are on one cluster."""
    schedule = what if isinstance(what, Schedule) else Schedule.from_record(what)
    where = np.zeros(len(schedule.task_job), dtype=np.int64)
    if clusters and isinstance(what, Record):
        tasks, workload = what.tasks, what.workload
        ran = what.ran if workload.tasks is None else what.ran[workload.tasks.job_rows()]
        where = (what.cluster if tasks is None else tasks.cluster)[ran].astype(np.int64)
    if len(where) > MOST_TASKS:
        raise InputError(f"{len(where)} tasks; a chart with names has room for {MOST_TASKS}", field="tasks")
    if len(clusters) and (int(where.max(initial=0)) >= len(clusters) or sum(clusters) != schedule.cores):
        raise InputError(f"{list(clusters)} are not the {schedule.cores} cores of the schedule", field="clusters")
    return schedule, where


def _draw(axes: Axes, example: Example, where: IntArray, clusters: Sequence[int]) -> None:
    schedule = example.schedule
    if len(example.tasks) != len(schedule.task_job):
        raise InputError(f"{len(example.tasks)} names for {len(schedule.task_job)} tasks", field="tasks")
    for cluster, (above, cores) in enumerate(zip(np.cumsum([0, *clusters]).tolist(), clusters, strict=False)):
        rows = np.flatnonzero(where == cluster)
        begin, end, width = (
            column[rows] for column in (schedule.task_start, schedule.task_finish, schedule.task_cores)
        )
        placed = assign_cores(begin, end, width, cores)
        for place_of, row in enumerate(rows.tolist()):
            pieces = slice(int(placed.offset[place_of]), int(placed.offset[place_of + 1]))
            spans = zip(placed.low[pieces].tolist(), placed.size[pieces].tolist(), strict=True)
            for low, size in spans:
                _task(axes, example, row, above + low, size)
    _axes(axes, example, clusters)


def _task(axes: Axes, example: Example, row: int, low: int, size: int) -> None:
    """Draw one task, or the part of it on neighbouring cores."""
    schedule = example.schedule
    begin, end = int(schedule.task_start[row]), int(schedule.task_finish[row])
    colour = PALETTE[int(schedule.task_job[row]) % len(PALETTE)]
    axes.broken_barh([(begin, end - begin)], (low + 0.06, size - 0.12), facecolor=colour, alpha=0.75, edgecolor="white")
    axes.text((begin + end) / 2, low + size / 2, example.tasks[row], ha="center", va="center", fontsize=8.5)


def _axes(axes: Axes, example: Example, clusters: Sequence[int]) -> None:
    schedule = example.schedule
    axes.set_title(example.title, loc="left", fontsize=10)
    axes.set_ylim(schedule.cores, 0)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    step = max(1, schedule.cores // 8)
    axes.set_yticks(
        [core + 0.5 for core in range(0, schedule.cores, step)],
        [f"{core + 1}" for core in range(0, schedule.cores, step)],
    )
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("core")
    for edge in np.cumsum(clusters)[:-1].tolist():
        axes.axhline(edge, color=INK, linewidth=0.8)


def _clock(axes: Axes, makespan: int) -> None:
    axes.set_xlim(0, makespan)
    axes.set_xlabel("time, ticks")


def _printed(title: str, rows: Sequence[tuple[int, int, int]], critical_paths: Sequence[int], cores: int) -> Example:
    """A schedule of the paper from rows of (job, start, execution time), one core each, all arriving at 0."""
    schedule = Schedule.from_tasks(
        arrival=[0] * len(critical_paths),
        critical_path=critical_paths,
        task_job=[job - 1 for job, _, _ in rows],
        task_start=[start for _, start, _ in rows],
        task_finish=[start + time for _, start, time in rows],
        cores=cores,
    )
    return Example(title, schedule, _numbered(schedule))


def _graham() -> tuple[Example, Example]:
    """Figure 3; chart A is absent from the text of the paper, but its numbers imply this one, up to jobs 2 and 3."""
    a = [(1, 0, 3), (1, 5, 9), (2, 0, 2), (3, 3, 2), (4, 0, 2), (4, 2, 4), (4, 2, 4), (4, 6, 4), (4, 6, 4)]
    b = [(1, 0, 3), (1, 3, 9), (2, 0, 2), (3, 0, 2), (4, 2, 2), (4, 4, 4), (4, 4, 4), (4, 8, 4), (4, 8, 4)]
    paths = (12, 2, 2, 6)
    return _printed("Schedule A", a, paths, 3), _printed("Schedule B", b, paths, 3)


def _alternating() -> tuple[Example, Example]:
    """Figure 4: the tasks of two jobs in alternation, and one job after the other."""
    a = [(1, 0, 1), (1, 2, 1), (1, 4, 1), (2, 1, 1), (2, 3, 1), (2, 5, 1)]
    b = [(1, 0, 1), (1, 1, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1), (2, 5, 1)]
    return _printed("Schedule A", a, (2, 3), 1), _printed("Schedule B", b, (2, 3), 1)


def _parallel() -> tuple[Example]:
    """Figure 5: a job that could use several processors and a chain, with one processor each."""
    rows = [(job, start, 1) for job in (1, 2) for start in range(5)]
    return (_printed("Job 1: a fork into three and a join; job 2: a chain", rows, (3, 5), 2),)


PRINTED_SCHEDULES: Mapping[str, tuple[Example, ...]] = {
    "figure-3": _graham(),
    "figure-4": _alternating(),
    "figure-5": _parallel(),
}
"""Schedules of the paper's worked examples; a task is job and number within it."""

FIGURES: Mapping[str, Callable[[], Figure]] = {
    name: partial(charts, examples) for name, examples in PRINTED_SCHEDULES.items()
}
"""Figures of the paper by name."""
