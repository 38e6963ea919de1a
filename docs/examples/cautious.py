"""Promises with time to spare."""

from dataclasses import dataclass

from gridsim.policy.protocols import Offer

__all__ = ["Cautious"]


@dataclass
class Cautious:
    """The first hole of the plan, where that ends *spare* seconds before the deadline; nobody is moved."""

    spare: float = 600.0

    def plan(self, request, deadline, plan, now):
        start = plan.earliest(request, now)
        end = start + plan.estimate[request]
        return Offer(start) if end + self.spare * 1_000_000 <= deadline else None
