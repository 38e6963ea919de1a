"""Claims of the paper on moldable jobs, tested on small windows of the model with scipy's tests.

The tests assert only results with a wide margin at this scale; `gridsim reproduce` judges the rest.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.record import Record
from gridsim_papers.moldable.campaign import (
    BASELINE,
    COMBINED,
    GREEDY,
    LANES,
    WEIGHTS,
    MoldableCampaign,
    Point,
    Replicate,
)
from gridsim_papers.moldable.changes import CATEGORIES, category_responses, change
from gridsim_papers.moldable.claims import EXACT
from gridsim_papers.units import Unit

WINDOWS = range(8)


@cache
def replicate(window: int) -> Replicate:
    """300 jobs of the model at base load 0.65."""
    return Replicate(MoldableCampaign(logs=("model",), jobs=300), Unit("model", window, "0.65"), None)


@cache
def record(window: int, scheme: str, load_factor: float = 100.0, sigma: float = 0.0, **where: Any) -> Record:
    return replicate(window).record(Point(load_factor=load_factor, sigma=sigma, scheme=scheme, **where))


def means(scheme: str, **where: Any) -> np.ndarray:
    """Logarithms of the mean responses, one per window."""
    records = [record(window, scheme, **where) for window in WINDOWS]
    return np.array([np.log(one.response[one.ran].mean()) for one in records])


def better(mine: str, theirs: str, **where: Any) -> float:
    """p that the first of two schemes is not better overall."""
    return float(stats.ttest_rel(means(mine, **where), means(theirs, **where), alternative="less").pvalue)


@pytest.mark.parametrize("scheme", COMBINED)
@pytest.mark.parametrize("load_factor", [100.0, 150.0])
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_the_combined_scheme_is_better_than_rigid_jobs(scheme: str, load_factor: float, sigma: float) -> None:
    """M33, M34: corners of the grid, with either weight factor."""
    assert better(scheme, BASELINE, load_factor=load_factor, sigma=sigma) < 0.025


@pytest.mark.parametrize("scheme", ["moldable-submit", "moldable-start"])
def test_fair_shares_are_better_than_the_greedy_choice(scheme: str) -> None:
    """M05."""
    assert better(scheme, GREEDY) < 0.01


def test_roots_of_weights_are_better_overall() -> None:
    """M20."""
    assert better(WEIGHTS[0], "moldable-base") < 0.001


def test_starting_on_scraps_is_worse_for_heavy_jobs() -> None:
    """X02: currently free cores instead of the best choice; the three heaviest categories together."""
    scraps, best = (heavy(scheme) for scheme in ("moldable-start?backfill=now", "moldable-start"))
    assert stats.ttest_rel(np.log(scraps), np.log(best), alternative="greater").pvalue < 0.001
    assert change(scraps, best).change > 0.5


def heavy(scheme: str) -> np.ndarray:
    """Mean response of the jobs of categories 8 to 10, one per window."""
    found = []
    for window in WINDOWS:
        groups = [category_responses(record(window, scheme)).get(name, (0, 0.0)) for name in CATEGORIES[7:]]
        found.append(sum(jobs * mean for jobs, mean in groups) / sum(jobs for jobs, _ in groups))
    return np.array(found)


def test_the_combined_scheme_is_better_than_its_predecessor_where_jobs_scale_poorly() -> None:
    """M37, at load factor 150 and sigma 2."""
    assert better(COMBINED[0], "moldable-start", load_factor=150.0, sigma=2.0) < 0.01


@pytest.mark.parametrize("scheme", [*COMBINED, "moldable-start", *LANES])
def test_jobs_of_one_size_make_no_use_of_shares(scheme: str) -> None:
    """A large range factor leaves every job unchanged and limits have no effect: all fair shares equal backfilling."""
    one = record(0, scheme, range_factor=1000.0)
    np.testing.assert_array_equal(one.cores_used, one.workload.cores)


@pytest.mark.parametrize("claim", EXACT)
def test_claims_decided_by_the_code_hold(claim: str) -> None:
    """M01, M15, M23."""
    found = EXACT[claim]()
    assert found.answer == "holds"
    assert found.n > 1000
