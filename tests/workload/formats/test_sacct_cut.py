"""Parts of a sacct log by date, with unchanged lines."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gridsim import cli
from gridsim.errors import InputError
from gridsim.workload.formats.sacct.cut import cut_sacct
from gridsim.workload.read import read_workload

DAY = 86_400
JANUARY = 1_767_225_600  # 2026-01-01 00:00 UTC
FEBRUARY = JANUARY + 31 * DAY
HEADER = "JobID|JobName|User|Submit|Start|End|ElapsedRaw|AllocCPUS|State\n"


def line(number: object, submit: float, start: float, end: float, state: str = "COMPLETED", name: str = "a") -> str:
    times = [int(JANUARY + day * DAY) for day in (submit, start, end)]
    return f"{number}|{name}|ann|{times[0]}|{times[1]}|{times[2]}|{times[2] - times[1]}|2|{state}\n"


BEFORE = line(1, -9, -8, -7)
RUNNING = line(2, -9, -8, 3)
STEP = line("2.batch", -8, -8, 3)
WAITING = line(3, -2, 1, 2, name="two|words")
PREEMPTED = line(4, -5, -4, -3, "PREEMPTED")
AGAIN = line(4, -3, 8, 9)
INSIDE = line(5, 4, 5, 6, name="broken\nname")
RUNS_ON = line(6, 30, 30.5, 40)
AFTER = line(7, 31, 32, 33)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text(HEADER + BEFORE + RUNNING + STEP + WAITING + PREEMPTED + AGAIN + INSIDE + RUNS_ON + AFTER)
    return path


def test_a_month_has_whoever_was_there_with_all_runs_and_steps_in_their_own_lines(log: Path, tmp_path: Path) -> None:
    found = cut_sacct(log, tmp_path / "jan.txt", since=datetime(2026, 1, 1), until=datetime(2026, 2, 1))
    assert found == (5, 7)
    assert (tmp_path / "jan.txt").read_text() == (
        HEADER + RUNNING + STEP + WAITING + PREEMPTED + AGAIN + INSIDE + RUNS_ON
    )
    assert sorted(read_workload(tmp_path / "jan.txt").job.tolist()) == [2, 3, 4, 5, 6]


def test_the_command_line_writes_sacct_from_sacct_and_swf_where_it_is_named_so(log: Path, tmp_path: Path) -> None:
    for name in ("jan.txt.gz", "jan.swf"):
        words = ["workload", "slice", log, tmp_path / name, "--from", "2026-01-01", "--to", "2026-02-01"]
        assert cli.main(list(map(str, words))) == 0
    text = gzip.decompress((tmp_path / "jan.txt.gz").read_bytes()).decode()
    assert text.startswith(HEADER + RUNNING)
    assert sorted(read_workload(tmp_path / "jan.swf").job.tolist()) == [2, 3, 4, 5, 6]


def test_several_files_are_cut_as_one_log_each_with_its_header(log: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text(HEADER + line(8, 10, 11, 12) + line(9, 40, 41, 42))
    assert cut_sacct([log, more], tmp_path / "out.txt", since=datetime(2026, 1, 9)) == (5, 9)
    assert (tmp_path / "out.txt").read_text() == (
        HEADER + PREEMPTED + AGAIN + RUNS_ON + AFTER + HEADER + line(8, 10, 11, 12) + line(9, 40, 41, 42)
    )


def test_dates_are_those_of_the_log_s_clock(tmp_path: Path) -> None:
    path = tmp_path / "local.txt"
    text = "JobID|Submit|Start|End|AllocCPUS\n{0}|2026-01-01T00:30:00|2026-01-01T00:30:00|2026-01-01T00:40:00|1\n"
    path.write_text(text.format(1))
    midnight = datetime(2026, 1, 1)
    assert cut_sacct(path, tmp_path / "out", since=midnight) == (1, 1)
    assert cut_sacct(path, tmp_path / "out", since=midnight, timezone="Asia/Tokyo") == (1, 1)
    utc = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(InputError, match="the log has no job in that period"):
        cut_sacct(path, tmp_path / "none", since=utc, timezone="Asia/Tokyo")  # 09:00 in that time zone
    with pytest.raises(InputError, match="give --timezone"):
        cut_sacct(path, tmp_path / "none", since=utc)
    assert not (tmp_path / "none").exists()


def test_a_part_that_nothing_describes_is_refused(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, told in (
        ((), "the part is not given"),
        (("--jobs", "3"), "--jobs select from SWF"),
        (("--from", "soon"), "expected a date"),
    ):
        assert cli.main(["workload", "slice", str(log), str(tmp_path / "out.txt"), *words]) == 2
        assert told in capsys.readouterr().err
