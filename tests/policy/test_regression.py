"""The learning predictor of the examples: better than requests if users are predictable, and without future data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.scenario import Scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "scenarios" / "examples"
REGRESSION = f"easy++?predict={EXAMPLES}/regression.py:Regression"


def log(seed: int, jobs: int = 800) -> gs.Workload:
    """Return jobs of users whose run times follow user and cores within a third; requests are far above that."""
    rng = np.random.default_rng(seed)
    user, cores = rng.integers(0, 12, jobs), rng.integers(1, 17, jobs)
    typical = 300.0 * 1.5 ** (user % 6) * cores**0.5
    runtime = np.maximum(typical * rng.lognormal(0.0, 0.3, jobs), 1.0).round()
    return gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, jobs * 900, jobs)),
        runtime=runtime,
        estimate=np.maximum(runtime, 36_000.0),
        cores=cores,
        labels={"user": user},
    )


def ran(workload: gs.Workload, text: Any) -> gs.Result:
    return gs.simulate(workload, platform=gs.Platform.single(cores=32), policy=text)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_learns_what_users_and_sizes_report(seed: int) -> None:
    learned, recent = (ran(log(seed), text).metrics() for text in (REGRESSION, "easy++"))
    assert learned["prediction_accuracy"] > 0.65  # 0.79 is the best value for such run times
    assert learned["prediction_accuracy"] > recent["prediction_accuracy"] > learned["request_accuracy"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_prediction_is_reported_by_a_run_that_has_not_ended(seed: int) -> None:
    before = log(seed)
    first = ran(before, REGRESSION)
    instant = int(first.record.end_us[len(before) // 2])
    later = first.record.end_us > instant  # all these have other run times, and end after the instant
    runtime = np.where(later, before.estimate, before.runtime) / 1e6
    changed = gs.Workload.from_columns(
        submit=before.submit / 1e6,
        runtime=runtime,
        estimate=before.estimate / 1e6,
        cores=before.cores,
        labels=dict(before.labels),
    )
    again = ran(changed, REGRESSION)
    come = before.submit <= instant
    assert min(np.count_nonzero(come), np.count_nonzero(~come), np.count_nonzero(come & later)) >= 1
    assert again.jobs["prediction"][come].tolist() == first.jobs["prediction"][come].tolist()
    assert again.jobs["prediction"].tolist() != first.jobs["prediction"].tolist()  # later jobs, learned differently


def test_the_recipe_plans_with_what_is_learned() -> None:
    scenario = Scenario.from_toml(EXAMPLES / "learned-run-times.toml")
    numbers = scenario.run().metrics()
    assert numbers["corrections"] > 0
    assert numbers["wait_mean"] != Scenario.from_toml(EXAMPLES / "baseline.toml").run().metrics()["wait_mean"]
