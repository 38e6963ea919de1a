"""Figures of a page, each with its caption and data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from gridsim.metrics.compare import Difference
from gridsim.metrics.deadlines import outcomes
from gridsim.metrics.fairness import large_users
from gridsim.metrics.groups import LABELLED
from gridsim.metrics.load_performance import LEAST
from gridsim.model.dates import calendar_of
from gridsim.number_formatting import counted, listed, number, percent
from gridsim.report import admission, curves, figures
from gridsim.report.differences import group_name
from gridsim.report.markup import text_table, texts
from gridsim.report.users import inequality, large_users_held

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gridsim.questions.evidence import Evidence, GroupRow
    from gridsim.record import Record


_text = texts("pictures")


class Drawing(NamedTuple):
    """Figure and its name."""

    figure: Figure
    name: str


class Picture(NamedTuple):
    """Figure on the page, with its text for readers who do not see it, its data file and its caption."""

    title: str
    text: str
    drawing: Drawing
    file: str
    caption: str = ""

    def shown(self) -> Shown:
        """Return the figure in the form for the page."""
        svg = Markup(figures.svg(*self.drawing))  # matplotlib escapes its texts
        caption = self.caption or text_table("pictures", "captions").get(self.drawing.name, self.text)
        return Shown(self.title, self.text, svg, self.file, caption)


class Shown(NamedTuple):
    """Figure as an element of the page."""

    title: str
    text: str
    svg: Markup
    file: str
    caption: str


def pictures(comparison: Evidence, rows: Any) -> Iterator[Picture]:
    """Return the figures of waits, slowdowns, machine and queue; *rows* are the counted jobs."""
    records, of_dags = comparison.records, comparison.of_dags
    names = ", ".join(records) if len(records) < 5 else f"{len(records)} policies"
    bins = f"as means of {curves.BINS} equal bins, under {names}."
    if admission.of_deadlines(comparison):
        yield _picture_of_deadlines(comparison, rows)
    if not of_dags or len(records[comparison.baseline]) > 1:
        for title, text, drawing in _distributions(comparison, rows, names):
            yield Picture(title, text, drawing, "distributions.csv")
    text = f"Busy share of the cores over time, {bins}"
    yield Picture("Utilisation", text, Drawing(figures.utilisation(records), "utilisation"), "over_time.csv")
    queue = Drawing(figures.queue(records), "queue")
    if of_dags:
        yield Picture("Waiting tasks", f"Ready tasks that wait for cores, {bins}", queue, "over_time.csv")
    else:
        yield Picture("Waiting jobs", f"Waiting jobs over time, {bins}", queue, "over_time.csv")
    yield from _by_period(records, "grid" if of_dags else "machine", names)
    yield from _load(comparison, names)


def _distributions(comparison: Evidence, rows: Any, names: str) -> Iterator[tuple[str, str, Drawing]]:
    """Return title, text and figure of the distributions over jobs."""
    records, by = comparison.records, f"under {names}. Higher is better."
    waits = Drawing(figures.waits(records, rows), "waits")
    if comparison.of_dags:
        slr = Drawing(figures.schedule_lengths(records, rows), "slr")
        yield "Schedule length ratios", f"Cumulative share of jobs by SLR, {by}", slr
        yield "Waits for the first task", _text("start_distribution", names=names), waits
        return
    yield "Waits", _text("wait_distribution", names=names), waits
    if comparison.of_moldable:
        responses = Drawing(figures.responses(records, rows), "responses")
        yield "Response times", f"Cumulative share of jobs by response, {by}", responses
    else:
        slowdowns = Drawing(figures.slowdowns(records, rows, bound=comparison.bound), "slowdowns")
        yield "Bounded slowdowns", f"Cumulative share of jobs by bounded slowdown, {by}", slowdowns


def _by_period(records: Mapping[str, Record], what: str, names: str) -> Iterator[Picture]:
    """Return the utilisation by day and by week, if there are at least two periods."""
    for period in curves.PERIODS:
        if found := curves.busy_share_by(period, records):
            yield Picture(
                f"Utilisation of the {what} by {period}",
                f"Busy share of the cores in each {period}, under {names}.",
                Drawing(figures.utilisation(records, found), f"utilisation-by-{period}"),
                "over_time.csv",
            )


def _load(comparison: Evidence, names: str) -> Iterator[Picture]:
    """Return the figure of load against performance, if there are enough days."""
    found = curves.joints(comparison)
    if not found:
        return
    ranks = [f"{it.rank_correlation():.2f} under {label}" for label, it in found.items()]
    rank = listed(ranks) if len(ranks) < 5 else f"{ranks[0]}, the first policy"
    days = max(len(it.load) for it in found.values())
    every = -(-days // _MOST_DAYS)
    few = f" The figure shows one of {every} days, of {number(days)}; the correlation is over all." if every > 1 else ""
    drawn = {label: it.each(every) for label, it in found.items()}
    yield Picture(
        "Load against performance",
        _text("slowdown_by_load", least=LEAST, names=names, rank=rank) + few,
        Drawing(figures.load_against_slowdown(drawn), "load"),
        "load.csv",
    )


_MOST_DAYS = 1_500
"""Number of points per policy above which only some are drawn, to keep the figure readable and the file small."""


def over_users(comparison: Evidence) -> Iterator[Picture]:
    """Return the figures of fairness between users over time, if the log has users."""
    found = curves.fairness(comparison)
    if not found:
        return
    labels = comparison.labels
    calendar = calendar_of(comparison.records[comparison.baseline].workload.provenance)
    yield Picture(
        "Inequality of slowdowns between users",
        inequality(found),
        Drawing(figures.inequality(found, labels, calendar), "inequality"),
        "fairness.csv",
    )
    users = len(large_users(comparison.records[comparison.baseline]))
    yield Picture(
        "Share of the largest users",
        large_users_held(found, users),
        Drawing(figures.largest_share(found, labels, calendar), "largest-share"),
        "fairness.csv",
    )


def _picture_of_deadlines(comparison: Evidence, rows: Any) -> Picture:
    found = {label: outcomes(record, rows) for label, record in comparison.records.items()}
    counts = "; ".join(
        f"{label}: {', '.join(f'{name} {number(count)}' for name, count in each.items() if count)}"
        for label, each in found.items()
    )
    return Picture(
        "Outcomes of requested deadlines",
        f"Jobs that request a deadline. {counts}.",
        Drawing(figures.deadlines(found), "deadlines"),
        "deadlines.csv",
    )


def _winners_of_dags(comparison: Evidence) -> Iterator[Picture]:
    base, metric = comparison.baseline, comparison.headline
    rows = [row for row in comparison.groups if row.kind == "work" and row.baseline == base and row.ratio == row.ratio]
    if rows:
        text = _text("slr_by_work", base=base)
        yield Picture(
            "By work",
            text,
            Drawing(figures.groups(rows, comparison.labels, unit="work", what="mean SLR"), "by-work"),
            "groups.csv",
        )
    if len(comparison.records[base]) < _FEWEST:
        return
    shares = [comparison.difference(metric, *pair) for pair in _pairs_shown(comparison)]
    caption = "Shares of jobs that finish sooner, at the same time and later"
    text = f"{caption}; {_shares_text(shares)}"
    words = ("finish sooner", "at the same time", "finish later")
    drawing = Drawing(figures.job_by_job(shares, words=words), "job-by-job")
    yield Picture("Job by job", f"{text}.", drawing, "differences.csv", f"{caption}.")


_FEWEST = 10
"""Number of jobs below which there is no figure of shares."""


def _pairs_shown(comparison: Evidence) -> list[tuple[str, str]]:
    """Return every policy against the baseline, and the best against every other."""
    base, best = comparison.baseline, comparison.best
    pairs = [(label, base) for label in comparison.others]
    return pairs + [(best, label) for label in comparison.others if best not in (base, label)]


def _shares_text(shares: Sequence[Difference]) -> str:
    return "; ".join(
        f"{it.policy} against {it.baseline}: {percent(it.better)}, {percent(it.same)}, {percent(it.worse)}"
        for it in shares
    )


def winners(comparison: Evidence) -> Iterator[Picture]:
    """Return the figures of gains and losses against the first policy; empty if there is only one."""
    base = comparison.baseline
    if len(comparison.labels) < 2:
        return
    if comparison.of_dags:
        yield from _winners_of_dags(comparison)
        return
    responses = comparison.of_moldable
    what, less = ("Mean response", "ends sooner") if responses else ("Mean wait", "waits less")
    gains, loses = ("end sooner", "end later") if responses else ("wait less", "wait longer")
    for kind, title, unit in (
        ("weight", "By weight", "core-seconds"),
        ("size", "By size", "cores"),
        ("length", "By run time", "run time"),
        *((label, f"By {one}", "") for label, (one, _) in LABELLED.items()),
    ):
        rows = [
            row for row in comparison.groups if row.kind == kind and row.baseline == base and row.ratio == row.ratio
        ]
        if rows:
            text = (
                f"{caption_of_groups(rows, less=gains, more=loses)} "
                f"{what} relative to {base}, with 95 % intervals: left of 1 the group {less}. "
                f"{f'The {LABELLED[kind][1]} with the most core-seconds. ' if kind in LABELLED else ''}"
                "Intervals may exceed the figure."
            )
            picture = figures.groups(rows, comparison.labels, unit=unit, what=what.lower())
            yield Picture(title, text, Drawing(picture, f"by-{kind}"), "groups.csv", _counts(rows))
    shares = [comparison.difference(comparison.headline, *pair) for pair in _pairs_shown(comparison)]
    words = (gains, "at the same time" if responses else "the same", loses)
    caption = f"Shares of jobs that {gains}, {'at the same time and later' if responses else 'equally long and longer'}"
    drawing = Drawing(figures.job_by_job(shares, words=words), "job-by-job")
    text = f"{caption}; {_shares_text(shares)}."
    yield Picture("Job by job", text, drawing, "differences.csv", f"{caption}.")


def _counts(rows: Sequence[GroupRow]) -> str:
    """Return the caption of a figure of groups: how many of its comparisons have each verdict."""
    better, worse, few = (sum(row.verdict == it for row in rows) for it in ("better", "worse", "too little data"))
    kind = LABELLED[rows[0].kind][1] if rows[0].kind in LABELLED else "groups"
    return _text("counts", comparisons=counted(len(rows), "comparison"), kind=kind, better=better, worse=worse, few=few)


NAMED = 3
"""Largest number of named groups; more are counted."""


def caption_of_groups(rows: Sequence[GroupRow], *, less: str, more: str) -> str:
    """Return the groups that significantly gain and lose under each policy.

    Parameters
    ----------
    less, more : str
        Verbs for gains and losses: ``wait less``, ``wait longer``.
    """
    lines, neither = [], []
    for policy in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == policy]
        better, worse = ([row for row in own if row.verdict == verdict] for verdict in ("better", "worse"))
        if not better and not worse:
            neither.append(policy)
            continue
        gains = f"{_names(better, len(own))} significantly {less}" if better else f"none significantly {less}"
        loses = f"{_names(worse, len(own))} significantly {more}" if worse else f"none significantly {more}"
        lines.append(f"Under {policy}, {gains}; {loses}.")
    if neither:
        few = {(row.policy, row.group) for row in rows if row.policy in neither and row.verdict == "too little data"}
        groups = len({(row.policy, row.group) for row in rows if row.policy in neither})
        what = "groups have" if len(neither) == 1 else "comparisons of a group have"
        unknown = f"; {len(few)} of {groups} {what} too little data" if few else ""
        lines.append(f"Under {listed(neither, 'or')} no group differs significantly from {rows[0].baseline}{unknown}.")
    return " ".join(lines)


def _names(groups: Sequence[GroupRow], among: int) -> str:
    """Return few groups by name, or the number of many."""
    if len(groups) > NAMED:
        return f"{number(len(groups))} of {number(among)} groups"
    return listed([group_name(row.kind, row.group) for row in groups])
