"""HTML page of a comparison: one self-contained file, in which all text from a log is escaped.

For the figures see `gridsim.report.pictures`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from gridsim.model.dates import calendar_of
from gridsim.model.partitions import PARTITION
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.number_formatting import between, counted, duration, listed, number, percent, together
from gridsim.questions.explain import explain, waits
from gridsim.questions.replay import LOG
from gridsim.questions.schedules import JobSchedule
from gridsim.report import (
    admission,
    caveats,
    change,
    curves,
    differences,
    explain_text,
    figures,
    flurries_text,
    gantt,
    notices,
    pictures,
    pooling,
    replications_text,
    robustness,
    sentences,
    tables,
    whatif_text,
)
from gridsim.report.headline import headline
from gridsim.report.markup import (
    TEMPLATES,
    breakable,
    environment,
    p_shown,
    prose,
    ratio_shown,
    style,
    text_table,
    texts,
)
from gridsim.report.policy_descriptions import base_names, descriptions
from gridsim.report.validation import trust
from gridsim.workload.problems import KINDS, Problem, option

if TYPE_CHECKING:
    from gridsim.metrics.compare import Difference
    from gridsim.questions.evidence import Evidence
    from gridsim.record import Record


_text = texts("comparison")

METHOD = (
    "Each job is compared with itself under the other policy, and the verdict is on the ratio of the two means.",
    _text("intervals_note"),
    "The interval of a difference in seconds is the interval of the ratio times the mean of this log.",
    _text("p_values_note"),
)


class Found(NamedTuple):
    """Kind of damaged lines: number, positions, and treatment."""

    name: str
    number: str
    lines: str
    meaning: str
    outcome: str
    option: str


class PageParts(NamedTuple):
    """Slow parts of a page, which can be made before all results are known."""

    pictures: list[pictures.Shown]
    over_users: list[pictures.Shown]
    winners: list[pictures.Shown]
    example: list[str]
    pack: Any


def draw(comparison: Evidence, made: Callable[[str, Callable[[], Any]], Any] | None = None) -> PageParts:
    """Return the figures and schedules of a page, which do not depend on validation and changes.

    Parameters
    ----------
    made : callable, optional
        Returns a part by name, with JSON types, from a cache or by running the work.
    """
    made, kept = made or _at_once, comparison.kept
    rows = slice(None) if kept.all() else kept
    chart: dict[str, Any] = {
        "first": comparison.best,
        "platform": comparison.platform,
        "platforms": comparison.platforms,
        "tick": comparison.tick,
    }

    def drawn(name: str, every: Callable[[], Iterable[pictures.Picture]]) -> list[pictures.Shown]:
        found = made(name, lambda: [one.shown() for one in every()])
        return [pictures.Shown(title, text, Markup(svg), *rest) for title, text, svg, *rest in found]

    return PageParts(
        drawn("pictures", lambda: pictures.pictures(comparison, rows)),
        drawn("over-users", lambda: pictures.over_users(comparison)),
        drawn("winners", lambda: pictures.winners(comparison)),
        made("example", lambda: _example(comparison)),
        made("chart", lambda: gantt.pack(comparison.records, **chart)),
    )


def _at_once(_: str, work: Callable[[], Any]) -> Any:
    return work()


def render(comparison: Evidence, *, files: Mapping[str, bytes] | None = None, drawn: PageParts | None = None) -> str:
    """Return the text of the page.

    Parameters
    ----------
    files : mapping of str to bytes
        Data files by name, which are embedded; others are only named.
    drawn : PageParts, optional
        Result of `draw`, if it exists.
    """
    drawn, known = drawn or draw(comparison), trust(comparison)
    main = headline(comparison)
    usage = list(curves.usage(comparison))
    waits_of = tables.columns(comparison)[: tables.MOST_WAITS]
    templates = environment(
        duration=duration,
        number=number,
        percent=percent,
        signed=_signed,
        p=p_shown,
        prose=prose,
        together=together,
        breakable=breakable,
        ratio=ratio_shown,
        change=change.signed,
        changed=tables.changed,
        lines=whatif_text.lines,
    )
    script = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("explain.js", "gantt.js"))
    return templates.get_template("page.html.j2").render(
        comparison=comparison,
        title=str(comparison.info.get("title") or "comparison"),
        lead=list(_lead(comparison)),
        policies=descriptions(comparison.info),
        main=main,
        differences=better_first(_pairs_of_interest(comparison)),
        warnings=() if known is None else known.warnings,
        answer=[
            *sentences.answer(comparison, but=None if main is None else main.other),
            *replications_text.answer(comparison),
            *flurries_text.answer(comparison),
        ],
        replicated=[
            (
                replications_text.caption(it),
                replications_text.lines(it, replications_text.compared(comparison), comparison.labels),
                f"{it.role}.csv",
            )
            for it in comparison.replicated
            if not it.default
        ],
        replicas_head=replications_text.HEAD,
        caveats=caveats.caveats(comparison),
        table=tables.page_rows(comparison),
        columns=tables.columns(comparison),
        log=LOG,
        several_runs=_several_runs(comparison),
        reasons=tables.reasons(comparison),
        usage=tables.usage(usage, waits_of),
        waits_of=waits_of,
        with_gpus=any(row.gpu_hours > 0 for row in usage),
        with_losses=curves.failing(comparison),
        notes=_notes(comparison),
        by_weight=robustness.categories(comparison),
        of_deadlines=admission.of_deadlines(comparison),
        same_jobs=comparison.comparable,
        kills=sum(int(record.kills.sum()) for record in comparison.records.values()),
        pieces=any(len(it.beyond.job) for it in comparison.records.values() if it.beyond is not None),
        pictures=drawn.pictures,
        over_users=drawn.over_users,
        winners=drawn.winners,
        trust=known,
        what_if=whatif_text.lead(comparison.whatifs) if comparison.whatifs else [],
        what_if_columns=list(whatif_text.SHOWN.values()),
        what_if_note=whatif_text.NOTE,
        example=drawn.example,
        files=embedded_files(files or {}),
        clear_groups=_clear_groups(comparison),
        facts=list(_facts(comparison.info)),
        problems=list(_problems(comparison.info.get("workload", {}))),
        method=METHOD,
        group_name=differences.group_name,
        change_span=change.signed_span,
        pack=drawn.pack,
        style=style("page.css"),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


MOST_EMBEDDED = 500_000
"""Size of a compressed data file above which it is not embedded, bytes."""


def embedded_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the data files compressed (gzip) as base64 text; an empty text for those that are too large."""
    packed = {name: gzip.compress(data, 9, mtime=0) for name, data in sorted(files.items())}
    return {
        name: base64.b64encode(data).decode("ascii") if len(data) <= MOST_EMBEDDED else ""
        for name, data in packed.items()
    }


def _notes(comparison: Evidence) -> dict[str, str]:
    """Return the notes that apply to all figures of a section."""
    notes = text_table("pictures", "notes")
    labels = comparison.labels
    what = sentences.terms_of(comparison).mean
    less = "finishes sooner" if comparison.of_dags else "ends sooner" if comparison.of_moldable else "waits less"
    separate = notes["separate"].format(first=labels[0]) if len(labels) > figures.SHARED else ""
    return {
        "pictures": notes["pictures"].format(bins=curves.BINS, separate=separate),
        "separate": separate,
        "groups": notes["groups"].format(what=what, base=comparison.baseline, less=less),
    }


def _several_runs(comparison: Evidence) -> str:
    """Return the note on jobs that ran several times in a recorded log; empty if there are none."""
    runs = comparison.records[comparison.baseline].workload_given.logged.get("runs")
    jobs = 0 if runs is None or LOG not in tables.columns(comparison) else int((runs > 1)[comparison.kept].sum())
    return _text("several_runs", jobs=jobs) if jobs else ""


def _lead(comparison: Evidence) -> Iterator[str]:
    """Return the site, the subject and the period of the comparison in a few pieces."""
    record = comparison.records[comparison.baseline]
    yield from _site(comparison)
    yield counted(len(record), "job")
    if record.workload.tasks is not None:
        yield counted(len(record.workload.tasks), "task")
    clusters = [] if comparison.platform is None else list(comparison.platform.clusters())
    yield counted(record.cores, "core") + ("" if comparison.platform is None else pooling.parts_of(comparison.platform))
    if gpus := sum(group.count * group.gpus for cluster in clusters for group in cluster.nodes):
        yield counted(gpus, "GPU")
    if len(record) == 1:
        return
    given = record.workload_given
    first, last = (int(instant) / MICROSECOND for instant in (given.submit.min(), given.submit.max()))
    calendar = calendar_of(given.provenance)
    dates = "" if calendar is None else f", {between(first, last, calendar)} {calendar.zone_name}".rstrip()
    yield f"submitted over {duration(last - first)}{dates}"
    load = comparison.metrics[comparison.baseline]["offered_load"]
    if load == load and record.logged_submit_us is None:  # differs between policies if users react
        yield f"offered load {percent(load)}"


def _site(comparison: Evidence) -> Iterator[str]:
    """Return the installation and the computer of the log's header, or the name of the cluster."""
    header: Mapping[str, Sequence[str]] = comparison.info.get("workload", {}).get("header") or {}
    named = [header[name][0].partition("\n")[0] for name in ("Installation", "Computer") if header.get(name)]
    clusters = [] if comparison.platform is None else list(comparison.platform.clusters())
    if not named and len(clusters) == 1 and clusters[0].name != "cluster":
        named = [f"cluster {clusters[0].name}"]
    yield from named


def _example(comparison: Evidence) -> list[str]:
    """Return the explanation of the longest wait under the best policy; nothing for DAG jobs or without waits."""
    record = comparison.records[comparison.best]
    if comparison.of_dags or not (record.wait > 0).any():
        return []
    records = comparison.records
    if len(record) > gantt.MOST_JOBS:
        row = int(np.nanargmax(record.wait))
        records = {label: each.select(_meanwhile(each, row)) for label, each in records.items()}
    schedules = {label: JobSchedule.of(each, comparison.platform_of(label)) for label, each in records.items()}
    longest = schedules[comparison.best].longest()
    found = explain(schedules[comparison.best], longest)
    lines = [*explain_text.from_log(found), *explain_text.sentences(found, comparison.best)]
    under = waits(schedules, longest)
    others = {label: wait for label, (_, wait) in under.items() if label != comparison.best}
    return [*lines, f"It {listed(_waited(others))}."] if others else lines


def _meanwhile(record: Record, row: int) -> IntArray:
    """Return the rows of jobs that waited or ran while one job waited, for long logs with reasons for waiting."""
    since, until = int(record.workload.submit[row]), int(record.start_us[row])
    there = record.ran & (record.workload.submit <= until) & (record.end_us >= since)
    there[row] = True
    return np.flatnonzero(there)


def _waited(waits: Mapping[str, float]) -> list[str]:
    """Return the wait of a job under each policy; policies with the same wait are grouped, and waits are last."""
    waited: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for label, wait in waits.items():
        found, did = (waited, duration(wait)) if wait > 0 else (others, "did not run" if wait else "started at once")
        found.setdefault(did, []).append(label)
    texts = [f"{did} under {listed(labels)}" for did, labels in waited.items()]
    texts[:1] = [f"waited {text}" for text in texts[:1]]
    return [*(f"{did} under {listed(labels)}" for did, labels in others.items()), *texts]


def better_first(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences as in the sentences: the policy with the lower mean against the other."""
    return [it.turned() if it.mean > 0 else it for it in differences]


def _pairs_of_interest(comparison: Evidence) -> list[Difference]:
    """Return the differences of all pairs; of many policies, those with the baseline or the best policy."""
    if len(comparison.labels) <= figures.SHARED:
        return list(comparison.differences)
    return [it for it in comparison.differences if {comparison.baseline, comparison.best} & {it.policy, it.baseline}]


def _clear_groups(comparison: Evidence) -> list[Any]:
    """Return the rows of groups with the verdict better or worse, each pair once, for the table below the figures."""
    rows = [row for row in comparison.groups if row.verdict in ("better", "worse") and row.kind != "user"]
    pairs = {(row.kind, row.group, frozenset((row.policy, row.baseline))): row for row in reversed(rows)}
    return list(pairs.values())[::-1]


def _facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return names and values of input and settings."""
    workload = info.get("workload", {})
    if "jobs_read" in workload:
        jobs = f"{number(workload['jobs_kept'])} of {number(workload['jobs_read'])} jobs"
        yield "Log", f"{base_names(str(workload.get('source', 'unknown')))}: {jobs}"
        if "sha256" in workload:
            yield "SHA-256 of the log", str(workload["sha256"])
        fields = workload.get("cores_field") or {}
        if fields.get("allocated"):
            yield "Cores of a job", _cores_of_jobs(fields, str(workload.get("cores_rule", "")))
    elif workload:
        source = workload.get("source")
        yield "Workload", base_names(str(source)) if source else str(workload.get("model") or "created in Python")
        if workload.get("parameters"):
            yield "Parameters", _pairs(workload["parameters"])
        if "seed" in workload:
            yield "Seed of the workload", str(workload["seed"])
    for transform in workload.get("transforms", ()):
        yield "Transform", _pairs(transform)
    platform = info.get("platform", {})
    if platform:
        origin = pooling.origin_of(base_names(str(platform.get("origin", "given"))))
        yield "Machine", f"{counted(platform.get('cores', 0), 'core')} ({origin})"
    apart = platform.get("by") == PARTITION
    if platform.get("clusters"):
        yield (
            "Partitions" if apart else "Clusters",
            ", ".join(f"{it['name']} ({counted(it['cores'], 'core')})" for it in platform["clusters"]),
        )
    if platform.get("network") and not apart:
        yield "Network", _pairs(platform["network"])
    for label, policy in info.get("policies", {}).items():
        yield f"Policy {label}", base_names(str(policy))
    yield from notices.facts(info)
    yield from _options(info.get("options", {}))
    if info.get("versions"):
        yield "Versions", _pairs(info["versions"], " ")
    if info.get("command"):
        yield "Command", base_names(str(info["command"]))


def _cores_of_jobs(fields: Mapping[str, int], rule: str) -> str:
    """Return the source column of core counts; the other column is used if the first has no value."""
    counts = {"requested": fields.get("requested", 0), "allocated": fields["allocated"]}
    first, other = ("allocated", "requested") if rule == "allocated" else ("requested", "allocated")
    text = f"{first} processors for {number(counts[first])} jobs"
    why = "without an allocation" if rule == "allocated" else "without a request"
    return f"{text}, {other} processors for {number(counts[other])} jobs {why}" if counts[other] else text


def _options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    meaning = {
        "batched": "batched: one scheduling decision after all ends and arrivals of an instant",
        "per-event": "per-event: a scheduling decision after each end or arrival",
        "kill": "kill: jobs are killed at their requested walltime",
        "extend": "extend: jobs run to their true end",
        "refuse": "refuse: jobs are rejected",
        "clip": "clip: jobs request the limit, and are killed at the limit",
        "split": "split: jobs run as a chain of pieces, each submitted when the previous one has ended",
    }
    for name, title in (
        ("instant", "Events of one instant"),
        ("overrun", "At the walltime"),
        ("limits", "Above a time limit"),
    ):
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
    yield (
        "Cuts",
        f"excluded: jobs submitted in the {' and the '.join(cuts)}" if cuts else "none",
    )


def _pairs(values: Mapping[str, Any], between: str = " = ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in values.items() if value is not None)


def _problems(workload: Mapping[str, Any]) -> Iterator[Found]:
    for problem in map(Problem.from_json, workload.get("problems", ())):
        yield Found(
            problem.kind.replace("-", " "),
            number(problem.count),
            problem.shown,
            KINDS[problem.kind].meaning,
            problem.outcome,
            option(problem.kind, problem.rule),
        )


def _signed(value: float, metric: str) -> str:
    """Return a difference with its sign, in the unit of the metric."""
    if value != value:
        return "-"
    text = duration(value) if metric in ("wait", "response") else f"{value:.3g}" if abs(value) < 1000 else number(value)
    return f"+{text}" if value > 0 else text
