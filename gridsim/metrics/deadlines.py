"""Metrics of deadlines: requested, guaranteed, met and refused, and the effect on other jobs.

A deadline is *requested* by a job and *granted* by a policy with guarantees, as requested or later. A policy without
guarantees may also meet a deadline. For charges see `charges`, for the machine see `utilisation`.

References
----------
Section 9 of the project's specification of deadline admission, after Islam, Balaji, Sadayappan, Panda 2003 and 2004.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gridsim.metrics.charges import CategorySlowdowns, qos_charge, resource_charge
from gridsim.metrics.groups import Groups, rows_by_group
from gridsim.metrics.responsiveness import BOUND, measure
from gridsim.model.time import NEVER, FloatArray
from gridsim.record import Record, Status

BoolArray = npt.NDArray[np.bool_]


def concerns_deadlines(record: Record) -> bool:
    """Return whether any job requests a deadline, or the policy gives guarantees."""
    promising = record.promises is not None and record.promises.guarantees
    return promising or bool(deadline_requested(record).any())


def deadline_requested(record: Record) -> BoolArray:
    """Return a mask of the jobs that request a deadline."""
    return record.workload.deadline < NEVER


def granted(record: Record) -> BoolArray:
    """Return a mask of the jobs with a guaranteed end: the requested one, a later one, or one set by the policy."""
    return np.zeros(len(record), dtype=np.bool_) if record.promises is None else record.promises.granted_us < NEVER


def refused(record: Record) -> BoolArray:
    """Return a mask of the jobs that received no guarantee from a policy with guarantees, whether they ran or not.

    Jobs that the machine can never run are rejected, not refused.
    """
    turned_away: BoolArray = record.status == Status.unadmitted
    if record.promises is None or not record.promises.guarantees:
        return turned_away
    considered: BoolArray = ~np.isin(record.status, (Status.rejected, Status.cancelled))
    return turned_away | (considered & ~granted(record))


def met(record: Record) -> BoolArray:
    """Return a mask of the jobs that ended by their requested deadline, guaranteed or not.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=t, end=t + 5) for t in (0, 5, 6)])
    >>> record.workload.deadline[:] = 10_000_000
    >>> met(record).tolist()
    [True, True, False]
    """
    kept: BoolArray = record.ran & (record.end_us <= record.workload.deadline)
    return deadline_requested(record) & kept


def missed(record: Record) -> BoolArray:
    """Return a mask of the jobs that ran and ended after their requested deadline, even if a later one was granted."""
    late: BoolArray = record.ran & (record.end_us > record.workload.deadline)
    return late


def broken(record: Record) -> BoolArray:
    """Return a mask of broken guarantees: reported by the policy, or with an end later than granted."""
    if record.promises is None:
        return np.zeros(len(record), dtype=np.bool_)
    late: BoolArray = record.ran & (record.end_us > record.promises.granted_us)
    return granted(record) & (record.promises.broken | late)


def offered(record: Record) -> BoolArray:
    """Return a mask of the jobs that were offered a later deadline than requested."""
    return np.zeros(len(record), dtype=np.bool_) if record.promises is None else record.promises.offer_us < NEVER


def taken(record: Record) -> BoolArray:
    """Return a mask of the jobs that accepted the offered later deadline."""
    if record.promises is None:
        return np.zeros(len(record), dtype=np.bool_)
    same: BoolArray = record.promises.granted_us == record.promises.offer_us
    return offered(record) & same


def deadline_metrics(
    record: Record, *, bound: float = BOUND, slowdowns: CategorySlowdowns | None = None
) -> dict[str, float]:
    """Return `gridsim.metrics.summary.DEADLINE_METRICS` of a record.

    Parameters
    ----------
    bound : float
        Bound of the bounded slowdown, s.
    slowdowns : CategorySlowdowns, optional
        Slowdowns of an EASY schedule, for the QoS charge; NaN by default.

    Notes
    -----
    Core-seconds of jobs are cores times true run time, also for jobs that did not run. A share of zero jobs is NaN.
    For useful utilisation, which refers to an interval, see `gridsim.metrics.utilisation.useful_utilisation`.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=t, end=t + 5) for t in (0, 5, 6)])
    >>> record.workload.deadline[:2] = 10_000_000, 9_000_000
    >>> numbers = deadline_metrics(record)
    >>> numbers["deadline_jobs"], numbers["deadline_met"], numbers["non_deadline_response_mean"]
    (2.0, 1.0, 11.0)
    """
    wanted, area = deadline_requested(record), record.workload.area
    numbers = {"deadline_jobs": _count(wanted), "deadline_area": float(area[wanted].sum())}
    for name, chosen in (
        ("unadmitted", wanted & refused(record)),
        ("guaranteed", wanted & granted(record)),
        ("met", met(record)),
    ):
        numbers |= _of(f"deadline_{name}", chosen, wanted, area)
    late = missed(record)
    numbers["deadline_missed"] = _count(late)
    numbers["deadline_missed_share"] = _share(_count(late), _count(wanted & record.ran))
    return numbers | _promises(record) | _others(record, bound) | _charges(record, slowdowns)


OUTCOMES = ("guaranteed", "guaranteed later", "met without a guarantee", "missed", "rejected")
"""Outcomes of a requested deadline."""


def outcomes(record: Record, rows: Any = slice(None)) -> dict[str, int]:
    """Count the jobs with a deadline by `OUTCOMES`, among the *rows* (mask, slice or indices).

    The deadline is guaranteed as requested or later; or, without a guarantee, met, missed, or rejected (the job did not
    run).

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=t, end=t + 5) for t in (0, 5, 6)])
    >>> record.workload.deadline[:] = 10_000_000
    >>> outcomes(record)["met without a guarantee"], outcomes(record)["missed"]
    (2, 1)
    """
    wanted, promised = deadline_requested(record), granted(record)
    later, alone = taken(record), ~promised
    parts = (promised & ~later, later, alone & met(record), alone & missed(record), alone & ~record.ran)
    return {name: int(np.count_nonzero((wanted & part)[rows])) for name, part in zip(OUTCOMES, parts, strict=True)}


def _of(name: str, chosen: BoolArray, among: BoolArray, area: FloatArray) -> dict[str, float]:
    """Return number and core-seconds of the *chosen* jobs, and their shares of those *among* which they are counted."""
    count, work = _count(chosen), float(area[chosen].sum())
    return {
        name: count,
        f"{name}_share": _share(count, _count(among)),
        f"{name}_area": work,
        f"{name}_area_share": _share(work, float(area[among].sum())),
    }


def _promises(record: Record) -> dict[str, float]:
    doublings = 0 if record.promises is None else int(record.promises.doublings.sum())
    return {
        "promises_made": _count(granted(record)),
        "promises_broken": _count(broken(record)),
        "offers_made": _count(offered(record)),
        "offers_taken": _count(taken(record)),
        "doublings": float(doublings),
        "kills": float(record.kills.sum()),
        "lost_area": float(record.lost.sum()),
    }


def _others(record: Record, bound: float) -> dict[str, float]:
    """Return the mean metrics of jobs without a deadline, over those that ran."""
    others = ~deadline_requested(record)
    served = others & record.ran
    means = {
        f"non_deadline_{name}_mean": float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")
        for name in ("response", "slowdown", "bounded_slowdown")
        for values in (measure(record, name, bound)[served],)
    }
    return {"non_deadline_jobs": _count(others)} | means


def _charges(record: Record, slowdowns: CategorySlowdowns | None) -> dict[str, float]:
    quality = float("nan") if slowdowns is None else float(qos_charge(record, slowdowns).sum())
    return {"resource_charge": float(resource_charge(record).sum()), "qos_charge": quality}


def _count(chosen: BoolArray) -> float:
    return float(np.count_nonzero(chosen))


def _share(part: float, of: float) -> float:
    return part / of if of else float("nan")


def terciles(record: Record, of: Literal["runtime", "area"]) -> Groups:
    """Return thirds of the jobs by true run time or core-seconds, smallest first, ties in job order.

    For thirds of a part of the jobs, select these first.

    Examples
    --------
    >>> record = Record.from_rows([dict(submit=0, start=0, end=end) for end in (9, 2, 5, 7, 1, 3)])
    >>> terciles(record, "runtime").index.tolist()
    [2, 0, 1, 2, 0, 1]
    """
    values = record.workload.runtime if of == "runtime" else record.workload.area
    words = ("shortest", "longest") if of == "runtime" else ("lightest", "heaviest")
    index = np.empty(len(record), dtype=np.int64)
    for part, own in enumerate(np.array_split(np.argsort(values, kind="stable"), 3)):
        index[own] = part
    return Groups(of, (f"{words[0]} third", "middle third", f"{words[1]} third"), index)


def by_group(
    record: Record,
    groups: Groups,
    *,
    bound: float = BOUND,
    slowdowns: CategorySlowdowns | None = None,
    rows: Any = None,
) -> dict[str, dict[str, float]]:
    """Return `deadline_metrics` of each group that has jobs, by name.

    Parameters
    ----------
    groups : Groups
        `terciles`, `gridsim.metrics.charges.categories`, or any of `gridsim.metrics.groups`.
    bound, slowdowns
        As in `deadline_metrics`.
    rows : mask, slice or indices, optional
        Jobs to count.
    """
    return {
        name: deadline_metrics(record.select(own), bound=bound, slowdowns=slowdowns)
        for name, own in rows_by_group(groups, rows).items()
    }
