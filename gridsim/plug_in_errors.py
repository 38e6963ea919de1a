"""Errors of plug-ins: what a method of one raises, with its file and line."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from gridsim.errors import GridsimError, PolicyError

__all__ = ["call", "failed", "name_of", "raise_failed"]

_OWN = Path(__file__).parent


def name_of(policy: Any) -> str:
    """A policy as errors and results name it: its ``repr``, without addresses and with plain files by their names."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(policy))
    return re.sub(r"\bgridsim_plugin_(\w+?)_*(?=\.\w)", r"\1", text)  # the module of a plain file


def failed(policy: Any, method: str, error: Exception) -> PolicyError:
    """The error that says that a *method* of a policy raised another one, and in which line that is not gridsim's.

    Raise it from that one: ``raise failed(ordering, "rank", error) from error``.
    """
    place = _place_of(error) or _begin_of(policy, method)
    where = f" in line {place[0]} of {place[1]}" if place else ""
    return PolicyError(f"{name_of(policy)} failed in {method}{where}: {type(error).__name__}: {error}")


def _place_of(error: Exception) -> tuple[int | None, str] | None:
    """Line and file of the outermost frame that is not gridsim's own."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = (frame for frame in frames if not Path(frame.filename).is_relative_to(_OWN))
    return next(((frame.lineno, frame.filename) for frame in outside), None)


def _begin_of(policy: Any, method: str) -> tuple[int, str] | None:
    """Where a plug-in defines a method: a call with the wrong arguments has no frame of its own."""
    function = getattr(type(policy), method, None)
    if isinstance(function, FunctionType) and not Path(function.__code__.co_filename).is_relative_to(_OWN):
        return function.__code__.co_firstlineno, function.__code__.co_filename
    return None


def raise_failed(policy: Any, method: str, error: Exception) -> NoReturn:
    """Raise what a *method* of a policy raised, as a `PolicyError` with its place (`failed`).

    Errors of gridsim stay as they are, and so do defects of its own policies where no plug-in is involved.
    """
    own = type(policy).__module__.startswith("gridsim.") and _place_of(error) is None
    if own or isinstance(error, GridsimError):
        raise error
    raise failed(policy, method, error) from error


def call(policy: Any, method: str, *arguments: Any) -> Any:
    """Return what a *method* of a policy returns; what it raises is raised by `raise_failed`."""
    try:
        return getattr(policy, method)(*arguments)
    except Exception as error:
        raise_failed(policy, method, error)
