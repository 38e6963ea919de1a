"""Forecasts of the starts of waiting jobs, at a moment of a log or from the state of a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gridsim.entities.starting_point import StartingPoint
from gridsim.errors import InputError, name_of
from gridsim.forecasts.answer import Answer, JobForecast
from gridsim.forecasts.backtest import Backtest
from gridsim.forecasts.forecaster import Ask, Forecaster, NewJob, Options, Source
from gridsim.forecasts.intervals import FEWEST, LEVELS, Calibration, Judged, Pair, raw_interval
from gridsim.forecasts.model import WEEK
from gridsim.forecasts.runs import Machine
from gridsim.forecasts.shapes import shapes, shapes_of
from gridsim.forecasts.shapes import until_empty as when_empty
from gridsim.forecasts.state import State
from gridsim.model.cluster_state import ClusterState, WaitingJob
from gridsim.model.dates import calendar_of
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import uses_run_times
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import machine as machine_for
from gridsim.scenario import jobs_of
from gridsim.simulation import run
from gridsim.workers import Workers, crew
from gridsim.workload.read import Paths

LEAST_FUTURES = 19
"""Fewest futures of a forecast with a limited time."""

LAST_JUDGED = 100
"""Number of judged forecasts of which the observed share of hits is stated."""

_UNMODELLED = ("Assoc", "QOS", "MaxJobs")
"""Beginnings of Slurm's reasons that name a limit which no policy but Slurm's models."""

Progress = Callable[[int, int], None]


class _Moment(NamedTuple):
    """State, jobs and earlier forecasts from which a forecast is computed."""

    forecaster: Forecaster
    state: State
    ids: Sequence[str]
    earlier: Forecaster | None
    left_out: Mapping[str, str]
    notes: Sequence[str]
    known: ClusterState | None = None
    waiting: Mapping[str, WaitingJob] = {}  # of a live state, by id


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
    calibrate: bool = True,
    at_most: float | None = None,
    instead: Sequence[str] = (),
    parts: Sequence[float] = (),
    until_empty: bool = False,
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
        Number of futures, their length (s), and the seed.
    options : Run, optional
        Options of the runs.
    arrivals : bool
        Whether later jobs arrive in the futures.
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
    if horizon < 3600:
        raise InputError(f"is {horizon:g} s; expected at least 1 h", field="horizon")
    if uses_run_times(getattr(make_policy(policy), "predict", None)):
        raise InputError(f"{name_of(make_policy(policy))} needs true run times, which are unknown", field="policy")
    how: dict[str, Any] = {"futures": futures, "horizon": int(horizon), "seed": seed, "arrivals": arrivals}
    run_options = options or Run()
    if isinstance(log, ClusterState):
        found = _of_state(log, history, policy, platform, run_options, Options(source="recorded", **how))
    else:
        log = jobs_of(log, [make_policy(policy)])
        found = _of_log(log, at, new, policy, platform, run_options, Options(source=state or _source(log), **how))
    _check_history(found, arrivals)
    asked = _chosen(found, job if new is None else found.ids[-1])
    if at_most is not None:
        found = found._replace(forecaster=_limited(found, asked, at_most))
    sample = _sample(found, asked, workers)
    ask: Ask = "pending" if new is None else "new"
    calibration = _calibration(found, ask, workers, progress) if calibrate else None
    label = policy if isinstance(policy, str) else name_of(make_policy(policy))
    answer = _answer(found, asked, sample, calibration, label)
    if instead or parts:
        if len(asked) != 1:
            raise InputError("is for one job; expected a job, or the cores of a new one", field="instead")
        tried = shapes_of(answer.jobs[0].cores, answer.jobs[0].limit, instead, parts)
        answer = replace(answer, shapes=shapes(found.forecaster, found.state, asked[0], tried))
    return replace(answer, empty=when_empty(found.forecaster, found.state)) if until_empty else answer


def _source(log: Workload) -> Source:
    return "recorded" if log.has_recorded_schedule else "simulated"


def _schedule(log: Workload, policy: Any, platform: Platform, options: Run, source: Source) -> tuple[Any, Any, Any]:
    """Return starts, ends and allocations: recorded, or of the policy."""
    if source == "recorded":
        start, end = log.logged_last_start, log.logged_end
        if start is None or end is None:
            raise InputError("has no recorded starts; expected simulated", field="state")
        return start, end, None
    record = run(replace(log, reactions=None), platform, policy, options)
    return record.start_us, record.end_us, record.allocations


def forecaster_of(
    log: Workload, policy: Any, platform: Platform | None, run_options: Run, options: Options
) -> Forecaster:
    """Return the forecasts of a log, with its recorded schedule or that of the policy."""
    log.require_rigid("only rigid jobs have forecasts", field="workload")
    platform = platform or machine_for(log, policies=[make_policy(policy)])
    start, end, allocations = _schedule(log, policy, platform, run_options, options.source)
    return Forecaster(log, start, end, Machine(platform, policy, run_options), options, allocations)


def _of_log(
    log: Workload,
    at: float | None,
    new: NewJob | None,
    policy: Any,
    platform: Platform | None,
    run_options: Run,
    options: Options,
) -> _Moment:
    if not len(log):
        raise InputError("has no jobs, so there is no state to start from", path=log.provenance.get("source"))
    # Windows and failures are those of the futures: earlier forecasts are made, and the state is reached, without them.
    earlier = forecaster_of(log, policy, platform, replace(run_options, failures=None), options)
    last = int(log.submit[-1]) // MICROSECOND
    moment = last if at is None else int(at)
    if not int(log.submit[0]) // MICROSECOND <= moment or moment > int(earlier.last_event):
        first = int(log.submit[0]) // MICROSECOND
        raise InputError(f"is {moment} s; expected {first} to {int(earlier.last_event)} s, the log", field="at")
    forecaster = earlier if new is None else earlier.with_job(new, moment)
    if run_options.failures is not None:
        forecaster = forecaster.with_options(run_options)
    state = forecaster.state(moment)
    overfull = "the running jobs hold more cores than the machine has, which is enlarged here"
    notes = [overfull] * forecaster.overfull(state)
    ids = [str(number) for number in forecaster.log.job[state.waiting].tolist()]
    if new is not None:
        ids[-1] = "the new job"
    return _Moment(forecaster, state, ids, earlier, {}, notes)


def _of_state(
    known: ClusterState,
    history: Workload | None,
    policy: Any,
    platform: Platform | None,
    run_options: Run,
    options: Options,
) -> _Moment:
    """Return the moment of a live state; jobs of the history that run or wait are those of the state."""
    start = StartingPoint.of(known)
    n, many = len(start.jobs), len(start.beginning.running)
    origin = known.at if history is None or history.epoch is None else int(history.epoch)
    at = known.at - origin
    if start.windows:
        found = [replace(it, begin=it.begin + at, end=it.end + at, announced=at) for it in start.windows]  # type: ignore[operator]
        failures = replace(start, windows=tuple(found)).with_windows(run_options.failures)
        run_options = replace(run_options, failures=failures)
    past = start.jobs.select(slice(0)) if history is None else _ended(history, at)
    log, rows = start.after(past, at)
    begin: IntArray = np.full(len(log), NEVER, dtype=np.int64)
    end = begin.copy()
    if len(past):
        place = np.setdiff1d(np.arange(len(log)), rows)
        assert past.logged_last_start is not None
        assert past.logged_end is not None
        begin[place], end[place] = past.logged_last_start, past.logged_end
    elapsed = np.array([passed for passed, _ in start.beginning.running], dtype=np.int64)
    begin[rows[:many]] = at * MICROSECOND - elapsed
    machine = Machine(platform or start.platform, policy, run_options)
    forecaster = Forecaster(log, begin, end, machine, options)
    places = [place for _, place in start.beginning.running]
    enters = np.maximum(start.jobs.submit[many:n], 0)
    state = State(at, rows[:many], rows[many:], elapsed, places, enters, start.beginning)
    earlier = None
    if history is not None and history.has_recorded_schedule:
        plain = Machine(Platform.single(start.platform.cores), policy, replace(run_options, failures=None))
        begins, ends = history.logged_last_start, history.logged_end
        assert begins is not None
        assert ends is not None
        earlier = Forecaster(history, begins, ends, plain, options)
    return _Moment(
        forecaster,
        state,
        start.ids[many:],
        earlier,
        start.left_out,
        start.notes,
        known,
        {job.job: job for job in known.waiting},
    )


def _ended(history: Workload, at: int) -> Workload:
    """Return the jobs of a log that ended at or before a moment, s."""
    end = history.logged_end
    if end is None:
        raise InputError("has no recorded ends; expected the output of sacct", field="history")
    return replace(history.select(end <= at * MICROSECOND), reactions=None)


def _check_history(found: _Moment, arrivals: bool) -> None:
    """Raise an error for less than two weeks of history, unless there are no arrivals."""
    submit = found.forecaster.history.submit
    if arrivals and (not len(submit) or found.state.at - int(submit[0]) < 2 * WEEK):
        days = 0.0 if not len(submit) else (found.state.at - int(submit[0])) / 86_400
        message = f"has {days:.1f} days before the moment, and arrivals need 2 weeks; --no-arrivals leaves them out"
        raise InputError(message, field="history")


def _chosen(found: _Moment, job: int | str | None) -> list[int]:
    """Return the positions of the jobs in question among the waiting ones."""
    if job is None:
        return list(range(len(found.ids)))
    name = str(job)
    if name in found.ids:
        return [list(found.ids).index(name)]
    if name in found.left_out:
        raise InputError(f"{name}: {found.left_out[name]}", field="job")
    raise InputError(
        f"{name} {found.forecaster.why_not_waiting(name, found.state)}; expected a waiting job", field="job"
    )


def _limited(found: _Moment, asked: Sequence[int], at_most: float) -> Forecaster:
    """Return the forecaster with as many futures as fit in some seconds, by the speed of the first ones."""
    begun = time.perf_counter()
    found.forecaster.sample(found.state, asked, range(min(3, found.forecaster.options.futures)))
    each = (time.perf_counter() - begun) / 3
    many = max(LEAST_FUTURES, min(found.forecaster.options.futures, int(at_most / max(each, 1e-9))))
    return found.forecaster.with_futures(many)


def _sample(found: _Moment, asked: Sequence[int], workers: int | Workers) -> FloatArray:
    forecaster, many = found.forecaster, found.forecaster.options.futures
    if workers == 1:
        return forecaster.sample(found.state, asked)
    with crew(workers, share=(forecaster, found.state)) as hands:
        parts = np.array_split(np.arange(many), hands.count)
        answers = [hands.submit(_part, forecaster, found.state, asked, part.tolist()) for part in parts if len(part)]
        return np.concatenate([answer.result() for answer in answers])


def _part(forecaster: Forecaster, state: State, asked: Sequence[int], futures: Sequence[int]) -> FloatArray:
    """Return the waits in some futures, in a worker."""
    return forecaster.sample(state, asked, futures)


def _calibration(
    found: _Moment, ask: Ask, workers: int | Workers, progress: Progress | None
) -> tuple[Calibration, Forecaster] | None:
    if found.earlier is None:
        return None
    questions = found.earlier.calibrating(found.state.at, ask)
    pairs = found.earlier.pairs(questions, workers=workers, progress=progress, keep=True)
    return Calibration(pairs, found.earlier.options.horizon), found.earlier


def _observed(calibration: Calibration) -> dict[float, tuple[int, int]]:
    """Return hits and number of the last judged forecasts by level."""
    judged = [(pair, it) for pair, it in zip(calibration.pairs, calibration.judged, strict=True) if it is not None]
    found = {}
    for level in LEVELS:
        last = judged[-LAST_JUDGED:]
        ends = [it.intervals[level].calibrated for _, it in last]
        hits = sum(low <= pair.wait <= high for (low, high), (pair, _) in zip(ends, last, strict=True))
        found[level] = (hits, len(last))
    return found


def _answer(
    found: _Moment,
    asked: Sequence[int],
    sample: FloatArray,
    calibration: tuple[Calibration, Forecaster] | None,
    policy: str,
) -> Answer:
    forecaster, state, options = found.forecaster, found.state, found.forecaster.options
    runs = forecaster.runs(state, model := forecaster.model(state))
    requested = runs.by_requested_walltimes(asked).astype(np.float64)
    observed = {} if calibration is None else _observed(calibration[0])
    jobs = []
    for column, place in enumerate(asked):
        row = int(state.waiting[place])
        waited = state.at - int(forecaster.history.submit[row])
        pair = Pair(state.at, math.nan, np.sort(sample[:, column]), forecaster.similar(row, state.at, waited))
        reason, remark, slurm = _of_known(found, place)
        judged: Judged | None = None
        if calibration is not None and not reason:
            judged = calibration[0].forecast(pair)
        source = "futures" if judged is None else judged.source
        waits = pair.of(source)
        intervals = {level: raw_interval(waits, level) for level in LEVELS}
        if judged is not None:
            intervals = {level: it.calibrated for level, it in judged.intervals.items()}
        known = 0 if calibration is None else calibration[0].known(state.at)
        many, limit = int(forecaster.log.cores[row]), float(forecaster.history.limit[row])
        by = (0 if judged is None else len(judged.pairs), known, source, float(requested[column]), observed)
        given: tuple[Any, ...] = (float(max(waited, 0)), waits, intervals, *by, remark, reason, slurm)
        jobs.append(JobForecast(found.ids[place], many, limit, *given))
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].median, i))
    missing = model.missing_days()
    notes = [*found.notes, *([f"arrivals are missing for {missing:.0f} of the days of the horizon"] * bool(missing))]
    if not options.arrivals:
        notes.append("later arrivals are left out")
    cancelled = forecaster.cancelled_share(state.at)
    if cancelled > 0.02:
        notes.append(f"{cancelled:.0%} of the jobs that waited were cancelled; the forecast is for a job that is not")
    return Answer(
        float(state.at),
        calendar_of(forecaster.log.provenance),
        policy,
        "live" if found.known is not None else options.source,
        forecaster.machine.platform.cores,
        len(state.running),
        int(forecaster.log.cores[state.running].sum()),
        len(state.waiting),
        [jobs[i] for i in order],
        found.left_out,
        notes,
        options.futures,
        options.horizon,
        options.seed,
        sample[:, order],
    )


def _of_known(found: _Moment, place: int) -> tuple[str, str, float | None]:
    """Return the limit that blocks a job of a live state and is not modelled, its begin or dependency, and estimate."""
    if found.known is None:
        return "", "", None
    job = found.waiting[found.ids[place]]
    blocked = job.reason if job.reason.startswith(_UNMODELLED) else ""
    remark = "after job " + ", ".join(name for _, name, _ in job.after) if job.kind == "after" else ""
    if job.kind == "not before":
        remark = f"not before {job.eligible}"
    return blocked, remark, None if job.slurm_start is None else float(max(job.slurm_start - found.known.at, 0))


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
        Number of futures, their length (s), and the seed.
    options : Run, optional
        Options of the runs.
    arrivals : bool
        Whether later jobs arrive in the futures.
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
    how: dict[str, Any] = {"futures": futures, "horizon": int(horizon), "seed": seed, "arrivals": arrivals}
    log = jobs_of(log, [make_policy(policy)])
    made = Options(source=state or _source(log), **how)
    forecaster = forecaster_of(log, policy, platform, options or Run(), made)
    pairs = forecaster.pairs(forecaster.judged(moments, ask), workers=workers, progress=progress, keep=True)
    found = Backtest(pairs, horizon, seed=seed)
    if len(found.tests) < 2:
        needed = f"{found.needed} earlier ones at least a horizon before, {FEWEST} at least"
        raise InputError(f"has {len(pairs)} forecasts, none with {needed}; expected a longer log", field="backtest")
    return found
