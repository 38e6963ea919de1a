"""Estimated start and earliest guaranteed completion of one more job under each policy, and the cost of deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError
from gridsim.forecasts.answer import Answer as Forecast
from gridsim.forecasts.answers import forecast
from gridsim.forecasts.model import WEEK
from gridsim.forecasts.new_job import NewJob, impossible, owned
from gridsim.forecasts.state import Machine
from gridsim.metrics.charges import category_slowdowns, core_class, time_class
from gridsim.metrics.utilisation import queue_length
from gridsim.model.dates import calendar_of
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, NEVER, IntArray, seconds, to_us
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.number_formatting import when
from gridsim.options import Run
from gridsim.policy.admission import quoting
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.capabilities import capabilities_of, search_of
from gridsim.policy.protocols import Offer
from gridsim.policy.site_policy import machine
from gridsim.policy.slurm.pending import RECORDED_WAIT
from gridsim.questions.labels import policies_of
from gridsim.questions.quotation import AbsentNodes, Answer, Price, Quoted, State
from gridsim.run_setup import in_site_zone
from gridsim.simulation import Moment, run, state_at

DEFAULT_POLICIES = ("conservative", "msb", "mrt", "qops", "fqops")
"""Default policies."""

_SMALLER = (1.0, 0.5)
"""Parts of the cores and of the walltime of smaller requests."""

_PARTS = 4
"""Number of steps between the tightest possible deadline and the one without cost."""


def quote(
    workload: Workload,
    *,
    at: float | None = None,
    cores: int | None = None,
    walltime: float,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    deadline: float | None = None,
    demand: Demand | None = None,
    owner: Mapping[str, str] | None = None,
    platform: Platform | None = None,
    options: Run | None = None,
    calibrate: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> Quoted:
    """Estimate when one more job would start, and which completion time could be guaranteed.

    Parameters and errors are those of `gridsim.quote`, which adds a view of the result.
    """
    workload.require_rigid("only a rigid job can be added", field="workload")
    made = policies_of(policies)
    platform, options = platform or machine(workload, policies=made.values()), options or Run()
    setups = {label: Machine(platform, scheduler, options) for label, scheduler in made.items()}
    sited = any(capabilities_of(scheduler).site for scheduler in made.values())
    if (cores is None) == (demand is None):
        raise InputError("expected either cores or a demand", field="cores")
    cores = cores if demand is None else demand.total("cores")
    assert cores is not None
    job = NewJob(cores, walltime, {}, demand)
    job.check(platform, sited=sited)
    if not len(workload):
        raise InputError("has no jobs, so there is no state to start from", path=workload.provenance.get("source"))
    if at is None:
        at = busiest_moment(workload, platform, options)
    workload = replace(in_site_zone(workload, made.values()), reactions=None)
    workload, labels = owned(workload, owner or {}, made.values())
    _check_times(at, walltime, deadline, workload)
    now, job = to_us(float(at)), job._replace(walltime=seconds(to_us(float(walltime))), labels=labels)
    recorded = recorded_state(workload, now) if sited and workload.has_recorded_schedule else None
    wanted = None if deadline is None else to_us(float(deadline))
    answers: dict[str, Answer] = {}
    moments: dict[str, Moment] = {}
    for label, setup in setups.items():
        hear = None if progress is None else partial(progress, f"{label}, jobs")
        moments[label] = _moment(workload, setup, job, now, hear)
        if demand is not None and not capabilities_of(setup.policy).site:
            _check_demand(label, moments[label])
        answers[label] = _answer(label, moments[label], setup, wanted)
    if now > last_event(workload) and not any(it.running + it.waiting for it in answers.values()):
        raise _after(seconds(now), workload)
    priced_by = _priced_by(moments)
    prices: Sequence[Price] = ()
    if priced_by is not None:
        slowdown = _usual_slowdown(setups[priced_by]._replace(policy="easy"), workload, job, now)
        prices = _prices(moments[priced_by], answers[priced_by], wanted, slowdown)
    quoted = Quoted(
        at=seconds(now),
        cores=cores,
        demand=demand,
        walltime=job.walltime,
        machine=platform.cores,
        deadline=None if wanted is None else seconds(wanted),
        answers=tuple(answers.values()),
        priced_by=priced_by,
        prices=tuple(prices),
        undated=int((workload.deadline[workload.submit <= now] >= NEVER).sum()),
        owner=dict(owner or {}),
        calendar=calendar_of(workload.provenance),
        recorded=recorded,
        absent=_absent(next(iter(moments.values()))),
    )
    forecasts: dict[str, Forecast] = {}
    unknown: dict[str, str] = {}
    for label, setup in setups.items():
        hear = None if progress is None else partial(progress, f"{label}, earlier forecasts")
        try:
            forecasts[label] = _forecast(workload, setup, job, now, calibrate=calibrate, progress=hear)
        except InputError as error:  # the answers of the policies remain
            unknown[label] = str(error)
    return replace(quoted, forecasts=forecasts, without_forecast=unknown)


def _forecast(
    workload: Workload, setup: Machine, job: NewJob, at: int, *, calibrate: bool, progress: Callable[[int], None] | None
) -> Forecast:
    """Forecast the start of the job, and of smaller ones, from the state of the log."""
    failures = setup.options.failures
    if failures is not None and (failures.trace or failures.models or failures.events):
        raise InputError("the forecast models no failures, only windows", field="failures")
    return forecast(
        workload,
        at=seconds(at),
        new=job,
        **setup._asdict(),
        arrivals=at - int(workload.submit[0]) >= to_us(2 * WEEK),
        calibrate=calibrate,
        parts=_SMALLER,
        progress=None if progress is None else lambda made, _: progress(made),
    )


def _moment(workload: Workload, setup: Machine, job: NewJob, at: int, progress: Callable[[int], None] | None) -> Moment:
    """Simulate the log and stop at the submission of the job.

    Under a policy that reads labels, the state is that of the log, if the log contains one.
    """
    recorded = capabilities_of(setup.policy).site and workload.has_recorded_schedule
    workload, job = job.in_log(as_recorded(workload, at) if recorded else workload, setup.policy)
    how: Any = {"demand": job.demand, "decided": recorded, "options": setup.options, "progress": progress}
    how |= {"cores": job.cores, "estimate": to_us(job.walltime), "labels": job.labels}
    return state_at(workload, setup.platform, setup.policy, at, **how)


def _check_demand(label: str, moment: Moment) -> None:
    """Raise an error for a demand that a policy does not support or the empty machine cannot hold."""
    asked = moment.cluster.demands
    if asked is None:
        message = f"the machine of {label} has no nodes or pools, so a job can only request cores"
        raise InputError(message, field="demand")
    if reason := asked.reason(moment.job):
        raise impossible(reason)


def _check_times(at: float, walltime: float, deadline: float | None, workload: Workload) -> None:
    begin = seconds(int(workload.submit[0]))
    if not begin <= at < seconds(NEVER - 1):
        raise InputError(f"{at:g} s is not within the log, which begins at {begin:g} s", field="at")
    if workload.has_recorded_schedule and at > seconds(last_event(workload)):
        raise _after(at, workload)
    if deadline is not None and not deadline >= at + walltime:
        message = f"{deadline:g} s is before {at + walltime:g} s, when the job would end if it started at once"
        raise InputError(message, field="deadline")


def _after(at: float, workload: Workload) -> InputError:
    """Return the error for a moment outside the log."""
    calendar = calendar_of(workload.provenance)
    moment, end = when(at, calendar), when(seconds(last_event(workload)), calendar)
    return InputError(f"{moment} is after the last event of the log, {end}: its state is unknown", field="at")


def snapshot(workload: Workload) -> tuple[Workload, float]:
    """Return the log with its running jobs unfinished, and the instant at which it was written, s of its clock.

    The instant is known if jobs were running; else it is the last submission. Run times of running jobs are replaced
    by their estimates.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 5], runtime=[3, 1], cores=[1, 1])
    >>> snapshot(log)[1]
    5.0
    """
    if not len(workload):
        raise InputError("has no jobs, so there is no state to start from", path=workload.provenance.get("source"))
    last = int(workload.submit.max())
    start, end = workload.logged_start, workload.logged_end
    if start is None or end is None:
        return workload, float(seconds(last))
    if "before_eligible" in workload.logged:  # for jobs held until a later begin time
        early = np.where(start < NEVER, 0, to_us(workload.logged["before_eligible"]))
        last = int((workload.submit - early).max())
    running = (start < NEVER) & (end >= NEVER)
    if not running.any():
        return workload, float(seconds(last))
    written = max(last, int((start + workload.runtime)[running].max()))
    runtime = np.where(running, np.maximum(workload.estimate, workload.runtime), workload.runtime)
    return replace(workload, runtime=runtime), float(seconds(written))


def busiest_moment(workload: Workload, platform: Platform, options: Run | None = None) -> float:
    """Return the submission with the longest queue under EASY, the first of several; seconds of the log's clock."""
    submit = seconds(workload.submit)
    waiting = queue_length(run(replace(workload, reactions=None), platform, "easy", options)).at(submit)
    return float(submit[int(np.argmax(waiting))])


def _answer(label: str, moment: Moment, setup: Machine, wanted: int | None) -> Answer:
    """Return the answer of one policy."""
    found = Answer(
        policy=label,
        promise=_promise(moment.cluster.scheduler),
        running=len(moment.running),
        busy=moment.cluster.cores - moment.cluster.free - _idle_cores_of_absent_nodes(moment),
        waiting=len(moment.waiting),
    )
    mine: Any = moment.cluster.scheduler
    if found.promise == "none":
        found = replace(found, start=_expected(moment, setup), keeps=None if wanted is None else False)
        held = mine.held_by(moment.job, moment.now) if capabilities_of(mine).site else ""
        return replace(found, held_by=held) if isinstance(held, str) else replace(found, refused_by=held)
    now = moment.now
    guarantee = quoting.earliest_guarantee(mine, moment.job, now)
    if wanted is not None:
        offer = quoting.asking(mine, moment.job, now)(wanted)
        found = replace(found, keeps=offer is not None and offer.granted <= wanted)
    if guarantee is None or guarantee.offer.start >= NEVER:  # it fits only on nodes whose return is unknown
        return found
    change = quoting.disturbance(mine.plan, guarantee.offer)
    return replace(
        found,
        guaranteed=seconds(guarantee.deadline),
        start=seconds(guarantee.offer.start),
        refused=float("nan") if guarantee.refused is None else seconds(guarantee.refused),
        moved=change.moved,
        delayed=change.delayed,
        delay=seconds(change.delay),
        delayed_job=None if change.request is None else int(moment.workload.job[change.request]),
        kills=_numbers(moment, guarantee.offer),
        lost=seconds(quoting.lost_work(mine.plan, guarantee.offer, now)),
    )


def _idle_cores_of_absent_nodes(moment: Moment) -> int:
    machine = moment.cluster.machine
    return 0 if machine.nodes is None else sum(map(machine.nodes.cores_left, machine.absent))


def _absent(moment: Moment) -> AbsentNodes | None:
    """Return the absent nodes and their known return; None if all are present."""
    machine = moment.cluster.machine
    if machine.nodes is None or not machine.absent:
        return None
    last = max(machine.absent.values())
    return AbsentNodes(len(machine.absent), len(machine.nodes.names), float("nan") if last >= NEVER else seconds(last))


def _expected(moment: Moment, setup: Machine) -> float:
    """Return the start if all jobs run as estimated and no others are submitted, s of the log's clock; NaN if rejected.

    The scheduler's own expectation is used if it has one (``expected_starts``).
    """
    own: Any = moment.cluster.scheduler
    if capabilities_of(own).expected_starts:
        if (quote := own.quote(moment.job, moment.now)) is None:
            return float("nan")
        own.commit(quote, moment.now)
        start = int(own.expected_starts(moment.now).get(moment.job, NEVER))
        if start < NEVER:
            return float(seconds(max(start, moment.now)))
    known = setup._replace(options=replace(setup.options, failures=moment.known))
    start = int(known.run(moment.as_estimated()).first_start_us[moment.job])
    return float("nan") if start >= NEVER else float(seconds(start))


def _promise(scheduler: Any) -> Literal["deadline", "start", "none"]:
    if quoting.keeps_deadlines(scheduler):
        return "deadline"
    return "start" if quoting.keeps_starts(scheduler) else "none"


def _numbers(moment: Moment, offer: Offer) -> tuple[int, ...]:
    """Return the numbers of the jobs that an offer kills."""
    return tuple(int(moment.workload.job[victim]) for victim in offer.kills)


def _priced_by(moments: Mapping[str, Moment]) -> str | None:
    """Return the policy for costs of tighter deadlines: the first with QoPS, else the first with deadlines."""
    schedulers: dict[str, Any] = {label: moment.cluster.scheduler for label, moment in moments.items()}
    able = [label for label, scheduler in schedulers.items() if quoting.keeps_deadlines(scheduler)]
    by_qops = [label for label in able if isinstance(search_of(schedulers[label].admission), QoPS)]
    return next(iter([*by_qops, *able]), None)


def _prices(moment: Moment, answer: Answer, wanted: int | None, slowdown: float) -> list[Price]:
    """Return prices of deadlines, from the tightest one to the earliest that the policy guarantees without kills.

    They include the earliest deadline that is possible with one kill, as found by bisection.
    """
    free = NEVER if np.isnan(answer.guaranteed) else to_us(answer.guaranteed)
    estimate = int(moment.workload.estimate[-1])

    def charge(deadline: int) -> float:
        return slowdown * estimate / (deadline - moment.now)

    tightest = moment.now + estimate
    steps = (free - tightest) // moment.tick if free < NEVER else 0
    tighter = {tightest + steps * part // _PARTS * moment.tick for part in range(_PARTS)}
    if wanted is not None:
        tighter.add(wanted)
    killer = quoting.killing(moment.cluster.scheduler)
    ask, plan = quoting.asking(killer, moment.job, moment.now), killer.plan
    if tightest < free < NEVER and (by_a_kill := quoting.search(ask, moment.now, tightest, free, moment.tick)):
        tighter.add(by_a_kill.deadline)
    found = []
    for deadline in sorted(deadline for deadline in tighter if deadline < free):
        if (offer := ask(deadline)) is None:
            found.append(Price(seconds(deadline), False, (), 0.0, float("nan"), charge(deadline)))
            continue
        lost, start = seconds(quoting.lost_work(plan, offer, moment.now)), seconds(offer.start)
        found.append(Price(seconds(deadline), True, _numbers(moment, offer), lost, start, charge(deadline)))
    if free < NEVER:
        found.append(Price(answer.guaranteed, True, answer.kills, answer.lost, answer.start, charge(free)))
    return found


def _usual_slowdown(easy: Machine, workload: Workload, job: NewJob, at: int) -> float:
    """Return the mean slowdown of the job's category under EASY; its walltime is used as its run time."""
    record = easy.run(workload.select(workload.submit <= at))
    known = category_slowdowns(record)
    time, core = time_class(np.array([to_us(job.walltime)])), core_class(np.array([job.cores]), record.cores)
    return float(known.mean[time[0], core[0]])


def last_event(workload: Workload) -> int:
    """Return the last submission, start or end in the log, whole microseconds.

    Without starts, jobs start immediately.
    """
    start, end = workload.logged_last_start, workload.logged_end
    if start is None or end is None:
        return int((workload.submit + workload.runtime).max(initial=0))
    known = [column[column < NEVER] for column in (start, end, _running_until(workload, start, end))]
    return int(np.concatenate([workload.submit, *known]).max(initial=0))


def _running_until(workload: Workload, start: IntArray, end: IntArray) -> IntArray:
    """Return the instant until which unfinished jobs are known to run; `NEVER` for all others."""
    return np.where((start < NEVER) & (end >= NEVER), start + workload.runtime, NEVER)


def recorded_state(workload: Workload, at: int) -> State:
    """Return the running and waiting jobs in the log at an instant (whole microseconds), after its ends and starts.

    A job of several runs waits until the last one, since the log does not contain the ends of the others.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 0, 5], runtime=[9, 9, 9], cores=[4, 2, 2], logged={"wait": [0, 7, 9]})
    >>> recorded_state(log, 6_000_000)
    State(running=1, busy=4, waiting=2)
    """
    start, end = _schedule(workload)
    running = (start <= at) & (end > at)
    after = workload.labels.get("withdrawn", np.full(len(workload), UNKNOWN))
    cancelled = (after >= 0) & (workload.submit + after * MICROSECOND <= at)
    waiting = (workload.submit <= at) & (start > at) & ~cancelled
    return State(int(running.sum()), int(workload.cores[running].sum()), int(waiting.sum()))


def as_recorded(workload: Workload, at: int) -> Workload:
    """Return the workload with jobs that start and end as in the log up to an instant.

    A policy that reads `RECORDED_WAIT` starts them as recorded. Jobs that exceeded their walltime in the log are not
    killed at it; one that still runs is expected to end next.
    """
    start, end = _schedule(workload)
    started = start <= at
    held = np.where(end < NEVER, end - start, np.maximum(workload.runtime, at - start + MICROSECOND))
    ran = np.where(started, np.minimum(held, at - start + MICROSECOND), 0)
    return replace(
        workload,
        runtime=np.where(started, held, workload.runtime),
        estimate=np.maximum(workload.estimate, ran),
        labels={**workload.labels, RECORDED_WAIT: start - workload.submit},
    )


def _schedule(workload: Workload) -> tuple[IntArray, IntArray]:
    """Return starts and ends in the log, which must have them."""
    start, end = workload.logged_last_start, workload.logged_end
    assert start is not None
    assert end is not None
    return start, end
