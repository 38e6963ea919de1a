"""Command ``gridsim verify``: conformance cases, one row per case."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from gridsim.errors import GridsimError, InputError

_SHOWN = 6
"""Number of differences shown per case."""

_WIDTH = 120
"""Number of characters shown of unsupported features."""


def run(args: argparse.Namespace) -> int:
    """Check every case; return 0 only if all pass."""
    from gridsim.testing.conformance import (  # numpy, kernels: not needed for --help
        CASES,
        Outcome,
        case_files,
        check,
        family,
        read_case,
    )

    counts = {"passed": 0, "failed": 0, "unsupported": 0}
    rows: list[dict[str, Any]] = []
    for path in case_files(args.paths or [CASES]):
        case: dict[str, Any] = {}
        try:
            case = read_case(path)
            outcome = check(case, path=path)
        except GridsimError as error:  # an invalid case must not hide the verdicts of the others
            place = "" if isinstance(error, InputError) and error.path == path else f"{path}: "
            outcome = Outcome.malformed(f"{place}{error}")
        counts[outcome.status] += 1
        name = str(case.get("name") or case.get("id") or path.stem)
        if args.json:
            rows.append({"path": str(path), "family": family(case), "name": name, **outcome.to_json()})
            continue
        print(f"{outcome.status:<11}  {family(case):<18}  {name:<34}  {outcome.summary}", end="")
        first, *others = outcome.messages or ("",)
        if outcome.status == "failed":
            others = [first, *others]
            print()
            for message in others[:_SHOWN]:
                print(f"    {message}")
            if len(others) > _SHOWN:
                print(f"    … and {len(others) - _SHOWN} more")
        else:
            more = f" (and {len(others)} more)" if others else ""
            print(f"; {textwrap.shorten(first, _WIDTH, placeholder=' …')}{more}" if first else "")
    if args.json:
        print(json.dumps({"cases": rows, **counts}, indent=1))
    else:
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['unsupported']} unsupported")
    return 0 if counts["passed"] and not counts["failed"] and not counts["unsupported"] else 1
