"""Weights of trackable resources in priorities and in billing.

The numbers are from the examples in slurm.conf(5), ``TRESBillingWeights`` and ``PriorityWeightTRES``, and of
priority_multifactor.html, "TRES Factors".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.site import Node, Priority, Site, SitePartition
from gridsim.model.site_file import read_slurm_conf
from gridsim.model.workload import Workload
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.entry_columns import demands_of, machine_of
from gridsim.policy.slurm.queue_entries import owners_of
from gridsim.policy.slurm.tres import Bills, tres_priority
from tests.policy.slurm.running import QUICK, SECOND, run

GIB = 1024


def site(count: int = 2, **more: Any) -> Site:
    """Return a site with nodes of 8 cores, 16 GiB and 4 GPUs."""
    machines = tuple(Node(f"n{place + 1}", 8, 16 * GIB, gpus=4) for place in range(count))
    part = SitePartition("all", tuple(node.name for node in machines), billing=more.pop("billing", ()))
    return Site(machines, (part,), "all", scheduling=QUICK, memory=True, **more)


def asked(at: Site, **labels: Any) -> Any:
    cores = labels.pop("cores")
    one = [1] * len(cores)
    requests = Requests(Workload.from_columns(submit=one, runtime=one, cores=cores, labels=labels))
    return requests, at, demands_of(requests, at, owners_of(requests, at))


@pytest.mark.parametrize(("mode", "more"), [("sum", 2.0), ("max", 0.0), ("max gres", 2.0)])
def test_a_core_and_8_gib_are_billed_as_the_manual_says(mode: Literal["sum", "max", "max gres"], more: float) -> None:
    weights = (("cpu", 1.0), ("mem", 0.25 / GIB), ("gres/gpu", 2.0))
    at = site(billing=weights, priority=Priority(billed=mode))
    requests, _, demands = asked(at, cores=[1, 1], memory_mb=[8 * GIB] * 2, gpus=[0, 1])
    bills = Bills(requests, at, demands, machine_of(at, requests, demands))
    billed = 3.0 if mode == "sum" else 2.0
    assert bills.of(0, np.array([0]), np.array([1])) == billed
    # A GPU adds 2 to a sum, and also if it is added to the maximum; it adds nothing if it is part of the maximum.
    assert bills.of(1, np.array([0]), np.array([1])) == billed + more


def test_without_weights_cores_are_billed() -> None:
    at = site()
    requests, _, demands = asked(at, cores=[3], memory_mb=[8 * GIB])
    assert (
        Bills(requests, at, demands, machine_of(at, requests, demands)).of(0, np.array([0, 1]), np.array([2, 1])) == 3
    )


def test_weights_of_priority_count_the_part_of_what_the_partition_has() -> None:
    at = site(priority=Priority(tres=(("cpu", 1000.0), ("mem", 2000.0), ("gres/gpu", 3000.0))))
    found = tres_priority(*asked(at, cores=[4, 4], memory_mb=[8 * GIB] * 2, gpus=[0, 4], nodes=[-1, 2]))
    # 4 of 16 cores; 8 of 32 GiB, or 16; none, or all 8 GPUs.
    assert found.tolist() == [250 + 500, 250 + 1000 + 3000]


def test_a_job_that_requests_more_gpus_starts_first() -> None:
    jobs: dict[str, Any] = {"submit": [0, 1, 2], "runtime": [10] * 3, "cores": [8, 1, 1], "memory_mb": [1] * 3}
    jobs["gpus"] = [0, 3, 4]
    assert run(site(1), **jobs)[0].start.tolist() == [0, 10, 20]
    assert run(site(1, priority=Priority(tres=(("gres/gpu", 3000.0),))), **jobs)[0].start.tolist() == [0, 20, 10]


def test_use_counts_as_billed_in_fair_share() -> None:
    # Ann has one core and 4 GPUs for as long as bob has 8 cores: fewer cores, but more billed use.
    jobs: dict[str, Any] = {
        "submit": [0, 0, 1, 1],
        "runtime": [20, 20, 10, 10],
        "cores": [1, 8, 16, 16],
        "memory_mb": [1] * 4,
        "gpus": [4, 0, 0, 0],
        "user": ["ann", "bob", "ann", "bob"],
        "account": ["phys"] * 4,
    }
    at = site(priority=Priority(fair_share=1000, period=SECOND))
    assert run(at, **jobs)[0].start.tolist() == [0, 0, 20, 30]
    part = replace(at.partitions[0], billing=(("cpu", 1.0), ("gres/gpu", 10.0)))
    assert run(replace(at, partitions=(part,)), **jobs)[0].start.tolist() == [0, 0, 30, 20]


def conf(folder: Path, text: str, partition: str = "") -> Site:
    path = folder / "slurm.conf"
    path.write_text(f"NodeName=n1 CPUs=8\n{text}\nPartitionName=a Nodes=n1 {partition}\n")
    return read_slurm_conf(path)


def test_weights_are_read_from_the_sites_own_file(tmp_path: Path) -> None:
    found = conf(tmp_path, "PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000\nPriorityFlags=MAX_TRES")
    assert found.priority.tres == (("cpu", 1000.0), ("mem", 2000.0), ("gres/gpu", 3000.0))
    assert (found.priority.kind, found.priority.billed, found.notices) == ("multifactor", "max", ())
    found = conf(tmp_path, "", 'TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=2.0"')
    assert found.partitions[0].billing == (("cpu", 1.0), ("mem", 0.25 / GIB), ("gres/gpu", 2.0))
    assert not found.notices


def test_resources_that_are_not_modelled_are_reported(tmp_path: Path) -> None:
    found = conf(tmp_path, "PriorityWeightTRES=cpu=1,bb/cray=5", "TRESBillingWeights=ic/ofed=1")
    told = ["PriorityWeightTRES bb/cray", "PartitionName TRESBillingWeights ic/ofed"]
    assert [each.text for each in found.notices] == told


def test_a_weight_that_is_none_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"slurm.conf.*2.*PriorityWeightTRES.*is 'cpu=much'"):
        conf(tmp_path, "PriorityWeightTRES=cpu=much")
