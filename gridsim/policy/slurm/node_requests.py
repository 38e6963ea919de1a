"""Node constraints of jobs: partition, features, GPU type, and required or excluded hosts; counts per kind of node.

Sources: sbatch(1), ``--constraint``, ``--nodelist`` ("the job will contain all of these hosts and possibly additional
hosts as needed to satisfy resource requirements"), ``--exclude``; gres.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.capacity import GPU
from gridsim.model.site import Site
from gridsim.model.site_file import expanded
from gridsim.model.time import IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.constraints import ANY_NODE, Constraint, Features, constraint, meets
from gridsim.policy.slurm.nodes import Bytes
from gridsim.policy.slurm.queue_entries import Entries, names_of

BAD_FEATURES = ("BadConstraints", "the requested features")
BAD_TEXT = ("BadConstraints", "an invalid constraint")
BAD_NODES = ("ReqNodeNotAvail", "all nodes that it requires")


class NodeSet(NamedTuple):
    """Nodes that a job may use together; and the number of nodes required from some subsets."""

    member: Bytes
    counts: tuple[tuple[Bytes, int], ...] = ()

    @property
    def fewest(self) -> int:
        """Sum of the required numbers."""
        return sum(many for _, many in self.counts)

    def possible(self) -> bool:
        """Return whether enough nodes exist for each count."""
        return bool(self.member.any()) and all(int(nodes.sum()) >= many for nodes, many in self.counts)


class NodeRequest(NamedTuple):
    """Node constraints shared by a group of queue entries.

    Attributes
    ----------
    member : (n,) uint8
        Nodes that they may use.
    kinds : tuple of Kind
        Alternatives, of which an entry uses one; empty if any of *member* can be used.
    fewest : int
        Minimum number of nodes.
    exact : bool
        Whether that is also the maximum if they request no number.
    never : (str, str) or None
        Why no such nodes exist: Slurm's reason, and the missing thing.
    """

    member: Bytes
    kinds: tuple[NodeSet, ...] = ()
    fewest: int = 0
    exact: bool = False
    never: tuple[str, str] | None = None


class NodeRequests(NamedTuple):
    """Node constraints, and the number of the constraint of each entry."""

    of: IntArray
    all: tuple[NodeRequest, ...]


def node_requests_of(requests: Requests, site: Site, entries: Entries) -> NodeRequests:
    """Return the constraints of all entries, each distinct one once."""
    labels = ("constraint", "gpu_type", "nodelist", "exclude")
    columns = [entries.partition, *(_codes(requests, label)[entries.request] for label in labels)]
    if not len(entries.request):
        return NodeRequests(np.zeros(0, dtype=np.int64), ())
    rows, first, of = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    nodes, texts = _Nodes(site), [names_of(requests, label) for label in labels]
    found = []
    for partition, entry in zip(rows[:, 0].tolist(), first.tolist(), strict=True):
        request = int(entries.request[entry])
        found.append(nodes.node_request(partition, *(each[request] for each in texts)))
    return NodeRequests(of.reshape(-1).astype(np.int64), tuple(found))


def _codes(requests: Requests, label: str) -> IntArray:
    column = requests.labels.get(label)
    return np.full(len(requests), -1, dtype=np.int64) if column is None else column


class _Nodes:
    """Nodes of a site by partition, features, GPU type and name."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._row = {node.name: row for row, node in enumerate(site.nodes)}
        self._features: dict[Features, Bytes] = {}
        kinds: dict[tuple[str, ...], int] = {}
        self._kind = np.array([kinds.setdefault(node.features, len(kinds)) for node in site.nodes])
        self._kinds = list(kinds)
        self._partition: dict[int, Bytes] = {}
        self._type: dict[str, Bytes] = {}
        self._parsed: dict[str, Constraint | None] = {}

    def node_request(self, partition: int, text: str, gpu_type: str, nodelist: str, exclude: str) -> NodeRequest:
        no_nodes = np.zeros(len(self._row), dtype=np.uint8)
        if text not in self._parsed:
            self._parsed[text] = constraint(text)
        wanted = self._parsed[text]
        if wanted is None:
            return NodeRequest(no_nodes, never=BAD_TEXT)
        plain = self._in(partition) & self._of_type(gpu_type) & (1 - self._named(exclude)[0])
        kinds = [self._kind_of(each, wanted, plain) for each in wanted.kinds]
        possible = [each for each in kinds if each.possible()]
        if not possible:
            return NodeRequest(no_nodes, never=BAD_FEATURES)
        listed, unknown = self._named(nodelist)
        with_all = [_with_nodes(each, listed) for each in possible if not (listed & ~each.member).any()]
        if unknown or not with_all:
            return NodeRequest(no_nodes, never=BAD_NODES)
        member = np.bitwise_or.reduce([each.member for each in with_all])
        fewest = min(each.fewest for each in with_all)
        if len(kinds) == 1 and not fewest:
            return NodeRequest(member)
        return NodeRequest(member, tuple(with_all), fewest, wanted.exact)

    def _kind_of(self, features: Features, wanted: Constraint, plain: Bytes) -> NodeSet:
        counts = tuple((plain & self._having(each), many) for each, many in wanted.counts)
        return NodeSet(plain & self._having(features), counts)

    def _in(self, partition: int) -> Bytes:
        if partition not in self._partition:
            names = set(self._site.partitions[partition].nodes)
            self._partition[partition] = np.array([name in names for name in self._row], dtype=np.uint8)
        return self._partition[partition]

    def _of_type(self, wanted: str) -> Bytes:
        """Return the nodes with a GPU type (gres.html); nodes without a type in the site's file match any type."""
        if wanted not in self._type:
            found = [not wanted or node.gpu_kind in (wanted, GPU) for node in self._site.nodes]
            self._type[wanted] = np.array(found, dtype=np.uint8)
        return self._type[wanted]

    def _having(self, wanted: Features) -> Bytes:
        if wanted not in self._features:
            found = [wanted == ANY_NODE or meets(features, wanted) for features in self._kinds]
            self._features[wanted] = np.array(found, dtype=np.uint8)[self._kind]
        return self._features[wanted]

    def _named(self, text: str) -> tuple[Bytes, bool]:
        """Return the nodes of a list, and whether it has an unknown name."""
        found, unknown = np.zeros(len(self._row), dtype=np.uint8), False
        try:
            names: Sequence[str] = expanded(text)
        except InputError:
            return found, True
        for name in names:
            if name in self._row:
                found[self._row[name]] = 1
            else:
                unknown = True
        return found, unknown


def _with_nodes(kind: NodeSet, listed: Bytes) -> NodeSet:
    """Return the kind with required hosts; each host counts for the first count that includes and still needs it."""
    if not listed.any():
        return kind
    left = [many for _, many in kind.counts]
    for node in np.flatnonzero(listed).tolist():
        own = next((row for row, (nodes, _) in enumerate(kind.counts) if nodes[node] and left[row]), None)
        if own is not None:
            left[own] -= 1
    others = tuple((nodes, many) for (nodes, _), many in zip(kind.counts, left, strict=True) if many)
    return NodeSet(kind.member, ((listed, int(listed.sum())), *others))
