"""Commands and their options, as defined in ``arguments.toml``, and parsing of times."""

from __future__ import annotations

import re
import tomllib
from argparse import ArgumentParser, ArgumentTypeError, _ActionsContainer
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError, nearest
from gridsim.workload.problems import parse_rule

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PARTS = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)")


def duration(text: str, field: str) -> float:
    """Return the seconds in ``7200``, ``90m``, ``2h``, ``3d4h``, ``2:00:00`` or ``1-12:00:00`` (days first).

    Raises
    ------
    InputError
        With *field*, for any other text.

    Examples
    --------
    >>> duration("2h", "walltime"), duration("3d4h", "walltime"), duration("1-12:00:00", "walltime")
    (7200.0, 273600.0, 129600.0)
    """
    if _PARTS.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhdw])", text))
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(86_400 * days + 3600 * hours + 60 * minutes + seconds)
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    raise InputError(f"'{text}' is no duration; expected such as 7200, 90m, 2h, 3d4h or 2:00:00", field=field)


def instant(text: str, field: str, provenance: Mapping[str, Any]) -> float:
    """Return an instant in seconds of the log's clock, from a duration, or from a date if the log has dates.

    Parameters
    ----------
    provenance : mapping
        Provenance of the workload.

    Raises
    ------
    InputError
        With *field*, for any other text, and for a date if the log has no dates.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            return duration(text, field)
        except InputError as error:
            raise InputError(
                f"'{text}' is no instant; expected such as 183600, 51h, 2d3h or 1996-07-01T12:00", field=field
            ) from error
    from gridsim.model.dates import UNDATED, calendar_of  # numpy: not needed for --help

    calendar = calendar_of(provenance)
    if calendar is None:
        why = (
            "has none, as its arrivals were moved"
            if provenance.get(UNDATED)
            else "does not say when it began (UnixStartTime)"
        )
        raise InputError(f"'{text}' is a date, but the log {why}", field=field)
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"'{text}' is no date; expected such as 1996-07-01T12:00", field=field) from error
    return calendar.seconds(date)


@cache
def declared() -> dict[str, Any]:
    """Return the tables ``command``, ``group``, ``set`` and ``option`` of the file."""
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        return tomllib.load(file)


def add_arguments(parser: ArgumentParser, command: str) -> None:
    """Add options and subcommands of a command, such as ``compare`` or ``workload slice``, to a parser."""
    commands = declared()["command"]
    it = commands[command]
    _add(parser, it.get("options", ()))
    for name in it.get("groups", ()):
        group = declared()["group"][name]
        _add(parser.add_argument_group(group["title"], group.get("description")), group["options"])
    parser.usage = it.get("usage")
    parser.set_defaults(**dict.fromkeys(it.get("unset", ())), **it.get("defaults", {}))
    if names := [name for name in commands if name.startswith(f"{command} ")]:
        verbs = parser.add_subparsers(title="what to do", dest="action", metavar="ACTION", required=True)
        for name in names:
            add_arguments(verbs.add_parser(name.split()[1], help=commands[name]["summary"]), name)


def check_words(words: Sequence[str]) -> None:
    """Check the command and the names of the options on a command line.

    Raises
    ------
    UnknownNameError
        For an unknown command.
    InputError
        For an option that the command does not have, with the new name of a renamed option or the most similar name.

    Examples
    --------
    >>> check_words(["quote", "--walltime", "2h", "--cores", "4"])
    >>> check_words(["compare", "--cores=4"])
    Traceback (most recent call last):
        ...
    gridsim.errors.InputError: the option --cores was renamed; give --machine N (see gridsim compare --help)
    """
    command = ""
    for name in [word for word in words if not word.startswith("-")][:2]:
        below = [it.split()[-1] for it in declared()["command"] if it.rpartition(" ")[0] == command]
        if below and name not in below:
            raise UnknownNameError(f"command of gridsim {command}" if command else "command", name, below)
        command = f"{command} {name}" if command and below else command or name
    known = [it.split("/")[0] for it in options_of(command)] + ["--help", *([] if command else ["--version"])]
    for name in [word.partition("=")[0] for word in words if word.startswith("--") and word != "--"]:
        if not any(it.startswith(name) for it in known):
            new, near = _renamed(name, command, known), nearest(name[2:], [it[2:] for it in known if it.startswith("--")])
            hint = "" if near is None else f"; did you mean --{near}?"
            what = f"unknown option {name}{hint}" if new is None else f"the option {name} was renamed; give {new}"
            raise InputError(f"{what} (see {f'gridsim {command}'.strip()} --help)")


def options_of(command: str) -> list[str]:
    """Return the names of the options of a command, with their variants; none for an unknown command."""
    it = declared()["command"].get(command, {})
    names = [*it.get("options", ()), *(name for group in it.get("groups", ()) for name in declared()["group"][group]["options"])]
    sets = [declared()["set"][name[1:]] if name.startswith("@") else name.split(" | ") for name in names]
    return [name for found in sets for name in found]


def _renamed(name: str, command: str, known: Sequence[str]) -> str | None:
    """Return the new form of an option that was renamed in a command, else None."""
    for old, new in declared()["renamed"].items():
        was, _, of = old.partition("/")
        found = re.fullmatch(was.replace("KIND", "(?P<kind>.+)"), name)
        if found and of in ("", command) and new.split()[0] in known:
            return str(new.replace("KIND", found["kind"]) if "KIND" in was else new)
    return None


def _add(to: _ActionsContainer, names: Sequence[str]) -> None:
    for name in names:
        if name.startswith("@"):
            _add(to, declared()["set"][name[1:]])
        elif " | " in name:
            _add(to.add_mutually_exclusive_group(required=True), name.split(" | "))
        else:
            to.add_argument(name.split("/")[0], **_fields(name))


def _fields(name: str) -> dict[str, Any]:
    """Return the fields of an option for ``add_argument``."""
    options = declared()["option"]
    fields = {**options[name.split("/")[0]], **options[name]}
    if "type" in fields:
        fields["type"] = _TYPES.get(fields["type"])
    return {key: value for key, value in fields.items() if value is not False and value is not None}


def _rule(text: str) -> tuple[str, str]:
    """Return the kind and the rule in ``zero-runtime=repair``."""
    try:
        return parse_rule(text)
    except InputError as error:
        raise ArgumentTypeError(error.message) from error


def _duration(text: str) -> float:
    """Return the seconds in ``90``, ``15m``, ``12h``, ``2d`` or ``1w``."""
    try:
        return duration(text, "duration")
    except InputError as error:
        raise ArgumentTypeError(error.message) from error


def _bound(text: str) -> float:
    """Return a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"'{text}' is no bound; expected seconds above 0, such as 10")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"'{text}' is no number of processes; expected 1 or more")
    return int(text)


def _output(text: str) -> str:
    return "/dev/stdout" if text == "-" else text


_TYPES = {
    "int": int,
    "float": float,
    "path": Path,
    "duration": _duration,
    "bound": _bound,
    "count": _count,
    "output": _output,
    "rule": _rule,
}
