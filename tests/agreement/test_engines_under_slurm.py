"""Under Slurm the calendar and the events of SimPy make the same records, byte for byte, with reasons and nodes."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.errors import InputError, PolicyError
from gridsim.model.moldable import Moldable
from gridsim.model.site import Site
from gridsim.model.speedup import Linear
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.scenario import transformed
from tests.agreement.test_slurm_oracle import BOOTS, sites, workloads
from tests.policy.slurm.running import as_values
from tests.published.test_slurm_replay import Run

FEW = settings(max_examples=max(20, settings.default.max_examples // 3))  # type: ignore[union-attr]
SITES = st.one_of(sites(), sites(limits=True), sites(preempts=True), sites(preempts=True), sites(reserves=True))
INSTANTS = ("batched", "per-event")


def played(engine: Any, workload: Workload, policy: Slurm, **options: Any) -> Any:
    """The record of a run, or why there can be none."""
    try:
        return as_values(gs.simulate(workload, policy=policy, engine=engine, **options).record)
    except (InputError, PolicyError) as error:
        return str(error)


def assert_same(workload: Workload, policy: Slurm, **options: Any) -> None:
    one, other = (played(engine, workload, policy, **options) for engine in ("simpy", "compiled"))
    if isinstance(one, str):
        assert one == other
        return
    for name, ours in one.items():
        assert ours == other[name], name


@FEW
@given(
    data=st.data(),
    site=SITES,
    boot=BOOTS,
    instant=st.sampled_from(INSTANTS),
    overrun=st.sampled_from(["kill", "extend"]),
)
def test_drawn_sites(data: st.DataObject, site: Site, boot: float | None, instant: Any, overrun: Any) -> None:
    jobs = data.draw(workloads(site))
    assert_same(jobs, Slurm(site=site, boot=boot), platform=site.platform(), instant=instant, overrun=overrun)


@pytest.fixture(scope="module")
def run_b() -> Run:
    return Run(
        Path(import_module("tests.published.test_slurm_replay").__file__ or "").parent / "slurm-b", 1_795_294_845
    )


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_site_that_preempts_and_reserves(run_b: Run, instant: Any) -> None:
    jobs, policy = run_b.jobs(), run_b.policy()
    assert_same(jobs, policy, platform=run_b.site().platform(), overrun="extend", instant=instant)


def test_a_site_without_preemption(run_a: Path) -> None:
    found = Run(run_a, boot=1_795_244_020)
    assert_same(found.jobs(), found.policy(), platform=found.site().platform(), overrun="extend")


def test_slices_change_nothing_and_progress_and_interrupts_come_through(
    run_b: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, how = run_b.jobs(), {"platform": run_b.site().platform(), "policy": run_b.policy()}
    whole = gs.simulate(jobs, engine="compiled", **how).record
    monkeypatch.setattr(import_module("gridsim.calendar.engine"), "_SLICE", 0.0)
    heard: list[int] = []
    sliced = gs.simulate(jobs, engine="compiled", progress=heard.append, **how).record
    assert as_values(sliced) == as_values(whole)
    assert heard == sorted(heard)
    assert heard[-1] == len(jobs)
    assert len(set(heard)) > 100

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gs.simulate(jobs, engine="compiled", progress=interrupt, **how)


JOBS = Workload.from_columns(submit=[0, 1, 1], runtime=[5, 5, 5], cores=[2, 2, 8], cores_stated=8)


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        (transformed(replace(JOBS, labels={"user": np.zeros(3, np.int64)}), ["react?reference=easy"]), "users react"),
        (
            replace(JOBS, moldable=Moldable.of(JOBS.cores, 1, 8, [Linear()])),
            "Slurm.* decides for jobs of several sizes",
        ),
    ],
)
def test_where_it_cannot_be_it_says_why(jobs: Workload, why: str) -> None:
    how: dict[str, Any] = {"policy": Slurm(site=Site.of(nodes=2, cores=4)), "platform": gs.Platform.single(8)}
    with pytest.raises(InputError, match=why) as error:
        gs.simulate(jobs, engine="compiled", **how)
    assert error.value.field == "engine"
    gs.simulate(jobs, engine="auto", **how)
