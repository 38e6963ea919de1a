"""Conservative insertion: behind all promises, wherever there is a hole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Offer


@dataclass
class Conservative:
    """Every request is promised its earliest place in the plan as it stands; nobody is moved for it."""

    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Feitelson, Weil 1998"

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        start = plan.earliest(request, now)
        return Offer(start) if start + plan.estimate[request] <= deadline else None
