"""Endless arrivals that fill a machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.scenario import transformed
from gridsim.simulation import simulate
from gridsim.workload.transform.inflate import ENDLESS, Inflate

TASKS = [
    Demand(tasks=1, each={"cores": 2}, gpu=gpu) if gpu else Demand(tasks=1, each={"cores": 4})
    for gpu in (300, 500, 2000, 0)
]
MACHINE = Platform.of_nodes([NodeGroup(group="n", count=3, capacity={"cores": 16}, gpus=4)])


def tasks(times: int = 3) -> Workload:
    n = len(TASKS) * times
    return Workload.from_columns(submit=[0] * n, runtime=[1] * n, demands=Demands.of(TASKS * times))


@pytest.mark.parametrize("seed", [1, 2])
def test_all_users_are_drawn_once_in_another_order_then_more_until_there_are_enough(seed: int) -> None:
    jobs = Inflate(capacity=12_000).apply(tasks(), np.random.default_rng(seed))
    asked = jobs.demands
    assert asked is not None
    first = sorted(asked.total("gpu")[:12].tolist())
    assert first == sorted([300, 500, 2000, 0] * 3)
    total = asked.total("gpu").sum()
    assert 15_600 - 1000 < total <= 15_600 + 1000  # tolerance of one GPU for the last drawn job
    assert (np.diff(jobs.submit) == 1_000_000).all()
    assert (jobs.runtime == ENDLESS * 1_000_000).all()
    (entry,) = jobs.provenance["transforms"]
    assert (entry["jobs"], entry["drawn_again"]) == (len(jobs), len(jobs) - 12)


def test_a_job_that_finds_no_place_waits_when_the_run_stops() -> None:
    jobs = transformed(tasks(), ["inflate?demand=1.3"], platform=MACHINE, options=Run(seed=3))
    result = simulate(jobs, platform=MACHINE, policy="first-fit?placement=pack", until=1000)
    names = set(result.record.status_names.tolist())
    assert names == {"running", "waiting"}
    assert jobs.demands is not None
    held = jobs.demands.total("gpu")[result.record.status_names == "running"].sum()
    assert 9_000 < held <= 12_000
    assert result.provenance()["options"]["until"] == 1000


def test_a_run_until_an_instant_is_a_run_that_stops() -> None:
    jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    record = simulate(jobs, platform=Platform.single(4), policy="easy", until=12).record
    assert record.status_names.tolist() == ["completed", "running", "completed"]
    for wrong in (0, -1, "soon"):
        with pytest.raises(InputError, match=r"field 'until': is .*; expected a number"):
            Run(until=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        (Inflate(), "field 'capacity': is unknown for 'gpu'"),
        (Inflate(resource="disk", capacity=5), "field 'resource': no job requests 'disk'"),
        (
            Inflate(capacity=12_000, interval=1e6, demand=1000),
            "field 'interval': .* arrivals exceed the largest time",
        ),
    ],
)
def test_placeholders_that_cannot_be_filled_are_refused(transform: Inflate, told: str) -> None:
    with pytest.raises(InputError, match=told):
        transform.apply(tasks(), np.random.default_rng(1))


@pytest.mark.parametrize("given", [{"demand": 0}, {"demand": 2000}, {"interval": 0}])
def test_parameters_that_make_no_arrivals_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"field '{next(iter(given))}'"):
        Inflate(**given)
