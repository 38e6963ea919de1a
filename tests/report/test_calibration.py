"""How far a replay is from what the log says the machine did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.metrics.agreement import agreement
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.report.calibration import calibrate, sentences, trust_of
from gridsim.scenario import simulate_all
from gridsim.workload.synthetic.lublin import default_workload

HERE = Platform.single(32)


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
    assert "Replayed under easy, half of the 300 jobs start within 0 s" in sentences(found)[0]


def test_the_largest_disagreements_come_with_what_the_replay_shows(log: Workload) -> None:
    found = calibrate(log, ["fcfs"], platform=HERE)
    errors = [abs(one.error) for one, _ in found.apart]
    assert errors == sorted(errors, reverse=True)
    for one, told in found.apart:
        assert told[0].startswith(f"Job {one.job} of user")
    assert found.to_dict()["disagreements"][0]["job"] == found.apart[0][0].job


def test_a_comparison_says_which_policy_comes_nearest(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs", "conservative": "conservative"}, platform=HERE)
    trust = trust_of(results)
    assert trust is not None
    nearest = agreement(results["conservative"].record)
    assert nearest.median <= agreement(results["fcfs"].record).median
    assert trust.numbers["start_error_median"] == nearest.median
    assert "conservative comes nearest" in trust.sentences[0]


def test_jobs_that_were_changed_or_have_no_starts_are_not_vouched_for(log: Workload) -> None:
    unknown = replace(log, logged={})
    assert trust_of(simulate_all(unknown, {"fcfs": "fcfs"}, platform=HERE)) is None
    changed = log.with_provenance(transforms=[{"transform": "slice"}])
    assert trust_of(simulate_all(changed, {"fcfs": "fcfs"}, platform=HERE)) is None
    with pytest.raises(InputError, match="knows no starts"):
        calibrate(unknown, ["fcfs"], platform=HERE)


def test_jobs_without_a_logged_start_are_counted(log: Workload) -> None:
    waits = log.logged["wait"].copy()
    waits[:7] = np.nan
    found = calibrate(replace(log, logged={"wait": waits}), ["easy"], platform=HERE)
    assert found.overall["easy"].jobs == len(log) - 7
    assert any("7 jobs started in only one of the two" in line for line in sentences(found))


def test_the_replay_is_the_site_s_own_policy_even_where_another_one_comes_nearer(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs", "easy": "easy"}, platform=HERE)
    trust = trust_of(results, own=["fcfs"])
    assert trust is not None
    assert trust.numbers["start_error_median"] == agreement(results["fcfs"].record).median > 0
    assert "fcfs is the site's own policy" in trust.sentences[0]


def test_the_replay_is_that_of_calibrate_where_jobs_were_cut_at_their_limits(log: Workload) -> None:
    late = replace(log, estimate=np.maximum(log.runtime * 2 // 3, 1))
    policies = {"fcfs": "fcfs"}
    results = simulate_all(late, policies, platform=HERE, options=gs.Run(overrun="kill"))
    trust = trust_of(results, policies=policies, options=gs.Run(overrun="kill"))
    same = calibrate(late, policies, platform=HERE, options=gs.Run(overrun="extend")).overall["fcfs"]
    assert trust is not None
    assert trust.numbers["start_error_median"] == same.median != agreement(results["fcfs"].record).median
    assert "jobs that run as long as they did, beyond their limits too" in trust.sentences[0]


def test_nothing_is_replayed_again_where_no_job_was_cut(log: Workload) -> None:
    results = simulate_all(log, {"fcfs": "fcfs"}, platform=HERE)
    trust = trust_of(results, policies={"fcfs": "none"}, options=gs.Run())
    assert trust == trust_of(results)


def test_a_log_of_slurm_says_how_it_is_replayed_by_slurm_s_rules(log: Workload) -> None:
    slurm = log.with_provenance(format="sacct", source="logs/sacct.txt")
    results = simulate_all(slurm, {"easy": "easy"}, platform=HERE)
    how = "gridsim calibrate sacct.txt --policy 'slurm?conf=slurm.conf'"
    assert how in trust_of(results).sentences[0]  # type: ignore[union-attr]
    assert how not in trust_of(results, own=["easy"]).sentences[0]  # type: ignore[union-attr]
    assert "gridsim calibrate says more" in trust_of(results, own=["easy"]).sentences[0]  # type: ignore[union-attr]
