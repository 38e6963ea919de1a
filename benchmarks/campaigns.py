"""Cost of a campaign in addition to its runs: overhead, a finished sweep, memory of the driver, workers, Dask."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands import measured

GRIDSIM = [sys.executable, "-m", "gridsim"]


def recipe(folder: Path, name: str, jobs: int, runs: int) -> str:
    """Write a sweep of *runs* runs under five policies, each with *jobs* jobs of a model."""
    policies = ["fcfs", "easy", "conservative", "easy?ordering=sjf", "easy?ordering=wfp3"]
    (folder / f"{name}.toml").write_text(
        f'[workload]\nmodel = "lublin?jobs={jobs}"\n'
        f"[factors]\npolicy = {json.dumps(policies)}\nseed = {{first = 1, last = {runs // len(policies)}}}\n"
    )
    return f"{name}.toml"


def swept(folder: str, campaign: str, *words: str) -> tuple[float, float, float]:
    """Return CPU seconds, wall seconds and peak memory (MB) of the driver of a sweep."""
    return measured([*GRIDSIM, "sweep", campaign, *words], folder=folder)


def in_runs(store: Path, clock: str) -> float:
    """Return the seconds (``wall`` or ``cpu``) of runs, from all journals of a store."""
    lines = [line for path in store.glob("journal*") for line in path.read_text().splitlines()]
    return sum(json.loads(line)[clock] for line in lines)


@contextmanager
def cluster(folder: str) -> Iterator[str]:
    """Yield the address of a Dask scheduler with two workers as processes on the loopback interface."""
    file = Path(folder) / "scheduler.json"
    words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    worker = ["worker", "--scheduler-file", str(file), "--nworkers", "1", "--nthreads", "1", "--no-nanny"]
    processes = []
    try:
        for kind, *rest in [words, worker, worker]:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *rest]
            processes.append(subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL))
            while not file.exists():
                time.sleep(0.1)
        address: str = json.loads(file.read_text())["address"]
        yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=18_000, help="of a run that takes about 0.5 s")
    parser.add_argument("--runs", type=int, default=60, help="of such ones")
    parser.add_argument("--small", type=int, default=5250, help="runs of the sweep that is then finished")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        swept(folder, recipe(place, "warm", args.jobs, 5), "--workers", "1")

        campaign = recipe(place, "runs", args.jobs, args.runs)
        cpu, one, _ = swept(folder, campaign, "--workers", "1", "--out", "one")
        base, start, _ = swept(folder, campaign, "--status", "--out", "one")
        for clock, whole, begun in (("wall", one, start), ("cpu", cpu, base)):
            inside = in_runs(place / "one", clock)
            print(f"{args.runs} runs, one worker, {clock}: {whole:.1f} s, {inside / args.runs:.2f} s a run; beside the")
            print(f"  runs {whole / inside - 1:.1%}, without the start of a command {(whole - begun) / inside - 1:.1%}")

        _, two, _ = swept(folder, campaign, "--workers", "2", "--out", "two")
        print(f"two workers: {two:.1f} s, {one / two:.2f} times one")
        with cluster(folder) as address:
            swept(folder, recipe(place, "warm-dask", args.jobs, 10), "--dask", address)
            _, dask, _ = swept(folder, campaign, "--dask", address, "--out", "dask")
        print(f"Dask, two workers: {dask:.1f} s, {two / dask:.2f} times two local ones")

        for runs in (args.small // 10, args.small):
            campaign = recipe(place, "small", 20, runs)
            _, wall, peak = swept(folder, campaign, "--workers", "2", "--out", f"small-{runs}")
            print(f"{runs:,} small runs: {wall:.0f} s, memory of the driver {peak:.0f} MB")
        cpu, wall, _ = sorted(swept(folder, campaign, "--out", f"small-{runs}") for _ in range(3))[1]
        print(f"nothing to do, {runs:,} runs: {wall:.2f} s ({cpu:.2f} s CPU), the whole command")


if __name__ == "__main__":
    main()
