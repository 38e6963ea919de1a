"""What a site's own files say and the simulation does not follow, in words: slips of the pen apart from the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gridsim.model.site import Notice
from gridsim.words import counted, listed, number

__all__ = ["caveats", "facts", "sentences"]

_MOST = 8
"""Words that are not followed which a sentence names."""


def sentences(found: Mapping[str, Sequence[Notice]]) -> list[str]:
    """What is unknown, each with the nearest known word; what lies outside the log; then what is not followed, first
    what changes the most.

    Said once for all policies with the same of them.

    Examples
    --------
    >>> sentences({"a": [Notice("PriorityWeigthAge", unknown=True, nearest="PriorityWeightAge")], "b": []})
    ['Under a: Slurm knows no PriorityWeigthAge (did you mean PriorityWeightAge?), so that is without effect here.']
    """
    kinds = (_unknown, lambda it: it.unknown), (_outside, lambda it: it.outside), (_not_followed, _is_not_followed)
    return [told for tell, kind in kinds for told in _told(found, tell, kind)]


def _is_not_followed(notice: Notice) -> bool:
    return not (notice.unknown or notice.outside)


def _told(
    found: Mapping[str, Sequence[Notice]], tell: Callable[[Sequence[Notice]], str], kind: Callable[[Notice], bool]
) -> Iterator[str]:
    groups: dict[tuple[Notice, ...], list[str]] = {}
    for label, notices in found.items():
        groups.setdefault(tuple(filter(kind, notices)), []).append(label)
    for notices, labels in groups.items():
        if notices:
            told = tell(notices)
            yield told if len(groups) == 1 else f"Under {listed(labels)}: {told.replace('The site', 'the site', 1)}"


def _outside(notices: Sequence[Notice]) -> str:
    return f"Outside the time of the log, so without effect: {listed([it.text for it in notices])}."


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
        kinds: dict[str, Callable[[Notice], bool]] = {
            "Unknown to Slurm": lambda it: it.unknown,
            "Outside the time of the log": lambda it: it.outside,
            "Not modelled of the site's files": _is_not_followed,
        }
        for title, kind in kinds.items():
            parts = [
                it.text
                + (f" (nearest: {it.nearest})" if it.nearest else "")
                + (f" ({counted(it.count, 'time')})" if it.count > 1 else "")
                for it in notices
                if kind(it)
            ]
            if parts:
                yield title + whose, "; ".join(parts)


def _of(info: Mapping[str, Any]) -> dict[str, list[Notice]]:
    return {label: [Notice(**it) for it in entries] for label, entries in info.get("not_followed", {}).items()}
