"""Dates along an axis: each appears once, in the log's zone, through changes to and from summer time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gridsim.model.dates import Calendar, calendar_of
from gridsim.report.calendar import offsets, ticks

BERLIN = ZoneInfo("Europe/Berlin")


def test_a_page_has_the_changes_of_the_utc_offset() -> None:
    calendar = Calendar(datetime(2026, 3, 28, 12, tzinfo=BERLIN).timestamp(), BERLIN)
    (first, before), (change, after) = offsets(calendar, 0.0, 30 * 86_400.0)
    assert (first, before, after) == (0.0, 3600, 7200)
    assert calendar.date(change).isoformat() == "2026-03-29T03:00:00+02:00"
    assert calendar.date(change - 1).isoformat() == "2026-03-29T01:59:59+01:00"


def test_ticks_say_their_date_once_and_what_they_share_is_the_label() -> None:
    local = calendar_of({"clock": {"origin": datetime(2025, 12, 31, tzinfo=UTC).timestamp(), "zone": "local"}})
    assert local is not None
    assert ticks(local, [82_800, 84_600]) == (["23:00", "23:30"], "31 December 2025, local time")
    assert ticks(local, [64_800, 86_400, 108_000]) == (
        ["18:00\n31 Dec\n2025", "00:00\n1 Jan\n2026", "06:00"],
        "local time",
    )
    assert ticks(local, [86_400, 172_800]) == (["1 Jan", "2 Jan"], "2026, local time")
    assert ticks(local, [1.0]) == (["00:00:01"], "31 December 2025, local time")
