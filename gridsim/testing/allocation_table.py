"""Allocations of jobs in the table ``allocations.csv`` of any program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.files import csv_rows
from gridsim.model.allocations import POOLS, UNKNOWN_TASKS, Allocations
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.time import IntArray, to_us

_TIMES = ("start", "end")
_FIXED = ("job", "run", "node", "tasks", "gpus", *_TIMES)
_NEEDED = ("job", "node", "cores", *_TIMES)
_IGNORED = ("task",)


def parse_allocations(lines: Iterable[str], path: Path) -> Allocations:
    """Return the pieces in a table with columns ``job, run, node, tasks, <resource>…, gpus, start, end``.

    `Allocations.job` has the job numbers of the table. Run and tasks are optional; runs are then numbered in order of
    time. An empty node denotes resources of the machine as a whole.

    Raises
    ------
    InputError
        For an invalid line, with line and field.
    """
    rows = csv_rows(lines, path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    for name in _NEEDED:
        if name not in header:
            raise InputError(f"is missing; expected {', '.join(_NEEDED)}", path=path, line=1, field=name)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError("occurs twice", path=path, line=1, field=twice)
    resources = [name for name in header if name not in (*_FIXED, *_IGNORED)]
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for line, row in ((line, row) for line, row in rows if row):
        if len(row) != len(header):
            raise InputError(f"has {len(row)} fields; the header has {len(header)}", path=path, line=line)
        for name, text in zip(header, row, strict=True):
            columns[name].append(_cell(name, text.strip(), path, line))
    return _assembled(columns, resources)


def _cell(name: str, text: str, path: Path, line: int) -> Any:
    """Return the value of a cell: a name, seconds, GPUs with held shares, or an integer."""
    if name in ("node", *_IGNORED):
        return text
    try:
        if name in _TIMES:
            return float("inf") if name == "end" and not text else _time(text)
        if name == "gpus":
            return [_share(part) for part in text.split()]
        return _count(name, text)
    except ValueError as error:
        wanted = _WANTED.get(name, "a whole number from 0")
        raise InputError(f"'{text}' is not {wanted}", path=path, line=line, field=name) from error


_WANTED = {
    **dict.fromkeys(_TIMES, "a time in seconds"),
    "job": "a job number",
    "gpus": "thousandths by number of the GPU, such as 0:500 3:1000",
}


def _time(text: str) -> float:
    if not abs(time := float(text)) < float("inf"):
        raise ValueError
    return time


def _count(name: str, text: str) -> int:
    if name == "tasks" and text in ("", "-1"):
        return UNKNOWN_TASKS
    count = int(text if name in ("job", "run") else text or "0")
    if (count < 0 and name != "job") or abs(count) > 2**53:
        raise ValueError
    return count


def _share(text: str) -> tuple[int, int]:
    number, colon, share = text.partition(":")
    if (
        not colon
        or not number.isdecimal()
        or not share.isdecimal()
        or int(number) > 2**31
        or not 0 < int(share) <= WHOLE_GPU
    ):
        raise ValueError
    return int(number), int(share)


def _assembled(columns: Mapping[str, list[Any]], resources: Sequence[str]) -> Allocations:
    def numbers(values: Sequence[int]) -> IntArray:
        return np.array(values, dtype=np.int64)

    nodes = {name: place for place, name in enumerate(dict.fromkeys(filter(None, columns["node"])))}
    gpus = [(row, *held) for row, each in enumerate(columns.get("gpus", ())) for held in each]
    shares: IntArray = np.array(gpus, dtype=np.int64).reshape(-1, 3)
    job = numbers(columns["job"])
    read = Allocations(
        nodes=tuple(nodes),
        job=job,
        run=numbers(columns["run"]) if "run" in columns else np.zeros(len(job), dtype=np.int64),
        node=numbers([nodes.get(name, POOLS) for name in columns["node"]]),
        tasks=numbers(columns["tasks"]) if "tasks" in columns else np.full(len(job), UNKNOWN_TASKS),
        amounts={name: numbers(columns[name]) for name in resources},
        start_us=to_us(np.array(columns["start"], dtype=np.float64)),
        end_us=to_us(np.array(columns["end"], dtype=np.float64)),
        gpu_row=shares[:, 0],
        gpu=shares[:, 1],
        gpu_share=shares[:, 2],
    )
    return read if "run" in columns else read.taken(np.arange(len(job)))
