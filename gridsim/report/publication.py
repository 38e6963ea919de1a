"""Description and figures of a trace for publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim.model.dates import calendar_of
from gridsim.model.time import FloatArray, seconds
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.number_formatting import between, counted, duration, number, percent
from gridsim.report import audit_text
from gridsim.report.figures import INK, PALETTE, drawing, legend
from gridsim.report.markup import text_table, texts
from gridsim.workload.audit import Audit
from gridsim.workload.formats.table.writer import TableColumn
from gridsim.workload.problems import Problem

if TYPE_CHECKING:  # matplotlib takes 0.5 s to import
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_text = texts("audit")

PROMPTS = text_table("audit", "prompts")
"""Sections that the site must write, with their questions."""

CAPTIONS = text_table("audit", "captions")
"""Captions of the figures."""

_DAY, _HOUR = 86_400, 3_600


def figures(workload: Workload, audit: Audit) -> dict[str, Figure]:
    """Return the figures of `CAPTIONS` by name for which the trace has data."""
    found = {"arrivals": _arrivals(workload), "sizes": _sizes(workload), "runtimes": _runtimes(workload)}
    usage = _usage(audit)
    if usage is not None:
        found["usage"] = usage
    if "user" in workload.labels:
        found["users"] = _users(workload)
    return found


def _arrivals(workload: Workload) -> Figure:
    """Return a figure of jobs by hour of the day; by hours since the first submission if dates are unknown."""
    submit, calendar = seconds(workload.submit), calendar_of(workload.provenance)
    hour = (submit % _DAY / _HOUR).astype(np.int64)
    if calendar is not None:
        hours, place = np.unique(submit // _HOUR, return_inverse=True)
        hour = np.array([calendar.date(float(it * _HOUR)).hour for it in hours.tolist()])[place]
    share = np.bincount(hour, minlength=24)[:24] / len(hour)
    with drawing() as (figure, axes):
        axes.bar(np.arange(24) + 0.5, share, width=0.9, color=PALETTE[0])
        axes.set_xlim(0, 24)
        axes.set_xticks(range(0, 25, 4))
        axes.set_xlabel("hour of the day" if calendar is not None else "hours since the first submission, modulo 24")
        axes.set_ylabel("share of jobs")
        _shares(axes)
        return figure


def _cumulative(axes: Axes, values: FloatArray, weights: FloatArray, label: str, index: int) -> None:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    x, last = np.unique(values[order][::-1], return_index=True)
    share = total[::-1][last] / total[-1]
    axes.step([x[0], *x], [0, *share], where="post", label=label, color=PALETTE[index], linestyle=("-", "--")[index])


def _sizes(workload: Workload) -> Figure:
    cores = np.maximum(workload.cores, 1).astype(np.float64)
    with drawing() as (figure, axes):
        _cumulative(axes, cores, np.ones(len(cores)), "jobs", 0)
        _cumulative(axes, cores, workload.area.astype(np.float64), "core-seconds", 1)
        axes.set_xscale("log", base=2)
        ticks = [2.0**power for power in range(0, 24, 2) if 2.0**power <= 2 * cores.max()]
        axes.set_xticks(ticks, [number(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("cores")
        axes.set_ylabel("share")
        _shares(axes)
        legend(axes)
        return figure


def _runtimes(workload: Workload) -> Figure:
    one = np.ones(len(workload))
    with drawing() as (figure, axes):
        _cumulative(axes, seconds(workload.runtime), one, "run time", 0)
        _cumulative(axes, seconds(workload.estimate), one, "requested", 1)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        ticks = [it for it in (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400) if low <= it <= high]
        axes.set_xticks(ticks, [duration(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_ylabel("share of jobs")
        _shares(axes)
        legend(axes)
        return figure


def _usage(audit: Audit) -> Figure | None:
    view = "ran" if "ran" in audit.span else "unwaited"
    uses = [(it, it.ran if view == "ran" else it.unwaited) for it in audit.demands if not it.kind]
    known = [(it, use) for it, use in uses if use is not None and use.peak > 0]
    if not known:
        return None
    first, last = audit.span[view]
    with drawing() as (figure, axes):
        for index, (it, use) in enumerate(known[: len(PALETTE)]):
            top = use.peak if np.isnan(it.capacity) else it.capacity
            days = np.linspace(0, (last - first) / _DAY, len(use.series) + 1)[:-1]
            axes.step(days, use.series / top, where="post", label=it.resource, color=PALETTE[index], linewidth=0.8)
        axes.axhline(1, color=INK, linewidth=0.6)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("days" if view == "ran" else "days, without waiting")
        axes.set_ylabel("in use")
        _shares(axes, whole=False)
        legend(axes)
        return figure


def _users(workload: Workload) -> Figure:
    user = workload.labels["user"]
    known = user != UNKNOWN
    _, of = np.unique(user[known], return_inverse=True)
    heaviest = np.sort(np.bincount(of, weights=workload.area[known]))[::-1]
    share = np.cumsum(heaviest) / heaviest.sum()
    with drawing() as (figure, axes):
        axes.step(np.arange(len(share) + 1), [0, *share], where="post", color=PALETTE[0])
        axes.set_xlim(0, len(share))
        axes.set_xlabel("users, heaviest first")
        axes.set_ylabel("share of core-seconds")
        _shares(axes)
        return figure


def _shares(axes: Axes, *, whole: bool = True) -> None:
    from matplotlib.ticker import FuncFormatter

    if whole and axes.lines:
        axes.set_ylim(0, 1.01)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))


def description(
    workload: Workload,
    facts: Mapping[str, Any],
    audit: Audit,
    columns: Mapping[str, TableColumn],
    *,
    title: str,
    about: str | None,
    drawn: Sequence[str],
    shifted: bool,
) -> str:
    """Return the Markdown page of a trace; *about* is the text of the site, None if there is none."""
    parts = [f"# {title}", _first(workload, facts), *_about(about)]
    parts += ["## Facts", _table(("", ""), _facts(facts))]
    parts += ["## Files", _table(("file", "content"), [(f"`{name}`", what) for name, what in FILES.items() if what])]
    parts += [
        "### Columns of `jobs.csv`",
        _table(("column", "type", "meaning"), _fields(columns)),
        _clock(workload, shifted),
    ]
    parts += ["## How it was made", *_made(workload, shifted)]
    parts += ["## Checks", *_checks(audit)]
    parts += ["## Figures", *(f"![{name}](figures/{name}.svg)\n\n{CAPTIONS[name]}" for name in drawn)]
    cores = "" if workload.cores_stated is None else f" --machine {workload.cores_stated}"
    parts += ["## How to read it", _READING.format(cores=cores)]
    return "\n\n".join(parts) + "\n"


def _first(workload: Workload, facts: Mapping[str, Any]) -> str:
    calendar = calendar_of(workload.provenance)
    when = f", {between(facts['first_submit'], facts['last_submit'], calendar)}" if calendar else ""
    users = f" of {counted(facts['users'], 'user')}" if facts["users"] else ""
    jobs = counted(facts["jobs"], "job")
    return f"{jobs}{users}, submitted within {duration(facts['span'])}{when}. Names are pseudonyms."


def _about(about: str | None) -> Iterator[str]:
    if about is not None:
        yield about.strip()
        return
    for heading, prompt in PROMPTS.items():
        yield f"## {heading}"
        yield f"*To be written by the site: {prompt}*"


FILES = text_table("audit", "files")
"""Files of a published trace, with their descriptions in its ``README.md``."""


def _facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "jobs", number(facts["jobs"])
    for name in ("users", "groups", "queues"):
        yield name, "unknown" if facts[name] is None else number(facts[name])
    yield "machine", counted(facts["cores"], "core")
    yield "offered load", "unknown" if facts["offered_load"] is None else percent(facts["offered_load"])
    for name, what in (("size", "cores of a job"), ("runtime", "run time"), ("estimate", "requested time")):
        it = facts[name]
        show = number if name == "size" else duration
        median, mean, most = (show(it[column]) for column in ("median", "mean", "max"))
        yield what, f"median {median}, mean {mean}, 95th percentile {show(it['p95'])}, maximum {most}"
    accuracy = facts["accuracy"]
    yield "run time over requested time", f"mean {percent(accuracy['mean'])}, median {percent(accuracy['median'])}"
    yield "beyond the requested time", f"{counted(accuracy['over'], 'job')} ({percent(accuracy['over_share'])})"
    logged = facts["logged"]
    if logged and logged["wait"]:
        yield "wait", f"median {duration(logged['wait']['median'])}, mean {duration(logged['wait']['mean'])}"


def _fields(columns: Mapping[str, TableColumn]) -> Iterator[tuple[str, str, str]]:
    for name, it in columns.items():
        yield f"`{name}`", it.kind, it.meaning


def _clock(workload: Workload, shifted: bool) -> str:
    if workload.epoch is not None:
        return "Times are seconds since 1970-01-01 UTC."
    return f"Times are seconds since {'the first submission' if shifted else 'an unpublished instant'}."


def _made(workload: Workload, shifted: bool) -> Iterator[str]:
    source = workload.provenance
    read, kept = source.get("jobs_read", len(workload)), len(workload)
    form = source.get("format", "unknown")
    yield f"The trace has {number(kept)} of {number(read)} jobs in a log of the format `{form}`."
    problems = [Problem.from_json(entry) for entry in source.get("problems", ())]
    if problems:
        yield _table(
            ("damaged or impossible", "lines", "treatment"),
            ((f"`{it.kind}`", number(it.count), it.outcome) for it in problems),
        )
    yield (
        _text("pseudonyms")
        + (" Times were shifted so that the first submission is at 0; dates are not published." if shifted else "")
    )
    yield _text("remaining_risk")


def _checks(audit: Audit) -> Iterator[str]:
    yield _table(("", ""), audit_text.facts(audit))
    yield _table(audit_text.COLUMNS, audit_text.rows(audit))
    yield "\n".join(f"- {sentence}" for sentence in audit_text.verdict(audit))


def _table(head: Sequence[str], rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


_READING = """Any program that reads the Standard Workload Format reads `trace.swf.gz`. With gridsim:

```console
$ gridsim compare trace.swf.gz --policy fcfs --policy easy
$ gridsim compare jobs.csv --mapping mapping.toml{cores} --policy fcfs --policy easy
$ sha256sum -c SHA256SUMS
```"""
