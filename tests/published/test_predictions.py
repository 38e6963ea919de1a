"""Published schedules by predicted run times: every start, every first prediction, every number of corrections."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.testing.conformance import CASES, read_cases

Others = Callable[[str], Path]
Columns = dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]
FOLDER = "reference/predictsim-kth"
PLACES = {
    "job": 0,
    "submit": 1,
    "wait": 2,
    "runtime": 3,
    "cores": 4,
    "estimate": 8,
    "user": 11,
    "last": 16,
    "first": 17,
}
EXACT = "predictorclairvoyant_throw_an_error"
SCHEDULES = {
    "easy": ("easy_backfill_scheduler_None_None", "92.576540"),
    "easy?predict=clairvoyant": (f"easy_prediction_backfill_scheduler_{EXACT}", "71.722385"),
    "sjbf?predict=clairvoyant": (f"easy_plus_plus_scheduler_{EXACT}", "49.847719"),
    "easy++": ("easy_plus_plus_scheduler_predictortsafrir_tsafrir", "63.500677"),
}
FIGURES = {
    "sjbf": "69.405401",
    "easy++?correct=request": "62.856883",
    "easy++?correct=double(cap=False)": "64.527474",
}


def published(path: Path) -> Columns:
    """Columns of a published schedule, by submit time."""
    with gzip.open(path, "rt") as file:
        rows = np.array([line.split() for line in file if line.strip() and line[0] != ";"], dtype=float)
    rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))].astype(np.int64)
    return {name: rows[:, place] for name, place in PLACES.items()}


def jobs_of(columns: Columns) -> gs.Workload:
    names = ("job", "submit", "runtime", "cores", "estimate")
    return gs.Workload.from_columns(**{it: columns[it] for it in names}, labels={"user": columns["user"]})


def simulated(jobs: gs.Workload, policy: str, cores: int = 100) -> gs.Result:
    return gs.simulate(jobs, platform=gs.Platform.single(cores), policy=policy, instant="per-event")


def drawn(jobs: int) -> gs.Workload:
    """Jobs of five users; the jobs of each user have similar lengths."""
    rng = np.random.default_rng(2)
    user = rng.integers(0, 5, jobs)
    runtime = np.maximum(1, (rng.exponential(1.0, jobs) * 10.0 ** (user / 2 + 1)).astype(np.int64))
    return gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, jobs * 100, jobs)),
        runtime=runtime,
        estimate=runtime * rng.integers(1, 20, jobs),
        cores=rng.integers(1, 61, jobs),
        labels={"user": user},
    )


def of_a_golden_case() -> tuple[Columns, int]:
    """The run of EASY++ in the golden case of thirty jobs, as a published schedule; cores of its machine."""
    (case,) = (case for _, case in read_cases([CASES / "prediction" / "p14-mixed-30.json"]))
    wanted = {"predict": "recent(n=2)", "correct": "steps", "backfill_order": "shortest", "instant": "per-event"}
    (run,) = (run for run in case["runs"] if run["parameters"] == wanted)
    jobs = sorted(case["jobs"], key=lambda job: (job["submit"], job["id"]))
    found = {job["id"]: job for job in run["expected"]["jobs"]}
    columns = {name: [-1 if job.get(name) is None else job[name] for job in jobs] for name in PLACES if name in jobs[0]}
    columns["job"] = [job["id"] for job in jobs]
    columns["wait"] = [found[job["id"]]["start"] - job["submit"] for job in jobs]
    columns["first"] = [found[job["id"]]["prediction"] for job in jobs]
    columns["last"] = [found[job["id"]]["corrections"] - 1 for job in jobs]
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items()}, case["platform"]["cores"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("source", "policy"),
    [("golden", "easy++"), *(pytest.param("KTH", name, marks=pytest.mark.others) for name in SCHEDULES)],
)
def test_every_start_prediction_and_correction_is_as_published(others: Others, source: str, policy: str) -> None:
    name, mean = SCHEDULES[policy]
    golden = source == "golden"
    columns, cores = of_a_golden_case() if golden else (published(others(f"{FOLDER}/res_{name}.swf.gz")), 100)
    result = simulated(jobs_of(columns), policy, cores)
    assert result.jobs["start"].tolist() == (columns["submit"] + columns["wait"]).tolist()
    assert golden or f"{result.metrics()['bounded_slowdown_mean']:.6f}" == mean
    if result.record.predictions is not None:
        known = columns["first"] > 0
        assert result.jobs["prediction"][known].tolist() == columns["first"][known].tolist()
        assert result.jobs["corrections"].tolist() == (columns["last"] + 1).tolist()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("source", "policy", "mean"),
    [
        *(pytest.param("KTH", policy, mean, marks=pytest.mark.others) for policy, mean in FIGURES.items()),
        ("generated", "sjbf", "68.047687"),
        ("generated", "easy++?correct=request", "72.306755"),
        ("generated", "easy++?correct=double(cap=False)", "82.800391"),
    ],
)
def test_figures_published_without_their_schedules_are_met(others: Others, source: str, policy: str, mean: str) -> None:
    if source == "generated":
        jobs = drawn(2000)
    else:
        jobs = jobs_of(published(others(f"{FOLDER}/res_easy_backfill_scheduler_None_None.swf.gz")))
    assert f"{simulated(jobs, policy).metrics()['bounded_slowdown_mean']:.6f}" == mean
