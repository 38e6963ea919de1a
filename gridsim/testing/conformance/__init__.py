"""Conformance cases: JSON files that say what a schedule must be, and whether gridsim makes it.

Three families of cases are known (`WORDS` maps their words to gridsim's). A case passes only when everything that its
``expected`` holds was compared and agrees; what gridsim cannot do yet, or cannot compare, is *unsupported*.
"""

from gridsim.testing.conformance.cases import FAMILIES, WORDS, check, family, read_cases
from gridsim.testing.conformance.outcome import Outcome

__all__ = ["FAMILIES", "WORDS", "Outcome", "check", "family", "read_cases"]
