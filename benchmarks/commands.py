"""Whole commands as a user waits for them: CPU and wall seconds, peak memory."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measured(words: list[str], *, folder: str, environment: dict[str, str] | None = None) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak memory (MB) of one command."""
    begun = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    if status:
        raise SystemExit(f"{' '.join(words)} failed with status {status}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def main() -> None:
    """Print a row a command: the median of three runs by CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    gridsim = [sys.executable, "-m", "gridsim"]
    logs = [Path(log).resolve() for log in args.logs]
    commands = [("--help", ["--help"]), ("compare, built-in workload", ["compare"])]
    commands += [(f"compare {log.name}", ["compare", str(log)]) for log in logs]
    print(f"{'command':52} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        cold = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/kernels"}
        cpu, wall, peak = measured([*gridsim, "compare"], folder=folder, environment=cold)
        print(f"{'compare, built-in workload, kernels not compiled':52} {cpu:8.2f} {wall:8.2f} {peak:8.0f}")
        for name, words in commands:
            runs = sorted(measured([*gridsim, *words], folder=folder) for _ in range(3))
            cpu, wall, peak = runs[1]
            print(f"{name:52} {cpu:8.2f} {wall:8.2f} {peak:8.0f}")


if __name__ == "__main__":
    main()
