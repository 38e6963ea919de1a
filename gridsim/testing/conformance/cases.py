"""Which family and kind a case is of, who checks it, and how cases are read from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import GridsimError, InputError
from gridsim.schema import check as check_schema
from gridsim.schema import read_json
from gridsim.testing.conformance import availability, charges, deadline, grid, machine, moldable, prediction, ranges
from gridsim.testing.conformance.outcome import Outcome, Unsupported
from gridsim.testing.conformance.schemas import SCHEMAS

CASES = Path(__file__).parents[1] / "cases"
"""Cases that come with gridsim: a folder for each family that is built, with what each case shows."""

WORDS: Mapping[str, Mapping[str, str]] = {
    "deadline-admission": deadline.WORDS,
    "moldable": moldable.WORDS,
    "grid-dag": grid.WORDS,
}
"""Each family's words and gridsim's for the same things: the one table of them."""

_Check = Callable[[Mapping[str, Any]], Outcome]

FAMILIES: Mapping[str, Mapping[str, _Check]] = {
    "deadline-admission": {
        "schedule": deadline.check_schedule,
        "deadline_assignment": deadline.check_deadline_assignment,
        "charges": charges.check_charges,
        "load_expansion": deadline.check_load_expansion,
    },
    "moldable": {
        "schedule": moldable.check_schedule,
        "lublin": moldable.check_lublin,
        "speedup": ranges.check_speedup,
        "range": ranges.check_range,
        "profile": ranges.check_profile,
        "table": ranges.check_table,
        "choices": moldable.check_choices,
        "partition": moldable.check_partition,
        "limits": moldable.check_limits,
    },
    "prediction": {"schedule": prediction.check_schedule},
    "grid-dag": {"schedule": grid.check_schedule, "metrics": grid.check_metrics},
    "machine": {"schedule": machine.check_schedule, "fragmentation": machine.check_fragmentation},
    "availability": {"schedule": availability.check_schedule, "checkpoint": availability.check_checkpoint},
}
"""Kinds of cases in each family, and who checks them."""

NOT_BUILT: Mapping[str, tuple[str, ...]] = {"availability": ("energy", "delay")}
"""Families that are not completely built, and the kinds of cases that only they have."""


def family(case: Mapping[str, Any]) -> str:
    """Family of a case, by its kind and, where families share one, by how it words its platform and parameters."""
    kind = case.get("kind")
    if isinstance(stated := case.get("family"), str):
        return stated
    if kind == "schedule":
        return _of_schedule(case)
    kinds = [*FAMILIES.items(), *NOT_BUILT.items()]
    return next((name for name, known in kinds if kind in known), "unknown")


def _of_schedule(case: Mapping[str, Any]) -> str:
    platform = case.get("platform")
    words = platform if isinstance(platform, Mapping) else {}
    if "processors" in words:
        return "moldable"
    if {"router", "children", "cluster"} & set(words):
        return "grid-dag"
    if {"pools", "nodes"} & set(words):
        return "availability" if _plain_nodes(words.get("nodes")) else "machine"
    return "prediction" if _predicts(case.get("runs")) else "deadline-admission"


def _plain_nodes(nodes: Any) -> bool:
    """Return whether nodes are given as numbers: a count, or the cores of each."""
    return isinstance(nodes, int) or (isinstance(nodes, list) and all(isinstance(node, int) for node in nodes))


def _predicts(runs: Any) -> bool:
    """Return whether any run predicts run times."""
    found = runs if isinstance(runs, list) else []
    parameters = (run.get("parameters") for run in found if isinstance(run, Mapping))
    return any(isinstance(it, Mapping) and "predict" in it for it in parameters)


def check(case: Mapping[str, Any], *, path: Path | None = None) -> Outcome:
    """Compare gridsim's results with those that a case expects.

    Parameters
    ----------
    case : mapping
        The parsed JSON.
    path : Path, optional
        Its file, in which the line of an error is looked up.

    Returns
    -------
    Outcome
        ``passed`` only when everything that the case expects was compared and agrees.

    Raises
    ------
    InputError
        When the case does not match its schema or cannot be run, naming the field, and the file and line where the
        path is given.
    """
    name, kind = family(case), case.get("kind")
    if kind in NOT_BUILT.get(name, ()):
        return Outcome.cannot(f"the kind '{kind}' of the family '{name}' is not supported")
    checks = FAMILIES.get(name, {}).get(str(kind))
    if checks is None:
        return Outcome.cannot(f"unknown kind '{kind}'")
    check_schema(case, SCHEMAS[name][str(kind)], path=path, data=None if path is None else path.read_bytes())
    try:
        return checks(case)
    except Unsupported as reason:
        return Outcome.cannot(f"not supported: {reason}")
    except GridsimError as error:
        raise InputError(
            getattr(error, "message", str(error)), path=path, field=getattr(error, "field", None)
        ) from error
    except Exception as error:  # whatever a malformed case leads to, it is an error of this case alone
        message = f"is not a well-formed case of {name}: {type(error).__name__}: {error}"
        raise InputError(message, path=path) from error


def verify(*paths: str | Path, listener: Callable[[Path, Outcome], None] | None = None) -> dict[Path, Outcome]:
    """Run conformance cases and compare each schedule with the expected one.

    Parameters
    ----------
    *paths : path
        Cases, and folders that are searched for them; by default all cases included in gridsim.
    listener : callable, optional
        Called with each file and its outcome.

    Returns
    -------
    dict of Path to Outcome
        The outcome of each file. A file that is not a valid case is a failed one.

    Raises
    ------
    InputError
        For a path that does not exist, and a folder without cases.

    Examples
    --------
    >>> found = verify(CASES / "prediction")
    >>> {outcome.status for outcome in found.values()}
    {'passed'}
    """
    found = {}
    for path in case_files(paths or [CASES]):
        case: dict[str, Any] = {}
        try:
            case = read_case(path)
            outcome = check(case, path=path)
        except GridsimError as error:  # an invalid case must not hide the verdicts of the others
            place = "" if isinstance(error, InputError) and error.path == path else f"{path}: "
            outcome = Outcome.malformed(f"{place}{error}")
        name = str(case.get("name") or case.get("id") or path.stem)
        found[path] = replace(outcome, family=family(case), name=name)
        if listener is not None:
            listener(path, found[path])
    return found


def read_cases(paths: Iterable[str | Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Cases of files, and of all ``*.json`` below folders, in order of their names.

    Raises
    ------
    InputError
        For a path that is not there, a folder without cases, and a file that is no case, naming file and line.
    """
    return ((path, read_case(path)) for path in case_files(paths))


def case_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """The files of `read_cases`, unread."""
    for path in map(Path, paths):
        if not path.exists():
            raise InputError("no such file or folder; expected a JSON case or a folder of them", path=path)
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not files:
            raise InputError("contains no *.json; expected conformance cases", path=path)
        yield from files


def read_case(path: Path) -> dict[str, Any]:
    """The case in a file; `InputError` where it is none, naming file and line."""
    case: dict[str, Any] = read_json(path, {"kind": str}, "a conformance case")
    return case
