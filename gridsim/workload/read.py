"""From files to a workload: which reader takes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.machine import check_cores, machine_cores
from gridsim.model.workload import Workload
from gridsim.workload.formats.files import files_in
from gridsim.workload.formats.gwf import looks_like_gwf, read_gwf
from gridsim.workload.formats.pbs import looks_like_pbs, read_pbs
from gridsim.workload.formats.sacct import looks_like_sacct, read_sacct
from gridsim.workload.formats.stream import head
from gridsim.workload.formats.swf import looks_like_swf, read_swf
from gridsim.workload.formats.wfformat import FILE_SUFFIXES, looks_like_wfformat, read_workflows

__all__ = ["READERS", "Reader", "format_of", "machine_cores", "read_workload"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A format that can be read.

    Attributes
    ----------
    read : callable
        ``read(path, cores=…, rules=…) -> Workload``.
    recognises : callable
        Whether a file that begins with these bytes (decompressed) is probably of this format.
    options : tuple of str
        What else ``read`` takes, of the options of `read_workload`.
    many : bool
        Whether ``read`` takes several files, and folders, as one workload.
    unstarted : bool
        Whether ``read`` knows enough of jobs that never started to keep them: until when they waited that were
        cancelled, what they ask for that wait still. Others leave them out.
    """

    read: Callable[..., Workload]
    recognises: Callable[[bytes], bool]
    options: tuple[str, ...] = ()
    many: bool = False
    unstarted: bool = False


READERS: Mapping[str, Reader] = {
    "pbs": Reader(read_pbs, looks_like_pbs, many=True),
    "swf": Reader(read_swf, looks_like_swf),
    "sacct": Reader(read_sacct, looks_like_sacct, ("timezone", "cluster"), many=True, unstarted=True),
    "wfformat": Reader(read_workflows, looks_like_wfformat, ("submit", "tick"), many=True),
    "gwf": Reader(read_gwf, looks_like_gwf, ("submit", "tick")),
}
"""Readers by the name of their format; the first that recognises a file takes it."""

_UNSTARTED = {"never-ran": "keep", "still-waiting": "repair"}
"""Rules that keep jobs which never started."""

_FALLBACK = "swf"
"""Who takes a file that nobody recognises, or that is not there, unless an option is given that only others have: the
errors of the reader say what is wrong with it."""


def read_workload(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 (the word that users know)
    submit: float | Sequence[float] | None = None,
    tick: float | None = None,
    timezone: str | None = None,
    cluster: str | Sequence[str] | None = None,
) -> Workload:
    """Workload of a log file, or of workflows.

    Parameters
    ----------
    path : path or sequence of paths
        The log or workflow, plain or compressed with gzip or xz: SWF, what `sacct` printed, accounting logs of PBS,
        GWF or WfFormat. Several workflows, several logs of Slurm or of PBS, and folders of them, are one workload.
    cores : int, optional
        Cores of the machine, for the jobs that are wider than it; what the log says where left out.
    rules : mapping of str to str, optional
        Rule by kind of damaged or impossible line, where it shall not be the default
        (`gridsim.workload.problems.KINDS`).
    format : str, optional
        Name of the format; found out from the (first) file where left out.
    submit : float or sequence of float, optional
        Submit time of all workflows, or one for each (s); more times than workflows repeat the workflows in turn. For
        formats that have none; 0 where left out.
    tick : float, optional
        Length of a tick, to which runtimes of workflows are rounded, s; that of the format where left out.
    timezone : str, optional
        Zone of the clock that printed the times, such as ``Europe/Berlin``, for formats whose times are local ones;
        they are taken as they are where left out.
    cluster : str or sequence of str, optional
        Which to read of a log of several clusters (`sacct`): a name, several names, or ``all``; jobs of several are
        pinned each to its own.

    Raises
    ------
    InputError
        When the file cannot be read, holds no usable job, or is of a format that does not take an option.
    """
    check_cores(cores)
    given = (("submit", submit), ("tick", tick), ("timezone", timezone), ("cluster", cluster))
    options: dict[str, Any] = {name: value for name, value in given if value is not None}
    if format is None:
        format = format_of(path, options)  # noqa: A001
    elif format not in READERS:
        raise UnknownNameError("format", format, READERS)
    reader = READERS[format]
    for name in options:
        if name not in reader.options:
            raise InputError(f"is no option of the format '{format}'; it has {_listed(reader.options)}", field=name)
    if not reader.unstarted and rules is not None:
        kept = [kind for kind, rule in _UNSTARTED.items() if rules.get(kind) == rule]
        rules = {**rules, **dict.fromkeys(kept, "skip")}
    if not reader.many and not isinstance(path, str | os.PathLike):
        if len(path) != 1:
            raise InputError(f"{len(path)} files; expected one, a workload of the format '{format}'", field="path")
        path = path[0]
    elif not isinstance(path, str | os.PathLike):
        _check_alike(format, path)
    return reader.read(path, cores=cores, rules=rules, **options)


def format_of(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: Collection[str]) -> str:
    """Name of the format of a file, of the first of several, and of what a folder holds."""
    first = Path(path if isinstance(path, str | os.PathLike) else next(iter(path), ""))
    if first.is_dir():
        if any(entry.name.endswith(FILE_SUFFIXES) for entry in first.iterdir()):
            return "wfformat"
        first = next(files_in(first), first)
    beginning = head(first) if first.is_file() else b""  # a pipe can be read only once
    found = next((name for name, reader in READERS.items() if reader.recognises(beginning)), None)
    able = (name for name in (_FALLBACK, *READERS) if {*options} <= {*READERS[name].options})
    return found or next(able, _FALLBACK)


def _check_alike(format: str, paths: Sequence[str | os.PathLike[str]]) -> None:  # noqa: A002
    """Refuse files of which one is surely of another format."""
    for path in map(Path, paths):
        beginning = head(path) if path.is_file() else b""
        if READERS[format].recognises(beginning):
            continue
        other = next((name for name, reader in READERS.items() if reader.recognises(beginning)), format)
        if other != format:
            raise InputError(f"is of the format '{other}', the first file of '{format}'; give logs of one", path=path)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none of its own"
