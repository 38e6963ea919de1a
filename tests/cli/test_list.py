"""``gridsim list``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim import registry
from gridsim.cli import main
from gridsim.cli.list import KINDS
from gridsim.policy.presets import PRESETS
from gridsim.workload.problems import KINDS as PROBLEMS

POLICY = '''from dataclasses import dataclass


@dataclass
class Mine:
    """My very own order."""

    base: int
    tie: float = 0.5

    def rank(self, queue, now):
        return queue.cores
'''


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal wide enough to avoid line breaks."""
    monkeypatch.setenv("COLUMNS", "200")


def listed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["list", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("wide")
def test_everything_that_can_be_named_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    told = "".join(listed([kind], capsys) for kind in KINDS)
    for kind in KINDS:
        assert f"\n{kind}" in f"\n{told}"
    for name in [*PRESETS, *(name for kind in registry.KINDS for name in registry.names(kind))]:
        assert name in told
    assert "--policy file.py:Class" in told


def test_without_a_kind_the_kinds_are_listed_with_their_counts(capsys: pytest.CaptureFixture[str]) -> None:
    tables = json.loads(listed(["--json"], capsys))
    rows = [line.split() for line in listed([], capsys).split("\n\n")[0].splitlines()]
    assert rows == [[kind, str(len(found))] for kind, found in tables.items()]
    assert ["policies", str(len(PRESETS))] in rows
    assert ["problems", str(len(PROBLEMS))] in rows


@pytest.mark.usefixtures("wide")
def test_kinds_of_problems_are_listed_with_rules_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(listed(["problems", "--json"], capsys))["problems"]
    assert {it["name"]: (tuple(it["rules"]), it["default"]) for it in rows} == {
        name: (kind.rules, kind.default) for name, kind in PROBLEMS.items()
    }
    assert all(it["summary"].startswith(PROBLEMS[it["name"]].meaning) for it in rows)
    told = " ".join(listed(["problems"], capsys).split())
    assert "zero-runtime skip, repair, error (default: skip)" in told
    assert "repair: the run time becomes 1 s." in told


@pytest.mark.usefixtures("wide")
def test_one_kind_is_listed_alone_with_aliases_parameters_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    told = listed(["orderings"], capsys)
    assert "shortest-estimate, sjf, spf" in told
    assert "hold=True" in told
    assert "[Tang, Lan, Desai, Buettner 2009]" in told
    assert "conservative" not in told


@pytest.mark.usefixtures("wide")
def test_a_default_is_shown_as_it_would_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    told = listed(["schedulers"], capsys)
    assert "ordering=fifo" in told
    assert "reserve=easy" in told
    assert "ordering=none" in told


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    tables = json.loads(listed(["--json"], capsys))
    assert list(tables) == list(KINDS)
    assert [row["name"] for row in tables["policies"]] == list(PRESETS)
    depth = next(row for row in tables["reservations"] if row["name"] == "depth")
    assert depth["parameters"] == {"k": 8}


@pytest.mark.usefixtures("wide")
def test_the_classes_of_a_file_are_listed_as_policy_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    told = listed([str(path)], capsys)
    assert ":Mine" in told
    assert "base=…" in told
    assert "tie=0.5" in told
    assert "My very own order." in told
    (row,) = json.loads(listed([str(path), "--json"], capsys))[str(path)]
    assert row["required"] == ["base"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(tmp_path / "absent.py")]) == 2
    assert "absent.py: no such file" in capsys.readouterr().err
