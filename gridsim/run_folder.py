"""Result folders: ``run.json``, ``metrics.json`` and tables of jobs, checked against schemas on reading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.platform_file import CLUSTER, GROUP
from gridsim.record import Refusal, Status
from gridsim.schema import ANY, NUMBER, WHOLE, Number, Schema, check, load_json, read_json
from gridsim.tables import Kind, read_table

_EXPECTED = "a result directory"

_CORES = Number(1, MOST_CORES, whole=True)
_COUNT = Number(0, 2**53, whole=True)
_TREE: dict[str, Schema] = {"name": str, **CLUSTER, "cores?": _COUNT, "nodes?": [GROUP]}
_TREE["children?"] = [_TREE]
_WORKLOAD = {
    "clock?": {"origin?": (NUMBER, str, None), "zone?": (str, None)},
    "header?": {str: [str]},
    "problems?": [{"kind": str, "count": _COUNT, "first_lines": [_COUNT], "rule": str}],
    "demands?": {"resources?": [str]},
}
_RUN = {
    "workload": _WORKLOAD,
    "platform": {"cores": _CORES, "origin?": str, "tree": _TREE},
    "policy": str,
    "label?": str,
    "options": {
        "seed": WHOLE,
        "tick": NUMBER,
        "overrun": frozenset(["kill", "extend"]),
        "instant": str,
        "until?": (NUMBER, None),
        "failures?": {"windows?": [{str: ANY}]},
    },
    "versions": {str: (str, None)},
}
_COMPARISON = {
    "folders": {str: re.compile(r"[\w-][\w .-]*")},
    "versions": {str: (str, None)},
    "workload?": _WORKLOAD,
    "figures?": [re.compile(r"figures/[^/\\\0]+\.(pdf|png|svg)")],
    "own?": (str, None),
}
"""Files of `gridsim compare`. A command removes files and figures of an earlier command, so names must be plain."""

_TIMES = (
    *("submit", "logged_submit", "start", "end", "wait", "runtime", "estimate", "response", "slowdown", "deadline"),
    *("bounded_slowdown", "prediction", "granted", "offer", "from", "until", "first_start"),
    *("restart", "kept", "checkpoint_seconds", "suspended", "broken_at", "moved_by"),
)
_WHOLES = (
    *("job", "cores", "cores_used", "cores_min", "cores_max", "pieces", "eligible", "free", "pool", "kills", "tasks"),
    *("gpu", "min_nodes", "max_nodes", "tasks_per_node", "exclusive", "corrections", "guarantee_broken"),
    *("user", "group", "account", "partition", "qos", "run", "runs", "restarts", "moved"),
    *("priority", "preemptions", "reservation"),
)
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_TIMES, float),
    **dict.fromkeys(_WHOLES, int),
    **dict.fromkeys(
        ("job_id", "cluster", "reason", "short_of", "broken_by", "gpu_kinds", "features", "partitions"), str
    ),
    "status": frozenset(status.name for status in Status),
}
"""Kinds of columns; columns that begin with ``each_`` or ``pool_`` are whole numbers."""

_RENAMED = {"jobs": {"reach": "eligible"}, "refused": {"asked": "requested"}, "run": {"asked": "measures"}}
"""Columns of tables, and keys of ``run.json``, that were renamed: result folders with the former names can be read."""

_NEEDED = {
    "jobs": ("job", "cores", "submit", "start", "end", "runtime", "estimate", "status"),
    "killed_runs": ("job", "start", "end"),
    "runs": ("job", "run", "start", "end", "reason", "restart", "kept", "checkpoint_seconds"),
    "suspensions": ("job", "start", "from", "until"),
    "logged": ("job", "start"),
    "reasons": ("job", "reason", "from", "until"),
    "refused": ("job", *Refusal._fields),
}

RUN_TABLES = ("runs", "killed_runs")
"""Tables of runs before the last one of a job; the first, if it exists, contains the runs of the second, too."""


def read_run(folder: str | Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a result directory.

    Raises
    ------
    InputError
        If the file is missing or does not match its schema; with the line and the field.
    """
    path = Path(folder) / "run.json"
    if not path.is_file():
        raise InputError(f"has no run.json; expected {_EXPECTED}", path=folder)
    found, data = load_json(path, _EXPECTED)
    found = _renamed("run", found) if isinstance(found, dict) else found
    check(found, _COMPARISON if isinstance(found, dict) and "folders" in found else _RUN, path=path, data=data)
    return dict(found)


def _renamed(table: str, columns: dict[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(table, {}).get(name, name): value for name, value in columns.items()}


def find_run(folder: str | Path) -> dict[str, Any] | None:
    """Return the content of ``run.json`` of a result directory; None if it is missing or damaged."""
    try:
        return read_run(folder)
    except InputError:
        return None


def read_numbers(folder: str | Path) -> dict[str, float]:
    """Return the content of ``metrics.json`` of a result directory; null becomes NaN.

    Raises
    ------
    InputError
        If the file is missing, or contains anything but numbers.
    """
    found = read_json(Path(folder) / "metrics.json", {str: (NUMBER, None)}, _EXPECTED)
    return {name: float("nan") if value is None else float(value) for name, value in found.items()}


def read_run_table(folder: str | Path, name: str = "jobs") -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a table of a result directory (`gridsim.tables.read_table`), checked for their kinds.

    Raises
    ------
    InputError
        If the table or a column is missing, or a cell is of another kind.
    """

    def kind_of(column: str) -> Kind | None:
        column = _RENAMED.get(name, {}).get(column, column)
        return int if column.startswith(("each_", "pool_")) else _KINDS.get(column)

    columns = _renamed(name, read_table(folder, name, kind_of if name != "refused" else {"job": int}.get))
    path = next(it for kind in ("parquet", "csv") if (it := Path(folder) / f"{name}.{kind}").is_file())
    for column in _NEEDED.get(name, ()):
        if column not in columns:
            raise InputError(f"is missing; expected the columns {', '.join(_NEEDED[name])}", path=path, field=column)
    if name == "jobs" and len(np.unique(columns["job"])) < len(columns["job"]):
        raise InputError("lists a job twice", path=path, field="job")
    return columns
