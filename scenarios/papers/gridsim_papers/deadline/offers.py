"""How far offered deadlines are from the earliest that can be granted: every deadline tried, on small workloads.

The search that makes an offer halves an interval a few times, and success of the inner admission is not monotone in the
deadline, so an offer may be later than need be. No stored row tells; this runs small workloads of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsim import Platform, Workload, simulate
from gridsim.model.streams import stream
from gridsim.model.time import NEVER, FloatArray
from gridsim.policy.admission.feedback import Feedback
from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Offer
from gridsim.policy.scheduler.guaranteed import Guaranteed
from gridsim.workload.transform.deadlines import Deadlines
from gridsim_papers.decisions import resampled
from gridsim_papers.verdicts import Finding, decided

__all__ = ["offer_gaps", "offers_are_early"]

CORES = 8
JOBS = 60
LONGEST = 120
WORKLOADS = 20
LIMIT = 0.01
"""Median gap, a part of the response asked for, above which the claim fails."""


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
        """As its inner admission."""
        return self.inner.left_shifted

    def __deepcopy__(self, memo: dict[int, Any]) -> _Scanned:
        return _Scanned(copy.deepcopy(self.inner, memo), self.gaps)  # a run copies its policy; the gaps are ours


def offer_gaps(seed: int, retry_count: int = 10) -> FloatArray:
    """Offer less the earliest deadline that could be granted, over the response asked for: one an offer.

    One workload of 60 jobs on 8 cores, eight in ten with deadlines from its EASY schedule at stringency
    0.5: where all have tight ones, hardly any other offer is possible than a place behind the plan.
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
    """The median gap is at most 1 %; its interval is over resampled workloads.

    Parameters
    ----------
    gaps : sequence of arrays, optional
        Of each workload; those of 20 workloads where left out.
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
