"""Custom models of the future: equal to the built-in model where they copy it, blind to later data, and checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError, PolicyError
from gridsim.forecasts.answers import forecaster_of
from gridsim.forecasts.custom_model import Drawn, KnownJobs, custom_model
from gridsim.forecasts.model import Options
from gridsim.model.capacity import NodeGroup
from gridsim.model.failures import FailureModel, Failures
from gridsim.model.time import MICROSECOND
from gridsim.model.windows import Window
from tests.forecasts.test_answers import AT, DAY, busy_log

EXAMPLE = f"{Path(__file__).parents[2]}/scenarios/examples/poisson_future.py:PoissonFuture"

GROUP = NodeGroup(group="n", count=8, capacity={"cores": 1}, names=tuple(f"n{i}" for i in range(8)))
NODES = gs.Platform.of_nodes([GROUP])


def forecast(log: gs.Workload, **how: Any) -> Any:
    return gs.forecast(log, **{"at": AT, "futures": 19, "calibrate": False, "horizon": 2 * DAY, **how})


@dataclass
class AsRequested:
    """All jobs run for their limits, and none arrive: every future is the forecast by requested walltimes."""

    def future(self, jobs: KnownJobs, at: int, horizon: int, rng: np.random.Generator) -> Drawn:
        elapsed = np.concatenate([jobs.elapsed, np.zeros(len(jobs.waiting), dtype=np.int64)])
        limit = jobs.limit[np.concatenate([jobs.running, jobs.waiting])]
        none = np.zeros(0, dtype=np.int64)
        return Drawn(np.where(limit > elapsed, limit, elapsed + 30), none, none, none)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_limits_as_run_times_give_the_forecast_by_requested_walltimes(engine: str) -> None:
    found = forecast(busy_log(), model=AsRequested(), options=gs.Run(engine=engine), horizon=20 * DAY)
    assert len(found.jobs) > 3
    assert [it.median for it in found.jobs] == [it.requested for it in found.jobs]
    assert (found.samples == found.samples[0]).all()


def test_a_model_of_a_file_gets_no_data_from_after_the_moment() -> None:
    log = busy_log()
    first = forecast(log, model=EXAMPLE)
    assert len({tuple(row) for row in first.samples.tolist()}) > 10
    assert not np.array_equal(first.samples, forecast(log).samples)
    record = gs.simulate(log, policy="easy").record
    later = record.end_us > AT * MICROSECOND
    elapsed = np.maximum(AT * MICROSECOND - record.start_us, 0) + MICROSECOND
    changed = replace(log, runtime=np.where(later, np.maximum(log.runtime // 3, elapsed), log.runtime))
    known = changed.select(log.submit <= AT * MICROSECOND)
    assert np.array_equal(forecast(known, model=EXAMPLE).samples, first.samples)
    assert np.array_equal(forecast(log, model=EXAMPLE, workers=2).samples, first.samples)


def test_a_model_and_its_parameters_are_part_of_the_key_of_kept_forecasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    log = busy_log()
    for many, model in enumerate((None, EXAMPLE, f"{EXAMPLE}?weeks=2", None), 1):
        made = Options(futures=19, source="simulated", model=custom_model(model))
        forecaster = forecaster_of(log, "easy", None, gs.Run(), made)
        forecaster.pairs(forecaster.calibrating(AT)[:1])
        assert len([*tmp_path.rglob("*.pairs")]) == min(many, 3)


def test_arrivals_of_a_model_can_be_left_out_and_the_answer_names_the_model() -> None:
    found = forecast(busy_log(), model=EXAMPLE, arrivals=False)
    assert "the model of the future is PoissonFuture(weeks=4)" in found.notes
    assert "later arrivals are left out" in found.notes
    assert not np.array_equal(found.samples, forecast(busy_log(), model=EXAMPLE).samples)
    first, second = (forecast(busy_log(), model=EXAMPLE, policy="fcfs", arrivals=it).samples for it in (True, False))
    assert np.array_equal(first, second)  # under FCFS later jobs delay none of those that wait


WRONG: dict[str, tuple[Any, str]] = {
    "no tuple": (3, "returns a int"),
    "three columns": ((1, 2, 3), "returns a tuple"),
    "too short": (lambda run: (run[:-1], [], [], []), "returns 'run' of shape"),
    "no numbers": (lambda run: (run, ["a"], [1], [1]), "returns 'like' that is not numeric"),
    "too large for a float": (lambda run: (run, [0], [10**400], [1]), "returns 'after' that is not numeric"),
    "not a number": (lambda run: (np.where(run > 0, np.nan, run), [], [], []), "returns nan as 'run' number 0"),
    "already over": (lambda run: (run * 0 + 1, [], [], []), "as 'run' number 0; expected"),
    "later job": (lambda run: (run, [10**6], [1], [1]), "returns 1e+06 as 'like' number 0; expected 0 to"),
    "before the moment": (lambda run: (run, [0], [0], [1]), "returns 0 as 'after' number 0; expected 1 to 172800"),
    "no run time": (lambda run: (run, [0], [5], [0]), "returns 0 as 'arrival_run' number 0; expected 1 to"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_model_returns_is_checked(case: str) -> None:
    answer, message = WRONG[case]

    class Wrong:
        def future(self, *given: Any) -> Any:
            return answer(np.asarray(AsRequested().future(*given).run)) if callable(answer) else answer

    with pytest.raises(PolicyError, match="Wrong.*" + message.replace("+", r"\+")):
        forecast(busy_log(), model=Wrong())


def test_a_model_without_the_method_is_an_error() -> None:
    with pytest.raises(InputError, match="has no method 'future'"):
        forecast(busy_log(), model=f"{EXAMPLE.partition(':')[0].replace('poisson_future', 'regression')}:Regression")


def test_random_failures_differ_between_futures() -> None:
    """Without other differences between futures, starts differ by failures only; a workload of nodes is needed."""
    log = busy_log()
    how: dict[str, Any] = {"model": AsRequested(), "platform": NODES, "futures": 19}
    assert len({tuple(it) for it in forecast(log, **how).samples.tolist()}) == 1
    failing = gs.Run(failures=Failures(models=[FailureModel(mtbf=10 * DAY, mttr=DAY)]))
    found = forecast(log, options=failing, **how)
    assert len({tuple(it) for it in found.samples.tolist()}) > 5
    assert np.array_equal(forecast(log, options=failing, workers=2, **how).samples, found.samples)


def test_failures_and_windows_are_on_the_clock_of_the_log() -> None:
    """An absence of all nodes from the moment on for three days delays every start; interrupted jobs go first."""
    log, nodes = busy_log(), list(GROUP.names)
    how: dict[str, Any] = {"platform": NODES, "model": AsRequested(), "horizon": 20 * DAY}
    absent = [
        Failures(trace=[(nodes, AT, AT + 3 * DAY)]),
        Failures(windows=[Window(nodes, AT - DAY, AT + 3 * DAY, announced=0)]),
        Failures(windows=[Window(nodes, AT, AT + 9 * DAY, deleted=AT + 3 * DAY)]),
    ]
    delayed = [forecast(log, options=gs.Run(failures=failures), **how).samples for failures in absent]
    assert delayed[0].min() >= 3 * DAY > forecast(log, **how).samples.min()
    assert np.array_equal(delayed[0], delayed[1])
    assert np.array_equal(delayed[0], delayed[2])
    for failures in (Failures(trace=[(nodes, 0, AT)]), Failures(windows=[Window(nodes, 0, AT)])):
        over = forecast(log, options=gs.Run(failures=failures), **how)
        assert np.array_equal(over.samples, forecast(log, **how).samples)
