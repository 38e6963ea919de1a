"""Resampled workloads: their results, the best policy in each, and the distinction between noise and differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.questions.replications import Replicated
from gridsim.questions.run_replications import Family, families
from gridsim.workload.synthetic.lublin import default_workload
from gridsim.workload.transform.shake import Shake


def replicated(mine: list[float], theirs: list[float], original: tuple[float, float] = (1.0, 2.0)) -> Replicated:
    return Replicated(
        "shake",
        {"replicas": len(mine)},
        {"a": {"wait_mean": original[0]}, "b": {"wait_mean": original[1]}},
        {"a": {"wait_mean": np.array(mine)}, "b": {"wait_mean": np.array(theirs)}},
    )


@pytest.mark.parametrize(
    ("differences", "original", "verdict", "lower", "agree"),
    [
        ([-1.0] * 19 + [1.0], (1.0, 2.0), "does not change", 19, 19),
        ([-1.0] * 18 + [1.0] * 2, (1.0, 2.0), "noise", 18, 18),
        ([1.0] * 20, (1.0, 2.0), "reversed", 0, 0),
        ([0.0] * 20, (2.0, 2.0), "does not change", 0, 20),
        ([1.0] * 20, (2.0, 2.0), "noise", 0, 0),
        ([float("nan")] * 20, (1.0, 2.0), "noise", 0, 0),
    ],
)
def test_the_verdict_is_by_the_signs_of_the_paired_differences(
    differences: list[float], original: tuple[float, float], verdict: str, lower: int, agree: int
) -> None:
    pair = replicated([5 + it for it in differences], [5.0] * 20, original).pair("wait_mean", "a", "b")
    assert (pair.verdict, pair.lower, pair.agree) == (verdict, lower, agree)
    assert pair.original == original[0] - original[1]


def test_a_spread_has_the_quantiles_and_where_the_original_lies() -> None:
    found = replicated([0.0, 1.0, 2.0, 3.0, float("nan")], [0.0] * 5, (1.5, 0.0)).spread("wait_mean", "a")
    assert (found.least, found.quarter, found.median, found.three_quarters, found.most) == (0, 0.75, 1.5, 2.25, 3)
    assert (found.mean, found.below, found.replicas) == (1.5, 0.5, 4)
    assert found.sd == pytest.approx(np.std([0, 1, 2, 3], ddof=1))


def test_a_replica_is_that_of_its_number_and_by_nothing_all_are_the_workload() -> None:
    log = default_workload(jobs=100)
    family = Family("shake", Shake(), 3)
    assert family.member(log, 1).submit.tolist() == family.member(log, 1).submit.tolist()
    assert family.member(log, 1).submit.tolist() != family.member(log, 2).submit.tolist()
    found = gs.compare(log, ["fcfs", "easy"], shake=2, shake_by=0)
    for label, numbers in found.replicated[0].numbers.items():
        for name, values in numbers.items():
            assert np.array_equal(values, [found.metrics[label][name]] * 2, equal_nan=True), name


def test_workers_change_nothing() -> None:
    log = default_workload(jobs=60)
    one, two = (gs.compare(log, ["fcfs", "easy"], shake=3, workers=count).to_dict()["replicas"] for count in (1, 2))
    assert one == two
    assert one[0]["role"] == "shake"
    assert (one[0]["seed"], one[0]["replicas"], one[0]["by"]) == (1, 3, 60)


LONG = [pytest.mark.others, pytest.mark.long]
VERDICTS = [
    ("generated", 4, ("sjbf", "easy"), "noise"),
    *(("generated", seed, ("easy", "fcfs"), "does not change") for seed in (1, 2, 3)),
    *(pytest.param("SDSC-SP2-1998-4.2-cln", seed, ("easy", "sjbf"), "noise", marks=LONG) for seed in (1, 2, 3)),
    *(
        pytest.param("CTC-SP2-1996-3.1-cln", seed, ("sjbf", "easy"), "does not change", marks=LONG)
        for seed in (1, 2, 3)
    ),
]


@pytest.mark.parametrize(("name", "seed", "pair", "verdict"), VERDICTS)
def test_noise_is_distinguished_from_certain_differences(
    name: str, seed: int, pair: tuple[str, str], verdict: str, others: Callable[[str], Path]
) -> None:
    if name == "generated":
        log, metric = default_workload(jobs=300, load=0.8, seed=seed), "wait_mean"
    else:
        log, metric = (
            gs.read_workload(others(f"swf/{name}.swf.gz")).select(slice(20_000, 30_000)),
            "bounded_slowdown_mean",
        )
    options = gs.Run(seed=1 if name == "generated" else seed)
    found = gs.compare(log, list(pair), shake=20, options=options).replicated[0].pair(metric, *pair)
    assert found.verdict == verdict
    assert found.original < 0


@pytest.mark.parametrize(
    ("asked", "told"), [({"shake": 1}, "1 replicas; expected 2 to"), ({"shake_by": 9}, "give --shake 20 too")]
)
def test_errors_are_reported(asked: dict[str, int], told: str) -> None:
    with pytest.raises(InputError, match=told):
        families(**asked)
