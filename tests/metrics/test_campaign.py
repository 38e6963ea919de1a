"""Paired schedules: examples by hand, against scipy, and simulated error rates of tests and intervals."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.campaign import Paired, compare_policies, tidy
from gridsim.metrics.compare import holm
from gridsim.model.random_streams import stream

WORKLOADS = 150
"""Size of the campaign, to which the error rates below apply."""


def paired(values: Any, *, metric: str = "worst_slr", policies: tuple[str, ...] = ("p-slr", "srtf")) -> Paired:
    """From (workloads, loads, policies), half of the workloads of each of two kinds."""
    array = np.asarray(values, dtype=float)
    n = len(array)
    return Paired.from_rows(
        [
            {
                "kind": "ind" if w < n / 2 else "dag",
                "workload": w,
                "load": 0.8 + 0.1 * at,
                "policy": policies[p],
                "metric": metric,
                "value": value,
            }
            for (w, at, p), value in np.ndenumerate(array)
        ],
        metric,
    )


def test_the_raw_t_test_is_decided_by_one_wild_pair_and_the_log_ratio_is_not() -> None:
    """The reason for log ratios as the main result: 149 workloads with half the SLR, one opposite outlier."""
    theirs = np.linspace(10, 20, WORKLOADS)
    mine = theirs / 2 * np.exp(stream(6, "tests", "wild").normal(0, 0.1, WORKLOADS))
    mine[7] = 5_000
    found = compare_policies(paired(np.stack([mine, theirs], axis=-1)[:, None]), resamples=500)[0]
    assert found.p > 0.05
    assert found.difference > 0
    assert (found.verdict, found.p_wilcoxon < 1e-9) == ("better", True)
    assert (found.ratio_low < 0.5 < found.ratio_high, found.wins) == (True, 149)


def test_rows_become_values_in_any_order_and_as_columns() -> None:
    rows = [
        {"kind": "dag", "workload": w, "load": load, "policy": name, "metric": "m", "value": 100 * w + load + extra}
        for name, extra in (("a", 0.0), ("b", 0.5))
        for load in (1.0, 0.8)
        for w in (2, 1)
    ]
    found = Paired.from_rows(rows, "m")
    assert (found.workloads, found.loads, found.policies) == ((("dag", 2), ("dag", 1)), (0.8, 1.0), ("a", "b"))
    assert found.of("b").tolist() == [[201.3, 201.5], [101.3, 101.5]]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert (Paired.from_rows(columns, "m").values == found.values).all()
    assert [row["value"] for row in tidy(columns, policy="a", load=0.8)] == [200.8, 100.8]
    with pytest.raises(UnknownNameError, match="'c'"):
        found.of("c")


def test_a_missing_or_double_schedule_cannot_be_paired() -> None:
    rows = [
        {"kind": "dag", "workload": 1, "load": load, "policy": name, "metric": "m", "value": 1.0}
        for name in "ab"
        for load in (0.8, 1.0)
    ]
    with pytest.raises(InputError, match="0 values of 'm' for workload dag 1, load 1 and policy b"):
        Paired.from_rows(rows[:-1], "m")
    with pytest.raises(InputError, match="2 values"):
        Paired.from_rows([*rows, rows[0]], "m")
    with pytest.raises(InputError, match="no row has the metric 'n'"):
        Paired.from_rows(rows, "n")


def test_decile_rows_are_apart_from_whole_schedules() -> None:
    base = {"kind": "dag", "workload": 1, "load": 1.2, "policy": "a", "metric": "mean_slr"}
    rows = [{**base, "value": 3.0}, {**base, "decile": 1, "value": 9.0}, {**base, "decile": 2, "value": 2.0}]
    assert Paired.from_rows(rows, "mean_slr").values.tolist() == [[[3.0]]]
    assert Paired.from_rows(rows, "mean_slr", decile=1).values.tolist() == [[[9.0]]]


def test_which_way_is_better_comes_from_the_metric() -> None:
    values = np.ones((2, 1, 2)) * [2.0, 1.0]
    assert compare_policies(paired(values), resamples=10)[0].verdict == "worse"
    found = compare_policies(paired(values, metric="mean_speedup"), resamples=10)[0]
    assert (found.verdict, found.wins, found.ratio) == ("better", 2, 2.0)


def test_over_all_loads_the_raw_test_has_all_schedules_and_the_log_test_all_workloads() -> None:
    rng = stream(7, "tests", "loads")
    values = np.exp(rng.normal(0, 1, (12, 5, 1)) + rng.normal(0, 0.2, (12, 5, 2)))
    found = compare_policies(paired(values), resamples=200)
    assert [one.load for one in found] == pytest.approx([0.8, 0.9, 1.0, 1.1, 1.2, None])
    assert [one.schedules for one in found] == [12] * 5 + [60]
    over_all = found[-1]
    raw = stats.ttest_rel(values[:, :, 0].ravel(), values[:, :, 1].ravel())
    assert (over_all.t, over_all.p) == pytest.approx((raw.statistic, raw.pvalue))
    logs = np.log(values[:, :, 0] / values[:, :, 1]).mean(axis=1)
    log = stats.ttest_1samp(logs, 0)
    assert (over_all.t_log, over_all.p_log) == pytest.approx((log.statistic, log.pvalue))
    assert over_all.ratio == pytest.approx(math.exp(logs.mean()))
    assert over_all.p_wilcoxon == pytest.approx(stats.wilcoxon(logs).pvalue)
    assert over_all.d_z == pytest.approx(logs.mean() / logs.std(ddof=1))


def test_holm_takes_the_other_policies_at_one_load_for_a_family() -> None:
    rng = stream(8, "tests", "family")
    values = np.exp(rng.normal([0, 0.05, 0.1, 0.3], 0.4, (30, 2, 4)))
    found = compare_policies(paired(values, policies=("p-slr", "a", "b", "c")), resamples=50)
    for load in (0.8, 0.9, None):
        family = [one for one in found if one.load == (load if load is None else pytest.approx(load))]
        assert len(family) == 3
        for raw, corrected in (("p", "p_holm"), ("p_log", "p_log_holm"), ("p_wilcoxon", "p_wilcoxon_holm")):
            expected = holm([getattr(one, raw) for one in family])
            assert [getattr(one, corrected) for one in family] == expected


def test_kinds_of_workloads_are_next_to_the_pooled_ones() -> None:
    values = np.exp(stream(9, "tests", "kinds").normal(0, 0.3, (10, 1, 2)))
    found = compare_policies(paired(values), by_kind=True, resamples=50)
    assert [(one.kind, one.workloads) for one in found] == [(None, 10), ("ind", 5), ("dag", 5)]
    assert {one.load for one in found} == {0.8}


def test_identical_policies_are_equivalent() -> None:
    """Like the utilisation of the industrial log: one late long job determines it under every policy."""
    found = compare_policies(paired(np.full((20, 1, 2), 0.5864), metric="utilisation"), resamples=50)[0]
    assert (found.verdict, found.p, found.p_log, found.ratio, found.ties) == ("equivalent", 1, 1, 1, 20)
    assert (found.ratio_bootstrap_low, found.ratio_bootstrap_high) == (1, 1)


def test_one_workload_is_too_little_data() -> None:
    found = compare_policies(paired([[[1.0, 2.0]]]), resamples=10)[0]
    assert found.verdict == "too little data"
    assert found.row()["wins"] == 1


def test_a_pair_without_a_ratio_is_left_out_and_counted() -> None:
    values = np.ones((6, 1, 2)) * [1.0, 2.0] + np.linspace(0, 0.1, 6)[:, None, None]
    values[2, 0, 0] = 0.0
    found = compare_policies(paired(values, metric="sd_slr"), resamples=50)[0]
    assert (found.left_out, found.schedules, found.wins) == (1, 6, 6)
    assert found.verdict == "better"


def test_an_unknown_policy_and_a_bad_confidence_are_named() -> None:
    some = paired(np.ones((3, 1, 2)))
    with pytest.raises(UnknownNameError, match="fifo"):
        compare_policies(some, "fifo")
    with pytest.raises(InputError, match="confidence"):
        compare_policies(some, confidence=95)


def test_scipy_stats_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, gridsim.metrics.campaign; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
