"""Partitions and clusters on the command line: requested, simulated separately, and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

HEADER = "JobIDRaw|Cluster|Partition|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|AllocCPUS"
CONF = """ClusterName=small
NodeName=n[1-2] CPUs=4 RealMemory=100
NodeName=g1 CPUs=2 RealMemory=100
PartitionName=batch Nodes=n[1-2] Default=YES
PartitionName=gpu Nodes=g1
"""


def rows(cluster: str, jobs: int) -> list[str]:
    """A log with every fifth job in the partition gpu."""
    found = []
    for number in range(1, jobs + 1):
        submit = 1_795_000_000 + 60 * number
        part, cores = ("gpu", 2) if number % 5 == 0 else ("batch", 4)
        when = f"{submit}|{submit + 5}|{submit + 205}"
        found.append(f"{number}|{cluster}|{part}|ann|{when}|200|10|COMPLETED|{cores}")
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("\n".join([HEADER, *rows("alpha", 20)]) + "\n")
    (tmp_path / "two.txt").write_text("\n".join([HEADER, *rows("alpha", 20), *rows("beta", 10)]) + "\n")
    (tmp_path / "slurm.conf").write_text(CONF)
    return tmp_path


def clusters(folder: Path) -> list[str]:
    header, *lines = (folder / "jobs.csv").read_text().splitlines()
    place = header.split(",").index("cluster")
    return [line.split(",")[place] for line in lines]


def test_partitions_are_apart_where_a_policy_knows_their_sizes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "one.txt", "--policy", "easy", "--policy", "site=slurm?conf=slurm.conf", "--no-page"]
    assert main(asked) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "machine: 10 cores in 2 partitions, each a separate pool (slurm.conf)" in told
    assert "not simulated" not in told
    assert clusters(here / "gridsim-results" / "easy") == (["batch"] * 4 + ["gpu"]) * 4
    assert set(clusters(here / "gridsim-results" / "site")) == {"cluster"}
    run = json.loads((here / "gridsim-results" / "easy" / "run.json").read_text())
    assert run["platform"]["by"] == "partition"


def test_a_slurm_conf_may_be_the_platform(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one.txt", "--platform", "slurm.conf", "--policy", "easy", "--no-page"]) == 0
    assert "machine: 10 cores on 3 nodes (slurm.conf)" in capsys.readouterr().out
    rows = (here / "gridsim-results" / "easy" / "allocations.csv").read_text().splitlines()[1:]
    jobs = {row.split(",")[0]: row.split(",")[2] for row in rows}
    partition = dict(zip(jobs, (["batch"] * 4 + ["gpu"]) * 4, strict=True))
    assert all((node[0] == "g") == (partition[job] == "gpu") for job, node in jobs.items())
    asked = [
        "compare",
        "one.txt",
        "--platform",
        "slurm.conf",
        "--partitions",
        "pooled",
        "--policy",
        "easy",
        "--no-page",
    ]
    assert main(asked) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "machine: 10 cores (slurm.conf)" in told
    assert "batch and gpu are one queue and all 10 cores are one pool" in told
    assert "because of --partitions pooled" in told


def test_partitions_of_no_known_size_cannot_be_apart(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one.txt", "--partitions", "apart"]) == 2
    assert "partitions cannot be separate: the number of cores of each is unknown" in capsys.readouterr().err
    assert main(["compare", "one.txt", "--policy", "easy", "--no-page"]) == 0
    assert "Partitions are not simulated: batch and gpu" in " ".join(capsys.readouterr().out.split())


def test_a_log_of_several_clusters_needs_a_choice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "two.txt", "--policy", "easy"]) == 2
    assert "contains 2 clusters: alpha (20 jobs), beta (10 jobs); choose one" in capsys.readouterr().err
    assert main(["workload", "check", "two.txt", "--cluster", "beta"]) == 0
    assert "10 kept of 10" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", "two.txt", "--cluster", "alpha", "--policy", "easy", "--no-page"]) == 0
    assert "two.txt, 20 of 20 jobs of cluster alpha (left out: beta: 10 jobs)" in capsys.readouterr().out


def test_all_clusters_of_a_log_are_a_machine_of_several(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "two.txt", "--cluster", "all", "--policy", "easy", "--no-page"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "30 of 30 jobs of clusters alpha and beta" in told
    assert "made unique by adding 100 to those of beta" in told
    assert "in 2 clusters (most cores in use at once)" in told
    assert sorted(clusters(here / "gridsim-results" / "easy")) == ["alpha"] * 20 + ["beta"] * 10


def test_a_recipe_states_both(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = here / "recipe.toml"
    recipe.write_text('policy = "easy"\n[workload]\nfile = "two.txt"\ncluster = "all"\n')
    assert main(["run", str(recipe), "--out", "out"]) == 0
    assert set(clusters(here / "out")) == {"alpha", "beta"}
    recipe.write_text('policy = "easy"\n[workload]\nfile = "one.txt"\n[options]\npartitions = "pooled"\n')
    assert main(["run", str(recipe), "--out", "out"]) == 0
    assert "Partitions are not simulated" in capsys.readouterr().out


def test_an_order_behind_the_protected_is_that_of_a_slurm_conf_too(here: Path) -> None:
    asked = ["quote", "one.txt", "--platform", "slurm.conf", "--at", "600", "--cores", "2", "--walltime", "60"]
    another_order = ["--policy", "easy?backfill_order=sjf"]
    assert main([*asked, *another_order]) == 0
    assert main([*asked, *another_order, "--partitions", "pooled"]) == 0


def test_what_if_makes_a_machine_of_nodes_larger_by_its_nodes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "one.txt", "--platform", "slurm.conf", "--policy", "easy", "--add-cores", "+20%"]) == 0
    assert "14 cores (+40 %)" in capsys.readouterr().out  # a whole node
    assert main(["whatif", "one.txt", "--policy", "site=slurm?conf=slurm.conf", "--add-cores", "+40%"]) == 0
    assert "1 more node of 4 cores (+40 %)" in capsys.readouterr().out


def test_what_if_reports_that_partitions_are_pooled(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "one.txt", "--policy", "easy", "--add-cores", "+50%"]) == 0
    assert "Partitions are not simulated: batch and gpu are one queue" in " ".join(capsys.readouterr().out.split())
