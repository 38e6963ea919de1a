"""Commands of ``gridsim whatif``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gridsim.cli import main
from gridsim.report import whatif_text

SMALL = ["whatif", "--jobs", "150", "--machine", "32", "--load", "0.9"]


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, float]]:
    assert main([*SMALL, *words, "--json"]) == 0
    return {one["change"]: one for one in json.loads(capsys.readouterr().out)["changes"]}


def test_added_cores_are_percentages_or_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["--add-cores", "+25%,+16", "--add-cores", "32"], capsys)
    assert [one["cores"] for one in found.values()] == [32, 40, 48, 64]
    assert list(found) == ["as it is", "40 cores (+25 %)", "48 cores (+50 %)", "64 cores (+100 %)"]


def test_halving_says_how_many_cores(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["--halve", "--node", "4"], capsys)
    now, more = found.values()
    assert more["metrics"]["wait_mean"] <= now["metrics"]["wait_mean"] / 2  # type: ignore[index]
    assert (more["cores"] - 32) % 4 == 0


def test_a_size_that_halves_and_is_requested_too_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    enough = list(told(["--halve", "--node", "4"], capsys).values())[1]["cores"]
    found = told(["--halve", "--node", "4", "--add-cores", f"{enough - 32:g}"], capsys)
    assert [one["cores"] for one in found.values()] == [32, enough]


def test_numbers_that_there_are_none_of_are_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "--jobs", "2", "--machine", "128", "--add-cores", "128", "--json"]) == 0
    assert "NaN" not in capsys.readouterr().out


def test_the_usual_questions_are_answered_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "At present, jobs wait" in text
    assert "With estimates 2 times better" in text


def test_a_smaller_machine_is_a_value_and_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["--add-cores", "-25%,-4", "--add-cores", "-50%"], capsys)
    assert [one["cores"] for one in found.values()] == [32, 24, 28, 16]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--add-cores", "many"], "'many' is not a number of cores; expected for example 25%, -10% or 64"),
        (["--add-cores", "nan%"], "nan cores; expected a machine of 1 to"),
        (["--add-cores", "+inf"], "inf cores; expected a machine"),
        (["--add-cores=-100%"], "0 cores; expected a machine"),
        (["--add-cores", "1e30"], "1e+30 cores; expected a machine"),
        (["--add-cores", ","], "expected at least one value"),
        (["--halve", "--node", "0"], "0 cores; expected a step of at least 1"),
        (["--halve", "slowdown_sum"], "unknown metric to halve"),
        (["--users", "slice?jobs=5"], "unknown kind of users 'slice'"),
        (["--users", "fixed?think=1"], "unknown parameter of fixed 'think'"),
        (["--load-times", "x"], "'x' is not a number"),
        (["--halve", "utilisation"], "unknown metric to halve 'utilisation'"),
        (["--policy", "easi"], "did you mean 'easy'"),
    ],
)
def test_bad_questions_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *words]) == 2
    assert message in capsys.readouterr().err


MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini" / "sacct.txt"


def test_the_page_has_a_picture_and_states_the_validation_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["whatif", str(MINI), "--machine", "64", "--add-cores=-25%,+50%", "--out", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Not validated: name the site's policy with --own. Under easy:" in text
    page = (tmp_path / "whatif.html").read_text()
    assert page.count("<svg") == 2
    assert "Not validated: name the site" in page
    trust = json.loads((tmp_path / "whatif.json").read_text())["validation"]
    assert trust["numbers"]["jobs"] == 272


def test_a_workload_without_a_recorded_schedule_has_no_validation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    assert "Validation of" not in capsys.readouterr().out


def test_it_is_computed_for_shaken_jobs_and_resampled_users_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        *SMALL,
        "--add-cores",
        "+100%",
        "--load-times",
        "1.2",
        "--shake",
        "3",
        "--resample",
        "2",
        "--out",
        str(tmp_path),
    ]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "In 3 replicas with every submit time shaken by up to 1 min, the mean wait is lower than now with 64 cores"
        in text
    )
    assert "(robust to shaking)" in text
    assert "In 2 workloads with resampled users, the mean wait is lower than now" in text
    assert "single users dominate" in text  # of a log of a few days
    with (tmp_path / "shake_pairs.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["against"] == "as it is"]
    assert {row["change"] for row in rows} == {"64 cores (+100 %)", "load times 1.2"}
    assert all(row["replicas"] == "3" for row in rows)
    told = json.loads((tmp_path / "whatif.json").read_text())["replicas"]
    assert [(one["role"], one["seed"], one["replicas"]) for one in told] == [("shake", 1, 3), ("resample", 1, 2)]
    assert {path.name for path in tmp_path.iterdir()} == whatif_text.FILES - {whatif_text.PARTS_FILE}
    page = (tmp_path / "whatif.html").read_text()
    assert "Small changes of the input" in page
    assert "Similar workloads" in page


def test_how_far_without_how_often_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--shake-by", "9"]) == 2
    assert "give --shake 20 too" in capsys.readouterr().err
