"""Texts of figures about the groups that gain and lose."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gridsim.report.pictures import caption_of_groups


def row(policy: str, group: str, verdict: str) -> Any:
    return SimpleNamespace(policy=policy, baseline="today", kind="user", group=group, verdict=verdict)


def test_policies_under_which_nothing_is_clear_are_reported_together() -> None:
    rows = [row(policy, "1", "no clear difference") for policy in ("easy", "fcfs", "greedy")]
    told = caption_of_groups([*rows, row("wider", "1", "worse")], less="wait less", more="wait longer")
    assert told.endswith("Under easy, fcfs or greedy no group differs significantly from today.")
    assert told.startswith("Under wider, none significantly wait less;")
    assert told.count("no group") == 1
    rows = [row(policy, "1", "too little data") for policy in ("easy", "fcfs")]
    assert "; 2 of 2 comparisons of a group have too little data." in caption_of_groups(rows, less="", more="")
    assert "; 1 of 1 groups have too little data." in caption_of_groups(rows[:1], less="", more="")
