"""Checks that others run too: conformance cases, invariants of any schedule, a second implementation, policy checks."""

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
