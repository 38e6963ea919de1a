"""Predictions of one run: asked when requests come, taught by ends, corrected when they are outlived."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator

from gridsim.errors import PolicyError
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.capabilities import knows_runtimes
from gridsim.policy.prediction import History
from gridsim.policy.protocols import failed, name_of
from gridsim.policy.queue import ClusterView, Queue

__all__ = ["Predictions"]


class Predictions:
    """What is believed of the requests of a cluster, and what a predictor learns.

    Parameters
    ----------
    cluster : ClusterView
        The cluster.
    predictor, corrector : object
        Who answers (`gridsim.policy.prediction.Predictor`, `Corrector`).
    rng : Generator
        For predictors that draw.

    Attributes
    ----------
    first, present : (n,) int64
        Predictions when requests came, and as they stand now, whole microseconds; `NEVER` before.
    corrections : (n,) int64
        How often each has been corrected.
    """

    def __init__(self, cluster: ClusterView, predictor: Any, corrector: Any, rng: Generator) -> None:
        requests = cluster.requests
        n = len(requests)
        self._requests, self._predictor, self._corrector, self._tick = requests, predictor, corrector, cluster.tick
        self.first: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.present: IntArray = np.full(n, NEVER, dtype=np.int64)
        self.corrections: IntArray = np.zeros(n, dtype=np.int64)
        self._first, self._present, self._began = self.first.data, self.present.data, np.zeros(n, dtype=np.int64).data
        self._estimate, self._cores = requests.estimate.data, requests.cores.data
        users = requests.labels.get("user")
        self._user = None if users is None else np.require(users, dtype=np.int64, requirements=["C"]).data
        self._own = isinstance(predictor, History)  # asked without columns, in a fifth of the time
        self._exact = knows_runtimes(predictor)
        try:
            if self._exact:
                assert cluster.runtime is not None
                predictor.setup(rng, cluster.runtime / 1e6)
            else:
                predictor.setup(rng)
        except Exception as error:
            raise failed(predictor, "setup", error) from error

    def predict(self, request: int, now: int) -> int:
        """What a request that comes now will run, whole microseconds: from one tick up to its estimate."""
        estimate: int = self._estimate[request]
        answer = self._answer(request, now)
        if answer is None or answer >= estimate:
            return estimate
        return answer if self._exact else min(estimate, max(self._tick, answer // self._tick * self._tick))

    def _answer(self, request: int, now: int) -> int | None:
        if self._own:
            user = -1 if self._user is None else self._user[request]
            known: int | None = None if user < 0 else self._predictor.answer(user, self._cores[request])
            return known
        try:
            answers = np.asarray(self._predictor.predict(self._queue(request), now / 1e6), dtype=np.float64)
        except Exception as error:
            raise failed(self._predictor, "predict", error) from error
        if answers.shape != (1,) or not answers[0] >= 0:
            what = f"predicts {answers.tolist()} for request {request}; expected one number of seconds from 0"
            raise PolicyError(f"{name_of(self._predictor)} {what}")
        return None if math.isinf(answers[0]) else round(float(answers[0]) * 1e6)

    def _queue(self, request: int) -> Queue:
        return Queue(self._requests, np.array([request]))

    def came(self, request: int, prediction: int) -> None:
        """A request is taken in with what was predicted for it."""
        self._first[request] = self._present[request] = prediction

    def began(self, request: int, now: int) -> None:
        """A request starts."""
        self._began[request] = now

    def ended(self, request: int, now: int) -> None:
        """The predictor learns what a request ran, no more than it asked for."""
        ran = min(now - self._began[request], self._estimate[request])
        if self._own:
            if self._user is not None and self._user[request] >= 0:
                self._predictor.learn(self._user[request], self._cores[request], ran)
            return
        try:
            self._predictor.finished(self._queue(request), np.array([ran / 1e6]), now / 1e6)
        except Exception as error:
            raise failed(self._predictor, "finished", error) from error

    def outlived(self, request: int) -> int:
        """A running request goes on at the end of its prediction; what is believed now, whole microseconds.

        Raises
        ------
        PolicyError
            When that is no more than before.
        """
        present, estimate = self._present[request], self._estimate[request]
        times = int(self.corrections[request]) + 1
        first = self._first[request]
        try:
            answer = self._corrector.correct(first / 1e6, present / 1e6, times, estimate / 1e6)
            corrected = estimate if math.isinf(answer) else round(answer * 1e6)
        except Exception as error:
            raise failed(self._corrector, "correct", error) from error
        if corrected <= present:
            what = f"corrects {present / 1e6} s of request {request} to {corrected / 1e6} s; expected more"
            raise PolicyError(f"{name_of(self._corrector)} {what}")
        self._present[request] = corrected
        self.corrections[request] = times
        return int(corrected)

    def expected_end(self, request: int) -> int:
        """When a running request should end, whole microseconds."""
        return int(self._began[request] + self._present[request])
