"""Restriction of logged demands to the resources that a machine description contains.

Demands given by the user are used unchanged, so missing resources make them infeasible. Demands from a log are only
the available data. Those without a counterpart in the machine description are dropped, and the report states them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.capacity import GPU, Capacity
from gridsim.model.demand import Demands, WordSets
from gridsim.model.platform import Platform
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload

LEFT_ASIDE = "demands_left_aside"
"""Entry of the provenance: number of jobs with dropped demands, by kind of demand."""


def with_applicable_demands(workload: Workload, platform: Platform, *, sited: bool = False) -> Workload:
    """Drop demands for resources that the machine description does not have, if they were read from a log.

    On a single pool of cores, only cores are kept. On a machine of pools, totals of existing pools are kept. On nodes,
    all demands are kept except memory and partitions that no node has. The label ``partition`` of the jobs becomes a
    demand if nodes have partitions.

    Parameters
    ----------
    workload : Workload
        The jobs.
    platform : Platform
        The machine.
    sited : bool
        Whether the policy has its own node description and reads the labels of the jobs instead.

    Returns
    -------
    Workload
        Its provenance has the number of dropped demands (`LEFT_ASIDE`).

    Raises
    ------
    InputError
        If a job has no demand for which the machine has a resource.
    """
    demands = workload.demands
    machines = [cluster.capacity for cluster in platform.clusters()]
    nodes = any(it is not None and it.nodes for it in machines)
    if sited:
        return workload if demands is None or "demands" not in workload.provenance else replace(workload, demands=None)
    if demands is None or "demands" not in workload.provenance:
        return _in_partitions(workload, machines, platform.default) if nodes and demands is None else workload
    if not nodes:
        return _pooled(workload, demands, {name for it in machines if it is not None for name in it.pools})
    kept, aside = dict(demands.each), dict[str, int]()
    for name in [each for each in demands.each if not _anywhere(machines, each)]:
        if name == "memory":
            aside[name] = int(np.count_nonzero(kept.pop(name)))
    return _in_partitions(_with(workload, replace(demands, each=kept), aside), machines, platform.default)


def _anywhere(machines: Iterable[Capacity | None], name: str) -> bool:
    return any(it is not None and name in it.amounts for it in machines)


def _pooled(workload: Workload, demands: Demands, pools: set[str]) -> Workload:
    """Return the jobs for a machine without nodes: totals of each pool, without tasks."""
    cores, job = workload.requested
    asked = {name: demands.total(name) for name in (*demands.each, *demands.pools, GPU)}
    told = {name: total for name, total in asked.items() if name != "cores" and total.any()}
    aside = {name: int(np.count_nonzero(total)) for name, total in told.items() if name not in pools}
    if (cores < 1).any():
        row = int(np.argmax(cores < 1))
        wanted = " and ".join(name for name, total in told.items() if total[row])
        message = f"job {job[row]} requests {wanted} and no cores; expected a platform that has it (--platform)"
        raise InputError(message, path=workload.provenance.get("source"), field="cores")
    for name, some in (("exclusive nodes", demands.exclusive), ("features of nodes", demands.features.of > 0)):
        if some.any():
            aside[name] = int(np.count_nonzero(some))
    held = {name: total for name, total in told.items() if name in pools}
    plain = None if not held else replace(Demands.plain_cores(cores), pools=held)
    return _with(workload, plain, aside)


def _with(workload: Workload, demands: Demands | None, aside: Mapping[str, int]) -> Workload:
    changed = replace(workload, demands=demands)
    return changed.with_provenance(**{LEFT_ASIDE: dict(aside)}) if aside else changed


def _in_partitions(workload: Workload, machines: Iterable[Capacity | None], default: str | None) -> Workload:
    """Return the jobs with demands for their partitions, or the default one, if nodes have partitions."""
    named = {name for it in machines if it is not None for each in it.partitions for name in each}
    column = workload.labels.get("partition", np.full(len(workload), UNKNOWN))
    if not named or ((column == UNKNOWN).all() and default is None):
        return workload
    rows: Any = slice(None) if workload.tasks is None else workload.tasks.job_rows()
    demands = workload.demands or Demands.plain_cores(workload.requested[0])
    if demands.partitions.of.any():
        return workload
    words = _label_sets(column[rows], workload.names.get("partition", ()), default or "")
    return replace(workload, demands=replace(demands, partitions=words))


def _label_sets(column: IntArray, names: tuple[str, ...], default: str) -> WordSets:
    """Return partitions by the numbers of a label: both for ``a,b``, the default for none."""
    numbers, of = np.unique(column, return_inverse=True)
    texts = [names[it] if 0 <= it < len(names) else "" if it == UNKNOWN else str(it) for it in numbers.tolist()]
    texts = [text or default for text in texts]
    sets = WordSets.made([tuple(filter(None, text.split(","))) for text in texts])
    return WordSets(sets.of[of.reshape(-1)], sets.sets)
