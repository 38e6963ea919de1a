"""Claims about particular policies on nodes: true of their schedules, and false of some others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from gridsim.model.platform import Platform
from gridsim.record import Record
from gridsim.testing.claims import fcfs_order_kept
from tests.oracles.machine.claims import heads_delayed, left_waiting
from tests.oracles.machine.parts import Hold, Machine
from tests.oracles.machine.placing import earliest
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import Rule
from tests.oracles.machine.schedule import Job, schedule
from tests.oracles.machine.translated import jobs_of, platform_of, record_of, schedule_of, workload_of


def records(policy: str, count: int = 40, **options: Any) -> Iterator[tuple[Record, Platform]]:
    """Schedules of random machines and jobs."""
    rng = np.random.default_rng(8)
    for _ in range(count):
        machine = draw_machine(rng)
        workload, rule = workload_of(draw_jobs(rng, machine)), draw_rule(rng, machine)
        platform = platform_of(machine)
        yield record_of(workload, platform, schedule(machine, jobs_of(workload), policy, rule, **options)), platform


def test_fcfs_starts_in_order_and_first_fit_does_not() -> None:
    assert all(fcfs_order_kept(record) for record, _ in records("fcfs"))
    assert not all(fcfs_order_kept(record) for record, _ in records("first-fit"))


@pytest.mark.parametrize("policy", ["easy", "depth"])
def test_no_head_starts_after_its_first_shadow(policy: str) -> None:
    assert [heads_delayed(*each) for each in records(policy, k=3)] == [[]] * 40


def test_first_fit_leaves_no_job_waiting_and_delays_heads() -> None:
    found = list(records("first-fit"))
    assert [left_waiting(*each) for each in found] == [[]] * 40
    assert any(heads_delayed(*each) for each in found)
    assert any(left_waiting(*each) for each in records("fcfs"))


@pytest.mark.parametrize("compress", ["planned", "arrival", "none"])
def test_no_job_starts_after_its_first_reservation(compress: str) -> None:
    rng, earlier = np.random.default_rng(9), 0
    for _ in range(40):
        machine = draw_machine(rng)
        jobs = schedule(machine, draw_jobs(rng, machine), "conservative", draw_rule(rng, machine), compress=compress)
        assert all(job.start <= job.first_planned for job in jobs if job.reason is None)
        earlier += sum(job.start < job.first_planned for job in jobs)
    assert (earlier > 0) == (compress != "none")


def test_after_a_compression_no_waiting_job_has_an_earlier_place() -> None:
    rng, checked = np.random.default_rng(10), 0

    def watch(now: int, waiting: Sequence[Job], held: Sequence[Hold]) -> None:
        nonlocal checked
        for job in waiting:
            others = [other for other in waiting if other is not job]
            planned = [Hold(it.demand, it.places, it.planned, it.planned + it.estimate) for it in others]
            assert earliest(machine, rule, job.demand, job.estimate, [*held, *planned], now)[0] >= job.planned
            checked += 1

    for _ in range(40):
        machine: Machine = draw_machine(rng)
        rule: Rule = draw_rule(rng, machine)
        schedule(machine, draw_jobs(rng, machine), "conservative", rule, watch=watch)
    assert checked > 200


def test_a_record_has_the_schedule_from_which_it_was_made() -> None:
    for record, platform in records("easy"):
        told = [(job.start, job.end, job.status, sorted(job.places)) for job in schedule_of(record, platform)]
        again = record_of(record.workload, platform, schedule_of(record, platform))
        assert again.allocations is not None
        assert record.allocations is not None
        assert again.allocations.gpu_texts() == record.allocations.gpu_texts()
        assert told == [(job.start, job.end, job.status, sorted(job.places)) for job in schedule_of(again, platform)]
