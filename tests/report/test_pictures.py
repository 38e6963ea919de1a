"""Texts of figures about the groups that gain and lose, and captions of all pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gridsim.policy.site_policy import machine
from gridsim.questions.changes import changes_of
from gridsim.questions.whatif import whatif
from gridsim.report import campaign, page, whatif_page
from gridsim.report.markup import TEMPLATES, text_table
from gridsim.report.pictures import caption_of_groups
from gridsim.workload.synthetic.lublin import default_workload
from tests.report.test_campaign_tables import made as made_campaign

LONGEST = 25
"""Largest number of words of a caption."""


def captions(text: str) -> list[str]:
    """Texts below the charts of a page, without file names."""
    found = re.findall(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)
    return [" ".join(re.sub(r"<(span|a)\b.*?</\1>|\xa0", " ", one).split()) for one in found]


def whatif_text() -> str:
    log = default_workload(jobs=60, cores=64, seed=1)
    effects = whatif(log, changes_of(log, machine(log), cores=(-0.25, 0.5)))
    return whatif_page.render(effects, title="log", command="gridsim whatif")


@pytest.mark.parametrize("name", ["comparison", "what if", "campaign"])
def test_captions_are_short_and_none_is_repeated(name: str, request: pytest.FixtureRequest) -> None:
    pages: dict[str, Callable[[], str]] = {
        "comparison": lambda: page.render(request.getfixturevalue("comparison")),
        "what if": whatif_text,
        "campaign": lambda: campaign.page(made_campaign()),
    }
    found = captions(pages[name]())
    assert len(found) >= 2
    assert [one for one in found if not 1 <= len(one.split()) <= LONGEST] == []
    assert len(set(found)) == len(found)


def test_every_caption_of_a_template_is_short() -> None:
    fixed = text_table("pictures", "captions").values()
    assert [one for one in fixed if len(one.split()) > LONGEST] == []
    assert len(set(fixed)) == len(fixed)
    templates = {path: path.read_text(encoding="utf-8") for path in Path(TEMPLATES).glob("*.j2")}
    drawn = [one for text in templates.values() for one in re.findall(r"<figcaption>(.*?)</figcaption>", text)]
    assert len(drawn) == 4
    assert all("caption" in one and ".text" not in one for one in drawn)


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
