"""Answers to "what if" as people read them: sentences, tables for a terminal and a page, rows of a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.metrics.compare import Difference
from gridsim.questions.changes import NOW, Effect, WhatIf
from gridsim.report import change, flurries_text, refusals, replicas_text, users, whatif_alike, whatif_parts
from gridsim.report.differences import intervals_are_of, shortage
from gridsim.report.job_counts import job_counts
from gridsim.report.sheet import WIDTH, broken, sheet
from gridsim.report.tables import shown
from gridsim.report.texts import texts
from gridsim.report.trust import trust_in
from gridsim.words import counted, duration, listed, number

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["FILE", "FILES", "NOTE", "SHOWN", "Line", "as_dict", "csv_text", "lead", "lines", "sentences", "table"]

_text = texts("whatif")

FILE = "whatif.csv"
"""Name of the file with the numbers."""

FILES = frozenset((FILE, whatif_parts.FILE, "whatif.json", "whatif.html", *replicas_text.FILES))
"""Names of all files that `gridsim whatif` may write."""

SHOWN = {
    "wait_mean": "mean wait",
    "wait_p95": "95th percentile",
    "bounded_slowdown_mean": "bounded slowdown",
    "utilisation": "utilisation",
}
"""Metrics of the table with what they are called there."""

NOTE = _text("note")
"""How to read the table."""

_REAL = {
    "better": "yes, shorter",
    "worse": "yes, longer",
    "no clear difference": "not clear",
    "too little data": "too little data",
}


_WAITS = change.Words("less", "longer", "as long")


class Line(NamedTuple):
    """A row of the table on a page; ``verdict`` is empty where nothing was changed."""

    change: str
    cells: tuple[str, ...]
    against: str
    interval: str
    real: str
    verdict: str


def lines(found: WhatIf) -> list[Line]:
    """Rows of one policy, what is now first."""
    return [_line(one) for one in found.outcomes]


def _line(one: Effect) -> Line:
    cells = tuple(shown(name, one.numbers[name]) for name in SHOWN)
    wait = one.wait
    if wait is None:
        return Line(one.label, cells, "-", "-", "-", "")
    if wait.same == 1:
        return Line(one.label, cells, "the same", "-", "no change", "")
    if math.isnan(wait.ratio):
        return Line(one.label, cells, _signed(wait.mean), "", _REAL[wait.verdict], wait.verdict)
    interval = change.signed_span(wait.ratio_low, wait.ratio_high)
    return Line(one.label, cells, change.signed(wait.ratio), interval, _REAL[wait.verdict], wait.verdict)


def _less(wait: Difference) -> str:
    """By how much jobs wait less or longer than now."""
    return change.told(wait.mean, _WAITS, duration) if math.isnan(wait.ratio) else change.told(wait.ratio - 1, _WAITS)


def _against_now(wait: Difference) -> str:
    """A change with what it is measured against: "32 % less than now", "14 times as long as now"."""
    less = _less(wait)
    return f"{less} {'as' if less.endswith(_WAITS.many) else 'than'} now"


def _span(wait: Difference) -> str:
    if math.isnan(wait.ratio):
        return change.span(wait.low, wait.high, _WAITS, duration)
    return change.span(wait.ratio_low - 1, wait.ratio_high - 1, _WAITS)


def _signed(seconds: float) -> str:
    return f"+{duration(seconds)}" if seconds > 0 else duration(seconds)


def table(found: Sequence[WhatIf], *, width: int = WIDTH) -> RenderableType:
    """The same for a terminal; policies one below the other, their names above where there are several."""
    from rich.console import Group  # only where a table is printed

    blocks: list[RenderableType] = []
    for each in found:
        if len(found) > 1:
            blocks.append("\n".join(broken(f"under {each.policy}:", width)))
        told = [(one.label, [shown(name, one.numbers[name]) for name in SHOWN]) for one in each.outcomes]
        columns = {title: [cells[place] for _, cells in told] for place, title in enumerate(SHOWN.values())}
        blocks.append(sheet([label for label, _ in told], columns, width=width))
    return Group(*blocks)


def lead(found: Sequence[WhatIf]) -> list[str]:
    """The answer of a table of several policies, the best one last: what helps most, and what another policy does."""
    best = found[-1]
    told = [*_most(best)]
    if len(found) > 1:
        told += _instead(found[0], best)
    for each in found:
        told += [f"Under {each.policy}, {label} cannot be asked: {why}." for label, why in each.refused]
    return [*told, *_rounded(found), *_caution(found)]


def _most(best: WhatIf) -> Iterator[str]:
    """What shortens the waits most under the best policy, of what is clear and at no job's cost."""
    now = best[NOW].numbers["wait_mean"]
    clear = [
        one
        for one in best.outcomes
        if one.wait is not None and one.wait.verdict == "better" and _fewer(one, best[NOW]) <= 0
    ]
    if not clear:
        yield f"Under {best.policy} none of these changes clearly shortens the mean wait of {duration(now)}."
        return
    most = min(clear, key=lambda one: one.numbers["wait_mean"])
    assert most.wait is not None
    before, after = most.wait.baseline_mean, most.wait.policy_mean  # of the same jobs
    by = f"{_against_now(most.wait)}; 95 % interval {_span(most.wait)}"
    yield _text("best_change", most=most, best=best, before=before, after=after, by=by)


def _instead(baseline: WhatIf, best: WhatIf) -> Iterator[str]:
    """Whether another policy does as much as the largest machine of the table."""
    sizes = [one for one in baseline.outcomes if one.cores > baseline[NOW].cores]
    wait = best[NOW].numbers["wait_mean"]
    if baseline[NOW].cores != best[NOW].cores or not sizes or not wait < baseline[NOW].numbers["wait_mean"]:
        return
    largest = max(sizes, key=lambda one: one.cores)
    if not _of_same_jobs([baseline.ran[NOW], best.ran[NOW], baseline.ran[largest.label]]):
        return
    bought = largest.numbers["wait_mean"]
    than = "more" if wait < bought else "less"
    yield _text("other_policy", baseline=baseline, best=best, than=than, largest=largest, wait=wait, bought=bought)


def _rounded(found: Sequence[WhatIf]) -> Iterator[str]:
    """What was made of sizes that are no whole nodes."""
    rounded = list(dict.fromkeys(one for each in found for one in each.rounded))
    if rounded:
        yield f"The machine grows by whole nodes: {listed(rounded)}."


def _of_same_jobs(ran: Iterable[npt.NDArray[np.bool_]]) -> bool:
    """Whether the same jobs ran in all of these runs, so that their mean waits are comparable."""
    return len({mask.tobytes() for mask in ran}) <= 1


def _not_taken(one: Effect) -> float:
    """Jobs that were turned away, or that the machine is too small for."""
    return one.numbers["unadmitted"] + one.numbers["rejected"]


def _fewer(one: Effect, now: Effect) -> int:
    """How many jobs less than now run."""
    return round(_not_taken(one) - _not_taken(now))


def _caution(found: Sequence[WhatIf]) -> Iterator[str]:
    if any(not _of_same_jobs(each.ran.values()) for each in found):
        yield _text("different_jobs")
    if any(each.reacting for each in found):
        yield users.REACTING_TO_CHANGES
        return
    higher = dict.fromkeys(
        one.label
        for each in found
        for one in each.outcomes
        if (one.label.startswith("load") or one.cores < each[NOW].cores) and one.wait is not None and one.wait.mean > 0
    )
    if higher:
        yield _text("other_load", higher=list(higher))


def csv_text(found: Sequence[WhatIf]) -> str:
    """One row a policy and change: numbers of the run, and the difference of its mean wait from that now."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    compared = ("wait_difference", "ratio", "ratio_low", "ratio_high", "p_holm", "verdict")
    writer.writerow(["policy", "change", "cores", *SHOWN, *compared])
    for each in found:
        for one in each.outcomes:
            numbers = [one.numbers[name] for name in SHOWN]
            wait = one.wait
            difference = (
                [""] * len(compared)
                if wait is None
                else [wait.mean, wait.ratio, wait.ratio_low, wait.ratio_high, wait.p_holm, wait.verdict]
            )
            row = [each.policy, one.label, one.cores, *numbers, *difference]
            writer.writerow(["" if value != value else value for value in row])
    return text.getvalue()


def sentences(found: WhatIf) -> list[str]:
    """The answers in words: each change of the mean wait, and how sure it is."""
    known = None if found.replay is None else trust_in(found.replay)
    before, behind = ((), ()) if known is None else (known.warnings, known.rest)
    told = [*_each(found), *_saturated(found), *_periods(found), *whatif_alike.answer(found), *_without_flurries(found)]
    return [
        *before,
        *told,
        *_jobs(found),
        *_rounded([found]),
        *whatif_alike.caveats(found),
        *_caution([found]),
        *behind,
    ]


def _without_flurries(found: WhatIf) -> Iterator[str]:
    """What is said without floods of jobs by one user, where that was asked for."""
    other = found.cleaned
    if other is None or found.now is None or other.now is None:
        return
    means = [
        f"{duration(one.numbers['wait_mean'])} {'' if one.label == NOW else 'with '}{one.label} "
        f"({duration(found[one.label].numbers['wait_mean'])} with it)"
        for one in other.outcomes
    ]
    told = f"the mean wait is {listed(means)}"
    yield from flurries_text.without(found.now.workload_given, len(other.now), told, _each(found), _each(other))


def _each(found: WhatIf) -> list[str]:
    """Waits now and with each change."""
    now = found[NOW]
    told = [f"As it is, jobs wait {duration(now.numbers['wait_mean'])} on average under {found.policy}."]
    if not _ran(now):
        told = [f"As it is, no job runs under {found.policy}."]
    for one in found.outcomes[1:]:
        assert one.wait is not None
        by, fewer = _change(one.wait, len(found.outcomes) - 1), _fewer(one, now)
        who = f"{counted(fewer, 'job')} would not run at all; " if fewer > 0 else ""
        if not one.wait.jobs:
            told.append(f"With {one.label} no job runs that runs now too, so there is nothing to compare.")
            continue
        if one.wait.jobs == _ran(now):
            waits = f"they would wait {duration(one.wait.policy_mean)}"
        else:
            both = "1 job that runs" if one.wait.jobs == 1 else f"{number(one.wait.jobs)} jobs that run"
            means = f"{duration(one.wait.policy_mean)} instead of {duration(one.wait.baseline_mean)}"
            waits = f"the {both} both times would wait {means}"
        told.append(f"With {one.label} {who}{waits}: {by}.")
        told += whatif_parts.sentences(one, lambda wait: _change(wait, len(found.outcomes) - 1))
    return told


def _ran(one: Effect) -> int:
    """Number of counted jobs that ran."""
    return round(one.numbers["completed"] + one.numbers["killed_walltime"])


def _jobs(found: WhatIf) -> Iterator[str]:
    """The line that reconciles the numbers of jobs, and jobs that only the simulation rejects."""
    if found.now is not None and found.kept is not None:
        ran = {label if label == NOW else f"with {label}": mask for label, mask in found.ran.items()}
        yield from job_counts(ran, found.kept, found.now.workload_given.provenance)
    yield from refusals.failures(found.failures)


def _saturated(found: WhatIf) -> Iterator[str]:
    """Changes under which the queue is still growing at the last submission."""
    labels = [one.label if one.label == NOW else f"with {one.label}" for one in found.outcomes if one.saturated]
    if labels:
        yield _text("saturated", found=found, labels=labels)


def _periods(found: WhatIf) -> Iterator[str]:
    if found.now is not None:
        waits = [one.wait for one in found.outcomes if one.wait is not None]
        yield from intervals_are_of(waits, found.replicated, found.now)


def as_dict(found: WhatIf) -> dict[str, Any]:
    """For JSON."""
    return {
        "policy": found.policy,
        "changes": [
            {
                "change": one.label,
                "cores": one.cores,
                "metrics": dict(one.numbers),
                "wait": None if one.wait is None else asdict(one.wait),
                "bounded_slowdown": None if one.slowdown is None else asdict(one.slowdown),
                **whatif_parts.as_dict(one),
            }
            for one in found.outcomes
        ],
        "refused": [{"change": label, "why": why} for label, why in found.refused],
        "rounded": list(found.rounded),
        "trust": None if found.replay is None else asdict(trust_in(found.replay)),
        "replicas": whatif_alike.as_dict(found),
        "without_flurries": None if found.cleaned is None else as_dict(found.cleaned)["changes"],
    }


def _change(found: Difference, among: int) -> str:
    if found.same == 1:
        return "as long as now"
    if found.verdict in ("better", "worse"):
        return f"{_against_now(found)} (95 % interval {_span(found)})"
    here = f"{_against_now(found)} in this log"
    if found.verdict == "too little data":
        return f"too little data to compare with now: {shortage(found)}; {here}"
    several = f", corrected for {among} changes" if among > 1 else ""
    return f"no clear difference from now{several} ({here}; 95 % interval {_span(found)})"
