"""Laws of runs with failures, windows, checkpoints and preemption, under every scheduler that supports failures."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim import registry
from gridsim.errors import GridsimError, InputError, PolicyError
from gridsim.metrics.availability import (
    lost_core_seconds,
    overhead_core_seconds,
    runs_of,
    spent_in_runs,
    useful_core_seconds,
)
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import FailureModel, Failures
from gridsim.model.moldable import Moldable
from gridsim.model.speedup import Amdahl, Linear
from gridsim.model.windows import Window
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import PRESETS
from gridsim.policy.presets import policy as made
from gridsim.record import FAILURE, REASONS, SAVED, Record, Status
from gridsim.result import Result
from gridsim.testing.invariants import violations

VARIANTS = (
    "planned?compress=arrival&ordering=sjf",
    "planned?compress=none",
    "planned?predict=recent(n=2)&correct=steps",
)
MODES = ("requeue", "checkpoint", "cancel", "suspend")
OF_STOPS = (
    *("priority", "preemptible", "on_failure", "max_restarts"),
    *("checkpoint_interval", "checkpoint_cost", "restart_cost", "save_before"),
)
"""Labels of the jobs that concern only interrupted or preempting jobs."""


def _supports(spec: str, *, preempt: bool = False) -> bool:
    """Return whether a policy without guarantees supports failures (and preemption) of jobs with users only."""
    try:
        can = capabilities_of(made(_with(spec, "preempt=requeue") if preempt else spec))
    except GridsimError:
        return False
    return "capacity_changed" in can.notified and can.scope == "cluster" and not can.guarantees


def _with(spec: str, parameter: str) -> str:
    return f"{spec}{'&' if '?' in spec else '?'}{parameter}"


KNOWN = [
    *PRESETS,
    *registry.names("scheduler"),
    *(f"backfilling?reserve={name}" for name in registry.names("reservation")),
    *(f"backfilling?ordering={name}" for name in registry.names("ordering") if name != "fair-share"),  # needs shares
    *VARIANTS,
]
_NAMED = (*PRESETS, *VARIANTS)
POLICIES = [spec for spec in dict.fromkeys(KNOWN) if _supports(spec)]
PREEMPTING = [spec for spec in POLICIES if _supports(spec, preempt=True)]


class Case(NamedTuple):
    """A machine, its jobs, and what happens to them."""

    platform: gs.Platform
    workload: gs.Workload
    failures: Failures | None
    preempt: str
    instant: Any

    def run(self, policy: str, **options: Any) -> Result:
        can, workload = capabilities_of(made(policy)), self.workload
        instant = "batched" if can.plan and can.predicts else self.instant
        if can.guarantees:  # has no classes
            labels = {name: column for name, column in workload.labels.items() if name != "priority"}
            workload = replace(workload, labels=labels)
        given: Any = {"failures": self.failures, "instant": instant, **options}
        return gs.simulate(workload, platform=self.platform, policy=policy, options=Run(**given))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw one to four nodes with memory and GPUs, up to nine jobs, failures, windows, and rules for them."""
    number = st.integers
    count = draw(number(1, 4))
    memory, gpus = draw(st.booleans()), draw(number(0, 2))
    nodes = [
        gs.NodeGroup(
            group=str(at),
            count=1,
            capacity={"cores": draw(number(1, 4)), **({"memory": draw(st.sampled_from((4, 8)))} if memory else {})},
            gpus=gpus,
            names=(str(at),),
        )
        for at in range(count)
    ]
    jobs = draw(st.lists(_jobs(memory=memory, gpus=gpus, nodes=count), min_size=1, max_size=9))
    jobs.sort(key=lambda job: job["submit"])
    workload = gs.Workload.from_columns(
        submit=[job["submit"] for job in jobs],
        runtime=[job["runtime"] for job in jobs],
        estimate=[job["estimate"] for job in jobs],
        demands=gs.Demands.of([job["demand"] for job in jobs]),
        labels={name: [job[name] for job in jobs] for name in (*OF_STOPS, "user")},
    )
    names = st.lists(st.sampled_from(range(count)), min_size=1, unique=True)
    trace: list[Any] = []
    for _ in range(draw(number(0, 4))):
        hit, down = [str(node) for node in draw(names)], draw(number(0, 45))
        if gpus and draw(st.booleans()):
            hit = [f"{node}:{draw(number(0, gpus - 1))}" for node in hit]
        trace.append((hit, down, down + draw(number(1, 30))))
    failures = Failures(
        trace,
        windows=draw(st.lists(_windows(names), max_size=3)),
        repair=draw(st.sampled_from(("unknown", "announced"))),
        requeue=draw(st.sampled_from(("original", "behind"))),
        requeue_delay=draw(st.sampled_from((0, 0, 3))),
        spares=draw(st.sampled_from((0, 0, 0, 1))) if count > 1 else 0,
        checkpoints=draw(st.sampled_from((None, Checkpoints(None), Checkpoints(4, cost=1, restart=2)))),
    )
    mode = draw(st.sampled_from(MODES))
    victims = draw(st.sampled_from(("youngest", "least-lost", "checkpointed")))
    grace = 0 if mode == "suspend" else draw(st.sampled_from((0, 0, 2, 5)))
    rule = (
        f"{mode}(victims={victims},grace={grace},max={draw(number(1, 3))},min_run={draw(st.sampled_from((0, 0, 4)))})"
    )
    return Case(gs.Platform.of_nodes(nodes), workload, failures, rule, draw(st.sampled_from(("batched", "per-event"))))


@st.composite
def _jobs(draw: st.DrawFn, *, memory: bool, gpus: int, nodes: int) -> dict[str, Any]:
    number, one = st.integers, st.sampled_from
    runtime, tasks = draw(number(1, 20)), draw(number(1, nodes + 1))
    each = {"cores": draw(number(1, 2)), **({"memory": draw(one((0, 1, 4)))} if memory else {})}
    gpu = draw(one((0, 0, 500, 1000))) if gpus else 0
    return {
        "submit": draw(number(0, 25)),
        "runtime": runtime,
        "estimate": max(1, runtime + draw(one((0, 0, 5, 15, -2)))),
        "demand": gs.Demand(tasks=tasks, each=each, gpu=gpu, tasks_per_node=draw(one((1, tasks)))),
        "priority": draw(one((-1, 0, 0, 1, 2))),
        "preemptible": draw(one((1, 1, 1, 0))),
        "on_failure": draw(one((-1, -1, -1, 0, 1))),
        "max_restarts": draw(one((-1, -1, -1, 0, 1))),
        "checkpoint_interval": draw(one((-1, 0, 2, 5))),
        "checkpoint_cost": draw(one((-1, 0, 1, 2))),
        "restart_cost": draw(one((-1, 0, 1, 2))),
        "save_before": draw(one((-1, -1, -1, -1, 3))),
        "user": draw(number(0, 2)),
    }


@st.composite
def _windows(draw: st.DrawFn, names: st.SearchStrategy[list[int]]) -> Window:
    begin = draw(st.integers(0, 40))
    return Window(
        [str(node) for node in draw(names)],
        begin,
        begin + draw(st.integers(1, 20)),
        draw(st.sampled_from(("maintenance", "drain"))),
        announced=max(0, begin - draw(st.sampled_from((0, 5, 60)))),
        at_begin=draw(st.sampled_from((None, "requeue", "wait"))),
    )


def check(case: Case, policy: str) -> None:
    """Run a case, and assert all laws that its record and its tables show."""
    record = case.run(policy).record
    assert record.interruptions is not None
    if record.interruptions.suspended is None:
        assert case.failures is not None
        spared = {"rejected-fits"} if case.failures.spares else set()  # jobs that fit only on spare nodes
        found = [str(it) for it in violations(record, platform=case.platform) if it.kind not in spared]
        assert not found, found
    pieces = pieces_of(record)
    nothing_twice(case, pieces)
    nothing_on_absent_parts(case, record, pieces)
    seconds_add_up(record)
    runs_add_up(record)


class Piece(NamedTuple):
    """Resources of a run on a node in an interval; a suspended run keeps all but the cores."""

    node: str
    start: int
    end: int
    amounts: dict[str, int]
    gpus: dict[int, int]


def pieces_of(record: Record) -> list[Piece]:
    """Return the resources of all runs; suspended ones keep all but their cores."""
    held = record.allocations
    assert held is not None
    gpus: dict[int, dict[int, int]] = {}
    for row, gpu, share in zip(held.gpu_row.tolist(), held.gpu.tolist(), held.gpu_share.tolist(), strict=True):
        gpus.setdefault(row, {})[gpu] = share
    pieces = []
    for row, node in enumerate(held.node.tolist()):
        amounts = {name: int(column[row]) for name, column in held.amounts.items()}
        name, end = held.nodes[node], int(held.end_us[row])
        pieces.append(Piece(name, int(held.start_us[row]), end, amounts, gpus.get(row, {})))
    return pieces


def nothing_twice(case: Case, pieces: list[Piece]) -> None:
    """No node has more cores and memory in use than it has, and no GPU more than its thousandths."""
    (cluster,) = case.platform.clusters()
    capacity = cluster.capacity
    assert capacity is not None
    for number, name in enumerate(capacity.nodes):
        here = [piece for piece in pieces if piece.node == name]
        for now in {piece.start for piece in here}:
            there = [piece for piece in here if piece.start <= now < piece.end]
            for resource, amount in capacity.amounts.items():
                assert sum(piece.amounts[resource] for piece in there) <= amount[number]
            for gpu in range(int(capacity.gpus[number])):
                assert sum(piece.gpus.get(gpu, 0) for piece in there) <= 1000


def nothing_on_absent_parts(case: Case, record: Record, pieces: list[Piece]) -> None:
    """No run overlaps a failure of one of its nodes or GPUs, or a window; before windows that wait, it may begin."""
    found = record.interruptions
    assert found is not None
    assert case.failures is not None
    waits = [window for window in case.failures.windows if not window.stops]
    columns = (found.node, found.gpu, found.kind, found.down_us, found.up_us)
    for where, gpu, kind, down, up in zip(*(column.tolist() for column in columns), strict=True):
        name = found.names[where]
        for piece in pieces:
            if (
                piece.node != name
                or not (piece.start < up and down < piece.end)
                or (gpu >= 0 and gpu not in piece.gpus)
            ):
                continue
            assert kind != FAILURE
            assert piece.start < down
            assert any(name in it.nodes and it.begin == down // 10**6 for it in waits)


def seconds_add_up(record: Record) -> None:
    """Each second of a run is counted once, completed jobs kept exactly their work, and all cores are accounted for."""
    rows, start, end, reasons, _ = runs_of(record)
    spent, held = spent_in_runs(record), record.allocations
    assert held is not None
    assert all((np.asarray(column) >= 0).all() for column in spent)
    length = end - start - spent.suspended
    assert (length == spent.restart + spent.kept + spent.checkpoint + spent.lost).all()
    count, completed = len(record), record.status == Status.completed

    def summed(column: Any) -> Any:
        found = np.zeros(count, dtype=np.int64)
        np.add.at(found, rows, column)
        return found

    runtime, moldable = record.workload.runtime, record.workload.moldable
    if moldable is not None:
        runtime = moldable.times_on(record.given, runtime, record.workload.cores)
    assert (summed(spent.kept)[completed] == runtime[completed]).all()
    assert not spent.lost[np.array(reasons) == "completed"].any()
    area = np.zeros(count, dtype=np.int64)
    np.add.at(area, held.job, (held.end_us - held.start_us) * held.amounts["cores"])
    assert (area == record.given * summed(length)).all()
    overhead = sum(overhead_core_seconds(record))
    counted = useful_core_seconds(record) + lost_core_seconds(record) + overhead
    assert np.allclose(counted * 10**6, area, rtol=0, atol=1)
    lost = record.given * summed(spent.lost)
    assert np.allclose(lost_core_seconds(record)[completed] * 10**6, lost[completed], rtol=0, atol=1)


def runs_add_up(record: Record) -> None:
    """Runs of a job follow each other; their number is what interrupted it; every job ends once."""
    rows, start, end, reasons, _ = runs_of(record)
    found = record.interruptions
    assert found is not None
    of = [[at for at in range(len(rows)) if rows[at] == row] for row in range(len(record))]
    asleep = set() if found.suspended is None else set(found.suspended[0].tolist())
    stopped = Counter([] if record.promises is None else record.promises.killed.tolist())
    machine, saved = (
        Counter(found.job[found.reason != SAVED].tolist()),
        Counter(found.job[found.reason == SAVED].tolist()),
    )
    again = {"preempted", *(REASONS[at] for at in range(len(REASONS)))}
    for row, runs in enumerate(of):
        assert all(end[one] <= start[other] for one, other in pairwise(runs))
        assert all(reasons[at] in again for at in runs[:-1])
        status = Status(int(record.status[row]))
        if status in (Status.rejected, Status.unadmitted, Status.cancelled):
            assert not runs
            continue
        assert status in (Status.completed, Status.killed_walltime, Status.failed, Status.preempted)
        assert int(record.end_us[row]) == int(end[runs[-1]])
        if status in (Status.completed, Status.killed_walltime):
            assert reasons[runs[-1]] == status.name
        if row not in asleep:
            ended = status in (Status.failed, Status.preempted)
            words = Counter(reasons[at] for at in runs)
            assert len(runs) == 1 + machine[row] + stopped[row] + saved[row]
            assert words["saved"] == saved[row]
            assert words["preempted"] == stopped[row] + (status == Status.preempted)
            assert sum(words.values()) == len(runs) - 1 + ended + (not ended)


def test_the_policies_of_the_registry_that_can_are_tested() -> None:
    assert {"fcfs", "easy", "conservative", "depth", "backfilling?ordering=wfp3", *VARIANTS} <= set(POLICIES)
    assert set(POLICIES) - set(PREEMPTING) == {"moldable-greedy", "moldable-submit"}


@pytest.mark.parametrize("policy", [spec for spec in POLICIES if spec in _NAMED])
@settings(max_examples=5)
@given(case=cases())
def test_laws_of_failures_windows_and_checkpoints(policy: str, case: Case) -> None:
    check(case, policy)


@pytest.mark.parametrize("policy", [spec for spec in PREEMPTING if spec in _NAMED])
@settings(max_examples=8)
@given(case=cases())
def test_laws_of_preemption(policy: str, case: Case) -> None:
    check_preemption(case, policy)


@settings(max_examples=20)
@given(case=cases(), policy=st.sampled_from(PREEMPTING))
def test_laws_under_any_policy(policy: str, case: Case) -> None:
    check(case, policy)
    check_preemption(case, policy)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=80)
@given(case=cases())
def test_laws_of_failures_windows_and_checkpoints_on_more_machines(policy: str, case: Case) -> None:
    check(case, policy)


@pytest.mark.long
@pytest.mark.parametrize("policy", PREEMPTING)
@settings(max_examples=80)
@given(case=cases())
def test_laws_of_preemption_on_more_machines(policy: str, case: Case) -> None:
    check_preemption(case, policy)


REFUSING = ("moldable-start", "moldable-combined")
"""Policies that choose sizes at starts: they are not notified of failures, but their jobs can write checkpoints."""

ON_ARRIVAL = ("moldable-greedy", "moldable-submit", "planned?partition=greedy")
"""Policies that choose sizes on arrival: jobs keep them in all their runs."""

AS_REQUESTED = ("easy", "conservative", "planned?partition=rigid")


def moldable(case: Case) -> Case:
    """Return the case with plain cores instead of tasks, and other possible sizes of every job."""
    demands, given = case.workload.demands, case.workload
    assert demands is not None
    cores = np.minimum(given.cores, case.platform.cores)
    columns: Any = {name: getattr(given, name) / 10**6 for name in ("submit", "runtime", "estimate")}
    workload = gs.Workload.from_columns(**columns, cores=cores)
    labels = {name: column for name, column in given.labels.items() if name not in ("priority", "preemptible")}
    laws = [Amdahl(serial=0.3) if len(given) % 2 else Linear()]
    sizes = Moldable.of(cores, np.maximum(1, cores // 2), cores + 3, laws)
    return case._replace(workload=replace(workload, labels=labels, moldable=sizes))


def check_moldable(case: Case) -> None:
    """Check jobs of several sizes under failures; those chosen at starts with checkpoints alone."""
    case = moldable(case)
    for policy in (*AS_REQUESTED, *ON_ARRIVAL):
        check(case, policy)
    labels = {name: column for name, column in case.workload.labels.items() if name != "save_before"}
    alone = Failures(checkpoints=Checkpoints(4, cost=1, restart=2))
    for policy in REFUSING:
        check(case._replace(failures=alone, workload=replace(case.workload, labels=labels)), policy)
        for failures in (Failures([(["0"], 1, 2)]), Failures(windows=[Window(["0"], 1, 2)])):
            with pytest.raises(InputError, match="it chooses sizes of jobs; expected for example easy"):
                case._replace(failures=failures).run(policy)


@settings(max_examples=10)
@given(case=cases())
def test_laws_of_jobs_of_several_sizes(case: Case) -> None:
    check_moldable(case)


@pytest.mark.long
@settings(max_examples=80)
@given(case=cases())
def test_laws_of_jobs_of_several_sizes_on_more_machines(case: Case) -> None:
    check_moldable(case)


def test_a_prediction_that_is_exceeded_when_a_node_returns_is_corrected_first() -> None:
    # The second job of the user is predicted to end at 25 s, when n-1 returns, and runs until 40 s.
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=2, capacity={"cores": 1})])
    workload = gs.Workload.from_columns(
        submit=[0, 0, 15, 16],
        runtime=[10, 10, 25, 5],
        estimate=[50, 50, 50, 50],
        cores=[1] * 4,
        labels={"user": [1] * 4},
    )
    options = Run(failures=Failures([(["n-1"], 12, 25)]), instant="per-event")
    record = gs.simulate(workload, platform=machine, policy="easy++", options=options).record
    assert record.start.tolist() == [0, 0, 15, 25]


def check_preemption(case: Case, policy: str) -> None:
    """Check a case with preemption; the first job of the queue may wait for memory that a suspended job keeps."""
    spec = _with(policy, f"preempt={case.preempt}")
    try:
        check(case, spec)
    except PolicyError as error:
        if not case.preempt.startswith("suspend") or "never started" not in str(error):
            raise


def files_of(result: Result) -> dict[str, bytes]:
    """Return the files of a result folder."""
    with tempfile.TemporaryDirectory() as folder:
        result.write(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def check_nothing_happens(case: Case, policy: str) -> None:
    """Options without an effect only add columns and measures; rate 0, no failures and no windows are one run."""
    late = [Window(["0"], 10**6, 10**6 + 5), Window(["0"], 5, 5)]
    rare = FailureModel(mtbf=1e15)
    given = [None, Failures(), Failures(models=[rare]), Failures(windows=late), Failures(spares=0, repair="announced")]
    before, *after = (files_of(replace_failures(case, each).run(policy, engine="simpy")) for each in given)
    for files in after:
        assert files.keys() == before.keys()
        for name, content in files.items():
            old, new = before[name].splitlines(), content.splitlines()
            if name == "run.json":
                described, original = json.loads(content), json.loads(before[name])
                assert described["options"].pop("failures", None) is not None
                assert described == original
            elif name == "metrics.json":
                assert json.loads(before[name]).items() <= json.loads(content).items()
            elif name == "jobs.csv":
                assert all(longer.startswith(line) for line, longer in zip(old, new, strict=True))
            else:
                assert content == before[name]
            assert name == "run.json" or content == after[0][name]


def replace_failures(case: Case, failures: Failures | None) -> Case:
    """Return a case with other failures, and without labels that concern interrupted jobs."""
    labels = {name: column for name, column in case.workload.labels.items() if name not in OF_STOPS}
    return case._replace(failures=failures, workload=replace(case.workload, labels=labels))


def without_classes(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return result files without the column of the classes, which repeats the input."""
    rows = [line.split(",") for line in files["jobs.csv"].decode().splitlines()]
    kept = [place for place, name in enumerate(rows[0]) if name != "priority"]
    return {**files, "jobs.csv": "\n".join(",".join(row[place] for place in kept) for row in rows).encode()}


def check_one_class(case: Case, policy: str) -> None:
    """Jobs of one class write the files of jobs without classes; preemption among them changes nothing."""
    plain = replace_failures(case, None)
    labels = {**plain.workload.labels, "priority": np.full(len(plain.workload), 3)}
    one = plain._replace(workload=replace(plain.workload, labels=labels))
    specs = (policy, policy, _with(policy, f"preempt={case.preempt}"))
    runs = zip((plain, one, one), specs, strict=True)
    before, after, stopping = (without_classes(files_of(it.run(spec, engine="simpy"))) for it, spec in runs)
    assert after == before
    described, original = json.loads(stopping.pop("run.json")), json.loads(before.pop("run.json"))
    assert stopping == before
    assert {name for name in original if described[name] != original[name]} == {"policy"}


@settings(max_examples=15)
@given(case=cases(), policy=st.sampled_from(POLICIES))
def test_options_without_an_effect_change_no_file(policy: str, case: Case) -> None:
    check_nothing_happens(case, policy)


@settings(max_examples=15)
@given(case=cases(), policy=st.sampled_from(PREEMPTING))
def test_one_class_changes_no_file(policy: str, case: Case) -> None:
    check_one_class(case, policy)


@pytest.mark.long
@pytest.mark.parametrize("policy", PREEMPTING)
@settings(max_examples=20)
@given(case=cases())
def test_options_without_an_effect_change_no_file_on_more_machines(policy: str, case: Case) -> None:
    check_nothing_happens(case, policy)
    check_one_class(case, policy)
