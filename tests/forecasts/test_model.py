"""The model of the future against golden cases, and its independence of everything later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.forecasts.history import History, drawn
from gridsim.forecasts.model import FutureModel, Jobs, Options
from gridsim.model.time import NEVER

GOLDEN = Path(__file__).parent / "golden"


def history_of(jobs: list[dict[str, Any]]) -> History:
    columns = {name: np.array([job[name] for job in jobs]) for name in ("submit", "run", "limit", "cores", "user")}
    start = np.array([job["start"] for job in jobs])
    run = np.minimum(columns.pop("run"), columns["limit"])
    return History(**columns, run=run, start=start, end=start + run, left=np.full(len(jobs), NEVER))


def test_run_times_of_golden_case_f01() -> None:
    case = json.loads((GOLDEN / "f01-run-times.json").read_text())
    jobs = [{**job, "submit": i, "start": i * 10**6, "cores": 1} for i, job in enumerate(case["ended"])]
    history = history_of(jobs)
    for query in case["queries"]:
        key = query["limit"], query["elapsed"], -1 if query["user"] is None else query["user"]
        pool, values = history.candidates(10**9, *key)
        assert (pool, values.tolist()) == (query["pool"], query["candidates"] or [])
        for u, run in query["draws"]:
            assert drawn(values, u, *key[:2]) == run


def test_arrivals_of_golden_case_f02() -> None:
    case = json.loads((GOLDEN / "f02-arrivals.json").read_text())
    history, none = history_of(case["jobs"]), np.zeros(0, dtype=np.int64)
    model = FutureModel(history, case["T"], Jobs(none, none, none), Options(horizon=case["horizon"]))
    late = np.array(case["late_uniforms"])
    for future in case["futures"]:
        weeks = [model.weeks_back(piece, u) for piece, u in enumerate(future["uniforms"])]
        assert weeks == future["weeks_back"]
        rows, at = model.arrivals([(piece, back) for piece, back in enumerate(weeks) if back is not None])
        runs = model.arrival_runs(rows, late[: len(rows)])
        found = [
            {
                "job": case["jobs"][row]["job"],
                "at": when,
                "cores": int(history.cores[row]),
                "limit": int(history.limit[row]),
                "run": run,
                "run_known": bool(history.end[row] <= case["T"]),
            }
            for row, when, run in zip(rows.tolist(), at.tolist(), runs.tolist(), strict=True)
        ]
        assert found == future["arrivals"]


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_later_changes_a_future(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, at = 600, 40 * 86_400
    submit = np.sort(rng.integers(0, 60 * 86_400, n))
    run, wait = rng.integers(1, 90_000, n), rng.integers(0, 90_000, n)
    limit = run * rng.integers(1, 4, n)
    columns = {"limit": limit, "cores": rng.integers(1, 9, n), "user": rng.integers(0, 6, n)}
    start, left = submit + wait, np.full(n, NEVER)
    history = History(submit, run, **columns, start=start, end=start + run, left=left)
    later = start > at
    end, other = start + run, start + rng.integers(1, 10**6, n)
    changed = replace(
        history,
        run=np.where(end > at, rng.integers(1, 10**5, n), run),
        start=np.where(later, NEVER, start),
        end=np.where(later, NEVER, np.where(end > at, np.maximum(other, at + 1), end)),
    )
    few = changed.submit <= at
    changed = History(**{name: column[few] for name, column in vars(changed).items() if not name.startswith("_")})
    jobs = Jobs(np.array([5, 0, 70]), np.array([900, 3600, 40_000]), np.array([1, 2, 1]))
    models = [FutureModel(it, at, jobs, Options(19, 9 * 86_400, seed)) for it in (history, changed)]
    for one, two in zip(*(model.each() for model in models), strict=True):
        copied = [model.arrivals(it.weeks) for model, it in zip(models, (one, two), strict=True)]
        both = zip((*one, *copied[0]), (*two, *copied[1]), strict=True)
        assert all(np.array_equal(*pair) for pair in both)
        assert len(one.arrival_run)
