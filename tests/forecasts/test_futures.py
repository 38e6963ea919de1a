"""Starts in futures against a golden case, and equal starts in both engines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridsim.errors import PolicyError
from gridsim.forecasts.history import History
from gridsim.forecasts.model import Future, FutureModel, Options
from gridsim.forecasts.state import FutureRuns, Machine, State
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.options import Run
from tests.test_world import Idle

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_golden_case_f04(engine: str) -> None:
    case = json.loads((GOLDEN / "f04-forecast.json").read_text())
    at, jobs = case["T"], case["now"]
    everyone = [*case["history"], *({"run": 1, "submit": it["start"] or at, **it} for it in jobs)]
    columns = {name: np.array([job[name] for job in everyone]) for name in ("submit", "run", "limit", "cores")}
    order = np.argsort(columns["submit"], kind="stable")
    log = Workload.from_columns(
        submit=columns["submit"],
        runtime=columns["run"],
        estimate=columns["limit"],
        cores=columns["cores"],
        labels={"user": [job["user"] for job in everyone]},
    )
    n = len(case["history"])
    start = np.array([NEVER if job["start"] is None else job["start"] * MICROSECOND for job in everyone])[order]
    end = np.where(order < n, start + np.minimum(log.runtime, log.estimate), NEVER)
    history = History.of(log, start, end)
    place = np.argsort(order)[n:]
    running = np.array([job["running"] for job in jobs])
    elapsed = np.array([at - job["start"] for job in jobs if job["running"]])
    state = State(at, place[running], place[~running], elapsed * MICROSECOND, [None] * len(elapsed))
    model = FutureModel(history, at, state.jobs(history), Options(horizon=case["horizon"]))
    assert [name for name, _ in model.pools] == case["pools"]
    assert [list(pair) for pair in model.groups] == case["groups"]
    runs = FutureRuns(log, state, model, Machine(Platform.single(case["machine"]), case["policy"], Run(engine=engine)))
    waiting = [str(job["job"]) for job in jobs if not job["running"]]
    samples: list[list[int]] = []
    for k, given in enumerate(case["futures"]):
        weeks = [model.weeks_back(0, (k + given["week"]) / len(case["futures"]))]
        assert weeks == [given["weeks_back"]]
        rows, _ = model.arrivals([(piece, back) for piece, back in enumerate(weeks) if back is not None])
        assert [-everyone[order[row]]["job"] for row in rows] == given["arrivals"]
        run = model.run_times(*(np.array(given[name]) for name in ("share", "value", "common")))
        assert (run - model.jobs.elapsed).tolist() == given["left"]
        known = model.arrival_runs(rows, np.zeros(len(rows)))
        future = Future(run, [(0, weeks[0])], known)
        waits = runs.waits(future, range(len(waiting))).tolist()
        assert dict(zip(waiting, waits, strict=True)) == given["starts"]
        samples.append(waits)
    for job, sample in zip(waiting, np.sort(np.array(samples), axis=0).T.tolist(), strict=True):
        assert sample == case["expected"][job]["sample"]
    requested = runs.by_requested_walltimes(range(len(waiting))).tolist()
    assert requested == [case["expected"][job]["by_requested_walltimes"] for job in waiting]


def test_a_scheduler_that_never_starts_a_job_is_an_error_and_not_a_late_start() -> None:
    log = Workload.from_columns(submit=[1], runtime=[60], cores=[4], cores_stated=4)
    never = np.array([NEVER])
    state, history = State.of(2, log.submit, never, never), History.of(log, never, never)
    model = FutureModel(history, 2, state.jobs(history), Options(horizon=3600, arrivals=False))
    for policy in ("easy", Idle()):
        runs = FutureRuns(log, state, model, Machine(Platform.single(4), policy, Run(engine="simpy")))
        if policy == "easy":
            assert runs.samples([model.future(0)], [0]).tolist() == [[0.0]]
            continue
        with pytest.raises(PolicyError, match="never started 1 jobs, job 1 first"):
            runs.samples([model.future(0)], [0])
