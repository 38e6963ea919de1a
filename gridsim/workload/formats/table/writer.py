"""Export of a workload as a table for other programs: CSV, its mapping, and a schema of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.files import write_json, write_text
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.demand import NO_LIMIT, WordSets
from gridsim.model.time import MICROSECOND, NEVER, seconds
from gridsim.model.workload import UNKNOWN, USUAL, Workload
from gridsim.tables import write_table
from gridsim.workload.formats.swf_header import CANCELLED


class TableColumn(NamedTuple):
    """A column of the table.

    Attributes
    ----------
    rule : str
        Its rule in the mapping.
    kind : str
        ``integer``, ``number`` or ``string``, as in a Table Schema.
    meaning : str
        Description with its unit.
    """

    rule: str
    kind: str
    meaning: str


COLUMNS: dict[str, TableColumn] = {
    "job": TableColumn('"job"', "integer", "job number; unique"),
    "submit": TableColumn('{column = "submit", time = "s"}', "number", "submit time, s (see the description)"),
    "start": TableColumn('{column = "start", time = "s"}', "number", "start time, s; empty if unknown"),
    "runtime": TableColumn('"runtime"', "number", "run time, s"),
    "estimate": TableColumn('"estimate"', "number", "requested walltime (time limit), s"),
    "cores": TableColumn('"cores"', "integer", "cores of the job"),
    "memory": TableColumn('"memory"', "integer", "memory of the job, MiB"),
    "gpus": TableColumn('"gpus"', "number", "GPUs of the job; below 1: a fraction of one GPU"),
    "gpu_kind": TableColumn('"gpu_kind"', "string", "accepted GPU types, separated by vertical bars"),
    "tasks": TableColumn('"tasks"', "integer", "tasks, each on one node; empty for jobs that request only cores"),
    "nodes": TableColumn('"nodes"', "integer", "required number of nodes; empty if any number is accepted"),
    "exclusive": TableColumn('"exclusive"', "integer", "1 if the job has its nodes exclusively"),
    "features": TableColumn('"features"', "string", "required node features, pseudonyms"),
    "user": TableColumn('"user"', "string", "user, a pseudonym"),
    "group": TableColumn('"group"', "string", "group, a pseudonym"),
    "account": TableColumn('"account"', "string", "account, a pseudonym"),
    "reservation": TableColumn('"reservation"', "string", "reservation that the job names"),
    "queue": TableColumn('"queue"', "string", "queue, a pseudonym"),
    "partition": TableColumn('"partition"', "string", "partition, a pseudonym"),
    "name": TableColumn('"name"', "string", "name of the job (executable), a pseudonym"),
    "priority": TableColumn('"priority"', "integer", "priority class; higher classes can preempt lower ones"),
    "preemptible": TableColumn('"preemptible"', "integer", "0 if the job must not be preempted"),
    "status": TableColumn('"status"', "string", "completed, failed or cancelled; empty if unknown"),
}
"""All possible columns of the table; other node resources follow under their names."""

_WORDS = {1: "completed", 0: "failed", CANCELLED: "cancelled"}
_Texts = npt.NDArray[Any]


def columns_of(workload: Workload) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of jobs that contain any data; a DAG job is described as a whole."""
    epoch = workload.epoch or 0.0
    found: dict[str, npt.NDArray[Any]] = {
        "job": workload.job,
        "submit": seconds(workload.submit) + epoch,
        "runtime": seconds(workload.runtime),
        "estimate": seconds(workload.estimate),
        "cores": workload.cores,
    }
    started = workload.logged_start
    if started is not None and (started < NEVER).any():
        found["start"] = np.where(started >= NEVER, np.nan, started / MICROSECOND + epoch)
    found |= dict(_requests(workload))
    for label in ("user", "group", "account", "reservation", "queue", "partition", "executable"):
        if label in workload.labels:
            found["name" if label == "executable" else label] = _names(workload, label)
    found |= {label: workload.labels[label] for label in USUAL if label in workload.labels}
    status = workload.logged.get("status")
    if status is not None and np.isin(status, [*_WORDS]).any():
        found["status"] = np.array([_WORDS.get(code, "") for code in status.tolist()])
    ordered = {name: found[name] for name in COLUMNS if name in found}
    return {**ordered, **{name: column for name, column in found.items() if name not in COLUMNS}}


def _requests(workload: Workload) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield the demands of jobs in addition to plain cores."""
    demands = workload.demands
    if demands is None:
        return
    for name in demands.each:
        if name != "cores":
            yield name, demands.total(name)
    if demands.gpu.any():
        yield "gpus", demands.total("gpu") / WHOLE_GPU
    for name, sets in (("gpu_kind", demands.gpu_kinds), ("features", demands.features)):
        if any(sets.sets):
            yield name, _sets(sets)
    yield "tasks", np.where(demands.tasks > 0, demands.tasks, np.nan)
    fixed = (demands.min_nodes == demands.max_nodes) & (demands.max_nodes != NO_LIMIT)
    if fixed.any():
        yield "nodes", np.where(fixed, demands.min_nodes, np.nan)
    if demands.exclusive.any():
        yield "exclusive", demands.exclusive.astype(np.int64)


def _sets(sets: WordSets) -> _Texts:
    return np.array(["|".join(words) for words in sets.sets])[sets.of]


def _names(workload: Workload, label: str) -> _Texts:
    """Return the names of a label, or its numbers if it has no names; empty for none."""
    column, names = workload.labels[label], workload.names.get(label)
    places, of = np.unique(column, return_inverse=True)
    texts = ["" if place == UNKNOWN else str(place) if names is None else names[place] for place in places.tolist()]
    return np.array(texts)[of]


def write_jobs(workload: Workload, folder: Path) -> dict[str, TableColumn]:
    """Write ``jobs.csv``, its mapping for gridsim, and a Table Schema; return the columns."""
    columns = columns_of(workload)
    own = {name: TableColumn(f'"{name}"', "integer", f"{name} of the whole job") for name in columns}
    told = {name: COLUMNS.get(name, own[name]) for name in columns}
    write_table(folder / "jobs.csv", columns)
    rules = [f"{name} = {it.rule}" for name, it in told.items() if name in COLUMNS]
    others = [f'"{name}" = {it.rule}' for name, it in told.items() if name not in COLUMNS]
    lines = ["# How gridsim reads jobs.csv.", "[columns]", *rules]
    lines += ["", "[resources]", *others] if others else []
    if "status" in told:
        lines += ["", "[status]", *(f'{word} = "{word}"' for word in _WORDS.values())]
    if workload.cores_stated is not None:
        lines += ["", "[capacity]", f"cores = {workload.cores_stated}"]
    write_text(folder / "mapping.toml", "\n".join(lines) + "\n")
    fields = [{"name": name, "type": it.kind, "description": it.meaning} for name, it in told.items()]
    schema = {
        "profile": "tabular-data-resource",
        "name": "jobs",
        "path": "jobs.csv",
        "encoding": "utf-8",
        "schema": {"fields": fields, "primaryKey": "job", "missingValues": [""]},
    }
    write_json(folder / "schema.json", schema)
    return told
