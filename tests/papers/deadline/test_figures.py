"""Figures on guaranteed deadlines: every figure of the papers has a recipe, is drawn, and shows the rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib.axes
import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.summary import DEADLINE_METRICS
from gridsim.model.random_streams import stream
from gridsim.policy.admission.feedback import Feedback
from gridsim.policy.scheduler.deadline_guarantee import Guaranteed
from gridsim_papers.deadline.figures import caption, draw, heading, save
from gridsim_papers.deadline.lines import Mean, StoredRows, gaps, lines_of, mean_of_windows
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.paper import RECIPES as FOLDER

RECIPES = read_recipes(FOLDER / "deadline-figures.toml")
DRAWN = [name for name, recipe in RECIPES.items() if recipe.panels]
USUAL = RECIPES["TR-F04"].usual

COLUMNS = (
    *("log", "window", "stream", "method", "load", "stringency", "fraction", "tolerance", "random_tolerance"),
    *("estimates", "scheme", "metric", "group", "value"),
)
METRICS = (
    *(f"deadline_{name}" for name in ("unadmitted", "unadmitted_share", "unadmitted_area", "unadmitted_area_share")),
    *("deadline_guaranteed_share", "deadline_guaranteed_area_share", "utilisation", "utilisation_arrivals"),
    *("non_deadline_response_mean", "non_deadline_slowdown_mean", "resource_charge", "qos_charge"),
    *("promises_made", "promises_broken"),
)
WORSE = {"qops": 1.0, "mrt": 1.6, "msb": 1.3, "easy": 2.4, "conservative": 2.2, "fqops": 1.0}
TOLERANCES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 1000.0)
SLACKS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0)


def runs() -> Iterator[dict[str, Any]]:
    """Conditions of the papers, without window and stream."""
    usual = {"tolerance": 1.0, "random_tolerance": False, "estimates": "exact"}
    reports = [("ctc", "random-arrival"), ("sdsc", "random-arrival"), ("ctc", "expansion")]
    for (log, method), load, stringency, fraction in itertools.product(
        reports, (1.0, 1.2, 1.4, 1.6), (0.2, 0.5), (1.0, 0.8, 0.2)
    ):
        place = {"log": log, "method": method, "load": load, "stringency": stringency, "fraction": fraction, **usual}
        schemes = ["qops", "mrt", "msb", "easy", "conservative", "qops?heuristic=edf"]
        if (log, method) == reports[0] and fraction < 1:
            schemes += ["qops?relaxation=2", "qops?relaxation=10"]
        yield from ({**place, "scheme": scheme} for scheme in schemes)
    place = {"log": "ctc", "method": "same-arrival", "stringency": 0.2, "fraction": 1.0, **usual}
    for load, tolerance, drawn in itertools.product((1.0, 1.3, 1.6), TOLERANCES, (False, True)):
        yield {**place, "load": load, "tolerance": tolerance, "random_tolerance": drawn, "scheme": "fqops"}
    for slack, tolerance, load in itertools.product(SLACKS, (2.0, 3.0, 4.0, 6.0), (1.3, 1.6)):
        scheme, and_more = ("fqops", "?") if slack == 1 else (f"fqops?slack_factor={slack:g}", "&")
        yield {**place, "load": load, "tolerance": tolerance, "scheme": scheme}
        for fraction in (1.0, 0.2):
            for text in (scheme, f"{scheme}{and_more}kill_restart=true"):
                yield {**place, "load": load, "tolerance": tolerance, "fraction": fraction, "scheme": text}
        for how in ("logged", "logged-extended") if tolerance == 4.0 else ():
            inexact = {"method": "random-arrival", "estimates": how}
            yield {**place, **inexact, "load": load + 0.1, "tolerance": tolerance, "scheme": scheme}
    for scheme, load in itertools.product(("qops", "mrt", "msb"), (1.0, 1.2, 1.4, 1.6)):
        yield {**place, "method": "random-arrival", "estimates": "logged", "load": load, "scheme": scheme}


def value_of(metric: str, run: Mapping[str, Any], noise: float) -> float:
    """A number of a plausible size that grows with the load."""
    name, _, parameters = run["scheme"].partition("?")
    size = WORSE[name] * run["load"] ** 2 * (1 + 0.1 * noise) * (1 + 0.02 * len(parameters)) / run["tolerance"] ** 0.3
    sizes = {"response": 20_000.0, "slowdown": 15.0, "charge": 1e9, "made": 4_000.0, "broken": 60.0}
    for part, scale in sizes.items():
        if part in metric:
            return scale * size
    if "utilisation" in metric:
        return min(0.95, 0.62 * run["load"] ** 0.7 - 0.03 * WORSE[name] * (name not in ("easy", "conservative")))
    if metric.endswith("share"):
        return float(np.clip(0.05 * size, 0, 1))
    return 250.0 * size * (3_600.0 * 20 if "area" in metric else 1)


def made_rows(windows: int = 3, streams: int = 2) -> list[dict[str, Any]]:
    rng = stream(1, "tests", "deadline figures")
    unique = {tuple(run.items()): run for run in runs()}
    return [
        {"window": window, "stream": number, **run, "metric": metric, "group": group, "value": value}
        for run in unique.values()
        for window, number in itertools.product(range(windows), range(streams))
        for metric in METRICS
        for group, value in [("", value_of(metric, run, rng.normal()))]
    ]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return made_rows()


@pytest.fixture(scope="module")
def stored(rows: list[dict[str, Any]]) -> StoredRows:
    return StoredRows(rows, USUAL)


@pytest.fixture(scope="module")
def stated(claims: Callable[[str], list[dict[str, str]]]) -> list[dict[str, str]]:
    found = {row["id"]: row for row in claims("deadline") if "-F" in row["id"]}
    for row in found.values():  # a selection includes its figure
        for column in ("experiment", "parameters"):
            if row[column].startswith("as "):
                row[column] = found[row[column][3:9]][column]
    return list(found.values())


def test_every_figure_of_the_papers_has_a_recipe(stated: list[dict[str, str]]) -> None:
    assert [name for name in RECIPES if "-F" in name] == [row["id"] for row in stated]
    for row in stated:
        recipe = RECIPES[row["id"]]
        assert bool(recipe.golden) == (row["experiment"] == "golden")
        assert {it.experiment for it in recipe.panels} <= set(row["experiment"].split(", "))


def test_recipes_take_the_rows_that_the_claims_are_about(stated: list[dict[str, str]]) -> None:
    for row in stated:
        for panel in RECIPES[row["id"]].panels:
            given = {key: panel.where.get(key) for key in ("stringency", "fraction", "load", "tolerance")}
            for name, column in (("s", "stringency"), ("f", "fraction"), ("load", "load"), ("TF", "tolerance")):
                said = re.search(rf"\b{name}(?:=| )([\d. ]+(?:and [\d.]+)?)", row["parameters"])
                both = column == "stringency" and "plot both" in row["claim"]
                if said and given[column] is not None and not both:
                    assert given[column] in {float(number) for number in re.findall(r"\d+\.?\d*", said[1])}, row["id"]
            if panel.lines == "scheme":
                assert set(panel.values) <= set(row["parameters"].replace(";", " ").split())


def test_pseudo_code_names_its_golden_cases(stated: list[dict[str, str]]) -> None:
    for row in stated:
        for case in RECIPES[row["id"]].golden:
            assert case in re.findall(r"\d+[bc]?", row["parameters"])


def test_the_paper_of_2003_shows_numbers_with_shares() -> None:
    for number in (4, 5, 7, 8, 9, 10, 11, 12):
        metrics = {panel.y for panel in RECIPES[f"J03-F{number:02d}"].panels}
        assert {"deadline_unadmitted", "deadline_unadmitted_share"} < metrics


def test_usual_parameters_are_those_of_the_policies() -> None:
    feedback = Feedback()
    assert (USUAL["slack_factor"], USUAL["kill_restart"]) == (feedback.slack_factor, feedback.kill_restart)
    assert USUAL["relaxation"] == Guaranteed().relaxation


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_is_drawn(stored: StoredRows, name: str) -> None:
    recipe = RECIPES[name]
    figure = draw(recipe, stored)
    assert len([axes for axes in figure.axes if axes.axison]) == len(recipe.panels)
    for axes, panel in zip(figure.axes, recipe.panels, strict=False):
        lines = [line for line in axes.lines if not line.get_label().startswith("_")]
        assert len(lines) == len(panel.values)
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        for line, found in zip(lines, lines_of(name, panel, stored), strict=True):
            drawn, expected = np.asarray(line.get_ydata()), np.array([point.y.mean for point in found.points])
            np.testing.assert_allclose(drawn * expected[0], expected * drawn[0])
    texts = [text.get_text() for text in figure.texts]
    assert texts[0].startswith(f"{name} · {recipe.title}")
    assert "3 windows, each with 2 streams" in texts[1].replace("\n", " ")
    assert "No rows" not in texts[1]


def plain_rows(values: Mapping[tuple[Any, ...], float], **more: Any) -> list[dict[str, Any]]:
    """Rows of TR figure 4: values by scheme, load, window and stream."""
    run = {"log": "ctc", "method": "random-arrival", "stringency": 0.2, "fraction": 1.0, **USUAL, "group": ""}
    return [
        {**run, "scheme": scheme, "load": load, "window": window, "stream": number, "metric": metric, "value": value}
        | more
        for (scheme, load, window, number), value in values.items()
        for metric in ("deadline_unadmitted_share", "deadline_unadmitted_area_share")
    ]


def of_figure_4(values: Mapping[tuple[Any, ...], float], **more: Any) -> StoredRows:
    return StoredRows(plain_rows(values, **more), USUAL)


def test_an_interval_is_students_over_windows() -> None:
    mean, low, high, windows, streams = mean_of_windows({(0, 0): 1.0, (1, 0): 2.0, (2, 0): 6.0})
    half = 4.302652729911275 * 7**0.5 / 3**0.5  # t of 2 degrees; variance (4 + 1 + 9) / 2
    assert (mean, windows, streams) == (3.0, 3, 1)
    assert (low, high) == pytest.approx((3.0 - half, 3.0 + half))
    other = stats.t.interval(0.95, 2, loc=3.0, scale=stats.sem([1.0, 2.0, 6.0]))
    assert (low, high) == pytest.approx(other)


def test_streams_of_a_window_are_not_counted_as_windows() -> None:
    values = {(0, 0): 1.0, (0, 1): 3.0, (1, 0): 5.0, (1, 1): 7.0}
    half = 12.706204736174694 * 2.0  # t of 1 degree; means 2 and 6, standard error 2
    assert mean_of_windows(values) == pytest.approx(Mean(4.0, 4.0 - half, 4.0 + half, 2, 2))


def test_one_window_has_the_interval_of_its_streams_and_one_run_has_none() -> None:
    assert mean_of_windows({(3, 0): 1.0, (3, 1): 2.0}).high == pytest.approx(1.5 + 12.706204736174694 * 0.5)
    assert np.isnan(mean_of_windows({(0, 0): 1.0})[1:3]).all()


def test_the_caption_says_what_intervals_are_of() -> None:
    def told(values: Mapping[tuple[Any, ...], float]) -> str:
        recipe, stored = RECIPES["TR-F04"], of_figure_4(values)
        return caption(recipe, [(panel, lines_of("TR-F04", panel, stored)) for panel in recipe.panels])

    one = {(scheme, 1.0, 0, 0): 0.1 for scheme in ("qops", "mrt", "msb")}
    assert "1 window; one replicate has no interval." in told(one)
    assert "over streams and say nothing about other windows" in told(one | {(*run[:3], 1): 0.2 for run in one})
    two = one | {(run[0], 1.0, 1, 0): 0.2 for run in one}
    assert "2 windows; bars are 95 % intervals (Student's\u00a0t) over windows. Lines share" in told(two)
    assert "1 to 2 windows" in told(one | {("qops", 1.0, 1, 0): 0.3})
    assert "none where there is one replicate. Points that differ" in told(one | {("qops", 1.0, 1, 0): 0.3})


def test_bars_reach_from_end_to_end_of_the_interval() -> None:
    axes = draw(RECIPES["TR-F04"], of_figure_4({("qops", 1.4, w, 0): v for w, v in enumerate((0.1, 0.2))})).axes[0]
    (start, end) = axes.collections[0].get_paths()[0].vertices
    assert (start[1], end[1]) == pytest.approx(mean_of_windows({(0, 0): 0.1, (1, 0): 0.2})[1:3])
    assert start[0] == end[0] == pytest.approx(1.4)


def test_panels_of_one_metric_have_one_axis_and_shares_stay_within_theirs(stored: StoredRows) -> None:
    axes = draw(RECIPES["J03-F07"], stored).axes
    assert axes[0].get_ylim() == axes[4].get_ylim() != axes[2].get_ylim() == axes[6].get_ylim()
    wide = of_figure_4({("qops", 1.0, w, 0): v for w, v in enumerate((0.1, 0.9))})
    low, high = draw(RECIPES["TR-F04"], wide).axes[0].get_ylim()
    assert (low, high) == (0.0, pytest.approx(1.02))


def test_lines_of_very_different_size_are_on_a_logarithmic_axis() -> None:
    values = {("qops", 1.0, 0, 0): 2.0, ("easy", 1.0, 0, 0): 900.0, ("qops", 1.2, 0, 0): 3.0}
    run = [row for row in plain_rows(values, fraction=0.2) if row["metric"] == "deadline_unadmitted_share"]
    metrics = ("non_deadline_response_mean", "non_deadline_slowdown_mean")
    axes = draw(RECIPES["TR-F25"], StoredRows([{**row, "metric": m} for row in run for m in metrics], USUAL)).axes
    assert axes[1].get_yscale() == "log"
    assert axes[1].get_ylim() == (1.0, 2_700.0)


@pytest.mark.long
def test_missing_rows_are_reported_with_the_experiment_to_run(stored: StoredRows, rows: list[dict[str, Any]]) -> None:
    few = StoredRows((row for row in rows if row["method"] != "expansion"), USUAL)
    told = r"TR-F10 has no rows of 'deadline_unadmitted_share' with log ctc, method expansion, .*run.* A-ctc-exp"
    with pytest.raises(InputError, match=told):
        draw(RECIPES["TR-F10"], few)
    with pytest.raises(InputError, match=r"'utilisation' with .*M-ctc-exp"):
        draw(
            RECIPES["TR-F51"],
            StoredRows((row for row in rows if row["metric"] != "utilisation" and row["method"] != "expansion"), USUAL),
        )
    draw(RECIPES["TR-F04"], few)


def test_lines_and_points_that_are_missing_are_reported_in_the_caption() -> None:
    values = {(scheme, load, 0, 0): 0.1 for scheme in ("qops", "msb") for load in (1.0, 1.2, 1.4)}
    del values["msb", 1.2, 0, 0], values["msb", 1.4, 0, 0]
    stored = of_figure_4(values)
    panel = RECIPES["TR-F04"].panels[0]
    assert gaps(lines_of("TR-F04", panel, stored)) == [("mrt", []), ("msb", [1.2, 1.4])]
    told = draw(RECIPES["TR-F04"], stored).texts[1].get_text().replace("\n", " ")
    assert told.endswith("No rows of MRT. No rows of MSB at load 1.2 and 1.4.")


def test_points_at_the_utilisation_achieved_are_joined_in_order_of_load() -> None:
    run = plain_rows({("qops", 1.0 + k / 5, 0, 0): v for k, v in enumerate((0.6, 0.8, 0.7))}, fraction=0.2)
    run = [row for row in run if row["metric"] == "deadline_unadmitted_share"]
    metrics = ("utilisation", "non_deadline_response_mean", "non_deadline_slowdown_mean")
    stored = StoredRows([{**row, "metric": m, "value": row["value"] * 3_600} for row in run for m in metrics], USUAL)
    response = draw(RECIPES["TR-F43"], stored).axes[0].lines[0]
    assert np.asarray(response.get_xdata()) / 3_600 == pytest.approx([0.6, 0.8, 0.7])
    assert np.asarray(response.get_ydata()) == pytest.approx([0.6, 0.8, 0.7])  # hours


def test_places_that_a_recipe_does_not_request_are_not_drawn(stored: StoredRows) -> None:
    assert (1000.0,) in stored.values("qos_charge", {"load": 1.3, "random_tolerance": True}, "tolerance")
    assert draw(RECIPES["P04-F03"], stored).axes[0].lines[0].get_xdata()[-1] < 51


def test_a_run_without_a_number_is_no_replicate() -> None:
    stored = of_figure_4({("qops", 1.0, 0, 0): 0.1, ("qops", 1.0, 1, 0): float("nan")})
    (point,) = lines_of("TR-F04", RECIPES["TR-F04"].panels[0], stored)[0].points
    assert point.y[::3] == (0.1, 1)


def test_parameters_of_schemes_are_conditions_in_any_order() -> None:
    one, other = ("fqops?slack_factor=1.5&kill_restart=true", "fqops?kill_restart=true&slack_factor=1.5")
    where = {"scheme": "fqops", "slack_factor": 1.5, "kill_restart": True}
    for text in (one, other):
        stored = of_figure_4({(text, 1.6, 0, 0): 0.5})
        assert stored.values("deadline_unadmitted_share", where) == {(): {(0, 0): 0.5}}
    plain = of_figure_4({("qops?heuristic=edf", 1.6, 0, 0): 0.5})
    assert not plain.values("deadline_unadmitted_share", {"scheme": "qops"})
    assert plain.values("deadline_unadmitted_share", {"scheme": "qops?heuristic=edf"})


def test_rows_of_groups_and_a_run_stored_twice_do_no_harm_but_two_values_do() -> None:
    rows = plain_rows({("qops", 1.0, 0, 0): 0.1})
    grouped = [{**row, "group": "area:light", "value": 0.9} for row in rows]
    stored = StoredRows([*rows, *rows, *grouped], USUAL)
    assert stored.values("deadline_unadmitted_share", {"load": 1.0}) == {(): {(0, 0): 0.1}}
    with pytest.raises(InputError, match=r"two values .* 0.1 and 0.3, for window 0, stream 0"):
        StoredRows([*rows, {**rows[0], "value": 0.3}], USUAL)


def test_rows_that_a_recipe_does_not_tell_apart_are_refused() -> None:
    rows = [*plain_rows({("qops", 1.0, 0, 0): 0.1}), *plain_rows({("qops", 1.0, 0, 0): 0.2}, stringency=0.5)]
    with pytest.raises(InputError, match="differ in stringency; the recipe must say"):
        StoredRows(rows, USUAL).values("deadline_unadmitted_share", {"load": 1.0})


def test_promises_kept_are_a_share_of_those_made_in_each_run() -> None:
    made = [{**row, "metric": "promises_made", "value": 200.0} for row in plain_rows({("fqops", 1.0, 0, 0): 0.0})]
    broken = [{**row, "metric": "promises_broken", "value": 5.0} for row in made]
    kept = StoredRows([*made, *broken], USUAL).values("promises_kept_share", {"load": 1.0}, "scheme")
    assert kept == {("fqops",): {(0, 0): pytest.approx(0.975)}}
    assert {"promises_made", "promises_broken"} <= set(DEADLINE_METRICS)


def test_another_log_may_take_the_place_of_the_papers() -> None:
    stored = of_figure_4({("qops", 1.0, 0, 0): 0.1}, log="model")
    recipe = RECIPES["TR-F04"].of_log("model")
    assert "synthetic jobs" in heading(recipe)
    assert recipe.panels[0].experiment == "A-model-dup"
    assert isinstance(draw(recipe, stored).axes[0], matplotlib.axes.Axes)


def test_a_heading_says_log_method_stringency_and_mix() -> None:
    assert heading(RECIPES["TR-F17"]).splitlines()[1] == (
        "SDSC SP2, load by duplicates that arrive at random, stringency 0.2, 80 % of the jobs have deadlines"
    )
    titles = [heading(recipe).partition(" · ")[2] for name, recipe in RECIPES.items() if name in DRAWN]
    panels = [str(RECIPES[name].panels) for name in DRAWN]
    assert len(set(titles)) == len(set(panels)) or len(set(titles)) > 70


@pytest.mark.long
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_file_is_the_same_every_time(tmp_path: Path, ending: str) -> None:
    stored = of_figure_4({("qops", 1.0, w, 0): 0.1 * w for w in range(3)})
    contents = []
    for name in ("one", "two"):
        save(draw(RECIPES["TR-F04"], stored), tmp_path / name / f"figure.{ending}")
        contents.append((tmp_path / name / f"figure.{ending}").read_bytes())
    assert contents[0] == contents[1]
    assert contents[0][:5] in (b"<?xml", b"\x89PNG\r")


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ('kind = "admitance"', UnknownNameError, "admittance"),
        ('kind = "admittance"\nexperiment = "A"\ncolour = 3', UnknownNameError, "key of TR-F04"),
        ('kind = "admittance"\nexperiment = "B"', UnknownNameError, "experiment 'B'"),
        ('kind = "admittance"\nexperiment = "A"\npanels = [{ y = "deadline_unadmited" }]', UnknownNameError, "metric"),
        ('kind = "admittance"\nexperiment = "A"\nlines = "load"', InputError, "other than x"),
        ('like = "TR-F05"', UnknownNameError, "figure 'TR-F05'"),
        ('title = "nothing"', InputError, "neither panels nor golden"),
        ('golden = ["05"]', InputError, "no title"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(tmp_path: Path, change: str, error: type, named: str) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(
        '[paper]\nTR = "report"\n[experiment]\nA = { log = "ctc" }\n[kind.admittance]\ntitle = "t"\nx = "load"\n'
        f'lines = "scheme"\ny = "deadline_unadmitted"\npanels = [{{}}]\n[TR.4]\n{change}\n'
    )
    with pytest.raises(error, match=named):
        read_recipes(path)
