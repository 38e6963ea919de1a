"""Conformance cases: JSON files that say what a schedule must be, and whether gridsim makes it.

Six families of cases are built (`WORDS` maps words of three of them to gridsim's), and come with gridsim (`CASES`). A
case passes only when everything that its ``expected`` holds was compared and agrees; what gridsim cannot do yet, or
cannot compare, is *unsupported*.
"""

from gridsim.testing.conformance.cases import (
    CASES,
    FAMILIES,
    NOT_BUILT,
    WORDS,
    case_files,
    check,
    family,
    read_case,
    read_cases,
    verify,
)
from gridsim.testing.conformance.outcome import Outcome

__all__ = [
    "CASES",
    "FAMILIES",
    "NOT_BUILT",
    "WORDS",
    "Outcome",
    "case_files",
    "check",
    "family",
    "read_case",
    "read_cases",
    "verify",
]
