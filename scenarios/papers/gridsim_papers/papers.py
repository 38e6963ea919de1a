"""The five reproduced papers, which `gridsim reproduce` loads from here."""

from __future__ import annotations

from collections.abc import Mapping

from gridsim_papers.citations import CITATIONS
from gridsim_papers.paper import Paper

__all__ = ["PAPERS"]

_DEADLINE = "deadline.family:DeadlineFamily"
_FAMILIES = {
    "grid": ("grid.family:GridFamily", ""),
    "qops-report": (_DEADLINE, "TR"),
    "qops": (_DEADLINE, "J03"),
    "service": (_DEADLINE, "P04"),
    "moldable": ("moldable.family:MoldableFamily", "S03"),
}

PAPERS: Mapping[str, Paper] = {name: Paper(name, citation, *_FAMILIES[name]) for name, citation in CITATIONS.items()}
"""Papers by their names on the command line."""
