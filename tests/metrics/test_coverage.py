"""Intervals of paired differences contain the true ratio at the nominal rate, and false verdicts are rare."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "interval_coverage.py"

LEAST, FALSE, WIDEST = 0.92, 0.05, 2.0
"""Least coverage and largest share of false verdicts, each with two standard errors; largest width over the ideal."""


@pytest.fixture(scope="module")
def study() -> Any:
    """The study as a module."""
    spec = importlib.util.spec_from_file_location("coverage_study", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["coverage_study"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def holds(found: list[Any], false: float) -> None:
    """Assert coverage and false verdicts of a cell."""
    for it in found:
        error = math.sqrt(LEAST * (1 - LEAST) / it.workloads)
        assert it.coverage >= LEAST - 2 * error, it
        assert it.width <= WIDEST, it
    assert false <= FALSE + 2 * math.sqrt(FALSE * (1 - FALSE) / found[0].workloads)


@pytest.mark.long
@pytest.mark.parametrize(
    ("jobs", "load", "workloads"),
    [
        (1000, 0.7, 100),
        *(
            pytest.param(jobs, load, 100, marks=pytest.mark.long)
            for jobs, load in ((1000, 0.85), (5000, 0.7), (5000, 0.85))
        ),
    ],
)
def test_coverage_on_a_model(study: Any, jobs: int, load: float, workloads: int) -> None:
    holds(*study.study(study.lublin(jobs, load, workloads), 128))


@pytest.mark.others
@pytest.mark.long
def test_coverage_on_a_log_with_the_same_users_in_other_weeks(study: Any, others: Callable[[str], Path]) -> None:
    log = gs.read_workload(others("swf/SDSC-SP2-1998-4.2-cln.swf.gz"))
    holds(*study.study(study.same_users(log, 100), 128))


def test_users_move_by_whole_weeks_and_keep_their_jobs(study: Any) -> None:
    hour = 3600.0
    log = gs.Workload.from_columns(
        submit=[day * 24 * hour + user for day in range(300) for user in range(5)],
        runtime=[60 + row % 7 for row in range(1500)],
        cores=[1] * 1500,
        labels={"user": [row % 5 for row in range(1500)]},
    )
    (moved,) = study.same_users(log, 1, weeks=4, first_week=2)
    week = 7 * 24 * hour
    assert len(moved) == 4 * 7 * 5
    assert sorted(set((moved.submit / 1e6 % week).tolist())) == sorted(
        {(d * 24 * hour + u) for d in range(7) for u in range(5)}
    )
