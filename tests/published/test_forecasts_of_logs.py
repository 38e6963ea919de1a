"""Forecasts at many moments of logs of the Parallel Workloads Archive and of generated ones, compared with the truth.

The bounds are those of the specification; its numbers come from an independent implementation with other random draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.forecasts.answers import forecaster_of
from gridsim.forecasts.model import Options
from gridsim.model.time import MICROSECOND, seconds, to_us
from gridsim.policy.site_policy import machine
from gridsim.report.forecast_text import WRONG_POLICY, backtest_sentences
from gridsim.workload.synthetic.lublin import Lublin
from tests.forecasts.states import starts_from

SDSC, CTC = "SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln"
GENERATED = "generated"
DRAWN = Lublin(jobs=20_000, cores=128, load=0.75, users=20)

Others = Callable[[str], Path]


def read(name: str, others: Others, jobs: int | None = None) -> gs.Workload:
    log = DRAWN.generate(3) if name == GENERATED else gs.read_workload(others(f"swf/{name}.swf.gz"))
    return log.select(slice(0, jobs))


def published(*values: Any) -> Any:
    """A case that reads third-party data, which is long."""
    return pytest.param(*values, marks=[pytest.mark.others, pytest.mark.long])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


SHORT = {"moments": 200, "futures": 39, "horizon": 2 * 86_400}
WHOLE = {"moments": 600}


@pytest.mark.parametrize(
    ("name", "how", "largest_loss", "skills"),
    [
        (GENERATED, SHORT, 8.0, {"requested": 0.5, "alike": 0.1}),
        published(SDSC, WHOLE, 1.05 * 2.859, {"requested": 0.75, "alike": 0.45}),
        published(CTC, WHOLE, 1.05 * 1.896, {"requested": 0.75, "alike": 0.45}),
    ],
)
def test_intervals_cover_as_stated_and_the_loss_is_below_that_of_the_baselines(
    name: str, how: dict[str, Any], largest_loss: float, skills: dict[str, float], others: Others
) -> None:
    found = gs.backtest_forecasts(read(name, others), state="simulated", seed=1, policy="easy", **how).to_dict()
    print(name, found)
    assert 0.85 <= found["90%"]["calibrated"] <= 0.96
    assert 0.70 <= found["80%"]["calibrated"] <= 0.88
    assert found["pinball_h"]["forecast"] <= largest_loss
    for baseline, least in skills.items():
        assert found["skill"][baseline][0] >= least, baseline
    assert found["by_futures"] == found["tests"] >= how["moments"] // 4
    assert WRONG_POLICY not in backtest_sentences(found)


def in_random_order(log: gs.Workload) -> gs.Workload:
    """The log with the schedule of a policy that selects jobs at random as its recorded one."""
    record = gs.simulate(log, policy="backfilling?ordering=random&reserve=easy").record
    return replace(log, logged={"wait": seconds(record.start_us - log.submit)})


@pytest.mark.parametrize(
    ("name", "how", "coverage", "error", "expected"),
    [
        (GENERATED, {**SHORT, "futures": 19}, 0.9, 0.04, None),
        published(SDSC, {"moments": 500}, 0.885, 0.018, (296, 13.5)),
    ],
)
def test_the_output_states_that_a_wrong_policy_does_not_beat_the_waits_of_similar_jobs(
    name: str, how: dict[str, Any], coverage: float, error: float, expected: tuple[int, float] | None, others: Others
) -> None:
    """Not EASY made the recorded schedules."""
    log = read(name, others)
    log = in_random_order(log) if name == GENERATED else log
    found = gs.backtest_forecasts(log, state="recorded", seed=1, policy="easy", **how).to_dict()
    print(name, found)
    assert abs(found["90%"]["calibrated"] - coverage) <= 3 * error
    assert found["pinball_h"]["forecast"] < found["pinball_h"]["futures"]
    if expected is not None:
        assert found["tests"] == expected[0]
        assert found["pinball_h"]["forecast"] == pytest.approx(expected[1], rel=0.05)
    printed = list(backtest_sentences(found))
    assert any("no significant difference to the quantiles of the waits of similar jobs" in line for line in printed)
    assert WRONG_POLICY in printed


@pytest.mark.parametrize(("name", "moments"), [(GENERATED, 10), published(SDSC, 100), published(CTC, 100)])
def test_no_cold_start(name: str, moments: int, others: Others) -> None:
    """The state of a run and the true future give the starts of the whole run."""
    log = read(name, others, 2_000 if name == GENERATED else 20_000)
    platform, compared = machine(log), 0
    whole = gs.simulate(log, platform=platform, policy="easy").record
    first, last = (int(at) // MICROSECOND for at in log.submit[[0, -1]])
    for at in np.linspace(first, last, moments).astype(int).tolist():
        found, expected, waiting = starts_from(at, whole, platform, "easy", "compiled")
        assert found == expected, at
        compared += waiting
    print(name, compared, "waiting jobs")
    assert compared >= 5 * moments


@pytest.mark.parametrize(
    ("name", "jobs", "moments", "least"), [(GENERATED, 12_000, 12, 5), published(SDSC, 30_000, 200, 60)]
)
def test_shapes_that_are_said_to_start_earlier_do_so(
    name: str, jobs: int, moments: int, least: int, others: Others
) -> None:
    """Half of the cores or half of the limit, checked by the whole log with the changed job."""
    log = read(name, others, jobs)
    forecaster = forecaster_of(log, "easy", None, gs.Run(), Options(source="simulated"))
    forecaster = replace(forecaster, moments=moments)
    stated, true = 0, 0
    for at, row in forecaster.judged(moments):
        cores, limit = int(log.cores[row]), float(seconds(log.estimate[row]))
        state = forecaster.state(at)
        place = state.waiting.tolist().index(row)
        for shape in forecaster.shapes(state, place, [(max(1, cores // 2), limit), (cores, max(1.0, limit // 2))]):
            if not shape.clearly:
                continue
            changed = {"cores": log.cores.copy(), "estimate": log.estimate.copy()}
            changed["cores"][row], changed["estimate"][row] = shape.cores, to_us(shape.limit)
            start = gs.simulate(replace(log, **changed), platform=forecaster.machine.platform, policy="easy").record
            stated += 1
            true += bool(start.start_us[row] <= forecaster.start[row] - 60 * MICROSECOND)
    print(name, true, "of", stated)
    assert stated >= least
    assert true >= 0.85 * stated
