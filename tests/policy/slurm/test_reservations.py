"""Reservations as in reservations.html: which jobs may use reserved nodes, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.site import Allowed, Preemption, Priority, Reservation, Scheduling, Site, SitePartition
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Status
from gridsim.simulation import simulate
from tests.policy.slurm.running import QUICK, SECOND, nodes, run

ANN = Allowed(only=("ann",))


def reserved(count: int, *reservations: Reservation, preemption: Preemption | None = None, high: bool = False) -> Site:
    names = tuple(node.name for node in nodes(count))
    parts = [SitePartition("all", names)] + [SitePartition("high", names, tier=3)] * high
    more: dict[str, Any] = {} if preemption is None else {"preemption": preemption}
    return Site(nodes(count), tuple(parts), "all", scheduling=QUICK, reservations=reservations, **more)


def window(start: int, end: int, *names: str, **more: Any) -> Reservation:
    return Reservation("r", names, start * SECOND, end * SECOND, **more)


def test_a_job_that_would_overlap_a_reservation_waits_and_a_shorter_one_starts() -> None:
    record, _ = run(reserved(1, window(50, 80, "n1")), submit=[0, 1], runtime=[60, 20], cores=[2, 2])
    assert record.start.tolist() == [80, 1]


def test_a_job_of_the_reservation_runs_inside_it_and_only_there() -> None:
    site = reserved(2, window(50, 90, "n2", users=ANN))
    record, slurm = run(
        site, submit=[0, 0], runtime=[30, 200], cores=[2, 4], user=["ann", "ann"], reservation=["r", ""]
    )
    assert record.start.tolist() == [50, 0]
    assert slurm.nodes_of(0) == {"n2": 2}


def test_a_job_that_is_too_long_for_its_reservation_never_runs_and_leaves_when_it_is_over() -> None:
    site = reserved(1, window(50, 90, "n1", users=ANN))
    record, _ = run(
        site,
        submit=[0, 60],
        runtime=[10, 31],
        estimate=[41, 31],
        cores=[1, 1],
        user=["ann", "ann"],
        reservation=["r", "r"],
    )
    assert record.status.tolist() == [Status.unadmitted, Status.unadmitted]
    # A job that would have fitted if it had been examined in time.
    record, _ = run(site, submit=[0, 1], runtime=[30, 30], cores=[4, 4], user=["ann"] * 2, reservation=["r", "r"])
    assert record.start[0] == 50
    assert record.status[1] == Status.cancelled


def test_a_reservation_may_let_its_jobs_continue_without_it() -> None:
    site = reserved(1, window(50, 90, "n1", users=ANN, flags=frozenset(["NO_HOLD_JOBS_AFTER"])))
    record, _ = run(site, submit=[0, 1], runtime=[30, 30], cores=[4, 4], user=["ann"] * 2, reservation=["r", "r"])
    assert record.start.tolist() == [50, 90]


def test_a_job_that_is_held_while_its_reservation_ends_continues_without_it() -> None:
    site = reserved(1, window(0, 20, "n1", users=ANN, flags=frozenset(["NO_HOLD_JOBS_AFTER"])))
    record, _ = run(site, submit=[0], runtime=[5], cores=[4], user=["ann"], reservation=["r"], begin=[30])
    assert record.start.tolist() == [30]


def test_a_job_that_is_too_long_for_a_reservation_continues_without_it_when_that_is_over() -> None:
    site = reserved(1, window(50, 90, "n1", users=ANN, flags=frozenset(["NO_HOLD_JOBS_AFTER"])))
    record, _ = run(site, submit=[0, 95], runtime=[60, 60], cores=[4, 4], user=["ann"] * 2, reservation=["r", "r"])
    assert record.start[0] == 90
    assert record.status[1] == Status.unadmitted  # the reservation is over
    assert record.reasons is not None
    assert record.reasons.refused[1].reason == "ReservationDeleted"


def test_a_job_that_is_not_admitted_is_refused_by_user_and_by_account() -> None:
    both = window(10, 90, "n1", users=Allowed(never=("bob",)), accounts=Allowed(only=("lab",)))
    record, _ = run(
        reserved(1, both),
        submit=[0] * 4,
        runtime=[5] * 4,
        cores=[1] * 4,
        user=["ann", "bob", "ann", "ann"],
        account=["lab", "lab", "other", "lab"],
        reservation=["r", "r", "r", "unheard-of"],
    )
    assert record.status.tolist() == [0, Status.unadmitted, Status.unadmitted, Status.unadmitted]


def test_without_reservations_of_the_site_requests_for_one_are_ignored() -> None:
    record, _ = run(reserved(1), submit=[0], runtime=[5], cores=[1], reservation=["r"])
    assert record.start.tolist() == [0]


def test_of_a_node_of_which_some_cores_are_reserved_the_others_are_for_all() -> None:
    site = reserved(1, window(0, 500, "n1", users=ANN, cores=(("n1", 1),)))
    record, _ = run(
        site,
        submit=[0, 0, 0, 1],
        runtime=[50, 50, 50, 20],
        cores=[2, 1, 1, 1],
        user=["bob", "bob", "bob", "ann"],
        reservation=["", "", "", "r"],
    )
    assert record.start.tolist() == [0, 0, 50, 1]


def test_a_daily_reservation_comes_again() -> None:
    day = 86_400
    daily = window(3600, 7200, "n1", period=day * SECOND)
    record, _ = run(reserved(1, daily), submit=[0, 0, day], runtime=[7000, 90_000, 7000], cores=[4, 4, 4])
    assert record.start[::2].tolist() == [7200, day + 7200]
    assert record.status[1] == Status.unadmitted  # longer than the time between two repetitions


def test_a_flexible_reservation_does_not_bind_those_that_request_it() -> None:
    site = reserved(2, window(50, 90, "n1", users=ANN, flags=frozenset(["FLEX"])))
    record, slurm = run(
        site, submit=[0, 0], runtime=[100, 100], cores=[8, 4], user=["ann", "bob"], reservation=["r", ""]
    )
    assert record.start.tolist() == [0, 100]
    assert slurm.nodes_of(0) == {"n1": 4, "n2": 4}


def test_a_magnetic_reservation_takes_jobs_that_do_not_name_it() -> None:
    site = reserved(2, window(0, 90, "n1", users=ANN, flags=frozenset(["MAGNETIC"])))
    record, slurm = run(site, submit=[0, 0, 1], runtime=[60, 60, 60], cores=[4, 4, 4], user=["ann", "ann", "bob"])
    assert record.start.tolist() == [0, 0, 60]
    assert {*slurm.nodes_of(0), *slurm.nodes_of(1)} == {"n1", "n2"}


def test_maintenance_takes_nodes_from_other_reservations() -> None:
    own = Reservation("own", ("n1",), 0, 200 * SECOND, users=ANN)
    repair = window(50, 100, "n1", flags=frozenset(["MAINT"]))
    record, _ = run(
        reserved(1, own, repair),
        submit=[0, 0],
        runtime=[40, 60],
        cores=[4, 4],
        user=["ann"] * 2,
        reservation=["own", "own"],
    )
    assert record.start.tolist() == [0, 100]


def test_a_reservation_that_no_job_uses_is_deleted_after_a_while() -> None:
    site = reserved(1, window(10, 1000, "n1", users=ANN, idle=300 * SECOND))
    record, _ = run(site, submit=[0], runtime=[50], cores=[4], user=["bob"])
    assert record.start.tolist() == [310]
    record, _ = run(site, submit=[0, 0], runtime=[50, 40], cores=[4, 4], user=["bob", "ann"], reservation=["", "r"])
    assert record.start.tolist() == [350, 10]


def test_no_job_keeps_clear_of_a_reservation_before_it_is_made() -> None:
    site = reserved(1, window(50, 80, "n1", known=20 * SECOND))
    record, _ = run(site, submit=[0, 25], runtime=[60, 60], cores=[2, 2])
    assert record.start.tolist() == [0, 80]


def test_a_job_that_an_endless_reservation_leaves_no_node_for_is_cancelled_when_it_begins() -> None:
    site = reserved(1, Reservation("broken", ("n1",), 50 * SECOND, NEVER))
    record, _ = run(site, submit=[0, 1], runtime=[40, 30], cores=[4, 4])
    assert record.status.tolist() == [Status.completed, Status.cancelled]


def test_jobs_of_a_reservation_are_first_and_do_not_hold_others_back() -> None:
    site = reserved(2, window(50, 90, "n2", users=ANN))
    record, _ = run(
        site,
        submit=[0, 0, 0],
        runtime=[100, 30, 30],
        cores=[1, 4, 1],
        user=["ann"] * 3,
        reservation=["", "r", ""],
    )
    assert record.start.tolist() == [0, 50, 0]


SHOWN = """ReservationName=repair StartTime=2026-11-21T08:00:00 EndTime=2026-11-21T08:30:00 Duration=00:30:00
   Nodes=n1 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=4
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

"""


def test_a_file_of_reservations_needs_an_epoch_and_so_does_a_date_of_the_boot(tmp_path: Path) -> None:
    conf, shown = tmp_path / "slurm.conf", tmp_path / "reservations.txt"
    conf.write_text("NodeName=n1 CPUs=4\nPartitionName=all Nodes=n1\n")
    shown.write_text(SHOWN)
    jobs = Workload.from_columns(submit=[0], runtime=[2000], cores=[1])
    platform = Slurm(conf=str(conf)).resolved().platform()
    policy = f"slurm?conf={conf}&reservations={shown}&timezone=Europe/Berlin"
    with pytest.raises(InputError, match="give epoch, the Unix time"):
        simulate(jobs, policy=policy, platform=platform)
    with pytest.raises(InputError, match="give epoch") as caught:
        simulate(jobs, policy=f"slurm?conf={conf}&boot=2026-11-21T06:53:40", platform=platform)
    assert caught.value.field == "boot"
    # 07:00 UTC is 08:00 in Berlin; the simulation begins at 06:30 UTC.
    policy += "&epoch=1795242600&boot=2026-11-21T07:29:59"
    record = simulate(jobs, policy=policy, platform=platform).record
    assert 3600 <= record.start[0] < 3660
    assert "epoch=1795242600" in repr(Slurm(conf=str(conf), epoch=1795242600))


def test_a_run_ends_if_the_job_of_a_reservation_was_lost_and_another_is_requeued_without_end() -> None:
    flex = Reservation("flex", ("n1",), 60 * SECOND, 100 * SECOND, users=ANN, flags=frozenset(["FLEX"]))
    again = Reservation("again", ("n2",), 10 * SECOND, 15 * SECOND, period=100 * SECOND)
    columns = {"submit": [70, 80], "runtime": [33, 34], "estimate": [33, 34], "cores": [4, 8], "user": ["ann"] * 2}
    record, _ = run(reserved(2, flex, again), reservation=["", "flex"], **columns)
    assert record.start[0] == 70
    assert record.status[1] == Status.cancelled


def test_a_job_that_requests_a_reservation_grows_older_from_its_beginning() -> None:
    order = Priority(age=1000, oldest=1000 * SECOND, size=100, period=SECOND)
    site = replace(reserved(1, window(100, 400, "n1", users=ANN)), priority=order)
    columns = {"submit": [0, 90], "runtime": [50, 50], "estimate": [50, 50], "cores": [3, 4], "user": ["ann"] * 2}
    record, _ = run(site, reservation=["r", "r"], **columns)
    assert record.start[1] < record.start[0], "the larger one, though the other one came long before"


def test_a_requeued_job_follows_earlier_submissions() -> None:
    preemption = Preemption("partition", "REQUEUE", delay=15 * SECOND)
    columns = {"submit": [0, 5, 10], "runtime": [50, 50, 30], "estimate": [50, 50, 30], "cores": [4, 4, 4]}
    record, slurm = run(reserved(1, preemption=preemption, high=True), partition=["all", "all", "high"], **columns)
    assert [request for request, _, _, _ in slurm.begun] == [0, 2, 1, 0]
    assert record.start[1] < record.start[0]


@st.composite
def mixed(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(2, 14))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    runtime = column(st.integers(1, 60))
    return {
        "submit": sorted(column(st.integers(0, 80))),
        "runtime": runtime,
        "estimate": [time + draw(st.integers(0, 20)) for time in runtime],
        "cores": column(st.integers(1, 9)),
        "partition": column(st.sampled_from(["all", "high", "all,high"])),
        "user": column(st.sampled_from(["ann", "bob"])),
        "reservation": column(st.sampled_from(["", "", "r", "some", "flex"])),
    }


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(mixed(), st.sampled_from([None, Preemption("partition", "REQUEUE", delay=15 * SECOND)]))
def test_no_other_holds_what_is_reserved(columns: dict[str, Any], preemption: Preemption | None) -> None:
    whole = window(40, 90, "n1", users=ANN)
    some = Reservation("some", ("n2",), 20 * SECOND, 120 * SECOND, users=ANN, cores=(("n2", 2),))
    flex = Reservation("flex", ("n3",), 60 * SECOND, 100 * SECOND, users=ANN, flags=frozenset(["FLEX"]))
    again = Reservation("again", ("n4",), 10 * SECOND, 15 * SECOND, period=100 * SECOND)
    record, slurm = run(reserved(4, whole, some, flex, again, preemption=preemption, high=True), **columns)
    of_user, asked = columns["user"], columns["reservation"]
    on_some: list[tuple[float, float, int]] = []
    for request, began, held, _ in slurm.begun:
        ends = [at for other, at, _ in slurm.ended_at if other == request and at > began]
        end = min([record.end[request], *ends])
        limit = began + columns["estimate"][request]
        name = asked[request]
        assert not name or of_user[request] == "ann"
        if name in ("r", "some"):
            each = whole if name == "r" else some
            assert set(held) <= set(each.nodes)
            assert each.start / SECOND <= began
            assert limit <= each.end / SECOND
        if "n1" in held and name != "r":
            assert limit <= 40 or began >= 90
        if "n3" in held and name != "flex":
            assert limit <= 60 or began >= 100
        if "n4" in held:
            assert all(limit <= 10 + 100 * k or began >= 15 + 100 * k for k in range(20))
        if "n2" in held and name != "some" and not (limit <= 20 or began >= 120):
            on_some.append((began, end, held["n2"]))
    for at, _, _ in on_some:
        if 20 <= at < 120:
            assert sum(cores for began, end, cores in on_some if began <= at < end) <= 2


def test_a_job_that_no_gap_between_reservations_is_long_enough_for_is_refused() -> None:
    names = tuple(node.name for node in nodes(2))
    halves = [Reservation("r", ("n1",), 0, 100 * SECOND, users=ANN, period=200 * SECOND)]
    halves += [Reservation("s", ("n2",), 100 * SECOND, 200 * SECOND, users=ANN, period=200 * SECOND)]
    part = Reservation("t", names[:1], 0, NEVER, users=ANN, cores=(("n1", 1),))
    record, _ = run(reserved(2, *halves), submit=[0, 1, 1], runtime=[10, 10, 150], cores=[8, 4, 4])
    assert record.start[1] == 1
    assert record.status.tolist() == [Status.unadmitted, Status.completed, Status.unadmitted]
    record, _ = run(reserved(1, part), submit=[0, 1], runtime=[10, 10], cores=[4, 3])
    assert record.status.tolist() == [Status.unadmitted, Status.completed]
    assert record.reasons is not None
    assert record.reasons.refused[0].reason == "ReqNodeNotAvail"


def test_a_job_without_capacity_in_any_cycle_leaves_in_the_end_and_the_next_one_runs() -> None:
    # The cycle at 9.5 s of each 11 s delays the one that would start the first job at 10 s, until it is too late.
    often = 11 * SECOND
    gap = Reservation("r", ("n1",), 0, 10 * SECOND, users=ANN, period=often)
    other = Reservation("s", ("n2",), 0, round(9.5 * SECOND), users=ANN, period=often)
    timing = Scheduling(backfill=False, full_interval=86_400 * SECOND, least_interval=SECOND, batch_delay=0)
    site = replace(reserved(2, gap, other), scheduling=timing, priority=Priority(oldest=60 * SECOND))
    record, _ = run(site, submit=[1, 2], runtime=[1, 1], cores=[8, 4])
    assert record.status.tolist() == [Status.cancelled, Status.completed]
    assert 60 < record.start[1] < 120
    assert record.reasons is not None
    assert record.reasons.refused[0].reason == "ReqNodeNotAvail"


def test_cores_that_flex_jobs_hold_beyond_their_reservation_open_no_other_one() -> None:
    # scontrol(1), FLEX: they "use any resources inside and/or outside of the reservation". This opens no more cores of
    # another reservation on the node to other jobs.
    flags, cores = frozenset(["FLEX"]), (("n1", 2),)
    flex = Reservation("flex", ("n1",), 10 * SECOND, 300 * SECOND, users=ANN, flags=flags, cores=cores)
    other = Reservation("other", ("n1",), 10 * SECOND, 300 * SECOND, users=Allowed(only=("bob",)), cores=cores)
    site = replace(reserved(1, flex, other), nodes=nodes(1, cores=8))
    columns: dict[str, Any] = {"submit": [20, 30, 35], "runtime": [100, 50, 20], "estimate": [100, 50, 20]}
    record, _ = run(site, **columns, cores=[5, 2, 1], user=["ann", "cy", "cy"], reservation=["flex", "", ""])
    assert record.start.tolist() == [20, 120, 35]


def test_a_grid_of_sites_where_no_job_can_start_any_more_ends() -> None:
    # The node is free for 30 s in 100, which the jobs need; cycles 80 s apart never meet that time.
    again = Reservation("again", ("n1",), 90 * SECOND, 160 * SECOND, users=Allowed(only=("bob",)), period=100 * SECOND)
    rare = replace(QUICK, backfill=False, full_interval=100 * SECOND, least_interval=80 * SECOND)
    site = replace(reserved(1, again), scheduling=rare, priority=Priority(oldest=100 * SECOND))
    jobs = Workload.from_columns(submit=[100, 100], runtime=[30, 30], cores=[4, 4])
    two = Platform(RouterSpec("grid", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    for platform, count in ((site.platform(), 1), (two, 2)):
        come = jobs.select(slice(count))
        record = simulate(come, platform=platform, policy=Slurm(site=site, boot=0.0), balancer="round-robin").record
        assert record.status.tolist() == [Status.cancelled] * count
