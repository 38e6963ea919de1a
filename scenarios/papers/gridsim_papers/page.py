"""One page of all reproduced papers: comparisons of figures, tables, and the verdict on each claim.

The page is HTML without network access or JavaScript. Its content comes from the files of the papers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from gridsim.number_formatting import duration
from gridsim.report.markup import environment, style
from gridsim_papers.verdict_table import margin_text, numbers, p_text
from gridsim_papers.verdicts import RANKS, Verdict

__all__ = ["ANSWERS", "render"]

ANSWERS = {
    "holds": "holds",
    "holds partly": "partly",
    "not shown": "open",
    "does not hold": "fails",
    "not testable": "untested",
}
"""Answers with the style of their mark."""

TEMPLATES = Path(__file__).parent / "templates"

_SEVERAL = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}


class Circumstance(NamedTuple):
    """A line of the findings on a claim."""

    where: str
    answer: str
    effect: str
    p: str
    wilcoxon: str
    n: str
    note: str


class ClaimRow(NamedTuple):
    """A claim on the page; numbers are those of the circumstance that supports it least."""

    id: str
    where: str
    statement: str
    margin: str
    answer: str
    synthetic: str
    found: Sequence[Circumstance]

    @property
    def weakest(self) -> Circumstance:
        """The circumstance that supports it least."""
        return min(self.found, key=lambda one: RANKS[one.answer])  # type: ignore[index]  # one of the answers


class Section(NamedTuple):
    """A paper on the page."""

    told: Mapping[str, Any]
    label: str
    claims: Sequence[ClaimRow]
    counts: Mapping[str, int]
    facts: Sequence[tuple[str, str]]
    pseudo_code: str


def render(papers: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the page.

    Parameters
    ----------
    papers : sequence of mapping
        Output of `gridsim_papers.reproduce.reproduce` for each paper.
    """
    sections = [_section(told) for told in papers]
    return (
        environment(TEMPLATES)
        .get_template("reproduction.html.j2")
        .render(
            sections=sections,
            marks=ANSWERS,
            plurals=_SEVERAL,
            total=sum((Counter(one.counts) for one in sections), Counter()),
            version=next((one.told["versions"].get("gridsim", "") for one in sections), ""),
            style=style("page.css", TEMPLATES / "reproduction.css"),
        )
    )


def _section(told: Mapping[str, Any]) -> Section:
    claims = [_claim(list(rows)) for _, rows in groupby(told["claims"], key=lambda row: row["id"])]
    found = Counter(claim.answer for claim in claims)
    counts = {answer: found[answer] for answer in ANSWERS if found[answer]}
    label = told["paper"] + (f", {told['variant']}" if told["variant"] else "")
    pseudo = [one["number"] for one in told["figures"] if one["made"] and not one["file"]]
    return Section(told, label, claims, counts, list(_facts(told)), ", ".join(pseudo))


def _claim(rows: Sequence[Mapping[str, Any]]) -> ClaimRow:
    first = rows[0]
    synthetic = next((row["synthetic"] for row in rows if row["synthetic"]), "")
    return ClaimRow(
        first["id"],
        first["where"],
        first["statement"],
        margin_text(first["margin"] or 0.0),
        first["overall"],
        synthetic,
        [_found(row) for row in rows],
    )


def _found(row: Mapping[str, Any]) -> Circumstance:
    effect, low, high, p, wilcoxon = (
        math.nan if row[name] is None else float(row[name]) for name in ("effect", "low", "high", "p", "p_wilcoxon")
    )
    told = numbers(Verdict(row["id"], row["verdict"], effect, low, high, p, row["n"], row["note"]))
    n = f"{row['n']:,}" if row["n"] else ""
    return Circumstance(row["circumstances"], row["verdict"], *told, p_text(wilcoxon), n, row["note"])


def _facts(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "scale", told["scale"]
    jobs = f"synthetic jobs instead of {told['synthetic']}" if told["synthetic"] else "as the paper says"
    yield "jobs", jobs
    ran = told["ran"]
    cost = f"{ran['units']} units, {duration(ran['cpu'])} of CPU" if ran["units"] else "nothing: every row was there"
    yield "run for this page", f"{cost}; {duration(ran['took'])} in all"
    yield "rows", ", ".join(f"rows/{store}" for store in told["campaigns"])
    yield "made", f"{told['made']} with " + ", ".join(f"{name} {it}" for name, it in told["versions"].items())
