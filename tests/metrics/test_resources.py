"""Allocated and unusable nodes, GPUs and pools, and the resources that waiting jobs lacked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import gridsim as gs
from gridsim.metrics.resources import allocated, only_arrivals, share_held
from gridsim.metrics.stranding import resource_metrics, short_of, stood, waits_short_of
from gridsim.metrics.summary import described, metrics
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands, typical_tasks
from gridsim.model.platform import Platform
from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.record import Record
from gridsim.report.tables import rows
from tests.oracles.machine import shares
from tests.oracles.machine.parts import Machine
from tests.oracles.machine.random_machines import draw_jobs, draw_machine, draw_rule
from tests.oracles.machine.rules import typical_of
from tests.oracles.machine.schedule import Job, schedule
from tests.oracles.machine.translated import demand_of, jobs_of, machine_of, platform_of, record_of, workload_of


def made(platform: Platform, workload: Workload, policy: str = "easy") -> Record:
    return record_of(workload, platform, schedule(machine_of(platform), jobs_of(workload), policy))


def drawn(seed: int, count: int) -> Iterator[tuple[Machine, list[Job], Record]]:
    """Schedules of the second implementation with at least one job that ran."""
    rng = np.random.default_rng([24, seed])
    while count:
        machine = draw_machine(rng)
        workload, platform = workload_of(draw_jobs(rng, machine)), platform_of(machine)
        policy = ("fcfs", "easy", "conservative")[count % 3]
        jobs = schedule(machine_of(platform), jobs_of(workload), policy, draw_rule(rng, machine))
        if any(job.start < NEVER for job in jobs):
            count -= 1
            yield machine_of(platform), jobs, record_of(workload, platform, jobs)


def test_shares_held_and_used_are_the_exact_ones() -> None:
    exclusive = 0
    for machine, jobs, record in drawn(1, 60):
        held, used = shares.utilisation(machine, jobs), shares.used(machine, jobs)
        for name, share in held.items():
            assert share_held(record, name) == pytest.approx(float(share), abs=1e-12)
            assert share_held(record, name, used=True) == pytest.approx(float(used[name]), abs=1e-12)
            exclusive += share != used[name]
    assert exclusive > 20


def test_stranding_and_fragmentation_equal_a_slow_count() -> None:
    found = 0
    for machine, jobs, record in drawn(2, 60):
        told = stood(record)
        stranded = shares.stranded(machine, jobs)
        assert told.stranded == pytest.approx({name: float(share) for name, share in stranded.items()}, abs=1e-12)
        found += any(stranded.values())
        typical = typical_of(machine, [job.demand for job in jobs])
        if machine.largest("gpu") and typical:
            of_all, of_idle = shares.fragmentation(machine, jobs, typical)
            assert told.fragmentation == pytest.approx(float(of_all), abs=1e-12)
            assert told.fragmentation_of_idle == pytest.approx(float(of_idle), abs=1e-12)
    assert found > 20


@pytest.mark.long
def test_missing_resources_of_waiting_jobs_equal_those_found_by_trying() -> None:
    words: set[str] = set()
    for machine, jobs, record in drawn(3, 150):
        waiting = [
            (job, now) for job in jobs if job.start < NEVER for now in (job.submit, job.start - 1) if now >= job.submit
        ]
        rows = np.array([job.number for job, _ in waiting])
        instants = np.array([now for _, now in waiting])
        expected = [shares.short_of(machine, jobs, job, now) for job, now in waiting if now < job.start]
        kept = [now < job.start for job, now in waiting]
        told = short_of(record, rows[kept], instants[kept]).tolist()
        assert told == expected
        words |= set(told)
    assert words >= {"cores", "memory", "gpu", "nodes", "several", "order", "licence"}


def test_typical_tasks_are_those_of_the_second_implementation() -> None:
    rng = np.random.default_rng(25)
    for _ in range(60):
        machine = draw_machine(rng)
        workload = workload_of(draw_jobs(rng, machine))
        assert workload.demands is not None
        found = typical_tasks(workload.demands)
        other = typical_of(machine, [demand_of(workload.demands[row]) for row in range(len(workload))])
        each = [
            {name: amount for name, amount in zip(found.resources, amounts, strict=True) if amount}
            for amounts in found.each.tolist()
        ]
        told = list(zip(each, found.gpu.tolist(), map(frozenset, found.gpu_kinds), found.counts.tolist(), strict=True))
        assert told == [
            (dict(it.demand.each), it.demand.gpu, it.demand.gpu_kinds or frozenset(), it.count) for it in other
        ]


NODES = [NodeGroup(group="n", count=2, capacity={"cores": 4}, gpus=1)]


def test_pools_and_gpus_over_time() -> None:
    machine = Platform.of_nodes(NODES, {"licence": 4})
    asked = [Demand(tasks=1, each={"cores": 1}, gpu=500, pools={"licence": 3}), Demand(tasks=2, each={"cores": 2})]
    record = made(machine, Workload.from_columns(submit=[0, 5], runtime=[10, 10], demands=Demands.of(asked)))
    assert [(t, v) for t, v in zip(*_steps(record, "licence"), strict=True)] == [(0, 3), (10, 0)]
    assert [(t, v) for t, v in zip(*_steps(record, "gpu"), strict=True)] == [(0, 500), (10, 0)]
    assert share_held(record, "cores") == (10 + 40) / (8 * 15)
    assert share_held(record, "gpu", 0, 10) == 0.25
    assert np.isnan(share_held(record, "gpu", 10, 10))


def _steps(record: Record, name: str) -> tuple[list[float], list[float]]:
    steps = allocated(record, name)
    return steps.times_s.tolist(), steps.values.tolist()


def test_a_run_of_arrivals_is_reported_as_it_was_at_the_last_one() -> None:
    asked = [Demand(tasks=1, each={"cores": 1}, gpu=600), Demand(tasks=1, each={"cores": 1}, gpu=600)]
    arrivals = Workload.from_columns(submit=[0, 1], runtime=[1000, 1000], demands=Demands.of(asked))
    world = gs.World(arrivals, Platform.of_nodes(NODES), "easy")
    world.run(until=500)
    record = world.record()
    assert only_arrivals(record)
    told = resource_metrics(record)
    assert told["fragmentation"] == 0.4  # 400 of each GPU, too small for 600
    assert told["fragmentation_of_idle"] == 1.0
    assert told["resource_utilisation[gpu]"] == 0.6
    assert not only_arrivals(made(Platform.of_nodes(NODES), arrivals))


def test_numbers_and_rows_by_resource_are_there_on_machines_of_nodes_alone() -> None:
    machine = Platform.of_nodes(NODES, {"licence": 4})
    asked = [
        Demand(tasks=2, each={"cores": 1}, gpu=1000, pools={"licence": 1}),
        Demand(tasks=1, each={"cores": 3}, gpu=500, exclusive=True),
    ]
    jobs = Workload.from_columns(submit=[0, 1], runtime=[10, 10], demands=Demands.of(asked))
    numbers = metrics(made(machine, jobs))
    assert numbers["resource_utilisation[licence]"] == 0.125
    assert numbers["resource_utilisation[cores]"] == (2 * 10 + 4 * 10) / (8 * 20)
    assert numbers["resource_used[cores]"] == (2 * 10 + 3 * 10) / (8 * 20)
    assert numbers["resource_used[gpu]"] == (2000 * 10 + 500 * 10) / (2000 * 20)
    assert numbers["stranded[cores]"] == pytest.approx(6 * 9 / (8 * 20))  # 3 free on each node, none untouched
    assert numbers["waits_short_of[several]"] == 1.0  # neither a GPU nor an exclusive node
    assert {described(name).unit for name in numbers if "[" in name} == {""}
    titles = {row.title: row.cells["easy"].text for row in rows({"easy": numbers})}
    assert titles["licence allocated"] == "12.5 %"
    assert titles["cores requested"] == "31.2 %"
    assert titles["waits due to several"] == "100.0 %"
    plain = metrics(Record.from_rows([{"submit": 0, "start": 0, "end": 9, "cores": 2}]))
    assert not {name for name in plain if "[" in name or name.startswith("fragment")}


def test_a_cut_leaves_out_the_waits_of_other_jobs() -> None:
    asked = [Demand(tasks=1, each={"cores": 4}), Demand(tasks=2, each={"cores": 4}), Demand(tasks=1, gpu=1000)]
    jobs = Workload.from_columns(
        submit=[0, 1, 2], runtime=[10, 10, 10], demands=Demands.of([*asked[:2], Demand(tasks=2, each={"cores": 1})])
    )
    record = made(Platform.of_nodes(NODES), jobs, "fcfs")
    assert waits_short_of(record) == {"cores": 9 / 27, "order": 18 / 27}
    assert waits_short_of(record, np.array([False, True, False])) == {"cores": 1.0}


def test_numbers_by_resource_under_slurm_are_those_of_its_allocations_and_reasons() -> None:
    machines = tuple(Node(f"n{number}", 8, memory=1000, gpus=2) for number in range(3))
    parts = (SitePartition("all", ("n0", "n1", "n2")),)
    site = Site(machines, parts, "all", memory=True, default_memory=10, licences={"idl": 3})
    rng, count = np.random.default_rng(7), 120
    alone, gpus, licences = rng.random(count) < 0.2, rng.integers(0, 3, count), rng.integers(-1, 2, count)
    memory, cores = rng.integers(10, 900, count), rng.integers(1, 9, count)
    columns = {"exclusive": np.where(alone, 1, -1), "gpus": gpus, "memory_mb": memory, "licenses": licences}
    columns["nodes"] = np.ones(count, dtype=np.int64)
    workload = Workload.from_columns(
        submit=np.sort(rng.integers(0, 2000, count)), runtime=rng.integers(10, 300, count), cores=cores, labels=columns
    )
    workload = replace(workload, names={"licenses": ("idl", "idl:2")})
    result = gs.simulate(workload, platform=site.platform(), policy=Slurm(site=site))  # one pool, as without --platform
    numbers = result.metrics()
    job, held = result.jobs, result.allocations
    row = {number: at for at, number in enumerate(job["job"].tolist())}
    seconds, total = job["end"].max() - job["submit"].min(), {"cores": 24, "memory": 3000, "gpu": 6, "idl": 3}
    node, asked = dict.fromkeys(total, 0.0), dict.fromkeys(total, 0.0)
    for at, piece in enumerate(held["job"].tolist()):
        mine, length = row[piece], float(held["end"][at] - held["start"][at])
        request = {"cores": cores[mine], "memory": memory[mine], "gpu": gpus[mine], "idl": max(licences[mine] + 1, 0)}
        for name, full in (("cores", 8), ("memory", 1000), ("gpu", 2), ("idl", request["idl"])):
            asked[name] += length * request[name]
            node[name] += length * (full if alone[mine] else request[name])
    for name, most in total.items():
        assert numbers[f"resource_utilisation[{name}]"] == pytest.approx(node[name] / most / seconds)
        assert numbers[f"resource_used[{name}]"] == pytest.approx(asked[name] / most / seconds)
    told, waited = result.reasons, float(job["wait"].sum())
    lengths = {word: float((told["until"] - told["from"])[told["reason"] == word].sum()) for word in told["reason"]}
    assert lengths["Licenses"] > 0
    shares = {name: share for name, share in numbers.items() if name.startswith("waits_by_reason[")}
    assert shares == {f"waits_by_reason[{word}]": pytest.approx(length / waited) for word, length in lengths.items()}
    assert sum(shares.values()) == pytest.approx(1)
    assert not any(name.startswith(("stranded", "waits_short_of", "fragmentation")) for name in numbers)
    assert "short_of" not in job


def test_a_number_by_resource_that_a_policy_does_not_have_is_not_known_and_never_the_best() -> None:
    wait = dict.fromkeys(metrics(Record.from_rows([{"submit": 0, "start": 0, "end": 9, "cores": 2}])), 1.0)
    slurm = wait | {"resource_utilisation[gpu]": 0.5, "waits_by_reason[Licenses]": 1.0}
    easy = wait | {
        "resource_utilisation[gpu]": 0.25,
        "resource_used[gpu]": 0.125,
        "resource_utilisation[matlab]": 0.81,
        "stranded[gpu]": 0.0,
        "waits_short_of[order]": 0.75,
        "waits_short_of[gpu]": 0.25,
    }
    found = {row.title: row.cells for row in rows({"slurm": slurm, "easy": easy})}
    texts = {title: [cell.text for cell in cells.values()] for title, cells in found.items()}
    assert texts["GPUs requested"] == ["50.0 %", "12.5 %"]  # without exclusive use, the amount that was held
    assert texts["matlab allocated"] == ["-", "81.0 %"]
    assert texts["GPUs stranded"] == ["-", "0.0 %"]
    assert texts["waits due to order"] == ["-", "75.0 %"]
    assert texts["wait reason Licenses"] == ["100.0 %", "-"]
    marked = {title for title, cells in found.items() if any(cell.best for cell in cells.values())}
    assert marked == {"GPUs allocated", "GPUs requested"}


def test_a_machine_without_cores_has_no_utilisation_of_cores() -> None:
    machine = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"slots": 4})])
    asked = [Demand(tasks=2, each={"slots": 2}), Demand(tasks=4, each={"slots": 2}), Demand(cores=1)]
    jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 10], demands=Demands.of(asked))
    found = gs.compare(jobs, ["easy", "fcfs"], platform=machine)
    numbers = found.metrics["easy"]
    assert np.isnan([numbers["utilisation"], numbers["offered_load"]]).all()
    assert numbers["resource_utilisation[slots]"] == (4 * 10 + 8 * 10) / (8 * 20)
    assert (numbers["rejected"], numbers["completed"]) == (1, 2)  # no core exists
    assert {row.title: row.cells["easy"].text for row in found.table()}["utilisation"] == "-"
