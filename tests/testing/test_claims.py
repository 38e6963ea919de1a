"""Claims about policies, on schedules that satisfy them and on schedules that do not."""

from __future__ import annotations

from gridsim.record import Record
from gridsim.testing.claims import (
    Promise,
    fcfs_order_kept,
    heads_delayed,
    heads_kept_waiting,
    promises_broken,
    shadow_times,
    work,
)


def record(*rows: tuple[int, int, int, int], cores: int = 4) -> Record:
    """Rows of submit, start, end, cores."""
    names = ("submit", "start", "end", "cores")
    return Record.from_rows([dict(zip(names, row, strict=True)) for row in rows], cores=cores)


BLOCKED = ((0, 0, 10, 3), (1, 10, 15, 4))


def test_overtaking_breaks_the_order_of_fcfs() -> None:
    assert fcfs_order_kept(record(*BLOCKED))
    assert not fcfs_order_kept(record(*BLOCKED, (2, 2, 5, 1)))


def test_work_is_cores_times_time() -> None:
    assert work(record(*BLOCKED)) == 50 * 10**6


def test_a_first_job_that_waits_with_free_cores_is_found_with_its_instant() -> None:
    assert heads_kept_waiting(record(*BLOCKED)) == []
    idle = record((0, 0, 10, 3), (1, 11, 15, 4))
    assert heads_kept_waiting(idle) == [(10 * 10**6, 2)]


def test_the_shadow_time_is_when_estimates_promise_enough_cores() -> None:
    assert list(shadow_times(record(*BLOCKED))) == [(1 * 10**6, 1, 10 * 10**6)]


def test_a_first_job_that_a_backfilled_job_delays_is_found() -> None:
    assert heads_delayed(record(*BLOCKED)) == []
    delayed = record((0, 0, 10, 3), (1, 22, 25, 4), (2, 2, 22, 1))
    assert heads_delayed(delayed) == [Promise(2, 10 * 10**6, 22 * 10**6)]


def test_promises_are_compared_with_starts() -> None:
    assert promises_broken(record(*BLOCKED), {2: 10 * 10**6}) == []
    assert promises_broken(record(*BLOCKED), {2: 9 * 10**6}) == [Promise(2, 9 * 10**6, 10 * 10**6)]
