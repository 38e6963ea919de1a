"""Reading of log files into a workload, and selection of the reader."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridsim import registry
from gridsim.errors import InputError
from gridsim.files import checksum
from gridsim.model.platform import check_cores, machine_cores
from gridsim.model.workload import Workload, with_plugins
from gridsim.workload.formats.stream import files_in, first_bytes
from gridsim.workload.formats.wfformat import FILE_SUFFIXES

__all__ = ["format_of", "machine_cores", "read_workload"]

_UNSTARTED = {"never-ran": "keep", "still-waiting": "repair"}
"""Rules that keep jobs without a start."""

_OPTIONS = ("submit", "tick", "timezone", "cluster", "mapping", "memory")
"""Options that only some formats support."""

_FALLBACK = "swf"
"""Reader for files of unknown formats and for missing files, unless an option is given that it lacks; its errors
describe the problem."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_workload(
    path: Paths,
    *,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    format: Any = None,  # noqa: A002 (the term that users know)
    submit: float | Sequence[float] | None = None,
    tick: float | None = None,
    timezone: str | None = None,
    cluster: str | Sequence[str] | None = None,
    mapping: str | None = None,
    memory: str | None = None,
) -> Workload:
    """Return the workload of a log file, or of workflows.

    Parameters
    ----------
    path : path or sequence of paths
        The log or workflow, plain or compressed with gzip, xz, bzip2 or zstd: SWF, output of `sacct`, accounting logs
        of PBS, GWF, WfFormat, or a table with a mapping. Several workflows, several logs of Slurm or of PBS, several
        parts of a table, and folders of them, form one workload.
    cores : int, optional
        Cores of the machine, which limits the width of jobs; by default the number in the log.
    rules : mapping of str to str, optional
        Rule by kind of damaged or impossible line, for kinds with another rule than the default
        (`gridsim.workload.problems.KINDS`).
    format : str, Spec or Reader, optional
        Name of the format, ``file.py:Class`` of a reader with its parameters, or a reader
        (`gridsim.workload.readers.Reader`); by default detected from the (first) file.
    submit : float or sequence of float, optional
        Submit time of all workflows, or one for each (s); with more times than workflows, the workflows repeat in
        turn. Only for formats without submit times; 0 by default.
    tick : float, optional
        Length of a tick, to which run times of workflows are rounded, s; by default that of the format.
    timezone : str, optional
        Time zone of the logged times, such as ``Europe/Berlin``, for formats with local times; by default the times
        are used unchanged.
    cluster : str or sequence of str, optional
        Clusters to read from a log of several clusters (`sacct`): a name, several names, or ``all``. With several
        clusters, each job is restricted to its own cluster.
    mapping : str, optional
        Meaning of the columns of a table: a TOML file, or the name of a preset (``gridsim list mappings``). With a
        mapping, the file is read as a table.
    memory : {"requested", "used"}, optional
        Memory field of an SWF log that jobs request in addition to cores; by default neither.

    Returns
    -------
    Workload
        The jobs; `Workload.provenance` lists excluded and repaired lines.

    Raises
    ------
    InputError
        If the file cannot be read, contains no usable job, or has a format that does not support an option.
    """
    check_cores(cores)
    given = zip(_OPTIONS, (submit, tick, timezone, cluster, mapping, memory), strict=True)
    options: dict[str, Any] = {name: value for name, value in given if value is not None}
    reader = registry.make("reader", format_of(path, options) if format is None else format)
    name = registry.name_of(type(reader))
    takes = _parameters(reader)
    if not getattr(reader, "unstarted", False) and rules is not None:
        kept = [kind for kind, rule in _UNSTARTED.items() if rules.get(kind) == rule]
        rules = {**rules, **dict.fromkeys(kept, "skip")} if "rules" in takes else _without(rules, kept)
    options = {"cores": cores, **({"rules": rules} if rules or "rules" in takes else {}), **options}
    for option in options:
        if option not in takes and option != "cores":
            own = ", ".join(it for it in _OPTIONS if it in takes) or "no options"
            raise InputError(f"is not an option of the format '{name}'; it has {own}", field=option)
    if not isinstance(path, str | os.PathLike):
        if getattr(reader, "many", False):
            _check_format(reader, path)
        elif len(path) != 1:
            raise InputError(f"{len(path)} files; expected one, a workload of the format '{name}'", field="path")
        else:
            path = path[0]
    workload = reader.read(path, **{option: value for option, value in options.items() if option in takes})
    return with_plugins(_with_source(workload, reader, path), reader)


def _parameters(reader: Any) -> Collection[str]:
    """Return the options that a reader supports."""
    found = inspect.signature(reader.read).parameters
    every = any(it.kind is inspect.Parameter.VAR_KEYWORD for it in found.values())
    return ("cores", "rules", *_OPTIONS) if every else found.keys()


def _without(rules: Mapping[str, str], kinds: Collection[str]) -> dict[str, str]:
    return {kind: rule for kind, rule in rules.items() if kind not in kinds}


def _with_source(workload: Any, reader: Any, path: Paths) -> Workload:
    """Return the workload with its source in the provenance, whatever the reader recorded."""
    if not isinstance(workload, Workload):
        raise InputError(f"{type(reader).__name__}.read returned {type(workload).__name__}; expected a Workload")
    if "jobs_read" in workload.provenance:
        return workload
    files = [Path(it) for it in ([path] if isinstance(path, str | os.PathLike) else path)]
    digest = {"sha256": checksum(files[0])} if len(files) == 1 and files[0].is_file() else {}
    source: dict[str, Any] = {
        "source": ", ".join(map(str, files)),
        **digest,
        "format": registry.name_of(type(reader)),
        "jobs_read": len(workload),
        "jobs_kept": len(workload),
        "cores_from": None,
        "cores_field": {"requested": len(workload), "allocated": 0},
        "problems": [],
    }
    return workload.with_provenance(**{**source, **workload.provenance})


def format_of(path: Paths, options: Collection[str]) -> str:
    """Return the name of the format of a file, of the first of several files, or of the files in a folder."""
    if "mapping" in options:
        return "table"
    first = Path(path if isinstance(path, str | os.PathLike) else next(iter(path), ""))
    if first.is_dir():
        if any(entry.name.endswith(FILE_SUFFIXES) for entry in first.iterdir()):
            return "wfformat"
        first = next(files_in(first), first)
    beginning = first_bytes(first) if first.is_file() else b""  # a pipe can be read only once
    found = next(_recognising(beginning), None)
    able = (name for name in (_FALLBACK, *registry.names("reader")) if {*options} <= {*_parameters(_class(name))})
    return found or next(able, _FALLBACK)


def _class(name: str) -> Any:
    return registry.find("reader", name)


def _recognising(beginning: bytes) -> Iterator[str]:
    """Yield names of the formats that a file with this beginning may have, the most likely first."""
    able = (name for name in registry.names("reader") if hasattr(_class(name), "recognises"))
    return (name for name in able if registry.make("reader", name).recognises(beginning))


def _check_format(reader: Any, paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise if one of the files is certainly of another format than that of the *reader*."""
    if not hasattr(reader, "recognises"):
        return
    name = registry.name_of(type(reader))
    for path in map(Path, paths):
        beginning = first_bytes(path) if path.is_file() else b""
        other = None if reader.recognises(beginning) else next(_recognising(beginning), None)
        if other is not None:
            raise InputError(f"has the format '{other}', the first file '{name}'; expected one format", path=path)
