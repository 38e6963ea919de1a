"""Numbers of one record by resource of the machine, flat and named; computed in `resources` and `stranding`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gridsim.metrics.resources import allocated, concerns_resources, only_arrivals, share_held
from gridsim.metrics.stranding import short_of, stood
from gridsim.metrics.utilisation import Interval, arrival_window, makespan_window, waits
from gridsim.model.capacity import GPU
from gridsim.model.demand import Demands
from gridsim.model.time import IntArray
from gridsim.record import Record, Requested

__all__ = ["resource_metrics", "waits_by_reason", "waits_short_of"]


def resource_metrics(
    record: Record, kept: npt.NDArray[np.bool_] | None = None, interval: Interval | None = None
) -> dict[str, float]:
    """Numbers of `gridsim.metrics.summary.RESOURCE_METRICS`; none where the machine is one pool of cores.

    Parameters
    ----------
    kept : (n,) bool, optional
        Jobs of which the waits count; all where left out.
    interval : Interval, optional
        Of means over time, s; from the first submit to the last end where left out. Of a run
        that is told of before anything has ended, the numbers are those at the last arrival.
    """
    capacity = record.capacity
    if capacity is None or not concerns_resources(record) or not len(record):
        return {}
    window, last = interval or makespan_window(record), arrival_window(record).end
    arrivals = only_arrivals(record)
    names = [name for name in capacity.resources if capacity.total(name) > 0]
    shares = {
        name: float(allocated(record, name).at(last)) / capacity.total(name)
        if arrivals
        else share_held(record, name, *window)
        for name in names
    }
    found = {f"resource_utilisation[{name}]": share for name, share in shares.items()}
    asked: Requested | Demands | None = record.requested or record.workload.demands
    if asked is not None and asked.exclusive.any():
        found |= {f"resource_used[{name}]": share_held(record, name, *window, used=True) for name in names}
    if record.requested is not None:  # node constraints of its jobs are not known, so neither is what was of no use
        shares = waits_by_reason(record, kept)
        return found | {f"waits_by_reason[{word}]": share for word, share in shares.items()}
    if capacity.nodes:
        told = stood(record, *window, at_last_arrival=arrivals)
        found |= {f"stranded[{name}]": share for name, share in told.stranded.items()}
        if GPU in names:
            found["fragmentation"], found["fragmentation_of_idle"] = told.fragmentation, told.fragmentation_of_idle
    waited = waits_short_of(record, kept)
    return found | {f"waits_short_of[{word}]": share for word, share in waited.items()}


def waits_short_of(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Share of all time that jobs waited, by what each was short of when it began to wait; the largest first.

    Words as `gridsim.metrics.stranding.short_of` has them.
    """
    begin, until, row = waits(record)
    waited = until > begin
    if kept is not None:
        owner = row if record.workload.tasks is None else record.workload.tasks.job_rows()[row]
        waited &= kept[owner]
    begin, until, row = begin[waited], until[waited], row[waited]
    if not len(row):
        return {}
    return _shares(short_of(record, row, begin), until - begin)


def waits_by_reason(record: Record, kept: npt.NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Share of all time that jobs waited, by the reason that their scheduler gives; the largest first.

    Jobs that never ran do not count.
    """
    reasons = record.reasons
    if reasons is None:
        return {}
    counted = record.ran if kept is None else record.ran & kept
    rows = counted[reasons.job]
    return _shares(np.array(reasons.words)[reasons.word[rows]], reasons.until_us[rows] - reasons.since_us[rows])


def _shares(words: npt.NDArray[np.str_], length: IntArray) -> dict[str, float]:
    total = float(length.sum(dtype=np.float64))
    found = {word: float(length[words == word].sum(dtype=np.float64)) for word in dict.fromkeys(words.tolist())}
    return {word: part / total for word, part in sorted(found.items(), key=lambda each: (-each[1], each[0])) if part}
