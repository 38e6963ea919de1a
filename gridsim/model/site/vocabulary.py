"""Words that a Slurm site's files may hold, and what each would do to a schedule: followed, not followed, or nothing.

The names are in ``slurm_parameters.toml``. `LABELS` are the labels of a workload that the Slurm policy uses.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum


class Effect(IntEnum):
    """How much of a schedule a word changes, the most first; `none` for what is operational only."""

    order = 0
    """Who goes first, who is passed and who is preempted: priorities, kind of scheduler, preemption."""
    limits = 1
    """Who may have how much, and for how long."""
    resources = 2
    """What a job occupies, and where."""
    little = 3
    """A few seconds, or jobs that no log holds."""
    none = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A word that Slurm knows.

    Attributes
    ----------
    name : str
        As the manual writes it.
    followed : bool
        Whether the simulation does what it says.
    effect : Effect
        Of one that is not followed; `Effect.none` where it has nothing to do with schedules.
    harmless : tuple of str
        Values, in lower case, with which it says nothing.
    """

    name: str
    followed: bool = False
    effect: Effect = Effect.none
    harmless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in a site's files that the simulation does not follow.

    Attributes
    ----------
    text : str
        Kind of line or list, and the word: ``SchedulerParameters bf_windwo``.
    count : int
        How often it occurs.
    effect : Effect
        What it would change.
    unknown : bool
        Whether Slurm has no such word, so that it is a slip of the pen or of a version that is not known here.
    nearest : str
        The word that is nearest to an unknown one; empty where none is near.
    outside : bool
        Whether it lies outside the time of the log, so that it has no effect.
    """

    text: str
    count: int = 1
    effect: Effect = Effect.little
    unknown: bool = False
    nearest: str = ""
    outside: bool = False


@functools.cache
def _sections() -> Mapping[str, Mapping[str, Word]]:
    """Words by the kind of line or list that they stand in; those of a line of their own under ''."""
    text = (importlib.resources.files(__package__) / "slurm_parameters.toml").read_text(encoding="utf-8")
    return {
        "" if section == "slurm.conf" else section: {
            word.name.lower(): word for effect, names in groups.items() for word in _words(effect, names)
        }
        for section, groups in tomllib.loads(text).items()
    }


def _words(effect: str, names: str) -> Iterator[Word]:
    for part in names.split():
        name, _, harmless = part.partition(":")
        values = tuple(harmless.split("|")) if harmless else ()
        if effect == "followed":
            yield Word(name, followed=True)
        else:
            yield Word(name, effect=Effect[effect], harmless=values)


def known(section: str, word: str) -> Word | None:
    """A word of a section, in whatever case; None where Slurm has none such.

    Examples
    --------
    >>> known("", "priorityweightage").name, known("SchedulerParameters", "bf_windwo")
    ('PriorityWeightAge', None)
    """
    return _sections()[section].get(word.lower())


def matters(section: str, word: str, value: str = "") -> bool:
    """Whether a word is to be told: an unknown one, or one that is not followed and would change the schedule.

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
    """The word as the manual writes it, as it stands where Slurm has none such."""
    found = known(section, word)
    return word if found is None else found.name


def notices(counts: Mapping[str, int]) -> tuple[Notice, ...]:
    """What is told of words that were counted: first the unknown ones, then by what they would change, then by name.

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
    if table is None:  # reservations: what is counted of them is not modelled
        return Notice(text, count, Effect.resources)
    found = table.get(word.lower())
    if found is not None:
        return Notice(text, count, found.effect if found.effect < Effect.none else _of_value(section, found.name))
    near = difflib.get_close_matches(word.lower(), list(table), n=1, cutoff=0.6)
    return Notice(text, count, Effect.order, unknown=True, nearest=table[near[0]].name if near else "")


def _of_value(section: str, name: str) -> Effect:
    """What a word that is followed changes where one of its values is not."""
    if name.startswith(("Preempt", "Priority", "Scheduler")):
        return Effect.order
    return Effect.limits if section in ("QOS", "association") else Effect.resources


def _split(text: str) -> tuple[str, str]:
    """Section and word of a text that was counted, without what is told behind it."""
    parts = re.split(r"[ =]", text)
    for size in (2, 1):
        section = " ".join(parts[:size])
        if section in _sections() and len(parts) > size:
            return section, parts[size]
    if parts[0] == "Reservation":
        return parts[0], text
    return "", parts[0]


LABELS: Mapping[str, str] = {
    "user": "who submitted the job",
    "account": "account that is charged",
    "partition": "partition asked for",
    "qos": "quality of service",
    "reservation": "name of a reservation",
    "constraint": "features that the nodes must have, such as intel&gpu, [rack1|rack2] or [fat*1&thin*4]",
    "nodelist": "names of nodes that must be among its own, such as n[1-4,7]",
    "exclude": "names of nodes that must not",
    "gpu_type": "type of the GPUs asked for; where the node's GPUs have none in the site's file any will do",
    "licenses": "licences asked for, such as matlab:2,ansys",
    "nodes": "number of nodes asked for, or the least; unknown or 0: as many as it takes",
    "nodes_most": "most nodes, where a range is asked for",
    "memory_mb": "memory asked for on each node, MiB; 0: all of the node's; unknown: the site's default",
    "memory_granted_mb": "memory that the job had on each of its nodes, MiB; replaces memory_mb where no node of its "
    "partition has that much",
    "memory_core_mb": "memory asked for on each core, MiB, in place of memory_mb",
    "gpus": "GPUs asked for on each node",
    "cores_per_task": "cores of a task, which all lie on one node; unknown: 1",
    "tasks_per_node": "most tasks on a node; unknown or 0: no limit",
    "exclusive": "1: whole nodes",
    "requeue": "whether it may be requeued when it is preempted: 1 or 0; unknown: as the site says",
    "priority_nice": "nice value, taken off the priority",
    "array": "number of the job array that the job belongs to",
    "array_limit": "how many jobs of the array may run at once",
    "after": "number of the job whose end it waits for",
    "begin": "seconds after its submission before which it is held",
    "withdrawn": "seconds after its submission at which it is cancelled if it still waits",
}
"""Labels of a workload that the Slurm policy looks at; jobs without one have `gridsim.model.workload.UNKNOWN` there.
All but the first ten are plain numbers. Of several partitions, separated by commas, the one that starts the job first
is taken."""
