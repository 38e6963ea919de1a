"""Choice of the engine: the compiled event loop if it supports the run, else SimPy."""

from __future__ import annotations

import numpy as np

from gridsim.engine.setup import CompiledRun, Earlier, Engine, Setup
from gridsim.entities.cluster import Cluster
from gridsim.entities.walltime_limit import CHAINED
from gridsim.errors import InputError, name_of
from gridsim.machine.njit import is_kept
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import takes_running
from gridsim.policy.preemption import classes_of
from gridsim.policy.queue import Requests

_SMALL = 20_000
"""Number of jobs below which a SimPy run ends before the loops are compiled."""


def compiled_run_of(
    engine: Engine, run: Setup, earlier: Earlier | None = None, *, more: bool = False, repeats: int = 1
) -> CompiledRun | None:
    """Return the compiled run; None if the run should use SimPy, as the few jobs of all *repeats* do with ``auto``.

    Raises
    ------
    InputError
        If *engine* is ``compiled`` and the run needs Python.
    """
    if engine == "simpy":
        return None
    workload, clusters = run.workload, run.clusters
    why = "nodes can fail" if run.breakdowns is not None else _why_not(workload, run.requests, clusters)
    if run.beginning is not None and not why:
        why = "jobs wait for other jobs" if run.beginning.after or run.beginning.throttles else why
        why = "run times of waiting jobs were predicted before" if clusters[0].can.predicts else why
        if run.beginning.running and not takes_running(clusters[0].scheduler):
            why = why or f"{name_of(clusters[0].scheduler)} cannot begin with running jobs"
    why = "jobs write checkpoints (the option checkpoint)" if clusters[0].progress is not None else why
    on_tree = not why and (workload.tasks is not None or len(clusters) > 1)
    if on_tree:
        from gridsim.engine import tree_setup  # imports loops that other runs do not need

        why = tree_setup.why_not(workload, clusters, run.platform, run.options)
        why = "jobs name the clusters that they may go to" if run.ways is not None and not why else why
        why = "jobs are submitted window by window" if more and not why else why
    if not why and clusters[0].demands is not None and (more or earlier is not None):
        why = "jobs are submitted window by window, on a machine of nodes or several pools"
    if why:
        if engine == "compiled":
            raise InputError(f"compiled cannot run this: {why}; use auto or simpy", field="engine")
        return None
    compiled = tree_setup.CompiledTreeRun(run) if on_tree else CompiledRun(run, earlier, more=more)
    small = engine == "auto" and len(run.requests) * repeats < _SMALL and not is_kept(compiled.loop)
    return None if small else compiled


def _why_not(workload: Workload, requests: Requests, clusters: list[Cluster]) -> str:
    """Return the part of a run that the compiled loop does not support; empty if it supports everything."""
    if workload.reactions is not None:
        return "users react"
    scheduler, can = clusters[0].scheduler, clusters[0].can
    if "pool" not in can.compiled:
        return can.in_python or f"{name_of(scheduler)} has no compiled scheduling cycle"
    if any(cluster.demands is not None for cluster in clusters):
        if workload.tasks is not None or len(clusters) > 1:
            return "a grid or a workload of DAG jobs has nodes or several pools"
        if workload.moldable is not None:
            return "the workload has jobs of several sizes, and the machine nodes or several pools"
        if "nodes" not in can.compiled:
            return can.in_python or "the machine has nodes or several pools, or jobs request more than cores"
    if classes_of(requests) is not None:
        return "jobs have priority classes"
    if CHAINED in requests.labels:
        return "jobs are split into chains"
    if (requests.labels.get("withdrawn", np.full(1, -1)) >= 0).any():
        return "users withdraw jobs that wait"
    # Upper bound of all sums, which must fit in 64-bit integers.
    if float(requests.submit.max(initial=0)) + _longest_of_all(workload) >= NEVER:
        return "the times of the jobs add up to more than the calendar has"
    return ""


def _longest_of_all(workload: Workload) -> float:
    """Return the sum of estimates and run times of all tasks, each on its slowest size, microseconds."""
    moldable, source = workload.moldable, workload if workload.tasks is None else workload.tasks
    if moldable is None or not len(source.cores):
        return float(source.estimate.sum(dtype=np.float64) + source.runtime.sum(dtype=np.float64))
    begins = moldable.first[:-1]
    slowest = np.maximum.reduceat(np.append(moldable.relative, 0.0), begins)  # the last curve may have no entry
    factor = slowest[moldable.curve] / moldable.relative[begins[moldable.curve] + source.cores - 1]
    return float((source.estimate * factor).sum() + (source.runtime * factor).sum())
