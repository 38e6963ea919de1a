"""Notices about typing errors and about features of a site that are not modelled."""

from __future__ import annotations

from dataclasses import asdict

from gridsim.model.site import Notice
from gridsim.report.notices import facts, sentences

SLIP = Notice("PriorityWeigthAge", unknown=True, nearest="PriorityWeightAge")
LICENCES, TREE = Notice("Licenses", count=3), Notice("TopologyPlugin")


def test_common_notices_are_reported_once_and_others_with_their_site() -> None:
    told = sentences({"today": [SLIP, LICENCES, TREE], "tomorrow": [LICENCES, TREE]})
    assert told == [
        "Under today: unknown to Slurm and ignored: PriorityWeigthAge (did you mean PriorityWeightAge?).",
        "The site's files contain settings that are not modelled (largest effect on the schedule first): Licenses and "
        "TopologyPlugin.",
    ]


def test_a_long_list_says_how_many_more_there_are() -> None:
    (told,) = sentences({"a": [Notice(f"Key{number}") for number in range(11)]})
    assert told.endswith("Key6, Key7 and 3 more (all in run.json).")


def test_times_outside_the_log_are_a_separate_sentence() -> None:
    outside = Notice("reservation maint (2027-01-01 08:00 to 12:00)", outside=True)
    assert sentences({"a": [outside, TREE]}) == [
        "Outside the period of the log, so without effect: reservation maint (2027-01-01 08:00 to 12:00).",
        "The site's files contain settings that are not modelled: TopologyPlugin.",
    ]
    assert list(facts({"not_followed": {"a": [asdict(outside)]}})) == [("Outside the period of the log", outside.text)]


def test_the_page_has_them_all_with_how_often() -> None:
    entry = {"text": "Licenses", "count": 3, "effect": 2, "unknown": False, "nearest": ""}
    assert list(facts({"not_followed": {"a": [entry], "b": [entry]}})) == [
        ("Settings that are not modelled", "Licenses (3 times)")
    ]
