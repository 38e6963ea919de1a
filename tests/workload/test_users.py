"""Reactions of users: the jobs of a log on whose ends later submissions depend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.reactions import NONE, Reactions
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.workload.transform.duplicate import Duplicate
from gridsim.workload.transform.react import React, habits
from gridsim.workload.transform.slice import Slice


def found(*jobs: tuple[int, int, int | None], think: int = 20, gap: int = 60) -> tuple[Reactions, int]:
    """Return reactions of jobs (user, submit, end), and the number of sessions."""
    user, submit = (np.array([job[column] for job in jobs], dtype=np.int64) for column in (0, 1))
    end = np.array([NEVER if job[2] is None else job[2] for job in jobs], dtype=np.int64)
    return habits(user, submit, end, think=think, gap=gap)


def test_a_submit_within_the_think_time_of_an_end_is_a_reaction_to_it():
    reactions, sessions = found((7, 0, 10), (7, 30, 40), (7, 61, 70))
    assert reactions.answers.tolist() == [False, True, False]
    assert reactions.delay.tolist() == [0, 20, 0]
    assert sessions == 2


def test_a_session_waits_for_what_ended_before_it_all_the_same():
    reactions, _ = found((7, 0, 10), (7, 99, 110))
    assert reactions.opens.tolist() == [True, True]
    assert reactions.before.tolist() == [reactions.batch[1], NONE]


def test_a_batch_waits_for_all_that_ended_since_the_last_submit_and_counts_from_the_last_end():
    reactions, _ = found((7, 0, 10), (7, 1, 15), (7, 2, 90), (7, 18, 40))
    assert len(set(reactions.batch[:3].tolist())) == 1
    assert reactions.before.tolist() == [reactions.batch[3], reactions.batch[3], NONE, NONE]
    assert reactions.delay[3] == 3


def test_jobs_submitted_while_nothing_ends_keep_their_distance_to_the_first_of_their_batch():
    reactions, _ = found((7, 0, 10), (7, 12, 50), (7, 30, 50), (7, 49, 51))
    assert reactions.batch[1] == reactions.batch[2] == reactions.batch[3]
    assert reactions.delay.tolist() == [0, 2, 20, 39]


def test_a_long_pause_while_nothing_ends_opens_a_session():
    reactions, sessions = found((7, 0, 10), (7, 12, 500), (7, 73, 500), gap=60)
    assert reactions.opens.tolist() == [True, False, True]
    assert sessions == 2
    assert found((7, 0, 10), (7, 12, 500), (7, 72, 500), gap=60).sessions == 1


def test_an_end_at_the_instant_of_a_submit_preceded_it():
    reactions, _ = found((7, 0, 10), (7, 10, 30), (7, 10, 31))
    assert reactions.delay.tolist() == [0, 0, 0]
    assert reactions.answers.tolist() == [False, True, True]
    assert reactions.batch[1] == reactions.batch[2]


def test_users_do_not_wait_for_each_other():
    reactions, sessions = found((7, 0, 10), (8, 11, 20), (7, 12, 30), (8, 25, 30))
    assert reactions.before[0] == reactions.batch[2]
    assert reactions.before[1] == reactions.batch[3]
    assert sessions == 2


def test_no_job_waits_for_jobs_of_unknown_users_or_ends():
    reactions, _ = found((-1, 0, 10), (-1, 12, 20), (7, 0, None), (7, 12, 20))
    assert (reactions.before == NONE).all()
    assert reactions.batch.tolist()[:2] == [NONE, NONE]


def log(**columns: list[float]) -> Workload:
    given = {"submit": [0, 15, 40], "runtime": [10, 20, 5], "cores": [1, 1, 1]}
    logged = {"wait": columns.pop("wait", [2, 0, 0])}
    return Workload.from_columns(**{**given, **columns}, labels={"user": [7, 7, 7]}, logged=logged)


def test_react_takes_ends_from_the_log_and_says_how_many_react():
    changed = React(think=5).apply(log())
    assert changed.reactions is not None
    assert (changed.reactions.delay / MICROSECOND).tolist() == [0, 3, 5]
    entry = changed.provenance["transforms"][-1]
    assert (entry["transform"], entry["reacting"], entry["sessions"]) == ("react", 2, 1)


def test_react_refuses_a_log_without_ends_and_one_without_users():
    bare = Workload.from_columns(submit=[0], runtime=[1], cores=[1], labels={"user": [1]})
    with pytest.raises(InputError, match=r"react\?reference=easy"):
        React().apply(bare)
    with pytest.raises(InputError, match="names no users"):
        React().apply(Workload.from_columns(submit=[0], runtime=[1], cores=[1], logged={"wait": [0]}))


@pytest.mark.parametrize("option", [{"think": -1.0}, {"gap": float("inf")}, {"gap": float("nan")}])
def test_react_refuses_times_that_are_none(option):
    with pytest.raises(InputError, match="expected seconds from 0"):
        React(**option)


def test_a_reaction_whose_reason_was_cut_off_comes_at_its_own_time():
    kept = Slice(first=1, jobs=2).apply(React().apply(log()), np.random.default_rng(1))
    assert kept.reactions is not None
    assert kept.reactions.answers.tolist() == [False, True]


def test_random_copies_wait_for_nothing_and_copies_with_their_originals_do_as_these():
    rng = np.random.default_rng(1)
    random = Duplicate(load=2, arrival="random").apply(React().apply(log()), rng)
    assert random.reactions is not None
    assert (random.reactions.batch[random.job > 3] == NONE).all()
    assert (random.reactions.before[random.job > 3] == NONE).all()
    attached = Duplicate(load=2, arrival="same").apply(React().apply(log()), rng)
    assert attached.reactions is not None
    assert attached.reactions.batch[::2].tolist() == attached.reactions.batch[1::2].tolist()


schedules = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(0, 200), st.one_of(st.none(), st.integers(0, 80))),
    min_size=1,
    max_size=25,
).map(
    lambda jobs: [
        (user, at, None if took is None else at + took) for user, at, took in sorted(jobs, key=lambda job: job[1])
    ]
)


@given(schedules, st.integers(0, 40), st.integers(0, 90))
def test_under_the_schedule_they_were_found_in_jobs_arrive_when_they_did(jobs, think, gap):
    reactions, _ = found(*jobs, think=think, gap=gap)
    user, submit = (np.array([job[column] for job in jobs], dtype=np.int64) for column in (0, 1))
    end = np.array([0 if job[2] is None else job[2] for job in jobs], dtype=np.int64)
    assert reactions.submits(user, submit, end).tolist() == submit.tolist()


@given(schedules, st.data())
def test_no_job_starts_before_earlier_ends_are_known(jobs, data):
    reactions, _ = found(*jobs)
    user, submit = (np.array([job[column] for job in jobs], dtype=np.int64) for column in (0, 1))
    over = np.array([data.draw(st.integers(0, 400)) for _ in jobs], dtype=np.int64)
    comes = reactions.submits(user, submit, over)
    for job, (owner, at, _) in enumerate(jobs):
        ended = [  # of earlier jobs: jobs submitted at the instant of an end do not depend on that job
            one
            for one, (other, came, end) in enumerate(jobs)
            if other == owner >= 0 and came < at and end is not None and end <= at
        ]
        assert comes[job] >= max((over[one] for one in ended), default=0)


@given(schedules, st.data())
def test_users_that_are_served_sooner_submit_no_later(jobs, data):
    reactions, _ = found(*jobs)
    user, submit = (np.array([job[column] for job in jobs], dtype=np.int64) for column in (0, 1))
    late = np.array([data.draw(st.integers(0, 400)) for _ in jobs], dtype=np.int64)
    soon = np.array([data.draw(st.integers(0, int(end))) for end in late], dtype=np.int64)
    assert (reactions.submits(user, submit, soon) <= reactions.submits(user, submit, late)).all()


# values in the log itself


def stated(*preceding: int, think: list[float] | None = None, **columns: list[float]) -> Workload:
    """Return jobs 1, 2 and 3 of one user, with the jobs on which they depend (-1: none)."""
    workload = log(**columns)
    given = {"preceding": np.array(preceding), "think": np.array(think or [np.nan] * 3, dtype=float)}
    return replace(workload, logged={**workload.logged, **given})


def test_a_job_arrives_its_stated_think_time_after_the_job_that_the_log_names():
    changed = React(think=5).apply(stated(-1, -1, 1, think=[np.nan, np.nan, 7]))
    assert changed.reactions is not None
    assert changed.reactions.then is not None
    assert changed.reactions.then.tolist() == [changed.reactions.batch[2], NONE, NONE]
    assert (changed.reactions.delay / MICROSECOND).tolist() == [0, 3, 7]
    assert changed.reactions.before.tolist() == [changed.reactions.batch[1], NONE, NONE]
    entry = changed.provenance["transforms"][-1]
    assert (entry["stated"], entry["reacting"], entry["sessions"]) == (1, 2, 1)
    assert "preceding_unknown" not in entry


def test_a_think_time_that_is_not_stated_is_that_of_the_log():
    changed = React(think=5).apply(stated(-1, -1, 1))
    assert changed.reactions is not None
    assert changed.reactions.delay[2] == (40 - 12) * MICROSECOND


def test_jobs_that_name_none_which_comes_before_are_like_any_other_and_counted():
    plain = React(think=5).apply(log())
    changed = React(think=5).apply(stated(2, 2, 99))  # a later job, the job itself, and one that does not exist
    assert changed.provenance["transforms"][-1]["preceding_unknown"] == 3
    assert changed.reactions is not None
    assert plain.reactions is not None
    assert changed.reactions.then is None
    for column in ("batch", "before", "delay", "opens"):
        assert np.array_equal(getattr(changed.reactions, column), getattr(plain.reactions, column))


def test_a_log_that_states_what_comes_after_what_needs_no_starts_and_no_users():
    bare = Workload.from_columns(
        submit=[0, 5, 9], runtime=[1, 1, 1], cores=[1, 1, 1], logged={"preceding": [-1, 1, 1], "think": [-1, 4.0, 9.0]}
    )
    changed = React().apply(bare).reactions
    assert changed is not None
    assert changed.batch[1] == changed.batch[2]
    over = np.array([100, 0, 0]) * MICROSECOND
    assert (changed.submits(None, bare.submit, over) / MICROSECOND).tolist() == [0, 104, 109]


def test_a_job_whose_stated_reason_was_cut_off_comes_at_its_own_time():
    kept = Slice(first=1).apply(React(think=5).apply(stated(-1, -1, 1)), np.random.default_rng(1))
    assert kept.reactions is not None
    assert not kept.reactions.answers.any()
    assert kept.reactions.submits(kept.labels["user"], kept.submit, kept.submit).tolist() == kept.submit.tolist()


def test_random_copies_do_not_come_after_what_the_log_states():
    copied = Duplicate(load=2).apply(React(think=5).apply(stated(-1, -1, 1)), np.random.default_rng(1)).reactions
    assert copied is not None
    assert copied.then is not None
    assert np.count_nonzero(copied.then != NONE) == 1


def test_a_job_that_ends_as_it_comes_is_waited_for_by_the_next_and_not_by_itself():
    reactions, _ = found((7, 0, 10), (7, 12, 12), (7, 12, 30))
    assert reactions.before.tolist() == [reactions.batch[1], reactions.batch[2], NONE]
    assert reactions.batch[1] != reactions.batch[2]
    assert reactions.delay.tolist() == [0, 2, 0]
