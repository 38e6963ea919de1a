"""A quotation as people read it: lines, tables for a terminal, sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gridsim.report.quotation import Forecast, Price, Quotation
from gridsim.report.tables import broken
from gridsim.report.words import counted, duration, listed, number, percent

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "alternatives_table",
    "answers_table",
    "clock",
    "forecasts_table",
    "prices_table",
    "sentences",
    "state_lines",
]

_WIDTH = 80
_LABELS = {"qos": "QOS"}


def clock(seconds: float) -> str:
    """An instant of the log's clock.

    Examples
    --------
    >>> clock(183_600), clock(float("nan"))
    ('2 d 03:00:00', '-')
    """
    if math.isnan(seconds):
        return "-"
    days, rest = divmod(round(seconds), 86_400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


def state_lines(quotation: Quotation, began: datetime | None = None) -> Iterator[str]:
    """The moment, the job, and the state of the machine under each policy; plain text.

    Parameters
    ----------
    began : datetime, optional
        When second 0 of the log's clock was.
    """
    date = "" if began is None else f", {began + timedelta(seconds=quotation.at):%Y-%m-%d %H:%M:%S %Z}".rstrip()
    yield f"moment: {clock(quotation.at)} of the log ({quotation.at:,.0f} s{date})"
    asked = "" if quotation.deadline is None else f", to end by {clock(quotation.deadline)}"
    owner = "".join(f", {_LABELS.get(label, label)} {name}" for label, name in quotation.owner.items())
    yield f"job: {counted(quotation.cores, 'core')} for {duration(quotation.walltime)}{asked}{owner}"
    states: dict[str, list[str]] = {}
    for it in quotation.answers:
        runs = "1 job runs" if it.running == 1 else f"{number(it.running)} jobs run"
        waits = "1 waits" if it.waiting == 1 else f"{number(it.waiting)} wait"
        state = f"{runs} on {number(it.busy)} of {counted(quotation.machine, 'core')}, {waits}"
        states.setdefault(state, []).append(it.policy)
    for state, policies in states.items():
        yield f"state under {listed(policies)}: {state}"


def answers_table(quotation: Quotation, *, width: int = _WIDTH) -> Table:
    """One row a policy: the earliest completion that it could guarantee, and at whose cost."""
    columns = _answer_columns(quotation)
    others = [max(map(len, "\n".join([title, *cells]).split("\n"))) + 2 for title, cells in columns.items()]
    labels = ["\n".join(broken(it.policy, max(width - 2 - sum(others), 12))) for it in quotation.answers]
    return _grid({"policy": labels, **columns})


def _answer_columns(quotation: Quotation) -> dict[str, list[str]]:
    """Columns beside the labels, by title."""
    columns: dict[str, list[str]] = {}
    for it in quotation.answers:
        none = it.promise == "none"
        cells = {
            "guaranteed by": "no promise" if none else clock(it.guaranteed),
            "that is in": _ahead(it.guaranteed - quotation.at),
            "starts in": f"{_ahead(it.start - quotation.at)}{' ?' if none else ''}",
            "jobs\nmoved": "-" if none else number(it.moved),
            "longest\ndelay": "-" if none or not it.delay else duration(it.delay),
            "kept": "yes" if it.keeps else "no",
        }
        for title, cell in cells.items():
            columns.setdefault(title, []).append(cell)
    if quotation.deadline is None:
        del columns["kept"]
    return columns


def prices_table(quotation: Quotation) -> Table:
    """One row a deadline: whom it would kill, and what it would be charged."""
    columns: dict[str, list[str]] = {}
    for it in quotation.prices:
        cells = {
            "deadline": clock(it.deadline),
            "that is in": duration(it.deadline - quotation.at),
            "kills": _jobs(it.kills) if it.possible else "not possible",
            "work lost": _work(it.lost) if it.kills else "-",
            "QoS charge": "-" if math.isnan(it.charge) else f"{it.charge:.3g}",
        }
        for title, cell in cells.items():
            columns.setdefault(title, []).append(cell)
    return _grid(columns)


def forecasts_table(quotation: Quotation, *, width: int = _WIDTH) -> Table:
    """One row a policy: the expected start, and where it was for earlier jobs of which the same was expected."""
    columns: dict[str, list[str]] = {}
    for it in quotation.forecasts:
        known = it.late == it.late
        half = f"{_when(quotation, it, it.early)} to {_when(quotation, it, it.late)}" if known else "-"
        cells = {
            "expected in": _ahead(it.start - quotation.at),
            "half start in": half,
            "9 of 10 within": _when(quotation, it, it.latest) if it.latest == it.latest else "-",
        }
        for title, cell in cells.items():
            columns.setdefault(title, []).append(cell)
    others = sum(max(map(len, [title, *cells])) + 2 for title, cells in columns.items())
    labels = ["\n".join(broken(it.policy, max(width - 2 - others, 12))) for it in quotation.forecasts]
    return _grid({"policy": labels, **columns})


def _when(quotation: Quotation, it: Forecast, part: float) -> str:
    """So much of the expected wait."""
    return duration((it.start - quotation.at) * part)


def alternatives_table(quotation: Quotation) -> Table:
    """One row a narrower or shorter job: when it would be expected to start under each policy."""
    columns: dict[str, list[str]] = {"a job of": []}
    asked = {it.policy: it.start for it in quotation.forecasts}
    rows = [(quotation.cores, quotation.walltime, asked)]
    rows += [(it.cores, it.walltime, dict(it.starts)) for it in quotation.alternatives]
    for cores, walltime, starts in rows:
        columns["a job of"].append(f"{counted(cores, 'core')} for {duration(walltime)}")
        for policy in asked:
            columns.setdefault("\n".join(broken(f"under {policy}", 24)), []).append(
                _ahead(starts[policy] - quotation.at)
            )
    return _grid(columns)


def _grid(columns: Mapping[str, Sequence[str]]) -> Table:
    """Columns by title; the first is on the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for place, title in enumerate(columns):
        grid.add_column(title, justify="right" if place else "left", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        grid.add_row(*map(Text, row))
    return grid


def _ahead(seconds: float) -> str:
    return "-" if math.isnan(seconds) else "now" if seconds < 1 else duration(seconds)


def _jobs(numbers: Sequence[int]) -> str:
    """Jobs by number, so that one is not read as how many."""
    return ", ".join(f"job {number}" for number in numbers) if numbers else "none"


def _work(core_seconds: float) -> str:
    hours = core_seconds / 3600
    return f"{hours:,.1f} core-hours" if hours >= 1 else f"{core_seconds:,.0f} core-seconds"


def sentences(quotation: Quotation) -> list[str]:
    """What the tables say, who would be touched, and what the promises rest on."""
    return [
        *_best(quotation),
        *_asked(quotation),
        *_delays(quotation),
        *_kills(quotation),
        *_price(quotation),
        *(_forecasts(quotation) if quotation.forecasts else _without(quotation)),
        *_rest(quotation),
    ]


def _best(quotation: Quotation) -> list[str]:
    promised = [it for it in quotation.answers if not math.isnan(it.guaranteed)]
    refusing = [it.policy for it in quotation.answers if it.promise != "none" and math.isnan(it.guaranteed)]
    told = [f"{listed(refusing)} could promise the job nothing at all."] if refusing else []
    if not promised:
        return told
    first = min(it.guaranteed for it in promised)
    names = [it.policy for it in promised if it.guaranteed == first]
    ahead = duration(first - quotation.at)
    if first <= quotation.tightest:
        return [f"{listed(names)} could guarantee completion in {ahead}: the job would start at once.", *told]
    return [f"The earliest completion that could be guaranteed is in {ahead}, under {listed(names)}.", *told]


def _asked(quotation: Quotation) -> Iterator[str]:
    """Who cannot promise the deadline that was asked for."""
    if quotation.deadline is None:
        return
    asked = f"completion by {clock(quotation.deadline)}, in {duration(quotation.deadline - quotation.at)}"
    able = [it.policy for it in quotation.answers if it.keeps]
    yield f"{listed(able)} could promise {asked}." if able else f"No policy asked could promise {asked}."
    for it in quotation.answers:
        if not it.keeps and it.guaranteed <= quotation.deadline:
            yield (
                f"{it.policy} refuses it, although it could promise the earlier {clock(it.guaranteed)}: its search "
                "does not find a plan for every later deadline."
            )


def _delays(quotation: Quotation) -> Iterator[str]:
    """Who would wait longer for the job."""
    delayed: dict[str, list[str]] = {}
    for it in quotation.answers:
        if it.delayed_job is not None:
            most = "" if it.delayed == 1 else "at most "
            jobs = "1 job" if it.delayed == 1 else f"{number(it.delayed)} jobs"
            state = f"{jobs}, by {most}{duration(it.delay)} (job {it.delayed_job})"
            delayed.setdefault(state, []).append(it.policy)
    if delayed:
        parts = [f"{listed(policies)} {state}" for state, policies in delayed.items()]
        yield f"Within what they were promised, waiting jobs would start later for it: under {'; under '.join(parts)}."


def _kills(quotation: Quotation) -> Iterator[str]:
    """Whom policies would kill that do so by themselves."""
    for it in quotation.answers:
        if it.kills:
            yield f"{it.policy} would kill {_jobs(it.kills)} for it, which loses {_work(it.lost)} and starts over."


def _price(quotation: Quotation) -> Iterator[str]:
    if quotation.priced_by is None:
        return
    if len(quotation.prices) == 1:
        yield f"Under {quotation.priced_by} there is no tighter deadline to pay for."
        return
    guaranteed = quotation[quotation.priced_by].guaranteed
    with_kill = [it for it in quotation.prices if it.kills]
    if with_kill:
        yield _tightest(quotation, with_kill[0])
    elif not any(it.possible and not it.deadline >= guaranteed for it in quotation.prices):
        yield f"Under {quotation.priced_by} no tighter deadline of the table could be met by killing one running job."
    if any(not math.isnan(it.charge) for it in quotation.prices):
        yield (
            "A QoS charge of 1 is for a deadline that asks for the slowdown which such jobs have under easy; half that "
            "slowdown costs 2."
        )


def _tightest(quotation: Quotation, first: Price) -> str:
    return (
        f"Under {quotation.priced_by}, completion in {duration(first.deadline - quotation.at)} would take a kill: "
        f"{_jobs(first.kills)} would start over, keep its promise and lose {_work(first.lost)} of work."
    )


def _without(quotation: Quotation) -> Iterator[str]:
    names = [it.policy for it in quotation.answers if it.promise == "none"]
    if names:
        yield (
            f"{listed(names)} promise{'s' if len(names) == 1 else ''} nothing; the start with a question mark is where "
            "the job would come if all jobs took as long as estimated and nobody else came."
        )


def _forecasts(quotation: Quotation) -> Iterator[str]:
    """When the job would start, and what such expectations were worth."""
    for it in quotation.forecasts:
        if math.isnan(it.start):
            yield f"{it.policy} does not say when the job would start: a limit holds it back, or it is turned away."
        elif it.start <= quotation.at:
            yield f"Under {it.policy} the job would start at once."
        else:
            yield _expected(quotation, it)


def _expected(quotation: Quotation, it: Forecast) -> str:
    ahead = f"in {duration(it.start - quotation.at)} if all jobs took as long as estimated and nobody else came"
    if math.isnan(it.late):
        return (
            f"Under {it.policy} the job would start {ahead}. Too few jobs that had to wait have started until then to "
            "say how far to trust that."
        )
    jobs = f"{number(it.jobs)} jobs {'of its size and length' if it.alike else 'of any size'}"
    nine = (
        ("", "")
        if math.isnan(it.latest)
        else (f", 9 of 10 within {_when(quotation, it, it.latest)}", f", 9 of 10 within {percent(it.latest)} of it")
    )
    return (
        f"Under {it.policy} it would start {ahead}. Of {jobs} that had to wait before, half started after "
        f"{percent(it.early)} to {percent(it.late)} of the wait that was expected when they came{nine[1]}; if this one "
        f"does like them, in {_when(quotation, it, it.early)} to {_when(quotation, it, it.late)}{nine[0]}."
    )


def _rest(quotation: Quotation) -> Iterator[str]:
    dated = [it.policy for it in quotation.answers if it.promise == "deadline"]
    if dated and quotation.undated:
        jobs = "1 job" if quotation.undated == 1 else f"{number(quotation.undated)} jobs"
        yield (
            f"{jobs} of the log until then asked for no deadline; {listed(dated)} made one up for each (see relaxation "
            "and artificial_floor in gridsim list policies), and keep it too."
        )
