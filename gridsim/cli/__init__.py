"""Command line: one module per command, imported only for the given command."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import importlib.metadata
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from gridsim.cli.arguments import Help, add_arguments, add_command, check_names, declared
from gridsim.errors import GridsimError

__all__ = ["main"]

VERBS = {name: it["summary"] for name, it in declared()["command"].items() if " " not in name}


class _Parser(argparse.ArgumentParser):
    """Argument parser that accepts ``-10%`` as a value, like ``-10``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"^-(\d+|\d*\.\d+)%?(,.*)?$")


class _Version(argparse.Action):
    """Print the version, which is determined only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"gridsim {importlib.metadata.version('gridsim-hpc')}")
        parser.exit()


def build_parser(*loaded: str, advanced: bool = False) -> argparse.ArgumentParser:
    """Return a parser with all command names and the arguments of the *loaded* commands."""
    parser = _Parser(
        prog="gridsim",
        usage="gridsim COMMAND ...",
        description="Simulate scheduling policies on a job log, and compare their effects on users.",
        epilog="""Start with: gridsim compare    (a built-in workload; no data needed)
gridsim help COMMAND prints the options of a command.""",
        formatter_class=Help,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = parser.add_subparsers(title="commands", dest="verb", metavar="COMMAND", required=True)
    for name, summary in VERBS.items():
        below = add_command(verbs, name, summary)
        if name in loaded:
            module = importlib.import_module(f"gridsim.cli.{name}")
            add_arguments(below, name, advanced=advanced)
            below.set_defaults(run=module.run)
            if hasattr(module, "describe"):
                module.describe(below)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code: 0 done, 1 a check failed, 2 invalid input or usage."""
    words = [*(sys.argv[1:] if argv is None else argv)] or ["--help"]
    if words[0] == "help":
        words = [*words[1:], "--help"]
    verbs = [word for word in words if not word.startswith("-")][:1]
    usual, warnings.formatwarning = warnings.formatwarning, _one_line
    try:
        check_names(words)
        args = build_parser(*verbs, advanced="--help-all" in words).parse_args(words)
        code: int = args.run(args)
        sys.stdout.flush()  # detects a closed pipe here, not at interpreter exit
    except GridsimError as error:
        print(f"gridsim: error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _discard_output()  # the remaining output has no reader, which is not an error
        return 0
    except OSError as error:
        if error.filename is None:  # errors of files contain the name (`gridsim.files.naming`)
            if error.errno not in _OUTPUT_FAILS:
                raise
            _discard_output()
        print(f"gridsim: error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        if argv is None:  # in a separate process, a second Ctrl-C ends it immediately without a traceback
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        state = stop.args[0] if stop.args else "no incomplete file was left"
        print(f"gridsim: interrupted; {state}", file=sys.stderr)
        return 130
    finally:
        warnings.formatwarning = usual
    return code


_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing to standard output."""


def _discard_output() -> None:
    """Discard the remaining standard output."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(message: Warning | str, *_: Any, **__: Any) -> str:
    """Return a warning as the command line prints it, without the source line."""
    return f"gridsim: warning: {message}\n"
