"""Job ids: every form that users of Slurm or PBS paste is accepted, and other texts are rejected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.job_id import JobId, JobIds, read_id
from gridsim.model.workload import Workload

IDS = JobIds.read(
    np.array([387, 700_031, 700_032, 700_018, 700_020, 700_021, 900]),
    ["387", "700018_2", "700018_3", "700018_10", "700020+0", "700020+1", "700040_*"],
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("387", 387),
        (" 387\n", 387),
        ("387.batch", 387),
        ("387.0", 387),
        ("387.extern", 387),
        ("700018_2", 700_031),
        ("700018_2.batch", 700_031),
        ("700018_[3]", 700_032),
        ("700018", 700_018),  # the number that Slurm assigned to the last started task
        ("700020+1", 700_021),
        ("700020+1.0", 700_021),
        ("700020+0", 700_020),
        ("700040_*", 900),
        ("700040", 900),
    ],
)
def test_a_job_is_found_by_what_its_user_calls_it(text: str, number: int) -> None:
    assert IDS.job[IDS.row(text)] == number


def test_the_only_task_there_is_is_not_called_the_nearest_too() -> None:
    with pytest.raises(InputError, match=r"there is no job 7_2; there is 7_1$"):
        JobIds.read(np.array([5, 8]), ["7_1", "8"]).row("7_2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("38_7", "there is no job 38_7; no array or group of parts has the number 38; the nearest is 700018"),
        ("7000182", r"there is no job 7000182; numbers go from 387 to 700032, and the nearest is 700032"),
        ("700018_4", "there is no job 700018_4; there is 700018_2 to 700018_10, and the nearest is 700018_3"),
        ("700018+1", "there is no job 700018"),
        ("700040_2", r"there is no job 700040_2; its tasks are one line of the log: 700040_\*"),
        ("700018_[2-3]", r"700018_\* is 3 jobs; name one of them: 700018_2, 700018_3, 700018_10"),
        ("700018-2", r"'700018-2' is not a job; expected .* \(700018_2\) .*; did you mean 700018_2\?"),
        ("three", "'three' is not a job; expected a job as sacct names it"),
        ("", "'' is not a job"),
        ("-3", "'-3' is not a job"),
        ("3.8e2x 7", "there is no job 3"),
        ("٣٨٧", "is not a job"),
        ("9" * 30, "is not a job"),
    ],
)
def test_an_unknown_job_is_refused_with_the_expected_form_and_similar_ids(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        IDS.row(text)


def test_a_log_of_numbers_alone_says_so_of_a_task() -> None:
    with pytest.raises(InputError, match=r"38_7: these jobs have only numbers.*JobIDRaw"):
        JobIds(np.array([38, 387])).row("38_7")
    with pytest.raises(InputError, match="the result has no jobs"):
        JobIds(np.array([], dtype=np.int64)).row("7")


def test_runs_of_one_job_are_reported_by_number() -> None:
    twice = JobIds.read(np.array([5, 6, 7]), ["41_1", "41_1", "41_2"])
    with pytest.raises(InputError, match="41_1 is 2 jobs; name one of them: 5, 6"):
        twice.row("41_1")
    assert twice.row(6) == 1


@pytest.mark.parametrize("text", ["387", "700018_2", "700020+1", "7_3+1", "700040_*"])
def test_an_id_is_written_as_it_is_read(text: str) -> None:
    assert str(read_id(text)) == text


def test_elements_of_an_array_of_pbs_are_tasks() -> None:
    assert read_id("1234[5].server") == JobId(1234, 5)
    log = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, job=[1235, 7])
    log = replace(log, logged={"array": np.array([1234, -1]), "element": np.array([0, -1])})
    assert JobIds.of(log).texts() == ["1234_0", "7"]
    assert JobIds.of(log).row("1234[0]") == 0
