"""Columns as data frames: names, dates and units."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.simulation import simulate


def log(**provenance: Any) -> Workload:
    """Return two jobs, of ann and of a user whom the log does not name."""
    jobs = Workload.from_columns(
        submit=[0, 60],
        runtime=[10, 20.5],
        cores=[2, 4],
        labels={"user": [1, -1], "queue": [3, -1]},
        logged={"wait": [5, np.nan]},
        provenance=provenance,
    )
    object.__setattr__(jobs, "names", {"user": ("", "ann")})
    return jobs


DATED = {"clock": {"origin": 1_700_000_000, "zone": "Europe/Berlin"}}


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas")


@pytest.mark.long
def test_a_frame_of_a_workload_has_names_and_seconds(pandas: Any) -> None:
    frame = log().to_pandas()
    columns = ["job", "user", "queue", "cores", "submit", "runtime", "estimate", "logged_wait"]
    assert frame.columns.tolist() == columns
    assert frame["user"][0] == "ann"
    assert frame[["user", "queue"]].isna().to_numpy().tolist() == [[False, False], [True, True]]
    assert frame["runtime"].tolist() == [10, 20.5]
    assert {name: frame.attrs["units"].get(name) for name in ("job", "cores", "submit", "logged_wait")} == {
        "job": None,
        "cores": "cores",
        "submit": "s",
        "logged_wait": "s",
    }


def test_dates_are_reported_in_the_zone_of_the_log(pandas: Any) -> None:
    frame = log(**DATED).to_pandas()
    assert frame["submit_at"].astype(str).tolist() == ["2023-11-14 23:13:20+01:00", "2023-11-14 23:14:20+01:00"]
    assert str(frame["submit_at"].dt.tz) == "Europe/Berlin"


def test_a_clock_with_an_unknown_zone_has_no_dates(pandas: Any) -> None:
    frame = log(clock={"origin": 1_700_000_000, "zone": "local"}).to_pandas()
    assert frame["submit_at"].dt.tz is None
    assert str(frame["submit_at"][0]) == "2023-11-14 22:13:20"


def test_a_log_without_dates_has_no_column_of_them(pandas: Any) -> None:
    assert "submit_at" not in log().to_pandas()


def test_a_frame_of_a_result_has_names_and_dates_where_jobs_ran(pandas: Any) -> None:
    frame = simulate(log(**DATED), platform=Platform.single(3), policy="easy").to_pandas()
    assert frame["user"][0] == "ann"
    assert frame["start_at"].isna().tolist() == [False, True]  # the second job is too wide
    assert str(frame["end_at"][0]) == "2023-11-14 23:13:30+01:00"
    assert frame.attrs["units"]["wait"] == "s"


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install pandas"):
        log(**DATED).to_pandas()
