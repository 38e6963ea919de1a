"""Sentences about users who react, and about a fixed log with a higher load."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.ask import compare
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.questions.changes import changes_beside, changes_of
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule
from gridsim.questions.whatif import whatif
from gridsim.report import curves
from gridsim.report.caveats import caveats
from gridsim.report.comparison import Comparison
from gridsim.report.explain_text import sentences as why
from gridsim.report.gantt import pack
from gridsim.report.whatif_text import sentences
from gridsim.scenario import transformed
from gridsim.simulation import run

CORES = 16


@pytest.fixture(scope="module")
def log() -> Workload:
    """A log of a stable machine under EASY."""
    rng = np.random.default_rng(5)
    jobs = Workload.from_columns(
        submit=np.sort(rng.integers(0, 90_000, 400)),
        runtime=rng.integers(60, 600, 400),
        cores=rng.integers(1, 9, 400),
        labels={"user": rng.integers(1, 9, 400)},
        cores_stated=CORES,
    )
    return replace(jobs, logged={"wait": run(jobs, Platform.single(CORES), "easy").wait})


Comparing = Callable[..., list[str]]


@pytest.fixture
def told(log: Workload) -> Comparing:
    def of(*transforms: str, cores: int = CORES) -> list[str]:
        jobs = transformed(log, transforms, cores=cores)
        return caveats(compare(jobs, ["fcfs", "easy"], platform=Platform.single(cores)))

    return of


def warnings(sentences: list[str]) -> list[str]:
    return [sentence for sentence in sentences if "Submit times are fixed" in sentence]


def test_a_log_as_it_was_on_its_machine_needs_no_warning(told: Comparing) -> None:
    assert warnings(told()) == []
    assert warnings(told("expand?load=0.9", "duplicate?load=1", "load-factor?percent=80")) == []


@pytest.mark.parametrize(
    "transform", ["duplicate?load=1.3", "expand?load=1.3", "load-factor?percent=130", "offered-load?load=0.95"]
)
def test_a_raised_load_comes_with_a_warning_that_names_it(told: Comparing, transform: str) -> None:
    (warning,) = warnings(told(transform))
    assert f"the load was raised ({transform})" in warning
    assert "Real users submit later after longer waits" in warning
    assert warning.endswith("--users react simulates the other extreme.")


def test_a_smaller_machine_comes_with_a_warning(told: Comparing) -> None:
    (warning,) = warnings(told(cores=14))
    assert "the machine was made smaller (14 of 16 cores)" in warning


def test_a_queue_that_only_grows_comes_with_a_warning(told: Comparing) -> None:
    (warning,) = warnings(told("expand?load=2.5"))
    assert "are saturated" in warning


def test_without_users_no_reactions_are_suggested(log: Workload) -> None:
    jobs = transformed(replace(log, labels={}), ["expand?load=1.3"])
    (warning,) = warnings(caveats(compare(jobs, ["easy"], platform=Platform.single(CORES))))
    assert "--users" not in warning


def test_users_that_react_are_reported_with_how_many_jobs_moved_and_what_to_judge_by(told: Comparing) -> None:
    sentences = told("react", "expand?load=1.5")
    assert warnings(sentences) == []
    (users,) = [sentence for sentence in sentences if sentence.startswith("Users react")]
    assert "of 400 jobs are submitted a think time after" in users
    assert "fcfs: " in users
    assert "of submit times differ from the log" in users
    (judge,) = [sentence for sentence in sentences if "Compare when the same jobs are done" in sentence]
    assert "all jobs done after" in judge
    assert "on average than under fcfs" in judge


def test_a_higher_load_is_simulated_with_users_that_react_too(log: Workload) -> None:
    jobs = transformed(log, ["react"])
    found = whatif(jobs, changes_of(jobs, Platform.single(CORES), loads=[1.5]), platform=Platform.single(CORES))
    assert found.reacting
    assert sentences(found)[-1].startswith("Users react")
    fixed = whatif(log, changes_of(log, Platform.single(CORES), cores=[-0.25]), platform=Platform.single(CORES))
    assert any("--users react" in sentence for sentence in sentences(fixed))


@pytest.fixture(scope="module")
def reacting(log: Workload) -> Comparison:
    return compare(transformed(log, ["react", "expand?load=1.5"]), ["fcfs", "easy"], platform=Platform.single(CORES))


def test_what_if_uses_the_given_jobs(log: Workload, with_changes: Callable[..., Comparison]) -> None:
    """Not submissions that the first policy has shifted."""
    jobs, platform = transformed(log, ["react", "expand?load=1.5"]), Platform.single(CORES)
    policies = {"fcfs": "fcfs", "easy": "easy"}
    found = with_changes(compare(jobs, policies, platform=platform), policies, platform)
    for asked in found.whatifs:
        alone = whatif(jobs, changes_beside(jobs, platform), policy=asked.policy, platform=platform)
        assert asked.outcomes == alone.outcomes
        assert asked.reacting


def test_users_are_compared_over_the_same_periods_of_the_same_jobs(reacting: Comparison) -> None:
    fcfs, easy = curves.fairness(reacting).values()
    assert np.array_equal(fcfs.edges_s, easy.edges_s)
    assert np.array_equal(fcfs.jobs, easy.jobs)
    spans = [np.ptp(record.submit) for record in reacting.records.values()]
    assert fcfs.edges_s[-1] - fcfs.edges_s[0] < min(spans)  # those of the log


def test_the_chart_draws_each_policy_with_its_own_submits(reacting: Comparison) -> None:
    found = pack(reacting.records)
    assert all("later" in one for one in found["policies"])
    submit = np.cumsum(unpacked(found["columns"]["submit"])) + found["origin"]
    for one, record in zip(found["policies"], reacting.records.values(), strict=True):
        assert np.array_equal(submit + unpacked(one["later"]), record.submit)
        assert np.array_equal(unpacked(one["wait"]), record.wait)


def unpacked(column: dict[str, Any]) -> np.ndarray[Any, np.dtype[Any]]:
    return np.frombuffer(base64.b64decode(column["data"]), dtype=f"<{column['type']}").astype(np.int64)


@pytest.mark.long
def test_the_page_explains_waits_by_the_submits_of_each_policy(
    reacting: Comparison, browser: Any, visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = reacting.page(tmp_path / "page.html")
    assert "Users react" in page.read_text(encoding="utf-8")
    visit(browser, page.as_uri())
    for number, (label, record) in enumerate(reacting.records.items()):
        schedule, jobs = JobSchedule.of(record), record.workload.job[::9].tolist()
        told = browser.execute_script(
            """
            const [jobs, k] = arguments, { data } = gridsimGantt, one = data.policies[k];
            return jobs.map((job) => gridsimGantt.explained(data.job.indexOf(job), one));
            """,
            jobs,
            number,
        )
        for job, lines in zip(jobs, told, strict=True):
            assert lines == why(explain(schedule, job), label)
    assert browser.get_log("browser") == []
