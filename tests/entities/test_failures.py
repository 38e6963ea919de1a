"""Nodes that fail during a run: their jobs wait again, and no scheduler starts work on them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.errors import InputError, PolicyError
from gridsim.metrics.availability import down_seconds, runs_of, spent_in_runs
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import FailureModel, Failures, Machines
from gridsim.model.moldable import Moldable
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.speedup import Amdahl, Linear
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.options import Run
from gridsim.policy.protocols import Capabilities
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Record

FOUR = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 2})])


def _jobs(**columns: Any) -> gs.Workload:
    return gs.Workload.from_columns(**columns)


def _run(jobs: gs.Workload, policy: Any, failures: Failures, platform: gs.Platform = FOUR, **options: Any) -> Record:
    return gs.simulate(jobs, platform=platform, policy=policy, options=Run(failures=failures, **options)).record


def _runs(record: Record) -> list[tuple[int, float, float, str]]:
    row, start, end, reason, _ = runs_of(record)
    return [*zip(row.tolist(), (start / 1e6).tolist(), (end / 1e6).tolist(), reason, strict=True)]


def test_a_node_that_never_returns_leaves_jobs_waiting() -> None:
    jobs = _jobs(submit=[0, 1], runtime=[10, 10], cores=[8, 8])
    record = _run(jobs, "easy", Failures([(["n-0"], 5, math.inf)]))
    assert record.status_names.tolist() == ["waiting", "waiting"]
    assert record.interruptions is not None
    assert record.interruptions.start_us.tolist() == [0]
    assert record.interruptions.end_us.tolist() == [5_000_000]


def test_the_run_ends_although_failures_have_no_end() -> None:
    jobs = _jobs(submit=[0], runtime=[100], cores=[2])
    record = _run(jobs, "fcfs", Failures(models=[FailureModel(mtbf=1000.0, mttr=10.0)]))
    assert record.status_names.tolist() == ["completed"]


@pytest.mark.parametrize("instant", ["batched", "per-event"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_that_ends_when_its_node_fails_is_complete(policy: str, instant: str) -> None:
    jobs = _jobs(submit=[0, 0], runtime=[10, 20], cores=[2, 2])
    record = _run(jobs, policy, Failures([(["n-0", "n-1"], 10, 12)]), instant=instant)
    assert _runs(record) == [(0, 0, 10, "completed"), (1, 0, 10, "failure"), (1, 10, 30, "completed")]


def test_failures_are_the_same_under_every_policy() -> None:
    jobs = _jobs(submit=np.arange(60) * 20, runtime=[50] * 60, cores=[3] * 60)
    failures = Failures(models=[FailureModel(mtbf=2000.0, mttr=300.0)])
    found = []
    for policy in ("fcfs", "easy", "conservative"):
        told = _run(jobs, policy, failures).interruptions
        assert told is not None
        until = 1_000_000_000
        found.append([(n, d) for n, d in zip(told.node.tolist(), told.down_us.tolist(), strict=True) if d < until])
    assert found[0] == found[1] == found[2]


def test_availability_is_that_of_the_model() -> None:
    # Mean over [0, H) from new: A + (1 - A)(1 - exp(-rH)) / (rH), 0.895727 (specification, section 11).
    model, down, until = Failures(models=[FailureModel(mtbf=5000.0, mttr=600.0)]), np.zeros(3000), 20_000_000_000
    for failure in model.failures(_machines(3000), 1):
        if failure.down >= until:
            break
        down[failure.parts[0][0]] += min(failure.up, until) - failure.down
    values = 1 - down / until
    assert abs(values.mean() - 0.895727) <= 3 * values.std() / math.sqrt(len(values))


def _machines(count: int) -> Machines:
    (cluster,) = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=count, capacity={"cores": 1})]).clusters()
    assert cluster.capacity is not None
    return Machines([cluster.capacity], ["c"])


def test_counts_of_failures_are_poisson() -> None:
    model = Failures(models=[FailureModel(mtbf=1000.0, mttr=1e-6, repair="fixed")])
    count = 0
    for failure in model.failures(_machines(3000), 1):
        if failure.down >= 5_000_000_000:
            break
        count += 1
    assert abs(count - 15_000) <= 3 * math.sqrt(15_000)


def test_max_restarts_and_cancel_end_a_job() -> None:
    labels = {"max_restarts": [0, -1], "on_failure": [-1, 1]}
    jobs = _jobs(submit=[0, 0], runtime=[10, 10], cores=[2, 2], labels=labels)
    record = _run(jobs, "easy", Failures([(["n-0", "n-1"], 5, 6)]))
    assert record.status_names.tolist() == ["failed", "failed"]
    assert record.end_us.tolist() == [5_000_000, 5_000_000]
    result = gs.simulate(jobs, platform=FOUR, policy="easy", options=Run(failures=Failures([(["n-0", "n-1"], 5, 6)])))
    assert result.jobs["restarts"].tolist() == [1, 1]
    assert result.jobs["lost_core_seconds"].tolist() == [10, 10]
    assert result.metrics()["failed"] == 2


def test_a_task_restarts_and_a_failed_one_cancels_its_successors() -> None:
    tasks = Tasks.from_edges(
        counts=[5],
        runtime=[8, 15, 10, 10, 5],
        estimate=[10, 20, 12, 10, 5],
        cores=[2, 2, 2, 4, 1],
        edges=[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)],
    )
    two = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=2, capacity={"cores": 2})])
    workload = gs.Workload.from_tasks(tasks, submit=[0])
    again = _run(workload, "easy", Failures([(["n-0"], 12, 30)]), two)
    assert again.tasks is not None
    assert (again.tasks.end_us / 1e6).tolist() == [8, 33, 18, 43, 48]
    record = _run(workload, "conservative", Failures([(["n-0"], 12, 30)], on_failure="cancel"), two)
    assert record.tasks is not None
    assert record.tasks.status_names.tolist() == ["completed", "failed", "completed", "cancelled", "cancelled"]
    assert record.status_names.tolist() == ["failed"]


def test_spares_are_no_nodes_of_the_machine_for_other_jobs() -> None:
    jobs = _jobs(submit=[0, 0, 1], runtime=[10, 10, 10], cores=[8, 6, 6])
    record = _run(jobs, "easy", Failures([(["n-0"], 5, 50)], spares=1))
    assert record.status_names.tolist() == ["rejected", "completed", "completed"]
    assert record.reason is not None
    assert record.reason.tolist() == ["spares", "", ""]
    assert _runs(record)[:2] == [(1, 0, 5, "failure"), (1, 5, 15, "completed")]  # with the spare node
    with pytest.raises(InputError, match="no node of the machine is named 'n-9'"):
        _run(jobs, "easy", Failures(spares=["n-9"]))


@pytest.mark.parametrize("policy", ["easy?predict=average", "conservative?predict=average"])
def test_a_predictor_learns_nothing_from_an_interrupted_run(policy: str) -> None:
    jobs = _jobs(submit=[0, 200], runtime=[100, 10], estimate=[500, 500], cores=[2, 2], labels={"user": [1, 1]})
    record = _run(jobs, policy, Failures([(["n-0"], 5, 6)]))
    assert record.predictions is not None
    assert record.predictions.prediction_us.tolist() == [500_000_000, 100_000_000]


@pytest.mark.parametrize(
    ("platform", "policy", "options", "what"),
    [
        (gs.Platform.single(8), "easy", {}, "--platform 128x64"),
        (FOUR, "easy", {"engine": "compiled"}, "compiled cannot run this: nodes can fail"),
        (FOUR, "msb?partition=fair-share", {}, "are not supported by .*it chooses sizes of jobs"),
    ],
)
def test_what_does_not_support_failures_is_an_error(
    platform: gs.Platform, policy: str, options: dict[str, Any], what: str
) -> None:
    jobs = _jobs(submit=[0], runtime=[10], cores=[2])
    with pytest.raises(InputError, match=what) as error:
        _run(jobs, policy, Failures([(["n-0"], 5, 6)]), platform, **options)
    assert error.value.exit_code == 2


def test_world_fail_stops_jobs_and_holds() -> None:
    jobs = _jobs(submit=[0], runtime=[20], cores=[2])
    world = gs.World(jobs, FOUR, "easy")
    machine = world.machines["cluster"]
    seen: list[tuple[str, float]] = []

    def user() -> Any:
        request = machine.request(nodes=["n-3"], until=100)
        yield request
        yield request.lost
        seen.append(("lost", world.now))
        assert not request.holds

    def operator() -> Any:
        yield world.timeout(4)
        world.fail(["n-0", "n-3"], until=30)
        yield world.timeout(1)
        seen.append(("free", machine.free))
        yield world.timeout(30)
        seen.append(("free", machine.free))

    world.env.process(user())
    world.env.process(operator())
    world.run()
    assert seen == [("lost", 4.0), ("free", 2), ("free", 8)]
    assert _runs(world.record()) == [(0, 0, 4, "failure"), (0, 4, 24, "completed")]
    with pytest.raises(InputError, match="expected a time after"):
        world.fail("n-0", until=0)


def test_a_custom_scheduler_without_the_method_is_rejected() -> None:
    with pytest.raises(InputError, match="has no capacity_changed"):
        _run(_jobs(submit=[0], runtime=[1], cores=[1]), _Plain(), Failures([(["n-0"], 5, 6)]), FOUR)


class _Plain:
    """The least a scheduler needs."""

    capabilities = Capabilities(vectors=True)

    def setup(self, cluster: Any, rng: Any) -> None: ...

    def quote(self, request: int, now: int) -> Any: ...

    def commit(self, quote: Any, now: int) -> Any: ...

    def ended(self, request: int, now: int) -> None: ...

    def overran(self, request: int, expected_end: int, now: int) -> None: ...

    def settled(self, now: int) -> None: ...

    def dispatch(self, now: int) -> Any: ...


class _Notified(Backfilling):
    """A scheduler that records the calls of each instant, s."""

    calls: ClassVar[dict[float, list[str]]] = {}  # of the class, since a run copies its scheduler


def _record_call(name: str) -> Any:
    def method(self: _Notified, *arguments: Any) -> Any:
        self.calls.setdefault(arguments[-1] / 1e6, []).append(name)
        return getattr(Backfilling, name)(self, *arguments)

    return method


for _name in ("ended", "capacity_changed", "settled", "quote", "commit", "dispatch"):
    setattr(_Notified, _name, _record_call(_name))


def test_a_scheduler_is_notified_in_the_order_of_the_specification() -> None:
    # 3.8: ended for each stopped job, one change of capacity, settled, quote and commit of arrivals and requeued jobs.
    calls = _Notified.calls
    jobs = _jobs(submit=[0, 0, 5], runtime=[10, 10, 10], cores=[2, 2, 2])
    _run(jobs, _Notified(), Failures([(["n-0"], 5, 8), (["n-1"], 5, 60)]))
    assert calls[5] == ["ended", "ended", "capacity_changed", "settled", *3 * ["quote", "commit"], "dispatch"]
    assert calls[8] == ["capacity_changed", "settled", "dispatch"]


class _Requeues(Backfilling):
    """A scheduler that decides whether and how often jobs are queued again."""

    answer: Any = (True, 1)

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, notified=frozenset({"capacity_changed", "requeue_rule"}))

    def requeue_rule(self, request: int) -> Any:
        return self.answer


def test_the_answer_of_a_custom_requeue_rule_is_checked() -> None:
    jobs, scheduler = _jobs(submit=[0], runtime=[10], cores=[8]), _Requeues()
    twice = Failures([(["n-0"], 5, 6), (["n-0"], 8, 9)])
    assert _run(jobs, scheduler, twice).status_names.tolist() == ["failed"]
    scheduler.answer = (True, 2)
    assert _run(jobs, scheduler, twice).status_names.tolist() == ["completed"]
    for answer in (None, (True,), (True, "often"), [True, 1], (1, 1)):
        scheduler.answer = answer
        with pytest.raises(PolicyError, match=r"requeue_rule; expected \(bool, int\)"):
            _run(jobs, scheduler, twice)


POLICIES = (
    *("fcfs", "first-fit", "easy", "depth?k=2", "conservative", "easy?ordering=sjf", "easy?ordering=wfp3", "sjbf"),
    *("easy?ordering=random", "random", "easy?predict=recent", "conservative?predict=recent"),
    *("conservative?compress=none", "conservative?compress=arrival", "conservative?ordering=sjf"),
    *("easy?placement=pack", "conservative?placement=spread"),
)


@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(POLICIES),
    instant=st.sampled_from(["batched", "per-event"]),
    overrun=st.sampled_from(["kill", "extend"]),
    how=st.sampled_from(["original", "behind"]),
    repair=st.sampled_from(["unknown", "announced"]),
)
def test_laws_of_every_record(seed: int, policy: str, instant: Any, overrun: Any, how: Any, repair: Any) -> None:
    assume(instant == "batched" or policy != "conservative?predict=recent")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    runtime = rng.integers(1, 60, n)
    jobs = _jobs(
        submit=np.sort(rng.integers(0, 150, n)),
        runtime=runtime,
        estimate=np.maximum(1, runtime + rng.integers(-5, 30, n)),
        demands=gs.Demands.of(
            [
                gs.Demand(
                    tasks=int(rng.integers(1, 4)),
                    each={"cores": int(rng.integers(1, 3))},
                    gpu=int(rng.choice([0, 0, 500, 1000])),
                    exclusive=bool(rng.random() < 0.1),
                )
                for _ in range(n)
            ]
        ),
        labels={"user": rng.integers(1, 4, n)},
    )
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4}, gpus=2)])
    models = [FailureModel(mtbf=150.0, mttr=20.0), FailureModel(mtbf=100.0, mttr=30.0, scope="gpu")]
    failures = Failures(models=models, repair=repair, requeue=how, max_restarts=5)
    options: dict[str, Any] = {"seed": seed, "instant": instant, "overrun": overrun}
    record = _run(jobs, policy, failures, machine, **options)
    _check(record)
    assert (_run(jobs, policy, failures, machine, **options).end_us == record.end_us).all()


def _check(record: Record) -> None:
    held, told = record.allocations, record.interruptions
    assert held is not None
    assert told is not None
    # No work on an absent node or GPU.
    for node, gpu, down, up in zip(told.node, told.gpu, told.down_us, told.up_us, strict=True):
        there = (held.node == node) & (held.start_us < up) & (held.end_us > down)
        if gpu >= 0:
            of_gpu = np.zeros(len(held), dtype=bool)
            of_gpu[held.gpu_row[held.gpu == gpu]] = True
            there &= of_gpu
        assert not there.any()
    # Runs of a job follow each other; cores of a node are not oversubscribed.
    row, start, end, reason, _ = runs_of(record)
    assert (start[1:] >= end[:-1])[row[1:] == row[:-1]].all()
    assert record.capacity is not None
    for instant in np.unique(held.start_us):
        now = (held.start_us <= instant) & (held.end_us > instant)
        used = np.bincount(held.node[now], weights=held.amounts["cores"][now], minlength=3)
        assert (used <= 4).all()
    # A run is interrupted only when one of its nodes or GPUs fails.
    for job, began, ended, why in zip(row.tolist(), start.tolist(), end.tolist(), reason, strict=True):
        if why == "failure" and ended > began:
            nodes = held.node[(held.job == job) & (held.start_us == began)]
            assert np.isin(told.node[told.down_us == ended], nodes).any()
    # A completed job ran its run time without interruption; every job ended once.
    done = record.status_names == "completed"
    assert ((record.end_us - record.start_us)[done] == record.workload.runtime[done]).all()
    assert np.isin(record.status_names, ["completed", "killed_walltime", "rejected", "failed"]).all()
    assert (record.end_us[record.ran] < NEVER).all()
    assert down_seconds(record, int(record.end_us[record.ran].max(initial=0))) >= 0


def test_balancers_count_known_absences() -> None:
    machine = gs.World(_jobs(submit=[0], runtime=[1], cores=[1]), platform=FOUR, policy="easy").machines["cluster"]
    machine.change({(0, -1): NEVER, (1, -1): 30})
    assert (machine.free, machine.all_absent) == (4, False)
    assert machine.earliest([(4, 10)], 0) == 0
    assert machine.earliest([(6, 10)], 0) == 30
    assert machine.earliest([(8, 10)], 0) == NEVER
    assert machine.earliest([(8, 10), (4, 50), (2, 10)], 0) == 30
    machine.change({(0, -1): None, (1, -1): None})
    assert machine.earliest([(8, 10)], 0) == 0
    machine.take(0, 3, 20)  # on the first two nodes, the second of which is drained
    machine.change({(1, -1): 30})
    assert (machine.free, machine.earliest([(5, 10)], 0), machine.earliest([(7, 10)], 0)) == (4, 20, 30)
    machine.give_back(0)
    assert (machine.free, machine.earliest([(6, 10)], 0), machine.earliest([(7, 10)], 0)) == (6, 0, 30)
    machine.change({(node, -1): NEVER for node in range(4)})
    assert machine.all_absent


@pytest.mark.parametrize("balancer", ["round-robin", "expected-queue", "earliest-start", "least-utilised"])
def test_a_cluster_whose_nodes_are_all_lost_is_chosen_only_if_no_other_can_hold_the_job(balancer: str) -> None:
    sizes = {"one": 2, "two": 1}
    groups = {name: gs.NodeGroup(group=name, count=n, capacity={"cores": 2}) for name, n in sizes.items()}
    grid = Platform(
        RouterSpec("grid", tuple(ClusterSpec(name, 2 * sizes[name], nodes=(it,)) for name, it in groups.items()))
    )
    jobs = _jobs(submit=[20, 21, 22], runtime=[10, 10, 10], cores=[1, 2, 4])
    failures = Failures([(["one/one-0", "one/one-1"], 5, 100)])
    record = _run(jobs, "easy", failures, grid, balancer=balancer)
    assert record.cluster.tolist() == [1, 1, 0]
    assert (record.start_us / 1e6).tolist() == [20, 30, 100]


def test_failures_end_with_the_last_job_although_some_node_is_always_absent() -> None:
    """On thousands of nodes there is no instant at which none is absent."""
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=20, capacity={"cores": 4})])
    model = FailureModel(mtbf=1000.0, mttr=500.0, scope="group", groups={f"n-{at}": [f"n-{at}"] for at in range(20)})
    record = _run(_jobs(submit=[0, 100], runtime=[50, 300], cores=[4, 8]), "easy", Failures(models=[model]), machine)
    assert record.interruptions is not None
    assert (record.status_names == "completed").all()
    assert record.interruptions.down_us.max() <= record.end_us.max() < (record.interruptions.up_us).max()
    wide = _run(_jobs(submit=[0], runtime=[1], cores=[80]), "easy", Failures([(["n-3"], 0, 900)]), machine)
    assert wide.start_us.tolist() == [900_000_000]  # it waits for a return


def _moldable(seed: int, *, one_size: bool = False) -> gs.Workload:
    rng = np.random.default_rng(seed)
    n, each = 14, rng.integers(1, 3, 14)
    runtime, tasks = rng.integers(4, 60, n), rng.integers(1, 5, n)
    demands = gs.Demands.of(
        [gs.Demand(tasks=int(of), each={"cores": int(cores)}) for of, cores in zip(tasks, each, strict=True)]
    )
    jobs = _jobs(
        submit=np.sort(rng.integers(0, 120, n)),
        runtime=runtime,
        estimate=runtime + rng.integers(0, 30, n),
        demands=demands,
        labels={"user": rng.integers(1, 4, n)},
    )
    cores = jobs.cores
    low, high = (cores, cores) if one_size else (each, np.minimum(8, cores * 3))
    return replace(jobs, moldable=Moldable.of(cores, low, high, [Amdahl(0.1)]))


@pytest.mark.parametrize("partition", ["greedy", "fair-share(wf=2)"])
def test_jobs_whose_sizes_are_chosen_on_arrival_keep_them_after_failures(partition: str) -> None:
    interrupted = sizes = 0
    for seed in range(30):
        models = [FailureModel(mtbf=150.0, mttr=20.0)]
        saving = Checkpoints(4 if seed % 3 else None, cost=1 if seed % 3 else 0, restart=2)
        more: dict[str, Any] = {"repair": "announced" if seed % 2 else "unknown", "checkpoints": saving}
        failures = Failures(models=models, requeue="behind" if seed % 5 == 0 else "original", **more)
        policy, how = f"planned?partition={partition}", {"seed": seed, "overrun": "extend"}
        jobs = _moldable(seed)
        record = _run(jobs, policy, failures, **how)
        assert (record.status_names == "completed").all()
        held, told = record.allocations, record.interruptions
        assert held is not None
        assert told is not None
        sizes += int((record.given != jobs.cores).sum())
        interrupted += len(told.job)
        row, start, end, _, _ = runs_of(record)
        spent = spent_in_runs(record)
        assert (end - start == spent.restart + spent.kept + spent.checkpoint + spent.lost).all()
        work = np.zeros(len(jobs), dtype=np.int64)
        np.add.at(work, row, spent.kept)
        assert jobs.moldable is not None
        full = jobs.moldable.times_on(record.given, jobs.runtime, jobs.cores)
        assert np.abs(work - full).max() <= len(row)  # each run rounds what is left to microseconds
        # Every run has the size that was chosen on arrival.
        runs = dict.fromkeys(zip(held.job.tolist(), held.run.tolist(), strict=True), 0)
        for job, number, cores in zip(
            held.job.tolist(), held.run.tolist(), held.amounts["cores"].tolist(), strict=True
        ):
            runs[job, number] += cores
        assert all(cores == record.given[job] for (job, _), cores in runs.items())
        for node, down, up in zip(told.node, told.down_us, told.up_us, strict=True):
            assert not ((held.node == node) & (held.start_us < up) & (held.end_us > down)).any()
        # Jobs of one size: the schedule is that of conservative.
        single = _moldable(seed, one_size=True)
        one = _run(single, policy, failures, **how)
        other = _run(replace(single, moldable=None), "conservative", failures, **how)
        assert one.end_us.tolist() == other.end_us.tolist()
    assert interrupted > 30
    assert sizes > 30


def test_a_job_that_arrives_while_all_nodes_are_absent_gets_its_requested_size() -> None:
    jobs = _jobs(submit=[5], runtime=[80], cores=[1])
    jobs = replace(jobs, moldable=Moldable.of(jobs.cores, [1], [8], [Linear()]))
    record = _run(jobs, "planned?partition=greedy", Failures([([f"n-{at}" for at in range(4)], 0, 30)]))
    assert (record.given.tolist(), record.start.tolist(), record.end.tolist()) == ([1], [30], [110])
    # With one node left, the sizes that need others have no start.
    record = _run(jobs, "planned?partition=greedy", Failures([([f"n-{at}" for at in range(3)], 0, math.inf)]))
    assert (record.given.tolist(), record.start.tolist(), record.end.tolist()) == ([2], [5], [45])


def test_no_run_is_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridsim.entities.failures._MOST_RESTARTS", 300)
    monkeypatch.setattr("gridsim.entities.failures._LONGEST_WAIT", 300)
    often = Failures(models=[FailureModel(mtbf=1000.0, mttr=100.0)])
    with pytest.raises(InputError, match="job 1 was interrupted 300 times without completing; expected checkpoints"):
        _run(_jobs(submit=[0], runtime=[10**6], cores=[1]), "easy", often)
    seldom_together = Failures(models=[FailureModel(mtbf=1.0, mttr=1000.0)])
    with pytest.raises(PolicyError, match="never started 1 jobs, job 1 first"):
        _run(_jobs(submit=[5], runtime=[10], cores=[8]), "easy", seldom_together)
