"""Quantiles, corrections and calibration against golden cases, and statistical laws of the intervals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gridsim.forecasts.intervals import LEVELS, Calibration, Pair, calibrated, corrections, loss, quantile, raw_interval

GOLDEN = Path(__file__).parent / "golden"


def number(value: float | None) -> float:
    return math.inf if value is None else value


def test_golden_case_f03() -> None:
    case = json.loads((GOLDEN / "f03-intervals.json").read_text())
    for given in case["quantiles"]:
        sample = np.array(given["sample"], dtype=float)
        assert {str(level): list(raw_interval(sample, level)) for level in LEVELS} == given["intervals"]
        assert quantile(sample, 0.5) == given["median"]
        assert loss(sample, 5000.0) / 2 == pytest.approx(given["pinball_of_5000"], abs=1e-6)
    for given in case["calibration"]:
        low, high, wait = np.array([[number(it) for it in pair] for pair in given["pairs"]]).T
        for level, expected in given["corrections"].items():
            share = (1 - float(level)) / 2
            if expected is None:
                assert math.ceil((len(low) + 1) * (1 - share)) > len(low)
                continue
            found = corrections(low, high, wait, (share, share), case["horizon"])
            assert found == pytest.approx((number(expected["low"]), number(expected["high"])), abs=1e-6)
            for a, b, ends in expected["of"]:
                assert calibrated((a, b), found) == pytest.approx([number(it) for it in ends], abs=1e-5)


def test_golden_case_f08() -> None:
    case = json.loads((GOLDEN / "f08-backtest.json").read_text())
    pairs = [Pair(it["T"], number(it["wait"]), np.sort(it["sample"]), np.sort(it["alike"])) for it in case["moments"]]
    found = Calibration(pairs, case["horizon"], case["gap"], calibration=case["calibration"], fewest=case["fewest"])
    for expected in case["expected"]["detail"]:
        judged = found.judged[expected["moment"]]
        assert judged is not None
        assert (judged.source, judged.pairs.tolist()) == (expected["source"], expected["pairs"])
        for level in LEVELS:
            want, got = expected[str(level)], judged.intervals[level]
            assert list(got.raw) == want["raw"]
            assert got.misses == pytest.approx(want["misses"], abs=1e-9)
            assert got.correction == pytest.approx((number(want["low"]), number(want["high"])), abs=1e-6)
            assert got.calibrated == pytest.approx([number(it) for it in want["calibrated"]], abs=1e-5)


def test_an_infinite_correction_of_a_wait_beyond_the_horizon_states_no_limit() -> None:
    assert calibrated((math.inf, math.inf), (math.inf, 0.0)) == (0.0, math.inf)


@pytest.mark.parametrize("many", [50, 200])
def test_exchangeable_pairs_are_covered_with_the_stated_probability(many: int) -> None:
    rng = np.random.default_rng(many)
    runs = 2000
    for level in LEVELS:
        share = (1 - level) / 2
        covered = 0
        for _ in range(runs):
            centre = rng.lognormal(7, 1, many + 1)
            low, high, wait = centre * 0.9, centre * 1.1, centre * rng.lognormal(0, 1, many + 1)
            correction = corrections(low[:-1], high[:-1], wait[:-1], (share, share), 1e9)
            ends = calibrated((low[-1], high[-1]), correction)
            covered += ends[0] <= wait[-1] <= ends[1]
        error = 3 * math.sqrt(level * (1 - level) / runs)
        assert level - error <= covered / runs <= level + error + 2 / (many + 1)
