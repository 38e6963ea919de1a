"""Public functions that run simulations of `questions` or `campaign` and return objects for `report`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from gridsim.campaign.comparisons import Comparisons, Replications
from gridsim.campaign.run import Finished, Progress, Summary, run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep, write_runs
from gridsim.errors import require_known
from gridsim.files import checksum, plain, write_json
from gridsim.forecasts import answers
from gridsim.metrics.responsiveness import BOUND
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.presets import site_machine
from gridsim.questions import compare as comparing
from gridsim.questions import explain as explaining
from gridsim.questions import quote as quoting
from gridsim.questions.explain import Explanation
from gridsim.questions.labels import policies_of
from gridsim.questions.replay import usual_policy
from gridsim.questions.run_replications import default_shakes, families
from gridsim.questions.schedules import JobSchedule, read_schedules
from gridsim.report.campaign import figures as figures_of
from gridsim.report.campaign import write_tables
from gridsim.report.comparison import Comparison
from gridsim.report.forecast_page import Forecast, ForecastTest
from gridsim.report.gallery import FOLDER, Kind
from gridsim.report.quotation import Quotation
from gridsim.result import Result
from gridsim.run_folder import read_run
from gridsim.scenario import jobs_of
from gridsim.workers import Workers
from gridsim.workload.read import Paths
from gridsim.workload.transform.flurries import Flurries


def compare(
    workload: Workload | Paths,
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
    workload : Workload or path
        The jobs; a log file is read with the default rules.
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
    how |= {"cuts": {"bound": bound, "warmup": warmup, "cooldown": cooldown}, "metrics": metrics, "charges": charges}
    seed = Run().seed if options is None else options.seed
    workload = jobs_of(workload, policies.values())
    shakes = default_shakes(workload, policies.values()) if shake is None else shake
    asked: dict[str, Any] = {"shake": shakes, "shake_by": shake_by, "resample": resample, "seed": seed}
    how |= {"families": families(**asked, resample_load=resample_load, default=shake is None), "flurries": flurries}
    return Comparison.view(comparing.compare(workload, policies, workers=workers, **how))


def quote(
    workload: Workload | Paths,
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
    calibrate: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> Quotation:
    """Estimate when one more job would start, and which completion time could be guaranteed.

    The log is simulated under each policy until *at*; the job is submitted after all other jobs of that instant. If
    the log has start times, jobs start as recorded under `slurm` until then.

    Parameters
    ----------
    workload : Workload or path
        The log; its submit times are fixed. A file is read with the default rules.
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
    calibrate : bool
        Whether the intervals of the start are calibrated on earlier forecasts, which the first call on a log makes.
    progress : callable, optional
        Called with the label and the number of jobs released so far.

    Returns
    -------
    Quotation
        One answer and one forecast of the start per policy, and the cost of a tighter deadline.

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
    policies = policies_of(policies, site, default=quoting.DEFAULT_POLICIES)
    workload = jobs_of(workload, policies.values())
    platform = site_machine(site) if platform is None and site is not None else platform
    how: dict[str, Any] = {"policies": policies, "platform": platform, "options": options, "progress": progress}
    how |= {"calibrate": calibrate, "deadline": deadline, "owner": owner, "demand": demand}
    return Quotation.view(quoting.quote(workload, at=at, cores=cores, walltime=walltime, **how))


def explain(
    result: str | Path | Result | Comparison, job: int | str | None = None, *, policy: str | None = None
) -> Explanation:
    """Explain the wait of one job from a schedule.

    Parameters
    ----------
    result : path, Result or Comparison
        Result folder of a comparison or a run, or what `compare` or `simulate` returned.
    job : int or str, optional
        Number of the job, or its id in the log (``41206_5``); by default the job with the longest wait.
    policy : str, optional
        Label of the policy; by default the site's own policy, else the one that is closest to the recorded schedule.

    Returns
    -------
    Explanation
        Jobs ahead of it, jobs that passed it, jobs that ran while it waited, and its wait under each policy.

    Raises
    ------
    InputError
        For an unknown policy or job, and for DAG jobs, which have one wait per task.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2], cores_stated=4)
    >>> found = explain(compare(jobs, ["fcfs", "easy"]), 3, policy="fcfs")
    >>> found.wait, found.ahead, found.policies["easy"]
    (18.0, 1, (2.0, 0.0))
    """
    own, path = None, None
    if isinstance(result, Result):
        schedules = {result.label or result.policy: JobSchedule.of(result.record, result.platform)}
    elif isinstance(result, Comparison):
        own = result.info.get("own")
        schedules = {label: JobSchedule.of(it, result.platform_of(label)) for label, it in result.records.items()}
    else:
        schedules, own, path = read_schedules(result), read_run(result).get("own"), Path(result) / "run.json"
    label = policy or usual_policy(schedules, own, path)
    require_known(f"policy of {result}", schedules, label)
    found = explaining.explain(schedules[label], schedules[label].longest() if job is None else job)
    return replace(found, policy=label, policies=explaining.waits(schedules, found.job))


def sweep(
    campaign: str | Path | Sweep,
    out: str | Path | None = None,
    *,
    workers: int = 1,
    executor: Executor | str | None = None,
    shard: str | None = None,
    retry_failed: bool = False,
    shake: int = 0,
    shake_by: int | None = None,
    resample: int = 0,
    resample_load: float | None = None,
    flurries: Flurries = "keep",
    figures: Kind | None = None,
    listener: Callable[[Finished, Progress], None] | None = None,
) -> Summary:
    """Run all combinations of the factors of a campaign; finished runs are not repeated.

    Parameters
    ----------
    campaign : path or Sweep
        Scenario file with a table of factors.
    out : path, optional
        Folder of the results; by default the name of the campaign with ``-results``.
    workers : int
        Number of processes; 1 uses only this process.
    executor : Executor or str, optional
        Executor to use instead: any `concurrent.futures.Executor`, or the address of a Dask scheduler.
    shard : str, optional
        Part of the campaign, such as ``2/4``; tables are then written when the parts are merged.
    retry_failed : bool
        Whether to repeat runs that failed before.
    shake, shake_by, resample, resample_load, flurries : int, float, str
        Replicas of the workloads of a scenario file, as for `compare`.
    figures : {"pdf", "svg", "png"}, optional
        Format of additional figures.
    listener : callable, optional
        Called with each finished run and the progress.

    Returns
    -------
    Summary
        Number of runs and failures, and the comparison of the finished runs. The folder contains ``runs.csv`` and the
        tables of the comparison.

    Raises
    ------
    InputError
        For an invalid campaign, and a folder with results of another one.

    Examples
    --------
    >>> import tempfile
    >>> tables = ["[workload]", "model = 'lublin?jobs=20'", "[factors]", "policy = ['fcfs', 'easy']", "seed = [1, 2]"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "campaign.toml"
    ...     _ = file.write_text(chr(10).join(tables))
    ...     found = sweep(file, Path(folder) / "results")
    >>> found.units, found.at
    (4, Progress(finished=4, failed=0, left=0))
    """
    if not isinstance(campaign, Sweep):
        asked: Any = {"shake": shake, "shake_by": shake_by, "resample": resample, "resample_load": resample_load}
        campaign = Sweep.from_toml(campaign, replications=Replications(**asked, flurries=flurries))
    store, part = campaign.opened(out, shard)
    how: Any = {"workers": workers, "executor": executor, "shard": part}
    summary = run_campaign(campaign, store.folder, retry_failed=retry_failed, listener=listener, **how)
    if not part.is_complete:
        return summary
    return replace(summary, comparisons=write_campaign(campaign, store, summary.at, figures))


def write_campaign(campaign: Sweep, store: Store, at: Progress, figures: Kind | None = None) -> Comparisons | None:
    """Write the tables of a campaign unless they are up to date; return the comparison, if it has one."""
    runs, made = store.folder / "runs.csv", store.folder / "tables.json"
    of = {"of": plain(campaign.identity()), "runs": store.digest(), **at._asdict()}
    found = campaign.compared(store) if at.finished else None
    found = found if found is not None and found.runs else None
    if figures is None and _are_made(made, json.loads(json.dumps(of))):
        return found
    made.unlink(missing_ok=True)
    write_runs(campaign, store, runs)
    written = [runs] if found is None else [runs, *write_tables(store.folder, found, name=campaign.name)]
    if found is not None and figures is not None:
        figures_of(found).save(store.folder / FOLDER, figures)
    write_json(made, {**of, "tables": {path.name: checksum(path) for path in written}})
    return found


def _are_made(made: Path, of: dict[str, Any]) -> bool:
    """Return whether all tables in *made* exist, are unchanged, and were made from the runs in *of*."""
    try:
        stored = json.loads(made.read_text(encoding="utf-8"))
        tables = stored.pop("tables")
        return bool(stored == of and all(checksum(made.parent / name) == found for name, found in tables.items()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _with_output(make: Callable[_P, Any], view: Callable[..., _T]) -> Callable[_P, _T]:
    """Return a function of `forecasts` whose result has output."""

    @wraps(make)
    def ask(*given: _P.args, **how: _P.kwargs) -> _T:
        return view(make(*given, **how))

    return ask


forecast = _with_output(answers.forecast, Forecast.view)
backtest_forecasts = _with_output(answers.backtest_forecasts, ForecastTest.view)
