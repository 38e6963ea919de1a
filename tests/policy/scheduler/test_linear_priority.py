"""Orderings that are linear in time, compared with simple versions in exact rationals."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import PolicyError
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.policy.queue import Queue
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.linear_priority import BLOCK, larger, overtakes, product, sort_linear
from gridsim.simulation import run

WORDS = st.one_of(st.integers(0, 1 << 62), st.integers((1 << 52) - 3, (1 << 52) + 3), st.integers(0, 5))


@given(one=WORDS, other=WORDS)
def test_products_have_128_bits(one: int, other: int) -> None:
    upper, lower = product(one, other)
    assert (int(upper) << 64) + int(lower) == one * other


@pytest.mark.long
@given(one=WORDS, below=WORDS.filter(bool), other=WORDS, below_other=WORDS.filter(bool), near=st.booleans())
@settings(max_examples=300)
def test_fractions_are_compared_exactly(one: int, below: int, other: int, below_other: int, near: bool) -> None:
    if near:  # the same number except for one unit, below the precision of floats
        one, below = min(one, (1 << 31) - 1), min(below, (1 << 31) - 1)
        other, below_other = one * (1 << 30) + 1, below * (1 << 30)
    assert larger(one, below, other, below_other) == (Fraction(one, below) > Fraction(other, below_other))


def test_numbers_that_floats_take_for_equal_are_distinguished() -> None:
    one, other = (2**53 + 1, 2**53), (2**53 + 2, 2**53 + 1)
    assert one[0] / one[1] == other[0] / other[1]
    assert larger(*one, *other)
    assert not larger(*other, *one)


LINE = st.tuples(st.integers(0, 30), st.integers(1, 6))


@given(lines=st.lists(LINE, min_size=1, max_size=200), now=st.integers(0, 40), head=st.integers(0, 3))
def test_the_sorted_queue_is_that_of_sorted(lines: list[tuple[int, int]], now: int, head: int) -> None:
    n = len(lines)
    head = min(head, n - 1)
    table = np.zeros((7, n), dtype=np.int64)
    table[4] = np.random.default_rng(n).permutation(n)
    table[5] = np.arange(n) % 7  # jobs
    table[6] = np.arange(n) % 3  # ready times
    keys = np.array(lines, dtype=np.int64).T.copy()
    before = table[4].tolist()
    sort_linear(now, table, keys, head, n)

    def key(row: int) -> tuple[Any, ...]:
        return (-Fraction(now + lines[row][0], lines[row][1]), row % 7, row % 3, row)

    assert table[4].tolist() == [*before[:head], *sorted(before[head:], key=key)]


@given(one=LINE, other=LINE, now=st.integers(0, 50))
def test_no_line_passes_another_before_it_is_said_to(one: tuple[int, int], other: tuple[int, int], now: int) -> None:
    lines = np.array([one, other], dtype=np.int64).T.copy()

    def value(row: tuple[int, int], at: int) -> Fraction:
        return Fraction(at + row[0], row[1])

    if value(one, now) < value(other, now):
        until = int(overtakes(lines, 0, 1))
        assert all(value(one, at) < value(other, at) for at in range(now, min(until, now + 300)))


# -- whole schedules ---------------------------------------------------------------------------------------------------


@dataclass
class Lines:
    """One linear priority per job: at instant t the largest (t + ahead) / slope is first."""

    ahead: tuple[int, ...]
    slope: tuple[int, ...]
    changes: ClassVar[str] = "linear"
    _: int = field(default=0, init=False)

    def lines(self, queue: Queue, tick: int) -> tuple[Any, Any]:
        return np.array(self.ahead)[queue.rows], np.array(self.slope)[queue.rows]

    def rank(self, queue: Queue, now: float) -> Any:
        raise NotImplementedError


def by_sorting(workload: Workload, cores: int, order: Lines) -> list[int]:
    """Return starts if waiting jobs are sorted at each pick and the first job that does not fit ends the cycle."""
    n, free = len(workload), cores
    submit, runtime, width = (column.tolist() for column in (workload.submit, workload.runtime, workload.cores))
    starts, waiting, running, coming = [0] * n, list[int](), list[tuple[int, int]](), list(range(n))
    while coming or waiting or running:
        now = min([*(end for end, _ in running), *(submit[row] for row in coming[:1])])
        free += sum(width[row] for end, row in running if end == now)
        running = [(end, row) for end, row in running if end > now]
        while coming and submit[coming[0]] == now:
            waiting.append(coming.pop(0))
        while waiting and free:
            first = min(waiting, key=lambda row: (-Fraction(now + order.ahead[row], order.slope[row]), row))
            if width[first] > free:
                break
            waiting.remove(first)
            free -= width[first]
            starts[first] = now
            running.append((now + runtime[first], first))
    return starts


def agrees(submit: list[int], runtime: list[int], cores: list[int], order: Lines, machine: int) -> None:
    """Return times in microseconds."""
    workload = Workload.from_columns(submit=np.array(submit) / 1e6, runtime=np.array(runtime) / 1e6, cores=cores)
    record = run(workload, Platform.single(machine), Backfilling(ordering=order, reserve=Strict()))
    assert record.start_us.tolist() == by_sorting(workload, machine, order)


JOB = st.tuples(st.integers(0, 4), st.integers(1, 20), st.integers(1, 3), st.integers(0, 30), st.integers(1, 9))


@given(rows=st.lists(JOB, min_size=1, max_size=40))
@settings(max_examples=60)
def test_the_compiled_pass_is_that_of_sorting(rows: list[tuple[int, int, int, int, int]]) -> None:
    gap, runtime, cores, ahead, slope = (list(column) for column in zip(*rows, strict=True))
    agrees(np.cumsum(gap).tolist(), runtime, cores, Lines(tuple(ahead), tuple(slope)), 4)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([-1, 0, 1]), st.integers(-2, 2)),
        min_size=2,
        max_size=25,
    ),
    power=st.integers(20, 40),
)
@settings(max_examples=60)
def test_near_ties_beyond_the_precision_of_floats_are_decided_exactly(
    rows: list[tuple[int, int, int, int]], power: int
) -> None:
    large = 1 << power  # (large * k + e) / (large + d): equal to k up to parts in 2^40
    submit = np.cumsum([gap for gap, *_ in rows]).tolist()
    ahead = tuple(3 * large + extra for *_, extra, _ in rows)
    slope = tuple(large + difference for *_, difference in rows)
    agrees(submit, [times * large // 3 for _, times, *_ in rows], [1] * len(rows), Lines(ahead, slope), 1)


@pytest.mark.parametrize("seed", range(3))
def test_backlogs_of_several_blocks_are_served_in_the_same_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 5 * BLOCK
    order = Lines(tuple(rng.integers(0, 500, n).tolist()), tuple(rng.integers(1, 60, n).tolist()))
    submit = np.sort(rng.integers(0, 400, n)).tolist()
    agrees(submit, rng.integers(1, 30, n).tolist(), rng.choice([1, 1, 2, 4], n).tolist(), order, 4)


def test_a_line_without_a_slope_is_refused() -> None:
    workload = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    with pytest.raises(PolicyError, match=r"slopes of lines with 0 at index 1; expected whole numbers from 1$"):
        run(workload, Platform.single(1), Lines((0, 0), (1, 0)))


def test_a_line_that_is_below_0_when_its_job_arrives_is_refused() -> None:
    workload = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    with pytest.raises(PolicyError, match="a line below 0 at the submission of its job"):
        run(workload, Platform.single(1), Lines((-1, 0), (1, 1)))


@pytest.mark.parametrize(
    ("ahead", "slope", "message"),
    [
        ((0.5, 0), (1, 1), "offsets of lines of type float64"),
        (((0,), (0,)), (1, 1), r"offsets of lines of shape \(2, 1\)"),
        ((0, 1 << 62), (1, 1), "offsets of lines with 4611686018427387904 at index 1"),
    ],
)
def test_lines_are_checked_before_they_enter_a_compiled_loop(ahead: Any, slope: Any, message: str) -> None:
    workload = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    with pytest.raises(PolicyError, match=message):
        run(workload, Platform.single(1), Lines(ahead, slope))
