"""Queue entries: a request in each of the partitions and reservations in which it could start.

Sources: slurm.schedmd.com/sched_config.html ("jobs submitted to multiple partitions will have as many entries in the
list as requested partitions"); sbatch(1), ``--partition`` and ``--reservation``; reservations.html ("Magnetic
Reservations", "Reservation Deletion").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.site import Association, Site
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.policy.queue import Requests

UNKNOWN_PARTITION = -2
"""A reservation that the site does not have."""


class Owner(NamedTuple):
    """Owner of an entry: account, user, QOS, QOS of its partition; array and its task limit, -1 for none."""

    account: str
    user: str
    qos: str
    partition_qos: str = ""
    array: int = -1
    array_limit: int = -1


class Entries(NamedTuple):
    """Columns of the entries: first one per request, in their order, then further ones.

    Attributes
    ----------
    request, partition, reservation : (n,) int64
        Numbers; -1 for no reservation, `UNKNOWN_PARTITION` for an unknown one.
    waits : (n,) bool
        Whether it enters the queue only when its request's reservation is over.
    further : mapping
        Further entries of a request.
    """

    request: IntArray
    partition: IntArray
    reservation: IntArray
    waits: Any
    further: dict[int, list[int]]


def label_of(requests: Requests, name: str) -> IntArray:
    """Return a label column; `UNKNOWN` if the workload has none."""
    column = requests.labels.get(name)
    return np.full(len(requests), UNKNOWN, dtype=np.int64) if column is None else column


def names_of(requests: Requests, label: str) -> list[str]:
    """Return the names of a label, empty if unknown; numbers if the source has no names."""
    names, codes = requests.names.get(label), label_of(requests, label)
    if names is not None and (beyond := codes >= len(names)).any():
        row = int(np.argmax(beyond))
        message = (
            f"job {requests.number[row]} has number {codes[row]}; expected the number of a name, below {len(names)}"
        )
        raise InputError(message, field=label)
    found = {
        code: ("" if code < 0 else names[code] if names is not None else str(code))
        for code in np.unique(codes).tolist()
    }
    return [found[code] for code in codes.tolist()]


def reservation_names(site: Site) -> list[str]:
    """Return the reservations of a site by number; one that repeats on several days of the week counts once."""
    return list(dict.fromkeys(each.name for each in site.reservations))


def entries_of(requests: Requests, site: Site) -> Entries:
    """Return the entries of all requests.

    Raises
    ------
    InputError
        For a partition that the site does not have.
    """
    found = _Alternatives(site)
    names = (names_of(requests, name) for name in ("partition", "reservation", "user", "account"))
    alternatives = [found.of(key) for key in zip(*names, strict=True)]
    found.refuse_unknown()
    rows = [(request, *each[0]) for request, each in enumerate(alternatives)]
    further: dict[int, list[int]] = {}
    if any(len(each) > 1 for each in found.known.values()):
        for request, each in enumerate(alternatives):
            if len(each) > 1:
                further[request] = list(range(len(rows), len(rows) + len(each) - 1))
                rows += [(request, *one) for one in each[1:]]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    return Entries(columns[0], columns[1], columns[2], columns[3] > 0, further)


class _Alternatives:
    """Partition, reservation and delay of each entry of a request; cached for requests with equal labels."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._partitions = {each.name: row for row, each in enumerate(site.partitions)}
        self._default = site.default_partition
        self._first = {each.user: each.account for each in reversed(site.associations) if each.user}
        names = reservation_names(site)
        self._reservations = {name: row for row, name in enumerate(names)}
        self._of_name = {each.name: each for each in reversed(site.reservations)}
        self._unknown: Counter[str] = Counter()
        self.known: dict[tuple[str, ...], list[tuple[int, int, bool]]] = {}

    def of(self, key: tuple[str, ...]) -> list[tuple[int, int, bool]]:
        if key not in self.known:
            self.known[key] = self._find(*key)
        missing = next((name for name in self._listed(key[0]) if name not in self._partitions), None)
        if missing is not None:
            self._unknown[missing] += 1
        return self.known[key]

    def _listed(self, partition: str) -> list[str]:
        return list(dict.fromkeys(filter(None, partition.split(",")))) or [self._default]

    def refuse_unknown(self) -> None:
        if self._unknown:
            name, count = self._unknown.most_common(1)[0]
            message = (
                f"'{name}' of {count} jobs is not a partition of the site; known: {', '.join(sorted(self._partitions))}"
            )
            raise InputError(message, field="partition")

    def _find(self, partition: str, reservation: str, user: str, account: str) -> list[tuple[int, int, bool]]:
        wanted: list[tuple[int, bool]] = [(-1, False)]
        account = account or self._first.get(user, "")
        if reservation and self._reservations:
            named = reservation.split(",")
            wanted = [(self._admitted(name, user, account), False) for name in named]
            if any(
                row >= 0 and self._of_name[name].flags & _LET_GO for name, (row, _) in zip(named, wanted, strict=True)
            ):
                wanted.append((-1, True))
        else:
            magnetic = [name for name, each in self._of_name.items() if "MAGNETIC" in each.flags]
            wanted += [(row, False) for name in magnetic if (row := self._admitted(name, user, account)) >= 0]
        rows = [self._partitions.get(name, 0) for name in self._listed(partition)]
        return [(row, *each) for each in wanted for row in rows]

    def _admitted(self, name: str, user: str, account: str) -> int:
        each = self._of_name.get(name)
        return self._reservations[name] if each is not None and each.admits(user, account) else UNKNOWN_PARTITION


_LET_GO = frozenset(["NO_HOLD_JOBS_AFTER", "NO_HOLD_JOBS_AFTER_END"])


def owners_of(requests: Requests, site: Site, entries: Entries | None = None) -> list[Owner]:
    """Return the owner of each entry, with the site's defaults for missing labels."""
    entries = entries or entries_of(requests, site)
    first: dict[str, Association] = {}
    own: dict[tuple[str, str], Association] = {}
    for each in site.associations:
        if each.user:
            first.setdefault(each.user, each)
            own[each.account, each.user] = each
    of_partition = [partition.qos for partition in site.partitions]
    normal = "normal" if any(qos.name == "normal" for qos in site.qos) else ""
    made: dict[tuple[Any, ...], Owner] = {}
    columns: list[Sequence[Any]] = [names_of(requests, name) for name in ("account", "user", "qos")]
    columns += [label_of(requests, name).tolist() for name in ("array", "array_limit")]
    keys = list(zip(*columns, strict=True))
    owners = []
    for request, partition in zip(entries.request.tolist(), entries.partition.tolist(), strict=True):
        key = (*keys[request], partition)
        if key not in made:
            account, user, qos, array, limit, _ = key
            if not account and user in first:
                account = first[user].account
            if not qos:
                known = own.get((account, user))
                qos = (known.default_qos if known is not None else "") or normal
            made[key] = Owner(account or "root", user, qos, of_partition[partition], array, limit)
        owners.append(made[key])
    return owners
