"""Checks for users: conformance cases, invariants of any schedule, a second implementation, checks of policies."""

from gridsim.testing.invariants import Schedule, Violation, assert_valid, violations, violations_of
from gridsim.testing.policies import check_ordering, check_reservation, check_scheduler

__all__ = [
    "Schedule",
    "Violation",
    "assert_valid",
    "check_ordering",
    "check_reservation",
    "check_scheduler",
    "violations",
    "violations_of",
]
