"""Plan-based scheduling: reservations, and their compression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from gridsim.model.platform import Platform
from gridsim.model.random_streams import stream
from gridsim.model.time import to_us
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Decision, Start
from gridsim.policy.queue import ClusterView, Requests
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.registry import make
from gridsim.simulation import Run, run

Row = tuple[int, ...]  # submit, runtime, cores, and the estimate if it differs from the runtime


def workload(rows: Sequence[Row]) -> Workload:
    return Workload.from_columns(
        submit=[row[0] for row in rows],
        runtime=[row[1] for row in rows],
        cores=[row[2] for row in rows],
        estimate=[row[3] if len(row) > 3 else row[1] for row in rows],
    )


def starts(rows: Sequence[Row], policy: Any = "conservative", cores: int = 4, **options: Any) -> list[float]:
    return list(run(workload(rows), Platform.single(cores), policy, Run(**options)).start)


def test_every_job_is_promised_a_start_and_keeps_it() -> None:
    # The fourth would delay the third, which EASY does not protect.
    rows = [(0, 10, 2), (1, 10, 3), (2, 5, 4), (3, 25, 1)]
    assert starts(rows) == [0, 10, 20, 25]
    assert starts(rows, "easy") == [0, 10, 28, 3]


def test_a_job_goes_into_a_hole_that_it_fits() -> None:
    assert starts([(0, 10, 3), (1, 10, 4), (2, 8, 1)]) == [0, 10, 2]
    assert starts([(0, 10, 3), (1, 10, 4), (2, 9, 1)]) == [0, 10, 20]


def test_a_plan_knows_estimates_alone() -> None:
    """The second has a reservation at 10, the estimated end of the first, which ends at 4."""
    rows = [(0, 4, 4, 10), (1, 5, 4)]
    assert starts(rows, "conservative?compress=none") == [0, 10]
    assert starts(rows) == [0, 4]


# The first job ends at 2, not at 20. Then wait, in order of arrival: the second (4 cores, planned at 20), the third
# (3 cores, 20 s, planned after it at 30), the fourth (1 core, 5 s, next to the first since its arrival).
EARLY = [(0, 2, 3, 20), (1, 10, 4), (1, 20, 3)]


def test_compression_starts_what_it_can_when_a_job_ends_early() -> None:
    assert starts(EARLY) == [0, 2, 12]
    assert starts(EARLY, "conservative?compress=none") == [0, 20, 30]


# Planned order and order of arrival differ. Cores: 4. The first (4 cores) is expected to end at 10 and ends at 2.
#   the second: 3 cores for 10 s, planned [10, 20)
#   the third: 4 cores for 10 s, planned [20, 30)
#   the fourth: 1 core for 10 s, planned [10, 20), before the third although it arrived later
# In planned order: second at 2, fourth at 2, third at 12. In order of arrival: second at 2; the third cannot move past
# the fourth at [10, 20); then the fourth moves to 2, and the third keeps 20, with a gap before it.
THREE_WAITING = [(0, 2, 4, 10), (1, 10, 3), (1, 10, 4), (1, 10, 1)]


def test_compression_in_planned_order_leaves_no_hole() -> None:
    assert starts(THREE_WAITING) == [0, 2, 12, 2]


def test_compression_in_order_of_arrival_may_leave_one() -> None:
    assert starts(THREE_WAITING, "conservative?compress=arrival") == [0, 2, 20, 2]


def test_compression_at_every_end_fills_that_hole_at_an_end_that_comes_as_expected() -> None:
    # At 12 the second and the fourth end as estimated: no cores are released early, but the third is tested again.
    every = "conservative?compress=arrival&compress_at=every"
    assert starts(THREE_WAITING, every) == [0, 2, 12, 2]
    assert starts(THREE_WAITING, every, instant="per-event") == [0, 2, 12, 2]


def test_parameters_of_compression_must_be_known_and_have_an_effect() -> None:
    with pytest.raises(ValueError, match="compress_at is 'always'; early or every is needed"):
        Planned(compress_at="always")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="compress_at has no effect with compress=none"):
        Planned(compress="none", compress_at="every")


def test_an_ordering_sets_the_order_of_compression() -> None:
    # Two jobs of the whole machine wait, a long one planned at 10 and a short one at 15. The cores released at 2 go to
    # the first in the order: either the long one moves to 2, or the short one does and the long one keeps its start.
    rows = [(0, 2, 4, 10), (1, 5, 4), (1, 3, 4)]
    assert starts(rows) == [0, 2, 7]
    assert starts(rows, "conservative?ordering=sjf") == [0, 5, 2]


def test_a_compression_is_once_an_instant_after_all_that_ended() -> None:
    # Two jobs end early at 2: together they free enough cores for the second waiting one.
    rows = [(0, 2, 2, 10), (0, 2, 2, 10), (1, 5, 4)]
    assert starts(rows) == [0, 0, 2]


def test_an_overrun_moves_promises_later() -> None:
    rows = [(0, 13, 4, 10), (1, 5, 4), (2, 5, 4)]
    assert starts(rows) == [0, 10, 15]
    assert starts(rows, overrun="extend") == [0, 13, 18]


def test_the_promises_can_be_looked_at() -> None:
    jobs = workload([(0, 10, 3), (0, 10, 4), (0, 8, 1)])
    scheduler = Planned()
    scheduler.setup(ClusterView(4, Requests(jobs)), stream(0))
    for request in range(3):
        quote = scheduler.quote(request, 0)
        assert quote is not None
        scheduler.commit(quote, 0)
    assert scheduler.plan.starts() == {0: 0, 1: to_us(10.0), 2: 0}
    assert scheduler.plan.order().tolist() == [0, 2, 1]
    assert scheduler.dispatch(0) == Decision([Start(0), Start(2)], wake=to_us(10.0))


def test_an_unknown_order_of_compression_is_refused() -> None:
    with pytest.raises(ValueError, match="compress is 'allways'; planned, arrival or none is needed"):
        Planned(compress="allways")  # type: ignore[arg-type]


class Everything(Planned):
    """Compression that tests every waiting request, without information from the plan."""

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        super().setup(cluster, rng)
        self._left_shifted = False


rows_of_jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(1, 4), st.integers(1, 24)), min_size=1, max_size=16
)
quiet = settings(deadline=None, max_examples=100)


@pytest.mark.long
@quiet
@given(rows_of_jobs, st.sampled_from(["kill", "extend"]), st.sampled_from(["batched", "per-event"]))
def test_requests_skipped_by_compression_could_not_have_moved(rows: Sequence[Row], overrun: str, instant: str) -> None:
    options: Any = {"overrun": overrun, "instant": instant}
    assert starts(rows, Planned(), **options) == starts(rows, Everything(), **options)


class Watched(Planned):
    """Records every reservation at each decision."""

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        super().setup(cluster, rng)
        self.promises: dict[int, int] = {}
        self.broken: list[int] = []
        WATCHED.append(self)

    def dispatch(self, now: int) -> Any:
        for request, start in self.plan.starts().items():
            if start > self.promises.get(request, start):
                self.broken.append(request)
            self.promises[request] = start
        return super().dispatch(now)


WATCHED: list[Watched] = []


@pytest.mark.long
@quiet
@given(rows_of_jobs, st.sampled_from([("planned", None), ("arrival", None), ("none", None), ("planned", "sjf")]))
def test_no_promise_is_broken_while_runtimes_respect_the_estimates(
    rows: Sequence[Row], how: tuple[Any, str | None]
) -> None:
    compress, ordering = how
    WATCHED.clear()
    starts(rows, Watched(compress=compress, ordering=None if ordering is None else make("ordering", ordering)))
    assert WATCHED[0].broken == []


@pytest.mark.long
@quiet
@given(rows_of_jobs)
def test_with_exact_estimates_compression_changes_nothing(rows: Sequence[Row]) -> None:
    exact = [row[:3] for row in rows]
    assert (
        starts(exact) == starts(exact, "conservative?compress=none") == starts(exact, "conservative?compress=arrival")
    )


def test_a_plan_grows_with_its_queue() -> None:
    rng = stream(5)
    rows = [(0, int(runtime), int(cores), 20) for runtime, cores in rng.integers((1, 1), (20, 5), (400, 2))]
    assert len(set(starts(rows))) > 100
