"""How far these simulations are from what the machine did: told right below the answer of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.metrics.agreement import Agreement
from gridsim.model.time import seconds
from gridsim.questions.evidence import Evidence
from gridsim.questions.replay import FAR, Replay
from gridsim.words import duration, number

__all__ = ["Trust", "interval", "trust", "trust_in"]


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
    """What the comparison carries; else how far the first policy is from the waits in the log; None without such waits.

    Logs that were transformed are not what the machine ran, and of DAG jobs no waits are known.
    """
    if comparison.replay is not None:
        return trust_in(comparison.replay)
    label = comparison.baseline
    record = comparison.records[label]
    logged = record.workload.logged.get("wait")
    if logged is None or comparison.of_dags or comparison.info.get("workload", {}).get("transforms"):
        return None
    waits = np.asarray(logged, dtype=np.float64)
    known = comparison.kept & record.ran & np.isfinite(waits)
    if not known.any():
        return None
    wait = seconds(record.first_start_us[known] - record.workload.submit[known])
    apart = float(np.median(np.abs(wait - waits[known])))
    middle = float(np.median(waits[known]))
    count = int(known.sum())
    told = (
        "How far to trust this: no policy of the site is known, so nothing here was fitted to the machine. Under "
        f"{label} the simulated wait of a job is {duration(apart)} away from the logged one at the median "
        f"(of {number(count)} job{'' if count == 1 else 's'}; the median logged wait is {duration(middle)})."
    )
    return Trust((told,), {"jobs": count, "wait_error_median": apart, "logged_wait_median": middle}, policy=label)


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
    return (
        f"Warning: the replay is not like the machine. Under {replay.policy}, the site's own policy, jobs wait "
        f"{duration(one.wait)} on average{_first(replay)}, in the log {duration(one.logged_wait)}: more than a factor "
        f"of {FAR:g} apart. Take what follows for the order of the policies at most, not for waits that users would "
        "see."
    )


def _how_far(replay: Replay) -> str:
    one, label = replay.agreement, replay.policy
    if replay.own:
        who = f"replayed under {label}, the site's own policy"
    elif replay.alone:
        who = f"whether {label} is the site's own policy is not known. Replayed under it"
    else:
        who = (
            f"which of these policies is the site's own was not said (--own). Replayed under {label}, the first of them"
        )
    longer = " (with jobs that run as long as they did, beyond their limits too)" if replay.extended else ""
    return (
        f"How far to trust this: {who}{longer}, half of the {number(one.jobs)} jobs start within "
        f"{duration(one.median)} of their logged start{interval(one)}; the mean wait{_first(replay)} is "
        f"{duration(one.wait)}, in the log {duration(one.logged_wait)}. {_more(replay)}"
    )


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
        return "gridsim calibrate says more."
    not_so = f"{replay.policy} is not" if replay.alone else "none of them is"
    if log.get("clusters"):  # each has rules of its own
        return f"Those machines ran Slurm, and {not_so} Slurm's: gridsim calibrate replays one --cluster by its rules."
    words = "…" if "files" in log else Path(str(log.get("source", "sacct.txt"))).name
    words += f" --cluster {log['cluster']}" if "clusters_left_out" in log else ""
    return (
        f"That machine ran Slurm, and {not_so} Slurm's: gridsim calibrate {words} --policy 'slurm?conf=slurm.conf' "
        "replays the log by its rules."
    )
