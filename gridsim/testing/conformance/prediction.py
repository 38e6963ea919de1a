"""Cases of predicted run times: EASY and conservative, predictions, and their effect on reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.model.time import FloatArray
from gridsim.model.workload import UNKNOWN
from gridsim.registry import Spec
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run, Unsupported
from gridsim.testing.conformance.running import PROSE, expected_of, known_only, rigid_workload

_POLICIES: dict[str, tuple[str, ...]] = {
    "easy": ("predict", "correct", "backfill_order"),
    "conservative": ("predict", "correct"),
}
_NINE_DIGITS = 1e-9
_ACCURACY = {
    "accuracy": "prediction_accuracy",
    "under": "prediction_under",
    "exact": "prediction_exact",
    "over": "prediction_over",
    "bias": "prediction_bias",
    "mean_absolute_error": "prediction_error",
    "corrections": "corrections",
    "corrected": "corrected",
}
"""The family's words for metrics."""


@dataclass
class AsRequested:
    """Predict the requested walltime; unlike plain runs, these runs have predictions that can be compared."""

    def setup(self, rng: Generator) -> None:
        """Nothing to begin."""

    def predict(self, queue: Any, now: float) -> FloatArray:
        """The estimates, s."""
        found: FloatArray = queue.estimate
        return found

    def finished(self, queue: Any, ran: FloatArray, now: float) -> None:
        """Nothing to learn."""


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """Every run of a case of kind ``schedule``."""
    known_only(case, (*PROSE, "platform", "jobs", "runs", "differences"), "the case holds")
    runs, starts = [], []
    for spec in case["runs"]:
        verdict, started = _run(case, spec)
        runs.append(verdict)
        starts.append(started)
    if "differences" in case:
        runs.append(_differences(case["differences"], starts))
    return Outcome.of(runs)


def _run(case: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[Run, Any]:
    """The verdict on one run, and its starts."""
    name, parameters = spec["algorithm"], dict(spec["parameters"])
    instant = parameters.pop("instant", "batched")
    label = "-".join([name, *map(str, parameters.values()), instant])
    try:
        if name not in _POLICIES:
            raise Unsupported("this version has no such algorithm")
        known_only(spec, ("algorithm", "parameters", "expected"), "the run holds")
        known_only(parameters, _POLICIES[name], "parameter")
        expected = spec["expected"]
        known_only(expected, ("jobs", "accuracy"), "nothing compares expected")
    except Unsupported as reason:
        return Run(name, "unsupported", (str(reason),)), None
    result = _simulated(case, name, parameters, instant)
    comparison = Comparison()
    _compare_jobs(comparison, result.jobs, expected["jobs"])
    _compare_accuracy(comparison, result.record, expected.get("accuracy", {}))
    return comparison.verdict(label), result.jobs["start"]


def _simulated(case: Mapping[str, Any], name: str, parameters: Mapping[str, Any], instant: Any) -> Any:
    from dataclasses import replace

    from gridsim.model.platform import Platform
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import simulate

    cores, jobs = case["platform"]["cores"], case["jobs"]
    workload = rigid_workload(jobs, cores="cores", machine=cores, least=1)
    users = {job["id"]: job.get("user") for job in jobs}
    known = np.array([UNKNOWN if users[job] is None else users[job] for job in workload.job.tolist()], dtype=np.int64)
    policy = make_policy(Spec(name, dict(parameters)))
    if parameters.get("predict") == "requested":
        policy = replace(policy, predict=AsRequested())
    return simulate(
        replace(workload, labels={"user": known}), platform=Platform.single(cores), policy=policy, instant=instant
    )


def _compare_jobs(comparison: Comparison, columns: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> None:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*(it.tolist() for it in columns.values()), strict=True))
    for where, word, value, row in expected_of(comparison, {row["job"]: row for row in rows}, jobs):
        if word in row:
            comparison.equal(where, row[word], value)
        elif word != "id":
            comparison.cannot(word)


def _compare_accuracy(comparison: Comparison, record: Any, expected: Mapping[str, Any]) -> None:
    from gridsim.metrics.prediction import prediction_metrics

    found = prediction_metrics(record)
    for word, value in expected.items():
        if word == "jobs":
            comparison.equal("jobs that ran", int(record.ran.sum()), value)
        elif word in _ACCURACY:
            comparison.near(word, found[_ACCURACY[word]], value, _NINE_DIGITS)
        else:
            comparison.cannot(word)


def _differences(expected: Sequence[Sequence[int]], starts: Sequence[Any]) -> Run:
    comparison = Comparison()
    for one, row in enumerate(expected):
        for other, count in enumerate(row):
            if starts[one] is None or starts[other] is None:
                comparison.cannot("differences")
            else:
                found = int((starts[one] != starts[other]).sum())
                comparison.equal(f"jobs that runs {one} and {other} start differently", found, count)
    return comparison.verdict("differences")
