"""Conservative backfilling with long queues: CPU seconds of one run of a generated log on 8,192 cores.

    python benchmarks/long_queues.py                       # the whole log: 447,784 jobs, 1,100 waiting on average
    python benchmarks/long_queues.py --jobs 20000          # the first 20,000 jobs: seconds
    python benchmarks/long_queues.py --jobs 5000 --check   # no timing: both engines and the C program have equal starts

The log resembles those of large clusters: users submit parameter sweeps, with jobs of one width and one estimate. The
largest sweeps have thousands of jobs. The C program, `--reference`, compresses in order of arrival.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
from limit import REFERENCE, Trace, by_reference, compiled_reference, simulated, traced

from gridsim.errors import CheckFailed
from gridsim.model.random_streams import stream
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.model.workload import Workload
from gridsim.record import Record

JOBS, CORES = 447_784, 8_192
LOAD = 0.82
"""Offered load of the machine between the first and the last submission."""

WIDTHS = ((1, 0.35), (2, 0.06), (4, 0.1), (8, 0.3), (16, 0.08), (32, 0.06), (64, 0.03), (128, 0.01), (256, 0.004))
WIDER = ((512, 0.002), (1024, 0.001), (2048, 0.0005))
ESTIMATES = ((1800, 0.1), (3600, 0.15), (14_400, 0.15), (43_200, 0.15), (86_400, 0.25), (259_200, 0.2))
"""Widths, and requested seconds, with their shares of the sweeps."""

ODD = 0.15
"""Share of the sweeps that instead request an arbitrary number of minutes up to the largest estimate."""

LARGEST, TAIL = 4_000, 1.1
"""Jobs of the largest sweep, and the exponent of the Pareto distribution of sweep sizes."""


def drawn(jobs: int = JOBS, seed: int = 1) -> Workload:
    """Return the first *jobs* jobs of the log; times and durations in whole seconds."""
    size = sweeps(stream(seed, "long", "sizes"))
    of = np.repeat(np.arange(len(size)), size)[:JOBS]
    count = int(of[-1]) + 1
    width = dealt(WIDTHS + WIDER, count, stream(seed, "long", "widths"))
    estimate = dealt(ESTIMATES, count, stream(seed, "long", "estimates"))
    odd = stream(seed, "long", "odd")
    minutes = odd.integers(1, ESTIMATES[-1][0] // 60 + 1, count)
    estimate = np.where(odd.random(count) < ODD, 60 * minutes, estimate)
    typical = stream(seed, "long", "typical").beta(0.6, 1.4, count)
    spread = stream(seed, "long", "spread").lognormal(0, 0.5, JOBS)
    runtime = np.clip(typical[of] * spread * estimate[of], 1, estimate[of]).astype(np.int64)
    gaps = stream(seed, "long", "gaps").exponential(1.0, count)
    span = float((runtime * width[of]).sum()) / (LOAD * CORES)
    comes = np.cumsum(gaps) / gaps.sum() * span
    within = np.cumsum(stream(seed, "long", "within").exponential(2.0, JOBS))
    first = np.flatnonzero(np.diff(of, prepend=-1))
    submit = (comes[of] + within - within[first][of]).astype(np.int64)
    order = np.argsort(submit, kind="stable")[:jobs]
    return Workload.from_columns(
        submit=submit[order],
        runtime=runtime[order],
        estimate=estimate[of][order],
        cores=width[of][order],
        labels={"user": of[order] + 1},
        cores_stated=CORES,
    )


def sweeps(rng: np.random.Generator) -> IntArray:
    """Return the sizes of the sweeps of the whole log: many with one job, few with thousands."""
    size = np.minimum((1 - rng.random(JOBS)) ** (-1 / TAIL), LARGEST).astype(np.int64)
    return size[: int(np.searchsorted(np.cumsum(size), JOBS)) + 1]


def dealt(shares: tuple[tuple[int, float], ...], count: int, rng: np.random.Generator) -> IntArray:
    """Return values drawn by their shares."""
    values, weights = np.array([value for value, _ in shares]), np.array([share for _, share in shares])
    return values[np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(count), side="right")]


def waiting(record: Record) -> tuple[float, int]:
    """Return the mean number of waiting jobs between the first submission and the last start, and the maximum."""
    instants = np.concatenate([record.submit, record.start])
    steps = np.concatenate([np.ones(len(record), dtype=np.int64), -np.ones(len(record), dtype=np.int64)])
    order = np.argsort(instants, kind="stable")
    level, instants = np.cumsum(steps[order]), instants[order]
    return float((level[:-1] * np.diff(instants)).sum() / (instants[-1] - instants[0])), int(level.max())


def check(trace: Trace, policy: str, folder: Path, reference: Path) -> None:
    """Raise `CheckFailed` if the engines or the C program differ in a start."""
    start = simulated(trace, policy, "compiled")[1].start_us
    others = {"SimPy": simulated(trace, policy, "simpy")[1].start_us}
    program = compiled_reference(reference, folder)
    if program is not None and policy == "conservative?compress=arrival":
        others["C"] = np.round(by_reference(program, trace, "cons", folder)[1] * MICROSECOND).astype(np.int64)
    for other, theirs in others.items():
        if different := int(np.count_nonzero(start != theirs)):
            raise CheckFailed(f"{policy}: {different} starts are not those of {other}")
    print(f"{policy}: {len(start)} starts as by {' and '.join(others)}")


def main() -> None:
    """Print the time of a run, or check the starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default="conservative")
    parser.add_argument("--reference", type=Path, default=REFERENCE)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        trace = traced(drawn(args.jobs, args.seed), folder)
        if args.check:
            check(trace, args.policy, folder, args.reference)
            return
        simulated(trace._replace(workload=trace.workload.select(slice(0, 200))), args.policy, "compiled")  # compiles
        took, record = simulated(trace, args.policy, "compiled")
    mean, most = waiting(record)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.policy}: {len(record):,} jobs, {mean:,.0f} waiting on average, {most:,} at most: {took:.1f} CPU s")
    print(f"{len(record) / took / 1e6:.3f} M jobs a CPU second; peak memory {peak:,.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
