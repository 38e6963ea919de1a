"""WfFormat 1.5: the writer."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.files import write_json
from gridsim.model.tasks import ANY_KIND, Tasks
from gridsim.model.time import seconds
from gridsim.model.workload import Workload

_FOREIGN = re.compile(r"[^0-9A-Za-z_.#:/-]")
"""Characters that an id cannot contain."""


def write_workflow(workload: Workload, path: str | os.PathLike[str], *, row: int = 0) -> None:
    """Write one job as a workflow; equal jobs give equal bytes.

    Parameters
    ----------
    workload : Workload
        Workload with the job; a job without tasks becomes a workflow of one task.
    path : str or path
        Output file; it appears only when it is complete.
    row : int
        Row of the job.

    Notes
    -----
    Reading the file gives the same tasks in the same order, with their cores, run times (to the microsecond, if read
    with such a tick), architectures, edges and bytes. Each edge with bytes has a separate file. The format has no
    field for estimates. Its required makespan is the critical path, because nothing was measured.

    Raises
    ------
    InputError
        If the row does not exist, or the file cannot be written.
    """
    if not 0 <= row < len(workload):
        raise InputError(f"is {row}; expected a row of the workload, 0 to {len(workload) - 1}", field="row")
    try:
        write_json(Path(path), _document(workload, row))
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", path=path) from error


def _document(workload: Workload, row: int) -> dict[str, Any]:
    tasks = _tasks(workload, row)
    ids = _ids(tasks)
    return {
        "name": _name(workload, row),
        "description": "written by gridsim; the makespan is the critical path",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": _specification(tasks, ids),
            "execution": {
                "makespanInSeconds": seconds(int(tasks.chains(tasks.runtime).max())),
                "executedAt": "1970-01-01T00:00:00+00:00",
                "tasks": [
                    {
                        "id": identity,
                        "runtimeInSeconds": seconds(int(tasks.runtime[task])),
                        "coreCount": int(tasks.cores[task]),
                    }
                    for task, identity in enumerate(ids)
                ],
            },
        },
    }


def _tasks(workload: Workload, row: int) -> Tasks:
    """Return the tasks of the job only."""
    if workload.tasks is not None:
        return workload.tasks.select([row])
    return Tasks.from_edges(
        counts=[1], runtime=[seconds(int(workload.runtime[row]))], cores=[workload.cores[row]], edges=[]
    )


def _name(workload: Workload, row: int) -> str:
    if "executable" in workload.labels and "executable" in workload.names:
        return workload.names["executable"][int(workload.labels["executable"][row])]
    return f"job-{workload.job[row]}"


def _ids(tasks: Tasks) -> list[str]:
    """Return the ids of the tasks: their names if these are valid ids, else their numbers."""
    names = [_FOREIGN.sub("_", name) for name in tasks.names or ()]
    if names and all(names) and len(set(names)) == len(names):
        return names
    return [f"task{number}" for number in range(1, len(tasks) + 1)]


def _specification(tasks: Tasks, ids: list[str]) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    for task, identity in enumerate(ids):
        entry: dict[str, Any] = {"name": identity, "id": identity, "parents": [], "children": []}
        kind = tasks.kinds[tasks.kind[task]]
        if kind != ANY_KIND:
            entry["kind"] = kind
        if tasks.volume is not None:
            entry |= {"inputFiles": [], "outputFiles": []}
        listed.append(entry)
    files: list[dict[str, Any]] = []
    for task in range(len(tasks)):
        for edge in range(int(tasks.edge_first[task]), int(tasks.edge_first[task + 1])):
            child = int(tasks.edge_to[edge])
            listed[task]["children"].append(ids[child])
            listed[child]["parents"].append(ids[task])
            if tasks.volume is not None and tasks.volume[edge] > 0:
                file = f"data{len(files) + 1}"
                files.append({"id": file, "sizeInBytes": round(float(tasks.volume[edge]))})
                listed[task]["outputFiles"].append(file)
                listed[child]["inputFiles"].append(file)
    return {"tasks": listed} if tasks.volume is None else {"tasks": listed, "files": files}
