"""Figures of a back-test against a golden case."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.forecasts.backtest import Backtest
from gridsim.forecasts.intervals import Pair

GOLDEN = Path(__file__).parent / "golden"


def test_golden_case_f08() -> None:
    case = json.loads((GOLDEN / "f08-backtest.json").read_text())

    def pair(it: dict[str, Any]) -> Pair:
        wait = math.inf if it["wait"] is None else it["wait"]
        return Pair(it["T"], wait, np.sort(it["sample"]), np.sort(it["alike"]), it["requested"], it["last"])

    pairs = [pair(it) for it in case["moments"]]
    how = {"gap": case["gap"], "calibration": case["calibration"], "fewest": case["fewest"]}
    found = Backtest(pairs, case["horizon"], **how).to_dict()
    for name, expected in case["expected"].items():
        if name == "detail":
            continue
        if isinstance(expected, dict):
            assert {key: found[name][key] for key in expected} == pytest.approx(expected, abs=6e-4), name
        else:
            assert found[name] == pytest.approx(expected, abs=6e-4), name
