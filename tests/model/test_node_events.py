"""Failures in files of Slurm: events of nodes, runs that ended with NODE_FAIL, damaged lines, unknown clocks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.model.failures import Failures, failures_from

CLOCK: dict[str, Any] = {"clock": {"origin": 1_795_244_400.0, "zone": "UTC"}}  # 2026-11-21T07:00
EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
mini||2026-11-21T06:53:41|Unknown||Cluster Registered TRES|
mini|n3|2026-11-21T07:20:25|2026-11-21T07:21:16|DOWN*|Not responding|slurm(64030)
mini|n4|2026-11-21T07:20:25|2026-11-21T07:21:16|DOWN*|Not responding|slurm(64030)
mini|n1|2026-11-21T07:10:00|Unknown|DRAINED|disk|root(0)
mini|n2|2026-11-21T06:50:00|2026-11-21T07:00:30|FAIL|cable|root(0)
mini|n2|2026-11-21T07:30:00|2026-11-21T07:31:00|MAINT||root(0)
mini|n2|2026-11-21T06:40:00|2026-11-21T06:50:00|DOWN|before the log|root(0)
"""
RUNS = """JobID|State|Start|End|NodeList
1|COMPLETED|2026-11-21T07:00:00|2026-11-21T07:05:00|n[1-3]
2|NODE_FAIL|2026-11-21T07:05:00|2026-11-21T07:20:25|n[1,3]
2.batch|NODE_FAIL|2026-11-21T07:05:00|2026-11-21T07:20:25|n1
3|NODE_FAIL|2026-11-21T07:05:00|2026-11-21T07:40:00|n[2,5-7]
4|RUNNING|2026-11-21T07:41:00|Unknown|n2
5|PENDING|Unknown|Unknown|None assigned
6|COMPLETED|2026-11-21T07:40:00|2026-11-21T07:50:00|n5
7|COMPLETED|2026-11-21T07:43:00|2026-11-21T07:50:00|n[2,6]
"""


def _read(folder: Path, **texts: str) -> Failures:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return failures_from({"file": [f"{name}.txt" for name in texts]}, folder)


def test_events_are_failures(tmp_path: Path) -> None:
    found = _read(tmp_path, events=EVENTS).dated(CLOCK)
    assert found.trace == [
        (["n3", "n4"], 1225, 1276),
        (["n1"], 600, math.inf),
        (["n2"], 0, 30),  # it began before the log
    ]
    assert not found.inferred
    assert found.written()["file"] == "events.txt"


def test_runs_that_no_event_explains_are_inferred_failures(tmp_path: Path) -> None:
    alone = _read(tmp_path, runs=RUNS).dated(CLOCK)
    assert alone.trace == []
    assert alone.inferred == [
        [(["n1", "n3"], 1225, math.inf)],  # no job starts there again
        [(["n2"], 2400, 2460), (["n6"], 2400, 2580), (["n7"], 2400, math.inf)],  # a job starts on n5 at once
    ]
    both = _read(tmp_path, runs=RUNS, events=EVENTS).dated(CLOCK)
    assert len(both.trace) == 3
    assert both.inferred == alone.inferred[1:]
    assert both.dated(CLOCK) == both
    assert (both.written()["trace"], both.written()["inferred"]) == (3, 1)


@pytest.mark.parametrize(("second", "inferred"), [("24", 0), ("25", 0), ("26", 0), ("27", 1)])
def test_an_event_explains_a_run_that_it_contains_or_follows_by_a_second(
    second: str, inferred: int, tmp_path: Path
) -> None:
    event = f"NodeName|TimeStart|TimeEnd|State\nn3|2026-11-21T07:20:{second}|2026-11-21T07:30:00|DOWN\n"
    run = "JobID|State|Start|End|NodeList\n2|NODE_FAIL|2026-11-21T07:05:00|2026-11-21T07:20:25|n3\n"
    assert len(_read(tmp_path, event=event, run=run).dated(CLOCK).inferred) == inferred


def test_a_row_of_a_trace_explains_a_run(tmp_path: Path) -> None:
    found = _read(tmp_path, trace="node,down,up\nn3,1225,1300\nn2,2400,\n", runs=RUNS).dated(CLOCK)
    assert not found.inferred
    assert len(found.trace) == 2


def test_unix_times_and_the_unit_separator(tmp_path: Path) -> None:
    text = "JobID|State|Start|End|NodeList\n2|NODE_FAIL|1795244700|1795245625|n3\n8|COMPLETED|1795245700|0|n3\n"
    found = _read(tmp_path, runs=text.replace("|", "\x1f"))
    assert found.dated(CLOCK).inferred == [[(["n3"], 1225, 1300)]]


def test_nodes_of_several_clusters_have_the_names_of_a_grid(tmp_path: Path) -> None:
    text = EVENTS.replace("mini|n4", "other|n4")
    assert _read(tmp_path, events=text).dated(CLOCK).trace[0][0] == ["mini/n3", "other/n4"]


def test_damaged_lines_are_left_out_and_listed(tmp_path: Path) -> None:
    bad = [
        "mini|n3|2026-11-21T07:20",  # cut
        "mini|n3|2026-11-31T07:20:25|Unknown|DOWN||",  # no such day
        "mini|n3|Unknown|Unknown|DOWN||",  # no begin
        "mini|n3|2026-11-21T07:20:25|2026-11-21T07:20:24|DOWN||",  # ends before it begins
        "mini|n[3-|2026-11-21T07:20:25|Unknown|DOWN||",
        "mini|n3|2026-11-21T07:20:25|Unknown|DOWN|a|b|c",  # a bar in the reason
    ]
    found = _read(tmp_path, events=EVENTS + "\n".join([*bad, "", ""]))
    assert found.events[0].damaged == (9, 10, 11, 12, 13, 14)
    assert len(found.dated(CLOCK).trace) == 3
    assert found.dated(CLOCK).written()["damaged_lines"] == {str(tmp_path / "events.txt"): [9, 10, 11, 12, 13, 14]}
    runs = _read(tmp_path, runs=RUNS + "9|NODE_FAIL|2026-11-21T07:05:00|Unknown|n2\n")
    assert runs.events[0].damaged == (10,)


@pytest.mark.parametrize(
    ("provenance", "what"),
    [
        ({}, "events.txt line 3, field 'date': '2026-11-21T07:20:25' is a date, but the log has no start date"),
        ({**CLOCK, "undated": True}, "but the log has no dates, because its submit times were changed"),
        (
            {"clock": {"origin": 0.0, "zone": "epoch"}},
            "events.txt line 3, field 'date': is the local date .* time zone is unknown; give it, such as --timezone",
        ),
    ],
)
def test_an_unknown_clock_is_an_error(provenance: dict[str, Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=what) as error:
        _read(tmp_path, events=EVENTS).dated(provenance)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("JobID|State|Start|End\n", "nodelist"),
        ("NodeName|TimeStart|State\n", "timeend"),
        ("Colour|Shape\n", "Colour|Shape"),
        ("", "node"),
    ],
)
def test_another_table_is_an_error(text: str, column: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        _read(tmp_path, events=text)
    assert "events.txt" in str(error.value)
    assert column in str(error.value)


def test_a_repeated_trace_of_slurm_must_end_within_its_period(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(EVENTS)
    with pytest.raises(InputError, match="node 'n1' is absent until inf s, beyond the period of 86400 s"):
        failures_from({"file": "events.txt", "repeat": "1d"}, tmp_path).dated(CLOCK)
