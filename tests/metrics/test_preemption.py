"""Preempted runs: their number, the lost work, and the jobs that replaced them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.metrics.preemption import by_owner, by_owners, cut_runs, preemption_label, preemption_metrics
from gridsim.metrics.summary import DEADLINE_METRICS, PREEMPTION_METRICS, described, metrics
from gridsim.model.site import Association, Preemption, Qos, Site, SitePartition
from gridsim.questions.evidence import Evidence
from gridsim.record import Record
from gridsim.report import rejections
from gridsim.report.tables import rows
from tests.policy.slurm.running import QUICK, nodes, run
from tests.policy.slurm.test_preemption import ONE, tiers

HOURS = {"submit": [0, 3600], "runtime": [7200, 60], "cores": [4, 4], "partition": ["low", "high"]}


def preempted(mode: str) -> Record:
    return run(tiers(1, Preemption("partition", mode)), **HOURS)[0]


@pytest.mark.parametrize("mode", ["REQUEUE", "CANCEL"])
def test_a_run_that_gave_way_is_counted_with_its_work_and_with_whose_job_took_its_nodes(mode: str) -> None:
    record = preempted(mode)
    found = cut_runs(record)
    assert (found.job.tolist(), found.by.tolist(), found.lost.tolist()) == ([0], [1], [4 * 3600.0])
    assert preemption_metrics(record) == {"preempted_runs": 1, "preempted_jobs": 1, "preempted_core_hours": 4}
    assert preemption_label(record) == "partition"
    assert by_owner(record, "partition") == {"partition high": (1, 4.0)}


def test_after_a_grace_it_is_the_job_that_requested_the_capacity() -> None:
    site = tiers(1, Preemption("partition", "CANCEL"), low={"grace": 15_000_000})
    record, _ = run(site, **ONE)
    assert cut_runs(record).by.tolist() == [1]


def test_jobs_that_the_cuts_leave_out_are_not_counted_and_a_part_of_a_record_keeps_its_owners() -> None:
    record = preempted("REQUEUE")
    assert preemption_metrics(record, np.array([False, True]))["preempted_runs"] == 0
    assert cut_runs(record.select([0])).by.tolist() == [-1]
    both = cut_runs(record.select([True, True]))
    assert both.by.tolist() == [1]
    cancelled = preempted("CANCEL")
    assert cut_runs(cancelled.select([True, True])).by.tolist() == [1]
    assert len(cut_runs(cancelled.select([1])).by) == 0


def test_numbers_are_answered_where_the_policy_preempts_even_if_it_had_no_need_and_nowhere_else() -> None:
    calm, _ = run(tiers(1, Preemption("partition", "REQUEUE")), **HOURS | {"submit": [0, 9000]})
    assert metrics(calm)["preempted_runs"] == 0
    never, _ = run(tiers(1, Preemption()), **HOURS)
    assert not set(PREEMPTION_METRICS) & set(metrics(never))
    assert not set(DEADLINE_METRICS) & set(metrics(calm))


def test_a_comparison_has_rows_for_every_policy_and_the_preempting_jobs() -> None:
    never, _ = run(tiers(1, Preemption()), **HOURS)
    evidence = Evidence.of({"never": never, "today": replace(preempted("REQUEUE"), workload=never.workload)}, info={})
    told = {row.title: [cell.text for cell in row.cells.values()] for row in rows(evidence.metrics)}
    assert told["runs preempted"] == ["0", "1"]
    assert told["preempted core-hours"] == ["0", "4"]
    assert told["… by partition high"] in (["0", "1"], ["0", "4"])
    assert described("preempted_core_hours[partition high]").unit == "core-hours"
    assert list(rejections.preempted(evidence.metrics)) == [
        "Under today, 1 run of 1 job was preempted, for a job of partition high; 4 core-hours of work were lost."
    ]


def test_runs_that_were_preempted_by_qos_are_grouped_by_qos_though_more_of_them_differ_in_partition() -> None:
    machines = nodes(2)
    parts = tuple(SitePartition(name, tuple(node.name for node in machines)) for name in ("left", "right"))
    qos = (Qos("low"), Qos("high", priority=9, preempts=("low",)))
    people = tuple(Association("phys", user, default_qos=level) for user, level in (("ann", "low"), ("bob", "high")))
    site = Site(machines, parts, "left", scheduling=QUICK, preemption=Preemption("qos", "CANCEL"), qos=qos)
    site = replace(site, associations=(Association("phys", parent="root"), *people))
    jobs: dict[str, Any] = {"submit": [0, 1, 10, 20], "runtime": [100, 100, 30, 30], "cores": [4, 4, 4, 4]}
    jobs |= {"partition": ["left", "left", "right", "right"], "user": ["ann", "ann", "bob", "bob"]}
    jobs |= {"account": ["phys"] * 4, "qos": ["low", "", "high", ""]}
    by_qos, _ = run(site, **jobs)
    assert len(cut_runs(by_qos).job) == 2
    assert preemption_label(by_qos) == "qos"
    unlabelled = replace(by_qos, workload=replace(by_qos.workload, labels={"partition": np.array([0, 0, 1, 1])}))
    assert preemption_label(unlabelled) is None  # not by partition
    by_tier = preempted("CANCEL")
    found = by_owners({"qos": by_qos, "tier": by_tier})
    assert list(found["qos"]) == list(found["tier"])
    assert found["qos"]["QOS high"][0] == 1
    assert math.isnan(found["qos"]["partition high"][0])
    assert math.isnan(found["tier"]["QOS high"][0])
    never, _ = run(tiers(1, Preemption()), **HOURS)
    assert by_owners({"never": never, "tier": by_tier})["never"] == {"partition high": (0, 0.0)}
