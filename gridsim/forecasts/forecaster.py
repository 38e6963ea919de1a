"""Forecasts at moments of a log: samples of waits, earlier forecasts that calibrate them, and where they are kept."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gridsim.checkpoint import read_checkpoint, write_checkpoint
from gridsim.files import plain
from gridsim.forecasts.custom_model import CustomModel, Draws, KnownJobs
from gridsim.forecasts.history import History, Waits
from gridsim.forecasts.intervals import Pair
from gridsim.forecasts.model import WEEK, WEEKS, FutureModel
from gridsim.forecasts.runs import FutureRuns, Machine
from gridsim.forecasts.state import State
from gridsim.model.dates import calendar_of
from gridsim.model.demand import Demand
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, to_us
from gridsim.model.workload import Workload
from gridsim.number_formatting import when
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy as make_policy
from gridsim.registry import plugins
from gridsim.simulation import with_job
from gridsim.workers import Workers, crew

MOMENTS, SPAN = 400, 26 * WEEK
"""Number of earlier moments that calibrate a forecast, and how long before it the first can be, s."""

REACTION = 60
"""Time after a submission at which a forecast of a recorded log is made, s: real schedulers act after some seconds."""

Source = Literal["simulated", "recorded"]
Ask = Literal["new", "pending"]
_PART = 20  # moments in one task of a worker


class Question(NamedTuple):
    """A moment, s, and the row of the job in question."""

    at: int
    row: int


class NewJob(NamedTuple):
    """A job that is not submitted yet.

    Attributes
    ----------
    cores : int
        Its cores.
    walltime : float
        Its limit, s.
    labels : mapping of str to int
        Its labels, by numbers of the workload.
    demand : Demand, optional
        What it requests of nodes and pools.
    """

    cores: int
    walltime: float
    labels: Mapping[str, int]
    demand: Demand | None = None


@dataclass(frozen=True)
class Options:
    """Options of forecasts.

    Attributes
    ----------
    futures, horizon, seed : int
        Number of futures, their length (s), and the seed.
    source : {"simulated", "recorded"}
        Origin of states and true starts.
    arrivals : bool
        Whether later jobs arrive.
    model : object, optional
        A custom model of the future; by default arrivals of earlier weeks and run times of similar jobs.
    """

    futures: int = 99
    horizon: int = WEEK
    seed: int = 1
    source: Source = "simulated"
    arrivals: bool = True
    model: Any = None


class Forecaster:
    """Forecasts at moments of one log under one policy.

    Parameters
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
    """

    def __init__(
        self, log: Workload, start: IntArray, end: IntArray, machine: Machine, options: Options, allocations: Any = None
    ) -> None:
        self.log, self.machine, self.options = log, machine, options
        self._start, self._end, self._allocations = start, end, allocations
        self.history = History.of(log, start, end)

    @cached_property
    def _waits(self) -> Waits:
        return Waits(self.history, self.machine.platform.cores, self._reaction)

    @property
    def _reaction(self) -> int:
        return REACTION if self.options.source == "recorded" else 0

    @property
    def last_event(self) -> int:
        """Last submission, start or end of the log, s."""
        history = self.history
        known = (column[column < NEVER] for column in (history.submit, history.start, history.end))
        return int(max((int(column.max()) for column in known if len(column)), default=0))

    def with_job(self, new: NewJob, at: int) -> Forecaster:
        """Return the forecasts of the jobs submitted up to a moment, and of one more that is submitted then."""
        come = self.log.submit <= at * MICROSECOND
        now, (cores, walltime, labels, demand) = at * MICROSECOND, new
        log = with_job(self.log.select(come), now, cores, to_us(walltime), labels, demand)
        start, end = (np.append(column[come], NEVER) for column in (self._start, self._end))
        return Forecaster(log, start, end, self.machine, self.options, self._allocations)

    def with_futures(self, futures: int) -> Forecaster:
        """Return the same with another number of futures."""
        found = copy.copy(self)
        found.options = replace(self.options, futures=futures)
        return found

    def with_options(self, options: Run) -> Forecaster:
        """Return the same with other options of the runs, such as windows."""
        found = copy.copy(self)
        found.machine = self.machine._replace(options=options)
        return found

    def why_not_waiting(self, name: str, state: State) -> str:
        """Return what a job does at a moment if it does not wait."""
        rows = np.flatnonzero(self.log.job.astype(str) == name)
        if not len(rows) or self.history.submit[rows[0]] > state.at:
            return "is unknown at this moment"
        row = int(rows[0])
        if self.history.end[row] <= state.at or self.history.left[row] <= state.at:
            return "has ended"
        return f"is running since {when(float(self.history.start[row]), calendar_of(self.log.provenance))}"

    def cancelled_share(self, at: int) -> float:
        """Return the share of jobs that were cancelled, among those that had to wait, up to a moment."""
        history = self.history
        cancelled = int((history.left <= at).sum())
        waited = int(((history.start <= at) & (history.start > history.submit)).sum())
        return cancelled / max(cancelled + waited, 1)

    def similar(self, row: int, at: int, waited: int) -> FloatArray:
        """Return the further waits of jobs like one that has waited for some time, s."""
        return self._waits.similar(row, at, max(0, waited - self._reaction))

    def state(self, at: int) -> State:
        """Return the state at a moment, s."""
        end = np.where(self.history.left <= at, 0, self._end)  # cancelled while they waited
        found = State.of(at, self.log.submit, self._start, end, self._allocations)
        predicts = capabilities_of(make_policy(self.machine.policy)).predicts
        return found.with_past(self.log, self._start, self._end) if predicts else found

    def model(self, state: State) -> FutureModel:
        """Return the model of the future at a state."""
        options, history = self.options, self.history
        parts = history, state.at, options.horizon, state.jobs(history)
        if options.model is None:
            return FutureModel(*parts, arrivals=options.arrivals)
        known = KnownJobs.of(history, state)
        return CustomModel(*parts, known, Draws(options.model, options.futures, options.seed))

    def runs(self, state: State, model: FutureModel) -> FutureRuns:
        """Return the runs of the futures of a state, on a machine that is large enough for the running jobs."""
        return FutureRuns(self.log, state, model, self._machine_for(state))

    def _machine_for(self, state: State) -> Machine:
        platform, held = self.machine.platform, int(self.log.cores[state.running].sum())
        machine, failures = self.machine, self.machine.options.failures
        if failures is not None:
            machine = machine._replace(
                options=replace(machine.options, failures=failures.from_moment(state.at, self.log.provenance))
            )
        if held <= platform.cores or any(cluster.nodes for cluster in platform.clusters()):
            return machine
        return machine._replace(platform=type(platform).single(held))

    def overfull(self, state: State) -> bool:
        """Return whether the running jobs hold more cores than the machine has."""
        return self._machine_for(state).platform is not self.machine.platform

    def sample(self, state: State, asked: Sequence[int], futures: Iterable[int] | None = None) -> FloatArray:
        """Return waits of some waiting jobs from the moment on, s, a row for each future; infinite beyond the horizon.

        Parameters
        ----------
        asked : sequence of int
            Positions of the jobs among the waiting ones.
        futures : iterable of int, optional
            Numbers of the futures; all by default.
        """
        model = self.model(state)
        runs, many = self.runs(state, model), self.options.futures
        numbers = range(many) if futures is None else futures
        return runs.samples((model.future(k, many, self.options.seed) for k in numbers), asked)

    def pair(self, question: Question) -> Pair:
        """Return the forecast at a moment with the true wait and the baselines."""
        at, row = question
        state = self.state(at)
        asked = [int(np.flatnonzero(state.waiting == row)[0])]
        model = self.model(state)
        runs = self.runs(state, model)
        sample = np.sort(runs.samples(model.each(self.options.futures, self.options.seed), asked)[:, 0])
        requested = float(runs.by_requested_walltimes(asked)[0])
        waited = at - int(self.history.submit[row])
        similar = self.similar(row, at, waited)
        wait = float(self.history.start[row] - at) if self.history.start[row] < NEVER else np.inf
        return Pair(at, wait, sample, similar, requested, self._waits.last(at, waited))

    def questions(self, first: float, last: float, most: int, ask: Ask = "new") -> list[Question]:
        """Return moments in an interval: submissions of jobs that wait, or moments with one of the jobs that wait then.

        Parameters
        ----------
        first, last : float
            The interval, s; both ends belong to it.
        most : int
            Number of moments, evenly spaced.
        ask : {"new", "pending"}
            Jobs at their submission, or one that waits already, drawn at each of evenly spaced moments.
        """
        history = self.history
        if ask == "pending":
            moments = np.linspace(first, last, most).astype(np.int64)
            rng = np.random.default_rng(self.options.seed)
            found = [(int(at), self.state(int(at)).waiting) for at in moments]
            return [Question(at, int(rng.choice(rows))) for at, rows in found if len(rows)]
        stays = (history.start - history.submit > self._reaction) & (history.left - history.submit > self._reaction)
        at = history.submit + self._reaction
        known = (history.start < NEVER) | (history.left >= NEVER)
        rows = np.flatnonzero(stays & known & (at >= first) & (at <= last))
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(np.int64))]
        return [Question(int(at[row]), int(row)) for row in chosen]

    def pairs(
        self,
        questions: Sequence[Question],
        *,
        workers: int | Workers = 1,
        progress: Callable[[int, int], None] | None = None,
        keep: bool = False,
    ) -> list[Pair]:
        """Return the forecasts at moments; with *keep*, those in the user's cache folder are not made again."""
        kept = self._kept() if keep else {}
        new = [question for question in questions if question not in kept]
        parts = [new[first : first + _PART] for first in range(0, len(new), _PART)]
        with crew(workers, share=(self,)) as hands:
            answers = [hands.submit(_pairs_of, self, part) for part in parts]
            for many, (part, answer) in enumerate(zip(parts, answers, strict=True)):
                kept |= zip(part, answer.result(), strict=True)
                if progress is not None:
                    progress(many * _PART + len(part), len(new))
        if keep and new:
            write_checkpoint(self.kept_file, self._key, kept)
        return [kept[question] for question in questions]

    def _kept(self) -> dict[Question, Pair]:
        found = read_checkpoint(self.kept_file, self._key)
        return found if isinstance(found, dict) else {}

    @cached_property
    def _key(self) -> str:
        """Identification of the pairs: jobs, schedule, machine, policy and options."""
        digest = hashlib.sha256()
        for column in (self.log.submit, self.log.runtime, self.log.estimate, self.log.cores, self._start, self._end):
            digest.update(np.ascontiguousarray(column).tobytes())
        digest.update(np.ascontiguousarray(self.history.user).tobytes())
        platform, policy, options = self.machine
        what = [
            repr(platform),
            repr(policy),
            repr(replace(options, engine="auto")),
            vars(self.options),
            plugins(self.options.model, policy),
        ]
        digest.update(json.dumps(plain(what), sort_keys=True, default=repr).encode())
        return digest.hexdigest()

    @property
    def kept_file(self) -> Path:
        """File of the kept pairs in the user's cache folder."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gridsim", "forecasts")
        return base / f"{self._key[:32]}.pairs"

    def calibrating(self, at: int, ask: Ask = "new") -> list[Question]:
        """Return the earlier moments that calibrate a forecast; their truth is known by then."""
        last = at - self.options.horizon
        begin = int(self.history.submit[0]) + WEEK if len(self.history.submit) else at
        return self.questions(max(last - SPAN, begin), last, MOMENTS, ask)

    def judged(self, moments: int, ask: Ask = "new") -> list[Question]:
        """Return the moments of a back-test: from 10 weeks after the first submission to a horizon before the last."""
        submit = self.history.submit
        return self.questions(submit[0] + WEEKS * WEEK, submit[-1] - self.options.horizon, moments, ask)


def _pairs_of(forecaster: Forecaster, questions: Sequence[Question]) -> list[Pair]:
    """Return the forecasts at some moments, in a worker."""
    return [forecaster.pair(question) for question in questions]
