"""Labels of policies in reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.policy.ordering import ShortestEstimate
from gridsim.questions.labels import folders, labelled


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.conf", "b.conf", "who.cfg"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("specs", "labels"),
    [
        (["slurm?conf=a.conf&assoc=who.cfg"], ["slurm"]),
        (["easy", "slurm?conf=a.conf&assoc=who.cfg&boot=3"], ["easy", "slurm"]),
        (
            ["slurm?conf=a.conf&assoc=who.cfg", "slurm?conf=b.conf&assoc=who.cfg"],
            ["slurm?conf=a.conf", "slurm?conf=b.conf"],
        ),
        (
            ["slurm?conf=a.conf&add_nodes=1", "slurm?conf=a.conf&add_nodes=2"],
            ["slurm?add_nodes=1", "slurm?add_nodes=2"],
        ),
        (["easy?ordering=sjf", "fcfs?ordering=sjf"], ["easy?ordering=sjf", "fcfs?ordering=sjf"]),
        (["slurm?conf=a.conf", "slurm?conf=b.conf"], ["slurm?conf=a.conf", "slurm?conf=b.conf"]),
        (
            [f"slurm?conf=a.conf&timezone=UTC&epoch=0&boot=3{more}" for more in ("", "&preempt=no", "&add_nodes=2")],
            ["slurm", "slurm?preempt=no", "slurm?add_nodes=2"],
        ),
        (
            ["easy", "slurm?conf=a.conf&assoc=who.cfg&boot=3", "slurm?conf=b.conf&assoc=who.cfg&boot=3"],
            ["easy", "slurm?conf=a.conf", "slurm?conf=b.conf"],
        ),
        (["slurm?conf=a.conf&boot=3", "slurm?conf=b.conf&boot=4"], ["slurm?conf=a.conf", "slurm?conf=b.conf"]),
        (["slurm?conf=a.conf&boot=3", "slurm?conf=a.conf&boot=4"], ["slurm?boot=3", "slurm?boot=4"]),
        (["site", "site?PriorityWeightAge=5", "easy"], ["site", "site?PriorityWeightAge=5", "easy"]),
        (["site?qos=who.cfg", "easy"], ["site?qos=who.cfg", "easy"]),
        (["slurm?conf=a.conf&SchedulerParameters+=a,b[(=1", "easy"], ["slurm?SchedulerParameters+=a,b[(=1", "easy"]),
        (["depth?k=2&ordering=sjf", "depth?k=4&ordering=sjf"], ["depth?k=2", "depth?k=4"]),
        (["easy?reserve=xfactor(k=4,others=category)&k=1"], ["easy?reserve=xfactor(k=4,others=category)&k=1"]),
    ],
)
def test_files_are_reported_only_where_they_distinguish_policies(specs: list[str], labels: list[str]) -> None:
    assert list(labelled(specs)) == labels
    assert list(labelled(specs).values()) == specs


@pytest.mark.parametrize("policy", ["easy", ShortestEstimate()])
def test_a_text_or_an_object_alone_is_one_policy(policy: Any) -> None:
    assert list(labelled(policy).values()) == [policy]
    assert list(labelled({"one": policy})) == ["one"]


@pytest.mark.usefixtures("here")
def test_the_text_before_the_first_equals_sign_is_the_label() -> None:
    specs = ["today=slurm?conf=a.conf", " no preemption = slurm?conf=a.conf&preempt=no", "easy?ordering=sjf", "fcfs"]
    assert labelled(specs) == {
        "today": "slurm?conf=a.conf",
        "no preemption": "slurm?conf=a.conf&preempt=no",
        "easy?ordering=sjf": "easy?ordering=sjf",
        "fcfs": "fcfs",
    }


@pytest.mark.usefixtures("here")
def test_the_others_are_shown_as_next_to_a_labelled_policy() -> None:
    specs = ["today=slurm?conf=a.conf&flags=x", "slurm?conf=a.conf&flags=x&add_nodes=2"]
    assert list(labelled(specs)) == ["today", "slurm?add_nodes=2"]
    assert list(labelled(["slurm=slurm?conf=a.conf", "slurm?conf=b.conf"])) == ["slurm", "slurm?conf=b.conf"]


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        (["today=easy", "today=fcfs"], "'today' is given twice"),
        (["easy=fcfs", "easy"], "'easy' is the label of one policy and the name of another"),
        (["=easy"], "label is empty"),
        ([" =easy"], "label is empty"),
        (["today="], "'today=' has a label but no policy"),
        ({"": "easy"}, "label is empty"),
        ({"a\nb": "easy"}, "is not a label of a policy"),
        ({3: "easy"}, "is not a label of a policy"),
        (["easy", "easy"], "'easy' is given twice"),
        ([], "no policy is given"),
    ],
)
def test_a_label_is_given_once_and_is_not_empty(policies: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        labelled(policies)


def test_folders_have_safe_distinct_names() -> None:
    labels = ["../../etc", "no preemption", "no-preemption", "NO PREEMPTION", "über", "?", "run.json", "x" * 300]
    found = folders(labels)
    assert list(found) == labels
    assert list(found.values())[:6] == ["etc", "no-preemption", "no-preemption-2", "NO-PREEMPTION-3", "über", "policy"]
    assert found["run.json"] == "run-json"
    assert len(found["x" * 300]) < 100
