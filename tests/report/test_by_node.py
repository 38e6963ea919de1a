"""A chart by node: every job is on its nodes, as high as its allocation, without overlaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.model.capacity import GPU, NodeGroup
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.demand import Demand, Demands
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.model.windows import Window
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule
from gridsim.record import FAILURE, REASONS, Record
from gridsim.report import gantt, gantt_rows
from gridsim.report.comparison import Comparison
from gridsim.report.explain_text import sentences
from gridsim.report.gantt_rows import Axis
from gridsim.simulation import run, simulate

JOBS = 60

GROUPS = [
    NodeGroup(group="thin", count=3, capacity={"cores": 8, "memory": 4096}),
    NodeGroup(group="gpu", count=2, capacity={"cores": 4, "memory": 8192}, gpus=2),
]


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    """Jobs of one to three tasks, a third with GPUs or halves of one, under two policies."""
    rng = np.random.default_rng(5)
    kinds = [
        Demand(tasks=2, each={"cores": 3, "memory": 512}),
        Demand(tasks=1, each={"cores": 2, "memory": 1024}, gpu=500),
        Demand(tasks=1, each={"cores": 1, "memory": 2048}, gpu=2000),
        Demand(tasks=3, each={"cores": 8, "memory": 256}),
    ]
    asked = Demands.of([kinds[each] for each in rng.integers(0, 4, JOBS)])
    runtime = rng.integers(50, 400, JOBS) * 1_000_000
    workload = Workload(
        job=np.arange(1, JOBS + 1),
        submit=np.sort(rng.integers(0, 3000, JOBS)) * 1_000_000,
        runtime=runtime,
        estimate=runtime * 2,
        cores=asked.cores,
        deadline=np.full(JOBS, NEVER),
        labels={"user": rng.integers(1, 4, JOBS)},
        demands=asked,
    )
    platform = Platform.of_nodes(GROUPS)
    return {name: run(workload, platform, name) for name in ("fcfs", "easy")}


@pytest.fixture(scope="module")
def axes(records: dict[str, Record]) -> tuple[Axis, ...]:
    return gantt_rows.by_node(records)


def test_there_is_a_chart_of_each_resource_in_use(axes: tuple[Axis, ...]) -> None:
    assert [(axis.resource, axis.unit, axis.rows.tolist()) for axis in axes] == [
        ("cores", 1, [8, 8, 8, 4, 4]),
        ("memory", 256, [16, 16, 16, 32, 32]),
        (GPU, 500, [4, 4]),
    ]
    assert [name for name, _ in axes[2].bands] == ["gpu-0", "gpu-1"]


def test_jobs_lie_on_their_nodes_as_high_as_what_they_hold_and_never_over_another(
    records: dict[str, Record], axes: tuple[Axis, ...]
) -> None:
    for axis in axes:
        node_of_row = np.repeat(axis.node, axis.rows)
        for label, (placement, amount, _) in axis.held.items():
            record = records[label]
            held: Any = record.allocations
            until = np.full(len(node_of_row), -1)
            for job in np.argsort(record.start_us, kind="stable").tolist():
                rows = placement.cores(job)
                assert (until[rows] <= record.start_us[job]).all()
                until[rows] = record.end_us[job]
                assert len(rows) * axis.unit == amount[job]
                mine = held.job == job
                if axis.resource != GPU:
                    wanted = np.bincount(held.node[mine], held.amounts[axis.resource][mine], 5)
                    assert (np.bincount(node_of_row[rows], minlength=5) * axis.unit == wanted).all()
                    continue
                gpus = np.flatnonzero(np.isin(held.gpu_row, np.flatnonzero(mine)))
                numbers = (held.node[held.gpu_row[gpus]] - 3) * 2 + held.gpu[gpus]
                assert set((rows // 2).tolist()) == set(numbers.tolist())


def test_equal_nodes_share_a_band_where_nodes_are_many() -> None:
    many = [NodeGroup(group="a", count=12, capacity={"cores": 1}), NodeGroup(group="b", capacity={"cores": 2})]
    one = np.ones(1, dtype=np.int64)
    workload = Workload(
        job=one,
        submit=one,
        runtime=one,
        estimate=one,
        cores=14 * one,
        deadline=one * NEVER,
        demands=Demands.of([Demand(cores=14)]),
    )
    found = gantt_rows.by_node({"fcfs": run(workload, Platform.of_nodes(many), "fcfs")})
    assert [axis.bands for axis in found] == [(("a-0 to a-11", 12), ("b", 1))]
    assert found[0].held["fcfs"].placement.size.tolist() == [14]


def test_large_counts_are_drawn_in_fewer_rows(records: dict[str, Record], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt_rows, "MOST_ROWS", 20)
    cores, memory, gpus = gantt_rows.by_node(records)
    assert cores.rows.sum() == 32, "cores are exact"
    assert 10 <= memory.rows.sum() <= 20
    assert (memory.held["easy"].amount == gantt_rows.by_node(records)[1].held["easy"].amount).all()
    assert gpus.unit == 500


def test_records_of_different_machines_or_of_none_are_not_drawn_by_node(records: dict[str, Record]) -> None:
    smaller = replace(records["easy"], allocations=None, capacity=None)
    assert gantt_rows.by_node({"fcfs": records["fcfs"], "easy": smaller}) == ()
    assert gantt_rows.by_node({"easy": smaller}) == ()


@pytest.fixture(scope="module")
def failing() -> dict[str, Record]:
    """Return a job on a node that is absent from 20 to 50 s, and one on a GPU that is absent from 10 to 30 s."""
    asked = Demands.of([Demand(tasks=1, each={"cores": 4}), Demand(tasks=1, each={"cores": 1}, gpu=1000)])
    workload = Workload.from_columns(submit=[0, 0], runtime=[60, 60], demands=asked)
    machine = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4}, gpus=1)])
    options = Run(failures=Failures([(["n-0"], 20, 50), (["n-1:0"], 10, 30)]))
    return {
        name: simulate(workload, platform=machine, policy=name, options=options).record for name in ("fcfs", "easy")
    }


def test_absent_nodes_and_interrupted_runs_have_rows(failing: dict[str, Record]) -> None:
    cores, gpus = gantt_rows.by_node(failing)
    absent = [gantt_rows.absent_rows(axis, failing["easy"]) for axis in (cores, gpus)]
    of_gpu, of_node = (1, 1, FAILURE, 10, 30), (0, 4, FAILURE, 20, 50)
    assert rows_of(absent[0]) == [of_node]
    assert rows_of(absent[1]) == [of_gpu, (0, 1, FAILURE, 20, 50)]
    assert rows_of(cores.held["easy"].earlier) == [(0, 0, 4, 0, 20), (1, 4, 1, 0, 10)]
    assert rows_of(gpus.held["easy"].earlier) == [(1, 1, 1, 0, 10)]
    assert cores.held["easy"].amount.tolist() == [4, 1]
    packed = gantt.pack(failing)["axes"]
    assert [sorted(held.keys() & {"away", "ofJob"}) for axis in packed for held in axis["held"]] == [
        ["away", "ofJob"]
    ] * 4


def rows_of(columns: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Return rows with the last two columns in seconds."""
    seconds = [column // 1_000_000 for column in columns[-2:]]
    return list(zip(*(column.tolist() for column in (*columns[:-2], *seconds)), strict=True))


@pytest.fixture(scope="module")
def suspending() -> dict[str, Record]:
    """Return a job that is suspended for another one, a failure, a maintenance and a drain; on nodes and on a pool."""
    log = Workload.from_columns(
        submit=[0, 10, 20, 30],
        runtime=[100, 20, 40, 30],
        cores=[4, 12, 4, 4],
        labels={"priority": np.array([0, 1, 0, 0]), "user": np.ones(4, dtype=np.int64)},
    )
    nodes = Platform.of_nodes([NodeGroup(group="n", count=3, capacity={"cores": 4})])
    windows = [Window(["n-2"], 80, 120, announced=0), Window(["n-2"], 60, 75, kind="drain")]
    options = Run(failures=Failures([(["n-1"], 60, 75)], windows=windows))
    policy = "easy?preempt=suspend"
    return {
        "nodes": simulate(log, platform=nodes, policy=policy, options=options).record,
        "pool": simulate(log, platform=Platform.single(12), policy=policy).record,
    }


def test_windows_are_distinct_from_failures(suspending: dict[str, Record]) -> None:
    cores = gantt_rows.by_node({"easy": suspending["nodes"]})[0]
    rows = rows_of(gantt_rows.absent_rows(cores, suspending["nodes"]))
    assert cores.unit == 4  # a row per node
    named = [(node, REASONS[kind], down, up) for node, _, kind, down, up in rows]
    assert named == [(1, "failure", 60, 75), (2, "drain", 60, 75), (2, "maintenance", 80, 120)]


def test_the_stretches_of_suspended_runs_hold_their_cores_once(suspending: dict[str, Record]) -> None:
    record = suspending["pool"].in_stretches
    found = gantt_rows.on_pool(record)
    job, low, size, start, end = found.earlier
    assert (job.tolist(), size.tolist(), (start // 1_000_000).tolist(), (end // 1_000_000).tolist()) == (
        [0], [4], [0], [10],
    )  # fmt: skip
    last = np.repeat(np.arange(4), np.diff(found.placement.offset))
    used = np.zeros((12, 120), dtype=np.int64)
    begins, ends = np.r_[record.start_us[last], start], np.r_[record.end_us[last], end]
    pieces = np.r_[found.placement.low, low], np.r_[found.placement.size, size], begins // 1_000_000, ends // 1_000_000
    for first, rows, since, until in zip(*pieces, strict=True):
        used[first : first + rows, since:until] += 1
    assert used.max() == 1
    assert used.sum() == 4 * 100 + 12 * 20 + 4 * 40 + 4 * 30
    packed = gantt.pack({"pool": suspending["pool"]})
    assert (packed["suspended"], packed["policies"][0]["ofJob"]["length"]) == (True, 1)


@pytest.mark.long
@pytest.mark.parametrize(("machine", "drawn"), [("nodes", [3, 2, 1]), ("pool", [0, 1, 1])])
def test_the_page_joins_the_stretches_of_suspended_runs(
    browser: Any,
    visit: Callable[..., Any],
    suspending: dict[str, Record],
    comparing: Callable[..., Comparison],
    tmp_path: Any,
    machine: str,
    drawn: list[int],
) -> None:
    records = {"easy": suspending[machine], "other": suspending[machine]}
    opened = visit(browser, comparing(records).page(tmp_path / "page.html").as_uri())
    counts = """
        const chart = gridsimGantt;
        chart.zoom(1);
        chart.draw();
        return [chart.lastAbsences, chart.lastEarlier, chart.lastSuspended];
    """
    assert opened.execute_script(counts) == [2 * count for count in drawn]
    text = opened.find_element("css selector", "#gantt").text
    assert "A dashed line joins the stretches of a run that was suspended." in text
    legend = [item.text for item in opened.find_elements("css selector", "#gantt .legend li")]
    kinds = ["failed nodes", "nodes in maintenance", "drained nodes"]
    assert legend[-3:] == kinds if machine == "nodes" else not set(legend) & set(kinds)


@pytest.mark.long
def test_the_page_draws_absent_nodes_and_interrupted_runs(
    browser: Any,
    visit: Callable[..., Any],
    failing: dict[str, Record],
    comparing: Callable[..., Comparison],
    tmp_path: Any,
) -> None:
    opened = visit(browser, comparing(failing).page(tmp_path / "page.html").as_uri())
    counts = "gridsimGantt.zoom(1); gridsimGantt.draw(); return [gridsimGantt.lastAbsences, gridsimGantt.lastEarlier]"
    assert opened.execute_script(counts) == [2, 4]
    why = "return gridsimGantt.data.policies.map((one) => [...one.runs.values()].flat().map((run) => run[2]))"
    assert opened.execute_script(why) == [[1, 1], [1, 1]]
    text = opened.find_element("css selector", "#gantt").text
    assert "failed nodes" in text
    assert "maintenance" not in text
    assert "Paler bars are runs that were interrupted or stopped." in text


@pytest.mark.long
def test_the_page_names_each_reason_why_runs_were_stopped(
    browser: Any, visit: Callable[..., Any], comparing: Callable[..., Comparison], tmp_path: Any
) -> None:
    # Job 1 loses its node at 50 s and saves itself twice; job 2 saves itself once, job 3 ends in its first run.
    log = Workload.from_columns(
        submit=[0, 1, 2], runtime=[300, 120, 9], estimate=[100, 100, 9], cores=[4, 4, 4], cores_stated=4
    )
    machine = Platform.of_nodes([NodeGroup(group="n", count=1, capacity={"cores": 4})])
    options = Run(failures=Failures([(["n"], 50, 60)], checkpoints=Checkpoints(10, save_before=20)))
    records = {name: simulate(log, platform=machine, policy=name, options=options).record for name in ("easy", "fcfs")}
    opened = visit(browser, comparing(records).page(tmp_path / "page.html").as_uri())
    script = (
        "const { data } = gridsimGantt; return [0, 1, 2].map((row) => gridsimGantt.explained(row, data.policies[0]))"
    )
    expected = [sentences(explain(JobSchedule.of(records["easy"]), job), "easy") for job in (1, 2, 3)]
    assert opened.execute_script(script) == expected
    assert "in 3 runs (1 interrupted by absent nodes and 2 ended by a save before the walltime)" in expected[0][0]
    assert "in 1 run ended by a save before the walltime." in expected[1][0]
    assert "in addition" not in expected[2][0]


@pytest.mark.long
def test_the_page_shows_nodes_their_resources_and_what_a_job_held(
    browser: Any,
    visit: Callable[..., Any],
    records: dict[str, Record],
    comparing: Callable[..., Comparison],
    tmp_path: Any,
) -> None:
    opened = visit(browser, comparing(records).page(tmp_path / "page.html").as_uri())
    assert opened.execute_script("gridsimGantt.draw(); return gridsimGantt.data.bands.map((band) => band.name)") == [
        "thin-0", "thin-1", "thin-2", "gpu-0", "gpu-1",
    ]  # fmt: skip
    options = "return [...document.querySelector('#gantt [name=rows]').options].map((option) => option.text)"
    assert opened.execute_script(options) == ["cores", "memory", "GPUs"]
    switch = """
        const rows = document.querySelector("#gantt [name=rows]"), canvas = document.querySelector("#gantt canvas");
        rows.value = "2";
        rows.dispatchEvent(new Event("change"));
        gridsimGantt.draw();
        const one = gridsimGantt.data.policies[1];
        gridsimGantt.zoom(1);
        return [gridsimGantt.data.bands.map((band) => band.name), [...one.row], [...one.size]];
    """
    bands, rows, sizes = opened.execute_script(switch)
    held = gantt_rows.by_node(records)[2].held["easy"].amount
    assert bands == ["gpu-0", "gpu-1"]
    assert (np.bincount(rows, sizes, JOBS) * 500 == held).all()
    note = opened.find_element("css selector", "#gantt .note").text
    assert "Rows are nodes" in note
    assert "and its GPUs" in note
    assert not [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def reserving() -> Record:
    """Return a member of a reservation of two nodes, one of 2 of 4 cores of a third, and other jobs."""
    log = Workload.from_columns(
        submit=[0, 1, 2, 3],
        runtime=[30, 20, 40, 90],
        cores=[4, 8, 4, 2],
        labels={"reservation": np.array([-1, 0, -1, -1]), "user": np.zeros(4, dtype=np.int64)},
    )
    log = replace(log, names={"reservation": ("r",), "user": ("ann",)})
    nodes = Platform.of_nodes([NodeGroup(group="n", count=4, capacity={"cores": 4})])
    windows = [
        Window(["n-[2-3]"], 40, 80, "reservation", 0, id="r", users=["ann"]),
        Window(["n-1"], 20, 60, "reservation", 0, id="s", users=["bob"], node_cores=2),
        Window(["n-0"], 72, 75),
    ]
    return simulate(log, platform=nodes, policy="easy", options=Run(failures=Failures(windows=windows))).record


def test_reservations_have_rows_of_their_cores(reserving: Record) -> None:
    cores = gantt_rows.by_node({"easy": reserving})[0]
    assert cores.unit == 2
    rows = rows_of(gantt_rows.absent_rows(cores, reserving))
    named = [(first, size, REASONS[kind], begin, end) for first, size, kind, begin, end in rows]
    assert sorted(named) == [
        (0, 2, "maintenance", 72, 75),
        (2, 1, "reservation", 20, 60),
        (4, 2, "reservation", 40, 80),
        (6, 2, "reservation", 40, 80),
    ]


@pytest.mark.long
def test_the_page_draws_reservations(
    browser: Any, visit: Callable[..., Any], reserving: Record, comparing: Callable[..., Comparison], tmp_path: Any
) -> None:
    records = {"easy": reserving, "other": reserving}
    opened = visit(browser, comparing(records).page(tmp_path / "page.html").as_uri())
    counts = "gridsimGantt.zoom(1); gridsimGantt.draw(); return gridsimGantt.lastAbsences"
    assert opened.execute_script(counts) == 2 * 4
    legend = [item.text for item in opened.find_elements("css selector", "#gantt .legend li")]
    assert legend[-2:] == ["nodes in maintenance", "reserved nodes"]
