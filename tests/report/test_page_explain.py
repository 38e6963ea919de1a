"""One job explained on the page: in a browser the same facts and words as `gridsim.report.explain` finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.model.streams import stream
from gridsim.model.time import NEVER
from gridsim.record import Record, Status
from gridsim.report import gantt, markup, page
from gridsim.report.comparison import Comparison
from gridsim.report.explain import Schedule, explain
from gridsim.report.explain_text import sentences
from gridsim.report.words import duration, number, percent

Visit = Callable[[Any, str], Any]
HOSTILE = "<script>window.hacked = 1</script>"


def named(record: Record, workload: Any) -> Record:
    """The record with estimates that are no runtimes, names of users, and a few jobs that were turned away."""
    start, end, status = record.start_us.copy(), record.end_us.copy(), record.status.copy()
    start[50::400], end[50::400], status[50::400] = NEVER, NEVER, Status.unadmitted
    return replace(record, workload=workload, start_us=start, end_us=end, status=status)


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
    names = {"user": users, "account": ("", HOSTILE, "physics")}
    workload = replace(workload, estimate=workload.runtime * factor, labels=labels, names=names)
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
    return [int(record.workload.job[row]) for row in rows]


@pytest.mark.parametrize("label", ["fcfs", "greedy"])
def test_the_browser_finds_the_facts_that_python_finds(opened: Any, shown: dict[str, Record], label: str) -> None:
    schedule = Schedule.of(shown[label])
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
    for job, found in zip(jobs, json.loads(told), strict=True):
        expected = explain(schedule, job).to_dict()
        assert set(found) == set(expected)
        if expected["start"] == expected["start"]:
            expected["status"] = ""  # the page knows only why a job did not run
        for name, value in expected.items():
            if name == "passers":
                assert found[name] == value, job
            elif isinstance(value, list):
                assert [other["job"] for other in found[name]] == [other["job"] for other in value], (job, name)
                for mine, theirs in zip(found[name], value, strict=True):
                    assert mine.pop("user") == theirs.pop("user")
                    assert mine == pytest.approx(theirs, rel=1e-12)
            elif isinstance(value, float):
                assert (np.nan if found[name] is None else found[name]) == pytest.approx(value, nan_ok=True, rel=1e-12)
            else:
                assert found[name] == value, (job, name)


@pytest.mark.parametrize("label", ["fcfs", "greedy"])
def test_the_browser_says_what_python_says(opened: Any, shown: dict[str, Record], label: str) -> None:
    schedule, jobs = Schedule.of(shown[label]), [int(job) for job in shown[label].workload.job[::7]]
    told = opened.execute_script(
        """
        const [jobs, k] = arguments, { data } = gridsimGantt, one = data.policies[k];
        return jobs.map((job) => gridsimGantt.explained(data.job.indexOf(job), one));
        """,
        jobs,
        list(shown).index(label),
    )
    for job, lines in zip(jobs, told, strict=True):
        assert lines == sentences(explain(schedule, job), label)


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


def test_a_job_is_asked_for_with_the_keyboard(opened: Any, shown: dict[str, Record]) -> None:
    job = int(shown["greedy"].workload.job[int(np.nanargmax(shown["greedy"].wait))])
    box = opened.find_element("css selector", "#why input[name=asked]")
    assert box.accessible_name == "Job"
    assert opened.find_element("css selector", "#why select").accessible_name == "under"
    assert opened.find_element("css selector", "#why .said").get_attribute("aria-live") == "polite"
    box.clear()
    box.send_keys(f"{job}\n")
    told = opened.find_element("css selector", "#why .said").text.replace("\u00a0", " ")
    under = opened.execute_script(
        "return gridsimGantt.data.policies[document.querySelector('#why select').value].label"
    )
    assert told.splitlines()[0] == sentences(explain(Schedule.of(shown[under]), job), under)[0]
    assert not opened.find_element("css selector", "#why .example").is_displayed()
    table = opened.find_element("css selector", "#why .pinned").text
    assert "too little room" in table
    assert "greedy" in table
    box.send_keys("99\n")
    missing = opened.find_element("css selector", "#why .said").text
    assert f"There is no job {job}99; numbers go from 1 to 1500." in missing


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
        told = opened.find_element("css selector", "#why .said").text.replace("\u00a0", " ").splitlines()
        assert told == sentences(explain(Schedule.of(shown[label]), job), label)


def test_names_of_users_are_text_and_never_markup(opened: Any, shown: dict[str, Record]) -> None:
    job = int(shown["fcfs"].workload.job[25])
    opened.execute_script("gridsimGantt.find(arguments[0]); gridsimGantt.draw()", job)
    assert f"of user {HOSTILE}" in opened.find_element("css selector", "#why .said").text
    assert opened.execute_script("return window.hacked") is None
    source = Path(opened.current_url.removeprefix("file://")).read_text(encoding="utf-8")
    assert HOSTILE not in source
    assert f"account {HOSTILE}".replace("<", "&lt;").replace(">", "&gt;") in source
    assert source.count("</script>") == 2


def test_paper_has_an_example_and_says_where_the_rest_is(browser: Any, visit: Visit, address: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    visit(browser, address)
    text = browser.find_element("css selector", "#why").text
    assert "For example: the longest wait under greedy" in text
    assert "The page on a screen tells the same of any job; so does gridsim explain." in text
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
    whole = [not lines[0].startswith("Jobs that this page does not hold") for lines in told]
    assert 0 < sum(whole) < 1500
    schedule = Schedule.of(record)
    for row, (lines, kept) in enumerate(zip(told, whole, strict=True)):
        submit, start = record.submit[rows][row], record.start[rows][row]
        others = np.r_[0 : rows.start, rows.stop : len(record)]
        touched = ((record.end[others] > submit) & (record.start[others] < start) & (others < rows.start)) | (
            (record.start[others] < start) & (others >= rows.stop)
        )
        assert not (kept and touched.any())
        if kept and not row % 11:
            assert lines == sentences(explain(schedule, int(record.workload.job[rows][row])), "greedy")
    box = browser.find_element("css selector", "#why input[name=asked]")
    outside = int(record.workload.job[0 if rows.start else -1])
    box.send_keys(f"{outside}\n")
    missing = browser.find_element("css selector", "#why .said").text
    assert f"There is no job {outside} among those that this page holds." in missing


def test_what_explains_takes_a_tenth_of_the_page_at_most(
    making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]
) -> None:
    records = making(20_000, policies=2)
    workload = next(iter(records.values())).workload
    asked = workload.runtime * stream(1, "test").integers(1, 10, len(workload))
    workload = replace(workload, estimate=-(-asked // 300_000_000) * 300_000_000)  # people ask in whole minutes
    records = {label: replace(record, workload=workload) for label, record in records.items()}
    text = page.render(comparing(records))
    script = (Path(markup.TEMPLATES) / "explain.js").stat().st_size
    assert len(gantt.pack(records)["columns"]["estimate"]["data"]) + script < 0.1 * len(text)
