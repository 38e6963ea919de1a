"""Paired differences: golden numbers, properties, and coverage on correlated series."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.signal import lfilter

import gridsim as gs
from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics import compare
from gridsim.metrics.compare import Difference, holm, paired, widened, winners_and_losers
from gridsim.metrics.groups import size_classes
from gridsim.model.time import to_us
from gridsim.model.workload import Workload
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.record import Record

Columns = npt.NDArray[np.float64]

REPLICATES = 400


def autoregression(rng: np.random.Generator, replicates: int, n: int, phi: float, *, skewed: bool = False) -> Columns:
    """Stationary first-order autoregressions of mean 0 and deviation 1; exponentials of them where *skewed*."""
    noise = rng.standard_normal((replicates, n)) * math.sqrt(1 - phi**2)
    first = rng.standard_normal((replicates, 1))
    series: Columns = lfilter([1], [1, -phi], noise, axis=1) + first * phi ** np.arange(1, n + 1)
    return (np.exp(series) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e) if skewed else series


def records_of(waits: dict[str, Columns], cores: object = 1) -> dict[str, Record]:
    n = len(next(iter(waits.values())))
    jobs = Workload.from_columns(submit=np.arange(n), runtime=np.full(n, 100), cores=cores)
    return {
        name: Record(
            workload=jobs,
            start_us=(start := jobs.submit + to_us(column)),
            end_us=start + jobs.runtime,
            status=np.zeros(n, dtype=np.int8),
            cluster=np.zeros(n, dtype=np.int16),
            cores=16,
        )
        for name, column in waits.items()
    }


def compared(mine: Columns, theirs: Columns) -> Difference:
    """The comparison computed by `paired`, without records."""
    found = compare._difference("wait", "policy", "baseline", mine, theirs, 0.95)
    return compare._corrected([found], 0.95)[0]


def naive_coverage(gaps: Columns, mean: float) -> float:
    """Coverage of the mean by the t interval with the number of jobs as sample size."""
    n = gaps.shape[1]
    half = stats.t.ppf(0.975, n - 1) * gaps.std(axis=1, ddof=1) / math.sqrt(n)
    return float(np.mean(np.abs(gaps.mean(axis=1) - mean) <= half))


def test_three_jobs_by_hand() -> None:
    rows: list[dict[str, int]] = [
        {"submit": 0, "runtime": 10},
        {"submit": 5, "runtime": 10},
        {"submit": 9, "runtime": 10},
    ]
    waits = {"a": [0, 10, 20], "b": [0, 20, 10]}
    records = {
        name: Record.from_rows(
            [
                {**row, "start": row["submit"] + wait, "end": row["submit"] + wait + 10}
                for row, wait in zip(rows, column, strict=True)
            ]
        )
        for name, column in waits.items()
    }
    found = paired(records)[0]
    assert (found.policy, found.baseline, found.jobs) == ("b", "a", 3)
    assert (found.policy_mean, found.baseline_mean, found.mean, found.ratio) == (10, 10, 0, 1)
    assert found.better == found.worse == found.same == pytest.approx(1 / 3)
    assert found.verdict == "too little data"


BASELINE = [20, 30, 30, 40, 20, 50, 30, 20]

GOLDEN: dict[str, tuple[list[int], list[int]]] = {
    "A": ([10, 20, 30, 20, 10, 40, 20, 10], BASELINE),
    "B": ([21, 29, 33, 38, 20, 52, 29, 21], BASELINE),
    "D": ([40, 10, 60, 10, 40, 20, 90, 10], BASELINE),
    "E": ([0] * 8, BASELINE),
}


def blocks(values: list[int]) -> Columns:
    """Ten equal values a block."""
    return np.repeat(np.array(values, dtype=float), 10)


@pytest.fixture(scope="module")
def golden() -> dict[str, Difference]:
    """The golden cases as one family."""
    found = [
        compare._difference("wait", name, "baseline", blocks(mine), blocks(theirs), 0.95)
        for name, (mine, theirs) in GOLDEN.items()
    ]
    return dict(zip(GOLDEN, compare._corrected(found, 0.95), strict=True))


@pytest.mark.parametrize(
    ("name", "ratio", "difference", "p", "p_holm", "verdict"),
    [
        ("A", (0.666667, 0.426514, 1.042040), (-10, -17.204582, 1.261191), 0.068075, 0.204225, "no clear difference"),
        ("B", (1.0125, 0.928393, 1.104226), (0.375, -2.148198, 3.126784), 0.737935, 1, "no clear difference"),
        ("D", (1.166667, 0.253288, 5.373779), (5, -22.401374, 131.213356), 0.813176, 1, "too little data"),
        ("E", (math.nan,) * 3, (-30, -46.277285, -13.722715), 0.004061, 0.016245, "better"),
    ],
)
def test_golden_numbers(
    golden: dict[str, Difference],
    name: str,
    ratio: tuple[float, ...],
    difference: tuple[float, ...],
    p: float,
    p_holm: float,
    verdict: str,
) -> None:
    it = golden[name]
    near = {"abs": 1e-6, "nan_ok": True}
    assert (it.ratio, it.ratio_low, it.ratio_high) == pytest.approx(ratio, **near)
    assert (it.mean, it.low, it.high) == pytest.approx(difference, **near)
    assert (it.p, it.p_holm) == pytest.approx((p, p_holm), abs=1e-6)
    assert (it.verdict, it.blocks, it.jobs) == (verdict, 8, 80)


def test_golden_errors_and_pseudo_values() -> None:
    mine, theirs = map(blocks, GOLDEN["A"])
    estimate = compare._estimate(mine, theirs)
    assert estimate is not None
    assert estimate.error == pytest.approx(0.103713, abs=1e-6)
    pseudo = [-0.562775, -0.405465, 0.113291, -0.746996, -0.562775, -0.026995, -0.405465, -0.562775]
    assert estimate.value / estimate.error == pytest.approx(-3.909506, abs=1e-6)
    assert estimate.effect == pytest.approx(math.log(2 / 3) / np.std(pseudo, ddof=1), rel=1e-5)
    assert compared(*map(blocks, GOLDEN["D"])).half_width == pytest.approx(1.527381, abs=1e-6)


def test_waiting_in_one_block_only_is_too_little_data() -> None:
    """Case C: a difference inside one block, and no wait in the others."""
    theirs = blocks([0, 0, 0, 0, 0, 240, 0, 0])
    found = compared(theirs + np.where(np.arange(80) == 50, 1, 0) - np.where(np.arange(80) == 51, 1, 0), theirs)
    assert (found.ratio, found.mean, found.verdict) == (1, 0, "too little data")
    assert all(map(math.isnan, (found.ratio_low, found.low, found.p, found.p_holm)))


def test_blocks_have_equal_numbers_of_jobs_where_eight_does_not_divide_them() -> None:
    rows = np.arange(83)
    found = compared((rows % 7).astype(float), (rows % 5 + 1).astype(float))
    assert (found.ratio, found.ratio_low, found.ratio_high) == pytest.approx((1, 0.850256, 1.176116), abs=1e-6)
    assert found.p == 1


def test_fewer_than_eighty_jobs_are_too_little_data() -> None:
    mine, theirs = (blocks(column)[:79] for column in GOLDEN["A"])
    assert compared(mine, theirs).verdict == "too little data"
    assert math.isnan(compared(mine, theirs).ratio_low)


@cache
def simulated_with_easy(path: Path) -> tuple[gs.Workload, Record]:
    log = gs.read_workload(path)
    return log, gs.simulate(log, policy="easy").record


@pytest.fixture
def ctc(others: Callable[[str], Path]) -> tuple[gs.Workload, Record]:
    """The CTC log and its schedule under EASY."""
    return simulated_with_easy(others("swf/CTC-SP2-1996-3.1-cln.swf.gz"))


def printed(it: Difference, p: float, digits: str) -> str:
    """Ratio, interval and p with a given number of digits."""
    numbers = (it.ratio, it.ratio_low, it.ratio_high)
    return " ".join(format(value, each) for value, each in zip((*numbers, p), digits.split(), strict=True))


@pytest.mark.parametrize(
    ("policy", "digits", "expected"),
    [
        ("sjbf", ".4f .4f .4f .3f", "0.8476 0.6739 1.0659 0.128"),
        ("conservative", ".4f .4f .4f .4f", "1.5052 1.0731 2.1112 0.0254"),
        ("easy++", ".4f .4f .4f .4f", "2.8481 1.2316 6.5864 0.0224"),
        ("easy?ordering=wfp3", ".4f .4f .4f .3f", "0.9468 0.7118 1.2595 0.656"),
        ("fcfs", ".2f .2f .1f .4f", "47.02 22.07 100.2 0.0000"),
    ],
)
@pytest.mark.others
@pytest.mark.long
def test_golden_ratios_on_a_whole_log(ctc: tuple[gs.Workload, Record], policy: str, digits: str, expected: str) -> None:
    log, easy = ctc
    found = paired({"easy": easy, policy: gs.simulate(log, policy=policy).record}, baseline="easy")[0]
    assert printed(found, found.p, digits) == expected


class ShortThenOld:
    """Requested time times cores, and the logarithm of the submit time: the rank F1 of the worked case."""

    changes = "static"

    def rank(self, queue: Any, now: int) -> Any:
        size = np.log10(np.maximum(queue.estimate, 1)) * queue.cores
        return size + 870 * np.log10(np.maximum(queue.submit, 1))


@pytest.mark.others
@pytest.mark.long
def test_groups_of_an_ordering_that_starves_wide_jobs_on_a_whole_log(ctc: tuple[gs.Workload, Record]) -> None:
    log, easy = ctc
    ordered = gs.simulate(log, policy=Backfilling(ordering=ShortThenOld(), reserve=Easy())).record
    (overall,) = paired({"easy": easy, "F1": ordered}, baseline="easy")
    assert printed(overall, overall.p, ".3f .3f .3f .3f") == "0.767 0.404 1.456 0.350"
    assert overall.verdict == "no clear difference"
    found = winners_and_losers(ordered, easy, size_classes(easy))
    digits = {"129-256": ".2f .2f .2f .4f", "257-338": ".1f .1f .1f .4f"}
    assert [
        f"{name}: {it.jobs}, {printed(it, it.p_holm, digits.get(name, '.3f .3f .3f .4f'))}, {it.verdict}"
        for name, it in found.items()
    ] == [
        "1: 32396, 0.049 0.015 0.158 0.0061, better",
        "2-4: 14814, 0.135 0.038 0.474 0.0240, better",
        "5-8: 8795, 0.166 0.074 0.372 0.0096, better",
        "9-16: 9935, 0.154 0.055 0.433 0.0210, better",
        "17-32: 6421, 0.248 0.137 0.449 0.0085, better",
        "33-64: 3379, 0.461 0.302 0.703 0.0210, better",
        "65-128: 1028, 1.151 0.433 3.056 0.7367, too little data",
        "129-256: 305, 6.05 1.93 18.98 0.0240, worse",
        "257-338: 132, 29.3 11.6 73.8 0.0010, worse",
    ]
    longest, weighted = (
        [float(value) for value in pair]
        for pair in zip(
            *((it.wait.max() / 86_400, np.average(it.wait, weights=it.workload.area)) for it in (ordered, easy)),
            strict=True,
        )
    )
    assert [f"{days:.1f}" for days in longest] == ["138.5", "3.5"]
    assert [f"{wait:.0f}" for wait in weighted] == ["345568", "55397"]


values = st.lists(st.floats(0, 1e6, allow_subnormal=False).map(lambda it: round(it, 3)), min_size=80, max_size=200)


@given(values, st.randoms(use_true_random=False), st.floats(0.01, 100))
def test_properties_of_a_difference(column: list[float], random: Any, factor: float) -> None:
    theirs = np.array(column)
    mine = theirs * np.array([random.choice((0.5, 0.9, 1.0, 1.2, 3.0)) for _ in column])
    there, back, scaled = compared(mine, theirs), compared(theirs, mine), compared(factor * mine, factor * theirs)
    near = {"rel": 1e-6, "nan_ok": True}
    assert (back.ratio, back.ratio_low, back.ratio_high) == pytest.approx(
        (1 / there.ratio, 1 / there.ratio_high, 1 / there.ratio_low), **near
    )
    assert back.p == pytest.approx(there.p, rel=1e-6, abs=1e-9, nan_ok=True)
    for turned, same in ((there.turned(), back), (back.turned(), there)):
        assert (turned.mean, turned.low, turned.high) == pytest.approx(
            (same.mean, same.low, same.high), abs=1e-3, **near
        )
        assert turned.verdict == same.verdict
    assert (scaled.ratio, scaled.ratio_low, scaled.p) == pytest.approx((there.ratio, there.ratio_low, there.p), **near)
    if not math.isnan(there.ratio_low) and abs(there.p - 0.05) > 1e-9:
        assert (there.ratio_low <= 1 <= there.ratio_high) == (there.low <= 0 <= there.high) == (there.p > 0.05)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("jobs", "phi", "skewed", "coverage", "naive"),
    [
        (8192, 0.9, False, None, 0.5),
        (8192, 0.97, False, None, 0.3),
        (8192, 0.99, False, None, 0.2),
        (8192, 0.97, True, None, 0.3),
        (2000, 0.99, False, 0.987, 0.2),
        (2000, 0.99, True, 0.938, 0.2),
        (2000, 0.995, False, 0.964, 0.2),
        (800, 0.99, False, 0.958, 0.2),
    ],
)
@pytest.mark.parametrize("difference", [0.0, -20.0])
def test_coverage_on_autoregressions_where_counting_jobs_covers_little(
    jobs: int, phi: float, skewed: bool, coverage: float | None, naive: float, difference: float
) -> None:
    """At least 0.95 on long series; on short ones the measured coverage less two standard errors."""
    rng, replicates = np.random.default_rng(11), REPLICATES if coverage is None else 5 * REPLICATES
    gaps = difference + 50 * autoregression(rng, replicates, jobs, phi, skewed=skewed)
    level = 1000 + 100 * autoregression(rng, replicates, jobs, phi)
    found = [compared(base + gap, base) for base, gap in zip(level, gaps, strict=True)]
    least = 0.95 if coverage is None else coverage - 2 * math.sqrt(coverage * (1 - coverage) / replicates)
    ratio = 1 + difference / 1000
    assert np.mean([one.ratio_low <= ratio <= one.ratio_high for one in found]) >= least
    if not difference:
        assert np.mean([one.verdict in ("better", "worse") for one in found]) <= 1 - least
    assert naive_coverage(gaps, difference) < naive


def test_a_difference_is_found_where_both_policies_share_the_congestion() -> None:
    rng = np.random.default_rng(14)
    level = 1000 * np.exp(autoregression(rng, REPLICATES, 8192, 0.99))
    noise = 1 + 0.5 * autoregression(rng, REPLICATES, 8192, 0.9)
    found = [compared(0.8 * base * factor, base) for base, factor in zip(level, noise, strict=True)]
    assert np.mean([one.ratio_low <= 0.8 <= one.ratio_high for one in found]) >= 0.95
    assert np.mean([one.verdict == "better" for one in found]) >= 0.85
    assert all(one.high < 0 for one in found if one.verdict == "better")


def test_the_same_values_are_equal() -> None:
    waits = np.arange(1000.0) % 7
    found = paired(records_of({"a": waits, "b": waits}))[0]
    assert (found.mean, found.low, found.high, found.p, found.same) == (0, 0, 0, 1, 1)
    assert (found.ratio, found.ratio_low, found.ratio_high) == (1, 1, 1)
    assert found.verdict == "equal"


def test_a_constant_ratio_is_certain() -> None:
    waits = np.random.default_rng(3).exponential(50, 2000)
    found = compared(2 * waits, waits)
    assert (found.p, found.ratio_low, found.ratio_high, found.verdict) == (0, found.ratio, found.ratio, "worse")


def test_other_users_widen_an_interval_and_never_narrow_it() -> None:
    rng = np.random.default_rng(7)
    base = 50 + rng.exponential(100, 4000)
    family = [compared(factor * base + rng.normal(0, 10, 4000), base) for factor in (0.8, 0.9)]
    assert [it.verdict for it in family] == ["better", "better"]
    wide, same = widened(family, [0.2, 1e-6], replicas=20)
    half = stats.t.ppf(0.975, 19) * 0.2
    assert math.log(wide.ratio_high / wide.ratio) == pytest.approx(half)
    assert wide.p == pytest.approx(2 * stats.t.sf(abs(math.log(wide.ratio)) / 0.2, 19))
    assert (wide.verdict, wide.high > 0) == ("no clear difference", True)
    assert (same.ratio_low, same.verdict) == (family[1].ratio_low, "better")
    assert widened(family, [9.0, 9.0], replicas=19) == family
    assert widened(family, [math.nan, math.nan], replicas=20)[0].ratio_low == family[0].ratio_low


def test_all_pairs_or_all_against_the_baseline_in_the_order_given() -> None:
    rng = np.random.default_rng(8)
    records = records_of({name: rng.exponential(50, 500) for name in "abc"})
    assert [(one.policy, one.baseline) for one in paired(records)] == [("b", "a"), ("c", "a"), ("c", "b")]
    assert [(one.policy, one.baseline) for one in paired(records, baseline="b")] == [("a", "b"), ("c", "b")]
    assert paired(records) == paired(records)


def test_verdicts_follow_the_corrected_p() -> None:
    rng = np.random.default_rng(9)
    base = 50 + rng.exponential(100, 4000)
    waits = {f"p{row}": base + rng.normal(shift, 10, 4000) for row, shift in enumerate([0.4, 0.5, 0.0, 0.3, 0.4, 1.2])}
    found = paired({**records_of({"base": base, **waits})}, baseline="base")
    assert any(one.p < 0.05 <= one.p_holm for one in found), [one.p for one in found]
    for one in found:
        assert one.p_holm >= one.p
        assert (one.verdict == "no clear difference") == (one.p_holm >= 0.05)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.5]) == [0.03, 0.04, 0.5]
    assert holm([0.04, 0.04]) == [0.08, 0.08]
    corrected = holm([0.03, math.nan, 0.9])
    assert corrected[::2] == [0.06, 0.9]
    assert math.isnan(corrected[1])
    assert holm([]) == []


def test_only_jobs_that_ran_under_both_and_were_kept_are_paired() -> None:
    jobs: list[dict[str, Any]] = [{"submit": t, "start": t + 1, "end": t + 2} for t in range(4)]
    refused: list[dict[str, Any]] = [{**jobs[0], "start": None, "end": None, "runtime": 1}, *jobs[1:]]
    records = {"a": Record.from_rows(jobs), "b": Record.from_rows(refused)}
    assert paired(records)[0].jobs == 3
    assert paired(records, rows=np.array([True, True, False, False]))[0].jobs == 1
    nobody = paired(records, rows=np.array([True, False, False, False]))[0]
    assert (nobody.jobs, nobody.verdict) == (0, "too little data")
    assert math.isnan(nobody.mean)


def test_records_of_other_jobs_and_unknown_names_are_refused() -> None:
    records = records_of({"a": np.ones(9), "b": np.ones(9)})
    wide = records_of({"c": np.ones(9)}, cores=2)
    with pytest.raises(InputError, match="'c' and 'a' are not records of the same jobs"):
        paired({**records, **wide})
    with pytest.raises(UnknownNameError, match="did you mean 'easy'"):
        paired({"easy": records["a"], "fcfs": records["b"]}, baseline="eazy")
    with pytest.raises(InputError, match="at least 2"):
        paired({"a": records["a"]})
    with pytest.raises(InputError, match="confidence"):
        paired(records, confidence=95)
    with pytest.raises(InputError, match="confidence"):
        winners_and_losers(records["a"], records["b"], size_classes(records["a"]), confidence=0)


def test_winners_and_losers_are_reported_by_group() -> None:
    rng = np.random.default_rng(10)
    cores = np.tile([1, 16], 2000)
    base = rng.exponential(100, 4000)
    records = records_of({"base": base, "new": np.where(cores == 1, 0.5 * base, 1.5 * base)}, cores=cores)
    found = winners_and_losers(records["new"], records["base"], size_classes(records["base"]), names=("new", "base"))
    assert {name: one.verdict for name, one in found.items()} == {"1": "better", "9-16": "worse"}
    assert found["1"].jobs == 2000
    assert found["1"].ratio == pytest.approx(0.5, rel=1e-6)
    assert (found["9-16"].policy, found["9-16"].baseline) == ("new", "base")
    assert found["9-16"].p_holm >= found["9-16"].p
