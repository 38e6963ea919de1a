"""The machine of a workload, defined in one place."""

from __future__ import annotations

import pytest

from gridsim.ask import compare
from gridsim.errors import InputError
from gridsim.model.platform import Platform, machine_cores
from gridsim.model.site import Site
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.site_policy import fitted, machine, machine_of, nodes_to
from gridsim.simulation import simulate

JOBS = Workload.from_columns(submit=[0, 1], runtime=[5, 5], cores=[1, 2], cores_stated=4)


def test_given_values_override_those_of_the_source() -> None:
    assert (machine(JOBS).cores, machine(JOBS).origin) == (4, "the workload")
    assert (machine(JOBS, 6).cores, machine(JOBS, 6).origin) == (6, "given")


def test_the_source_says_where_it_stands() -> None:
    assert machine_cores(JOBS.with_provenance(cores_from="MaxProcs")) == (4, "MaxProcs")


def test_an_unknown_machine_is_reported() -> None:
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    for ask in (machine, simulate, compare):
        with pytest.raises(InputError, match="the workload, field 'cores': does not state the size of its machine"):
            ask(jobs)


def test_a_machine_without_cores_is_refused() -> None:
    with pytest.raises(InputError, match="0 cores; expected at least 1"):
        machine(JOBS, 0)


def test_a_simulation_reports_the_source_of_its_size() -> None:
    known = JOBS.with_provenance(cores_from="MaxProcs")
    assert simulate(known).platform.origin == "MaxProcs"


def test_a_policy_with_a_site_defines_the_machine_without_any_other_source() -> None:
    slurm = Slurm(site=Site.of(nodes=3, cores=4))
    assert machine_of([object()]) is None
    assert (machine(JOBS, policies=[object(), slurm]).cores, machine(JOBS, 6, [slurm]).cores) == (12, 6)
    assert simulate(JOBS, policy=slurm).platform.origin == "slurm.conf"
    assert simulate(JOBS, policy="easy").platform.cores == 4
    assert fitted("easy", Platform.single(8)) == "easy"
    assert fitted(slurm, Platform.single(12)) is slurm
    assert fitted(slurm, Platform.single(20)).machine().cores == 20
    assert nodes_to(["easy"], 20) is None
    assert nodes_to(["easy", slurm], 13) == (1, 4, 16)
    both = compare(JOBS, {"slurm": slurm, "easy": "easy"})
    assert {record.cores for record in both.records.values()} == {12}
