"""A world that starts from a state: a golden case, and the law that nothing before the moment is simulated again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.entities.starting_point import StartingPoint
from gridsim.errors import InputError
from gridsim.forecasts.state import State
from gridsim.model.cluster_state import ClusterState, RunningJob, StateNode, WaitingJob
from gridsim.model.failures import FailureModel, Failures
from gridsim.model.platform import Platform
from gridsim.model.platform_file import read_platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.windows import Window
from gridsim.model.workload import Workload
from gridsim.options import Engine, Run
from gridsim.simulation import simulate
from gridsim.world import World
from tests.forecasts.states import starts_from, state_of

GOLDEN = Path(__file__).parent / "golden"


def test_golden_case_f07() -> None:
    case = json.loads((GOLDEN / "f07-world.json").read_text())
    state = state_of(case["state"])
    world = World.from_state(state, "easy", default_limit=case["default_limit"])
    ids = [job.job for job in (*state.running, *state.waiting)]
    ids = [job for job in ids if job in case["expected"]]
    assert world.platform.cores == case["capacity"]
    world.run()
    starts = np.maximum(world.record().start, 0).astype(int).tolist()
    assert dict(zip(ids, starts, strict=True)) == case["expected"]


def test_a_job_that_waits_for_an_array_waits_for_all_its_tasks() -> None:
    content = json.loads((GOLDEN / "f05-live-state.json").read_text())["expected"]
    job = next(job for job in content["waiting"] if job["job"] == "103")
    job |= {"kind": "after", "after": [["afterany", "109_*", "unfulfilled"]]}
    start = StartingPoint.of(state_of(content))
    ((kind, rows),) = start.beginning.after[start.ids.index("103")]
    assert (kind, [start.ids[row] for row in rows]) == ("afterany", ["109_2", "109_3", "109_4", "109_5"])


def test_jobs_of_a_state_behind_those_of_a_log_keep_their_numbers_and_names() -> None:
    state = state_of(json.loads((GOLDEN / "f05-live-state.json").read_text())["expected"])
    start = StartingPoint.of(state)
    past = Workload.from_columns(submit=[0, 10], runtime=[5, 5], cores=[1, 1], job=[70, 80], labels={"user": [1, 0]})
    whole, rows = start.after(replace(past, names={"user": ("zoe", "alice")}), 20_000)
    assert whole.job[rows].tolist() == [int(name) if name.isdigit() else 0 for name in start.ids]
    users = {job.job: job.user for job in (*state.running, *state.waiting)}
    assert [whole.names["user"][code] for code in whole.labels["user"][rows]] == [users[name] for name in start.ids]
    before = np.setdiff1d(np.arange(len(whole)), rows)
    assert [whole.names["user"][code] for code in whole.labels["user"][before]] == ["alice", "zoe"]
    assert (np.diff(whole.submit) >= 0).all()


POLICIES = ["fcfs", "easy", "easy++", "sjbf", "first-fit", "depth", "sjf", "wfp3", "moldable-start", "moldable-equal"]


def some_jobs(seed: int, n: int = 120) -> Workload:
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 900, n)
    return Workload.from_columns(
        submit=np.sort(rng.integers(0, 5000, n)),
        runtime=run,
        estimate=np.maximum(1, (run * rng.uniform(0.8, 4, n)).astype(int)),
        cores=rng.integers(1, 17, n),
        labels={"user": rng.integers(0, 5, n)},
    )


@pytest.mark.parametrize("machine", ["16", "4x4"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_cold_start(policy: str, machine: str) -> None:
    """The state of a run and the true future give the starts of the whole run, in both engines."""
    log = some_jobs(len(policy))
    platform = Platform.single(16) if machine == "16" else read_platform(machine)
    whole = simulate(log, platform=platform, policy=policy, options=Run(engine="simpy")).record
    compared = 0
    for at in range(400, 5000, 900):
        in_python = policy == "easy++" or (machine != "16" and policy.startswith("moldable"))
        engines: tuple[Engine, ...] = ("simpy",) if in_python else ("simpy", "compiled")
        for engine in engines:
            found, expected, waiting = starts_from(at, whole, platform, policy, engine)
            assert found == expected
            compared += waiting
    assert compared > 50


@pytest.mark.parametrize("policy", ["conservative", "msb"])
def test_running_jobs_end_as_before_under_policies_that_plan(policy: str) -> None:
    """Such a policy starts the running jobs at time 0 with their remaining run times, and plans in queue order."""
    log = some_jobs(3)
    whole = simulate(log, platform=Platform.single(16), policy=policy).record
    for at in (1000, 3000):
        state = State.of(at, log.submit, whole.start_us, whole.end_us)
        none = np.zeros(0, dtype=np.int64)
        jobs = state.workload(log, none, none)
        world = World(jobs, Platform.single(16), policy, max_jobs=0, beginning=state.beginning)
        world.complete()
        found = world.record()
        many = len(state.running)
        assert many
        assert (found.end_us[:many] + at * MICROSECOND).tolist() == whole.end_us[state.running].tolist()
        assert (found.start_us[many:] < NEVER).all()


def test_a_maintenance_of_a_live_state_delays_the_jobs_on_its_nodes() -> None:
    """Two nodes of 4 cores; the only job waits for both, or for one of them."""
    base = {"user": "u", "account": "", "partition": "p", "qos": "", "features": "", "reservation": "", "memory": 0}
    base |= {"gpus": {}, "licences": {}, "nodes": 1, "limit": 600}
    more = {"kind": "queued", "reason": "Priority", "priority": 1, "submit": 900, "eligible": None, "after": ()}
    more |= {"any_one": False, "array": None, "throttle": None, "required": (), "excluded": ()}
    how: dict[str, Any] = {"memory": 1, "gpus": {}, "features": (), "partitions": ("p",), "weight": 1, "state": "up"}
    nodes = tuple(StateNode(node=name, cores=4, **how) for name in ("n1", "n2"))
    options = Run(failures=Failures(windows=[Window(["n2"], 100, 5000, announced=0)]))
    for cores, start in ((8, 5000), (4, 0)):
        state = ClusterState(1000, (), (WaitingJob(job="1", cores=cores, **base, **more),), nodes)  # type: ignore[arg-type]
        world = World.from_state(state, "easy", options)
        world.run()
        assert world.record().start_us.tolist() == [start * MICROSECOND]
        found = gs.forecast(state, options=options, futures=19, arrivals=False, compare_without=True)
        assert found.jobs[0].median == start
        assert found.jobs[0].delay == (start, 19 * (start > 0))
    for failures, message in (
        (Failures(windows=[Window(["n3"], 0, 9)]), "no node 'n3' that is up"),
        (Failures(models=[FailureModel(mtbf=9.0, mttr=1.0)]), "a live state is one pool of cores"),
    ):
        with pytest.raises(InputError, match=message):
            gs.forecast(state, options=Run(failures=failures), futures=19, arrivals=False)


def test_a_damaged_number_of_cores_is_an_error_where_each_core_is_a_node() -> None:
    how: dict[str, Any] = {"memory": 1, "gpus": {}, "features": (), "partitions": ("p",), "weight": 1}
    for state in ("up", "no new jobs"):
        node = StateNode(node="n1", cores=2_000_000_000, state=state, **how)  # type: ignore[arg-type]
        if state == "up":
            assert StartingPoint.of(ClusterState(1000, nodes=(node,))).platform.cores == node.cores
            continue
        with pytest.raises(InputError, match="have 2000000000 cores; with windows, expected at most 2000000"):
            StartingPoint.of(ClusterState(1000, nodes=(node,)))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "'state': is {}; expected a ClusterState, such as of read_slurm_state"),
        ("state", "'state': is 'state'; expected a ClusterState"),
        (ClusterState(1000), "'nodes': no node of the state is up"),
    ],
)
def test_another_object_and_a_state_without_a_node_are_errors(state: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        World.from_state(state, "easy")


def test_a_draining_node_takes_no_new_jobs_on_the_cores_that_its_jobs_leave() -> None:
    """Node n1 drains and runs a job on 3 of its 4 cores; the waiting job needs more cores than n2 has."""
    base: dict[str, Any] = {"user": "u", "account": "", "partition": "p", "qos": "", "features": "", "reservation": ""}
    base |= {"memory": 0, "gpus": {}, "licences": {}, "nodes": 1, "limit": 600}
    how: dict[str, Any] = {"cores": 4, "memory": 1, "gpus": {}, "features": (), "partitions": ("p",), "weight": 1}
    nodes = (StateNode(node="n1", state="no new jobs", **how), StateNode(node="n2", state="up", **how))
    running = RunningJob(job="1", cores=3, start=900, elapsed=100, stopped=False, on=("n1",), **base)
    start = StartingPoint.of(ClusterState(1000, (running,), (), nodes))
    (window,) = start.windows
    assert start.notes == ("each core is a node; features, partitions, memory and GPUs are ignored",)
    assert list(window.nodes) == ["n1.0", "n1.1", "n1.2", "n1.3"]  # type: ignore[arg-type]
    assert list(start.beginning.running[0][1].node) == [0, 1, 2]  # type: ignore[union-attr]
