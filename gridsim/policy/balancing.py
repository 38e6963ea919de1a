"""Balancers: choice of the child of a router that gets a piece of a job, among those that can hold it entirely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from gridsim import registry
from gridsim.errors import InputError, call, policy_error
from gridsim.model.time import NEVER
from gridsim.policy.capabilities import begin, compares_quotes, first_of
from gridsim.policy.copies import per_cluster_copy

__all__ = [
    "CheapestGuarantee",
    "DataLocal",
    "EarliestGuarantee",
    "EarliestStart",
    "ExpectedQueue",
    "LeastUtilised",
    "PowerOfTwo",
    "RandomChild",
    "RoundRobin",
    "balancer",
    "pick_of",
]

_SOURCE = "Burkimsher, Bate, Indrusiak"


class Bid(NamedTuple):
    """Offer of a cluster with a plan for a job. Instants in whole microseconds.

    Attributes
    ----------
    accepted : bool
        Whether the job's user accepts a deadline that late.
    granted : int
        Latest end that it would guarantee; `NEVER` for an offer without a guaranteed end.
    kills : int
        Number of running jobs that it would kill and restart to free cores.
    start : int
        Planned start.
    charge : float
        Price of the requested core-seconds, at the cluster's rate.
    """

    accepted: bool
    granted: int
    kills: int
    start: int
    charge: float


class ClusterState(Protocol):
    """A cluster as a balancer sees it; work is cores times estimate, in core-microseconds."""

    kind: str
    cores: int
    free: int
    busy: int
    unfinished: int
    queued: int

    def remaining(self) -> int:
        """Return the queued work and the remaining work of running tasks."""

    def earliest_start(self, cores: int) -> int:
        """Return when a request for *cores* cores could start behind all waiting requests, whole microseconds."""

    def bid(self, piece: Any) -> Bid | None:
        """Return the cluster's offer for a job now, None if it rejects the job. Its state does not change."""


class PieceState(Protocol):
    """Tasks of one job that are routed together."""

    widest: dict[str, int]

    @property
    def work(self) -> int:
        """Cores times estimate of all tasks, core-microseconds."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the tasks."""

    def delay_to(self, cluster: Any) -> int:
        """Return the sum of the delays of data from predecessors that are already assigned, whole microseconds."""


class ChildState(Protocol):
    """A child of a router: a cluster, or a router over clusters."""

    def leaves(self) -> Sequence[ClusterState]:
        """Return the clusters at or below the child."""


_Load = tuple[int, int]
"""Work and cores, compared as the fraction work / cores by cross multiplication."""


def _least(loads: Sequence[_Load]) -> int:
    """Return the index of the smallest fraction, the first of equal ones."""
    best = 0
    work, cores = loads[0]
    for index in range(1, len(loads)):
        other_work, other_cores = loads[index]
        if other_work * cores < work * other_cores:
            best, work, cores = index, other_work, other_cores
    return best


def _first_least(values: Sequence[Any]) -> int:
    """Return the index of the smallest number, the first of equal ones."""
    return min(range(len(values)), key=values.__getitem__)


def _eligible(child: ChildState, kind: str, cores: int) -> list[ClusterState]:
    return [cluster for cluster in child.leaves() if cluster.kind == kind and cluster.cores >= cores]


@dataclass
class ExpectedQueue:
    """Shortest expected queue: work per core of the best cluster that could run the piece.

    Parameters
    ----------
    work : {"unfinished", "queued", "remaining"}
        Work that counts: all unfinished assigned work in full, only work that has not started, or the latter and the
        remaining work of running tasks.
    include_candidate : bool
        Whether the piece's own work is added to each candidate.
    advertise : {"eligible", "any"}
        Value of a router for the clusters below it. ``eligible``: of the best cluster that could run the widest task
        of each kind, for the worst kind. ``any``: of the best of all clusters.
    """

    work: Literal["unfinished", "queued", "remaining"] = "unfinished"
    include_candidate: bool = False
    advertise: Literal["eligible", "any"] = "eligible"
    source: ClassVar[str] = _SOURCE

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        return _least([self._value(piece, child) for child in children])

    def _value(self, piece: PieceState, child: ChildState) -> _Load:
        leaves = child.leaves()
        if len(leaves) == 1:  # large enough: only such children are candidates
            return self._load(leaves[0], piece)
        if self.advertise == "any":
            return self._best(leaves, piece)
        loads = [self._best(_eligible(child, kind, cores), piece) for kind, cores in piece.widest.items()]
        return loads[_least([(-work, cores) for work, cores in loads])]

    def _best(self, clusters: Sequence[ClusterState], piece: PieceState) -> _Load:
        loads = [self._load(cluster, piece) for cluster in clusters]
        return loads[_least(loads)]

    def _load(self, cluster: ClusterState, piece: PieceState) -> _Load:
        if self.work == "unfinished":
            work = cluster.unfinished
        else:
            work = cluster.queued if self.work == "queued" else cluster.remaining()
        return work + (piece.work if self.include_candidate else 0), cluster.cores


@dataclass
class RoundRobin:
    """Each child (cluster or router) in turn.

    Pieces with the same set of kinds and the same first child that can run them share a rotation. Wide pieces that do
    not fit at the first child of a router therefore have their own.
    """

    _turns: dict[tuple[int, frozenset[str]], int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def setup(self, rng: Generator) -> None:
        self._turns = {}

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        key = (id(children[0]), frozenset(piece.kinds))
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return turn % len(children)


@dataclass
class RandomChild:
    """A random child (cluster or router), uniform or weighted by cores."""

    weighted: bool = False
    name: ClassVar[str] = "random"
    _rng: Generator = field(init=False, repr=False, compare=False)

    def setup(self, rng: Generator) -> None:
        self._rng = rng

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        if not self.weighted:
            return int(self._rng.integers(len(children)))
        cores = [sum(cluster.cores for cluster in child.leaves()) for child in children]
        drawn = int(self._rng.integers(sum(cores)))
        for index, count in enumerate(cores):
            if drawn < count:
                return index
            drawn -= count
        return len(cores) - 1


@dataclass
class _Around:
    """Balancer that lets another one choose among some of the children."""

    balancer: Any = field(default_factory=ExpectedQueue)

    @property
    def quotes(self) -> bool:
        """True if the inner balancer compares quotes of clusters."""
        return compares_quotes(self.balancer)

    def setup(self, rng: Generator) -> None:
        self._rng = rng
        begin(self.balancer, rng)

    def _pick_of(self, some: Sequence[int], piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        return some[pick_of(self.balancer, piece, [children[index] for index in some], now)]


@dataclass
class PowerOfTwo(_Around):
    """The less loaded of two random children."""

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        if len(children) == 1:
            return 0
        one = int(self._rng.integers(len(children)))
        other = int(self._rng.integers(len(children) - 1))
        return self._pick_of(sorted((one, other + (other >= one))), piece, children, now)


@dataclass
class LeastUtilised:
    """The child with the smallest fraction of busy cores now; of equal ones, that with the shortest expected queue.

    Notes
    -----
    Cores for pieces sent at this same instant count as busy. Otherwise all jobs of one instant would be routed to the
    same child. Work that was already waiting counts only between equal children.
    """

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        sizes = [sum(cluster.cores for cluster in child.leaves()) for child in children]
        busy = [sum(cluster.busy for cluster in child.leaves()) for child in children]
        least = _least(list(zip(busy, sizes, strict=True)))
        equal = [place for place, cores in enumerate(sizes) if busy[place] * sizes[least] == busy[least] * cores]
        if len(equal) == 1:
            return least
        work = [sum(cluster.unfinished for cluster in children[place].leaves()) for place in equal]
        return equal[_least(list(zip(work, [sizes[place] for place in equal], strict=True)))]


@dataclass
class EarliestStart:
    """The child on which the piece's widest task could start first, behind all waiting requests."""

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        return _first_least([self._start(piece, child) for child in children])

    def _start(self, piece: PieceState, child: ChildState) -> int:
        return max(
            min(cluster.earliest_start(cores) for cluster in _eligible(child, kind, cores))
            for kind, cores in piece.widest.items()
        )


@dataclass
class DataLocal(_Around):
    """Least delay of the tasks' input data from the clusters of their predecessors, then the shortest queue."""

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        delays = [self._nearest(piece, child) for child in children]
        near = [index for index, delay in enumerate(delays) if delay == min(delays)]
        return self._pick_of(near, piece, children, now)

    def _nearest(self, piece: PieceState, child: ChildState) -> int:
        """Return the least delay to a cluster that could run the widest task of a kind of the piece."""
        return min(
            piece.delay_to(cluster) for kind, cores in piece.widest.items() for cluster in _eligible(child, kind, cores)
        )


class _ByBid:
    """Balancer that compares quotes of clusters."""

    quotes: ClassVar[bool] = True

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        """Return the child above the cluster with the best bid; the first one, which rejects the job, without bids."""
        ((kind, cores),) = piece.widest.items()
        bids = [
            (self._preference(bid), index)
            for index, child in enumerate(children)
            for cluster in _eligible(child, kind, cores)
            if (bid := cluster.bid(piece)) is not None
        ]
        return min(bids)[1] if bids else 0

    def _preference(self, bid: Bid) -> tuple[bool | int | float, ...]:
        return not bid.accepted, bid.granted, bid.kills, bid.start


@dataclass
class EarliestGuarantee(_ByBid):
    """The cluster that guarantees the earliest end, of all clusters below the router.

    Notes
    -----
    The balancer requests a quote from every able cluster of the subtree, in tree order. It compares offers by these
    criteria, in this order:

    - offers that the user accepts (tolerance of the workload) before offers that are too late;
    - the earliest guaranteed end: clusters that grant the requested deadline are equal, whatever the planned end, and
      any guarantee is better than none;
    - the fewest kills;
    - the earliest planned start;
    - the first in tree order.

    A job is rejected only if every cluster rejects it or offers a later end than its user accepts. Clusters need
    plans: guaranteed or conservative policies.
    """


@dataclass
class CheapestGuarantee(_ByBid):
    """The cluster with the lowest charge for a guarantee that the user accepts: rate times cores times estimate.

    Notes
    -----
    Like `EarliestGuarantee`, which decides between equal charges. Offers with a guarantee precede all offers without
    one, whatever the charge.
    """

    def _preference(self, bid: Bid) -> tuple[bool | int | float, ...]:
        return not bid.accepted, bid.granted >= NEVER, bid.charge, bid.granted, bid.kills, bid.start


@dataclass
class Scored:
    """A balancer with a user-defined ``score(piece, child, now)`` for one child: it picks the lowest score.

    Of equal scores it picks the first; *now* is in whole microseconds, as for `pick`.
    """

    scoring: Any

    def setup(self, rng: Generator) -> None:
        begin(self.scoring, rng)

    def pick(self, piece: PieceState, children: Sequence[ChildState], now: int) -> int:
        scores = [call(self.scoring, "score", piece, child, now) for child in children]
        if wrong := [score for score in scores if not isinstance(score, Real) or score != score]:
            raise policy_error(self.scoring, f"scores a child with {wrong[0]!r}; expected numbers")
        return _first_least(scores)


def pick_of(balancer: Any, piece: PieceState, children: Sequence[Any], now: int) -> int:
    """Return the index of the child that a balancer picks.

    Raises
    ------
    PolicyError
        If it returns anything else than an index of *children*, or fails.
    """
    index = call(balancer, "pick", piece, children, now)
    if not isinstance(index, int | np.integer) or not 0 <= index < len(children):
        raise policy_error(balancer, f"picked {index!r} of {len(children)} children")
    return int(index)


def balancer(what: Any) -> Any:
    """Return a balancer from a name with parameters, ``file.py:Class``, or an object.

    An object has ``pick(piece, children, now) -> int`` or ``score(piece, child, now)``, where the lowest score wins.

    Raises
    ------
    InputError
        For an unknown name, and for an object that has neither method.

    Examples
    --------
    >>> balancer("power-of-two").balancer
    ExpectedQueue(work='unfinished', include_candidate=False, advertise='eligible')
    """
    made = registry.make("balancer", what)
    if isinstance(made, type):
        raise InputError(f"{made.__name__} is a class; give an instance: {made.__name__}()", field="balancer")
    form = first_of(made, "pick", "score")
    if form is not None:
        return per_cluster_copy(made) if form == "pick" else Scored(per_cluster_copy(made))
    raise InputError(f"{made!r} is not a balancer; expected a pick or score method", field="balancer")
