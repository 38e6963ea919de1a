"""Reader of Slurm's accounting: any output of `sacct` on jobs, as a workload.

Lines are divided into columns by the header, one block at a time. Only lines with the delimiter or a line break in a
name are divided individually (`text`, `align`). A JSON document (`sacct --json`) is converted to the same columns
(`document`). `jobs` combines the lines of each job. `gridsim.workload.problems` defines the treatment of invalid
lines.
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
    (b"JobId=", "is the output of 'scontrol show job', which omits jobs a few minutes after they end"),
    (b"JOBID PARTITION", "is the output of squeue, which lists only jobs that have not ended"),
)


def _other(beginning: bytes) -> str | None:
    """Return the reason why the output of another Slurm tool is not a job log."""
    for line in beginning.splitlines()[:3]:
        for sign, reason in _OTHERS:
            if b" ".join(line.split()).startswith(sign):
                return reason
    return None


def looks_like_sacct(beginning: bytes) -> bool:
    """Return whether a file with this beginning was probably written by `sacct`, or by another Slurm tool for jobs.

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
    """Return the jobs of a log written by `sacct`, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : path or sequence of paths
        The log: lines with any delimiter and any columns in any order, a table, or JSON. Several files are one log, in
        any order; a run of a job that occurs in two files counts once. Of a folder, all files are read.
    cores : int, optional
        Size of the machine, which limits the width of jobs; by default the peak number of cores in use in the log.
    rules : mapping of str to str, optional
        Rule by kind of line (`gridsim.workload.problems.KINDS`).
    timezone : str, optional
        Time zone of the printed times, such as ``Europe/Berlin``; by default times are used unchanged. Not needed for
        seconds since 1970 (``SLURM_TIME_FORMAT=%s``) and JSON.
    cluster : str or sequence of str, optional
        Clusters to read from a log of several clusters (column ``Cluster``): a name, several, or ``all``. With
        several, each job is restricted to its own cluster and has the label ``cluster``. Job numbers that occur in two
        clusters are made unique: a power of ten is added to those of the second cluster by name, twice that to those
        of the third.

    Raises
    ------
    InputError
        If the log lacks required columns, with their names and the command that prints them; without a usable job; and
        for the first line of a kind with the rule ``error``.

    Notes
    -----
    The submit time of a job is the time at which it became eligible (``late-eligible``). Its run time excludes
    suspensions, its cores are the allocated ones, and its estimate is its time limit. The first submission of the kept
    jobs is at 0 s.
    """
    zone = None if timezone is None else Zone(timezone)
    files = files_of(path, "the output of sacct")
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
    """Read the lines of one file; return its checksum."""
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
