"""Distance of offered deadlines from the earliest possible deadline, found by trying every deadline on small workloads.

The search for an offer bisects an interval a few times, and the success of the inner admission is not monotone in the
deadline, so an offer may be later than necessary. Stored rows do not contain this, so this module runs small workloads.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsim import Platform, Workload, simulate
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER, FloatArray
from gridsim.policy.admission.feedback import Feedback
from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Offer
from gridsim.policy.scheduler.deadline_guarantee import Guaranteed
from gridsim.workload.transform.deadlines import Deadlines
from gridsim_papers.decisions import resampled
from gridsim_papers.verdicts import Finding, decided

__all__ = ["offer_gaps", "offers_are_early"]

CORES = 8
JOBS = 60
LONGEST = 120
WORKLOADS = 20
LIMIT = 0.01
"""Median gap, as a part of the requested response, above which the claim fails."""


@dataclass
class _Scanned:
    """Feedback that also tries every whole second before its offer."""

    inner: Feedback = field(default_factory=Feedback)
    gaps: list[float] = field(default_factory=list)

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        offer = self.inner.plan(request, deadline, plan, now)
        if offer is not None and deadline < offer.granted < NEVER:
            seconds = range(deadline + plan.tick, offer.granted, plan.tick)
            earlier = (at for at in seconds if self.inner.inner.plan(request, at, plan, now) is not None)
            asked = deadline - int(plan.requests.submit[request])
            self.gaps.append((offer.granted - next(earlier, offer.granted)) / asked)
        return offer

    @property
    def left_shifted(self) -> bool:
        """Inner admission policy."""
        return self.inner.left_shifted

    def __deepcopy__(self, memo: dict[int, Any]) -> _Scanned:
        return _Scanned(copy.deepcopy(self.inner, memo), self.gaps)  # a copied policy shares its gaps


def offer_gaps(seed: int, retry_count: int = 10) -> FloatArray:
    """Return offer minus earliest possible deadline, divided by the requested response, for each offer.

    One workload has 60 jobs on 8 cores. 80 % of the jobs have deadlines from the EASY schedule at stringency 0.5. With
    tight deadlines for all jobs, hardly any offer other than a place behind the plan is possible.
    """
    rng = stream(seed, "deadline", "offers")
    runtime = rng.integers(1, LONGEST + 1, JOBS)
    workload = Workload.from_columns(
        submit=np.cumsum(rng.integers(0, LONGEST * 3 // 4, JOBS)),
        runtime=runtime,
        estimate=runtime,
        cores=rng.integers(1, CORES, JOBS),
    )
    platform = Platform.single(CORES)
    easy = simulate(workload, platform=platform, policy="easy").record
    asked = Deadlines(stringency=0.5, fraction=0.8, tolerance=3.0).apply(workload, rng, easy)
    scanned = _Scanned(Feedback(retry_count=retry_count))
    simulate(asked, platform=platform, policy=Guaranteed(admission=scanned))
    return np.array(scanned.gaps)


def offers_are_early(gaps: Sequence[FloatArray] | None = None) -> Finding:
    """The median gap is at most 1 %, with an interval from resampled workloads.

    Parameters
    ----------
    gaps : sequence of arrays, optional
        Gaps of each workload; by default those of 20 workloads.
    """
    gaps = [offer_gaps(seed) for seed in range(WORKLOADS)] if gaps is None else gaps
    every = np.concatenate(gaps)
    rows = stream(0, "deadline", "offers", "median").integers(len(gaps), size=(2_000, len(gaps)))
    medians = [float(np.median(np.concatenate([gaps[row] for row in drawn]))) for drawn in rows]
    median = float(np.median(every))
    note = (
        f"{len(every)} offers on {len(gaps)} small workloads, compared with every whole second: "
        f"{100 * np.mean(every == 0):.0f} % are the earliest; mean gap {every.mean():.3g}, largest {every.max():.3g} "
        "of the requested response time"
    )
    return decided([resampled("median gap", median, np.array(medians), len(gaps), 0.0, LIMIT)], note=note)
