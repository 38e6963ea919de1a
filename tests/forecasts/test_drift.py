"""Forecasts calibrated on planted earlier ones: a drift is reported, and too few of them state no coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.forecasts.answer import Answer
from gridsim.forecasts.forecaster import Forecaster
from gridsim.forecasts.intervals import LEVELS, Pair
from gridsim.forecasts.new_job import NewJob
from gridsim.report.forecast_text import is_low, sentence, sentences

DAY = 86_400
AT, HORIZON = 30 * DAY, 2 * DAY
LAST = 100


def quiet_log() -> gs.Workload:
    """One job runs at the moment on the whole machine; the new one waits behind it."""
    hours = np.arange(0, AT // 3600 + 1, 40)
    at = (hours * 3600).tolist()
    columns: dict[str, Any] = {"runtime": [1800] * len(at), "cores": [8] * len(at), "labels": {"user": [0] * len(at)}}
    return gs.Workload.from_columns(submit=at, **columns, cores_stated=8)


def planted(seed: int, many: int, late: int | None = None) -> list[Pair]:
    """Exchangeable earlier forecasts, an hour apart; of the last 100, a minute apart, *late* ones wait too long.

    The waits of the last 100 are longer than the time between their moments: none of them can correct the others.
    """
    rng = np.random.default_rng(seed)
    last = AT - HORIZON - 60 * np.arange(LAST if late is not None else 0)[::-1]
    first = AT - 2 * HORIZON - 3600 * np.arange(many - len(last))[::-1]
    centre = rng.lognormal(10, 0.3, many)
    sample = np.sort(centre[:, np.newaxis] * rng.lognormal(0, 0.3, (many, 19)))
    wait = centre * rng.lognormal(0, 0.3, many)
    if late is not None:
        wait[-LAST:] = np.maximum(sample[-LAST:, 9], 60 * LAST + 1)
        wait[many - LAST + rng.permutation(LAST)[:late]] = 1.5 * HORIZON
    moments = np.concatenate([first, last]).tolist()
    none = np.zeros(0)
    return [Pair(at, true, values, none) for at, true, values in zip(moments, wait.tolist(), sample, strict=True)]


def forecast_after(pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The forecast of a new job whose earlier forecasts are the planted ones."""
    monkeypatch.setattr(Forecaster, "pairs", lambda *_: pairs)
    new = NewJob(8, 3600.0, {"user": 0})
    found = gs.forecast(quiet_log(), at=AT, new=new, horizon=HORIZON, futures=19, arrivals=False, state="simulated")
    assert found.jobs[0].median == 1800
    return found


@pytest.mark.parametrize("late", [5, 15, 25, 40, 70])
def test_a_drift_is_reported(late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observed share replaces the level if it is more than three standard errors below it."""
    answer = forecast_after(planted(late, 400, late), monkeypatch)
    (job,) = answer.jobs
    assert job.pairs == 200
    (printed,) = sentences(answer)
    assert printed == sentence(answer, job)
    for level in LEVELS:
        hits, many = job.observed[level]
        assert (hits, many) == (LAST - late, LAST) or (level == 0.5 and LAST - late - 10 < hits < many - late)
        low = hits / many < level - 3 * math.sqrt(level * (1 - level) / many)
        assert is_low(level, hits, many) == low
        stated = hits if low else round(100 * level)
        text = sentence(answer, job, level)
        assert f" with {stated} % probability (calibrated on 200 earlier forecasts)" in text
        assert f"Of the last 100 such forecasts {hits} contained the start." in text
    assert ("with 90 % probability" in printed) == (late < 20)
    assert answer.to_dict()["jobs"][0]["observed"]["90%"] == [LAST - late, LAST]


@pytest.mark.parametrize("seed", range(5))
def test_without_a_drift_the_level_is_stated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = forecast_after(planted(seed, 400), monkeypatch)
    (job,) = answer.jobs
    for level in LEVELS:
        hits, many = job.observed[level]
        assert many == LAST
        assert abs(hits / many - level) <= 3 * math.sqrt(level * (1 - level) / many)
        assert f" with {100 * level:.0f} % probability (calibrated on 200 " in sentence(answer, job, level)


@pytest.mark.parametrize("many", [0, 1, 49, 50])
def test_below_50_earlier_forecasts_no_coverage_is_stated(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = forecast_after(planted(1, many), monkeypatch)
    (job,) = answer.jobs
    text = sentence(answer, job)
    assert job.known == many
    assert ("probability" in text) == (many == 50) == (job.pairs == 50)
    assert ("in 90 % of the futures (not calibrated" in text) == (many < 50)
    assert (f"{many} earlier forecasts, 50 needed" in text) == (0 < many < 50)
