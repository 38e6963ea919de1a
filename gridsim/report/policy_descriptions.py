"""One line per policy that describes it, from its stored composition."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from gridsim import registry
from gridsim.policy.presets import PRESETS, policy
from gridsim.report.markup import texts

_text = texts("page")

_FOLDERS = re.compile(r"""[^\s'"=&,()?]*[/\\](?=[^\s'"=&,()?/\\])""")
"""Folders of a path: all before its last part."""

_FILES = frozenset({"conf", "assoc", "qos", "usage", "groups", "reservations"})
"""Parameters of ``slurm`` that are files."""


def base_names(text: str) -> str:
    """Return a text in which each path is its last part.

    Examples
    --------
    >>> base_names("gridsim compare /data/site.swf -p 'slurm?conf=../etc/slurm.conf' -o out")
    "gridsim compare site.swf -p 'slurm?conf=slurm.conf' -o out"
    """
    return _FOLDERS.sub("", text)


def descriptions(info: Mapping[str, Any]) -> dict[str, str]:
    """Return one line per policy of a comparison, from its ``info``."""
    return {label: description(str(text)) for label, text in info.get("policies", {}).items()}


def description(composition: str) -> str:
    """Return one line that describes a policy, from its ``repr``: a preset and the parameters that differ from it.

    Examples
    --------
    >>> description("Backfilling(ordering=Fifo(), reserve=Easy())")
    'Aggressive backfilling: only the first job in the queue has a reservation.'
    >>> description("Backfilling(ordering=LargestCores(), reserve=Easy())")
    'Aggressive backfilling: only the first job in the queue has a reservation. Ordering: most cores first.'
    >>> description("Backfilling(ordering=Fifo(), reserve=Depth(k=4))")
    'The first k blocked jobs get reservations. k = 4.'
    >>> description("Slurm(conf='/etc/slurm/slurm.conf', qos='qos.txt')")
    "Slurm's scheduler with slurm.conf and qos.txt."
    >>> description("Slurm(conf='slurm.conf', changes='PriorityWeightAge=5000&partition.long.MaxTime=2-0')")
    "Slurm's scheduler with slurm.conf; changed: PriorityWeightAge=5000 and partition.long.MaxTime=2-0."
    >>> description("Mine(depth=3)")
    'Mine(depth=3)'
    """
    name, given = _call(composition)
    if name == "Slurm":
        files = [base_names(_content(value)) for key, value in given.items() if key in _FILES]
        files = files or ["its default settings"]
        if "changes" in given:
            return _text("changed_slurm", files=files, changes=_content(given["changes"]).split("&"))
        return _text("slurm", files=files)
    presets = [(summary, own) for kind, own, summary in _presets() if kind == name]
    if equal := [summary for summary, own in presets if not _differing(given, own)]:
        return equal[0]  # without the import of all plug-ins
    candidates = [(summary, _different(given, own)) for summary, own in presets]
    if not candidates:
        return base_names(composition)
    summary, more = min(candidates, key=lambda it: (len(it[1]), sum(map(len, it[1]))))
    return " ".join([summary, *(f"{text.rstrip('.')}." for text in more)])


def _different(given: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """Return the parts that differ from those of a preset; of a part of the same class only its parameters."""
    found = []
    for key, value in _differing(given, own).items():
        (name, arguments), (own_name, own_arguments) = _call(value), _call(own.get(key, ""))
        if name and name == own_name:
            found += [f"{it} = {text}" for it, text in _differing(arguments, own_arguments).items()]
        else:
            found.append(f"{key.replace('_', ' ').capitalize()}: {_part(value)}")
    return found


def _content(value: str) -> str:
    """Return the content of a quoted text; other values of a damaged text unchanged."""
    found = ast.parse(value, mode="eval").body
    return str(found.value) if isinstance(found, ast.Constant) else value


def _call(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the arguments of a call as texts; an empty name for other texts."""
    try:
        found = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a stored text may be damaged
        return "", {}
    if not isinstance(found, ast.Call) or found.args:
        return "", {}
    return ast.unparse(found.func), {str(it.arg): ast.unparse(it.value) for it in found.keywords}


@cache
def _presets() -> list[tuple[str, dict[str, str], str]]:
    """Return class, arguments and summary of each preset."""
    return [(*_call(repr(policy(name))), preset.summary) for name, preset in PRESETS.items()]


def _differing(given: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments that differ from a preset; those that only the preset has are none."""
    return {key: given.get(key, "none") for key in (*own, *given) if given.get(key) != own.get(key)}


def _part(value: str) -> str:
    """Return the summary of a plug-in, else its text."""
    name, arguments = _call(value)
    summary = _summaries().get(name, "")
    if not summary:
        return base_names(value)
    text = summary[0].lower() + summary[1:].rstrip(".")
    values = [f"{key} = {it}" for key, it in arguments.items() if it not in ("''", "None", "False")]
    return f"{text} ({', '.join(values)})" if values else text


@cache
def _summaries() -> dict[str, str]:
    """Return the first lines of the docstrings of the plug-ins by class."""
    things = (thing for kind in registry.KINDS for thing in registry.names(kind).values())
    return {thing.__name__: registry.summary_of(thing) for thing in things}
