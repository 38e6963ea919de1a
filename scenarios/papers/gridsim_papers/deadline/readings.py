"""A claim about the schemes, judged in the usual interpretation and in the others that the papers allow.

Each interpretation changes one thing: the order in which MRT and QoPS take jobs, the price of MSB, whether MRT fills
holes, how many violations QoPS allows, or the relaxation of artificial deadlines. It is judged when a scheme that it
changes was run; the other schemes are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gridsim_papers.deadline.study import Study
from gridsim_papers.decisions import answered
from gridsim_papers.ledger import read_ledger
from gridsim_papers.verdict_table import Judged
from gridsim_papers.verdicts import Answer, Finding, Verdict

__all__ = ["READINGS", "Question", "answers"]

READINGS: Mapping[str, Mapping[str, str]] = {
    "order edf": {
        "qops": "qops?heuristic=edf",
        "mrt": "mrt?heuristic=edf",
        **{f"qops?relaxation={r}": f"qops?heuristic=edf&relaxation={r}" for r in (2, 5, 10)},
    },
    "price wait": {"msb": "msb?price=wait"},
    "price disturbance": {"msb": "msb?price=disturbance"},
    "no hole filling": {"mrt": "mrt?hole_filling=false"},
    "K 0": {"qops": "qops?k_factor=0"},
    "K 20": {"qops": "qops?k_factor=20"},
    "R 2": {name: f"{name}?relaxation=2" for name in ("qops", "msb", "mrt")},
    "R 10": {name: f"{name}?relaxation=10" for name in ("qops", "msb", "mrt")},
}
"""Schemes that an interpretation replaces.

The usual interpretation: least laxity first, price slack, holes filled, K 5, R 5.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A claim by its identifier in the ledger, its judge, and whether it is judged again in other interpretations."""

    id: str
    judge: Callable[[Study], Finding]
    repeated: bool = False


def answers(study: Study, questions: Sequence[Question]) -> list[Judged]:
    """Return a verdict on each question, and the answers in the interpretations that were run.

    The verdict is *not testable* when the rows that decide it are missing.
    """
    ledger = read_ledger("deadline")
    margins = {claim: entry.margin for claim, entry in ledger.items()}
    return [_judged(replace(study, margin=margins.get(it.id, study.margin)), it) for it in questions]


def _judged(study: Study, question: Question) -> Judged:
    finding = answered(question.judge, study)
    others = dict(_readings(study, question)) if question.repeated else {}
    note = "; ".join(filter(None, (finding.note, _told(finding.answer, others))))
    verdict = Verdict(question.id, *finding[:-2], note)
    return Judged(verdict, finding.p_wilcoxon, others)


def _readings(study: Study, question: Question) -> Iterator[tuple[str, Answer]]:
    for name, schemes in READINGS.items():
        other = study.read_as(schemes)
        finding = answered(question.judge, other)
        if other.taken:
            yield name, finding.answer


def _told(usual: Answer, others: Mapping[str, Answer]) -> str:
    """Describe which interpretations agree, and the answers of the others."""
    if not others:
        return ""
    differing = [f"{name}: {answer}" for name, answer in others.items() if answer != usual]
    if not differing:
        return f"unchanged under {', '.join(others)}"
    same = [name for name, answer in others.items() if answer == usual]
    return "other interpretations: " + ", ".join(differing) + (f" (unchanged: {', '.join(same)})" if same else "")
