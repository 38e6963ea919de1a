"""The five published kinds of workload: totals, laws, loads, and reproducibility by seed (claims G-10 to G-13)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import Workload
from gridsim.workload.synthetic.grid import CORE_COUNTS, KINDS_OF_JOBS, LOADS, Grid

KINDS = tuple(KINDS_OF_JOBS)
WORKLOADS = 6
NOT_REJECTED = 0.001


@pytest.fixture(scope="module")
def sample() -> dict[str, list[Workload]]:
    return {kind: [Grid(kind=kind, number=number).generate(1) for number in range(WORKLOADS)] for kind in KINDS}


def tasks_of(workload: Workload) -> Tasks:
    assert workload.tasks is not None
    return workload.tasks


def ticks(workload: Workload) -> np.ndarray:
    tasks = tasks_of(workload)
    assert (tasks.runtime % MICROSECOND == 0).all()
    return tasks.runtime // MICROSECOND


def work(workload: Workload, kind: int | None = None) -> int:
    tasks = tasks_of(workload)
    chosen = slice(None) if kind is None else tasks.kind == kind
    return int((ticks(workload) * tasks.cores)[chosen].sum())


# Totals, ranges and laws


@pytest.mark.parametrize("kind", KINDS)
def test_execution_times_add_up_to_the_total_exactly(sample, kind):
    assert [int(ticks(workload).sum()) for workload in sample[kind]] == [10**10] * WORKLOADS
    assert all(ticks(workload).min() >= 1 for workload in sample[kind])


@pytest.mark.parametrize(
    ("kind", "jobs", "tasks", "edges"),
    [
        ("uni-ind", 10_000, 10_000, 0),
        ("log-ind", 10_000, 10_000, 0),
        ("prob", 1_000, 10_500, 19_950),
        ("fan", 1_000, 51_500, 55_000),
        ("chain", 1_000, 58_000, 61_000),
    ],
)
def test_jobs_tasks_and_edges_are_as_many_as_expected(sample, kind, jobs, tasks, edges):
    assert {len(workload) for workload in sample[kind]} == {jobs}
    assert np.mean([len(tasks_of(workload)) for workload in sample[kind]]) == pytest.approx(tasks, rel=0.03)
    assert np.mean([len(tasks_of(workload).edge_to) for workload in sample[kind]]) == pytest.approx(edges, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "least"), [("uni-ind", 1), ("log-ind", 1), ("prob", 200), ("fan", 1520), ("chain", 2310)]
)
def test_no_job_is_smaller_than_its_least_size(sample, kind, least):
    assert Grid(kind=kind).least == least
    for workload in sample[kind]:
        assert np.add.reduceat(ticks(workload), tasks_of(workload).first[:-1]).min() >= least


@pytest.mark.parametrize("kind", KINDS)
def test_core_counts_are_uniform_over_the_five(sample, kind):
    cores = np.concatenate([tasks_of(workload).cores for workload in sample[kind]])
    values, counts = np.unique(cores, return_counts=True)
    assert tuple(values) == CORE_COUNTS
    assert stats.chisquare(counts).pvalue > NOT_REJECTED


@pytest.mark.parametrize("kind", KINDS)
def test_a_fifth_of_the_tasks_need_the_second_kind(sample, kind):
    second = [int(tasks_of(workload).kind.sum()) for workload in sample[kind]]
    total = sum(len(tasks_of(workload)) for workload in sample[kind])
    assert stats.binomtest(sum(second), total, 0.2).pvalue > NOT_REJECTED
    assert tasks_of(sample[kind][0]).kinds == ("Kind1", "Kind2")


def test_jobs_are_dealt_evenly_among_the_shares(sample):
    shares = np.concatenate([workload.labels["share"] for kind in KINDS for workload in sample[kind]])
    assert stats.chisquare(np.bincount(shares, minlength=5)).pvalue > NOT_REJECTED
    assert sample["fan"][0].names["share"] == ("/share1", "/share2", "/share3", "/share4", "/share5")


def test_sizes_under_log_are_nearly_exponential_and_under_uniform_bounded(sample):
    log = ticks(sample["log-ind"][0])
    assert stats.kstest(log / log.mean(), "expon").pvalue > NOT_REJECTED
    tenths = [part.mean() for part in np.array_split(np.sort(log), 10)]
    assert tenths[-1] / tenths[0] == pytest.approx(64, rel=0.1)
    even = ticks(sample["uni-ind"][0])
    assert even.max() < 2.1 * even.mean()


def test_loguniform_sizes_spread_over_five_decades():
    size = ticks(Grid(kind="log-ind", sizes="loguniform").generate(1))
    assert size.sum() == 10**10
    assert np.log10(size.max() / size.min()) == pytest.approx(5.15, abs=0.02)


def test_tasks_of_a_job_divide_it_uniformly(sample):
    tasks = tasks_of(sample["prob"][0])
    counts = np.diff(tasks.first)
    pairs = tasks.first[:-1][counts == 2]
    first, second = (ticks(sample["prob"][0])[pairs + place] for place in (0, 1))
    assert stats.kstest(first / (first + second), "uniform").pvalue > NOT_REJECTED


# Claims of the paper


def test_g_10_parameters_of_the_table():
    assert {kind: entry.jobs for kind, entry in KINDS_OF_JOBS.items()} == {
        "uni-ind": 10_000,
        "log-ind": 10_000,
        "prob": 1_000,
        "fan": 1_000,
        "chain": 1_000,
    }
    assert (KINDS_OF_JOBS["prob"].most_tasks, KINDS_OF_JOBS["prob"].edge_probability) == (20, 0.3)
    assert KINDS_OF_JOBS["fan"].block == ((1, 1), (1, 10), (3, 15), 0)
    assert KINDS_OF_JOBS["chain"].block == ((1, 3), (1, 5), (3, 15), 0)
    assert Grid().total == 10**10


def test_g_11_a_task_has_just_over_ten_cores(sample):
    cores = np.concatenate([tasks_of(workload).cores for kind in KINDS for workload in sample[kind]])
    assert abs(cores.mean() - 10.2) < 3 * np.std(CORE_COUNTS) / np.sqrt(len(cores))


def test_g_12_the_second_kind_is_the_lighter_side(sample):
    workloads = [workload for kind in KINDS for workload in sample[kind]]
    first, second = (
        np.mean([work(workload, kind) / work(workload) / share for workload in workloads])
        for kind, share in ((0, 0.75), (1, 0.25))
    )
    assert first == pytest.approx(1.067, abs=0.01)
    assert second == pytest.approx(0.80, abs=0.02)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("kind", ["uni-ind", "log-ind"])
def test_g_13_the_measured_load_is_the_nominal_one(kind, load):
    workload = Grid(kind=kind, load=load).generate(3)
    assert workload.offered_load(4_000) == pytest.approx(load, rel=0.01)


# Options


@pytest.mark.parametrize("kind", KINDS)
def test_as_core_ticks_the_volume_is_exact_too(kind):
    workload = Grid(kind=kind, volume="core-ticks").generate(1)
    assert work(workload) == 10**10
    assert ticks(workload).min() >= 1


def test_an_exact_proportion_of_kinds_is_exact():
    tasks = tasks_of(Grid(kind="uni-ind", kinds="exact").generate(1))
    assert int(tasks.kind.sum()) == 2_000


def test_a_length_that_counts_fork_and_join_makes_smaller_jobs():
    grids = [Grid(kind="fan", length_counts=counts) for counts in ("chain", "inner", "total")]
    sizes = [len(tasks_of(grid.generate(1))) for grid in grids]
    assert sizes[0] == sizes[1]
    widths = (sizes[0] - sizes[2]) / 2_000
    assert widths == pytest.approx(5.5, abs=0.3)
    assert [grid.least for grid in grids] == [1_520, 1_520, 1_320]


def test_a_limit_on_sizes_holds():
    size = ticks(Grid(kind="log-ind", jobs=500, total=10**6, largest=4_000).generate(1))
    assert size.sum() == 10**6
    assert size.max() <= 4_000


@pytest.mark.parametrize("arrivals", ["proportional", "poisson", "day-week"])
def test_arrivals_begin_at_0_and_never_go_back(arrivals):
    submit = Grid(kind="prob", arrivals=arrivals).generate(1).submit
    assert submit[0] == 0
    assert (np.diff(submit) >= 0).all()


def test_a_workload_can_be_scaled_down():
    workload = Grid(kind="chain", jobs=20, total=10**6).generate(1)
    assert (len(workload), int(ticks(workload).sum())) == (20, 10**6)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_workloads_work(kind, jobs):
    workload = Grid(kind=kind, jobs=jobs).generate(1)
    assert int(ticks(workload).sum()) == 10**10


# Seeds


def columns(workload: Workload) -> dict[str, list[int]]:
    tasks = tasks_of(workload)
    return {
        "submit": workload.submit.tolist(),
        "runtime": tasks.runtime.tolist(),
        "cores": tasks.cores.tolist(),
        "kind": tasks.kind.tolist(),
        "edges": tasks.edge_to.tolist(),
        "share": workload.labels["share"].tolist(),
    }


def differing(one: Workload, other: Workload) -> set[str]:
    ours, theirs = columns(one), columns(other)
    return {name for name in ours if ours[name] != theirs[name]}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_workload(kind):
    assert not differing(Grid(kind=kind).generate(5), Grid(kind=kind).generate(5))


def test_other_seeds_and_numbers_give_other_workloads():
    first = Grid(kind="prob").generate(5)
    everything = {"submit", "runtime", "cores", "kind", "edges", "share"}
    assert differing(first, Grid(kind="prob").generate(6)) == everything
    assert differing(first, Grid(kind="prob", number=2).generate(5)) == everything


@pytest.mark.parametrize("kind", KINDS)
def test_the_load_moves_arrivals_only(kind):
    assert differing(Grid(kind=kind, load=0.8).generate(1), Grid(kind=kind, load=1.2).generate(1)) == {"submit"}


@pytest.mark.parametrize(
    ("options", "moved"),
    [
        ({"sizes": "loguniform"}, {"runtime", "submit"}),
        ({"kinds": "exact"}, {"kind"}),
        ({"shares": 3}, {"share"}),
        ({"arrivals": "poisson"}, {"submit"}),
        ({"cores": 1_000}, {"submit"}),
        ({"volume": "core-ticks"}, {"runtime", "submit"}),
    ],
)
def test_each_role_has_a_separate_stream(options, moved):
    assert differing(Grid(kind="prob").generate(1), Grid(kind="prob", **options).generate(1)) == moved


# Facts, speed and errors


def test_the_workload_says_where_it_comes_from():
    workload = Grid(kind="fan", load=0.9, number=7).generate(11)
    assert workload.cores_stated == 4_000
    assert workload.provenance["source"] == "grid"
    assert workload.provenance["seed"] == 11
    assert workload.provenance["parameters"]["load"] == 0.9
    assert workload.provenance["work"] == work(workload)


def test_a_chain_workload_takes_a_tenth_of_a_second_at_most():
    Grid(kind="chain").generate(1)
    taken = []
    for number in range(3):
        begin = time.process_time()
        Grid(kind="chain", number=number).generate(2)
        taken.append(time.process_time() - begin)
    assert min(taken) <= 0.1


@pytest.mark.parametrize(
    "options",
    [{"kind": "fans"}, {"sizes": "uniforn"}, {"arrivals": "poison"}, {"length_counts": "all"}, {"kinds": "some"}],
)
def test_an_unknown_word_answers_with_the_known_ones(options):
    with pytest.raises(UnknownNameError, match="known: "):
        Grid(**options)


@pytest.mark.parametrize(
    "options",
    [{"load": 0.0}, {"cores": 0}, {"shares": 0}, {"jobs": 0}, {"total": 0}, {"number": -1}, {"hour": 0}],
)
def test_an_impossible_number_is_named(options):
    (name,) = options
    with pytest.raises(InputError, match=f"field '{name}'"):
        Grid(**options)


def test_a_limit_is_for_log_sizes_only():
    with pytest.raises(InputError, match="largest"):
        Grid(kind="uni-ind", largest=5)


def test_a_total_that_is_too_small_for_the_jobs_is_named():
    with pytest.raises(InputError, match="1,000 parts of at least 2,310 do not fit into 1,000"):
        Grid(kind="chain", total=1_000).generate(1)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed"):
        Grid().generate(-1)


@pytest.mark.parametrize("kind", ["uni-ind", "prob", "chain"])
@pytest.mark.parametrize("arrivals", ["proportional", "poisson", "day-week"])
def test_at_another_load_it_is_what_would_have_been_generated(kind: Any, arrivals: Any) -> None:
    grid, other = (Grid(kind=kind, jobs=30, load=load, arrivals=arrivals) for load in (0.8, 1.2))
    found, made = grid.at_load(grid.generate(3), 1.2, 3), other.generate(3)
    for name in ("job", "submit", "runtime", "estimate", "cores", "deadline"):
        assert getattr(found, name).tobytes() == getattr(made, name).tobytes()
    assert found.tasks is not None
    assert made.tasks is not None
    assert found.tasks.runtime.tolist() == made.tasks.runtime.tolist()
    assert found.provenance == made.provenance
