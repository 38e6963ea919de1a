"""Figures on moldable jobs: all 14 of the paper have a recipe, are drawn, and show the rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from scipy import stats

from gridsim.errors import InputError
from gridsim.model.random_streams import stream
from gridsim.report.figures import PALETTE
from gridsim_papers.deadline.figures import heading
from gridsim_papers.deadline.lines import StoredRows
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.moldable.campaign import BASES, MoldableCampaign
from gridsim_papers.moldable.changes import CATEGORIES
from gridsim_papers.moldable.figures import CONDITIONS, SCHEMES, bars_of, draw
from gridsim_papers.paper import RECIPES as FOLDER

RECIPES = read_recipes(FOLDER / "moldable-figures.toml", CONDITIONS)
USUAL = RECIPES["S03-F01"].usual
GROUPS = ("", *CATEGORIES)


def made_rows(log: str, windows: int = 4, experiments: tuple[str, ...] = ("mold-fig*",)) -> list[dict[str, Any]]:
    """Mean responses of plausible size for all conditions of the figures."""
    rng = stream(1, "tests", "moldable figures", log)
    points = MoldableCampaign(experiments=experiments).points()
    return [
        {
            "log": log,
            "window": window,
            "base": base,
            **point._asdict(),
            "metric": "response_mean",
            "group": group,
            "value": 10_000 * float(np.exp(0.3 * rng.normal())),
        }
        for point in points
        for window, base, group in itertools.product(range(windows), BASES, GROUPS)
    ]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [*made_rows("sdsc"), *made_rows("ctc")]


@pytest.fixture(scope="module")
def stored(rows: list[dict[str, Any]]) -> StoredRows:
    return StoredRows(rows, USUAL, CONDITIONS)


def of_figure_1(values: Mapping[tuple[str, str], list[float]], **more: Any) -> StoredRows:
    """Rows by scheme and group, one value per window."""
    place = {"log": "ctc", "base": "0.65", "method": "gaps", "load_factor": 100.0, "sigma": 0.0}
    place |= {"range_factor": 1.0, "profiles": "", "metric": "response_mean"} | more
    rows = [
        {**place, "scheme": scheme, "group": group, "window": window, "value": value}
        for (scheme, group), of_windows in values.items()
        for window, value in enumerate(of_windows)
    ]
    return StoredRows(rows, USUAL, CONDITIONS)


def bars_on(axes: Axes) -> list[Rectangle]:
    return [bar for bar in axes.patches if isinstance(bar, Rectangle)]


def test_every_figure_of_the_paper_has_a_recipe_for_its_log_and_load(
    claims: Callable[[str], list[dict[str, str]]],
) -> None:
    figures = {row["id"]: row for row in claims("moldable") if re.fullmatch(r"F\d\d", row["id"])}
    assert [f"S03-{name}" for name in figures] == list(RECIPES)
    for name, row in figures.items():
        recipe = RECIPES[f"S03-{name}"]
        assert {panel.experiment for panel in recipe.panels} == {row["experiment"]}
        assert {panel.where["base"] for panel in recipe.panels} == set(BASES)
        told = row["parameters"]
        if not told.startswith("as figure"):
            assert {panel.where["log"] for panel in recipe.panels} == {told[:4].strip(",").lower()}
            assert {panel.where["load_factor"] for panel in recipe.panels} == {float(told.split("LF ")[1][:3])}
        if sigma := re.search(r"sigma (\d)", told):
            assert {panel.where["sigma"] for panel in recipe.panels} == {float(sigma[1])}


def test_figures_show_policies_that_the_campaign_runs_and_words_name() -> None:
    run = {point.scheme for point in MoldableCampaign(experiments=("mold-fig*",)).points()}
    shown = {panel.against for recipe in RECIPES.values() for panel in recipe.panels}
    for panel in (panel for recipe in RECIPES.values() for panel in recipe.panels):
        shown |= set(panel.values) if panel.lines == "scheme" else {panel.where["scheme"]}
    assert shown == run
    assert shown <= set(SCHEMES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RECIPES)
def test_every_figure_is_drawn(stored: StoredRows, name: str) -> None:
    recipe = RECIPES[name]
    figure = draw(recipe, stored)
    assert len(figure.axes) == len(recipe.panels)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == len(recipe.panels[0].values)
    for axes in figure.axes:
        assert len(bars_on(axes)) == 11 * len(labels)
        assert [text.get_text() for text in axes.get_xticklabels()] == [*map(str, range(1, 11)), "all"]
        assert axes.get_ylim() == figure.axes[0].get_ylim()
    assert "over 4 windows" in figure.texts[1].get_text()


def test_a_bar_is_the_geometric_mean_change_and_its_test_scipys() -> None:
    mine, theirs = [80.0, 95.0, 70.0], [100.0, 90.0, 120.0]
    stored = of_figure_1({("moldable-start", ""): mine, ("conservative", ""): theirs})
    panel = RECIPES["S03-F01"].panels[0]
    found = {bars.value: bars for bars in bars_of("S03-F01", panel, stored)}
    assert not found["moldable-submit"].changes
    bar = found["moldable-start"].changes[""]
    expected = stats.ttest_rel(np.log(mine), np.log(theirs))
    interval = np.expm1(expected.confidence_interval(0.95))
    assert bar.change == pytest.approx(stats.gmean(np.divide(mine, theirs)) - 1)
    assert (bar.low, bar.high) == pytest.approx(tuple(interval))
    assert bar.p == pytest.approx(expected.pvalue)
    assert bar.windows == 3


def test_bars_reach_from_no_change_and_chance_is_pale() -> None:
    values = {("conservative", group): [100.0, 100.0, 100.0] for group in ("", "weight:1")}
    values |= {("moldable-start", ""): [50.0, 51.0, 49.0], ("moldable-start", "weight:1"): [50.0, 200.0, 130.0]}
    axes = draw(RECIPES["S03-F01"], of_figure_1(values)).axes[0]
    bars = {round(bar.get_x()): bar for bar in bars_on(axes)}
    sure, chance = bars[11], bars[0]
    assert sure.get_y() == chance.get_y() == 1.0
    assert 1 + sure.get_height() == pytest.approx(stats.gmean([0.5, 0.51, 0.49]))
    colours = [to_rgb(bar.get_facecolor()) for bar in (sure, chance)]
    assert colours[0] == to_rgb(PALETTE[1])
    assert all(pale > full or pale == full == 1 for full, pale in zip(*colours, strict=True))


def test_a_window_without_a_category_is_left_out_of_it_alone() -> None:
    values = {("conservative", ""): [100.0] * 3, ("moldable-start", ""): [90.0, 80.0, 70.0]}
    values |= {("conservative", "weight:1"): [100.0] * 2, ("moldable-start", "weight:1"): [90.0, 80.0]}
    stored = of_figure_1(values)
    changes = bars_of("S03-F01", RECIPES["S03-F01"].panels[0], stored)[1].changes
    assert {group: it.windows for group, it in changes.items()} == {"weight:1": 2, "": 3}
    told = draw(RECIPES["S03-F01"], stored).texts[1].get_text().replace("\n", " ")
    assert "over 2 to 3 windows" in told
    assert "No rows of fair share at submission." in told
    assert told.endswith("No rows of load as logged: run the experiment mold-fig01.")


def test_one_window_has_no_interval() -> None:
    stored = of_figure_1({("conservative", ""): [100.0], ("moldable-start", ""): [90.0]})
    figure = draw(RECIPES["S03-F01"], stored)
    assert "A bar is one window; it has no interval." in figure.texts[1].get_text()
    assert [to_rgb(bar.get_facecolor()) for bar in bars_on(figure.axes[0])] == [to_rgb(PALETTE[1])]


def test_ticks_are_apart_and_none_is_no_change() -> None:
    for spread in (1.02, 1.3, 3.0, 40.0):
        values = {("conservative", ""): [100.0, 100.0], ("moldable-start", ""): [100 * spread, 101 * spread]}
        values["moldable-submit", ""] = [100 / spread, 101 / spread]
        axes = draw(RECIPES["S03-F01"], of_figure_1(values)).axes[0]
        ticks = sorted(axes.get_yticks())
        low, high = np.log(axes.get_ylim())
        assert 1.0 in ticks
        assert 1 <= len(ticks) <= 12
        assert min(np.diff(np.log(ticks)), default=1.0) > 0.07 * (high - low)
        assert "0 %" in [text.get_text() for text in axes.get_yticklabels()]


def test_missing_rows_are_reported_with_the_experiment_to_run() -> None:
    stored = of_figure_1({("conservative", ""): [100.0], ("moldable-start", ""): [90.0]})
    told = "S03-F07 has no rows of 'response_mean' with log ctc, base 0.65, .*against conservative; .* mold-fig07"
    with pytest.raises(InputError, match=told):
        draw(RECIPES["S03-F07"], stored)


@pytest.mark.long
def test_a_heading_says_log_load_and_scalability_but_of_profiles_no_sigma(stored: StoredRows) -> None:
    first, last = (draw(RECIPES[name], stored).texts[0].get_text() for name in ("S03-F01", "S03-F12"))
    assert first.splitlines()[1] == "CTC SP2, load factor 100 %, sigma 0, range factor 1"
    assert last.splitlines()[1] == "SDSC SP2, load factor 100 %"
    assert "synthetic jobs" in heading(RECIPES["S03-F01"].of_log("model"))
