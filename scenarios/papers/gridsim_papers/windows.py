"""Windows of jobs for campaigns: parts of the archive's logs, or of a model when the logs are absent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gridsim import InputError, Lublin, Workload, read_workload
from gridsim.model.random_streams import stream
from gridsim.workload.transform.slice import Slice

__all__ = ["LOGS", "Log", "log_files", "logs_there", "seed_of", "window_of"]


class Log(NamedTuple):
    """Source of windows: name of the archive's file (none for the model), cores, windows of 5,000 jobs."""

    file: str
    cores: int
    windows: int


LOGS = {
    "ctc": Log("CTC-SP2-1996-3.1-cln.swf.gz", 430, 15),
    "sdsc": Log("SDSC-SP2-1998-4.2-cln.swf.gz", 128, 10),
    "model": Log("", 128, 15),
}
"""Logs of jobs; ``model`` (Lublin and Feitelson, a seed per window) replaces absent logs of the archive."""


def logs_there(logs: Sequence[str], data: str | Path | None) -> tuple[str, ...]:
    """The *logs* whose files are in the folder *data*, or the model if there are none."""
    there = [log for log in logs if log == "model" or (data is not None and (Path(data) / LOGS[log].file).is_file())]
    return tuple(there) or ("model",)


def log_files(logs: Sequence[str], data: Path | None) -> list[Path]:
    """Files of logs of the archive.

    Raises
    ------
    InputError
        When a file does not exist.
    """
    paths = [(data or Path()) / LOGS[log].file for log in logs if LOGS[log].file]
    for path in paths:
        if not path.is_file():
            raise InputError("is not there; name the folder of the archive's logs", path=path, field="data")
    return paths


def window_of(
    log: str,
    window: int,
    *,
    jobs: int,
    cores: int,
    data: str | Path | None,
    seed: int,
    study: str,
    model_load: float = 0.65,
) -> Workload:
    """Return *jobs* jobs of a log, from job ``window * jobs``, as logged, with the first submission at 0.

    Parameters
    ----------
    log : str
        Of `LOGS`.
    cores : int
        Of the machine; wider jobs and jobs with run time 0 are removed before jobs are counted.
    data : path or None
        Folder of the archive's logs; not needed for the model.
    seed, study, model_load
        Of the model: each study has separate windows, of this offered load. The default load is in the middle of the
        loads that CTC offers to 430 cores.
    """
    if log == "model":
        return Lublin(jobs=jobs, cores=cores, load=model_load, realised=True, estimates="multiples").generate(
            seed_of(seed, study, "model", window)
        )
    whole = read_workload(Path(data or ".") / LOGS[log].file, cores=cores)
    return Slice(jobs=jobs, window=window, origin=True).apply(whole)


def seed_of(seed: int, *names: str | int) -> int:
    """Seed for data generated under these names."""
    return int(stream(seed, *names).integers(2**32))
