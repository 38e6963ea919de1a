"""From a ``--policy`` text to a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.policy.ordering import Fifo, LargestCores, ShortestEstimate, Wfp3
from gridsim.policy.presets import PRESETS, policy
from gridsim.policy.reservation import Depth, Easy, FirstFit, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.planned import Planned


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [
        ("fcfs", Backfilling(Fifo(), Strict())),
        ("easy", Backfilling(Fifo(), Easy())),
        ("first-fit", Backfilling(Fifo(), FirstFit())),
        ("depth", Backfilling(Fifo(), Depth())),
        ("depth?k=4", Backfilling(Fifo(), Depth(k=4))),
        ("depth?k=4&ordering=sjf", Backfilling(ShortestEstimate(), Depth(k=4))),
        ("depth(k=4, ordering=sjf)", Backfilling(ShortestEstimate(), Depth(k=4))),
        ("easy?reserve=depth&k=2", Backfilling(Fifo(), Depth(k=2))),
        ("easy?ordering=wfp3", Backfilling(Wfp3(), Easy())),
        ("conservative", Planned()),
        ("conservative?compress=arrival", Planned(compress="arrival")),
        ("conservative?ordering=sjf", Planned(ordering=ShortestEstimate())),
        ("conservative?ordering=none", Planned()),
        ("planned?compress=none", Planned(compress="none")),
        ("backfilling", Backfilling(Fifo(), Easy())),
        ("backfilling?ordering=wfp3&reserve=depth(k=3)", Backfilling(Wfp3(), Depth(k=3))),
        ("backfilling?reserve=none", Backfilling(Fifo(), FirstFit())),
        ("sjf", Backfilling(ShortestEstimate(), Strict())),
        ("widest", Backfilling(LargestCores(), Strict())),
    ],
)
def test_a_text_means_a_composition(text: str, scheduler: object) -> None:
    assert policy(text) == scheduler


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_what_its_spec_says(name: str) -> None:
    assert policy(name) == policy(PRESETS[name].spec)


def test_an_object_is_taken_as_it_is_and_an_ordering_becomes_strict() -> None:
    scheduler = Backfilling()
    assert policy(scheduler) is scheduler
    assert policy(Wfp3()) == Backfilling(Wfp3(), Strict())


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("esy", "easy"),
        ("conservativ", "conservative"),
        ("sjff", "sjf"),
        ("wfp", "wfp3"),
        ("smallest-core", "smallest-cores"),
    ],
)
def test_an_unknown_name_answers_with_the_nearest_and_the_list(text: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown policy '{text}'; did you mean '{nearest}'") as caught:
        policy(text)
    assert caught.value.nearest == nearest
    assert "fcfs" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("easy?order=sjf", "unknown parameter of easy 'order'; did you mean 'ordering'"),
        ("fcfs?k=3", "unknown parameter of fcfs 'k'"),
        ("depth?reserve=easy&k=4", "unknown parameter of depth 'k'"),
        ("depth?k=-1", "depth: k is -1; at least 0 is needed"),
        ("depth?k=many", "'many' is not int"),
        ("depth?k=2.5", "2.5 is not int"),
        ("easy?ordering=sjff", "unknown ordering 'sjff'; did you mean 'sjf'"),
        ("easy?reserve=strickt", "unknown reservation 'strickt'; did you mean 'strict'"),
        (
            "conservative?compress=allways",
            "unknown value of planned\\?compress 'allways'; .*known: arrival, none, planned",
        ),
        ("easy?ordering", "'ordering' in 'easy\\?ordering' is not parameter=value"),
        ("?ordering=sjf", "has no name"),
        ("", "has no name"),
        ("easy?ordering=sjf(", "brackets do not match"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        policy(text)


def test_a_class_is_no_policy_but_its_object_is() -> None:
    with pytest.raises(InputError, match=r"Wfp3 is a class; give an object of it: Wfp3\(\)"):
        policy(Wfp3)


def test_an_object_that_decides_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"neither a scheduler .* nor an ordering"):
        policy(42)


def test_a_scheduler_in_a_file_is_a_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from gridsim.policy.scheduler.backfilling import Backfilling\nclass Mine(Backfilling): ...\n")
    assert type(policy(f"{file}:Mine")).__name__ == "Mine"
