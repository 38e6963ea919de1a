"""Tables of verdicts: a row per claim, with its statement from the ledger and the findings in each circumstance."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gridsim.files import write_atomically
from gridsim_papers.ledger import Entry
from gridsim_papers.verdicts import NAN, RANKS, Answer, Finding, Verdict, overall_answer

__all__ = [
    "COLUMNS",
    "Judged",
    "Ruling",
    "as_rows",
    "margin_text",
    "markdown",
    "numbers",
    "of_finding",
    "overall",
    "p_text",
    "published",
    "rulings",
    "without_numbers",
    "write",
]


class Judged(NamedTuple):
    """A verdict in given circumstances.

    Attributes
    ----------
    p_wilcoxon : float
        Of the signed-rank test of the same changes as the effect; NaN without changes.
    further : mapping of str to str
        Circumstances by name, or answers by reading.
    """

    verdict: Verdict
    p_wilcoxon: float = NAN
    further: Mapping[str, str] = {}


class Published(NamedTuple):
    """Claim of a results page: id, statement and verdict."""

    id: str
    statement: str
    answer: str


class Ruling(NamedTuple):
    """Findings on one claim.

    Attributes
    ----------
    entry : Entry
        Entry of the ledger.
    answer : str
        Over all circumstances.
    judged : tuple of Judged
        In each circumstance; a single element without several circumstances.
    synthetic : str
        Logs that synthetic jobs replace; empty if the claim is not about jobs, or all logs are available.
    """

    entry: Entry
    answer: Answer
    judged: tuple[Judged, ...]
    synthetic: str = ""

    @property
    def weakest(self) -> Judged:
        """The one that supports the claim least."""
        return min(self.judged, key=lambda one: RANKS[one.verdict.verdict])

    def where(self, one: Judged) -> str:
        """Description of one of several circumstances; empty for a single one."""
        if len(self.judged) == 1:
            return ""
        return ", ".join(f"{name} {value}" for name, value in one.further.items() if value)


def without_numbers(claim: str, answer: Answer, note: str, n: int = 0) -> Judged:
    """A verdict without a test of changes."""
    return Judged(Verdict(claim, answer, NAN, NAN, NAN, NAN, n, note))


def of_finding(claim: str, found: Finding) -> Judged:
    """A verdict with its finding."""
    return Judged(Verdict(claim, *found[:-1]), found.p_wilcoxon)


def rulings(
    found: Iterable[Judged], ledger: Mapping[str, Entry], synthetic: Callable[[Entry], str] = lambda entry: ""
) -> list[Ruling]:
    """Rulings on each claim of a ledger, in its order; *not testable* for claims without a judge.

    Parameters
    ----------
    synthetic : callable
        Return the logs that synthetic jobs replace in the decision on a claim; empty for none.
    """
    of: dict[str, list[Judged]] = {}
    for one in found:
        of.setdefault(one.verdict.claim, []).append(one)
    answers = overall(one for own in of.values() for one in own)
    made = []
    for claim, entry in ledger.items():
        own = tuple(of.get(claim, ())) or (without_numbers(claim, "not testable", entry.what),)
        made.append(Ruling(entry, answers.get(claim, "not testable"), own, synthetic(entry)))
    return made


def overall(found: Iterable[Judged]) -> dict[str, Answer]:
    """One answer per claim: over all circumstances, ignoring those that were not run if others were."""
    by_claim: dict[str, list[Verdict]] = {}
    for one in found:
        by_claim.setdefault(one.verdict.claim, []).append(one.verdict)
    return {
        claim: overall_answer([one.verdict for one in own if one.n] or [one.verdict for one in own])
        for claim, own in by_claim.items()
    }


_HEADS = ("id", "claim", "verdict", "effect (95 % interval)", "p", "Wilcoxon p", "n", "result")


def markdown(found: Sequence[Ruling]) -> str:
    """The table as text, a line for each circumstance; with several circumstances, a summary table is first."""
    several = any(len(one.judged) > 1 for one in found)
    heads = (*_HEADS[:2], "where", *_HEADS[2:]) if several else _HEADS
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for ruling in found:
        for one in ruling.judged:
            effect, p = numbers(one.verdict)
            n = str(one.verdict.n or "")
            told = (f"**{one.verdict.verdict}**", effect, p, p_text(one.p_wilcoxon), n, note_of(ruling, one))
            statement = ruling.entry.statement + (
                f" ({margin})" if (margin := margin_text(ruling.entry.margin)) else ""
            )
            cells = (ruling.entry.id, statement, *([ruling.where(one)] if several else []), *told)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*_summary(found), "", *lines] if several else lines)


def _summary(found: Iterable[Ruling]) -> list[str]:
    """A line per claim: its answer over all circumstances, and in each."""
    lines = ["| id | claim | verdict | circumstances |", "|---|---|---|---|"]
    for one in found:
        answers = {it.verdict.verdict for it in one.judged}
        told = "; ".join(f"{one.where(it)}: {it.verdict.verdict}" for it in one.judged) if len(answers) > 1 else "all"
        lines.append(f"| {one.entry.id} | {one.entry.statement} | **{one.answer}** | {told} |")
    return lines


def numbers(verdict: Verdict) -> tuple[str, str]:
    """Effect with its interval, and p, as text; empty for undefined values."""
    known = verdict.n > 1 and math.isfinite(verdict.low)  # a single window has no interval
    interval = f" ({_short(verdict.low)} to {_short(verdict.high)})" if known else ""
    effect = "" if math.isnan(verdict.effect) else _short(verdict.effect)
    return effect + interval, p_text(verdict.p)


def _short(value: float) -> str:
    """Three digits, or whole.

    Examples
    --------
    >>> _short(0.81234), _short(5480.4), _short(4.2e-8)
    ('0.812', '5,480', '4.2e-08')
    """
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1e7 else f"{value:.3g}"


def p_text(value: float) -> str:
    """A p value, as text."""
    return "" if math.isnan(value) else "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def margin_text(margin: float) -> str:
    """The margin of a claim, as text; empty for a claim without one.

    Examples
    --------
    >>> margin_text(0.05), margin_text(0.0)
    ('margin 5 %', '')
    """
    return f"margin {100 * margin:g} %" if margin else ""


def note_of(ruling: Ruling, one: Judged) -> str:
    """Description of the finding, with a note on synthetic jobs."""
    mark = f"synthetic jobs instead of {ruling.synthetic}" if ruling.synthetic and one.verdict.n else ""
    return "; ".join(filter(None, (mark, one.verdict.note)))


COLUMNS = (
    "paper",
    "id",
    "where",
    "statement",
    "margin",
    "overall",
    "circumstances",
    "verdict",
    "effect",
    "low",
    "high",
    "p",
    "p_wilcoxon",
    "n",
    "synthetic",
    "note",
)
"""Columns of stored verdicts, with a row for each circumstance of a claim."""


def as_rows(found: Iterable[Ruling]) -> list[dict[str, Any]]:
    """Rows with these `COLUMNS` at full precision; None for NaN and infinity."""
    rows = []
    for ruling in found:
        entry = ruling.entry
        for one in ruling.judged:
            told = {name: _known(value) for name, value in one.verdict._asdict().items() if name != "claim"}
            rows.append(
                {
                    "paper": entry.paper,
                    "id": entry.id,
                    "where": entry.where,
                    "statement": entry.statement,
                    "margin": entry.margin or None,
                    "overall": ruling.answer,
                    "circumstances": ruling.where(one),
                    **told,
                    "p_wilcoxon": _known(one.p_wilcoxon),
                    "synthetic": ruling.synthetic if one.verdict.n else "",
                }
            )
    return rows


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Collection[str] = COLUMNS) -> None:
    """Write rows of `as_rows` as CSV, atomically."""

    def as_csv(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    write_atomically(path, as_csv)


def published(name: str) -> tuple[str, list[Published]]:
    """Return the summary of a results page of the project (counts, date, commit) and its claims.

    Parameters
    ----------
    name : str
        Name of the page in ``docs/results``, such as ``qops``. The pages are in a clone, not in an installed package.
    """
    page = Path(__file__).parents[3] / "docs" / "results" / f"{name}.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    claims = [Published(row[0], row[1], row[2].strip("*")) for row in cells if len(row) > 2 and row[2].startswith("**")]
    return next(line for line in lines if line.startswith("**")).replace("**", ""), claims
