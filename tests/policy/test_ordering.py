"""Orderings: formulas calculated by hand, and the resulting order of starts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gridsim import registry
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.ordering import DominantShare, Random
from gridsim.policy.queue import Queue, Requests
from gridsim.simulation import Run, run, simulate

JOBS = Workload.from_columns(
    submit=[0, 10, 20, 20],
    runtime=[1, 1, 1, 1],
    estimate=[100, 20, 40, 20],
    cores=[1, 4, 2, 8],
    deadline=[math.inf, 300, 310, math.nan],
)


def queue(workload: Workload = JOBS, rows: list[int] | None = None) -> Queue:
    return Queue(Requests(workload), np.arange(len(workload)) if rows is None else np.array(rows))


def ranks(name: str, now: float = 60.0) -> list[float]:
    return list(registry.make("ordering", name).rank(queue(), now))


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("fifo", [0, 0, 0, 0]),
        ("shortest-estimate", [100, 20, 40, 20]),
        ("longest-estimate", [-100, -20, -40, -20]),
        ("smallest-cores", [1, 4, 2, 8]),
        ("largest-cores", [-1, -4, -2, -8]),
        ("smallest-area", [100, 80, 80, 160]),
        ("largest-area", [-100, -80, -80, -160]),
        ("earliest-deadline", [math.inf, 300, 310, math.inf]),
        ("least-laxity", [math.inf, 280, 270, math.inf]),
        # waits at 60 s: 60, 50, 40, 40
        ("wfp3", [-(0.6**3) * 1, -(2.5**3) * 4, -(1.0**3) * 2, -(2.0**3) * 8]),
        ("unicef", [-60 / (1 * 100), -50 / (2 * 20), -40 / (1 * 40), -40 / (3 * 20)]),
        ("xfactor", [-0.6, -2.5, -1.0, -2.0]),
    ],
)
def test_the_formula_is_the_one_of_its_name(name: str, by_hand: list[float]) -> None:
    assert ranks(name) == pytest.approx(by_hand, rel=1e-15)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("sjf", "shortest-estimate"),
        ("spf", "shortest-estimate"),
        ("ljf", "longest-estimate"),
        ("saf", "smallest-area"),
        ("laf", "largest-area"),
        ("edf", "earliest-deadline"),
        ("llf", "least-laxity"),
        ("narrowest", "smallest-cores"),
        ("widest", "largest-cores"),
        ("fifo-job", "fifo"),
    ],
)
def test_an_ordering_is_found_by_its_other_names(alias: str, name: str) -> None:
    assert registry.find("ordering", alias) is registry.find("ordering", name)


@pytest.mark.parametrize("name", ["fifo", "sjf", "ljf", "saf", "laf", "widest", "narrowest", "edf", "llf"])
def test_an_order_that_is_evaluated_once_does_not_change_with_time(name: str) -> None:
    assert registry.make("ordering", name).changes == "static"
    assert ranks(name, 0.0) == ranks(name, 1e6)


@pytest.mark.parametrize("name", ["wfp3", "unicef", "xfactor", "random"])
def test_an_order_that_changes_with_time_is_evaluated_at_each_cycle(name: str) -> None:
    assert registry.make("ordering", name).changes == "pass"


@pytest.mark.parametrize("name", sorted(registry.names("ordering")))
def test_a_queue_of_some_rows_is_ranked_by_those_alone(name: str) -> None:
    # Draws; need a ledger; read other waiting or running jobs, as they must.
    if name in ("random", "fair-share", "fair-tree", "multifactor", "p-slr-sf", "dominant-share"):
        return
    ordering = registry.make("ordering", name)
    some = np.asarray(ordering.rank(queue(rows=[1, 3]), 60.0))
    assert some.tolist() == np.asarray(ordering.rank(queue(), 60.0))[[1, 3]].tolist()


# Six jobs of one core behind one that holds the only core until 100 s: the order of starting is the order of ranks.
LINE = Workload.from_columns(
    submit=[0, 1, 2, 3, 4, 5, 6],
    runtime=[100, 1, 1, 1, 1, 1, 1],
    estimate=[100, 30, 10, 30, 20, 10, 50],
    cores=1,
    deadline=[math.inf, math.inf, 400, 150, math.inf, 380, 150],
)


def order_of_starts(policy: Any) -> list[int]:
    record = run(LINE, Platform.single(1), policy)
    return [int(job) for job in LINE.job[np.argsort(record.start_us, kind="stable")]][1:]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo", [2, 3, 4, 5, 6, 7]),
        ("sjf", [3, 6, 5, 2, 4, 7]),
        ("ljf", [7, 2, 4, 5, 3, 6]),
        ("edf", [4, 7, 6, 3, 2, 5]),  # no deadline: last, by arrival
        ("llf", [7, 4, 6, 3, 2, 5]),  # latest starts 100, 120, 370, 390, none, none
        ("narrowest", [2, 3, 4, 5, 6, 7]),  # all equal: by arrival
        ("widest", [2, 3, 4, 5, 6, 7]),
    ],
)
def test_jobs_start_in_order_of_ranks_and_equal_ones_by_arrival(policy: str, order: list[int]) -> None:
    assert order_of_starts(policy) == order
    assert order_of_starts(f"easy?ordering={policy}") == order


def test_the_largest_expansion_factor_starts_first() -> None:
    # at 100 s: 99/30 = 3.3, 98/10, 97/30 = 3.23, 96/20 = 4.8, 95/10, 94/50; the order holds for the six seconds after
    assert order_of_starts("xfactor") == [3, 6, 5, 2, 4, 7]


# -- random ----------------------------------------------------------------------------------------------------------


class Draws:
    """Recorded draws: an object with the one method that `Random` uses."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def integers(self, high: int) -> int:
        number = self.numbers.pop(0)
        assert 0 <= number < high, f"{number} of {high}"
        return number


class Scripted(Random):
    """`Random` with draws from a script; copies share the list, so that tests can read the remaining draws."""

    script: list[int]

    def setup(self, rng: Any) -> None:
        draws: Any = Draws(type(self).script)
        super().setup(draws)


def scripted(draws: list[int], hold: bool) -> Scripted:
    ordering = type("Scripted", (Scripted,), {"script": draws})(hold=hold)
    assert isinstance(ordering, Scripted)
    return ordering


FOUR = Workload.from_columns(submit=[0, 0, 0, 0], runtime=[5, 5, 2, 3], cores=[3, 4, 1, 1])


def test_a_drawn_job_that_does_not_fit_remains_the_first() -> None:
    draws = [0, 0, 1, 0]  # job 1 starts; job 2 is drawn and held until 5; then job 4, job 3 start together at 10
    record = run(FOUR, Platform.single(4), scripted(draws, hold=True))
    assert record.start.tolist() == [0, 5, 10, 10]
    assert draws == []


def test_without_hold_a_drawn_job_that_does_not_fit_is_forgotten() -> None:
    draws = [
        0,
        0,
        1,
        0,
        0,
        0,
    ]  # job 1; job 2 does not fit | at 5: job 3; job 2 does not fit | at 7: job 2 | at 12: job 4
    record = run(FOUR, Platform.single(4), scripted(draws, hold=False))
    assert record.start.tolist() == [0, 7, 5, 12]
    assert draws == []


def test_nothing_is_drawn_while_no_core_is_free() -> None:
    draws = [0, 1, 0]
    jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 5, 5], cores=[4, 4, 4])
    record = run(jobs, Platform.single(4), scripted(draws, hold=False))
    assert record.start.tolist() == [0, 15, 10]
    assert draws == []


def test_under_a_rule_that_lets_others_pass_a_cycle_draws_one_permutation() -> None:
    ordering = Random()
    ordering.setup(Draws([2, 0, 1, 0]))  # type: ignore[arg-type]  # third; first; fourth of what is left; second
    assert ordering.rank(queue(), 0.0).tolist() == [1, 3, 0, 2]


def test_random_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    jobs = Workload.from_columns(submit=np.zeros(30), runtime=np.ones(30), cores=1)
    once, again, other = (run(jobs, Platform.single(1), "random", Run(seed=seed)).start.tolist() for seed in (1, 1, 2))
    assert once == again
    assert once != other
    assert sorted(once) == list(range(30))


def cluster_queue(asked: list[Demand], users: list[int], running: int, totals: dict[str, int]) -> Queue:
    """Return requests of users, the first *running* of which run."""
    n = len(asked)
    jobs = Workload.from_columns(submit=[0] * n, runtime=[5] * n, demands=Demands.of(asked), labels={"user": users})
    requests = Requests(jobs)
    runs = Queue(requests, np.arange(running))
    return Queue(requests, np.arange(running, n), {"totals": totals, "running": runs})


A, B = Demand(tasks=1, each={"cores": 1, "memory": 4}), Demand(tasks=1, each={"cores": 3, "memory": 1})


def test_shares_are_those_of_the_paper() -> None:
    # Section 4.1: 9 cores, 18 GB; three tasks of A and two of B run: shares 12/18 and 6/9.
    seen = cluster_queue([A, A, A, B, B, A, B], [1, 1, 1, 2, 2, 1, 2], 5, {"cores": 9, "memory": 18})
    assert DominantShare().rank(seen, 0.0).tolist() == pytest.approx([2 / 3, 2 / 3])
    assert seen.demand("memory").tolist() == [4, 1]
    assert seen.running.demand("cores").tolist() == [1, 1, 1, 3, 3]


def test_users_without_running_jobs_are_first_and_unused_resources_do_not_count() -> None:
    seen = cluster_queue([A, A, B, Demand(cores=2)], [1, 1, 2, -1], 1, {"cores": 9, "memory": 0})
    assert DominantShare().rank(seen, 0.0).tolist() == pytest.approx([1 / 9, 0, 0])


def test_the_order_by_dominant_share_follows_every_start() -> None:
    # All arrive at once, without backfilling. Shares in ninths, A before B if they are equal: A, B, A, A, A.
    jobs = Workload.from_columns(
        submit=[0] * 10, runtime=[100] * 10, cores=[1] * 5 + [3] * 5, labels={"user": [1] * 5 + [2] * 5}
    )
    started = simulate(jobs, platform=Platform.single(9), policy="drf").record.start == 0
    assert (started[:5].sum(), started[5:].sum()) == (4, 1)


@pytest.mark.parametrize("policy", ["easy?ordering=drf", "conservative?ordering=drf", "moldable?ordering=drf", "drf"])
def test_policies_accept_the_order_by_dominant_share(policy: Any) -> None:
    jobs = Workload.from_columns(
        submit=[0, 1, 2, 3], runtime=[5] * 4, cores=[4, 4, 4, 4], labels={"account": [1, 1, 1, 2], "user": [1] * 4}
    )
    record = simulate(jobs, platform=Platform.single(4), policy=policy).record
    assert record.start.tolist() == [0, 5, 10, 15]  # no user runs jobs when the next one starts


def test_the_owner_of_a_job_can_be_another_label() -> None:
    jobs = Workload.from_columns(
        submit=[0, 0, 1, 2],
        runtime=[99, 5, 5, 5],
        cores=[4] * 4,
        labels={"account": [1, 2, 1, 2], "user": [1, 2, 2, 1]},
    )
    for by, starts in (("account", [0, 0, 10, 5]), ("user", [0, 0, 5, 10])):
        record = simulate(jobs, platform=Platform.single(8), policy=f"easy?ordering=drf(by={by})").record
        assert record.start.tolist() == starts


def test_all_resources_of_a_machine_count() -> None:
    # The same example as a run, on a machine of pools: with 9 cores and 18 of memory A gets three tasks, B two.
    asked = [Demand(cores=1, pools={"memory": 4})] * 5 + [Demand(cores=3, pools={"memory": 1})] * 5
    jobs = Workload.from_columns(
        submit=[0] * 10, runtime=[100] * 10, demands=Demands.of(asked), labels={"user": [1] * 5 + [2] * 5}
    )
    machine = Platform.of_nodes([], {"cores": 9, "memory": 18})
    started = simulate(jobs, platform=machine, policy="easy?ordering=drf").record.start == 0
    assert (started[:5].sum(), started[5:].sum()) == (3, 2)
