"""Forecasts of the starts of waiting jobs, at a moment of a log or from the state of a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from gridsim.entities.starting_point import CLOSED, StartingPoint
from gridsim.errors import InputError, name_of
from gridsim.forecasts.answer import EARLIER, Answer, JobForecast
from gridsim.forecasts.backtest import Backtest
from gridsim.forecasts.custom_model import custom_model
from gridsim.forecasts.forecaster import Ask, Forecaster, Progress, shapes_of
from gridsim.forecasts.intervals import LEVELS, Calibration, uncalibrated
from gridsim.forecasts.model import LEAST_FUTURES, WEEK, Options, Source
from gridsim.forecasts.new_job import NAME, NewJob
from gridsim.forecasts.state import Machine, State, cluster_state
from gridsim.model.capacity import NodeGroup
from gridsim.model.cluster_state import ClusterState, WaitingJob
from gridsim.model.dates import calendar_of
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, FloatArray
from gridsim.model.workload import Workload
from gridsim.number_formatting import when
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of, uses_run_times
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import machine as machine_for
from gridsim.scenario import jobs_of
from gridsim.workers import Workers, crew
from gridsim.workload.read import Paths

LAST_JUDGED = 100
"""Number of judged forecasts of which the observed share of hits is stated."""

_UNMODELLED = ("Assoc", "QOS", "MaxJobs")
"""Beginnings of Slurm's reasons that name a limit which no policy but Slurm's models."""


class _Moment(NamedTuple):
    """State, jobs and earlier forecasts from which a forecast is computed."""

    forecaster: Forecaster
    state: State
    ids: Sequence[str]
    earlier: Forecaster | None
    notes: Sequence[str]
    left_out: Mapping[str, str] = {}
    known: ClusterState | None = None


def forecast(
    log: Workload | Paths | ClusterState,
    *,
    at: float | None = None,
    job: int | str | None = None,
    new: NewJob | None = None,
    policy: Any = "easy",
    platform: Platform | None = None,
    history: Workload | None = None,
    state: Source | None = None,
    futures: int = 99,
    horizon: float = WEEK,
    seed: int = 1,
    options: Run | None = None,
    arrivals: bool = True,
    model: Any = None,
    calibrate: bool = True,
    at_most: float | None = None,
    instead: Sequence[str] = (),
    parts: Sequence[float] = (),
    until_empty: bool = False,
    compare_without: bool = False,
    workers: int | Workers = 1,
    progress: Progress | None = None,
) -> Answer:
    """Forecast when waiting jobs will start, with intervals that are calibrated on earlier forecasts.

    Parameters
    ----------
    log : Workload, path or ClusterState
        The log, or the live state of a cluster.
    at : float, optional
        The moment, seconds of the log's clock; for a state that of the state.
    job : int or str, optional
        A waiting job; all by default.
    new : NewJob, optional
        A job that is submitted at the moment, instead.
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`.
    platform : Platform, optional
        The machine; by default that of the log's header, or of the state.
    history : Workload, optional
        Log of a cluster whose live state is given.
    state : {"simulated", "recorded"}, optional
        Origin of the state and of true starts; ``recorded`` by default if the log has them.
    futures, horizon, seed : int, float, int
        Number of futures (at least 19), their length (s), and the seed.
    options : Run, optional
        Options of the runs.
    arrivals : bool
        Whether later jobs arrive in the futures.
    model : str or object, optional
        A custom model of the future: an object as of `gridsim.forecasts.custom_model.CustomModel`, or
        ``file.py:Class``.
    calibrate : bool
        Whether earlier forecasts are made, which calibrate this one.
    at_most : float, optional
        Time for the futures, s; it chooses their number.
    instead : sequence of str
        Another shape of the only job: ``cores=48``, ``walltime=1h``.
    parts : sequence of float
        Parts of its cores and of its limit to try.
    until_empty : bool
        Whether to forecast when the queue is empty.
    compare_without : bool
        Whether to compare each job with the same futures without windows, reservations and failures.
    workers : int or Workers
        Number of processes; results do not depend on it.
    progress : callable, optional
        Called with the number of earlier forecasts that are made, and of all.

    Returns
    -------
    Answer
        The forecasts, by median, and the state.

    Raises
    ------
    InputError
        For a moment outside the log, a history that is too short, and a job that does not wait.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1], runtime=[900, 60], cores=[4, 4], cores_stated=4)
    >>> forecast(jobs, at=2, futures=19, arrivals=False, calibrate=False).jobs[0].requested
    898.0
    """
    if isinstance(log, ClusterState) and at is not None:
        raise InputError("is for a log; a live state has its own moment", field="at")
    if uses_run_times(predictor := getattr(make_policy(policy), "predict", None)):
        raise InputError(f"predict={name_of(predictor)} needs true run times, unknown in a forecast", field="policy")
    run_options = options or Run()
    asked = Options(futures, cast("int", horizon), seed, state, arrivals, custom_model(model))
    if isinstance(log, ClusterState):
        asked, failures = replace(asked, source="recorded"), run_options.failures
        on_nodes = failures is not None and failures.only_windows
        if failures is not None and failures.need_nodes and not on_nodes:
            message = "need nodes, and a live state is one pool of cores; expected --maintenance"
            raise InputError(message, field="failures")
        log = log if new is None else new.in_state(log, history, make_policy(policy))
        start = StartingPoint.of(log, on_nodes=on_nodes, policy=make_policy(policy))
        found = _of_state(log, start, history, Machine(platform or start.platform, policy, run_options), asked)
    else:
        log = jobs_of(log, [make_policy(policy)])
        if not len(log):
            raise InputError("has no jobs, so there is no state to start from", path=log.provenance.get("source"))
        # Windows and failures are those of the futures: the state is reached, and earlier forecasts made, without them.
        earlier = forecaster_of(log, policy, platform, replace(run_options, failures=None), asked)
        found = _of_log(earlier, at, new, run_options)
    submit = found.forecaster.history.submit
    days = (found.state.at - int(submit[0])) / 86_400 if len(submit) else 0.0
    if arrivals and days < 14:
        message = f"has {days:.1f} days before the moment, and arrivals need 2 weeks; --no-arrivals leaves them out"
        raise InputError(message, field="history")
    places = _chosen(found, job if new is None else NAME)
    tried = _other_shapes(found, places, instead, parts) if instead or parts else []
    plain = _without(found.forecaster.machine) if compare_without else None
    if at_most is not None:
        found = found._replace(forecaster=_limited(found, places, at_most))
    sample, pairs = _sample(found, places, workers), []
    if calibrate and found.earlier is not None:
        questions = found.earlier.calibrating(found.state.at, "pending" if new is None else "new")
        pairs = found.earlier.pairs(questions, workers, progress)
    calibration = Calibration(pairs, found.forecaster.options.horizon) if calibrate else None
    answer = _answer(found, policy, places, sample, calibration)
    if plain is not None:
        answer = replace(answer, jobs=_compared(found, plain, answer, workers))
    if tried:
        answer = replace(answer, shapes=found.forecaster.shapes(found.state, places[0], tried))
    return replace(answer, empty=found.forecaster.until_empty(found.state)) if until_empty else answer


def forecaster_of(
    log: Workload, policy: Any, platform: Platform | None, run_options: Run, options: Options
) -> Forecaster:
    """Return the forecasts of a log, with its recorded schedule or that of the policy."""
    log.require_rigid("only rigid jobs have forecasts", field="workload")
    machine = Machine(platform or machine_for(log, policies=[make_policy(policy)]), policy, run_options)
    if len(list(machine.platform.clusters())) > 1:
        raise InputError("has several clusters; expected one, of which the state is known", field="platform")
    options = replace(options, source=options.source or ("recorded" if log.has_recorded_schedule else "simulated"))
    if options.source == "simulated":
        record = machine.run(replace(log, reactions=None))
        return Forecaster(log, record.start_us, record.end_us, machine, options, record.allocations)
    start, end = log.logged_last_start, log.logged_end
    if start is None or end is None:
        raise InputError("has no recorded starts; expected simulated", field="state")
    return Forecaster(log, start, end, machine, options)


def _of_log(earlier: Forecaster, at: float | None, new: NewJob | None, options: Run) -> _Moment:
    """Return a moment of a log; the futures have other options than earlier forecasts."""
    first, last = (int(it) // MICROSECOND for it in earlier.log.submit[[0, -1]])
    moment = last if at is None else at
    if not first <= moment <= earlier.last_event:
        given, *ends = (when(it, calendar_of(earlier.log.provenance)) for it in (moment, first, earlier.last_event))
        raise InputError(f"is {given}; expected {ends[0]} to {ends[1]}, the log", field="at")
    moment = int(moment)
    if new is not None:
        new.check(earlier.machine.platform, sited=capabilities_of(make_policy(earlier.machine.policy)).site)
    forecaster = earlier if new is None else earlier.with_job(new, moment)
    state, platform = forecaster.state(moment), forecaster.machine.platform
    on_nodes = any(cluster.nodes for cluster in platform.clusters())
    if options.failures is not None and options.failures.only_windows and not on_nodes:
        cores = max(platform.cores, forecaster.busy(state))
        platform = Platform.of_nodes([NodeGroup(group="cores", count=cores, capacity={"cores": 1})])
    forecaster = replace(forecaster, machine=Machine(platform, forecaster.machine.policy, options))
    overfull = "the running jobs hold more cores than the machine has, which is enlarged here"
    ids = [str(number) for number in forecaster.log.job[state.waiting].tolist()]
    ids = ids if new is None else [*ids[:-1], NAME]
    return _Moment(forecaster, state, ids, earlier, [overfull] * forecaster.overfull(state))


def _of_state(
    known: ClusterState, start: StartingPoint, history: Workload | None, machine: Machine, options: Options
) -> _Moment:
    """Return the moment of a live state; jobs of the history that run or wait are those of the state."""
    many, earlier = len(start.beginning.running), None
    at = 0 if history is None or history.epoch is None else known.at - int(history.epoch)
    run_options, past, ended = machine.options, start.jobs, np.zeros(len(start.jobs), dtype=np.bool_)
    if history is not None:
        if history.epoch is None:
            raise InputError("has no start date, which the moment of the state needs", field="history")
        if history.logged_end is None:
            raise InputError("has no recorded ends; expected the output of sacct", field="history")
        pool, plain = Platform.single(start.platform.cores), replace(run_options, failures=None)
        earlier = forecaster_of(history, machine.policy, pool, plain, options)
        past, ended = replace(history, reactions=None), earlier.end <= at * MICROSECOND
    if start.windows or run_options.failures is not None:
        windows = [replace(it, begin=it.begin + at, end=it.end + at, announced=at) for it in start.windows]  # type: ignore[operator]
        failures = replace(start, windows=tuple(windows)).with_windows(run_options.failures)
        machine = machine._replace(options=replace(run_options, failures=failures))
    machine = machine._replace(policy=start.policy or machine.policy)  # of the futures, not of earlier forecasts
    log, rows = start.after(past.select(ended), at)
    elapsed = np.array([passed for passed, _ in start.beginning.running], dtype=np.int64)
    begin = np.full(len(log), NEVER)
    end = begin.copy()
    if earlier is not None:
        others = np.setdiff1d(np.arange(len(log)), rows)
        begin[others], end[others] = earlier.start[ended], earlier.end[ended]
    begin[rows[:many]] = at * MICROSECOND - elapsed
    places = [place for _, place in start.beginning.running]
    enters = np.maximum(start.jobs.submit[many:], 0)
    state = State(at, rows[:many], rows[many:], elapsed, places, enters, start.beginning)
    earlier = earlier if history is not None and history.has_recorded_schedule else None
    forecaster = Forecaster(log, begin, end, machine, options)
    return _Moment(forecaster, state, start.ids[many:], earlier, start.notes, start.left_out, known)


def _chosen(found: _Moment, job: int | str | None) -> list[int]:
    """Return the positions of the jobs in question among the waiting ones."""
    if job is None:
        return list(range(len(found.ids)))
    name = str(job)
    if name in found.ids:
        return [list(found.ids).index(name)]
    if name in found.left_out:
        raise InputError(f"{name}: {found.left_out[name]}", field="job")
    why = found.forecaster.why_not_waiting(name, found.state)
    raise InputError(f"{name} {why}; expected a waiting job", field="job")


def _other_shapes(
    found: _Moment, places: Sequence[int], instead: Sequence[str], parts: Sequence[float]
) -> list[tuple[int, float]]:
    """Return the other shapes of the only job, by the options."""
    if len(places) != 1:
        raise InputError("is for one job; expected --job or --cores", field="instead" if instead else "shapes")
    own, row = found.forecaster, found.state.waiting[places[0]]
    tried = shapes_of(int(own.log.cores[row]), float(own.history.limit[row]), instead, parts)
    if (widest := max((cores for cores, _ in tried), default=0)) > (most := own.machine.platform.cores):
        raise InputError(f"{widest} cores; expected 1 to {most}, those of the machine", field="instead")
    return tried


def _limited(found: _Moment, asked: Sequence[int], at_most: float) -> Forecaster:
    """Return the forecaster with as many futures as fit in some seconds, by the speed of the first ones."""
    begun, options = time.perf_counter(), found.forecaster.options
    found.forecaster.sample(found.state, asked, range(min(3, options.futures)))
    each = (time.perf_counter() - begun) / 3
    many = max(LEAST_FUTURES, min(options.futures, int(at_most / max(each, 1e-9))))
    return replace(found.forecaster, options=replace(options, futures=many))


def _sample(found: _Moment, asked: Sequence[int], workers: int | Workers) -> FloatArray:
    """Return the waits in all futures, which are distributed over workers."""
    forecaster, state = found.forecaster, found.state
    with crew(workers, share=(forecaster, state)) as hands:
        parts = np.array_split(np.arange(forecaster.options.futures), hands.count)
        chosen = [part.tolist() for part in parts if len(part)]
        waits = [hands.submit(Forecaster.sample, forecaster, state, asked, part) for part in chosen]
        return np.concatenate([it.result() for it in waits])


def _observed(calibration: Calibration) -> dict[float, tuple[int, int]]:
    """Return hits and number of the last judged forecasts by level."""
    judged = zip(calibration.pairs, calibration.judged, strict=True)
    last = [(pair.wait, it.intervals) for pair, it in judged if it is not None][-LAST_JUDGED:]
    return {level: (sum(it[level].holds(wait) for wait, it in last), len(last)) for level in LEVELS}


def _answer(
    found: _Moment, policy: Any, asked: Sequence[int], sample: FloatArray, calibration: Calibration | None
) -> Answer:
    """Return the answer under a policy, as it was given."""
    forecaster, state, options = found.forecaster, found.state, found.forecaster.options
    runs, own = forecaster.runs(state), (found.earlier or forecaster).machine  # windows can replace its platform
    by_limits = runs.by_requested_walltimes(asked)
    requested = np.where(by_limits < NEVER, by_limits, np.inf).tolist()
    site = getattr(make_policy(policy), "site", None)
    stated = {} if found.known is None else {job.job: _stated(job, found.known.at, site) for job in found.known.waiting}
    earlier: dict[str, Any] = {"known": calibration and calibration.known(state.at)}
    earlier["observed"] = _observed(calibration) if calibration else {}
    jobs = []
    for place, waits, wait in zip(asked, sample.T, requested, strict=True):
        row, name, pair = int(state.waiting[place]), found.ids[place], forecaster.pair(state, place, waits, wait)
        more = {**earlier, **stated.get(name, {})}
        judged = None if calibration is None or more.get("not_modelled") else calibration.forecast(pair)
        judged = judged or uncalibrated(pair)
        size = (int(forecaster.log.cores[row]), float(forecaster.history.limit[row]))
        more |= {"waited": float(max(state.at - int(forecaster.history.submit[row]), 0)), "requested": wait}
        more |= {"sample": pair.of(judged.source), "source": judged.source, "pairs": len(judged.pairs)}
        more["intervals"] = {level: it.calibrated for level, it in judged.intervals.items()}
        jobs.append(JobForecast(name, *size, **more))
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].median)
    missing, cancelled = runs.model.missing_days(), forecaster.cancelled_share(state.at)
    notes = [*found.notes, *[f"the log is too short for arrivals on {missing:.0f} days of the horizon"] * bool(missing)]
    notes += ["later arrivals are left out"] * (not options.arrivals)
    notes += [f"the model of the future is {name_of(options.model)}"] * (options.model is not None)
    if capabilities_of(make_policy(policy)).plan:
        notes.append("the policy makes a new plan at the moment, in the order of the queue")
    if cancelled > 0.02:
        notes.append(f"{cancelled:.0%} of the jobs that waited were cancelled; the forecast is for a job that is not")
    what: dict[str, Any] = {"policy": policy if isinstance(policy, str) else name_of(make_policy(policy))}
    what |= {"state": options.source if found.known is None else "live", "left_out": found.left_out, "notes": notes}
    what |= {"machine": forecaster.machine.platform.cores, "running": len(state.running), "waiting": len(state.waiting)}
    what |= {"busy": forecaster.busy(state), "jobs": [jobs[i] for i in order], "samples": sample[:, order]}
    what |= {"futures": options.futures, "horizon": options.horizon, "seed": options.seed}
    what["cluster_state"] = found.known or cluster_state(state, forecaster.log, found.ids, own.platform)
    return Answer(at=float(state.at), calendar=calendar_of(forecaster.log.provenance), **what)


def _without(machine: Machine) -> Machine:
    """Return a machine without windows, failures and reservations; nodes that are closed at the moment stay closed."""
    failures = machine.options.failures or Failures()
    closed = Failures(windows=tuple(it for it in failures.windows if it.id == CLOSED))
    policy, reserves = make_policy(machine.policy), False
    if capabilities_of(policy).site:
        reserves = bool(policy.reservations or policy.site.reservations)
        policy = replace(policy, reservations=None, site=replace(policy.site, reservations=()))
    if replace(failures, windows=tuple(failures.windows)) == closed and not reserves:
        raise InputError("needs a maintenance, a reservation of the state, or failures", field="compare_without")
    options = replace(machine.options, failures=closed if closed.windows else None)
    return machine._replace(options=options, policy=policy)


def _compared(found: _Moment, plain: Machine, answer: Answer, workers: int | Workers) -> list[JobForecast]:
    """Return the jobs with their delay by windows, reservations and failures, in the same futures.

    Nodes of a live state that take no new jobs take none in either case.
    """
    place, jobs = {name: number for number, name in enumerate(found.ids)}, []
    found = found._replace(forecaster=replace(found.forecaster, machine=plain))
    without = _sample(found, [place[job.job] for job in answer.jobs], workers)
    for job, *waits in zip(answer.jobs, answer.samples.T, without.T, strict=True):
        own, other = np.minimum(waits, answer.horizon)
        jobs.append(replace(job, delay=(float(np.median(own - other)), int((own - other >= EARLIER).sum()))))
    return jobs


def _stated(job: WaitingJob, at: int, site: Any) -> dict[str, Any]:
    """Return what a live state says of a job: begin, dependency, limit (a *site* can have them), Slurm's estimate."""
    after = ", ".join(name for _, name, _ in job.after)
    modelled = site is not None and site.enforce and bool(site.qos or site.associations)
    limit = job.reason if job.reason.startswith(_UNMODELLED) else ""
    remarks = {"after": f"after job {after}", "not before": f"not before {job.eligible}"}
    remark = remarks.get(job.kind, f"blocked now by {limit}" if limit and modelled else "")
    estimate = None if job.slurm_start is None else float(max(job.slurm_start - at, 0))
    return {"remark": remark, "not_modelled": "" if modelled else limit, "slurm": estimate}


def backtest_forecasts(
    log: Workload | Paths,
    *,
    policy: Any = "easy",
    platform: Platform | None = None,
    state: Source | None = None,
    moments: int = 600,
    ask: Ask = "new",
    futures: int = 99,
    horizon: float = WEEK,
    seed: int = 1,
    options: Run | None = None,
    arrivals: bool = True,
    model: Any = None,
    workers: int | Workers = 1,
    progress: Progress | None = None,
) -> Backtest:
    """Make forecasts at earlier moments of a log and compare them with the truth and with three baselines.

    Parameters
    ----------
    log : Workload or path
        The log.
    policy : str or object
        A policy as for `gridsim.policy.presets.policy`.
    platform : Platform, optional
        The machine; by default that of the log's header.
    state : {"simulated", "recorded"}, optional
        Origin of the state and of true starts; ``recorded`` by default if the log has them.
    moments : int
        Number of moments.
    ask : {"new", "pending"}
        Jobs at their submission, or jobs that wait already.
    futures, horizon, seed : int, float, int
        Number of futures (at least 19), their length (s), and the seed.
    options : Run, optional
        Options of the runs.
    arrivals : bool
        Whether later jobs arrive in the futures.
    model : str or object, optional
        A custom model of the future: an object as of `gridsim.forecasts.custom_model.CustomModel`, or
        ``file.py:Class``.
    workers : int or Workers
        Number of processes; results do not depend on it.
    progress : callable, optional
        Called with the number of forecasts that are made, and of all.

    Returns
    -------
    Backtest
        Judged forecasts with their figures.

    Raises
    ------
    InputError
        If the log is too short for judged forecasts.
    """
    log = jobs_of(log, [make_policy(policy)])
    made = Options(futures, cast("int", horizon), seed, state, arrivals, custom_model(model))
    forecaster = forecaster_of(log, policy, platform, options or Run(), made)
    pairs = forecaster.pairs(forecaster.judged(moments, ask), workers, progress)
    found = Backtest(pairs, horizon, seed=seed)
    if (many := len(found.tests)) < 2:
        message = f"{len(pairs)} forecasts, and {many} of them with {found.needed} known before; expected two"
        raise InputError(f"{message}: a log of more than 10 weeks, or more moments", field="backtest")
    return found
