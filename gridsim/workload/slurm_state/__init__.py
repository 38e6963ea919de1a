"""Live state of a Slurm cluster, from a folder with the output of its commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from gridsim.errors import InputError
from gridsim.model.cluster_state import ClusterState
from gridsim.model.site_file import SiteClock
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.workload.formats.sacct.fields import COMMAND
from gridsim.workload.problems import Problems
from gridsim.workload.slurm_state.job_lists import WORDS, columns_of, job_lines, text_of
from gridsim.workload.slurm_state.jobs import jobs_at, newest_time
from gridsim.workload.slurm_state.machine import read_licences, read_limits, read_nodes, read_reservations, with_running


def print_collect() -> str:
    """Return the script that collects the files of `read_slurm_state` in a folder."""
    script = Path(__file__).with_name("collect.sh").read_text(encoding="utf-8")
    history = COMMAND.replace("-S 2026-01-01 -E now", '-S "now-${weeks}weeks" -E now')
    for command in ("squeue", "sinfo"):
        script = script.replace(f"@{command}@", columns_of(command))
    return script.replace("@sacct@", history)


def read_slurm_state(
    folder: str | Path, *, timezone: str | None = None, rules: Mapping[str, str] | None = None
) -> ClusterState:
    """Return the state of a Slurm cluster.

    Parameters
    ----------
    folder : path
        Folder with the files that the script of `print_collect` writes; each may be compressed. Needed are a list of
        jobs (``squeue.json``, ``scontrol_job.txt`` or ``squeue.txt``, in this order) and of nodes
        (``scontrol_node.txt``, or ``sinfo.txt``).
    timezone : str, optional
        Zone of times without one, such as ``Europe/Berlin``. Not needed for Unix times.
    rules : mapping of str to str, optional
        Rules for the kinds ``missing-field`` and ``overfull`` (`gridsim.workload.problems`).

    Returns
    -------
    ClusterState
        The state; its `notes` contain what was assumed or left out.

    Raises
    ------
    InputError
        With file, line and job, for missing files, damaged lists and impossible values.
    """
    folder, clock = Path(folder), SiteClock(0, timezone)
    clock.zone()
    path, lines = job_lines(folder, clock)
    problems = Problems(rules, source=path)
    moment, notes = _moment(folder, newest_time(lines))
    running, waiting, skipped = jobs_at(moment, lines, problems)
    if skipped:
        notes.append(f"{len(skipped)} jobs without a needed field are left out: {', '.join(skipped[:5])}")
    limits, active = read_limits(folder, clock), (*WORDS["running"], *WORDS["waiting"])
    nodes, enlarged = with_running(read_nodes(folder, clock), running, problems)
    reservations, repeated = read_reservations(folder, clock)
    return ClusterState(
        moment,
        running,
        tuple(replace(job, limit=job.limit or limits.get(job.partition.partition(",")[0])) for job in waiting),
        nodes,
        reservations,
        licences=read_licences(folder, clock),
        left_out=dict(Counter(line.state for line in lines if line.state not in active)),
        notes=(*notes, *enlarged, *repeated),
    )


def _moment(folder: Path, newest: int) -> tuple[int, list[str]]:
    """Return the moment of the state (Unix time, s), and notes on it."""
    path, text = text_of(folder, "now")
    if not text and newest:
        return newest, ["there is no file 'now': the moment of the state is the newest time in the list of jobs"]
    if not re.fullmatch("[0-9]{1,11}", text.strip()):
        raise InputError(f"is '{text.strip()[:60]}'; expected the output of date +%s", path=path, line=1)
    away = abs(int(text) - newest) if newest else 0
    return int(text), [f"'now' is {away / 60:.0f} min from the newest time in the list of jobs"] if away > 600 else []


def check_history(state: ClusterState, history: Workload, path: object = None) -> None:
    """Raise `InputError` if a log has no user of the state, because it is that of another cluster.

    Parameters
    ----------
    state : ClusterState
        The state.
    history : Workload
        The log; without names of users it is not checked.
    path : path, optional
        File of the log, for the error.
    """
    users = {job.user for job in (*state.running, *state.waiting)}
    names = history.names.get("user", ())
    logged = {names[code] for code in np.unique(history.labels.get("user", [])) if UNKNOWN < code < len(names)}
    if users and logged and users.isdisjoint(logged):
        shown = [", ".join(sorted(each)[:3]) for each in (users, logged)]
        message = f"has users such as {shown[1]}, but none of the state's ({shown[0]}); expected the same cluster"
        raise InputError(message, path=path, field="User")
