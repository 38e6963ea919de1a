"""What `gridsim` itself offers to ask: questions, simulated in `questions`, answered by views that `report` tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gridsim.metrics.responsiveness import BOUND
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.presets import policy
from gridsim.questions import compare as comparing
from gridsim.questions import quote as quoting
from gridsim.questions.labels import labelled
from gridsim.questions.replicate import default_shakes, families
from gridsim.report.comparison import Comparison
from gridsim.report.quotation import Quotation
from gridsim.workers import Workers
from gridsim.workload.transform.flurries import Flurries


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
    shake: int | None = None,
    shake_by: int | None = None,
    resample: int = 0,
    resample_load: float | None = None,
    flurries: Flurries = "keep",
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Comparison:
    """Simulate *policies* on the same workload and compare what they did with its jobs.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policies : iterable or mapping
        As `gridsim.policy.presets.policy` takes them. The site's own policy is the base of the comparison, else the
        first one. Keys of a mapping are labels, and so is what a text has before its first ``=``
        (``today=slurm?conf=slurm.conf``).
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
    shake : int, optional
        Number of workloads with slightly different submit times to simulate too, 2 or more, or 0 for none; by default 8
        if that is cheap. A difference whose sign they do not confirm is no clear difference.
    shake_by : int, optional
        Seconds by which a submit time moves at most; 60 where left out.
    resample : int
        Run the policies on so many workloads too whose users are drawn anew from those of this one, 2 or more.
    resample_load : float, optional
        How many times as many users these have; 1 where left out.
    flurries : {"keep", "drop", "both"}
        Floods of jobs by one user: they stay, are left out, or the policies run with and without them.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate; 1 for none but this one. Results are the same with any number.

    Returns
    -------
    Comparison
        Sentences, tables, figures and a page, made when they are asked for.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> compare(jobs, ["fcfs", "easy"], platform=Platform.single(4)).metrics["easy"]["wait_mean"]
    3.0
    """
    how: dict[str, Any] = {"platform": platform, "options": options, "own": own, "progress": progress}
    how |= {"bound": bound, "warmup": warmup, "cooldown": cooldown, "metrics": metrics, "charges": charges}
    seed = Run().seed if options is None else options.seed
    policies = {label: policy(what) for label, what in labelled(policies).items()}
    default = shake is None
    if shake is None:
        shake = default_shakes(workload, policies.values())
    asked: dict[str, Any] = {"shake": shake, "shake_by": shake_by, "resample": resample}
    how |= {
        "families": families(**asked, resample_load=resample_load, seed=seed, default=default),
        "flurries": flurries,
    }
    return Comparison.view(comparing.compare(workload, policies, workers=workers, **how))


def quote(
    workload: Workload,
    *,
    at: float | None = None,
    cores: int | None = None,
    walltime: float,
    policies: Iterable[Any] | Mapping[str, Any] = quoting.DEFAULT_POLICIES,
    deadline: float | None = None,
    demand: Demand | None = None,
    owner: Mapping[str, str] | None = None,
    platform: Platform | None = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Quotation:
    """What could be promised to one more job at a moment of a log.

    The log is replayed under each policy until that moment, when the job comes after all others of the instant. Under
    `slurm` jobs start as recorded until then, where the log has starts.

    Parameters
    ----------
    workload : Workload
        The log; its jobs come at its times, whatever their users would do.
    at : float, optional
        The moment, seconds of the log's clock; the arrival that meets the longest queue under EASY where left out.
    cores, walltime : int, float
        The job; the walltime in seconds. Its cores are left out where it has a *demand*.
    policies : iterable or mapping
        As `compare` takes them.
    deadline : float, optional
        A deadline to ask about, seconds of the log's clock.
    demand : Demand, optional
        What it asks of a machine of nodes or pools.
    owner : mapping of str to str, optional
        Whose job it is and what it asks for: ``user``, ``account``, ``partition``, ``qos``, by name, as in the log or
        known to the site of a policy. Of no user, in the default partition, where left out.
    platform : Platform, optional
        The machine, one cluster; of the size that the workload's source states where left out.
    options : Run, optional
        Overrun, instant, seed, tick: the same for all.
    progress : callable, optional
        Told the label and the number of jobs released so far.

    Returns
    -------
    Quotation
        An answer a policy, with what a tighter deadline would take.

    Raises
    ------
    InputError
        When the job does not fit the machine, takes no time, or comes before the log begins or after its last event;
        when the deadline is before *at* + *walltime*; for a name of the owner that is unknown.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2], cores_stated=4)
    >>> quote(log, at=2, cores=2, walltime=8, policies=["conservative"])["conservative"].guaranteed
    28.0
    """
    how: dict[str, Any] = {
        "policies": policies,
        "deadline": deadline,
        "owner": owner,
        "platform": platform,
        "demand": demand,
    }
    how |= {"options": options, "progress": progress}
    return Quotation.view(quoting.quote(workload, at=at, cores=cores, walltime=walltime, **how))
