"""``gridsim workload anonymise``, and ``convert --anonymise``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim import cli
from gridsim.workload.anonymise import pseudonym
from gridsim.workload.formats.swf import read_swf

KEY = "a key that is long enough"

RECORD = (
    "11/14/2023 23:14:30;E;{job}.login;user={user} group=math jobname=engine queue=batch ctime={submit} "
    "start=1700000100 end=1700000170 Resource_List.nodes=1:ppn=2 Resource_List.walltime=00:10:00 Exit_status=0\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder of accounting logs, and a key next to it."""
    (tmp_path / "key").write_text(KEY + "\n")
    (tmp_path / "accounting").mkdir()
    for job, user in enumerate(("ada", "eve", "ada")):
        text = RECORD.format(job=job + 5, user=user, submit=1_700_000_000 + job)
        (tmp_path / "accounting" / f"2023111{job}").write_text(text)
    return tmp_path / "accounting"


def run(*words: object) -> int:
    return cli.main(["workload", *map(str, words)])


def test_the_two_spellings_and_the_key_as_text_write_the_same_log(log, tmp_path, capsys):
    assert run("anonymise", log, tmp_path / "a.swf", "--key", tmp_path / "key") == 0
    assert run("anonymise", log, tmp_path / "b.swf", "--key-text", KEY) == 0
    assert run("convert", log, tmp_path / "c.swf", "--anonymise", tmp_path / "key") == 0
    assert "a.swf: 3 jobs" in capsys.readouterr().out
    text = (tmp_path / "a.swf").read_text()
    assert text == (tmp_path / "b.swf").read_text() == (tmp_path / "c.swf").read_text()
    users = read_swf(tmp_path / "a.swf").labels["user"].tolist()
    assert users == [int(pseudonym(KEY.encode(), "user", user), 16) for user in ("ada", "eve", "ada")]


def test_shift_forgets_the_date(log, tmp_path):
    assert run("anonymise", log, tmp_path / "a.swf", "--key", tmp_path / "key", "--machine", 64) == 0
    assert "UnixStartTime: 1700000000" in (tmp_path / "a.swf").read_text()
    assert (
        run("anonymise", log, tmp_path / "a.swf", "--key", tmp_path / "key", "--shift", "--machine", 64, "--overwrite")
        == 0
    )
    text = (tmp_path / "a.swf").read_text()
    assert "UnixStartTime" not in text
    assert "MaxProcs: 64" in text


def test_without_a_key_nothing_is_written(log, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        run("anonymise", log, tmp_path / "a.swf")
    assert caught.value.code == 2
    assert run("anonymise", log, tmp_path / "a.swf", "--key-text", "short") == 2
    assert run("convert", log, tmp_path / "a.swf", "--anonymise", tmp_path / "absent") == 2
    assert not (tmp_path / "a.swf").exists()


def test_the_written_log_can_be_checked(log, tmp_path, capsys):
    assert run("anonymise", log, tmp_path / "a.swf", "--key", tmp_path / "key", "--machine", 4) == 0
    assert run("check", tmp_path / "a.swf") == 0
    assert "3 kept of 3" in capsys.readouterr().out
    assert run("check", log, "--machine", 4) == 0
