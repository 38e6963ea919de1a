"""The Slurm-like scheduler: schedules calculated by hand, and properties of every workload."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.site import Association, Node, Priority, Qos, Reservation, Scheduling, Site, SitePartition
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy
from gridsim.policy.protocols import Start
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record, Status
from gridsim.simulation import simulate
from tests.oracles.slurm.run import schedule

SECOND = 1_000_000
QUICK = Scheduling(interval=SECOND, resolution=1, full_interval=5 * SECOND, batch_delay=0, queue_depth=500)


class Watched(Slurm):
    """Scheduler that provides its nodes after a run, and compares its cycles with a search of the whole queue."""

    seen: ClassVar[list[Slurm]] = []

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        super().setup(cluster, rng)
        self.seen.append(self)

    def _backfill(self, now: int) -> list[Start]:
        expected = [request for request, start in self.expected_starts(now).items() if start == now]
        started = super()._backfill(now)
        # A cycle without its search shortcuts has the same result.
        assert sorted(start.request for start in started) == expected
        return started


def run(site: Site, *, names: dict[str, tuple[str, ...]] | None = None, **columns: Any) -> tuple[Record, Slurm]:
    """Return the record of jobs on a site, and the scheduler."""
    labels = {
        name: columns.pop(name)
        for name in list(columns)
        if name not in ("submit", "runtime", "cores", "estimate", "job")
    }
    jobs = Workload.from_columns(**columns, labels=labels)
    jobs = replace(jobs, names=names or {})
    record = simulate(jobs, platform=site.platform(), policy=Watched(site=site, boot=0.0), overrun="extend").record
    return record, Watched.seen.pop()


def test_a_blocked_job_holds_back_its_partition_until_backfill_lets_what_does_no_harm_pass() -> None:
    site = Site.of(nodes=2, cores=4, scheduling=QUICK)
    # 0 takes node 1 for 100 s; 1 needs both nodes and waits; 2 would end after that; 3 ends before.
    record, _ = run(
        site, submit=[0, 1, 2, 3], runtime=[100, 10, 200, 50], estimate=[100, 10, 200, 50], cores=[4, 8, 2, 2]
    )
    assert record.start.tolist() == [0, 100, 110, 3]


def test_reservations_take_whole_nodes() -> None:
    site = Site.of(nodes=2, cores=4, scheduling=QUICK)
    # 2 waits for 2 cores of node 1 at 100 s, and its reservation takes the whole node. 3 would fit next to it, but can
    # start before 100 s only if it ends by then.
    record, _ = run(
        site, submit=[0, 0, 1, 2], runtime=[100, 300, 10, 50], estimate=[100, 300, 10, 50], cores=[3, 4, 2, 1]
    )
    assert record.start.tolist() == [0, 0, 100, 2]
    record, _ = run(
        site, submit=[0, 0, 1, 2], runtime=[100, 300, 10, 150], estimate=[100, 300, 10, 150], cores=[3, 4, 2, 1]
    )
    assert record.start.tolist() == [0, 0, 100, 100]


def test_a_job_is_placed_on_the_fullest_node_of_the_smallest_consecutive_set() -> None:
    site = Site.of(nodes=6, cores=4, scheduling=QUICK)
    # Node 3 is full; nodes 1 and 2 have 8 cores, nodes 4 to 6 have 12, then 5 of them less.
    names = {"partition": ("batch",)}
    _, slurm = run(
        site,
        names=names,
        submit=[0, 0, 0, 1, 2, 3],
        runtime=[99] * 6,
        cores=[8, 4, 3, 2, 1, 6],
        nodes=[2, 1, 0, 0, 0, 0],
    )
    assert [slurm.nodes_of(row) for row in range(6)] == [
        {"n1": 4, "n2": 4},
        {"n3": 4},
        {"n4": 3},
        {"n5": 2},
        {"n4": 1},
        {"n5": 2, "n6": 4},
    ]


def test_the_lightest_nodes_that_will_do_are_used_first() -> None:
    nodes = (Node("fat", 8, weight=9), Node("thin1", 4), Node("thin2", 4))
    site = Site(nodes, (SitePartition("all", ("fat", "thin1", "thin2")),), "all", scheduling=QUICK)
    _, slurm = run(site, submit=[0, 1, 2], runtime=[99] * 3, cores=[4, 4, 2])
    assert [slurm.nodes_of(row) for row in range(3)] == [{"thin1": 4}, {"thin2": 4}, {"fat": 2}]


def test_an_exclusive_job_takes_whole_empty_nodes() -> None:
    site = Site.of(nodes=2, cores=4, scheduling=QUICK)
    record, slurm = run(site, submit=[0, 1, 2], runtime=[10, 10, 10], cores=[1, 1, 1], exclusive=[0, 1, 0])
    assert [slurm.nodes_of(row) for row in range(3)] == [{"n1": 1}, {"n2": 4}, {"n1": 1}]
    assert record.start.tolist() == [0, 1, 2]


def test_memory_is_scheduled_where_the_site_says_so() -> None:
    needs = {"submit": [0, 1], "runtime": [10, 10], "cores": [1, 1], "memory_mb": [700, 700]}
    for memory, second in ((True, 10), (False, 1)):
        record, _ = run(_with_memory(memory), **needs)
        assert record.start.tolist() == [0, second]


def _with_memory(scheduled: bool) -> Site:
    parts = (SitePartition("all", ("n1",)),)
    return Site((Node("n1", 4, 1000),), parts, "all", scheduling=QUICK, memory=scheduled)


def test_a_users_job_limit_lets_others_pass() -> None:
    people = (Association("root", "ann", most_jobs=1), Association("root", "bob"))
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, associations=people)
    record, _ = run(
        site, names={"user": ("ann", "bob")}, submit=[0, 1, 2], runtime=[10] * 3, cores=[1] * 3, user=[0, 0, 1]
    )
    assert record.start.tolist() == [0, 10, 2]


def test_limits_of_groups_qos_and_arrays_hold() -> None:
    people = (Association("lab", parent="root", group_cores=4), Association("lab", "ann"), Association("lab", "bob"))
    levels = (Qos("high", 9, user_cores=2),)
    site = Site.of(nodes=2, cores=4, scheduling=QUICK, associations=people, qos=levels)
    names = {"user": ("ann", "bob"), "account": ("lab",), "qos": ("high", "low")}
    same = {"submit": [0, 0, 0], "runtime": [10] * 3, "cores": [2] * 3, "account": [0] * 3}
    record, _ = run(site, names=names, **same, user=[0, 1, 1], qos=[1, 1, 1])
    assert record.start.tolist() == [0, 0, 10]
    record, _ = run(site, names=names, **same, user=[0, 0, 1], qos=[0, 0, 0])
    assert record.start.tolist() == [0, 10, 0]
    record, _ = run(site, **same | {"account": [-1] * 3}, array=[7, 7, -1], array_limit=[1, 1, -1])
    assert record.start.tolist() == [0, 10, 0]


def test_jobs_above_limits_are_refused_when_they_come() -> None:
    people = (Association("root", "ann", most_submitted=2, most_cores=3),)
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, associations=people)
    record, _ = run(site, names={"user": ("ann",)}, submit=[0] * 4, runtime=[9] * 4, cores=[4, 1, 1, 1], user=[0] * 4)
    assert record.status.tolist() == [Status.unadmitted, Status.completed, Status.completed, Status.unadmitted]


class Asked(Slurm):
    """Scheduler that computes each quote twice."""

    def quote(self, request: int, now: int) -> Any:
        assert super().quote(request, now) == super().quote(request, now)
        return super().quote(request, now)


def test_requesting_a_quote_again_rejects_no_job() -> None:
    people = (Association("root", "ann", most_submitted=1),)
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, associations=people)
    jobs = Workload.from_columns(submit=[0, 20, 21], runtime=[9] * 3, cores=[4] * 3, labels={"user": [0] * 3})
    jobs = replace(jobs, names={"user": ("ann",)})
    record = simulate(jobs, platform=site.platform(), policy=Asked(site=site, boot=0.0)).record
    assert record.status.tolist() == [Status.completed, Status.completed, Status.unadmitted]


def test_holds_dependencies_and_cancellations_are_kept() -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK)
    record, _ = run(
        site,
        job=[11, 12, 13, 14],
        submit=[0, 1, 2, 3],
        runtime=[50, 5, 5, 5],
        cores=[2, 1, 1, 4],
        after=[-1, 11, -1, -1],
        begin=[-1, -1, 20, -1],
        withdrawn=[-1, -1, -1, 10],
    )
    assert record.start[:3].tolist() == [0, 50, 22]
    assert record.status[3] == Status.cancelled


def test_a_job_that_may_have_few_nodes_gets_the_widest_ones() -> None:
    uneven = (Node("n1", 3), Node("n2", 1), Node("n3", 3))
    parts = (SitePartition("all", ("n1", "n2", "n3"), most_nodes=2),)
    record, slurm = run(Site(uneven, parts, "all", scheduling=QUICK), submit=[0], runtime=[5], cores=[6])
    assert record.start[0] == 0
    assert slurm.nodes_of(0) == {"n1": 3, "n3": 3}


def test_no_job_waits_for_a_job_that_was_refused() -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK)
    record, _ = run(site, job=[11, 12, 13], submit=[0, 1, 2], runtime=[5] * 3, cores=[4, 5, 1], after=[-1, -1, 12])
    assert record.status[1] == Status.rejected
    assert record.start[2] == 5
    site = replace(site, partitions=(replace(site.partitions[0], most_nodes=1),))
    columns = {"submit": [0, 1], "runtime": [5] * 2, "cores": [2, 1], "nodes": [2, -1]}
    record, _ = run(site, job=[11, 12], after=[-1, 11], **columns)
    assert record.status[0] == Status.unadmitted
    assert record.start[1] == 1


def test_a_cycle_that_was_due_over_an_empty_queue_starts_no_later_job_at_once() -> None:
    # The end at 10.05 s is processed 0.1 s after that at 10 (sched_min_interval), when no job waits. The job of 20.3 s
    # is examined in the next whole second of Slurm's clock (batch_sched_delay counts from the previous cycle).
    quick = replace(
        QUICK, backfill=False, full_interval=60 * SECOND, batch_delay=3 * SECOND, least_interval=SECOND // 10
    )
    site = Site.of(nodes=1, cores=4, scheduling=quick)
    columns = {"submit": [0, 0, 20.3, 22.5], "runtime": [10, 10.05, 1, 1], "cores": [1, 1, 1, 1]}
    jobs = Workload.from_columns(**columns)
    for record in (run(site, **columns)[0], schedule(jobs, site, boot=0.0).record):
        assert record.start[2:].tolist() == [21, 25]  # the last cycle was at the end of the third, at 22


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("instant", ["batched", "per-event"])
def test_no_job_waits_any_longer_for_a_job_that_is_refused_when_it_arrives(wide: bool, instant: Any) -> None:
    # sbatch(1): "afterany … after the specified jobs have terminated"; a job that does not exist has terminated.
    site = Site.of(nodes=1, cores=4, scheduling=QUICK)
    site = replace(site, partitions=(replace(site.partitions[0], longest=60 * SECOND),))
    jobs = Workload.from_columns(
        job=[11, 12],
        submit=[0, 5],
        runtime=[5, 5],
        estimate=[5, 5 if wide else 61],
        cores=[1, 5 if wide else 1],
        labels={"after": [12, -1]},
    )
    record = simulate(jobs, platform=site.platform(), policy=Slurm(site=site, boot=0.0), instant=instant).record
    assert record.status.tolist() == [Status.completed, Status.rejected if wide else Status.unadmitted]
    assert record.start[0] == 5
    if instant == "batched":
        assert schedule(jobs, site, boot=0.0).record.start[0] == 5


def test_a_job_that_is_cancelled_while_it_waits_for_another_one_does_not_run_when_that_ends() -> None:
    site = Site.of(nodes=1, cores=4, scheduling=QUICK)
    columns = {"submit": [0, 1], "runtime": [20, 5], "cores": [1, 1], "after": [-1, 1], "withdrawn": [-1, 5]}
    record, _ = run(site, job=[1, 2], **columns)
    assert record.status.tolist() == [Status.completed, Status.cancelled]


def test_a_reservation_keeps_nodes_free() -> None:
    closed = (Reservation("maintenance", ("n1",), 20 * SECOND, 40 * SECOND),)
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, reservations=closed)
    record, _ = run(site, submit=[0, 1], runtime=[15, 30], cores=[2, 2])
    assert record.start.tolist() == [0, 40]


def test_partitions_share_nodes_and_the_higher_tier_comes_first() -> None:
    parts = (SitePartition("low", ("n1", "n2")), SitePartition("high", ("n2",), tier=5, longest=100 * SECOND))
    site = Site((Node("n1", 4), Node("n2", 4)), parts, "low", scheduling=QUICK)
    names = {"partition": ("low", "high")}
    columns = {"submit": [0, 1, 1, 2], "runtime": [30] * 4, "cores": [8, 4, 4, 4], "partition": [0, 0, 1, 1]}
    record, slurm = run(site, names=names, **columns, estimate=[30, 30, 30, 200])
    assert record.start[:3].tolist() == [0, 30, 30]
    assert slurm.nodes_of(2) == {"n2": 4}
    assert record.status[3] == Status.unadmitted  # above MaxTime


def test_fair_share_counts_what_was_used_and_is_looked_at_once_in_a_period() -> None:
    people = (Association("root", "ann"), Association("root", "bob"))
    order = Priority(fair_share=1000, period=60 * SECOND)
    site = Site.of(nodes=1, cores=4, scheduling=QUICK, priority=order, associations=people)
    # Ann uses the machine; both submit within the first period, when no use has been counted.
    record, _ = run(
        site,
        names={"user": ("ann", "bob")},
        submit=[1, 2, 3, 61, 62],
        runtime=[50, 30, 30, 30, 30],
        cores=[4] * 5,
        user=[0, 0, 1, 0, 1],
    )
    assert record.start.tolist() == [1, 51, 81, 141, 111]


def test_a_cluster_of_another_size_is_refused() -> None:
    site = Site.of(nodes=1, cores=4)
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    with pytest.raises(InputError, match="has 8 cores; the nodes of the site have 4"):
        simulate(jobs, platform=Platform.single(8), policy=Slurm(site=site))


def test_slurms_orderings_work_with_the_rules_of_the_house() -> None:
    jobs = Workload.from_columns(
        submit=[0, 1, 2], runtime=[600, 30, 30], cores=[4, 4, 4], labels={"user": [0, 0, 1], "account": [0, 0, 0]}
    )
    record = simulate(jobs, platform=Platform.single(4), policy="easy?ordering=fair-tree&period=60").record
    assert record.start.tolist() == [0, 630, 600]
    with pytest.raises(InputError, match="expected a slurm"):
        policy("easy?ordering=multifactor&conf=nowhere.conf")


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 24))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=count, max_size=count))

    runtime = column(st.integers(1, 60))
    return {
        "submit": column(st.integers(0, 90)),
        "runtime": runtime,
        "estimate": [time + extra for time, extra in zip(runtime, column(st.integers(-5, 60)), strict=True)],
        "cores": column(st.integers(1, 14)),
        "nodes": column(st.sampled_from([-1, -1, 1, 2])),
        "memory_mb": column(st.sampled_from([-1, 10, 60])),
        "exclusive": column(st.sampled_from([0, 0, 0, 1])),
        "user": column(st.integers(0, 2)),
        "partition": column(st.integers(0, 1)),
        "begin": column(st.sampled_from([-1, -1, 30])),
        "array": column(st.sampled_from([-1, 5])),
        "array_limit": [2] * count,
    }


def _site() -> Site:
    nodes = (*(Node(f"thin{number}", 4, 100) for number in range(3)), Node("fat", 8, 200, weight=3))
    names = tuple(node.name for node in nodes)
    people = [Association("root", name, most_jobs=most) for name, most in (("ann", 3), ("bob", None), ("cy", None))]
    return Site(
        nodes,
        (SitePartition("all", names), SitePartition("some", names[2:], tier=2)),
        "all",
        scheduling=replace(QUICK, interval=7 * SECOND, resolution=5 * SECOND),
        priority=Priority(age=50, fair_share=500, size=100, period=20 * SECOND, half_life=60 * SECOND),
        associations=tuple(people),
        reservations=(Reservation("closed", ("thin1",), 50 * SECOND, 90 * SECOND),),
        memory=True,
    )


@pytest.mark.long
@settings(max_examples=60)
@given(workloads())
def test_no_node_is_overfull_no_limit_broken_and_no_job_starts_too_soon(columns: dict[str, Any]) -> None:
    columns["estimate"] = [max(1, estimate) for estimate in columns["estimate"]]
    site = _site()
    names = {"user": ("ann", "bob", "cy"), "partition": ("all", "some")}
    record, slurm = run(site, names=names, **columns)
    jobs = record.workload
    size = {node.name: node for node in site.nodes}
    ran = np.flatnonzero(record.ran)
    assert set(record.status.tolist()) <= {Status.completed, Status.unadmitted}
    for row in ran.tolist():
        held = slurm.nodes_of(row)
        assert set(held) <= set(site.partitions[jobs.labels["partition"][row]].nodes)
        if jobs.labels["nodes"][row] > 0:
            assert len(held) == jobs.labels["nodes"][row]
        if jobs.labels["exclusive"][row]:
            assert all(cores == size[name].cores for name, cores in held.items())
        else:
            assert sum(held.values()) == max(jobs.cores[row], jobs.labels["nodes"][row])
        assert record.start[row] >= record.submit[row] + max(jobs.labels["begin"][row], 0)
        # No job starts on a closed node if its expected run time overlaps the closure.
        if "thin1" in held:
            expected = record.start[row] + jobs.estimate[row] / SECOND
            assert expected <= 50 or record.start[row] >= 90
    for instant in record.start_us[ran].tolist():
        here = ran[(record.start_us[ran] <= instant) & (record.end_us[ran] > instant)].tolist()
        cores, memory, alone, count = Counter(), Counter(), Counter(), Counter()  # type: ignore[var-annotated]
        for row in here:
            for name, used in slurm.nodes_of(row).items():
                cores[name] += used
                memory[name] += max(jobs.labels["memory_mb"][row], 0)
                alone[name] += jobs.labels["exclusive"][row]
                count[name] += 1
        assert all(cores[name] <= size[name].cores and memory[name] <= size[name].memory for name in cores)
        assert all(count[name] == 1 for name in alone if alone[name])
        assert sum(jobs.labels["user"][row] == 0 for row in here) <= 3
        assert sum(jobs.labels["array"][row] == 5 for row in here) <= 2


def test_the_compiled_engine_is_refused_and_auto_takes_simpy() -> None:
    jobs = Workload.from_columns(submit=[0, 1, 1], runtime=[5, 5, 5], cores=[2, 2, 8])
    site = Site.of(nodes=2, cores=4)
    how: dict[str, Any] = {"policy": Slurm(site=site, boot=0.0), "platform": Platform.single(8)}
    why = "compiled cannot run this: Slurm's scheduler requires the engine simpy; use auto or simpy"
    with pytest.raises(InputError, match=why) as error:
        simulate(jobs, engine="compiled", **how)
    assert error.value.field == "engine"
    expected = schedule(jobs, site, boot=0.0).record.start.tolist()
    for engine in ("auto", "simpy"):
        assert simulate(jobs, engine=engine, **how).record.start.tolist() == expected
