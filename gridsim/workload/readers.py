"""Readers of logs: what knows a format and makes a workload of a file in it. The first that recognises a file takes it.

A reader of one's own is a class with ``read``; what it lacks of `Reader` is taken as said there.
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
    """A format that can be read.

    Attributes
    ----------
    read : callable
        ``read(path, …) -> Workload``. Of the keyword parameters of `gridsim.workload.read.read_workload` (``cores``,
        ``rules``, ``submit``, ``tick``, ``timezone``, ``cluster``, ``mapping``, ``memory``) it is given those that it
        names; the others cannot be asked of the format.
    recognises : callable
        Whether a file that begins with these bytes (decompressed) is probably of this format; a reader without is
        taken where its format is asked for.
    many : bool
        Whether ``read`` takes several files, and folders, as one workload; False where left out.
    unstarted : bool
        Whether ``read`` knows enough of jobs that never started to keep them: until when they waited that were
        cancelled, what they ask for that wait still. Others leave them out. False where left out.
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
    """What Slurm's sacct prints: lines with any delimiter, a table, or JSON."""

    read, recognises = staticmethod(read_sacct), staticmethod(looks_like_sacct)
    many = unstarted = True
    source = "slurm.schedmd.com: sacct"


class Wfformat:
    """Workflows of WfCommons, a file each (WfFormat)."""

    read, recognises = staticmethod(read_workflows), staticmethod(looks_like_wfformat)
    many = True
    source = "wfcommons.org"


class Gwf:
    """The Grid Workload Format: 29 fields of independent jobs, or workflows whose tasks name what they need."""

    read, recognises = staticmethod(read_gwf), staticmethod(looks_like_gwf)
    source = "Grid Workloads Archive"


class Table:
    """Any table (CSV, TSV, Parquet, JSON) with a mapping of its columns: --mapping FILE.toml, or a preset."""

    read = staticmethod(read_mapped)
    many = True
