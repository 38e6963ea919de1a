"""Named compositions, and the one place where a ``--policy`` text becomes a scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridsim import registry
from gridsim.errors import InputError, UnknownNameError
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.registry import Spec

__all__ = ["PRESETS", "Preset", "policy"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A composition with a name of its own."""

    spec: str
    summary: str
    source: str = ""


PRESETS = {
    "fcfs": Preset("backfilling?ordering=fifo&reserve=strict", "First come, first served; nobody overtakes."),
    "easy": Preset(
        "backfilling?ordering=fifo&reserve=easy",
        "Aggressive backfilling: only the head of the queue is protected.",
        "Lifka 1995",
    ),
    "conservative": Preset(
        "planned?admission=conservative&compress=planned",
        "Conservative backfilling: every job holds a promise, kept while the plan is compressed.",
        "Feitelson, Weil 1998",
    ),
    "first-fit": Preset("backfilling?ordering=fifo&reserve=first-fit", "Whatever fits starts; wide jobs can starve."),
    "depth": Preset("backfilling?ordering=fifo&reserve=depth", "The first k blocked jobs are protected."),
}


def policy(what: Any) -> Any:
    """Scheduler from what a user may give.

    Parameters
    ----------
    what : str or object
        A preset (``easy``), a scheduler with parameters (``backfilling?ordering=sjf``), a bare ordering (that ordering
        with strict head-blocking), ``file.py:Class`` of a scheduler or an ordering, or an object of one of these kinds.

    Raises
    ------
    UnknownNameError
        With the nearest name and the list.

    Examples
    --------
    >>> policy("easy?ordering=sjf")
    Backfilling(ordering=ShortestEstimate(), reserve=Easy())
    >>> policy("wfp3")
    Backfilling(ordering=Wfp3(), reserve=Strict())
    """
    if not isinstance(what, str):
        return _as_scheduler(what)
    spec = registry.parse(what)
    if spec.name in PRESETS:
        base = registry.parse(PRESETS[spec.name].spec)
        return registry.make("scheduler", Spec(base.name, {**base.parameters, **_within(base, spec)}))
    if registry.knows("scheduler", spec.name):
        return registry.make("scheduler", spec)
    if spec.name.endswith(".py") or ".py:" in spec.name or registry.knows("ordering", spec.name):
        return _as_scheduler(registry.make("ordering", spec))
    known = {*PRESETS, *registry.names("scheduler"), *registry.names("ordering")}
    raise UnknownNameError("policy", spec.name, known)


def _within(base: Spec, spec: Spec) -> dict[str, Any]:
    """Parameters for a preset: those of its scheduler, and those of the parts it is composed of (``depth?k=4``)."""
    scheduler = registry.parameters(registry.find("scheduler", base.name))
    parameters: dict[str, Any] = {}
    for name, value in spec.parameters.items():
        if name in scheduler:
            parameters[name] = value
            continue
        part = next(
            (
                (slot, kind, part)
                for slot, part in base.parameters.items()
                for kind in (registry.kind_of(slot),)
                if kind is not None and isinstance(part, str) and name in registry.parameters(registry.find(kind, part))
            ),
            None,
        )
        if part is None:
            raise UnknownNameError(f"parameter of {spec.name}", name, scheduler)
        slot, _, part_name = part
        earlier = parameters.get(slot, Spec(part_name, {}))
        parameters[slot] = Spec(earlier.name, {**earlier.parameters, name: value})
    return parameters


def _as_scheduler(what: Any) -> Any:
    if hasattr(what, "dispatch"):
        return what
    if hasattr(what, "rank") or hasattr(what, "pick"):
        return Backfilling(ordering=what, reserve=Strict())
    raise InputError(f"{what!r} is neither a scheduler (dispatch) nor an ordering (rank or pick)")
