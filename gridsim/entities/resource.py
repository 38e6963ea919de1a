"""A machine: the one owner of a cluster's resources, which grants only what is possible."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from simpy import Environment
from simpy.core import BoundClass
from simpy.resources.base import BaseResource, Get, Put

from gridsim.entities.instant import At
from gridsim.entities.nodes_left import Held, NodesLeft
from gridsim.errors import PolicyError
from gridsim.machine.allocating import NO_PLACE, SHORT
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.node_profile import EXCLUSIVE, TASKS
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, whole
from gridsim.policy.protocols import Placement, name_of


class Request(Get["Machine"]):
    """Cores or whole nodes for a process of somebody's own: happens when they are idle; who asked before comes first.

    Parameters
    ----------
    machine : Machine
        Of which.
    cores : int, optional
        How many cores; of nodes, those of the first that have any free.
    until : float
        When they are given back at the latest, s: what the scheduler counts on, where there is one.
    nodes : int, or sequence of int or str, optional
        Instead of *cores*: how many whole nodes, or which, by number or name. Nobody else holds anything of them then.

    Attributes
    ----------
    cores : int
        Cores asked for; of a number of nodes those that it has, 0 before.
    until : int
        The same in whole microseconds.
    holds : bool
        Whether it has them.
    placement : Placement or None
        Where, on a machine of nodes, as long as it has them.
    row : int or None
        What the machine calls it as long as it has them: a row of the scheduler's requests, where there is one.

    Raises
    ------
    PolicyError
        When the machine never has so many, *until* is over, or its scheduler cannot be told of them.
    """

    def __init__(
        self,
        machine: Machine,
        cores: int | None = None,
        until: float = float("inf"),
        *,
        nodes: int | Sequence[int | str] | None = None,
    ) -> None:
        if (cores is None) == (nodes is None):
            raise PolicyError("a request has cores and nodes, or neither; expected one of them")
        self.nodes = None if nodes is None else machine.numbers(nodes)
        what = "cores" if nodes is None else "nodes"
        if cores is not None and not 0 < cores <= machine.cores:
            raise PolicyError(f"{cores} cores are requested of a machine with {machine.cores}")
        if machine.why_not is not None:
            raise PolicyError(f"{what} cannot be held by a custom process: {machine.why_not}")
        self.cores, self.until, self.holds = cores or 0, whole(until), False
        if machine.holds is not None and not machine.now < self.until < NEVER:
            raise PolicyError(f"{what} are requested until {until!r} s; expected a time after {machine.now / 1e6} s")
        self.placement: Placement | None = None
        self.row: int | None = None
        super().__init__(machine)

    @property
    def what(self) -> str:
        """What is asked for, in words."""
        if self.nodes is None:
            return f"{self.cores} cores"
        return f"{self.nodes if isinstance(self.nodes, int) else len(self.nodes)} nodes"


class Release(Put["Machine"]):
    """What a request got is given back, at once.

    Raises
    ------
    PolicyError
        When it has nothing to give back.
    """

    def __init__(self, machine: Machine, request: Request) -> None:
        if not request.holds:
            raise PolicyError(f"{request.what} are released that the request does not hold")
        self.request = request
        super().__init__(machine)


class Machine(BaseResource[Release, Request]):
    """Cores: one pool of them, or those of nodes with what else these have; who holds what, where and until when.

    A resource as SimPy has them: `request` and `release` are events for anybody's process. For jobs a scheduler decides
    instead, and the cluster carries it out by `take` and `give_back`, at once and without events, for speed.

    Parameters
    ----------
    cores : int
        All cores.
    nodes : Capacity, optional
        What its nodes have; one pool of cores where left out.
    owner : object
        Whose decisions are carried out here, or refused: errors name it.
    asked : DemandClasses, optional
        What requests ask of its nodes and pools; cores alone where left out.
    closing : int, optional
        Priority of the end of an instant, where a scheduler may lend within one: it decides between two events, and a
        job that ends in this instant holds nothing from now on. Where left out, what is not free is refused at once.

    Attributes
    ----------
    free : int
        Cores that nobody holds; below 0 while they are lent within an instant.
    nodes : NodesLeft or None
        What they have left.
    pools : list of int or None
        What nobody holds of each pool, where requests ask for any.
    holds : object or None
        Who is told when a process of somebody's own begins and ends to hold cores.
    why_not : str or None
        Why no process of somebody's own may hold cores.
    jobs : dict of int to (int, int)
        Who holds something, by request: cores, and when it should end by its estimate, whole microseconds.
    """

    def __init__(
        self,
        env: Environment,
        cores: int,
        nodes: Capacity | None = None,
        *,
        owner: Any = None,
        closing: int | None = None,
        asked: DemandClasses | None = None,
    ) -> None:
        super().__init__(env, cores)
        self.cores = self.free = cores
        self.nodes = None if nodes is None or not nodes.nodes else NodesLeft(nodes)
        self.jobs: dict[int, tuple[int, int]] = {}
        self._places: dict[int, Held] = {}  # of each request
        self._asked, self.pools = asked, None if asked is None else asked.columns.amounts.tolist()
        self._owner, self._closing, self._lent = owner, closing, False
        self.holds: Any = None
        self._nobody = 0  # who holds something here and is known to no scheduler
        self.why_not: str | None = None

    @property
    def now(self) -> int:
        """The time, whole microseconds."""
        return int(self._env.now)

    def numbers(self, nodes: int | Sequence[int | str]) -> int | tuple[int, ...]:
        """Nodes by their numbers; a number of nodes as it is.

        Raises
        ------
        PolicyError
            For what is not so many of them, each once.
        """
        known = () if self.nodes is None else self.nodes.names
        if not known:
            raise PolicyError(f"nodes are requested of a machine of {self.cores} cores without nodes")
        if isinstance(nodes, int):
            if not 0 < nodes <= len(known):
                raise PolicyError(f"{nodes} nodes are requested of a machine with {len(known)}")
            return nodes
        found = []
        for node in nodes:
            if node not in known if isinstance(node, str) else not 0 <= node < len(known):
                raise PolicyError(f"node {node!r} is requested of a machine with {len(known)} nodes, none of that name")
            found.append(known.index(node) if isinstance(node, str) else int(node))
        if not found or len(set(found)) < len(found):
            raise PolicyError(f"nodes {list(nodes)} are requested; expected one or more, each once")
        return tuple(sorted(found))

    request = BoundClass(Request)
    release = BoundClass(Release)

    # -- jobs --------------------------------------------------------------------------------------------------------

    def take(self, request: int, cores: int, until: int, placement: Placement | None = None) -> Placement | None:
        """Let a request hold what it starts on; where, on a machine of nodes.

        Parameters
        ----------
        cores : int
            Cores that it counts for.
        until : int
            When it should end, whole microseconds.
        placement : Placement, optional
            On a machine of nodes; the first ones that have cores where left out.

        Raises
        ------
        PolicyError
            When that is not free, or not there at all.
        """
        self.free -= cores
        if self.free < 0:
            self._short(request, cores, f"only {self.free + cores} of {self.cores} cores are free")
        self.jobs[request] = (cores, until)
        if self.pools is not None:
            self._draw(request, cores)
        return None if self.nodes is None and placement is None else self._occupy(request, cores, placement)

    def give_back(self, request: int) -> None:
        """A request holds nothing any more."""
        self.free += self.jobs.pop(request)[0]
        if self.nodes is not None:
            self.nodes.give_back(self._places.pop(request))
        if self.pools is not None and self._asked is not None:
            for pool, amount in self._asked.of_pools(request):
                self.pools[pool] += amount
        if self.get_queue:
            self._trigger_get(None)

    def _draw(self, request: int, cores: int) -> None:
        """Take what a request asks of pools."""
        assert self._asked is not None
        assert self.pools is not None
        for pool, amount in self._asked.of_pools(request):
            self.pools[pool] -= amount
            if self.pools[pool] < 0:
                left, name = self.pools[pool] + amount, self._asked.columns.pools[pool]
                self._short(request, cores, f"only {left} of the pool {name} are free")

    def _occupy(self, request: int, cores: int, placement: Placement | None) -> Placement:
        if self.nodes is None and placement is not None and not len(placement.node):
            return placement
        if self.nodes is None:
            raise self._refusal(request, cores, "it is placed on nodes, and the machine has none")
        placement = placement or self.nodes.first(cores)
        if placement is None:
            raise self._refusal(request, cores, "the nodes have too few free")
        asked = self._asked
        if not len(placement.node) and (asked is None or asked.classes.shape[asked.classes.of[request], TASKS]):
            raise self._refusal(request, cores, "it is placed on no node")
        whole = asked is not None and bool(asked.classes.shape[asked.classes.of[request], EXCLUSIVE])
        held = self.nodes.read(placement, cores, whole=whole)
        if isinstance(held, str):
            raise self._refusal(request, cores, held)
        went = self.nodes.take(held)
        if went == NO_PLACE:
            raise self._refusal(request, cores, self.nodes.wrong(placement))
        if went == SHORT:
            self._short(request, cores, self.nodes.short(held))
        self._places[request] = held
        return placement

    def _short(self, request: int, cores: int, why: str) -> None:
        """Refuse what is not free, or look again when the instant closes."""
        if self._closing is None:
            raise self._refusal(request, cores, why)
        if not self._lent:
            self._lent = True
            At(self._env, 0, self._closing, self._close)

    def _refusal(self, request: int, cores: int, why: str) -> PolicyError:
        at = f"{self._env.now / 1e6} s"
        return PolicyError(f"{name_of(self._owner)} starts request {request} ({cores} cores) at {at}, but {why}")

    def _close(self, _: Any) -> None:
        """What was lent within the instant is to be back."""
        self._lent = False
        at = f"in use at {self._env.now / 1e6} s"
        if self.free < 0:
            more = f"{-self.free} cores more {at} than the {self.cores} that there are"
            raise PolicyError(f"{name_of(self._owner)} has {more}")
        if self.pools is not None and min(self.pools, default=0) < 0 and self._asked is not None:
            pool = self.pools.index(min(self.pools))
            over = f"{-self.pools[pool]} of the pool {self._asked.columns.pools[pool]}"
            raise PolicyError(f"{name_of(self._owner)} has {over} more {at} than there is")
        if self.nodes is not None and (over := self.nodes.over()):
            raise PolicyError(f"{name_of(self._owner)} has {over} {at} than there is")

    # -- questions ---------------------------------------------------------------------------------------------------

    def left(self, now: int) -> int:
        """What the jobs that run have left of their estimates, core-microseconds."""
        return sum(cores * max(0, until - now) for cores, until in self.jobs.values())

    def earliest(self, needs: Iterable[tuple[int, int]], now: int) -> int:
        """When the last of some requests could start, none before those that come before it; whole microseconds.

        Parameters
        ----------
        needs : iterable of (int, int)
            Cores of each, no more than there are, and how long it holds them, whole microseconds.
        """
        ends = [(max(now, until), cores) for cores, until in self.jobs.values()]
        heapq.heapify(ends)
        free, at = self.free, now
        for need, lasts in needs:
            while free < need:
                end, given = heapq.heappop(ends)
                at, free = max(at, end), free + given
            free -= need
            heapq.heappush(ends, (at + lasts, need))
        return at

    # -- processes of somebody's own -----------------------------------------------------------------------------------

    def _do_get(self, event: Request) -> bool:
        if event.until <= self.now:  # it waited for longer than it would have held them
            event.fail(PolicyError(f"no {event.what} were idle before {event.until / 1e6} s"))
            return True
        placement = None
        if self.nodes is not None:
            placement = self.nodes.first(event.cores) if event.nodes is None else self.nodes.idle(event.nodes)
            if placement is None:
                return False
            if event.nodes is not None:
                event.cores = int(sum(placement.amounts.get("cores", ())))
        if event.cores > self.free:
            return False
        self._nobody -= 1
        event.row = self._nobody if self.holds is None else self.holds.row(event, self.now)
        event.placement, event.holds = self.take(event.row, event.cores, event.until, placement), True
        if self.holds is not None:
            self.holds.began(event, self.now)
        event.succeed(event)
        return True

    def _do_put(self, event: Release) -> bool:
        request = event.request
        assert request.row is not None
        request.holds = False
        if self.holds is not None:
            self.holds.ended(request)
        self.give_back(request.row)
        request.placement = None
        event.succeed()
        return True
