"""Conservative admission: each request gets the earliest start that delays no other request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gridsim.model.time import NEVER
from gridsim.policy.admission.plan import Plan
from gridsim.policy.protocols import Offer


@dataclass
class Conservative:
    """Every request gets its earliest start in the present plan; no other request is moved."""

    left_shifted: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    source: ClassVar[str] = "Feitelson, Weil 1998"

    def plan(self, request: int, deadline: int, plan: Plan, now: int) -> Offer | None:
        start = plan.earliest(request, now)
        return Offer(start) if min(start + plan.estimate[request], NEVER) <= deadline else None
