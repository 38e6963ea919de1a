"""What `gridsim` itself offers to ask: questions, simulated in `questions`, answered by views that `report` tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gridsim.metrics.responsiveness import BOUND
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.questions import compare as comparing
from gridsim.report.comparison import Comparison
from gridsim.workers import Workers

__all__ = ["compare"]


def compare(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = comparing.DEFAULT_POLICIES,
    *,
    platform: Platform | None = None,
    options: Run | None = None,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    own: str | None = None,
    metrics: Iterable[Any] = (),
    charges: Iterable[Any] = (),
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Comparison:
    """Simulate *policies* on the same workload and compare what they did with its jobs.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policies : iterable or mapping
        As `gridsim.policy.presets.policy` takes them; the first is the baseline. Keys of a mapping are labels,
        and so is what a text has before its first ``=`` (``today=slurm?conf=slurm.conf``).
    platform : Platform, optional
        The machine; one cluster of the size that the workload's source states where left out.
    options : Run, optional
        Overrun, instant, seed, tick: the same for all.
    bound : float
        Runtimes below this many seconds count as this many in bounded slowdowns.
    warmup, cooldown : float
        Jobs submitted in the first and last so many seconds are simulated but left out of the numbers.
    own : str, optional
        Label of the site's own policy, whose replay is held against the log; where left out, the first that knows its
        site.
    metrics, charges : iterable of str or object
        Beside the usual numbers: by name, ``file.py:Class``, or an object (`gridsim.metrics.measures`).
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate; 1 for none but this one. Results are the same with any number.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> compare(jobs, ["fcfs", "easy"], platform=Platform.single(4)).metrics["easy"]["wait_mean"]
    3.0
    """
    how: dict[str, Any] = {"platform": platform, "options": options, "own": own, "progress": progress}
    how |= {"bound": bound, "warmup": warmup, "cooldown": cooldown, "metrics": metrics, "charges": charges}
    return Comparison.view(comparing.compare(workload, policies, workers=workers, **how))
