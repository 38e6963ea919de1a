"""Data that only submit lines contain: dependencies, requested nodes, and the way in which nodes are used.

Options in the job's script are not included, so a missing option means that the value is unknown. Arguments after the
name of the script are passed to it, and are not options of the job.

Source: sbatch(1).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gridsim.workload.formats.sacct.values import A_CORE, A_NODE, ABSENT

_AFTER = re.compile(rb"after(?:ok|any|notok|corr)((?::\d{1,17}(?:_\d{1,17}|_\*)?(?:\+\d+)?)+)")
_THROTTLE = re.compile(rb"%(\d{1,9})")
_OPTION = re.compile(
    rb"(?:^|\s)(?:--(?P<name>dependency|array|cpus-per-task|ntasks-per-node|mem-per-cpu|mem|nodes|constraint|nodelist"
    rb"|exclude|licenses|gres|gpus|gpus-per-node|gpus-per-task)[=\s]\s*(?P<long>\S+)"
    rb"|--(?P<no>no-)?(?P<again>requeue)(?=\s|$)"
    rb"|--(?P<flag>exclusive)(?:=(?P<how>\S+))?(?=\s|$)"
    rb"|-(?P<letter>[dacNCwxLG])\s?(?P<short>\S+))"
)
_LETTERS = {
    b"d": b"dependency",
    b"a": b"array",
    b"c": b"cpus-per-task",
    b"N": b"nodes",
    b"C": b"constraint",
    b"w": b"nodelist",
    b"x": b"exclude",
    b"L": b"licenses",
    b"G": b"gpus",
}
_NODES = re.compile(rb"(\d{1,5})(?:-\d{1,5})?")

_ALONE = frozenset(
    b"""
    --exclusive --requeue --no-requeue --hold --parsable --wait --wait-all-nodes --test-only --quiet --verbose
    --contiguous --overcommit --oversubscribe --share --spread-job --use-min-nodes --ignore-pbs --no-kill --get-user-env
    --reboot --nice --propagate --pty --label --unbuffered --exact --overlap --disable-status --multi-prog
    --preserve-env --no-shell --bell --no-bell
    --immediate --kill-on-bad-exit --resv-ports --x11 --external-launcher --stepmgr
    -H -k -Q -s -v -vv -vvv -W -h -V -O -E -l -u -I -K -X -Z
    """.split()
)
"""Options of sbatch, srun and salloc whose value, if any, is in the same word."""

_FREE = (b"--job-name", b"--comment", b"--wckey", b"--admin-comment", b"-J")
"""Options whose value can contain blanks."""

_SCRIPT = re.compile(
    rb"/|\.(?:sh|bash|csh|zsh|ksh|sl|slurm|sbatch|sub|job|batch|cmd|run|py|pl|r|jl|lua)$", re.IGNORECASE
)

TELLING = re.compile(
    rb"--(?:dependency|array|exclusive|cpus-per-task|ntasks-per-node|mem|nodes|requeue|no-requeue|constraint|nodelist"
    rb"|exclude|licenses|gres|gpus)|\s-[dacNCwxLG]"
)
"""Pattern in every line with a relevant option."""

NUMBERS = (
    *("throttle", "alone", "per_task", "per_node", "memory_of", "least_nodes", "requeue"),
    *("all_gpus", "node_gpus", "task_gpus"),
)
"""Columns filled from a submit line; `ABSENT` without the option."""

TEXTS = ("constraint", "nodelist", "exclude", "licenses", "gpu_type")
"""Labels filled with texts from a submit line."""


class Submitted(NamedTuple):
    """Options of a submit line.

    Attributes
    ----------
    after : tuple of int
        Numbers of the jobs whose end it waits for.
    throttle : int
        Number of tasks of the array that may run at one time.
    alone : int
        1 for whole nodes.
    per_task, per_node : int
        Cores per task, tasks per node.
    memory_of : int
        Unit of the requested memory: `A_NODE`, `A_CORE`.
    least_nodes : int
        Number of nodes, the minimum of a range.
    requeue : int
        1 if it may be requeued, 0 if not.
    all_gpus, node_gpus, task_gpus : int
        GPUs in total, per node, and per task.
    constraint, nodelist, exclude, licenses, gpu_type : bytes
        Features, names of nodes, licences and the first GPU type; empty for none.
    """

    after: tuple[int, ...] = ()
    throttle: int = ABSENT
    alone: int = ABSENT
    per_task: int = ABSENT
    per_node: int = ABSENT
    memory_of: int = ABSENT
    least_nodes: int = ABSENT
    requeue: int = ABSENT
    all_gpus: int = ABSENT
    node_gpus: int = ABSENT
    task_gpus: int = ABSENT
    constraint: bytes = b""
    nodelist: bytes = b""
    exclude: bytes = b""
    licenses: bytes = b""
    gpu_type: bytes = b""


def submitted(line: bytes) -> Submitted:
    """Parse the options of a submit line.

    Examples
    --------
    >>> submitted(b"sbatch --dependency=afterok:41294:41295,afterany:7_3 job.sh").after
    (41294, 41295, 7)
    >>> submitted(b"sbatch -d singleton --array=1-9%3 --exclusive -c 4 -N 2-3 job.sh")[:8]
    ((), 3, 1, 4, -1, -1, 2, -1)
    >>> submitted(b"sbatch --no-requeue job.sh").requeue
    0
    >>> said = submitted(b"sbatch -C [a*1&b*2] --gres=gpu:a100:2 -w n[1-3] run.sh -x n9")
    >>> said.constraint, said.node_gpus, said.gpu_type, said.nodelist, said.exclude
    (b'[a*1&b*2]', 2, b'a100', b'n[1-3]', b'')
    """
    said: dict[bytes, bytes] = {}
    for found in _OPTION.finditer(_to_the_script(line)):
        name = found["name"] or found["flag"] or found["again"] or _LETTERS[found["letter"]]
        said.setdefault(name, found["no"] or found["long"] or found["how"] or found["short"] or b"")
    alone = said.get(b"exclusive")
    gres = _gpus_of(said.get(b"gres", b""))
    total, node, task = (_typed(said.get(name, b"")) for name in (b"gpus", b"gpus-per-node", b"gpus-per-task"))
    return Submitted(
        after=_awaited(said.get(b"dependency", b"")),
        throttle=throttle(said.get(b"array", b"")),
        alone=ABSENT if alone is None or alone in (b"user", b"mcs") else 1,
        per_task=_count(said.get(b"cpus-per-task", b"")),
        per_node=_count(said.get(b"ntasks-per-node", b"")),
        least_nodes=int(nodes[1]) if (nodes := _NODES.fullmatch(said.get(b"nodes", b""))) else ABSENT,
        requeue=ABSENT if b"requeue" not in said else int(not said[b"requeue"]),
        all_gpus=total[0],
        node_gpus=max(gres[0], node[0]),
        task_gpus=task[0],
        constraint=_plain(said.get(b"constraint", b"")),
        nodelist=_hosts(said.get(b"nodelist", b"")),
        exclude=_hosts(said.get(b"exclude", b"")),
        licenses=_plain(said.get(b"licenses", b"")),
        gpu_type=next((each[1] for each in (gres, total, node, task) if each[1]), b""),
        memory_of=A_CORE if b"mem-per-cpu" in said else A_NODE if b"mem" in said else ABSENT,
    )


def _to_the_script(line: bytes) -> bytes:
    """Return the part of a line with its own options; the whole line if ``--wrap`` has a command with blanks.

    sacct prints no quotes. A name or a comment therefore continues in words that are neither options nor similar to a
    script, as long as options follow.

    Examples
    --------
    >>> _to_the_script(b"sbatch --job-name=bwa mem -c 4 run.sh -N 4")
    b'sbatch --job-name=bwa mem -c 4'
    >>> _to_the_script(b"sbatch -p gpu --time 10:00 -H run.sh -N 4")
    b'sbatch -p gpu --time 10:00 -H'
    """
    words = re.finditer(rb"\S+", line)
    next(words, None)
    takes = free = False
    for word in words:
        text = word[0]
        if text.startswith(b"--wrap"):
            return line
        if takes or text.startswith(b"-"):
            free = (free and takes) or text.startswith(_FREE)
            takes = not takes and b"=" not in text and text not in _ALONE and (text[1:2] == b"-" or len(text) == 2)
        elif not free or _SCRIPT.search(text) or b" -" not in line[word.end() :]:
            return line[: word.start()].rstrip()
    return line


def _plain(text: bytes) -> bytes:
    return text.strip(b"'\"")


def _hosts(text: bytes) -> bytes:
    """Return a list of nodes; empty for a name with a slash, which is a file."""
    return b"" if b"/" in text else _plain(text)


def _gpus_of(text: bytes) -> tuple[int, bytes]:
    """Return the GPUs of a list of generic resources such as ``gpu:a100:2,tmp:10G``, and their first type."""
    count, first = 0, b""
    for word in filter(None, _plain(text).split(b",")):
        name, _, rest = word.removeprefix(b"gres/").removeprefix(b"gres:").partition(b":")
        if name == b"gpu" or name.startswith(b"gpu="):
            many, kind = _typed(rest or name.partition(b"=")[2] or b"1")
            count, first = count + max(many, 0), first or kind
    return (count, first) if count else (ABSENT, b"")


def _typed(text: bytes) -> tuple[int, bytes]:
    """Return a number of GPUs such as ``2`` or ``a100:2``, or of several types, and the first type.

    Examples
    --------
    >>> _typed(b"2"), _typed(b"a100:2"), _typed(b"volta:3,kepler:1"), _typed(b"a100"), _typed(b"")
    ((2, b''), (2, b'a100'), (4, b'volta'), (1, b'a100'), (-1, b''))
    """
    total, first = 0, b""
    for word in filter(None, _plain(text).split(b",")):
        kind, _, number = word.replace(b"=", b":").rpartition(b":")
        if not number.isdigit():
            kind, number = number, b"1"
        total, first = total + max(_count(number), 0), first or kind
    return (total, first) if total else (ABSENT, b"")


def throttle(tasks: bytes) -> int:
    """Return how many tasks of an array such as ``1-12%3`` may run at one time; `ABSENT` without a limit.

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
