"""The resources of a cluster: all allocations go through this class, which rejects impossible ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simpy import Environment, Event
from simpy.core import BoundClass
from simpy.resources.base import BaseResource, Get, Put

from gridsim.entities.clock import PriorityEvent
from gridsim.entities.node_capacity import FREE, NO_PLACE, SHORT, Held, NodeCapacity
from gridsim.errors import PolicyError, policy_error
from gridsim.machine.demand_classes import DemandClasses
from gridsim.machine.node_profile import EXCLUSIVE, TASKS
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, to_us
from gridsim.policy.protocols import Placement


class Request(Get["Machine"]):
    """Request of a user process for cores or whole nodes, in first-come-first-served order; occurs when they are idle.

    Parameters
    ----------
    machine : Machine
        The machine.
    cores : int, optional
        Number of cores; on a machine with nodes, on the first nodes with free cores.
    until : float
        Latest time of the release, s; the scheduler, if any, plans with it.
    nodes : int, or sequence of int or str, optional
        Instead of *cores*: the number of whole nodes, or the nodes by number or name. The nodes are held exclusively.

    Attributes
    ----------
    cores : int
        Requested cores; for a request of nodes the cores of its nodes, 0 before it holds them.
    until : int
        Latest time of the release, whole microseconds.
    holds : bool
        Whether the request holds its cores.
    placement : Placement or None
        Placement on a machine with nodes, while the request holds its cores.
    lost : Event
        Occurs when a node of the request fails; the request then holds nothing.
    row : int or None
        Identifier of the hold on the machine: a row of the scheduler's requests, if there is a scheduler.

    Raises
    ------
    PolicyError
        If the machine is too small, *until* has passed, or the machine's scheduler does not support external holds.
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
            raise PolicyError(f"{cores} cores are requested, but the machine has {machine.cores}")
        if machine.why_not is not None:
            raise PolicyError(f"{what} cannot be held by a custom process: {machine.why_not}")
        self.cores, self.until, self.holds = cores or 0, to_us(until), False
        if machine.holds is not None and not machine.now < self.until < NEVER:
            raise PolicyError(f"{what} are requested until {until!r} s; expected a time after {machine.now / 1e6} s")
        self.placement: Placement | None = None
        self.row: int | None = None
        super().__init__(machine)
        self.lost = Event(self.env)

    @property
    def what(self) -> str:
        """Text with the requested amount."""
        if self.nodes is None:
            return f"{self.cores} cores"
        return f"{self.nodes if isinstance(self.nodes, int) else len(self.nodes)} nodes"


class Release(Put["Machine"]):
    """Release of a request's cores, effective at once.

    Raises
    ------
    PolicyError
        If the request holds nothing.
    """

    def __init__(self, machine: Machine, request: Request) -> None:
        if not request.holds:
            raise PolicyError(f"{request.what} are released, but the request does not hold them")
        self.request = request
        super().__init__(machine)


class Machine(BaseResource[Release, Request]):
    """Resources of a cluster, in one pool of cores or on nodes, with all allocations.

    A SimPy resource: `request` and `release` are events for any user process. For jobs, the scheduler decides and the
    cluster calls `take` and `give_back`, which act at once without events, for speed.

    Parameters
    ----------
    cores : int
        Total number of cores.
    nodes : Capacity, optional
        Capacity of the nodes; one pool of cores if omitted.
    owner : object
        Scheduler or policy whose decisions are applied; error messages contain its name.
    demands : DemandClasses, optional
        Requested resources of nodes and pools; only cores if omitted.
    closing : int, optional
        Priority of the end of an instant. If set, a scheduler that decides between two events may overcommit within an
        instant, since a job that ends in this instant releases its resources. If omitted, overcommitment is rejected.

    Attributes
    ----------
    free : int
        Free cores; negative while overcommitted within an instant.
    nodes : NodeCapacity or None
        Free capacity of the nodes.
    pools : list of int or None
        Free amount of each pool, if any request uses pools.
    holds : object or None
        Listener for starts and ends of holds by user processes.
    why_not : str or None
        Reason why user processes cannot hold cores.
    jobs : dict of int to (int, int)
        Cores and expected end (whole microseconds) of each request that holds resources.
    """

    def __init__(
        self,
        env: Environment,
        cores: int,
        nodes: Capacity | None = None,
        *,
        owner: Any = None,
        closing: int | None = None,
        demands: DemandClasses | None = None,
    ) -> None:
        super().__init__(env, cores)
        self.cores = self.free = cores
        self.nodes = None if nodes is None or not nodes.nodes else NodeCapacity(nodes)
        self.jobs: dict[int, tuple[int, int]] = {}
        self._places: dict[int, Held] = {}  # by request
        self._suspended: dict[int, tuple[int, Held]] = {}  # cores and all resources
        self._held: dict[int, Request] = {}  # of user processes
        self._absent: dict[tuple[int, int], int] = {}  # known ends of absent nodes and GPUs
        self.all_absent = False  # no node is present or known to return
        self._demands, self.pools = demands, None if demands is None else demands.columns.amounts.tolist()
        self._owner, self._closing, self._lent = owner, closing, False
        self.holds: Any = None
        self._none_waiting = 0  # identifiers of holds without a scheduler, negative
        self.why_not: str | None = None

    @property
    def now(self) -> int:
        """Current time, whole microseconds."""
        return int(self._env.now)

    def numbers(self, nodes: int | Sequence[int | str]) -> int | tuple[int, ...]:
        """Return nodes by their numbers; a number of nodes is returned unchanged.

        Raises
        ------
        PolicyError
            If the machine has too few nodes, or a node is unknown or repeated.
        """
        known = () if self.nodes is None else self.nodes.names
        if not known:
            raise PolicyError(f"nodes are requested, but the machine has {self.cores} cores without nodes")
        if isinstance(nodes, int):
            if not 0 < nodes <= len(known):
                raise PolicyError(f"{nodes} nodes are requested, but the machine has {len(known)}")
            return nodes
        found = []
        for node in nodes:
            if node not in known if isinstance(node, str) else not 0 <= node < len(known):
                raise PolicyError(f"node {node!r} is requested, but none of the {len(known)} nodes has that name")
            found.append(known.index(node) if isinstance(node, str) else int(node))
        if not found or len(set(found)) < len(found):
            raise PolicyError(f"nodes {list(nodes)} are requested; expected one or more, each once")
        return tuple(sorted(found))

    request = BoundClass(Request)
    release = BoundClass(Release)

    # -- jobs --------------------------------------------------------------------------------------------------------

    def take(self, request: int, cores: int, until: int, placement: Placement | None = None) -> Placement | None:
        """Allocate resources to a starting request; return the placement on a machine with nodes.

        Parameters
        ----------
        cores : int
            Number of allocated cores.
        until : int
            Expected end, whole microseconds.
        placement : Placement, optional
            Placement on a machine with nodes; the first nodes with free cores if omitted.

        Raises
        ------
        PolicyError
            If the resources are not free or do not exist.
        """
        self.free -= cores
        if self.free < 0:
            self._short(request, cores, f"only {self.free + cores} of {self.cores} cores are free")
        self.jobs[request] = (cores, until)
        if self.pools is not None:
            self._draw(request, cores)
        return None if self.nodes is None and placement is None else self._occupy(request, cores, placement)

    def give_back(self, request: int) -> None:
        """Release all resources of a request."""
        self._suspended.pop(request, None)
        self.free += self.jobs.pop(request)[0]
        if self.nodes is not None:
            held = self._places.pop(request)
            self.nodes.give_back(held)
            if self._absent:
                self.free -= sum(cores for node, cores in self.nodes.cores_of(held) if self.nodes.absent[node])
        if self.pools is not None and self._demands is not None:
            for pool, amount in self._demands.of_pools(request):
                self.pools[pool] += amount
        if self.get_queue:
            self._trigger_get(None)

    def suspend(self, request: int) -> None:
        """Release the cores of a request, which keeps all else."""
        assert self.nodes is not None
        (cores, _), held = self.jobs[request], self._places[request]
        self._suspended[request] = cores, held
        self.jobs[request] = 0, NEVER
        given, self._places[request] = self.nodes.split(held)
        self.nodes.give_back(given)
        self.free += cores - sum(each for node, each in self.nodes.cores_of(given) if self.nodes.absent[node])

    def resume(self, request: int, until: int) -> None:
        """Take the cores of a suspended request again.

        Raises
        ------
        PolicyError
            If they are not free.
        """
        assert self.nodes is not None
        cores, held = self._suspended.pop(request)
        self.free -= cores
        given, _ = self.nodes.split(held)
        went = self.nodes.take(given)
        if went != FREE:
            self._short(request, cores, self.nodes.short(given) if went == SHORT else "its nodes are absent")
        self._places[request], self.jobs[request] = held, (cores, until)

    def lose_hold(self, row: int) -> bool:
        """Release what a user process holds, if it is one, and let its event ``lost`` occur."""
        request = self._held.get(row)
        if request is None:
            return False
        Release(self, request)
        request.lost.succeed(request)
        return True

    def change(self, ends: Mapping[tuple[int, int], int | None]) -> None:
        """Remove and restore nodes and GPUs.

        Parameters
        ----------
        ends : mapping of (int, int) to int or None
            Known end of the absence of a node and its GPU (-1: of the node), whole microseconds; None: it is present.
        """
        assert self.nodes is not None
        for part, end in ends.items():
            if end is None and self._absent.pop(part, None) is not None:
                self.free += self.nodes.change(*part, 1)
            elif end is not None:
                if part not in self._absent:
                    self.free += self.nodes.change(*part, -1)
                self._absent[part] = end
        lost = sum(gpu < 0 and end >= NEVER for (_, gpu), end in self._absent.items())
        self.all_absent = lost == len(self.nodes.names)
        if self.get_queue:
            self._trigger_get(None)

    def running(self) -> Iterator[tuple[int, int, int, dict[str, int], list[tuple[int, int]]]]:
        """Yield what is held by node: request, expected end, node, amounts, and thousandths of GPUs by number."""
        assert self.nodes is not None
        for request, held in self._places.items():
            for u, node in enumerate(held.node.tolist()):
                amounts = dict(zip(self.nodes.resources, held.amounts[:, u].tolist(), strict=True))
                gpus = [(gpu, share) for at, gpu, share in held.shares.tolist() if at == u]
                yield request, self.jobs[request][1], node, amounts, gpus

    @property
    def absent(self) -> dict[int, int]:
        """Known ends of the absences of nodes, whole microseconds; `NEVER` if unknown."""
        return {node: end for (node, gpu), end in self._absent.items() if gpu < 0}

    def on(self, node: int, gpu: int = -1) -> list[int]:
        """Return the requests that hold resources of a node, or of one of its GPUs."""
        return [
            request
            for request, held in self._places.items()
            if node in held.node
            and (gpu < 0 or any(held.node[u] == node and it == gpu for u, it, _ in held.shares.tolist()))
        ]

    def _draw(self, request: int, cores: int) -> None:
        """Take the requested amounts of pools."""
        assert self._demands is not None
        assert self.pools is not None
        for pool, amount in self._demands.of_pools(request):
            self.pools[pool] -= amount
            if self.pools[pool] < 0:
                left, name = self.pools[pool] + amount, self._demands.columns.pools[pool]
                self._short(request, cores, f"only {left} of the pool {name} are free")

    def _occupy(self, request: int, cores: int, placement: Placement | None) -> Placement:
        if self.nodes is None and placement is not None and not len(placement.node):
            return placement
        if self.nodes is None:
            raise self._refusal(request, cores, "it is placed on nodes, but the machine has none")
        placement = placement or self.nodes.first(cores)
        if placement is None:
            raise self._refusal(request, cores, "too few of its nodes are free")
        demands = self._demands
        if not len(placement.node) and (demands is None or demands.classes.shape[demands.classes.of[request], TASKS]):
            raise self._refusal(request, cores, "it has no nodes")
        whole = demands is not None and bool(demands.classes.shape[demands.classes.of[request], EXCLUSIVE])
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
        """Reject the allocation of resources that are not free, or check again at the end of the instant."""
        if self._closing is None:
            raise self._refusal(request, cores, why)
        if not self._lent:
            self._lent = True
            PriorityEvent(self._env, 0, self._closing, self._close)

    def _refusal(self, request: int, cores: int, why: str) -> PolicyError:
        at = f"{self._env.now / 1e6} s"
        return policy_error(self._owner, f"starts request {request} ({cores} cores) at {at}, but {why}")

    def _close(self, _: Any) -> None:
        """Check at the end of an instant that nothing is overcommitted."""
        self._lent = False
        at = f"in use at {self._env.now / 1e6} s"
        if self.free < 0:
            more = f"{-self.free} more cores {at} than the {self.cores} of the machine"
            raise policy_error(self._owner, f"has {more}")
        if self.pools is not None and min(self.pools, default=0) < 0 and self._demands is not None:
            pool = self.pools.index(min(self.pools))
            over = f"{-self.pools[pool]} of the pool {self._demands.columns.pools[pool]}"
            raise policy_error(self._owner, f"has {over} more {at} than exists")
        if self.nodes is not None and (over := self.nodes.over()):
            raise policy_error(self._owner, f"has {over} {at} than exists")

    # -- questions ---------------------------------------------------------------------------------------------------

    def left(self, now: int) -> int:
        """Return the remaining work of running requests by their estimates, core-microseconds."""
        return sum(cores * max(0, until - now) for cores, until in self.jobs.values())

    def earliest(self, needs: Iterable[tuple[int, int]], now: int) -> int:
        """Return when the last of some requests could start if they start in the given order; whole microseconds.

        `NEVER` if too many nodes are absent, and their return is unknown; earlier requests of this kind are left out.

        Parameters
        ----------
        needs : iterable of (int, int)
            Cores of each request, at most all cores, and its duration, whole microseconds.
        """
        ends = [(max(now, until), cores) for cores, until in self._freed() if until < NEVER]
        heapq.heapify(ends)
        free, at, most = self.free, now, self.free + sum(cores for _, cores in ends)
        start = now
        for need, lasts in needs:
            if need > most:
                start = NEVER
                continue
            while free < need:
                end, given = heapq.heappop(ends)
                at, free = max(at, end), free + given
            free -= need
            heapq.heappush(ends, (at + lasts, need))
            start = at
        return start

    def _freed(self) -> Iterable[tuple[int, int]]:
        """Return numbers of cores and the instants at which they become free, as far as is known."""
        if not self._absent or self.nodes is None:
            return self.jobs.values()
        away = self.absent
        found = [(self.nodes.cores_left(node), end) for node, end in away.items()]
        for request, (cores, until) in self.jobs.items():
            on_nodes = self.nodes.cores_of(self._places[request])
            found += [(given, max(until, away.get(node, 0))) for node, given in on_nodes]
            found.append((cores - sum(given for _, given in on_nodes), until))
        return found

    # -- user processes ------------------------------------------------------------------------------------------------

    def _do_get(self, event: Request) -> bool:
        if event.until <= self.now:  # its latest release passed while it waited
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
        self._none_waiting -= 1
        event.row = self._none_waiting if self.holds is None else self.holds.row(event, self.now)
        self._held[event.row] = event
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
        del self._held[request.row]
        self.give_back(request.row)
        request.placement = None
        event.succeed()
        return True
