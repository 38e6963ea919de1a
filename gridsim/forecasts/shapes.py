"""Other questions to the futures of a moment: another shape of a job, and when the queue is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.forecasts.answer import EARLIER, Shape
from gridsim.forecasts.forecaster import Forecaster
from gridsim.forecasts.intervals import quantile
from gridsim.forecasts.runs import FutureRuns
from gridsim.forecasts.state import State
from gridsim.model.dates import duration
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, to_us

PARTS = (1.0, 0.75, 0.5, 0.25)
"""Parts of the cores and of the limit of the shapes that are tried by default."""


def shapes_of(cores: int, limit: float, instead: Sequence[str], *, every: bool) -> list[tuple[int, float]]:
    """Return other shapes of a job, from ``cores=48`` and ``walltime=1h``, or *every* part of cores and limit.

    Examples
    --------
    >>> shapes_of(4, 3600, ["cores=2", "walltime=1800"], every=False)
    [(2, 1800.0)]
    """
    given: dict[str, Any] = {"cores": cores, "walltime": limit}
    for text in instead:
        name, equals, value = text.partition("=")
        if name not in given or not equals or (name == "cores" and not (value.isdecimal() and int(value))):
            raise InputError(f"is '{text}'; expected cores=N or walltime=D, such as cores=48", field="instead")
        given[name] = int(value) if name == "cores" else duration(value, "instead")
    found = [(given["cores"], float(given["walltime"]))] * bool(instead)
    if every:
        parts = [(max(1, round(cores * it)), max(1.0, float(int(limit * by)))) for it in PARTS for by in PARTS]
        found += [shape for shape in dict.fromkeys(parts) if shape not in found]
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
    own = _waits(forecaster.runs(state, model), futures, place)
    _, values = model.pools[len(state.running) + place]
    found = []
    for cores, limit in asked:
        log = forecaster.log
        columns = {"cores": log.cores.copy(), "estimate": log.estimate.copy()}
        columns["cores"][row], columns["estimate"][row] = cores, to_us(limit)
        changed = FutureRuns(replace(log, **columns), state, model, forecaster.machine)  # type: ignore[arg-type]
        waits = _waits(changed, futures, place)
        sooner = np.minimum(own, options.horizon) - np.minimum(waits, options.horizon)
        killed = float((values > limit).mean()) if len(values) else 0.0
        many, median = int((sooner >= EARLIER).sum()), quantile(np.sort(waits), 0.5)
        found.append(Shape(cores, limit, median, many, len(waits), float(np.median(sooner)), killed))
    return found


def _waits(runs: FutureRuns, futures: Sequence[Any], place: int) -> FloatArray:
    waits = np.array([runs.waits(future, [place])[0] for future in futures], dtype=np.float64)
    return np.where(waits >= NEVER, np.inf, waits)


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
