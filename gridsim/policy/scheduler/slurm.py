"""A Slurm-like scheduler: multifactor priority, a quick pass after events, backfill by the clock, nodes with cores.

What is modelled and what is not is told in the documentation (background, Slurm); each part names its source.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.model.site import Site
from gridsim.model.site_file import read_site
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.protocols import Quote
from gridsim.policy.queue import ClusterView
from gridsim.policy.slurm.limits import Submissions, limits_of
from gridsim.policy.slurm.needs import SECOND, asks_of, closed_of, label_of, machine_of, owners_of, rows_of_numbers
from gridsim.policy.slurm.nodes import select
from gridsim.policy.slurm.passes import Held, Look, backfill_pass, main_pass, release
from gridsim.policy.slurm.standing import Standing

__all__ = ["Slurm"]

NOBODY: IntArray = np.zeros(0, dtype=np.int64)


@dataclass
class Slurm:
    """What Slurm's own scheduler would do, as far as its documentation says.

    Parameters
    ----------
    conf : str
        The site's ``slurm.conf``.
    assoc, qos, usage : str or None
        What ``sacctmgr dump`` (or ``show assoc tree``), ``sacctmgr -P show qos`` and ``sshare -alP`` printed; everybody
        has equal shares, nobody limits, nobody used anything where left out.
    boot : float
        Instant from which the periods of the scheduler are counted, s of the simulation (``BOOT_TIME`` in
        ``scontrol show config``); may be negative.
    site : Site or None
        The site itself, instead of files.

    Notes
    -----
    Jobs say what they need by the labels of `gridsim.model.site.LABELS`. Times at which jobs start are those of the
    scheduler: no time passes between a decision and a start.
    """

    conf: str | None = None
    assoc: str | None = None
    qos: str | None = None
    usage: str | None = None
    boot: float = 0.0
    site: Site | None = None
    source: ClassVar[str] = "slurm.schedmd.com: sched_config, priority_multifactor, fair_tree, cons_tres"

    def __post_init__(self) -> None:
        if self.site is None:
            if self.conf is None:
                raise InputError("is not given; slurm?conf=slurm.conf&assoc=assoc.cfg is needed", field="conf")
            self.site = read_site(self.conf, assoc=self.assoc, qos=self.qos, usage=self.usage)

    def __repr__(self) -> str:
        named = ((name, getattr(self, name)) for name in ("conf", "assoc", "qos", "usage"))
        told = [f"{name}={value!r}" for name, value in named if value is not None] or ["site=…"]
        return f"Slurm({', '.join([*told, f'boot={self.boot:g}'])})"

    # -- beginning ---------------------------------------------------------------------------------------------------

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run.

        Raises
        ------
        InputError
            When the cluster has other cores than the nodes of the site together.
        """
        assert self.site is not None
        site = self.site
        if cluster.cores != site.cores:
            raise InputError(f"has {cluster.cores} cores; the nodes of the site have {site.cores}", field="cluster")
        self._site, self._requests = site, cluster.requests
        self._boot = round(self.boot * SECOND)
        n = len(cluster.requests)
        self._owners = owners_of(cluster.requests, site)
        self._asks = asks_of(cluster.requests, site, self._owners)
        self._standing = Standing(cluster.requests, site, self._owners, self._asks, self._boot)
        self._machine = machine_of(site)
        self._limits = limits_of(site, self._owners)
        self._submissions = Submissions(site)
        pieces = int(np.minimum(np.maximum(self._asks.cores, 1), len(site.nodes)).sum()) + 1
        zeros = np.zeros(n, dtype=np.int64)
        self._held = Held(
            np.zeros(n + 1, dtype=np.int64),
            np.zeros(n + 1, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
            np.zeros(pieces, dtype=np.int64),
            np.zeros(pieces, dtype=np.int64),
            zeros,
            zeros.copy(),
        )
        look = site.scheduling
        limits = (look.tests, look.user_tests, look.partition_tests, look.association_tests, look.starts, look.linear)
        self._look = Look(max(look.resolution, 1), look.window, *limits)
        shapes = int(self._asks.shape.max(initial=0)) + 1
        self._fits, self._soonest = np.zeros(shapes, dtype=np.int64), np.zeros(shapes, dtype=np.int64)
        self._started = np.zeros(n + 1, dtype=np.int64)
        self._closed = closed_of(site)
        self._openings: list[int] = sorted({each.end for each in site.reservations}, reverse=True)
        self._fitting: dict[int, bool] = {}
        self._begin_columns()

    def _begin_columns(self) -> None:
        requests, n = self._requests, len(self._requests)
        self._began: IntArray = np.full(n, NEVER, dtype=np.int64)
        self._order: IntArray = np.zeros(0, dtype=np.int64)
        self._after, self._begin = label_of(requests, "after"), label_of(requests, "begin")
        self._withdrawn = label_of(requests, "withdrawn")
        self._row_of = rows_of_numbers(requests) if (self._after >= 0).any() else {}
        self._followers: dict[int, list[int]] = defaultdict(list)
        self._over = np.zeros(n, dtype=bool)
        self._timed: list[tuple[int, int]] = []
        self._leaves: list[tuple[int, int]] = []
        self._main_due, self._main_last, self._full_wanted, self._backfill_wanted = NEVER, -NEVER, False, False

    # -- what the cluster tells ---------------------------------------------------------------------------------------

    def quote(self, request: int, now: int) -> Quote | None:
        """Every request is taken that fits the site and its limits."""
        if not self._possible(request):
            return None
        asks, site = self._asks, self._site
        cores, nodes, limit = int(asks.cores[request]), int(asks.nodes[request]), int(asks.limit[request])
        if limit > site.partitions[asks.partition[request]].longest:
            return None
        return Quote(request) if self._submissions.take(self._owners[request], cores, nodes, limit) else None

    def _possible(self, request: int) -> bool:
        """Whether a request would fit empty nodes of its partition; found once for all that ask for the same."""
        shape = int(self._asks.size[request])
        if shape not in self._fitting:
            self._fitting[shape] = self._fits_when_empty(request)
        return self._fitting[shape]

    def _fits_when_empty(self, request: int) -> bool:
        machine, count = self._machine, len(self._machine.cores)
        most = self._site.partitions[self._asks.partition[request]].most_nodes
        if most and self._asks.nodes[request] > most:
            return False
        room, chosen, given = (np.zeros(count, dtype=np.int64) for _ in range(3))
        mask = machine.member[self._asks.partition[request]].copy()
        empty = np.zeros(count, dtype=np.int64)
        arrays = (mask, self._asks, machine, machine.cores, machine.memory, empty, room, chosen, given)
        return bool(select(request, *arrays))

    def commit(self, quote: Quote, now: int) -> None:
        """The request joins the queue, now or when what it waits for has come."""
        request = quote.request
        if self._withdrawn[request] >= 0:
            heapq.heappush(self._leaves, (now + int(self._withdrawn[request]) * SECOND, request))
        self._release_when_due(request, now)

    def _release_when_due(self, request: int, now: int) -> None:
        on = self._row_of.get(int(self._after[request]), -1) if self._after[request] >= 0 else -1
        if on >= 0 and not self._over[on] and on != request:
            self._followers[on].append(request)
        elif (
            self._begin[request] > 0
            and (due := int(self._requests.submit[request]) + int(self._begin[request]) * SECOND) > now
        ):
            heapq.heappush(self._timed, (due, request))
        else:
            self._join(request, now)
            if not self._site.scheduling.defer:
                # The delay is one in whole seconds of Slurm's own clock.
                due = now + (self._boot - now) % SECOND + self._site.scheduling.batch_delay
                self._main_due = min(self._main_due, due)

    def _join(self, request: int, now: int) -> None:
        """A request can run from *now* on."""
        self._calculate(now)
        self._standing.eligible(request, now)
        self._standing.rank(np.array([request]), now)
        self._insert(request)
        self._full_wanted = self._backfill_wanted = True

    def ended(self, request: int, now: int) -> None:
        """The request gave its cores back."""
        self._calculate(now)
        self._standing.ended(request, now)
        release(request, self._asks, self._machine, self._limits, self._held)
        self._began[request] = NEVER
        self._done(request, now)
        self._main_due = min(self._main_due, now)
        self._full_wanted = self._backfill_wanted = True

    def _done(self, request: int, now: int) -> None:
        """A request is over; whoever waited for that may run."""
        self._over[request] = True
        self._submissions.give(self._owners[request])
        for follower in self._followers.pop(request, ()):
            self._release_when_due(follower, now)

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """A request that reached its limit is taken to end next; Slurm's own time-outs are late by up to a minute."""

    def settled(self, now: int) -> None:
        """Nothing to do: nothing is promised."""

    def leaving(self, now: int) -> Sequence[int]:
        """Waiting requests that are cancelled by *now*."""
        found = []
        while self._leaves and self._leaves[0][0] <= now:
            request = heapq.heappop(self._leaves)[1]
            if not self._over[request] and self._began[request] >= NEVER:
                found.append(request)
                self._order = self._order[self._order != request]
                self._done(request, now)
                self._full_wanted = self._backfill_wanted = True
                self._main_due = min(self._main_due, now)
        return found

    # -- decisions ------------------------------------------------------------------------------------------------

    def dispatch(self, now: int) -> Sequence[int]:
        """The passes that are due."""
        look = self._site.scheduling
        while self._timed and self._timed[0][0] <= now:
            self._join(heapq.heappop(self._timed)[1], now)
            self._main_due = min(self._main_due, now)
        while self._openings and self._openings[-1] <= now:
            self._openings.pop()
            self._main_due = min(self._main_due, now)
            self._full_wanted = self._backfill_wanted = True
        self._calculate(now)
        started: list[int] = []
        full = self._full_wanted and self._on_the_clock(now, look.full_interval)
        if full or (self._main_due <= now and now >= self._main_last + look.least_interval):
            started += self._main(now, 0 if full else look.queue_depth)
        if look.backfill and self._backfill_wanted and self._on_the_clock(now, look.interval):
            started += self._backfill(now)
        return started

    def _on_the_clock(self, now: int, period: int) -> bool:
        return (now - self._boot) % max(period, 1) == 0

    def _main(self, now: int, depth: int) -> list[int]:
        self._main_due, self._main_last = NEVER, now
        if not depth or depth >= len(self._order):
            self._full_wanted = False
        if not len(self._order):
            return []
        look = self._site.scheduling
        arrays = (self._asks, self._machine, self._limits, self._held, self._closed, self._started)
        count = main_pass(now, self._order, depth, look.partition_depth, look.stop_at_limit, *arrays)
        return self._begin_all(count, now)

    def _backfill(self, now: int) -> list[int]:
        self._backfill_wanted = False
        if not len(self._order):
            return []
        arrays = (self._asks, self._machine, self._limits, self._held, self._closed)
        room = (self._started, self._fits, self._soonest, NOBODY)
        return self._begin_all(backfill_pass(now, self._order, self._look, *arrays, *room), now)

    def expected_starts(self, now: int) -> dict[int, int]:
        """When a backfill pass of this instant would expect each waiting request to start, as ``squeue --start`` says.

        Whole microseconds by request, without those that it does not plan: held back by a limit, or beyond
        ``bf_window``. Changes nothing.
        """
        machine, limits, held = (_copied(each) for each in (self._machine, self._limits, self._held))
        planned = np.full(len(self._requests), NEVER, dtype=np.int64)
        room = (self._started.copy(), self._fits.copy(), self._soonest.copy(), planned)
        if len(self._order):
            backfill_pass(now, self._order, self._look, self._asks, machine, limits, held, self._closed, *room)
        return {request: start for request, start in enumerate(planned.tolist()) if start < NEVER}

    def _begin_all(self, count: int, now: int) -> list[int]:
        if not count:
            return []
        rows = self._started[:count].copy()
        self._began[rows] = now
        self._order = self._order[self._began[self._order] >= NEVER]
        begun: list[int] = rows.tolist()
        for request in begun:
            self._standing.began(request, int(self._pieces(request)[1].sum()), now)
        return begun

    def wake(self, now: int) -> int:
        """The next pass by the clock that could start anything, new priorities, or an instant somebody waits for."""
        look = self._site.scheduling
        times = [self._timed[0][0] if self._timed else NEVER, self._leaves[0][0] if self._leaves else NEVER]
        if len(self._order):
            times.append(self._next(now, self._site.priority.period))
            if self._openings:
                times.append(self._openings[-1])
            if self._main_due < NEVER:
                times.append(max(self._main_due, self._main_last + look.least_interval))
            if self._backfill_wanted and look.backfill:
                times.append(self._next(now, look.interval))
            if self._full_wanted:
                times.append(self._next(now, look.full_interval))
        return max(min(times), now + 1)

    def _next(self, now: int, period: int) -> int:
        """First instant after now that is a whole number of periods after the boot."""
        return self._boot + ((now - self._boot) // max(period, 1) + 1) * max(period, 1)

    def _calculate(self, now: int) -> None:
        """Make priorities anew where a period has gone by."""
        boundary = self._standing.calculate(now)
        if boundary is not None and len(self._order):
            self._standing.rank(self._order, boundary)
            self._order = self._standing.order(self._order)
            self._full_wanted = self._backfill_wanted = True

    def _pieces(self, request: int) -> tuple[IntArray, IntArray]:
        """Nodes that a request holds or held last, and how many cores of each."""
        first, count = int(self._held.first[request]), int(self._held.pieces[request])
        return self._held.node[first : first + count], self._held.cores[first : first + count]

    def nodes_of(self, request: int) -> dict[str, int]:
        """Cores by the name of the node that a request holds, or held last; for explanations and pictures."""
        nodes, cores = self._pieces(request)
        names = [self._site.nodes[node].name for node in nodes]
        return dict(zip(names, cores.tolist(), strict=True))

    def _insert(self, request: int) -> None:
        rows = self._order
        tier, priority = self._standing.tier[rows], self._standing.priority[rows]
        own_tier, own = self._standing.tier[request], self._standing.priority[request]
        ahead = (tier > own_tier) | ((tier == own_tier) & ((priority > own) | ((priority == own) & (rows < request))))
        self._order = np.insert(rows, int(np.count_nonzero(ahead)), request)


def _copied(columns: Any) -> Any:
    return type(columns)(*(column.copy() for column in columns))
