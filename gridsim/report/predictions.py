"""What policies believed that jobs would run, and what that cost, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gridsim.model.time import NEVER, seconds
from gridsim.record import Record
from gridsim.words import duration, listed, number, percent

__all__ = ["caveats"]


def caveats(records: Mapping[str, Record], metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Of each policy that predicts run times: how well, beside the requests, and which promises broke.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from gridsim.metrics.prediction import prediction_metrics
    >>> from gridsim.record import Predictions
    >>> record = Record.from_rows([dict(submit=0, start=0, end=30, cores=1, estimate=100)])
    >>> record = replace(record, predictions=Predictions(np.array([20_000_000]), np.array([1])))
    >>> believed, cost = caveats({"easy++": record}, {"easy++": prediction_metrics(record)})
    >>> believed.partition(": ")[0]
    'Under easy++, run times were predicted with an accuracy of 0.67 (the requests have 0.30; 1 is perfect)'
    >>> cost.rpartition(", ")[2]
    '33 % of all that was held.'
    """
    knowing = [label for label, record in records.items() if record.predictions and record.predictions.oracle]
    if knowing:
        yield f"Under {listed(knowing)} plans were made with true run times, which no scheduler knows."
    for label, record in records.items():
        numbers = metrics[label]
        if record.predictions is None or record.predictions.oracle or "prediction_accuracy" not in numbers:
            continue
        requests = f"the requests have {numbers['request_accuracy']:.2f}; 1 is perfect"
        accuracy = f"{numbers['prediction_accuracy']:.2f} ({requests})"
        under = f"{percent(numbers['prediction_under'])} of the jobs ran longer than first expected"
        corrected = f"a job was corrected {numbers['corrections']:.2f} times on average"
        yield f"Under {label}, run times were predicted with an accuracy of {accuracy}: {under}, and {corrected}."
        hours, share = _beyond(record)
        shown = number(hours) if hours >= 100 else f"{hours:.3g}"
        if share:
            yield (
                f"Under {label}, jobs that outlived what was first believed of them held {shown} core-hours "
                f"beyond it, {percent(share)} of all that was held."
            )
        if numbers.get("starts_late", 0.0) > 0:
            late = f"{percent(numbers['starts_late'])} of the jobs started after their first planned start"
            by = f"{duration(numbers['start_late_mean'])} on average, at most {duration(numbers['start_late_max'])}"
            yield f"Under {label}, {late}: {by}."


def _beyond(record: Record) -> tuple[float, float]:
    """Core-hours that jobs held beyond their first predictions, and their share of all that were held."""
    assert record.predictions is not None
    ran = record.end_us < NEVER
    held, cores = (record.end_us - record.start_us)[ran], record.given[ran]
    beyond = np.maximum(0, held - record.predictions.prediction_us[ran])
    total, over = (float((seconds(each) * cores).sum()) / 3600 for each in (held, beyond))
    return over, over / total if total else 0.0
