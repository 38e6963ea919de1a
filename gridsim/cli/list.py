"""Command ``gridsim list``: names of plug-ins with parameters and origin."""

from __future__ import annotations

import argparse
import json
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from gridsim import registry
from gridsim.errors import require_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.table import Table

    from gridsim.policy.presets import Preset


KINDS = (
    "policies",
    "schedulers",
    "orderings",
    "reservations",
    "balancers",
    "admissions",
    "heuristics",
    "backfill_orders",
    "predictors",
    "correctors",
    "preemption",
    "placements",
    "partitions",
    "speedups",
    "models",
    "readers",
    "metrics",
    "charges",
    "transforms",
    "mappings",
    "problems",
)


def run(args: argparse.Namespace) -> int:
    """Print the rows of a kind or a file, or the kinds with the number of their names."""
    tables = _tables(args.kind)
    if args.json:
        print(json.dumps(tables, indent=1, default=repr))
        return 0
    if not args.kind:
        print("\n".join(f"{kind:16} {len(rows):3}" for kind, rows in tables.items()))
        print("\ngridsim list KIND shows the names of a kind with their parameters.")
        return 0
    from gridsim.cli.terminal import Terminal  # rich: not needed for --help

    console = Terminal()
    for kind, rows in tables.items():
        console.print(_table(kind, rows))
        console.print()
    if args.kind == "policies":
        console.say(
            "A policy is a preset, a scheduler with parameters (easy?ordering=sjf), an ordering without backfilling, "
            "a variant of --site (site?KEY=VALUE), or a class in a Python file: --policy file.py:Class"
        )
    return 0


def _tables(asked: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return rows by kind, for the requested kind or file, or for all kinds."""
    if asked and asked.endswith(".py"):
        return {asked: registry.describe_file(asked)}
    kinds = [asked] if asked else KINDS
    require_known("kind", KINDS, *kinds)
    return {kind: _rows(kind) for kind in kinds}


def _rows(kind: str) -> list[dict[str, Any]]:
    from gridsim.policy.presets import PRESETS  # numba: not needed for --help

    if kind == "policies":
        return [{"name": name, **_preset(PRESETS[name])} for name in PRESETS]
    if kind == "mappings":
        return list(_mappings())
    if kind == "problems":
        return list(_problems())
    return [*_numbers()] * (kind == "metrics") + registry.describe(kind.removesuffix("s"), own=True)


def _numbers() -> Iterator[dict[str, Any]]:
    """Return the metrics of gridsim."""
    from gridsim.metrics.summary import ALL_METRICS  # numpy: not needed for --help

    for name, it in ALL_METRICS.items():
        summary = f"{it.description} ({it.unit})" if it.unit else it.description
        yield {**_NOTHING, "kind": "metric", "name": name, "summary": summary}


def _mappings() -> Iterator[dict[str, Any]]:
    """Return the presets of table mappings."""
    from gridsim.files import read_toml
    from gridsim.workload.formats.table import presets  # numpy: not needed for --help

    for name, file in presets().items():
        tables = read_toml(file)
        summary = "; ".join(filter(None, (tables["title"], tables.get("unverified"))))
        entry = {"kind": "mapping", "name": name, "summary": summary, "source": tables["source"]}
        yield {**_NOTHING, **entry}


def _problems() -> Iterator[dict[str, Any]]:
    """Return the kinds of damaged lines with their rules."""
    from gridsim.workload.problems import KINDS as PROBLEMS  # only for this kind

    for name, it in PROBLEMS.items():
        outcomes = "".join(f" {rule}: {text}." for rule, text in (("repair", it.repair), ("sum", it.total)) if text)
        told = {"kind": "problem", "name": name, "summary": f"{it.meaning}{outcomes}", "rules": list(it.rules)}
        spec = f"{', '.join(it.rules)} (default: {it.default})"
        yield {**_NOTHING, **told, "default": it.default, "spec": spec}


def _table(kind: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(title=kind, title_justify="left", box=None, padding=(0, 2, 0, 0), title_style="bold")
    for column in ("name", "parameters", "description"):
        table.add_column(column, overflow="fold")
    for row in rows:
        name = ", ".join([row["name"], *row["aliases"]])
        parameters = "\n".join(
            f"{key}={'…' if key in row['required'] else _shown(value)}" for key, value in row["parameters"].items()
        )
        parameters = row.get("spec") or parameters
        parts = [row["source"], "" if row["origin"] == "gridsim" else f"from {row['origin']}"]
        source = f" [{'; '.join(filter(None, parts))}]" if any(parts) else ""
        table.add_row(name, parameters, f"{row['summary']}{source}".replace("[", r"\["))
    return table


def _preset(preset: Preset) -> dict[str, Any]:
    entry = {"kind": "policy", "spec": preset.spec, "summary": preset.summary, "source": preset.source}
    return {**_NOTHING, **entry}


_NOTHING: Mapping[str, Any] = {"aliases": [], "parameters": {}, "required": [], "source": "", "origin": "gridsim"}
"""Fields of entries that are not classes."""


def _shown(value: object) -> str:
    """Return a default value as written in a spec."""
    return registry.name_of(type(value)) if is_dataclass(value) else str(value).lower() if value is None else str(value)
