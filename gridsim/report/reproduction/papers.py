"""The five papers."""

from __future__ import annotations

from collections.abc import Mapping

from gridsim.report.reproduction.citations import CITATIONS
from gridsim.report.reproduction.deadline import DeadlineFamily
from gridsim.report.reproduction.grid import GridFamily
from gridsim.report.reproduction.moldable import MoldableFamily
from gridsim.report.reproduction.paper import Paper

__all__ = ["PAPERS"]

_DEADLINE = DeadlineFamily()
_FAMILIES = {
    "grid": (GridFamily(), ""),
    "qops-report": (_DEADLINE, "TR"),
    "qops": (_DEADLINE, "J03"),
    "service": (_DEADLINE, "P04"),
    "moldable": (MoldableFamily(), "S03"),
}

PAPERS: Mapping[str, Paper] = {name: Paper(name, citation, *_FAMILIES[name]) for name, citation in CITATIONS.items()}
"""By what a user types."""
