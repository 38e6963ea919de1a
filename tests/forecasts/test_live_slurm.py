"""Live states with absent nodes and reservations under the policy slurm; the starts are worked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.model.cluster_state import ClusterState
from gridsim.model.failures import Failures
from gridsim.model.time import NEVER
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.registry import Spec
from gridsim.workload.slurm_state import read_slurm_state
from gridsim.world import World

AT = 1_800_000_000
LATE = 2
"""Time after a release of cores within which the next cycle starts a job, s."""

CONF = """ClusterName=c
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,bf_resolution=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
PriorityType=priority/basic
NodeName=n[1-{nodes}] CPUs=4
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State={state}
"""


def running(job: int, node: str, cores: int, left: int, elapsed: int = 100, **more: Any) -> dict[str, Any]:
    begun = {"JobState": "RUNNING", "NodeList": node, "StartTime": AT - elapsed, "TimeLimit": left + elapsed}
    return {"JobId": job, "NumCPUs": cores, "NumNodes": 1, "SubmitTime": AT - elapsed, "Reason": "None"} | begun | more


def waiting(job: int, cores: int, limit: int, **more: Any) -> dict[str, Any]:
    queued = {"JobState": "PENDING", "Reason": "Resources", "TimeLimit": limit, "Priority": 10_000 - job}
    times = dict.fromkeys(("SubmitTime", "EligibleTime"), AT - 50)
    return {"JobId": job, "NumCPUs": cores, "NumNodes": 1} | times | queued | more


def line(fields: dict[str, Any]) -> str:
    many = fields["TimeLimit"]
    usual = {"UserId": "ann(1)", "Account": "a", "QOS": "normal", "Partition": "p"}
    fields = {"JobId": fields["JobId"], **usual} | fields
    fields |= {"TimeLimit": f"{many // 3600:02}:{many // 60 % 60:02}:{many % 60:02}"}
    return " ".join(f"{key}={value}" for key, value in fields.items())


def live(
    place: Path, jobs: Sequence[dict[str, Any]], states: Sequence[str], reservation: str = "", partition: str = "UP"
) -> Path:
    """A folder of a cluster with nodes n1, n2 ... of 4 cores."""
    place.mkdir(exist_ok=True)
    nodes = [
        f"NodeName=n{number} CPUEfctv=4 RealMemory=1000 State={state} Partitions=p"
        for number, state in enumerate(states, 1)
    ]
    texts = {"now": f"{AT}\n", "scontrol_node.txt": "\n".join(nodes) + "\n", "scontrol_reservation.txt": reservation}
    texts |= {"scontrol_job.txt": "".join(f"{line(job)}\n" for job in jobs)}
    texts |= {"slurm.conf": CONF.format(nodes=len(states), state=partition)}
    for name, text in texts.items():
        (place / name).write_text(text)
    if not reservation:
        (place / "scontrol_reservation.txt").unlink()
    return place


def starts(place: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, float]:
    """Starts by job from the command, from `gridsim.forecast` and from `World.from_state`, which are equal."""
    asked = ["forecast", "--live", str(place), "--no-arrivals", "--futures", "19", "--policy", "slurm", "--json"]
    assert main([*asked, *more]) == 0
    jobs = json.loads(capsys.readouterr().out)["jobs"]
    by_command = {it["job"]: np.inf if it["requested"] is None else it["requested"] for it in jobs}
    state, policy = read_slurm_state(place), Spec("slurm", {"conf": str(place / "slurm.conf")})
    found = gs.forecast(state, policy=policy, futures=19, arrivals=False)
    assert {it.job: it.requested for it in found.jobs} == by_command
    assert from_state(state, policy) == by_command
    return by_command


def from_state(state: ClusterState, policy: Any, options: Run | None = None) -> dict[str, float]:
    """Starts of the waiting jobs by job; infinite for jobs that do not start."""
    world = World.from_state(state, policy, options)
    world.run()
    found = world.record().start_us[len(state.running) :]
    waits = np.where(found < NEVER, -(-found // 1_000_000), np.inf).tolist()
    return dict(zip([job.job for job in state.waiting], waits, strict=True))


def assert_starts(found: dict[str, float], **expected: float) -> None:
    assert found.keys() == {name[1:] for name in expected}
    for name, at in expected.items():
        assert at <= found[name[1:]] <= at + LATE, (name, found)


def test_a_node_that_is_down_has_no_capacity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Node n3 is idle but down: job 3 gets n1 at 500, job 4 both nodes at 1000; job 5 has no place."""
    jobs = [running(1, "n1", 4, 500), running(2, "n2", 4, 1000), waiting(3, 4, 300), waiting(4, 8, 300)]
    place = live(tmp_path / "c", [*jobs, waiting(5, 12, 60)], ["ALLOCATED", "ALLOCATED", "DOWN*"])
    assert_starts(starts(place, capsys), _3=500, _4=1000, _5=np.inf)
    assert main(["forecast", "--live", str(place), "--no-arrivals", "--futures", "19", "--policy", "slurm"]) == 0
    assert "nodes without new jobs until the end of the horizon: n3" in " ".join(capsys.readouterr().out.split())


def test_a_draining_node_loses_the_cores_of_its_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job 2 ends on n2 at 100, which takes no other; n1 has 2 free cores for job 4, and all for job 5 at 500."""
    jobs = [running(1, "n1", 2, 500), running(2, "n2", 2, 100, elapsed=90), running(3, "n3", 4, 800)]
    jobs += [waiting(4, 2, 60), waiting(5, 4, 200)]
    drained = live(tmp_path / "c", jobs, ["MIXED", "MIXED+DRAIN", "ALLOCATED"])
    assert_starts(starts(drained, capsys), _4=0, _5=500)
    # Without the drain, job 4 gets the same cores (the first of equal nodes), and job 5 both cores of n2 at 60.
    assert_starts(starts(live(tmp_path / "c", jobs, ["MIXED", "MIXED", "ALLOCATED"]), capsys), _4=0, _5=60)


MAINTENANCE = (
    f"ReservationName=service StartTime={AT + 1000} EndTime={AT + 2000} Duration=00:16:40 Nodes=n[1-2] NodeCnt=2 "
    "CoreCnt=8 Flags=MAINT,SPEC_NODES TRES=cpu=8 Users=root Accounts=(null) State=INACTIVE\n"
)


def test_jobs_end_before_a_maintenance_or_start_after_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes n1 and n2 are idle, n3 is busy until 3000: only job 2 ends before the maintenance."""
    jobs = [running(1, "n3", 4, 3000), waiting(2, 4, 900), waiting(3, 4, 1100), waiting(4, 12, 100)]
    place = live(tmp_path / "c", jobs, ["IDLE", "IDLE", "ALLOCATED"], MAINTENANCE)
    assert_starts(starts(place, capsys), _2=0, _3=2000, _4=3100)
    state, policy = read_slurm_state(place), Spec("slurm", {"conf": str(place / "slurm.conf")})
    found = gs.forecast(state, policy=policy, futures=19, arrivals=False, compare_without=True)
    delay = {it.job: it.delay[0] for it in found.jobs if it.delay is not None}
    assert delay["2"] == 0
    assert all(0 < delay[job] <= 2000 + LATE for job in "34"), "run times are drawn"
    assert_starts(from_state(replace(state, reservations=()), policy), _2=0, _3=0, _4=3000)
    over = MAINTENANCE.replace(str(AT + 2000), str(AT - 5)).replace(str(AT + 1000), str(AT - 500))
    assert_starts(starts(live(tmp_path / "c", jobs, ["IDLE", "IDLE", "ALLOCATED"], over), capsys), _2=0, _3=0, _4=3000)
    # Nodes that are closed are closed in the comparison too.
    closed = replace(state, nodes=(*state.nodes[:1], replace(state.nodes[1], state="down"), state.nodes[2]))
    found = gs.forecast(closed, policy=policy, job=3, futures=19, arrivals=False, compare_without=True)
    without = gs.forecast(replace(closed, reservations=()), policy=policy, job=3, futures=19, arrivals=False)
    expected = np.median(np.minimum(found.samples, found.horizon) - np.minimum(without.samples, found.horizon))
    assert found.jobs[0].delay is not None
    assert found.jobs[0].delay[0] == expected > 0
    for name in ("easy", policy):
        with pytest.raises(InputError, match="needs a maintenance, a reservation"):
            gs.forecast(replace(closed, reservations=()), policy=name, arrivals=False, compare_without=True)


@pytest.mark.parametrize(("cores", "start"), [("", 500), (" CoreCnt=2", 0)])
def test_a_reservation_is_for_its_users(
    cores: str, start: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Node n1, or two of its cores, are reserved for ann; the job of bob gets other cores, or waits for those of n2."""
    text = f"ReservationName=course StartTime={AT - 100} EndTime={AT + 9000} Nodes=n1{cores} Users=ann Flags=SPEC_NODES"
    jobs = [running(1, "n2", 4, 500), running(2, "n3", 4, 800)]
    jobs += [waiting(3, 2, 300, UserId="bob(2)"), waiting(4, 2, 300, Reservation="course")]
    place = live(tmp_path / "c", jobs, ["IDLE", "ALLOCATED", "ALLOCATED"], f"{text}\n")
    assert_starts(starts(place, capsys), _3=start, _4=0)


def test_running_jobs_were_accepted_whatever_holds_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only ann can use the reservation, but a job of bob runs in it, and another job in a closed partition."""
    text = f"ReservationName=course StartTime={AT - 100} EndTime={AT + 9000} Nodes=n1 Users=ann Flags=SPEC_NODES"
    jobs = [running(1, "n1", 2, 700, UserId="bob(2)", Reservation="course"), running(2, "n3", 4, 800)]
    jobs += [waiting(3, 2, 300), waiting(4, 4, 300, Reservation="course")]
    jobs += [waiting(5, 1, 60, UserId="bob(2)", Reservation="course")]
    place = live(tmp_path / "reserved", jobs, ["MIXED", "DOWN", "ALLOCATED"], f"{text}\n")
    assert_starts(starts(place, capsys), _3=800, _4=700, _5=np.inf)
    place = live(tmp_path / "c", [running(1, "n1", 4, 500), waiting(2, 1, 60)], ["ALLOCATED"], partition="DOWN")
    world = World.from_state(read_slurm_state(place), Spec("slurm", {"conf": str(place / "slurm.conf")}))
    world.run()
    assert world.record().status_names.tolist() == ["completed", "unadmitted"]


def random_jobs(seed: int, nodes: int) -> list[dict[str, Any]]:
    """Running jobs on all nodes, and waiting ones that fit on one node less."""
    rng = np.random.default_rng(seed)
    jobs = []
    for node in range(1, nodes + 1):
        for cores in ([4], [1, 3], [2], [1, 1])[rng.integers(4)]:
            left, elapsed = (int(it) for it in rng.integers(60, 1500, 2))
            jobs.append(running(len(jobs) + 1, f"n{node}", cores, left, elapsed))
    sizes = rng.integers(1, 4 * (nodes - 1) + 1, 8)
    return jobs + [waiting(100 + row, int(it), int(rng.integers(60, 1500))) for row, it in enumerate(sizes)]


@pytest.mark.parametrize("seed", range(6))
def test_a_closed_node_is_a_machine_without_it(seed: int, tmp_path: Path) -> None:
    """Jobs start as on a cluster that has neither the last node, nor its jobs; also if a window closes it."""
    jobs = random_jobs(seed, 4)
    without = live(tmp_path / "three", [job for job in jobs if job.get("NodeList") != "n4"], ["MIXED"] * 3)
    policies = [Spec("slurm", {"conf": str(tmp_path / name / "slurm.conf")}) for name in ("three", "four")]
    expected = from_state(read_slurm_state(without), policies[0])
    assert max(expected.values()) < np.inf
    for state in ("MIXED+DRAIN", "DOWN*"):
        closed = read_slurm_state(live(tmp_path / "four", jobs, [*["MIXED"] * 3, state]))
        assert from_state(closed, policies[1]) == expected
    opened = read_slurm_state(live(tmp_path / "four", jobs, ["MIXED"] * 4))
    assert from_state(opened, policies[1]) != expected
    window = Run(failures=Failures(windows=[Window(["n4"], 0, kind="drain")]))
    assert from_state(opened, policies[1], window) == expected


@pytest.mark.parametrize("seed", range(6))
def test_jobs_that_run_where_the_policy_places_them_change_nothing(seed: int, tmp_path: Path) -> None:
    """The policy fills the nodes in their order by itself, and the jobs on them started in that order."""
    left = np.random.default_rng(seed).integers(60, 1500, 3).tolist()
    jobs = [running(row, f"n{row}", 4, many, elapsed=500 - row) for row, many in enumerate(left, 1)]
    jobs += [it for it in random_jobs(seed, 4) if it["JobState"] == "PENDING"]
    place = live(tmp_path / "c", jobs, ["MIXED"] * 4)
    state, policy = read_slurm_state(place), Spec("slurm", {"conf": str(place / "slurm.conf")})
    nowhere = replace(state, running=tuple(replace(job, on=()) for job in state.running))
    assert from_state(state, policy) == from_state(nowhere, policy)


def test_nodes_of_the_state_and_of_the_configuration_are_compared(tmp_path: Path) -> None:
    state = read_slurm_state(live(tmp_path / "c", [running(1, "n1", 4, 60)], ["ALLOCATED", "IDLE"]))
    policy = tmp_path / "slurm.conf"
    for conf, message in (
        (CONF.format(nodes=1, state="UP"), "n2 has 4 cores in the state, and does not exist in the configuration"),
        (CONF.format(nodes=2, state="UP").replace("CPUs=4", "CPUs=8"), "n1 has 4 cores in the state, and has 8 cores"),
    ):
        policy.write_text(conf)
        with pytest.raises(InputError, match=message):
            World.from_state(state, f"slurm?conf={policy}")
    # A node of the configuration that the state does not list is closed.
    policy.write_text(CONF.format(nodes=3, state="UP"))
    assert World.from_state(state, f"slurm?conf={policy}").platform.cores == 12


def test_a_limit_that_slurm_models_is_named_as_the_reason_and_blocks_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A QOS with at most four cores: job 2 waits for job 1, although n2 is idle."""
    jobs = [running(1, "n1", 4, 500), waiting(2, 4, 300, Reason="QOSGrpCpuLimit")]
    place = live(tmp_path / "c", jobs, ["ALLOCATED", "IDLE"])
    state = read_slurm_state(place)
    plain = gs.forecast(state, policy="easy", futures=19, arrivals=False).jobs[0]
    assert (plain.not_modelled, plain.remark, plain.requested) == ("QOSGrpCpuLimit", "", 0)
    conf = place / "slurm.conf"
    (bare,) = gs.forecast(state, policy=Spec("slurm", {"conf": str(conf)}), job=2, futures=19, arrivals=False).jobs
    assert (bare.not_modelled, bare.remark) == ("QOSGrpCpuLimit", ""), "the limits are unknown"
    conf.write_text("AccountingStorageEnforce=limits,qos\n" + conf.read_text())
    (place / "qos.txt").write_text("Name|Priority|GrpTRES\nnormal|0|cpu=4\n")
    assert main(["forecast", "--live", str(place), "--no-arrivals", "--policy", "slurm", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (found["not_modelled"], found["remark"]) == ("", "blocked now by QOSGrpCpuLimit")
    assert 500 <= found["requested"] <= 500 + LATE
