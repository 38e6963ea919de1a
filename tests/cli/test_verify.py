"""The verb `verify`: one row per case, totals in the last line, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main
from gridsim.errors import GridsimError, InputError, PolicyError

PASSING: dict[str, Any] = {
    "kind": "schedule",
    "name": "one-job",
    "platform": {"cores": 1},
    "jobs": [{"id": 1, "submit": 0, "cores": 1, "estimate": 5, "runtime": 5}],
    "runs": [{"algorithm": "fcfs", "parameters": {}, "expected": {"jobs": [{"id": 1, "start": 0, "end": 5}]}}],
}
FAILING = {
    **PASSING,
    "name": "wrong",
    "runs": [{"algorithm": "fcfs", "parameters": {}, "expected": {"jobs": [{"id": 1, "start": 1, "end": 6}]}}],
}
UNSUPPORTED = {"kind": "horoscope", "id": "c1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    return tmp_path


def write(folder: Path, **cases: Any) -> None:
    for name, case in cases.items():
        (folder / "below" / f"{name}.json").write_text(json.dumps(case))


def test_all_passed_is_exit_code_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=PASSING, b=PASSING)
    assert main(["verify", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 passed, 0 failed, 0 unsupported"
    assert len(lines) == 3
    assert lines[0].split()[:3] == ["passed", "deadline-admission", "one-job"]


def test_without_a_path_the_cases_that_come_with_gridsim_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"{len(lines) - 1} passed, 0 failed, 0 unsupported"
    families = {"availability", "deadline-admission", "grid-dag", "machine", "moldable", "prediction"}
    assert {line.split()[1] for line in lines[:-1]} == families


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (InputError("is wrong", path="{path}"), ""),
        (InputError("is wrong", path="{path}.log"), "{path}: "),
        (PolicyError("{path} decided something impossible"), "{path}: "),
    ],
)
def test_an_error_names_the_case_once(
    error: GridsimError, begins: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a=PASSING)
    path = folder / "below" / "a.json"
    message = error.args[0].format(path=path)
    raised = type(error)(message)
    if isinstance(error, InputError):
        raised = InputError(error.message, path=Path(str(error.path).format(path=path)))

    def check(case: object, path: Path) -> None:
        raise raised

    monkeypatch.setattr("gridsim.testing.conformance.cases.check", check)
    assert main(["verify", "--json", str(path)]) == 1
    (row,) = json.loads(capsys.readouterr().out)["cases"]
    assert row["messages"] == [begins.format(path=path) + message]


@pytest.mark.parametrize("other", [FAILING, UNSUPPORTED])
def test_anything_but_passed_is_exit_code_1(folder: Path, other: Any) -> None:
    write(folder, a=PASSING, b=other)
    assert main(["verify", str(folder)]) == 1


def test_a_failed_case_shows_its_differences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=FAILING, b=UNSUPPORTED)
    main(["verify", str(folder / "below")])
    out = capsys.readouterr().out
    assert "    fcfs: job 1: start is 0, expected 1\n" in out
    assert "unknown kind 'horoscope'" in out
    assert out.splitlines()[-1] == "0 passed, 1 failed, 1 unsupported"


def test_json_holds_every_case_and_the_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a=PASSING, b=FAILING)
    assert main(["verify", "--json", str(folder)]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["passed"], facts["failed"], facts["unsupported"]) == (1, 1, 0)
    assert facts["cases"][0] == {
        "path": str(folder / "below" / "a.json"),
        "family": "deadline-admission",
        "name": "one-job",
        "status": "passed",
        "runs": {"passed": 1, "failed": 0, "unsupported": 0},
        "messages": [],
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"kind":\n oops}', "a.json line 2"),
        ("[]", "a.json line 1"),
        (
            '{"kind": "schedule", "jobs": [], "runs": [],\n"platform": {"cores": "many"}}',
            "a.json line 2, field 'platform.cores'",
        ),
        (
            '{"kind": "schedule", "jobs": [], "runs": [], '
            '"platform": {"nodes": [{"group": "n", "count": 1, "capacity": {}}]}}',
            "has 0 cores",
        ),
        (json.dumps({**PASSING, "jobs": [{**PASSING["jobs"][0], "submit": 10**400}]}), "a.json"),
    ],
)
def test_a_bad_case_is_one_failed_row_with_its_place(
    text: str, place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "below" / "a.json").write_text(text)
    write(folder, b=PASSING)
    assert main(["verify", str(folder)]) == 1
    out = capsys.readouterr().out
    assert place in out
    assert out.startswith("failed ")
    assert out.splitlines()[-1] == "1 passed, 1 failed, 0 unsupported"


def test_a_path_that_is_not_there_is_exit_code_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder / "nowhere")]) == 2
    assert "no such file or folder" in capsys.readouterr().err
