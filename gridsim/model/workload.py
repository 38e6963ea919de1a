"""Workloads: jobs as columns instead of objects, so that millions of jobs fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim import registry
from gridsim.errors import InputError, check_rows, not_modelled
from gridsim.model.decimal_numbers import MOST_CORES, integers
from gridsim.model.demand import Demands
from gridsim.model.moldable import Moldable
from gridsim.model.reactions import Reactions
from gridsim.model.tasks import Job, Task, Tasks
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.tables import rows_of, with_rows

LABELS = ("user", "group", "executable", "queue", "partition")
"""Columns of names as integers of the source; `UNKNOWN` if the source has no value."""

MACHINE_NAMES = frozenset({"partition", "qos", "queue", "gpu_type", "licenses", "constraint", "logged_reason"})
"""Labels whose names are those of the machine and its scheduler, not of users, accounts or jobs."""

UNKNOWN = -1
"""Label of jobs without a value."""

PRIORITY = "priority"
"""Label with the priority class of each job: an integer, higher classes first."""

USUAL = {PRIORITY: 0, "preemptible": 1}
"""Labels whose values are numbers of any sign, with the value of jobs that state none."""


def _ints(values: Any, n: int, field: str) -> IntArray:
    """Return a column of *n* integers; a single number applies to all rows."""
    column = integers(values, field)
    return np.broadcast_to(column, (n,) if column.ndim == 0 else column.shape).copy()


def _cores_of(demands: Demands | None) -> IntArray:
    """Return the cores of jobs for which only the demands are given."""
    if demands is None:
        raise InputError("is not given; expected cores, or demands", field="cores")
    return demands.cores


def _no_duration(column: IntArray) -> npt.NDArray[np.bool_]:
    return (column <= 0) | (column >= NEVER)


_OF_JOBS = ("job", "submit", "runtime", "estimate", "cores", "deadline")


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Rigid one-task jobs in job order: by submit time, and by order in the source for equal times.

    Attributes
    ----------
    job : (n,) int64
        Numbers of the jobs in their source; unique, possibly with gaps, and not an index.
    submit, runtime, estimate : (n,) int64
        Submit time, true run time and walltime estimate, whole microseconds (`seconds` converts them to seconds). A
        run time above the estimate is allowed: the scenario kills or extends such a job.
    cores : (n,) int64
        Cores that the job requires simultaneously.
    deadline : (n,) int64
        Latest requested completion, whole microseconds, `NEVER` for none.
    labels : mapping of str to (n,) int64
        Columns of `LABELS` that the source contains.
    logged : mapping of str to array
        Outcomes recorded in the source (``wait`` in seconds with NaN for unknown, ``status`` …), which are never an
        input of a simulation. `logged_start` and `logged_end` are derived from it, so that they shift with the submit
        times.
    cores_stated : int or None
        Size of the machine according to the source.
    provenance : mapping
        Description of the workload for `run.json`: source, checksum, number of lines, each kind of problem with its
        count, first lines and rule, and the transforms applied. JSON types only.
    names : mapping of str to tuple of str
        Names for the numbers of a label, if the source has names (``share``: paths of a share tree).
    tasks : Tasks or None
        Tasks of DAG jobs; None if every job is one rigid task. With tasks, ``cores`` is the widest task of a job, and
        ``runtime`` and ``estimate`` are the longest chain of its tasks, without transfers.
    tolerance : (n,) float64 or None
        Factor by which a user accepts a longer response time than requested by the deadline, at least 1; None: no
        tolerance.
    restartable : (n,) bool or None
        Whether each job can be killed and restarted; None: all.
    moldable : Moldable or None
        Ranges of cores and run times on each number of cores, one row per job, or per task for DAG jobs. None: every
        job runs on its requested cores. ``cores``, ``runtime`` and ``estimate`` stay those of the source.
    reactions : Reactions or None
        Jobs that users wait for before they submit again; None: every job is submitted at its submit time.
    demands : Demands or None
        Demands in addition to cores: tasks on nodes, memory, GPUs, pools; one row per task for DAG jobs. ``cores`` is
        then the total over tasks and pools, which can be 0. None: plain cores.

    Examples
    --------
    >>> Workload.from_columns(submit=[0, 5], runtime=[10, 10], cores=[1, 2])
    <Workload: 2 jobs, 0 s to 5 s>
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
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tasks: Tasks | None = None
    tolerance: FloatArray | None = None
    restartable: npt.NDArray[np.bool_] | None = None
    moldable: Moldable | None = None
    reactions: Reactions | None = None
    demands: Demands | None = None

    @classmethod
    def from_columns(
        cls,
        *,
        submit: Any,
        runtime: Any,
        cores: Any = None,
        estimate: Any = None,
        job: Any = None,
        deadline: Any = None,
        tolerance: Any = None,
        restartable: Any = None,
        moldable: Moldable | None = None,
        demands: Demands | None = None,
        labels: Mapping[str, Any] | None = None,
        logged: Mapping[str, Any] | None = None,
        cores_stated: int | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Workload:
        """Return a workload from columns in seconds and cores, sorted stably by submit time.

        Parameters
        ----------
        submit, runtime : array_like
            One entry per job.
        cores : array_like, optional
            Cores of each job; by default those of *demands*.
        estimate : array_like, optional
            Walltime estimates, s; by default the run times (exact estimates).
        job : array_like, optional
            Job numbers; 1, 2, … by default.
        deadline : array_like, optional
            Deadlines, s; NaN or infinity for none.
        tolerance : array_like, optional
            Factor by which users accept a longer response time, at least 1; a single number applies to all jobs.
        restartable : array_like of bool, optional
            Whether each job can be killed and restarted; by default all can.
        moldable : Moldable, optional
            Ranges of cores, in the order of *submit*; by default every job runs on its requested cores.
        demands : Demands, optional
            Demands in addition to cores, in the order of *submit*.
        labels : mapping of str to array_like, optional
            Numbers of users, groups, partitions …; -1 if unknown.
        logged : mapping of str to array_like, optional
            Outcomes recorded in the source.
        cores_stated : int, optional
            Size of the machine according to the source.
        provenance : mapping, optional
            Origin of the jobs; JSON types only.

        Returns
        -------
        Workload
            The jobs.

        Raises
        ------
        InputError
            If columns have different lengths, or a value is invalid.
        """
        times = [to_us(np.atleast_1d(np.asarray(column))) for column in (submit, runtime)]
        n = len(times[0])
        workload = cls(
            job=np.arange(1, n + 1, dtype=np.int64) if job is None else _ints(job, n, "job"),
            submit=times[0],
            runtime=times[1],
            estimate=times[1].copy() if estimate is None else to_us(np.atleast_1d(np.asarray(estimate))),
            cores=_ints(_cores_of(demands) if cores is None else cores, n, "cores"),
            deadline=np.full(n, NEVER) if deadline is None else to_us(np.asarray(deadline, dtype=float)),
            labels={name: _ints(column, n, name) for name, column in (labels or {}).items()},
            logged={name: np.asarray(column) for name, column in (logged or {}).items()},
            cores_stated=cores_stated,
            provenance=dict(provenance or {}),
            tolerance=None if tolerance is None else np.broadcast_to(np.asarray(tolerance, dtype=float), (n,)).copy(),
            restartable=None if restartable is None else np.broadcast_to(np.asarray(restartable, dtype=bool), (n,)),
            moldable=moldable,
            demands=demands,
        )
        workload.check()
        order = np.argsort(workload.submit, kind="stable")
        return workload if (order[1:] > order[:-1]).all() else workload.select(order)

    @classmethod
    def from_tasks(
        cls,
        tasks: Tasks,
        *,
        submit: Any,
        job: Any = None,
        deadline: Any = None,
        labels: Mapping[str, Any] | None = None,
        names: Mapping[str, tuple[str, ...]] | None = None,
        logged: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
        demands: Demands | None = None,
    ) -> Workload:
        """Return a workload of DAG jobs, sorted stably by submit time.

        Parameters
        ----------
        tasks : Tasks
            Tasks of the jobs, in the order of *submit*.
        submit : (n,) array_like
            Submit times, s.
        job : (n,) array_like, optional
            Job numbers; 1, 2, … by default.
        deadline : (n,) array_like, optional
            Deadlines, s; NaN or infinity for none.
        labels : mapping of str to (n,) array_like, optional
            Numbers of users, groups, partitions …; -1 if unknown.
        names : mapping of str to tuple of str, optional
            Names for the numbers of a label.
        logged, provenance : mapping, optional
            As in `from_columns`.
        demands : Demands, optional
            Demands of tasks in addition to cores, one row per task.

        Returns
        -------
        Workload
            The jobs.

        Raises
        ------
        InputError
            If columns have different lengths, or a value is invalid.

        Examples
        --------
        >>> tasks = Tasks.from_edges(counts=[3], runtime=[2, 3, 4], cores=[1, 1, 2], edges=[(0, 1), (0, 2)])
        >>> workload = Workload.from_tasks(tasks, submit=[5])
        >>> workload.cores, workload.runtime / 1e6, workload.area
        (array([2]), array([6.]), array([13.]))
        """
        begins = tasks.first[:-1]
        workload = cls.from_columns(
            submit=submit,
            runtime=np.maximum.reduceat(tasks.chains(tasks.runtime), begins) / MICROSECOND,
            estimate=np.maximum.reduceat(tasks.chains(tasks.estimate), begins) / MICROSECOND,
            cores=np.maximum.reduceat(tasks.cores, begins),
            job=job,
            deadline=deadline,
            labels=labels,
            logged=logged,
            provenance=provenance,
        )
        workload = replace(workload, names=dict(names or {}), tasks=tasks, demands=demands)
        submits = to_us(np.asarray(submit))
        if (np.diff(submits) < 0).any():
            order = np.argsort(submits, kind="stable")
            sorted_demands = None if demands is None else demands.select(tasks.rows_of(order))
            workload = replace(workload, tasks=tasks.select(order), demands=sorted_demands)
        if demands is not None:
            workload.check()
        return workload

    def check(self) -> None:
        """Raise `InputError` for the first invalid job.

        Raises
        ------
        InputError
            With the job, the column, the value and the allowed range.
        """
        n = len(self.job)
        for name, column in self.columns():
            if len(column) != n:
                raise InputError(f"the column has {len(column)} rows, but there are {n} job numbers", field=name)
        if not (self.job[1:] > self.job[:-1]).all():
            numbers, count = np.unique(self.job, return_counts=True)
            if len(numbers) < n:
                number = int(numbers[np.argmax(count > 1)])
                raise InputError(f"several jobs have the number {number}; expected unique numbers", field="job")
        if self.moldable is not None:
            self.moldable.check(*self.requested)
        if self.demands is not None:
            self._check_demands(self.demands)
        no_tolerance = np.zeros(n, dtype=np.bool_) if self.tolerance is None else ~(self.tolerance >= 1)

        def shown(name: str, row: int) -> str:
            value = dict(self.columns())[name][row]
            return f"job {self.job[row]} has {value if name in ('cores', 'tolerance') else seconds(int(value))}"

        check_rows(
            shown,
            ("runtime", _no_duration(self.runtime), "a finite run time above 0 s (see --on zero-runtime=RULE)"),
            ("estimate", _no_duration(self.estimate), "a finite estimate above 0 s"),
            ("cores", self.cores < (1 if self.demands is None else 0), "at least 1 core"),
            ("cores", self.cores > MOST_CORES, f"at most {MOST_CORES:,} cores"),
            ("submit", (self.submit < 0) | (self.submit >= NEVER), "a submit time from 0 s"),
            ("deadline", self.deadline < self.submit + self._quickest(), "a deadline at submit + estimate or later"),
            ("tolerance", no_tolerance, "a tolerance of 1 or more"),
        )

    def _check_demands(self, demands: Demands) -> None:
        cores, job = self.requested
        if len(demands) != len(cores):
            raise InputError(f"the column has {len(demands)} rows, but there are {len(cores)} jobs", field="demands")
        demands.check(job)
        if (other := demands.cores != cores).any():
            row = int(np.argmax(other))
            message = f"job {job[row]} has {cores[row]}, but demands {demands.cores[row]}; expected the same"
            raise InputError(message, field="cores")

    def _quickest(self) -> IntArray:
        """Return the estimates, for moldable jobs those on the maximum number of cores."""
        if self.moldable is None or self.tasks is not None:
            return self.estimate
        return np.minimum(self.estimate, self.moldable.times_on(self.moldable.maximum, self.estimate, self.cores))

    @property
    def requested(self) -> tuple[IntArray, IntArray]:
        """Requested cores, and job numbers; one row per job, or per task for DAG jobs."""
        if self.tasks is None:
            return self.cores, self.job
        return self.tasks.cores, self.job[self.tasks.job_rows()]

    def columns(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield all columns with their names: the fixed ones, then labels, then logged ones.

        Yields
        ------
        tuple of str and array
            Name and column, with one entry per job.
        """
        for name in (*_OF_JOBS, "tolerance", "restartable"):
            if (column := getattr(self, name)) is not None:
                yield name, column
        yield from self.labels.items()
        yield from self.logged.items()

    def require_rigid(self, what: str, *, field: str | None = None) -> None:
        """Raise for DAG jobs.

        Parameters
        ----------
        what : str
            Operation that requires rigid jobs, for the error.
        field : str, optional
            Field of the error.

        Raises
        ------
        InputError
            For DAG jobs.
        """
        if self.tasks is not None:
            raise InputError(not_modelled(f"the jobs are workflows (DAG jobs); {what}"), field=field)

    def select(self, rows: Any) -> Workload:
        """Return the workload of the *rows* (mask, slice or indices), in that order.

        Parameters
        ----------
        rows : (k,) array or slice
            Selected rows.

        Returns
        -------
        Workload
            Workload of these jobs only.
        """
        requests = rows if self.tasks is None else self.tasks.rows_of(rows)
        demands, moldable = rows_of(self.demands, requests), rows_of(self.moldable, requests)
        names = ("labels", "logged", "tasks", "tolerance", "restartable", "reactions")
        return with_rows(self, rows, *_OF_JOBS, *names, demands=demands, moldable=moldable)

    def with_more(self, labels: Mapping[str, Any], **columns: Any) -> Workload:
        """Return the workload with more rows behind its jobs; demands and sizes are those of the jobs only.

        Parameters
        ----------
        labels : mapping of str to int or array
            Labels of the rows, by default unknown.
        **columns : int or array
            Columns of the rows; *submit* is an array. Recorded outcomes are removed.

        Returns
        -------
        Workload
            The workload.
        """
        n = len(columns["submit"])
        number = int(self.job.max(initial=0)) + np.arange(1, n + 1)
        columns = {"job": number, "deadline": NEVER, "tolerance": 1, "restartable": True} | columns
        columns = {name: values for name, values in columns.items() if getattr(self, name) is not None}
        given = {name: labels.get(name, UNKNOWN) for name in self.labels}

        def joined(column: npt.NDArray[Any], values: Any) -> npt.NDArray[Any]:
            return np.append(column, np.broadcast_to(values, n).astype(column.dtype))

        found: dict[str, Any] = {name: joined(getattr(self, name), values) for name, values in columns.items()}
        found |= {"labels": {name: joined(self.labels[name], values) for name, values in given.items()}, "logged": {}}
        return replace(self, **found)

    def submitted_at(self, submit: IntArray) -> Workload:
        """Return the workload with other submit times, from which deadlines keep their distance.

        Parameters
        ----------
        submit : (n,) int64
            Submit times, microseconds.

        Returns
        -------
        Workload
            The workload.
        """
        deadline = np.where(self.deadline < NEVER, self.deadline - self.submit + submit, NEVER)
        return replace(self, submit=submit, deadline=deadline)

    def with_provenance(self, **entries: Any) -> Workload:
        """Return the same jobs with *entries* added to the provenance.

        Parameters
        ----------
        **entries : object
            Entries by name; JSON types only.

        Returns
        -------
        Workload
            Otherwise equal workload.
        """
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
        first, last = seconds(int(self.submit.min())), seconds(int(self.submit.max()))
        return f"<Workload: {len(self)} jobs, {first:g} s to {last:g} s>"

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: number of jobs, cores and period."""
        from gridsim.model.dataframes import html_repr  # only for notebooks
        from gridsim.model.dates import calendar_of

        title = f"Workload: {self.provenance.get('source', 'created in Python')}"
        if not len(self):
            return html_repr(title, [("jobs", "0")])
        calendar = calendar_of(self.provenance)
        first, last = (seconds(int(each)) for each in (self.submit.min(), self.submit.max()))
        period = [f"{calendar.date(at):%Y-%m-%d %H:%M}" if calendar else f"{at:,.15g} s" for at in (first, last)]
        least, middle, most = self.cores.min(), np.median(self.cores), self.cores.max()
        return html_repr(
            title,
            [
                ("jobs", f"{len(self):,}"),
                *([("tasks", f"{len(self.tasks):,}")] if self.tasks is not None else []),
                ("submitted", " to ".join(period)),
                ("cores of a job", f"{least:,} to {most:,}, median {middle:,.15g}"),
                ("runtime, median", f"{np.median(seconds(self.runtime)):,.15g} s"),
                *((name, f"{len(np.unique(column[column != UNKNOWN])):,}") for name, column in self.labels.items()),
                *([("cores of the machine", f"{self.cores_stated:,}")] if self.cores_stated else []),
            ],
        )

    def to_pandas(self) -> Any:
        """Return the jobs as a pandas data frame, with times in seconds, names instead of numbers, and dates if known.

        The columns are ``job``, labels (``user``, ``account`` …) as names if the source has them, ``cores``,
        ``submit``, ``runtime``, ``estimate``, ``deadline`` and ``tolerance`` if there are any, and ``logged_NAME`` for
        outcomes recorded in the source. If the source has dates, ``submit_at`` and ``deadline_at`` are timestamps in
        its zone, or without a zone if it is unknown. ``frame.attrs["units"]`` has the units.

        Returns
        -------
        pandas.DataFrame
            One row per job.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        deadlines = {} if (self.deadline >= NEVER).all() else {"deadline": seconds(self.deadline)}
        more = {"tolerance": self.tolerance, "restartable": self.restartable}
        columns: dict[str, npt.NDArray[Any]] = {
            "job": self.job,
            **self.labels,
            "cores": self.cores,
            **{name: seconds(getattr(self, name)) for name in ("submit", "runtime", "estimate")},
            **deadlines,
            **{name: column for name, column in more.items() if column is not None},
            **{f"logged_{name}": column for name, column in self.logged.items()},
        }
        return frame_of_jobs(columns, self)

    @property
    def logged_start(self) -> IntArray | None:
        """Start times recorded in the source, `NEVER` where unknown; None if the source has no start at all.

        They are the sum of submit time and ``logged["wait"]``, so that they shift with the submit times. For a job
        with several runs, it is the start of the first.

        Examples
        --------
        >>> log = Workload.from_columns(submit=[0, 5], runtime=[10, 10], cores=[1, 2], logged={"wait": [3, np.nan]})
        >>> log.logged_start.tolist() == [3_000_000, NEVER]
        True
        """
        return self._logged_after("wait")

    @property
    def logged_last_start(self) -> IntArray | None:
        """Recorded start times of the last run of each job."""
        return self._logged_after("last_wait" if "last_wait" in self.logged else "wait")

    def _logged_after(self, name: str) -> IntArray | None:
        """Return instants the given number of seconds after the submit times."""
        wait = self.logged.get(name)
        if wait is None:
            return None
        waited = to_us(np.asarray(wait, dtype=np.float64))
        return np.where(waited >= NEVER, NEVER, self.submit + waited)

    @property
    def has_recorded_schedule(self) -> bool:
        """Return whether the source records a start of any of these jobs; False for DAG jobs and after a transform."""
        start = self.logged_start
        changed = self.tasks is not None or bool(self.provenance.get("transforms"))
        return start is not None and not changed and bool((start < NEVER).any())

    @property
    def logged_end(self) -> IntArray | None:
        """End times recorded in the source, `NEVER` where unknown; None if the source has no start at all.

        They are the sum of logged start and run time, or of start and ``logged["held"]`` if the source has it: the
        seconds between start and end, including suspensions, NaN for a job that had not ended. For a job with several
        runs, it is the end of the last one, which started ``logged["last_wait"]`` seconds after the submit time.

        Examples
        --------
        >>> log = Workload.from_columns(submit=[0], runtime=[10], cores=[1], logged={"wait": [3], "held": [14]})
        >>> log.logged_end / 1e6
        array([17.])
        """
        start = self.logged_last_start
        if start is None:
            return None
        held = self.logged.get("held")
        span = self.runtime if held is None else to_us(np.asarray(held, dtype=np.float64))
        return np.where((start >= NEVER) | (span >= NEVER), NEVER, start + span)

    @property
    def epoch(self) -> float | None:
        """Unix time of second 0, s; None if unknown. Local times of an unknown zone are read as UTC."""
        from gridsim.model.dates import epoch_of  # as above

        return epoch_of(self.provenance)

    @property
    def area(self) -> FloatArray:
        """Cores times true run time of each job, summed over its tasks for DAG jobs, core-seconds."""
        if self.tasks is not None:
            return self.tasks.area()
        return self.cores * seconds(self.runtime)

    def offered_load(self, cores: int) -> float:
        """Return work divided by capacity between first and last submission; a fraction, NaN for a period of 0.

        Parameters
        ----------
        cores : int
            Cores of the machine.

        Returns
        -------
        float
            1 if the work exactly fills the machine.
        """
        span = seconds(int(self.submit.max() - self.submit.min())) if len(self) else 0.0
        return float(self.area.sum() / (cores * span)) if span else float("nan")


def frame_of_jobs(columns: Mapping[str, npt.NDArray[Any]], workload: Workload) -> Any:
    """Return a pandas data frame of columns with one row per job of *workload*.

    Numbers of users, accounts and so on are replaced by their names if the source has them; missing names are missing
    values. If the source has dates, each column of `gridsim.model.dataframes.DATED` has an additional column of dates,
    in the zone of the log, or without a zone if it is unknown.
    """
    from gridsim.model.dataframes import DATED, dates_of, frame  # only for data frames
    from gridsim.model.dates import calendar_of

    calendar = calendar_of(workload.provenance)
    made: dict[str, Any] = {}
    for name, column in columns.items():
        names = workload.names.get(name)
        labelled = name in workload.labels and name not in USUAL
        made[name] = _named(column, names) if names else _known(column) if labelled else column
        if calendar is not None and name in DATED:
            made[f"{name}_at"] = dates_of(np.asarray(column, dtype=np.float64), calendar)
    return frame(made)


def _named(column: npt.NDArray[Any], names: Sequence[str]) -> list[str | None]:
    """Return the names of numbers; None without a name."""
    return [names[code] or None if UNKNOWN < code < len(names) else None for code in column.tolist()]


def _known(column: npt.NDArray[Any]) -> Any:
    """Return the numbers of a label, as floats with NaN if some are unknown."""
    unknown = column == UNKNOWN
    return np.where(unknown, np.nan, column) if unknown.any() else column


def recorded(workload: Workload, transform: Any, **facts: Any) -> Workload:
    """Return the *workload* made by a *transform* (a dataclass), with an entry for it in the provenance.

    Parameters
    ----------
    **facts
        Further facts in JSON types; a fact with the name of a parameter replaces its value.
    """
    entry = {"transform": registry.name_of(type(transform)), **asdict(transform), **facts}
    return workload.with_provenance(transforms=[*workload.provenance.get("transforms", ()), entry])


def with_plugins(workload: Workload, *makers: Any) -> Workload:
    """Return the workload with the files and packages of plug-ins among its *makers* (reader, model, transforms)."""
    known = list(workload.provenance.get("plugins", ()))
    found = [origin for origin in registry.plugins(*makers) if origin not in known]
    return workload.with_provenance(plugins=[*known, *found]) if found else workload
