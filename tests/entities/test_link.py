"""Links: fixed delays, shared capacity, slots; small cases for calculation by hand."""

from __future__ import annotations

from typing import Any

import pytest

from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.simulation import run

SECOND = 10**6
KINDS = ("K0", "K1", "K2", "K3")


def tree(**network: Any) -> Platform:
    """Return a platform with K0 and K1 below the root, and K2 and K3 below a site."""
    c0, c1, c2, c3 = (ClusterSpec(f"c{number}", 99, kind) for number, kind in enumerate(KINDS))
    return Platform(RouterSpec("root", (c0, c1, RouterSpec("site", (c2, c3)))), network=Network(**network))


def delivered(rows: list[tuple[int, int, int, int]], **network: Any) -> list[int]:
    """Return arrivals of data: submit, runtime of the sender, its kind and the receiver's."""
    tasks = Tasks.from_edges(
        counts=[2] * len(rows),
        runtime=[length for _, runtime, *_ in rows for length in (runtime, 1)],
        cores=1,
        kind=[kind for *_, one, other in rows for kind in (one, other)],
        kinds=KINDS,
        edges=[(2 * job, 2 * job + 1) for job in range(len(rows))],
    )
    workload = Workload.from_tasks(tasks, submit=[submit for submit, *_ in rows])
    record = run(workload, tree(**network), "fifo-job")
    assert record.tasks is not None
    return list(record.tasks.ready_us[1::2] // SECOND)


# -- fixed -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("power", "near", "far"), [(None, 12, 12), (0, 12, 12), (1, 12, 14), (2, 12, 18)])
def test_fixed_delays_may_grow_with_the_levels_of_the_tree(power: int | None, near: int, far: int) -> None:
    rows = [(0, 10, 0, 1), (0, 10, 0, 2), (0, 10, 2, 3)]
    assert delivered(rows, ccr="1/5", delay_levels_power=power) == [near, far, near]


def test_fixed_delays_do_not_slow_one_another() -> None:
    assert delivered([(0, 10, 0, 1)] * 5, ccr="1") == [20] * 5


# -- shared ------------------------------------------------------------------------------------------------------------


def test_two_transfers_over_one_link_take_twice_as_long() -> None:
    assert delivered([(0, 10, 0, 1), (0, 10, 0, 2)], kind="shared", ccr="1") == [30, 30]


def test_each_direction_has_its_own_capacity() -> None:
    assert delivered([(0, 10, 0, 1), (0, 10, 1, 0)], kind="shared", ccr="1") == [20, 20]


def test_rates_change_when_a_transfer_ends_or_begins() -> None:
    # From 10 alone: 5 of 10 done at 15, when the other starts with 4; half the rate each until 23; the last unit alone.
    assert delivered([(0, 10, 0, 1), (11, 4, 0, 1)], kind="shared", ccr="1") == [24, 23]


def test_a_delivery_between_two_ticks_counts_at_the_next() -> None:
    # 2.5 and 2 units at half the rate from 10: the second is done at 14, the half unit left of the first at 14.5.
    assert delivered([(0, 10, 0, 1), (2, 8, 0, 1)], kind="shared", ccr="1/4") == [15, 14]


def test_a_job_that_is_held_up_elsewhere_leaves_its_share_to_others() -> None:
    # Two transfers into c1 get half the rate each; the third shares the uplink of c0 with one of them and gets half.
    # With a cap of 1/4 no transfer delays another.
    rows = [(0, 8, 0, 1), (0, 8, 2, 1), (0, 8, 0, 3)]
    assert delivered(rows, kind="shared", ccr="1") == [24, 24, 24]
    assert delivered(rows, kind="shared", ccr="1", transfer_rate_cap="1/4") == [40, 40, 40]


def test_more_capacity_helps_up_to_the_cap_of_a_transfer() -> None:
    assert delivered([(0, 10, 0, 1)] * 2, kind="shared", ccr="1", capacity="2") == [20, 20]
    assert delivered([(0, 10, 0, 1)], kind="shared", ccr="1", capacity="2") == [20]
    assert delivered([(0, 10, 0, 1)], kind="shared", ccr="1", capacity="2", transfer_rate_cap="2") == [15]


@pytest.mark.parametrize("kind", ["ccr", "shared", "fifo"])
def test_all_that_comes_in_an_instant_is_there_before_the_one_decision(kind: Any) -> None:
    # The data of 0 serve 1 (short) and 2 (long) on one core: longest first must compare both.
    tasks = Tasks.from_edges(
        counts=[3], runtime=[2, 1, 5], cores=1, kind=[0, 1, 1], kinds=("A", "B"), edges=[(0, 1), (0, 2)]
    )
    root = RouterSpec("root", (ClusterSpec("a", 1, "A"), ClusterSpec("b", 1, "B")))
    record = run(Workload.from_tasks(tasks, submit=[0]), Platform(root, network=Network(kind=kind, ccr="1")), "lrtf")
    assert record.tasks is not None
    assert (record.tasks.start_us // SECOND).tolist() == [0, 9, 4]


@pytest.mark.parametrize("kind", ["shared", "fifo"])
def test_data_are_sent_once_to_each_cluster(kind: str) -> None:
    # 0 -> three tasks on one cluster and one on another: two transfers over the uplink of c0
    tasks = Tasks.from_edges(
        counts=[5],
        runtime=[6, 1, 1, 1, 1],
        cores=1,
        kind=[0, 1, 1, 1, 2],
        kinds=KINDS,
        edges=[(0, to) for to in (1, 2, 3, 4)],
    )
    record = run(Workload.from_tasks(tasks, submit=[0]), tree(kind=kind, ccr="1"), "fifo-job")
    assert record.tasks is not None
    ready = (record.tasks.ready_us // SECOND).tolist()
    assert ready == ([0, 18, 18, 18, 18] if kind == "shared" else [0, 12, 12, 12, 18])


@pytest.mark.parametrize("kind", ["ccr", "shared", "fifo"])
def test_transfers_that_start_together_do_not_join_one_that_is_under_way(kind: Any) -> None:
    # 0 ends at 3 and sends to 3, alone, at once; to 2, which also needs 1, when that ends, at 4: both take 2.
    tasks = Tasks.from_edges(
        counts=[4], runtime=[3, 4, 1, 1], cores=1, kind=[0, 0, 1, 1], kinds=KINDS, edges=[(0, 2), (1, 2), (0, 3)]
    )
    platform = tree(kind=kind, ccr="1/2", transfer_start="all", capacity="9", slots=9)
    record = run(Workload.from_tasks(tasks, submit=[0]), platform, "fifo-job")
    assert record.tasks is not None
    assert (record.tasks.ready_us // SECOND).tolist() == [0, 0, 6, 5]


# -- slots -------------------------------------------------------------------------------------------------------------


def test_transfers_use_a_slot_in_order_of_arrival() -> None:
    rows = [(0, 4, 0, 1), (0, 6, 0, 1), (0, 5, 0, 1)]
    # 4 to 8; the transfer that waits at 5 next, 8 to 13; then the one from 6, 13 to 19
    assert delivered(rows, kind="fifo", ccr="1") == [8, 19, 13]
    assert delivered(rows, kind="fifo", ccr="1", slots=2) == [8, 14, 10]
    assert delivered(rows, kind="fifo", ccr="1", slots=3) == [8, 12, 10]


def test_a_transfer_holds_every_link_of_its_path_source_side_first() -> None:
    # The second waits for the downlink of c1 while it holds its uplink, so the third, from the same cluster, waits too.
    rows = [(0, 10, 0, 1), (0, 10, 2, 1), (0, 10, 2, 3)]
    assert delivered(rows, kind="fifo", ccr="1") == [20, 30, 40]


def test_slots_of_the_other_direction_are_free() -> None:
    assert delivered([(0, 10, 0, 1), (0, 10, 1, 0)], kind="fifo", ccr="1") == [20, 20]
