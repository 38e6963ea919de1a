"""Command ``gridsim completion``: a static script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from gridsim.errors import installed


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    shtab = installed("shtab", "completion needs shtab")
    from gridsim.cli import VERBS, build_parser

    files = {"file": shtab.FILE, "directory": shtab.DIRECTORY}
    parser = build_parser(*VERBS, advanced=True)
    for action in _actions(parser):
        if (completed := vars(action).get("completed")) is not None:
            vars(action)["complete"] = files[completed]
    print(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return the options and arguments of a parser and its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
