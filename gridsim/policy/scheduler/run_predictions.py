"""Predictions of one run: made at submission, learnt from ends, corrected when a job exceeds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.errors import call, policy_error
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.capabilities import corrects_by_rule, predicts_in_columns, uses_run_times
from gridsim.policy.prediction import Clairvoyant
from gridsim.policy.protocols import representation
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.runtime_history import CORRECTIONS, FIRST, PRESENT, REQUEST, RUN, Histories, correct, learn, predict
from gridsim.record import Predictions as PredictionRecord


class Predicting:
    """Base of schedulers that plan with predicted run times, or else with the requested walltimes."""

    _predictions: Any  # None without predictions

    def __repr__(self) -> str:
        return representation(self)

    def predicted(self, request: int) -> int:
        """Return the predicted run time of a running request, whole microseconds."""
        found: int = self._predictions.predicted(request)
        return found

    def corrected(self, request: int, now: int) -> int:
        """Correct the prediction of a running request that exceeds it; return the new one, whole microseconds."""
        corrected: int = self._predictions.correct_exceeded(request)
        self._expect(request, self._predictions.expected_end(request))
        return corrected

    def predictions(self) -> PredictionRecord:
        """Return the first predictions, and the number of corrections."""
        return PredictionRecord(self._predictions.first, self._predictions.corrections)

    def _expect(self, request: int, end: int) -> None:
        """Set the expected end of a running request."""
        raise NotImplementedError

    def _note_starts(self, requests: Iterable[int], now: int) -> None:
        """Record that requests have started."""
        if self._predictions is not None:
            for request in requests:
                self._predictions.began(request, now)


class Predictions:
    """Predicted run times of the requests of a cluster, and the state of the predictor.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    predictor, corrector : object
        A `gridsim.policy.prediction.Predictor` and a `Corrector`.
    rng : Generator
        For random predictors.

    Attributes
    ----------
    first, present : (n,) int64
        Predictions at submission, and present ones, whole microseconds; `NEVER` before submission.
    corrections : (n,) int64
        Number of corrections of each request.
    """

    def __init__(self, cluster: ClusterView, predictor: Any, corrector: Any, rng: Generator) -> None:
        requests = cluster.requests
        self._requests, self._predictor, self._corrector, self._tick = requests, predictor, corrector, cluster.tick
        # Compiled predictors work on columns; others are called for each request.
        self._learns, self._corrects = predicts_in_columns(predictor), corrects_by_rule(corrector)
        rule = corrector.rule if self._corrects else REQUEST
        made = predictor if self._learns else Clairvoyant()
        self._histories: Histories = made.histories(requests, rule, cluster.tick)
        self._history = tuple(self._histories.history)
        table: IntArray = self._histories.history.predicted
        self.first, self.present, self.corrections = table[FIRST], table[PRESENT], table[CORRECTIONS]
        self._first, self._present, self._began = self.first.data, self.present.data, np.zeros_like(self.first).data
        self._estimate = requests.estimate.data
        self._exact = uses_run_times(predictor)
        if self._exact:
            assert cluster.runtime is not None
            table[RUN] = cluster.runtime
            call(predictor, "setup", rng, cluster.runtime / 1e6)
        else:
            call(predictor, "setup", rng)

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """Columns with which compiled loops predict, learn and correct; None if any of this is in Python."""
        return self._history if self._learns and self._corrects else None

    def predict(self, request: int, now: int) -> int:
        """Return the predicted run time of a request submitted now, whole microseconds, at most its estimate.

        The work that earlier runs saved is subtracted if the estimate is that of the remaining work.
        """
        if request not in self._requests.earlier:
            return self._of_all_work(request, self._estimate[request], now)
        _, less = self._requests.earlier[request]
        return max(1, self._of_all_work(request, self._estimate[request] + less, now) - less)

    def _of_all_work(self, request: int, estimate: int, now: int) -> int:
        if self._learns:
            if request >= self._requests.known:
                self._histories.add(request)
            return int(predict(request, estimate, self._history))
        answer = self._answer(request, now)
        if answer is None or answer >= estimate:
            return estimate
        return max(answer, 1) if self._exact else min(estimate, max(self._tick, answer // self._tick * self._tick))

    def _answer(self, request: int, now: int) -> int | None:
        answer = call(self._predictor, "predict", self._queue(request), now / 1e6)
        try:
            answers = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            answers = np.full(1, np.nan)
        if answers.shape != (1,) or not answers[0] >= 0:
            what = (
                f"predicts {np.asarray(answer).tolist()} for request {request}; expected one number of seconds from 0"
            )
            raise policy_error(self._predictor, what)
        return None if math.isinf(answers[0]) else round(float(answers[0]) * 1e6)

    def _queue(self, request: int) -> Queue:
        return Queue(self._requests, np.array([request]))

    def submitted(self, request: int, prediction: int) -> None:
        """Store the prediction of an admitted request."""
        self._first[request] = self._present[request] = prediction

    def began(self, request: int, now: int) -> None:
        """Record the start of a request."""
        self._began[request] = now

    def ended(self, request: int, now: int) -> None:
        """Let the predictor learn the run time of a request, at most its estimate; nothing from a run that was cut."""
        if request in self._requests.stopped:
            self.corrections[request] = 0
            return
        ran = min(now - self._began[request], self._estimate[request])
        if request in self._requests.earlier:
            ran += self._requests.earlier[request][0]
        self._learn(request, ran, now)

    def _learn(self, request: int, ran: int, now: int) -> None:
        if self._learns:
            learn(request, ran, self._history)
            return
        call(self._predictor, "finished", self._queue(request), np.array([ran / 1e6]), now / 1e6)

    def recall(self, past: Sequence[tuple[int, int, int]]) -> frozenset[int]:
        """Learn ended jobs (user, run time, end), and predict earlier requests as of their submission; return these.

        Each job is learnt as a request of its user; jobs of users without requests do not matter.
        """
        submit, users = self._requests.submit, self._requests.labels.get("user")
        one_of = {} if users is None else dict(zip(users.tolist(), range(len(users)), strict=True))
        ended = [(end, 0, one_of[user], ran) for user, ran, end in past if user in one_of]
        came = [(int(submit[row]), 1, row, 0) for row in np.flatnonzero(submit <= 0).tolist()]
        for now, submits, row, ran in sorted([*ended, *came], key=lambda it: it[:2]):
            if submits:
                self.submitted(row, self.predict(row, now))
            else:
                self._learn(row, ran, now)
        return frozenset(row for _, _, row, _ in came)

    def resume(self, request: int, limit: int, now: int) -> int:
        """Continue a request that reaches its estimate at *limit*; return its expected end after all corrections."""
        self.began(request, limit - self._estimate[request])
        while self.expected_end(request) <= min(now, limit - 1):
            self.correct_exceeded(request)
        return self.expected_end(request)

    def predicted(self, request: int) -> int:
        """Return the present prediction of a request, whole microseconds."""
        present: int = self._present[request]
        return present

    def correct_exceeded(self, request: int) -> int:
        """Correct the prediction of a running request that exceeds it; return the new one, whole microseconds.

        Raises
        ------
        PolicyError
            If the new prediction is not larger.
        """
        estimate = self._estimate[request]
        if self._corrects:
            return int(correct(request, estimate, self._history))
        present, times = self._present[request], int(self.corrections[request]) + 1
        first = self._first[request]
        answer = call(self._corrector, "correct", first / 1e6, present / 1e6, times, estimate / 1e6)
        if isinstance(answer, int):
            answer = min(answer, NEVER)  # larger integers may not convert to float
        if not isinstance(answer, float | int | np.floating | np.integer) or math.isnan(answer):
            what = f"corrects {present / 1e6} s of request {request} to {answer!r}; expected a number of seconds"
            raise policy_error(self._corrector, what)
        corrected = estimate if math.isinf(answer) else min(round(float(answer) * 1e6), NEVER)
        if corrected <= present:
            what = f"corrects {present / 1e6} s of request {request} to {corrected / 1e6} s; expected more"
            raise policy_error(self._corrector, what)
        self._present[request] = corrected
        self.corrections[request] = times
        return int(corrected)

    def expected_end(self, request: int) -> int:
        """Return the expected end of a running request, whole microseconds."""
        end: int = self._began[request] + self._present[request]
        return end
