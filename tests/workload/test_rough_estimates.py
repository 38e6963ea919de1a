"""Estimates with an error relative to the runtime, or rounded up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim import registry
from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.simulation import Run, simulate
from gridsim.workload.synthetic.grid import Grid
from gridsim.workload.transform.rough_estimates import RoughEstimates

SECOND = 1_000_000
RUNTIMES = [1, 9, 10, 11, 100, 3600]


def rough(error: str, size: float, runtimes: list[int] = RUNTIMES, seed: int = 1) -> list[int]:
    log = Workload.from_columns(submit=[0] * len(runtimes), runtime=runtimes, cores=[1] * len(runtimes))
    made = RoughEstimates(error=error, size=size).apply(log, np.random.default_rng(seed))
    assert (made.runtime == log.runtime).all()
    return (made.estimate // SECOND).tolist()


@pytest.mark.parametrize(
    ("error", "size", "expected"),
    [
        ("power", 10, [1, 10, 10, 100, 100, 10_000]),
        ("power", 2, [1, 16, 16, 16, 128, 4096]),
        ("multiple", 10, [10, 10, 10, 20, 100, 3600]),
        ("add", 5, [6, 14, 15, 16, 105, 3605]),
        ("multiply", 1.5, [2, 14, 15, 17, 150, 5400]),
        ("multiply", 0.1, [1, 1, 1, 2, 10, 360]),
        ("normal", 0, RUNTIMES),
    ],
)
def test_each_error_gives_the_estimates_that_its_rule_says(error, size, expected):
    assert rough(error, size) == expected


def test_a_normal_error_has_the_stated_spread_where_it_is_not_cut_off():
    runtimes = [1_000_000] * 20_000
    ratio = np.array(rough("normal", 0.2, runtimes)) / 1_000_000
    assert ratio.mean() == pytest.approx(1, abs=0.005)
    assert ratio.std() == pytest.approx(0.2, rel=0.03)


@given(runtimes=st.lists(st.integers(1, 10**7), min_size=1, max_size=30), size=st.floats(0, 10))
def test_estimates_are_whole_seconds_from_one(runtimes, size):
    assert min(rough("normal", size, runtimes)) >= 1


@given(runtimes=st.lists(st.integers(1, 10**7), min_size=1, max_size=30), base=st.floats(1.1, 100))
def test_a_power_is_never_too_short_and_less_than_one_step_too_long(runtimes, base):
    for runtime, estimate in zip(runtimes, rough("power", base, runtimes), strict=True):
        assert runtime <= estimate <= np.ceil(runtime * base * (1 + 1e-9))


def test_every_task_of_a_job_gets_its_own_and_the_job_its_longest_chain():
    tasks = Tasks.from_edges(counts=[3], runtime=[70, 20, 30], cores=[1, 1, 1], edges=[(0, 1), (0, 2)])
    log = Workload.from_tasks(job=[1], submit=[0], tasks=tasks)
    made = RoughEstimates(error="power", size=10).apply(log, np.random.default_rng(1))
    assert (made.tasks.estimate // SECOND).tolist() == [100, 100, 100]
    assert made.estimate.tolist() == [200 * SECOND]
    assert made.tasks.runtime.tolist() == tasks.runtime.tolist()


def test_a_job_on_a_grid_that_exceeds_its_estimate_continues():
    made = RoughEstimates(error="multiply", size=0.5).apply(
        Grid(kind="fan", jobs=5, total=10**6, cores=40).generate(seed=1), np.random.default_rng(1)
    )
    kinds = made.tasks.kinds
    record = simulate(
        made,
        platform=_grid(kinds),
        policy="p-slr",
        options=Run(overrun="extend"),
    ).record
    held = record.tasks.end_us - record.tasks.start_us
    assert (held == made.tasks.runtime).all()


def _grid(kinds: tuple[str, ...]) -> Platform:
    from gridsim.model.platform import ClusterSpec, RouterSpec

    return Platform(RouterSpec("root", tuple(ClusterSpec(kind, 40, kind) for kind in kinds)))


@pytest.mark.parametrize(
    "text",
    ["rough-estimates?error=guess", "rough-estimates?error=power&size=1", "rough-estimates?size=-1"],
)
def test_an_impossible_error_is_refused(text):
    with pytest.raises(InputError):
        registry.make("transform", text)
