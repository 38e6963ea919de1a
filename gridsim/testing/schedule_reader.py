"""Reader of schedules: result directories, per-job CSV files, Batsim's ``jobs.csv``, SWF files.

Data are read unchanged, and `gridsim.testing.invariants` reports violations. Only unreadable data raise an
`InputError`.
"""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gridsim.errors import InputError, UnknownNameError, located
from gridsim.files import DAMAGED, csv_rows, encoding_of, unpacked
from gridsim.model.allocations import Allocations
from gridsim.model.capacity import Capacity
from gridsim.model.demand import demands_of
from gridsim.model.failures import Failures, failures_from, read_trace, slurm_clock
from gridsim.model.platform import Platform, machine_cores
from gridsim.model.platform_file import platform_of_tree
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.windows import PlannedWindow, planned, windows_from
from gridsim.model.workload import Workload
from gridsim.record import FAILURE, REASONS, SAVED, Status
from gridsim.run_folder import find_run, read_run, read_run_table
from gridsim.scenario import jobs_of, transformed
from gridsim.tables import by_number, read_names
from gridsim.testing.allocation_checks import Failed
from gridsim.testing.allocation_table import parse_allocations
from gridsim.testing.invariants import UNKNOWN_CORES, UNKNOWN_STATUS, Parts, Schedule, only_capacity, violations_of
from gridsim.testing.violation import Violation
from gridsim.workload.read import Paths

ALIASES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "job_id", "jobid", "id", "job_number", "number"),
    "submit": ("submit", "submit_time", "submission_time", "submitted", "arrival", "arrival_time"),
    "logged_submit": ("logged_submit",),
    "start": ("start", "start_time", "starting_time", "started", "begin", "begin_time"),
    "end": ("end", "end_time", "ending_time", "finish", "finish_time", "finished", "completion", "completion_time"),
    "wait": ("wait", "wait_time", "waiting_time"),
    "runtime": ("runtime", "run_time", "execution_time", "elapsed"),
    "cores": ("cores", "processors", "procs", "requested_number_of_resources", "ncpus", "cpus", "allocated_cores"),
    "allocated": ("allocated_resources",),
    "used": ("cores_used",),
    "status": ("status", "final_state", "state"),
    "granted": ("granted",),
    "broken": ("guarantee_broken",),
    "broken_at": ("broken_at",),
    "limit": ("limit",),
    "pieces": ("pieces",),
}
"""Known columns, each with its names in files; case is ignored."""

STATUS_WORDS: Mapping[str, Status] = {
    **{status.name: status for status in Status},
    "completed_successfully": Status.completed,
    "completed_failed": Status.completed,
    "completed_walltime_reached": Status.killed_walltime,
    # Batsim: killed by a decision of the scheduler (older versions: also at the walltime), so any length is possible.
    "completed_killed": Status.cancelled,
    "timeout": Status.killed_walltime,
    "failed": Status.completed,
}
"""Words for statuses, in lower case. A failed job held its cores for its run time, so it counts as completed;
in a result directory of a run with failures of nodes, it was stopped."""

_EMPTY = ("", "nan", "none", "null", "na", "n/a")
_TIMES = ("submit", "logged_submit", "start", "end", "wait", "runtime", "granted", "broken_at", "limit")
_SWF_FIELDS = 18
_MOST_DIGITS = 15


def read_schedule(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Schedule:
    """Return the schedule in a file or a result directory.

    Parameters
    ----------
    path : str or path
        A directory with ``jobs.csv`` or ``jobs.parquet``, a CSV file with one row per job, or an SWF file whose wait
        and run time fields are the schedule; plain or compressed with gzip or xz.
    columns : mapping of str to str, optional
        Names in the file of the columns in `ALIASES`, if they are not listed there.

    Raises
    ------
    InputError
        If the file is unreadable, with line and field.
    """
    path = Path(path)
    if path.is_dir():
        found = _with_earlier_runs(path, read_schedule(_table(path), columns=columns))
        if (path / "failures.csv").is_file():
            found = replace(found, failed=_failed_nodes(path / "failures.csv"))
            if found.status is not None:
                failed = read_run_table(path)["status"] == Status.failed.name
                found = replace(found, status=np.where(failed, int(Status.failed), found.status))
        return replace(found, allocations=_own_allocations(path), reserved=_reservations(path))
    if path.suffix == ".parquet":
        return _from_csv(_parquet(path), path, columns)
    text = _text(path)
    if columns is None and _is_swf(path, text):
        return _from_swf(text, path)
    return _from_csv(io.StringIO(text, newline=""), path, columns)


def validate(
    schedule: Schedule | str | Path,
    workload: Workload | Paths | None = None,
    *,
    cores: int | None = None,
    platform: Platform | None = None,
    capacity: Capacity | None = None,
    transforms: Sequence[Any] = (),
    columns: Mapping[str, str] | None = None,
    allocations: str | Path | None = None,
    overrun: Literal["kill", "extend"] | None = None,
    tolerance: float = 0.0,
) -> list[Violation]:
    """Check a schedule of any program against its workload.

    Parameters
    ----------
    schedule : path or Schedule
        A result directory, a CSV file with one row per job, or an SWF file (`read_schedule`).
    workload : Workload or path, optional
        The jobs; by default those in the result directory.
    cores : int, optional
        Cores of the machine; by default the number that the workload's source states.
    platform : Platform, optional
        The machine instead; its nodes are checked too.
    capacity : Capacity, optional
        Nodes and pools; by default those of *platform*, else of the result directory.
    transforms : sequence of str or object
        Transforms of the workload, in this order.
    columns : mapping of str to str, optional
        Names of the columns in the file, as for `read_schedule`.
    allocations : path, optional
        File of the nodes that each job was placed on.
    overrun : {"kill", "extend"}, optional
        Treatment of jobs that reached their estimates; by default that of the result directory, else ``kill``.
    tolerance : float
        Tolerance of times, s.

    Returns
    -------
    list of Violation
        One entry for each kind of violation; empty for a possible schedule.

    Raises
    ------
    InputError
        For an unreadable file, an unknown size of the machine, and a schedule without its workload.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[9, 3], cores=[2, 1], cores_stated=2)
    >>> starts = Schedule(job=log.job, start=to_us(np.array([0.0, 1.0])), end=to_us(np.array([9.0, 4.0])))
    >>> print(*validate(starts, log))
    oversubscribed: 1 (jobs 2): 3 of 2 cores in use; first at 1 s
    """
    folder = schedule if isinstance(schedule, str | Path) else ""
    if not isinstance(schedule, Schedule):
        schedule = read_schedule(schedule, columns=columns)
    if allocations is not None:
        schedule = replace(schedule, allocations=read_allocations(allocations))
    if platform is not None:
        capacity, cores = capacity or only_capacity(platform), platform.cores
    elif cores is None and folder:
        capacity = capacity or nodes_of(folder)
    workload = read_jobs(folder) if workload is None else jobs_of(workload, cores=cores)
    cores = machine_cores(workload, cores)[0]
    workload = transformed(workload, transforms, cores=cores)
    how: Any = {"capacity": capacity, "overrun": overrun or overrun_of(folder), "tolerance": tolerance}
    return violations_of(schedule, workload, cores=cores, **how)


def read_jobs(folder: str | Path) -> Workload:
    """Return the simulated workload of a result directory, after all transforms, and the size of the machine.

    Raises
    ------
    InputError
        If it is not a result directory of one-task jobs.
    """
    folder = Path(folder)
    if not folder.is_dir() or (folder / "tasks.csv").is_file() or (folder / "tasks.parquet").is_file():
        raise InputError("is not a result directory of jobs of one task; give the scheduled log", path=folder)
    path, columns = _table(folder), read_run_table(folder)
    if "cores_used" in columns:
        raise InputError("has moldable jobs; give the log, and the transforms that made the jobs moldable", path=folder)
    run = read_run(folder)
    if "folders" in run:
        raise InputError("contains several policies; give the folder of one", path=folder)
    submit = columns.get("logged_submit", columns["submit"])
    submit = np.where(np.isnan(submit), columns["submit"], submit)
    deadline = columns.get("deadline", np.full(len(submit), np.nan))
    labels = {"reservation": columns["reservation"]} if "reservation" in columns else {}
    names = {"reservation": by_number(read_names(folder).get("reservation", {}))}
    with located(path):
        found = Workload.from_columns(
            job=columns["job"],
            cores=columns["cores"],
            demands=demands_of({name: column.tolist() for name, column in columns.items()}, columns["cores"].tolist()),
            submit=submit,
            runtime=columns["runtime"],
            estimate=columns["estimate"],
            deadline=np.where(np.isnan(deadline), np.inf, deadline) + submit - columns["submit"],
            cores_stated=run["platform"]["cores"],
            labels=labels,
            provenance={"source": str(path), "jobs_read": len(submit), "cores_from": "run.json"},
        )
    return replace(found, names=names) if names["reservation"] else found


def nodes_of(schedule: str | Path) -> Capacity | None:
    """Return nodes and pools of the machine of a result directory; None without nodes, or for several clusters."""
    path = Path(schedule) / "run.json"
    if not path.is_file() or "folders" in (run := read_run(schedule)):
        return None
    clusters = list(platform_of_tree(run["platform"]["tree"], path=path).clusters())
    return clusters[0].capacity if len(clusters) == 1 else None


def overrun_of(schedule: str | Path) -> Literal["kill", "extend"]:
    """Return the treatment of jobs that reached their estimates, from a result directory; ``kill`` by default."""
    run = find_run(schedule) or {}
    return "extend" if run.get("options", {}).get("overrun") == "extend" else "kill"


def parse_columns(text: str) -> dict[str, str]:
    """Parse a mapping of columns.

    Examples
    --------
    >>> parse_columns("job=id,start=begin")
    {'job': 'id', 'start': 'begin'}
    """
    columns = {}
    for part in filter(None, text.split(",")):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or not theirs:
            raise InputError(f"'{part}' is not column=name; expected for example job=id,start=begin", field="columns")
        if ours not in ALIASES:
            raise UnknownNameError("column", ours, ALIASES)
        columns[ours] = theirs
    return columns


# -- files -----------------------------------------------------------------------------------------------------------


def _table(folder: Path) -> Path:
    for name in ("jobs.csv", "jobs.parquet"):
        if (folder / name).is_file():
            return folder / name
    raise InputError("contains neither jobs.csv nor jobs.parquet; expected a result directory", path=folder)


def read_allocations(path: str | Path) -> Allocations:
    """Return the allocations in a table: CSV, plain or compressed, or Parquet.

    For the columns see `gridsim.testing.allocation_table.parse_allocations`.

    Raises
    ------
    InputError
        If the file is unreadable, with line and field.
    """
    path = Path(path)
    lines = _parquet(path) if path.suffix == ".parquet" else io.StringIO(_text(path), newline="")
    return parse_allocations(lines, path)


def _own_allocations(folder: Path) -> Allocations | None:
    """Return the allocations of a result directory.

    None without any, and for DAG jobs, whose tasks have no numbers.
    """
    if any((folder / name).is_file() for name in ("tasks.csv", "tasks.parquet")):
        return None
    there = (folder / f"allocations.{kind}" for kind in ("csv", "parquet"))
    return next((read_allocations(path) for path in there if path.is_file()), None)


def _with_earlier_runs(folder: Path, schedule: Schedule) -> Schedule:
    """Return the schedule with the runs before jobs' last ones, if the directory contains any."""
    if (folder / "suspensions.csv").is_file():
        table = read_run_table(folder, "suspensions")
        schedule = replace(schedule, asleep=np.stack([table["job"], to_us(table["from"]), to_us(table["until"])]))
    if (folder / "runs.csv").is_file():  # with those of the other tables
        table = read_run_table(folder, "runs")
        start, end, *spent = (to_us(table[it]) for it in ("start", "end", "restart", "kept", "checkpoint_seconds"))
        parts = Parts(spent[0], spent[1], spent[2], table["reason"] == REASONS[SAVED])
        saves = "checkpoint" in (find_run(folder) or {}).get("options", {}).get("failures", {})
        piece = table["reason"] == "piece"
        return schedule.with_runs(table["job"], start, end, parts if saves and not piece.any() else None, piece)
    there = [name for name in ("killed_runs", "pieces") if (folder / f"{name}.csv").is_file()]
    if not there:
        return schedule
    cut = [read_schedule(folder / f"{name}.csv") for name in there]
    return replace(
        schedule,
        cut_job=np.concatenate([each.job for each in cut]),
        cut_start=np.concatenate([each.start for each in cut]),
        cut_end=np.concatenate([each.end for each in cut]),
        cut_piece=np.repeat([name == "pieces" for name in there], [len(each) for each in cut]),
    )


def _reservations(folder: Path) -> tuple[PlannedWindow, ...]:
    """Return the reservations of a run; none if the names of its jobs' reservations are not in the directory."""
    run = find_run(folder) or {}
    tables = run.get("options", {}).get("failures", {}).get("windows", [])
    if not any(table.get("kind") == "reservation" for table in tables) or (nodes := nodes_of(folder)) is None:
        return ()
    named = read_run_table(folder).get("reservation")
    if named is not None and (named >= 0).any() and "reservation" not in read_names(folder):
        return ()
    with located(folder / "run.json", below="options.failures"):
        windows = planned(windows_from(tables), nodes.nodes, run["workload"])
    return tuple(it for it in windows if it.kind == "reservation")


def _failed_nodes(path: Path) -> Failed:
    """Return the failures of whole nodes."""
    trace = Failures(read_trace(path), origin=str(path)).dated({}).trace
    rows = [(name, float(down), float(up)) for names, down, up in trace for name in names if ":" not in name]
    node, down, up = zip(*rows, strict=True) if rows else ((), (), ())
    return Failed(
        node, *(np.array([to_us(it) if it < np.inf else NEVER for it in each], dtype=np.int64) for each in (down, up))
    )


def node_fail_runs(folder: str | Path, files: Sequence[str]) -> tuple[int, int]:
    """Return the number of recorded ``NODE_FAIL`` runs of the simulated jobs, and of those that a run reproduces.

    Parameters
    ----------
    folder : path
        A result directory, whose workload has dates.
    files : sequence of str
        Output of ``sacct -D -P`` with the columns JobID, State, Start, End and NodeList.

    Returns
    -------
    recorded, interrupted : int
        Runs in the files; and how many of them a failure interrupted in the simulation, in the same second.

    Raises
    ------
    InputError
        If the files contain no runs, or the clock of the workload is unknown.
    """
    folder, clock = Path(folder), slurm_clock(read_run(folder)["workload"])
    jobs = read_run_table(folder)
    known, recorded = set(jobs["job"].tolist()), set()
    runs = [it for it in failures_from({"file": list(files)}).events if it.runs]
    if not runs:
        message = "has no runs; expected the output of sacct -D -P -o JobID,State,Start,End,NodeList"
        raise InputError(message, path=files[0])
    for file in runs:
        for row in (row for row in file.rows if row.failed):
            if row.job < 0:
                message = "is missing; it has the numbers of the tasks of arrays"
                raise InputError(message, path=file.path, line=row.line, field="JobIDRaw")
            if row.job in known:
                recorded.add((row.job, math.floor(clock(row.end, file.path, row.line))))
    stopped = jobs["status"] == Status.failed.name
    ends = list(zip(jobs["job"][stopped].tolist(), jobs["end"][stopped].tolist(), strict=True))
    if (folder / "runs.csv").is_file():
        made = read_run_table(folder, "runs")
        failed = made["reason"] == REASONS[FAILURE]
        ends += zip(made["job"][failed].tolist(), made["end"][failed].tolist(), strict=True)
    return len(recorded), len(recorded & {(job, math.floor(end)) for job, end in ends})


def _text(path: Path) -> str:
    try:
        data = unpacked(path.read_bytes())
        encoding = encoding_of(data[:16])
        if encoding.startswith("utf-8") and (path.suffix == ".swf" or data.lstrip().startswith(b";")):
            return data.decode("latin-1")
        return data.decode(encoding)
    except (*DAMAGED, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason}); expected a schedule", path=path) from error


def _is_swf(path: Path, text: str) -> bool:
    if ".swf" in path.suffixes or text.lstrip().startswith(";"):
        return True
    first = text.lstrip().partition("\n")[0].split()
    return len(first) == _SWF_FIELDS and all(_number(word) is not None for word in first)


def _parquet(path: Path) -> Iterator[str]:
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError as error:
        raise InputError("Parquet needs duckdb; pip install duckdb", path=path) from error
    escaped = str(path).replace("'", "''")
    relation = duckdb.sql(f"select * from read_parquet('{escaped}')")
    yield ",".join(relation.columns)
    for row in relation.fetchall():
        yield ",".join("" if value is None else str(value) for value in row)


def _number(word: str) -> float | None:
    try:
        return float(word) if word.isascii() and "_" not in word else None
    except ValueError:
        return None


# -- SWF -------------------------------------------------------------------------------------------------------------


def _from_swf(text: str, path: Path) -> Schedule:
    """Read all lines: start is submit plus wait, -1 is unknown in either."""
    table = _swf_table(text, path)
    submit, wait, runtime = to_us(table[:, 1]), table[:, 2], table[:, 3]
    waits = to_us(wait)
    start = np.where(wait == -1, NEVER, submit + waits)
    end = np.where((wait == -1) | (runtime == -1), NEVER, start + to_us(runtime))
    allocated, requested = table[:, 4].astype(np.int64), table[:, 7].astype(np.int64)
    cores = np.where(allocated > 0, allocated, np.where(requested > 0, requested, UNKNOWN_CORES))
    cancelled = table[:, 10] == 5
    idle = cancelled & (runtime <= 0)
    return Schedule(
        job=table[:, 0].astype(np.int64),
        # The wait of a job that was cancelled before its start is the time until the cancellation.
        start=np.where(idle, NEVER, start),
        end=np.where(idle, NEVER, end),
        submit=submit,
        cores=cores,
        status=np.where(cancelled, int(Status.cancelled), UNKNOWN_STATUS),
        source=str(path),
    )


def _swf_table(text: str, path: Path) -> Any:
    lines = text.splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != ";"]
    if not rows:
        raise InputError("has no job; expected SWF lines of 18 fields", path=path)
    try:
        table = np.loadtxt([line for _, line in rows], ndmin=2)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape != (len(rows), _SWF_FIELDS) or not (np.abs(table) <= 2.0**53).all():
        for number, line in rows:
            words = line.split()
            if len(words) != _SWF_FIELDS:
                raise InputError(f"has {len(words)} fields; expected {_SWF_FIELDS}", path=path, line=number)
            for place, word in enumerate(words, 1):
                value = _number(word)
                if value is None or not abs(value) <= 2**53:
                    raise InputError(f"'{word}' is not a number", path=path, line=number, field=str(place))
    return table


# -- CSV -------------------------------------------------------------------------------------------------------------


def _from_csv(lines: Iterable[str], path: Path, columns: Mapping[str, str] | None) -> Schedule:
    lines = iter(lines)
    first = next(lines, "")
    delimiter = max(",;\t", key=first.count)
    _, header = next(csv_rows([first], path, delimiter), (1, []))
    where = _places([name.strip() for name in header], path, columns or {})
    values: dict[str, list[Any]] = {name: [] for name in where}
    for line, row in ((line + 1, row) for line, row in csv_rows(lines, path, delimiter)):
        if not any(field.strip() for field in row):
            continue
        if len(row) != len(header):
            raise InputError(f"has {len(row)} fields; the header has {len(header)}", path=path, line=line)
        for name, place in where.items():
            values[name].append(_value(name, row[place].strip(), path, line, header[place]))
    if not values["job"]:
        raise InputError("has no job below its header", path=path)
    return _assemble(values, str(path))


def _places(header: Sequence[str], path: Path, given: Mapping[str, str]) -> dict[str, int]:
    """Return the index of each column in the file."""
    places = {}
    folded = [name.lower().replace(" ", "_").replace("-", "_") for name in header]
    for name, theirs in given.items():
        if theirs not in header:
            raise UnknownNameError(f"column of {path}", theirs, header)
        places[name] = header.index(theirs)
    for name, aliases in ALIASES.items():
        if name not in places:
            place = next((folded.index(alias) for alias in aliases if alias in folded), None)
            if place is not None and place not in places.values():
                places[name] = place
    for name, instead in (("job", ()), ("start", ("submit", "wait")), ("end", ("runtime",))):
        if name not in places and not (instead and all(other in places for other in instead)):
            raise InputError(
                f"no column for '{name}' among {', '.join(filter(None, header)) or 'none'}; "
                f"expected {' or '.join(ALIASES[name][:4])}; give --columns {name}=NAME",
                path=path,
                line=1,
                field=name,
            )
    return places


def _value(name: str, text: str, path: Path, line: int, field: str) -> Any:
    """Return the value of a cell: seconds, integers, a `Status`, or the number of listed resources."""
    if name == "status":
        word = text.lower().replace(" ", "_")
        return int(STATUS_WORDS.get(word, UNKNOWN_STATUS))
    if name == "allocated":
        return _count(text, path, line, field)
    if text.lower() in _EMPTY:
        if name == "job":
            raise InputError("is empty; expected a job number", path=path, line=line, field=field)
        return {"cores": UNKNOWN_CORES, "used": UNKNOWN_CORES, "broken": 0, "pieces": 0}.get(name, math.inf)
    if name == "job":
        text = text.rpartition("!")[2]  # Batsim: workload!job
    number = _number(text)
    if number is None or (name not in _TIMES and not (number.is_integer() and abs(number) <= 2**53)):
        wanted = "a time in seconds" if name in _TIMES else "a whole number"
        raise InputError(f"'{text}' is not {wanted}", path=path, line=line, field=field)
    return number if name in _TIMES else int(number)


def _count(text: str, path: Path, line: int, field: str) -> int:
    """Return the number of resources in a list such as ``0-3 7``."""
    count = 0
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or max(len(first), len(last)) > _MOST_DIGITS:
            raise InputError(
                f"'{text[:60]}' is not a list of resources such as 0-3 7", path=path, line=line, field=field
            )
        count += int(last) - int(first) + 1 if dash else 1
    if not 0 <= count <= 2**53:
        raise InputError(f"'{text[:60]}' lists {count} resources", path=path, line=line, field=field)
    return count or UNKNOWN_CORES


def _assemble(values: Mapping[str, list[Any]], source: str) -> Schedule:
    def times(name: str) -> IntArray | None:
        return to_us(np.array(values[name], dtype=float)) if name in values else None

    def numbers(name: str) -> IntArray | None:
        return np.array(values[name], dtype=np.int64) if name in values else None

    submit, wait, runtime = times("submit"), times("wait"), times("runtime")
    start, end, status = times("start"), times("end"), numbers("status")
    if start is None:
        assert submit is not None
        assert wait is not None
        start, wait = _sum(submit, wait), None
    if end is None:
        assert runtime is not None
        end = _sum(start, runtime)
    if status is not None:  # Batsim writes -1 for missing values of rejected jobs
        never = (status == Status.rejected) & (start < 0)
        start, end = np.where(never, NEVER, start), np.where(never, NEVER, end)
    job, cores, allocated = numbers("job"), numbers("cores"), numbers("allocated")
    assert job is not None
    for got in (allocated, numbers("used")):
        if got is not None:
            cores = got if cores is None else np.where(got > 0, got, cores)
    return Schedule(
        job=job,
        start=start,
        end=end,
        submit=submit,
        logged_submit=times("logged_submit"),
        wait=wait,
        granted=times("granted"),
        broken=np.array(values["broken"], dtype=np.bool_) if "broken" in values else None,
        broken_at=times("broken_at"),
        cores=cores,
        status=status,
        # Only gridsim has both columns; a limit alone usually means the estimate.
        limit=times("limit") if "pieces" in values else None,
        pieces=numbers("pieces") if "limit" in values else None,
        source=source,
    )


def _sum(one: IntArray, other: IntArray) -> IntArray:
    """Return the sum of two columns of times; `NEVER` if either is."""
    known = (one < NEVER) & (other < NEVER)
    return np.where(known, np.where(known, one, 0) + np.where(known, other, 0), NEVER)
