"""A real Dask cluster on the loopback: the scheduler and workers are processes that tests kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main

distributed = pytest.importorskip("distributed", reason="Dask is not installed; pip install distributed")


class Cluster:
    """A scheduler, and workers that can be killed one by one."""

    def __init__(self, folder: Path, wait_until: Callable[..., Any]) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
        self.address = wait_until(self._address, "the scheduler")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{words[0]}-{len(self.processes)}.log").open("wb")
        command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], "--no-dashboard", *words[1:]]
        environment = {**os.environ, "GATE": str(self.folder), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
        with log:
            self.processes.append(subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environment))
        return self.processes[-1]

    def work(self, workers: int = 2) -> None:
        """Add workers, each a process with one thread."""
        for _ in range(workers):
            words = ("--no-nanny", "--nworkers", "1", "--nthreads", "1", "--host", "127.0.0.1")
            self._start("worker", "--scheduler-file", str(self.file), *words)
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=300)

    def _address(self) -> str:
        """Address of the scheduler; nothing until its file is complete."""
        with suppress(FileNotFoundError, json.JSONDecodeError):
            found: str = json.loads(self.file.read_text())["address"]
            return found
        return ""

    def end(self) -> None:
        """Kill the remaining processes."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(place: Any, wait_until: Any) -> Iterator[Cluster]:
    found = Cluster(place.folder, wait_until)
    yield found
    found.end()


RECIPE = """
policy = "{scheduler}"
[workload]
model = "lublin?jobs=30"
[factors]
scheduler = ["fcfs", "easy", "conservative"]
seed = [1, 2, 3]
"""


@pytest.mark.long
def test_a_cluster_makes_the_same_as_this_process(place: Any, cluster: Cluster, contents: Any) -> None:
    cluster.work()
    place.write(RECIPE)
    assert main(["sweep", "campaign.toml", "--dask", cluster.address]) == 0
    assert main(["sweep", "campaign.toml", "--workers", "1", "--out", "here"]) == 0
    assert contents(place.folder / "campaign-results") == contents(place.folder / "here")


@pytest.mark.long
def test_a_worker_that_is_killed_is_not_missed(place: Any, cluster: Cluster, wait_until: Any, contents: Any) -> None:
    cluster.work()
    place.gated(6)
    driver = place.start("sweep", "campaign.toml", "--dask", cluster.address)
    wait_until(lambda: place.let(2) == 2 and place.done() == 2, "two runs, and two at their gates")
    os.kill(cluster.processes[1].pid, signal.SIGKILL)
    place.open()
    code, told, _ = driver.end()
    assert code == 0
    assert "6 of 6 runs finished, 0 failed" in told
    assert place.run_twice() == []
    assert main(["sweep", "campaign.toml", "--workers", "1", "--out", "here"]) == 0
    assert contents(place.folder / "campaign-results") == contents(place.folder / "here")


@pytest.mark.long
def test_a_scheduler_that_is_killed_is_reported_and_local_workers_finish_what_is_left(
    place: Any, cluster: Cluster, wait_until: Any, contents: Any
) -> None:
    cluster.work(1)
    place.gated(4)
    driver = place.start("sweep", "campaign.toml", "--dask", cluster.address)
    wait_until(lambda: place.let(2) == 1 and place.done() == 2, "two runs, and one at its gate")
    cluster.processes[0].kill()
    code, _, told = driver.end()
    assert code == 2
    assert "the workers have stopped" in told
    assert "start again: finished runs are kept" in told
    assert not (place.folder / "campaign-results" / "failed").exists()
    place.open()
    assert main(["sweep", "campaign.toml", "--workers", "1"]) == 0
    assert place.run_twice() == []
    assert main(["sweep", "campaign.toml", "--workers", "1", "--out", "here"]) == 0
    assert contents(place.folder / "campaign-results") == contents(place.folder / "here")


def test_a_scheduler_that_is_not_there_is_reported(
    place: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridsim.campaign.executors._PATIENCE", 0.5)
    place.write(RECIPE)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        assert main(["sweep", "campaign.toml", "--dask", address]) == 2
        assert f"no Dask scheduler responds at '{address}'" in capsys.readouterr().err
