"""Public functions `compare` and `quote`: they run the simulations of `questions` and return objects for `report`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gridsim.metrics.responsiveness import BOUND
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.presets import site_machine
from gridsim.questions import compare as comparing
from gridsim.questions import quote as quoting
from gridsim.questions.labels import policies_of
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
    site: Any = None,
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
    """Simulate several policies on the same workload and compare the results.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policies : iterable or mapping
        Policies in the forms that `gridsim.policy.presets.policy` accepts. The site's own policy is the baseline of
        the comparison, else the first one. Labels are the keys of a mapping, or the part of a text before its first
        ``=`` (``today=slurm?conf=slurm.conf``).
    platform : Platform, optional
        The machine; by default that of *site*, else one cluster of the size that the workload's source states.
    site : str or mapping, optional
        The site of the policy ``site``: its ``slurm.conf`` and other files, ``"slurm.conf,qos=qos.txt"`` or a mapping
        (`gridsim.policy.presets.site_of`). The default policies are then ``site``, ``easy`` and ``conservative``.
    options : Run, optional
        Options of all runs: overrun, instant, seed, tick.
    bound : float
        Lower bound of run times in bounded slowdowns, s.
    warmup, cooldown : float
        Seconds at the beginning and end of the workload; jobs submitted in them are simulated but excluded from
        metrics.
    own : str, optional
        Label of the site's own policy, whose schedule is compared with the recorded one; by default the first policy
        with a site configuration.
    metrics, charges : iterable of str or object
        Additional metrics and charges: by name, ``file.py:Class``, or an object (`gridsim.metrics.measures`).
    shake : int, optional
        Number of additional workloads with slightly shifted submit times, 2 or more, or 0 for none; by default 8 if
        that is cheap. A difference is clear only if these workloads confirm its sign.
    shake_by : int, optional
        Largest shift of a submit time, s; 60 by default.
    resample : int
        Number of additional workloads whose users are resampled from this one, 2 or more.
    resample_load : float, optional
        Number of users of the resampled workloads, as a factor; 1 by default.
    flurries : {"keep", "drop", "both"}
        Bursts of jobs by one user (flurries): keep them, drop them, or run the policies with and without them.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    workers : int or Workers
        Number of worker processes; 1 uses only this process. Results do not depend on the number.

    Returns
    -------
    Comparison
        Sentences, tables, figures and an HTML page, created on access.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> compare(jobs, ["fcfs", "easy"], platform=Platform.single(4)).metrics["easy"]["wait_mean"]
    3.0
    """
    policies = policies_of(policies, site, default=comparing.DEFAULT_POLICIES)
    platform = site_machine(site) if platform is None and site is not None else platform
    how: dict[str, Any] = {"platform": platform, "options": options, "own": own, "progress": progress}
    how |= {"bound": bound, "warmup": warmup, "cooldown": cooldown, "metrics": metrics, "charges": charges}
    seed = Run().seed if options is None else options.seed
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
    site: Any = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Quotation:
    """Estimate when one more job would start, and which completion time could be guaranteed.

    The log is simulated under each policy until *at*; the job is submitted after all other jobs of that instant. If
    the log has start times, jobs start as recorded under `slurm` until then.

    Parameters
    ----------
    workload : Workload
        The log; its submit times are fixed.
    at : float, optional
        Submit time of the job, seconds of the log's clock; by default the arrival with the longest queue under EASY.
    cores, walltime : int, float
        Cores and requested walltime (s) of the job. Leave out the cores if *demand* is given.
    policies : iterable or mapping
        Policies, as for `compare`.
    deadline : float, optional
        A deadline to check, seconds of the log's clock.
    demand : Demand, optional
        Requested resources on a machine of nodes or pools.
    owner : mapping of str to str, optional
        Labels of the job by name (``user``, ``account``, ``partition``, ``qos``), as in the log or in the site of a
        policy. By default the job has no user and uses the default partition.
    platform : Platform, optional
        The machine, one cluster; by default that of *site*, else of the size that the workload's source states.
    site : str or mapping, optional
        The site of the policy ``site``, as for `compare`.
    options : Run, optional
        Options of all runs: overrun, instant, seed, tick.
    progress : callable, optional
        Called with the label and the number of jobs released so far.

    Returns
    -------
    Quotation
        One answer per policy, with the cost of a tighter deadline.

    Raises
    ------
    InputError
        If the job does not fit the machine, has no walltime, or is submitted before the log begins or after its last
        event; if the deadline is before *at* + *walltime*; if a name in *owner* is unknown.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2], cores_stated=4)
    >>> quote(log, at=2, cores=2, walltime=8, policies=["conservative"])["conservative"].guaranteed
    28.0
    """
    how: dict[str, Any] = {
        "policies": policies_of(policies, site, default=quoting.DEFAULT_POLICIES),
        "deadline": deadline,
        "owner": owner,
        "platform": site_machine(site) if platform is None and site is not None else platform,
        "demand": demand,
    }
    how |= {"options": options, "progress": progress}
    return Quotation.view(quoting.quote(workload, at=at, cores=cores, walltime=walltime, **how))
