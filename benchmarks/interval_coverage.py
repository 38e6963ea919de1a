"""Coverage of the intervals of paired differences: how often they contain the true ratio of the means.

Every cell is a law of workloads: the Lublin model at a load, or a log whose users are moved by whole weeks. Each
workload is simulated under all policies. The true ratio is that of the means over all workloads of the cell.

    python benchmarks/interval_coverage.py [--workloads 100] [--logs FOLDER]

writes the table of ``docs/background/trust.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gridsim as gs
from gridsim.metrics.compare import paired
from gridsim.model.time import MICROSECOND, IntArray
from gridsim.policy.reservation import Easy
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.workload.synthetic.lublin import Lublin
from gridsim.workload.transform.load_factor import OfferedLoad

BASELINE = "easy"
POLICIES = ("sjbf", "conservative", "easy?ordering=wfp3")
METRICS = ("wait", "bounded_slowdown")
WEEK = 7 * 86_400 * MICROSECOND


class Noise:
    """Order of submission with up to an hour of noise: two seeds are two policies that nothing tells apart.

    Parameters
    ----------
    seed : int
        Of the noise.
    """

    changes = "static"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def rank(self, queue: Any, now: int) -> Any:
        """Submit time plus noise of each job."""
        noise = np.random.default_rng(self.seed).uniform(0, 3600, 1 + int(queue.rows.max(initial=0)))
        return queue.submit + noise[queue.rows]


class Coverage(NamedTuple):
    """What one metric of one pair shows: shares of workloads, and the median half-width over the ideal one."""

    metric: str
    policy: str
    ratio: float
    coverage: float
    claims: float
    wrong: float
    width: float
    workloads: int


def lublin(jobs: int, load: float, workloads: int, *, first: int = 1000) -> Iterator[gs.Workload]:
    """Workloads of the Lublin model on 128 cores at an offered load."""
    for seed in range(first, first + workloads):
        yield OfferedLoad(load).apply(Lublin(jobs=jobs).generate(seed))


def same_users(log: gs.Workload, workloads: int, *, weeks: int = 13, first_week: int = 20) -> Iterator[gs.Workload]:
    """Workloads with every user of some weeks of a log once, each moved by whole weeks round the end."""
    week = (log.submit - log.submit.min()) // WEEK
    part = log.select(np.flatnonzero((week >= first_week) & (week < first_week + weeks)))
    start = log.submit.min() + first_week * WEEK
    _, user = np.unique(part.labels["user"], return_inverse=True)
    for seed in range(workloads):
        shift: IntArray = np.random.default_rng(seed).integers(0, weeks, user.max() + 1)
        offset = part.submit - start
        moved = (offset + shift[user] * WEEK) % (weeks * WEEK)
        shifted = replace(part, submit=moved, logged={})
        yield shifted.select(np.argsort(moved, kind="stable"))


def study(workloads: Iterator[gs.Workload], cores: int) -> tuple[list[Coverage], float]:
    """Coverage of each metric and pair, and the larger share of false verdicts of the two metrics.

    False verdicts are *better* or *worse* for two orders that nothing tells apart.
    """
    policies: dict[str, Any] = {name: name for name in (BASELINE, *POLICIES)}
    found: dict[tuple[str, str], list[Any]] = {}
    false: dict[str, list[bool]] = {metric: [] for metric in METRICS}
    platform = gs.Platform.single(cores)
    for number, workload in enumerate(workloads):
        for side in (1, 2):
            policies[f"noise {side}"] = Backfilling(ordering=Noise(2 * number + side), reserve=Easy())
        records = {name: gs.simulate(workload, policy=it, platform=platform).record for name, it in policies.items()}
        usual = {name: records[name] for name in (BASELINE, *POLICIES)}
        noisy = {name: record for name, record in records.items() if name.startswith("noise")}
        for metric in METRICS:
            for it in paired(usual, metric=metric, baseline=BASELINE):
                found.setdefault((metric, it.policy), []).append(it)
            false[metric].append(paired(noisy, metric=metric)[0].verdict in ("better", "worse"))
    return [_coverage(*key, each) for key, each in found.items()], max(np.mean(each) for each in false.values())


def _coverage(metric: str, policy: str, found: list[Any]) -> Coverage:
    """Coverage of one pair."""
    truth = np.mean([it.policy_mean for it in found]) / np.mean([it.baseline_mean for it in found])
    claims = [it for it in found if it.p < 0.05]
    ideal = 1.96 * np.std([np.log(it.ratio) for it in found], ddof=1)
    return Coverage(
        metric,
        policy,
        float(truth),
        float(np.mean([it.ratio_low <= truth <= it.ratio_high for it in found])),
        len(claims) / len(found),
        sum(bool((it.ratio < 1) != (truth < 1)) for it in claims) / len(found),
        float(np.median([it.half_width for it in found]) / ideal),
        len(found),
    )


def cells(workloads: int, logs: Path | None) -> Iterator[tuple[str, Iterator[gs.Workload], int, int]]:
    """Name, workloads, cores and number of workloads of each cell."""
    for load in (0.5, 0.7, 0.85):
        for jobs in (1000, 5000, 20_000):
            count = workloads
            yield f"Lublin, load {load}, {jobs:,} jobs", lublin(jobs, load, count), 128, count
    if logs is not None:
        for name, file, cores in (("SDSC SP2", "SDSC-SP2-1998-4.2", 128), ("CTC SP2", "CTC-SP2-1996-3.1", 338)):
            log = gs.read_workload(logs / f"{file}-cln.swf.gz")
            yield f"{name}, same users, 13 weeks", same_users(log, workloads), cores, workloads


def main() -> None:
    """Print a row of the table for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=int, default=100, help="of each cell (default: %(default)s)")
    parser.add_argument("--logs", type=Path, help="folder with the logs of the archive")
    args = parser.parse_args()
    print(
        "| workloads | number | coverage, waits | coverage, slowdown | width | claims | wrong sign | false verdicts |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, workloads, cores, count in cells(args.workloads, args.logs):
        found, false = study(workloads, cores)
        least = {metric: min(it.coverage for it in found if it.metric == metric) for metric in METRICS}
        waits = [it for it in found if it.metric == "wait"]
        numbers = (
            *least.values(),
            np.median([it.width for it in waits]),
            np.mean([it.claims for it in waits]),
            np.mean([it.wrong for it in waits]),
            false,
        )
        print(f"| {name} | {count} | {' | '.join(f'{value:.2f}' for value in numbers)} |", flush=True)


if __name__ == "__main__":
    main()
