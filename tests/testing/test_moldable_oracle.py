"""The second implementation of the moldable strategies: the specified cases, and its parts one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.moldable import Moldable
from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.testing.conformance import CASES
from gridsim.testing.moldable_oracle import (
    Claim,
    Place,
    Rules,
    Shape,
    category,
    largest,
    limit,
    moldable_schedule,
    sizes,
    soonest,
)
from gridsim.testing.oracle import Interval, earliest

FAMILY = CASES / "moldable"

SCHEDULES = [
    "m04-conservative-exact",
    "m05-conservative-early-ends",
    "m06-submit-greedy",
    "m07-submit-fair-share",
    "m08-aggressive-fair-share",
    "m11-weight-formulas",
    "m12-category-lanes",
    "m13-promise-order",
    "m14-xfactor-lanes",
    "m15-xfactor-strict",
    "m16-combined",
    "m17-mixed-jobs",
]
"""Specified cases of kind ``schedule``."""


def read(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((FAMILY / f"{name}.json").read_text())
    return case


# -- jobs as the cases describe them ---------------------------------------------------------------------------------


def speedup(cores: int, parallelism: float, sigma: float) -> float:
    """Downey's model, section 2.1."""
    n, a = cores, parallelism
    if sigma <= 1:
        if n <= a:
            return a * n / (a + sigma * (n - 1) / 2)
        return a if n >= 2 * a - 1 else a * n / (sigma * (a - 1 / 2) + n * (1 - sigma / 2))
    return a if n >= a + a * sigma - sigma else n * a * (sigma + 1) / (sigma * (n + a - 1) + a)


def useful(job: Mapping[str, Any]) -> int:
    """The largest size that helps, section 2.2."""
    a, sigma = job["A"], job["sigma"]
    saturated = a if sigma == 0 else 2 * a - 1 if sigma <= 1 else a + a * sigma - sigma
    return int(min(job["max"], max(job["min"], math.ceil(saturated))))


def workload_of(given: list[dict[str, Any]]) -> Workload:
    jobs = sorted(given, key=lambda job: (job["submit"], job["id"]))
    curves = [
        [1 / speedup(cores, job["A"], job["sigma"]) for cores in range(1, max(job["max"], job["processors"]) + 1)]
        for job in jobs
    ]
    moldable = Moldable(
        minimum=np.array([job["min"] for job in jobs]),
        maximum=np.array([useful(job) for job in jobs]),
        curve=np.arange(len(jobs)),
        first=np.cumsum([0, *map(len, curves)]),
        relative=np.concatenate(curves),
        weight=np.array([speedup(job["processors"], job["A"], job["sigma"]) for job in jobs]),
    )
    return Workload.from_columns(
        job=[job["id"] for job in jobs],
        cores=[job["processors"] for job in jobs],
        submit=[job["submit"] for job in jobs],
        runtime=[job["runtime"] for job in jobs],
        estimate=[job["estimate"] for job in jobs],
        moldable=moldable,
    )


# -- whole schedules -------------------------------------------------------------------------------------------------


def assert_as_expected(case: Mapping[str, Any], jobs: list[dict[str, Any]], run: Mapping[str, Any]) -> None:
    workload = workload_of(jobs)
    made = moldable_schedule(workload, case["platform"]["processors"], run["algorithm"], **run["parameters"])
    allowed = case["tolerance"] * (1 + len(jobs))
    row = {number: row for row, number in enumerate(workload.job.tolist())}
    assert len(run["expected"]["jobs"]) == len(jobs)
    for job in run["expected"]["jobs"]:
        at = row[job["id"]]
        assert made.given[at] == job["processors"], (job, run)
        assert made.start[at] == pytest.approx(job["start"], rel=0, abs=allowed), (job, run)
        assert made.end[at] == pytest.approx(job["end"], rel=0, abs=allowed), (job, run)


def test_no_specified_case_is_left_out() -> None:
    kinds = {path.stem: json.loads(path.read_text())["kind"] for path in FAMILY.glob("*.json")}
    assert [name for name in sorted(kinds) if kinds[name] == "schedule"] == SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_oracle_passes_the_specified_case(name: str) -> None:
    case = read(name)
    for run in case["runs"]:
        assert_as_expected(case, case["jobs"], run)


def test_one_second_more_of_waiting_crosses_the_threshold() -> None:
    case = read("m15-xfactor-strict")
    assert case["alternative"]["change"] == "job 5 submits at 319"
    jobs = [job | {"submit": 319} if job["id"] == 5 else job for job in case["jobs"]]
    assert_as_expected(case, jobs, case["runs"][0] | {"expected": case["alternative"]["expected"]})


# -- its parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", ["geometric", "linear"])
def test_the_sizes_tried_are_the_specified_ones(grid: str) -> None:
    points = read("m03-size-choices")["points"]
    found = [sizes(point["min"], point["max"], point["count"], grid) for point in points]
    assert found == [point[grid] for point in points]


def test_limits_are_the_specified_ones() -> None:
    case = read("m10-limits")
    cores = case["platform"]["processors"]
    left = {job["id"]: Fraction(job["remaining"]) for job in case["running"]}

    def found(jobs: list[dict[str, Any]], scope: str, rules: Rules) -> list[dict[str, int]]:
        """Running jobs first, if they share at all."""
        running = [job for job in jobs if job["id"] in left and scope != "queued"]
        waiting = [job for job in jobs if job["id"] not in left]
        claims = {job["id"]: Claim(Fraction(job["weight"]), job["min"], job["max"]) for job in running + waiting}
        if scope == "remaining":
            for job in running:
                claims[job["id"]] = claims[job["id"]]._replace(weight=job["weight"] * left[job["id"]])
        shares = {job["id"]: limit(claims[job["id"]], claims.values(), cores, rules) for job in waiting}
        return [{"id": key, "limit": share, "largest": largest(claims[key], share)} for key, share in shares.items()]

    for run in case["runs"]:
        rules = Rules(**{name: value for name, value in run.items() if name != "expected"})
        assert found(case["jobs"], run["scope"], rules) == run["expected"], run
    left.clear()
    assert found(case["alone"]["jobs"], "system", Rules()) == case["alone"]["expected"]


def test_choices_of_the_full_range_are_the_specified_ones() -> None:
    """The specification tries few sizes; trying all of them finds the same."""
    case = read("m09-full-range")
    for example in case["cases"]:
        job, total = example["job"], example["afterwards"]
        held: list[Interval] = [
            (to_us(begin), to_us(end), total - free) for begin, end, free in example["free_blocks"] if free < total
        ]
        claim = Claim(Fraction(1), job["min"], useful(job))
        asked, length = job["processors"], to_us(job["runtime"])
        curve = [1 / speedup(cores, job["A"], job["sigma"]) for cores in range(1, total + 1)]
        shape = Shape(claim.least, claim.most, claim.weight, asked, length, length, curve)
        tried = sizes(job["min"], largest(claim, example["limit"]), "all", "geometric")
        assert len(tried) == example["brute_force_evaluations"]
        places = {}
        for cores in tried:
            lasting = shape.lasting(length, cores)
            start = earliest(held, total, cores, lasting, to_us(example["now"]))
            places[cores] = Place(start, start + lasting, cores)
        blocks: Blocks = [(to_us(begin), to_us(end), free) for begin, end, free in example["free_blocks"]]
        blocks.append((blocks[-1][1], NEVER, total))
        evaluated, kept = by_blocks(blocks, job["min"], tried[-1], places.__getitem__)
        assert kept == soonest(places.values())
        assert len(evaluated) == len(example["evaluated"])
        for place, expected in [*zip(evaluated, example["evaluated"], strict=True), (kept, example["chosen"])]:
            assert place.cores == expected["processors"]
            assert place.start / MICROSECOND == expected["start"], example["title"]
            assert place.end / MICROSECOND == pytest.approx(expected["end"], rel=0, abs=2 * case["tolerance"])


Blocks = list[tuple[int, int, int]]
"""Free time: start, end, free cores."""


def by_blocks(blocks: Blocks, low: int, high: int, place: Callable[[int], Place]) -> tuple[list[Place], Place | None]:
    """Section 4.4: the places evaluated, in order, and the one kept."""
    evaluated: list[Place] = []
    best: Place | None = None
    for begin, _, free in blocks:
        if best is not None and begin >= best.end:
            break
        cores = min(free, high)
        if cores >= low:
            evaluated.append(place(cores))
            best = soonest(evaluated)
    return evaluated, best


@given(
    widths=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), max_size=7),
    job=st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 400), st.integers(1, 12)),
    law=st.sampled_from([(12, 0), (12, 0.5), (12, 1), (7.5, 1), (3, 3), (12, 2)]),
)
def test_the_free_time_blocks_name_the_best_of_all_sizes(
    widths: list[tuple[int, int]], job: tuple[int, int, int, int], law: tuple[float, float]
) -> None:
    """True where more cores always mean less time."""
    total, now = 12, 0
    one, other, length, asked = job
    low, most = min(one, other), max(one, other)
    most = useful({"min": low, "max": most, "A": law[0], "sigma": law[1]})
    ends = list(accumulate((to_us(width) for width, _ in widths), initial=0))
    blocks: Blocks = [(begin, end, free) for (begin, end), (_, free) in zip(pairwise(ends), widths, strict=True)]
    held: list[Interval] = [(begin, end, total - free) for begin, end, free in blocks if free < total]
    curve = [1 / speedup(cores, *law) for cores in range(1, total + 1)]
    shape = Shape(low, most, Fraction(1), asked, to_us(length), to_us(length), curve)

    def place(cores: int) -> Place:
        lasting = shape.lasting(shape.estimate, cores)
        start = earliest(held, total, cores, lasting, now)
        return Place(start, start + lasting, cores)

    _, kept = by_blocks([*blocks, (ends[-1], NEVER, total)], low, most, place)
    assert kept == soonest(place(cores) for cores in range(low, most + 1))


def test_weights_are_in_the_specified_categories() -> None:
    for point in read("m19-categories-and-load")["points"]:
        assert category(Fraction(point["weight"]) * MICROSECOND, 10, 100, 3) == point["category"]


def test_of_equal_ends_the_fewest_cores_are_taken() -> None:
    places = [Place(0, 1000, 9), Place(5, 1001, 4), Place(7, 1002, 1), Place(3, 1001, 6)]
    assert soonest(places) == Place(5, 1001, 4)


def test_an_algorithm_that_it_does_not_know_is_refused() -> None:
    workload = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    with pytest.raises(InputError, match="has no algorithm 'hope'"):
        moldable_schedule(workload, 1, "hope")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'submit-greedy' has no parameter 'gap'"):
        moldable_schedule(workload, 1, "submit-greedy", gap=1, choices="all")
