"""Schedules in every format: they are read as they are, and every representable violation is found."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.errors import InputError, UnknownNameError
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.record import Status
from gridsim.testing.invariants import violations, violations_of
from gridsim.testing.schedule_reader import parse_columns, read_schedule
from gridsim.testing.violation import KINDS
from gridsim.workload.formats.swf_writer import write_swf

JOBS = Workload.from_columns(
    job=[11, 12, 13, 14], submit=[0, 1, 2, 3], runtime=[10, 10, 5, 9], estimate=[10, 20, 5, 6], cores=[3, 4, 1, 2]
)
"""Job 14 reaches its estimate; job 12 requested too much time."""

Row = dict[str, Any]
Rows = list[Row]


def sound() -> Rows:
    """Rows of a sound schedule on four cores."""
    columns = ("job", "submit", "start", "end", "wait", "cores", "status", "granted")
    return [
        dict(zip(columns, values, strict=True))
        for values in (
            (11, 0, 0, 10, 0, 3, "completed", 10),
            (12, 1, 10, 20, 9, 4, "completed", None),
            (13, 2, 2, 7, 0, 1, "completed", 7),
            (14, 3, 20, 26, 17, 2, "killed_walltime", None),
        )
    ]


def _set(row: int, **values: Any) -> Callable[[Rows], Rows]:
    def change(rows: Rows) -> Rows:
        rows[row] |= values
        return rows

    return change


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "unknown-job": _set(3, job=99),
    "duplicate-job": lambda rows: [*rows, rows[2]],
    "missing-job": lambda rows: rows[:3],
    "no-outcome": _set(3, end=None, status="nobody knows"),
    "negative-time": _set(0, start=-2, wait=-2, end=8),
    "ends-before-start": _set(3, end=18),
    "starts-before-submit": _set(2, start=0, wait=-2, end=5),
    "wrong-submit": _set(1, submit=2, wait=8),
    "wrong-wait": _set(1, wait=8),
    "wrong-end": _set(2, end=8),
    "wrong-cores": _set(2, cores=2),
    "too-wide": _set(1, cores=5),
    "oversubscribed": _set(3, start=19, wait=16, end=25),
    "wrong-status": _set(3, status="completed"),
    "rejected-fits": _set(3, status="rejected", start=None, end=None, wait=None),
    "deadline-missed": _set(2, granted=6),
    "promised-yet-refused": _set(2, status="unadmitted", start=None, end=None, wait=None, granted=7),
}
"""Insertion of each kind of violation."""


# -- formats ---------------------------------------------------------------------------------------------------------


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def ours(rows: Rows) -> str:
    """The file of a result directory."""
    lines = ["job,cores,submit,start,end,wait,runtime,estimate,status,granted"]
    jobs = {int(job): row for row, job in enumerate(JOBS.job)}
    for row in rows:
        at = jobs.get(row["job"], 0)
        times = [JOBS.runtime[at] // 10**6, JOBS.estimate[at] // 10**6]
        values = [row[name] for name in ("job", "cores", "submit", "start", "end", "wait")]
        lines.append(",".join(map(_cell, [*values, *times, row["status"], row["granted"]])))
    return "\n".join(lines) + "\n"


def named(rows: Rows) -> str:
    """A CSV with custom columns, semicolons and a byte-order mark."""
    lines = ["\ufeffNr;when asked;begins;stops;size;how it went;promise"]
    names = ("job", "submit", "start", "end", "cores", "status", "granted")
    lines += [";".join(_cell(row[name]) for name in names) for row in rows]
    return "\r\n".join(lines) + "\r\n"


NAMES = {
    "job": "Nr",
    "submit": "when asked",
    "start": "begins",
    "end": "stops",
    "cores": "size",
    "status": "how it went",
    "granted": "promise",
}


def batsim(rows: Rows) -> str:
    """Batsim's ``jobs.csv``."""
    states = {"completed": "COMPLETED_SUCCESSFULLY", "killed_walltime": "COMPLETED_WALLTIME_REACHED"}
    lines = [
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources"
    ]
    for row in rows:
        ran = row["start"] is not None and row["end"] is not None
        state = states.get(row["status"], row["status"].upper())
        length = row["end"] - row["start"] if ran else -1
        start, end, wait = (
            -1 if row[name] is None and state == "REJECTED" else row[name] for name in ("start", "end", "wait")
        )
        values = [row["job"], "w0", "p", row["submit"], row["cores"], 100, 1, state, start, length, end, wait, 0, 0]
        allocated = f"0-{row['cores'] - 1}" if row["cores"] > 1 else "0"
        lines.append(",".join(map(_cell, [*values, allocated if ran else ""])))
    return "\n".join(lines) + "\n"


def swf(rows: Rows) -> str:
    """An SWF file whose wait and run time are the schedule."""
    lines = ["; Version: 2.2", "; MaxProcs: 4"]
    for row in rows:
        known = row["end"] is not None
        wait = -1 if row["start"] is None else row["start"] - row["submit"]
        runtime = row["end"] - row["start"] if known else -1
        state = {"completed": 1, "killed_walltime": 0, "rejected": 5}.get(row["status"], -1)
        head = [row["job"], row["submit"], wait, runtime, row["cores"], -1, -1, row["cores"], 100, -1, state]
        lines.append(" ".join(map(str, [*head, *[-1] * 7])))
    return "\n".join(lines) + "\n"


FORMATS: dict[str, tuple[str, Callable[[Rows], str], dict[str, str] | None, set[str]]] = {
    "ours": ("jobs.csv", ours, None, set(CHANGES)),
    # The format contains no wait.
    "named columns": ("schedule.csv", named, NAMES, set(CHANGES) - {"wrong-wait"}),
    # The format contains no promised deadlines.
    "batsim": ("jobs.csv", batsim, None, set(CHANGES) - {"deadline-missed", "promised-yet-refused"}),
    # Start is submit plus wait; the format has no promises, and its states do not distinguish kills from rejections.
    "swf": (
        "schedule.swf",
        swf,
        None,
        set(CHANGES) - {"wrong-wait", "deadline-missed", "promised-yet-refused", "wrong-status", "rejected-fits"},
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_sound_schedule_is_valid_in_every_format(name: str, tmp_path: Path) -> None:
    file, write, columns, _ = FORMATS[name]
    (tmp_path / file).write_text(write(sound()))
    schedule = read_schedule(tmp_path / file, columns=columns)
    assert len(schedule) == 4
    assert violations_of(schedule, JOBS, cores=4) == []


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in FORMATS for kind in CHANGES if kind in FORMATS[name][3]]
)
def test_a_planted_violation_is_found_in_every_format_that_can_hold_it(name: str, kind: str, tmp_path: Path) -> None:
    file, write, columns, _ = FORMATS[name]
    (tmp_path / file).write_text(write(CHANGES[kind](sound())))
    schedule = read_schedule(tmp_path / file, columns=columns)
    assert kind in {violation.kind for violation in violations_of(schedule, JOBS, cores=4)}


def test_runs_cut_short_are_in_a_separate_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(ours(sound()))
    (tmp_path / "killed_runs.csv").write_text("job,cores,start,end\n14,2,19,21\n")
    (violation,) = violations_of(read_schedule(tmp_path), JOBS, cores=4, limit=1)[-1:]
    assert (violation.kind, violation.jobs) == ("two-runs-at-once", (14,))
    assert set(CHANGES) | {violation.kind} == set(KINDS), "every kind can be read from a result directory"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_schedules_are_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "schedule.swf.packed").write_bytes(pack(swf(sound()).encode()))
    assert violations_of(read_schedule(tmp_path / "schedule.swf.packed"), JOBS, cores=4) == []


@pytest.mark.parametrize("overrun", ["kill", "extend"])
def test_our_own_results_are_valid(overrun: Any, tmp_path: Path) -> None:
    result = gs.simulate(JOBS, platform=gs.Platform.single(3), policy="easy", overrun=overrun)
    result.write(tmp_path)
    schedule = read_schedule(tmp_path)
    assert schedule.status is not None
    assert schedule.status.tolist().count(Status.rejected) == 1
    assert violations_of(schedule, JOBS, cores=3, overrun=overrun) == []
    assert violations(result.record, overrun=overrun) == []


def test_our_own_swf_schedules_are_valid(tmp_path: Path) -> None:
    result = gs.simulate(JOBS, platform=gs.Platform.single(3), policy="easy")
    write_swf(JOBS, tmp_path / "out.swf", record=result.record)
    assert violations_of(read_schedule(tmp_path / "out.swf"), JOBS, cores=3) == []


def test_start_may_be_reported_as_submit_and_wait_and_end_as_runtime(tmp_path: Path) -> None:
    path = tmp_path / "waits.csv"
    path.write_text("id,submit_time,waiting_time,execution_time\n12,1,9,10\n11,0,0,10\n13,2,0,5\n14,3,17,6\n")
    schedule = read_schedule(path)
    assert schedule.start.tolist() == [10**7, 0, 2 * 10**6, 2 * 10**7]
    assert violations_of(schedule, JOBS, cores=4) == []


def test_batsim_names_and_lists_of_resources(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submission_time,requested_number_of_resources,final_state,starting_time,finish_time,allocated_resources\n"
        "w0!11,0,3,COMPLETED_SUCCESSFULLY,0,10,0-1 3\n"
        "w0!12,1,4,REJECTED,-1,-1,\n"
    )
    schedule = read_schedule(path)
    assert schedule.job.tolist() == [11, 12]
    assert schedule.cores is not None
    assert schedule.cores.tolist() == [3, 4]
    assert schedule.start.tolist() == [0, NEVER]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job,start\n1,2\n", "line 1, field 'end': no column for 'end'.*--columns end=NAME"),
        ("job,start,end\n1,soon,3\n", "line 2, field 'start': 'soon' is not a time in seconds"),
        ("job,start,end\n1.5,2,3\n", "line 2, field 'job': '1.5' is not a whole number"),
        ("job,start,end\n1,2,3\n2,3\n", "line 3: has 2 fields; the header has 3"),
        ("job,start,end\n", "no job below its header"),
        ("", "no column for 'job'"),
        ("job,start,end,allocated_resources\n1,2,3,a-b\n", "line 2, field 'allocated_resources'.*such as 0-3 7"),
        ("; SWF\n1 2 3\n", "line 2: has 3 fields; expected 18"),
        ("; SWF\n" + " ".join(["1"] * 17) + " x\n", "line 2, field '18': 'x' is not a number"),
        ("; only a header\n", "has no job"),
    ],
)
def test_input_that_cannot_be_understood_is_reported_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=f"schedule.txt.*{message}"):
        read_schedule(path)


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.csv: cannot be read"):
        read_schedule(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match=r"neither jobs.csv nor jobs.parquet"):
        read_schedule(tmp_path)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(swf(sound()).encode())[:40])
    with pytest.raises(InputError, match=r"cut.gz: cannot be read"):
        read_schedule(tmp_path / "cut.gz")


def test_columns_are_mapped_by_name() -> None:
    assert parse_columns("job=id, start=begin time") == {"job": "id", "start": "begin time"}
    with pytest.raises(UnknownNameError, match="did you mean 'start'"):
        parse_columns("stat=begin")
    with pytest.raises(InputError, match="not column=name"):
        parse_columns("job")


def test_a_mapped_column_that_is_not_there_answers_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "schedule.csv"
    path.write_text("id,begin,finish\n1,2,3\n")
    with pytest.raises(UnknownNameError, match="did you mean 'begin'"):
        read_schedule(path, columns={"start": "begins"})
