"""Tasks of an array that share a line while they wait in one list of sacct, and have separate lines in another list."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.model.workload import Workload
from gridsim.workload.formats.sacct.anonymise import anonymise_sacct
from gridsim.workload.formats.sacct.arrays import tasks_left
from gridsim.workload.formats.sacct.values import ABSENT, SacctColumns
from gridsim.workload.read import read_workload

HEADER = "JobID|JobIDRaw|User|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|ReqCPUS|AllocCPUS\n"
T = 1_795_244_000
WAITING = {"still-waiting": "repair"}


def ran(job: str, raw: int, start: int, *, submit: int = 100, user: str = "ann") -> str:
    return f"{job}|{raw}|{user}|{T + submit}|{T + submit}|{T + start}|{T + start + 60}|60|5|COMPLETED|1|1\n"


def waits(job: str, raw: int = 7, state: str = "PENDING", *, end: str = "Unknown", user: str = "ann") -> str:
    return f"{job}|{raw}|{user}|{T + 100}|{T + 100}|Unknown|{end}|0|5|{state}|1|0\n"


def read(tmp_path: Path, *months: str, **rules: str) -> Workload:
    paths = [tmp_path / f"{place}.txt" for place in range(len(months))]
    for path, text in zip(paths, months, strict=True):
        path.write_text(HEADER + text)
    return read_workload(paths, rules=WAITING | {name.replace("_", "-"): rule for name, rule in rules.items()})


JANUARY = ran("7_1", 8, 100) + waits("7_[2-4,6%2]")
FEBRUARY = ran("7_2", 9, 200) + ran("7_3", 10, 300) + ran("7_4", 11, 300) + ran("7_6", 7, 400)


def found(workload: Workload) -> dict[str, int]:
    return {entry["kind"]: entry["count"] for entry in workload.provenance["problems"]}


@pytest.mark.parametrize("months", [(JANUARY, FEBRUARY), (FEBRUARY, JANUARY)])
def test_tasks_that_waited_in_one_list_and_ran_in_the_next_are_kept_once(
    tmp_path: Path, months: tuple[str, str]
) -> None:
    workload = read(tmp_path, *months)
    assert sorted(workload.logged["array_task"].tolist()) == [1, 2, 3, 4, 6]
    assert found(workload) == {"repeated-line": 1}
    assert workload.provenance["jobs_read"] == 5


def test_tasks_that_wait_still_are_those_without_a_separate_line(tmp_path: Path) -> None:
    workload = read(tmp_path, JANUARY, ran("7_2", 9, 200) + waits("7_[3-4,6%2]"))
    assert len(workload) == 5
    assert found(workload) == {"repeated-line": 1, "still-waiting": 1}


def test_a_part_of_a_list_that_has_run_leaves_the_others_waiting(tmp_path: Path) -> None:
    workload = read(tmp_path, JANUARY, ran("7_2", 9, 200))
    assert len(workload) == 5
    assert found(workload) == {"still-waiting": 1}


def test_tasks_that_were_cancelled_together_wait_no_longer(tmp_path: Path) -> None:
    workload = read(
        tmp_path, JANUARY, waits("7_[2-4,6]", state="CANCELLED by 1000", end=str(T + 500)), never_ran="keep"
    )
    assert len(workload) == 5
    assert found(workload) == {"repeated-line": 1, "never-ran": 1}


CANCELLED = {"state": "CANCELLED by 1000", "end": str(T + 500)}


def test_cancelled_tasks_without_a_line_are_those_of_the_list(tmp_path: Path) -> None:
    started = ran("7_3", 9, 200) + ran("7_4", 10, 200) + ran("7_5", 11, 300)
    workload = read(tmp_path, waits("7_[3-6]", **CANCELLED) + started, never_ran="keep")
    assert len(workload) == 4
    assert (workload.labels["withdrawn"] >= 0).sum() == 1
    assert workload.provenance["jobs_read"] == 4
    assert len(read(tmp_path, waits("7_[3-5]", **CANCELLED) + started, never_ran="keep")) == 3


@pytest.mark.parametrize("how", [CANCELLED, {}])
def test_lists_of_equally_many_tasks_are_repeated_only_if_they_are_of_the_same(
    tmp_path: Path, how: dict[str, str]
) -> None:
    both = waits("7_[2-3]", **how) + waits("7_[5-6]", **how)
    assert len(read(tmp_path, both + waits("7_[5-6]", **how), never_ran="keep")) == 4
    assert len(read(tmp_path, both + waits("7_[2-3,5]", **how), never_ran="keep")) == 4


def test_tasks_of_other_users_and_of_earlier_jobs_with_the_number_take_none_away(tmp_path: Path) -> None:
    workload = read(tmp_path, waits("7_[2-4]"), ran("7_2", 9, 200, user="bob") + ran("7_3", 10, 60, submit=50))
    assert len(workload) == 5


def test_a_line_that_does_not_say_which_tasks_stays(tmp_path: Path) -> None:
    assert len(read(tmp_path, waits("7_*"), FEBRUARY)) == 5
    assert len(read(tmp_path, waits("7_[1-999999999]") + ran("8", 80, 100), FEBRUARY)) == 6


def test_unwanted_repeated_lines_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="repeated-line"):
        read(tmp_path, JANUARY, FEBRUARY, repeated_line="error")


def test_a_copy_without_names_says_which_tasks_wait(tmp_path: Path) -> None:
    log, copy = tmp_path / "log.txt", tmp_path / "copy.txt"
    log.write_text(HEADER + JANUARY)
    anonymise_sacct(log, copy, b"a key that is long enough")
    assert "7_[2-4:1,6-6:1]|" in copy.read_text()
    assert len(read_workload(copy, rules=WAITING)) == len(read_workload(log, rules=WAITING)) == 5


@pytest.mark.parametrize(("array", "jobs"), [(np.arange(40_000), 120_000), (np.zeros(800, dtype=np.int64), 802)])
def test_the_time_for_lists_of_tasks_grows_linearly(array: IntArray, jobs: int) -> None:
    lines = np.arange(len(array))
    none = np.full(len(array), ABSENT)
    columns = {"number": lines, "base": array, "list": lines, "tasks": none + 4, "submit": lines * 0, "task": none}
    lists = [f"[{first}-{first + 2}]".encode() for first in lines.tolist()]
    begin = process_time()
    assert tasks_left(SacctColumns(columns), lists).sum() == jobs
    assert process_time() - begin < 1
