"""``gridsim list``: what can be named, with its parameters and where it comes from."""

from __future__ import annotations

import argparse
import json
from dataclasses import is_dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from gridsim import registry
from gridsim.errors import UnknownNameError
from gridsim.policy.presets import PRESETS, Preset

__all__ = ["add_arguments", "run"]

KINDS = ("policies", "schedulers", "orderings", "reservations", "balancers", "admissions", "models", "transforms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("kind", nargs="?", metavar="KIND|FILE.py", help=f"only these ({', '.join(KINDS)}), or a file's")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print a table a kind."""
    if args.kind and args.kind.endswith(".py"):
        tables = {args.kind: registry.describe_file(args.kind)}
    elif args.kind and args.kind not in KINDS:
        raise UnknownNameError("kind", args.kind, KINDS)
    else:
        tables = {"policies": [{"name": name, **_preset(PRESETS[name])} for name in PRESETS]}
        tables |= {kind: registry.describe(kind[:-1]) for kind in KINDS[1:]}
        tables = {args.kind: tables[args.kind]} if args.kind else tables
    if args.json:
        print(json.dumps(tables, indent=1, default=repr))
        return 0
    console = Console(highlight=False)
    for kind, rows in tables.items():
        table = Table(title=kind, title_justify="left", box=None, padding=(0, 2, 0, 0), title_style="bold")
        for column in ("name", "parameters", "what it does"):
            table.add_column(column, overflow="fold")
        for row in rows:
            name = ", ".join([row["name"], *row["aliases"]])
            parameters = "\n".join(
                f"{key}={'…' if key in row['required'] else _shown(value)}" for key, value in row["parameters"].items()
            )
            parameters = row.get("spec") or parameters
            source = f" [{row['source']}]" if row["source"] else ""
            table.add_row(name, parameters, f"{row['summary']}{source}".replace("[", r"\["))
        console.print(table)
        console.print()
    if not args.kind:
        console.print(
            "A policy is a preset, a scheduler with parameters (easy?ordering=sjf), a bare ordering (nobody passes a "
            "blocked head), or a class in a file of your own: --policy file.py:Class",
            markup=False,
        )
    return 0


def _preset(preset: Preset) -> dict[str, Any]:
    return {
        "kind": "policy",
        "aliases": [],
        "parameters": {},
        "required": [],
        "spec": preset.spec,
        "summary": preset.summary,
        "source": preset.source,
    }


def _shown(value: object) -> str:
    """A default as a user would type it."""
    return registry.name_of(type(value)) if is_dataclass(value) else str(value).lower() if value is None else str(value)
