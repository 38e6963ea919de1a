"""Classes of jobs, slowdowns of categories, and charges."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.metrics.charges import (
    Classes,
    categories,
    category_slowdowns,
    core_class,
    core_class_bounds,
    qos_charge,
    queued_work,
    requested_slowdown,
    resource_charge,
    time_class,
)
from gridsim.model.time import to_us
from gridsim.record import Record, Status
from gridsim.testing.conformance import CASES, check


def test_the_golden_case_of_charges_passes() -> None:
    path = CASES / "deadline-admission" / "18-categories-and-charges.json"
    outcome = check(json.loads(path.read_text()))
    assert (outcome.status, outcome.messages, outcome.passed) == ("passed", (), 10)


CASE: dict[str, Any] = {
    "kind": "charges",
    "platform": {"cores": 2},
    "jobs": [{"id": 4, "submit": 5, "cores": 1, "runtime": 8, "easy_response": 16, "agreed_response": 10}],
    "expected": [{"id": 4, "time_class": 3, "core_class": 0, "category_slowdown": 2.0, "qos_charge": 1.6}],
    "totals": {"resource_charge": 8},
}


def test_a_case_of_charges_fails_on_any_other_number() -> None:
    assert check(CASE).status == "passed"
    assert check({**CASE, "expected": [{"id": 4, "qos_charge": 1.6 + 1e-9}]}).status == "failed"
    assert check({**CASE, "expected": [{"id": 5, "time_class": 3}]}).status == "failed"
    assert check({**CASE, "totals": {"resource_charge": 9}}).status == "failed"
    assert check({**CASE, "core_class_bounds": {"2": [1]}}).status == "failed"


def test_further_expectations_of_a_case_of_charges_are_unsupported() -> None:
    assert check({**CASE, "expected": [{"id": 4, "beauty": 3}]}).status == "unsupported"
    assert check({**CASE, "totals": {"beauty": 3}}).status == "unsupported"
    assert check({**CASE, "differences": []}).status == "unsupported"


def test_a_malformed_case_of_charges_names_its_field() -> None:
    with pytest.raises(InputError, match=r"jobs\[0\].easy_response"):
        check({**CASE, "jobs": [{"id": 4, "submit": 5, "cores": 1, "runtime": 8, "agreed_response": 10}]})


def test_time_classes_are_the_logarithms_of_whole_seconds() -> None:
    runtime = np.array([0, 999_999, 1_999_999, 2_000_000, 3_999_999, 4_000_000, 32_767_999_999, 32_768_000_000])
    assert time_class(runtime).tolist() == [0, 0, 0, 1, 1, 2, 14, 15]


def test_core_classes_are_exact_at_powers_of_the_machine() -> None:
    assert core_class(np.array([1, 256, 255]), 256).tolist() == [0, 15, 15]
    assert core_class(np.array([2**k for k in range(17)]), 2**16).tolist() == [*range(16), 15]


@given(st.integers(2, 5000), st.integers(1, 5000))
def test_a_core_class_is_the_largest_that_the_rule_allows(machine: int, cores: int) -> None:
    found = int(core_class(np.array([cores]), machine)[0])
    assert machine**found <= cores**16
    assert found == 15 or machine ** (found + 1) > cores**16


@pytest.mark.parametrize("machine", [1, 2, 100, 430])
def test_bounds_of_core_classes_give_the_same_classes(machine: int) -> None:
    bounds = core_class_bounds(machine)
    filled = [k for k in range(16) if bounds[k] is not None]
    cores = np.arange(1, machine + 1)
    explicit = core_class(cores, machine, [bounds[k] or 0 for k in filled])
    assert core_class(cores, machine).tolist() == [filled[k] for k in explicit.tolist()]


def test_bounds_may_be_given_and_have_to_ascend() -> None:
    assert time_class(to_us(np.array([59, 60, 3600])), [0, 60, 3600]).tolist() == [0, 1, 2]
    assert core_class(np.array([1, 7, 8, 99]), 64, [1, 8]).tolist() == [0, 0, 1, 1]
    with pytest.raises(InputError, match=r"time_bounds.*60 follows 60"):
        time_class(to_us(np.array([1])), [60, 60])
    with pytest.raises(InputError, match=r"core_bounds.*no bounds"):
        core_class(np.array([1]), 4, [])
    with pytest.raises(InputError, match="machine of 0 cores"):
        core_class(np.array([1]), 0)


@pytest.fixture
def easy() -> Record:
    """Two jobs of one category with slowdowns of 2 and 4, one of another with 1, and one that cannot run."""
    return Record.from_rows(
        [
            {"submit": 0, "start": 100, "end": 200, "cores": 2},
            {"submit": 0, "start": 300, "end": 400, "cores": 2},
            {"submit": 0, "start": 0, "end": 1000, "cores": 16},
            {"submit": 0, "start": None, "end": None, "cores": 1, "runtime": 5},
        ],
        cores=16,
    )


def test_a_category_has_the_mean_slowdown_of_its_jobs_and_an_empty_one_that_of_all(easy: Record) -> None:
    slowdowns = category_slowdowns(easy)
    assert slowdowns.of(easy) == pytest.approx([3, 3, 1, 7 / 3])
    assert slowdowns.jobs.sum() == 3
    assert slowdowns.overall == pytest.approx(7 / 3)
    assert slowdowns.mean[slowdowns.jobs == 0] == pytest.approx(7 / 3)


def test_references_are_pooled_job_by_job(easy: Record) -> None:
    other = Record.from_rows([{"submit": 0, "start": 800, "end": 900, "cores": 2}], cores=16)
    assert category_slowdowns(easy, other).of(other) == pytest.approx([(2 + 4 + 9) / 3])


def test_a_reference_without_jobs_that_ran_knows_no_slowdown(easy: Record) -> None:
    slowdowns = category_slowdowns(easy.select(slice(3, 4)))
    assert math.isnan(slowdowns.overall)
    assert np.isnan(slowdowns.of(easy)).all()


def test_own_classes_replace_the_sixteen(easy: Record) -> None:
    classes = Classes(time_bounds=(0, 500), core_bounds=(1, 2, 16))
    assert category_slowdowns(easy, classes=classes).mean.shape == (2, 3)
    groups = categories(easy, classes)
    assert [groups.names[row] for row in groups.index] == [
        "time class 0, core class 1", "time class 0, core class 1", "time class 1, core class 2",
        "time class 0, core class 0",
    ]  # fmt: skip


def test_users_that_accept_a_later_deadline_pay_less(easy: Record, promised: Callable[..., Record]) -> None:
    never = math.inf
    record = promised(easy, granted=[150, 300, 1000, never], asked=[150, 150, never, 50])
    assert requested_slowdown(record)[:2] == pytest.approx([1.5, 3])
    assert np.isnan(requested_slowdown(record)[2:]).all()
    assert qos_charge(record, category_slowdowns(easy)) == pytest.approx([2, 1, 0, 0])


def test_the_load_raises_the_charge_by_the_work_that_waits(easy: Record, promised: Callable[..., Record]) -> None:
    """When the last is submitted, 4 cores x 100 s wait; a job of the same instant and a running one do not count."""
    rows = [
        {"submit": 0, "start": 0, "end": 100, "cores": 16},
        {"submit": 10, "start": 100, "end": 200, "cores": 4, "estimate": 100},
        {"submit": 20, "start": 100, "end": 200, "cores": 8, "estimate": 100},
        {"submit": 20, "start": 100, "end": 200, "cores": 2},
    ]
    plain = Record.from_rows(rows, cores=16)
    assert queued_work(plain).tolist() == [0, 0, 400, 400]
    record = promised(plain, granted=[200] * 4, asked=[200] * 4)
    slowdowns = category_slowdowns(plain)
    free, charged = (qos_charge(record, slowdowns, load=load) for load in (0.0, 3.0))
    assert free.tolist() == qos_charge(record, slowdowns).tolist()
    assert charged / free == pytest.approx([1, 1, 1 + 3 * 400 / (3600 * 16), 1 + 3 * 400 / (3600 * 16)])
    with pytest.raises(InputError, match="'load': is -1; expected a number of at least 0"):
        qos_charge(record, slowdowns, load=-1)


def test_without_promises_no_job_pays_for_quality(easy: Record) -> None:
    easy.workload.deadline[:] = to_us(2000)
    assert not qos_charge(easy, category_slowdowns(easy)).any()


def test_lost_work_is_not_charged(easy: Record, promised: Callable[..., Record]) -> None:
    before = resource_charge(easy)
    record = promised(easy, granted=[500] * 4, asked=[500] * 4, killed=[(1, 0, 50), (1, 60, 90)])
    assert record.lost.tolist() == [0, 2 * 80, 0, 0]
    assert resource_charge(record).tolist() == before.tolist() == [200, 200, 16_000, 0]


def test_a_job_ended_at_its_walltime_pays_for_what_it_held() -> None:
    record = Record.from_rows(
        [{"submit": 0, "start": 0, "end": 10, "runtime": 25, "cores": 3, "status": Status.killed_walltime}]
    )
    assert resource_charge(record).tolist() == [30]
