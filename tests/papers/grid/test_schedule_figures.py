"""Gantt charts of small schedules: every task is drawn once, with its name, on free cores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gridsim.errors import InputError
from gridsim.metrics.schedule import Schedule
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.simulation import run
from gridsim_papers.grid.schedule_figures import FIGURES, MOST_TASKS, PRINTED_SCHEDULES, chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TWO = Schedule.from_tasks(
    arrival=[0, 0],
    critical_path=[3, 2],
    task_job=[0, 0, 1],
    task_start=[0, 2, 0],
    task_finish=[2, 3, 2],
    task_cores=[1, 2, 2],
    cores=3,
)


def boxes(axes: Axes) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every piece drawn."""
    found = []
    for collection in axes.collections:
        for path in collection.get_paths():
            box = path.get_extents()
            found.append((box.x0, box.y0, box.width, box.height))
    return found


def names(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def overlapping(pieces: Sequence[tuple[float, float, float, float]]) -> list[Any]:
    return [
        (one, other)
        for one, other in itertools.combinations(pieces, 2)
        if one[0] < other[0] + other[2] - 1e-9
        and other[0] < one[0] + one[2] - 1e-9
        and one[1] < other[1] + other[3] - 1e-9
        and other[1] < one[1] + one[3] - 1e-9
    ]


def test_a_task_is_as_long_as_its_time_and_as_high_as_its_cores() -> None:
    (axes,) = chart(TWO, title="two jobs").axes
    assert sorted((x, width, round(height + 0.12, 9)) for x, _, width, height in boxes(axes)) == [
        (0, 2, 1),
        (0, 2, 2),
        (2, 1, 2),
    ]
    assert names(axes) == ["1.1", "1.2", "2"]
    assert axes.get_title(loc="left") == "two jobs"
    assert axes.get_xlim() == (0, 3)


def test_tasks_can_be_named() -> None:
    (axes,) = chart(TWO, tasks=["T1", "T2", "T3"]).axes
    assert names(axes) == ["T1", "T2", "T3"]


@pytest.mark.parametrize("figure", FIGURES)
def test_the_figures_of_the_paper_draw_every_task_once_and_none_over_another(figure: str) -> None:
    drawn = FIGURES[figure]().axes
    longest = max(example.schedule.makespan for example in PRINTED_SCHEDULES[figure])
    for axes, example in zip(drawn, PRINTED_SCHEDULES[figure], strict=True):
        pieces = boxes(axes)
        assert len(pieces) == len(example.tasks)
        assert sorted(names(axes)) == sorted(example.tasks)
        assert overlapping(pieces) == []
        assert axes.get_xlim() == (0, longest)


def test_the_makespans_are_the_printed_ones() -> None:
    makespans = {name: [one.schedule.makespan for one in examples] for name, examples in PRINTED_SCHEDULES.items()}
    assert makespans == {"figure-3": [14, 12], "figure-4": [6, 6], "figure-5": [5]}


def test_tasks_of_a_record_stay_on_the_cores_of_their_cluster() -> None:
    tasks = Tasks.from_edges(
        counts=[2, 1], runtime=[5, 5, 5], cores=[2, 2, 2], kind=[0, 1, 0], kinds=["a", "b"], edges=[(0, 1)]
    )
    platform = Platform(RouterSpec("root", (ClusterSpec("one", 2, "a"), ClusterSpec("two", 2, "b"))))
    record = run(Workload.from_tasks(tasks, submit=[0, 1]), platform, "fifo-job")
    (axes,) = chart(record, clusters=[2, 2]).axes
    tops = dict(zip(names(axes), [round(y - 0.06, 9) for _, y, _, _ in boxes(axes)], strict=True))
    assert tops == {"1.1": 0, "2": 0, "1.2": 2}


def test_figures_that_cannot_be_drawn_are_reported() -> None:
    with pytest.raises(InputError, match="2 names for 3 tasks"):
        chart(TWO, tasks=["T1", "T2"])
    many = MOST_TASKS + 1
    jobs = Schedule.from_tasks(
        arrival=[0] * many,
        critical_path=[1] * many,
        task_job=range(many),
        task_start=range(many),
        task_finish=range(1, many + 1),
        cores=1,
    )
    with pytest.raises(InputError, match=f"{many} tasks"):
        chart(jobs)
    with pytest.raises(InputError, match="3 cores"):
        chart(TWO, clusters=[2, 2])
