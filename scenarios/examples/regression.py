"""A learning predictor: least squares of the logarithm of run times on user, size, request and hour."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Regression:
    """Predict a run time from the user's mean and last run time, cores, request and hour of the day.

    The predictor learns from a job at its end, with the features known at its submission: the job's own run time does
    not contribute to its features. *ridge* keeps weights small while there are few observations; each newer job
    multiplies the weight of older jobs by *fade*.
    """

    ridge: float = 1.0
    fade: float = 0.999

    def setup(self, rng):
        self.among, self.with_ran = self.ridge * np.eye(7), np.zeros(7)
        self.known = {}  # features at submission of jobs that have not ended
        self.of_user = {}  # jobs that ended, the sum of the logarithms of their run times, and the last one

    def predict(self, queue, now):
        self.known.update((row, self.features(queue, at)) for at, row in enumerate(queue.rows))
        weights = np.linalg.solve(self.among, self.with_ran)
        return np.exp([min(self.known[row] @ weights, 20) for row in queue.rows])

    def finished(self, queue, ran, now):
        for row, user, seconds in zip(queue.rows, queue.label("user"), ran, strict=True):
            features, took = self.known.pop(row), np.log(max(seconds, 1))
            self.among = self.fade * self.among + np.outer(features, features)
            self.with_ran = self.fade * self.with_ran + took * features
            jobs, total, _ = self.of_user.get(user, (0, 0, 0))
            self.of_user[user] = jobs + 1, total + took, took

    def features(self, queue, at):
        asked, hour = np.log(max(queue.estimate[at], 1)), queue.submit[at] % 86400 / 86400 * 2 * np.pi
        jobs, total, last = self.of_user.get(queue.label("user")[at], (0, 0, asked))
        mean = (total + asked) / (jobs + 1)  # without enough history, predict half of the requested time
        return np.array([1, mean, last, asked, np.log2(queue.cores[at]), np.sin(hour), np.cos(hour)])
