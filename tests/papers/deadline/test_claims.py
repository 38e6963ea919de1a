"""Verdicts on the claims about deadlines, from artificial rows in which each claim holds, and in which it does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Literal
from zlib import crc32

import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError
from gridsim.registry import parse
from gridsim_papers.deadline.claims import OFFERS, QUESTIONS
from gridsim_papers.deadline.offers import offer_gaps, offers_are_early
from gridsim_papers.deadline.readings import Question, answers
from gridsim_papers.deadline.schemes import admittance
from gridsim_papers.deadline.study import Place, Study
from gridsim_papers.decisions import agreement, alike, at_least, expected, more_often, resampled, signed, trends
from gridsim_papers.ledger import read_ledger
from gridsim_papers.paired import Values, by_window, changes
from gridsim_papers.verdict_table import Judged
from gridsim_papers.verdicts import Part, Verdict, decided

pytestmark = pytest.mark.long

Row = dict[str, Any]
World = Literal["as claimed", "contrary", "odd"]
"""Rows in which the claims hold, in which they do not, and in which symmetric claims fail."""

WINDOWS = 10
SCHEMES = ("qops", "msb", "mrt", "easy", "conservative")
TOLERANCES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 1000.0)
FACTORS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0)


def noise(*what: Any) -> float:
    """A number from -1 to 1 that depends only on the key."""
    return crc32(repr(what).encode()) / 2**31 - 1


class Made:
    """Numbers of a schedule of an artificial world."""

    def __init__(self, world: World, place: Place, scheme: str, window: int) -> None:
        spec = parse(scheme)
        self.world, self.place, self.window, self.name = world, place, window, spec.name
        self.sign = 1 if world == "as claimed" else -1
        if world == "odd":  # the opposite on one log only
            self.sign = -1 if place.log == "sdsc" else 1
        self.factor = float(spec.parameters.get("slack_factor", 1))
        self.kill = bool(spec.parameters.get("kill_restart", False))
        self.relaxation = float(spec.parameters.get("relaxation", 5))
        if self.name == "fqops" and place.tolerance <= self.factor and not self.kill and world == "as claimed":
            self.name, self.factor = "qops", 1.0
        if self.name != "fqops":  # makes no offers
            self.place = place._replace(tolerance=1.0)

    def blurred(self, value: float, *what: Any) -> float:
        own = noise(*what, self.place, self.name, self.factor, self.kill, self.window)
        return value * (1 + 0.1 * noise(self.place.log, self.window)) * (1 + 0.004 * own)

    @property
    def room(self) -> float:
        """Logarithm of the ratio of tolerance to slack; both have the same effect in the odd world."""
        if self.name != "fqops":
            return 0.0
        if self.world == "odd":
            return math.log(self.place.tolerance * self.factor)
        return max(0.0, math.log(self.place.tolerance / self.factor))

    def utilisation(self) -> float:
        place, sign = self.place, self.sign
        base = 0.6 + 0.5 * (place.load - 1) + 0.01 * noise(place.log, self.window)
        loss = {1.0: 0.1, 0.8: 0.08, 0.2: 0.025}[place.fraction] if sign > 0 else 0.1 + 0.1 * place.fraction
        if place.stringency == 0.5:
            loss += 0.07 if sign > 0 or place.fraction == 1 else 0.0
        own = {"qops": 0.0, "msb": 0.002 if sign > 0 else -0.05, "mrt": -sign * 0.04}
        if self.name not in own:
            return base
        loss = loss if sign > 0 else -place.fraction * loss if place.fraction == 1 else -0.3 + 0.2 * place.fraction
        balanced = noise("use", place, self.name, self.window // 2) * (-1) ** self.window  # no mean
        return base - loss + own[self.name] + 0.001 * balanced

    def refused(self) -> float:
        place, sign = self.place, self.sign
        share = 0.3 + sign * 0.2 * place.stringency - sign * 0.1 * (place.load - 1)
        gap = {"msb": 0.05, "mrt": 0.09}.get(self.name, 0.0)
        return self.blurred(share + sign * gap * place.load * (1 - sign * 0.8 * place.stringency), "refused")

    def other(self, power: float) -> float:
        """Mean response or slowdown of jobs without a deadline."""
        usual = {"qops": 0.45, "msb": 0.55, "mrt": 0.6} if self.sign > 0 else {"qops": 9.0, "msb": 7.0, "mrt": 8.0}
        level = math.exp(2 * (self.place.load - 1)) * usual.get(self.name, 1.0)
        return self.blurred(1000 * level * self.relaxation ** (self.sign * power), "other", power)

    def accepted(self) -> float:
        g = np.interp(math.exp(self.room), (1, 2, 3, 4, 6, 10, 1000), (0.8, 0.77, 0.86, 0.9, 0.95, 0.96, 1.0))
        return float(g) if self.sign > 0 else 0.6 + 0.1 * (0 < self.room < 1) - 0.003 * self.room

    def charge(self, way: int, name: str) -> float:
        value = 1e6 * (1 + 0.3 * self.room) ** (way * self.sign)
        if self.kill:
            late = self.place.tolerance > 2
            if self.place.fraction < 1:
                value *= 1 + 0.05 * self.sign
            elif self.sign < 0:
                value *= 0.9 if way < 0 and late else 1.1 + 0.01 * self.window
            elif late:
                value *= 1.05 if way < 0 else 1 - 0.02 * (1 + self.window / WINDOWS)
        self.kill, kill = False, self.kill  # the same noise with and without
        found = self.blurred(value, name)
        self.kill = kill
        return found

    def numbers(self) -> Iterator[tuple[str, str, float]]:
        """Metric, group and value."""
        place, sign, right = self.place, self.sign, self.world == "as claimed"
        yield "utilisation", "", self.utilisation()
        yield "utilisation_arrivals", "", self.utilisation()
        yield "deadline_jobs", "", 5000.0
        yield "deadline_area", "", 1e6
        yield "response_mean", "area:light", 100.0
        yield "response_mean", "area:heavy", self.blurred(200 * place.load**sign, "heavy")
        if self.name in ("easy", "conservative"):
            yield "non_deadline_response_mean", "", self.other(0.1)
            yield "non_deadline_slowdown_mean", "", self.other(-0.1)
            return
        share = self.refused() if place.method != "same-arrival" else 1 - self.accepted()
        for name in ("deadline_unadmitted_share", "deadline_unadmitted_area_share"):
            yield name, "", share
        for name in ("deadline_unadmitted", "deadline_unadmitted_area"):
            yield name, "", 5000 * share
        yield "unadmitted", "", 5000 * share + 5 * (not right)
        accepted = self.blurred(5000 * self.accepted(), "accepted")
        yield "deadline_guaranteed", "", accepted
        heavy = 0.2 + sign * 0.02 * place.load + sign * 0.02 * (place.tolerance > 1)
        yield "deadline_guaranteed", "area:heavy", accepted * heavy
        yield "deadline_guaranteed", "area:light", accepted * (0.6 - heavy)
        yield "deadline_guaranteed_share", "", self.accepted()
        yield "deadline_guaranteed_area", "", self.blurred(1e6 * (1 + sign * 0.1 * self.room), "work")
        for group in ("", "runtime:short", "runtime:long"):
            yield "non_deadline_response_mean", group, self.other(0.1)
            yield "non_deadline_slowdown_mean", group, self.other(-0.1)
        yield "resource_charge", "", self.charge(1, "resource")
        yield "qos_charge", "", self.charge(-1, "qos")
        yield "promises_broken", "", float(not right)
        yield "doublings", "", 3.0
        yield "offers_taken", "", 500.0
        yield "offers_taken_area", "", self.blurred(2e5 if right else 5e4, "offers")
        yield "deadline_guaranteed_area_median", "", self.blurred(100 * place.load**sign, "median")
        yield "deadline_unadmitted_area_median", "", self.blurred(100 / place.load**sign, "refused median")
        yield "artificial_stretch_max", "", 0.9
        kills = (5 if (place.tolerance <= 2) == (sign > 0) else 50) if self.kill else 0
        yield "kills", "", float(kills)
        yield "lost_area", "", 1000.0 * kills * (1 + self.window / WINDOWS)


def schedules() -> Iterator[tuple[Place, Sequence[str]]]:
    """Schedules of the study."""
    relaxed = tuple(f"qops?relaxation={r}" for r in (2, 10))
    for (log, method), load, s, f in product(
        (("ctc", "random-arrival"), ("sdsc", "random-arrival"), ("ctc", "expansion")),
        (1.0, 1.2, 1.4, 1.6),
        (0.2, 0.5),
        (1.0, 0.8, 0.2),
    ):
        yield Place(log, method, load, s, f), SCHEMES + (relaxed if f < 1 else ())
    for load, s in product((1.0, 1.4), (0.0, 0.8)):
        yield Place(load=load, stringency=s), ("qops", "msb", "mrt")
    yield Place(load=1.4, estimates="logged"), ("qops", "msb", "mrt")
    killing = tuple(f"fqops?slack_factor={factor:g}&kill_restart=true" for factor in FACTORS)
    slack = tuple(f"fqops?slack_factor={factor:g}" for factor in FACTORS)
    for load, tolerance, random in product((1.0, 1.3, 1.6), TOLERANCES, (False, True)):
        place = Place(method="same-arrival", load=load, tolerance=tolerance, random_tolerance=random)
        yield place, (slack if tolerance in (2, 3, 4, 6) and not random else ("fqops",)) + ("qops",)
        if load == 1.6 and tolerance in (2, 4) and not random:
            yield place, killing
            yield place._replace(fraction=0.2), slack + killing


def special(world: World, window: int) -> Iterator[tuple[Place, str, str, str, float]]:
    """Packed traces, categories and cost."""
    right = world == "as claimed"
    for scheme, r in product(("qops", "msb", "mrt"), (0.0, 0.5, 1.0, 5.0)):
        refused = 10 * r if right else 20 - r
        for metric in ("deadline_unadmitted", "deadline_unadmitted_share"):
            yield Place("packed-dynamic", "", r), scheme, metric, "", refused
            placed = window < 2 * r + 1 if right else window > 2 * r + 1
            yield Place("packed-static", "", r), scheme, metric, "", float(not placed)
    for load, time, core in product((1.0, 1.3, 1.6), range(5), range(4)):
        slope = (-0.3 * time + 0.2 * core) * (1 if right else -1)
        slowdown = math.exp(slope + 2 + 0.01 * noise(load, time, core, window))
        place = Place(method="same-arrival", load=load)
        yield place, "easy", "slowdown_mean", f"category:{time},{core}", slowdown
    for scheme, queue in product(("msb", "qops"), (10, 100, 1000)):
        power = 0.0 if right else 0.5
        stated = queue**2 if scheme == "msb" else queue * math.log(queue)
        made = stated * queue**power * math.exp(0.01 * noise(scheme, queue, window))
        yield Place("cost", "", float(queue)), scheme, "placements", "", made


@cache
def rows(world: World) -> tuple[Row, ...]:
    """Every row of a world, as stored."""
    found = []
    for window in range(WINDOWS):
        cells = [
            (place, scheme, *number)
            for place, schemes in schedules()
            if world != "odd" or (place.fraction == 1 and place.load >= 1.3)
            for scheme in schemes
            for number in Made(world, place, scheme, window).numbers()
        ]
        for place, scheme, metric, group, value in (*cells, *special(world, window)):
            key = {"window": window, "stream": 0, "scheme": scheme, "metric": metric, "group": group, "value": value}
            found.append(place._asdict() | key)
    return tuple(found)


@cache
def study(world: World) -> Study:
    return Study.from_rows(rows(world))


def judged(world: World, claim: str) -> Verdict:
    (found,) = answers(study(world), [question for question in QUESTIONS if question.id == claim])
    return found.verdict


IDS = [question.id for question in QUESTIONS]
SYMMETRIC = ("TR-C12", "P04-C04")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("claim", IDS)
def test_a_claim_holds_on_rows_that_are_as_claimed(claim: str) -> None:
    verdict = judged("as claimed", claim)
    assert verdict.verdict == "holds", verdict.note


@pytest.mark.sampled(4)
@pytest.mark.parametrize("claim", IDS)
def test_a_claim_does_not_hold_on_contrary_rows(claim: str) -> None:
    verdict = judged("odd" if claim in SYMMETRIC else "contrary", claim)
    assert verdict.verdict == "does not hold", verdict.note


@pytest.mark.parametrize("claim", IDS)
def test_nothing_is_decided_without_rows(claim: str) -> None:
    (question,) = (question for question in QUESTIONS if question.id == claim)
    (one,) = answers(Study.from_rows([]), [question])
    assert one.verdict.verdict == "not testable"
    assert one.verdict.note


def test_packed_jobs_that_are_never_refused_refute_that_slack_costs_anything() -> None:
    """Expectation of the specification: with slack from 0 to 5 no job is rejected."""
    never = [row | {"value": 0.0} for row in rows("as claimed") if row["log"] == "packed-dynamic"]
    both = [question for question in QUESTIONS if question.id in ("TR-C01", "TR-C02")]
    found = {one.verdict.claim: one.verdict for one in answers(Study.from_rows(never), both)}
    assert found["TR-C01"].verdict == "holds"
    assert found["TR-C02"].verdict == "does not hold"


def test_one_broken_promise_is_one_too_many() -> None:
    spoilt = [dict(row) for row in rows("as claimed") if row["metric"] == "promises_broken"]
    next(row for row in spoilt if row["scheme"] == "mrt")["value"] = 1.0
    (question,) = (question for question in QUESTIONS if question.id == "TR-C21")
    ((verdict, _, _),) = answers(Study.from_rows(spoilt), [question])
    assert (verdict.verdict, verdict.effect) == ("does not hold", 1)


def test_every_claim_of_the_three_papers_is_here_once() -> None:
    cases = [entry.id for entry in read_ledger("deadline").values() if entry.decided_by == "exact cases"]
    names = [*IDS, *cases, OFFERS.id]
    expected_names = {f"TR-F{number:02}" for number in range(1, 59)} | {f"TR-C{number:02}" for number in range(1, 24)}
    expected_names |= {f"J03-F{number:02}" for number in range(1, 18)}
    expected_names |= {f"P04-{kind}{number:02}" for kind in "FC" for number in range(1, 12)}
    assert len(names) == len(set(names))
    assert set(names) == expected_names


FIGURE_4 = Question("X", admittance(Place(), 1.4), True)


def refusals(gap: dict[str, float], spread: float = 0.01, windows: int = WINDOWS) -> list[Row]:
    """Rejected shares: 0.2 plus a gap, by scheme; every scheme has the same windows."""
    rng = np.random.default_rng(1)
    return [
        Place(load=load)._asdict()
        | {"window": window, "stream": 0, "scheme": scheme, "metric": metric, "group": "", "value": value}
        for window in range(windows)
        for load in (1.0, 1.4, 1.6)
        for scheme, extra in gap.items()
        for metric, value in (
            ("deadline_jobs", 100.0),
            ("deadline_unadmitted_share", 0.2 + 0.1 * window + extra + spread * rng.standard_normal()),
            ("deadline_unadmitted_area_share", 0.2 + 0.1 * window + extra + spread * rng.standard_normal()),
        )
    ]


def one(made: Sequence[Row], question: Question = FIGURE_4) -> Judged:
    (found,) = answers(Study.from_rows(made), [question])
    return found


def test_a_reading_under_which_the_claim_holds_is_reported() -> None:
    gaps = {"qops": 0.0, "mrt": 0.1, "msb": -0.1, "msb?price=wait": 0.1, "msb?price=disturbance": -0.1}
    found = one(refusals(gaps))
    assert found.verdict.verdict == "holds partly"
    assert found.further == {"price wait": "holds", "price disturbance": "holds partly"}
    assert "other interpretations: price wait: holds (unchanged: price disturbance)" in found.verdict.note


def test_readings_that_were_not_run_are_not_reported() -> None:
    found = one(refusals({"qops": 0.0, "mrt": 0.1, "msb": 0.1}))
    assert found.verdict.verdict == "holds"
    assert found.further == {}


def test_schemes_are_the_same_however_they_are_written() -> None:
    gaps = {"qops?k_factor=5&heuristic=llf": 0.0, "mrt?hole_filling=true": 0.1, "msb?price=slack": 0.1}
    assert one(refusals(gaps)).verdict.verdict == "holds"


def test_windows_that_show_nothing_leave_a_claim_open_however_many_there_are() -> None:
    level = {"qops": 0.0, "mrt": 0.0, "msb": 0.0}
    for windows in (3, WINDOWS, 4 * WINDOWS):
        assert one(refusals(level, windows=windows)).verdict.verdict == "not shown"


def test_two_windows_decide_nothing() -> None:
    clear = {"qops": 0.0, "mrt": 0.1, "msb": 0.1}
    assert one(refusals(clear, spread=1e-9, windows=2)).verdict.verdict == "not testable"
    assert one(refusals(clear, spread=1e-9, windows=3)).verdict.verdict == "holds"


def test_streams_of_a_window_are_no_further_windows() -> None:
    made = refusals({"qops": 0.0, "mrt": 0.1, "msb": 0.1}, windows=4)
    again = [row | {"stream": 1} for row in made]
    assert one([*made, *again]).verdict.n == 4
    assert one([*made, *again]).verdict.p == one(made).verdict.p


def test_a_missing_scheme_is_named() -> None:
    found = one(refusals({"qops": 0.0, "mrt": 0.1}))
    assert found.verdict.verdict == "not testable"
    assert "'msb'" in found.verdict.note


def test_a_number_that_exists_twice_is_refused() -> None:
    with pytest.raises(InputError, match="two values of 'deadline_jobs' for window 0, stream 0"):
        Study.from_rows(refusals({"qops": 0.0}) * 2)


def values(numbers: Sequence[float]) -> Values:
    return {(window, 0): float(number) for window, number in enumerate(numbers)}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def state(part: Part) -> str:
    """Return whether a claim with this single part is shown, refuted or open."""
    return {"holds": "shown", "does not hold": "refuted"}.get(decided([part]).answer, "open")


def test_signs_are_tested_one_sided_as_scipy_does(rng: np.random.Generator) -> None:
    mine, theirs = rng.normal(0.0, 1.0, 12), rng.normal(0.7, 1.0, 12)
    (part,) = signed([("a", changes(values(mine), values(theirs)))], -1)
    assert part.a == pytest.approx(stats.ttest_rel(mine, theirs, alternative="less").pvalue)
    assert part.b == pytest.approx(stats.ttest_rel(mine, theirs, alternative="greater").pvalue)
    assert (part.low, part.high) == pytest.approx(tuple(stats.ttest_rel(mine, theirs).confidence_interval()))


def test_a_sign_is_shown_refuted_or_open(rng: np.random.Generator) -> None:
    family = [("down", values(rng.normal(-5, 1, 12))), ("up", values(rng.normal(5, 1, 12)))]
    family.append(("none", values(np.tile([1.0, -1.0], 6))))
    assert [state(part) for part in signed(family, -1)] == ["shown", "refuted", "open"]


NOBODY = (
    [-0.02, 0.01, 0.03, -0.01, 0.02, 0, 0.01, -0.03, 0.02, 0.01],
    [-0.7, 0.9, -0.4, 0.3, -1.1, 0.8, -0.6, 0.2, -0.5, 0.1],
    [0.6, 0.4, 0.5, 0.7, 0.3, 0.5, 0.6, 0.4, 0.5, 0.5],
)
"""Logarithms of ratios of three categories."""


def test_the_absence_of_harm_is_a_test_of_non_inferiority() -> None:
    parts = signed([("", values(numbers)) for numbers in NOBODY], -1, ratio=True, margin=0.05)
    assert [state(part) for part in parts] == ["shown", "open", "refuted"]
    assert [parts[0].a, parts[1].a] == pytest.approx([0.000019, 0.248042], abs=1e-6)
    assert parts[2].b < 1e-6
    answers_of = [decided(parts[:count], universal=True).answer for count in (1, 2, 3)]
    assert answers_of == ["holds", "holds partly", "does not hold"]


def test_a_harm_that_is_sure_but_within_the_margin_refutes_nothing(rng: np.random.Generator) -> None:
    little = [("a", values(rng.normal(0.01, 0.001, 12)))]
    assert state(signed(little, -1, ratio=True)[0]) == "refuted"
    (part,) = signed(little, -1, ratio=True, margin=0.05)
    assert (state(part), part.b) == ("shown", 1.0)


def test_ratios_are_reported_as_ratios() -> None:
    (part,) = signed([("half", changes(values([1, 2, 3]), values([2, 4, 6.1]), ratio=True))], -1, ratio=True)
    assert part.effect == pytest.approx(0.5, rel=0.01)
    assert part.low < part.effect < part.high


@pytest.mark.parametrize(("mean", "wanted"), [(0.0, "shown"), (0.05, "refuted"), (-0.05, "refuted"), (0.02, "open")])
def test_equivalence_needs_two_one_sided_tests(mean: float, wanted: str) -> None:
    numbers = mean + 0.005 * np.tile([1.0, -1.0], 6)
    (part,) = alike([("a", values(numbers))], 0.02)
    assert state(part) == wanted
    one_sided = [
        stats.ttest_1samp(numbers, limit, alternative=way).pvalue for limit, way in ((-0.02, "greater"), (0.02, "less"))
    ]
    assert part.a == pytest.approx(max(one_sided))


@pytest.mark.parametrize(
    ("mean", "spread", "wanted"),
    [(0.1, 0.01, "shown"), (0.3, 0.01, "refuted"), (-0.1, 0.01, "refuted"), (0.1, 1.0, "open"), (0.12, 0.01, "open")],
)
def test_a_printed_loss_must_be_met_within_the_margin(mean: float, spread: float, wanted: str) -> None:
    (part,) = expected([("a", values(mean + spread * np.tile([1.0, -1.0], 6)))], 0.1, 0.1, 0.02)
    assert state(part) == wanted


def test_trends_are_pages_test(rng: np.random.Generator) -> None:
    table = rng.normal(0, 1, (8, 4)) + 0.8 * np.arange(4)
    levels = [(float(level + 1), values(column)) for level, column in enumerate(table.T)]
    (up,), (down,) = trends([("a", levels)], 1), trends([("a", levels)], -1)
    assert up.a == down.b == pytest.approx(stats.page_trend_test(table).pvalue)
    assert (state(up), state(down)) == ("shown", "refuted")
    assert up.low <= up.effect <= up.high


def test_a_trend_of_two_levels_is_a_paired_test(rng: np.random.Generator) -> None:
    low, high = rng.normal(0, 1, 9), rng.normal(1, 1, 9)
    (part,) = trends([("a", [(1.0, values(low)), (2.0, values(high))])], 1)
    assert part.a == pytest.approx(stats.ttest_rel(high, low, alternative="greater").pvalue)


def test_windows_are_means_of_their_streams_and_what_is_no_number_is_left_out() -> None:
    found = by_window({(1, 0): 4.0, (0, 0): 1.0, (0, 1): 3.0, (0, 2): math.nan, (2, 0): math.nan})
    assert found.tolist() == [2.0, 4.0]


def test_counts_are_compared_by_the_sign_test_without_ties() -> None:
    mine, theirs = values([5, 6, 7, 8, 9, 9, 4, 3, 2, 8]), values([1, 1, 1, 1, 1, 1, 1, 1, 2, 9])
    (part,) = more_often([("more", mine, theirs)], 1)
    assert part.a == pytest.approx(stats.binomtest(8, 9, alternative="greater").pvalue)
    assert (state(part), part.n) == ("shown", 10)
    assert state(more_often([("more", mine, theirs)], -1)[0]) == "refuted"
    assert state(more_often([("same", mine, mine)], 1)[0]) == "open"


UP, DOWN, NONE = (0.001, 0.999), (0.999, 0.001), (0.3, 0.7)


def test_signs_agree_where_all_are_sure_and_do_not_where_two_are_opposite() -> None:
    assert agreement([UP, UP]) == pytest.approx((0.001, 1.0))
    assert agreement([DOWN, DOWN]) == pytest.approx((0.001, 1.0))
    assert agreement([UP, DOWN, UP]) == pytest.approx((0.999, 0.003))
    assert agreement([UP, NONE]) == pytest.approx((0.3, 1.0))


def test_some_of_many_are_corrected_for_the_choice() -> None:
    chance = [Part("", 0.03, 0.97, 10), *(Part("", 0.5, 0.5, 10) for _ in range(9))]
    assert at_least(1, chance)[0].a == pytest.approx(0.3)
    three = [Part("", 0.001, 0.999, 10)] * 3 + [Part("", 0.999, 0.001, 10)] * 7
    assert [part.a for part in at_least(3, three)] == pytest.approx([0.01] * 3)
    assert at_least(4, three)[3].b == pytest.approx(0.004)  # seven of ten are otherwise
    assert at_least(3, three)[2].b == 1.0
    with pytest.raises(InputError, match="expected 11 or more"):
        at_least(11, chance)


def test_a_number_that_is_no_mean_is_decided_by_resamples() -> None:
    draws = np.linspace(0.0, 1.0, 1_000)
    assert state(resampled("", 0.5, draws, 10, 0.02)) == "shown"
    assert state(resampled("", 0.5, draws, 10, 0.98)) == "refuted"
    assert state(resampled("", 0.5, draws, 10, 0.4)) == "open"
    assert state(resampled("", 0.99, draws, 10, 0.98)) == "open"  # the estimate is as claimed, most resamples are not


def test_offers_far_from_the_earliest_do_not_hold() -> None:
    early, late = np.zeros(20), np.full(20, 0.05)
    assert offers_are_early([early] * 9 + [late]).answer == "holds"
    assert offers_are_early([late] * 9 + [early]).answer == "does not hold"
    assert offers_are_early([early, early, late]).answer == "not shown"


@pytest.mark.long
def test_offers_without_any_search_are_later_than_need_be() -> None:
    gaps = np.concatenate([offer_gaps(seed, retry_count=0) for seed in range(3)])
    assert np.mean(gaps > 0) > 0.05
    searched = np.concatenate([offer_gaps(seed) for seed in range(3)])
    assert np.median(searched) <= 0.01
    assert searched.mean() < gaps.mean()
