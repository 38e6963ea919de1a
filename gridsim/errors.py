"""Errors of gridsim. Each message names the value, the limit and the correction; for plug-ins also file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn


class GridsimError(Exception):
    """Base of all errors that gridsim raises on purpose; the command line exits with ``exit_code``."""

    exit_code = 2

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_raised, (type(self), self.args, self.__dict__)  # whatever its class is made of


def _as_raised(kind: type[GridsimError], args: tuple[Any, ...], state: dict[str, Any]) -> GridsimError:
    """An error that was raised in another process."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


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


def check_parameters(owner: object, **rules: tuple[bool, str]) -> None:
    """Raise `InputError` for the first parameter of *owner* whose rule, a condition and what it expects, is not met."""
    for name, (good, expected) in rules.items():
        if not good:
            raise InputError(f"is {getattr(owner, name)}; expected {expected}", field=name)


@contextmanager
def located(
    path: object = None, *, line: int | None = None, field: str | None = None, below: str = ""
) -> Iterator[None]:
    """Errors of the block name a file, its line and a *field*; where left out, their own field, *below* a key."""
    try:
        yield
    except InputError as error:
        own = field or ".".join(filter(None, (below, error.field))) or None
        raise InputError(error.message, path=path, line=line, field=own) from error


class UnknownNameError(InputError):
    """A name that the registry does not know; carries the nearest one and the list."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = nearest(name, names)
        hint = f"did you mean '{near}'? " if near is not None else ""
        super().__init__(f"unknown {kind} '{name}'; {hint}known: {', '.join(names) or 'none'}")
        self.kind, self.name, self.nearest = kind, name, near


def check_keys(table: Iterable[str], keys: Collection[str], where: str, file: object) -> None:
    """Raise `UnknownNameError` for the first key of a table that is not among the *keys*."""
    for key in table:
        if key not in keys:
            raise UnknownNameError(f"key of {where} in {file}", key, keys)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of *names* that was probably meant: one slip of the fingers away in every three letters, else the most
    alike, such as the whole word of an abbreviation; None where none is.

    Examples
    --------
    >>> nearest("sfj", ["sjf", "spf"]), nearest("cons", ["fcfs", "conservative"]), nearest("qqqq", ["easy"])
    ('sjf', 'conservative', None)
    """
    given = name.lower()
    slips = {known: _slips(given, known.lower()) for known in names}
    alike = {known: difflib.SequenceMatcher(None, known.lower(), given).ratio() for known in slips}
    order = sorted(slips, key=lambda known: (slips[known], -alike[known], known))
    if order and slips[order[0]] <= max(len(name) // 3, 1) and alike[order[0]]:
        return order[0]
    likest = max(order, key=lambda known: (known.lower().startswith(given), alike[known]), default=None)
    return likest if likest is not None and alike[likest] >= _ALIKE else None


_ALIKE = 0.4
"""Share of letters in common below which a name is like no other."""


def _slips(one: str, other: str) -> int:
    """Letters left out, added, mistaken or exchanged with their neighbour between two words (optimal alignment)."""
    above, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, above, row = above, row, [i]
        for j, there in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != there)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


class PolicyError(GridsimError):
    """A policy decided something impossible: the cluster refuses it, whichever policy it was."""


class CheckFailed(GridsimError):
    """A check that the user asked for did not pass (exit code 1)."""

    exit_code = 1


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
    import traceback  # not needed for --help

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
