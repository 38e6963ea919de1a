"""Deviation of a simulation from the recorded schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.metrics.agreement import agreement
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.questions.calibrate import calibrate, replay_of
from gridsim.record import Beyond
from gridsim.report import page
from gridsim.report.validation import Trust, as_dict, sentences, trust_in, why
from gridsim.result import Result
from gridsim.scenario import simulate_all
from gridsim.workload.synthetic.lublin import default_workload

HERE = Platform.single(32)
MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini" / "slurm.conf"


def trust_of(results: Mapping[str, Result], own: str | None = None, **more: Any) -> Trust:
    replay = replay_of(results, own, **more)
    assert replay is not None
    return trust_in(replay)


@pytest.fixture(scope="module")
def log() -> Workload:
    """A log of a machine that runs EASY."""
    jobs = default_workload(jobs=300, load=0.9, cores=32, seed=2)
    record = gs.simulate(jobs, platform=HERE, policy="easy").record
    return replace(jobs, logged={"wait": record.wait})


def test_the_policy_that_the_machine_ran_is_found_and_has_no_error(log: Workload) -> None:
    found = calibrate(log, ["fcfs", "easy", "conservative"], platform=HERE)
    assert found.best == "easy"
    assert (found.overall["easy"].median, found.overall["easy"].within_5) == (0.0, 1.0)
    assert found.overall["fcfs"].mean > 60
    assert sum(one.jobs for one in found.by_class["size"].values()) == len(log)
    assert (
        "Under easy, the most accurate policy, half of the 300 jobs start within 0 s of their recorded start"
        in sentences(found)[0]
    )


def test_the_largest_disagreements_come_with_what_the_replay_shows(log: Workload) -> None:
    found = calibrate(log, ["fcfs"], platform=HERE)
    errors = [abs(one.error) for one, _ in found.apart]
    assert errors == sorted(errors, reverse=True)
    for (one, _), told in zip(found.apart, why(found), strict=True):
        assert told[0].startswith(f"Job {one.job} of user")
    assert as_dict(found)["disagreements"][0]["job"] == found.apart[0][0].job


def test_where_no_policy_is_the_site_s_own_the_nearest_is_reported_as_not_validated(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs", "easy": "easy"}, platform=HERE)
    trust = trust_of(results)
    assert trust.numbers["start_error_median"] == agreement(results["easy"].record).median
    assert (trust.policy, trust.own, trust.warnings) == ("easy", False, ())
    assert trust.sentences[0].startswith(
        "Not validated: name the site's policy with --own. Under easy, the most accurate policy of these: median error "
        "of the start times 0 s"
    )


def test_jobs_without_a_logged_start_are_counted(log: Workload) -> None:
    waits = log.logged["wait"].copy()
    waits[:7] = np.nan
    found = calibrate(replace(log, logged={"wait": waits}), ["easy"], platform=HERE)
    assert found.overall["easy"].jobs == len(log) - 7
    assert "Jobs: 300; 293 ran on the machine and 300 under easy, 293 of them in every run." in sentences(found)


def test_the_replay_is_the_site_s_own_policy_even_where_another_one_comes_nearer(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs", "easy": "easy"}, platform=HERE)
    trust = trust_of(results, own="fcfs")
    assert trust.numbers["start_error_median"] == agreement(results["fcfs"].record).median > 0
    assert (trust.policy, trust.own) == ("fcfs", True)
    assert "Validation of fcfs, the site's own policy, against the recorded log: median error" in trust.rest[0]
    found = calibrate(log, ["fcfs", "easy"], platform=HERE, own="fcfs")
    assert (found.of, found.best) == ("fcfs", "easy")
    assert sentences(found)[0].startswith("Under fcfs, the site's own policy, half of the 300 jobs")
    alone = calibrate(log, ["fcfs"], platform=HERE).by_class["size"]
    assert {name: one.mean for name, one in found.by_class["size"].items()} == {
        name: one.mean for name, one in alone.items()
    }


def test_the_replay_is_that_of_calibrate_where_jobs_were_cut_at_their_limits(log: Workload) -> None:
    late = replace(log, estimate=np.maximum(log.runtime * 2 // 3, 1))
    policies = {"fcfs": "fcfs"}
    results = simulate_all(late, policies, platform=HERE, options=gs.Run(overrun="kill"))
    trust = trust_of(results, policies=policies, options=gs.Run(overrun="kill"))
    same = calibrate(late, policies, platform=HERE, options=gs.Run(overrun="extend")).overall["fcfs"]
    assert trust.numbers["start_error_median"] == same.median != agreement(results["fcfs"].record).median
    assert "jobs run for as long as recorded, beyond their limits too" in trust.rest[0]


def test_a_log_of_slurm_says_how_it_is_replayed_by_slurm_s_rules(log: Workload) -> None:
    slurm = log.with_provenance(format="sacct", source="logs/sacct.txt")
    results = simulate_all(slurm, {"easy": "easy"}, platform=HERE)
    how = "gridsim calibrate sacct.txt --policy 'slurm?conf=slurm.conf'"
    assert how in trust_of(results).sentences[0]
    assert how not in trust_of(results, own="easy").sentences[0]
    assert "Details: gridsim calibrate" in trust_of(results, own="easy").sentences[0]


@pytest.mark.long
def test_a_policy_of_the_site_that_is_far_from_the_log_is_warned_of_before_the_answer(log: Workload) -> None:
    slow = replace(log, logged={"wait": log.logged["wait"] * 5 + 600})
    found = gs.compare(slow, {"today": "easy", "new": "conservative"}, platform=HERE, own="today")
    assert found.replay is not None
    assert found.replay.far
    told = found.sentences()
    assert told[0].startswith(
        "Warning: the simulation differs from the recorded log. Under today, the site's own policy, the mean"
    )
    assert found.to_dict()["sentences"][0] == told[0]
    text = page.render(found)
    assert text.index("Warning: the simulation") < text.index(told[2][:20]) < text.index("Validation of today")
    near = gs.compare(log, {"today": "easy", "new": "conservative"}, platform=HERE, own="today")
    assert near.warnings() == []


def test_where_jobs_run_in_several_runs_the_wait_is_called_that_to_the_first(log: Workload) -> None:
    (result,) = simulate_all(log, {"easy": "easy"}, platform=HERE).values()
    row = np.array([int(np.nanargmax(result.record.wait))])
    submit, start = log.submit[row], result.record.start_us[row]
    chain = Beyond("split", np.full(len(log), NEVER), row, submit, submit + (start - submit) // 2)
    assert "; mean wait " in trust_of({"easy": result}, own="easy").sentences[0]
    chained = {"easy": replace(result, record=replace(result.record, beyond=chain))}
    assert "; mean wait to their first start " in trust_of(chained, own="easy").sentences[0]


def test_of_one_policy_on_a_log_of_slurm_nothing_is_said_of_what_is_not_known(log: Workload) -> None:
    slurm = log.with_provenance(format="sacct", source="logs/sacct.txt")
    (told,) = trust_of(simulate_all(slurm, {"easy": "easy"}, platform=HERE)).sentences
    assert "The machine ran Slurm, but easy is not Slurm's policy: gridsim calibrate sacct.txt" in told


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"cluster": "a", "clusters_left_out": {"b": 3}}, "calibrate sacct.txt --cluster a --policy"),
        ({"files": 2}, "calibrate … --policy"),
        ({"clusters": [{"name": "a"}, {"name": "b"}]}, "calibrate simulates one --cluster."),
    ],
)
def test_the_command_that_is_named_asks_of_the_same_log(log: Workload, more: dict[str, object], said: str) -> None:
    slurm = log.with_provenance(format="sacct", source="sacct.txt", **more)
    (told,) = trust_of(simulate_all(slurm, {"easy": "easy"}, platform=HERE)).sentences
    assert said in told
