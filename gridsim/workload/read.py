"""From a file to a workload: which reader takes it, and how large its machine is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.workload import Workload
from gridsim.workload.formats.stream import head
from gridsim.workload.formats.swf import looks_like_swf, read_swf

__all__ = ["READERS", "Reader", "machine_cores", "read_workload"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A format that can be read.

    Attributes
    ----------
    read : callable
        ``read(path, cores=…, rules=…) -> Workload``.
    recognises : callable
        Whether a file that begins with these bytes (decompressed) is probably of this format.
    """

    read: Callable[..., Workload]
    recognises: Callable[[bytes], bool]


READERS: Mapping[str, Reader] = {"swf": Reader(read_swf, looks_like_swf)}
"""Readers by the name of their format; the first that recognises a file takes it."""

_FALLBACK = "swf"
"""Who takes a file that nobody recognises: its errors say what is wrong with it."""


def read_workload(
    path: str | os.PathLike[str],
    *,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 (the word that users know)
) -> Workload:
    """Workload of a log file.

    Parameters
    ----------
    path : str or path
        The log; SWF, plain or compressed with gzip or xz.
    cores : int, optional
        Cores of the machine, for the jobs that are wider than it; what the log says where left out.
    rules : mapping of str to str, optional
        Rule by kind of damaged or impossible line, where it shall not be the default
        (`gridsim.workload.problems.KINDS`).
    format : str, optional
        Name of the format; found out from the file where left out.

    Raises
    ------
    InputError
        When the file cannot be read, or holds no usable job.
    """
    _check_cores(cores)
    if format is None:
        beginning = head(path) if Path(path).is_file() else b""  # a pipe can be read only once
        format = next((name for name, reader in READERS.items() if reader.recognises(beginning)), _FALLBACK)  # noqa: A001
    elif format not in READERS:
        raise UnknownNameError("format", format, READERS)
    return READERS[format].read(path, cores=cores, rules=rules)


def machine_cores(workload: Workload, cores: int | None = None) -> tuple[int, str]:
    """Cores of the machine and where the number comes from: ``given``, or the log's own word for it.

    Raises
    ------
    InputError
        When neither the caller nor the log says how large the machine is.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], provenance={"cores_from": "MaxProcs"})
    >>> machine_cores(log, 4)
    (4, 'given')
    """
    _check_cores(cores)
    if cores is not None:
        return cores, "given"
    if workload.cores_stated is None:
        raise InputError(
            "the size of the machine is not known: no MaxProcs and no MaxNodes in the header; give --cores",
            path=workload.provenance.get("source"),
            field="MaxProcs",
        )
    return workload.cores_stated, workload.provenance.get("cores_from") or "workload"


def _check_cores(cores: int | None) -> None:
    if cores is not None and cores < 1:
        raise InputError(f"the machine has {cores} cores; expected at least 1 (--cores)", field="cores")
