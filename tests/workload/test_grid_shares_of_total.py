"""Parts of a total: exact sums, bounds, and the distributions of the parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gridsim.errors import InputError
from gridsim.workload.synthetic.shares_of_total import (
    LOGUNIFORM,
    bounded,
    loguniform,
    rounded,
    simplex,
    simplexes,
    uniform,
    uunifast,
)

NOT_REJECTED = 0.001


def rng(seed=1):
    return np.random.default_rng(seed)


def uunifast_by_the_book(n, total, generator):
    """Compute the published recursion, with the exponent of Bini and Buttazzo."""
    parts, left = [], total
    for i in range(1, n):
        rest = left * generator.random() ** (1.0 / (n - i))
        parts.append(left - rest)
        left = rest
    return [*parts, left]


@pytest.mark.parametrize("draw", [uunifast, uniform, loguniform])
@given(n=st.integers(1, 60), least=st.integers(0, 50), above=st.integers(0, 10**10), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_parts_add_up_exactly_and_none_is_below_the_least(draw, n, least, above, seed):
    total = n * least + above
    parts = draw(n, total, rng(seed), least=least)
    assert len(parts) == n
    assert parts.sum() == total
    assert parts.min() >= least


@given(
    parts=st.lists(st.floats(0, 1e9), min_size=1, max_size=30),
    least=st.integers(0, 5),
    more=st.integers(-10, 10),
)
@settings(max_examples=100, deadline=None)
def test_rounding_reaches_any_possible_total(parts, least, more):
    total = max(round(sum(parts)) + more, len(parts) * least)
    whole = rounded(parts, total, least)
    assert whole.sum() == total
    assert whole.min() >= least


def test_the_rest_goes_to_the_largest_fractions():
    assert rounded([1.2, 3.9, 2.4, 2.5], 10).tolist() == [1, 4, 2, 3]


@pytest.mark.parametrize("place", [0, 4, 9])
def test_normalised_exponentials_are_uunifast(place):
    ours = np.array([simplex(10, 1.0, generator) for generator in [rng(1)] * 3_000])[:, place]
    generator = rng(2)
    theirs = np.array([uunifast_by_the_book(10, 1.0, generator) for _ in range(3_000)])[:, place]
    assert stats.ks_2samp(ours, theirs).pvalue > NOT_REJECTED
    assert stats.kstest(ours, stats.beta(1, 9).cdf).pvalue > NOT_REJECTED


def test_parts_above_the_least_are_those_that_discarding_would_leave():
    generator = rng(3)
    kept = [draw for draw in (simplex(5, 100.0, generator) for _ in range(20_000)) if draw.min() >= 4]
    ours = np.array([uunifast(5, 100_000, generator, least=4_000) for _ in range(3_000)]) / 1_000
    assert stats.ks_2samp(np.array(kept)[:, 0], ours[:, 0]).pvalue > NOT_REJECTED
    assert stats.ks_2samp(np.array(kept).max(axis=1), ours.max(axis=1)).pvalue > NOT_REJECTED


def test_parts_stay_below_the_most():
    parts = uunifast(100, 10_000, rng(), least=1, most=700)
    assert parts.sum() == 10_000
    assert parts.max() <= 700


def test_where_discarding_is_hopeless_the_bounded_simplex_is_drawn():
    parts = uunifast(1_000, 100_000, rng(), least=1, most=150)
    assert parts.sum() == 100_000
    assert parts.min() >= 1
    assert parts.max() <= 150


def test_too_many_parts_for_that_are_an_error_after_a_thousand_redraws():
    with pytest.raises(InputError, match=r"no division of 1000000 into 10000 parts up to 110 was found in 1,000 draws"):
        uunifast(10_000, 1_000_000, rng(), most=110)


@pytest.mark.parametrize(("n", "total"), [(3, 1.2), (3, 0.4), (6, 4.5), (4, 2.0)])
def test_drawing_within_bounds_has_the_law_of_discarding(n, total):
    generator = rng(4)
    kept = []
    while len(kept) < 2_000:
        draw = generator.random(n - 1)
        last = total - draw.sum()
        if 0 <= last <= 1:
            kept.append([*draw, last])
    ours = np.array([bounded(n, total, generator) for _ in range(2_000)])
    assert np.allclose(ours.sum(axis=1), total)
    assert ours.min() >= 0
    assert ours.max() <= 1
    for place in (0, n - 1):
        assert stats.ks_2samp(np.array(kept)[:, place], ours[:, place]).pvalue > NOT_REJECTED
    assert stats.ks_2samp(np.array(kept).max(axis=1), ours.max(axis=1)).pvalue > NOT_REJECTED


def test_drawing_thousands_within_bounds_stays_finite():
    draw = bounded(2_000, 300.0, rng())
    assert draw.sum() == pytest.approx(300)
    assert ((draw >= 0) & (draw <= 1)).all()


@given(
    jobs=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 10**9)), min_size=1, max_size=30), seed=st.integers(0, 9)
)
@settings(max_examples=60, deadline=None)
def test_many_totals_at_once_are_divided_exactly(jobs, seed):
    counts = np.array([count for count, _ in jobs])
    totals = np.array([count + above for count, above in jobs])
    parts = simplexes(totals, counts, rng(seed))
    assert np.add.reduceat(parts, np.cumsum(counts) - counts).tolist() == totals.tolist()
    assert parts.min() >= 1


def test_many_totals_at_once_have_the_law_of_one():
    parts = simplexes(np.full(3_000, 10**9), np.full(3_000, 8), rng(5)).reshape(-1, 8)
    for place in (0, 7):
        assert stats.kstest(parts[:, place] / 1e9, stats.beta(1, 7).cdf).pvalue > NOT_REJECTED


def test_loguniform_parts_spread_evenly_over_their_decades():
    parts = loguniform(5_000, 10**10, rng(6))
    low, high = LOGUNIFORM
    decades = np.log10(parts)
    shift = decades.max() - high
    law = stats.uniform(low, high - low)
    assert stats.kstest(decades - shift, law.cdf).pvalue > NOT_REJECTED


def test_uniform_parts_are_at_most_about_twice_the_mean():
    parts = uniform(10_000, 10**10, rng(7))
    assert parts.max() < 2.1e6
    assert stats.kstest(parts / parts.max(), "uniform").pvalue > NOT_REJECTED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"total": 5, "least": 1}, "10 parts of at least 1 do not fit into 5"),
        ({"total": 500, "most": 49}, "10 parts of at most 49 do not reach 500"),
    ],
)
def test_impossible_bounds_are_an_error(options, said):
    with pytest.raises(InputError, match=said):
        uunifast(10, rng=rng(), **options)
