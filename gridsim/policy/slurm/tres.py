"""Requested and held amounts of trackable resources (TRES), and their billing.

Sources: slurm.schedmd.com/tres.html; priority_multifactor.html ("each TRES Type has its own priority factor for a job
which represents the number of requested/allocated TRES Type in a given partition. For global TRES Types, such as
Licenses and Burst Buffers, the factor represents the number … in the whole system"); slurm.conf(5),
``PriorityWeightTRES``, ``TRESBillingWeights`` ("if TRESBillingWeights is not defined then the job is billed against the
total number of allocated CPUs") and ``PriorityFlags`` (``MAX_TRES``: "the MAX of individual TRESs on a node (e.g. cpus,
mem, gres) plus the sum of all global TRESs (e.g. licenses)").

Until it runs, an entry counts with its minimum demand: one node if it requests no number, and of whole nodes the
requested cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.site.parameters import BILLING, CPU, GPUS, MEMORY, NODE, gpu_type, licence, licences_requested
from gridsim.model.time import FloatArray, IntArray
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.nodes import Demands, NodeColumns, memory_on
from gridsim.policy.slurm.queue_entries import label_of, names_of

FIXED, CORES, MIB, NODES, ANY_GPU, BILL = range(6)
"""Determination of the held amount: the requested amount, or the amount on the allocated nodes."""
OF_NODE, OF_GRES, OF_SITE = range(3)
SUM, MAX, MAX_GRES = range(3)
AT_ONCE, USED, USED_SAFELY, RUNNING = range(4)
UNLIMITED = 1 << 62
_MODES = {"sum": SUM, "max": MAX, "max gres": MAX_GRES}


class Tracked(NamedTuple):
    """Tracked resources, one column each.

    Attributes
    ----------
    kind, place : (k,) int64
        How the held amount is determined; whether the resource belongs to nodes, is generic, or belongs to the site.
    gpu_type : (k,) int64
        Number of the GPU type that counts, -1 for any.
    node_type : (n,) int64
        Number of the GPU type of each node.
    asked : (e, k) int64
        Requested amount of each entry.
    weight : (p, k) float64
        Billing weight per unit in each partition.
    mode : (1,) int64
        How the weighted amounts are combined.
    """

    kind: IntArray
    place: IntArray
    gpu_type: IntArray
    node_type: IntArray
    asked: IntArray
    weight: FloatArray
    mode: IntArray


def tracked_of(names: Sequence[str], requests: Requests, site: Site, demands: Demands) -> Tracked:
    """Return columns for some resources, in this order; cores and billed resources precede billing itself."""
    kinds = {CPU: CORES, MEMORY: MIB if site.memory else FIXED, NODE: NODES, BILLING: BILL}
    kind = [kinds.get(name, ANY_GPU if name.startswith(GPUS) else FIXED) for name in names]
    place = [OF_GRES if name.startswith(GPUS) else OF_SITE if licence(name) else OF_NODE for name in names]
    types = {each: number for number, each in enumerate(dict.fromkeys(node.gpu_kind for node in site.nodes))}
    of_type = [types.get(gpu_type(name), -2) if gpu_type(name) else -1 for name in names]
    asked: IntArray = np.zeros((len(demands), len(names)), dtype=np.int64)
    for column, name in enumerate(names):
        if name != BILLING:
            asked[:, column] = _requested_amount(name, requests, site, demands)
    weight = np.zeros((len(site.partitions), len(names)))
    for row, partition in enumerate(site.partitions):
        for name, each in partition.billing or ((CPU, 1.0),):
            if name in names:
                weight[row, names.index(name)] = each
    tracked = Tracked(
        np.array(kind, dtype=np.int64),
        np.array(place, dtype=np.int64),
        np.array(of_type, dtype=np.int64),
        np.array([types[node.gpu_kind] for node in site.nodes], dtype=np.int64),
        asked,
        weight,
        np.array([_MODES[site.priority.billed]], dtype=np.int64),
    )
    if BILLING in names:
        _bill_requested(demands["part"].copy(), asked, names.index(BILLING), tracked)
    return tracked


def _requested_amount(name: str, requests: Requests, site: Site, demands: Demands) -> IntArray:
    """Return the demand of each entry for a resource."""
    nodes: IntArray = np.maximum(demands["nodes"], 1)
    if name == CPU:
        return np.asarray(demands["cores"], dtype=np.int64)
    if name == NODE:
        return nodes
    if name == MEMORY:
        return _memory(requests, site, demands, nodes)
    if name == GPUS:
        return np.asarray(demands["gpus"] * nodes, dtype=np.int64)
    if licence(name):
        return np.asarray(licences_of(requests, licence(name))[demands["request"]], dtype=np.int64)
    wanted = np.array([each == gpu_type(name) for each in names_of(requests, "gpu_type")], dtype=bool)
    found: IntArray = np.where(wanted[demands["request"]], demands["gpus"] * nodes, 0)
    return found


def licences_of(requests: Requests, name: str) -> IntArray:
    """Return the number of licences of a name that each request needs (label ``licenses``)."""
    texts = names_of(requests, "licenses")
    each = {text: licences_requested(text).get(name, 0) for text in dict.fromkeys(texts)}
    return np.array([each[text] for text in texts], dtype=np.int64)


def _memory(requests: Requests, site: Site, demands: Demands, nodes: IntArray) -> IntArray:
    """Return MiB; if all memory of a node is requested, that of the smallest node of the partition."""
    if not site.memory:
        node, core = (label_of(requests, name)[demands["request"]] for name in ("memory_mb", "memory_core_mb"))
        said: IntArray = np.where(node >= 0, node * nodes, np.where(core > 0, core * demands["cores"], 0))
        return said
    of_node = {node.name: node.memory for node in site.nodes}
    least = [min((of_node[name] for name in each.nodes), default=0) for each in site.partitions]
    node = np.where(demands["memory"] < 0, np.array(least, dtype=np.int64)[demands["part"]], demands["memory"])
    found: IntArray = node * nodes + demands["core_memory"] * demands["cores"]
    return found


@njit_noalloc
def count_held(entry, nodes, given, demands, machine, tracked, found):  # type: ignore[no-untyped-def]
    """Set *found* to the amount of each resource that an entry holds with these cores on these nodes."""
    for column in range(len(found)):
        kind, total = tracked.kind[column], 0
        if kind == FIXED:
            total = tracked.asked[entry, column]
        elif kind == BILL:
            total = int(np.floor(bill(demands.part[entry], found, tracked) + 1e-9))
        else:
            for place in range(len(nodes)):
                node = nodes[place]
                if kind == CORES:
                    total += given[place]
                elif kind == MIB:
                    total += memory_on(entry, node, given[place], demands, machine)
                elif kind == NODES:
                    total += 1
                elif tracked.gpu_type[column] == -1 or tracked.gpu_type[column] == tracked.node_type[node]:
                    total += machine.gpus[node] if demands.exclusive[entry] else demands.gpus[entry]
        found[column] = total


class TresColumns(NamedTuple):
    """Limits of resources, one column each.

    Attributes
    ----------
    resource, over : (k,) int64
        Column of *tracked*; kind of the limit: on resources held at once, on usage (running jobs count after their
        end, or with their time limit), or on held resources times remaining time: `AT_ONCE`, `USED`, `USED_SAFELY`,
        `RUNNING`.
    most, used, code : (c, k) int64
        Limit of each counter, present value, and wait reason of a request that is held back.
    asked : (e, k) int64
        Minimum amount that an entry would add.
    held : (e, r) int64
        Amount of each resource that an entry holds, or held last.
    time, left : (e,) int64
        Seconds that count for an entry at its start, and now.
    tracked : Tracked
        The resources.
    """

    resource: IntArray
    over: IntArray
    most: IntArray
    used: IntArray
    code: IntArray
    asked: IntArray
    held: IntArray
    time: IntArray
    left: IntArray
    tracked: Tracked


def columns_of(
    tres: TresColumns, before: TresColumns, columns: IntArray, others: IntArray
) -> tuple[IntArray, IntArray]:
    """Return indices into *columns* of limits, and into *others* of earlier limits, of those with the same meaning."""
    place = {(tres.resource[each], tres.over[each]): row for row, each in enumerate(columns.tolist())}
    keys = [(before.resource[each], before.over[each]) for each in others.tolist()]
    pairs = [(place[key], row) for row, key in enumerate(keys) if key in place]
    to, source = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return to, source


@njit_noalloc
def over_limit(entry, counter, tres):  # type: ignore[no-untyped-def]
    """Return the column of the first limit of a counter that holds an entry back, -1 if none does."""
    for column in range(len(tres.resource)):
        if tres.used[counter, column] + tres.asked[entry, column] > tres.most[counter, column]:
            return column
    return -1


@njit_noalloc
def begin_tres(entry, nodes, given, demands, machine, tres):  # type: ignore[no-untyped-def]
    """Record the amounts that an entry holds from now on."""
    count_held(entry, nodes, given, demands, machine, tres.tracked, tres.held[entry])
    tres.left[entry] = tres.time[entry]


@njit_noalloc
def count_tres(entry, sign, first, end, counter, tres):  # type: ignore[no-untyped-def]
    """Add the held amounts of an entry to its counters, or subtract them."""
    for place in range(first, end):
        for column in range(len(tres.resource)):
            amount = sign * tres.held[entry, tres.resource[column]]
            if tres.over[column] == AT_ONCE:
                tres.used[counter[place], column] += amount
            elif tres.over[column] != USED:
                tres.used[counter[place], column] += amount * tres.left[entry]


@njit_noalloc
def bill(partition, amounts, tracked):  # type: ignore[no-untyped-def]
    """Return the billing of amounts of resources in a partition."""
    most, total, mode = 0.0, 0.0, tracked.mode[0]
    for column in range(len(amounts)):
        if tracked.kind[column] == BILL:
            continue
        part = tracked.weight[partition, column] * amounts[column]
        place = tracked.place[column]
        if mode == SUM or place == OF_SITE or (mode == MAX_GRES and place == OF_GRES):
            total += part
        else:
            most = max(most, part)
    return max(most + total, 0.0)


@njit_noalloc
def _bill_requested(partition, asked, column, tracked):  # type: ignore[no-untyped-def]
    """Set a column to the billing of the requested amounts of entries, truncated to integers."""
    for entry in range(len(asked)):
        asked[entry, column] = int(np.floor(bill(partition[entry], asked[entry], tracked) + 1e-9))


class Bills:
    """Billing of entries: cores, or weights of their partition (``TRESBillingWeights``).

    Parameters
    ----------
    requests, site, demands
        The requests, their site, and the demands of their entries.
    machine : NodeColumns or None
        The nodes; if None, entries are billed for requested amounts.
    """

    def __init__(self, requests: Requests, site: Site, demands: Demands, machine: NodeColumns | None = None) -> None:
        self._demands, self._machine, self._part = demands, machine, demands["part"]
        self._tracked: Tracked | None = None
        if any(each.billing for each in site.partitions):
            names = dict.fromkeys(name for each in site.partitions for name, _ in (*each.billing, (CPU, 1.0)))
            self._tracked = tracked_of([name for name in names if name != BILLING], requests, site, demands)

    def of(self, entry: int, nodes: IntArray, cores: IntArray) -> float:
        """Return the billing of an entry while it holds these cores of nodes."""
        if self._tracked is None:
            return int(cores.sum())
        amounts = self._tracked.asked[entry].copy()
        if self._machine is not None:
            count_held(entry, nodes, cores, self._demands, self._machine, self._tracked, amounts)
        return float(bill(self._part[entry], amounts, self._tracked))


def with_billed(names: Iterable[str], site: Site) -> list[str]:
    """Return the names, with those on which billing depends before billing, if it is among them."""
    names = list(names)
    billed = [name for each in site.partitions for name, _ in each.billing] if BILLING in names else []
    found = dict.fromkeys([*((CPU,) if BILLING in names else ()), *billed, *names])
    return [*(name for name in found if name != BILLING), *(name for name in found if name == BILLING)]


def tres_priority(requests: Requests, site: Site, demands: Demands) -> FloatArray:
    """Return the weighted sum of demands as fractions of the partition's, or the site's, total of each resource."""
    total = np.zeros(len(demands))
    if not site.priority.tres:
        return total
    names = with_billed((name for name, _ in site.priority.tres), site)
    tracked = tracked_of(names, requests, site, demands)
    there = np.array([_there(names, site, each) for each in site.partitions], dtype=np.int64)
    if BILLING in names:
        _bill_requested(np.arange(len(there)), there, names.index(BILLING), tracked)
    for name, weight in site.priority.tres:
        whole = there[demands["part"], names.index(name)]
        part = tracked.asked[:, names.index(name)] / np.maximum(whole, 1)
        total += weight * np.where(whole > 0, np.minimum(part, 1.0), 0.0)
    return total


def _there(names: Sequence[str], site: Site, partition: SitePartition) -> list[int]:
    """Return the totals of resources of a partition, or of the site for resources that belong to it."""
    inside = set(partition.nodes)
    nodes = [node for node in site.nodes if node.name in inside]
    return [
        site.licences.get(licence(name), 0) if licence(name) else sum(amount_on(node, name) for node in nodes)
        for name in names
    ]


def amount_on(node: Node, name: str) -> int:
    """Return the amount of a resource on a node."""
    if name.startswith(GPUS):
        return node.gpus if gpu_type(name) in ("", node.gpu_kind) else 0
    return {CPU: node.cores, MEMORY: node.memory, NODE: 1}.get(name, 0)
