"""Logs that may leave a site: names become pseudonyms under a key, and no other text is kept.

The same name has the same pseudonym in every log that is made with the same key, whatever its format; without the key
nobody can tell which name it was, not even by trying all names.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.demand import Demands, WordSets
from gridsim.model.site import LABELS
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.asked import told
from gridsim.workload.transform.slice import Slice

SHORTEST_KEY = 16
"""Bytes that a key has at least: shorter ones can be found by trying."""

_DIGITS = 12
"""Hexadecimal digits of a pseudonym: 48 bits, a whole number that every reader of SWF can hold; two of 100,000 names
meet in one with a chance of 2 in 100,000."""

_NAMES = {"user", "account", "partition", "qos", "reservation", "constraint", "gpu_type", "licenses"}
_NAMES |= {"nodelist", "exclude"}
_NUMBERS = frozenset(LABELS) - _NAMES
"""Labels that are sizes, times and numbers of jobs."""

_LOGGED = ("wait", "status", "allocated", "preceding", "think")
"""What was logged of a job and names nothing."""

_COUNTS = ("format", "files", "lines", "comments", "jobs_read", "jobs_kept", "cores_field", "problems")
"""What is known of the source and names nothing."""


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Key that a file holds, without line ends and blanks around it.

    Raises
    ------
    InputError
        When it cannot be read or is too short.
    """
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); expected a file with a key", path=path) from error
    return check_key(key, path)


def check_key(key: bytes, path: object = None) -> bytes:
    """*key*, if it is long enough to be one."""
    if len(key) < SHORTEST_KEY:
        raise InputError(
            f"a key of {len(key)} bytes; expected {SHORTEST_KEY} or more, for example of: openssl rand -hex 32",
            path=path,
            field="key",
        )
    return key


def pseudonym(key: bytes, kind: str, text: str) -> str:
    """Hexadecimal digits that stand for a name; those of a user and of a queue of one name differ.

    Examples
    --------
    >>> key = b"0123456789abcdef"
    >>> pseudonym(key, "user", "ada"), pseudonym(key, "queue", "ada")
    ('3159b903de95', 'b8c8c7af0947')
    """
    message = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:_DIGITS]


def anonymised(workload: Workload, key: bytes, *, shift: bool = False, numbers: bool = False) -> Workload:
    """The same jobs without names.

    Parameters
    ----------
    workload : Workload
        From any reader. A number without a name, as SWF has, counts as the name that it spells.
    key : bytes
        Whoever has it can find out which pseudonym a name has; keep it, and nobody else can.
    shift : bool
        Let times begin with 0 at the first submit, and forget when that was.
    numbers : bool
        Make the numbers of the labels the pseudonyms themselves, for formats without names, such as SWF.

    Raises
    ------
    InputError
        For a key that is too short, and when two names of one kind would share a pseudonym.

    Notes
    -----
    Users, groups, accounts, executables (names of jobs), queues, partitions, features, licences and names of tasks are
    replaced. Job
    numbers, times, sizes and outcomes stay: they are what the log is for, and somebody who saw the queue may know a job
    by them. Header lines, comments, and where the log came from are dropped.
    """
    check_key(key)
    if shift:
        workload = Slice(origin=True).apply(workload)
    labels: dict[str, IntArray] = {}
    names: dict[str, tuple[str, ...]] = {}
    for label, column in workload.labels.items():
        if label in _NUMBERS:
            labels[label] = column
            continue
        found, places = np.unique(column[column != UNKNOWN], return_inverse=True)
        digits = _pseudonyms(key, label, found, workload.names.get(label))
        codes = np.array([int(text, 16) for text in digits], dtype=np.int64)
        if not numbers:
            names[label] = ("", *sorted(digits))
            codes = np.argsort(np.argsort(codes)) + 1
        labels[label] = np.full(len(column), UNKNOWN)
        labels[label][column != UNKNOWN] = codes[places]
    tasks = workload.tasks
    if tasks is not None and tasks.names is not None:
        tasks = replace(tasks, names=tuple(pseudonym(key, "task", name) for name in tasks.names))
    demands = None if workload.demands is None else _demands(key, workload.demands)
    provenance = _provenance(workload.provenance, shift)
    if demands is not None and "demands" in workload.provenance:
        provenance["demands"] = told(demands)
    return replace(
        workload,
        demands=demands,
        labels=labels,
        names=names,
        tasks=tasks,
        logged={name: column for name, column in workload.logged.items() if name in _LOGGED},
        provenance=provenance,
    )


def _demands(key: bytes, demands: Demands) -> Demands:
    """What jobs ask for, features of nodes, partitions and licences under pseudonyms; kinds of GPU are no secret."""

    def hidden(sets: WordSets, kind: str) -> WordSets:
        return replace(sets, sets=tuple(tuple(sorted(pseudonym(key, kind, it) for it in words)) for words in sets.sets))

    pools = {
        name if name in ("cores", "memory") else pseudonym(key, "licence", name): column
        for name, column in demands.pools.items()
    }
    features, partitions = hidden(demands.features, "feature"), hidden(demands.partitions, "partition")
    return replace(demands, features=features, partitions=partitions, pools=pools)


def _pseudonyms(key: bytes, label: str, numbers: npt.NDArray[np.int64], names: tuple[str, ...] | None) -> list[str]:
    """A pseudonym for each of the numbers of a label, all of them different."""
    texts = [str(number) if names is None else names[number] for number in numbers.tolist()]
    digits = [pseudonym(key, label, text) for text in texts]
    if len(set(digits)) < len(set(texts)):
        raise InputError(f"two names of one {label} would share a pseudonym; take another key", field=label)
    return digits


def _provenance(provenance: Mapping[str, Any], shift: bool) -> dict[str, Any]:
    """What is known of the source, as far as it names nothing."""
    kept = {name: provenance[name] for name in _COUNTS if name in provenance}
    began = "".join(provenance.get("header", {}).get("UnixStartTime", ()))
    moved = sum(float(entry.get("shift", 0)) for entry in provenance.get("transforms", ()))
    if began.isdecimal() and began.isascii() and not shift:
        kept["header"] = {"UnixStartTime": [str(int(began) + int(moved))]}
    return {"source": "a log without names", **kept}
