"""Facts of a workload: three jobs that can be counted by hand, and the logs whose facts are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridsim.model.machine import machine_cores
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


def test_accuracy_tells_exact_from_exceeded_estimates(three):
    accuracy = describe(three, 4)["accuracy"]
    assert accuracy["mean"] == pytest.approx((0.5 + 1 + 2) / 3)
    assert (accuracy["exact"], accuracy["over"], accuracy["over_by_a_tenth"], accuracy["distinct_estimates"]) == (
        1,
        1,
        1,
        3,
    )


def test_the_logged_schedule_is_played_back_with_allocated_cores(three):
    # [0, 10) 1 core; [10, 15) 2 cores, wait unknown; [15, 35) 4 cores allocated of 3 asked for
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


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_facts_of_archive_logs_come_out(shared: Path, name):
    """Users are those whose jobs ran; the 437 users of all lines of SDSC SP2 include 9 who ran nothing."""
    workload = read_workload(shared / "data" / "swf" / f"{name}.swf.gz")
    facts = describe(workload, machine_cores(workload)[0])
    days, users, largest, over, load, peak, above = KNOWN[name]
    assert facts["span"] / 86400 == pytest.approx(days, abs=0.06)
    assert (facts["users"], facts["size"]["max"], facts["accuracy"]["over"]) == (users, largest, over)
    assert facts["logged"]["load"] == pytest.approx(load, abs=0.0005)
    assert facts["logged"]["peak"] == peak
    assert facts["logged"]["above"] == pytest.approx(above, abs=0.00006)


def test_ctc_facts_of_its_description_come_out(shared: Path):
    facts = describe(read_workload(shared / "data" / "swf" / "CTC-SP2-1996-3.1-cln.swf.gz"), 338)
    assert facts["same_instant"] == 501
    assert facts["accuracy"]["over_by_a_tenth"] == 924
    assert facts["first_submit"] == 0
