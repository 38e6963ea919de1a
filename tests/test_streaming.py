"""A run over blocks of jobs makes the record of the run that holds all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.simulation import Run, run
from gridsim.streaming import ended_jobs, why_not_streamed
from gridsim.workload.blocks import whole_instants
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin

POLICIES = (
    "easy",
    "fcfs",
    "first-fit",
    "depth?k=3",
    "easy?ordering=sjf",
    "fcfs?ordering=laf",
    "wfp3",
    "easy?ordering=xfactor",
    "easy?backfill_order=shortest",
    "conservative",
    "conservative?compress=arrival&compress_at=every",
)
MODES = [(instant, overrun) for instant in ("batched", "per-event") for overrun in ("kill", "extend")]
LOGS = sorted((Path(__file__).resolve().parents[2] / "shared" / "data" / "swf").glob("*.swf.gz"))


def blocks_of(workload: Workload, size: int) -> Iterator[Workload]:
    return (workload.select(slice(first, first + size)) for first in range(0, len(workload), size))


def check_same(workload: Workload, cores: int, policy: str, options: Run, size: int) -> None:
    """Each job is told of once, with the start, end and status that it has where all jobs are held."""
    whole: Record = run(workload, Platform.single(cores), policy, options)
    found: dict[str, Any] = {name: np.full(len(workload), -7) for name in ("start_us", "end_us", "status", "job")}
    for rows, record in ended_jobs(blocks_of(workload, size), Platform.single(cores), policy, options):
        for name, column in found.items():
            assert (column[rows] == -7).all()
            column[rows] = record.workload.job if name == "job" else getattr(record, name)
    for name, column in found.items():
        known = whole.workload.job if name == "job" else getattr(whole, name)
        assert column.tobytes() == known.astype(np.int64).tobytes(), (policy, options, size, name)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 30))
    columns = [st.integers(0, 12), st.integers(1, 9), st.integers(1, 9), st.integers(1, 7)]
    submit, runtime, estimate, cores = (draw(st.lists(it, min_size=jobs, max_size=jobs)) for it in columns)
    return Workload.from_columns(submit=np.cumsum(submit), runtime=runtime, estimate=estimate, cores=cores)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(workload=workloads(), mode=st.sampled_from(MODES), size=st.integers(1, 9))
def test_any_blocks_make_the_record_of_the_whole(
    policy: str, workload: Workload, mode: tuple[Any, Any], size: int
) -> None:
    check_same(workload, 5, policy, Run(engine="compiled", instant=mode[0], overrun=mode[1]), size)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_generated_workload_in_which_jobs_outlive_their_estimates(policy: str) -> None:
    drawn = Lublin(jobs=1500, load=0.9, cores=128, estimates="multiples").generate(seed=1)
    longer = drawn.runtime / 1e6 * np.random.default_rng(1).choice([1, 1, 8], len(drawn))
    given_: dict[str, Any] = {"submit": drawn.submit / 1e6, "estimate": drawn.estimate / 1e6, "cores": drawn.cores}
    workload = Workload.from_columns(runtime=longer, **given_)
    for instant, overrun in MODES:  # on 100 cores, so that some are too wide
        check_same(workload, 100, policy, Run(engine="compiled", instant=instant, overrun=overrun), 113)


@pytest.mark.others
@pytest.mark.skipif(not LOGS, reason="other people's logs are not there; generated workloads are simulated")
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_log_in_blocks_makes_the_record_of_the_whole(log: Path) -> None:
    workload = read_workload(log).select(slice(0, 4000))
    cores = int(workload.cores_stated or workload.cores.max())
    for policy, (instant, overrun) in zip(("easy", "fcfs", "easy?ordering=sjf", "conservative"), MODES, strict=True):
        check_same(workload, cores, policy, Run(engine="compiled", instant=instant, overrun=overrun), 517)


def test_progress_counts_all_jobs() -> None:
    workload = Lublin(jobs=1000, cores=64, estimates="multiples").generate(seed=1)
    told: list[int] = []
    for _ in ended_jobs(blocks_of(workload, 300), Platform.single(64), "easy", progress=told.append):
        pass
    assert told == sorted(told)
    assert told[-1] <= 1000


def test_jobs_are_told_of_when_they_are_over_and_not_all_at_the_end() -> None:
    workload = Lublin(jobs=3000, cores=64, load=0.5, estimates="multiples").generate(seed=1)
    counts = [len(rows) for rows, _ in ended_jobs(blocks_of(workload, 300), Platform.single(64), "easy")]
    assert len(counts) >= 10
    assert sum(counts) == 3000
    assert max(counts) < 600


def test_blocks_share_no_instant() -> None:
    workload = Workload.from_columns(submit=[0, 1, 1, 1, 2, 2], runtime=[1] * 6, cores=1)
    found = [(block.submit // 1_000_000, more) for block, more in whole_instants(blocks_of(workload, 2))]
    assert [(column.tolist(), more) for column, more in found] == [([0], True), ([1, 1, 1], True), ([2, 2], False)]


def test_a_job_that_comes_before_the_one_above_it_is_named() -> None:
    workload = Workload.from_columns(submit=[0, 4, 9], runtime=[1] * 3, cores=1, provenance={"source": "some.parquet"})
    turned = [workload.select([0]), workload.select([2]), workload.select([1])]
    with pytest.raises(InputError, match="job 2 came at 4 s, before the job in the row above it \\(9 s\\)") as told:
        list(whole_instants(turned))
    assert (told.value.path, told.value.line, told.value.field) == ("some.parquet", 3, "submit")


@pytest.mark.parametrize(
    ("policy", "options", "why"),
    [
        ("easy++", Run(), "orders or predicts by more than what each job asks for"),
        ("easy?ordering=random", Run(), "orders or predicts by more than what each job asks for"),
        ("easy", Run(engine="simpy"), "simpy is asked for"),
        ("easy", Run(until=5.0), "stands still before its end"),
        ("easy", Run(limits="clip"), "jobs above a limit of time are changed"),
    ],
)
def test_what_needs_all_jobs_is_refused_with_a_reason(policy: str, options: Run, why: str) -> None:
    assert why in why_not_streamed(policy, options)
    with pytest.raises(InputError, match="leave out --stream"):
        next(ended_jobs([], Platform.single(4), policy, options))
