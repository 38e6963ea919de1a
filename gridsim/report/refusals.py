"""Who is turned away, and what became of jobs above a limit: told before and beside whose waits are shortest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gridsim.metrics.agreement import ModelFailures, model_failures
from gridsim.model.time import NEVER
from gridsim.record import Record, Status
from gridsim.report import admission
from gridsim.words import counted, listed, number, percent

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence

__all__ = ["NOTABLE", "answer", "caveats", "failures", "refused"]

NOTABLE = 0.01
"""Share of the jobs by which a policy has to turn away more than another one for the answer to begin with it."""

_MOST = 3
_HOUR = 3600.0


def refused(comparison: Evidence) -> dict[str, int]:
    """How many jobs each policy rejects; failures of the model of the site are not counted."""
    return {label: int(numbers["unadmitted"] + numbers["rejected"]) for label, numbers in comparison.metrics.items()}


def answer(comparison: Evidence) -> list[str]:
    """Who turns away notably more jobs than another policy; nothing where all run about as many.

    Deadlines are answered for elsewhere, with what is refused for them.
    """
    turned, jobs = refused(comparison), comparison.metrics[comparison.baseline]["submitted"]
    fewest = min(turned.values())
    notable = [label for label, count in turned.items() if count - fewest >= max(1, NOTABLE * jobs)]
    if not notable or admission.of_deadlines(comparison):
        return []
    notable.sort(key=lambda label: -turned[label])
    parts = [
        f"{label} turns away {number(turned[label])} ({percent(turned[label] / jobs)})" for label in notable[:_MOST]
    ]
    if len(notable) > _MOST:
        parts.append(f"{number(len(notable) - _MOST)} of the others up to {number(turned[notable[_MOST]])}")
    others = [label for label in turned if label not in notable]
    most = max(turned[label] for label in others)
    parts.append(f"{listed(others)} {number(most) if most else 'none'}{' at most' if most and len(others) > 1 else ''}")
    common = f"{number(comparison.common.sum())} ran under every policy"
    return [f"Of {counted(int(jobs), 'job')}, {listed(parts)}; {common}{_instead(comparison)}."]


def _instead(comparison: Evidence) -> str:
    """How to ask what users would do, where limits may be what turned jobs away."""
    asked = comparison.info.get("options", {}).get("limits", "refuse")
    if asked != "refuse" or not any(map(_too_long, comparison.records.values())):
        return ""
    return " (--limits clip or split: what users whose jobs are too long for a limit might do instead)"


def _too_long(record: Record) -> bool:
    """Whether any job was turned away for the time that it asks for."""
    return record.reasons is not None and any(why.unit == "s" for why in record.reasons.refused.values())


def caveats(comparison: Evidence) -> Iterator[str]:
    """Jobs that only the simulation rejects; jobs above a time limit, and those rejected by other limits."""
    yield from failures(model_failures(comparison.records, comparison.info.get("own"), comparison.kept))
    for label, record in comparison.records.items():
        if record.beyond is not None:
            yield f"Under {label}, {(_clipped if record.beyond.how == 'clip' else _split)(record)}."
            others = int(comparison.metrics[label]["unadmitted"])
            if others:
                were = "job is" if others == 1 else "jobs are"
                yield f"There {number(others)} {were} turned away for limits of other kinds, which stay as they are."


def failures(found: Mapping[str, ModelFailures]) -> Iterator[str]:
    """Jobs that ran in the log but that the simulation rejects, policies with the same of them together.

    Examples
    --------
    >>> list(failures({"a": ModelFailures(2, ()), "b": ModelFailures(2, ())}))  # doctest: +NORMALIZE_WHITESPACE
    ['2 jobs ran in the log but the simulation rejects them under a and b: the model of the site is wrong about them.']
    """
    policies: dict[ModelFailures, list[str]] = {}
    for label, each in found.items():
        policies.setdefault(each, []).append(label)
    for each, labels in policies.items():
        several = len(each.reasons) > 1
        parts = [f"{reason}: {number(count)}" if several else reason for reason, count in each.reasons[:_MOST]]
        reasons = f" ({listed(parts)})" if parts else ""
        them = "it" if each.jobs == 1 else "them"
        yield (
            f"{counted(each.jobs, 'job')} ran in the log but the simulation rejects {them} under {listed(labels)}"
            f"{reasons}: the model of the site is wrong about {them}."
        )


def _clipped(record: Record) -> str:
    assert record.beyond is not None
    above = record.beyond.limit_us < NEVER
    cut = above & (record.status == Status.killed_walltime) & (record.workload.runtime > record.beyond.limit_us)
    lost = float(np.nansum(record.area[cut])) / _HOUR
    told = f"{_jobs(above)} asked for more time than they may have and got the limit"
    if not cut.any():
        return f"{told}, which was enough for all of them"
    return (
        f"{told}: {number(cut.sum())} of them {'was' if cut.sum() == 1 else 'were'} cut short there, and the "
        f"{lost:,.3g} core-hours that they had run for came to nothing"
    )


def _split(record: Record) -> str:
    assert record.beyond is not None
    above = (record.beyond.limit_us < NEVER) & record.ran
    pieces = int((record.beyond.pieces + 1)[above].sum())
    if pieces == above.sum():
        return f"{_jobs(above)} that asked for more time than they may have ended within the limit, in one piece each"
    chained = above & (record.beyond.pieces > 0)
    others = int(above.sum() - chained.sum())
    more = f" ({number(others)} more ended within the limit)" if others else ""
    return (
        f"{_jobs(chained)} that asked for more time than they may have went on in chains of {number(pieces - others)} "
        f"pieces in all{more}; their waits are those of all their pieces together, and going on costs them nothing"
    )


def _jobs(which: npt.NDArray[np.bool_]) -> str:
    return counted(int(which.sum()), "job")
