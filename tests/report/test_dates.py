"""Instants of a log with dates appear as dates in every sentence."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import gridsim as gs
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.report import caveats, gantt, page, quotation
from gridsim.scenario import simulate_all
from gridsim.workload.synthetic.lublin import default_workload

HERE = Platform.single(32)
DATED = {"header": {"UnixStartTime": ["1792800000"], "TimeZoneString": ["Europe/Berlin"]}}
DATE = r"2026-1\d-\d\d \d\d:\d\d"


@pytest.fixture(scope="module")
def jobs() -> Workload:
    made = default_workload(jobs=120, load=0.9, cores=32, seed=2)
    return replace(made, provenance=DATED)


def test_the_chart_says_of_which_dates_its_jobs_are(jobs: Workload) -> None:
    records = {"easy": gs.simulate(jobs, platform=HERE, policy="easy").record}
    note = gantt.window(records, jobs=40).note
    assert note is not None
    assert re.search(rf"those submitted from {DATE} to ({DATE}|\d\d:\d\d), the period", note)


@pytest.mark.long
def test_the_page_and_the_cuts_name_dates(jobs: Workload) -> None:
    found = gs.compare(jobs, ["fcfs", "easy"], platform=HERE, warmup=7200)
    assert re.search(
        rf"submitted over [\w ]+, {DATE} to {DATE} Europe/Berlin<", page.render(found).replace("\u00a0", " ")
    )
    told = next(line for line in caveats.caveats(found) if line.startswith("Excluded"))
    assert re.search(rf"the other jobs were submitted from {DATE} to {DATE}\.", told)


def test_without_dates_nothing_is_dated(jobs: Workload) -> None:
    undated = replace(jobs, provenance={})
    found = gs.compare(undated, ["fcfs"], platform=HERE, warmup=7200)
    assert not any(re.search(DATE, line) for line in caveats.caveats(found))
    records = {label: each.record for label, each in simulate_all(undated, {"easy": "easy"}, platform=HERE).items()}
    assert "after the first one" in str(gantt.window(records, jobs=40).note)


def test_a_quotation_has_dates(jobs: Workload) -> None:
    found = gs.quote(jobs, at=90_000, cores=4, walltime=3600, policies=["qops"], platform=HERE, deadline=200_000)
    assert found.to_dict()["at_date"] == "2026-10-25T02:00:00+01:00"
    assert any("guarantee completion by 2026-10-26 08:33:20" in line for line in quotation.sentences(found))
