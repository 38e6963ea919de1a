"""Hour of the day with the longest queues, when work is submitted by day and week at 100 % load (G-B9)."""

from __future__ import annotations

import argparse
import json

import numpy as np

from gridsim.files import write_text
from gridsim.metrics.paired_tests import bootstrap_means
from gridsim.model.time import MICROSECOND, FloatArray
from gridsim.record import Record
from gridsim.simulation import Run, run
from gridsim.workload.synthetic.grid import Grid
from gridsim_papers.grid.campaign import GridCampaign

HOUR = 60
"""Ticks."""

WEEKS = 10
"""Submission weeks, without the first: the grid is empty when it begins."""


def waiting_by_hour(record: Record) -> FloatArray:
    """Waiting tasks, mean at the full hours of the day after the first week; shape (24,)."""
    tasks = record.tasks
    ready, start = (record.workload.submit, record.start_us) if tasks is None else (tasks.ready_us, tasks.start_us)
    last = int(record.workload.submit[-1]) // MICROSECOND
    hours = np.arange(7 * 24 * HOUR, last - last % (24 * HOUR), HOUR)
    instants = hours * MICROSECOND
    level = np.searchsorted(np.sort(ready), instants, "right") - np.searchsorted(np.sort(start), instants, "right")
    means: FloatArray = level.reshape(-1, 24).mean(axis=0)
    return means


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--out", metavar="FILE", help="the table as JSON")
    args = parser.parse_args()
    platform = GridCampaign().platform
    told = []
    for kind in ("log-ind", "fan"):
        jobs = args.jobs if kind == "log-ind" else args.jobs // 10
        total = int(WEEKS * 7 * 24 * HOUR * platform.cores / 10.2)  # a task has 10.2 cores on average
        model = [
            Grid(kind=kind, number=number, load=1.0, jobs=jobs, total=total, arrivals="day-week", hour=HOUR)
            for number in range(1, args.workloads + 1)
        ]
        workloads = [one.generate(1) for one in model]
        for policy in ("p-slr", "fifo-job"):
            levels = np.array([waiting_by_hour(run(one, platform, policy, Run(seed=1))) for one in workloads])
            peaks = levels.argmax(axis=1)
            in_hours, evening = levels[:, 9:17].mean(axis=1), levels[:, 18:24].mean(axis=1)
            known = (in_hours > 0) & (evening > 0)
            ratios = np.log(evening[known] / in_hours[known])
            low, high = np.exp(np.quantile(bootstrap_means(ratios), [0.025, 0.975]))
            told.append(
                {
                    "kind": kind,
                    "policy": policy,
                    "workloads": int(known.sum()),
                    "peak_between_18_and_24": float((peaks >= 18).mean()),
                    "peak_hour": int(levels.mean(axis=0).argmax()),
                    "evening_over_office_hours": float(np.exp(ratios.mean())),
                    "low": float(low),
                    "high": float(high),
                }
            )
            print(told[-1], flush=True)
    if args.out:
        write_text(args.out, json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
