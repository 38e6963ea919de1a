"""Damaged or impossible lines: their kinds, the rules for each kind, and the counts.

One table (`KINDS`, in ``problems.toml``) defines the kinds. Readers take rules from it, ``gridsim list
problems`` prints it, ``run.json`` records it, and the page on damaged logs is generated from it. This module reads no
log and does not import numpy, so that building the command line stays fast.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, require_known

SHOWN_LINES = 5
"""Number of line numbers kept per kind, enough to inspect the log."""

RULES: Mapping[str, str] = {
    "keep": "Keep the line unchanged; count and simulate it.",
    "repair": "Correct the wrong value as described for the kind, and keep the job.",
    "sum": "Like `repair`, but add the values that the kind describes.",
    "skip": "Leave the job out of the workload and count it.",
    "error": "Stop at the first such line, with exit code 2.",
}
"""Effect of each rule."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A named kind of damaged or impossible line.

    Attributes
    ----------
    name : str
        Name in kebab case.
    meaning : str
        Description of such a line, and the reason why it is not simulated as it is.
    expected : str
        Expected content of a correct line; ends the error message.
    rules : tuple of str
        Names of `RULES` that apply to it.
    default : str
        Default rule.
    repair : str
        Effect of ``repair`` on the job, empty if the kind has no such rule.
    total : str
        Effect of ``sum`` on the job.
    """

    name: str
    meaning: str
    expected: str
    rules: tuple[str, ...]
    default: str
    repair: str = ""
    total: str = ""

    def done(self, rule: str) -> str:
        """Return the outcome of the lines under *rule*, in a few words."""
        done = {"skip": "left out", "keep": "kept unchanged", "sum": f"repaired: {self.total}"}
        return done.get(rule, f"repaired: {self.repair}" if rule == "repair" else rule)


def _kinds() -> Iterator[Kind]:
    table = tomllib.loads(Path(__file__).with_name("problems.toml").read_text(encoding="utf-8"))
    for name, entry in table.items():
        rules = tuple(entry.pop("rules"))
        yield Kind(name, rules=rules, **{field: " ".join(text.split()) for field, text in entry.items()})


KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _kinds()}
"""All kinds by name, in the order in which a line is tested. Tests of a line end with the first kind that excludes
it."""


def option(kind: str, rule: str) -> str:
    """Return the option of the command line that sets the rule of a kind.

    Examples
    --------
    >>> option("zero-runtime", "skip")
    '--on zero-runtime=skip'
    """
    return f"--on {kind}={rule}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Lines of one kind in a log: their number, the first line numbers, and the rule applied.

    In a log of several files, line numbers continue from file to file, and `places` gives ``file:line``.
    """

    kind: str
    count: int
    first_lines: tuple[int, ...]
    rule: str
    places: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """Outcome of the lines, in a few words."""
        return KINDS[self.kind].done(self.rule)

    @property
    def shown(self) -> str:
        """Locations of the first lines, with an ellipsis if there are more."""
        places = self.places or tuple(map(str, self.first_lines))
        return ", ".join(places) + (", …" if self.count > len(places) else "")

    def to_json(self) -> dict[str, Any]:
        """Return the entry for `run.json`."""
        entry = {"kind": self.kind, "count": self.count, "first_lines": list(self.first_lines), "rule": self.rule}
        return {**entry, "first_places": list(self.places)} if self.places else entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Problem:
        """Return the problem that `to_json` wrote."""
        places = tuple(entry.get("first_places", ()))
        return cls(entry["kind"], entry["count"], tuple(entry["first_lines"]), entry["rule"], places)


class Problems:
    """Counts of damaged or impossible lines of one log, and the rules for them.

    Parameters
    ----------
    rules : mapping of str to str, optional
        Rules by kind, for kinds with another rule than the default.
    source : object, optional
        File named in errors.

    Raises
    ------
    UnknownNameError
        For an unknown kind, and for a rule that the kind does not permit.

    Examples
    --------
    >>> problems = Problems({"zero-runtime": "repair"})
    >>> problems.found("zero-runtime", [7, 9], value=0)
    'repair'
    >>> list(problems)
    [Problem(kind='zero-runtime', count=2, first_lines=(7, 9), rule='repair', places=())]
    """

    def __init__(self, rules: Mapping[str, str] | None = None, *, source: object = None) -> None:
        self.source = source
        self._files: list[tuple[int, object]] = []
        self._rules = {kind.name: kind.default for kind in KINDS.values()}
        self._found: dict[str, Problem] = {}
        for name, rule in (rules or {}).items():
            require_known("kind of damaged line", KINDS, name)
            require_known(f"rule for {name}", KINDS[name].rules, rule)
            self._rules[name] = rule

    def begin(self, file: object, before: int) -> None:
        """Start another file of the log, after *before* lines in the previous files."""
        self._files.append((before, file))

    def place(self, line: int) -> tuple[object, int]:
        """Return the file of a line, and its line number in the file."""
        before, file = next((each for each in reversed(self._files) if each[0] < line), (0, self.source))
        return file, line - before

    def located(self, error: InputError) -> InputError:
        """Return an error about a line of the whole log, with the file and the line number in it."""
        if error.line is None or error.path not in (None, self.source) or len(self._files) < 2:
            path = self.source if error.path is None else error.path
            return InputError(error.message, path=path, line=error.line, field=error.field)
        path, line = self.place(error.line)
        return InputError(error.message, path=path, line=line, field=error.field)

    def _placed(self, problem: Problem) -> Problem:
        if len(self._files) < 2:
            return problem
        places = (f"{file}:{number}" for file, number in map(self.place, problem.first_lines))
        return replace(problem, places=tuple(places))

    def rule(self, kind: str) -> str:
        """Return the rule for *kind*."""
        return self._rules[kind]

    def found(
        self,
        kind: str,
        lines: Sequence[int],
        *,
        count: int | None = None,
        value: object = None,
        field: str | None = None,
    ) -> str:
        """Count lines of *kind* and return the rule for them.

        Parameters
        ----------
        lines : sequence of int
            Line numbers from 1, ascending; the first `SHOWN_LINES` are enough. Empty if the place is no line.
        count : int, optional
            Number of lines, if *lines* contains only the first ones.
        value : object, optional
            Value on the first of these lines.
        field : str, optional
            Field of that value.

        Raises
        ------
        InputError
            For the first line under the rule ``error``.
        """
        rule = self._rules[kind]
        if rule == "error":
            others = [option(kind, other) for other in KINDS[kind].rules if other != "error"]
            path, line = self.place(int(lines[0])) if lines else (self.source, None)
            raise InputError(
                f"{kind}: found {value}; expected {KINDS[kind].expected}; give {' or '.join(others)} to read on",
                path=path,
                line=line,
                field=field,
            )
        before = self._found.get(kind) or Problem(kind, 0, (), rule)
        first = (*before.first_lines, *(int(line) for line in lines[:SHOWN_LINES]))[:SHOWN_LINES]
        self._found[kind] = Problem(kind, before.count + (len(lines) if count is None else count), first, rule)
        return rule

    def __iter__(self) -> Iterator[Problem]:
        return (self._placed(self._found[name]) for name in KINDS if name in self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, kind: str) -> Problem:
        """Return the problem of *kind*, with a count of 0 if no line was found."""
        return self._placed(self._found.get(kind) or Problem(kind, 0, (), self._rules[kind]))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries for `run.json`, in the order of the table."""
        return [problem.to_json() for problem in self]
