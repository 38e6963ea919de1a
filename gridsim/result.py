"""One run as its user holds it: the record, where it came from, and the folder it is written to."""

from __future__ import annotations

import importlib.metadata
import platform as machine
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim import registry
from gridsim.files import write_json
from gridsim.metrics.measures import Measure
from gridsim.metrics.responsiveness import BOUND, bounded_slowdown, slowdown
from gridsim.metrics.stranding import lacking
from gridsim.metrics.summary import described, metrics
from gridsim.model.demand import columns_of
from gridsim.model.frames import card
from gridsim.model.job_id import JobIds
from gridsim.model.network import Network
from gridsim.model.platform import Platform
from gridsim.model.platform_file import tree_of
from gridsim.model.site.vocabulary import Notice
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.model.workload import Workload, frame_of_jobs
from gridsim.record import Predictions, Record
from gridsim.tables import NAMES, TABLES, require_table, write_table


def versions() -> dict[str, str]:
    """Versions of gridsim, Python and the packages that can change a number."""
    packages = ("gridsim", "simpy", "numpy", "scipy", "numba")
    return {"python": machine.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What one policy did with one workload.

    Attributes
    ----------
    record : Record
        One row a job.
    platform : Platform
        The machine.
    policy : str
        Its full composition, every parameter shown.
    options : mapping
        Options of the run: overrun, instant, seed, tick.
    plugins : sequence of mapping
        Plain files and installed packages that the policy came from, with their checksums.
    label : str or None
        What the policy is called, where its user said so.
    notices : sequence of Notice
        What the configuration of the policy says and the simulation does not follow.
    measures : sequence of Measure
        Metrics and charges among its numbers that somebody asked for.
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
        """The jobs that were simulated."""
        return self.record.workload

    def metrics(self, *, bound: float = BOUND, warmup: float = 0.0, cooldown: float = 0.0) -> dict[str, float]:
        """Numbers of the whole run by name (`gridsim.metrics.summary.METRICS` says what each is).

        Parameters
        ----------
        bound : float
            Runtimes below this many seconds count as this many in bounded slowdowns.
        warmup, cooldown : float
            Jobs submitted in the first and last so many seconds are left out.

        Returns
        -------
        dict of str to float
            In the units that `METRICS` says.
        """
        return metrics(self.record, bound=bound, warmup=warmup, cooldown=cooldown, measures=self.measures)

    def with_measures(self, measures: Sequence[Measure]) -> Result:
        """The result with metrics and charges among its numbers.

        Parameters
        ----------
        measures : sequence of Measure
            The metrics and charges.

        Returns
        -------
        Result
            Otherwise the same.
        """
        known = list(self.plugins)
        found = [origin for origin in registry.plugins(*(it.part for it in measures)) if origin not in known]
        return replace(self, measures=tuple(measures), plugins=[*known, *found]) if measures else self

    @property
    def jobs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row a job: times in seconds, NaN where a job did not run."""
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
            columns |= {"reach": record.reasons.reach, "free": record.reasons.free, "pool": record.reasons.pool}
        if record.promises is not None:
            promises = record.promises
            if promises.guarantees:
                columns["granted"], columns["offer"] = seconds(promises.granted_us), seconds(promises.offer_us)
            columns["kills"], columns["lost_core_seconds"] = record.kills, record.lost
            if (promises.cancelled_by < NEVER).any():
                columns["cancelled_by"] = self._numbers(promises.cancelled_by)
            if promises.guarantees:
                columns["artificial_doublings"] = promises.doublings
                columns["guarantee_broken"] = promises.broken.astype(np.int64)
        if record.tasks is not None and record.critical_path is not None:
            columns["cluster"] = np.array(_clusters_of_jobs(record, clusters.tolist()))
            columns["critical_path"] = seconds(record.critical_path)
            columns["slr"] = record.response / columns["critical_path"]
            columns["stretch"] = record.response / record.area
            columns["speedup"] = record.area / record.response
        return columns | {it.name: it.column(record) for it in self.measures if it.kind == "charge"}

    @property
    def tasks(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row a task of DAG jobs: times in seconds, NaN where a task did not run; none for rigid jobs."""
        record, tasks, times = self.record, self.workload.tasks, self.record.tasks
        if tasks is None or times is None:
            return {}
        job = tasks.job_rows()
        index = np.arange(len(tasks)) - tasks.first[:-1][job]
        clusters = np.array([cluster.name for cluster in self.platform.clusters()])
        return {
            "job": self.workload.job[job],
            "task": index.astype(str) if tasks.names is None else np.array(tasks.names),
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
            **({} if self.workload.demands is None else columns_of(self.workload.demands)),
        }

    @property
    def killed_runs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row a run that was cut short to make room: job, cores, start and end in s, `by` which job."""
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
    def pieces(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row a piece of a job that was split, but the last of each: job, cores, start and end in s."""
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
        """Columns, one row a node of each run of a job (of a task of DAG jobs): what it held there, start and end in s.

        Memory in MiB, GPUs as thousandths by number (``0:500 3:1000``); none on machines without nodes.
        """
        held, tasks = self.record.allocations, self.workload.tasks
        if held is None:
            return {}
        job = held.job if tasks is None else tasks.job_rows()[held.job]
        return {
            "job": self.workload.job[job],
            **({} if tasks is None else {"task": self.tasks["task"][held.job]}),
            "run": held.run,
            "node": np.array((*held.nodes, ""))[held.node],
            "tasks": held.tasks,
            **held.amounts,
            "gpus": np.array(held.gpu_texts(), dtype=str),
            "start": seconds(held.start_us),
            "end": seconds(held.end_us),
        }

    def _numbers(self, rows: IntArray) -> npt.NDArray[Any]:
        """Numbers of the jobs in some rows as text, empty where it is none."""
        known = (rows >= 0) & (rows < len(self.workload))
        return np.where(known, self.workload.job[np.where(known, rows, 0)].astype(str), "")

    @property
    def reasons(self) -> dict[str, npt.NDArray[Any]]:
        """Columns, one row each time that one reason kept a job waiting: job, reason, from and until in s."""
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
        """Columns, one row a job that a rule of its site turned away: what it asked for, the most allowed, the rule."""
        told = self.record.reasons
        if told is None or not told.refused:
            return {}
        rows = sorted(told.refused)
        why = [told.refused[row] for row in rows]
        return {
            "job": self.workload.job[rows],
            "reason": np.array([each.reason for each in why]),
            "asked": np.array([each.asked if isinstance(each.asked, str) else f"{each.asked:g}" for each in why]),
            "most": np.array([np.nan if each.most is None else each.most for each in why], dtype=np.float64),
            "unit": np.array([each.unit for each in why]),
            "rule": np.array([each.rule for each in why]),
        }

    def to_pandas(self) -> Any:
        """The jobs as a pandas data frame: the columns of `jobs`, times in seconds.

        Users, accounts and so on have their names where the source has them. Where it knows dates, ``submit_at``,
        ``start_at`` and ``end_at`` are timestamps in its zone, without one where that is not known.
        ``frame.attrs["units"]`` has the units.

        Returns
        -------
        pandas.DataFrame
            One row a job.

        Raises
        ------
        InputError
            Where pandas is not installed.
        """
        return frame_of_jobs(self.jobs, self.workload)

    @property
    def figures(self) -> Mapping[str, Any]:
        """Figures of this run by name, each a matplotlib ``Figure`` that is drawn when it is asked for.

        ``list(result.figures)`` has the names; ``result.figures.save("folder/", kind="pdf")`` writes all of them as
        files for a paper (`gridsim.report.gallery.Gallery`).
        """
        from gridsim.report.gallery import of_run  # matplotlib: only where a figure is made

        return of_run(self.policy, self.record, self.platform)

    def __repr__(self) -> str:
        jobs = f"{len(self.record):,} job{'' if len(self.record) == 1 else 's'}"
        return f"<Result: {jobs} on {self.platform.cores:,} cores under {self.policy}>"

    def __str__(self) -> str:
        """The run and its main numbers, a line each."""
        return "\n".join([repr(self), *(f"  {name}: {value}" for name, value in self._main())])

    def _repr_html_(self) -> str:
        """What a notebook shows: the main numbers."""
        return card(repr(self).strip("<>"), self._main())

    def _main(self) -> list[tuple[str, str]]:
        """Main numbers with their units."""
        if not len(self.record):
            return []
        numbers = self.metrics()
        return [
            (_called(name), f"{_few(value)} {described(name).unit}".rstrip())
            for name, value in numbers.items()
            if name in _ALWAYS_SHOWN or (name in _SHOWN_IF_ANY and value)
        ]

    def provenance(self) -> dict[str, Any]:
        """The full recipe: input, its checksum, what was repaired or left out, machine, policy and its files,
        options, versions.

        Returns
        -------
        dict of str to object
            JSON types only: what ``run.json`` has.
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
            **({"asked": [it.name for it in self.measures]} if self.measures else {}),
            "versions": versions(),
        }

    def _between(self) -> dict[str, Any]:
        """What the platform says of its network and shares, where it says anything."""
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
        """Write ``jobs.csv`` (or ``jobs.parquet``, in place of the other), ``metrics.json`` and ``run.json``.

        For DAG jobs also ``tasks.csv``; on machines of nodes ``allocations.csv`` (both as *table* says). Where jobs
        were killed to make room, ``killed_runs.csv``; where they were split, ``pieces.csv``; where the policy says why
        jobs waited, ``reasons.csv``, and ``refused.csv`` where its site turned any away; where the log has starts,
        ``logged.csv``. Each is written atomically.

        Where the log has names of users, accounts and so on, ``names.csv`` says which numbers stand for them.

        Parameters
        ----------
        folder : path
            Where to; made where it is not there.
        table : {"csv", "parquet"}
            Parquet needs the extra ``parquet``.
        bound, warmup, cooldown : float
            As in `metrics`; ``run.json`` tells them. Jobs that are cut are in the table all the same.
        """
        folder = Path(folder)
        require_table(table)
        cuts = {"bound": bound, "warmup": warmup, "cooldown": cooldown}
        numbers = self.metrics(**cuts)  # refuses what makes no sense before anything is written
        tables = dict(zip(_TABLES, (self._columns(bound), self.tasks, self.allocations), strict=True))
        killed = self.killed_runs if self.record.kills.any() else {}
        rare = (killed, self.pieces, self.reasons, self.refused, self.record.logged)
        for name, columns in zip(_RARE, rare, strict=True):
            (folder / name).unlink(missing_ok=True)
            if columns:
                write_table(folder / name, columns)
        for name, columns in tables.items():
            for other in TABLES:
                if other != table or not columns:
                    (folder / f"{name}.{other}").unlink(missing_ok=True)  # of an earlier run: not of this one
            if columns:
                write_table(folder / f"{name}.{table}", columns)
        (folder / NAMES).unlink(missing_ok=True)
        if len((names := _names(self.workload))["name"]):
            write_table(folder / NAMES, names)
        write_json(folder / "metrics.json", numbers)
        write_json(folder / "run.json", {**self.provenance(), "metrics": cuts})


_TABLES = ("jobs", "tasks", "allocations")
_RARE = ("killed_runs.csv", "pieces.csv", "reasons.csv", "refused.csv", "logged.csv")
FILES = frozenset((*_RARE, NAMES, "metrics.json", "run.json", *(f"{it}.{kind}" for it in _TABLES for kind in TABLES)))
"""Names of all files that `Result.write` may write."""

_ALWAYS_SHOWN = ("wait_mean", "wait_median", "wait_p95", "bounded_slowdown_mean", "mean_slr", "utilisation", "makespan")
_SHOWN_IF_ANY = ("killed_walltime", "rejected", "unadmitted")
"""Numbers that a result shows of itself."""


def _predicted(record: Record, found: Predictions) -> dict[str, npt.NDArray[Any]]:
    """Columns of what was believed that jobs would run."""
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
    """Labels that are columns of the table: users and groups, and what else has names."""
    known = ("user", "group", "account", "partition", "qos")
    return [
        name for name in known if name in workload.labels and (name in ("user", "group") or workload.names.get(name))
    ]


def _names(workload: Workload) -> dict[str, npt.NDArray[Any]]:
    """Label, number and name of each user, account and so on that has jobs, where the workload has names."""
    rows = [
        (label, value, workload.names[label][value])
        for label in _named_labels(workload)
        for value in np.unique(workload.labels[label]).tolist()
        if 0 <= value < len(workload.names.get(label, ())) and workload.names[label][value]
    ]
    labels, numbers, names = zip(*rows, strict=True) if rows else ((), (), ())
    return {"label": np.array(labels), "number": np.array(numbers), "name": np.array(names)}


def _clusters_of_jobs(record: Record, names: Sequence[str]) -> list[str]:
    """Where the tasks of each job ran: the cluster, or several joined by ``+`` in tree order; empty for none."""
    tasks, times = record.workload.tasks, record.tasks
    assert tasks is not None
    assert times is not None
    ran = times.start_us < NEVER
    pairs = np.unique(tasks.job_rows()[ran] * len(names) + times.cluster[ran])
    found = [""] * len(record)
    for job, cluster in zip((pairs // len(names)).tolist(), (pairs % len(names)).tolist(), strict=True):
        found[job] += ("+" if found[job] else "") + names[cluster]
    return found
