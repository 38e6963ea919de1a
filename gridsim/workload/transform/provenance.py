"""What `run.json` says of a transform: its name, its parameters and what it did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gridsim.model.workload import Workload
from gridsim.registry import name_of

__all__ = ["noted"]


def noted(workload: Workload, transform: Any, **facts: Any) -> Workload:
    """The *workload* that a *transform* (a dataclass) made, with an entry for it behind those before.

    Parameters
    ----------
    **facts
        What else is told, in JSON types; a fact named as a parameter replaces its value.
    """
    entry = {"transform": name_of(type(transform)), **asdict(transform), **facts}
    return workload.with_provenance(transforms=[*workload.provenance.get("transforms", ()), entry])
