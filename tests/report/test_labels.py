"""What policies are called in what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.report.compare import labelled


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.conf", "b.conf", "who.cfg"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("specs", "labels"),
    [
        (["slurm?conf=a.conf&assoc=who.cfg"], ["slurm"]),
        (["easy", "slurm?conf=a.conf&assoc=who.cfg&boot=3"], ["easy", "slurm?boot=3"]),
        (
            ["slurm?conf=a.conf&assoc=who.cfg", "slurm?conf=b.conf&assoc=who.cfg"],
            ["slurm?conf=a.conf", "slurm?conf=b.conf"],
        ),
        (
            ["slurm?conf=a.conf&more_nodes=1", "slurm?conf=a.conf&more_nodes=2"],
            ["slurm?more_nodes=1", "slurm?more_nodes=2"],
        ),
        (["easy?ordering=sjf", "fcfs?ordering=sjf"], ["easy?ordering=sjf", "fcfs?ordering=sjf"]),
        (["slurm?conf=a.conf", "slurm?conf=b.conf"], ["slurm?conf=a.conf", "slurm?conf=b.conf"]),
    ],
)
def test_files_are_told_only_where_they_tell_policies_apart(specs: list[str], labels: list[str]) -> None:
    assert list(labelled(specs)) == labels
    assert list(labelled(specs).values()) == specs
