"""Does a policy keep up with the load, or does its queue only grow? Then a mean wait says how long the workload is."""

from __future__ import annotations

import numpy as np

from gridsim.metrics.utilisation import arrival_window, queue_length
from gridsim.model.time import seconds
from gridsim.record import Record

__all__ = ["keeps_up"]

FIFTHS = 5
"""Parts of equal time that the interval of the submits is cut into."""

STILL_THERE = 0.5
"""Queue at the last submit over the longest one, from which on it has not gone."""

GROWTH = 1.25
"""Waiting jobs in the last two fifths over those in the first two, from which on the queue has grown."""

FULLEST = 0.9
"""Waiting jobs in the last fifth over those in the fullest one, from which on it still grows."""

DRAIN = 0.02
"""Time from the last submit to the last start, as a share of the interval of the submits, from which on it is long."""

FEWEST = 100
"""Jobs below which nothing is said."""


def keeps_up(record: Record) -> bool:
    """False where the queue still grows when the workload ends, so that waits grow with its length.

    Notes
    -----
    All of these must hold for that, over the whole record: at the last submit the queue is at least half as long as it
    ever was; it is on average at least a quarter longer in the last two fifths of the time than in the first two;
    the last fifth is within a tenth of the fullest one; and the last job starts later than the last submit by 2 % of
    the time between the first submit and the last one. A queue that rises and falls with busy weeks fails one of
    them, unless the workload ends in the longest of these: no rule can tell that from a load that is too high. The
    numbers are ours: synthetic workloads of 10,000 jobs were told right at loads of a tenth below and above what a
    policy can use, seed after seed; a policy just at its limit may be told either way.

    Examples
    --------
    >>> rows = [dict(submit=9 * t, start=10 * t, end=10 * t + 10, cores=1) for t in range(200)]
    >>> keeps_up(Record.from_rows(rows))
    False
    """
    queue = queue_length(record)
    window = arrival_window(record)
    if np.count_nonzero(record.ran) < FEWEST or not window.length > 0 or not queue.values.any():
        return True
    fifths = queue.resample(FIFTHS, *window).values[:FIFTHS]
    last_start = seconds(int(record.start_us[record.ran].max()))
    grows = (
        queue.at(window.end) >= STILL_THERE * queue.values.max()
        and fifths[-2:].sum() >= GROWTH * fifths[:2].sum()
        and fifths[-1] >= FULLEST * fifths.max()
        and last_start - window.end >= DRAIN * window.length
    )
    return not grows
