"""A model of the future for forecasts: Poisson arrivals, and run times as shares of the limits of ended jobs."""

from dataclasses import dataclass

import numpy as np


@dataclass
class PoissonFuture:
    """Draw arrivals at the mean rate of the last *weeks*; each is like a job of this time, with a drawn run time."""

    weeks: float = 4

    def future(self, jobs, at, horizon, rng):
        recent = np.flatnonzero(jobs.submit > at - self.weeks * 604_800)
        ended = np.flatnonzero(jobs.run >= 0)[-2000:]
        shares = jobs.run[ended] / jobs.limit[ended] if len(ended) else np.ones(1)

        count = rng.poisson(len(recent) * horizon / (self.weeks * 604_800)) if len(recent) else 0
        like = rng.choice(recent, count) if count else np.zeros(0, dtype=int)
        after = np.sort(rng.integers(1, horizon + 1, count))
        arrival_run = np.maximum(1, rng.choice(shares, count) * jobs.limit[like]).astype(int)

        now = np.concatenate([jobs.running, jobs.waiting])
        elapsed = np.concatenate([jobs.elapsed, np.zeros(len(jobs.waiting))])
        run = np.maximum(elapsed + 1, rng.choice(shares, len(now)) * jobs.limit[now]).astype(int)
        return run, like, after, arrival_run
