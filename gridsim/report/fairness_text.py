"""How even users fare over time, in words: what Gini coefficients and shares of the largest users say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gridsim.metrics.fairness import FairnessOverTime
from gridsim.words import duration, listed, number, percent

__all__ = ["inequality", "large_users_held"]


def inequality(found: Mapping[str, FairnessOverTime]) -> str:
    """What Gini coefficients over time say: how unequal under each policy, and who is more even how often."""
    first = next(iter(found.values()))
    known = np.isfinite(first.gini)
    for it in found.values():
        known &= np.isfinite(it.gini)
    length = _period(first)
    if not known.any():
        return f"No {length} has enough users under every policy to tell how unequal they fare."
    middle = {label: float(np.median(it.gini[known])) for label, it in found.items()}
    parts = [f"{label} {value:.2f}" for label, value in middle.items()]
    told = f"Median of {number(known.sum())} {_many(length)} with enough users: {listed(parts)}."
    baseline, *others = found
    if not others:
        return told
    evener = {label: (found[label].gini[known] < found[baseline].gini[known]).sum() for label in others}
    parts = [f"{label} in {number(count)}" for label, count in evener.items()]
    return f"{told} More even than {baseline}: {listed(parts)} of them."


def large_users_held(found: Mapping[str, FairnessOverTime], users: int) -> str:
    """How much of the machine the largest users held under each policy, mean over time and most in a period."""
    parts = [
        f"{label} {percent(float(it.share.mean()))} on average and {percent(float(it.share.max()))} at most"
        for label, it in found.items()
    ]
    who = "The user" if users == 1 else f"The {users} users"
    lengths = _many(_period(next(iter(found.values()))))
    return f"{who} with the most core-seconds held of all cores, in means of {lengths}: {'; '.join(parts)}."


def _many(length: str) -> str:
    return length.replace("stretch", "stretches") if length.startswith("stretch") else f"{length}s"


def _period(found: FairnessOverTime) -> str:
    """Length of the periods as a noun."""
    length = float(found.edges_s[1] - found.edges_s[0])
    named = {7 * 86_400: "week", 86_400: "day", 3_600: "hour", 60: "minute", 1: "second"}
    return named.get(round(length), f"stretch of {duration(length)}")
