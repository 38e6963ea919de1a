"""Anonymised logs for publication: keyed pseudonyms replace names, and all other text is removed.

A name has the same pseudonym in every log that is anonymised with the same key, whatever the format. Without the key,
names cannot be recovered, not even by trying all names.
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
from gridsim.workload.formats.task_demands import demand_facts
from gridsim.workload.transform.slice import Slice

SHORTEST_KEY = 16
"""Smallest length of a key, bytes; shorter keys can be found by exhaustive search."""

_DIGITS = 12
"""Hexadecimal digits of a pseudonym: 48 bits, an integer that every SWF reader can store. Two of 100,000 names collide
with a probability of 2 in 100,000."""

_NAMES = {"user", "account", "partition", "qos", "reservation", "constraint", "gpu_type", "licenses"}
_NAMES |= {"nodelist", "exclude"}
_NUMBERS = frozenset(LABELS) - _NAMES
"""Labels that are sizes, times and job numbers."""

_LOGGED = ("wait", "status", "allocated", "preceding", "think")
"""Logged columns that contain no names."""

_COUNTS = ("format", "files", "lines", "comments", "jobs_read", "jobs_kept", "cores_field", "problems")
"""Facts on the source that contain no names."""


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Return the key in a file, without surrounding whitespace.

    Raises
    ------
    InputError
        If the file cannot be read or the key is too short.
    """
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); expected a file with a key", path=path) from error
    return check_key(key, path)


def check_key(key: bytes, path: object = None) -> bytes:
    """Return *key* if it is long enough."""
    if len(key) < SHORTEST_KEY:
        raise InputError(
            f"the key has {len(key)} bytes; expected at least {SHORTEST_KEY}, for example from: openssl rand -hex 32",
            path=path,
            field="key",
        )
    return key


def pseudonym(key: bytes, kind: str, text: str) -> str:
    """Return the pseudonym of a name in hexadecimal digits; it depends on the *kind* of the name.

    Examples
    --------
    >>> key = b"0123456789abcdef"
    >>> pseudonym(key, "user", "ada"), pseudonym(key, "queue", "ada")
    ('3159b903de95', 'b8c8c7af0947')
    """
    message = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:_DIGITS]


def anonymised(workload: Workload, key: bytes, *, shift: bool = False, numbers: bool = False) -> Workload:
    """Return the same jobs without names.

    Parameters
    ----------
    workload : Workload
        Workload from any reader. A number without a name, as in SWF, is treated as the name that it spells.
    key : bytes
        Secret key. With it, the pseudonym of a given name can be computed, so keep it private.
    shift : bool
        Shift times so that the first submission is at 0, and remove the start date.
    numbers : bool
        Use the pseudonyms as the numbers of the labels, for formats without names, such as SWF.

    Raises
    ------
    InputError
        If the key is too short, or two names of one kind would have the same pseudonym.

    Notes
    -----
    Names of users, groups, accounts, executables (job names), queues, partitions, features, licences and tasks are
    replaced. Job numbers, times, sizes and outcomes stay, because they are the content of the log. A person who saw
    the queue may recognise a job by them. Header lines, comments, and the origin of the log are dropped.
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
        provenance["demands"] = demand_facts(demands)
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
    """Return the demands with pseudonyms for node features, partitions and licences; GPU types are kept."""

    def hidden(sets: WordSets, kind: str) -> WordSets:
        return replace(sets, sets=tuple(tuple(sorted(pseudonym(key, kind, it) for it in words)) for words in sets.sets))

    pools = {
        name if name in ("cores", "memory") else pseudonym(key, "licence", name): column
        for name, column in demands.pools.items()
    }
    features, partitions = hidden(demands.features, "feature"), hidden(demands.partitions, "partition")
    return replace(demands, features=features, partitions=partitions, pools=pools)


def _pseudonyms(key: bytes, label: str, numbers: npt.NDArray[np.int64], names: tuple[str, ...] | None) -> list[str]:
    """Return a distinct pseudonym for each number of a label."""
    texts = [str(number) if names is None else names[number] for number in numbers.tolist()]
    digits = [pseudonym(key, label, text) for text in texts]
    if len(set(digits)) < len(set(texts)):
        raise InputError(f"two names of {label} would get the same pseudonym; use another key", field=label)
    return digits


def _provenance(provenance: Mapping[str, Any], shift: bool) -> dict[str, Any]:
    """Return the facts on the source that contain no names."""
    kept = {name: provenance[name] for name in _COUNTS if name in provenance}
    began = "".join(provenance.get("header", {}).get("UnixStartTime", ()))
    moved = sum(float(entry.get("shift", 0)) for entry in provenance.get("transforms", ()))
    if began.isdecimal() and began.isascii() and not shift:
        kept["header"] = {"UnixStartTime": [str(int(began) + int(moved))]}
    return {"source": "an anonymised log", **kept}
