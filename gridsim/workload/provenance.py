"""What `run.json` says of where a workload came from: its source, its transforms, the plug-ins that made it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gridsim import registry
from gridsim.model.workload import Workload

__all__ = ["recorded", "with_plugins"]


def recorded(workload: Workload, transform: Any, **facts: Any) -> Workload:
    """The *workload* that a *transform* (a dataclass) made, with an entry for it behind those before.

    Parameters
    ----------
    **facts
        What else is told, in JSON types; a fact named as a parameter replaces its value.
    """
    entry = {"transform": registry.name_of(type(transform)), **asdict(transform), **facts}
    return workload.with_provenance(transforms=[*workload.provenance.get("transforms", ()), entry])


def with_plugins(workload: Workload, *makers: Any) -> Workload:
    """The workload, with the plain files and packages that its *makers* (reader, model, transforms) come from."""
    known = list(workload.provenance.get("plugins", ()))
    found = [origin for origin in registry.plugins(*makers) if origin not in known]
    return workload.with_provenance(plugins=[*known, *found]) if found else workload
