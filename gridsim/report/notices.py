"""What a site's own files say and the simulation does not follow, in words: slips of the pen apart from the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gridsim.model.site import Notice
from gridsim.words import counted, listed, number

__all__ = ["caveats", "facts", "sentences"]

_MOST = 8
"""Words that are not followed which a sentence names."""


def sentences(found: Mapping[str, Sequence[Notice]]) -> list[str]:
    """What is unknown, each with the nearest known word; then what is not followed, first what changes the most.

    Said once for all policies with the same of them.

    Examples
    --------
    >>> sentences({"a": [Notice("PriorityWeigthAge", unknown=True, nearest="PriorityWeightAge")], "b": []})
    ['Under a: Slurm knows no PriorityWeigthAge (did you mean PriorityWeightAge?), so that is without effect here.']
    """
    return [*_told(found, unknown=True), *_told(found, unknown=False)]


def _told(found: Mapping[str, Sequence[Notice]], *, unknown: bool) -> Iterator[str]:
    groups: dict[tuple[Notice, ...], list[str]] = {}
    for label, notices in found.items():
        groups.setdefault(tuple(it for it in notices if it.unknown is unknown), []).append(label)
    for notices, labels in groups.items():
        if notices:
            told = (_unknown if unknown else _not_followed)(notices)
            yield told if len(groups) == 1 else f"Under {listed(labels)}: {told.replace('The site', 'the site', 1)}"


def _unknown(notices: Sequence[Notice]) -> str:
    parts = [it.text + (f" (did you mean {it.nearest}?)" if it.nearest else "") for it in notices]
    these = "that is" if len(parts) == 1 else "these are"
    return f"Slurm knows no {listed(parts, 'and no')}, so {these} without effect here."


def _not_followed(notices: Sequence[Notice]) -> str:
    named = [it.text for it in notices[:_MOST]]
    rest = len(notices) - len(named)
    more = f" and {number(rest)} more (all in run.json)" if rest else ""
    parts = ", ".join(named) if rest else listed(named)
    first = "; what changes the schedule most comes first" if len(notices) > 1 else ""
    return f"The site's files also say what is not modelled here{first}: {parts}{more}."


def caveats(info: Mapping[str, Any]) -> list[str]:
    """The sentences of what a comparison's ``info`` holds."""
    return sentences(_of(info))


def facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """For the making of a page: every word with how often it occurs."""
    found = _of(info)
    alike = len(set(map(tuple, found.values()))) == 1
    for label, notices in list(found.items())[: 1 if alike else None]:
        whose = "" if alike else f" under {label}"
        for unknown, title in ((True, "Unknown to Slurm"), (False, "Not modelled of the site's files")):
            parts = [
                it.text
                + (f" (nearest: {it.nearest})" if it.nearest else "")
                + (f" ({counted(it.count, 'time')})" if it.count > 1 else "")
                for it in notices
                if it.unknown is unknown
            ]
            if parts:
                yield title + whose, "; ".join(parts)


def _of(info: Mapping[str, Any]) -> dict[str, list[Notice]]:
    return {label: [Notice(**it) for it in entries] for label, entries in info.get("not_followed", {}).items()}
