"""Result of one run: the record, its provenance, and its folder."""

from __future__ import annotations

import importlib.metadata
import platform as machine
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim import registry
from gridsim.files import write_json
from gridsim.metrics.availability import (
    lost_core_seconds,
    overhead_core_seconds,
    runs_of,
    spent_in_runs,
    useful_core_seconds,
)
from gridsim.metrics.measures import Measure
from gridsim.metrics.responsiveness import BOUND, bounded_slowdown, slowdown
from gridsim.metrics.stranding import lacking
from gridsim.metrics.summary import described, metrics
from gridsim.model.allocations import numbered_runs
from gridsim.model.dataframes import html_repr
from gridsim.model.demand import columns_of
from gridsim.model.job_id import JobIds
from gridsim.model.network import Network
from gridsim.model.platform import Platform
from gridsim.model.platform_file import tree_of
from gridsim.model.site.vocabulary import Notice
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER, FloatArray, IntArray, seconds
from gridsim.model.workload import MACHINE_NAMES, Workload, frame_of_jobs
from gridsim.record import BROKEN_BY, FAILURE, Predictions, Record, Refusal, Status
from gridsim.tables import NAMES, TABLES, require_table, write_table


def versions() -> dict[str, str]:
    """Return the versions of gridsim, Python and the packages that can change a number."""
    own = {"python": machine.python_version(), "gridsim": importlib.metadata.version("gridsim-hpc")}
    return own | {name: importlib.metadata.version(name) for name in ("simpy", "numpy", "scipy", "numba")}


def people(workload: Workload) -> list[str]:
    """Return the names of the users and accounts of a log."""
    return [name for label in ("user", "account") for name in workload.names.get(label, ())]


def without_names(text: str, names: Iterable[str]) -> str:
    """Replace names by an ellipsis, where no letter or digit is next to them.

    Examples
    --------
    >>> without_names("limits of user ann and account bio_1: anna", ["ann", "bio_1", ""])
    'limits of user … and account …: anna'
    """
    known = "|".join(map(re.escape, sorted(filter(None, names), key=len, reverse=True)))
    return re.sub(rf"(?<![^\W_])(?:{known})(?![^\W_])", "…", text) if known else text


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Result of simulating one workload under one policy.

    Attributes
    ----------
    record : Record
        Outcomes: one row per job.
    platform : Platform
        The machine.
    policy : str
        Full composition of the policy, with all parameters.
    options : mapping
        Options of the run: overrun, instant, seed, tick.
    plugins : sequence of mapping
        Plain files and installed packages that define the policy, with their checksums.
    label : str or None
        Label of the policy, if the user gave one.
    notices : sequence of Notice
        Settings of the policy's configuration that the simulation ignores.
    measures : sequence of Measure
        Additional metrics and charges.
    """

    record: Record
    platform: Platform
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    plugins: Sequence[Mapping[str, str]] = ()
    label: str | None = None
    notices: Sequence[Notice] = ()
    measures: Sequence[Measure] = ()

    @property
    def workload(self) -> Workload:
        """Jobs that were simulated."""
        return self.record.workload

    def metrics(self, *, bound: float = BOUND, warmup: float = 0.0, cooldown: float = 0.0) -> dict[str, float]:
        """Return the metrics of the whole run by name (defined in `gridsim.metrics.summary.METRICS`).

        Parameters
        ----------
        bound : float
            Lower bound of run times in bounded slowdowns, s.
        warmup, cooldown : float
            Seconds at the beginning and end of the workload; jobs submitted in them are excluded.

        Returns
        -------
        dict of str to float
            Metrics, in the units of `METRICS`.
        """
        return metrics(self.record, bound=bound, warmup=warmup, cooldown=cooldown, measures=self.measures)

    def with_measures(self, measures: Sequence[Measure]) -> Result:
        """Return the result with additional metrics and charges.

        Parameters
        ----------
        measures : sequence of Measure
            The metrics and charges.

        Returns
        -------
        Result
            Copy of this result with the measures.
        """
        known = list(self.plugins)
        found = [origin for origin in registry.plugins(*(it.part for it in measures)) if origin not in known]
        return replace(self, measures=tuple(measures), plugins=[*known, *found]) if measures else self

    @property
    def jobs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of jobs, one row per job: times in seconds, NaN if a job did not run."""
        return self._columns(BOUND)

    def _columns(self, bound: float) -> dict[str, npt.NDArray[Any]]:
        record, workload = self.record, self.workload
        deadline = seconds(workload.deadline)
        clusters = np.array([cluster.name for cluster in self.platform.clusters()])
        columns: dict[str, npt.NDArray[Any]] = {
            "job": workload.job,
            **({"job_id": np.array(ids.texts())} if (ids := JobIds.of(workload)).known else {}),
            **{name: workload.labels[name] for name in _named_labels(workload)},
            "cores": workload.cores,
            "submit": record.submit,
            **({} if record.logged_submit_us is None else {"logged_submit": seconds(record.logged_submit_us)}),
            "start": record.start,
            "end": record.end,
            "wait": record.wait,
            "runtime": seconds(workload.runtime),
            "estimate": seconds(workload.estimate),
            "response": record.response,
            "slowdown": slowdown(record),
            "bounded_slowdown": bounded_slowdown(record, bound),
            "cluster": np.where(record.ran, clusters[record.cluster], ""),
            "status": record.status_names,
        }
        if record.reason is not None:
            columns["reason"] = record.reason
        if workload.demands is not None and workload.tasks is None:
            columns |= columns_of(workload.demands)
        if (short_of := lacking(record)) is not None:
            columns["short_of"] = short_of
        if record.beyond is not None:
            limit = record.beyond.limit_us
            columns["limit"] = seconds(limit)
            columns["pieces"] = np.where(record.ran, record.beyond.pieces + 1, 0)
        if workload.moldable is not None and record.tasks is None:
            columns["cores_min"], columns["cores_max"] = workload.moldable.minimum, workload.moldable.maximum
            columns["cores_used"] = record.given
        if not np.isnan(deadline).all():
            columns["deadline"] = deadline
        if record.predictions is not None:
            columns |= _predicted(record, record.predictions)
        if record.reasons is not None:
            columns |= {name: getattr(record.reasons, name) for name in ("eligible", "free", "pool")}
        if record.promises is not None:
            promises = record.promises
            if promises.guarantees:
                columns["granted"], columns["offer"] = seconds(promises.granted_us), seconds(promises.offer_us)
            if not record.by_class:
                columns["kills"], columns["lost_core_seconds"] = record.kills, record.lost
            if record.tasks is None and (promises.cancelled_by < NEVER).any():
                columns["cancelled_by"] = self._numbers(promises.cancelled_by)
            if promises.guarantees:
                columns["artificial_doublings"] = promises.doublings
                columns["guarantee_broken"] = promises.broken.astype(np.int64)
            if promises.broken_at_us is not None and promises.broken_by is not None:
                columns["broken_at"] = seconds(promises.broken_at_us)
                words = np.array(BROKEN_BY)[promises.broken_by]
                columns["broken_by"] = np.where(promises.broken_at_us < NEVER, words, "")
        columns |= self._interrupted()
        if record.tasks is not None and record.critical_path is not None:
            columns["cluster"] = np.array(_clusters_of_jobs(record, clusters.tolist()))
            columns["critical_path"] = seconds(record.critical_path)
            columns["slr"] = record.response / columns["critical_path"]
            columns["stretch"] = record.response / record.area
            columns["speedup"] = record.area / record.response
        return columns | {it.name: it.column(record) for it in self.measures if it.kind == "charge"}

    def _interrupted(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of runs with failures, windows, checkpoints or preemption by class."""
        record, found = self.record, self.record.interruptions
        if found is None or record.tasks is not None:
            return {}
        columns: dict[str, npt.NDArray[Any]] = {"first_start": seconds(record.first_start_us), **self._run_counts()}
        if found.suspended is not None:
            columns["suspended"] = self._suspended_seconds
        columns["useful_core_seconds"] = useful_core_seconds(record)
        if found.kept is not None:
            checkpoint, restart = overhead_core_seconds(record)
            columns["checkpoint_core_seconds"], columns["restart_core_seconds"] = checkpoint, restart
        columns["lost_core_seconds"] = lost_core_seconds(record)
        if found.reserved and "reservation" in record.workload.labels:
            columns["reservation"] = record.workload.labels["reservation"]
        if found.moved is not None:
            columns["moved"], columns["moved_by"] = found.moved[0], seconds(found.moved[1])
        return columns

    @property
    def tasks(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of tasks, one row per task of DAG jobs: times in seconds, NaN if not run; none for rigid jobs."""
        record, tasks, times = self.record, self.workload.tasks, self.record.tasks
        if tasks is None or times is None:
            return {}
        job = tasks.job_rows()
        clusters = np.array([cluster.name for cluster in self.platform.clusters()])
        return {
            "job": self.workload.job[job],
            "task": self._task_names(tasks),
            "cluster": np.where(times.start_us < NEVER, clusters[times.cluster], ""),
            "kind": np.array(tasks.kinds)[tasks.kind],
            "cores": tasks.cores,
            **({} if times.cores_used is None else {"cores_used": times.cores_used}),
            "ready": seconds(times.ready_us),
            "start": seconds(times.start_us),
            "end": seconds(times.end_us),
            "runtime": seconds(tasks.runtime),
            "estimate": seconds(tasks.estimate),
            "rank": np.full(len(tasks), np.nan) if record.rank is None else seconds(record.rank),
            "status": times.status_names,
            **self._run_counts(),
            **({} if self.workload.demands is None else columns_of(self.workload.demands)),
        }

    def _task_names(self, tasks: Tasks) -> npt.NDArray[np.str_]:
        """Return the names of all tasks, or their numbers in their jobs."""
        if tasks.names is not None:
            return np.array(tasks.names)
        return (np.arange(len(tasks)) - tasks.first[:-1][tasks.job_rows()]).astype(str)

    def _run_counts(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the numbers of runs of jobs (tasks of DAG jobs); none without failures and classes."""
        record, found = self.record, self.record.interruptions
        if found is None:
            return {}
        own = record if record.tasks is None else record.tasks
        earlier = np.bincount(record.earlier_runs()[0], minlength=len(record.given))
        return {
            "runs": earlier + (own.end_us < NEVER),
            "restarts": found.restarts + (own.status == Status.failed),
            **({"preemptions": record.preemptions} if record.by_class else {}),
        }

    @property
    def killed_runs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of runs killed to free cores: job, cores, start and end (s), and *by*, the preempting job."""
        cut = self.record.promises
        if cut is None:
            return {}
        return {
            "job": self.workload.job[cut.killed],
            "cores": self.record.given[cut.killed],
            "start": seconds(cut.killed_start_us),
            "end": seconds(cut.killed_end_us),
            "by": self._numbers(cut.killed_by),
        }

    @property
    def runs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of all runs, if any job has several or could save: job, number of the run, start, end (s).

        The reason is that of the interruption, or the status of the job in its last run. Restart, kept work,
        checkpoints and lost time of a run, s, add up to its duration.
        """
        record, found = self.record, self.record.interruptions
        if found is None:
            return {}
        row, start, end, reason, by = runs_of(record)
        spent = spent_in_runs(record)
        if len(row) == len(np.unique(row)) and found.kept is None and found.suspended is None:
            return {}
        return {
            **self._owners(row),
            "run": numbered_runs(row, start),
            "start": seconds(start),
            "end": seconds(end),
            "reason": np.array(reason),
            **({"by": self._numbers(by)} if record.by_class else {}),
            "restart": seconds(spent.restart),
            "kept": seconds(spent.kept),
            "checkpoints": spent.checkpoints,
            "checkpoint_seconds": seconds(spent.checkpoint),
            "lost": seconds(spent.lost),
            **({} if found.suspended is None else {"suspended": seconds(spent.suspended)}),
        }

    @property
    def suspensions(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of suspensions: job, start of the stretch before, begin and end (s), and *by*, the preempting job."""
        found = self.record.interruptions
        if found is None or found.suspended is None:
            return {}
        job, _, since, until, by = found.suspended[:, np.lexsort((found.suspended[2], found.suspended[0]))]
        stretches = self.record.in_stretches.interruptions
        assert stretches is not None
        return {
            **self._owners(job),
            "start": seconds(stretches.start_us[len(found.job) :]),
            "from": seconds(since),
            "until": seconds(until),
            "by": self._numbers(by),
        }

    @property
    def _suspended_seconds(self) -> FloatArray:
        """Time for which each job was suspended in all its runs, s."""
        assert self.record.interruptions is not None
        assert self.record.interruptions.suspended is not None
        job, _, since, until, _ = self.record.interruptions.suspended
        found = np.zeros(len(self.record))
        np.add.at(found, job, seconds(until - since))
        return found

    @property
    def failures(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the failures of nodes and GPUs, as a trace: node, down, up (s, NaN if it did not return), gpus."""
        found = self.record.interruptions
        rows = np.flatnonzero(found.kind == FAILURE) if found is not None else np.zeros(0, dtype=np.int64)
        if found is None or not len(rows):
            return {}
        gpu = np.where(found.gpu >= 0, found.gpu.astype(str), "")[rows]
        return {
            "node": np.array(found.names)[found.node[rows]],
            "down": seconds(found.down_us[rows]),
            "up": seconds(found.up_us[rows]),
            **({"gpus": gpu} if (gpu != "").any() else {}),
        }

    @property
    def pieces(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the pieces of split jobs, without the last piece of each: job, cores, start and end (s)."""
        found = self.record.beyond
        if found is None or not len(found.job):
            return {}
        return {
            "job": self.workload.job[found.job],
            "cores": self.record.given[found.job],
            "start": seconds(found.start_us),
            "end": seconds(found.end_us),
        }

    @property
    def allocations(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of allocations, one row per node of each run of a job or DAG task, times in seconds.

        Memory in MiB, GPUs as thousandths by number (``0:500 3:1000``); none on machines without nodes.
        """
        held = self.record.allocations
        if held is None:
            return {}
        return {
            **self._owners(held.job),
            "run": held.run,
            "node": np.array((*held.nodes, ""))[held.node],
            "tasks": held.tasks,
            **held.amounts,
            "gpus": np.array(held.gpu_texts(), dtype=str),
            "start": seconds(held.start_us),
            "end": seconds(held.end_us),
        }

    def _owners(self, rows: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Columns of the jobs in some rows, and of the tasks of DAG jobs."""
        tasks = self.workload.tasks
        if tasks is None:
            return {"job": self.workload.job[rows]}
        return {"job": self.workload.job[tasks.jobs_of(rows)], "task": self._task_names(tasks)[rows]}

    def _numbers(self, rows: IntArray) -> npt.NDArray[Any]:
        """Return the numbers of the jobs in some rows (of tasks for DAG jobs) as text, empty for no job."""
        if self.workload.tasks is not None:
            rows = self.workload.tasks.jobs_of(rows)
        known = (rows >= 0) & (rows < len(self.workload))
        return np.where(known, self.workload.job[np.where(known, rows, 0)].astype(str), "")

    @property
    def reasons(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of reasons for waiting, one row per reason and interval: job, reason, start and end (s)."""
        told = self.record.reasons
        if told is None:
            return {}
        return {
            "job": self.workload.job[told.job],
            "reason": np.array(told.words)[told.word],
            "from": seconds(told.since_us),
            "until": seconds(told.until_us),
        }

    @property
    def refused(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of jobs rejected by a rule of the site: requested amount, largest allowed amount, rule."""
        told = self.record.reasons
        if told is None or not told.refused:
            return {}
        rows = sorted(told.refused)
        why = [told.refused[row] for row in rows]
        requested = [each.requested for each in why]
        return {
            "job": self.workload.job[rows],
            "reason": np.array([each.reason for each in why]),
            "requested": np.array([it if isinstance(it, str) else f"{it:g}" for it in requested]),
            "most": np.array([np.nan if each.most is None else each.most for each in why], dtype=np.float64),
            "unit": np.array([each.unit for each in why]),
            "rule": np.array([each.rule for each in why]),
        }

    def without_names(self) -> Result:
        """Return the same result without names of users, accounts, jobs and tasks, which have numbers instead.

        Returns
        -------
        Result
            A result with the names of partitions, QOS and other parts of the machine only.
        """
        workload = self.record.workload
        names = {label: texts for label, texts in workload.names.items() if label in MACHINE_NAMES}
        tasks = None if workload.tasks is None else replace(workload.tasks, names=None)
        record = replace(self.record, workload=replace(workload, names=names, tasks=tasks))
        hidden = [name for label in set(workload.names) - set(names) for name in workload.names[label]]

        def hide(value: Any) -> Any:
            return without_names(value, hidden) if isinstance(value, str) else value

        texts = [hide(re.sub("^reservation .*(?= [(])", "a reservation", it.text)) for it in self.notices]
        notices = [replace(it, text=text) for it, text in zip(self.notices, texts, strict=True)]
        if record.reasons is not None:
            refused = {row: Refusal(*map(hide, why)) for row, why in record.reasons.refused.items()}
            record = replace(record, reasons=replace(record.reasons, refused=refused))
        return replace(self, record=record, policy=without_names(self.policy, people(workload)), notices=notices)

    def to_pandas(self) -> Any:
        """Return the jobs as a pandas data frame with the columns of `jobs`, times in seconds.

        Users, accounts and other labels have their names if the source contains them. If the source contains dates,
        ``submit_at``, ``start_at`` and ``end_at`` are timestamps in its time zone, or without a zone if it is unknown.
        ``frame.attrs["units"]`` contains the units.

        Returns
        -------
        pandas.DataFrame
            One row per job.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        return frame_of_jobs(self.jobs, self.workload)

    @property
    def figures(self) -> Mapping[str, Any]:
        """Figures of this run by name; each matplotlib ``Figure`` is drawn on access.

        ``list(result.figures)`` lists the names; ``result.figures.save("folder/", kind="pdf")`` writes all figures as
        files for a paper (`gridsim.report.gallery.Gallery`).
        """
        from gridsim.report.gallery import of_run  # imports matplotlib only when a figure is made

        return of_run(self.policy, self.record, self.platform)

    def __repr__(self) -> str:
        jobs = f"{len(self.record):,} job{'' if len(self.record) == 1 else 's'}"
        return f"<Result: {jobs} on {self.platform.cores:,} cores under {self.policy}>"

    def __str__(self) -> str:
        """Return the run and its main metrics, one per line."""
        return "\n".join([repr(self), *(f"  {name}: {value}" for name, value in self._main())])

    def _repr_html_(self) -> str:
        """Return the main metrics as HTML for notebooks."""
        return html_repr(repr(self).strip("<>"), self._main())

    def _main(self) -> list[tuple[str, str]]:
        """Return the main metrics with their units."""
        if not len(self.record):
            return []
        numbers = self.metrics()
        return [
            (_called(name), f"{_few(value)} {described(name).unit}".rstrip())
            for name, value in numbers.items()
            if name in _ALWAYS_SHOWN or (name in _SHOWN_IF_ANY and value)
        ]

    def provenance(self) -> dict[str, Any]:
        """Return the provenance of the run.

        It contains the input with its checksum, repaired and excluded jobs, the machine, the policy and its files,
        options and versions.

        Returns
        -------
        dict of str to object
            Content of ``run.json``, JSON types only.
        """
        return {
            "workload": dict(self.workload.provenance),
            "platform": {
                "cores": self.platform.cores,
                "origin": self.platform.origin,
                "tree": tree_of(self.platform.root),
                **({} if self.platform.by is None else {"by": self.platform.by}),
                **({"pooled": self.platform.pooled} if self.platform.pooled else {}),
                **self._between(),
            },
            **({} if self.label is None else {"label": self.label}),
            "policy": self.policy,
            "plugins": [dict(plugin) for plugin in self.plugins],
            **({"not_followed": [asdict(notice) for notice in self.notices]} if self.notices else {}),
            "options": dict(self.options),
            **({"measures": [it.name for it in self.measures]} if self.measures else {}),
            "versions": versions(),
        }

    def _between(self) -> dict[str, Any]:
        """Return the network and shares of the platform, if it defines any."""
        network, shares = self.platform.network, self.platform.shares
        told = {option.name: getattr(network, option.name) for option in fields(network) if option.init}
        return {
            **({"network": told} if network != Network() else {}),
            **({"shares": dict(shares.shares)} if shares is not None else {}),
        }

    def write(
        self,
        folder: str | Path,
        *,
        table: str = "csv",
        bound: float = BOUND,
        warmup: float = 0.0,
        cooldown: float = 0.0,
    ) -> None:
        """Write ``jobs.csv`` (or ``jobs.parquet``), ``metrics.json`` and ``run.json``.

        Other files are written if there is content for them: ``tasks.csv`` for DAG jobs and ``allocations.csv`` on
        machines of nodes (both in the format *table*), ``killed_runs.csv`` for preempted jobs, ``failures.csv`` if
        nodes failed and ``runs.csv`` if that interrupted jobs, ``suspensions.csv`` for suspended jobs, ``pieces.csv``
        for split jobs, ``reasons.csv`` for reported reasons for waiting, ``refused.csv`` for jobs rejected by the site,
        and ``logged.csv`` for start times of the log. Each file is written atomically.

        If the log has names of users, accounts or other labels, ``names.csv`` maps numbers to names.

        Parameters
        ----------
        folder : path
            The folder; created if missing.
        table : {"csv", "parquet"}
            Parquet needs the extra ``parquet``.
        bound, warmup, cooldown : float
            As in `metrics`; also written to ``run.json``. The table contains the excluded jobs as well.
        """
        folder = Path(folder)
        require_table(table)
        cuts = {"bound": bound, "warmup": warmup, "cooldown": cooldown}
        numbers = self.metrics(**cuts)  # raises for invalid arguments before anything is written
        tables = dict(zip(_TABLES, (self._columns(bound), self.tasks, self.allocations), strict=True))
        killed = self.killed_runs if self.record.kills.any() and not self.record.by_class else {}
        rare = (
            killed,
            self.runs,
            self.failures,
            self.pieces,
            self.reasons,
            self.refused,
            self.record.logged,
            self.suspensions,
        )
        for name, columns in zip(_RARE, rare, strict=True):
            (folder / f"{name}.csv").unlink(missing_ok=True)
            if columns:
                write_table(folder / f"{name}.csv", columns)
        for name, columns in tables.items():
            for other in TABLES:
                if other != table or not columns:
                    (folder / f"{name}.{other}").unlink(missing_ok=True)  # left by an earlier run
            if columns:
                write_table(folder / f"{name}.{table}", columns)
        (folder / NAMES).unlink(missing_ok=True)
        if len((names := _names(self.workload, *({"reservation"} & tables["jobs"].keys())))["name"]):
            write_table(folder / NAMES, names)
        write_json(folder / "metrics.json", numbers)
        write_json(folder / "run.json", {**self.provenance(), "metrics": cuts})


_TABLES = ("jobs", "tasks", "allocations")
_RARE = ("killed_runs", "runs", "failures", "pieces", "reasons", "refused", "logged", "suspensions")
_CSV = tuple(f"{name}.csv" for name in _RARE)
FILES = frozenset((*_CSV, NAMES, "metrics.json", "run.json", *(f"{it}.{kind}" for it in _TABLES for kind in TABLES)))
"""Names of all files that `Result.write` may write."""

_ALWAYS_SHOWN = ("wait_mean", "wait_median", "wait_p95", "bounded_slowdown_mean", "mean_slr", "utilisation", "makespan")
_SHOWN_IF_ANY = ("killed_walltime", "rejected", "unadmitted")
"""Metrics that are shown only if they are not zero."""


def _predicted(record: Record, found: Predictions) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of predicted run times."""
    columns: dict[str, npt.NDArray[Any]] = {
        "prediction": seconds(found.prediction_us),
        "corrections": found.corrections,
    }
    if found.promised_us is not None and found.moved is not None:
        late = np.where(record.ran, np.maximum(0, record.start_us - found.promised_us), NEVER)
        columns |= {"promised": seconds(found.promised_us), "moved": found.moved, "late": seconds(late)}
    return columns


def _few(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _called(name: str) -> str:
    return name.replace("_", " ")


def _named_labels(workload: Workload) -> list[str]:
    """Return the labels that are columns of the table: users and groups, and other labels with names."""
    known, numbers = ("user", "group", "account", "partition", "qos", "priority"), ("user", "group", "priority")
    return [name for name in known if name in workload.labels and (name in numbers or workload.names.get(name))]


def _names(workload: Workload, *more: str) -> dict[str, npt.NDArray[Any]]:
    """Return label, number and name of each user, account and so on (*more* labels) that has jobs, if it has one."""
    rows = [
        (label, value, workload.names[label][value])
        for label in (*_named_labels(workload), *more)
        for value in np.unique(workload.labels[label]).tolist()
        if 0 <= value < len(workload.names.get(label, ())) and workload.names[label][value]
    ]
    labels, numbers, names = zip(*rows, strict=True) if rows else ((), (), ())
    return {"label": np.array(labels), "number": np.array(numbers), "name": np.array(names)}


def _clusters_of_jobs(record: Record, names: Sequence[str]) -> list[str]:
    """Return the clusters that ran the tasks of each job, joined by ``+`` in tree order; empty for none."""
    tasks, times = record.workload.tasks, record.tasks
    assert tasks is not None
    assert times is not None
    ran = times.start_us < NEVER
    pairs = np.unique(tasks.job_rows()[ran] * len(names) + times.cluster[ran])
    found = [""] * len(record)
    for job, cluster in zip((pairs // len(names)).tolist(), (pairs % len(names)).tolist(), strict=True):
        found[job] += ("+" if found[job] else "") + names[cluster]
    return found
