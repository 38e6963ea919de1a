"""Speedups: properties of Downey's model, tables calculated by hand, and invalid laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim import registry
from gridsim.errors import InputError
from gridsim.model.speedup import Amdahl, Downey, Linear, Table, fitted, useful_maximum, work

CORES = np.arange(1, 301)
parallelisms = st.one_of(st.integers(1, 120).map(float), st.floats(1, 120))
sigmas = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 4))


@given(parallelisms, sigmas)
def test_downeys_speedup_never_falls_and_stays_below_cores_and_parallelism(average: float, sigma: float) -> None:
    speedup = Downey(average, sigma).speedup(CORES)
    assert math.isclose(speedup[0], 1.0)
    assert (np.diff(speedup) >= -1e-12 * speedup[1:]).all()
    assert (speedup <= np.minimum(CORES, average) * (1 + 1e-12)).all()


@given(parallelisms, sigmas)
def test_downeys_efficiency_never_rises(average: float, sigma: float) -> None:
    held = CORES * Downey(average, sigma).relative(CORES)
    assert (np.diff(held) >= -1e-12 * held[1:]).all()


@given(parallelisms)
def test_both_regimes_of_downey_agree_at_sigma_one(average: float) -> None:
    low, high = (Downey(average, sigma).speedup(CORES) for sigma in (1.0, math.nextafter(1.0, 2.0)))
    np.testing.assert_allclose(low, high, rtol=1e-12)


@given(st.integers(1, 60), st.integers(0, 400).map(lambda hundredths: hundredths / 100))
def test_the_pieces_of_downeys_speedup_meet(average: int, sigma: float) -> None:
    for bound in (average, 2 * average - 1, average + average * sigma - sigma):
        around = Downey(average, sigma).speedup(np.array([bound * (1 - 1e-12), bound, bound * (1 + 1e-12)]))
        np.testing.assert_allclose(around, around[1], rtol=1e-10)


@given(st.floats(0, 4))
def test_a_parallelism_of_one_is_no_speedup(sigma: float) -> None:
    np.testing.assert_allclose(Downey(1.0, sigma).speedup(CORES), 1.0)


@given(parallelisms)
def test_without_variation_downeys_speedup_is_linear_up_to_the_parallelism(average: float) -> None:
    np.testing.assert_allclose(Downey(average, 0).speedup(CORES), np.minimum(CORES, average))


@given(
    st.integers(8, 960).map(lambda eighths: eighths / 8), st.integers(0, 400).map(lambda hundredths: hundredths / 100)
)
def test_the_useful_maximum_is_the_saturation_of_the_formula(average: float, sigma: float) -> None:
    law = Downey(average, sigma)
    useful = useful_maximum(law.relative(np.arange(1, 1001)))
    np.testing.assert_array_equal(useful, np.minimum(np.arange(1, 1001), law.saturation))


@pytest.mark.parametrize(
    ("average", "sigma", "cores"), [(2.5, 0, 3), (2.5, 1, 4), (2.5, 0.1, 4), (3, 3, 9), (11, 1.1, 22), (1, 2, 1)]
)
def test_saturation_is_the_bound_rounded_up(average: float, sigma: float, cores: int) -> None:
    assert Downey(average, sigma).saturation == cores


def test_downey_takes_the_maximum_of_a_job_where_no_parallelism_is_given() -> None:
    assert fitted(Downey(sigma=0.5), 16) == Downey(16, 0.5)
    assert fitted(Downey(4, 0.5), 16) == Downey(4, 0.5)
    assert fitted(Linear(), 16) == Linear()
    with pytest.raises(InputError, match="has no average parallelism"):
        Downey().relative(CORES)


@given(st.floats(0, 1))
def test_amdahls_speedup_ends_at_the_serial_part(serial: float) -> None:
    relative = Amdahl(serial).relative(CORES)
    np.testing.assert_allclose(relative, serial + (1 - serial) * Linear().relative(CORES))
    assert (np.diff(relative) <= 0).all()


def test_everything_serial_makes_one_core_the_useful_maximum() -> None:
    assert useful_maximum(Amdahl(1).relative(CORES)).max() == 1
    assert useful_maximum(Linear().relative(CORES)).tolist() == CORES.tolist()


TABLE = Table([(16, 60), (4, 100.0), (8, 55), (8, 70), (32, 20)])


def test_a_table_keeps_rows_that_are_faster_than_all_before() -> None:
    assert [row.tolist() for row in TABLE.points] == [[4, 8, 32], [100, 55, 20]]
    assert (TABLE.first, TABLE.last) == (4, 32)
    assert useful_maximum(TABLE.relative(np.arange(1, 65)))[-1] == 32


def test_a_table_is_interpolated_in_logarithms_and_continues_at_its_ends() -> None:
    found = TABLE.relative(np.array([1, 2, 4, 8, 16, 32, 33, 500]))
    np.testing.assert_allclose(found, [400, 200, 100, 55, math.sqrt(55 * 20), 20, 20, 20])


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0.01, 1e6)), min_size=2, max_size=9))
def test_a_cleaned_table_never_rises(rows: list[tuple[int, float]]) -> None:
    relative = Table(rows).relative(CORES)
    assert (np.diff(relative) <= 1e-9 * relative[1:]).all()


def test_perfect_scaling_is_interpolated_exactly() -> None:
    np.testing.assert_allclose(Table([(2, 100), (128, 100 / 64)]).relative(CORES[:128]), 200 / CORES[:128])


def test_the_work_of_a_table_is_that_on_the_minimum() -> None:
    assert work(TABLE, np.array([4, 8, 2])).tolist() == pytest.approx([400, 440, 400])
    assert work(Downey(8, 0), np.array([4, 8])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Table([(4, 100)]), "a table of 1 row"),
        (lambda: Table([]), "a table of 0 row"),
        (lambda: Table([(4, 100), (8, -3)]), "a table with -3 s on 8 cores; expected times above 0 s"),
        (lambda: Table([(4, 100), (8, 0)]), "a table with 0 s on 8 cores"),
        (lambda: Table([(4, 100), (8, math.nan)]), "a table with nan s on 8 cores"),
        (lambda: Table([(0, 100), (8, 3)]), "a table with 0 cores; expected whole numbers from 1"),
        (lambda: Table([(1.5, 100), (8, 3)]), "a table with 1.5 cores"),
        (lambda: Table([(1, 2, 3), (8, 3)]), r"a row \(1, 2, 3\) of a table; expected cores and seconds"),
        (lambda: Table([("a", 2), (8, 3)]), r"a row \('a', 2\) of a table"),
        (lambda: Downey(0.5), "an average parallelism of 0.5; expected 1 or more"),
        (lambda: Downey(math.inf), "an average parallelism of inf"),
        (lambda: Downey(4, -0.1), "field 'sigma': a sigma of -0.1; expected 0"),
        (lambda: Downey(4, math.nan), "a sigma of nan"),
        (lambda: Amdahl(1.1), "a serial fraction of 1.1; expected 0 to 1"),
        (lambda: Amdahl(-1), "a serial fraction of -1"),
    ],
)
def test_an_impossible_law_is_refused(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("linear", Linear()),
        ("amdahl?serial=0.1", Amdahl(0.1)),
        ("downey?parallelism=12&sigma=2", Downey(12, 2)),
        ("table?rows=[(4,100),(8,55)]", Table([(4, 100), (8, 55)])),
    ],
)
def test_laws_have_names(text: str, law: Any) -> None:
    assert registry.make("speedup", text) == law
