"""Run times of finished jobs as columns by user, and the rules of the included predictors and correctors, compiled.

`HistoryColumns` are passed as a plain tuple, which is fastest:

- ``predicted`` (6, n): per request its first prediction, the present one and its number of corrections; the history
  slots of its user, and of its user and size class (-1 for none); its true run time, if the predictor uses it;
- ``kept`` (slots, n): run times of the last jobs of a slot, a ring buffer; ``known`` (2, slots): number of ended jobs,
  and the sum of ``kept``; all in whole microseconds;
- ``averages`` (slots,): exponential averages, s; ``weight`` (1,): weight of the last job in them;
- ``rules`` (4,): predictor, corrector, tick (whole microseconds), number of jobs in a mean.
"""

# Types are in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray
from gridsim.policy.queue import Requests

FIRST, PRESENT, CORRECTIONS, USER, SIMILAR_SLOT, RUN = range(6)
PREDICTOR, CORRECTOR, TICK, MEAN_OF = range(4)
RECENT, AVERAGE, SIMILAR, EXACT = range(4)
"""Predictors: mean of the last jobs, exponential average, mean of similar jobs, true run times."""
REQUEST, STEPS, ADDED, DOUBLE, DOUBLE_OR_LESS = range(5)
"""Correctors; the last one doubles, up to the requested walltime."""
UNKNOWN = -1
_COUNT, _SUM = 0, 1
_SIZES = 64
"""Number of size classes: integer parts of the binary logarithm of a 64-bit number."""
_MINUTES: IntArray = np.array((1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_000, 6_000))
"""Increments of the first eleven corrections, min; the twelfth sets the prediction to the requested walltime."""
_MINUTE = 60 * MICROSECOND


class HistoryColumns(NamedTuple):
    """Predictions for the requests, and the state of the predictor, as described above."""

    predicted: IntArray
    kept: IntArray
    known: IntArray
    averages: FloatArray
    weight: FloatArray
    rules: IntArray


class Histories:
    """Columns in which one run's predictor learns.

    Parameters
    ----------
    requests : Requests
        All requests that may be submitted; their label ``user`` identifies the user, below 0 for unknown.
    predictor, corrector : int
        Their rules, as named in this module.
    tick : int
        Unit to which predictions are rounded down, whole microseconds.
    mean_of : int
        Number of jobs in a mean.
    weight : float
        Weight of the last job in an average.

    Attributes
    ----------
    history : HistoryColumns
        The columns.
    """

    def __init__(
        self,
        requests: Requests,
        predictor: int,
        corrector: int = REQUEST,
        *,
        tick: int = MICROSECOND,
        mean_of: int = 1,
        weight: float = 1.0,
    ) -> None:
        n = len(requests)
        self._requests, self._slots = requests, dict[tuple[int, int], int]()
        predicted = np.full((6, n), NEVER, dtype=np.int64)
        predicted[CORRECTIONS], predicted[USER], predicted[SIMILAR_SLOT] = 0, UNKNOWN, UNKNOWN
        self._user = requests.labels.get("user") if predictor != EXACT else None
        slots = 1
        if self._user is not None:
            rows = np.flatnonzero(self._user[: requests.known] >= 0)
            users, of = np.unique(self._user[rows].astype(np.int64), return_inverse=True)
            self._slots.update(((user, UNKNOWN), slot) for slot, user in enumerate(users.tolist()))
            predicted[USER, rows] = of
            if predictor == SIMILAR:
                found, alike = np.unique(of * _SIZES + np.frexp(requests.cores[rows])[1], return_inverse=True)
                for slot, (user, size) in enumerate(zip(*np.divmod(found, _SIZES), strict=True), len(users)):
                    self._slots[int(users[user]), int(size)] = slot
                predicted[SIMILAR_SLOT, rows] = alike + len(users)
            slots = len(self._slots) + 2 * requests.spare + 1
        means = predictor in (RECENT, SIMILAR)
        self.history = HistoryColumns(
            predicted,
            np.zeros((slots, min(mean_of, n) if means else 0), dtype=np.int64),
            np.zeros((2, slots), dtype=np.int64),
            np.zeros(slots),
            np.array([weight]),
            np.array([predictor, corrector, tick, mean_of], dtype=np.int64),
        )

    def add(self, request: int) -> None:
        """Assign history slots to a request that was unknown at the start of the run."""
        if self._user is None or self._user[request] < 0:
            return
        user, predicted = int(self._user[request]), self.history.predicted
        predicted[USER, request] = self._slots.setdefault((user, UNKNOWN), len(self._slots))
        if self.history.rules[PREDICTOR] == SIMILAR:
            alike = user, int(self._requests.cores[request]).bit_length()
            predicted[SIMILAR_SLOT, request] = self._slots.setdefault(alike, len(self._slots))


def no_predictions() -> tuple[Any, ...]:
    """Return an empty tuple of columns, for loops without predictions."""
    none = np.zeros((0, 0), dtype=np.int64)
    return tuple(HistoryColumns(none, none, none, np.zeros(0), np.zeros(0), np.zeros(4, dtype=np.int64)))


@njit_noalloc
def answer(row, history):  # type: ignore[no-untyped-def]
    """Return the predicted run time of a request, whole microseconds; below 0 while its history is too short."""
    predicted, _, known, averages, _, rules = history
    if rules[PREDICTOR] == EXACT:
        return predicted[RUN, row]
    slot = predicted[USER, row]
    if slot < 0:
        return UNKNOWN
    if rules[PREDICTOR] == AVERAGE:
        return int(averages[slot] * 1e6) if known[_COUNT, slot] else UNKNOWN
    if rules[PREDICTOR] == SIMILAR and known[_COUNT, predicted[SIMILAR_SLOT, row]] >= rules[MEAN_OF]:
        slot = predicted[SIMILAR_SLOT, row]
    return known[_SUM, slot] // rules[MEAN_OF] if known[_COUNT, slot] >= rules[MEAN_OF] else UNKNOWN


@njit_noalloc
def predict(row, estimate, history):  # type: ignore[no-untyped-def]
    """Return the prediction, limited to one tick and the estimate and in whole ticks; the estimate if there is none.

    True run times are not rounded.
    """
    rules = history[5]
    answered = answer(row, history)
    if answered < 0 or answered >= estimate:
        return estimate
    if rules[PREDICTOR] == EXACT:
        return answered
    return min(estimate, max(rules[TICK], answered // rules[TICK] * rules[TICK]))


@njit_noalloc
def learn(row, ran, history):  # type: ignore[no-untyped-def]
    """Add a run time, whole microseconds, to the histories of the request's user."""
    predicted, kept, known, averages, weight, rules = history
    slot = predicted[USER, row]
    if slot < 0:
        return
    if rules[PREDICTOR] == AVERAGE:
        seconds = ran / 1e6
        if known[_COUNT, slot]:
            seconds = weight[0] * seconds + (1 - weight[0]) * averages[slot]
        averages[slot] = seconds
        known[_COUNT, slot] += 1
        return
    _keep(slot, ran, kept, known)
    if rules[PREDICTOR] == SIMILAR:
        _keep(predicted[SIMILAR_SLOT, row], ran, kept, known)


@njit_noalloc
def _keep(slot, ran, kept, known):  # type: ignore[no-untyped-def]
    place = known[_COUNT, slot] % kept.shape[1]
    known[_SUM, slot] += ran - kept[slot, place]
    kept[slot, place] = ran
    known[_COUNT, slot] += 1


@njit_noalloc
def corrected(rule, first, present, times, estimate):  # type: ignore[no-untyped-def]
    """Return the new prediction of a request that exceeded its prediction for the *times*-th time."""
    if rule in (STEPS, ADDED) and times <= len(_MINUTES):
        before = first if rule == STEPS else present
        return min(estimate, before + _MINUTES[times - 1] * _MINUTE)
    if rule == DOUBLE:
        return 2 * present
    return min(estimate, 2 * present) if rule == DOUBLE_OR_LESS else estimate


@njit_noalloc
def correct(row, estimate, history):  # type: ignore[no-untyped-def]
    """Correct the prediction of a request that exceeds it; return the new one, whole microseconds."""
    predicted, rules = history[0], history[5]
    predicted[CORRECTIONS, row] += 1
    first, present, times = predicted[FIRST, row], predicted[PRESENT, row], predicted[CORRECTIONS, row]
    predicted[PRESENT, row] = corrected(rules[CORRECTOR], first, present, times, estimate)
    return predicted[PRESENT, row]
