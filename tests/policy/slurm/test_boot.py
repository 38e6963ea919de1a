"""Start of the periods of the scheduler."""

from __future__ import annotations

import pytest

from gridsim.model.site import Scheduling, Site
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.simulation import simulate

EVERY_TEN = Scheduling(interval=10_000_000, resolution=1, full_interval=10_000_000, defer=True)
SITE = Site.of(nodes=1, cores=4, scheduling=EVERY_TEN)
WHOLE = Workload.from_columns(submit=[1, 13], runtime=[2, 2], cores=[4, 4])
PARTS = Workload.from_columns(submit=[1.25, 13.5], runtime=[2, 2], cores=[4, 4])


@pytest.mark.parametrize(
    ("jobs", "boot", "starts"),
    [
        (WHOLE, None, [9.5, 19.5]),
        (PARTS, None, [10, 20]),
        (WHOLE, 0.0, [10, 20]),
        (WHOLE, -3.0, [7, 17]),
        (PARTS, -0.5, [9.5, 19.5]),
    ],
)
def test_by_default_cycles_fall_between_the_whole_seconds_of_a_log(
    jobs: Workload, boot: float | None, starts: list[float]
) -> None:
    assert simulate(jobs, policy=Slurm(site=SITE, boot=boot)).record.start.tolist() == starts


def test_one_job_between_the_seconds_moves_nothing() -> None:
    jobs = Workload.from_columns(submit=[1, 13, 30.25], runtime=[2, 2, 2], cores=[4, 4, 4])
    assert simulate(jobs, policy=Slurm(site=SITE)).record.start.tolist() == [9.5, 19.5, 39.5]


def test_given_parameters_are_reported_and_defaults_are_not() -> None:
    assert repr(Slurm(site=SITE)) == "Slurm(site=…)"
    assert repr(Slurm(site=SITE, boot=-3, add_nodes="2")) == "Slurm(site=…, add_nodes='2', boot=-3)"
    assert isinstance(policy(Slurm(site=SITE)), Slurm)
