"""What a submit line says that no other column does: whom a job waits for, and how its nodes are to be used.

Options in the job's script do not stand there, so that only what is said counts: a line without an option says nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gridsim.workload.formats.sacct.values import A_CORE, A_NODE, ABSENT

__all__ = ["NUMBERS", "TELLING", "Submitted", "submitted", "throttle"]

_AFTER = re.compile(rb"after(?:ok|any|notok|corr)((?::\d{1,17}(?:_\d{1,17}|_\*)?(?:\+\d+)?)+)")
_THROTTLE = re.compile(rb"%(\d{1,9})")
_OPTION = re.compile(
    rb"(?:^|\s)(?:--(?P<name>dependency|array|cpus-per-task|ntasks-per-node|mem-per-cpu|mem|nodes)[=\s]\s*(?P<long>\S+)"
    rb"|--(?P<no>no-)?(?P<again>requeue)(?=\s|$)"
    rb"|--(?P<flag>exclusive)(?:=(?P<how>\S+))?(?=\s|$)"
    rb"|-(?P<letter>[dacN])\s?(?P<short>\S+))"
)
_LETTERS = {b"d": b"dependency", b"a": b"array", b"c": b"cpus-per-task", b"N": b"nodes"}
_NODES = re.compile(rb"(\d{1,5})(?:-\d{1,5})?")

TELLING = re.compile(
    rb"--(?:dependency|array|exclusive|cpus-per-task|ntasks-per-node|mem|nodes|requeue|no-requeue)|\s-[dacN]"
)
"""What stands in every line that says anything."""

NUMBERS = ("throttle", "alone", "per_task", "per_node", "memory_of", "least_nodes", "requeue")
"""Columns that a submit line fills; `ABSENT` where it says nothing."""


class Submitted(NamedTuple):
    """Options of a submit line.

    Attributes
    ----------
    after : tuple of int
        Numbers of the jobs whose end it waits for.
    throttle : int
        How many tasks of the array may run at once.
    alone : int
        1: whole nodes.
    per_task, per_node : int
        Cores of a task, tasks of a node.
    memory_of : int
        What memory was asked for on: `A_NODE`, `A_CORE`.
    least_nodes : int
        Nodes, the fewest of a range.
    requeue : int
        1: it may be requeued; 0: it may not.
    """

    after: tuple[int, ...] = ()
    throttle: int = ABSENT
    alone: int = ABSENT
    per_task: int = ABSENT
    per_node: int = ABSENT
    memory_of: int = ABSENT
    least_nodes: int = ABSENT
    requeue: int = ABSENT


def submitted(line: bytes) -> Submitted:
    """Options of a submit line.

    Examples
    --------
    >>> submitted(b"sbatch --dependency=afterok:41294:41295,afterany:7_3 job.sh").after
    (41294, 41295, 7)
    >>> submitted(b"sbatch -d singleton --array=1-9%3 --exclusive -c 4 -N 2-3 job.sh")
    Submitted(after=(), throttle=3, alone=1, per_task=4, per_node=-1, memory_of=-1, least_nodes=2, requeue=-1)
    >>> submitted(b"sbatch --no-requeue job.sh").requeue
    0
    """
    said: dict[bytes, bytes] = {}
    for found in _OPTION.finditer(line):
        name = found["name"] or found["flag"] or found["again"] or _LETTERS[found["letter"]]
        said.setdefault(name, found["no"] or found["long"] or found["how"] or found["short"] or b"")
    alone = said.get(b"exclusive")
    return Submitted(
        after=_awaited(said.get(b"dependency", b"")),
        throttle=throttle(said.get(b"array", b"")),
        alone=ABSENT if alone is None or alone in (b"user", b"mcs") else 1,
        per_task=_count(said.get(b"cpus-per-task", b"")),
        per_node=_count(said.get(b"ntasks-per-node", b"")),
        least_nodes=int(nodes[1]) if (nodes := _NODES.fullmatch(said.get(b"nodes", b""))) else ABSENT,
        requeue=ABSENT if b"requeue" not in said else int(not said[b"requeue"]),
        memory_of=A_CORE if b"mem-per-cpu" in said else A_NODE if b"mem" in said else ABSENT,
    )


def throttle(tasks: bytes) -> int:
    """How many tasks of an array such as ``1-12%3`` may run at once; `ABSENT` where it does not say.

    Examples
    --------
    >>> throttle(b"[4-12%3]"), throttle(b"1-12")
    (3, -1)
    """
    found = _THROTTLE.search(tasks)
    return ABSENT if found is None else int(found[1])


def _awaited(text: bytes) -> tuple[int, ...]:
    return tuple(
        int(number.partition(b"_")[0].partition(b"+")[0])
        for match in _AFTER.finditer(text)
        for number in match[1].split(b":")[1:]
    )


def _count(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 6 and int(text) else ABSENT
