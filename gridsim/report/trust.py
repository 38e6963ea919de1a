"""How far these simulations are from what the machine did: told right below the answer of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridsim.metrics.agreement import Agreement
from gridsim.questions.evidence import Evidence
from gridsim.questions.replay import FAR, Replay
from gridsim.report.texts import texts
from gridsim.words import counted, duration

__all__ = ["Trust", "interval", "trust", "trust_in"]

_text = texts("validation")


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known of a replay of the log against what the log says did happen.

    Attributes
    ----------
    sentences : tuple of str
        For the reader, the first one alone if there is no more room.
    numbers : mapping of str to float
        The same for programs: seconds, shares and counts by name.
    policy : str
        Label of the policy that it is about; empty where it is not said.
    own : bool
        Whether that is the site's own.
    far : bool
        Whether its replay is so far from the log that the first sentence is a warning, to be told before any answer.
    """

    sentences: tuple[str, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)
    policy: str = ""
    own: bool = False
    far: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is told before the answer."""
        return self.sentences[:1] if self.far else ()

    @property
    def rest(self) -> tuple[str, ...]:
        """What is told behind the answer."""
        return self.sentences[1:] if self.far else self.sentences


def trust(comparison: Evidence) -> Trust | None:
    """Return what is known of the simulation against the recorded log; None if the log has no starts."""
    return None if comparison.replay is None else trust_in(comparison.replay)


def trust_in(replay: Replay) -> Trust:
    """A replay of the log in words, and as numbers."""
    one = replay.agreement
    numbers = {
        "jobs": one.jobs,
        "start_error_median": one.median,
        "start_error_median_low": one.median_low,
        "start_error_median_high": one.median_high,
        "within_60": one.within_60,
        "wait_mean": one.wait,
        "logged_wait_mean": one.logged_wait,
        **replay.preempted,
    }
    warning = (_warning(replay),) if replay.far else ()
    return Trust((*warning, _how_far(replay)), numbers, policy=replay.policy, own=replay.own, far=replay.far)


def _warning(replay: Replay) -> str:
    one = replay.agreement
    who = f"{replay.policy}, the site's own policy" if replay.own else replay.policy
    return _text("large_difference", who=who, first=_first(replay), one=one, far=FAR)


def _how_far(replay: Replay) -> str:
    one, label = replay.agreement, replay.policy
    error = f"median error of the start times {duration(one.median)}{interval(one)}, {counted(one.jobs, 'job')}"
    means = f"mean wait{_first(replay)} {duration(one.wait)} simulated, {duration(one.logged_wait)} recorded"
    longer = " Here jobs run for as long as recorded, beyond their limits too." if replay.extended else ""
    if replay.own:
        who = f"Validation of {label}, the site's own policy, against the recorded log"
    else:
        nearest = label if replay.alone else f"{label}, the nearest of those compared"
        who = f"Not validated: name the site's policy with --own. Under {nearest}"
    return f"{who}: {error}; {means}.{longer} {_more(replay)}"


def _first(replay: Replay) -> str:
    """Up to when waits are counted, where that is not plain."""
    return " to their first start" if replay.several_runs else ""


def interval(one: Agreement) -> str:
    """Interval of the median error of a start in brackets, where there is one."""
    if math.isnan(one.median_low):
        return ""
    return f" (95 % interval {duration(one.median_low)} to {duration(one.median_high)})"


def _more(replay: Replay) -> str:
    """Where to learn more: of a log of Slurm that was not replayed by Slurm's rules, how that is done."""
    log: Mapping[str, Any] = replay.provenance
    if replay.own or log.get("format") != "sacct":
        return "More: gridsim calibrate."
    not_so = f"{replay.policy} is not" if replay.alone else "none of them is"
    if log.get("clusters"):  # each has rules of its own
        return f"Those machines ran Slurm, and {not_so} Slurm's: gridsim calibrate replays one --cluster by its rules."
    words = "…" if "files" in log else Path(str(log.get("source", "sacct.txt"))).name
    words += f" --cluster {log['cluster']}" if "clusters_left_out" in log else ""
    return _text("slurm_log", not_so=not_so, words=words)
