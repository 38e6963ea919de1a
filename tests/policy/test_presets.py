"""Schedulers from ``--policy`` texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.policy.admission.feedback import Feedback
from gridsim.policy.admission.mrt import MRT, EarliestDeadlineAndStart
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.ordering import (
    EarliestDeadline,
    Fifo,
    LargestCores,
    ShortestEstimate,
    Wfp3,
)
from gridsim.policy.partition import ShareOfWork
from gridsim.policy.presets import PRESETS, policy
from gridsim.policy.reservation import Category, Depth, Easy, FirstFit, Selective, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.deadline_guarantee import Guaranteed
from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling
from gridsim.policy.scheduler.plan_based import Planned


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
        ("qops?k_factor=3&relaxation=2", Guaranteed(admission=QoPS(k_factor=3), relaxation=2.0)),
        ("fqops?k_factor=3&heuristic=edf", Guaranteed(admission=Feedback(QoPS(3, EarliestDeadline())))),
        ("mrt?weight=2&heuristic=edf+est", Guaranteed(admission=MRT(EarliestDeadlineAndStart(2.0)))),
        ("moldable-start?choices=all", MoldableBackfilling(partition=ShareOfWork(wf=2.0, choices="all"))),
        (
            "moldable-combined?k=5&count=3",
            MoldableBackfilling(
                partition=ShareOfWork(wf=2.0, weight="sqrt-parallel"), reserve=Selective(5.0, Category(count=3))
            ),
        ),
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
        ("msb?price=gold", r"unknown value of msb\?price 'gold'; known: disturbance, slack, slowdown, wait, work_wait"),
        ("qops?k_factor=-1", "qops: k_factor is -1; a number of repairs from 0 is needed"),
        ("mrt?backtracks=-1", "mrt: backtracks is -1; a limit from 0 is needed"),
        ("mrt?window=0", "mrt: window is 0; at least 1 job is needed"),
        ("fqops?slack_factor=0.9", r"feedback: slack_factor is 0.9; 1 \(no slack\) or more is needed"),
        ("fqops?retry_count=-1", "feedback: retry_count is -1; a number of steps from 0 is needed"),
        ("qops?relaxation=0", "guaranteed: relaxation is 0.0; a number above 0 is needed"),
        ("qops?artificial_floor=-1", "guaranteed: artificial_floor is -1.0; seconds from 0 up are needed"),
        ("fqops?k_factr=3", "unknown parameter of fqops 'k_factr'; did you mean 'k_factor'"),
        ("moldable-base?wf=0", "fair-share: wf is 0.0; a weight factor above 0 is needed"),
        ("moldable-base?gap=2", "fair-share: gap is 2.0; a fraction of the machine above 0, at most 1, is needed"),
        ("moldable-base?choices=1", "fair-share: choices is 1; a number of sizes from 2"),
        ("moldable?reserve=strict", "sizes require one of the reservation rules"),
        ("moldable?reserve=xfactor(k=1)", "xfactor: k is 1.0; a threshold above 1 is needed"),
        ("easy?reserve=category", "keeps reservations between cycles"),
        ("easy?ordering", "'ordering' in 'easy\\?ordering' is not parameter=value"),
        ("?ordering=sjf", "has no name"),
        ("", "has no name"),
        ("easy?ordering=sjf(", "brackets do not match"),
    ],
)
def test_errors_in_a_text_are_reported(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        policy(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("moldable?reserve=xfactor(k=2,besides=category)", "xfactor: besides was renamed; give others"),
        ("moldable-combined?besides=depth(k=3)", "xfactor: besides was renamed; give others"),
        ("slurm?conf=slurm.conf&nodes=gpu:1", "slurm: nodes was renamed; give add_nodes"),
        ("slurm?conf=slurm.conf&more_nodes=1", "slurm: more_nodes was renamed; give add_nodes"),
    ],
)
def test_the_former_name_of_a_parameter_is_an_error_with_the_new_name(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        policy(text)


def test_a_class_is_no_policy_but_its_object_is() -> None:
    with pytest.raises(InputError, match=r"Wfp3 is a class; give an instance: Wfp3\(\)"):
        policy(Wfp3)


def test_an_object_that_decides_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"neither a scheduler .* nor an ordering"):
        policy(42)


def test_a_scheduler_in_a_file_is_a_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from gridsim.policy.scheduler.backfilling import Backfilling\nclass Mine(Backfilling): ...\n")
    assert type(policy(f"{file}:Mine")).__name__ == "Mine"
