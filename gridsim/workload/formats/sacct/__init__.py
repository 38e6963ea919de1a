"""Slurm's accounting: whatever `sacct` prints of a log of jobs, as a workload.

The lines are divided into columns by what the header says, a block at a time; only lines in which a name holds the
delimiter or a line break are taken apart one by one (`text`, `align`). A document (`sacct --json`) is put into the same
columns (`document`). `jobs` makes one job of the lines about it. What is wrong with a line, and what becomes of it, is
`gridsim.workload.problems`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.formats.sacct.clock import Zone
from gridsim.workload.formats.sacct.document import Document, looks_like_document
from gridsim.workload.formats.sacct.fields import COMMAND, canonical, refusal
from gridsim.workload.formats.sacct.jobs import Jobs
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.formats.sacct.text import header_of, looks_headless
from gridsim.workload.formats.stream import Paths, blocks, digest_of, files_of, name_of_all, opened
from gridsim.workload.problems import Problems

__all__ = ["COMMAND", "looks_like_sacct", "read_sacct", "taken"]

_OTHERS = (
    (b"JobId=", "is the output of 'scontrol show job', which forgets a job some minutes after its end"),
    (b"JOBID PARTITION", "is the output of squeue, which knows only jobs that have not ended"),
)


def _other(beginning: bytes) -> str | None:
    """Why a file that another tool of Slurm wrote is no log."""
    for line in beginning.splitlines()[:3]:
        for sign, reason in _OTHERS:
            if b" ".join(line.split()).startswith(sign):
                return reason
    return None


def looks_like_sacct(beginning: bytes) -> bool:
    """Whether a file that begins so was probably written by `sacct`, or by another of Slurm's tools for jobs.

    Examples
    --------
    >>> looks_like_sacct(b"JobID|State|Submit\\n7|COMPLETED|1795244026\\n"), looks_like_sacct(b"; Version: 2.2\\n")
    (True, False)
    """
    beginning = beginning.removeprefix(b"\xef\xbb\xbf")
    if looks_like_document(beginning) or _other(beginning) is not None:
        return True
    lines = [line for line in beginning.splitlines() if line.strip()][:20]
    for line, below in zip(lines, [*lines[1:], b""], strict=False):
        header = header_of(line, below)
        if header is not None and sum(canonical(name) is not None for name in header.names) >= 2:
            return True
    return bool(lines) and looks_headless(lines[0])


def read_sacct(
    path: Paths,
    *,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    timezone: str | None = None,
    cluster: str | Sequence[str] | None = None,
) -> Workload:
    """Jobs of a log that `sacct` wrote, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : path or sequence of paths
        The log: lines with any delimiter and any columns in any order, a table, or JSON. Several files are one log, in
        any order: a run of a job that stands in two of them counts once. Of a folder all files.
    cores : int, optional
        Size of the machine that jobs must fit; where left out, the most cores that the log has in use at once.
    rules : mapping of str to str, optional
        Rule by kind of line (`gridsim.workload.problems.KINDS`).
    timezone : str, optional
        Zone of the clock that the times were printed by, such as ``Europe/Berlin``; times are taken as they are where
        left out. Not needed for seconds since 1970 (``SLURM_TIME_FORMAT=%s``) and JSON.
    cluster : str or sequence of str, optional
        Of a log of several clusters (column ``Cluster``), which to read: a name, several, or ``all``. Of several, each
        job is pinned to its own: it has the label ``cluster``. Job numbers that two clusters have are made different:
        a power of ten is added to those of the second one, by name, twice that to those of the third.

    Raises
    ------
    InputError
        When the log does not carry enough, saying what is missing and the command that prints it; when it holds no
        usable job; for the first line of a kind whose rule is ``error``.

    Notes
    -----
    A job is submitted when it became eligible (``late-eligible``), runs for the time that it ran without suspensions,
    on the cores that it was allocated, and has its limit as estimate. The first submit of a job that is kept is 0 s.
    """
    zone = None if timezone is None else Zone(timezone)
    files = files_of(path, "what sacct printed")
    problems = Problems(rules, source=name_of_all(path, files))
    intake, digests = SacctIntake(problems.source, problems), []
    for file in files:
        problems.begin(file, intake.lines)
        digests.append(taken(intake, file))
    try:
        return Jobs(intake, cores, zone, cluster).workload(digest_of(digests), len(files))
    except InputError as error:
        raise problems.located(error) from error


def taken(intake: SacctIntake, path: Path) -> str:
    """Take the lines of one file; its checksum."""
    intake.begin(path)
    before = intake.lines
    with opened(path) as (stream, digesting):
        beginning = stream.peek(4096)[:4096] if hasattr(stream, "peek") else b""
        if (reason := _other(beginning)) is not None:
            raise refusal(reason, path)
        if beginning.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            intake.take_document(Document(stream, path, before))
        else:
            for first_line, block in blocks(stream, path, "the output of sacct"):
                intake.take(before + first_line, block)
            intake.finish()
        return digesting.hexdigest()
