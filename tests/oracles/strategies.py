"""Hypothesis strategies for small workloads full of ties and corner cases; requires hypothesis."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload

__all__ = ["grids", "workloads"]

Estimates = Literal["any", "over", "exact"]

_UNITS = (1.0, 1.0, 1.0, 0.25, 60.0)
"""Lengths of a time step, s; mostly whole seconds."""


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    cores: int = 8,
    largest: int = 12,
    estimates: Estimates = "any",
    deadlines: bool = False,
    users: bool = False,
) -> Workload:
    """Draw workloads for a machine of *cores* cores.

    Parameters
    ----------
    largest : int
        Largest number of jobs.
    estimates : {"any", "over", "exact"}
        Relation to the runtimes: any, never below, or equal.
    deadlines : bool
        Whether some jobs have deadlines, tight or loose.
    users : bool
        Whether jobs have users, some of them unknown.
    """
    steps = {"any": (0, 0, 0, 2, 7, -1, -4), "over": (0, 0, 1, 2, 7, 15), "exact": (0,)}[estimates]
    width = st.one_of(st.just(1), st.just(cores), st.integers(1, cores))
    job = st.tuples(
        st.sampled_from((0, 0, 0, 1, 2, 5, 11)),  # gap to the previous job
        st.integers(1, 12),
        st.sampled_from(steps),
        width,
        st.one_of(st.none(), st.integers(0, 30)),
    )
    rows = draw(st.lists(job, min_size=1, max_size=largest))
    unit = draw(st.sampled_from(_UNITS))
    submit, now = [], 0
    for gap, *_ in rows:
        now += gap
        submit.append(now * unit)
    runtime = [length * unit for _, length, *_ in rows]
    estimate = [max(1, length + step) * unit for _, length, step, *_ in rows]
    slack = [row[4] if deadlines else None for row in rows]
    of = draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows))) if users else None
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=[row[3] for row in rows],
        deadline=[
            float("inf") if extra is None else begin + length + extra * unit
            for begin, length, extra in zip(submit, estimate, slack, strict=True)
        ],
        labels=None if of is None else {"user": of},
    )


_SHARES = ("/a/one", "/a/two", "/b")


@st.composite
def grids(
    draw: st.DrawFn,
    *,
    largest: int = 6,
    most_tasks: int = 5,
    ccr: tuple[str, ...] = ("0", "1/5", "1/2", "3"),
    networks: tuple[Literal["ccr", "shared", "fifo"], ...] = ("ccr",),
) -> tuple[Workload, Platform]:
    """Draw DAG jobs and a grid that can run all of them: whole seconds, two kinds, trees of one or two levels.

    Parameters
    ----------
    largest, most_tasks : int
        Largest number of jobs, and of tasks of a job.
    ccr : tuple of str
        Ratios of communication to computation to choose from.
    networks : tuple of str
        Kinds of network to choose from.
    """
    drawn = draw(
        st.lists(st.tuples(st.sampled_from(("Kind1", "Kind1", "Kind2")), st.integers(1, 6)), min_size=1, max_size=4)
    )
    clusters = [ClusterSpec(f"c{number}", cores, kind) for number, (kind, cores) in enumerate(drawn)]
    half = draw(st.integers(0, len(clusters) - 1))
    below: list[RouterSpec | ClusterSpec] = list(clusters[:half])
    root = RouterSpec(
        "root", (*below, RouterSpec("site", tuple(clusters[half:]))) if draw(st.booleans()) else tuple(clusters)
    )
    network = Network(
        kind=draw(st.sampled_from(networks)),
        ccr=draw(st.sampled_from(ccr)),
        delay_levels_power=draw(st.sampled_from((None, None, 1))) if networks == ("ccr",) else None,
        transfer_start=draw(st.sampled_from(("each", "each", "all"))),
    )
    widest = {kind: max(cores for other, cores in drawn if other == kind) for kind, _ in drawn}
    kinds = tuple(widest)
    counts, submit, rows, edges, now = (
        list[int](),
        list[int](),
        list[tuple[int, int, int]](),
        list[tuple[int, int]](),
        0,
    )
    for _ in range(draw(st.integers(1, largest))):
        now += draw(st.sampled_from((0, 0, 1, 3, 9)))
        submit.append(now)
        counts.append(draw(st.integers(1, most_tasks)))
        first = len(rows)
        for index in range(counts[-1]):
            kind = draw(st.integers(0, len(kinds) - 1))
            cores = draw(st.integers(1, widest[kinds[kind]]))
            rows.append((draw(st.integers(1, 9)), cores, kind))
            edges += [(first + before, first + index) for before in range(index) if draw(st.booleans())]
    tasks = Tasks.from_edges(
        counts=counts,
        runtime=[row[0] for row in rows],
        cores=[row[1] for row in rows],
        kind=[row[2] for row in rows],
        kinds=kinds,
        edges=edges,
    )
    shares = draw(st.lists(st.integers(0, len(_SHARES) - 1), min_size=len(counts), max_size=len(counts)))
    workload = Workload.from_tasks(tasks, submit=submit, labels={"share": shares}, names={"share": _SHARES})
    return workload, Platform(root, network=network)
