"""Jobs of a clean SWF log, and schedules as CSV, for scripts in environments without gridsim."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Job(NamedTuple):
    """One line of a log written by `compare.prepared`: whole seconds, every field known, runtime <= estimate."""

    number: int
    submit: int
    runtime: int
    cores: int
    estimate: int


def read_jobs(path: str | Path) -> tuple[int, list[Job]]:
    """Return the number of cores of the machine, and its jobs in the order of the log."""
    text = Path(path).read_text(encoding="utf-8")
    stated = re.search(r"^; *MaxProcs: *(\d+)", text, re.MULTILINE)
    assert stated, f"{path} states no MaxProcs"
    lines = (line.split() for line in text.splitlines() if line and not line.startswith(";"))
    return int(stated[1]), [Job(int(f[0]), int(f[1]), int(f[3]), int(f[7]), int(f[8])) for f in lines]


def write_schedule(path: str | Path, jobs: Iterable[Job], starts: Iterable[float]) -> None:
    """Write the columns that ``gridsim validate`` requires; every job holds its cores for its run time."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["job", "submit", "start", "end", "cores"])
        table.writerows(
            [job.number, job.submit, start, start + job.runtime, job.cores]
            for job, start in zip(jobs, starts, strict=True)
        )
