"""Comparisons of runs of a campaign: pairs and families by hand, against scipy, and simulated without a difference."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.campaign.comparisons import KNOWN, USUAL, Compared, Comparing, Comparisons, compare_runs
from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics import campaign, paired_tests
from gridsim.model.random_streams import stream

QUICK = Comparing(resamples=200)


def runs(waits: Mapping[str, Any], *, metric: str = "wait_mean", **further: Any) -> list[dict[str, Any]]:
    """Runs of each policy from its numbers, one seed each."""
    return [
        {"policy": policy, "seed": seed, metric: value, **further}
        for policy, values in waits.items()
        for seed, value in enumerate(values)
    ]


def drawn(seed: int, policies: int = 3, seeds: int = 12, loads: int = 1, effect: float = 0.0) -> list[dict[str, Any]]:
    """Paired lognormal waits: a size per workload, and a noise per run; only the first policy differs, by *effect*."""
    rng = stream(seed, "tests", "campaign")
    size = rng.normal(8, 1, (seeds, loads, 1))
    values = np.exp(size + rng.normal(0, 0.3, (seeds, loads, policies)) + effect * (np.arange(policies) == 0))
    return [
        {"policy": f"p{p}", "seed": s, "load": at / 10, "wait_mean": values[s, at, p]}
        for s, at, p in product(range(seeds), range(loads), range(policies))
    ]


def one(found: Comparisons, value: Any, condition: Mapping[str, Any] | None = None) -> Compared:
    (chosen,) = [it for it in found.found if it.value == value and it.condition == condition]
    return chosen


def test_four_pairs_by_hand_and_by_scipy() -> None:
    mine, theirs = np.array([9.0, 12.0, 20.0, 41.0]), np.array([10.0, 15.0, 19.0, 60.0])
    found = one(compare_runs(runs({"easy": theirs, "sjf": mine}), ["policy", "seed"], QUICK), "sjf", {})
    test = stats.ttest_rel(np.log(mine), np.log(theirs))
    assert (found.test.t_log, found.test.p_log) == pytest.approx((test.statistic, test.pvalue), rel=1e-12)
    interval = test.confidence_interval(0.95)
    assert (found.test.ratio_low, found.test.ratio_high) == pytest.approx(np.exp([interval.low, interval.high]))
    assert found.test.ratio == pytest.approx((9 * 12 * 20 * 41 / (10 * 15 * 19 * 60)) ** 0.25)
    assert found.test.p == pytest.approx(stats.ttest_rel(mine, theirs).pvalue)
    assert found.test.p_wilcoxon == pytest.approx(stats.wilcoxon(np.log(mine / theirs)).pvalue)
    assert (found.mean, found.baseline_mean) == (20.5, 26.0)
    assert (found.test.wins, found.test.ties, found.test.losses) == (3, 0, 1)
    assert (found.baseline, found.test.policy, found.test.other, found.missing) == ("easy", "sjf", "easy", 0)


def test_holm_by_hand_takes_the_policies_compared_with_the_baseline_for_a_family() -> None:
    found = compare_runs(drawn(1, policies=4, loads=2, effect=-0.3), ["policy", "seed", "load"], QUICK)
    for condition in ({"load": 0.0}, {"load": 0.1}, None):
        family = [it.test for it in found.found if it.condition == condition]
        assert [it.policy for it in family] == ["p1", "p2", "p3"]
        ordered = sorted(family, key=lambda it: it.p_log)
        expected = [min(1.0, factor * it.p_log) for factor, it in zip((3, 2, 1), ordered, strict=True)]
        expected[1] = max(expected[:2])
        expected[2] = max(expected[1:])
        assert [it.p_log_holm for it in ordered] == pytest.approx(expected)
        assert all(earlier.p_log_holm <= later.p_log_holm for earlier, later in pairwise(ordered))


def test_the_verdict_follows_the_corrected_p() -> None:
    family = [it.test for it in compare_runs(drawn(5, policies=6, effect=0.35), ["policy", "seed"], QUICK).found]
    clear = {it.p_log_holm < 0.05: it.verdict for it in family}
    assert clear[True] == "better"
    assert all((it.p_log_holm < 0.05) == (it.verdict == "better") for it in family)
    assert any(it.p_log < 0.05 <= it.p_log_holm for it in family)


def test_over_all_conditions_a_workload_counts_once() -> None:
    rows = drawn(2, loads=3, effect=0.2)
    found = one(compare_runs(rows, ["policy", "seed", "load"], QUICK), "p1")
    logs = {(row["policy"], row["seed"], row["load"]): math.log(row["wait_mean"]) for row in rows}
    means = [np.mean([logs["p1", seed, load] - logs["p0", seed, load] for load in (0, 0.1, 0.2)]) for seed in range(12)]
    expected = stats.ttest_1samp(means, 0)
    assert (found.test.t_log, found.test.p_log) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.test.p_wilcoxon == pytest.approx(stats.wilcoxon(means).pvalue)
    assert (found.test.workloads, found.test.schedules, found.conditions) == (12, 36, 3)


def test_seeds_windows_and_logs_make_workloads_and_the_rest_conditions() -> None:
    rows = [
        {"policy": name, "log": log, "window": window, "seed": seed, "load": load, "wait_mean": 1.0 + seed}
        for name, log, window, seed, load in product("ab", ("ctc", "sdsc"), range(2), range(3), (0.7, 0.9))
    ]
    names = ("policy", "log", "window", "seed", "load")
    found = compare_runs(rows, names, QUICK)
    assert found.comparing.replicates == ("log", "window", "seed")
    assert (found.others, found.replicates, found.conditions, found.runs) == (("load",), 12, 2, 48)
    by_log = compare_runs(rows, names, Comparing(replicates=("window", "seed"), resamples=200))
    assert (by_log.others, by_log.replicates, by_log.conditions) == (("log", "load"), 6, 4)
    assert [it.condition for it in by_log.found][:2] == [{"log": "ctc", "load": 0.7}, {"log": "ctc", "load": 0.9}]


def test_any_factor_is_compared_against_any_of_its_values() -> None:
    rows = [
        {"policy": "easy", "seed": seed, "load": load, "wait_mean": load + seed}
        for seed, load in product((1, 2, 3, 4), (1, 2))
    ]
    found = compare_runs(rows, ("policy", "seed", "load"), Comparing(factor="load", baseline="2", resamples=200))
    assert [(it.value, it.baseline, it.condition) for it in found.found] == [(1, 2, {"policy": "easy"})]
    assert found.values == (2, 1)
    assert found.found[0].test.verdict == "better"


def test_a_failed_run_is_excluded_only_from_its_pairs_and_counted() -> None:
    rows = [row for row in drawn(4, loads=2) if (row["policy"], row["seed"], row["load"]) != ("p1", 5, 0.1)]
    found = compare_runs(rows, ["policy", "seed", "load"], QUICK)
    told = {
        (it.value, None if it.condition is None else it.condition["load"]): (it.missing, it.test.workloads)
        for it in found.found
    }
    assert told == {
        ("p1", 0.0): (0, 12),
        ("p1", 0.1): (1, 11),
        ("p1", None): (1, 11),
        ("p2", 0.0): (0, 12),
        ("p2", 0.1): (0, 12),
        ("p2", None): (0, 12),
    }
    without = compare_runs([row for row in rows if row["seed"] != 5], ["policy", "seed", "load"], QUICK)
    assert one(found, "p1").test == one(without, "p1").test
    mean = next(it for it in found.means if it.value == "p1" and it.condition == {"load": 0.1})
    assert (mean.replicates, mean.missing) == (11, 1)


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_a_number_that_is_none_is_missing(nothing: float | None) -> None:
    rows = runs({"a": [1.0, 2.0, 3.0], "b": [1.0, nothing, 2.0]})
    assert compare_runs(rows, ["policy", "seed"], QUICK).found[0].missing == 1


def test_a_condition_without_any_pair_is_left_out_of_the_comparison_over_all() -> None:
    rows = [row for row in drawn(5, loads=3) if (row["policy"], row["load"]) != ("p1", 0.2)]
    found = compare_runs(rows, ["policy", "seed", "load"], QUICK)
    assert (one(found, "p1").conditions, one(found, "p1").missing) == (2, 0)
    assert one(found, "p2").conditions == 3
    empty = one(found, "p1", {"load": 0.2})
    assert (empty.test.verdict, empty.missing, empty.test.workloads) == ("too little data", 12, 0)
    assert math.isnan(empty.mean)


def test_a_policy_of_which_every_run_failed_is_there_and_says_so() -> None:
    factors = {"policy": ["a", "broken", "b"], "seed": [0, 1]}
    found = compare_runs(runs({"b": [1.0, 2.0], "a": [2.0, 3.0]}), factors, QUICK)
    assert found.values == ("a", "broken", "b")
    assert next((it.value, it.missing, it.test.verdict) for it in found.found) == ("broken", 2, "too little data")


def test_one_workload_has_a_ratio_and_no_test() -> None:
    test = compare_runs(runs({"a": [2.0], "b": [1.0]}), ["policy", "seed"], QUICK).found[0].test
    assert (test.ratio, test.verdict) == (0.5, "too little data")
    assert all(map(math.isnan, (test.p, test.p_log, test.ratio_low, test.ratio_bootstrap_low, test.p_equivalence)))


def test_equal_and_constant_numbers_are_equivalent_and_a_constant_difference_is_certain() -> None:
    values = [3.0, 7.0, 7.0, 21.0]
    found = compare_runs(
        runs({"a": values, "same": values, "double": [2 * value for value in values], "flat": [7.0] * 4}),
        ["policy", "seed"],
        QUICK,
    )
    same, double, flat = (it.test for it in found.found)
    assert (same.verdict, same.p_log, same.p_wilcoxon, same.ties) == ("equivalent", 1, 1, 4)
    assert (double.verdict, double.p_log_holm, double.ratio) == ("worse", 0, pytest.approx(2))
    assert (flat.ties, flat.wins, flat.losses, flat.verdict) == (2, 1, 1, "no clear difference")
    assert [(it.low, it.mean, it.high) for it in found.means if it.value == "flat"] == [(7, 7, 7)]


def test_zeros_have_no_ratio_and_are_counted() -> None:
    test = compare_runs(runs({"a": [1.0, 2.0, 0.0, 0.0], "b": [2.0, 4.0, 1.0, 0.0]}), ["policy", "seed"], QUICK)
    assert (test.found[0].test.left_out, test.found[0].test.workloads) == (1, 4)


def test_means_have_students_interval() -> None:
    values = [3.0, 5.0, 10.0]
    (mean, _) = compare_runs(runs({"a": values, "b": values}), ["policy", "seed"], QUICK).means
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean.mean, mean.low, mean.high) == pytest.approx((6, expected.low, expected.high))


def test_higher_is_better_where_the_metric_says_so() -> None:
    rows = runs({"a": [0.5, 0.6, 0.55], "b": [0.7, 0.84, 0.77]}, metric="utilisation")
    assert compare_runs(rows, ["policy", "seed"], QUICK).found[0].test.verdict == "better"


def test_usual_metrics_that_the_runs_have_are_compared() -> None:
    rows = [{**row, "mean_slr": 2.0, "makespan": 9.0} for row in runs({"a": [1.0, 2.0], "b": [1.0, 2.0]})]
    assert compare_runs(rows, ["policy", "seed"], QUICK).metrics == ("wait_mean", "mean_slr")
    asked = Comparing(metrics=("makespan",), resamples=200)
    assert compare_runs(rows, ["policy", "seed"], asked).metrics == ("makespan",)
    assert set(USUAL) <= set(KNOWN)


def test_the_order_of_the_rows_changes_nothing_but_the_order_of_the_values() -> None:
    rows = drawn(6, loads=2)
    factors = {"policy": ["p0", "p1", "p2"], "load": [0.0, 0.1], "seed": range(12)}
    found, shuffled = compare_runs(rows, factors, QUICK), compare_runs(iter(rows[::-1]), factors, QUICK)
    assert (found.found, found.means) == (shuffled.found, shuffled.means)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"confidence": 95}, "confidence"),
        ({"margin": 0}, "margin"),
        ({"metrics": ("wait_maen",)}, "did you mean 'wait_mean'"),
        ({"metrics": ("offered_load",)}, "no change of"),
        ({"replicates": ("policy",)}, "cannot also define replicates"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_before_any_simulation(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Comparing(**changed)


def test_bad_rows_and_names_are_refused() -> None:
    rows, names = runs({"a": [1.0, 2.0], "b": [1.0, 2.0]}), ["policy", "seed"]
    with pytest.raises(InputError, match="2 runs of policy a, seed 0; expected one"):
        compare_runs([*rows, rows[0]], names)
    with pytest.raises(InputError, match="run 5 has no value of the factor 'seed'"):
        compare_runs([*rows, {"policy": "a"}], names)
    with pytest.raises(UnknownNameError, match="unknown factor 'polcy'"):
        compare_runs(rows, names, Comparing(factor="polcy"))
    with pytest.raises(UnknownNameError, match="unknown policy 'c'"):
        compare_runs(rows, names, Comparing(baseline="c"))
    with pytest.raises(UnknownNameError, match="unknown factor 'window'"):
        compare_runs(rows, names, Comparing(replicates=("window",)))
    with pytest.raises(InputError, match="no run has a number of the metric 'makespan'"):
        compare_runs(rows, names, Comparing(metrics=("makespan",)))
    with pytest.raises(InputError, match="no run has finished"):
        compare_runs([], names)


@pytest.mark.long
def test_without_a_difference_a_family_has_a_false_verdict_about_as_often_as_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rate stays below Holm's bound because tests that share a baseline are correlated."""
    monkeypatch.setattr(
        paired_tests, "wilcoxon", lambda _: math.nan
    )  # no verdict uses it, and it takes most of the time
    false, uncorrected = 0, 0
    for seed in range(1_000):
        rows = drawn(100 + seed, policies=4, seeds=10)
        found = compare_runs(rows, ["policy", "seed", "load"], Comparing(resamples=1))
        false += any(it.test.verdict in ("better", "worse") for it in found.found)
        uncorrected += any(it.test.p_log < 0.05 for it in found.found)
    assert 0.03 < false / 1_000 < 0.065
    assert uncorrected / 1_000 > 0.1


@pytest.mark.long
def test_numbers_are_kept_as_columns_and_rows_are_let_go() -> None:
    """20,000 runs of 8 metrics: 1.3 MB of numbers, codes and the grid; their rows would take 9 MB."""

    def rows() -> Iterator[dict[str, Any]]:
        for seed, policy in product(range(5_000), "abcd"):
            yield {"policy": policy, "seed": seed} | {name: seed + 1.5 + len(name) for name in USUAL}

    tracemalloc.start()
    compare_runs(rows(), ["policy", "seed"], Comparing(metrics=USUAL, resamples=10))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 7e6


# -- windows of logs -------------------------------------------------------------------------------------------------


def nested(logs: int = 3, windows: int = 6, *, seed: int = 1, effect: float = 0.0) -> list[dict[str, Any]]:
    """Runs of two policies on windows of logs: the effect of a policy on a log is the same in all of its windows."""
    rng = stream(seed, "tests", "nested")
    of_log = rng.normal(effect, 0.5, logs)
    ratios = np.exp(of_log[:, None] + rng.normal(0, 0.05, (logs, windows)))
    sizes = np.exp(rng.normal(8, 1, (logs, windows)))
    return [
        {"policy": policy, "log": log, "window": window, "wait_mean": sizes[log, window] * factor}
        for log, window in product(range(logs), range(windows))
        for policy, factor in (("fcfs", 1.0), ("easy", ratios[log, window]))
    ]


def test_windows_of_a_log_count_once() -> None:
    rows = nested()
    found = compare_runs(rows, ["policy", "log", "window"], QUICK)
    test = one(found, "easy", {}).test
    by_run = {(row["policy"], row["log"], row["window"]): row["wait_mean"] for row in rows}
    means = [np.mean([math.log(by_run["easy", log, w] / by_run["fcfs", log, w]) for w in range(6)]) for log in range(3)]
    scipy = stats.ttest_1samp(means, 0.0)
    assert (found.replicates, found.sources, found.nested, test.workloads) == (18, 3, True, 3)
    assert (test.t_log, test.p_log) == pytest.approx((scipy.statistic, scipy.pvalue))
    assert test.ratio == pytest.approx(math.exp(float(np.mean(means))))


def test_few_logs_of_many_windows_are_seldom_distinguished_by_chance() -> None:
    names = ["policy", "log", "window"]
    wrong = {"logs": 0, "windows": 0}
    for seed in range(60):
        rows = nested(seed=seed)
        wrong["logs"] += one(compare_runs(rows, names, QUICK), "easy", {}).test.p_log < 0.05
        apart = Comparing(resamples=200, sources=())
        wrong["windows"] += one(compare_runs(rows, names, apart), "easy", {}).test.p_log < 0.05
    assert wrong["logs"] <= 8  # 3 are expected of 60
    assert wrong["windows"] > 25  # when windows are treated as independent


def test_a_log_with_a_window_less_counts_with_those_it_has() -> None:
    rows = [row for row in nested() if (row["policy"], row["log"], row["window"]) != ("easy", 0, 0)]
    found = one(compare_runs(rows, ["policy", "log", "window"], QUICK), "easy", {})
    assert (found.test.workloads, found.missing) == (3, 1)


def test_windows_of_one_log_are_blocks_of_it() -> None:
    rows = nested(logs=1)
    found = compare_runs(rows, ["policy", "log", "window"], QUICK)
    assert (found.nested, found.of_one, one(found, "easy", {}).test.workloads) == (False, True, 6)
    without = [{name: value for name, value in row.items() if name != "log"} for row in rows]
    found = compare_runs(without, ["policy", "window"], QUICK)
    assert (found.nested, found.of_one, one(found, "easy", {}).test.workloads) == (False, True, 6)


def test_seeds_alone_are_distinct_workloads() -> None:
    found = compare_runs(drawn(1), ["policy", "seed"], QUICK)
    assert (found.nested, found.of_one, found.sources) == (False, False, 12)


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'log'"):
        compare_runs(nested(), ["policy", "log", "window"], Comparing(sources=("logs",)))


def test_an_equivalent_ratio_is_shown_with_the_interval_that_decides_it() -> None:
    """The 90 % interval of the two one-sided tests lies within the margin where the 95 % interval does not."""
    logs = np.log([1.10, 0.92, 1.08, 0.94, 1.07, 0.93, 1.05, 0.96])
    values = np.stack([np.exp(logs), np.ones(8)], axis=-1)[:, None, :]
    workloads = tuple(("log", number) for number in range(8))
    paired = campaign.Paired("wait_mean", "lower", workloads, (1.0,), ("new", "old"), values)
    (one,) = campaign.compare_policies(paired, "new", margin=0.06)
    assert (one.verdict, one.ratio_high > 1.06) == ("equivalent", True)
    low, high = one.shown_interval()
    assert 1 / 1.06 < low < one.ratio < high < 1.06
    expected = stats.t.interval(0.9, 7, logs.mean(), stats.sem(logs))
    assert (low, high) == pytest.approx(tuple(np.exp(expected)))
