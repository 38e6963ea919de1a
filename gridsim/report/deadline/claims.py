"""What the two papers of 2003 claim about admission with deadlines, and which stored rows decide it.

Identifiers are those of the project's list of claims; statements are its own words. The judges are in
`schemes` and `effects`; the claims of 2004 are in `feedback`.

References
----------
Islam, Balaji, Sadayappan, Panda, "QoPS: A QoS based scheme for parallel job scheduling", OSU-CISRC-4/03-TR21 (TR), and
JSSPP 2003, LNCS 2862 (J03).
"""

from __future__ import annotations

from collections.abc import Mapping

from gridsim.report.deadline import effects, exact, feedback
from gridsim.report.deadline.offers import offers_are_early
from gridsim.report.deadline.readings import Question
from gridsim.report.deadline.schemes import (
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
from gridsim.report.deadline.study import Place, title

__all__ = ["CASES", "OFFERS", "QUESTIONS"]


def _figures() -> list[Question]:
    """Figures 4 to 58."""
    found = []
    first = {"CTC, duplication": (4, 13, 25, 37, 43), "SDSC, duplication": (7, 17, 29, 39, 47)}
    first["CTC, expansion"] = (10, 21, 33, 41, 51)
    for name, (alone, mixed, response, use, equal) in first.items():
        place = EXPERIMENTS[name]
        for at, stringency in enumerate((0.2, 0.5)):
            tight = place._replace(stringency=stringency)
            where = f"{name}, stringency {stringency:g}"
            words = "QoPS refuses fewer jobs and core-seconds than MRT and MSB"
            closer = ", with smaller gaps than at 0.2" if at else ""
            found.append(
                Question(
                    f"TR-F{alone + at:02}",
                    f"{where}: {words} from load 1.4{closer}",
                    admittance(tight, 1.4, closer=bool(at)),
                    True,
                )
            )
            for row, fraction in enumerate((0.8, 0.2)):
                some = tight._replace(fraction=fraction)
                share = f"{where}, {100 * fraction:.0f} % deadline jobs"
                near = bool(at) and fraction == 0.8
                text = f"{share}: {words} from 1.2" + (closer if near else "")
                found.append(Question(f"TR-F{mixed + 2 * row + at}", text, admittance(some, 1.2, closer=near), True))
                text = f"{share}: non-deadline jobs fare better than under EASY and conservative"
                text += ", under QoPS at least as well as under MSB" if fraction == 0.2 else ""
                found.append(Question(f"TR-F{response + 2 * (1 - row) + at}", text, responses(some), True))
                text = f"{share}: at equal utilisation non-deadline jobs fare best under QoPS"
                found.append(Question(f"TR-F{equal + 2 * (1 - row) + at}", text, equal_utilisation(some), True))
            text = f"{where}, 80 and 20 % deadline jobs: QoPS uses the machine as MSB, more than MRT, less than EASY"
            found.append(Question(f"TR-F{use + at}", text, mixed_utilisation(tight), True))
        text = (
            f"{name}: EASY and conservative use the machine most, QoPS as MSB does, MRT least; less at stringency 0.5"
        )
        found.append(Question(f"TR-F{alone + 2:02}", text, utilisation(place), True))
    for at, (fraction, stringency) in enumerate(((0.2, 0.2), (0.2, 0.5), (0.8, 0.2), (0.8, 0.5))):
        place = Place(fraction=fraction, stringency=stringency)
        text = (
            f"QoPS, {100 * fraction:.0f} % deadline jobs, stringency {stringency:g}: with larger R non-deadline jobs "
        )
        found.append(
            Question(
                f"TR-F{55 + at}", text + "respond later on average, and are slowed down less", relaxation(place), True
            )
        )
    return sorted(found, key=lambda question: question.id)


_CLAIMS = (
    Question(
        "TR-C01", "Packed traces, arrivals at the packed starts, no slack: nothing is refused", exact.packed_exactly
    ),
    Question("TR-C02", "The same with more slack: more is refused", exact.packed_falls),
    Question(
        "TR-C03", "Packed sets that arrive at once: the more slack, the more sets are placed", exact.packed_static
    ),
    Question("TR-C04", "The more stringent the deadlines, the more is refused", effects.stringency),
    Question(
        "TR-C05", "QoPS refuses fewer jobs at load 1.6 than at 1.4, though there are more", effects.fewer_at_the_top
    ),
    Question("TR-C06", "QoPS refuses less work from load 1.2 up, in number and as a share", effects.work_falls),
    Question("TR-C07", "As load grows QoPS admits more heavy and fewer light jobs", effects.composition),
    Question("TR-C08", "The schemes are closer together at stringency 0.5", effects.converge),
    Question(
        "TR-C09", "QoPS loses 0.10 of utilisation against EASY at stringency 0.2", effects.loss_is(0.1, 0.1, Place())
    ),
    Question(
        "TR-C10",
        "Stringency 0.5 costs another 0.05 to 0.10",
        effects.printed(
            [(f"loss of {title(one)}", Place(), effects.lost_to_stringency(one), 0.05, 0.10) for one in SCHEMES]
        ),
    ),
    Question("TR-C11", "At 1.6 QoPS uses the machine as MSB does, and MRT 0.03 to 0.05 less", effects.comparable, True),
    Question(
        "TR-C12", "The order of the schemes is the same on both logs and under both kinds of load", effects.robust
    ),
    Question("TR-C13", "80 % deadline jobs: QoPS refuses less, the more so the higher the load", effects.gap_grows),
    Question(
        "TR-C14",
        "20 % deadline jobs: QoPS refuses less even at stringency 0.5",
        admittance(Place(fraction=0.2, stringency=0.5), 1.2),
        True,
    ),
    Question(
        "TR-C15", "Non-deadline jobs respond faster than under EASY, as less load is delivered", effects.faster_for_less
    ),
    Question(
        "TR-C16", "20 % deadline jobs: QoPS is below MSB in slowdown and in work refused", effects.better_and_more, True
    ),
    Question(
        "TR-C17",
        "Loss of utilisation against EASY: 0.08 with 80 %, 0.02 to 0.03 with 20 % deadline jobs",
        effects.printed(
            [
                ("loss with 80 %", Place(fraction=0.8), loss, 0.08, 0.08),
                ("loss with 20 %", Place(fraction=0.2), loss, 0.02, 0.03),
            ]
        ),
    ),
    Question(
        "TR-C18",
        "20 % deadline jobs: for the same load delivered QoPS serves the others better than EASY and conservative",
        equal_utilisation(Place(fraction=0.2), BASELINES),
    ),
    Question("TR-C19", "Larger R: short non-deadline jobs gain, long ones lose", effects.relaxation_by_length),
    Question("TR-C20", "Placements grow with the queue as stated: MSB quadratically, QoPS as N log N", exact.cost),
    Question("TR-C21", "Jobs that are admitted meet their deadlines, always", exact.promises),
    Question("TR-C22", "No job without a deadline is refused, or late for its artificial one", exact.nobody_starves),
    Question("TR-C23", "Estimates as logged (left open by the paper): reported, and promises are kept", exact.inexact),
)


def _again(own: str, other: str, judge: Judge | None = None, more: str = "") -> Question:
    """A figure of the shorter paper that shows an experiment of the report, maybe with less or more in it."""
    (same,) = (question for question in _REPORT if question.id == other)
    return Question(own, f"As {other}{more}: {same.statement}", judge or same.judge, same.repeated)


_REPORT = (*_figures(), *_CLAIMS)

_SHORTER = (
    _again("J03-F04", "TR-F04", admittance(Place(), 1.4, measures=UNADMITTED | NUMBERS), ", numbers too"),
    _again(
        "J03-F05",
        "TR-F05",
        admittance(Place(stringency=0.5), 1.4, closer=True, measures=UNADMITTED | NUMBERS),
        ", numbers too",
    ),
    _again("J03-F06", "TR-F06", utilisation(Place(), ("easy",)), " without conservative"),
    _again("J03-F07", "TR-F07", on_both(Place("sdsc")), " and at 0.5"),
    _again(
        "J03-F08",
        "TR-F10",
        admittance(EXPERIMENTS["CTC, expansion"], 1.4, measures=UNADMITTED | NUMBERS),
        ", numbers too",
    ),
    _again("J03-F09", "TR-F13"),
    _again("J03-F10", "TR-F14"),
    _again("J03-F11", "TR-F15"),
    _again("J03-F12", "TR-F16"),
    _again("J03-F13", "TR-F27", responses(Place(fraction=0.8), ("easy",)), " against EASY alone"),
    _again("J03-F14", "TR-F25"),
    _again("J03-F15", "TR-F37"),
    _again("J03-F16", "TR-F43"),
    _again("J03-F17", "TR-F57"),
)

QUESTIONS: tuple[Question, ...] = (*_REPORT, *_SHORTER, *feedback.QUESTIONS)
"""Claims that rows decide."""

_MSB = ("msb", "05 06 07 10 13 15 16")
_MRT = ("mrt", "05 07 09 09b 10 13 15 16 20")
_QOPS = ("qops", "05 07 08 10 13 14 15 16 20")

CASES: Mapping[str, tuple[str, str, str]] = {
    "TR-F01": ("Figure 1: the procedure of MSB", *_MSB),
    "TR-F02": ("Figure 2: the procedure of MRT", *_MRT),
    "TR-F03": ("Figure 3: the procedure of QoPS", *_QOPS),
    "J03-F01": ("Figure 1: the procedure of MSB", *_MSB),
    "J03-F02": ("Figure 2: the procedure of MRT", *_MRT),
    "J03-F03": ("Figure 3: the procedure of QoPS", *_QOPS),
    "P04-F01": ("Figure 1: the procedure of QoPS, and with the new job sorted in (case 08)", *_QOPS),
    "P04-F02": ("Figure 2: the procedure of offers and of kills", "fqops", "11 11b 11c 12 12b"),
}
"""Figures of pseudo-code, in our words: they hold where the runs of a policy in exact cases of these numbers pass."""

OFFERS = Question(
    "P04-C11", "The offer is nearly the earliest deadline that QoPS can grant", lambda _: offers_are_early()
)
"""The claim that runs of its own decide, in a second or so, and no row."""
