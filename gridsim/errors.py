"""Ways to fail. Every error names the value, the limit and the cure; nothing else belongs here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "CheckFailed",
    "GridsimError",
    "InputError",
    "PolicyError",
    "UnknownNameError",
]


class GridsimError(Exception):
    """Base of all errors that gridsim raises on purpose; the command line exits with ``exit_code``."""

    exit_code = 2


class InputError(GridsimError):
    """Something that was read is not what it must be.

    Parameters
    ----------
    message : str
        What was found, what was expected, and what to do about it.
    path : str, optional
        File in which it was found.
    line : int, optional
        Line of that file, from 1.
    field : str, optional
        Field of that line, or path of a key in a structured file.
    """

    def __init__(self, message: str, *, path: object = None, line: int | None = None, field: str | None = None) -> None:
        self.message, self.path, self.line, self.field = message, path, line, field
        place = "" if path is None else str(path)
        if line is not None:
            place += f" line {line}"
        if field is not None:
            place += f"{', ' if place else ''}field '{field}'"
        super().__init__(f"{place}: {message}" if place else message)


class UnknownNameError(InputError):
    """A name that the registry does not know; carries the nearest one and the list."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'? " if near else ""
        super().__init__(f"unknown {kind} '{name}'; {hint}known: {', '.join(names) or 'none'}")
        self.kind, self.name, self.nearest = kind, name, near[0] if near else None


class PolicyError(GridsimError):
    """A policy decided something impossible: the cluster refuses it, whichever policy it was."""


class CheckFailed(GridsimError):
    """A check that the user asked for did not pass (exit code 1)."""

    exit_code = 1
