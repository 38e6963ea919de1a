"""Errors of gridsim.

Each message contains the value, the limit and the correction, for plug-ins also file and line.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn


class GridsimError(Exception):
    """Base class of all errors that gridsim raises on purpose; the command line exits with ``exit_code``."""

    exit_code = 2

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_raised, (type(self), self.args, self.__dict__)  # independent of the constructor's parameters


def _as_raised(kind: type[GridsimError], args: tuple[Any, ...], state: dict[str, Any]) -> GridsimError:
    """Restore an error that was raised in another process."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(GridsimError):
    """Error for invalid input.

    Parameters
    ----------
    message : str
        The value found, the value expected, and the correction.
    path : str, optional
        File that contains the input.
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
    """Raise `InputError` for the first parameter of *owner* that violates its rule (a condition and a description)."""
    for name, (good, expected) in rules.items():
        if not good:
            raise InputError(f"is {getattr(owner, name)}; expected {expected}", field=name)


def check_rows(shown: Callable[[str, int], str], *rules: tuple[str, Any, str], path: object = None) -> None:
    """Raise `InputError` for the first row that violates a rule.

    Parameters
    ----------
    shown : callable
        Returns what a row of a column has, such as ``job 3 has 0``.
    *rules : (str, array of bool, str)
        Column, wrong rows and what is expected.
    path : object
        The file.
    """
    for name, wrong, expected in rules:
        if wrong.any():
            raise InputError(f"{shown(name, int(wrong.argmax()))}; expected {expected}", path=path, field=name)


@contextmanager
def located(
    path: object = None, *, line: int | None = None, field: str | None = None, below: str = ""
) -> Iterator[None]:
    """Add file, line and *field* to errors raised in the block; by default their own field, *below* a key."""
    try:
        yield
    except InputError as error:
        own = field or ".".join(filter(None, (below, error.field))) or None
        raise InputError(error.message, path=path, line=line, field=own) from error


NOT_MODELLED = (
    "carbon contention elastic energy evolving filesystem gang interconnect io malleable migrate migration "
    "oversubscribe power storage temperature thermal topology"
)
"""Words in names of features that gridsim does not model; ``docs/what-is-modelled.md`` lists the features."""


def not_modelled(message: str) -> str:
    """Return the message of an error for something that is not modelled, with the page that lists what is.

    Examples
    --------
    >>> not_modelled("guaranteed deadlines for DAG jobs")
    'guaranteed deadlines for DAG jobs: not modelled (see docs/what-is-modelled)'
    """
    return f"{message}: not modelled (see docs/what-is-modelled)"


def is_not_modelled(name: str) -> bool:
    """Return whether a name contains a word of `NOT_MODELLED`.

    Examples
    --------
    >>> is_not_modelled("--power-cap"), is_not_modelled("priority")
    (True, False)
    """
    return not set(NOT_MODELLED.split()).isdisjoint(re.split(r"[^a-z]+", name.lower()))


_OF_GRIDSIM = re.compile("(policy|scheduler|ordering|transform|parameter)$|parameter of |key of ")
"""Kinds of names that gridsim defines; others, such as partitions and columns, are names in the user's data."""


class UnknownNameError(InputError):
    """Error for a name that is not registered; contains the nearest name and the list of names."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names, unknown = sorted(map(str, known)), f"unknown {kind} '{name}'"
        near = nearest(str(name), names)
        if _OF_GRIDSIM.match(kind) and is_not_modelled(str(name)):
            near, unknown = None, not_modelled(unknown)
        hint = f"did you mean '{near}'? " if near is not None else ""
        super().__init__(f"{unknown}; {hint}known: {', '.join(names) or 'none'}")
        self.kind, self.name, self.nearest = kind, str(name), near


def check_keys(table: Iterable[str], keys: Collection[str], where: str, file: object) -> None:
    """Raise `UnknownNameError` for the first key of a table that is not in *keys*."""
    require_known(f"key of {where} in {file}", keys, *table)


def require_known(kind: str, known: Collection[Any], *names: Any) -> None:
    """Raise `UnknownNameError` for the first of some names of this kind that is not *known*."""
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def installed(module: str, needed: str, path: object = None) -> Any:
    """Return an optional module by the name of its package, or raise an error that begins with *needed*."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"{needed}; pip install {module}", path=path) from error


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant, or None.

    A name with at most one typing error in three letters is preferred, else the most similar one, such as the full
    word of an abbreviation.

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
"""Similarity (share of common letters) below which no name is suggested."""


def _slips(one: str, other: str) -> int:
    """Return the edit distance of two words, with transpositions (optimal alignment)."""
    above, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, above, row = above, row, [i]
        for j, there in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != there)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


class PolicyError(GridsimError):
    """Error for an impossible decision of a policy, detected by the cluster."""


class CheckFailed(GridsimError):
    """Error for a check that failed (exit code 1)."""

    exit_code = 1


_OWN = Path(__file__).parent


def name_of(policy: Any) -> str:
    """Return the ``repr`` of a policy for errors and results, without addresses and with plain files by name."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(policy))
    return re.sub(r"\bgridsim_plugin_(\w+?)_*(?=\.\w)", r"\1", text)  # module of a plain file


def policy_error(policy: Any, problem: str) -> PolicyError:
    """Return the error for a problem of a policy, which the message names."""
    return PolicyError(f"{name_of(policy)} {problem}")


def failed(policy: Any, method: str, error: Exception) -> PolicyError:
    """Return the error for an exception raised in *method* of a policy, with the line outside gridsim that raised it.

    Chain it to the original: ``raise failed(ordering, "rank", error) from error``.
    """
    place = _place_of(error) or _begin_of(policy, method)
    where = f" in line {place[0]} of {place[1]}" if place else ""
    return policy_error(policy, f"failed in {method}{where}: {type(error).__name__}: {error}")


def _place_of(error: Exception) -> tuple[int | None, str] | None:
    """Return line and file of the outermost frame outside gridsim."""
    import traceback  # not needed for --help

    frames = traceback.extract_tb(error.__traceback__)
    outside = (frame for frame in frames if not Path(frame.filename).is_relative_to(_OWN))
    return next(((frame.lineno, frame.filename) for frame in outside), None)


def _begin_of(policy: Any, method: str) -> tuple[int, str] | None:
    """Return the definition of a plug-in's method, since a call with wrong arguments has no frame in the plug-in."""
    function = getattr(type(policy), method, None)
    if isinstance(function, FunctionType) and not Path(function.__code__.co_filename).is_relative_to(_OWN):
        return function.__code__.co_firstlineno, function.__code__.co_filename
    return None


def raise_failed(policy: Any, method: str, error: Exception) -> NoReturn:
    """Raise an exception of a policy's *method* as a `PolicyError` with its location (`failed`).

    Errors of gridsim are raised unchanged, and so are defects of built-in policies if no plug-in is involved.
    """
    own = type(policy).__module__.startswith("gridsim.") and _place_of(error) is None
    if own or isinstance(error, GridsimError):
        raise error
    raise failed(policy, method, error) from error


def call(policy: Any, method: str, *arguments: Any) -> Any:
    """Call *method* of a policy; exceptions are raised by `raise_failed`."""
    try:
        return getattr(policy, method)(*arguments)
    except Exception as error:
        raise_failed(policy, method, error)
