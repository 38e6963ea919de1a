"""Links between clusters: delays of data that are sent from one cluster to another."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from simpy import Environment, Event, Interrupt, Resource

from gridsim.entities.clock import Instant, PriorityEvent
from gridsim.model.platform import Platform, RouterSpec
from gridsim.model.tasks import Tasks

if TYPE_CHECKING:
    from gridsim.entities.cluster import Cluster


class Receiver(Protocol):
    """Receiver of data."""

    def delivered(self, task: int) -> None:
        """Accept a datum that a task needs."""

    def arrive(self, task: int, touched: list[Cluster]) -> None:
        """Accept a datum when more may arrive at this time; clusters to notify afterwards are added to *touched*."""


class Links:
    """Fixed delays (``ccr``): transfers do not slow one another.

    Attributes
    ----------
    free : bool
        Whether all transfers take no time.
    waits_for_all : bool
        Whether the transfers of a task start together when its last predecessor has ended.
    """

    def __init__(self, env: Environment, tasks: Tasks, platform: Platform, instant: Instant, tick: int) -> None:
        self._env, self._platform, self._instant, self.tick = env, platform, instant, tick
        self.network = platform.network
        self.free = self.network.free
        self.waits_for_all = self.network.transfer_start == "all" and not self.free
        self._tasks, self._runtime, self._volume = tasks, tasks.runtime.data, tasks.volume
        self._levels = platform.levels()
        self._delays: dict[int, list[int]] = {}

    def send(self, task: int, edge: int, source: Cluster, target: Cluster, receiver: Receiver, successor: int) -> None:
        """Send the data of an ended task to the cluster of a successor."""
        delay = self.delay(task, edge, source, target)
        PriorityEvent(self._env, delay, self._instant.data, lambda event: receiver.delivered(successor))

    def delay(self, task: int, edge: int, source: Cluster, target: Cluster) -> int:
        """Return the nominal delay of an edge between two clusters, whole microseconds."""
        levels = self._levels[source.name, target.name]
        if self.network.transfer == "files":
            return self.network.delay(self._runtime[task], levels, self.tick, self.bytes_of(edge))
        if levels not in self._delays:
            self._delays[levels] = self.network.delays(self._tasks.runtime, levels, self.tick).tolist()
        return self._delays[levels][task]

    def bytes_of(self, edge: int) -> float | None:
        """Return the data volume of an edge, if the workload defines it."""
        return None if self._volume is None else float(self._volume[edge])

    def volume(self, task: int, edge: int) -> Fraction:
        """Return the data volume of an edge in ticks of an idle link."""
        return self.network.volume(self._runtime[task], self.bytes_of(edge), self.tick)


class _Shipments(Links):
    """Common part of contended links: paths through the tree, and one transfer for all successors on a cluster."""

    def __init__(self, env: Environment, tasks: Tasks, platform: Platform, instant: Instant, tick: int) -> None:
        super().__init__(env, tasks, platform, instant, tick)
        self._above = _routers_above(platform)
        self._under_way: dict[tuple[int, int, int], list[tuple[Receiver, int]]] = {}

    def send(self, task: int, edge: int, source: Cluster, target: Cluster, receiver: Receiver, successor: int) -> None:
        """Send the data once to each cluster; later successors there wait for the same transfer.

        If the transfers of a task start together, only those that start in the same instant are merged.
        """
        same = int(self._env.now) if self.waits_for_all else -1
        key = (task, target.index, edge if self.network.transfer == "files" else same)
        if key in self._under_way:
            self._under_way[key].append((receiver, successor))
            return
        self._under_way[key] = [(receiver, successor)]
        self._ship(key, self._path(source, target), self.volume(task, edge))

    def _ship(self, key: tuple[int, int, int], path: list[tuple[str, str]], volume: Fraction) -> None:
        raise NotImplementedError

    def _arrived(self, keys: Iterable[tuple[int, int, int]]) -> None:
        """Deliver data; clusters are notified after all deliveries, since they decide once per instant."""
        touched: list[Cluster] = []
        for key in keys:
            for receiver, successor in self._under_way.pop(key):
                receiver.arrive(successor, touched)
        for cluster in touched:
            cluster.close()

    def _path(self, source: Cluster, target: Cluster) -> list[tuple[str, str]]:
        """Return the link directions of a path: up to the lowest common router, then down, source side first."""
        up, down = self._above[source.name], self._above[target.name]
        common = next(router for router in up if router in down)
        return [(node, "up") for node in _below(source.name, up, common)] + [
            (node, "down") for node in reversed(_below(target.name, down, common))
        ]


def _routers_above(platform: Platform) -> dict[str, list[str]]:
    """Return the routers above each cluster, from the nearest to the root."""
    parent: dict[str, str] = {}
    for node in platform.nodes():
        if isinstance(node, RouterSpec):
            parent.update({child.name: node.name for child in node.children})
    above = {}
    for cluster in platform.clusters():
        chain, node_name = [], cluster.name
        while node_name in parent:
            node_name = parent[node_name]
            chain.append(node_name)
        above[cluster.name] = chain
    return above


def _below(name: str, above: list[str], common: str) -> list[str]:
    """Return the node and its routers below *common*; each stands for the link to its parent."""
    return [name, *above[: above.index(common)]]


class FifoLinks(_Shipments):
    """Links with slots (``fifo``): a transfer takes one slot on each link of its path, source side first."""

    def __init__(self, env: Environment, tasks: Tasks, platform: Platform, instant: Instant, tick: int) -> None:
        super().__init__(env, tasks, platform, instant, tick)
        names = {node.name for node in platform.nodes()}
        self._slots = {
            (name, way): Resource(env, self.network.slots) for name in sorted(names) for way in ("up", "down")
        }

    def _ship(self, key: tuple[int, int, int], path: list[tuple[str, str]], volume: Fraction) -> None:
        self._env.process(self._transfer(key, path, -(-volume.numerator // volume.denominator) * self.tick))

    def _transfer(
        self, key: tuple[int, int, int], path: list[tuple[str, str]], duration: int
    ) -> Generator[Event, None, None]:
        held = []
        for link in path:
            request = self._slots[link].request()
            yield request
            held.append((link, request))
        yield PriorityEvent(self._env, duration, self._instant.data)
        for link, request in held:
            self._slots[link].release(request)
        self._arrived([key])


class SharedLinks(_Shipments):
    """Links with shared capacity (``shared``): max-min fair rates, computed again at each start and end.

    All values are exact rationals, so that a transfer is delivered at the ceiling of its fluid completion time.
    """

    def __init__(self, env: Environment, tasks: Tasks, platform: Platform, instant: Instant, tick: int) -> None:
        super().__init__(env, tasks, platform, instant, tick)
        self._capacity = Fraction(self.network.capacity)
        self._cap = Fraction(self.network.transfer_rate_cap)
        self._left: dict[tuple[int, int, int], Fraction] = {}
        self._paths: dict[tuple[int, int, int], list[tuple[str, str]]] = {}
        self._rates: dict[tuple[int, int, int], Fraction] | None = None  # None: to be computed
        self._done: list[tuple[int, int, int]] = []
        self._at = Fraction(0)
        self._waiting = False
        self.process = env.process(self._run())

    def _ship(self, key: tuple[int, int, int], path: list[tuple[str, str]], volume: Fraction) -> None:
        self._flow()
        self._left[key], self._paths[key], self._rates = volume, path, None
        if self._waiting:
            self._waiting = False
            self.process.interrupt()

    def _flow(self) -> None:
        """Advance the transfers to the current time; the rates change at each completion in between."""
        now = Fraction(int(self._env.now), self.tick)
        self._take_out()
        while self._left and self._at < now:
            rates, first = self._next()
            step = min(first, now - self._at)
            for key, rate in rates.items():
                self._left[key] -= rate * step
            self._at += step
            self._take_out()
        self._at = now

    def _take_out(self) -> None:
        """Remove complete transfers from the active ones."""
        for key in [key for key, left in self._left.items() if left <= 0]:
            del self._left[key], self._paths[key]
            self._done.append(key)
            self._rates = None

    def _next(self) -> tuple[dict[tuple[int, int, int], Fraction], Fraction]:
        """Return the current rates and the number of ticks until the first transfer is complete."""
        rates = self._rates = self._fair() if self._rates is None else self._rates
        return rates, min(left / rates[key] for key, left in self._left.items())

    def _fair(self) -> dict[tuple[int, int, int], Fraction]:
        """Return max-min fair rates: repeatedly fix the transfers of the link with the least capacity per transfer."""
        rates: dict[tuple[int, int, int], Fraction] = {}
        links: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        for key, path in self._paths.items():
            for link in path:
                links.setdefault(link, []).append(key)
        left = dict.fromkeys(links, self._capacity)
        while len(rates) < len(self._paths):
            open_links = {link: [key for key in keys if key not in rates] for link, keys in links.items()}
            share, tightest = min((left[link] / len(keys), link) for link, keys in open_links.items() if keys)
            if share >= self._cap:
                rates.update({key: self._cap for key in self._paths if key not in rates})
                break
            for key in open_links[tightest]:
                rates[key] = share
                for link in self._paths[key]:
                    left[link] -= share
        return rates

    def _run(self) -> Generator[Event, None, None]:
        while True:
            self._flow()
            done, self._done = self._done, []
            self._arrived(done)
            try:
                self._waiting = True
                if self._left:
                    due = self._at + self._next()[1]
                    ticks = -(-due.numerator // due.denominator)
                    yield PriorityEvent(self._env, ticks * self.tick - int(self._env.now), self._instant.data)
                else:
                    yield Event(self._env)
                self._waiting = False
            except Interrupt:
                continue


def links_of(env: Environment, tasks: Tasks, platform: Platform, instant: Instant, tick: int) -> Links:
    """Return the links that the network of a platform defines."""
    kinds = {"ccr": Links, "fifo": FifoLinks, "shared": SharedLinks}
    return kinds[platform.network.kind](env, tasks, platform, instant, tick)
