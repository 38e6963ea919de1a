"""Times at which scheduling cycles are due."""

from __future__ import annotations

from dataclasses import replace

from gridsim.model.site import Scheduling
from gridsim.model.time import NEVER
from gridsim.policy.slurm.timing import Timing

S = 1_000_000
LOOK = Scheduling(
    interval=30 * S, full_interval=60 * S, least_interval=2 * S, batch_delay=3 * S, queue_depth=100, backfill=True
)


def test_nothing_is_due_where_nothing_happened() -> None:
    timing = Timing(LOOK, 0)
    assert timing.next(0) == NEVER
    assert timing.depth(60 * S) is None
    assert not timing.backfills(60 * S)


def test_a_job_is_looked_at_on_a_whole_second_of_slurms_own_clock_and_not_too_soon_after_a_cycle() -> None:
    timing = Timing(LOOK, -S // 4)
    timing.submitted(10 * S)
    assert timing.next(10 * S) == 10 * S + 3 * S // 4
    assert timing.depth(10 * S) is None
    assert timing.depth(10 * S + 3 * S // 4) == 100
    timing.looked(11 * S, at_all=False)
    timing.submitted(12 * S)
    assert timing.next(12 * S) == 14 * S  # three seconds after the cycle
    deferring = Timing(replace(LOOK, defer=True), 0)
    deferring.submitted(10 * S)
    assert deferring.next(10 * S) == NEVER


def test_freed_nodes_cause_a_cycle_at_once_after_the_least_interval() -> None:
    timing = Timing(LOOK, 0)
    timing.looked(9 * S, at_all=True)
    timing.freed(10 * S)
    assert timing.depth(10 * S) is None
    assert timing.next(10 * S) == 11 * S
    assert timing.depth(11 * S) == 100


def test_passes_by_the_clock_come_on_whole_periods_after_the_boot_and_once_for_a_change() -> None:
    timing = Timing(LOOK, 5 * S)
    timing.changed()
    assert timing.next(6 * S) == 35 * S
    assert timing.backfills(35 * S)
    assert not timing.backfills(65 * S)
    assert timing.next(36 * S) == 65 * S  # the full main scheduler cycle
    assert timing.depth(35 * S) is None
    assert timing.depth(65 * S) == 0
    timing.looked(65 * S, at_all=False)
    assert timing.depth(125 * S) == 0  # it did not examine the whole queue
    timing.looked(125 * S, at_all=True)
    assert timing.depth(185 * S) is None
    without = Timing(replace(LOOK, backfill=False), 0)
    without.changed()
    assert not without.backfills(30 * S)
    assert without.next(1 * S) == 60 * S
