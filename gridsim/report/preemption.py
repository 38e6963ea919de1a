"""Who had to give way to whom, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gridsim.metrics.preemption import LoggedRuns
from gridsim.words import counted, listed, number

__all__ = ["as_logged", "caveats"]

_MOST = 3
"""Groups of preemptors that a sentence names."""


def caveats(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Of each policy that cut runs short: how many, what work that lost, and whose jobs took the room.

    Examples
    --------
    >>> numbers = {"preempted_runs": 3.0, "preempted_jobs": 2.0, "preempted_core_hours": 1.5}
    >>> list(caveats({"today": {**numbers, "preempted_runs[QOS high]": 3.0}}))
    ['Under today, 3 runs of 2 jobs were preempted, all for jobs of QOS high; 1.5 core-hours of work were lost.']
    """
    for label, numbers in metrics.items():
        runs = int(numbers.get("preempted_runs", 0))
        if runs:
            jobs = counted(int(numbers["preempted_jobs"]), "job")
            lost = f"{numbers['preempted_core_hours']:,.3g} core-hours of work were lost"
            cut = f"{counted(runs, 'run')} of {jobs} {'was' if runs == 1 else 'were'} preempted"
            yield f"Under {label}, {cut}{_whose(numbers, runs)}; {lost}."


def as_logged(logged: LoggedRuns | None, metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """How many runs were preempted on the machine itself, beside those of each policy; nothing where nobody knows.

    Examples
    --------
    >>> numbers = {"preempted_runs": 34.0, "preempted_jobs": 28.0}
    >>> list(as_logged(LoggedRuns(53, 48, every=True), {"today": numbers, "easy": {}}))
    ['In the log 53 runs of 48 of these jobs were preempted; under today 34 of 28, under easy none.']
    """
    if logged is None or not logged.runs:
        return
    parts = [
        f"under {label} {number(int(runs))} of {number(int(numbers['preempted_jobs']))}"
        if (runs := numbers.get("preempted_runs", 0))
        else f"under {label} none"
        for label, numbers in metrics.items()
    ]
    were = "was" if logged.runs == 1 else "were"
    least = "" if logged.every else "at least "
    missing = "" if logged.every else " (none of its jobs has more than one run: was sacct told -D?)"
    cut = f"{least}{counted(logged.runs, 'run')} of {number(logged.jobs)} of these jobs {were} preempted{missing}"
    yield f"In the log {cut}; {', '.join(parts)}."


def _whose(numbers: Mapping[str, float], runs: int) -> str:
    start, end = "preempted_runs[", "]"
    groups = {key[len(start) : -len(end)]: value for key, value in numbers.items() if key.startswith(start)}
    named = sorted(((int(count), name) for name, count in groups.items() if count > 0), key=lambda it: -it[0])
    if not named:
        return ""
    if len(named) == 1:
        return f", all for jobs of {named[0][1]}" if runs > 1 else f", for a job of {named[0][1]}"
    parts = [f"{number(count)} for jobs of {name}" for count, name in named[:_MOST]]
    rest = sum(count for count, _ in named[_MOST:])
    return f": {listed([*parts, *([f'{number(rest)} for others'] if rest else [])])}"
