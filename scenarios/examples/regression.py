"""A predictor that learns: least squares of the logarithm of run times on user, size, request and hour, job by job."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Regression:
    """What such a job ran so far: the user's mean and last run time, cores, request, hour of the day.

    A job is learned from at its end, with what was known when it came: nothing is told by its own run time. *ridge*
    keeps weights small while little is known, *fade* is what older jobs count for after each one that is newer.
    """

    ridge: float = 1.0
    fade: float = 0.999

    def setup(self, rng):
        self.among, self.with_ran = self.ridge * np.eye(7), np.zeros(7)
        self.known = {}  # features of jobs that have not ended, as they were when they came
        self.of_user = {}  # jobs that ended, the sum of the logarithms of what they ran, and the last

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
        mean = (total + asked) / (jobs + 1)  # one with little behind them is believed half what they ask for
        return np.array([1, mean, last, asked, np.log2(queue.cores[at]), np.sin(hour), np.cos(hour)])
