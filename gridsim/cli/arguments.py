"""Commands and their options, as ``arguments.toml`` lists them."""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser, ArgumentTypeError, _ActionsContainer
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gridsim.cli.clock import duration
from gridsim.errors import InputError
from gridsim.workload.problems import KINDS, option

__all__ = ["add_arguments", "declared"]


@cache
def declared() -> dict[str, Any]:
    """Tables ``command``, ``group``, ``set`` and ``option`` of the file."""
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        return tomllib.load(file)


def add_arguments(parser: ArgumentParser, command: str) -> None:
    """Add the options and the commands below it of a command, such as ``compare`` or ``workload slice``."""
    commands = declared()["command"]
    it = commands[command]
    _add(parser, it.get("options", ()))
    for name in it.get("groups", ()):
        group = declared()["group"][name]
        _add(below := parser.add_argument_group(group["title"], group.get("description")), group.get("options", ()))
        if name == "damaged":
            _add_rules(below)
    parser.usage = it.get("usage")
    parser.set_defaults(**dict.fromkeys(it.get("unset", ())), **it.get("defaults", {}))
    if names := [name for name in commands if name.startswith(f"{command} ")]:
        verbs = parser.add_subparsers(title="what to do", dest="action", metavar="ACTION", required=True)
        for name in names:
            add_arguments(verbs.add_parser(name.split()[1], help=commands[name]["summary"]), name)


def _add(to: _ActionsContainer, names: Sequence[str]) -> None:
    for name in names:
        if name.startswith("@"):
            _add(to, declared()["set"][name[1:]])
        elif " | " in name:
            _add(to.add_mutually_exclusive_group(required=True), name.split(" | "))
        else:
            to.add_argument(name.split("/")[0], **_fields(name))


def _fields(name: str) -> dict[str, Any]:
    """Fields of an option, for ``add_argument``."""
    options = declared()["option"]
    fields = {**options[name.split("/")[0]], **options[name]}
    if "type" in fields:
        fields["type"] = _TYPES.get(fields["type"])
    return {key: value for key, value in fields.items() if value is not False and value is not None}


def _add_rules(group: _ActionsContainer) -> None:
    """Add one option for each kind of damaged line."""
    for kind in KINDS.values():
        group.add_argument(
            option(kind.name),
            choices=kind.rules,
            help=f"{kind.meaning.split('. ')[0].rstrip('.')} (default: {kind.default})",
        )


def _duration(text: str) -> float:
    """Seconds of ``90``, ``15m``, ``12h``, ``2d`` or ``1w``."""
    try:
        return duration(text, "duration")
    except InputError as error:
        raise ArgumentTypeError(error.message) from error


def _bound(text: str) -> float:
    """Seconds above 0."""
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
}
