"""Logs of sacct, anonymised in the same format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsim import cli
from gridsim.model.workload import Workload
from gridsim.workload.anonymise import pseudonym
from gridsim.workload.formats.sacct.anonymise import SHIFTED, anonymise_sacct
from gridsim.workload.read import read_workload

KEY = b"a key that is long enough"
HEADER = (
    "JobID|JobIDRaw|JobName|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|Suspended|Timelimit|State|"
    "NNodes|ReqCPUS|AllocCPUS|ReqMem|ReqTRES|AllocTRES|Reason|Comment|SubmitLine\n"
)
ROWS = (
    "7|7|my|secret|ann|bio|batch|low|{0}|{0}|{1}|{2}|90|00:00:10|00:15:00|PREEMPTED|1|2|4|900M|node=1|cpu=4,mem=2G|None|"
    "for ada|sbatch --requeue /home/ann/x",
    "7|7|my|secret|ann|bio|batch|low|{2}|{3}|{3}|{4}|100|00:00:00|00:15:00|CANCELLED by 1001|1|2|4|900M|node=1|"
    "cpu=4,mem=2G|None||sbatch --requeue /home/ann/x",
    "9_3|11|b|bob||batch|low|{0}|{2}|{3}|{4}|100|00:00:00|UNLIMITED|COMPLETED|2|2|4|1Gc|node=2|cpu=4,mem=2G,gres/gpu=2|"
    "JobArrayTaskLimit||sbatch -d afterok:7 --array=1-9%3 --exclusive -c 4 secret.sh",
    "9_[4-9%3]|9|b|bob||batch|low|{0}|{2}|Unknown|Unknown|0|00:00:00|Partition_Limit|PENDING|2|2|0|1Gc|node=2||None||",
    "7.batch|7.batch|batch||||||{0}|{0}|{1}|{2}|90||||||1|1|||||||",
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sacct.txt"
    times = [1_795_244_026 + seconds for seconds in (0, 10, 110, 300, 400)]
    path.write_text(HEADER + "".join(row.format(*times) + "\n" for row in ROWS[:4]))
    return path


def alike(one: Workload, other: Workload) -> None:
    """Assert that the jobs are equal except for names."""
    for name in ("job", "submit", "runtime", "estimate", "cores"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    assert set(one.labels) - {"nodelist", "exclude"} == set(other.labels)  # a node with another name is not listed
    assert set(one.logged) == set(other.logged)
    for name, column in one.labels.items():
        if name not in one.names:
            assert column.tolist() == other.labels[name].tolist(), name
    for name, values in one.logged.items():
        if name == "reason":  # of the reasons, only the throttle of arrays is kept
            continue
        np.testing.assert_array_equal(values, other.logged[name], err_msg=name)


def test_the_copy_is_read_like_the_log(log: Path, tmp_path: Path) -> None:
    assert anonymise_sacct(log, tmp_path / "out.txt", KEY)[0] == 4
    for rules in ({}, {"still-waiting": "repair"}):
        alike(read_workload(log, rules=rules), read_workload(tmp_path / "out.txt", rules=rules))
    out = read_workload(tmp_path / "out.txt")
    assert out.names["user"][out.labels["user"][0]] == pseudonym(KEY, "user", "ann")


def test_no_name_and_no_other_text_is_in_the_copy(log: Path, tmp_path: Path) -> None:
    anonymise_sacct(log, tmp_path / "out.txt", KEY, shift=True)
    text = (tmp_path / "out.txt").read_text()
    for word in ("ann", "bob", "bio", "secret", "ada", "home", "1001", "low", "1795244"):
        assert word not in text.split("\n", 1)[1], word
    moved = read_workload(tmp_path / "out.txt")
    alike(read_workload(log), moved)
    assert moved.epoch == SHIFTED


def test_a_real_log_loses_nothing_but_its_names(run_a: Path, tmp_path: Path) -> None:
    for form in ("sacct_P_X_wide.txt.gz", "sacct_P_X_duplicates.txt.gz", "sacct.json.gz"):
        path = run_a / "logs" / form
        anonymise_sacct(path, tmp_path / "out.txt.gz", KEY)
        alike(read_workload(path), read_workload(tmp_path / "out.txt.gz"))


def test_the_command_line_writes_sacct_from_sacct_and_swf_where_it_is_named_so(log: Path, tmp_path: Path) -> None:
    for name, said in (("a.txt", "JobID|"), ("a.swf", ";")):
        assert cli.main(["workload", "anonymise", str(log), str(tmp_path / name), "--key-text", KEY.decode()]) == 0
        assert (tmp_path / name).read_text().startswith(said)
