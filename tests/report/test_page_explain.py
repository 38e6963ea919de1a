"""One job explained on the page: a browser shows the same facts and words as `gridsim.questions.explain`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.files import plain
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.job_id import JobIds
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.site import Node, Qos, Site, SitePartition
from gridsim.model.time import MICROSECOND, NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.number_formatting import duration, number, percent
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule
from gridsim.record import Beyond, Predictions, Promises, Record, Status
from gridsim.report import gantt, markup, page
from gridsim.report.comparison import Comparison
from gridsim.report.explain_text import sentences
from gridsim.simulation import simulate

pytestmark = pytest.mark.long

Visit = Callable[[Any, str], Any]
HOSTILE = "<script>window.hacked = 1</script>"


def named(record: Record, workload: Any) -> Record:
    """The record with estimates other than run times, names of users, and a few rejected jobs."""
    start, end, status = record.start_us.copy(), record.end_us.copy(), record.status.copy()
    start[50::400], end[50::400], status[50::400] = NEVER, NEVER, Status.unadmitted
    changed = replace(record, workload=workload, start_us=start, end_us=end, status=status)
    told = {"beyond": chains(record, start), "promises": cut_short(record, start), "predictions": believed(changed)}
    return replace(changed, **told)


def believed(record: Record) -> Predictions:
    """Predictions of half to twice the run time, for jobs that ran."""
    held = np.where(record.ran, record.end_us - record.start_us, NEVER)
    factor = stream(2, "test").choice([0.5, 0.9, 1.0, 2.0], len(record))
    first = np.where(record.ran, np.maximum(held * factor // MICROSECOND, 1).astype(np.int64) * MICROSECOND, NEVER)
    return Predictions(first, np.where(first < held, 1, 0))


def chains(record: Record, start: IntArray) -> Beyond:
    """Chains of three pieces, of every seventh job that waited and of those that waited longest."""
    waited = np.where(start < NEVER, start - record.workload.submit, 0) // MICROSECOND
    rows = np.flatnonzero(waited > 10)
    rows = np.unique(np.concatenate((rows[::7], rows[np.argsort(-waited[rows])[:2]])))
    begin, quarter = record.workload.submit[rows], waited[rows] // 4 * MICROSECOND
    first = np.stack((begin, begin + 2 * quarter), axis=1).ravel()
    last = np.stack((begin + quarter, begin + 3 * quarter), axis=1).ravel()
    return Beyond("split", np.full(len(record), NEVER), np.repeat(rows, 2), first, last)


def cut_short(record: Record, start: IntArray) -> Promises:
    """Two runs that others cut short, of every ninth job that waited and of the one that waited longest."""
    n, waited = len(record), np.where(start < NEVER, start - record.workload.submit, 0) // MICROSECOND
    rows = np.flatnonzero(waited > 10)
    rows = np.unique(np.append(rows[::9], np.argmax(waited)))
    begin, quarter = record.workload.submit[rows], waited[rows] // 4 * MICROSECOND
    first, last = np.concatenate((begin, begin + 2 * quarter)), np.concatenate((begin + quarter, begin + 3 * quarter))
    never, nobody = np.full(n, NEVER), np.zeros(n, dtype=np.int64)
    return Promises(never, never, nobody, nobody > 0, np.tile(rows, 2), first, last, guarantees=False)


@pytest.fixture(scope="module")
def shown(making: Callable[..., dict[str, Record]]) -> dict[str, Record]:
    records = making(1500, policies=2)
    workload = records["fcfs"].workload
    rng = stream(1, "test")
    users = ("", *(f"user-{number}" for number in range(1, 250)), HOSTILE)
    labels = {"user": np.where(workload.labels["user"] > 249, 250, workload.labels["user"])}
    labels["user"][:20] = -1
    labels["user"][20:40] = 250
    factor = rng.choice([1, 2, 5], len(workload))
    labels["account"] = rng.integers(1, 3, len(workload))
    labels["group"] = rng.integers(1, 4, len(workload))
    names = {"user": users, "account": ("", HOSTILE, "physics")}
    logged = {"array_job": workload.job.copy(), "array_task": np.full(1500, -1), "het_part": np.full(1500, -1)}
    logged["array_job"][100:120], logged["array_task"][100:120] = 101, np.arange(20)
    logged["array_job"][300:303], logged["het_part"][300:303] = 301, np.arange(3)
    logged["array_job"][400:404], logged["array_task"][400:404] = 2000, -2
    dates = {"clock": {"origin": 1_795_244_026.5, "zone": "Europe/Berlin"}}
    changed = {"labels": labels, "names": names, "logged": logged, "provenance": dates}
    workload = replace(workload, estimate=workload.runtime * factor, **changed)
    return {label: named(record, workload) for label, record in records.items()}


@pytest.fixture(scope="module")
def address(
    shown: dict[str, Record], comparing: Callable[..., Comparison], tmp_path_factory: pytest.TempPathFactory
) -> str:
    return comparing(shown).page(tmp_path_factory.mktemp("page") / "page.html").as_uri()


@pytest.fixture(scope="module")
def opened(browser: Any, visit: Visit, address: str) -> Iterator[Any]:
    visit(browser, address)
    yield browser
    assert browser.get_log("browser") == []


def jobs_of(shown: dict[str, Record]) -> list[int]:
    """Jobs of all kinds: the first, the longest waits, some that did not wait, some that did not run, and any."""
    record = shown["fcfs"]
    waits = np.nan_to_num(record.wait, nan=-1.0)
    rows = [0, *np.argsort(-waits)[:4], *np.flatnonzero(waits == 0)[:3], 50, 450, *range(20, 1500, 131)]
    rows += np.unique(record.beyond.job)[:3].tolist() if record.beyond is not None else []
    rows += record.promises.killed[:5].tolist() if record.promises is not None else []
    return [int(record.workload.job[row]) for row in rows]


@pytest.mark.parametrize("label", ["fcfs", "greedy"])
def test_the_browser_finds_the_facts_that_python_finds(opened: Any, shown: dict[str, Record], label: str) -> None:
    schedule = JobSchedule.of(shown[label])
    jobs, policy = jobs_of(shown), list(shown).index(label)
    told = opened.execute_script(
        """
        const [jobs, k] = arguments, { data } = gridsimGantt, one = data.policies[k];
        const plain = (key, value) => (Number.isNaN(value) ? null : value);
        return JSON.stringify(jobs.map((job) => gridsimWhy.explain(data, one, data.job.indexOf(job))), plain);
        """,
        jobs,
        policy,
    )
    exceeded = 0
    for job, found in zip(jobs, json.loads(told), strict=True):
        expected = explain(schedule, job).to_dict()
        for name in ("first_wait", "logged_wait", "logged_reason"):  # of the log alone
            del expected[name]
        exceeded += len(expected.get("exceeded", ()))
        for recorded in ("logged_wait", "logged_reason", "first_wait"):  # the page has no recorded schedule
            expected.pop(recorded, None)
        assert set(found) == set(expected)
        if expected["start"] == expected["start"]:
            expected["status"] = ""  # the page has only the reason why a job did not run
        for name, value in expected.items():
            if name in ("passers", "reasons", "stopped_by"):
                assert found[name] == value, job
            elif isinstance(value, list):
                assert [other["job"] for other in found[name]] == [other["job"] for other in value], (job, name)
                for mine, theirs in zip(found[name], value, strict=True):
                    for text in ("user", "id"):
                        assert mine.pop(text) == theirs.pop(text)
                    assert mine == pytest.approx(theirs, rel=1e-12)
            elif isinstance(value, float):
                assert (np.nan if found[name] is None else found[name]) == pytest.approx(value, nan_ok=True, rel=1e-12)
            else:
                assert found[name] == value, (job, name)
    assert exceeded > 5


@pytest.mark.parametrize("label", ["fcfs", "greedy"])
def test_the_browser_says_what_python_says(opened: Any, shown: dict[str, Record], label: str) -> None:
    schedule, jobs = JobSchedule.of(shown[label]), [int(job) for job in shown[label].workload.job[::7]]
    jobs += jobs_of(shown)
    told = opened.execute_script(
        """
        const [jobs, k] = arguments, { data } = gridsimGantt, one = data.policies[k];
        return jobs.map((job) => gridsimGantt.explained(data.job.indexOf(job), one));
        """,
        jobs,
        list(shown).index(label),
    )
    assert any("summed over the 3 pieces of its chain." in lines[0] for lines in told)
    assert any("in 2 runs stopped for other jobs." in lines[0] for lines in told)
    beyond = "While it waited, these jobs exceeded their predicted run times: job "
    assert any(beyond in line for lines in told for line in lines)
    for job, lines in zip(jobs, told, strict=True):
        assert lines == sentences(explain(schedule, job), label)
        assert re.match(r"It was submitted (at|and started at) 2026-11-2\d \d\d:\d\d", lines[1])


def test_numbers_are_written_as_python_writes_them(opened: Any) -> None:
    values = [
        0.0,
        0.125,
        1.005,
        12.25,
        12.35,
        44.5,
        59.5,
        59.4,
        59.96,
        90.0,
        3599.0,
        3630.0,
        3690.0,
        86_399.0,
        1e7,
        1e8,
    ]
    got = opened.execute_script("return arguments[0].map(gridsimWhy.words.duration)", values)
    assert got == [duration(value) for value in values]
    shares = [0.0, 0.0042, 0.00125, 0.00375, 0.0945, 0.0955, 0.0995, 0.125, 0.105, 0.5, 1.0, 0.634, 0.0105, 1e-9]
    got = opened.execute_script("return arguments[0].map(gridsimWhy.words.percent)", shares)
    assert got == [percent(share) for share in shares]
    counts = [0, 0.5, 1.5, 2.5, 999.5, 1000, 1234567]
    assert opened.execute_script("return arguments[0].map(gridsimWhy.words.number)", counts) == list(
        map(number, counts)
    )
    digits = [0.0, 0.1115, 1.115, 12.25, 8.325, 99.96, 0.00123, 99.95]
    got = opened.execute_script("return arguments[0].map(gridsimWhy.words.three)", digits)
    assert got == [f"{value:.3g}" for value in digits]


def test_a_job_is_selected_with_the_keyboard(opened: Any, shown: dict[str, Record]) -> None:
    job = int(shown["greedy"].workload.job[int(np.nanargmax(shown["greedy"].wait))])
    box = opened.find_element("css selector", "#why input[name=wanted]")
    assert box.accessible_name == "Job"
    assert opened.find_element("css selector", "#why select").accessible_name == "under"
    assert opened.find_element("css selector", "#why .explanation").get_attribute("aria-live") == "polite"
    box.clear()
    box.send_keys(f"{job}\n")
    told = opened.find_element("css selector", "#why .explanation").text.replace("\u00a0", " ")
    under = opened.execute_script(
        "return gridsimGantt.data.policies[document.querySelector('#why select').value].label"
    )
    assert told.splitlines()[0] == sentences(explain(JobSchedule.of(shown[under]), job), under)[0]
    assert not opened.find_element("css selector", "#why .example").is_displayed()
    table = opened.find_element("css selector", "#why .pinned").text
    assert "too few free cores" in table
    assert "greedy" in table
    box.send_keys("99\n")
    missing = opened.find_element("css selector", "#why .explanation").text
    assert f"There is no job {job}99; numbers go from 1 to 1500, and the nearest is 1500." in missing


NAMED = ["7", " 7.batch ", "101_3", "101_[3]", "101", "301+2", "301+2.0", "101_19.extern", "101[4].pbs"]
NOT_NAMED = ["38_7", "7000182", "101_20", "101_[1-5]", "2000", "2000_7", "301+9", "101-3", "x", "", "-1", "1e2", "9999"]


@pytest.mark.parametrize("text", NAMED + NOT_NAMED)
def test_the_browser_reads_a_job_as_python_does(opened: Any, shown: dict[str, Record], text: str) -> None:
    ids = JobIds.of(shown["fcfs"].workload)
    found = opened.execute_script("return gridsimWhy.rowOf(gridsimGantt.data, arguments[0])", text)
    if text in NAMED:
        assert found == {"row": ids.row(text)}
        shown_id = opened.execute_script("return gridsimWhy.idOf(gridsimGantt.data, arguments[0])", found["row"])
        assert shown_id == ids.shown(found["row"])
        return
    with pytest.raises(InputError) as refused:
        ids.row(text)
    assert (found["row"], found["why"]) == (-1, refused.value.message)


def test_the_boxes_of_the_page_take_a_task_of_an_array_and_refuse_what_is_no_job(opened: Any) -> None:
    for place in ("#gantt input[name=job]", "#why input[name=wanted]"):
        opened.execute_script("gridsimGantt.pin(-1)")
        box = opened.find_element("css selector", place)
        box.clear()
        box.send_keys("101_3\n")
        told = opened.find_element("css selector", "#why .explanation").text.replace("\u00a0", " ")
        assert told.startswith("Job 101_3 (number 104)"), place
        assert box.get_attribute("value") == "101_3"
    box.clear()
    box.send_keys("101-3\n")
    assert "did you mean 101_3?" in opened.find_element("css selector", "#why .explanation").text


def test_a_click_in_the_chart_explains_the_job_under_the_policy_that_was_clicked(
    opened: Any, shown: dict[str, Record]
) -> None:
    chains = pytest.importorskip("selenium.webdriver").ActionChains
    job = int(shown["fcfs"].workload.job[int(np.nanargmax(shown["fcfs"].wait))])
    for k, label in enumerate(shown):
        spot = opened.execute_script(
            """
            const [job, k] = arguments, chart = gridsimGantt, row = chart.data.job.indexOf(job);
            const one = chart.data.policies[k], select = document.querySelector("[name=policy]");
            select.value = String(k);
            chart.look(one.start[row] - one.held[row], one.start[row] + 2 * one.held[row]);
            chart.draw();
            const view = chart.view(), canvas = document.querySelector("#gantt canvas");
            canvas.scrollIntoView({ block: "center" });
            let piece = 0;
            while (one.row[piece] !== row) piece++;
            const wide = canvas.clientWidth - 52, high = canvas.clientHeight - 50;
            const along = (one.start[row] + one.held[row] / 2 - view.from) / (view.to - view.from);
            const across = (one.low[piece] + one.size[piece] / 2) / chart.data.cores;
            return [44 + along * wide - canvas.clientWidth / 2, 24 + across * high - canvas.clientHeight / 2];
            """,
            job,
            k,
        )
        canvas = opened.find_element("css selector", "#gantt canvas")
        chains(opened).move_to_element_with_offset(canvas, round(spot[0]), round(spot[1])).click().perform()
        told = opened.find_element("css selector", "#why .explanation").text.replace("\u00a0", " ").splitlines()
        assert told == sentences(explain(JobSchedule.of(shown[label]), job), label)


def test_names_of_users_are_text_and_never_markup(opened: Any, shown: dict[str, Record]) -> None:
    job = int(shown["fcfs"].workload.job[25])
    opened.execute_script("gridsimGantt.find(arguments[0]); gridsimGantt.draw()", job)
    assert f"of user {HOSTILE}" in opened.find_element("css selector", "#why .explanation").text
    assert opened.execute_script("return window.hacked") is None
    source = Path(opened.current_url.removeprefix("file://")).read_text(encoding="utf-8")
    assert HOSTILE not in source
    assert f"account {HOSTILE}".replace("<", "&lt;").replace(">", "&gt;") in source
    assert source.count("</script>") == 2


def test_print_has_an_example_and_no_hints_for_the_screen(browser: Any, visit: Visit, address: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    visit(browser, address)
    text = browser.find_element("css selector", "#why").text
    assert "Example: the longest wait under greedy" in text
    assert "screen" not in text
    assert not browser.find_element("css selector", "#why form").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_page_with_a_stretch_of_the_log_explains_no_job_that_others_may_have_kept(
    browser: Any,
    making: Callable[..., dict[str, Record]],
    comparing: Callable[..., Comparison],
    visit: Visit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for function in (gantt.window, gantt.pack):
        monkeypatch.setattr(
            function, "__kwdefaults__", {**(function.__kwdefaults__ or {}), "jobs": 1500, "rows": 10**6}
        )
    records = making(2000, policies=2)
    visit(browser, comparing(records).page(tmp_path / "page.html").as_uri())
    rows = gantt.window(records).rows
    assert rows.stop - rows.start == 1500
    record = records["greedy"]
    told = browser.execute_script(
        "const { data, explained } = gridsimGantt;"
        "return [...data.job.keys()].map((row) => explained(row, data.policies[1]))"
    )
    whole = [not lines[0].startswith("Jobs that are not on this page") for lines in told]
    assert 0 < sum(whole) < 1500
    schedule = JobSchedule.of(record)
    for row, (lines, kept) in enumerate(zip(told, whole, strict=True)):
        submit, start = record.submit[rows][row], record.start[rows][row]
        others = np.r_[0 : rows.start, rows.stop : len(record)]
        touched = ((record.end[others] > submit) & (record.start[others] < start) & (others < rows.start)) | (
            (record.start[others] < start) & (others >= rows.stop)
        )
        assert not (kept and touched.any())
        if kept and not row % 11:
            assert lines == sentences(explain(schedule, int(record.workload.job[rows][row])), "greedy")
    box = browser.find_element("css selector", "#why input[name=wanted]")
    outside = int(record.workload.job[0 if rows.start else -1])
    box.send_keys(f"{outside}\n")
    missing = browser.find_element("css selector", "#why .explanation").text
    assert f"Job {outside} is not on this page." in missing


@pytest.mark.long
def test_the_data_for_explanations_take_at_most_an_eighth_of_the_page(
    making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]
) -> None:
    records = making(20_000, policies=2)
    workload = next(iter(records.values())).workload
    asked = workload.runtime * stream(1, "test").integers(1, 10, len(workload))
    workload = replace(workload, estimate=-(-asked // 300_000_000) * 300_000_000)  # users specify whole minutes
    records = {label: replace(record, workload=workload) for label, record in records.items()}
    text = page.render(comparing(records))
    script = (Path(markup.TEMPLATES) / "explain.js").stat().st_size
    assert len(gantt.pack(records)["columns"]["estimate"]["data"]) + script < len(text) / 8


def partitioned() -> tuple[dict[str, Record], Platform]:
    """Jobs in three partitions, two of which share a node: under Slurm's rules, and with all cores as one pool."""
    nodes = tuple(Node(f"n{number}", 4, 1000) for number in range(1, 6))
    two, one, gpu = ("n1", "n2", "n3"), ("n3",), ("n4", "n5")
    parts = (
        SitePartition("long", two, longest=3600 * 1_000_000),
        SitePartition("debug", one),
        SitePartition("gpu", gpu),
    )
    site = Site(nodes, parts, "long", qos=(Qos("normal", user_jobs=3),))
    rng, n = stream(1, "parts"), 120
    labels = {"partition": rng.integers(1, 4, n), "user": rng.integers(1, 4, n)}
    jobs = Workload.from_columns(
        submit=np.sort(rng.integers(0, 4000, n)),
        runtime=rng.integers(10, 900, n),
        cores=rng.integers(1, 5, n),
        estimate=np.where(rng.random(n) < 0.1, 7200, 1000),
        labels=labels,
    )
    jobs = replace(jobs, names={"partition": ("", "long", "debug", "gpu"), "user": ("", "ann", "bob", "eve")})
    policies = {"slurm": Slurm(site=site), "easy": "easy"}
    results = {label: simulate(jobs, platform=site.platform(), policy=policy) for label, policy in policies.items()}
    return {label: result.record for label, result in results.items()}, site.platform()


def clustered() -> tuple[dict[str, Record], Platform]:
    """Jobs of a log on three clusters."""
    grid = Platform(RouterSpec("root", (ClusterSpec("a", 8), ClusterSpec("b", 4), ClusterSpec("c", 4))))
    rng, n = stream(2, "parts"), 120
    jobs = Workload.from_columns(
        submit=np.sort(rng.integers(0, 2500, n)), runtime=rng.integers(10, 900, n), cores=rng.choice([1, 2, 4, 7], n)
    )
    return {label: simulate(jobs, platform=grid, policy=label).record for label in ("fcfs", "easy")}, grid


def on_nodes() -> tuple[dict[str, Record], Platform]:
    """Jobs that request memory, GPUs, licences and exclusive nodes."""
    groups = [
        NodeGroup(group="thin", count=3, capacity={"cores": 4, "memory": 8}),
        NodeGroup(group="gpu", capacity={"cores": 8, "memory": 32}, gpus=2),
    ]
    machine, rng, n = Platform.of_nodes(groups, {"licence": 2}), stream(3, "parts"), 120
    asked = [
        Demand(
            tasks=int(rng.integers(1, 4)),
            each={"cores": int(rng.integers(1, 3)), "memory": int(rng.choice([1, 2, 6]))},
            gpu=int(rng.choice([0, 0, 300, 600])),
            max_nodes=int(rng.choice([0, 0, 0, 1])),
            exclusive=bool(rng.random() < 0.1),
            pools={"licence": 1} if rng.random() < 0.4 else {},
        )
        for _ in range(n)
    ]
    jobs = Workload.from_columns(
        submit=np.sort(rng.integers(0, 9000, n)), runtime=rng.integers(10, 900, n), demands=Demands.of(asked)
    )
    return {label: simulate(jobs, platform=machine, policy=label).record for label in ("fcfs", "easy")}, machine


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", [partitioned, clustered, on_nodes])
def test_capacity_is_that_of_the_nodes_or_the_cluster_that_a_job_could_have(
    browser: Any,
    comparing: Callable[..., Comparison],
    visit: Visit,
    tmp_path: Path,
    made: Callable[[], tuple[dict[str, Record], Platform]],
) -> None:
    records, platform = made()
    visit(browser, comparing(records, platform=platform).page(tmp_path / "page.html").as_uri())
    told = browser.execute_script(
        "const { data, explained } = gridsimGantt; const plain = (key, value) => (Number.isNaN(value) ? null : value);"
        "return data.policies.map((one) => [...data.job.keys()].map((row) => "
        "[explained(row, one), JSON.stringify(gridsimWhy.explain(data, one, row), plain)]))"
    )
    rooms, lacked = set(), set()
    for (label, record), of_policy in zip(records.items(), told, strict=True):
        schedule = JobSchedule.of(record, platform)
        for job, (lines, facts) in zip(record.workload.job.tolist(), of_policy, strict=True):
            found = explain(schedule, job)
            rooms.add(found.scope)
            lacked.add(found.short_of)
            assert lines == sentences(found, label), job
            mine, theirs = json.loads(facts), plain(found.to_dict())
            for name in ("eligible", "free", "scope", "reasons", "refused", "short_of", "ahead", "passed"):
                assert mine[name] == theirs[name], (job, name)
            for name in ("short", "enough"):
                assert mine[name] == pytest.approx(theirs[name])
    assert rooms == {partitioned: {"nodes", "pooled"}, clustered: {"a", "b", "c"}, on_nodes: {"machine"}}[made]
    assert len(lacked) > (6 if made is on_nodes else 0)
