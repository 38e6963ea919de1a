"""The page, as text and in a real browser: complete, offline, escaped, fluid, and readable on a phone."""

from __future__ import annotations

import html
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.record import Record
from gridsim.report import gantt, page, sentences
from gridsim.report.caveats import caveats
from gridsim.report.comparison import Comparison
from gridsim.report.headline import headline

JOBS = 50_000


@pytest.fixture(scope="module")
def text(comparison: Comparison) -> str:
    return page.render(comparison)


def words(markup: str) -> str:
    """Visible text of a page: without tags, entities resolved, whitespace collapsed."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


def test_every_sentence_and_every_policy_is_on_the_page(comparison: Comparison, text: str) -> None:
    read = words(text)
    main = headline(comparison)
    assert main is not None
    for sentence in (main.sentence, main.interval, *sentences.answer(comparison, but=main.other), *caveats(comparison)):
        assert " ".join(sentence.split()) in read
    for policy in comparison.labels:
        assert comparison.metrics[policy]["wait_mean"] > 0
        assert policy in read


def test_the_page_loads_nothing(text: str) -> None:
    assert not re.search(r"https?:|//[a-z]+\.", text)
    assert not re.search(r"<(link|iframe|img|object|embed|base)\b", text)
    assert "@import" not in text
    assert "default-src 'none'" in text


@pytest.mark.long
def test_the_page_is_the_same_every_time(comparison: Comparison, text: str) -> None:
    assert page.render(comparison) == text


def test_excluded_lines_of_the_log_are_listed_with_their_rule(text: str) -> None:
    read = words(text)
    assert "zero runtime" in read
    assert "7, 8, 9" in read
    assert "--on zero-runtime=skip" in read
    assert "batched: one scheduling decision after all ends and arrivals of an instant" in read


@pytest.mark.long
def test_nothing_from_a_log_or_a_command_is_markup(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    evil = "</script><img src=x onerror=alert(1)>'\"&{{ 7 * 7 }}"
    comparison = comparing({evil: records["fcfs"], "b": records["greedy"]})
    info = {**comparison.info, "title": evil, "command": evil, "policies": {evil: evil}, "versions": {evil: evil}}
    info["workload"] = {**info["workload"], "source": evil, "transforms": [{"transform": evil}]}
    text = page.render(replace(comparison, info=info))
    assert "<img" not in text
    assert "onerror=alert(1)>" not in text
    assert text.count("</script>") == 2
    assert html.escape(evil, quote=False).split("'")[0] in text


@pytest.mark.long
def test_one_policy_makes_a_page_without_differences(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    read = words(page.render(comparing({"fcfs": records["fcfs"]})))
    assert "Under fcfs, jobs wait" in read
    assert "Gains and losses" not in read
    assert "How sure" not in read


@pytest.mark.long
def test_differences_in_seconds_are_at_the_mean_wait_of_the_log(comparison: Comparison) -> None:
    assert "Intervals of differences in seconds: differences.csv" in words(page.render(comparison))


@pytest.mark.long
def test_one_job_makes_a_page(comparing: Callable[..., Comparison]) -> None:
    record = Record.from_rows([{"submit": 0, "start": 0, "end": 5, "cores": 1}], cores=4)
    assert "No job waits" in page.render(comparing({"a": record, "b": record}))


@pytest.mark.long
def test_the_page_is_written_whole_or_not_at_all(comparison: Comparison, tmp_path: Path) -> None:
    broken = replace(comparison, info={"workload": {"problems": [{"kind": "no-such-kind"}]}})
    with pytest.raises(KeyError):
        broken.page(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


# ---- in a browser ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(making: Callable[..., dict[str, Record]]) -> dict[str, Record]:
    return making(JOBS, policies=2, cores=512)


@pytest.fixture(scope="module")
def address(
    large: dict[str, Record], comparing: Callable[..., Comparison], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The page of 50,000 jobs under two policies, as a file."""
    return comparing(large).page(tmp_path_factory.mktemp("page") / "page.html").as_uri()


@pytest.fixture(scope="module")
def small(text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of 4,000 jobs under three policies, as a file."""
    path = tmp_path_factory.mktemp("small") / "page.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def opened(browser: Any, address: str, width: int = 1280, height: int = 900, *, theme: str = "light") -> Any:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get_log("browser")
    browser.get(address)
    ready = """
        const done = arguments[arguments.length - 1];
        const look = () => window.gridsimGantt ? done(true) : setTimeout(look, 20);
        look();
    """
    assert browser.execute_async_script(ready)
    return browser


@pytest.fixture(scope="module")
def chart(browser: Any, address: str) -> Any:
    """The large page, opened once: each test moves to its view."""
    return opened(browser, address)


@pytest.mark.long
def test_nothing_is_complained_about_and_nothing_is_fetched(chart: Any) -> None:
    assert chart.get_log("browser") == []
    assert chart.execute_script("return performance.getEntriesByType('resource').map((it) => it.name)") == []
    assert chart.find_element("css selector", ".answer .first").is_displayed()


@pytest.mark.long
def test_the_chart_holds_every_job_and_start(chart: Any, large: dict[str, Record]) -> None:
    rows = [0, 1, JOBS // 2, JOBS - 1]
    got = chart.execute_script(
        "const d = gridsimGantt.data; return arguments[0].map((i) => [d.job[i], ...d.policies.map((p) => p.start[i])])",
        rows,
    )
    origin = large["fcfs"].submit[0]
    for row, (job, *starts) in zip(rows, got, strict=True):
        assert job == large["fcfs"].workload.job[row]
        assert starts == [record.start[row] - origin for record in large.values()]


def test_keys_move_and_zoom(chart: Any) -> None:
    canvas = chart.find_element("css selector", "#gantt canvas")
    whole = chart.execute_script("return gridsimGantt.view()")
    canvas.send_keys("+")
    near = chart.execute_script("return gridsimGantt.view()")
    assert near["to"] - near["from"] == pytest.approx(0.7 * (whole["to"] - whole["from"]))
    canvas.send_keys("\ue014")  # arrow right
    assert chart.execute_script("return gridsimGantt.view()")["from"] > near["from"]
    canvas.send_keys("0")
    view = chart.execute_script("const it = gridsimGantt; return [it.view().from, it.view().to - it.data.last]")
    assert view == [0, 0]


def test_a_zoom_draws_a_bounded_number_of_pieces(chart: Any) -> None:
    steps = chart.execute_script("""
        const chart = gridsimGantt, seen = [];
        chart.look(0, chart.data.last);
        for (let k = 0; k < 45; k++) {
            chart.zoom(k % 15 < 12 ? 0.55 : 4, 0.2 + 0.06 * (k % 11));
            chart.draw();
            seen.push([chart.lastDrawMs, chart.lastVisited, chart.lastRectangles]);
        }
        return seen;
    """)
    print(f"\ndraw of a zoom, {JOBS} jobs: median {statistics.median(step[0] for step in steps):.1f} ms")
    assert max(visited for _, visited, _ in steps) <= 32_000
    assert max(drawn for _, _, drawn in steps) <= 8_000
    assert any(drawn > 100 for _, _, drawn in steps)


def test_the_chart_shows_the_jobs_of_its_view(chart: Any, large: dict[str, Record]) -> None:
    record = large["fcfs"]
    middle = float(record.start[JOBS // 2] - record.submit[0])
    seen = chart.execute_script(
        """
        const chart = gridsimGantt, select = document.querySelector("[name=policy]"), [from, to] = arguments;
        select.value = "0";
        chart.look(from, to);
        chart.draw();
        return chart.lastVisited;
        """,
        middle,
        middle + 600,
    )
    start, end = record.start - record.submit[0], record.end - record.submit[0]
    inside = (start < middle + 600) & (end > middle)
    assert seen == int(np.diff(gantt.placement(record).offset)[inside].sum())


def test_a_job_that_is_looked_up_is_pinned_with_its_start_under_every_policy(
    chart: Any, large: dict[str, Record]
) -> None:
    row = int((large["fcfs"].wait > 3600).argmax())
    job = int(large["fcfs"].workload.job[row])
    chart.execute_script("gridsimGantt.find(arguments[0]); gridsimGantt.draw()", job)
    shown = chart.find_element("css selector", ".pinned").text
    assert chart.execute_script("return gridsimGantt.pinned()") == row
    assert f"Job {job}, user " in shown
    assert "fcfs" in shown
    assert "greedy" in shown


def test_the_job_below_the_pointer_is_the_one_drawn_there(chart: Any) -> None:
    found = chart.execute_script("""
        const chart = gridsimGantt, one = chart.data.policies[0], row = chart.data.jobs >> 1;
        document.querySelector("[name=policy]").value = "0";
        const span = Math.max(60, one.held[row]);
        chart.look(one.start[row] - span, one.start[row] + 2 * span);
        chart.draw();
        const view = chart.view(), canvas = document.querySelector("#gantt canvas");
        const wide = canvas.clientWidth - 52, high = canvas.clientHeight - 50;
        let piece = 0;
        while (one.row[piece] !== row) piece++;
        const x = 44 + (one.start[row] + one.held[row] / 2 - view.from) / (view.to - view.from) * wide;
        const y = 24 + (one.low[piece] + one.size[piece] / 2) / chart.data.cores * high;
        return [chart.jobAt(x, y)[0], row];
    """)
    assert found[0] == found[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(browser: Any, small: str, theme: str) -> None:
    opened(browser, small, 390, 844, theme=theme)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert browser.get_log("browser") == []
    pixel = (
        "const it = document.querySelector('canvas'); return [...it.getContext('2d').getImageData(200, 100, 1, 1).data]"
    )
    assert browser.execute_script(pixel)[3] > 0


def test_the_theme_follows_the_system(browser: Any, small: str) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = opened(browser, small).execute_script(ground)
    assert opened(browser, small, theme="dark").execute_script(ground) != light


def test_texts_of_figures_have_contrast_in_the_dark(browser: Any, small: str) -> None:
    opened(browser, small, theme="dark")
    fill = browser.execute_script("return getComputedStyle(document.querySelector('.picture svg text')).fill")
    red, green, blue = map(int, re.findall(r"\d+", fill)[:3])
    assert min(red, green, blue) > 180


def test_how_it_was_made_speaks_of_partitions_and_of_the_cores_that_were_read(comparison: Comparison) -> None:
    info = dict(comparison.info)
    info["workload"] = {"jobs_read": 9, "jobs_kept": 9, "cores_field": {"requested": 0, "allocated": 9}}
    info["workload"]["cores_rule"] = "allocated"
    parts = [{"name": "batch", "cores": 20}, {"name": "gpu", "cores": 10}]
    info["platform"] = {"cores": 30, "by": "partition", "clusters": parts, "network": {"kind": "ccr"}}
    facts = dict(page._facts(info))
    assert facts["Partitions"] == "batch (20 cores), gpu (10 cores)"
    assert not {"Clusters", "Network"} & set(facts)
    assert facts["Cores of a job"] == "allocated processors for 9 jobs"
    info["workload"]["cores_field"]["requested"] = 2
    assert dict(page._facts(info))["Cores of a job"].endswith(", requested processors for 2 jobs without an allocation")
