"""The page: one HTML file that needs no network, with everything that came out of a log escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from gridsim.metrics.compare import Difference
from gridsim.metrics.deadlines import outcomes
from gridsim.metrics.fairness import large_users
from gridsim.metrics.groups import LABELLED
from gridsim.report import (
    admission,
    captions,
    curves,
    explain,
    figures,
    gantt,
    robustness,
    sentences,
    tables,
    whatif_text,
)
from gridsim.report.markup import TEMPLATES, breakable, environment, p_shown, prose, ratio_shown, style
from gridsim.report.trust import trust
from gridsim.report.words import duration, listed, number, percent
from gridsim.workload.problems import KINDS, Problem, option

if TYPE_CHECKING:
    from gridsim.report.evidence import Evidence

__all__ = ["render"]

METHOD = (
    "Every job is compared with itself under the other policy, and the verdict is on the ratio of the two means.",
    "Jobs that wait together are no independent witnesses, so the evidence is in blocks of consecutive jobs, merged "
    "while neighbours are much alike; intervals are Student's t over the blocks, widened for the correlation that "
    "remains.",
    "p values are corrected by Holm for all pairs of one metric, and for all groups of one kind; with too few "
    "independent blocks no verdict is given.",
)


class Picture(NamedTuple):
    """A figure on the page, what it shows in words, and the file with its numbers."""

    title: str
    text: str
    svg: Markup
    file: str


class Found(NamedTuple):
    """One kind of damaged line: how many, where, and what was done."""

    name: str
    number: str
    lines: str
    meaning: str
    outcome: str
    option: str


def render(comparison: Evidence, *, beside: Collection[str] = ()) -> str:
    """Text of the page.

    Parameters
    ----------
    beside : collection of str
        Files of numbers that will be in the folder of the page, to link to; others are only named.
    """
    templates = environment(
        duration=duration,
        number=number,
        percent=percent,
        signed=_signed,
        p=p_shown,
        prose=prose,
        breakable=breakable,
        ratio=ratio_shown,
        changed=tables.changed,
        lines=whatif_text.lines,
    )
    script = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("explain.js", "gantt.js"))
    kept = comparison.kept
    rows = slice(None) if kept.all() else kept
    return templates.get_template("page.html.j2").render(
        comparison=comparison,
        title=str(comparison.info.get("title") or "comparison"),
        lead=list(_lead(comparison)),
        answer=sentences.answer(comparison),
        caveats=sentences.caveats(comparison),
        table=tables.rows(comparison.metrics, moldable=comparison.of_moldable),
        by_weight=robustness.categories(comparison),
        of_deadlines=admission.of_deadlines(comparison),
        same_jobs=comparison.comparable,
        kills=sum(int(record.kills.sum()) for record in comparison.records.values()),
        pictures=list(_pictures(comparison, rows)),
        over_users=list(_over_users(comparison)),
        winners=list(_winners(comparison)),
        trust=trust(comparison),
        what_if=whatif_text.lead(comparison.whatifs) if comparison.whatifs else [],
        what_if_columns=list(whatif_text.SHOWN.values()),
        what_if_note=whatif_text.NOTE,
        example=_example(comparison),
        beside=beside,
        clear_groups=_clear_groups(comparison),
        facts=list(_facts(comparison.info)),
        problems=list(_problems(comparison.info.get("workload", {}))),
        method=METHOD,
        group_name=sentences.group_name,
        pack=gantt.pack(comparison.records, first=comparison.best, platform=comparison.platform, tick=comparison.tick),
        style=style("page.css"),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


def _lead(comparison: Evidence) -> Iterator[str]:
    """What was compared, in a few pieces."""
    record = comparison.records[comparison.baseline]
    yield _counted(len(record), "job")
    if record.workload.tasks is not None:
        yield _counted(len(record.workload.tasks), "task")
    clusters = 1 if comparison.platform is None else len(list(comparison.platform.clusters()))
    yield f"{number(record.cores)} cores" + (f" in {clusters} clusters" if clusters > 1 else "")
    if len(record) == 1:
        return
    span = float(record.submit.max() - record.submit.min())
    yield f"submitted over {duration(span)}"
    load = comparison.metrics[comparison.baseline]["offered_load"]
    if load == load:
        yield f"offered load {percent(load)}"


def _counted(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def _pictures(comparison: Evidence, rows: Any) -> Iterator[Picture]:
    records = comparison.records
    names = ", ".join(records) if len(records) < 5 else f"{len(records)} policies"
    if admission.of_deadlines(comparison):
        yield _picture_of_deadlines(comparison, rows)
    if comparison.of_dags:
        yield from _pictures_of_dags(comparison, rows, names)
        return
    yield Picture(
        "How long jobs wait",
        captions.by_policy(comparison, "wait_median", "Half of the jobs wait at most {}.", duration)
        + f"Share of the jobs that waited at most so long, under {names}. Higher is better; the height at the left "
        "edge is the share that did not wait at all.",
        _inline(figures.waits(records, rows), "waits"),
        "distributions.csv",
    )
    if comparison.of_moldable:
        yield Picture(
            "How long jobs take from submission to end",
            captions.by_policy(comparison, "response_median", "Half of the jobs take at most {}.", duration)
            + f"Share of the jobs whose response was at most so long, under {names}. Higher is better.",
            _inline(figures.responses(records, rows), "responses"),
            "distributions.csv",
        )
    else:
        yield Picture(
            "How much longer than its runtime a job takes",
            captions.by_policy(comparison, "bounded_slowdown_mean", "The mean bounded slowdown is {}.", _few)
            + f"Share of the jobs whose bounded slowdown was at most so large, under {names}. Higher is better.",
            _inline(figures.slowdowns(records, rows, bound=comparison.bound), "slowdowns"),
            "distributions.csv",
        )
    yield Picture(
        "How busy the machine is",
        captions.by_policy(comparison, "utilisation", "The machine is busy for {}.", percent)
        + f"Busy share of the cores over time, means of {curves.BINS} equal bins, under {names}.",
        _inline(figures.utilisation(records), "utilisation"),
        "over_time.csv",
    )
    yield Picture(
        "How many jobs wait",
        captions.by_policy(comparison, "queue_length_mean", "Waiting jobs on average: {}.", _few)
        + f"Waiting jobs over time, means of {curves.BINS} equal bins, under {names}.",
        _inline(figures.queue(records), "queue"),
        "over_time.csv",
    )


def _few(value: float) -> str:
    """A mean with three digits."""
    return number(value) if value >= 100 else f"{value:.3g}"


def _over_users(comparison: Evidence) -> Iterator[Picture]:
    """How users fare against each other over time, where the log names them."""
    found = curves.fairness(comparison)
    if not found:
        return
    labels = comparison.labels
    yield Picture(
        "How unequally users are slowed down",
        "Gini coefficient of the mean bounded slowdowns of users, by when their jobs were submitted: 0 where all users "
        f"are slowed down alike, towards 1 where one of them bears it all. {sentences.inequality(found)}",
        _inline(figures.inequality(found, labels), "inequality"),
        "fairness.csv",
    )
    users = len(large_users(comparison.records[comparison.baseline]))
    yield Picture(
        "How much of the machine the largest users hold",
        sentences.large_users_held(found, users),
        _inline(figures.largest_share(found, labels), "largest-share"),
        "fairness.csv",
    )


def _example(comparison: Evidence) -> list[str]:
    """Why the job that waited longest under the best policy did; nothing of DAG jobs or where no job waited."""
    record = comparison.records[comparison.best]
    if comparison.of_dags or not (record.wait > 0).any():
        return []
    schedules = {label: explain.Schedule.of(each) for label, each in comparison.records.items()}
    longest = schedules[comparison.best].longest()
    told = explain.sentences(explain.explain(schedules[comparison.best], longest), comparison.best)
    under = explain.waits(schedules, longest)
    others = [
        f"{'did not run' if wait != wait else f'waited {duration(wait)}' if wait else 'started at once'} under {label}"
        for label, (_, wait) in under.items()
        if label != comparison.best
    ]
    return [*told, f"It {listed(others)}."] if others else told


def _picture_of_deadlines(comparison: Evidence, rows: Any) -> Picture:
    found = {label: outcomes(record, rows) for label, record in comparison.records.items()}
    told = "; ".join(
        f"{label}: {', '.join(f'{name} {number(count)}' for name, count in counts.items() if count)}"
        for label, counts in found.items()
    )
    return Picture(
        "What becomes of the deadlines asked for",
        f"Jobs that ask for a deadline. {told}.",
        _inline(figures.deadlines(found), "deadlines"),
        "deadlines.csv",
    )


def _pictures_of_dags(comparison: Evidence, rows: Any, names: str) -> Iterator[Picture]:
    records = comparison.records
    if len(records[comparison.baseline]) > 1:
        yield Picture(
            "How many critical paths a job takes",
            f"Share of the jobs whose SLR was at most so large, under {names}. Higher is better.",
            _inline(figures.schedule_lengths(records, rows), "slr"),
            "distributions.csv",
        )
        yield Picture(
            "How long jobs wait for their first task",
            f"Share of the jobs whose first task started at most so long after they arrived, under {names}. Higher is "
            "better; the height at the left edge is the share that did not wait at all.",
            _inline(figures.waits(records, rows), "waits"),
            "distributions.csv",
        )
    yield Picture(
        "How busy the grid is",
        f"Busy share of the cores over time, means of {curves.BINS} equal bins, under {names}.",
        _inline(figures.utilisation(records), "utilisation"),
        "over_time.csv",
    )
    yield Picture(
        "How many tasks wait",
        f"Tasks that are ready and wait for cores, means of {curves.BINS} equal bins, under {names}.",
        _inline(figures.queue(records), "queue"),
        "over_time.csv",
    )


def _winners_of_dags(comparison: Evidence) -> Iterator[Picture]:
    base, metric = comparison.baseline, comparison.headline
    rows = [row for row in comparison.groups if row.kind == "work" and row.baseline == base and row.ratio == row.ratio]
    if rows:
        text = (
            f"Mean SLR of each tenth of the jobs by work, as a multiple of that under {base}, with 95 % intervals: "
            f"left of 1 they finish sooner than under {base}, right of 1 later. An interval to the edge is wider than "
            "the picture, and none is drawn where there are too few jobs to tell."
        )
        yield Picture(
            "By work",
            text,
            _inline(figures.groups(rows, comparison.labels, unit="work", what="mean SLR"), "by-work"),
            "groups.csv",
        )
    if len(comparison.records[base]) < _FEWEST:
        return
    shares = [comparison.difference(metric, *pair) for pair in _pairs_shown(comparison)]
    text = "How many single jobs finish sooner, at the same time and later; " + _shares_told(shares)
    words = ("finish sooner", "at the same time", "finish later")
    yield Picture(
        "Job by job", f"{text}.", _inline(figures.job_by_job(shares, words=words), "job-by-job"), "differences.csv"
    )


_FEWEST = 10
"""Jobs below which their shares are no picture."""


def _pairs_shown(comparison: Evidence) -> list[tuple[str, str]]:
    """Every policy against the baseline, and the best against every other."""
    base, best = comparison.baseline, comparison.best
    pairs = [(label, base) for label in comparison.labels[1:]]
    return pairs + [(best, label) for label in comparison.labels[1:] if best not in (base, label)]


def _shares_told(shares: Sequence[Difference]) -> str:
    return "; ".join(
        f"{it.policy} against {it.baseline}: {percent(it.better)}, {percent(it.same)}, {percent(it.worse)}"
        for it in shares
    )


def _winners(comparison: Evidence) -> Iterator[Picture]:
    base = comparison.baseline
    if len(comparison.labels) < 2:
        return
    if comparison.of_dags:
        yield from _winners_of_dags(comparison)
        return
    responses = comparison.of_moldable
    what, less = ("Mean response", "is done sooner") if responses else ("Mean wait", "waits less")
    gains, loses = ("are done sooner", "are done later") if responses else ("wait less", "wait longer")
    for kind, title, unit in (
        ("weight", "By weight", "core-seconds"),
        ("size", "By size", "cores"),
        ("length", "By length", "runtime"),
        *((label, f"By {one}", "") for label, (one, _) in LABELLED.items()),
    ):
        rows = [
            row for row in comparison.groups if row.kind == kind and row.baseline == base and row.ratio == row.ratio
        ]
        if rows:
            text = (
                f"{captions.of_groups(rows, less=gains, more=loses)} "
                f"{what} of each group as a multiple of that under {base}, with 95 % intervals: left of 1 the group "
                f"{less} than under {base}, right of 1 {'later' if responses else 'longer'}. "
                f"{f'The {LABELLED[kind][1]} with the most core-seconds. ' if kind in LABELLED else ''}"
                "An interval to the edge is wider than the picture: too few independent jobs to tell."
            )
            picture = figures.groups(rows, comparison.labels, unit=unit, what=what.lower())
            yield Picture(title, text, _inline(picture, f"by-{kind}"), "groups.csv")
    shares = [comparison.difference(comparison.headline, *pair) for pair in _pairs_shown(comparison)]
    if responses:
        text = "How many single jobs end sooner, at the same time and later; " + _shares_told(shares)
        bars = figures.job_by_job(shares, words=("end sooner", "at the same time", "end later"))
    else:
        text = "How many single jobs wait less, equally long and longer; " + _shares_told(shares)
        bars = figures.job_by_job(shares)
    yield Picture("Job by job", f"{text}.", _inline(bars, "job-by-job"), "differences.csv")


def _clear_groups(comparison: Evidence) -> list[Any]:
    """Rows of groups with a verdict of better or worse, for the table below the figures."""
    return [row for row in comparison.groups if row.verdict in ("better", "worse") and row.kind != "user"]


def _inline(figure: Any, name: str) -> Markup:
    return Markup(figures.svg(figure, name))  # matplotlib escapes the texts in it


def _facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was read and how it was run: names and values."""
    workload = info.get("workload", {})
    if "jobs_read" in workload:
        jobs = f"{number(workload['jobs_kept'])} of {number(workload['jobs_read'])} jobs"
        yield "Log", f"{workload.get('source', 'unknown')}: {jobs}"
        if "sha256" in workload:
            yield "SHA-256 of the log", str(workload["sha256"])
        fields = workload.get("cores_field") or {}
        if fields.get("allocated"):
            yield (
                "Cores of a job",
                f"requested processors {number(fields.get('requested', 0))} times, "
                f"allocated ones {number(fields['allocated'])} times, where there is no request",
            )
    elif workload:
        yield "Workload", f"{workload.get('source') or workload.get('model') or 'made in Python'}"
        if workload.get("parameters"):
            yield "Its parameters", _pairs(workload["parameters"])
        if "seed" in workload:
            yield "Its seed", str(workload["seed"])
    for transform in workload.get("transforms", ()):
        yield "Transformed by", _pairs(transform)
    platform = info.get("platform", {})
    if platform:
        yield "Machine", f"{number(platform.get('cores', 0))} cores ({_origin(str(platform.get('origin', 'given')))})"
    if platform.get("clusters"):
        yield "Clusters", ", ".join(f"{it['name']} ({_counted(it['cores'], 'core')})" for it in platform["clusters"])
    if platform.get("network"):
        yield "Network", _pairs(platform["network"])
    for label, policy in info.get("policies", {}).items():
        yield f"Policy {label}", str(policy)
    yield from _options(info.get("options", {}))
    if info.get("versions"):
        yield "Versions", _pairs(info["versions"], " ")
    if info.get("command"):
        yield "Command", str(info["command"])


def _options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    meaning = {
        "batched": "batched: one decision after all ends and arrivals of an instant",
        "per-event": "per-event: a decision after every single end or arrival",
        "kill": "kill: a job is ended at the walltime it asked for",
        "extend": "extend: a job runs on to its true end",
    }
    for name, title in (("instant", "Order in an instant"), ("overrun", "At the walltime")):
        if name in options:
            yield title, meaning.get(str(options[name]), str(options[name]))
    if "seed" in options:
        yield "Seed of the simulation", str(options["seed"])
    if "bound" in options:
        yield "Bound of the bounded slowdown", duration(float(options["bound"]))
    cuts = [
        f"{name} {duration(float(options[key]))}"
        for key, name in (("warmup", "first"), ("cooldown", "last"))
        if options.get(key)
    ]
    yield "Cuts", f"jobs of the {' and the '.join(cuts)} are not counted" if cuts else "none: every job counts"


def _pairs(values: Mapping[str, Any], between: str = " = ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None)


def _origin(origin: str) -> str:
    known = {
        "given": "as given",
        "the workload": "from the workload",
        "MaxProcs": "MaxProcs in the log's header",
        "MaxNodes": "MaxNodes in the log's header",
    }
    return known.get(origin, origin)


def _problems(workload: Mapping[str, Any]) -> Iterator[Found]:
    for problem in map(Problem.from_json, workload.get("problems", ())):
        lines = ", ".join(map(str, problem.first_lines))
        yield Found(
            problem.kind.replace("-", " "),
            number(problem.count),
            lines + (", …" if problem.count > len(problem.first_lines) else ""),
            KINDS[problem.kind].meaning,
            problem.outcome,
            f"{option(problem.kind)} {problem.rule}",
        )


def _signed(value: float, metric: str) -> str:
    """A difference with its sign, in the unit of the metric."""
    if value != value:
        return "-"
    text = duration(value) if metric in ("wait", "response") else f"{value:.3g}" if abs(value) < 1000 else number(value)
    return f"+{text}" if value > 0 else text
