"""Whole commands: CPU and wall seconds, peak memory."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def measured(words: list[str], *, folder: str, environment: dict[str, str] | None = None) -> tuple[float, float, float]:
    """Return CPU seconds, wall seconds and peak memory (MB) of all processes of a command; shared pages count once."""
    begun = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    peak = [0.0]
    watching = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    watching.join()
    if status:
        raise SystemExit(f"{' '.join(words)} failed with status {status}")
    return usage.ru_utime + usage.ru_stime, wall, max(peak[0], usage.ru_maxrss / 1024)


def _watch(first: int, peak: list[float]) -> None:
    """Read the memory of a process and its children ten times per second until it ends; Linux only."""
    while (now := _memory(first)) is not None:
        peak[0] = max(peak[0], now)
        time.sleep(0.1)


def _memory(process: int) -> float | None:
    """Return the proportional set size of a process and its descendants, MB; None if it has ended."""
    place = Path("/proc", str(process))
    try:
        text = (place / "smaps_rollup").read_text()
        children = (place / "task" / str(process) / "children").read_text().split()
    except OSError:
        return None
    own = next((float(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0.0) / 1024
    return own + sum(_memory(int(child)) or 0.0 for child in children)


def main() -> None:
    """Print a row for each command: the median of three runs by wall time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of compare on each log (default: 1 2)")
    args = parser.parse_args()
    gridsim = [sys.executable, "-m", "gridsim"]
    logs = [Path(log).resolve() for log in args.logs]
    commands = [("--help", ["--help"]), ("compare, built-in workload", ["compare"])]
    commands += [
        (
            f"compare {log.name}, {count} worker{'s' if count > 1 else ''}",
            ["compare", str(log), "--workers", str(count)],
        )
        for log in logs
        for count in args.workers
    ]
    print(f"{'command':60} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        cold = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/kernels"}
        cpu, wall, peak = measured([*gridsim, "compare"], folder=folder, environment=cold)
        print(f"{'compare, built-in workload, kernels not compiled':60} {cpu:8.2f} {wall:8.2f} {peak:8.0f}")
        for name, words in commands:
            runs = sorted((measured([*gridsim, *words], folder=folder) for _ in range(3)), key=lambda run: run[1])
            cpu, wall, peak = runs[1]
            print(f"{name:60} {cpu:8.2f} {wall:8.2f} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()
