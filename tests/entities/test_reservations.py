"""Advance reservations during a run: members inside, others outside, and what is not supported."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.metrics.availability import runs_of
from gridsim.model.failures import Failures
from gridsim.model.platform import RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.record import Record
from gridsim.testing.invariants import assert_valid, violations
from gridsim.workload.read import read_workload

POLICIES = ("fcfs", "first-fit", "easy", "depth?k=2", "conservative", "easy?ordering=sjf", "easy?placement=pack")
FOUR = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 4, "memory": 8}, gpus=2)])


def _reserved(nodes: Any, begin: float, end: float, announced: float = 0, **more: Any) -> Window:
    return Window(nodes, begin, end, "reservation", announced, id=more.pop("id", "r"), **{"users": ["ann"], **more})


def _jobs(
    reservation: list[str], user: list[str], demands: list[gs.Demand] | None = None, **columns: Any
) -> gs.Workload:
    names = {"reservation": tuple(sorted({*reservation} - {""})), "user": tuple(sorted({*user}))}
    labels = {
        "reservation": [names["reservation"].index(name) if name else -1 for name in reservation],
        "user": [names["user"].index(name) for name in user],
    }
    asked = None if demands is None else gs.Demands.of(demands)
    return replace(gs.Workload.from_columns(labels=labels, demands=asked, **columns), names=names)


def _run(jobs: gs.Workload, policy: Any, windows: list[Window], **options: Any) -> Record:
    run = Run(failures=Failures(windows=windows), **options)
    return gs.simulate(jobs, platform=FOUR, policy=policy, options=run).record


def _members_and_others() -> gs.Workload:
    """Return two members of the reservation r between two jobs of others."""
    return _jobs(
        ["", "r", "r", ""],
        ["bob", "ann", "ann", "ann"],
        submit=[0, 1, 2, 3],
        runtime=[9, 20, 10, 30],
        cores=[16, 8, 8, 8],
    )


@pytest.mark.parametrize("policy", POLICIES[:5])
def test_members_run_inside_and_others_outside(policy: str) -> None:
    jobs = _members_and_others()
    record = _run(jobs, policy, [_reserved(["n-[0-1]"], 10, 40)])
    assert record.start.tolist() == [0, 10, 30, 9]
    assert record.allocations is not None
    places = [record.allocations.node[record.allocations.job == job].tolist() for job in range(4)]
    assert places[1:] == [[0, 1], [0, 1], [2, 3]]


def test_gpus_that_a_member_holds_after_its_reservation_are_not_given_to_others() -> None:
    whole = gs.Demand(tasks=1, each={"cores": 1, "memory": 6}, gpu=2000)
    jobs = _jobs(
        ["r", "", "", ""], ["ann"] * 4, [whole, whole, gs.Demand(tasks=1, each={"cores": 3, "memory": 2}), whole],
        submit=[0, 10, 11, 12], runtime=[30, 20, 5, 9],
    )  # fmt: skip
    others = Window(["n-[1-3]"], 0, 100)
    for policy in POLICIES[:5]:
        record = _run(jobs, policy, [_reserved(["n-0"], 0, 50, deleted=15), others])
        assert record.end.tolist() == [30, 50, 20, 59] if policy != "fcfs" else record.end[0] == 30
        assert_valid(record, platform=FOUR)


def test_reasons_of_rejections() -> None:
    demands = [gs.Demand(tasks=1, each={"cores": 1}) for _ in range(5)]
    demands[2] = gs.Demand(tasks=2, each={"cores": 4})
    demands[4] = gs.Demand(tasks=1, each={"cores": 1}, exclusive=True)
    names, users = ["s", "r", "r", "r", "r"], ["ann", "bob", "ann", "ann", "ann"]
    jobs = _jobs(names, users, demands, submit=[0] * 5, runtime=[1, 1, 1, 99, 1])
    record = _run(jobs, "easy", [_reserved(["n-0"], 10, 40, node_cores=2)])
    assert record.reason is not None
    assert [it.removeprefix("reservation:") for it in record.reason.tolist()] == ["unknown", "members", *["size"] * 3]
    assert _run(jobs, "easy", []).ran.all()  # without windows, the label has no meaning


@pytest.mark.parametrize(("overrun", "instant"), itertools.product(("kill", "extend"), ("batched", "per-event")))
def test_laws_of_reservations(overrun: Any, instant: Any) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        begin, count = rng.randint(5, 20), rng.randint(12, 30)
        end, cores = begin + rng.randint(20, 50), rng.choice((None, 2))
        runtime = [rng.randint(1, 25) for _ in range(count)]
        demands = [
            gs.Demand(
                tasks=rng.randint(1, 3),
                each={"cores": rng.randint(1, 2)},
                gpu=rng.choice((0, 0, 500)) if not cores else 0,
            )
            for _ in range(count)
        ]
        jobs = _jobs(
            [rng.choice(("", "r")) for _ in range(count)], ["ann"] * count, demands,
            submit=sorted(rng.randint(0, 40) for _ in range(count)), runtime=runtime,
            estimate=[max(1, it + rng.randint(-3, 8)) for it in runtime],
        )  # fmt: skip
        announced = rng.choice((0, begin - 5, begin))
        for policy in POLICIES:
            window = _reserved(["n-[0-1]"], begin, end, announced, node_cores=cores)
            record = _run(jobs, policy, [window], overrun=overrun, instant=instant)
            assert_valid(record, platform=FOUR, overrun=overrun)
            _obeys(record, begin, end, announced, cores, kill=overrun == "kill")


def _obeys(record: Record, begin: int, end: int, announced: int, cores: int | None, *, kill: bool) -> None:
    """Check where and when members and others run; in each second of the reservation, how many cores they have."""
    held, member = record.allocations, record.workload.labels["reservation"] >= 0
    assert held is not None
    inside = held.node < 2
    assert (begin <= record.start[member & record.ran]).all()
    assert inside[member[held.job]].all()
    if not kill:
        return
    assert (record.end[member & record.ran] <= end).all()
    late = inside & ~member[held.job] & (held.start_us >= announced * 10**6)
    for second in range(begin, end):
        there = late & (held.start_us <= second * 10**6) & (held.end_us > second * 10**6)
        used = np.bincount(held.node[there], held.amounts["cores"][there], minlength=4)
        assert used.max() <= (0 if cores is None else 4 - cores)


def test_a_reservation_in_a_world() -> None:
    jobs = _jobs(["r", ""], ["ann", "ann"], submit=[0, 30], runtime=[1, 1], cores=[1, 1])
    world = gs.World(jobs, FOUR, "conservative", Run(failures=Failures(windows=[_reserved(["n-3"], 90, 105)])))
    world.run(until=5)
    first = world.submit({"cores": 16, "runtime": 20})
    world.run(until=10)
    world.window(["n-0"], 12, 40, kind="reservation", id="s", users=["bob", "ann"])
    world.run(until=11)
    second = world.submit({"cores": 4, "runtime": 10, "user": "ann", "reservation": "r"})
    world.run()
    record = world.record()
    status = dict(zip(record.workload.job.tolist(), record.status_names.tolist(), strict=True))
    assert (status[first.job], status[second.job]) == ("completed", "completed")
    start = dict(zip(record.workload.job.tolist(), record.start.tolist(), strict=True))
    assert (start[first.job], start[second.job]) == (5, 91)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_reservation_announced_in_a_world_without_other_windows(policy: str) -> None:
    jobs = _jobs(["s", ""], ["ann", "bob"], submit=[20, 0], runtime=[10, 25], cores=[16, 16])
    world = gs.World(jobs, FOUR, policy)
    world.run(until=10)
    world.window(["ALL"], 12, 60, kind="reservation", id="s", users=["ann"])
    world.run()
    assert world.record().start.tolist() == [0, 25]


@pytest.mark.parametrize(
    ("policy", "more", "what"),
    [
        ("easy?predict=recent", {}, "predicted run times"),
        ("easy", {"platform": "grid"}, "several clusters"),
        ("easy", {"tasks": True}, "DAG jobs"),
    ],
)
def test_what_reservations_do_not_support(policy: str, more: dict[str, Any], what: str) -> None:
    platform, jobs = FOUR, _jobs(["", ""], ["ann", "ann"], submit=[0, 0], runtime=[1, 1], cores=[1, 1])
    if "platform" in more:
        specs = [replace(next(iter(FOUR.clusters())), name=name) for name in ("a", "b")]
        platform = gs.Platform(RouterSpec("top", tuple(specs)))
    if "tasks" in more:
        chain = Tasks.from_edges(counts=[2], runtime=[5, 5], cores=[1, 1], edges=[(0, 1)])
        jobs = gs.Workload.from_tasks(chain, submit=[0])
    node = "a/n-0" if "platform" in more else "n-0"
    options = Run(failures=Failures(windows=[_reserved([node], 10, 40)]))
    with pytest.raises(InputError, match=f"have reservations, which are not supported with {what}"):
        gs.simulate(jobs, platform=platform, policy=policy, options=options)


def test_cores_that_are_reserved_twice_are_an_error() -> None:
    jobs = _jobs([""], ["ann"], submit=[0], runtime=[1], cores=[1])
    both = [_reserved(["n-[0-1]"], 10, 40, node_cores=3), _reserved(["n-1"], 39, 50, id="s", node_cores=2)]
    with pytest.raises(InputError, match=r"window\.s\.nodes.*reserved for 'r' at the same time"):
        _run(jobs, "easy", both)
    with pytest.raises(InputError, match="at the same time"):  # its deletion is unknown when s is announced
        _run(jobs, "easy", [replace(both[0], deleted=20), both[1]])
    assert _run(jobs, "easy", [both[0], replace(both[1], node_cores=1)]).ran.all()
    assert _run(jobs, "easy", [replace(both[0], deleted=20), replace(both[1], announced=20)]).ran.all()


def test_a_table_names_reservations(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,submit,run,cores,user,booking\n1,0,5,4,ann,r\n2,0,5,4,ann,\n")
    (tmp_path / "map.toml").write_text(
        'format = "csv"\n[columns]\njob = "id"\nsubmit = {column = "submit", time = "s"}\nruntime = "run"\n'
        'cores = "cores"\nuser = "user"\nreservation = "booking"\n'
    )
    jobs = read_workload(tmp_path / "jobs.csv", mapping=str(tmp_path / "map.toml"))
    assert (jobs.names["reservation"], jobs.labels["reservation"].tolist()) == (("", "r"), [1, -1])
    assert _run(jobs, "easy", [_reserved(["n-0"], 10, 40)]).start.tolist() == [10, 0]


def test_interrupted_members_return_to_their_reservation_or_are_cancelled() -> None:
    jobs = _jobs(["r", "r"], ["ann", "ann"], submit=[0, 0], runtime=[10, 20], cores=[4, 4])
    failures = Failures([(["n-0"], 15, 16), (["n-1"], 32, 33)], windows=[_reserved(["n-[0-1]"], 10, 40, deleted=31)])
    record = gs.simulate(jobs, platform=FOUR, policy="easy", options=Run(failures=failures)).record
    row, start, end, reason, _ = runs_of(record)
    found = [*zip(row.tolist(), (start / 1e6).tolist(), (end / 1e6).tolist(), reason, strict=True)]
    assert found[:2] == [(0, 10, 15, "failure"), (0, 16, 26, "completed")]
    assert record.status_names.tolist() == ["completed", "completed"]


@pytest.mark.parametrize("policy", POLICIES[:5])
def test_validate_checks_members_and_others(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = _members_and_others()
    for cores in (None, 3):
        options = Run(failures=Failures(windows=[_reserved(["n-[0-1]"], 10, 41, node_cores=cores)]))
        if cores:
            jobs = replace(jobs, cores=np.array([16, 6, 6, 8]), demands=None)
        gs.simulate(jobs, platform=FOUR, policy=policy, options=options).write(tmp_path)
        assert "reservation" in (tmp_path / "jobs.csv").read_text().splitlines()[0].split(",")
        assert main(["validate", str(tmp_path)]) == 0
        table = (tmp_path / "allocations.csv").read_text()
        # A member on another node, a member before its reservation, and another job on reserved nodes.
        planted = {
            "outside-reservation": [("\n2,1,n-0,", "\n2,1,n-3,"), (",10,30\n", ",9,29\n")],
            "reserved-node": [("\n4,1,n-2,", "\n4,1,n-1,")],
        }
        for kind, changes in planted.items():
            for before, after in changes:
                assert before in table
                (tmp_path / "allocations.csv").write_text(table.replace(before, after))
                capsys.readouterr()
                assert main(["validate", str(tmp_path)]) == 1
                assert kind in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["requeue", "requeue(grace=3,max=2)", "checkpoint(grace=1)", "suspend", "cancel"])
def test_members_neither_stop_others_nor_are_stopped(mode: str) -> None:
    stopped = members = 0
    for seed in range(12):
        rng = random.Random(seed)
        begin, count = rng.randint(5, 20), 20
        end = begin + rng.randint(20, 60)
        runtime = [rng.randint(1, 25) for _ in range(count)]
        demands = [
            gs.Demand(tasks=rng.randint(1, 4), each={"cores": rng.randint(1, 3), "memory": rng.choice((0, 2))})
            for _ in range(count)
        ]
        jobs = _jobs(
            [rng.choice(("", "", "r")) for _ in range(count)], ["ann"] * count, demands,
            submit=sorted(rng.randint(0, 60) for _ in range(count)), runtime=runtime,
            estimate=[it + rng.randint(0, 8) for it in runtime],
        )  # fmt: skip
        classes = np.array([rng.randint(0, 2) for _ in range(count)])
        jobs = replace(jobs, labels={**jobs.labels, "priority": classes})
        window = _reserved(["n-[0-1]"], begin, end, rng.choice((0, begin)), node_cores=rng.choice((None, 2)))
        for policy in ("fcfs", "easy", "conservative"):
            record = _run(jobs, f"{policy}?preempt={mode}", [window])
            assert_valid(record, platform=FOUR)
            member = jobs.labels["reservation"] >= 0
            row, _, _, reason, by = runs_of(record)
            cut = np.array(reason) == "preempted"
            assert not member[row[cut]].any()
            assert not member[by[cut]].any()
            assert (classes[row[cut]] < classes[by[cut]]).all()
            found = record.interruptions
            assert found is not None
            if found.suspended is not None:
                assert not member[found.suspended[[0, 4]]].any()
                assert (classes[found.suspended[0]] < classes[found.suspended[4]]).all()
            assert np.isin(record.status_names, ["completed", "rejected", "cancelled", "preempted"]).all()
            if "max=2" in mode:
                assert record.preemptions.max() <= 2
            stopped, members = stopped + int(record.preemptions.sum()), members + int(record.ran[member].sum())
            # Without members and cores, a reservation changes nothing; with one class, nothing is stopped.
            late = _reserved(["n-[0-1]"], 10_000, 10_001)
            free = replace(jobs, labels={**jobs.labels, "reservation": np.full(count, -1)})
            ends = [_run(free, f"{policy}?preempt={mode}", it).end_us.tolist() for it in ([late], [])]
            assert ends[0] == ends[1]
            equal = replace(jobs, labels={**jobs.labels, "priority": np.zeros(count, dtype=np.int64)})
            ends = [_run(equal, f"{policy}{it}", [window]).end_us.tolist() for it in (f"?preempt={mode}", "")]
            assert ends[0] == ends[1]
    assert stopped > 30
    assert members > 30


def test_other_jobs_are_checked_where_no_job_names_a_reservation() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 0], runtime=[10, 10], estimate=[10, 10], cores=[4, 4])
    record = _run(jobs, "easy", [_reserved(["n-0"], 100, 200)])
    (cluster,) = FOUR.clusters()
    assert not violations(record, capacity=cluster.capacity)
    assert record.interruptions is not None
    (window,) = record.interruptions.reserved
    moved = replace(record.interruptions, reserved=(replace(window, begin=0, announced=0),))
    found = violations(replace(record, interruptions=moved), capacity=cluster.capacity)
    assert [it.kind for it in found] == ["reserved-node"]
