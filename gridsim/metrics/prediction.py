"""Accuracy of run-time predictions, and effect of errors on planned starts (specification of predictions, 6)."""

from __future__ import annotations

import numpy as np

from gridsim.metrics.measures import Metric
from gridsim.metrics.responsiveness import mean
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.record import Predictions, Record

PREDICTION_METRICS: dict[str, Metric] = {
    "prediction_accuracy": Metric("", "higher", "smaller over larger of first prediction and run time, mean over jobs"),
    "prediction_under": Metric("", None, "share of the jobs that ran longer than first predicted"),
    "prediction_exact": Metric("", None, "share of the jobs that ran exactly as long as first predicted"),
    "prediction_over": Metric("", None, "share of the jobs that ran shorter than first predicted"),
    "prediction_bias": Metric("s", None, "first prediction minus run time, mean over jobs"),
    "prediction_error": Metric("s", "lower", "absolute difference of first prediction and run time, mean over jobs"),
    "request_accuracy": Metric("", None, "smaller over larger of requested walltime and run time, mean over jobs"),
    "corrections": Metric("", "lower", "times that a job exceeded its predicted run time, mean over jobs"),
    "corrected": Metric("", "lower", "share of the jobs that exceeded their predicted run time"),
}
"""Metrics of jobs that ended or reached their request, if the policy predicts run times."""

PROMISE_METRICS: dict[str, Metric] = {
    "starts_late": Metric("", "lower", "share of the jobs that started after their first planned start"),
    "start_late_mean": Metric("s", "lower", "delay of late starts after the first planned start, mean"),
    "start_late_max": Metric("s", "lower", "delay of late starts after the first planned start, maximum"),
}
"""Additional metrics if the policy plans starts."""


def concerns_predictions(record: Record) -> bool:
    """Return whether run times were predicted.

    Examples
    --------
    >>> concerns_predictions(Record.from_rows([dict(submit=0, start=0, end=1, cores=1)]))
    False
    """
    return record.predictions is not None


def prediction_metrics(record: Record) -> dict[str, float]:
    """Return `PREDICTION_METRICS`, and `PROMISE_METRICS` if starts were planned.

    Parameters
    ----------
    record : Record
        Record of one-task jobs; without predictions the estimates are used.

    Returns
    -------
    dict of str to float
        Seconds and fractions; NaN if no job ran.
    """
    workload = record.workload
    ran = record.end_us < NEVER
    held = np.minimum(workload.runtime, workload.estimate)[ran]
    found = record.predictions
    if found is None:
        found = Predictions(workload.estimate, np.zeros(len(record), dtype=np.int64))
    first, corrections = found.prediction_us[ran], found.corrections[ran]
    numbers = {
        "prediction_accuracy": _accuracy(first, held),
        "prediction_under": mean(first < held),
        "prediction_exact": mean(first == held),
        "prediction_over": mean(first > held),
        "prediction_bias": mean(seconds(first - held)),
        "prediction_error": mean(seconds(np.abs(first - held))),
        "request_accuracy": _accuracy(workload.estimate[ran], held),
        "corrections": mean(corrections),
        "corrected": mean(corrections > 0),
    }
    if found.promised_us is None:
        return numbers
    late = seconds(np.maximum(0, record.start_us - found.promised_us)[ran])
    return numbers | {
        "starts_late": mean(late > 0),
        "start_late_mean": mean(late[late > 0]) if (late > 0).any() else 0.0,
        "start_late_max": float(late.max(initial=0.0)),
    }


def _accuracy(predicted: IntArray, held: IntArray) -> float:
    return mean(np.minimum(predicted, held) / np.maximum(predicted, held))
