"""Jobs as columns: a million rigid jobs cost columns, not objects. Readers make them, transforms rewrite them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.job import Job, Task
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds, whole

__all__ = ["LABELS", "UNKNOWN", "Workload"]

LABELS = ("user", "group", "executable", "queue", "partition")
"""Columns that name something: whole numbers of the source, `UNKNOWN` where it says nothing."""

UNKNOWN = -1
"""The label of jobs without one."""


def _ints(values: Any, n: int) -> IntArray:
    return np.broadcast_to(np.asarray(values, dtype=np.int64), (n,)).copy()


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Rigid one-task jobs in job order: by submit time, equal ones as they stood in their source.

    Attributes
    ----------
    job : (n,) int64
        Numbers of the jobs in their source; unique, with gaps, not an index.
    submit, runtime, estimate : (n,) int64
        Submit instant, true runtime and walltime estimate, whole microseconds (`seconds` gives seconds).
        A runtime above the estimate is allowed: the scenario kills or extends such a job.
    cores : (n,) int64
        Cores that the job needs, all at once.
    deadline : (n,) int64
        Latest completion asked for, whole microseconds, `NEVER` for none.
    labels : mapping of str to (n,) int64
        Columns of `LABELS` that the source has at all.
    logged : mapping of str to array
        What the source says did happen (``wait`` in seconds with NaN for unknown, ``status`` …): never an
        input of a simulation.
    cores_stated : int or None
        Size of the machine according to the source.
    provenance : mapping
        What `run.json` says of the workload: source, checksum, lines read, each kind of problem with its
        count, first lines and rule, transforms applied. JSON types only.
    """

    job: IntArray
    submit: IntArray
    runtime: IntArray
    estimate: IntArray
    cores: IntArray
    deadline: IntArray
    labels: Mapping[str, IntArray] = field(default_factory=dict)
    logged: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    cores_stated: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        *,
        submit: Any,
        runtime: Any,
        cores: Any,
        estimate: Any = None,
        job: Any = None,
        deadline: Any = None,
        labels: Mapping[str, Any] | None = None,
        logged: Mapping[str, Any] | None = None,
        cores_stated: int | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Workload:
        """Workload from columns in seconds and cores, sorted stably by submit time.

        Parameters
        ----------
        submit, runtime, cores : array_like
            One entry a job.
        estimate : array_like, optional
            Walltime estimates, s; the runtimes where left out (perfect estimates).
        job : array_like, optional
            Job numbers; 1, 2, … where left out.
        deadline : array_like, optional
            Deadlines, s; NaN or infinity for none.

        Raises
        ------
        InputError
            When columns differ in length, or a value makes no job.

        Examples
        --------
        >>> Workload.from_columns(submit=[0, 5], runtime=[10, 10], cores=[1, 2])
        <Workload: 2 jobs, 0 s to 5 s>
        """
        times = [whole(np.atleast_1d(np.asarray(column))) for column in (submit, runtime)]
        n = len(times[0])
        workload = cls(
            job=np.arange(1, n + 1, dtype=np.int64) if job is None else _ints(job, n),
            submit=times[0],
            runtime=times[1],
            estimate=times[1].copy() if estimate is None else whole(np.atleast_1d(np.asarray(estimate))),
            cores=_ints(cores, n),
            deadline=np.full(n, NEVER) if deadline is None else whole(np.asarray(deadline, dtype=float)),
            labels={name: _ints(column, n) for name, column in (labels or {}).items()},
            logged={name: np.asarray(column) for name, column in (logged or {}).items()},
            cores_stated=cores_stated,
            provenance=dict(provenance or {}),
        )
        workload.check()
        order = np.argsort(workload.submit, kind="stable")
        return workload if (order[1:] > order[:-1]).all() else workload.select(order)

    def check(self) -> None:
        """Raise `InputError` for the first job that cannot be one.

        Raises
        ------
        InputError
            Naming the job, the column, the value and what is allowed.
        """
        n = len(self.job)
        for name, column in self.columns():
            if len(column) != n:
                raise InputError(f"column has {len(column)} rows, the job numbers have {n}", field=name)
        for name, bad, rule in (
            ("runtime", self.runtime <= 0, "a runtime above 0 s (see --on-zero-runtime)"),
            ("estimate", self.estimate <= 0, "an estimate above 0 s"),
            ("cores", self.cores < 1, "at least 1 core"),
            ("submit", (self.submit < 0) | (self.submit >= NEVER), "a submit time from 0 s"),
        ):
            if bad.any():
                row = int(np.argmax(bad))
                value = dict(self.columns())[name][row]
                shown = int(value) if name == "cores" else seconds(int(value))
                raise InputError(f"job {self.job[row]} has {shown}; expected {rule}", field=name)

    def columns(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """All columns with their names: the fixed ones, then labels, then logged ones."""
        for name in ("job", "submit", "runtime", "estimate", "cores", "deadline"):
            yield name, getattr(self, name)
        yield from self.labels.items()
        yield from self.logged.items()

    def select(self, rows: Any) -> Workload:
        """Workload of the *rows* (mask, slice or indices), in that order."""
        return replace(
            self,
            job=self.job[rows],
            submit=self.submit[rows],
            runtime=self.runtime[rows],
            estimate=self.estimate[rows],
            cores=self.cores[rows],
            deadline=self.deadline[rows],
            labels={name: column[rows] for name, column in self.labels.items()},
            logged={name: column[rows] for name, column in self.logged.items()},
        )

    def with_provenance(self, **entries: Any) -> Workload:
        """The same jobs with *entries* added to what is known of their origin."""
        return replace(self, provenance={**self.provenance, **entries})

    def __len__(self) -> int:
        return len(self.job)

    def __getitem__(self, row: int) -> Job:
        user = int(self.labels["user"][row]) if "user" in self.labels else UNKNOWN
        deadline = int(self.deadline[row])
        task = Task(int(self.cores[row]), seconds(int(self.runtime[row])), seconds(int(self.estimate[row])))
        return Job(
            id=int(self.job[row]),
            submit=seconds(int(self.submit[row])),
            tasks=(task,),
            user=None if user == UNKNOWN else user,
            deadline=None if deadline >= NEVER else seconds(deadline),
        )

    def __repr__(self) -> str:
        if not len(self):
            return "<Workload: no jobs>"
        first, last = seconds(int(self.submit[0])), seconds(int(self.submit[-1]))
        return f"<Workload: {len(self)} jobs, {first:g} s to {last:g} s>"

    @property
    def area(self) -> FloatArray:
        """Cores times true runtime of each job, core-seconds."""
        return self.cores * seconds(self.runtime)

    def offered_load(self, cores: int) -> float:
        """Work over capacity between the first and the last submit; a fraction, NaN when that takes no time."""
        span = seconds(int(self.submit[-1] - self.submit[0])) if len(self) else 0.0
        return float(self.area.sum() / (cores * span)) if span else float("nan")
