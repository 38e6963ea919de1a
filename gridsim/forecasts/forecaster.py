"""Forecasts at moments of a log: samples of waits, other shapes of a job, and earlier forecasts, which are kept."""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gridsim.checkpoint import read_checkpoint, write_checkpoint
from gridsim.errors import InputError
from gridsim.forecasts.answer import EARLIER, Shape
from gridsim.forecasts.custom_model import CustomModel
from gridsim.forecasts.history import History, Waits
from gridsim.forecasts.intervals import Pair, quantile
from gridsim.forecasts.model import WEEK, WEEKS, FutureModel, Options
from gridsim.forecasts.new_job import NewJob, impossible
from gridsim.forecasts.state import FutureRuns, Machine, State
from gridsim.model import dates
from gridsim.model.demand import Demand, Demands
from gridsim.model.random_streams import stream
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.model.workload import Workload
from gridsim.number_formatting import when
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.registry import plugins
from gridsim.simulation import with_job
from gridsim.workers import Workers, crew

MOMENTS, SPAN = 400, 26 * WEEK
"""Number of earlier moments that calibrate a forecast, and how long before it the first can be, s."""

REACTION = 60
"""Time after a submission at which a forecast of a recorded log is made, s: real schedulers act after some seconds."""

PARTS = (1.0, 0.75, 0.5, 0.25)
"""Parts of the cores and of the limit of the shapes that are tried by default."""


Ask = Literal["new", "pending"]
Question = tuple[int, int]
"""A moment, s, and the row of the job in question."""

Progress = Callable[[int, int], None]
_PART = 20  # moments in one task of a worker


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Forecasts at moments of one log under one policy.

    Attributes
    ----------
    log : Workload
        The jobs.
    start, end : (n,) int64
        Schedule, recorded or of the policy, whole microseconds.
    machine : Machine
        Machine, policy and options of the runs.
    options : Options
        Options of the forecasts.
    allocations : Allocations, optional
        What jobs hold on nodes.
    moments : int
        Number of moments at which forecasts are made.
    """

    log: Workload
    start: IntArray
    end: IntArray
    machine: Machine
    options: Options
    allocations: Any = None
    moments: int = 1

    @cached_property
    def history(self) -> History:
        """The jobs of the log with their schedule, in whole seconds."""
        return History.of(self.log, self.start, self.end)

    @cached_property
    def _waits(self) -> Waits:
        return Waits(self.history, self.machine.platform.cores, self._reaction)

    @property
    def _reaction(self) -> int:
        return REACTION if self.options.source == "recorded" else 0

    @property
    def last_event(self) -> int:
        """Last submission, start or end of the log, s."""
        columns = (self.history.submit, self.history.start, self.history.end)
        return max(int(column[column < NEVER].max(initial=0)) for column in columns)

    def with_job(self, new: NewJob, at: int) -> Forecaster:
        """Return the forecasts of the jobs submitted up to a moment, and of one more that is submitted then."""
        come, (log, new) = self.log.submit <= at * MICROSECOND, new.in_log(self.log, make_policy(self.machine.policy))
        log = with_job(log.select(come), at * MICROSECOND, new.cores, to_us(new.walltime), new.labels, new.demand)
        reason = None if new.demand is None else self.machine.run(log.select(slice(-1, None))).reason
        if reason is not None and reason[0]:
            raise impossible(reason[0])
        start, end = (np.append(column[come], NEVER) for column in (self.start, self.end))
        return replace(self, log=log, start=start, end=end)

    def why_not_waiting(self, name: str, state: State) -> str:
        """Return what a job does at a moment if it does not wait."""
        rows = np.flatnonzero(self.log.job.astype(str) == name)
        if not len(rows) or self.history.submit[rows[0]] > state.at:
            return "is unknown at this moment"
        row = int(rows[0])
        if self.history.end[row] <= state.at or self.history.left[row] <= state.at:
            return "has ended"
        return f"is running since {when(float(self.history.start[row]), dates.calendar_of(self.log.provenance))}"

    def cancelled_share(self, at: int) -> float:
        """Return the share of jobs that were cancelled, among those that had to wait, up to a moment."""
        history = self.history
        cancelled = int((history.left <= at).sum())
        waited = int(((history.start <= at) & (history.start > history.submit)).sum())
        return cancelled / max(cancelled + waited, 1)

    def state(self, at: int) -> State:
        """Return the state at a moment, s."""
        end = np.where(self.history.left <= at, 0, self.end)  # cancelled while they waited
        found = State.of(at, self.log.submit, self.start, end, self.allocations)
        return found.with_past(self.log, self.start, self.end) if self._predicts else found

    @cached_property
    def _predicts(self) -> bool:
        return capabilities_of(make_policy(self.machine.policy)).predicts

    def busy(self, state: State) -> int:
        """Return the cores of the running jobs."""
        return int(self.log.cores[state.running].sum())

    def overfull(self, state: State) -> bool:
        """Return whether the running jobs hold more cores than the machine has, which is then enlarged."""
        platform = self.machine.platform
        return self.busy(state) > platform.cores and not any(cluster.nodes for cluster in platform.clusters())

    def runs(self, state: State) -> FutureRuns:
        """Return the runs of the futures of a state, on a machine that is large enough for the running jobs."""
        machine, failures, asked = self.machine, self.machine.options.failures, self.options
        if failures is not None:
            failures = failures.from_moment(state.at, self.log.provenance)
            machine = machine._replace(options=replace(machine.options, failures=failures))
        if self.overfull(state):
            machine = machine._replace(platform=type(machine.platform).single(self.busy(state)))
        if asked.model is None:
            model = FutureModel(self.history, state.at, state.jobs(self.history), asked)
        else:
            model = CustomModel(self.history, state, asked)
        return FutureRuns(self.log, state, model, machine, self.moments)

    def sample(self, state: State, asked: Sequence[int], futures: Iterable[int]) -> FloatArray:
        """Return waits of some waiting jobs from the moment on, s, a row for each future; infinite beyond the horizon.

        Parameters
        ----------
        asked : sequence of int
            Positions of the jobs among the waiting ones.
        futures : iterable of int
            Numbers of the futures.
        """
        runs = self.runs(state)
        return runs.samples(map(runs.model.future, futures), asked)

    def shapes(self, state: State, place: int, asked: Sequence[tuple[int, float]]) -> list[Shape]:
        """Return the starts of a waiting job in other shapes, with its run time of each future.

        Parameters
        ----------
        place : int
            Position of the job among the waiting ones.
        asked : sequence of (int, float)
            Cores and limit (s) of each shape.
        """
        runs, (many, horizon) = self.runs(state), (self.options.futures, self.options.horizon)
        futures = list(runs.model.each())
        own = runs.samples(futures, [place])[:, 0]
        _, values = runs.model.pools[len(state.running) + place]
        found = []
        for log, cores, limit in _changed(self.log, int(state.waiting[place]), asked):
            waits = replace(runs, log=log).samples(futures, [place])[:, 0]
            sooner = np.minimum(own, horizon) - np.minimum(waits, horizon)
            earlier, difference = int((sooner >= EARLIER).sum()), float(np.median(sooner))
            killed = float((values > limit).mean()) if len(values) else 0.0
            found.append(Shape(cores, limit, quantile(np.sort(waits), 0.5), earlier, many, difference, killed))
        return found

    def until_empty(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Return for each future when no job of the present queue waits, and when no job waits at all, sorted, s."""
        runs, times = self.runs(state), []
        for future in runs.model.each():
            enters, starts = runs.queue(future)
            order = np.argsort(enters, kind="stable")
            empty = np.maximum.accumulate(np.append(0, starts[order]))  # after as many jobs
            gaps = np.flatnonzero((enters[order] >= empty[:-1]) & (enters[order] > 0))
            times.append((starts[: len(state.waiting)].max(initial=0), empty[gaps[0] if len(gaps) else -1]))
        found = np.sort(np.array(times), axis=0)
        present, at_all = np.where(found > self.options.horizon * MICROSECOND, np.inf, found / MICROSECOND).T
        return present, at_all

    def pair(self, state: State, place: int, sample: FloatArray, requested: float) -> Pair:
        """Return the forecast of a waiting job with its true wait and the baselines.

        Parameters
        ----------
        place : int
            Position of the job among the waiting ones.
        sample : (k,) float64
            Its waits in the futures.
        requested : float
            Its wait if all jobs run for their limits and no others arrive.
        """
        row, at, history = int(state.waiting[place]), state.at, self.history
        waited = at - int(history.submit[row])
        wait = float(history.start[row] - at) if history.start[row] < NEVER else np.inf
        similar = self._waits.similar(row, at, max(0, waited - self._reaction))
        return Pair(at, wait, np.sort(sample), similar, requested, self._waits.last(at, waited))

    def questions(
        self, first: float, last: float, most: int, ask: Ask = "new", *, known: int | None = None
    ) -> list[Question]:
        """Return moments in an interval: submissions of jobs that wait, or moments with one of the jobs that wait then.

        Jobs that were cancelled while they waited have none.

        Parameters
        ----------
        first, last : float
            The interval, s; both ends belong to it.
        most : int
            Largest number of moments.
        ask : {"new", "pending"}
            Jobs at their submission, or one that waits already, drawn at each of evenly spaced moments.
        known : int, optional
            Moment up to which cancellations are known, s; all by default. With it, the moments do not depend on the
            interval, so that those of overlapping intervals are the same.
        """
        marks, history, found = _spread if known is None else _fixed, self.history, []
        if ask == "pending":
            for at in marks(math.ceil(first), math.floor(last), most).tolist():
                if len(waiting := self.state(at).waiting):
                    found.append((at, int(stream(self.options.seed, "forecasts", at).choice(waiting))))
        else:
            moments = history.submit + self._reaction
            rows = np.flatnonzero((history.start > moments) & (history.left > moments))
            low, high = np.searchsorted(moments[rows], [math.ceil(first), math.floor(last) + 1]).tolist()
            chosen = rows[marks(low, high - 1, most)]
            found = list(zip(moments[chosen].tolist(), chosen.tolist(), strict=True))
        return [(at, row) for at, row in found if history.left[row] > (NEVER - 1 if known is None else known)]

    def pairs(
        self, questions: Sequence[Question], workers: int | Workers = 1, progress: Progress | None = None
    ) -> list[Pair]:
        """Return the forecasts at moments; those in the user's cache folder are not made again."""
        log, (platform, policy, options) = self.log, self.machine
        columns = (log.submit, log.runtime, log.estimate, log.cores, *log.labels.values(), self.start, self.end)
        files = plugins(policy, self.options.model)
        what = repr((platform, policy, replace(options, engine="auto"), self.options, files))
        key = hashlib.sha256(np.stack(columns).tobytes() + what.encode()).hexdigest()
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gridsim", "forecasts")
        # The address of an object in its text may become that of another one.
        path = None if " at 0x" in what else folder / f"{key[:32]}.pairs"
        kept: dict[Question, Pair] = {} if path is None else read_checkpoint(path, key) or {}
        if path is not None and not kept and path.exists():
            warnings.warn(f"{path} is damaged; the earlier forecasts are made again", stacklevel=2)
        new = [question for question in questions if question not in kept]
        parts = [new[first : first + _PART] for first in range(0, len(new), _PART)]
        try:
            with crew(workers, share=(many := replace(self, moments=len(new)),)) as hands:
                answers = [hands.submit(_pairs_of, many, part) for part in parts]
                for number, (part, answer) in enumerate(zip(parts, answers, strict=True)):
                    kept |= zip(part, answer.result(), strict=True)
                    if progress is not None:
                        progress(number * _PART + len(part), len(new))
        finally:  # also those that were made before an interruption
            if path is not None and new and new[0] in kept:
                _keep(path, key, kept)
        return [kept[question] for question in questions]

    def calibrating(self, at: int, ask: Ask = "new") -> list[Question]:
        """Return the earlier moments that calibrate a forecast; their truth is known by then.

        Those of a later forecast are mostly the same, and are kept.
        """
        last = at - self.options.horizon
        begin = int(self.history.submit[0]) + WEEK if len(self.history.submit) else at
        return self.questions(max(last - SPAN, begin), last, MOMENTS, ask, known=at)

    def judged(self, moments: int, ask: Ask = "new") -> list[Question]:
        """Return the moments of a back-test: from 10 weeks after the first submission to a horizon before the last."""
        submit = self.history.submit
        return self.questions(submit[0] + WEEKS * WEEK, submit[-1] - self.options.horizon, moments, ask)


def _keep(path: Path, key: str, pairs: dict[Question, Pair]) -> None:
    """Write forecasts for later commands."""
    try:
        write_checkpoint(path, key, pairs)
    except OSError as error:
        warnings.warn(f"{path} cannot be written ({error.strerror}); the next forecast repeats", stacklevel=3)


def _spread(first: int, last: int, most: int) -> IntArray:
    """Return evenly spaced whole numbers in an interval.

    Examples
    --------
    >>> _spread(3, 9, 3).tolist()
    [3, 6, 9]
    """
    return np.linspace(first, last, min(most, max(last - first + 1, 0))).round().astype(np.int64)


def _fixed(first: int, last: int, most: int) -> IntArray:
    """Return the multiples of a power of two in an interval, of long intervals more than half of *most*.

    Examples
    --------
    >>> _fixed(3, 9, 3).tolist(), _fixed(3, 17, 3).tolist()
    ([4, 8], [8, 16])
    """
    step: int = 2 ** max(0, math.ceil(math.log2(max(last - first + 1, 1) / most)))
    return np.arange(-(-first // step), last // step + 1) * step


def _pairs_of(forecaster: Forecaster, questions: Sequence[Question]) -> list[Pair]:
    """Return the forecasts at some moments, in a worker."""
    found = []
    for at, row in questions:
        state = forecaster.state(at)
        place, runs = int(np.flatnonzero(state.waiting == row)[0]), forecaster.runs(state)
        sample = runs.samples(runs.model.each(), [place])[:, 0]
        found.append(forecaster.pair(state, place, sample, float(runs.by_requested_walltimes([place])[0])))
    return found


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
        given[name] = int(value) if name == "cores" else dates.duration(value, "instead")
        if not given[name]:
            raise InputError(f"is '{text}'; expected a walltime above 0", field="instead")
    if instead and tuple(given.values()) == (cores, limit):
        raise InputError("is the shape of the job itself; expected other cores or another walltime", field="instead")
    found = [(given["cores"], float(given["walltime"]))] * bool(instead)
    every = [(max(1, round(cores * it)), max(1.0, float(int(limit * by)))) for by in parts for it in parts]
    found += [shape for shape in dict.fromkeys(every) if shape not in found]
    return [shape for shape in found if shape != (cores, limit)]


def _changed(log: Workload, row: int, asked: Sequence[tuple[int, float]]) -> Iterator[tuple[Workload, int, float]]:
    """Yield the log with a job in each of its other shapes, once each; tasks on nodes are fewer, not smaller."""
    own, done = int(log.cores[row]), {(int(log.cores[row]), float(seconds(log.estimate[row])))}
    for cores, limit in asked:
        demands = log.demands
        if demands is not None and cores != own:
            demand = narrower(demands[row], cores)
            parts = demands.select(slice(row)), Demands.of([demand]), demands.select(slice(row + 1, None))
            demands, cores = reduce(Demands.joined, parts), demand.total("cores")
        if (cores, limit) not in done:
            done.add((cores, limit))
            changed: dict[str, Any] = {"cores": log.cores.copy(), "estimate": log.estimate.copy(), "demands": demands}
            changed["cores"][row], changed["estimate"][row] = cores, to_us(limit)
            yield replace(log, **changed), cores, limit


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
