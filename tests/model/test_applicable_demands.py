"""Demands of a log that apply to a machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.applicable_demands import LEFT_ASIDE, with_applicable_demands
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.report.notices import left_aside
from gridsim.simulation import simulate

ASKED = [
    Demand(tasks=2, each={"cores": 2, "memory": 100}, gpu=1000, exclusive=True),
    Demand(tasks=1, each={"cores": 1}, pools={"idl": 1}, features=("ib",)),
]
POOL = Platform.single(8)


def jobs(asked: list[Demand] = ASKED, *, logged: bool = True) -> Workload:
    made = Workload.from_columns(
        submit=[0] * len(asked),
        runtime=[5] * len(asked),
        demands=Demands.of(asked),
        labels={"partition": [1, 2][: len(asked)]},
        provenance={"demands": {}} if logged else {},
    )
    return replace(made, names={"partition": ("", "batch", "gpu,batch")})


def machine(partitions: tuple[str, ...] = (), **capacity: int) -> Platform:
    return Platform.of_nodes([NodeGroup(group="n", count=2, capacity=capacity, partitions=partitions)], {"idl": 1})


def test_on_a_pool_of_cores_nothing_else_counts_and_that_is_reported() -> None:
    found = with_applicable_demands(jobs(), POOL)
    assert found.demands is None
    assert found.cores.tolist() == [4, 1]
    aside = {"memory": 1, "idl": 1, "gpu": 1, "exclusive nodes": 1, "features of nodes": 1}
    assert found.provenance[LEFT_ASIDE] == aside
    (told,) = left_aside(found, POOL)
    assert "memory (1 job), idl (1 job), GPUs (1 job)" in told
    assert told.endswith("the machine is modelled as one pool of cores.")
    assert simulate(jobs(), platform=POOL).workload.provenance[LEFT_ASIDE] == aside


def test_on_a_machine_of_pools_totals_count() -> None:
    found = with_applicable_demands(jobs(), Platform.of_nodes([], {"cores": 8, "memory": 500}))
    assert found.demands is not None
    assert [found.demands[row] for row in (0, 1)] == [Demand(cores=4, pools={"memory": 200}), Demand(cores=1)]
    assert set(found.provenance[LEFT_ASIDE]) == {"idl", "gpu", "exclusive nodes", "features of nodes"}


def test_on_nodes_all_counts_but_memory_that_no_node_is_said_to_have() -> None:
    found = with_applicable_demands(jobs(), machine(cores=8))
    assert found.demands is not None
    assert found.demands[0] == Demand(tasks=2, each={"cores": 2}, gpu=1000, exclusive=True)
    assert found.demands[1] == ASKED[1]
    assert found.provenance[LEFT_ASIDE] == {"memory": 1}
    whole = jobs()
    assert with_applicable_demands(whole, machine(cores=8, memory=500)).demands is not None
    assert LEFT_ASIDE not in with_applicable_demands(whole, machine(cores=8, memory=500)).provenance


def test_partitions_that_jobs_name_are_those_of_the_nodes() -> None:
    found = with_applicable_demands(jobs(), machine(("gpu",), cores=8, memory=500))
    assert found.demands is not None
    assert [found.demands.partitions[row] for row in (0, 1)] == [("batch",), ("batch", "gpu")]
    plain = replace(jobs(), demands=None)
    asked = with_applicable_demands(plain, machine(("gpu",), cores=8)).demands
    assert asked is not None
    assert asked[1] == Demand(cores=1, partitions=("batch", "gpu"))
    assert with_applicable_demands(plain, machine(cores=8)) is plain


def test_an_explicit_request_overrides_the_default() -> None:
    own = jobs(logged=False)
    assert with_applicable_demands(own, machine(cores=8)) is own
    assert with_applicable_demands(own, POOL) is own


def test_a_policy_that_knows_its_nodes_reads_labels() -> None:
    assert with_applicable_demands(jobs(), POOL, sited=True).demands is None


def test_jobs_of_unknown_resources_are_refused() -> None:
    asked = [Demand(tasks=1, each={"memory": 5}, gpu=500)]
    with pytest.raises(InputError, match="job 1 requests memory and gpu and no cores; expected a platform that has it"):
        with_applicable_demands(jobs(asked), POOL)
    assert np.array_equal(jobs(asked).cores, [0])
