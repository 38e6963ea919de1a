"""Policies that cannot keep up with the load are told from those with busy weeks."""

from __future__ import annotations

import pytest

from gridsim.metrics.saturation import keeps_up
from gridsim.record import Record
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import default_workload


def one_core(submits: list[float], held: float = 10.0) -> Record:
    """Jobs of one core on a machine of one, first come first served."""
    free, rows = 0.0, []
    for submit in submits:
        start = max(free, submit)
        free = start + held
        rows.append({"submit": submit, "start": start, "end": free, "cores": 1})
    return Record.from_rows(rows)


@pytest.mark.parametrize(("every", "kept"), [(5.0, False), (9.0, False), (11.0, True), (20.0, True)])
def test_a_queue_that_only_grows_is_seen(every: float, kept: bool) -> None:
    assert keeps_up(one_core([every * number for number in range(500)])) == kept


def test_a_burst_is_no_saturation_wherever_it_is() -> None:
    calm = [20.0 * number for number in range(500)]
    for place in (0, 250, 400):
        burst = [calm[place] + number for number in range(100)]
        assert keeps_up(one_core(sorted([*calm, *burst])))


def test_too_few_jobs_say_nothing() -> None:
    assert keeps_up(one_core([5.0 * number for number in range(50)]))


def test_nobody_waits_nobody_runs_or_all_come_at_once() -> None:
    assert keeps_up(one_core([20.0 * number for number in range(200)]))
    assert keeps_up(one_core([0.0] * 200))
    assert keeps_up(Record.from_rows([{"submit": 0, "start": None, "end": None, "cores": 1, "runtime": 5}]))


@pytest.mark.parametrize(("load", "policy", "kept"), [(0.5, "fcfs", True), (0.9, "fcfs", False), (0.7, "easy", True)])
def test_the_synthetic_workload_saturates_fcfs_above_its_limit_of_three_fifths(
    load: float, policy: str, kept: bool
) -> None:
    assert keeps_up(simulate(default_workload(load=load), policy=policy).record) == kept
