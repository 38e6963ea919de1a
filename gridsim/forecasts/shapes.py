"""Other questions to the futures of a moment: another shape of a job, and when the queue is empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.forecasts.answer import EARLIER, Shape
from gridsim.forecasts.forecaster import Forecaster
from gridsim.forecasts.intervals import quantile
from gridsim.forecasts.runs import FutureRuns
from gridsim.forecasts.state import State
from gridsim.model.dates import duration
from gridsim.model.demand import Demand, Demands
from gridsim.model.time import MICROSECOND, FloatArray, seconds, to_us
from gridsim.model.workload import Workload

PARTS = (1.0, 0.75, 0.5, 0.25)
"""Parts of the cores and of the limit of the shapes that are tried by default."""


def shapes_of(cores: int, limit: float, instead: Sequence[str], parts: Sequence[float] = ()) -> list[tuple[int, float]]:
    """Return other shapes of a job, from ``cores=48`` and ``walltime=1h``, and of *parts* of its cores and limit.

    Examples
    --------
    >>> shapes_of(4, 3600, ["cores=2", "walltime=1800"])
    [(2, 1800.0)]
    """
    given: dict[str, Any] = {"cores": cores, "walltime": limit}
    for text in instead:
        name, equals, value = text.partition("=")
        if name not in given or not equals or (name == "cores" and not (value.isdecimal() and int(value))):
            raise InputError(f"is '{text}'; expected cores=N or walltime=D, such as cores=48", field="instead")
        given[name] = int(value) if name == "cores" else duration(value, "instead")
    found = [(given["cores"], float(given["walltime"]))] * bool(instead)
    every = [(max(1, round(cores * it)), max(1.0, float(int(limit * by)))) for by in parts for it in parts]
    found += [shape for shape in dict.fromkeys(every) if shape not in found]
    return [shape for shape in found if shape != (cores, limit)]


def shapes(forecaster: Forecaster, state: State, place: int, asked: Sequence[tuple[int, float]]) -> list[Shape]:
    """Return the starts of a waiting job in other shapes, with its run time of each future.

    Parameters
    ----------
    forecaster : Forecaster
        The forecasts of the log.
    state : State
        The state.
    place : int
        Position of the job among the waiting ones.
    asked : sequence of (int, float)
        Cores and limit (s) of each shape.
    """
    model, options, row = forecaster.model(state), forecaster.options, int(state.waiting[place])
    futures = list(model.each(options.futures, options.seed))
    own = forecaster.runs(state, model).samples(futures, [place])[:, 0]
    _, values = model.pools[len(state.running) + place]
    found = []
    for log, cores, limit in _changed(forecaster.log, row, asked):
        waits = FutureRuns(log, state, model, forecaster.machine).samples(futures, [place])[:, 0]
        sooner = np.minimum(own, options.horizon) - np.minimum(waits, options.horizon)
        killed = float((values > limit).mean()) if len(values) else 0.0
        many, median = int((sooner >= EARLIER).sum()), quantile(np.sort(waits), 0.5)
        found.append(Shape(cores, limit, median, many, len(waits), float(np.median(sooner)), killed))
    return found


def _changed(log: Workload, row: int, asked: Sequence[tuple[int, float]]) -> Iterator[tuple[Workload, int, float]]:
    """Yield the log with a job in each of its other shapes, once each; tasks on nodes are fewer, not smaller."""
    own, done = int(log.cores[row]), {(int(log.cores[row]), float(seconds(log.estimate[row])))}
    for cores, limit in asked:
        demands = log.demands
        if demands is not None and cores != own:
            demand = narrower(demands[row], cores)
            parts = demands.select(slice(row)), Demands.of([demand]), demands.select(slice(row + 1, None))
            demands, cores = reduce(Demands.joined, parts), demand.total("cores")
        if (cores, limit) in done:
            continue
        done.add((cores, limit))
        columns = {"cores": log.cores.copy(), "estimate": log.estimate.copy()}
        columns["cores"][row], columns["estimate"][row] = cores, to_us(limit)
        yield replace(log, demands=demands, **columns), cores, limit  # type: ignore[arg-type]


def narrower(demand: Demand, cores: int) -> Demand:
    """Return the demand with as many tasks as fit in some cores, at least one.

    Examples
    --------
    >>> narrower(Demand(tasks=3, each={"cores": 4}, max_nodes=2), 6).total("cores")
    4
    """
    if demand.cores:
        return replace(demand, cores=cores)
    tasks = max(1, cores * demand.tasks // demand.total("cores"))
    least, most = min(demand.min_nodes, tasks), min(demand.max_nodes, tasks)
    return replace(demand, tasks=tasks, min_nodes=least, max_nodes=most)


def until_empty(forecaster: Forecaster, state: State) -> tuple[FloatArray, FloatArray]:
    """Return for each future when no job of the present queue waits, and when no job waits at all, sorted, s."""
    model, options = forecaster.model(state), forecaster.options
    runs, present, at_all = forecaster.runs(state, model), [], []
    for future in model.each(options.futures, options.seed):
        arrives, starts = runs.queue(future)
        present.append(float(starts[: len(state.waiting)].max(initial=0)))
        order = np.argsort(arrives, kind="stable")
        until = 0
        for came, start in zip(arrives[order].tolist(), starts[order].tolist(), strict=True):
            if came >= until > 0 or came > until:
                break
            until = max(until, start)
        at_all.append(float(until))
    limit = options.horizon * MICROSECOND
    both = (np.sort(np.array(it)) for it in (present, at_all))
    first, second = (np.where(it > limit, np.inf, it / MICROSECOND) for it in both)
    return first, second
