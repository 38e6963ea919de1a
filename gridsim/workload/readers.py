"""Readers of log formats; the first reader that recognises a file reads it.

A custom reader is a class with ``read``; missing attributes of `Reader` have the documented defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gridsim.model.workload import Workload
from gridsim.workload.formats.gwf import looks_like_gwf, read_gwf
from gridsim.workload.formats.pbs import looks_like_pbs, read_pbs
from gridsim.workload.formats.sacct import looks_like_sacct, read_sacct
from gridsim.workload.formats.swf import looks_like_swf, read_swf
from gridsim.workload.formats.table import read_mapped
from gridsim.workload.formats.wfformat import looks_like_wfformat, read_workflows


class Reader(Protocol):
    """Reader of a format.

    Attributes
    ----------
    read : callable
        ``read(path, …) -> Workload``. The reader receives those keyword parameters of
        `gridsim.workload.read.read_workload` (``cores``, ``rules``, ``submit``, ``tick``, ``timezone``, ``cluster``,
        ``mapping``, ``memory``) that its signature contains; other options are errors for this format.
    recognises : callable
        Whether a file with this beginning (decompressed bytes) is probably of this format. A reader without it is used
        only if its format is given.
    many : bool
        Whether ``read`` accepts several files, and folders, as one workload; False by default.
    unstarted : bool
        Whether ``read`` provides the data to keep jobs without a start: waiting times of cancelled jobs, and requests
        of waiting jobs. Other readers exclude these jobs. False by default.
    """

    read: Callable[..., Workload]
    recognises: Callable[[bytes], bool]
    many: bool
    unstarted: bool


class Pbs:
    """Accounting logs of PBS Pro, OpenPBS and Torque."""

    read, recognises = staticmethod(read_pbs), staticmethod(looks_like_pbs)
    many = True


class Swf:
    """The Standard Workload Format, version 2.2."""

    read, recognises = staticmethod(read_swf), staticmethod(looks_like_swf)
    source = "Feitelson; Parallel Workloads Archive"


class Sacct:
    """Output of Slurm's sacct: lines with any delimiter, a table, or JSON."""

    read, recognises = staticmethod(read_sacct), staticmethod(looks_like_sacct)
    many = unstarted = True
    source = "slurm.schedmd.com: sacct"


class Wfformat:
    """Workflows of WfCommons, one per file (WfFormat)."""

    read, recognises = staticmethod(read_workflows), staticmethod(looks_like_wfformat)
    many = True
    source = "wfcommons.org"


class Gwf:
    """The Grid Workload Format: 29 fields of independent jobs, or workflows whose tasks list their predecessors."""

    read, recognises = staticmethod(read_gwf), staticmethod(looks_like_gwf)
    source = "Grid Workloads Archive"


class Table:
    """Any table (CSV, TSV, Parquet, JSON) with a mapping of its columns: --mapping FILE.toml, or a preset."""

    read = staticmethod(read_mapped)
    many = True
