"""Text on deadlines: guaranteed, met and refused jobs, and the effect on other jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gridsim.metrics.agreement import failed_jobs
from gridsim.number_formatting import counted, duration, listed, number, percent
from gridsim.record import Status
from gridsim.report.markup import texts

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence


_text = texts("rejections")


_MOST = 4
"""Largest number of additional policies named in a sentence."""

_HOUR = 3600.0


def of_deadlines(comparison: Evidence) -> bool:
    """Return whether any counted job requests a deadline."""
    return bool(comparison.metrics[comparison.baseline].get("deadline_jobs", 0))


def answer(comparison: Evidence) -> list[str]:
    """Return text on guaranteed, kept and met deadlines of each policy, kills, and the effect on other jobs."""
    if not of_deadlines(comparison):
        return []
    return [
        *_guaranteed(comparison),
        *_later(comparison),
        *_killed(comparison),
        *_without_a_deadline(comparison),
    ]


def _promising(comparison: Evidence) -> list[str]:
    """Return the policies with guarantees, the one with the most guaranteed deadlines first."""
    records = comparison.records.items()
    labels = [label for label, record in records if record.promises is not None and record.promises.guarantees]
    return sorted(labels, key=lambda label: -comparison.metrics[label]["deadline_guaranteed"])


def _guaranteed(comparison: Evidence) -> Iterator[str]:
    numbers, promising = comparison.metrics, _promising(comparison)
    total = numbers[comparison.baseline]["deadline_jobs"]
    asked = counted(int(total), "deadline")
    if not promising:
        parts = _counts(comparison, comparison.labels, "deadline_met", "met ", f" of the {asked} requested")
        yield f"{listed(parts)}; no policy gives guarantees."
        return
    first, *others = promising
    share = percent(numbers[first]["deadline_guaranteed_area_share"])
    text, *more = _counts(comparison, promising, "deadline_guaranteed", "guaranteed ", f" of {asked}")
    text += f" ({share} of their core-seconds)"
    text += f", {listed(more)}" if more else f" and {_kept(comparison, first)}"
    rest = [label for label in comparison.labels if label not in promising]
    if rest:
        text += f"; {listed(_counts(comparison, rest, 'deadline_met', 'met '))} without guarantees"
    yield f"{text}."
    if others:
        yield from _all_kept(comparison, promising)


def _counts(comparison: Evidence, labels: list[str], name: str, verb: str, of: str = "") -> list[str]:
    """Return a number of each policy, the first with its total; the last part covers unnamed policies."""
    values = [comparison.metrics[label][name] for label in labels]
    named = _named(labels)
    parts = [f"{label} {number(value)}" for label, value in zip(named, values, strict=False)]
    parts[0] = f"{labels[0]} {verb}{number(values[0])}{of}"
    if others := values[len(named) :]:
        low, high = number(min(others)), number(max(others))
        parts.append(f"{len(others)} others {low if low == high else f'{low} to {high}'}")
    return parts


def _named(labels: list[str]) -> list[str]:
    """Return the policies named in a sentence; never all but one."""
    return labels if len(labels) <= _MOST + 1 else labels[:_MOST]


def _kept(comparison: Evidence, label: str) -> str:
    numbers = comparison.metrics[label]
    if not numbers["promises_broken"]:
        return "kept every guarantee"
    return f"broke {number(numbers['promises_broken'])} of its {number(numbers['promises_made'])} guarantees"


def _all_kept(comparison: Evidence, promising: list[str]) -> Iterator[str]:
    breaking = [label for label in promising if comparison.metrics[label]["promises_broken"]]
    if not breaking:
        yield "Every guarantee was kept."
    else:
        kept = "" if len(breaking) == len(promising) else "; the other policies kept all of theirs"
        yield f"{listed([f'{label} {_kept(comparison, label)}' for label in breaking])}{kept}."


def _later(comparison: Evidence) -> Iterator[str]:
    """Return how many jobs were offered a later deadline than requested, and accepted it."""
    for label in _promising(comparison):
        numbers = comparison.metrics[label]
        if numbers["offers_made"]:
            yield _text("offers", label=label, numbers=numbers)


def _killed(comparison: Evidence) -> Iterator[str]:
    for label in _promising(comparison):
        numbers = comparison.metrics[label]
        if numbers["kills"]:
            times = "one run" if numbers["kills"] == 1 else f"{number(numbers['kills'])} runs"
            yield _text("killed_runs", label=label, times=times, lost_area=numbers["lost_area"] / _HOUR)


def _without_a_deadline(comparison: Evidence) -> Iterator[str]:
    means = {label: it["non_deadline_response_mean"] for label, it in comparison.metrics.items()}
    known = [label for label, value in means.items() if value == value]
    if known:
        named = _named(known)
        parts = [f"{duration(means[label])} under {label}" for label in named]
        if others := [means[label] for label in known[len(named) :]]:
            parts.append(f"{duration(min(others))} or more under {len(others)} others")
        yield f"The mean response of jobs without a deadline is {listed(parts)}."


def caveats(comparison: Evidence) -> list[str]:
    """Return the notes that waits are over different jobs, and that refusals depend chaotically on details."""
    return [*_other_jobs(comparison), *_chaotic(comparison)]


def _other_jobs(comparison: Evidence) -> Iterator[str]:
    ran = {f"under {label}": record.ran for label, record in comparison.records.items()}
    provenance = comparison.info.get("workload", {})
    yield from job_counts(ran, comparison.kept, provenance, every="under every policy")
    if comparison.comparable:
        return
    compared = "Waits are compared over the jobs that ran under both policies of a pair"
    failed = failed_jobs(comparison.records, comparison.info.get("own"))
    left_out = {label: comparison.kept & ~it.ran & ~failed[label] for label, it in comparison.records.items()}
    if all((it.status[left_out[label]] == Status.cancelled).all() for label, it in comparison.records.items()):
        cancelled = any(map(np.any, left_out.values()))
        yield f"{compared}{'; the others were cancelled while they waited' if cancelled else ''}."
        return
    yield _text("rejecting_policy", compared=compared)


def _chaotic(comparison: Evidence) -> Iterator[str]:
    counts = {comparison.metrics[label].get("deadline_guaranteed") for label in _promising(comparison)}
    if of_deadlines(comparison) and len(counts) > 1:
        yield _text("chaotic_guarantees")


_MOST_RUNS = 4
"""Largest number of additional runs named in the line."""


def job_counts(
    ran: Mapping[str, npt.NDArray[np.bool_]],
    kept: npt.NDArray[np.bool_],
    provenance: Mapping[str, Any],
    *,
    every: str = "in every run",
) -> list[str]:
    """Return a line on numbers of jobs; nothing if all counted jobs ran in every run.

    A number equal to the preceding one is omitted, except that of the jobs that ran.

    Parameters
    ----------
    ran : mapping of str to mask
        Jobs that ran, by name of the run ("under easy").
    kept : mask
        Counted jobs.
    provenance : mapping
        Provenance, with the numbers of jobs read and kept.
    every : str
        Text for all runs together.

    Examples
    --------
    >>> ran = {"under a": np.array([True, True, False]), "under b": np.array([True, False, False])}
    >>> job_counts(ran, np.ones(3, dtype=bool), {"jobs_read": 4, "jobs_kept": 3})
    ['Jobs: 4 in the log, 3 kept; 2 ran under a and 1 under b, 1 of them in every run.']
    """
    runs = {name: int((mask & kept).sum()) for name, mask in ran.items()}
    common, counted = int((np.logical_and.reduce([*ran.values()]) & kept).sum()), int(kept.sum())
    if common == counted:
        return []
    steps = {
        "in the log": provenance.get("jobs_read"),
        "kept": provenance.get("jobs_kept"),
        "after transforms": len(kept),
        "counted": counted,
    }
    parts: list[str] = []
    last = None
    for step, count in steps.items():
        if isinstance(count, int) and count != last:
            parts.append(f"{number(count)} {step}" if parts or step == "in the log" else number(count))
            last = count
    if set(runs.values()) == {common}:
        where = f" {every}" if len(runs) > 1 else ""
        return [f"Jobs: {', '.join(parts)}; {number(common)} ran{where}."]
    named = list(runs) if len(runs) <= _MOST_RUNS + 1 else list(runs)[:_MOST_RUNS]
    parts_run = [f"{number(runs[name])} {'' if row else 'ran '}{name}" for row, name in enumerate(named)]
    if others := [runs[name] for name in runs if name not in named]:
        span = dict.fromkeys(number(count) for count in (min(others), max(others)))
        parts_run.append(f"{' to '.join(span)} in {len(others)} other runs")
    return [f"Jobs: {', '.join(parts)}; {listed(parts_run)}, {number(common)} of them {every}."]
