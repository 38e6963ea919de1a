"""Facts of a workload: three jobs for calculation by hand, and logs with known facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.model.platform import machine_cores
from gridsim.model.workload import Workload
from gridsim.workload.describe import describe
from gridsim.workload.read import read_workload


@pytest.fixture
def three() -> Workload:
    return Workload.from_columns(
        submit=[0, 10, 10],
        runtime=[10, 5, 20],
        estimate=[20, 5, 10],
        cores=[1, 2, 3],
        labels={"user": [7, 7, -1]},
        logged={"wait": np.array([0, np.nan, 5.0]), "allocated": np.array([1, -1, 4])},
    )


def test_counts_span_and_load(three):
    facts = describe(three, 4)
    assert (facts["jobs"], facts["users"], facts["groups"], facts["same_instant"]) == (3, 1, None, 1)
    assert (facts["first_submit"], facts["last_submit"], facts["span"]) == (0, 10, 10)
    assert facts["area"] == 10 + 10 + 60
    assert facts["offered_load"] == 80 / 40


def test_quantiles_are_of_seconds_and_cores(three):
    facts = describe(three, 4)
    assert [facts[name]["median"] for name in ("size", "runtime", "estimate", "gap")] == [2, 10, 10, 5]
    assert (facts["runtime"]["min"], facts["runtime"]["max"]) == (5, 20)
    assert facts["size"]["mean"] == 2


def test_shares_of_sizes_add_up(three):
    share = describe(three, 4)["share"]
    assert share == pytest.approx({"serial": 1 / 3, "power_of_two": 1 / 3, "other": 1 / 3})


def test_accuracy_distinguishes_exact_from_exceeded_estimates(three):
    accuracy = describe(three, 4)["accuracy"]
    assert accuracy["mean"] == pytest.approx((0.5 + 1 + 2) / 3)
    assert (accuracy["exact"], accuracy["over"], accuracy["over_by_a_tenth"], accuracy["distinct_estimates"]) == (
        1,
        1,
        1,
        3,
    )


def test_the_logged_schedule_is_replayed_with_allocated_cores(three):
    # [0, 10) 1 core; [10, 15) 2 cores, wait unknown; [15, 35) 4 cores allocated, 3 requested
    logged = describe(three, 3)["logged"]
    assert (logged["peak"], logged["waits_known"], logged["allocated_differs"]) == (4, 2, 1)
    assert logged["above"] == pytest.approx(20 / 35)
    assert logged["load"] == pytest.approx((10 + 10 + 80) / (3 * 35))


def test_a_job_that_ends_when_another_starts_does_not_share_the_instant():
    log = Workload.from_columns(
        submit=[0, 5], runtime=[5, 5], cores=[2, 2], logged={"wait": np.array([0.0, 0.0])}, cores_stated=2
    )
    assert describe(log, 2)["logged"]["peak"] == 2


def test_one_job_and_no_waits_leave_nothing_undefined():
    facts = describe(Workload.from_columns(submit=[3], runtime=[5], cores=[2]), 2)
    assert (facts["offered_load"], facts["gap"], facts["logged"], facts["users"]) == (None, None, None, None)
    json.dumps(facts, allow_nan=False)


KNOWN = {
    "CTC-SP2-1996-3.1-cln": (339.1, 679, 336, 7_174, 0.851, 592, 0.0115),
    "NASA-iPSC-1993-3.1-cln": (92.0, 69, 128, 0, 0.466, 176, 0.0003),
    "SDSC-BLUE-2000-4.2-cln": (974.1, 468, 1152, 23_434, 0.769, 2_944, 0.012),
    "SDSC-SP2-1998-4.2-cln": (729.4, 428, 128, 4_134, 0.834, 202, 0.0136),
    "lublin_256": (89.2, None, 256, 0, 1.057, 1_968, 0.4054),
}
MORE = {"CTC-SP2-1996-3.1-cln": {"same_instant": 501, "over_by_a_tenth": 924, "first_submit": 0}}


def drawn() -> list[tuple[int, int, int, int, int, int]]:
    """Return submit, wait, runtime, cores, estimate and user of 300 jobs, logged on more cores than the machine has."""
    rng = np.random.default_rng(3)
    submit = np.sort(rng.integers(0, 500, 300) * 60 + 43)
    wait, runtime, cores = rng.integers(0, 900, 300), rng.integers(1, 3000, 300), rng.integers(1, 17, 300)
    estimate = (runtime * rng.choice([0.8, 0.95, 1.0, 1.5], 300, p=[0.15, 0.05, 0.3, 0.5])).astype(int) + 1
    return list(
        zip(*(it.tolist() for it in (submit, wait, runtime, cores, estimate, rng.integers(1, 30, 300))), strict=True)
    )


def counted(rows: list[tuple[int, int, int, int, int, int]], machine: int) -> tuple[Any, ...]:
    """Return the facts of `KNOWN` by direct computation."""
    submits, users, sizes = [row[0] for row in rows], {row[5] for row in rows}, [row[3] for row in rows]
    starts = [(submit + wait, submit + wait + runtime, cores) for submit, wait, runtime, cores, _, _ in rows]
    first, last = min(start for start, _, _ in starts), max(end for _, end, _ in starts)
    used = [sum(cores for start, end, cores in starts if start <= second < end) for second in range(first, last)]
    return (
        (max(submits) - min(submits)) / 86400,
        len(users),
        max(sizes),
        sum(row[2] > row[4] for row in rows),
        sum(used) / (machine * (last - first)),
        max(used),
        sum(number > machine for number in used) / (last - first),
    )


def counted_further(rows: list[tuple[int, int, int, int, int, int]]) -> dict[str, int]:
    """Return the facts of `MORE` by direct computation."""
    submits = [row[0] for row in rows]
    return {
        "same_instant": len(submits) - len(set(submits)),
        "over_by_a_tenth": sum(10 * row[2] > 11 * row[4] for row in rows),
        "first_submit": min(submits),
    }


@pytest.mark.parametrize("name", ["generated", *(pytest.param(name, marks=pytest.mark.others) for name in KNOWN)])
def test_the_known_facts_of_archive_logs_are_found(others: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    """Users count if their jobs ran; the 437 users of all lines of SDSC SP2 include 9 without a run."""
    if name == "generated":
        path = tmp_path / "log.swf"
        lines = [
            f"{job} {submit} {wait} {runtime} {cores} -1 -1 {cores} {estimate} -1 1 {user} -1 -1 -1 -1 -1 -1"
            for job, (submit, wait, runtime, cores, estimate, user) in enumerate(drawn(), 1)
        ]
        path.write_text("; MaxProcs: 90\n" + "\n".join(lines) + "\n")
    else:
        path = others(f"swf/{name}.swf.gz")
    workload = read_workload(path)
    facts = describe(workload, machine_cores(workload)[0])
    days, users, largest, over, load, peak, above = KNOWN[name] if name in KNOWN else counted(drawn(), 90)
    assert facts["span"] / 86400 == pytest.approx(days, abs=0.06)
    assert (facts["users"], facts["size"]["max"], facts["accuracy"]["over"]) == (users, largest, over)
    assert facts["logged"]["load"] == pytest.approx(load, abs=0.0005)
    assert facts["logged"]["peak"] == peak
    assert facts["logged"]["above"] == pytest.approx(above, abs=0.00006)
    more = counted_further(drawn()) if name == "generated" else MORE.get(name, {})
    assert {fact: {**facts["accuracy"], **facts}[fact] for fact in more} == more
