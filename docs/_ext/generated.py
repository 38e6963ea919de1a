"""Directives that write what the program says of itself: verbs, policies, metrics, damaged lines, violations.

Nothing that can be asked of the program is written by hand in the pages.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import modelled
from docutils import nodes
from docutils.parsers.rst import Directive
from pygments.lexers.shell import BashSessionLexer
from sphinx.application import Sphinx

from gridsim import registry
from gridsim.cli.arguments import add_arguments
from gridsim.cli.list import KINDS as LISTED
from gridsim.cli.terminal import LOOPS
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.summary import (
    CLASS_METRICS,
    COMPARISON_METRICS,
    DEADLINE_METRICS,
    METRICS,
    PREEMPTION_METRICS,
    RESOURCE_METRICS,
    Metric,
)
from gridsim.model.network import Network
from gridsim.policy.presets import PRESETS
from gridsim.testing.schedule_reader import ALIASES
from gridsim.testing.violation import DEMAND_KINDS, PIECE_KINDS
from gridsim.testing.violation import KINDS as VIOLATIONS
from gridsim.workload.problems import KINDS as PROBLEMS
from gridsim.workload.problems import RULES, option

EXAMPLES = Path(__file__).parents[2] / "scenarios" / "examples"

_MARKED = re.compile(r"``(.+?)``|`(.+?)`|\*\*(.+?)\*\*|\*(\S.*?)\*")


def inline(text: str) -> list[nodes.Node]:
    """Text of a docstring or help line: backticks and asterisks as they mean."""
    found: list[nodes.Node] = []
    last = 0
    for match in _MARKED.finditer(text):
        found.append(nodes.Text(text[last : match.start()]))
        double, single, strong, emphasis = match.groups()
        if double or single:
            found.append(nodes.literal(text=double or single))
        else:
            found.append(nodes.strong(text=strong) if strong else nodes.emphasis(text=emphasis))
        last = match.end()
    return [*found, nodes.Text(text[last:])]


def paragraph(text: str) -> nodes.paragraph:
    """One paragraph."""
    return nodes.paragraph("", "", *inline(text))


def definitions(rows: Iterable[tuple[str, Sequence[str]]]) -> nodes.definition_list:
    """Terms, each with paragraphs that define it."""
    found = nodes.definition_list()
    for term, texts in rows:
        body = nodes.definition("", *(paragraph(text) for text in texts if text))
        found += nodes.definition_list_item("", nodes.term("", "", *inline(term)), body)
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> nodes.table:
    """Rows of cells below a header."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(widths))
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group, classes=["generated"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", paragraph(cell)) for cell in cells))


# -- what the program says of itself -----------------------------------------------------------------------------------


def problems() -> Iterator[nodes.Node]:
    """Damaged or impossible lines, each with its rules."""
    for kind in PROBLEMS.values():
        rules = ", ".join(f"`{rule}`" for rule in kind.rules)
        repair = f" `repair`: {kind.repair}." if kind.repair else ""
        yield definitions(
            [(f"`{option(kind.name, '…')}`", [kind.meaning, f"Rules: {rules}; default `{kind.default}`.{repair}"])]
        )


def rules() -> Iterator[nodes.Node]:
    """What each rule does."""
    yield table(("rule", "effect"), ((f"`{name}`", text) for name, text in RULES.items()), (15, 85))


def metrics() -> Iterator[nodes.Node]:
    """Every number of ``metrics.json``."""
    yield _of_metrics({**METRICS, **COMPARISON_METRICS})


def deadline_metrics() -> Iterator[nodes.Node]:
    """Those that it holds besides where there are deadlines or promises."""
    yield _of_metrics(DEADLINE_METRICS)


def preemption_metrics() -> Iterator[nodes.Node]:
    """Those that it holds besides where the policy preempts."""
    yield _of_metrics({**PREEMPTION_METRICS, **CLASS_METRICS})


def resource_metrics() -> Iterator[nodes.Node]:
    """Those that it holds besides of machines of nodes and pools."""
    yield _of_metrics(RESOURCE_METRICS)


def _of_metrics(metrics: Mapping[str, Metric]) -> nodes.table:
    rows = ((f"`{name}`", it.unit, it.better or "", it.description) for name, it in metrics.items())
    return table(("name", "unit", "better", "description"), rows, (28, 12, 10, 50))


def dag_metrics() -> Iterator[nodes.Node]:
    """Every number of a schedule of DAG jobs."""
    rows = (
        (f"`{name}`", it.unit, it.better or "", ", ".join(it.classes), it.description)
        for name, it in DAG_METRICS.items()
    )
    yield table(("name", "unit", "better", "shows", "description"), rows, (26, 12, 9, 15, 38))


def network() -> Iterator[nodes.Node]:
    """Keys of the table ``network`` of a platform, with their defaults: the parameters of `Network`."""
    text = inspect.cleandoc(Network.__doc__ or "").split("Parameters\n----------\n")[1].split("\n\n")[0]
    parameters = re.findall(r"^(\w+) : (.*)\n((?:    .*\n?)+)", text, re.MULTILINE)
    defaults = {each.name: each.default for each in fields(Network) if each.init}
    rows = (
        (f"`network.{name}`", " ".join(told.split()), f"`{_shown(defaults[name])}`") for name, _, told in parameters
    )
    yield table(("key", "meaning", "default"), rows, (28, 57, 15))


def violations() -> Iterator[nodes.Node]:
    """Every kind of violation that ``validate`` finds."""
    kinds = {**VIOLATIONS, **PIECE_KINDS, **DEMAND_KINDS}
    yield table(("kind", "meaning"), ((f"`{name}`", text) for name, text in kinds.items()), (25, 75))


def columns() -> Iterator[nodes.Node]:
    """Names that a column of another program's schedule may have."""
    rows = ((f"`{name}`", ", ".join(f"`{alias}`" for alias in aliases)) for name, aliases in ALIASES.items())
    yield table(("column", "accepted names"), rows, (15, 85))


def presets() -> Iterator[nodes.Node]:
    """Named compositions."""
    rows = ((f"`{name}`", [_sourced(it.summary, it.source), f"`{it.spec}`"]) for name, it in PRESETS.items())
    yield definitions(rows)


def registered(kind: str) -> Iterator[nodes.Node]:
    """Classes of a kind, with their parameters."""
    yield definitions(_entry(row) for row in registry.describe(kind))


def _entry(row: dict[str, Any]) -> tuple[str, list[str]]:
    term = ", ".join(f"`{name}`" for name in (row["name"], *row["aliases"]))
    required = row.get("required", ())
    values = ", ".join(
        f"`{name}=…`" if name in required else f"`{name}={_shown(value)}`" for name, value in row["parameters"].items()
    )
    return term, [_sourced(row["summary"], row["source"]), f"Parameters: {values}." if values else ""]


def _sourced(summary: str, source: str) -> str:
    return f"{summary} [{source}]" if source else summary


def _shown(value: object) -> str:
    """A default as a user would type it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return registry.name_of(type(value)) if hasattr(value, "__dataclass_fields__") else str(value)


def recipes() -> Iterator[nodes.Node]:
    """Recipes of the project, each with the question that it answers; those of campaigns are on their own page."""
    rows = []
    for path in sorted(path for path in EXAMPLES.glob("*.toml") if not path.name.startswith("campaign-")):
        lines = path.read_text(encoding="utf-8").splitlines()
        comment = [line.lstrip("# ") for line in itertools.takewhile(lambda line: line.startswith("#"), lines)]
        rows.append((f"`{path.name}`", [" ".join(comment)]))
    yield definitions(rows)


# -- what is modelled --------------------------------------------------------------------------------------------------


def combinations() -> Iterator[nodes.Node]:
    """Kinds of jobs on kinds of machines, under a policy of each kind: the results of small simulations."""
    rows = ([jobs, machine, *results] for jobs, machine, results in modelled.combinations())
    yield table(("jobs", "machine", *modelled.POLICIES), rows, (12, 12, *[13] * len(modelled.POLICIES)))


def not_modelled() -> Iterator[nodes.Node]:
    """Features that are refused."""
    items = (nodes.list_item("", paragraph(what)) for what in modelled.missing())
    yield nodes.bullet_list("", *items)


def slurm_keywords() -> Iterator[nodes.Node]:
    """Keywords of Slurm's files: the number of modelled ones, and those that results report as not modelled."""
    rows = (
        (f"`{section}`", str(len(known)), ", ".join(f"`{word}`" for word in reported) or "none")
        for section, known, reported in modelled.keywords()
    )
    yield table(("line or list", "modelled", "not modelled, and reported"), rows, (20, 10, 70))


def compile_times() -> Iterator[nodes.Node]:
    """CPU time to compile each group of loops, as the message before it says."""
    rows = ((what, f"{seconds} s") for what, seconds in LOOPS.values())
    yield table(("loops", "about"), rows, (40, 20))


def counts() -> Iterator[nodes.Node]:
    """Kinds of plug-ins, each with the names of its members."""
    rows = (
        (f"{kind.replace('_', ' ')} ({len(names)})", ", ".join(f"`{name}`" for name in names))
        for kind, names in modelled.plugins()
    )
    yield table(("kind", "names"), rows, (20, 80))


# -- verbs -------------------------------------------------------------------------------------------------------------


def verb(name: str) -> Iterator[nodes.Node]:
    """Usage and options of a verb, and of the verbs below it."""
    parser = argparse.ArgumentParser(prog=f"gridsim {name}")
    add_arguments(parser, name)
    yield from _usage(parser)


def _usage(parser: argparse.ArgumentParser) -> Iterator[nodes.Node]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield nodes.literal_block(text=_short_usage(parser), language="text")
    for group in parser._action_groups:
        options = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        options = [
            action for action in options if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
        ]
        if options:
            yield nodes.rubric(text=_title(group.title))
            yield definitions((_names(action), [_help(action)]) for action in options)
    for action in below:
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, sub in action.choices.items():
            yield nodes.rubric(text=sub.prog, classes=["subverb"])
            yield paragraph(helps[name][:1].upper() + helps[name][1:] + ".")
            yield from _usage(sub)


def _title(title: str | None) -> str:
    titles = {"positional arguments": "Arguments", "options": "Options"}
    return titles.get(title or "", (title or "")[:1].upper() + (title or "")[1:])


def _short_usage(parser: argparse.ArgumentParser) -> str:
    """One line: the options are listed below it."""
    words = [parser.prog]
    for action in parser._get_positional_actions():
        word = action.metavar or action.dest.upper()
        words.append(
            {"?": f"[{word}]", "*": f"[{word} …]", "+": f"{word} [{word} …]"}.get(str(action.nargs), str(word))
        )
    return " ".join([*words, "[options]"])


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest.upper()}`"
    value = ""
    if action.nargs != 0:
        value = " " + str(
            action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
        )
    return f"`{', '.join(action.option_strings)}{value}`"


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return text[:1].upper() + text[1:]


WRITERS: dict[str, Callable[..., Iterator[nodes.Node]]] = {
    "problems": problems,
    "rules": rules,
    "metrics": metrics,
    "deadline-metrics": deadline_metrics,
    "preemption-metrics": preemption_metrics,
    "resource-metrics": resource_metrics,
    "dag-metrics": dag_metrics,
    "network": network,
    "violations": violations,
    "columns": columns,
    "presets": presets,
    "recipes": recipes,
    "verb": verb,
    "combinations": combinations,
    "not-modelled": not_modelled,
    "slurm-keywords": slurm_keywords,
    "counts": counts,
    "compile-times": compile_times,
    **{
        kind: lambda kind=kind: registered(kind.removesuffix("s"))
        for kind in LISTED
        if kind not in ("policies", "metrics", "problems")
    },
}


class Generated(Directive):
    """``{generated} metrics``, ``{generated} verb compare`` …"""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, *rest = self.arguments
        return list(WRITERS[name](*rest))


class Console(BashSessionLexer):  # type: ignore[misc]  # pygments is untyped
    """Commands after ``$ `` and their output; a line that begins with a per-cent sign is output."""

    name = "console"
    aliases = ()
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")
    _venv = re.compile(r"(?!)")  # a bracket at the beginning of a line names no environment


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the lexer."""
    app.add_directive("generated", Generated)
    app.add_lexer("console", Console)
    return {"parallel_read_safe": True}
