"""Verdicts on the claims about moldable jobs, from artificial rows in which each claim holds or does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.moldable import base
from gridsim_papers.moldable.campaign import BASELINE, COMBINED, WAITED, MoldableCampaign, Point
from gridsim_papers.moldable.changes import CATEGORIES
from gridsim_papers.moldable.claims import EXACT, QUESTIONS, Question, answers, figures
from gridsim_papers.moldable.exact import blocks_suffice, corrected_limits, downey
from gridsim_papers.moldable.figures import CONDITIONS
from gridsim_papers.moldable.parts import beyond, degraded, mean_of, signs, toward, unharmed
from gridsim_papers.moldable.study import Bar, Bars, Case, Setting, Study, between
from gridsim_papers.paired import Values
from gridsim_papers.paper import RECIPES as FOLDER
from gridsim_papers.verdict_table import Judged
from gridsim_papers.verdicts import Part, decided

pytestmark = pytest.mark.long

Row = dict[str, Any]
World = Literal["as claimed", "contrary", "odd", "level"]
"""Rows in which claims hold, in which they do not, in which claims about equal signs fail, and without effects."""

WINDOWS = 10
LOAD = "0.65"
RECIPES = FOLDER / "moldable-figures.toml"
SYMMETRIC = ("M04", "M22", "X05")
"""Claims that also hold in the contrary rows, and so are tested with the odd ones."""

CONTRARY = {"M22": "holds partly", "M38": "not shown"}
"""Milder answers in the contrary rows: all gain where some should lose, and one scheme changes nothing overall."""

LEVEL = ("M03", "M18")
"""Claims that hold without any difference."""

CORRECTION = np.tile([0.1, -0.1], 5)
"""Effects of the correction of the weights on the categories."""


class Effects:
    """Logarithms of changes against rigid jobs, of all jobs and of categories 1 to 10: what the paper claims."""

    def __init__(self, point: Point) -> None:
        self.sigma, self.factor, self.profiles = point.sigma, point.range_factor, point.profiles
        self.scheme, _, text = point.scheme.partition("?")
        self.parameters = text
        self.all, self.of = 0.0, np.zeros(10)
        getattr(self, "_" + self.scheme.removeprefix("moldable-").replace("-", "_"))()
        self._more()

    def _add(self, overall: float, of: float = 0.0, first: int = 1, last: int = 10) -> None:
        self.all += overall
        self.of[first - 1 : last] += of

    def _conservative(self) -> None:
        pass

    def _greedy(self) -> None:
        self._add(0.2)

    def _earlier(self, sigmas: Sequence[tuple[float, int]], overall: Sequence[float]) -> None:
        level = min(2, int(self.sigma))
        self._add(overall[level], sigmas[level][0], 1, sigmas[level][1])
        self._add(0.0, 0.1 * (self.factor > 1), 10, 10)

    def _submit(self) -> None:
        self._earlier([(0.3, 4), (0.3, 4), (0.4, 10)], [-0.1, -0.1, 0.1])

    def _start(self) -> None:
        self._earlier([(-0.2, 10), (0.3, 4), (0.4, 10)], [-0.2, -0.2, 0.05])

    def _base(self) -> None:
        if self.profiles:
            self._add(0.0, 0.3, 1, 1)
            return
        self._add(0.0, 0.1, 1, 5)
        self._add(0.0, -0.1, 6, 10)

    def _combined(self) -> None:
        self._add(-0.3, -0.2)

    _combined_2003 = _combined

    def _more(self) -> None:
        """Effects of parameters."""
        text = self.parameters
        if "choices=all" in text:
            self._add(0.1, 0.2, 1, 5)
        elif "choices" in text:
            self._add(0.05, 0.05)
        if "weight=sqrt" in text:
            self._add(-0.1)
        if "parallel" in text:
            self._add(-0.1)
            self.of += CORRECTION
        if "category" in text:
            self._add(-0.1, -0.1)
        if "others" in text:
            self._add(-0.1, -0.15, 1, 9)
        elif "xfactor" in text:
            self._add(0.0, -0.2, 1, 4)
        if "promise_order" in text:
            self._add(0.2, 0.3, 1, 5)
        if "backfill" in text:
            self._add(0.0, 0.5, 8, 10)
        if "first=1000" in text:
            self._add(0.0, -0.2, 8, 10)

    def in_world(self, world: World, log: str, method: str) -> list[float]:
        """Effects of a world, of all jobs first."""
        own = [self.all, *self.of.tolist()]
        match world:
            case "contrary":
                more = 0.3 if self.scheme.startswith("moldable-combined") and self.factor > 4 else 0.0
                return [more - value for value in own]
            case "odd":
                way = -1 if log == "ctc" or method != "gaps" else 1
                if "parallel" in self.parameters:
                    own[1:] = (self.of - CORRECTION - 0.1).tolist()
                return [way * value for value in own]
            case "level":
                return [0.0] * 11
            case _:
                return own


@cache
def points() -> tuple[Point, ...]:
    return tuple(MoldableCampaign().points())


def numbers(point: Point, world: World, log: str, window: int, noise: np.ndarray) -> Iterator[tuple[str, str, float]]:
    """Metric, group and value of a schedule."""
    effects = Effects(point).in_world(world, log, point.method)
    for at, (group, effect) in enumerate(zip(("", *CATEGORIES), effects, strict=True)):
        level = 1000 * (1 + at) * (1 + 0.1 * window)
        yield "response_mean", group, level * float(np.exp(effect + 0.02 * noise[at]))
        yield "completed", group, 500.0
    yield "utilisation", "", (0.94 if world == "as claimed" else 0.5) + 0.01 * noise[0]
    if point.scheme == WAITED:
        for at, group in enumerate(CATEGORIES):
            rise = {"as claimed": at, "level": 0}.get(world, -at)
            yield "promise_wait_median", group, 1000 + 100 * rise + noise[at]


@cache
def study(world: World, windows: int = WINDOWS) -> Study:
    rng = np.random.default_rng(7)
    rows = [
        {
            "log": log,
            "window": window,
            "base": LOAD,
            **point._asdict(),
            "metric": metric,
            "group": group,
            "value": value,
        }
        for log in ("ctc", "sdsc")
        for window in range(windows)
        for point in points()
        for metric, group, value in numbers(point, world, log, window, rng.standard_normal(11))
    ]
    return Study.from_rows(rows)


@cache
def verdicts(world: World, windows: int = WINDOWS) -> Mapping[str, Sequence[Judged]]:
    """Verdicts by claim: one per weight factor."""
    found: dict[str, list[Judged]] = {}
    for one in answers(study(world, windows), QUESTIONS, (LOAD,)):
        found.setdefault(one.verdict.claim, []).append(one)
    return found


IDS = [question.id for question in QUESTIONS]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("claim", IDS)
def test_a_claim_holds_in_rows_that_are_as_it_states(claim: str) -> None:
    for one in verdicts("as claimed")[claim]:
        assert one.verdict.verdict == "holds", one
        assert one.verdict.n == WINDOWS


@pytest.mark.sampled(4)
@pytest.mark.parametrize("claim", IDS)
def test_a_claim_does_not_hold_in_rows_that_say_the_contrary(claim: str) -> None:
    for one in verdicts("odd" if claim in SYMMETRIC else "contrary")[claim]:
        assert one.verdict.verdict == CONTRARY.get(claim, "does not hold"), one


@pytest.mark.long
@pytest.mark.parametrize("claim", sorted(set(IDS) - set(LEVEL)))
def test_no_claim_holds_where_nothing_makes_a_difference(claim: str) -> None:
    for one in verdicts("level")[claim]:
        assert one.verdict.verdict != "holds", one


@pytest.mark.parametrize("claim", IDS)
def test_two_windows_are_not_testable(claim: str) -> None:
    for one in verdicts("as claimed", 2)[claim]:
        assert one.verdict.verdict == "not testable", one


@pytest.mark.parametrize("claim", IDS)
def test_without_rows_a_claim_is_not_testable_and_the_missing_ones_are_named(claim: str) -> None:
    (question,) = (question for question in QUESTIONS if question.id == claim)
    for one in answers(Study.from_rows([]), [question]):
        assert one.verdict.verdict == "not testable"
        assert "no row of '" in one.verdict.note
        assert f"base {one.further['base load']}" in one.verdict.note


def test_claims_about_the_combined_scheme_are_judged_at_both_weight_factors_and_all_at_both_base_loads() -> None:
    found = answers(Study.from_rows([]), QUESTIONS)
    where = {(one.verdict.claim, *one.further.values()) for one in found}
    assert len(where) == len(found)
    for claim in ("M30", "M31", "M32", "M34", "M36", "M37"):
        assert {(claim, load, factor) for load in ("0.65", "as-logged") for factor in "12"} <= where
    assert {("M24", "0.65", ""), ("M24", "as-logged", "")} <= where


def test_every_claim_of_the_paper_and_of_ours_is_here_once() -> None:
    names = [*IDS, *EXACT, *(one.id for one in figures(read_recipes(RECIPES, CONDITIONS)))]
    wanted = {f"F{number:02}" for number in range(1, 15)} | {f"M{number:02}" for number in range(1, 39)}
    wanted |= {f"X{number:02}" for number in range(1, 6)}
    assert len(names) == len(set(names))
    assert set(names) == wanted


@pytest.mark.long
def test_figures_are_drawn_where_their_rows_are() -> None:
    questions = figures(read_recipes(RECIPES, CONDITIONS))
    found = answers(study("as claimed"), questions)
    for one in found:
        there = one.further["base load"] == LOAD
        assert one.verdict.verdict == ("holds" if there else "not testable"), one
    assert re.search(r"fair share at start -1[789] %$", found[0].verdict.note)


@pytest.mark.long
def test_a_log_may_substitute_for_both_but_not_agree_with_itself() -> None:
    model = Study(study("as claimed").stored, {"sdsc": "ctc"}, study("as claimed").cells)
    found = {one.verdict.claim: one.verdict for one in answers(model, QUESTIONS, (LOAD,))}
    assert found["M24"].verdict == "holds"
    assert found["M04"].verdict == "not testable"
    assert "stands in for both" in found["M04"].note


def bars(*changes: float, spread: float = 0.02, windows: int = 12, seed: int = 3) -> Bars:
    """Bars of all jobs and of the first categories with these mean logarithms."""
    rng = np.random.default_rng(seed)
    theirs = {group: dict.fromkeys([(w, 0) for w in range(windows)], 100.0) for group in ("", *CATEGORIES)}
    mine: dict[str, Values] = {
        group: {(w, 0): float(100 * np.exp(change + spread * rng.standard_normal())) for w in range(windows)}
        for group, change in zip(("", *CATEGORIES), changes, strict=False)
    }
    return between(mine, theirs, Setting(), "moldable-start", BASELINE)


def test_a_bar_is_scipys_paired_test_of_logarithms() -> None:
    made = bars(-0.02, 0.01, 0.0, spread=0.03)
    logs = [list(bar.logs.values()) for bar in made.values()]
    assert [bar.change.p for bar in made.values()] == pytest.approx([stats.ttest_1samp(it, 0).pvalue for it in logs])
    less = [stats.ttest_1samp(it, 0, alternative="less").pvalue for it in logs]
    assert [toward(bar, -1).a for bar in made.values()] == pytest.approx(less)


def bar(change: float, **more: Any) -> Bar:
    return bars(change, **more)[""]


def state(part: Part) -> str:
    """Return whether a claim with this single part is shown, refuted or open."""
    return {"holds": "shown", "does not hold": "refuted"}.get(decided([part]).answer, "open")


@pytest.mark.parametrize(
    ("change", "states"),
    [
        (-0.2, ("shown", "refuted", "shown")),
        (0.2, ("refuted", "shown", "refuted")),
        (0.03, ("refuted", "refuted", "shown")),
        (0.0, ("open", "refuted", "shown")),
    ],
)
def test_a_bar_gains_is_degraded_or_neither(change: float, states: tuple[str, ...]) -> None:
    one = bar(change)
    assert tuple(map(state, (toward(one, -1), degraded(one, 0.05), unharmed(one, 0.05)))) == states


@pytest.mark.parametrize("windows", [4, 12])
def test_a_category_whose_change_is_unsure_is_not_unharmed(windows: int) -> None:
    assert state(unharmed(bar(0.0, spread=1.0, windows=windows, seed=5), 0.05)) == "open"


def test_signs_need_three_quarters_and_more_than_chance() -> None:
    up, down = bars(0.2, 0.2)["weight:1"], bars(0.2, -0.2)["weight:1"]
    assert state(signs([(up, up)] * 20)[0]) == "shown"
    assert state(signs([(up, up)] * 8 + [(up, down)] * 12)[0]) == "refuted"
    assert state(signs([(up, up)] * 14 + [(up, down)] * 6)[0]) == "open"
    with pytest.raises(InputError, match="no bars"):
        signs([])


def test_signs_of_all_jobs_are_separate_parts() -> None:
    up, down, level = bar(0.2), bar(-0.2), bar(0.0)
    assert [state(part) for part in signs([(up, up), (down, down)])[1:]] == ["shown", "shown"]
    assert [state(part) for part in signs([(up, down), (up, level)])[1:]] == ["refuted", "open"]


def test_bars_are_counted_and_averaged_window_by_window() -> None:
    up, down = bar(0.2, spread=1e-6, windows=3), bar(-0.1, spread=1e-6, windows=3)
    assert list(beyond([up, up, down], 0.05).values()) == [2, 2, 2]
    assert list(mean_of([up, down]).values()) == pytest.approx([0.05] * 3, abs=1e-4)


@pytest.mark.long
def test_a_lightest_category_that_pays_is_spared_at_range_factor_1_alone() -> None:
    """M30 allows it and M31 does not; any other degraded category refutes both."""

    def judged(category: int, at: float) -> dict[str, str]:
        made = study("as claimed")
        cells = dict(made.cells)
        for key, groups in made.cells.items():
            metric, setting, scheme = key
            if metric == "response_mean" and scheme in COMBINED and setting.range_factor == at:
                name = f"weight:{category}"
                cells[key] = {**groups, name: {unit: 2 * value for unit, value in groups[name].items()}}
        spoilt = Study(made.stored, {}, cells)
        found = answers(spoilt, [question for question in QUESTIONS if question.id in ("M30", "M31")], (LOAD,))
        return {one.verdict.claim: one.verdict.verdict for one in found}

    assert judged(1, 1.0) == {"M30": "holds", "M31": "does not hold"}
    assert judged(1, 3.0) == {"M30": "does not hold", "M31": "does not hold"}
    assert judged(2, 1.0) == {"M30": "does not hold", "M31": "does not hold"}


def test_seven_categories_that_gain_are_almost_all_of_eight_and_hold_partly() -> None:
    made = study("as claimed")
    key = ("response_mean", Setting(), base.CATEGORY)
    groups = dict(made.cells[key])
    for name in CATEGORIES[:3]:
        groups[name] = made.cells[("response_mean", Setting(), base.BASE)][name]
    some = Study(made.stored, {}, {**made.cells, key: groups})
    assert base.lanes_gain(100.0)(Case(some)).answer == "holds partly"


def test_profiles_that_were_not_run_are_reported_and_the_others_judged() -> None:
    made = study("as claimed")
    cells = {key: value for key, value in made.cells.items() if key[1].profiles != "npb-measured"}
    questions = [question for question in QUESTIONS if question.id in ("M35", "M36")]
    for one in answers(Study(made.stored, {}, cells), questions, (LOAD,)):
        assert one.verdict.verdict == "holds"
        assert one.verdict.note.endswith("npb-measured not run")


def test_properties_of_the_code_are_checked_and_can_fail() -> None:
    assert downey().answer == "holds"
    assert blocks_suffice(60).answer == "holds"
    assert blocks_suffice(60, skipped=1).answer == "does not hold"
    assert corrected_limits(60).answer == "holds"
    assert corrected_limits(60, corrected="linear").answer == "does not hold"


def test_a_speedup_that_rises_above_the_cores_fails() -> None:
    from gridsim.model.speedup import Downey

    class Superlinear(Downey):
        def speedup(self, cores: Any) -> Any:
            return super().speedup(cores) * 1.001

    assert downey(Superlinear).answer == "does not hold"


def test_unknown_circumstances_have_no_rows() -> None:
    question = Question("X", base.strict_shares)
    (one,) = answers(study("as claimed"), [question], ("0.9",))
    assert one.verdict.verdict == "not testable"
