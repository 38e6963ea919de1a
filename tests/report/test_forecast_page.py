"""The page of forecasts: figures are drawn at the values of the data, and the text has all of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from gridsim.forecasts.answer import Answer, JobForecast, Shape
from gridsim.forecasts.backtest import Backtest
from gridsim.forecasts.intervals import Pair
from gridsim.model.dates import Calendar
from gridsim.report.forecast_page import SHOWN, TESTED, Forecast, ForecastTest, coverage, outcomes, starts

DAY, HOUR = 86_400, 3600.0


def job_of(place: int, **changes: Any) -> JobForecast:
    median = HOUR * (place + 1)
    ends = {0.5: (median - 600, median + 600), 0.8: (median - 1200, median + 1800), 0.9: (median - 1800, 2 * median)}
    given: dict[str, Any] = {"job": f"{310100 + place}_7", "cores": 8, "limit": 3600.0, "waited": 60.0}
    given |= {"sample": np.full(99, median), "intervals": ends, "pairs": 0, "known": 31}
    return JobForecast(**given | {"source": "futures", "requested": 3 * median} | changes)


def answer_of(jobs: list[JobForecast], **changes: Any) -> Answer:
    known = (600.0, Calendar(1795521600 - 600), "easy", "live", 64, 3, 40, len(jobs), jobs, {}, ["one pool"])
    return replace(Answer(*known, 99, 7 * DAY, 1, np.zeros((99, len(jobs)))), **changes)


def backtest_of(many: int = 320) -> Backtest:
    """Forecasts of exchangeable waits, some of which are beyond the horizon."""
    rng = np.random.default_rng(5)
    pairs = []
    for place in range(many):
        scale = rng.lognormal(8.5, 1.2)
        wait, *sample = (scale * rng.lognormal(0, 0.8, 40)).round().tolist()
        wait = math.inf if wait > 2 * DAY else wait
        pairs.append(Pair(place * 4 * int(HOUR), wait, np.sort(sample), np.sort(sample)[::2], 3 * scale, 60.0))
    return Backtest(pairs, 2.0 * DAY)


@pytest.fixture(scope="module")
def tested() -> Backtest:
    return backtest_of()


def bars(axes: Any) -> list[list[tuple[float, float, float]]]:
    """Row and ends of the bars of each level, from the widest interval."""
    found = [it for it in axes.collections if isinstance(it, LineCollection)]
    return [[(line[0][1], line[0][0], line[1][0]) for line in it.get_segments()] for it in found]


def marks(axes: Any, label: str) -> list[tuple[float, float]]:
    line = next(it for it in axes.lines if it.get_label() == label)
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


@pytest.mark.parametrize("calendar", [Calendar(1795521000), None])
def test_every_job_has_its_bars_median_and_estimate_of_slurm(calendar: Calendar | None) -> None:
    jobs = [job_of(0, slurm=1234.0), job_of(1), job_of(2, slurm=10.0 * DAY)]
    axes = starts(answer_of(jobs, calendar=calendar)).axes[0]
    for drawn, level in zip(bars(axes), (0.9, 0.8, 0.5), strict=True):
        assert drawn == [(row, *job.intervals[level]) for row, job in enumerate(jobs)]
    assert marks(axes, "median") == [(HOUR, 0), (2 * HOUR, 1), (3 * HOUR, 2)]
    assert marks(axes, "Slurm's estimate") == [(1234.0, 0)], "the other one is beyond the axis"
    assert [it.get_text() for it in axes.get_yticklabels()] == ["310100_7", "310101_7", "310102_7"]
    first, *_ = (it.get_text() for it in axes.get_xticklabels())
    assert first == ("12:00" if calendar else "none")


def test_an_end_beyond_the_horizon_is_an_arrow_at_the_edge() -> None:
    jobs = [job_of(0), job_of(1, intervals={0.5: (1, 2), 0.8: (1, 3 * HOUR), 0.9: (1, math.inf)})]
    axes = starts(answer_of(jobs)).axes[0]
    assert bars(axes)[0][1] == (1, 1, 3 * HOUR), "up to the last known end of all intervals"
    assert bars(axes)[1][1] == (1, 1, 3 * HOUR)
    assert [it.get_ydata()[0] for it in axes.lines if it.get_marker() == ">"] == [1]


def test_a_state_in_which_all_jobs_start_now_is_drawn() -> None:
    now = dict.fromkeys((0.5, 0.8, 0.9), (0.0, 0.0))
    axes = starts(answer_of([job_of(0, sample=np.zeros(99), intervals=now)])).axes[0]
    assert marks(axes, "median") == [(0, 0)]


def test_observed_coverage_is_that_of_the_file(tested: Backtest, tmp_path: Path) -> None:
    ForecastTest.view(tested).write(tmp_path)
    header, *rows = ((tmp_path / "backtest.csv").read_text()).splitlines()
    table = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
    assert len(table) == len(tested.tests) > 100

    def value(cell: str) -> float:
        return float(cell) if cell else math.inf

    inside = {
        level: [value(row[f"low_{level}"]) <= value(row["wait"]) <= value(row[f"high_{level}"]) for row in table]
        for level in (50, 80, 90)
    }
    shares = {level / 100: sum(it) / len(it) for level, it in inside.items()}
    axes = coverage(tested).axes[0]
    drawn = dict(marks(axes, "calibrated"))
    assert drawn == pytest.approx(shares)
    page = (tmp_path / "forecast.html").read_text()
    assert f"{shares[0.9]:.3f} (" in page


def test_the_band_has_95_percent_of_the_outcomes_of_a_binomial_law(tested: Backtest) -> None:
    many = len(tested.tests)
    (band,) = (it for it in coverage(tested).axes[0].collections if it.get_label() == "95 % band")
    edges: dict[float, list[float]] = {}
    for x, y in band.get_paths()[0].vertices.tolist():
        edges.setdefault(round(x, 6), []).append(y)
    for stated in (0.1, 0.5, 0.9):
        low, high = (round(many * it(edges[stated])) for it in (min, max))

        def chance(hits: range, p: float = stated) -> float:
            return sum(math.comb(many, k) * p**k * (1 - p) ** (many - k) for k in hits)

        assert chance(range(low)) <= 0.025 < chance(range(low + 1))
        assert chance(range(high + 1, many + 1)) <= 0.025 < chance(range(high, many + 1))


def test_the_intervals_of_fifty_forecasts_are_drawn_with_their_true_waits(tested: Backtest) -> None:
    axes = outcomes(tested).axes[0]
    wide = bars(axes)[0]
    assert len(wide) == TESTED == 50
    known = {(pair.wait, min(it.intervals[0.9].calibrated[0], tested.horizon)) for pair, it in tested.tests}
    waits = {row: wait for wait, row in marks(axes, "true wait")}
    assert list(waits.values()) == sorted(waits.values())
    assert all((wait, wide[row][1]) in known for row, wait in waits.items())
    missed = {row for _, row in marks(axes, "outside of 90 %")}
    assert missed == {row for row, wait in waits.items() if not wide[row][1] <= wait <= wide[row][2]}
    assert 0 < len(missed) < 15


def text_of(page: str) -> str:
    joined = re.sub(r"</?span[^>]*>", "", page).replace("\u00a0", " ")
    return " ".join(re.sub(r"<[^>]+>", " ", joined).split())


def page_of(answer: Answer, tmp_path: Path, backtest: Backtest | None = None) -> str:
    return Forecast.view(answer, title="<site>").page(tmp_path / "page.html", backtest=backtest).read_text()


def test_the_page_has_a_row_for_each_job_and_counts_the_others(tmp_path: Path) -> None:
    jobs = [job_of(place) for place in range(SHOWN + 7)]
    page = page_of(answer_of(jobs, left_out={"5": "held", "6": "held", "7": "BadConstraints"}), tmp_path)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>', page)
    assert rows == [job.job for job in jobs[:SHOWN]]
    text = text_of(page)
    assert "Job 310100_7 starts between 12:30 and 14:00 in 90 % of the futures (not calibrated: 31 earlier" in text
    assert "The intervals are not calibrated: 31 earlier forecasts, 50 needed." in text
    assert "7 more jobs with a later median are not shown." in text
    assert "held: 2 jobs (5, 6)" in text
    assert "BadConstraints: 1 job (7)" in text
    assert "One pool." in text
    assert "<site>" not in page
    assert 'href="forecast.csv"' not in page, "there are no tables beside the page"
    assert "Slurm" not in text


def test_recent_coverage_is_stated_and_a_low_one_is_marked(tmp_path: Path) -> None:
    observed = {0.5: (49, 100), 0.8: (70, 100), 0.9: (80, 100)}
    jobs = [job_of(place, pairs=200, observed=observed) for place in range(2)]
    text = text_of(page_of(answer_of(jobs), tmp_path))
    stated = "the interval contained the start of 49 at 50 %, 70 at 80 % and 80 at 90 % (significantly fewer)."
    assert f"Of the last 100 such forecasts, {stated}" in text
    assert "with 80 % probability (calibrated on 200 earlier forecasts)" in text


def test_a_limit_that_is_not_modelled_and_a_dependency_are_reasons(tmp_path: Path) -> None:
    jobs = [job_of(0, not_modelled="QOSMaxJobsPerUserLimit"), job_of(1, remark="after job 3", slurm=HOUR)]
    jobs.append(job_of(2, remark=f"not before {1795521600 + 5400}"))
    text = text_of(page_of(answer_of(jobs), tmp_path))
    assert "Not modelled: QOSMaxJobsPerUserLimit (310100_7)." in text
    assert "- 8 1 h 1 min not modelled: QOSMaxJobsPerUserLimit 310101_7 14:00" in text
    assert "13:00 8 1 h 1 min After job 3 310102_7" in text
    assert "Not before 13:30 (begin time)" in text


def test_shapes_are_a_table_and_clearly_earlier_ones_are_stated(tmp_path: Path) -> None:
    shapes = [Shape(48, HOUR, 600.0, 93, 99, 7800.0, 0.0), Shape(32, 1800.0, 600.0, 20, 99, 0.0, 0.125)]
    answer = answer_of([job_of(0)], shapes=shapes, empty=(np.full(99, 2 * HOUR), np.full(99, math.inf)))
    text = text_of(page_of(answer, tmp_path))
    assert "48 cores instead of 8 starts earlier in 93 of 99 futures, by 2 h 10 min (median)" in text
    assert "48 1 h 12:10 yes 93 of 99 2 h 10 min 0 %" in text
    assert "32 30 min 12:10 not clearly 20 of 99 0 s 12 %" in text
    assert "From 14:00 on no job of the present queue waits" in text
    text = text_of(page_of(replace(answer, shapes=shapes[1:]), tmp_path))
    assert "None of 1 other shape starts earlier in at least 90 % of the futures." in text


def test_a_state_without_waiting_jobs_has_a_page(tmp_path: Path) -> None:
    text = text_of(page_of(answer_of([]), tmp_path))
    assert "No job waits for cores at this moment." in text
    assert "3 jobs running on 40 of 64 cores, 0 waiting" in text


def test_figures_have_names_and_are_saved_for_a_paper(tested: Backtest, tmp_path: Path) -> None:
    assert list(Forecast.view(answer_of([job_of(0)])).figures) == ["forecast-starts"]
    paths = ForecastTest.view(tested).figures.save(tmp_path, "svg")
    assert [path.name for path in paths] == ["forecast-coverage.svg", "forecast-outcomes.svg"]


@pytest.fixture(scope="module")
def address(tested: Backtest, tmp_path_factory: pytest.TempPathFactory) -> str:
    jobs = [job_of(place, slurm=HOUR * (place % 9), remark="not before 1795530000") for place in range(SHOWN + 1)]
    late = {0.5: (5 * DAY, 6 * DAY), 0.8: (5 * DAY, 6.5 * DAY), 0.9: (4 * DAY, math.inf)}
    jobs[3] = replace(jobs[3], intervals=late, not_modelled="QOSMaxCpuPerUserLimit")
    shapes = [Shape(48, HOUR, 600.0, 93, 99, 7800.0, 0.0)]
    answer = answer_of(jobs, shapes=shapes, left_out={"5": "held; starts after its release at the earliest"})
    place = tmp_path_factory.mktemp("page")
    Forecast.view(answer).write(place, backtest=tested)
    return (place / "forecast.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_no_violation_and_nothing_is_cut_off(
    browser: Any, axe: Callable[[Any], list[str]], address: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_of = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_of)
    browser.get(address)
    assert axe(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OVERLAP) == []
    assert browser.get_log("browser") == []


OVERLAP = """
    const found = [], shared = (low, high, from, to) => Math.min(high, to) - Math.max(low, from);
    const over = (a, b) => shared(a.left, a.right, b.left, b.right) > 1 && shared(a.top, a.bottom, b.top, b.bottom) > 3;
    for (const svg of document.querySelectorAll(".picture svg")) {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter((it) => it.textContent.trim());
      const boxes = texts.map((it) => [it.textContent, it.getBoundingClientRect()]);
      boxes.forEach(([text, a], k) => {
        if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1) found.push(text);
        for (const [other, b] of boxes.slice(k + 1)) if (over(a, b)) found.push(`${text} over ${other}`);
      });
    }
    return found;
"""


def test_captions_have_at_most_25_words(address: str) -> None:
    page = Path(address.removeprefix("file://")).read_text()
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 3
    assert max(len(it.split()) for it in captions) <= 25
    for name in ("forecast.csv", "samples.csv", "backtest.csv", "backtest.json"):
        assert f'href="{name}"' in page
