"""Maintenance windows and drains: tables, times and names of nodes."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.model.time import NEVER
from gridsim.model.windows import Window, planned, read_windows, windows_from

NODES = ("n-0", "n-1", "n-2", "n-3")
RESERVED: dict[str, Any] = {"kind": "reservation", "id": "r", "nodes": ["n-0"], "begin": 0, "end": 9, "users": ["ann"]}
DATED = {"clock": {"origin": 0, "zone": "UTC"}}


def test_times_and_host_lists_are_read(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_text(
        """
[[window]]
id = "a"
nodes = ["n-[0-1]", "n-3"]
begin = "1h"
end = 1970-01-01T02:00:00
announced = 60
[[window]]
kind = "drain"
nodes = ["ALL"]
begin = 5
"""
    )
    one, two = planned(read_windows(file), NODES, DATED)
    assert (one.nodes, one.begin, one.end, one.announced, one.stops) == (
        ("n-0", "n-1", "n-3"),
        3600 * 10**6,
        7200 * 10**6,
        60 * 10**6,
        True,
    )
    assert (two.nodes, two.end, two.announced, two.stops) == (NODES, NEVER, 5 * 10**6, False)


def test_a_later_announcement_replaces_a_window_of_the_same_name() -> None:
    found = planned(
        [Window(["n-0"], 100, 200, announced=0, id="a"), Window(["n-1"], 150, 250, announced=50, id="a")], NODES, {}
    )
    assert [it.deleted for it in found] == [50 * 10**6, NEVER]
    cancelled = planned(
        [Window(["n-0"], 100, 200, announced=0, id="a"), Window(["n-1"], 150, 150, announced=50, id="a")], NODES, {}
    )
    assert [(it.nodes, it.deleted) for it in cancelled] == [(("n-0",), 50 * 10**6)]


def test_windows_without_length_or_nodes_are_left_out() -> None:
    windows = [Window([], 0, 10), Window(["n-0"], 10, 10), Window(["n-0"], 10, 20, announced=5, deleted=5)]
    assert planned(windows, NODES, {}) == []


def test_rolling_maintenance_is_a_list_of_windows() -> None:
    table = {"id": "r", "nodes": ["n-[0-3]"], "at_once": 3, "begin": 10, "length": 5, "announced": 0}
    found = windows_from([table])
    assert [(it.id, it.nodes, it.begin, it.end, it.announced) for it in found] == [
        ("r-0", ("n-0", "n-1", "n-2"), 10, 15, 0),
        ("r-1", ("n-3",), 15, 20, 0),
    ]


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"nodes": ["n-0"]}, "window.0.begin': is missing"),
        ({"begin": 0}, "window.0.nodes': is missing"),
        ({"nodes": "n-0", "begin": 0}, "expected a list of names"),
        ({"nodes": ["n-0"], "begin": 0, "kind": "closed"}, "expected one of maintenance, drain, reservation"),
        ({"nodes": ["n-0"], "begin": 0, "kind": "reservation", "users": ["ann"]}, "window.0.id': is missing"),
        ({"nodes": ["n-0"], "begin": 0, "kind": "reservation", "id": "r"}, "window.r.users': is missing"),
        ({"nodes": ["n-0"], "begin": 0, "users": ["ann"]}, "kind': is 'maintenance'; only a reservation has users"),
        ({"nodes": 2, "begin": 0}, "nodes': is 2; expected a list of names"),
        ({**RESERVED, "nodes": 0}, "nodes': is 0; expected a list of names"),
        ({**RESERVED, "nodes": True}, "nodes': is True; expected names, or a number"),
        ({**RESERVED, "accounts": "a"}, "accounts': is 'a'; expected a list of names"),
        ({**RESERVED, "node_cores": 0}, "node_cores': is 0; expected a whole number from 1"),
        ({"nodes": ["n-0"], "begin": 0, "at_begin": "kill"}, "expected one of requeue, wait"),
        ({"nodes": ["n-0"], "begin": True}, "expected seconds, or a text"),
        ({"nodes": ["n-0"], "begin": 0, "size": 4}, "size"),
        ({"nodes": ["n-0"], "begin": 0, "at_once": 1}, "length': is None; expected a number"),
        ({"nodes": ["n-0"], "begin": 0, "at_once": 0, "length": 5}, "at_once': is 0"),
        (
            {"nodes": ["n-0"], "begin": 0, "at_once": math.inf, "length": 5},
            "is inf; expected a number from 1",
        ),
        ({**RESERVED, "id": 3}, "window.3.id': is 3; expected a text"),
        ({**RESERVED, "node_cores": 10**30}, "node_cores': is an integer with too many digits"),
    ],
)
def test_a_wrong_table_is_an_error(table: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        windows_from([table])


@pytest.mark.parametrize(
    ("window", "what"),
    [
        (Window(["n-0"], 20, 10), "window.0.end': is 10, before begin"),
        (Window(["n-0"], "1996-07-01T12:00"), "is a date, but the log has no start date"),
        (Window(["n-0"], "soon"), "is not a time"),
        (Window(["n-0"], -1), "expected a time from 0"),
        (Window(["n-0"], 20, announced=10, id="d"), "window.d.announced': is given without end"),
    ],
)
def test_a_wrong_time_is_an_error(window: Window, what: str) -> None:
    with pytest.raises(InputError, match=what):
        planned([window], NODES, {})


def test_rolling_maintenance_from_a_date_lasts_its_seconds_through_a_change_of_the_clock() -> None:
    dates = {"header": {"UnixStartTime": ["1792864800"], "TimeZoneString": ["Europe/Berlin"]}}  # 2026-10-24T20:00
    table = {"nodes": ["n-[0-1]"], "at_once": 1, "begin": datetime(2026, 10, 24, 22), "length": 7200, "gap": 3600}
    table["announced"] = datetime(2026, 10, 24, 21)
    found = planned(windows_from([table]), ["n-0", "n-1"], dates)
    hour = 3600 * 10**6
    assert [(it.begin // hour, it.end // hour, it.announced // hour) for it in found] == [(2, 4, 1), (5, 7, 1)]
    with pytest.raises(InputError, match="but the log has no start date"):
        planned(windows_from([table]), ["n-0", "n-1"], {})


def test_rolling_maintenance_from_a_duration() -> None:
    found = planned(windows_from([{"nodes": ["a", "b"], "at_once": 1, "begin": "2h", "length": 60}]), ["a", "b"], {})
    assert [(it.begin // 10**6, it.end // 10**6) for it in found] == [(7200, 7260), (7260, 7320)]


def test_a_number_of_nodes_is_the_first_that_no_other_window_names() -> None:
    windows = [
        Window(2, 10, 20, "reservation", id="r", users=["ann"]),
        Window(["n-0"], 0, 10),
        Window(["n-1"], 19, 30),
    ]
    assert planned(windows, NODES, {})[0].nodes == ("n-0", "n-2")
    with pytest.raises(InputError, match=r"window\.r\.nodes': is 4, but 3 nodes are in no other window"):
        planned([Window(4, 10, 20, "reservation", id="r", users=["ann"]), windows[2]], NODES, {})


def test_reservations_of_slurm_are_windows(tmp_path: Path) -> None:
    file = tmp_path / "reservations"
    file.write_text(
        "ReservationName=a StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00 Duration=01:00:00\n"
        "   Nodes=n-[0-1] NodeCnt=2 CoreCnt=4 Features=(null) Flags=SPEC_NODES\n"
        "     NodeName=n-[0-1] CoreIDs=0-1\n"
        "   TRES=cpu=4\n   Users=ann,bob Accounts=(null) Licenses=(null) State=INACTIVE\n\n"
        "ReservationName=m StartTime=1970-01-01T03:00:00 EndTime=1970-01-01T04:00:00 Created=1970-01-01T00:10:00\n"
        "   Nodes=ALL Flags=MAINT,IGNORE_JOBS Users=root Accounts=(null)\n"
        "ReservationName=l StartTime=1970-01-01T03:00:00 EndTime=1970-01-01T04:00:00 Nodes=(null) Users=ann\n"
    )
    one, two = planned(read_windows(file), NODES, DATED)
    assert (one.id, one.kind, one.nodes, one.begin, one.announced) == (
        "a",
        "reservation",
        NODES[:2],
        36 * 10**8,
        36 * 10**8,
    )
    assert (one.users, one.accounts, one.node_cores, one.stops) == ({"ann", "bob"}, frozenset(), 2, False)
    assert (two.id, two.kind, two.nodes, two.announced, two.stops) == ("m", "maintenance", NODES, 6 * 10**8, False)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Flags=DAILY Users=ann", "field 'Flags': of reservation 'a': it is repeated or has a floating start"),
        ("Users=-ann", "field 'Users': of reservation 'a': it excludes users"),
        ("NodeName=n-0 CoreIDs=0 NodeName=n-1 CoreIDs=0-1 Users=ann", "field 'CoreIDs': .* different numbers of cores"),
    ],
)
def test_a_reservation_of_slurm_that_is_not_supported_is_an_error(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "reservations"
    file.write_text(f"\nReservationName=a StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00 Nodes=n-0 {text}\n")
    with pytest.raises(InputError, match=f"line 2, {what}"):
        read_windows(file)
