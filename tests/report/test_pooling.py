"""The report lists clusters that ran no job and partitions that were not simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.site import Site, SitePartition
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.report import sentences

GRID = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4), ClusterSpec("c", 2))))


@pytest.fixture
def first(tmp_path: Path) -> str:
    """A balancer that sends everything to the first cluster."""
    file = tmp_path / "first.py"
    file.write_text("class First:\n    def pick(self, piece, children, now):\n        return 0\n")
    return f"{file}:First"


def few(cores: int = 3) -> gs.Workload:
    return gs.Workload.from_columns(submit=[0, 1, 2], runtime=[9, 9, 9], cores=[cores] * 3)


def test_a_cluster_that_ran_nothing_is_reported(first: str) -> None:
    told = gs.compare(few(), ["fcfs", "easy"], platform=GRID, options=gs.Run(balancer=first)).sentences()
    assert [it for it in told if "ran no job" in it] == [
        f"Clusters b and c ran no job under any policy (balancer {first})."
    ]


def test_where_all_ran_something_nothing_is_said_of_it() -> None:
    told = gs.compare(few(1), ["fcfs"], platform=GRID, options=gs.Run(balancer="round-robin")).sentences()
    assert not [it for it in told if "ran no job" in it]


def test_a_cluster_that_the_only_policy_leaves_empty_is_reported_with_it() -> None:
    # Both clusters are free when the second job arrives: the first one is chosen again.
    late = gs.Workload.from_columns(submit=[0, 5], runtime=[5, 9], cores=[4, 4])
    two = Platform(RouterSpec("root", (ClusterSpec("a", 4), ClusterSpec("b", 4))))
    told = gs.compare(late, ["fcfs"], platform=two, options=gs.Run(balancer="least-utilised")).sentences()
    assert [it for it in told if "ran no job" in it] == ["Cluster b ran no job under fcfs (balancer least-utilised)."]


def of_partitions() -> gs.Workload:
    jobs = gs.Workload.from_columns(
        submit=[0, 1, 2], runtime=[9, 9, 9], cores=[3, 3, 3], labels={"partition": [1, 2, 1]}, cores_stated=8
    )
    return replace(jobs, names={"partition": ("", "batch", "gpu")})


def test_partitions_that_are_pooled_are_reported_in_the_answer() -> None:
    told = sentences.answer(gs.compare(of_partitions(), ["fcfs", "easy"]))
    assert [it for it in told if "artition" in it] == [
        "Partitions are not simulated: batch and gpu are one queue and all 8 cores are one pool, also in rows by "
        "partition, because the number of cores of each is unknown (give --platform slurm.conf)."
    ]


def test_a_policy_that_simulates_partitions_is_not_said_to_pool_them() -> None:
    nodes = ("n1", "n2")
    parts = (SitePartition("batch", nodes), SitePartition("gpu", nodes))
    own = Slurm(site=Site.of(nodes=2, cores=4, partitions=parts))
    told = sentences.answer(gs.compare(of_partitions(), {"fcfs": "fcfs", "site": own}))
    assert [it for it in told if "artition" in it] == [
        "Partitions are not simulated under fcfs: batch and gpu are one queue there and all 8 cores are one pool, "
        "also in rows by partition, because batch and gpu share nodes (n1)."
    ]


@pytest.mark.long
def test_separate_partitions_need_no_note_and_the_page_lists_them(tmp_path: Path) -> None:
    apart = Platform.apart({"batch": 4, "gpu": 4}, "partition")
    found = gs.compare(of_partitions(), ["fcfs", "easy"], platform=apart)
    assert not [it for it in found.sentences() if "not simulated" in it]
    assert "cores in 2 partitions" in found.page(tmp_path / "page.html").read_text()


def test_gridsim_run_reports_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'policy = "fcfs"\n[workload]\nmodel = "lublin?jobs=20&load=0.1&cores=4"\n'
        '[options]\nbalancer = "first.py:First"\n'
        '[platform]\nrouter = "root"\nchildren = [{cluster = "a", cores = 4}, {cluster = "b", cores = 4}]\n'
    )
    (tmp_path / "first.py").write_text("class First:\n    def pick(self, piece, children, now):\n        return 0\n")
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    assert "Cluster b ran no job." in capsys.readouterr().out
