"""Columns of `sacct`: their contents, the columns that are read, and the command that prints the required ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gridsim.errors import InputError

COMMAND = (
    "SLURM_TIME_FORMAT=%s sacct -a -X -D -P --delimiter=$'\\x1f' -S 2026-01-01 -E now -o JobID,JobIDRaw,User,Group,"
    "Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,Suspended,TimelimitRaw,State,NNodes,ReqCPUS,AllocCPUS,"
    "ReqMem,ReqTRES,AllocTRES,Reason,Constraints,Reservation,Priority,SubmitLine,JobName > sacct.txt"
)
"""Command that prints all columns that are read, in a form that is robust against any job name."""

_EMPTY_OR = "(?:{})?"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|0|\d{9,11}|Unknown|None|N/A"
_LENGTH = r"(?:\d+-)?(?:\d+:)*\d+(?:\.\d+)?"
_WORD = r"[^\s]*"
_SIZE = r"[\d.]+[KMGTPE]?[nc]?"

_PATTERNS: Mapping[str, str] = {
    "identity": r"\d+(?:_(?:\d+|\[[^\]\s]*\]?\+?))?(?:\+\d+)?(?:\.\w+)?",
    "time": _EMPTY_OR.format(_TIME),
    "length": _EMPTY_OR.format(rf"{_LENGTH}|UNLIMITED|Partition_Limit|INVALID"),
    "count": r"\d*",
    "minutes": r"(?:\d+|UNLIMITED|Partition_Limit)?",
    "number": _EMPTY_OR.format(_SIZE),
    "state": r"(?:[A-Z][A-Z_]+\+?(?: by [\w+]*)?)?",
    "exit": r"(?:\d+:\d+)?",
    "word": _WORD,
    "tres": r"(?:[\w/:.-]+=[^\s=]*)?",
}

TEXTS: Mapping[str, re.Pattern[bytes]] = {name: re.compile(text.encode()) for name, text in _PATTERNS.items()}
"""Valid contents of a field by the kind of its column; columns of other kinds can contain anything."""

_OF_KIND: Mapping[str, str] = {
    "identity": "JobID JobIDRaw",
    "time": "Submit Eligible Start End",
    "length": "Elapsed Timelimit Suspended CPUTime Reserved Planned ResvCPU PlannedCPU SystemCPU UserCPU TotalCPU "
    "AveCPU MinCPU",
    "count": "ElapsedRaw CPUTimeRAW NCPUS AllocCPUS ReqCPUS AssocID DBIndex GID UID NTasks QOSRAW ResvCPURAW "
    "PlannedCPURAW WCKeyID ReservationId Restarts ConsumedEnergyRaw MinCPUTask MaxPagesTask MaxRSSTask MaxVMSizeTask "
    "MaxDiskReadTask MaxDiskWriteTask ArrayTaskThrottle",
    "minutes": "TimelimitRaw",
    "number": "NNodes AllocNodes ReqNodes ReqMem Priority AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS "
    "AveVMSize ConsumedEnergy MaxDiskRead MaxDiskWrite MaxPages MaxRSS MaxVMSize",
    "state": "State",
    "exit": "ExitCode DerivedExitCode",
    "word": "User Group Account Partition QOS Cluster BlockID Layout McsLabel MaxDiskReadNode MaxDiskWriteNode "
    "MaxPagesNode MaxRSSNode MaxVMSizeNode MinCPUNode ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin WCKey "
    "Reason Reservation",
    "tres": "AllocTRES ReqTRES TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin "
    "TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode "
    "TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot",
    "free": "JobName SubmitLine Comment AdminComment SystemComment WorkDir Constraints Container Extra NodeList Flags "
    "FailedNode Licenses StdErr StdIn StdOut",
}
_KINDS = {name.lower(): (name, kind) for kind, names in _OF_KIND.items() for name in names.split()}

FREE = ("JobName", "SubmitLine")
"""Columns with free text by users; a delimiter in the job name occurs in the submit line too."""


def canonical(name: str) -> tuple[str, str] | None:
    """Return the name of a column as `sacct` spells it, and its kind; None for an unknown column.

    Examples
    --------
    >>> canonical("jobid"), canonical("colour")
    (('JobID', 'identity'), None)
    """
    return _KINDS.get(name.lower())


_NEEDED: Sequence[tuple[tuple[str, ...], str]] = (
    (("JobID", "JobIDRaw"), "the job of a line"),
    (("Submit",), "the submit time"),
    (("Start",), "the start time"),
    (("End", "ElapsedRaw", "Elapsed"), "the run time"),
    (("AllocCPUS", "NCPUS", "AllocTRES", "ReqCPUS", "ReqTRES"), "the number of cores"),
)


def missing(names: Iterable[str]) -> list[str]:
    """Return the required data that a log with these columns lacks; empty if it is sufficient."""
    there = set(names)
    return [f"{' or '.join(columns)} ({what})" for columns, what in _NEEDED if there.isdisjoint(columns)]


def refuse_missing(names: Iterable[str], path: object) -> None:
    """Raise `InputError` if these columns are not sufficient."""
    if lacking := missing(names):
        raise refusal(f"has no column {'; no '.join(lacking)}", path)


def refusal(reason: str, path: object, line: int | None = None) -> InputError:
    """Return an error with the reason why a log cannot be read, and the command that writes a readable one."""
    return InputError(f"{reason}; write the log again with:\n  {COMMAND}\n", path=path, line=line)
