"""Claims of the grid paper, tested on a small campaign with scipy's tests, and verdicts on artificial rows.

The tests assert only results with a wide margin at this scale; README.md of the scenario has results of larger scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gridsim.campaign.run import run_campaign
from gridsim.metrics.campaign import Paired
from gridsim_papers.grid.campaign import POLICIES, GridCampaign, Row, read_rows
from gridsim_papers.grid.claims import CLAIMS, INDUSTRIAL_CLAIMS
from gridsim_papers.grid.judges import Claim, Evidence, alike, as_printed, differs, pooled, verdicts
from gridsim_papers.grid.orders import at_loads, highest, lowest, ordered
from gridsim_papers.paper import RECIPES
from gridsim_papers.verdicts import Verdict

FIVE = ("lrtf", "fair-share", "random", "fifo-task", "fifo-job")


@pytest.fixture(scope="module")
def found(campaign_rows: list[Row]) -> Mapping[str, Verdict]:
    return {verdict.claim: verdict for verdict in verdicts(campaign_rows, CLAIMS)}


def paired(rows: Sequence[Row], metric: str) -> Paired:
    return Paired.from_rows([row for row in rows if row["metric"] == metric], metric)


def mean_logs(values: Paired, policy: str) -> np.ndarray:
    """Log of one policy's values, averaged over the loads of a workload."""
    return np.log(values.of(policy)).mean(axis=1)


@pytest.mark.long
@pytest.mark.parametrize("metric", ["sd_slr", "worst_slr", "mean_slr"])
@pytest.mark.parametrize("other", FIVE)
def test_p_slr_beats_five_policies_in_fairness_and_responsiveness(
    campaign_rows: list[Row], metric: str, other: str
) -> None:
    """G-21, G-31, Table 4: paired t-test of log ratios, and Wilcoxon's, n = 15 workloads."""
    values = paired(campaign_rows, metric)
    mine, theirs = mean_logs(values, "p-slr"), mean_logs(values, other)
    assert stats.ttest_rel(mine, theirs, alternative="less").pvalue < 0.001
    assert stats.wilcoxon(mine, theirs, alternative="less").pvalue < 0.001


@pytest.mark.long
@pytest.mark.parametrize("other", FIVE)
def test_srtf_beats_the_same_five_in_worst_slr(campaign_rows: list[Row], other: str) -> None:
    values = paired(campaign_rows, "worst_slr")
    assert stats.ttest_rel(mean_logs(values, "srtf"), mean_logs(values, other), alternative="less").pvalue < 0.001


@pytest.mark.long
def test_p_slr_starts_fewer_jobs_at_once_than_five_policies(campaign_rows: list[Row]) -> None:
    """G-68; the paper's own test of the values, n = 30 schedules."""
    values = paired(campaign_rows, "peak_in_flight")
    for other in ("lrtf", "random", "fifo-task"):
        assert stats.ttest_rel(values.of("p-slr").ravel(), values.of(other).ravel(), alternative="less").pvalue < 0.001


@pytest.mark.long
def test_srtf_has_the_better_mean_slr_at_120_per_cent(campaign_rows: list[Row]) -> None:
    """G-51, G-56."""
    values = paired(campaign_rows, "mean_slr")
    mine, theirs = (np.log(values.of(policy)[:, 1]) for policy in ("p-slr", "srtf"))
    assert stats.ttest_rel(mine, theirs, alternative="greater").pvalue < 0.025


@pytest.mark.long
def test_no_job_is_faster_than_the_critical_path(campaign_rows: list[Row]) -> None:
    assert min(row["value"] for row in campaign_rows if row["metric"] == "least_slr") >= 1


@pytest.mark.long
@pytest.mark.parametrize("claim", ["G-09", "G-11", "G-12", "G-13", "G-15", "G-21", "G-26", "G-31"])
def test_a_claim_holds_by_a_wide_margin(found: Mapping[str, Verdict], claim: str) -> None:
    assert found[claim].verdict == "holds", found[claim].note


@pytest.mark.long
@pytest.mark.parametrize("claim", ["G-14", "G-18", "G-69"])
def test_claims_about_the_full_size_are_left_open(found: Mapping[str, Verdict], claim: str) -> None:
    assert found[claim].verdict == "not testable", found[claim].note


@pytest.mark.long
def test_every_claim_has_one_verdict_and_an_effect_where_something_was_compared(
    found: Mapping[str, Verdict],
) -> None:
    assert len(found) == len(CLAIMS)
    answers = {"holds", "holds partly", "not shown", "does not hold", "not testable"}
    assert {verdict.verdict for verdict in found.values()} <= answers
    for name in ("G-21", "G-22", "G-31", "G-32", "G-61", "G-65", "G-66", "G-68"):
        verdict = found[name]
        assert verdict.low <= verdict.effect <= verdict.high
        assert 0 <= verdict.p <= 1
        assert verdict.n == 15


def test_no_claim_is_listed_twice() -> None:
    names = [claim.id for claim in (*CLAIMS, *INDUSTRIAL_CLAIMS)]
    assert len(names) == len(set(names))


def test_without_rows_nothing_is_testable_but_the_grouping_of_metrics() -> None:
    answers = {verdict.claim: verdict.verdict for verdict in verdicts([], [*CLAIMS, *INDUSTRIAL_CLAIMS])}
    assert answers.pop("G-09") == "holds"
    assert set(answers.values()) == {"not testable"}


def rows_of(
    value: Callable[[str, int, float, np.random.Generator], float],
    *,
    metric: str = "sd_slr",
    workloads: int = 20,
    loads: Sequence[float] = (0.8, 1.2),
) -> list[Row]:
    """Made-up rows: one value for each policy, workload and load."""
    rng = np.random.default_rng(1)
    return [
        {
            "kind": "x",
            "workload": workload,
            "load": load,
            "policy": policy,
            "metric": metric,
            "value": value(policy, workload, load, rng),
            "decile": None,
        }
        for workload in range(workloads)
        for load in loads
        for policy in POLICIES
    ]


def judged(rows: list[Row], *evidence: Evidence) -> Verdict:
    (verdict,) = verdicts(rows, [Claim("X", pooled(*evidence))])
    return verdict


def noisy(factor: Mapping[str, float], spread: float = 0.1) -> Callable[[str, int, float, np.random.Generator], float]:
    return lambda policy, workload, load, rng: factor.get(policy, 1.0) * float(np.exp(spread * rng.standard_normal()))


BETTER = differs("sd_slr", dict.fromkeys(FIVE, "better"))


def test_clearly_lower_values_of_all_five_hold() -> None:
    verdict = judged(rows_of(noisy({"p-slr": 0.5})), BETTER)
    assert verdict.verdict == "holds"
    assert verdict.effect == pytest.approx(0.5, rel=0.1)
    assert verdict.high < 0.6
    assert verdict.p < 1e-6


def test_the_effect_shown_is_the_least_favourable_one() -> None:
    verdict = judged(rows_of(noisy({"p-slr": 0.5, "random": 0.6})), BETTER)
    assert "least supported: P-SLR/Random" in verdict.note
    assert verdict.effect == pytest.approx(0.5 / 0.6, rel=0.1)


def test_three_of_five_hold_partly_and_the_contrary_does_not_hold() -> None:
    assert judged(rows_of(noisy({"p-slr": 0.5, "random": 0.4, "lrtf": 0.4})), BETTER).verdict == "holds partly"
    assert judged(rows_of(noisy({"p-slr": 2.0})), BETTER).verdict == "does not hold"


def test_wild_workloads_leave_a_claim_open_however_many_there_are() -> None:
    wild = noisy({}, spread=2.0)
    for workloads in (20, 100):
        verdict = judged(rows_of(wild, workloads=workloads), BETTER)
        assert verdict.verdict == "not shown"
        assert "0 of 5 shown, 5 open" in verdict.note
        assert "widest interval of the open parts: P-SLR/" in verdict.note


def test_higher_is_better_where_the_metric_says_so() -> None:
    rows = rows_of(noisy({"p-slr": 1.2}), metric="utilisation")
    assert judged(rows, differs("utilisation", dict.fromkeys(FIVE, "better"))).verdict == "holds"
    assert judged(rows, differs("utilisation", dict.fromkeys(FIVE, "worse"))).verdict == "does not hold"


@pytest.mark.parametrize(
    ("factor", "spread", "answer"),
    [
        (1.0, 0.01, "holds"),
        (1.02, 0.01, "holds"),  # surely there and surely small
        (1.5, 0.1, "does not hold"),
        (1.0, 0.8, "not shown"),
    ],
)
def test_equal_values_need_a_test_of_equivalence(factor: float, spread: float, answer: str) -> None:
    assert judged(rows_of(noisy({"p-slr": factor}, spread)), alike("sd_slr")).verdict == answer


def test_a_missing_policy_or_schedule_is_not_testable_and_named() -> None:
    rows = rows_of(noisy({}))
    without = [row for row in rows if row["policy"] != "lrtf"]
    verdict = judged(without, BETTER)
    assert verdict.verdict == "not testable"
    assert "lrtf" in verdict.note
    verdict = judged(rows[1:], BETTER)
    assert verdict.verdict == "not testable"
    assert "expected one" in verdict.note


def test_an_order_is_sure_where_resamples_agree() -> None:
    rows = rows_of(noisy({"lrtf": 3.0, "srtf": 0.5}))
    judge = ordered(at_loads("sd_slr"), {"top": highest(0, "lrtf"), "bottom": lowest(-1, "srtf")})
    assert judged(rows, judge).verdict == "holds"
    wrong = ordered(at_loads("sd_slr"), {"top": highest(0, "srtf"), "bottom": lowest(-1, "lrtf")})
    assert judged(rows, wrong).verdict == "does not hold"
    level = ordered(at_loads("sd_slr"), {"top": highest(0, "random")})
    assert judged(rows_of(noisy({}, 0.5)), level).verdict in ("not shown", "does not hold")


def test_a_printed_share_is_met_within_ten_points() -> None:
    always = rows_of(noisy({"p-slr": 0.1}), metric="worst_slr", loads=(1.0, 1.2), workloads=40)
    assert judged(always, as_printed("worst_slr", "lrtf")).verdict == "holds"
    few = [row for row in always if row["workload"] < 20]  # 20 of 20 are too few for 90 %
    assert judged(few, as_printed("worst_slr", "lrtf")).verdict == "not shown"
    never = rows_of(noisy({"p-slr": 10.0}), metric="worst_slr", loads=(1.0, 1.2))
    verdict = judged(never, as_printed("worst_slr", "lrtf"))
    assert verdict.verdict == "does not hold"
    assert verdict.effect == 0


def test_the_parts_of_all_evidence_are_pooled() -> None:
    verdict = judged(rows_of(noisy({"p-slr": 0.5})), BETTER, alike("sd_slr"))
    assert verdict.verdict == "holds partly"
    assert verdict.note.startswith("5 of 6 shown, 1 refuted; least supported: P-SLR/SRTF")


def test_two_workloads_are_not_testable_and_three_are() -> None:
    found = [judged(rows_of(noisy({"p-slr": 0.5}, 0.01), workloads=n), BETTER).verdict for n in (2, 3)]
    assert found == ["not testable", "holds"]


def test_a_claim_is_refuted_by_a_sure_test_alone() -> None:
    """G-36 and G-51 among them: with few workloads, point estimates without any difference refuted claims."""
    rows = [
        row
        for metric in ("sd_slr", "worst_slr", "mean_slr", "utilisation", "cumulative_completion", "peak_in_flight")
        for row in rows_of(noisy({}, spread=0.5), metric=metric, workloads=10, loads=(0.8, 1.2))
    ]
    tested = {one.claim: one for one in verdicts(rows, CLAIMS) if np.isfinite(one.p)}
    assert len(tested) > 20
    assert {one.claim for one in tested.values() if one.verdict == "does not hold" and one.p > 0.05} == set()
    assert [tested[claim].verdict for claim in ("G-36", "G-51")] == ["not shown", "not shown"]


@pytest.mark.long
def test_the_tiny_campaign_refutes_nothing_without_a_sure_test(tmp_path: Path) -> None:
    run_campaign(GridCampaign.from_toml(RECIPES / "grid.toml", scale="tiny"), tmp_path)
    found = {one.claim: one for one in verdicts(read_rows(tmp_path), CLAIMS)}
    assert all(one.p <= 0.05 for one in found.values() if one.verdict == "does not hold")
    assert [found[claim].verdict for claim in ("G-36", "G-51")] == ["not shown", "not shown"]


def log_rows(random: Sequence[float], fair_share: Sequence[float], **others: float) -> list[Row]:
    """Artificial deviations and worst values of SLR on the industrial log, one per draw for random policies."""
    fixed = {"srtf": 2.0, "p-slr": 2.2, "fifo-job": 50.0, "fifo-task": 50.0, "lrtf": 200.0}
    values = {name: [others.get(name.replace("-", "_"), value)] for name, value in fixed.items()}
    values |= {"random": list(random), "fair-share": list(fair_share)}
    return [
        {
            "kind": "industrial",
            "workload": draw,
            "load": 0.6,
            "policy": policy,
            "metric": metric,
            "value": value,
            "decile": None,
        }
        for metric in ("sd_slr", "worst_slr")
        for policy, column in values.items()
        for draw, value in enumerate(column, start=1)
    ]


def on_the_log(rows: list[Row]) -> dict[str, Verdict]:
    found = {one.claim: one for one in verdicts(rows, INDUSTRIAL_CLAIMS)}
    return {name: found[name] for name in ("G-93", "G-94", "G-96", "G-97")}


def test_an_order_on_one_log_that_resampled_draws_turn_round_is_open() -> None:
    draws = np.linspace(-10, 10, 30)
    clear, unclear = (on_the_log(log_rows(30 + 0.1 * draws, share + draws)) for share in (40, 49.5))
    assert (clear["G-94"].verdict, clear["G-94"].n) == ("holds", 30)
    assert unclear["G-94"].verdict == "holds partly"
    assert "5 of 6 shown, 1 open; least supported: FIFO Job/Fair Share" in unclear["G-94"].note
    turned = on_the_log(log_rows(90 + 0.1 * draws, 40 + draws))["G-94"]
    assert "4 of 6 shown, 2 refuted" in turned.note


def test_two_draws_on_one_log_are_not_testable() -> None:
    found = on_the_log(log_rows([30, 31], [40, 41]))
    assert {name: found[name].verdict for name in ("G-93", "G-94", "G-96")} == dict.fromkeys(
        ("G-93", "G-94", "G-96"), "not testable"
    )


def test_policies_that_draw_nothing_are_facts_of_the_log() -> None:
    found = on_the_log(log_rows(np.linspace(30, 31, 30), np.linspace(40, 41, 30), p_slr=4.0))["G-93"]
    assert (found.verdict, found.effect, found.p, found.n) == ("holds partly", 2.0, 0.0, 1)


def test_both_fifos_are_not_compared_where_jobs_have_one_task() -> None:
    draws = np.linspace(30, 31, 30)
    assert on_the_log(log_rows(draws, draws))["G-97"].verdict == "not testable"
    assert on_the_log(log_rows(draws, draws, fifo_job=60.0))["G-97"].verdict == "holds"
    assert on_the_log(log_rows(draws, draws, fifo_job=25.0))["G-97"].verdict == "does not hold"
