"""Words in the files of a Slurm site and their effect on a schedule: modelled, not modelled, or none.

The names are in ``slurm_parameters.toml``. `LABELS` are the labels of a workload that the Slurm policy uses.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from gridsim.errors import UnknownNameError


class Effect(IntEnum):
    """Extent to which a word changes a schedule, the largest first; `none` for purely operational words."""

    order = 0
    """Order and preemption of jobs: priorities, type of scheduler, preemption."""
    limits = 1
    """Amounts and durations that users and jobs are limited to."""
    resources = 2
    """Resources and nodes that a job occupies."""
    little = 3
    """A few seconds, or jobs that no log contains."""
    none = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A word that Slurm defines.

    Attributes
    ----------
    name : str
        Spelling in the manual.
    followed : bool
        Whether the simulation models it.
    effect : Effect
        Effect of a word that is not modelled; `Effect.none` if it does not affect schedules.
    harmless : tuple of str
        Values, in lower case, with which it has no effect.
    """

    name: str
    followed: bool = False
    effect: Effect = Effect.none
    harmless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Content of a site's files that the simulation does not model.

    Attributes
    ----------
    text : str
        Kind of line or list, and the word: ``SchedulerParameters bf_windwo``.
    count : int
        Number of occurrences.
    effect : Effect
        Effect on the schedule.
    unknown : bool
        Whether Slurm has no such word, so that it is a typing error or from an unsupported version.
    nearest : str
        Defined word most similar to an unknown one; empty if none is similar.
    outside : bool
        Whether it is outside the time of the log, so that it has no effect.
    changed : bool
        Whether a variant of the site changes it, which has no effect.
    """

    text: str
    count: int = 1
    effect: Effect = Effect.little
    unknown: bool = False
    nearest: str = ""
    outside: bool = False
    changed: bool = False


@functools.cache
def _sections() -> Mapping[str, Mapping[str, Word]]:
    """Return the words by kind of line or list; those that begin a line are under ''."""
    text = (importlib.resources.files(__package__) / "slurm_parameters.toml").read_text(encoding="utf-8")
    return {
        "" if section == "slurm.conf" else section: {
            word.name.lower(): word for effect, names in groups.items() for word in _entries(effect, names)
        }
        for section, groups in tomllib.loads(text).items()
    }


def _entries(effect: str, names: str) -> Iterator[Word]:
    for part in names.split():
        name, _, harmless = part.partition(":")
        values = tuple(harmless.split("|")) if harmless else ()
        if effect == "followed":
            yield Word(name, followed=True)
        else:
            yield Word(name, effect=Effect[effect], harmless=values)


def known(section: str, word: str) -> Word | None:
    """Return a word of a section, in any case; None if Slurm does not define it.

    Examples
    --------
    >>> known("", "priorityweightage").name, known("SchedulerParameters", "bf_windwo")
    ('PriorityWeightAge', None)
    """
    return _sections()[section].get(word.lower())


def check_known(section: str, word: str, what: str, *, besides: Iterable[str] = ()) -> Word:
    """Return a word of a section; *besides* are further names for the error.

    Raises
    ------
    UnknownNameError
        If Slurm does not define it; *what* names its kind. The error lists the modelled words.
    """
    found = known(section, word)
    if found is None:
        raise UnknownNameError(
            what, word, [*besides, *(it.name for it in _sections()[section].values() if it.followed)]
        )
    return found


def sections() -> Iterable[str]:
    """Return the kinds of lines and lists; words that begin a line are under ''."""
    return _sections()


def matters(section: str, word: str, value: str = "") -> bool:
    """Return whether a word is reported: an unknown one, or one that is not modelled and would change the schedule.

    Examples
    --------
    >>> matters("", "PriorityWeightAssoc", "0"), matters("", "PriorityWeightAssoc", "9"), matters("", "SlurmdPort", "1")
    (False, True, False)
    """
    found = known(section, word)
    if found is None:
        return True
    return not found.followed and found.effect < Effect.none and value.lower() not in found.harmless


def canonical(section: str, word: str) -> str:
    """Return the word as spelled in the manual, or unchanged if Slurm does not define it."""
    found = known(section, word)
    return word if found is None else found.name


def notices(counts: Mapping[str, int]) -> tuple[Notice, ...]:
    """Return the notices for counted words: unknown ones first, then by effect, then by name.

    Examples
    --------
    >>> [(it.text, it.nearest) for it in notices({"DownNodes": 1, "PriorityWeightAssoc": 1, "PriorityWeigthAge": 1})]
    [('PriorityWeigthAge', 'PriorityWeightAge'), ('PriorityWeightAssoc', ''), ('DownNodes', '')]
    """
    found = [_notice(text, count) for text, count in counts.items()]
    return tuple(sorted(found, key=lambda it: (not it.unknown, it.effect, it.text)))


def _notice(text: str, count: int) -> Notice:
    section, word = _split(text)
    table = _sections().get(section)
    if table is None:  # counted contents of reservations are not modelled
        return Notice(text, count, Effect.resources)
    found = table.get(word.lower())
    if found is not None:
        return Notice(text, count, found.effect if found.effect < Effect.none else _of_value(section, found.name))
    near = difflib.get_close_matches(word.lower(), list(table), n=1, cutoff=0.6)
    return Notice(text, count, Effect.order, unknown=True, nearest=table[near[0]].name if near else "")


def _of_value(section: str, name: str) -> Effect:
    """Return the effect of a modelled word with a value that is not modelled."""
    if name.startswith(("Preempt", "Priority", "Scheduler")):
        return Effect.order
    return Effect.limits if section in ("QOS", "association") else Effect.resources


def _split(text: str) -> tuple[str, str]:
    """Return the section and word of a counted text, without the details after it."""
    parts = re.split(r"[ =]", text)
    for size in (2, 1):
        section = " ".join(parts[:size])
        if section in _sections() and len(parts) > size:
            return section, parts[size]
    if parts[0] == "Reservation":
        return parts[0], text
    return "", parts[0]


LABELS: Mapping[str, str] = {
    "user": "user of the job",
    "account": "charged account",
    "partition": "requested partition",
    "qos": "quality of service",
    "reservation": "name of a reservation",
    "constraint": "required features of the nodes, such as intel&gpu, [rack1|rack2] or [fat*1&thin*4]",
    "nodelist": "required nodes, such as n[1-4,7]",
    "exclude": "excluded nodes",
    "gpu_type": "requested type of GPU; GPUs without a type in the site's file match any type",
    "licenses": "requested licences, such as matlab:2,ansys",
    "nodes": "requested number of nodes, or the smallest; unknown or 0: as many as needed",
    "nodes_most": "largest number of nodes, if a range is requested",
    "memory_mb": "requested memory per node, MiB; 0: all memory of the node; unknown: the site's default",
    "memory_granted_mb": "allocated memory per node, MiB; replaces memory_mb if no node of its partition has that much",
    "memory_core_mb": "requested memory per core, MiB, instead of memory_mb",
    "gpus": "requested GPUs per node",
    "cores_per_task": "cores per task, all on one node; unknown: 1",
    "tasks_per_node": "maximum number of tasks per node; unknown or 0: no limit",
    "exclusive": "1: whole nodes",
    "requeue": "whether it may be requeued when it is preempted: 1 or 0; unknown: the site's default",
    "priority_nice": "nice value, subtracted from the priority",
    "array": "number of its job array",
    "array_limit": "maximum number of running jobs of the array",
    "after": "number of the job on whose end it depends",
    "begin": "seconds after its submission until which it is held",
    "withdrawn": "seconds after its submission at which it is cancelled if it is still pending",
}
"""Labels of a workload that the Slurm policy uses; jobs without one have `gridsim.model.workload.UNKNOWN`. All but the
first ten are plain numbers. Of several partitions, separated by commas, the job uses the one in which it starts
first."""
