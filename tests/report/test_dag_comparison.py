"""Comparisons of DAG jobs: numbers, table, words and page are those of tasks and critical paths."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.ask import compare
from gridsim.metrics.summary import GRID_METRICS, METRICS, metrics
from gridsim.metrics.utilisation import busy_cores, mean_queue_length, queue_length, utilisation, waiting_area
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.time import to_us
from gridsim.model.workload import Workload
from gridsim.policy.dag_ordering import unavoidable_delays
from gridsim.record import Record, TaskRecord
from gridsim.report import gantt, notices, page
from gridsim.report.comparison import Comparison
from gridsim.workload.synthetic.grid import Grid

POLICIES = ("fifo-job", "p-slr")
GRID = Platform(
    RouterSpec("root", (ClusterSpec("east", 4, "Kind1"), ClusterSpec("west", 4, "Kind2"))), network=Network(ccr="1/2")
)


def figure_3() -> Record:
    """Schedule A of Figure 3 of Burkimsher, Bate and Indrusiak, by hand; three cores, one tick is one second."""
    runtime = np.array([3, 9, 2, 2, 2, 4, 4, 4, 4])
    start = np.array([0, 5, 0, 3, 0, 2, 2, 6, 6])
    ready = np.array([0, 3, 0, 0, 0, 2, 2, 2, 2])
    edges = [(0, 1), (4, 5), (4, 6), (4, 7), (4, 8)]
    tasks = Tasks.from_edges(counts=[2, 1, 1, 5], runtime=runtime, cores=1, edges=edges)
    begins = tasks.first[:-1]
    times = TaskRecord(
        to_us(ready), to_us(start), to_us(start + runtime), np.zeros(9, dtype=np.int8), np.zeros(9, dtype=np.int16)
    )
    return Record(
        Workload.from_tasks(tasks, submit=[0, 0, 0, 0]),
        np.minimum.reduceat(times.start_us, begins),
        np.maximum.reduceat(times.end_us, begins),
        np.zeros(4, dtype=np.int8),
        np.zeros(4, dtype=np.int16),
        3,
        tasks=times,
        critical_path=to_us(np.array([12, 2, 2, 6])),
    )


def diamond(kinds: tuple[str, ...] = ("Kind1", "Kind2")) -> Workload:
    """One job: a, then b and c, then d; b is long and of the other kind."""
    tasks = Tasks.from_edges(
        counts=[4],
        runtime=[2, 6, 3, 1],
        cores=[1, 2, 4, 1],
        kind=[0, len(kinds) - 1, 0, 0],
        kinds=kinds,
        edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
        names=list("abcd"),
    )
    return Workload.from_tasks(tasks, submit=[10])


def small_grid(jobs: int = 60, seed: int = 1) -> Comparison:
    platform = Platform(
        RouterSpec("root", (ClusterSpec("east", 1000, "Kind1"), ClusterSpec("west", 1000, "Kind2"))),
        network=Network(ccr="1/5"),
    )
    workload = Grid(jobs=jobs, cores=2000).generate(seed)
    assert workload.tasks is not None
    crowded = Workload.from_tasks(workload.tasks, submit=workload.submit // 12_000_000)
    return compare(crowded, POLICIES, platform=platform)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return small_grid()


# ---- numbers ----------------------------------------------------------------------------------------------------


def test_requests_that_do_not_count_are_those_of_tasks() -> None:
    log = diamond().with_provenance(demands_left_aside={"memory": 4})
    assert "memory (4 tasks)" in notices.left_aside(log, Platform.single(4))[0]


def test_the_numbers_are_those_of_figure_3() -> None:
    numbers = metrics(figure_3())
    expected = {
        "makespan": 14,
        "flow": 3600 * 2 / 7,
        "utilisation": 17 / 21,
        "peak_in_flight": 3,
        "cumulative_completion": 148,
        "mean_stretch": 47 / 36,
        "worst_stretch": 5 / 2,
        "sd_stretch": 0.8370288429621868,
        "mean_slr": 19 / 12,
        "worst_slr": 5 / 2,
        "sd_slr": 0.6735753140545634,
        "mean_speedup": 71 / 70,
        "worst_speedup": 2 / 5,
        "wait_mean": 3 / 4,
        "response_mean": 31 / 4,
    }
    assert {name: numbers[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert list(numbers) == [*METRICS, *GRID_METRICS]


def test_cores_and_queue_are_those_of_tasks() -> None:
    record = figure_3()
    busy = busy_cores(record)
    assert [busy.at(time) for time in (0.0, 2.5, 3.5, 4.0, 5.0, 9.0, 13.0)] == [3, 3, 3, 3, 3, 3, 1]
    assert utilisation(record, 0, 10) == pytest.approx((34 - 4) / 30)
    assert queue_length(record).at(2.0) == 3  # T3, T7, T8
    assert mean_queue_length(record, 0, 14) == pytest.approx((3 + 2 + 4 + 4) / 14)
    assert waiting_area(record) == 13


def test_a_log_has_no_numbers_of_dags() -> None:
    assert not set(metrics(Record.from_rows([{"submit": 0, "start": 0, "end": 5}]))) & set(GRID_METRICS)


def test_cumulative_completion_counts_to_the_longest_makespan(comparison: Comparison) -> None:
    ends = {label: max(record.end) for label, record in comparison.records.items()}
    sooner = min(ends, key=lambda label: ends[label])
    alone = metrics(comparison.records[sooner])
    gap = max(ends.values()) - ends[sooner]
    work = comparison.records[sooner].workload.area.sum()
    found = comparison.metrics[sooner]["cumulative_completion"]
    assert found == pytest.approx(alone["cumulative_completion"] + gap * work, rel=1e-9)


# ---- table, words, groups ---------------------------------------------------------------------------------------


def test_the_table_is_of_schedule_lengths(comparison: Comparison) -> None:
    titles = [row.metric for row in comparison.table()]
    assert titles[:4] == ["mean_slr", "worst_slr", "sd_slr", "mean_stretch"]
    assert {"makespan", "utilisation", "peak_in_flight", "wait_mean"} <= set(titles)
    assert not any("slowdown" in title for title in titles)


def test_the_first_sentence_is_about_schedule_lengths(comparison: Comparison) -> None:
    first = comparison.sentences()[0]
    assert comparison.best in first
    assert "mean SLR" in first
    assert f"({comparison.metrics[comparison.best]['mean_slr']:.3g} against " in first


def test_a_few_jobs_are_called_too_little_data(comparison: Comparison) -> None:
    told = " ".join(comparison.sentences())
    assert "too few jobs (60, at least 80 are needed)" in told
    assert "95 % interval" not in told


def test_many_jobs_are_reported_with_intervals() -> None:
    told = " ".join(small_grid(400).sentences())
    assert "too little data for intervals" not in told
    assert "95 % interval" in told


def test_groups_are_tenths_by_work(comparison: Comparison) -> None:
    rows = [row for row in comparison.groups if row.kind == "work"]
    assert [row.group for row in rows][:2] == ["smallest tenth", "2nd tenth"]
    assert [row.jobs for row in rows] == [6] * 10
    assert not any(row.kind in ("size", "length") for row in comparison.groups)


# ---- one job ----------------------------------------------------------------------------------------------------


def test_one_job_is_reported_without_significance(tmp_path: Path) -> None:
    one = compare(
        diamond(("Kind1",)), ("fifo-job", "srtf"), platform=Platform(RouterSpec("r", (ClusterSpec("c", 4, "Kind1"),)))
    )
    told = " ".join(one.sentences())
    assert "interval" not in told or "too little data" in told
    assert math.isnan(one.metrics["srtf"]["sd_slr"])
    cell = next(row for row in one.table() if row.metric == "sd_slr").cells["srtf"]
    assert cell.text == "-"
    text = one.page(tmp_path / "page.html").read_text().replace("\u00a0", " ")
    assert ">nan<" not in text
    assert "1 job<" in text


def test_one_job_that_ends_differently_names_the_soonest() -> None:
    late, soon = figure_3().select([0]), figure_3().select([0])
    assert soon.tasks is not None
    soon.tasks.start_us[1] -= 2_000_000
    soon.tasks.end_us[1] -= 2_000_000
    soon.end_us[0] -= 2_000_000
    told = Comparison.of({"late": late, "soon": soon}, info={}).sentences()
    assert told[0] == (
        "The job finishes first under soon: after 12 s, exactly its critical path, "
        "against 14 s (1.17 times) under late."
    )
    assert "One job is too little data" in told[1]


def test_one_job_under_one_policy_is_described() -> None:
    told = compare(diamond(), ["p-slr"], platform=GRID).sentences()
    assert told[0].startswith("Under p-slr the job takes 13 s, exactly its critical path.")


# ---- chart ------------------------------------------------------------------------------------------------------


def test_the_critical_path_is_the_chain_that_attains_the_rank() -> None:
    record = compare(diamond(), ["p-slr"], platform=GRID).records["p-slr"]
    chosen = gantt.critical_tasks(record, GRID)
    assert chosen.tolist() == [True, True, False, True]
    assert record.critical_path is not None
    assert record.critical_path.tolist() == [(2 + 1 + 6 + 3 + 1) * 1_000_000]


def test_the_chain_of_every_job_is_as_long_as_its_critical_path(comparison: Comparison) -> None:
    record, platform = comparison.records["p-slr"], comparison.platform
    tasks = record.workload.tasks
    assert platform is not None
    assert tasks is not None
    chosen = gantt.critical_tasks(record, platform)
    delays = unavoidable_delays(tasks, platform, 1_000_000)
    source = np.repeat(np.arange(len(tasks)), np.diff(tasks.edge_first))
    on_it = chosen[source] & chosen[tasks.edge_to]
    job = tasks.job_rows()
    length = np.bincount(job[chosen], weights=tasks.runtime[chosen])
    chain = delays + np.zeros(len(source))
    rank = tasks.chains(tasks.estimate, delays)
    tight = on_it & (rank[source] - tasks.estimate[source] == chain + rank[tasks.edge_to])
    length += np.bincount(job[source[tight]], weights=chain[tight], minlength=len(length))
    assert length.tolist() == record.critical_path.tolist()  # type: ignore[union-attr]


def test_tasks_are_drawn_on_the_cores_of_their_cluster(comparison: Comparison) -> None:
    record, platform = comparison.records["fifo-job"], comparison.platform
    assert platform is not None
    assert record.tasks is not None
    assert record.workload.tasks is not None
    placed = gantt.task_placement(record, platform)
    count = np.diff(placed.offset)
    cluster = np.repeat(record.tasks.cluster, count)
    assert (placed.low >= 1000 * cluster).all()
    assert (placed.low + placed.size <= 1000 * (cluster + 1)).all()
    held = np.add.reduceat(placed.size, placed.offset[:-1])
    assert held.tolist() == record.workload.tasks.cores.tolist()


def test_a_window_keeps_jobs_whole(comparison: Comparison) -> None:
    packed = gantt.pack(comparison.records, jobs=200, platform=comparison.platform)
    assert 0 < packed["jobs"] <= 200
    assert "of 60 jobs" in packed["note"]
    tasks = next(iter(comparison.records.values())).workload.tasks
    assert tasks is not None
    window = gantt.task_window(comparison.records, 200)
    assert packed["jobs"] == tasks.first[window.rows.stop] - tasks.first[window.rows.start]


def opened(browser: Any, path: Path, width: int = 1280) -> Any:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.get_log("browser")
    browser.get(path.as_uri())
    ready = "const f = arguments[0], l = () => window.gridsimGantt ? f(true) : setTimeout(l, 20); l()"
    assert browser.execute_async_script(ready)
    return browser


def test_a_pinned_task_shows_its_transfers_and_the_critical_path(browser: Any, tmp_path: Path) -> None:
    opened(browser, compare(diamond(), ["p-slr"], platform=GRID).page(tmp_path / "page.html"))
    counts = "const g = gridsimGantt; g.draw(); return [g.lastArrows, g.lastCrossing, g.lastCritical]"
    assert browser.execute_script(counts) == [0, 0, 0]
    browser.execute_script("gridsimGantt.find(1)")
    assert browser.execute_script(counts) == [2, 1, 3]
    shown = browser.find_element("css selector", ".pinned").text
    assert "Job 1, d: 1 core" in shown
    assert "Needs b, c." in shown
    assert "Critical path of job 1, 13 s, 3 tasks: a → b → d." in shown
    browser.find_element("css selector", "[name=critical]").click()
    assert browser.execute_script(counts) == [2, 1, 0]
    browser.execute_script("gridsimGantt.pin(0)")
    assert browser.execute_script(counts) == [0, 0, 0]
    assert "Needs no other task" in browser.find_element("css selector", ".pinned").text
    assert browser.get_log("browser") == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_a_grid_needs_no_sideways_scrolling(
    browser: Any, comparison: Comparison, tmp_path: Path, width: int
) -> None:
    opened(browser, comparison.page(tmp_path / "page.html"), width)
    browser.execute_script("gridsimGantt.find(30); gridsimGantt.draw()")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return gridsimGantt.lastCritical") > 0
    assert browser.get_log("browser") == []


@pytest.mark.long
def test_every_sentence_of_dags_is_on_the_page(comparison: Comparison) -> None:
    text = page.render(comparison)
    assert "Schedule lengths, waits, grid and queue" in text
    assert "By work" in text
    assert page.render(comparison) == text
