"""What could be promised to one more job at a moment of a log, under each policy, and at what price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.metrics.charges import category_slowdowns, core_class, time_class
from gridsim.metrics.utilisation import queue_length
from gridsim.model.dates import calendar_of
from gridsim.model.machine import machine
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, seconds, whole
from gridsim.model.workload import Workload
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.quoting import (
    asking,
    disturbance,
    earliest_guarantee,
    keeps_deadlines,
    keeps_starts,
    killing,
    lost_work,
    search,
)
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.protocols import Offer
from gridsim.questions.labels import labelled
from gridsim.questions.owner import owned
from gridsim.record import Record
from gridsim.report.forecast import alternatives, expected_start, forecast
from gridsim.report.quotation import Answer, Price, Quotation
from gridsim.simulation import Moment, Run, run, state_at

__all__ = ["DEFAULT_POLICIES", "busiest_moment", "quote"]

DEFAULT_POLICIES = ("conservative", "msb", "mrt", "qops", "fqops")
"""Who is asked when nobody says who."""

_PARTS = 4
"""Steps between the tightest deadline there is and the one that costs nothing."""


def quote(
    workload: Workload,
    *,
    at: float | None = None,
    cores: int,
    walltime: float,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    deadline: float | None = None,
    owner: Mapping[str, str] | None = None,
    platform: Platform | None = None,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Quotation:
    """What could be promised to one more job at a moment of a log.

    The log is replayed under each policy until that moment, when the job comes after all others of the instant.

    Parameters
    ----------
    workload : Workload
        The log; its jobs come at its times, whatever their users would do.
    at : float, optional
        The moment, seconds of the log's clock; the arrival that meets the longest queue under EASY where left out.
    cores, walltime : int, float
        The job; the walltime in seconds.
    policies : iterable or mapping
        As `compare` takes them.
    deadline : float, optional
        A deadline to ask about, seconds of the log's clock.
    owner : mapping of str to str, optional
        Whose job it is and what it asks for: ``user``, ``account``, ``partition``, ``qos``, by name, as in the log or
        known to the site of a policy. Of no user, in the default partition, where left out.
    platform : Platform, optional
        The machine, one cluster; of the size that the workload's source states where left out.
    options : Run, optional
        Overrun, instant, seed, tick: the same for all.
    progress : callable, optional
        Told the label and the number of jobs released so far.

    Raises
    ------
    InputError
        When the job does not fit the machine, takes no time, or comes before the log begins; when the deadline is
        before *at* + *walltime*; for a name of the owner that is unknown.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2], cores_stated=4)
    >>> quote(log, at=2, cores=2, walltime=8, policies=["conservative"])["conservative"].guaranteed
    28.0
    """
    platform, options = platform or machine(workload), options or Run()
    named = labelled(policies)
    schedulers = {label: make_policy(what) for label, what in named.items()}
    _check_job(cores, walltime, platform)
    if not len(workload):
        raise InputError("has no jobs, so there is no moment to ask about", path=workload.provenance.get("source"))
    if at is None:
        at = busiest_moment(workload, platform, options)
    workload, labels = owned(replace(workload, reactions=None), owner or {}, schedulers.values())
    _check_times(at, walltime, deadline, workload)
    job = _Job(whole(float(at)), cores, whole(float(walltime)))
    asked = None if deadline is None else whole(float(deadline))
    answers: dict[str, Answer] = {}
    moments: dict[str, Moment] = {}
    for label, scheduler in schedulers.items():
        told = None if progress is None else partial(progress, label)
        moments[label] = state_at(
            workload, platform, scheduler, job.at, cores=cores, estimate=job.estimate, labels=labels, options=options,
            progress=told,
        )  # fmt: skip
        answers[label] = _answer(label, moments[label], scheduler, platform, options, asked)
    come = workload.select(workload.submit <= job.at)
    starts = asked is None and not any(it.promise == "deadline" for it in answers.values())
    priced_by, prices = _priced_by(moments), []
    if priced_by is not None:
        slowdown = _usual_slowdown(run(come, platform, "easy", options), job)
        prices = _prices(moments[priced_by], answers[priced_by], asked, slowdown)
    return Quotation(
        at=seconds(job.at),
        cores=cores,
        walltime=seconds(job.estimate),
        machine=platform.cores,
        deadline=None if asked is None else seconds(asked),
        answers=tuple(answers.values()),
        priced_by=priced_by,
        prices=tuple(prices),
        undated=int((come.deadline >= NEVER).sum()),
        forecasts=tuple(
            forecast(label, workload, moments[label], answers[label].start, platform, what, options)
            for label, what in schedulers.items()
            if starts
        ),
        alternatives=alternatives(
            workload,
            list(schedulers.items()),
            job.at,
            cores,
            job.estimate,
            platform=platform,
            options=options,
            labels=labels,
        )
        if starts and any(answer.start > seconds(job.at) for answer in answers.values())
        else (),
        owner=dict(owner or {}),
        calendar=calendar_of(workload.provenance),
    )


class _Job(NamedTuple):
    """The job that is asked about; instants in whole microseconds."""

    at: int
    cores: int
    estimate: int


def _check_job(cores: int, walltime: float, platform: Platform) -> None:
    if not isinstance(cores, int | np.integer) or not 1 <= cores <= platform.cores:
        raise InputError(f"{cores!r} cores; expected 1 to {platform.cores}, those of the machine", field="cores")
    if not 0 < walltime < seconds(NEVER - 1) or not whole(float(walltime)):
        raise InputError(f"{walltime:g} s; expected a walltime above 0 s that ends", field="walltime")


def _check_times(at: float, walltime: float, deadline: float | None, workload: Workload) -> None:
    begin = seconds(int(workload.submit[0]))
    if not begin <= at < seconds(NEVER - 1):
        raise InputError(f"{at:g} s is no moment of the log, which begins at {begin:g} s", field="at")
    if deadline is not None and not deadline >= at + walltime:
        raise InputError(
            f"{deadline:g} s is before {at + walltime:g} s, when the job would end if it began at once",
            field="deadline",
        )


def busiest_moment(workload: Workload, platform: Platform, options: Run | None = None) -> float:
    """The submit that meets the longest queue under EASY, the first of several; seconds of the log's clock."""
    submit = seconds(workload.submit)
    waiting = queue_length(run(replace(workload, reactions=None), platform, "easy", options)).at(submit)
    return float(submit[int(np.argmax(waiting))])


def _answer(label: str, moment: Moment, scheduler: Any, platform: Platform, options: Run, asked: int | None) -> Answer:
    """What one policy could promise."""
    found = Answer(
        policy=label,
        promise=_promise(moment.cluster.scheduler),
        running=len(moment.running),
        busy=moment.cluster.cores - moment.cluster.free,
        waiting=len(moment.waiting),
    )
    if found.promise == "none":
        start = expected_start(moment, platform, scheduler, options)
        begins = float("nan") if start >= NEVER else float(seconds(start))
        return replace(found, start=begins, keeps=None if asked is None else False)
    mine: Any = moment.cluster.scheduler
    now = moment.now
    guarantee = earliest_guarantee(mine, moment.job, now)
    if asked is not None:
        offer = asking(mine, moment.job, now)(asked)
        found = replace(found, keeps=offer is not None and offer.granted <= asked)
    if guarantee is None:
        return found
    change = disturbance(mine.plan, guarantee.offer)
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
        lost=seconds(lost_work(mine.plan, guarantee.offer, now)),
    )


def _promise(scheduler: Any) -> Literal["deadline", "start", "none"]:
    if keeps_deadlines(scheduler):
        return "deadline"
    return "start" if keeps_starts(scheduler) else "none"


def _numbers(moment: Moment, offer: Offer) -> tuple[int, ...]:
    """Job numbers of whom an offer kills."""
    return tuple(int(moment.workload.job[victim]) for victim in offer.kills)


def _priced_by(moments: Mapping[str, Moment]) -> str | None:
    """Who says what tighter deadlines cost: the first with QoPS, else the first that keeps deadlines at all."""
    schedulers: dict[str, Any] = {label: moment.cluster.scheduler for label, moment in moments.items()}
    able = [label for label, scheduler in schedulers.items() if keeps_deadlines(scheduler)]
    for label in able:
        admission = schedulers[label].admission
        if isinstance(getattr(admission, "inner", admission), QoPS):
            return label
    return able[0] if able else None


def _prices(moment: Moment, answer: Answer, asked: int | None, slowdown: float) -> list[Price]:
    """Prices of deadlines from the tightest one to the earliest that the policy guarantees by itself.

    Among them the earliest that one kill makes possible, as far as bisection finds it.
    """
    free = NEVER if np.isnan(answer.guaranteed) else whole(answer.guaranteed)
    estimate = int(moment.workload.estimate[-1])

    def charge(deadline: int) -> float:
        return slowdown * estimate / (deadline - moment.now)

    tightest = moment.now + estimate
    steps = (free - tightest) // moment.tick if free < NEVER else 0
    tighter = {tightest + steps * part // _PARTS * moment.tick for part in range(_PARTS)}
    if asked is not None:
        tighter.add(asked)
    killer = killing(moment.cluster.scheduler)
    ask, plan = asking(killer, moment.job, moment.now), killer.plan
    by_a_kill = search(ask, moment.now, tightest, free, moment.tick) if tightest < free < NEVER else None
    if by_a_kill is not None:
        tighter.add(by_a_kill.deadline)
    found = []
    for deadline in sorted(deadline for deadline in tighter if deadline < free):
        offer = ask(deadline)
        if offer is None:
            found.append(Price(seconds(deadline), False, (), 0.0, float("nan"), charge(deadline)))
            continue
        lost, start = seconds(lost_work(plan, offer, moment.now)), seconds(offer.start)
        found.append(Price(seconds(deadline), True, _numbers(moment, offer), lost, start, charge(deadline)))
    if free < NEVER:
        found.append(Price(answer.guaranteed, True, answer.kills, answer.lost, answer.start, charge(free)))
    return found


def _usual_slowdown(easy: Record, job: _Job) -> float:
    """Mean slowdown of the category of the job in a schedule of EASY; its walltime stands for its runtime."""
    known = category_slowdowns(easy)
    time, core = time_class(np.array([job.estimate])), core_class(np.array([job.cores]), easy.cores)
    return float(known.mean[time[0], core[0]])
