"""Packed workloads: a rectangle cut into pieces without gaps, and the resulting jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import MICROSECOND, seconds
from gridsim.simulation import simulate
from gridsim.workload.synthetic.packed import Packed, cut


@given(cores=st.integers(1, 12), span=st.integers(1, 12), part=st.floats(0, 1), seed=st.integers(0, 999))
def test_pieces_cover_the_rectangle_once(cores: int, span: int, part: float, seed: int) -> None:
    jobs = max(1, round(part * cores * span))
    pieces = cut(cores, span, jobs, np.random.default_rng(seed))
    covered = np.zeros((cores, span), dtype=int)
    for core, wide, start, long in zip(*pieces, strict=True):
        covered[core : core + wide, start : start + long] += 1
    assert (covered == 1).all()
    assert len(pieces.core) == jobs
    assert min(pieces.cores.min(), pieces.seconds.min()) >= 1


@given(
    cores=st.integers(1, 64),
    span=st.integers(10, 10_000),
    jobs=st.integers(1, 40),
    kind=st.sampled_from(["static", "dynamic", "early"]),
    seed=st.integers(0, 99),
)
def test_the_packed_schedule_uses_every_core_all_the_time(
    cores: int, span: int, jobs: int, kind: Any, seed: int
) -> None:
    jobs = min(jobs, cores * span)
    workload = Packed(kind, cores, span, jobs, lead=50).generate(seed)
    start = seconds(workload.submit) + workload.logged["wait"]
    end = start + seconds(workload.runtime)
    changes = np.unique(np.concatenate([start, end]))
    for instant in changes[:-1]:
        assert workload.cores[(start <= instant) & (instant < end)].sum() == cores
    assert (changes[0], changes[-1]) == (0, span)
    assert workload.area.sum() == cores * span
    assert len(workload) == jobs
    assert workload.cores_stated == cores
    assert (end <= seconds(workload.deadline)).all()


def test_static_jobs_arrive_together_and_share_a_deadline() -> None:
    workload = Packed("static", 8, 100, 20, r=0.55).generate(1)
    assert set(workload.submit.tolist()) == {0}
    assert set((workload.deadline // MICROSECOND).tolist()) == {155}


def test_dynamic_jobs_arrive_at_their_packed_start_with_capacity_for_their_runtime() -> None:
    workload = Packed("dynamic", 8, 1000, 30, r=0.1).generate(1)
    assert set(workload.logged["wait"].tolist()) == {0}
    runtime = workload.runtime // MICROSECOND
    response = (workload.deadline - workload.submit) // MICROSECOND
    assert response.tolist() == [-(-11 * int(time) // 10) for time in runtime]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_dynamic_jobs_start_when_they_arrive_under_any_policy(policy: str) -> None:
    workload = Packed("dynamic", 16, 5000, 60, r=0.5).generate(3)
    record = simulate(workload, platform=Platform.single(16), policy=policy).record
    assert record.wait.max() == 0
    assert record.end.max() == 5000


def test_early_jobs_keep_the_deadlines_of_dynamic_ones_and_arrive_up_to_the_lead_before() -> None:
    early, dynamic = (Packed(kind, 8, 1000, 30, r=0.2, lead=60).generate(5) for kind in ("early", "dynamic"))
    assert sorted(early.deadline.tolist()) == sorted(dynamic.deadline.tolist())
    wait = early.logged["wait"]
    assert wait.min() >= 0
    assert 50 < wait.max() <= 60
    assert early.submit.min() == 0


def test_the_order_of_jobs_that_arrive_together_is_not_that_of_the_packing() -> None:
    workload = Packed("static", 16, 1000, 50).generate(1)
    assert (np.diff(workload.logged["wait"]) < 0).any()
    assert workload.job.tolist() == list(range(1, 51))


def test_a_seed_is_a_workload_and_the_kinds_of_a_seed_are_the_same_pieces() -> None:
    one, again, other = (Packed(jobs=50).generate(seed) for seed in (1, 1, 2))
    assert one.runtime.tolist() == again.runtime.tolist() != other.runtime.tolist()
    dynamic = Packed("dynamic", jobs=50).generate(1)
    assert sorted(dynamic.runtime.tolist()) == sorted(one.runtime.tolist())
    assert one.provenance["parameters"]["jobs"] == 50


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"kind": "statick"}, "statick"),
        ({"cores": 0}, "cores"),
        ({"span": 0}, "span"),
        ({"jobs": 0}, "jobs"),
        ({"jobs": 10, "cores": 3, "span": 3}, "jobs"),
        ({"r": -0.1}, "r"),
        ({"r": float("nan")}, "r"),
        ({"lead": -1}, "lead"),
    ],
)
def test_an_impossible_packing_is_refused(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=f"'{field}'"):
        Packed(**parameters)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="field 'seed'"):
        Packed().generate(-1)
