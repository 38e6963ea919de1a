"""Compiled run-time histories, compared with the definitions of predictors and correctors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.model.random_streams import stream
from gridsim.model.workload import Workload
from gridsim.policy.prediction import Added, Average, Clairvoyant, Double, Recent, Request, Similar, Steps
from gridsim.policy.queue import Queue, Requests
from gridsim.policy.runtime_history import UNKNOWN, answer, learn, predict

MINUTE = 60.0


def requests_of(users: list[int], cores: list[int], spare: int = 0) -> Requests:
    n = len(users)
    return Requests(
        Workload.from_columns(submit=range(n), runtime=[9] * n, cores=cores, labels={"user": users}), spare=spare
    )


def mean(last: list[int], n: int) -> int:
    return sum(last[-n:]) // n if len(last) >= n else UNKNOWN


@given(
    jobs=st.lists(st.tuples(st.integers(-1, 2), st.integers(1, 9), st.integers(1, 10**12)), min_size=1, max_size=30),
    n=st.integers(1, 4),
)
def test_means_are_of_the_last_jobs_of_the_user_and_of_the_size_class(jobs: list[Any], n: int) -> None:
    requests = requests_of([user for user, _, _ in jobs], [cores for _, cores, _ in jobs])
    recent = tuple(Recent(n).histories(requests).history)
    similar = tuple(Similar(n).histories(requests).history)
    of: defaultdict[Any, list[int]] = defaultdict(list)
    for row, (user, cores, ran) in enumerate(jobs):
        of_user = mean(of[user], n) if user >= 0 else UNKNOWN
        alike = mean(of[user, cores.bit_length()], n) if user >= 0 else UNKNOWN
        assert answer(row, recent) == of_user
        assert answer(row, similar) == (of_user if alike == UNKNOWN else alike)
        for history in (recent, similar):
            learn(row, ran, history)
        of[user].append(ran)
        of[user, cores.bit_length()].append(ran)


def test_an_average_is_of_seconds_and_its_answer_rounded_down() -> None:
    history = tuple(Average(0.3).histories(requests_of([7, 7, 7], [1, 1, 1])).history)
    assert answer(0, history) == UNKNOWN
    learn(0, 1_000_000, history)
    learn(1, 2_000_001, history)
    assert answer(2, history) == int((0.3 * 2.000001 + 0.7 * 1.0) * 1e6)


def test_a_prediction_lies_between_a_tick_and_the_estimate_in_whole_ticks() -> None:
    history = tuple(Recent(1).histories(requests_of([1, 1], [1, 1]), tick=4).history)
    for ran, said in ((3, 4), (11, 8), (50, 50)):
        learn(0, ran, history)
        assert predict(1, 50, history) == said


def test_a_job_that_arrives_later_has_the_history_of_its_user() -> None:
    requests = requests_of([3, 3, 5, 8], [1, 1, 4, 4], spare=2)
    histories = Similar(1).histories(requests)
    history = tuple(histories.history)
    learn(0, 17, history)
    requests.labels["user"][2] = 3
    histories.add(2)
    assert answer(2, history) == 17  # of all jobs of the user: none has this size
    learn(2, 30, history)
    requests.labels["user"][3] = 9
    histories.add(3)
    assert answer(3, history) == UNKNOWN


def test_in_python_a_predictor_answers_and_learns_the_same() -> None:
    requests = requests_of([2, 2, -1], [1, 1, 1])
    predictor = Recent(1)
    predictor.setup(stream(0, "test"))
    queue = Queue(requests, np.arange(3))
    assert predictor.predict(queue, 0.0).tolist() == [np.inf] * 3
    predictor.finished(Queue(requests, np.array([0])), np.array([2.5]), 9.0)
    assert predictor.predict(queue, 9.0).tolist() == [2.5, 2.5, np.inf]
    assert Clairvoyant().histories(requests).history.kept.size == 0


@pytest.mark.parametrize(
    ("corrector", "times", "said"),
    [
        (Request(), 1, 90_000.0),
        (Steps(), 1, 100.0 + MINUTE),
        (Steps(), 3, 100.0 + 15 * MINUTE),
        (Steps(), 11, 90_000.0),
        (Steps(), 12, 90_000.0),
        (Added(), 2, 700.0 + 5 * MINUTE),
        (Double(), 4, 1_400.0),
        (Double(cap=False), 1, 1_400.0),
    ],
)
def test_predictions_of_correctors(corrector: Any, times: int, said: float) -> None:
    assert corrector.correct(100.0, 700.0, times, 90_000.0) == said


def test_the_cap_of_a_double_is_the_request() -> None:
    assert Double().correct(1.0, 60.0, 1, 100.0) == 100.0
    assert Double(cap=False).correct(1.0, 60.0, 1, 100.0) == 120.0
