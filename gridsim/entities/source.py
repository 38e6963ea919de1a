"""Job arrivals: a process that releases each job at its submit time to the root router."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from simpy import Environment, Event

from gridsim.entities.instant import At, Instant
from gridsim.entities.router import Root
from gridsim.model.time import IntArray

__all__ = ["Source"]

_EVERY = 2048  # jobs between two words about progress


class Source:
    """Releases the requests of a run in job order.

    Parameters
    ----------
    submit : (n,) int64
        Submit instants in whole microseconds, ascending.
    progress : callable, optional
        Told the number of jobs released so far, now and then.
    """

    def __init__(
        self,
        env: Environment,
        submit: IntArray,
        router: Root,
        instant: Instant,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._env, self._router, self._instant, self._progress = env, router, instant, progress
        firsts = np.flatnonzero(np.diff(submit, prepend=-1))
        self._instants = zip(
            submit[firsts].data,
            firsts.data,
            np.append(firsts, len(submit))[1:].data,
            strict=True,
        )
        self.process = env.process(self._release())

    def _release(self) -> Generator[Event, None, None]:
        env, router, priority = self._env, self._router, self._instant.arrival
        told = 0
        for instant, first, end in self._instants:
            arrival = At(env, instant - int(env.now), priority)
            router.expect(arrival)
            yield arrival
            router.inbox.extend(range(first, end))
            if self._progress is not None and end - told >= _EVERY:
                told = end
                self._progress(told)
