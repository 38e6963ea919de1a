"""Text and files of forecasts: sentences, tables for a terminal, and the figures of a back-test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gridsim.forecasts.answer import CLEARLY, Answer, JobForecast, Shape
from gridsim.forecasts.backtest import BASELINES, Backtest
from gridsim.forecasts.intervals import FEWEST, LEVELS, quantile, raw_interval
from gridsim.number_formatting import clock, counted, duration, listed, number, percent
from gridsim.report.policy_descriptions import description
from gridsim.report.text_table import WIDTH, columns_of, sheet

if TYPE_CHECKING:
    from rich.console import RenderableType

_ROUNDED = ((2 * 3600, 60), (12 * 3600, 300), (48 * 3600, 900), (math.inf, 3600))
"""Waits below which times are rounded to these steps, s."""

_ENDS = [f"{side}_{level * 100:.0f}" for level in LEVELS for side in ("low", "high")]
"""Columns of the intervals in files."""

_EMPTY = ("no job of the present queue waits", "no job waits at all")

SIMILAR = """The simulation of the queue does not predict this site's starts better than the waits of similar jobs. \
The forecast uses these waits."""

WRONG_POLICY = """The simulation does not beat the waits of similar jobs: the policy of the site is missing, or the \
simulated one is wrong."""


def instant(answer: Answer, wait: float, *, up: bool | None = None, day: str = "%Y-%m-%d") -> str:
    """Return the moment after a wait, rounded up, down or to the nearest step, with the *day* on another day."""
    step = next(step for below, step in _ROUNDED if wait < below)
    zone = 0.0 if answer.calendar is None else answer.calendar.epoch
    steps = (answer.at + zone + wait) / step
    at = step * (round(steps) if up is None else math.ceil(steps) if up else math.floor(steps)) - zone
    at = max(at, answer.at) if not up else at
    if answer.calendar is None:
        return clock(at)
    date, now = answer.calendar.date(round(at)), answer.calendar.date(round(answer.at))
    return f"{date:%H:%M}" if date.date() == now.date() else f"{date:{day} %H:%M}"


def sentence(answer: Answer, job: JobForecast, level: float = 0.9) -> str:
    """Return the forecast of a job as a sentence."""
    name = f"Job {job.job}" if job.job[:1].isdigit() else job.job.capitalize()
    unknown = f" Not modelled: {job.not_modelled}." * bool(job.not_modelled)
    if job.at_once:
        return f"{name} starts now.{unknown}"
    low, high = job.intervals[level]
    later = f"later than {duration(answer.horizon)}"
    if low > answer.horizon:
        span = later
    elif high > answer.horizon:
        span = "from now on" if low <= 0 else f"after {instant(answer, low, up=False)}"
    else:
        first = "from now on, at the latest" if low <= 0 else f"between {instant(answer, low, up=False)} and"
        span = f"{first} {instant(answer, high, up=True)}{',' * (low <= 0)}"
    hits, many = job.observed.get(level, (0, 0)) if job.pairs else (0, 0)
    stated = percent(hits / many if is_low(level, hits, many) else level)
    found = f"{name} starts {span} with {stated} probability (calibrated on {job.pairs} earlier forecasts)"
    if not job.pairs:
        why = f": {job.known} earlier forecasts, {FEWEST} needed" if job.known and job.known < FEWEST else ""
        found = f"{name} starts {span} in {stated} of the futures (not calibrated{why})"
    median = later if job.median > answer.horizon else instant(answer, job.median) if job.median > 0 else "now"
    found += f"; median {median}."
    if not math.isfinite(high):
        found += " No later limit can be stated."
    if many:
        found += f" Of the last {many} such forecasts {hits} contained the start."
    if job.remark:
        found += f" {remark_text(answer, job.remark)}."
    return found + unknown


def remark_text(answer: Answer, remark: str) -> str:
    """Return the begin time or the dependency of a job; empty if it has none."""
    kind, _, when = remark.rpartition(" ")
    if kind != "not before":
        return remark[:1].upper() + remark[1:]
    since = 0.0 if answer.calendar is None else answer.calendar.epoch
    return f"Not before {instant(answer, float(when) - since - answer.at)} (begin time)"


def state_lines(answer: Answer) -> Iterator[str]:
    """Yield lines on the moment, the state, and what is not modelled."""
    date = "" if answer.calendar is None else f"{answer.calendar.date(answer.at):%Y-%m-%d %H:%M:%S}, "
    yield f"moment: {date}{clock(answer.at)} of the log" if answer.state != "live" else f"moment: {date}live state"
    running = f"{counted(answer.running, 'job')} running on {number(answer.busy)} of {counted(answer.machine, 'core')}"
    yield f"state ({answer.state}): {running}, {number(answer.waiting)} waiting"
    policy = description(answer.policy).removesuffix(".")
    yield f"policy: {policy}; {answer.futures} futures of {duration(answer.horizon)}, seed {answer.seed}"
    yield from (f"note: {note}" for note in answer.notes)


def sentences(answer: Answer) -> Iterator[str]:
    """Yield the sentences of a forecast: of one job, or on all of them."""
    if any(job.source != "futures" for job in answer.jobs):
        yield SIMILAR
    if len(answer.jobs) == 1:
        yield sentence(answer, answer.jobs[0])
    elif not answer.jobs:
        yield "No job waits for cores at this moment."
    elif not any(job.pairs for job in answer.jobs):
        known = answer.jobs[0].known
        why = f": {known} earlier forecasts, {FEWEST} needed" if known else ", as there are no earlier forecasts"
        yield f"The intervals are not calibrated{'' if known is None else why}."
    else:
        pairs = sorted({job.pairs for job in answer.jobs if job.pairs})
        yield f"The intervals are calibrated on {' to '.join(map(str, pairs[:1] + pairs[1:][-1:]))} earlier forecasts."
    if len(answer.jobs) > 1:
        yield from coverage_lines(answer)
        for blocked in sorted({job.not_modelled for job in answer.jobs if job.not_modelled}):
            yield f"Not modelled: {blocked} ({listed([it.job for it in answer.jobs if it.not_modelled == blocked])})."
    for shape in answer.shapes:
        yield shape_sentence(answer, answer.jobs[0], shape)
    yield from delay_lines(answer)
    for what, sample in zip(_EMPTY, answer.empty or (), strict=False):
        median, span = quantile(sample, 0.5), between(answer, raw_interval(sample, 0.9))
        first = f"From {short(answer, median)} on {what}"
        if median > answer.horizon:
            first = f"It takes longer than {duration(answer.horizon)} until {what}"
        yield f"{first} (median; 90 %: {span}; not calibrated)."
    yield from (f"Job {job} has no forecast: {why}." for job, why in answer.left_out.items())


def delay_lines(answer: Answer) -> Iterator[str]:
    """Yield which jobs start later because of windows and failures, if they were compared."""
    compared = [(job, *job.delay) for job in answer.jobs if job.delay is not None]
    later = [(job, delay) for job, delay, many in compared if many >= CLEARLY * answer.futures]
    if compared:
        jobs = f"{len(later)} of {counted(len(compared), 'job')} {'starts' if len(later) == 1 else 'start'}"
        shown = [f"job {job.job} by {duration(delay)}" for job, delay in later[:5]]
        found = f"{jobs} at least 1 min later than without windows and failures, in at least {percent(CLEARLY)} of the"
        yield f"{found} futures{f': {listed(shown)} (median)' if shown else ''}."


def coverage_lines(answer: Answer) -> Iterator[str]:
    """Yield how many of the last forecasts contained the start at each level, and whether they are too few."""
    many, parts = 0, []
    for level, (hits, many) in answer.jobs[0].observed.items():
        parts.append(f"{hits} at {percent(level)}{' (significantly fewer)' * is_low(level, hits, many)}")
    if many:
        yield f"Of the last {many} such forecasts, the interval contained the start of {listed(parts)}."


def is_low(level: float, hits: int, many: int) -> bool:
    """Return whether the observed coverage of recent forecasts is significantly below the level."""
    return many == 100 and hits / many < level - 3 * math.sqrt(level * (1 - level) / many)


def shape_sentence(answer: Answer, job: JobForecast, shape: Shape) -> str:
    """Return whether another shape of a job starts earlier, as a sentence."""
    parts = [f"{counted(shape.cores, 'core')} instead of {job.cores}"] * (shape.cores != job.cores)
    parts += [f"{duration(shape.limit)} instead of {duration(job.limit)}"] * (shape.limit != job.limit)
    often = f"in {shape.earlier} of {shape.futures} futures"
    name, median = listed(parts), short(answer, shape.median)
    verb = f"starts earlier {often}, by {duration(shape.difference)} (median)"
    found = verb if shape.clearly else f"starts at least 1 min earlier {'only ' * (shape.earlier > 0)}{often}"
    killed = f"; {percent(shape.killed)} of similar runs would exceed the limit" * (shape.killed > 0)
    return f"{name} {found}; median {median}{killed}."


def table(answer: Answer, width: int = WIDTH) -> RenderableType:
    """Return the table of a forecast, a row for each job."""
    columns: dict[str, list[Any]] = {
        "cores": [number(job.cores) for job in answer.jobs],
        "limit": [duration(job.limit) for job in answer.jobs],
        "waited": [duration(job.waited) for job in answer.jobs],
        **columns_of(times(answer, job) for job in answer.jobs),
    }
    return sheet([job.job for job in answer.jobs], columns, first="job", width=width)


def times(answer: Answer, job: JobForecast) -> dict[str, str]:
    """Return the median, the intervals and the start by limits of a job, by title."""

    levels = {f"{level:.0%}": between(answer, job.intervals[level]) for level in LEVELS}
    return {"median": short(answer, job.median), **levels, "by limits": short(answer, job.requested)}


def between(answer: Answer, ends: tuple[float, float]) -> str:
    """Return an interval for a table; ends that are written in the same way, once."""
    return " – ".join(dict.fromkeys((short(answer, ends[0], up=False), short(answer, ends[1], up=True))))


def short(answer: Answer, wait: float, *, up: bool | None = None) -> str:
    """Return the moment after a wait for a table."""
    if wait <= 0:
        return "now"
    return f"> {duration(answer.horizon)}" if wait > answer.horizon else instant(answer, wait, up=up, day="%m-%d")


def files(answer: Answer) -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Yield name, header and rows of the tables of a forecast; times in seconds from the moment on."""
    header = ["job", "cores", "limit", "waited", "median", *_ENDS, "calibrated", "pairs", "source", "requested"]
    header += ["slurm", "delay", "delayed", "not_modelled", "reason"]
    rows: list[list[Any]] = []
    for job in answer.jobs:
        both = [end for level in LEVELS for end in job.intervals[level]]
        times = [_cell(value) for value in (job.median, *both)]
        more = [int(job.pairs > 0), job.pairs, job.source, _cell(job.requested), job.slurm]
        more += [*(job.delay or (None, None)), job.not_modelled, remark_text(answer, job.remark)]
        rows.append([job.job, job.cores, job.limit, job.waited, *times, *more])
    rows += [[job, *[None] * (len(header) - 2), why] for job, why in answer.left_out.items()]
    yield "forecast.csv", header, rows
    samples = zip(answer.jobs, answer.samples.T.tolist(), strict=True)
    cells = [[job.job, k, _cell(wait)] for job, waits in samples for k, wait in enumerate(waits)]
    yield "samples.csv", ["job", "future", "wait"], cells


def _cell(value: float) -> float | str:
    """Return a time for a file; empty beyond the horizon."""
    return round(value, 3) if math.isfinite(value) else ""


def backtest_file(found: Backtest) -> tuple[str, list[str], list[list[Any]]]:
    """Return name, header and rows of the table of a back-test, a row for each judged moment."""
    header = ["at", "wait", "source", "pairs", *_ENDS, "requested", "last", "loss"]
    rows = []
    for (pair, judged), loss in zip(found.tests, found.losses["forecast"].tolist(), strict=True):
        both = [_cell(end) for level in LEVELS for end in judged.intervals[level].calibrated]
        first = [pair.at, _cell(pair.wait), judged.source, len(judged.pairs)]
        rows.append([*first, *both, _cell(pair.requested), _cell(pair.last), _cell(loss)])
    return "backtest.csv", header, rows


def backtest_table(figures: dict[str, Any], width: int = WIDTH) -> RenderableType:
    """Return the coverage of a back-test, a row for each level."""
    return sheet([f"{level:.0%}" for level in LEVELS], backtest_columns(figures), first="interval", width=width)


def backtest_columns(figures: dict[str, Any]) -> dict[str, list[str]]:
    """Return the columns of the table of coverage by title."""
    levels = [f"{level:.0%}" for level in LEVELS]
    return {
        "raw coverage": [f"{figures[it]['raw']:.3f}" for it in levels],
        "coverage": [f"{figures[it]['calibrated']:.3f} ({figures[it]['standard_error']:.3f})" for it in levels],
        "median width, h": [f"{figures[it]['width_h']:.2f}" for it in levels],
        "no upper end": [f"{figures[it]['no_upper_end']:.3f}" for it in levels],
    }


def backtest_sentences(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the statements of a back-test."""
    ninety = figures["90%"]
    share = f"{100 * ninety['calibrated']:.1f} % (standard error {100 * ninety['standard_error']:.1f})"
    width = f"its median width is {ninety['width_h']:.1f} h" if math.isfinite(ninety["width_h"]) else "most have no end"
    yield f"Of {figures['tests']} jobs, {share} started within the 90 % interval; {width}."
    losses, wrong = figures["pinball_h"], f"{figures['mae_h']['median']:.2f} h"
    yield f"On average the jobs waited {figures['mean_wait_h']:.2f} h, and the median is wrong by {wrong}."
    yield f"The loss is {losses['forecast']:.2f} h."
    for baseline, name in BASELINES.items():
        skill, error = figures["skill"][baseline]
        compared = f"{100 * abs(skill):.0f} % ({100 * error:.0f}) {'lower' if skill > 0 else 'higher'} than"
        if not abs(skill) > 2 * error:
            yield f"There is no significant difference to the {name} (loss {losses[baseline]:.2f} h)."
        else:
            yield f"The loss is {compared} that of the {name} ({losses[baseline]:.2f} h)."
    if figures["by_futures"] < figures["tests"]:
        yield f"Waits of similar jobs were the source of {figures['tests'] - figures['by_futures']} of these forecasts."
        if losses["futures"] >= losses["alike"]:
            yield WRONG_POLICY
    if not 0.85 <= ninety["calibrated"] <= 0.96:
        yield "The coverage of the 90 % intervals is outside the goal of 85 to 96 %."
