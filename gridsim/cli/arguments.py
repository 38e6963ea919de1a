"""Commands and their options, as defined in ``arguments.toml``, and parsing of times."""

from __future__ import annotations

import re
import textwrap
import tomllib
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    HelpFormatter,
    _ActionsContainer,
)
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError, is_not_modelled, nearest, not_modelled
from gridsim.model.dates import duration
from gridsim.workload.problems import Problems


@cache
def declared() -> dict[str, Any]:
    """Return the tables ``command``, ``group``, ``set`` and ``option`` of the file."""
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        return tomllib.load(file)


GROUPS = ("input", "machine", "policies", "questions", "output", "advanced", "failures")
"""Groups of options in the order of the help."""

_HIDDEN = ("advanced", "failures")
"""Groups that only --help-all prints."""


class Help(HelpFormatter):
    """Help with the value of an option once, ``-o, --out DIR``, and lines that are only broken at spaces."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._action_max_length = 13  # the names of commands fit on their line

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(textwrap.fill(line, width, initial_indent=indent) for line in text.splitlines())

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def add_arguments(parser: ArgumentParser, command: str, *, advanced: bool = True) -> None:
    """Add options and subcommands of a command, such as ``compare`` or ``workload slice``, to a parser.

    Parameters
    ----------
    advanced : bool
        Whether the help contains the advanced options, and the details of all options.
    """
    commands = declared()["command"]
    it = commands[command]
    options = [(name, _fields(name.split(" | ")[0])["group"]) for name in _expanded(it.get("options", ()))]
    if hidden := [name for name, group in options if group in _HIDDEN]:
        text = f"print also the {len(hidden)} advanced options, and details"
        parser.add_argument("--help-all", action="help", help=text)
    for group in GROUPS:
        if names := [name for name, of in options if of == group]:
            shown = advanced or group not in _HIDDEN
            _add(parser.add_argument_group(group) if shown else parser, names, advanced=advanced, shown=shown)
    parser.formatter_class = Help
    parser.usage = it.get("usage")
    if examples := it.get("examples"):
        parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in examples)
    parser.set_defaults(**dict.fromkeys(it.get("unset", ())))
    if names := [name for name in commands if name.startswith(f"{command} ")]:
        verbs = parser.add_subparsers(title="commands", dest="action", metavar="COMMAND", required=True)
        for name in names:
            add_arguments(add_command(verbs, name, commands[name]["summary"]), name, advanced=advanced)


def add_command(commands: Any, name: str, summary: str) -> ArgumentParser:
    """Add the parser of a command, such as ``compare`` or ``workload slice``, that its summary describes."""
    described = {"help": summary, "description": f"{summary[0].upper()}{summary[1:]}."}
    below: ArgumentParser = commands.add_parser(name.split()[-1], prog=f"gridsim {name}", **described)
    return below


def check_names(words: Sequence[str]) -> None:
    """Check the command and the names of the options on a command line.

    Raises
    ------
    UnknownNameError
        For an unknown command.
    InputError
        For an option that the command does not have, with the new name of a renamed option or the most similar name.

    Examples
    --------
    >>> check_names(["quote", "--walltime", "2h", "--cores", "4"])
    >>> check_names(["compare", "--", "--odd-name.swf"])
    >>> check_names(["compare", "--cores=4"])
    Traceback (most recent call last):
        ...
    gridsim.errors.InputError: the option --cores was renamed; give --machine N (see gridsim compare --help)
    """
    if "--" in words:  # what follows are arguments
        words = words[: words.index("--")]
    command = ""
    for name in [word for word in words if not word.startswith("-")][:2]:
        below = [it.split()[-1] for it in declared()["command"] if it.rpartition(" ")[0] == command]
        if below and name not in below:
            raise UnknownNameError(f"command of gridsim {command}" if command else "command", name, below)
        command = f"{command} {name}" if command and below else command or name
    known = [it.split("/")[0] for it in options_of(command)] + ["--help", "--help-all" if command else "--version"]
    for name in [word.partition("=")[0] for word in words if word.startswith("--")]:
        if not any(it.startswith(name) for it in known):
            new = _renamed(name, command, known)
            near = nearest(name[2:], [it[2:] for it in known if it.startswith("--")])
            hint = "" if near is None else f"; did you mean --{near}?"
            what = not_modelled(f"unknown option {name}") if is_not_modelled(name) else f"unknown option {name}{hint}"
            what = what if new is None else f"the option {name} was renamed; give {new}"
            raise InputError(f"{what} (see {f'gridsim {command}'.strip()} --help)")


def options_of(command: str) -> list[str]:
    """Return the names of the options of a command, with their variants; none for an unknown command."""
    names = _expanded(declared()["command"].get(command, {}).get("options", ()))
    return [name for found in names for name in found.split(" | ")]


def _expanded(names: Sequence[str]) -> list[str]:
    """Return names of options, with those of a set instead of its name."""
    sets = ([*declared()["set"][name[1:]]] if name.startswith("@") else [name] for name in names)
    return [name for found in sets for name in found]


def _renamed(name: str, command: str, known: Sequence[str]) -> str | None:
    """Return the new form of an option that was renamed in a command, else None."""
    for old, new in declared()["renamed"].items():
        was, _, of = old.partition("/")
        found = re.fullmatch(was.replace("KIND", "(?P<kind>.+)"), name)
        if found and of in ("", command) and new.split()[0] in known:
            return str(new.replace("KIND", found["kind"]) if "KIND" in was else new)
    return None


def _add(to: _ActionsContainer, names: Sequence[str], *, advanced: bool, shown: bool = True) -> None:
    for name in names:
        if " | " in name:
            _add(to.add_mutually_exclusive_group(required=True), name.split(" | "), advanced=advanced)
            continue
        fields = {key: value for key, value in _fields(name).items() if key != "group"}
        details, completed = fields.pop("details", None), fields.pop("complete", None)
        if details and advanced:
            fields["help"] += f"; {details}"
        if not shown:
            fields["help"] = SUPPRESS
        short = [it] if (it := fields.pop("short", None)) else []
        vars(to.add_argument(*short, name.split("/")[0], **fields))["completed"] = completed


def _fields(name: str) -> dict[str, Any]:
    """Return the fields of an option."""
    options = declared()["option"]
    fields = {**options[name.split("/")[0]], **options[name]}
    if "type" in fields:
        fields["type"] = _TYPES.get(fields["type"])
    return {key: value for key, value in fields.items() if value is not False and value is not None}


def _rule(text: str) -> tuple[str, str]:
    """Return the kind and the rule in ``zero-runtime=repair``."""
    kind, equals, rule = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"'{text}' has no rule; expected KIND=RULE, such as zero-runtime=repair")
    try:
        Problems({kind: rule})
    except InputError as error:
        raise ArgumentTypeError(error.message) from error
    return kind, rule


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
        raise ArgumentTypeError(f"'{text}' is not a bound; expected seconds above 0, such as 10")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"'{text}' is not a whole number; expected 1 or more")
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
