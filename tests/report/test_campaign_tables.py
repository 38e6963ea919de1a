"""Comparisons of a campaign as sentences, tables and a page: complete, escaped, and explicit about missing data."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gridsim.campaign.comparisons import Comparing, Comparisons, compare_runs
from gridsim.model.random_streams import stream
from gridsim.report.campaign import figures, latex, page, sentences, terminal, write_tables

ODD = "<b>&_50%$#{x}~^\\[*]"
QUICK = Comparing(resamples=200)

EFFECTS = {"easy": 0.0, "qops?heuristic=edf&k_factor=5": -0.25, "fcfs": 1.2, ODD: 0.03, "twin": 0.0}


def made(
    effects: Mapping[str, float] = EFFECTS,
    *,
    seeds: int = 12,
    loads: tuple[float, ...] = (0.7, 0.9),
    missing: Callable[[Mapping[str, Any]], bool] = lambda row: False,
    comparing: Comparing = QUICK,
) -> Comparisons:
    """Waits of each policy: those of the first times the exponential of its effect, with noise except for the twin."""
    rng = stream(1, "tests", "tables")
    size = {(seed, load): rng.normal(8, 1) for seed, load in product(range(seeds), loads)}
    rows = [
        {
            "policy": policy,
            "seed": seed,
            "load": load,
            "wait_mean": math.exp(size[seed, load] + effect + (policy not in ("easy", "twin")) * rng.normal(0, 0.08)),
            "utilisation": 0.7,
        }
        for policy, effect in effects.items()
        for seed, load in product(range(seeds), loads)
    ]
    return compare_runs([row for row in rows if not missing(row)], ["policy", "seed", "load"], comparing)


@pytest.fixture(scope="module")
def found() -> Comparisons:
    return made(missing=lambda row: (row["policy"], row["seed"], row["load"]) == ("fcfs", 3, 0.9))


@pytest.fixture(scope="module")
def text(found: Comparisons) -> str:
    return page(found, name="Loads & logs")


def printed(found: Comparisons, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(terminal(found, width=width))
    return console.file.getvalue()  # type: ignore[attr-defined]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- sentences ----------------------------------------------------------------------------------------------------


def test_sentences_state_the_better_policy_the_difference_and_the_number_of_workloads(found: Comparisons) -> None:
    first, *others = sentences(found)
    assert re.fullmatch(
        r"Against easy, mean wait is lower under qops\?heuristic=edf&k_factor=5 by 2\d % "
        r"\(95 % interval [12]\d to 2\d % lower; p < 0.001 after Holm, 4 comparisons\), over 11 to 12 workloads "
        r"\(2 conditions each\)\.",
        first,
    )
    told = " ".join(others)
    assert re.search(r"It is higher under fcfs at 3.\d times \(95 % interval 3.\d+ to 3.\d+ times; p < 0.001\)", told)
    assert re.search(r"Equivalent to easy \(within 5 %\): .*twin", told)
    assert "utilisation is equivalent under all" in told
    assert "Excluded from 12 workloads: 1 for fcfs, because a run failed, is missing or has no mean wait." in told


def test_unclear_differences_are_reported_with_their_intervals() -> None:
    rng = stream(2, "tests", "unclear")
    rows = [
        {"policy": policy, "seed": seed, "wait_mean": math.exp(rng.normal(5, 0.5))}
        for policy, seed in product(("easy", "sjf"), range(8))
    ]
    told = sentences(compare_runs(rows, ["policy", "seed"], QUICK))
    assert told[0] == "Under no other policy is mean wait significantly lower than under easy, over 8 workloads."
    assert re.fullmatch(
        r"No significant difference from easy: sjf \([\d.]+ % higher, 95 % interval [\d.]+ % lower to [\d.]+ % higher; "
        r"p = [\d.]+\)\.",
        told[1],
    )


def test_one_workload_is_no_test_and_says_so() -> None:
    (told,) = sentences(made({"easy": 0.0, "twin": 0.0, "fcfs": 1.2}, seeds=1, loads=(0.7,)))
    assert told.startswith("There is one workload, so no test is possible; against easy, mean wait is 100 % under twin")
    assert told.endswith("The result applies to this workload only.")


def test_few_workloads_and_policies_without_pairs_are_said() -> None:
    told = sentences(made({"easy": 0.0, "fcfs": 1.2, "sjf": 0.5}, seeds=4, missing=lambda row: row["policy"] == "sjf"))
    assert "4 workloads are few" in told[-1]
    factors = {"policy": ["easy", "broken"], "seed": range(3)}
    rows = [{"policy": "easy", "seed": seed, "wait_mean": 1.0 + seed} for seed in range(3)]
    told = sentences(compare_runs(rows, factors, QUICK))
    assert "Excluded from 3 workloads: 3 for broken" in told[-2]
    assert told[-1] == "Too few pairs for a test: broken."


def test_a_winner_that_loses_somewhere_is_found_out() -> None:
    rng = stream(3, "tests", "turned round")
    gain = {0.7: -1.0, 0.9: -1.0, 1.1: 0.3}
    rows = [
        {"policy": policy, "seed": s, "load": load, "wait_mean": math.exp(5 + (policy == "b") * gain[load] + noise)}
        for policy, s, load in product("ab", range(8), gain)
        for noise in [rng.normal(0, 0.02)]
    ]
    told = sentences(compare_runs(rows, ["policy", "seed", "load"], QUICK))
    assert told[1] == "But it is significantly higher under b in 1 of 3 conditions, such as load 1.1."


def test_workloads_without_a_ratio_and_conditions_without_a_pair_are_counted() -> None:
    rows = [
        {"policy": policy, "seed": s, "load": load, "wait_mean": 0.0 if (policy, s) == ("b", 0) else 1.0 + s}
        for policy, s, load in product("ab", range(4), (0.7, 0.9))
        if (policy, load) != ("b", 0.9)
    ]
    told = " ".join(sentences(compare_runs(rows, ["policy", "seed", "load"], QUICK)))
    assert "Conditions without any pair, of 2: 1 for b." in told
    assert "Workloads without a ratio, because one value is not above 0: 1 for b." in told


def test_one_policy_has_nothing_to_be_compared_with() -> None:
    alone = made({"easy": 0.0})
    assert sentences(alone) == ["The campaign has only easy, so there is nothing to compare."]
    assert "mean wait" in page(alone)


def test_values_of_another_factor_have_its_name() -> None:
    rows = [{"load": load, "seed": s, "wait_mean": load * (s + 1)} for load, s in product((0.7, 0.9), range(8))]
    told = sentences(compare_runs(rows, ["load", "seed"], Comparing(factor="load", resamples=200)))
    assert told[1].startswith("It is higher under load 0.9 by 29 %")


# ---- terminal and CSV ---------------------------------------------------------------------------------------------


def test_the_terminal_shows_every_comparison_in_80_columns(found: Comparisons) -> None:
    shown = printed(found)
    assert max(map(len, shown.splitlines())) <= 80
    assert ODD in shown
    assert re.search(r"fcfs +3\.\d+ ! .* 11 \(-1\)", shown)
    assert re.search(r"twin +1\.00 = +1\.00 to 1\.00", shown)
    assert "* better, ! worse, = equivalent (the 90 % interval, shown for these, is within 5 %)" in " ".join(
        shown.split()
    )


def test_files_hold_every_number(found: Comparisons, tmp_path: Path) -> None:
    paths = write_tables(tmp_path / "tables", found)
    assert sorted(path.name for path in paths) == sorted(path.name for path in (tmp_path / "tables").iterdir())
    rows = read(tmp_path / "tables" / "comparisons.csv")
    assert len(rows) == len(found.found)
    for row, it in zip(rows, found.found, strict=True):
        assert (row["policy"], row["baseline"], row["metric"]) == (it.value, "easy", it.metric)
        assert (row["over"], row["load"]) == (
            ("all conditions", "") if it.condition is None else ("condition", str(it.condition["load"]))
        )
        for name in ("ratio", "ratio_low", "p", "p_log_holm", "p_wilcoxon_holm", "p_equivalence", "dominance"):
            assert float(row[name]) == getattr(it.test, name)
        assert (float(row["mean"]), int(row["missing"]), row["verdict"]) == (it.mean, it.missing, it.test.verdict)
    means = read(tmp_path / "tables" / "means.csv")
    assert [(row["metric"], row["policy"], float(row["mean"])) for row in means] == [
        (it.metric, it.value, it.mean) for it in found.means
    ]
    assert {row["unit"] for row in means} == {"s", ""}


def test_missing_numbers_are_empty_cells_and_factors_have_separate_columns(tmp_path: Path) -> None:
    rows = [{"policy": policy, "ratio": 0.5, "wait_mean": 1.0} for policy in "ab"]
    write_tables(tmp_path, compare_runs(rows, ["policy", "ratio"], QUICK))
    (row,) = read(tmp_path / "comparisons.csv")
    assert (row["p_log"], row["ratio_low"], row["verdict"]) == ("", "", "too little data")
    assert (row["ratio (factor)"], row["ratio"]) == ("0.5", "1.0")


def test_a_table_by_condition_that_is_no_longer_true_does_not_stay(tmp_path: Path) -> None:
    write_tables(tmp_path, made())
    assert (tmp_path / "comparisons-by-condition.tex").exists()
    write_tables(tmp_path, made(loads=(0.7,)))
    assert not (tmp_path / "comparisons-by-condition.tex").exists()


def test_files_are_the_same_every_time(found: Comparisons, tmp_path: Path) -> None:
    first, second = (write_tables(tmp_path / name, found) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


# ---- LaTeX --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_condition", [False, True])
def test_latex_is_escaped_and_balanced(found: Comparisons, by_condition: bool) -> None:
    tex = latex(found, name="50% & more", by_condition=by_condition)
    body = "\n".join(line for line in tex.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[%#]", body)
    assert not re.search(r"(?<!\\)_", body)
    bare = re.sub(r"\\[{}\\]", "", body)
    assert bare.count("{") == bare.count("}")
    opened, closed = (re.findall(rf"\\{word}\{{(\w+)\}}", body) for word in ("begin", "end"))
    assert opened == closed[::-1]
    rows = [line for line in body.splitlines() if line.startswith("\\raggedright") and line.endswith("\\\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {5}
    assert len(rows) == sum(it.condition is not None for it in found.found) if by_condition else 8
    assert r"\textbackslash{}{[}{*}{]}" in body
    assert r"50\% \& more" in body
    assert r"\label{tab:50-more" in body


# ---- the page -----------------------------------------------------------------------------------------------------


class Tables(HTMLParser):
    """Checks that tags close, and keeps the scopes of headings and the captions."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scopes: list[str | None] = []
        self.captions = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "wbr"):
            self.open.append(tag)
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))
        self.captions += tag == "caption"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_tables_of_the_page_have_captions_and_scopes(text: str) -> None:
    parser = Tables()
    parser.feed(text)
    assert parser.open == []
    assert set(parser.scopes) == {"col", "row", "rowgroup"}
    assert parser.captions == text.count("<table") == 3


def test_the_page_is_escaped_and_loads_nothing(text: str, found: Comparisons) -> None:
    assert "<b>" not in text
    assert "<h1>Loads &amp; logs</h1>" in text
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split()).replace("\u00a0", " ")
    assert ODD in words
    for sentence in sentences(found):
        assert sentence in words
    assert not re.search(r"https?:|<(link|script|iframe|img)\b|@import", text)
    assert "default-src 'none'" in text


def test_a_page_of_very_many_conditions_shows_the_first_and_says_where_the_rest_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gridsim.report.campaign._MOST_ROWS", 24)
    many = made({"easy": 0.0, "twin": 0.0}, seeds=2, loads=tuple(np.linspace(0.1, 1, 10).tolist()))
    shown = page(many)
    assert shown.count("baseline</td>") == 2 * 6
    assert "4 more conditions are in comparisons.csv and means.csv." in shown
    assert "4 more conditions are in comparisons.csv." in latex(many, by_condition=True)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_in_a_browser_the_page_fits_and_complains_of_nothing(
    browser: Any, text: str, tmp_path: Path, width: int, theme: str
) -> None:
    path = tmp_path / "comparisons.html"
    path.write_text(text, encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    colours = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    ink, ground = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ink > ground) == (theme == "dark")
    browser.execute_script("document.querySelector('.scroll').scrollLeft = 200")
    left = browser.execute_script(
        "return document.querySelector('.campaign tbody th[scope=row]').getBoundingClientRect().left"
    )
    assert left >= 0 or width > 600  # names stay visible


# -- windows of logs, and pictures -----------------------------------------------------------------------------------


def windows(logs: int, *, name: str = "log") -> Comparisons:
    """Waits of two policies on six windows of each log."""
    rng = stream(2, "tests", "windows")
    rows = [
        {"policy": policy, name: log, "window": window, "wait_mean": math.exp(rng.normal(8 - less, 0.1))}
        for policy, less in (("fcfs", 0.0), ("easy", 0.7))
        for log, window in product(range(logs), range(6))
    ]
    return compare_runs(rows, ["policy", name, "window"], QUICK)


def test_windows_are_not_counted_as_logs() -> None:
    found = windows(3)
    told = " ".join(sentences(found))
    assert "over 3 logs (6 windows each)" in told
    assert "18 workloads are of 3 logs" in told
    assert "n is 3." in told
    assert "logs" in printed(found).splitlines()[1]
    assert "18 workloads of 3 logs" in page(found)
    assert "number of logs" in latex(found)


def test_windows_of_one_log_are_said_to_be_of_it_alone() -> None:
    told = " ".join(sentences(windows(1)))
    assert "over 6 windows" in told
    assert "All windows are parts of one log, blocks of its time" in told


def test_user_workloads_are_reported_as_before(found: Comparisons) -> None:
    assert "parts of one log" not in " ".join(sentences(found))
    assert "workloads" in printed(found).splitlines()[1]


def test_the_page_shows_the_main_comparison(found: Comparisons, text: str) -> None:
    assert text.count("<svg") == len(found.metrics) == 2
    figure = figures(found)["wait-mean"]
    rows = found.overall("wait_mean")
    assert len(figure.axes[0].get_yticks()) == len(rows)
    drawn = [float(line.get_xdata()[0]) for line in figure.axes[0].lines[1:]]
    assert drawn == [it.test.ratio for it in rows]


@pytest.mark.long
def test_figures_of_a_campaign_are_written_for_a_paper(found: Comparisons, tmp_path: Path) -> None:
    assert [path.name for path in figures(found).save(tmp_path, "pdf")] == ["wait-mean.pdf", "utilisation.pdf"]
