"""The Standard Workload Format, version 2.2: the writer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import write_atomically
from gridsim.model.time import MICROSECOND, NEVER, IntArray, whole
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.record import Record, Status
from gridsim.workload.formats.stream import compressing
from gridsim.workload.formats.swf_header import CANCELLED, Header

_ROWS = 1 << 16


def write_swf(
    workload: Workload,
    path: str | os.PathLike[str],
    *,
    record: Record | None = None,
    header: Mapping[str, str | Sequence[str]] | None = None,
) -> None:
    """Write a workload as an SWF log, compressed if its name ends in ``.gz`` or ``.xz``; equal jobs give equal bytes.

    Parameters
    ----------
    workload : Workload
        Jobs to write; wait and status are those logged in the source.
    path : str or path
        Output file; it appears only when it is complete.
    record : Record, optional
        Simulation of *workload*. Wait, run time and status are then the simulated ones (1 completed, 0 killed at its
        walltime, 5 all others). If users reacted, submit times are simulated too, and the lines are in their order.
    header : mapping, optional
        Header lines by key, which replace those from the source of the workload.
    """
    suffix = Path(path).suffix
    if record is not None and record.logged_submit_us is not None:
        order = np.argsort(record.workload.submit, kind="stable")
        workload, record = replace(workload, submit=record.workload.submit).select(order), record.select(order)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file, compressing(file, suffix) as stream:
            stream.write("".join(_header_lines(workload, record, header)).encode())
            for text in _job_lines(workload, record):
                stream.write(text.encode())

    try:
        write_atomically(Path(path), write)
    except BrokenPipeError:  # the reader of a pipe has ended, for example `head`
        raise
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", path=path) from error


def _header_lines(
    workload: Workload, record: Record | None, header: Mapping[str, str | Sequence[str]] | None
) -> Iterator[str]:
    source = workload.provenance.get("header", {}) if header is None else header
    values = {key: [value] if isinstance(value, str) else list(value) for key, value in source.items()}
    values = {"Version": ["2.2"], **values, "MaxJobs": [str(len(workload))], "MaxRecords": [str(len(workload))]}
    values["Version"] = ["2.2"]
    if header is None:
        _shift_clock(values, workload)
    read = Header()
    read.values = values
    cores = workload.cores_stated if record is None else record.cores
    if cores is not None and read.cores()[0] != cores:
        values["MaxProcs"] = [str(cores)]
    notes = list(_notes(workload, record))
    values["Note"] = [*(note for note in values.get("Note", ()) if note not in notes), *notes]
    for key, entries in values.items():
        for entry in entries:
            first, *more = entry.splitlines() or [""]
            yield f"; {key}: {first}\n" if key else f";\n; {first}\n"
            yield from (f";   {line}\n" for line in more)


def _notes(workload: Workload, record: Record | None) -> Iterator[str]:
    origin = workload.provenance
    if "parameters" in origin:
        values = ", ".join(f"{name}={value}" for name, value in origin["parameters"].items())
        yield f"drawn by gridsim from the model {origin.get('source')}, seed {origin.get('seed')}: {values}"
    else:
        yield "written by gridsim; fields 6, 7 and 10 are not kept"
    if record is not None:
        moved = "" if record.logged_submit_us is None else "submit time, "
        yield f"{moved}wait time, run time and status are simulated"


def _shift_clock(values: dict[str, list[str]], workload: Workload) -> None:
    """Move the clock of the header by the shift that transforms applied to the submit times."""
    shift = sum(entry.get("shift", 0) for entry in workload.provenance.get("transforms", ()))
    if not shift:
        return
    began = values.pop("UnixStartTime", ["-1"])[0]
    if began.isdecimal():
        values["UnixStartTime"] = [_time(int(began) * MICROSECOND + whole(float(shift)))]
    values.pop("StartTime", None)
    values.pop("EndTime", None)


def _job_lines(workload: Workload, record: Record | None) -> Iterator[str]:
    for first in range(0, len(workload), _ROWS):
        rows = slice(first, first + _ROWS)
        columns = _fields(workload.select(rows), None if record is None else record.select(rows))
        yield "\n".join(map(" ".join, zip(*columns, strict=False))) + "\n"


def _fields(workload: Workload, record: Record | None) -> Iterator[Any]:
    """Yield the texts of the 18 fields, one column each; a repeated -1 for missing data."""
    if record is None:
        wait = _logged_times(workload, "wait")
        held, status = workload.runtime, workload.logged.get("status")
        allocated = workload.logged.get("allocated")
    else:
        wait = np.where(record.ran, record.start_us - workload.submit, NEVER)
        held = np.where(record.ran, record.end_us - record.start_us, NEVER)
        codes = {Status.completed: 1, Status.killed_walltime: 0}
        status = np.array([codes.get(Status(code), CANCELLED) for code in range(len(Status))])[record.status]
        allocated = np.where(record.ran, workload.cores, UNKNOWN)
    yield _texts(workload.job)
    yield _times(workload.submit)
    yield _times(wait)
    yield _times(held)
    yield _texts(allocated)
    yield _texts(None)
    yield _texts(None)
    yield _texts(workload.cores)
    yield _times(workload.estimate)
    yield _texts(None)
    yield _texts(status)
    for name in LABELS:
        yield _texts(workload.labels.get(name))
    yield _texts(workload.logged.get("preceding"))
    yield _times(_logged_times(workload, "think"))


def _logged_times(workload: Workload, name: str) -> IntArray | None:
    return whole(workload.logged[name]) if name in workload.logged else None


def _texts(column: npt.NDArray[Any] | None) -> Iterator[str]:
    return repeat("-1") if column is None else map(str, column.tolist())


def _times(column: IntArray | None) -> Iterator[str]:
    """Yield microseconds as seconds: as integers if possible, else with up to 6 digits; -1 for `NEVER`."""
    if column is None:
        return repeat("-1")
    return (_time(value) for value in column.tolist())


def _time(value: int) -> str:
    if value >= NEVER:
        return "-1"
    full, part = divmod(value, MICROSECOND)
    return f"{full}.{part:06d}".rstrip("0") if part else str(full)
