"""Spread over users by time, against a slow direct implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim.metrics.fairness import FEWEST_USERS, fairness_over_time, gini, large_users, period
from gridsim.metrics.responsiveness import bounded_slowdown
from gridsim.model.random_streams import stream
from gridsim.record import Record

DAY = 86_400.0


def made(jobs: int = 400, days: int = 20, users: int = 6) -> Record:
    rng = stream(3, "test")
    submit = np.sort(rng.uniform(0, days * DAY, jobs))
    rows: list[dict[str, Any]] = []
    for at in submit.tolist():
        start = at + float(rng.exponential(2000))
        end = start + float(rng.uniform(5, 5000))
        row = {"submit": at, "start": start, "end": end, "cores": int(rng.integers(1, 4))}
        rows.append({**row, "user": int(rng.integers(-1, users))})
    rows[7] |= {"start": None, "end": None, "runtime": 5.0}
    return Record.from_rows(rows, cores=64)


def test_every_period_is_what_a_loop_over_its_users_finds() -> None:
    record = made()
    found = fairness_over_time(record)
    assert found is not None
    assert np.diff(found.edges_s) == pytest.approx(DAY)
    user, values = record.workload.labels["user"], bounded_slowdown(record)
    for row, (low, high) in enumerate(zip(found.edges_s[:-1], found.edges_s[1:], strict=True)):
        inside = (record.submit >= low) & (record.submit < high) & (user >= 0) & record.ran
        means = np.array([values[inside & (user == one)].mean() for one in np.unique(user[inside])])
        assert (found.users[row], found.jobs[row]) == (len(means), inside.sum())
        assert found.slowdown[row] == pytest.approx(means.mean())
        assert found.gini[row] == pytest.approx(gini(means) if len(means) >= FEWEST_USERS else np.nan, nan_ok=True)


def test_the_share_of_the_largest_users_is_the_cores_they_held() -> None:
    record = made(users=9)
    found = fairness_over_time(record)
    assert found is not None
    mine = np.isin(record.workload.labels["user"], large_users(record)) & record.ran
    assert len(large_users(record)) == 2
    held = np.zeros(len(found.share))
    for row, (low, high) in enumerate(zip(found.edges_s[:-1], found.edges_s[1:], strict=True)):
        inside = np.minimum(record.end, high) - np.maximum(record.start, low)
        held[row] = (record.workload.cores * inside)[mine & (inside > 0)].sum() / (high - low) / 64
    assert found.share == pytest.approx(held)


def test_jobs_that_are_cut_do_not_count() -> None:
    record = made()
    found = fairness_over_time(record, rows=record.submit >= 5 * DAY + record.submit[0])
    assert found is not None
    assert (found.jobs[:5] == 0).all()
    assert np.isnan(found.gini[:5]).all()
    assert found.jobs[5] > 0


def test_slowdowns_without_waits_are_equal() -> None:
    rows = [{"submit": DAY * day, "start": DAY * day, "end": DAY * day + 9, "user": day % 4} for day in range(100)]
    found = fairness_over_time(Record.from_rows([{**row, "cores": 1} for row in rows], cores=4))
    assert found is not None
    assert set(found.gini[np.isfinite(found.gini)].tolist()) == {0.0}


@pytest.mark.parametrize(
    ("jobs", "days", "length"),
    [(1000, 365, 28 * DAY), (20_000, 365, 7 * DAY), (10_000, 90, DAY), (300, 20, DAY), (2000, 1, 3600.0), (50, 0, 0.0)],
)
def test_periods_suit_the_log(jobs: int, days: int, length: float) -> None:
    rows = [{"submit": at, "start": at, "end": at + 1} for at in np.linspace(0, days * DAY, jobs).tolist()]
    record = Record.from_rows(rows)
    assert period(record) == length
    if length:
        assert 12 <= days * DAY / length < 150


def test_a_log_without_users_has_none() -> None:
    rows = [{"submit": DAY * day, "start": DAY * day, "end": DAY * day + 9} for day in range(100)]
    assert fairness_over_time(Record.from_rows(rows)) is None
