"""Claims of the two 2003 papers about admission with deadlines, and the stored rows that decide each claim.

Identifiers are those of the ledger of claims, which contains the statements. The judges are in `schemes` and `effects`;
the claims of 2004 are in `feedback`.

References
----------
Islam, Balaji, Sadayappan, Panda, "QoPS: A QoS based scheme for parallel job scheduling", OSU-CISRC-4/03-TR21 (TR), and
JSSPP 2003, LNCS 2862 (J03).
"""

from __future__ import annotations

from gridsim_papers.deadline import effects, exact, feedback
from gridsim_papers.deadline.offers import offers_are_early
from gridsim_papers.deadline.readings import Question
from gridsim_papers.deadline.schemes import (
    BASELINES,
    EXPERIMENTS,
    NUMBERS,
    SCHEMES,
    UNADMITTED,
    Judge,
    admittance,
    equal_utilisation,
    loss,
    mixed_utilisation,
    on_both,
    relaxation,
    responses,
    utilisation,
)
from gridsim_papers.deadline.study import Place, title

__all__ = ["OFFERS", "QUESTIONS"]


def _figures() -> list[Question]:
    """Figures 4 to 58."""
    found = []
    first = {"CTC, duplication": (4, 13, 25, 37, 43), "SDSC, duplication": (7, 17, 29, 39, 47)}
    first["CTC, expansion"] = (10, 21, 33, 41, 51)
    for name, (alone, mixed, response, use, equal) in first.items():
        place = EXPERIMENTS[name]
        for at, stringency in enumerate((0.2, 0.5)):
            tight = place._replace(stringency=stringency)
            found.append(Question(f"TR-F{alone + at:02}", admittance(tight, 1.4, closer=bool(at)), True))
            for row, fraction in enumerate((0.8, 0.2)):
                some = tight._replace(fraction=fraction)
                near = bool(at) and fraction == 0.8
                found.append(Question(f"TR-F{mixed + 2 * row + at}", admittance(some, 1.2, closer=near), True))
                found.append(Question(f"TR-F{response + 2 * (1 - row) + at}", responses(some), True))
                found.append(Question(f"TR-F{equal + 2 * (1 - row) + at}", equal_utilisation(some), True))
            found.append(Question(f"TR-F{use + at}", mixed_utilisation(tight), True))
        found.append(Question(f"TR-F{alone + 2:02}", utilisation(place), True))
    for at, (fraction, stringency) in enumerate(((0.2, 0.2), (0.2, 0.5), (0.8, 0.2), (0.8, 0.5))):
        place = Place(fraction=fraction, stringency=stringency)
        found.append(Question(f"TR-F{55 + at}", relaxation(place), True))
    return sorted(found, key=lambda question: question.id)


_CLAIMS = (
    Question("TR-C01", exact.packed_exactly),
    Question("TR-C02", exact.packed_falls),
    Question("TR-C03", exact.packed_static),
    Question("TR-C04", effects.stringency),
    Question("TR-C05", effects.fewer_at_the_top),
    Question("TR-C06", effects.work_falls),
    Question("TR-C07", effects.composition),
    Question("TR-C08", effects.converge),
    Question("TR-C09", effects.loss_is(0.1, 0.1, Place())),
    Question(
        "TR-C10",
        effects.printed(
            [(f"loss of {title(one)}", Place(), effects.lost_to_stringency(one), 0.05, 0.10) for one in SCHEMES]
        ),
    ),
    Question("TR-C11", effects.comparable, True),
    Question("TR-C12", effects.robust),
    Question("TR-C13", effects.gap_grows),
    Question(
        "TR-C14",
        admittance(Place(fraction=0.2, stringency=0.5), 1.2),
        True,
    ),
    Question("TR-C15", effects.faster_for_less),
    Question("TR-C16", effects.better_and_more, True),
    Question(
        "TR-C17",
        effects.printed(
            [
                ("loss with 80 %", Place(fraction=0.8), loss, 0.08, 0.08),
                ("loss with 20 %", Place(fraction=0.2), loss, 0.02, 0.03),
            ]
        ),
    ),
    Question(
        "TR-C18",
        equal_utilisation(Place(fraction=0.2), BASELINES),
    ),
    Question("TR-C19", effects.relaxation_by_length),
    Question("TR-C20", exact.cost),
    Question("TR-C21", exact.promises),
    Question("TR-C22", exact.nobody_starves),
    Question("TR-C23", exact.inexact),
)


def _again(own: str, other: str, judge: Judge | None = None) -> Question:
    """A figure of the shorter paper that shows an experiment of the report, possibly with other conditions."""
    (same,) = (question for question in _REPORT if question.id == other)
    return Question(own, judge or same.judge, same.repeated)


_REPORT = (*_figures(), *_CLAIMS)
_ALL = UNADMITTED | NUMBERS

_SHORTER = (
    _again("J03-F04", "TR-F04", admittance(Place(), 1.4, measures=_ALL)),
    _again("J03-F05", "TR-F05", admittance(Place(stringency=0.5), 1.4, closer=True, measures=_ALL)),
    _again("J03-F06", "TR-F06", utilisation(Place(), ("easy",))),
    _again("J03-F07", "TR-F07", on_both(Place("sdsc"))),
    _again("J03-F08", "TR-F10", admittance(EXPERIMENTS["CTC, expansion"], 1.4, measures=_ALL)),
    _again("J03-F09", "TR-F13"),
    _again("J03-F10", "TR-F14"),
    _again("J03-F11", "TR-F15"),
    _again("J03-F12", "TR-F16"),
    _again("J03-F13", "TR-F27", responses(Place(fraction=0.8), ("easy",))),
    _again("J03-F14", "TR-F25"),
    _again("J03-F15", "TR-F37"),
    _again("J03-F16", "TR-F43"),
    _again("J03-F17", "TR-F57"),
)

QUESTIONS: tuple[Question, ...] = (*_REPORT, *_SHORTER, *feedback.QUESTIONS)
"""Claims decided by stored rows."""

OFFERS = Question("P04-C11", lambda _: offers_are_early())
"""Claims decided by separate short runs (about a second) instead of stored rows."""
