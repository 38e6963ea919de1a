"""Starvation under sustained overload: the starvation study at a small scale (claims G-80 to G-84, and G-B3).

A task starves when its wait grows with the length of the stream that overtakes it. Streams are short jobs at a stated
load on a small machine; one victim arrives among the first of them. Loads above 1 last for the whole stream.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from gridsim.model.platform import Platform
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.simulation import Run, run


def stream(
    jobs: int, load: str, *, runtime: int, victim: int, cores: int = 1, wide: int = 1, narrow: int = 1, at: int = 0
) -> Workload:
    """Short jobs of *narrow* cores at a load of *cores*, and one job of *victim* seconds and *wide* cores at *at*."""
    gap = Fraction(runtime * narrow, cores) / Fraction(load)
    submit = [int(number * gap) for number in range(jobs)]
    rows = sorted([(when, runtime, narrow, 0) for when in submit] + [(at, victim, wide, 1)], key=lambda row: row[0])
    tasks = Tasks.from_edges(
        counts=[1] * len(rows), runtime=[row[1] for row in rows], cores=[row[2] for row in rows], edges=[]
    )
    share = [row[3] for row in rows]
    return Workload.from_tasks(
        tasks, submit=[row[0] for row in rows], labels={"share": share}, names={"share": ("/many", "/one")}
    )


def wait_of_victim(
    workload: Workload, policy: str, cores: int = 1, tree: ShareTree | None = None, seed: int = 1
) -> float:
    record = run(workload, replace(Platform.single(cores), shares=tree), policy, Run(seed=seed))
    return float(record.wait[workload.labels["share"] == 1][-1])


def waits(policy: str, load: str, lengths: tuple[int, ...] = (200, 400, 800), **shape: int) -> list[float]:
    """Waits of the victim for streams of several lengths."""
    shape = {"runtime": 10, "victim": 100, **shape}
    return [wait_of_victim(stream(jobs, load, **shape), policy, shape.get("cores", 1)) for jobs in lengths]


def grows(waited: list[float]) -> bool:
    """Return whether a stream of twice the length approximately doubles the wait."""
    return all(later > 1.7 * sooner > 0 for sooner, later in pairwise(waited))


def bounded(waited: list[float]) -> bool:
    return max(waited) == min(waited)


# A job of length L never starts while L > c rho / (rho - 1): at rho = 3/2 and c = 10 the bound is 30.


@pytest.mark.parametrize(("load", "starves"), [("9/10", False), ("11/10", True), ("3/2", True)])
def test_p_slr_starves_long_jobs_under_sustained_overload_by_shorter_ones(load: str, starves: bool) -> None:
    waited = waits("p-slr", load, victim=500)
    assert grows(waited) is starves
    assert bounded(waited) is not starves


@pytest.mark.parametrize(("victim", "starves"), [(20, False), (28, False), (40, True), (100, True)])
def test_the_bound_is_that_of_the_theory(victim: int, starves: bool) -> None:
    waited = waits("p-slr", "3/2", victim=victim)
    assert grows(waited) is starves
    assert bounded(waited) is not starves


@pytest.mark.parametrize("load", ["11/10", "3/2", "3"])
def test_the_starvation_free_variant_does_not(load: str) -> None:
    waited = waits("p-slr-sf", load, victim=100, lengths=(400, 800, 1600))
    assert bounded(waited)
    assert waited[0] < 4000 * 10 / 3  # it starts within the shortest stream


def test_srtf_starves_long_jobs_and_lrtf_short_ones() -> None:
    assert grows(waits("srtf", "3/2"))
    assert grows(waits("lrtf", "3/2", victim=2))
    assert bounded(waits("srtf", "3/2", victim=2))
    assert bounded(waits("lrtf", "3/2"))


@pytest.mark.parametrize("policy", ["fifo-job", "fifo-task"])
def test_first_come_waits_for_the_backlog_at_arrival_alone(policy: str) -> None:
    waited = waits(policy, "3/2", cores=4, wide=4, at=100)
    assert bounded(waited)
    backlog = 10 * 40 / 4  # seconds of work of the jobs that arrived before 100 s, if none of it were done
    assert waited[0] <= backlog


def test_a_job_that_may_be_passed_may_starve() -> None:
    assert grows(waits("first-fit", "3/2", cores=4, wide=4, at=100))
    assert bounded(waits("easy", "3/2", cores=4, wide=4, at=100))


def test_fair_share_starves_a_wide_job_on_a_small_share() -> None:
    tree = ShareTree({"/many": 99, "/one": 1})

    def waited(jobs: int, cores: int, wide: int) -> float:
        # another job of the small share occupies a core permanently, so that its usage is never zero
        workload = stream(jobs, "3/2", runtime=10, victim=5, cores=cores, wide=wide, at=20)
        return wait_of_victim(with_holder(workload), "fair-share", cores, tree)

    assert grows([waited(jobs, 4, 3) for jobs in (200, 400, 800)])


def with_holder(workload: Workload) -> Workload:
    """The same with a job of the small share that runs the whole time; the victim stays the last of its share."""
    tasks = workload.tasks
    assert tasks is not None
    more = Tasks.from_edges(
        counts=[1] * (len(workload) + 1),
        runtime=np.append(10**6, tasks.runtime / 1e6),
        cores=np.append(1, tasks.cores),
        edges=[],
    )
    return Workload.from_tasks(
        more,
        submit=np.append(0, workload.submit / 1e6),
        labels={"share": np.append(1, workload.labels["share"])},
        names=workload.names,
    )


@pytest.mark.long
def test_random_starts_every_job_in_the_end() -> None:
    waited = [
        wait_of_victim(stream(400, "1", runtime=10, victim=40, cores=4, wide=4, at=100), "random", 4, seed=seed)
        for seed in range(15)
    ]
    end = 400 * 10 / 4
    assert max(waited) < end / 2
    overloaded = [
        wait_of_victim(stream(800, "3/2", runtime=10, victim=40, cores=4, wide=4, at=100), "random", 4, seed=seed)
        for seed in range(15)
    ]
    assert np.mean(overloaded) < 800 * 10 / 4 / 2
