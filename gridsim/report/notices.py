"""Sentences on settings of a site's files and on requested resources that the simulation ignores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridsim.model.applicable_demands import LEFT_ASIDE
from gridsim.model.platform import Platform
from gridsim.model.site import Notice
from gridsim.model.workload import Workload
from gridsim.number_formatting import counted, listed, number

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence


_MOST = 8
"""Largest number of ignored settings named in a sentence."""


def sentences(found: Mapping[str, Sequence[Notice]]) -> list[str]:
    """Return sentences on changes without effect, unknown settings, settings outside the log, and ignored settings.

    Unknown settings have the nearest known name; ignored settings are sorted by effect.

    Policies with the same notices share a sentence.

    Examples
    --------
    >>> sentences({"a": [Notice("PriorityWeigthAge", unknown=True, nearest="PriorityWeightAge")], "b": []})
    ['Under a: unknown to Slurm and ignored: PriorityWeigthAge (did you mean PriorityWeightAge?).']
    """
    kinds: tuple[tuple[Callable[[Sequence[Notice]], str], Callable[[Notice], bool]], ...] = (
        (_changed, lambda it: it.changed),
        (_unknown, lambda it: it.unknown),
        (_outside, lambda it: it.outside),
        (_not_followed, _is_not_followed),
    )
    return [text for text_of, kind in kinds for text in _by_label(found, text_of, kind)]


def _is_not_followed(notice: Notice) -> bool:
    return not (notice.changed or notice.unknown or notice.outside)


def _by_label(
    found: Mapping[str, Sequence[Notice]], text_of: Callable[[Sequence[Notice]], str], kind: Callable[[Notice], bool]
) -> Iterator[str]:
    groups: dict[tuple[Notice, ...], list[str]] = {}
    for label, notices in found.items():
        groups.setdefault(tuple(filter(kind, notices)), []).append(label)
    for notices, labels in groups.items():
        if notices:
            text = text_of(notices)
            yield text if len(groups) == 1 else f"Under {listed(labels)}: {text[0].lower()}{text[1:]}"


def _changed(notices: Sequence[Notice]) -> str:
    return f"Changed without effect, because they are not modelled: {listed([it.text for it in notices])}."


def _outside(notices: Sequence[Notice]) -> str:
    return f"Outside the period of the log, so without effect: {listed([it.text for it in notices])}."


def _unknown(notices: Sequence[Notice]) -> str:
    parts = [it.text + (f" (did you mean {it.nearest}?)" if it.nearest else "") for it in notices]
    return f"Unknown to Slurm and ignored: {listed(parts)}."


def _not_followed(notices: Sequence[Notice]) -> str:
    named = [it.text for it in notices[:_MOST]]
    rest = len(notices) - len(named)
    more = f" and {number(rest)} more (all in run.json)" if rest else ""
    parts = ", ".join(named) if rest else listed(named)
    first = " (largest effect on the schedule first)" if len(notices) > 1 else ""
    return f"The site's files contain settings that are not modelled{first}: {parts}{more}."


def caveats(info: Mapping[str, Any]) -> list[str]:
    """Return the sentences for a comparison's ``info``."""
    return sentences(_of(info))


def facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return every setting with its number of occurrences, for the facts on a page."""
    found = _of(info)
    equal = len(set(map(tuple, found.values()))) == 1
    for label, notices in list(found.items())[: 1 if equal else None]:
        whose = "" if equal else f" under {label}"
        kinds: dict[str, Callable[[Notice], bool]] = {
            "Changed without effect": lambda it: it.changed,
            "Unknown to Slurm": lambda it: it.unknown,
            "Outside the period of the log": lambda it: it.outside,
            "Settings that are not modelled": _is_not_followed,
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


def demands_left_aside(comparison: Evidence) -> list[str]:
    """Return the sentences on ignored demands, one for all policies with the same ones."""
    groups: dict[str, list[str]] = {}
    for label, record in comparison.records.items():
        lines = left_aside(record.workload, comparison.platform_of(label))
        if lines:
            groups.setdefault(lines[0], []).append(label)
    policies = len(comparison.records)
    return [
        text if len(labels) == policies else f"Under {listed(labels)}, {text[0].lower()}{text[1:]}"
        for text, labels in groups.items()
    ]


def left_aside(workload: Workload, platform: Platform | None = None) -> list[str]:
    """Return sentences on requested resources of jobs or tasks that the machine description does not have.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=1, provenance={"demands_left_aside": {"memory": 1}})
    >>> left_aside(log, Platform.single(4))
    ['Requests for memory (1 job) are ignored: the machine is modelled as one pool of cores.']
    """
    found = workload.provenance.get(LEFT_ASIDE, {})
    if not found:
        return []
    pooled = platform is not None and all(it.capacity is None for it in platform.clusters())
    why = "the machine is modelled as one pool of cores" if pooled else "no node of the machine description has any"
    counts = _counts(found, "job" if workload.tasks is None else "task")
    return [f"Requests for {counts} are ignored: {why}."]


def _counts(found: Mapping[str, int], unit: str) -> str:
    return listed([f"{resource_name(what)} ({counted(count, unit)})" for what, count in found.items()])


def resource_name(what: str) -> str:
    """Return the name of a resource in a sentence."""
    return "GPUs" if what == "gpu" else what
