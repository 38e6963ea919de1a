"""Execution of units: in this process, in processes of this machine, on a Dask cluster, or on another executor."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar

from gridsim.errors import InputError, installed
from gridsim.workers import Processes

T = TypeVar("T")

_PATIENCE = 30
"""Timeout for a connection to a Dask scheduler, s."""

_TOGETHER = 16
"""Largest number of units per batch; a batch has one workload, which the worker then reads once."""

_AHEAD = 2
"""Batches per worker: one running, and one waiting."""


class Pool:
    """Workers of an executor, which is not closed.

    Parameters
    ----------
    executor : Executor or Processes
        The executor.
    workers : int
        Approximate number of its workers.
    """

    together = _TOGETHER
    """Largest number of units per batch."""

    def __init__(self, executor: Any, workers: int) -> None:
        self._executor, self._workers = executor, workers

    @property
    def workers(self) -> int:
        """Approximate number of workers."""
        return self._workers

    @property
    def lead(self) -> int:
        """Number of batches to submit in advance."""
        return _AHEAD * self.workers

    def submit(self, work: Callable[..., T], /, *args: Any) -> Future[T]:
        """Submit work."""
        future: Future[T] = self._executor.submit(work, *args)
        return future

    def renew(self) -> None:
        """Start new workers after one has died."""
        raise InputError("a worker of the executor died; start again with a new executor: finished runs are kept")

    def is_lost(self) -> bool:
        """True if no worker is left."""
        return False


@contextmanager
def pool_of(workers: int, executor: Executor | str | None) -> Iterator[Pool]:
    """Yield a pool of workers for the duration of the block.

    Parameters
    ----------
    workers : int
        Number of processes on this machine; 1 uses only this process.
    executor : Executor or str or None
        Executor to use instead; a text is the address of a Dask scheduler.

    Raises
    ------
    InputError
        If the Dask scheduler cannot be reached.
    """
    if isinstance(executor, str):
        with _dask(executor) as cluster:
            yield cluster
    elif executor is not None:
        yield Pool(executor, max(workers, int(getattr(executor, "_max_workers", 1))))
    elif workers == 1:
        yield _Here(None, 1)
    else:
        processes = Processes(workers)
        try:
            yield _Processes(processes, workers)
        except BaseException:
            processes.close(at_once=True)
            raise
        processes.close(at_once=False)


class _Here(Pool):
    """This process: a unit runs when it is submitted, and is stored before the next one begins."""

    together = lead = 1

    def submit(self, work: Callable[..., T], /, *args: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(work(*args))
        return future


class _Processes(Pool):
    """Processes of this machine, started once for all units."""

    def renew(self) -> None:
        self._executor.renew()


@contextmanager
def _dask(address: str) -> Iterator[Pool]:
    distributed = installed("distributed", "Dask is not installed")
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler responds at '{address}': {error}", field="dask") from error
    try:
        yield _Dask(client.get_executor(pure=False), _Dask.AT_LEAST, client)
    finally:
        client.close(timeout=5)


class _Dask(Pool):
    """Workers of a Dask scheduler, whose number may change; units of a worker that dies run elsewhere."""

    AT_LEAST = 16  # workers; a cluster that scales with its queue must have a queue
    _COUNTED = 10.0  # seconds between two counts of the workers

    def __init__(self, executor: Any, workers: int, client: Any) -> None:
        super().__init__(executor, workers)
        self._client, self._cores, self._counted = client, 0, -math.inf

    @property
    def workers(self) -> int:
        if time.monotonic() > self._counted + self._COUNTED:
            self._counted = time.monotonic()
            with contextlib.suppress(OSError, RuntimeError):  # the scheduler is gone, as reported by `is_lost`
                self._cores = sum(self._client.ncores().values())
        return self._cores or self._workers

    @property
    def lead(self) -> int:
        return _AHEAD * max(self.workers, self._workers)

    def renew(self) -> None:
        raise AssertionError("Dask restarts its workers itself")

    def is_lost(self) -> bool:
        return str(self._client.status) != "running"
