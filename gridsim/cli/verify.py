"""Command ``gridsim verify``: conformance cases, one row per case."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridsim.testing.conformance import Outcome

_SHOWN = 6
"""Number of differences shown per case."""

_WIDTH = 120
"""Number of characters shown of unsupported features."""


def run(args: argparse.Namespace) -> int:
    """Check every case; return 0 only if all pass."""
    from gridsim.testing.conformance import verify  # numpy, kernels: not needed for --help

    found = verify(*args.paths, listener=None if args.json else _tell)
    counted = Counter(outcome.status for outcome in found.values())
    counts = {status: counted[status] for status in ("passed", "failed", "unsupported")}
    if args.json:
        rows = [
            {"path": str(path), "family": each.family, "name": each.name, **each.to_json()}
            for path, each in found.items()
        ]
        print(json.dumps({"cases": rows, **counts}, indent=1))
    else:
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['unsupported']} unsupported")
    return 0 if counts["passed"] and not counts["failed"] and not counts["unsupported"] else 1


def _tell(_: Path, outcome: Outcome) -> None:
    """Print the row of a case."""
    print(f"{outcome.status:<11}  {outcome.family:<18}  {outcome.name:<34}  {outcome.summary}", end="")
    first, *others = outcome.messages or ("",)
    if outcome.status == "failed":
        others = [first, *others]
        print("", *others[:_SHOWN], sep="\n    ")
        if len(others) > _SHOWN:
            print(f"    … and {len(others) - _SHOWN} more")
    else:
        more = f" (and {len(others)} more)" if others else ""
        print(f"; {textwrap.shorten(first, _WIDTH, placeholder=' …')}{more}" if first else "")
