"""Logs of several clusters: the cluster must be selected, and equal job numbers are different jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.workload.read import read_workload

HEADER = "JobID|JobIDRaw|Cluster|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|AllocCPUS|SubmitLine"

SINCE_1970 = 1_795_000_000


def line(number: int, cluster: str, submit: int = 100, cores: int = 4, command: str = "sbatch a.sh") -> str:
    submit += SINCE_1970
    end = submit + 15
    return f"{number}|{number}|{cluster}|ann|{submit}|{submit + 5}|{end}|10|5|COMPLETED|{cores}|{command}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return jobs 7, 8 and 9 of beta, which is first, and 7 and 8 of alpha; all of a second overlap."""
    file = tmp_path / "sacct.txt"
    rows = [line(7, "beta"), line(8, "beta", 101), line(9, "beta", 102, command="sbatch -d afterok:7 a.sh")]
    rows += [line(7, "alpha", 103, 2), line(8, "alpha", 104, 2, "sbatch -d afterok:7 a.sh")]
    file.write_text("\n".join([HEADER, *rows]) + "\n")
    return file


def test_which_cluster_is_queried_where_there_are_several(log: Path) -> None:
    with pytest.raises(InputError, match=r"contains 2 clusters: alpha \(2 jobs\), beta \(3 jobs\); choose one"):
        read_workload(log)


def test_one_of_them_is_read_as_if_it_were_alone(log: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alpha.txt"
    alone.write_text("\n".join(row for row in log.read_text().splitlines() if "beta" not in row) + "\n")
    chosen, own = read_workload(log, cluster="alpha"), read_workload(alone)
    assert chosen.job.tolist() == own.job.tolist() == [7, 8]
    assert chosen.labels["after"].tolist() == own.labels["after"].tolist() == [-1, 7]
    assert chosen.cores_stated == own.cores_stated == 4
    assert "cluster" not in chosen.labels
    assert chosen.provenance["jobs_read"] == 2
    assert chosen.provenance["cluster"] == own.provenance["cluster"] == "alpha"
    assert chosen.provenance["clusters_left_out"] == {"beta": 3}


@pytest.mark.parametrize("asked", ["all", ["beta", "alpha"]])
def test_of_all_each_job_knows_its_cluster_and_no_two_are_merged(log: Path, asked: str | list[str]) -> None:
    both = read_workload(log, cluster=asked)
    assert both.job.tolist() == [17, 18, 19, 7, 8]
    assert [both.names["cluster"][code] for code in both.labels["cluster"]] == ["beta"] * 3 + ["alpha"] * 2
    assert both.labels["after"].tolist() == [-1, -1, 17, -1, 7]
    assert both.provenance["jobs_read"] == both.provenance["jobs_kept"] == 5
    assert [(it["name"], it["jobs"], it["cores"], it["numbers_from"]) for it in both.provenance["clusters"]] == [
        ("alpha", 2, 4, 0),
        ("beta", 3, 12, 10),
    ]
    assert both.cores_stated == 16


def test_numbers_that_no_two_clusters_share_stay(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join([HEADER, line(7, "beta"), line(8, "alpha"), line(9, "beta")]) + "\n")
    assert read_workload(file, cluster="all").job.tolist() == [7, 8, 9]


def test_a_cluster_that_is_not_there_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown cluster of the log 'alpa'; did you mean 'alpha'"):
        read_workload(log, cluster="alpa")
    file = tmp_path / "plain.txt"
    file.write_text(log.read_text().replace("|Cluster|", "|Comment|"))
    with pytest.raises(InputError, match="no column Cluster"):
        read_workload(file, cluster="alpha")


def test_lines_without_a_cluster_cannot_be_kept_apart(log: Path) -> None:
    log.write_text(log.read_text() + line(10, "") + "\n")
    with pytest.raises(InputError, match="1 lines name no cluster"):
        read_workload(log, cluster="all")
    assert len(read_workload(log, cluster="beta")) == 3


def test_a_document_says_clusters_too(tmp_path: Path) -> None:
    at = SINCE_1970
    jobs = [
        {
            "job_id": 7,
            "cluster": cluster,
            "time": {"submission": at, "eligible": at, "start": at + 5, "end": at + 15, "elapsed": 10, "limit": 5},
            "state": {"current": "COMPLETED"},
            "required": {"CPUs": 2},
        }
        for cluster in ("alpha", "beta")
    ]
    file = tmp_path / "sacct.json"
    file.write_text(json.dumps({"jobs": jobs}))
    with pytest.raises(InputError, match="contains 2 clusters"):
        read_workload(file)
    assert read_workload(file, cluster="all").job.tolist() == [7, 17]
