"""Runs of small Slurm sites, with checks of every schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from gridsim.model.site import Node, Scheduling, Site
from gridsim.model.workload import Workload
from gridsim.policy.protocols import Start
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record
from gridsim.simulation import simulate
from gridsim.testing.invariants import violations

__all__ = ["QUICK", "SECOND", "Run", "Watched", "nodes", "run"]

SECOND = 1_000_000
QUICK = Scheduling(interval=SECOND, resolution=1, full_interval=5 * SECOND, batch_delay=0, queue_depth=500)
COLUMNS = ("submit", "runtime", "cores", "estimate", "job")


class Run(tuple[int, float, dict[str, int], str]):
    """A started run: request, instant in s, cores by node, partition."""


class Watched(Slurm):
    """Scheduler that records each start and stop, and compares its cycles with a search of the whole queue."""

    seen: ClassVar[list[Watched]] = []

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        super().setup(cluster, rng)
        self.begun: list[Run] = []
        self.ended_at: list[tuple[int, float, bool]] = []  # request, s, whether it is requeued
        self.seen.append(self)

    def dispatch(self, now: int) -> Any:
        decision = super().dispatch(now)
        for request, then, *_ in decision.stops:
            self.ended_at.append((request, now / SECOND, then == "requeue"))
        for request, _, _ in decision.starts:
            self.begun.append(Run((request, now / SECOND, self.nodes_of(request), self.partition_of(request))))
        return decision

    def _backfill(self, now: int) -> list[Start]:
        expected = [request for request, start in self.expected_starts(now).items() if start == now]
        started = super()._backfill(now)
        assert (
            sorted(start.request for start in started) == expected
        )  # a cycle without its search shortcuts has the same result
        return started


def nodes(count: int, cores: int = 4, memory: int = 1000, **more: Any) -> tuple[Node, ...]:
    """Return equal nodes ``n1`` and so on."""
    return tuple(Node(f"n{number}", cores, memory, **more) for number in range(1, count + 1))


def run(site: Site, *, names: dict[str, tuple[str, ...]] | None = None, **columns: Any) -> tuple[Record, Watched]:
    """Return the checked record of jobs on a site, and the scheduler. Text columns become labels with names."""
    names = dict(names or {})
    labels = {name: columns.pop(name) for name in list(columns) if name not in COLUMNS}
    for name, values in labels.items():
        if any(isinstance(value, str) for value in values):
            names[name] = tuple(dict.fromkeys(value for value in values if value))
            labels[name] = [names[name].index(value) if value else -1 for value in values]
    jobs = replace(Workload.from_columns(**columns, labels=labels), names=names)
    record = simulate(jobs, platform=site.platform(), policy=Watched(site=site, boot=0.0), overrun="extend").record
    assert record.allocations is not None
    assert not violations(record, overrun="extend", capacity=site.capacity())
    scheduler = Watched.seen.pop()
    _check(record, scheduler, site)
    return record, scheduler


def _check(record: Record, scheduler: Watched, site: Site) -> None:
    """Assert that no core, MiB or GPU of a node is allocated twice, and that every job ends once."""
    size = {node.name: node for node in site.nodes}
    demands = scheduler._demands
    stops = {(request, at) for request, at, _ in scheduler.ended_at}
    spans = []
    for request, began, held, _ in scheduler.begun:
        cuts = sorted(at for other, at in stops if other == request and at > began)
        end = cuts[0] if cuts else record.end[request]
        spans.append((began, end, request, held))
    for at in sorted({began for began, *_ in spans}):
        cores: dict[str, int] = dict.fromkeys(size, 0)
        memory, gpus = dict(cores), dict(cores)
        for began, end, request, held in spans:
            if began <= at < end:
                for name, used in held.items():
                    cores[name] += used
                    gpus[name] += int(demands["gpus"][request])
                    whole = demands["memory"][request] < 0
                    each = int(demands["memory"][request] + demands["core_memory"][request] * used)
                    memory[name] += size[name].memory if whole else each
        for name, node in size.items():
            assert cores[name] <= node.cores
            assert memory[name] <= node.memory
            assert gpus[name] <= node.gpus
    assert np.isin(record.status, (0, 3, 4)).all()
