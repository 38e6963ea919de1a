"""Effects of more cores, more load and better estimates."""

from __future__ import annotations

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.metrics.summary import metrics
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.questions.changes import NOW, Change, changes_of
from gridsim.questions.run_replications import families
from gridsim.questions.whatif import _least, _Trials, cores_for, whatif
from gridsim.report.whatif_text import sentences
from gridsim.scenario import transformed
from gridsim.simulation import run
from gridsim.workers import Known
from gridsim.workload.synthetic.lublin import default_workload
from gridsim.workload.transform.estimates import BetterEstimates, ExactEstimates
from gridsim.workload.transform.load_factor import LoadFactor

HERE = Platform.single(64)


@pytest.fixture(scope="module")
def log() -> Workload:
    return default_workload(jobs=400, load=0.9, cores=64, seed=3)


def test_each_change_is_what_a_separate_run_gives(log: Workload) -> None:
    found = whatif(log, changes_of(log, HERE, cores=[0.5], loads=[1.5], estimates=[4.0]), platform=HERE)
    assert [one.label for one in found.outcomes] == [
        NOW,
        "96 cores (+50 %)",
        "load times 1.5",
        "estimates 4 times better",
    ]
    larger = metrics(run(log, Platform.single(96), "easy"))
    assert found["96 cores (+50 %)"].numbers["wait_mean"] == larger["wait_mean"]
    wait = found["96 cores (+50 %)"].wait
    assert wait is not None
    assert wait.mean == pytest.approx(larger["wait_mean"] - found[NOW].numbers["wait_mean"])
    assert found["load times 1.5"].numbers["wait_mean"] > found[NOW].numbers["wait_mean"]
    assert found["load times 1.5"].numbers["offered_load"] > found[NOW].numbers["offered_load"]


def test_the_usual_changes_are_queried_where_none_is_given(log: Workload) -> None:
    assert len(whatif(log, platform=HERE).outcomes) == 6


def test_a_higher_load_comes_with_a_warning(log: Workload) -> None:
    told = sentences(whatif(log, changes_of(log, HERE, loads=[1.5]), platform=HERE))
    assert any("Users submit less after longer waits" in line for line in told)
    told = sentences(whatif(log, changes_of(log, HERE, cores=[0.5]), platform=HERE))
    assert not any("submit less" in line for line in told)


@pytest.mark.parametrize("node", [1, 4, 16])
def test_the_machine_found_halves_the_wait_and_the_next_smaller_does_not(log: Workload, node: int) -> None:
    found = cores_for(log, HERE, node=node).platform.cores
    assert (found - 64) % node == 0
    half = metrics(run(log, HERE, "easy"))["wait_mean"] / 2
    assert metrics(run(log, Platform.single(found), "easy"))["wait_mean"] <= half
    assert metrics(run(log, Platform.single(found - node), "easy"))["wait_mean"] > half


def test_trials_in_advance_change_no_answer_and_run_once() -> None:
    for wanted in range(1, 40):
        answers = []
        for workers in (1, 2, 3):
            tried: list[int] = []

            def begin(more: int, tried: list[int] = tried) -> Known[float]:
                tried.append(more)
                return Known(40.0 - more)

            answers.append(_least(_Trials(begin, workers, most=64), wanted))
            assert len(tried) == len(set(tried))
        assert answers == [40 - wanted] * 3


def test_nothing_is_left_to_halve_where_no_job_waits() -> None:
    idle = gs.Workload.from_columns(submit=[0, 100], runtime=[1, 1], cores=[1, 1])
    with pytest.raises(InputError, match="wait_mean is already 0 on the present machine"):
        cores_for(idle, Platform.single(4))


def test_better_estimates_are_nearer_and_never_below_the_runtime(log: Workload) -> None:
    (change,) = changes_of(log, HERE, estimates=[3])
    before, after = log.estimate - log.runtime, change.workload.estimate - log.runtime
    above = before > 0
    np.testing.assert_allclose(after[above], before[above] / 3, atol=0.5)
    np.testing.assert_array_equal(after[~above], before[~above])


@pytest.mark.parametrize("sizes", [{"cores": [-1.0]}, {"loads": [0.0]}, {"estimates": [0.5]}])
def test_changes_that_make_no_sense_are_refused(log: Workload, sizes: dict[str, list[float]]) -> None:
    with pytest.raises(InputError):
        changes_of(log, HERE, **sizes)


def test_each_change_is_queried_of_the_same_replicas(log: Workload) -> None:
    changes = changes_of(log, HERE, cores=[0.5], loads=[1.5], estimates=[4.0])
    found = whatif(log, changes, platform=HERE, shake=2, resample=2, flurries="both")
    shaken, drawn = found.replicated
    assert (shaken.role, drawn.role) == ("shake", "resample")
    for alike, family in zip(found.replicated, families(shake=2, resample=2), strict=True):
        for replica in range(2):
            made = family.member(log, replica)
            for label, jobs, cores in (
                (NOW, made, 64),
                ("96 cores (+50 %)", made, 96),
                ("load times 1.5", LoadFactor(percent=150).apply(made), 64),
                ("estimates 4 times better", BetterEstimates(factor=4).apply(made), 64),
            ):
                known = metrics(run(jobs, Platform.single(cores), "easy"))["wait_mean"]
                assert alike.numbers[label]["wait_mean"][replica] == known, (alike.role, label)
    assert shaken.original == {one.label: one.numbers for one in found.outcomes}
    assert found.cleaned is not None  # no bursts of jobs: the same jobs
    assert [one.numbers for one in found.cleaned.outcomes] == [one.numbers for one in found.outcomes]


def test_users_who_react_do_so_in_replicas_and_to_each_change(log: Workload) -> None:
    reacting = transformed(log, ["react?reference=easy"], platform=HERE)
    found = whatif(reacting, changes_of(reacting, HERE, cores=[0.5]), platform=HERE, shake=2, resample=2)
    for alike, family in zip(found.replicated, families(shake=2, resample=2), strict=True):
        made = family.member(reacting, 1)
        assert made.reactions is not None
        for label, cores in ((NOW, 64), ("96 cores (+50 %)", 96)):
            known = metrics(run(made, Platform.single(cores), "easy"))["wait_mean"]
            assert alike.numbers[label]["wait_mean"][1] == known, (alike.role, label)


def test_replicas_are_the_same_with_any_number_of_workers(log: Workload) -> None:
    one, two = (
        whatif(log, changes_of(log, HERE, loads=[1.5]), platform=HERE, shake=3, workers=count).replicated[0]
        for count in (1, 2)
    )
    for label, numbers in one.numbers.items():
        for name, values in numbers.items():
            assert np.array_equal(values, two.numbers[label][name], equal_nan=True), (label, name)


def test_jobs_of_a_change_that_no_job_can_make_again_are_not_shaken(log: Workload) -> None:
    own = Change("exact", HERE, ExactEstimates().apply(log))
    with pytest.raises(InputError, match="'exact' has another workload; give the transform that creates it"):
        whatif(log, [own], platform=HERE, shake=2)
    assert whatif(log, [own], platform=HERE)["exact"].wait is not None


def test_an_unknown_treatment_of_flurries_is_refused(log: Workload) -> None:
    with pytest.raises(InputError, match="did you mean 'drop'"):
        whatif(log, [], platform=HERE, flurries="dorp")  # type: ignore[arg-type]
