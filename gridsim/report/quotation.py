"""Text of estimates for one job: lines, tables for a terminal, sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import Demand
from gridsim.number_formatting import clock, counted, duration, listed, number, when
from gridsim.questions.quotation import Answer, Price, Quoted, State
from gridsim.report import forecast_text
from gridsim.report.explain_text import refusal
from gridsim.report.markup import texts
from gridsim.report.text_table import WIDTH, columns_of, either, sheet

if TYPE_CHECKING:
    from rich.console import RenderableType


_text = texts("quotation")

_LABELS = {"qos": "QOS"}


class Quotation(Quoted):
    """Estimates of several policies for one job with their output; for the attributes see `Quoted`."""

    __slots__ = ()

    @classmethod
    def view(cls, quoted: Quoted) -> Quotation:
        """Return estimates with output for existing data.

        Parameters
        ----------
        quoted : Quoted
            The data.

        Returns
        -------
        Quotation
            A view of the data.
        """
        return cls(*(getattr(quoted, it.name) for it in fields(quoted)))

    def __str__(self) -> str:
        """Return the estimates as text."""
        return "\n".join([repr(self), *sentences(self)])


def state_lines(quotation: Quoted) -> Iterator[str]:
    """Return plain-text lines on the moment, the job, and the state of the machine under each policy."""
    dates = quotation.calendar
    date = "" if dates is None else f"{when(quotation.at, dates)} {dates.zone_name}".rstrip() + ", "
    yield f"moment: {date}{clock(quotation.at)} of the log ({quotation.at:,.0f} s)"
    asked = "" if quotation.deadline is None else f", deadline {_at(quotation, quotation.deadline)}"
    owner = "".join(f", {_LABELS.get(label, label)} {name}" for label, name in quotation.owner.items())
    demand = "" if quotation.demand is None else _demanded(quotation.demand)
    yield f"job: {counted(quotation.cores, 'core')}{demand} for {duration(quotation.walltime)}{asked}{owner}"
    states: dict[str, list[str]] = {}
    logged = "" if quotation.recorded is None else _state(quotation.recorded, quotation.machine)
    if logged:
        states[logged] = []
    for it in quotation.answers:
        state = State(it.running, it.busy, it.waiting)
        states.setdefault(_state(state, quotation.machine), []).append(it.policy)
    if quotation.absent is not None:
        yield f"nodes: {_absent(quotation)}"
    for text, policies in states.items():
        where = ["in the log"] * (text == logged) + ([f"under {listed(policies)}"] if policies else [])
        yield f"state {listed(where)}: {text}"


def _absent(quotation: Quoted) -> str:
    """Return how many nodes are absent, and what is known of their return; empty if none are."""
    if quotation.absent is None:
        return ""
    absent, nodes, until = quotation.absent
    back = "repair unknown" if math.isnan(until) else f"the last returns in {duration(until - quotation.at)}"
    return f"{number(absent)} of {counted(nodes, 'node')} {'is' if absent == 1 else 'are'} absent; {back}"


def _never(quotation: Quoted, answer: Answer) -> bool:
    """Return whether the job fits at no known time, because nodes are absent."""
    return quotation.absent is not None and math.isnan(answer.start) and answer.refused_by is None


def _state(state: State, machine: int) -> str:
    runs = "1 job runs" if state.running == 1 else f"{number(state.running)} jobs run"
    waits = "1 waits" if state.waiting == 1 else f"{number(state.waiting)} wait"
    return f"{runs} on {number(state.busy)} of {counted(machine, 'core')}, {waits}"


def _demanded(demand: Demand) -> str:
    """Return the requested resources of a job other than cores.

    Examples
    --------
    >>> _demanded(Demand(tasks=2, each={"cores": 4, "memory": 8192}, gpu=500, pools={"idl": 1}, exclusive=True))
    ' in 2 tasks (each 4 cores, 8 GiB of memory, 0.5 GPUs), 1 of idl, whole nodes'
    """
    each = [
        counted(amount, "core") if name == "cores" else _amount(name, amount) for name, amount in demand.each.items()
    ]
    if demand.gpu:
        kinds = f" ({' or '.join(demand.gpu_kinds)})" if demand.gpu_kinds else ""
        each.append(f"{demand.gpu / WHOLE_GPU:g} {'GPU' if demand.gpu == WHOLE_GPU else 'GPUs'}{kinds}")
    tasks = f" in {counted(demand.tasks, 'task')} (each {', '.join(each)})" if demand.tasks else ""
    tasks += f" on {counted(demand.max_nodes, 'node')}" if demand.min_nodes == demand.max_nodes else ""
    more = [_amount(name, amount) for name, amount in demand.pools.items()]
    more += [f"nodes with {listed(list(demand.features))}"] if demand.features else []
    more += ["whole nodes"] if demand.exclusive else []
    return "".join([tasks, *(f", {one}" for one in more)])


def _amount(name: str, amount: int) -> str:
    if name == "memory":
        return f"{amount / 1024:g} GiB of memory"
    return f"{number(amount)} of {name}"


def has_answers(quotation: Quoted) -> bool:
    """Return whether the table of answers has more than the forecasts."""
    promised = any(it.promise != "none" for it in quotation.answers)
    return promised or quotation.deadline is not None or not quotation.forecasts


def answers_table(quotation: Quoted, *, width: int = WIDTH) -> RenderableType:
    """Return a table with one row per policy: the earliest guaranteed completion and its cost."""
    labels = [it.policy for it in quotation.answers]
    return either(labels, _answer_columns(quotation), first="policy", width=width)


def _at(quotation: Quoted, instant: float) -> str:
    return when(instant, quotation.calendar)


def _answer_columns(quotation: Quoted) -> dict[str, list[str]]:
    """Return the columns of the table by title, without labels."""
    rows: list[dict[str, str]] = []
    for it in quotation.answers:
        none = it.promise == "none"
        cells = {
            "guaranteed by": "no guarantee" if none else _at(quotation, it.guaranteed),
            "completed in": _from_now(it.guaranteed - quotation.at),
            "starts in": f"{_from_now(it.start - quotation.at)}{' ?' if none else ''}",
            "jobs moved": "-" if none else number(it.moved),
            "longest delay": "-" if none or not it.delay else duration(it.delay),
        }
        rows.append(cells if quotation.deadline is None else {**cells, "deadline kept": "yes" if it.keeps else "no"})
    return columns_of(rows)


def prices_table(quotation: Quoted, *, width: int = WIDTH) -> RenderableType:
    """Return a table with one row per deadline: jobs to kill, and the charge."""
    columns = columns_of(
        {
            "completed in": duration(it.deadline - quotation.at),
            "jobs to kill": _jobs(it.kills) if it.possible else "impossible",
            "work lost": _work(it.lost) if it.kills else "-",
            "QoS charge": "-" if math.isnan(it.charge) else f"{it.charge:.3g}",
        }
        for it in quotation.prices
    )
    return either([_at(quotation, it.deadline) for it in quotation.prices], columns, first="deadline", width=width)


def forecasts_table(quotation: Quoted, *, width: int = WIDTH) -> RenderableType:
    """Return a table with one row per policy: when the job starts, as intervals."""
    forecasts = quotation.forecasts
    columns = columns_of(forecast_text.times(it, it.jobs[0]) for it in forecasts.values())
    return either(list(forecasts), columns, first="policy", width=width)


def smaller_table(quotation: Quoted, *, width: int = WIDTH) -> RenderableType:
    """Return a table with one row per narrower or shorter job: its median start under each policy."""
    labels: list[str] = []
    columns: dict[str, list[str]] = {}
    for policy, it in quotation.forecasts.items():
        sizes = [(quotation.cores, quotation.walltime, it.jobs[0].median)]
        sizes += [(shape.cores, shape.limit, shape.median) for shape in it.shapes]
        labels = [f"{counted(cores, 'core')} for {duration(walltime)}" for cores, walltime, _ in sizes]
        columns[f"median under {policy}"] = [forecast_text.short(it, median) for *_, median in sizes]
    return sheet(labels, columns, first="job", width=width)


def _from_now(seconds: float) -> str:
    return "-" if math.isnan(seconds) else "now" if seconds < 1 else duration(seconds)


def _jobs(numbers: Sequence[int]) -> str:
    """Return jobs by number, worded so that a number is not read as a count."""
    return ", ".join(f"job {number}" for number in numbers) if numbers else "none"


def _work(core_seconds: float) -> str:
    hours = core_seconds / 3600
    return f"{hours:,.1f} core-hours" if hours >= 1 else f"{core_seconds:,.0f} core-seconds"


def sentences(quotation: Quoted) -> list[str]:
    """Return sentences on the tables, affected jobs, and the assumptions of guarantees."""
    return [
        *_best(quotation),
        *_at_no_time(quotation),
        *_requested_deadline(quotation),
        *_delays(quotation),
        *_kills(quotation),
        *_price(quotation),
        *_without(quotation),
        *_forecasts(quotation),
        *_rest(quotation),
    ]


def _at_no_time(quotation: Quoted) -> Iterator[str]:
    if names := [it.policy for it in quotation.answers if _never(quotation, it)]:
        yield f"Under {listed(names)} the job would start at no known time: {_absent(quotation)}."


def _best(quotation: Quoted) -> list[str]:
    promised = [it for it in quotation.answers if not math.isnan(it.guaranteed)]
    refusing = [it.policy for it in quotation.answers if it.promise != "none" and math.isnan(it.guaranteed)]
    refusing = [policy for policy in refusing if not _never(quotation, quotation[policy])]
    none = [f"{listed(refusing)} cannot guarantee the job any completion time."] if refusing else []
    if not promised:
        return none
    first = min(it.guaranteed for it in promised)
    names = [it.policy for it in promised if it.guaranteed == first]
    ahead = duration(first - quotation.at)
    if first <= quotation.tightest:
        return [f"{listed(names)} could guarantee completion in {ahead}: the job would start at once.", *none]
    return [f"The earliest completion that could be guaranteed is in {ahead}, under {listed(names)}.", *none]


def _requested_deadline(quotation: Quoted) -> Iterator[str]:
    """Return the policies that cannot guarantee the requested deadline."""
    if quotation.deadline is None:
        return
    asked = f"completion by {_at(quotation, quotation.deadline)}, in {duration(quotation.deadline - quotation.at)}"
    able = [it.policy for it in quotation.answers if it.keeps]
    yield f"{listed(able)} could guarantee {asked}." if able else f"No compared policy could guarantee {asked}."
    for it in quotation.answers:
        if not it.keeps and it.guaranteed <= quotation.deadline:
            yield _text("refused_although_earlier", it=it, at=_at(quotation, it.guaranteed))


def _delays(quotation: Quoted) -> Iterator[str]:
    """Return the jobs that would wait longer."""
    delayed: dict[str, list[str]] = {}
    for it in quotation.answers:
        if it.delayed_job is not None:
            most = "" if it.delayed == 1 else "at most "
            jobs = "1 job" if it.delayed == 1 else f"{number(it.delayed)} jobs"
            state = f"{jobs}, by {most}{duration(it.delay)} (job {it.delayed_job})"
            delayed.setdefault(state, []).append(it.policy)
    if delayed:
        parts = [f"{listed(policies)} {state}" for state, policies in delayed.items()]
        yield f"Waiting jobs would start later because of it, within their guarantees: under {'; under '.join(parts)}."


def _kills(quotation: Quoted) -> Iterator[str]:
    """Return the jobs that would be killed, by policies that kill jobs automatically."""
    for it in quotation.answers:
        if it.kills:
            yield f"{it.policy} would kill and restart {_jobs(it.kills)} for it, with {_work(it.lost)} of lost work."


def _price(quotation: Quoted) -> Iterator[str]:
    if quotation.priced_by is None:
        return
    if len(quotation.prices) == 1:
        yield f"Under {quotation.priced_by}, no tighter deadline is possible."
        return
    guaranteed = quotation[quotation.priced_by].guaranteed
    with_kill = [it for it in quotation.prices if it.kills]
    if with_kill:
        yield _tightest(quotation, with_kill[0])
    elif not any(it.possible and not it.deadline >= guaranteed for it in quotation.prices):
        yield f"Under {quotation.priced_by}, killing one running job would meet no tighter deadline of the table."
    if any(not math.isnan(it.charge) for it in quotation.prices):
        yield _text("qos_charge")


def _tightest(quotation: Quoted, first: Price) -> str:
    return (
        f"Under {quotation.priced_by}, completion in {duration(first.deadline - quotation.at)} would require a kill: "
        f"{_jobs(first.kills)} would be restarted within its guarantee, and lose {_work(first.lost)} of work."
    )


def _without(quotation: Quoted) -> Iterator[str]:
    """Return sentences on policies without guarantees, and on limits and rejections."""
    for it in quotation.answers:
        if it.refused_by is not None:
            yield f"{it.policy} rejects the job: {refusal(it.refused_by)}."
        elif it.held_by:
            yield f"Under {it.policy}, {it.held_by}, a limit of the site, holds the job now."
    names = [it.policy for it in quotation.answers if it.promise == "none" and not math.isnan(it.start)]
    if names and has_answers(quotation):
        yield _text("estimated_starts", names=names, plural="s" if len(names) == 1 else "")


def _forecasts(quotation: Quoted) -> Iterator[str]:
    """Return the forecasts of the start."""
    notes: dict[str, list[str]] = {}
    starts: dict[str, list[str]] = {}
    for policy, it in quotation.forecasts.items():
        answer = quotation[policy]
        if answer.refused_by is not None or _never(quotation, answer):
            continue
        first, *rest = forecast_text.sentences(replace(it, shapes=()))
        starts.setdefault(" ".join([first[0].lower() + first[1:], *rest]), []).append(policy)
        for note in it.notes:
            notes.setdefault(note, []).append(policy)
    yield from (f"Under {listed(policies)}, {start}" for start, policies in starts.items())
    for it in list(quotation.forecasts.values())[:1]:
        yield _text("forecast_state", it=it, horizon=duration(it.horizon))
    for note, policies in notes.items():
        yield f"Forecast under {listed(policies)}: {note}."
    for policy, why in quotation.without_forecast.items():
        yield f"There is no forecast under {policy}: {why}."


def _rest(quotation: Quoted) -> Iterator[str]:
    dated = [it.policy for it in quotation.answers if it.promise == "deadline"]
    if dated and quotation.undated:
        jobs = "1 job" if quotation.undated == 1 else f"{number(quotation.undated)} jobs"
        yield _text("assumed_deadlines", jobs=jobs, dated=dated)
