"""The wait of one job in words, as a terminal and the page tell it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gridsim.report.explain import PLACES, SHOWN, Other, Waiting
from gridsim.report.words import counted, duration, listed, number, percent

__all__ = ["sentences"]


def sentences(found: Waiting, label: str) -> list[str]:
    """The same in words."""
    of = f" of user {found.user}" if found.user else ""
    places = [f"{label} {name}" for label in PLACES if (name := getattr(found, label))]
    told_of = f" ({', '.join(places)})" if places else ""
    asked = (
        f"Job {found.job}{of}{told_of} asked for {counted(found.cores, 'core')} of {number(found.machine)} for "
        f"{duration(found.estimate)}"
    )
    if math.isnan(found.start):
        return [f"{asked}, and did not run under {label} ({found.status})."]
    if found.wait <= 0:
        return [f"{asked}, and started at once under {label}: {_are(found.free)} free."]
    told = [f"{asked}, and waited {duration(found.wait)} under {label}."]
    told += _room(found)
    told.append(_queue(found))
    if found.holders:
        told.append(f"Most of the machine was held meanwhile by {_listed(found.holders)}.")
    if found.freeing:
        told.append(f"It started when {listed([_short(one) for one in found.freeing])} ended.")
    return told


def _room(found: Waiting) -> list[str]:
    when = f"When it came, {_are(found.free)} free"
    if not found.enough > 0:
        return [f"{when}; until it started there was never room for it."]
    kept = "there was room for it, and the policy kept that for others."
    if found.short > 0:
        told = [
            f"{when}. For {duration(found.short)} there was too little room for it; for {duration(found.enough)} {kept}"
        ]
    else:
        told = [f"{when}; all the time {kept}"]
    if found.first:
        one = found.first[0]
        told.append(
            f"For {percent(one.share)} of that time {_short(one)}, which asked for {counted(one.cores, 'core')}, "
            "stood first."
        )
    return told


def _queue(found: Waiting) -> str:
    many = {0: "No job", 1: "One job"}.get(found.ahead, f"{number(found.ahead)} jobs")
    told = f"{many} stood before it"
    if found.ahead:
        told += f" ({_work(found.ahead_work)})"
    if not found.passed:
        return f"{told}; nobody who came later started earlier."
    later = (
        "one job that came later started earlier"
        if found.passed == 1
        else (f"{number(found.passed)} jobs that came later started earlier")
    )
    most = f", most of it {_short(found.passing[0])}" if found.passing else ""
    told = f"{told}; {later} ({_work(found.passed_work)}{most})."
    return f"{told} {_whose(found)}" if found.passed > 1 and found.passers else told


def _whose(found: Waiting) -> str:
    """Whose jobs passed, the first few users by name."""
    shown = [
        f"{number(count)} of {'the same user' if user == found.user else f'user {user}'}"
        for user, count in found.passers[:SHOWN]
    ]
    rest = found.passed - sum(count for _, count in found.passers[:SHOWN])
    return f"They are {listed([*shown, *([f'{number(rest)} of others'] if rest else [])])}."


def _listed(others: Sequence[Other]) -> str:
    return listed([f"{_short(one)} ({counted(one.cores, 'core')}, {percent(one.share)})" for one in others])


def _short(one: Other) -> str:
    return f"job {one.job}" + (f" of user {one.user}" if one.user else "")


def _are(count: int) -> str:
    return f"{counted(count, 'core')} {'was' if count == 1 else 'were'}"


def _work(core_seconds: float) -> str:
    hours = core_seconds / 3600
    return f"{number(hours) if hours >= 100 else f'{hours:.3g}'} core-hours"
