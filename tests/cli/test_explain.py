"""``gridsim explain`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    assert main(["compare", str(SITE), "--policy", "fcfs", "--policy", "easy", "--no-page", "--out", str(folder)]) == 0
    return folder


def test_the_longest_wait_is_explained_and_told_for_each_policy(
    compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(compared)]) == 0
    told = capsys.readouterr().out
    assert "waited 2 d 5 h" in told.replace("\n", " ")
    assert "starts after" in told
    assert "\neasy " in told


def test_json_holds_the_same(compared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(compared), "387", "--policy", "easy", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["job"] == 387
    assert told["policy"] == "easy"
    assert told["wait"] == told["policies"]["easy"]["wait"]
    assert told["short"] + told["enough"] == pytest.approx(told["wait"])


@pytest.mark.parametrize(
    ("words", "message"),
    [(["99999"], "there is no job 99999"), (["1", "--policy", "easi"], "did you mean 'easy'?")],
)
def test_what_is_not_there_is_named(
    compared: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(compared), *words]) == 2
    assert message in capsys.readouterr().err
