"""Dates of a log's clock."""

from __future__ import annotations

from datetime import datetime

import pytest

from gridsim.model.dates import Calendar, calendar_of
from gridsim.model.workload import Workload
from gridsim.number_formatting import between, when
from gridsim.workload.transform.load_factor import LoadFactor

BERLIN = {"header": {"UnixStartTime": ["1792800000"], "TimeZoneString": ["Europe/Berlin"]}}  # 2026-10-24 02:00
DAY = 86_400


def test_the_clock_of_a_zone_is_put_back_between_two_instants() -> None:
    calendar = calendar_of(BERLIN)
    assert calendar is not None
    assert (when(0, calendar), when(2 * DAY, calendar)) == ("2026-10-24 02:00", "2026-10-26 01:00")
    assert calendar.seconds(datetime(2026, 10, 26, 1)) == 2 * DAY
    assert between(3600, 2 * DAY, calendar) == "2026-10-24 03:00 to 2026-10-26 01:00"


@pytest.mark.parametrize(
    ("clock", "zone", "date"),
    [
        ({"origin": 1_795_244_026, "zone": "local"}, "", "2026-11-21 06:53:46"),
        ({"origin": 1_795_244_026, "zone": "epoch"}, "UTC", "2026-11-21 06:53:46"),
        ({"origin": 1_795_244_026, "zone": "Asia/Tokyo"}, "Asia/Tokyo", "2026-11-21 15:53:46"),
    ],
)
def test_the_zone_of_a_log_is_that_of_its_dates(clock: dict[str, object], zone: str, date: str) -> None:
    calendar = calendar_of({"clock": clock})
    assert calendar is not None
    assert (calendar.zone_name, when(0, calendar)) == (zone, date)


def test_a_log_that_does_not_say_when_it_began_has_no_dates() -> None:
    for header in ({}, {"UnixStartTime": ["0"]}, {"UnixStartTime": ["1" + 20 * "0"]}):
        assert calendar_of({"header": header}) is None
    assert when(2 * DAY + 3600) == "2 d 01:00:00"
    assert when(1e12, Calendar(0)) == "11574074 d 01:46:40"


def test_arrivals_that_were_moved_have_no_dates() -> None:
    log = Workload.from_columns(submit=[0, 100], runtime=[1, 1], cores=[1, 1]).with_provenance(**BERLIN)
    assert calendar_of(log.provenance) is not None
    assert calendar_of(LoadFactor(120).apply(log).provenance) is None
    assert calendar_of(LoadFactor(100).apply(log).provenance) is not None


def test_a_header_with_an_offset_alone_has_dates_of_it() -> None:
    calendar = calendar_of({"header": {"UnixStartTime": ["86400"], "TimeZone": ["3600"]}})
    assert calendar is not None
    assert calendar.date(0).isoformat() == "1970-01-02T01:00:00+01:00"
    assert calendar.zone_name == "UTC+01:00"
    assert calendar_of({"header": {"UnixStartTime": ["86400"], "TimeZone": ["east"]}}) == Calendar(86_400.0)
