"""Distance between simulated and logged starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from gridsim.errors import InputError
from gridsim.metrics.agreement import _medians_drawn, agreement, agreement_by_group, largest_disagreements
from gridsim.model.time import NEVER
from gridsim.record import Promises, Record


def record(starts: list[float | None]) -> Record:
    ends = [None if start is None else start + 5 for start in starts]
    rows = [
        {"submit": row, "start": start, "end": end} for row, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    return Record.from_rows([row | {"runtime": 5, "cores": 1 + row["submit"] % 3} for row in rows])


def test_errors_are_simulated_minus_logged_starts_over_the_jobs_that_started_in_both() -> None:
    simulated = record([0.0, 11.0, None, 103.0])
    logged = np.array([0, 1, 2, NEVER // 1_000_000]) * 1_000_000
    logged[3] = NEVER
    found = agreement(simulated, logged)
    assert (found.jobs, found.only_logged, found.only_simulated) == (2, 1, 1)
    assert (found.median, found.mean, found.bias) == (5.0, 5.0, 5.0)
    assert (found.within_5, found.within_60) == (0.5, 1.0)
    assert np.isnan(found.median_low)


def test_of_a_preempted_job_the_first_start_counts_as_in_the_log() -> None:
    none = np.full(2, NEVER)
    cut = Promises(
        none, none, np.zeros(2), np.zeros(2, dtype=bool), *(np.array([each * 1_000_000]) for each in (0, 3, 7))
    )
    simulated = replace(record([20.0, 21.0]), promises=replace(cut, killed=np.array([0]), guarantees=False))
    logged = np.array([3, 21]) * 1_000_000
    found = agreement(simulated, logged)
    assert (found.mean, found.wait, found.logged_wait) == (0, 11.5, 11.5)
    assert largest_disagreements(simulated, logged)[0].start == 3


def test_rank_correlation_of_waits_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    starts = (np.arange(200) + rng.integers(0, 20, 200)).astype(float)
    logged = starts + rng.integers(-9, 10, 200)
    simulated = record(starts.tolist())
    found = agreement(simulated, (logged * 1e6).astype(np.int64))
    assert found.spearman == pytest.approx(spearmanr(starts - np.arange(200), logged - np.arange(200))[0])
    assert found.median_low <= found.median <= found.median_high


@pytest.mark.parametrize(("jobs", "blocks"), [(70, 2), (71, 2), (320, 32), (333, 32)])
def test_medians_of_draws_are_those_of_the_joined_parts(jobs: int, blocks: int) -> None:
    rng = np.random.default_rng(jobs)
    size = np.abs(np.round(rng.normal(scale=50.0, size=jobs))) + rng.choice([0.0, 0.1], jobs)  # many are equal
    parts = np.split(size, (np.arange(blocks + 1) * jobs // blocks)[1:-1])
    draws = rng.integers(0, blocks, size=(50, blocks))
    joined = [np.median(np.concatenate([parts[block] for block in draw])) for draw in draws]
    assert _medians_drawn(parts, draws).tolist() == joined


def test_an_interval_by_blocks_covers_the_median_of_correlated_errors() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(40):
        noise = np.repeat(rng.exponential(10.0, 200), 5)  # jobs err five at a time
        simulated = record(list(range(1000)))
        found = agreement(simulated, simulated.start_us - (noise * 1e6).astype(np.int64))
        covered += found.median_low <= 10.0 * np.log(2.0) <= found.median_high
    assert covered >= 34


def test_groups_and_the_largest_disagreements_name_their_jobs() -> None:
    simulated = record([0.0, 21.0, 2.0, 3.0])
    logged = np.arange(4) * 1_000_000
    by_size = agreement_by_group(simulated, logged)["size"]
    assert {name: found.mean for name, found in by_size.items()} == {"1": 0.0, "2-3": 10.0}
    worst = largest_disagreements(simulated, logged, count=1)[0]
    assert (worst.job, worst.error, worst.start, worst.logged_start) == (2, 20.0, 21.0, 1.0)


def test_a_record_without_logged_starts_is_refused() -> None:
    with pytest.raises(InputError, match="has no starts"):
        agreement(record([0.0]))
    with pytest.raises(InputError, match="2 starts for 1 jobs"):
        agreement(record([0.0]), np.zeros(2, dtype=np.int64))
