"""Nominal delays between clusters."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.network import Network

SECOND = 10**6


@pytest.mark.parametrize(
    ("ccr", "runtime", "delay"), [("1/5", 5, 1), ("1/5", 6, 2), ("0", 9, 0), ("3", 4, 12), ("0.1", 30, 3)]
)
def test_a_delay_is_the_ratio_of_the_runtime_rounded_up_once(ccr: str, runtime: int, delay: int) -> None:
    assert Network(ccr=ccr).delay(runtime * SECOND, 1, SECOND) == delay * SECOND


@given(
    ccr=st.fractions(0, 50, max_denominator=1000),
    runtime=st.integers(1, 10**15),
    tick=st.sampled_from([1, 1000, SECOND]),
    levels=st.integers(0, 4),
)
def test_the_ceiling_is_exact(ccr: Fraction, runtime: int, tick: int, levels: int) -> None:
    network = Network(ccr=str(ccr), delay_levels_power=2)
    assert network.delay(runtime, levels, tick) == ceil(ccr * runtime * levels**2 / tick) * tick


def test_there_is_no_delay_inside_a_cluster() -> None:
    assert Network(ccr="7").delay(SECOND, 0, SECOND) == 0


def test_files_take_their_bytes_over_the_bandwidth() -> None:
    files = Network(transfer="files", bandwidth=100.0)
    assert files.delay(SECOND, 1, SECOND, 250.0) == 3 * SECOND
    assert files.delay(SECOND, 1, 1000, 250.0) == 2_500_000
    assert files.delay(SECOND, 1, SECOND, None) == 0
    assert files.volume(SECOND, 250.0, SECOND) == Fraction(5, 2)


def test_data_are_free_only_where_they_take_no_time_whatever_the_workload() -> None:
    assert Network().free
    assert not Network(ccr="1/5").free
    assert not Network(transfer="files").free


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"ccr": "a fifth"}, "field 'ccr': 'a fifth' is not a rational number such as 1/5"),
        ({"ccr": "1/0"}, "field 'ccr'"),
        ({"ccr": "nan"}, "field 'ccr'"),
        ({"ccr": "-1"}, "field 'ccr': -1; expected a number above 0"),
        ({"capacity": "0"}, "field 'capacity'"),
        ({"transfer_rate_cap": "0"}, "field 'transfer_rate_cap'"),
        ({"kind": "fluid"}, "field 'kind': is 'fluid'; expected one of ccr, shared, fifo"),
        ({"transfer_start": "some"}, "field 'transfer_start'"),
        ({"transfer": "bytes"}, "field 'transfer'"),
        ({"bandwidth": 0.0}, "field 'bandwidth'"),
        ({"bandwidth": float("nan")}, "field 'bandwidth'"),
        ({"slots": 0}, "field 'slots'"),
        ({"slots": 1.5}, "field 'slots'"),
        ({"delay_levels_power": -1}, "field 'delay_levels_power'"),
        ({"delay_levels_power": 0.5}, "field 'delay_levels_power'"),
    ],
)
def test_an_impossible_network_is_refused(words: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Network(**words)


@given(
    st.lists(st.integers(0, 2**61), max_size=5),
    st.integers(0, 4),
    st.sampled_from([None, 0, 1, 3]),
    st.sampled_from(["0", "1/5", "7/3", "1234567/89"]),
    st.sampled_from([1, 1_000, 1_000_000]),
)
def test_delays_of_many_tasks_are_those_of_each(
    runtimes: list[int], levels: int, power: int | None, ccr: str, tick: int
) -> None:
    network = Network(ccr=ccr, delay_levels_power=power)
    try:
        one_by_one = np.array([network.delay(runtime, levels, tick) for runtime in runtimes], dtype=np.int64)
    except OverflowError:
        return
    found = network.delays(np.array(runtimes, dtype=np.int64), levels, tick)
    np.testing.assert_array_equal(found, one_by_one)
