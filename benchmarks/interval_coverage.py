"""Coverage of the intervals of paired differences: how often they contain the true ratio of the means.

A cell is a set of workloads: of the Lublin model at a load, or made from a log by one of three methods. Each workload
is simulated under all policies. The true ratio is that of the means over all workloads of the cell; for windows of a
log, it is the ratio of the whole log.

    python benchmarks/interval_coverage.py [--workloads 120] [--logs FOLDER] [--cells TEXT]

writes the table of ``docs/background/trust.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
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
from gridsim.workload.transform.resample import Resample

BASELINE = "easy"
POLICIES = ("sjbf", "conservative", "easy?ordering=wfp3")
SATURATED = "fcfs"
METRICS = ("wait", "bounded_slowdown")
WEEK = 7 * 86_400 * MICROSECOND


class Noise:
    """Order of submission with up to an hour of noise: two seeds are two policies of equal quality.

    Parameters
    ----------
    seed : int
        Seed of the noise.
    """

    changes = "static"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def rank(self, queue: Any, now: int) -> Any:
        """Return the submit time plus noise of each job."""
        noise = np.random.default_rng(self.seed).uniform(0, 3600, 1 + int(queue.rows.max(initial=0)))
        return queue.submit + noise[queue.rows]


class Coverage(NamedTuple):
    """Results of one metric and pair: shares of workloads, and the median half-width relative to the ideal one."""

    metric: str
    policy: str
    ratio: float
    coverage: float
    claims: float
    wrong: float
    width: float
    workloads: int


def lublin(jobs: int, load: float, workloads: int, *, first: int = 1000, cores: int = 128) -> Iterator[gs.Workload]:
    """Yield workloads of the Lublin model at an offered load."""
    for seed in range(first, first + workloads):
        yield OfferedLoad(load).apply(Lublin(jobs=jobs, cores=cores).generate(seed))


def same_users(log: gs.Workload, workloads: int, *, weeks: int = 13, first_week: int = 20) -> Iterator[gs.Workload]:
    """Yield workloads with every user of some weeks of a log once, each shifted cyclically by whole weeks."""
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


def other_users(log: gs.Workload, workloads: int, *, weeks: int | None = None) -> Iterator[gs.Workload]:
    """Yield workloads with users resampled from a log."""
    for seed in range(workloads):
        yield Resample(weeks=weeks).apply(log, np.random.default_rng(seed))


def windows(log: gs.Workload, *, jobs: int = 10_000) -> Iterator[gs.Workload]:
    """Yield windows of consecutive jobs of a log; each window shares half of its jobs with the next one."""
    for first in range(0, len(log) - jobs + 1, jobs // 2):
        yield log.select(np.arange(first, first + jobs))


def study(
    workloads: Iterator[gs.Workload],
    cores: int,
    *,
    policies: Sequence[str] = POLICIES,
    whole: gs.Workload | None = None,
) -> tuple[list[Coverage], float]:
    """Return the coverage of each metric and pair, and the larger share of false verdicts of the two metrics.

    False verdicts are *better* or *worse* for two random orders of equal quality.

    Parameters
    ----------
    workloads : iterator of Workload
        The workloads of the cell.
    cores : int
        Number of cores of the machine.
    policies : sequence of str
        Policies to compare with the baseline.
    whole : Workload, optional
        The log whose ratios are the true ones; if omitted, the true ratio is that over all workloads.
    """
    usual_names = (BASELINE, *policies)
    simulated: dict[str, Any] = {name: name for name in usual_names}
    found: dict[tuple[str, str], list[Any]] = {}
    false: dict[str, list[bool]] = {metric: [] for metric in METRICS}
    platform = gs.Platform.single(cores)
    for number, workload in enumerate(workloads):
        for side in (1, 2):
            simulated[f"noise {side}"] = Backfilling(ordering=Noise(2 * number + side), reserve=Easy())
        records = {name: gs.simulate(workload, policy=it, platform=platform).record for name, it in simulated.items()}
        usual = {name: records[name] for name in usual_names}
        noisy = {name: record for name, record in records.items() if name.startswith("noise")}
        for metric in METRICS:
            for it in paired(usual, metric=metric, baseline=BASELINE):
                found.setdefault((metric, it.policy), []).append(it)
            false[metric].append(paired(noisy, metric=metric)[0].verdict in ("better", "worse"))
    true: dict[tuple[str, str], list[Any]] = found
    if whole is not None:
        records = {name: gs.simulate(whole, policy=name, platform=platform).record for name in usual_names}
        true = {
            (metric, it.policy): [it] for metric in METRICS for it in paired(records, metric=metric, baseline=BASELINE)
        }
    covered = [_coverage(*key, each, true[key]) for key, each in found.items()]
    return covered, max(float(np.mean(each)) for each in false.values())


def _coverage(metric: str, policy: str, found: list[Any], true: list[Any]) -> Coverage:
    """Return the coverage of the ratio over the workloads in *true* by the intervals in *found*, for one pair."""
    truth = np.mean([it.policy_mean for it in true]) / np.mean([it.baseline_mean for it in true])
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


class Cell(NamedTuple):
    """Workloads of one kind, with their number, the cores, and the arguments of `study`."""

    name: str
    workloads: Iterator[gs.Workload]
    count: int
    cores: int
    options: dict[str, Any]


def cells(workloads: int, logs: Path | None) -> Iterator[Cell]:
    """Yield all cells; those of logs only if the folder of the logs is given."""
    sizes = [(load, jobs, 128) for load in (0.5, 0.7, 0.85) for jobs in (1000, 5000, 20_000)]
    held_out = [(0.6, 2000, 128), (0.8, 2000, 128), (0.75, 8000, 256), (0.9, 1000, 128)]
    for load, jobs, cores in (*sizes, *held_out):
        name = f"Lublin, load {load}, {jobs:,} jobs" + (f", {cores} cores" if cores != 128 else "")
        drawn = lublin(jobs, load, workloads, cores=cores)
        yield Cell(name, drawn, workloads, cores, {"policies": (*POLICIES, SATURATED)})
    if logs is None:
        return
    ours = {"policies": (*POLICIES, "easy++")}
    for name, file, cores in (
        ("SDSC SP2", "SDSC-SP2-1998-4.2", 128),
        ("CTC SP2", "CTC-SP2-1996-3.1", 338),
        ("SDSC BLUE", "SDSC-BLUE-2000-4.2", 1152),
    ):
        log = gs.read_workload(logs / f"{file}-cln.swf.gz")
        count = len(range(0, len(log) - 10_000 + 1, 5000))
        yield Cell(f"{name}, windows of 10,000 jobs", windows(log), count, cores, {**ours, "whole": log})
        if cores == 1152:
            drawn = other_users(log, workloads, weeks=26)
            yield Cell(f"{name}, other users, 26 weeks", drawn, workloads, cores, ours)
            continue
        all_weeks = 1 + int((log.submit.max() - log.submit.min()) // WEEK)
        moved = same_users(log, workloads, weeks=all_weeks, first_week=0)
        yield Cell(f"{name}, same users, 13 weeks", same_users(log, workloads), workloads, cores, ours)
        yield Cell(f"{name}, same users, whole log", moved, workloads, cores, ours)
        for weeks, length in ((13, "13 weeks"), (None, "whole log")):
            drawn = other_users(log, workloads, weeks=weeks)
            yield Cell(f"{name}, other users, {length}", drawn, workloads, cores, ours)


def row(cell: Cell) -> str:
    """Return a row of the table: the least favourable pair for coverage, the average over pairs otherwise."""
    found, false = study(cell.workloads, cell.cores, **cell.options)

    def least(metric: str, *, saturated: bool = False) -> str:
        each = [it.coverage for it in found if it.metric == metric and (it.policy == SATURATED) is saturated]
        return f"{min(each):.2f}" if each else ""

    waits = [it for it in found if it.metric == "wait" and it.policy != SATURATED]
    fcfs = " / ".join(filter(None, (least(metric, saturated=True) for metric in METRICS)))
    texts = [least(metric) for metric in METRICS]
    texts += [f"{np.sqrt(0.05 * 0.95 / cell.count):.3f}", f"{np.median([it.width for it in waits]):.2f}"]
    texts += [f"{value:.3f}" for value in (np.mean([it.claims for it in waits]), np.mean([it.wrong for it in waits]))]
    return f"| {cell.name} | {cell.count} | {' | '.join([*texts, f'{false:.3f}', fcfs or '-'])} |"


HEAD = (
    "| workloads | number | coverage, waits | coverage, slowdown | standard error | width | claims | wrong sign "
    "| false verdicts | coverage, fcfs |"
)


def main() -> None:
    """Print a row of the table for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=int, default=120, help="number of workloads of each cell (%(default)s)")
    parser.add_argument("--logs", type=Path, help="folder with the logs of the archive")
    parser.add_argument("--cells", default="", help="run the cells whose names contain this text")
    args = parser.parse_args()
    print(HEAD + "\n|---|" + "---:|" * 9)
    for cell in cells(args.workloads, args.logs):
        if args.cells in cell.name:
            print(row(cell), flush=True)


if __name__ == "__main__":
    main()
