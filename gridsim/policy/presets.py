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
    what : str, Spec or object
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
    spec = registry.parse(what) if isinstance(what, str) else what
    if not isinstance(spec, Spec):
        return _as_scheduler(what)
    if spec.name in PRESETS:
        base = registry.parse(PRESETS[spec.name].spec)
        return registry.make("scheduler", _composed(base, spec))
    if registry.knows("scheduler", spec.name):
        return registry.make("scheduler", spec)
    if spec.name.endswith(".py") or ".py:" in spec.name or registry.knows("ordering", spec.name):
        return _as_scheduler(registry.make("ordering", spec))
    known = {*PRESETS, *registry.spellings("scheduler"), *registry.spellings("ordering")}
    raise UnknownNameError("policy", spec.name, known)


def _composed(base: Spec, spec: Spec) -> Spec:
    """Scheduler of a preset with the parameters of a spec: its own ones, and those of its parts (``depth?k=4``).

    A part is looked at as it was chosen, so ``easy?reserve=depth&k=4`` is ``depth?k=4``.
    """
    own = registry.parameters(registry.find("scheduler", base.name))
    values = {**base.parameters, **{name: value for name, value in spec.parameters.items() if name in own}}
    for name, value in spec.parameters.items():
        if name not in own:
            slot, part = _part_with(name, values, f"parameter of {spec.name}", list(own))
            values[slot] = Spec(part.name, {**part.parameters, name: value})
    return Spec(base.name, values)


def _part_with(parameter: str, parts: dict[str, Any], what: str, known: list[str]) -> tuple[str, Spec]:
    """The part of a composition that takes a parameter, as a spec, and the name it goes by."""
    for slot, value in parts.items():
        kind = registry.kind_of(slot)
        if kind is None:
            continue
        part = registry.parse(value) if isinstance(value, str) else value
        takes = registry.parameters(registry.find(kind, part.name))
        if parameter in takes:
            return slot, part
        known = [*known, *takes]
    raise UnknownNameError(what, parameter, known)


def _as_scheduler(what: Any) -> Any:
    if isinstance(what, type):
        raise InputError(f"{what.__name__} is a class; give an object of it: {what.__name__}()", field="policy")
    if hasattr(what, "dispatch"):
        return what
    if hasattr(what, "rank") or hasattr(what, "pick"):
        return Backfilling(ordering=what, reserve=Strict())
    raise InputError(f"{what!r} is neither a scheduler (dispatch) nor an ordering (rank or pick)")
