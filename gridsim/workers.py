"""Worker processes on this machine: start, shutdown, and pickling of objects for them.

They run units of a campaign (`gridsim.campaign.executors`) or the runs of one question (`gridsim.scenario`). This
module does not depend on workloads.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from gridsim import registry
from gridsim.errors import GridsimError, InputError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_PAUSE = 0.1
"""Seconds between progress messages of a worker, and between checks for messages."""

_GRACE = 0.5
"""Seconds that a worker has for cleanup before it is stopped."""

MOST = 1000
"""Largest number of workers: each is a process."""


def check_count(workers: int) -> None:
    """Raise `InputError` for a number of workers that is not possible."""
    if not 1 <= workers <= MOST:
        raise InputError(f"{workers} workers; expected at least 1 and at most {MOST:,}", field="workers")


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def started_by(*, copies: bool = False) -> Any:
    """Return the context that starts processes.

    Parameters
    ----------
    copies : bool
        Whether to fork this process if that is safe: on Linux, while it has no second thread. Forks start within 10 ms
        and share its memory; other processes first import the modules that they need (0.6 s).
    """
    if copies and sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    if os.name == "posix":
        context.set_forkserver_preload(["gridsim.scenario"])
    return context


class Processes:
    """Pool of processes that end with their driver, even if the driver is killed.

    Parameters
    ----------
    workers : int
        Number of processes.
    context : optional
        Start method; by default a server process that has imported the commonly needed modules.
    prepare : callable, optional
        Initialisation of each worker, called with *given* as arguments; both must be picklable.
    """

    def __init__(
        self,
        workers: int,
        *,
        context: Any = None,
        prepare: Callable[..., None] | None = None,
        given: Sequence[Any] = (),
    ) -> None:
        self.workers, self._context = workers, context or started_by()
        self._prepare, self._given = prepare, tuple(given)
        self._start()

    @property
    def _copied(self) -> Any:
        """Pipe end that forks of this process inherit."""
        return self._own_end if self._context.get_start_method() == "fork" else None

    def _start(self) -> None:
        self._line, self._own_end = self._context.Pipe(duplex=False)  # nothing is sent: it closes when the driver ends
        first = (self._line, self._copied, self._prepare, self._given)
        self._executor = ProcessPoolExecutor(self.workers, mp_context=self._context, initializer=_begin, initargs=first)
        # All workers start with the first task, as forks do. With CPython 3.11, the death of a worker that starts with
        # a
        # later task is not detected.
        self._executor._safe_to_dynamically_spawn_children = False  # type: ignore[attr-defined]

    def submit(self, work: Callable[..., T], /, *args: Any) -> Future[T]:
        """Submit work to the pool."""
        return self._executor.submit(work, *args)

    def _broken(self) -> bool:
        """Return whether a worker has died, which breaks the pool."""
        try:
            self._executor.submit(_nothing)
        except BrokenProcessPool:
            return True
        return False

    def renew(self) -> None:
        """Start new workers after one has died."""
        self.close(at_once=True)
        self._start()

    def close(self, *, at_once: bool) -> None:
        """Shut down the pool; *at_once*: without waiting for running tasks."""
        at_once = at_once or self._broken()
        if at_once:
            self._own_end.close()  # ends every worker immediately
        self._executor.shutdown(wait=True, cancel_futures=True)
        if not at_once:
            self._own_end.close()
        self._line.close()


def _begin(line: Any, copied: Any, prepare: Callable[..., None] | None, given: Sequence[Any]) -> None:
    """Start a worker that ends when the driver does; workers of a plain pool would wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver is interrupted too, and reports it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # no cleanup is needed yet
    if copied is not None:
        copied.close()  # else the pipe would never close: a fork also has the driver's end

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            line.recv_bytes()
        signal.raise_signal(signal.SIGTERM)  # handlers remove partly written files
        time.sleep(_GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if prepare is not None:
        prepare(*given)
    signal.signal(signal.SIGTERM, _stop)


def _stop(*_: object) -> None:
    """Stop this worker: with cleanup, or else by force, since the pool treats the exit as a result of the task."""
    if hasattr(signal, "setitimer"):  # not on Windows, where processes are terminated directly
        signal.setitimer(signal.ITIMER_REAL, _GRACE)
    raise SystemExit(1)


class Awaited(Protocol[T_co]):
    """Pending result."""

    def result(self) -> T_co:
        """Wait for the result and return it; raise the exception of the work."""
        ...


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """Available result."""

    value: T

    def result(self) -> T:
        """Return the result."""
        return self.value


class Workers:
    """Executor of the runs of one question, in this process or in workers, with identical results in the same order.

    Parameters
    ----------
    count : int
        Number of processes; 1 uses only this process.
    share : sequence of object
        Objects that most tasks need, such as the workload; each worker receives them once.
    say : callable, optional
        Called with messages for the user; by default `warnings.warn`.
    prepare : callable, optional
        Initialisation of each worker, called with *say*.
    preload : callable, optional
        Called before this process is copied, to import modules once for all workers.

    Notes
    -----
    Work that cannot be pickled (a class of a notebook, an object with a lock) runs in this process.

    Examples
    --------
    >>> with Workers(1) as workers:
    ...     answers = [workers.submit(pow, 2, each) for each in (3, 4)]
    ...     [answer.result() for answer in answers]
    [8, 16]
    """

    def __init__(
        self,
        count: int = 1,
        *,
        share: Sequence[Any] = (),
        say: Callable[[str], None] | None = None,
        prepare: Callable[[Callable[[str], None]], None] | None = None,
        preload: Callable[[], None] | None = None,
    ) -> None:
        check_count(count)
        self.count, self._share, self._prepare, self._preload = count, tuple(share), prepare, preload
        self._say = say or (lambda text: warnings.warn(text, stacklevel=4))
        self._listeners: dict[int, Callable[..., None]] = {}
        self._named: set[str] = set()
        self._processes: Processes | None = None

    def __enter__(self) -> Self:
        if self.count > 1:
            _give_back()  # before the fork, so that workers do not inherit unused memory
            context = started_by(copies=True)
            if self._preload is not None and context.get_start_method() == "fork":
                self._preload()
            self._heard = context.SimpleQueue()
            # Forks have the objects; other processes import classes of plain files from these files.
            share = self._share if context.get_start_method() == "fork" else packed(self._share)
            given = self._heard, share, self._prepare
            self._processes = Processes(self.count, context=context, prepare=_ready, given=given)
            self._processes.submit(_nothing)  # forks are made now, before this process has other threads
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._processes is not None:
            self._processes.close(at_once=error is not None)
            self._processes = None

    def submit(
        self,
        work: Callable[..., T],
        /,
        *args: Any,
        name: str | None = None,
        progress: Callable[..., None] | None = None,
        **more: Any,
    ) -> Awaited[T]:
        """Submit work, which starts in a worker, or in this process when its result is requested.

        Parameters
        ----------
        work : callable
            A function of a module.
        name : str, optional
            Name for the message to the user if the work must run in this process.
        progress : callable, optional
            Called with the progress of *work*, which has its own parameter ``progress``, while a result is awaited.
        """
        hearing: dict[str, Any] = {} if progress is None else {"progress": self._hearing(progress)}
        here = _Here(partial(work, *args, **more, **hearing))
        if self._processes is None:
            return here
        sent, number = [*args, *more.values()], len(self._listeners)
        self._listeners[number] = progress or _unheard
        try:
            task = packed((work, args, more), references(self._share))
        except Exception as error:  # a user-defined class may raise anything
            self._stays(name, error)
            return here
        with _alive():
            future = self._processes.submit(_worked, task, None if progress is None else number)
        _give_back()
        return _Elsewhere(self, future, sent, here, name)

    def _stays(self, name: str | None, error: object) -> None:
        """Report once that a policy runs in this process."""
        if name is not None and name not in self._named:
            self._named.add(name)
            self._say(f"{name} cannot be sent to another process ({error}), so it runs in this one")

    def _hearing(self, progress: Callable[..., None]) -> Callable[..., None]:
        """Return the progress callback for work in this process, which also forwards messages of workers."""
        if self._processes is None:
            return progress

        def report(*words: Any) -> None:
            self.listen()
            progress(*words)

        return report

    def listen(self) -> None:
        """Forward the messages of workers."""
        while self._processes is not None and not self._heard.empty():
            number, words = self._heard.get()
            if number is None:
                self._say(*words)
            else:
                self._listeners[number](*words)


@contextmanager
def crew(workers: int | Workers, share: Sequence[Any] = ()) -> Iterator[Workers]:
    """Yield the given workers, or new ones for the duration of the block."""
    if isinstance(workers, Workers):
        yield workers
    else:
        with Workers(workers, share=share) as found:
            yield found


@contextmanager
def _alive() -> Iterator[None]:
    """Raise an error if a worker was killed, for example because memory was short."""
    try:
        yield
    except BrokenProcessPool as error:
        raise GridsimError("a worker process died (out of memory?); --workers 1 needs the least memory") from error


def _give_back() -> None:
    """Return unused memory of the C library to the system.

    This takes 1 ms and reduced the memory of a comparison by a tenth.
    """
    if _trim is not None:
        _trim(0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
"""Only in glibc."""


def _unheard(*_: Any) -> None:
    """Ignore progress."""


def _nothing() -> None:
    """Do nothing, to start a worker or test the pool."""


class _Here(Generic[T]):
    """Work for this process."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: list[T] = []

    def result(self) -> T:
        if not self._found:
            self._found.append(self._work())
        return self._found[0]


class _Elsewhere(Generic[T]):
    """Work submitted to a worker."""

    def __init__(
        self, workers: Workers, future: Future[bytes], sent: Sequence[Any], here: _Here[T], name: str | None
    ) -> None:
        self._workers, self._future, self._sent, self._here, self._name = workers, future, sent, here, name
        self._answer: Awaited[T] | None = None

    def result(self) -> T:
        if self._answer is None:
            self._answer = self._received()
            _give_back()
        return self._answer.result()

    def _received(self) -> Awaited[T]:
        while not wait([self._future], timeout=_PAUSE).done:
            self._workers.listen()
        self._workers.listen()
        with _alive():
            kind, found = unpacked(self._future.result(), [*self._workers._share, *self._sent])
        if kind == _UNREADABLE:
            self._workers._stays(self._name, found)
            return self._here
        if kind == _RAISED:
            raise found
        return Known(found)


# Functions that run in a worker.

_DONE, _RAISED, _UNREADABLE = "done", "raised", "unreadable"


class _Desk:
    """State of a worker."""

    heard: Any = None
    share: tuple[Any, ...] = ()


def _ready(heard: Any, share: Any, prepare: Callable[[Callable[[str], None]], None] | None) -> None:
    _Desk.heard, _Desk.share = heard, unpacked(share) if isinstance(share, bytes) else share
    if prepare is not None:
        prepare(lambda text: heard.put((None, (text,))))


class _Reporter:
    """Forwards the progress of a task to the driver at intervals, and at the end."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._last: tuple[Any, ...] | None = None
        self._next = 0.0

    def __call__(self, *words: Any) -> None:
        self._last = words
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        if self._last is not None:
            _Desk.heard.put((self._number, self._last))
            self._last, self._next = None, time.monotonic() + _PAUSE


def _worked(task: bytes, number: int | None) -> bytes:
    """Return the pickled result or exception of the work, and release unused memory."""
    try:
        return _answer(task, number)
    finally:
        _give_back()


def _answer(task: bytes, number: int | None) -> bytes:
    """Return the pickled result or exception of the work, without the objects in its arguments."""
    try:
        work, args, more = unpacked(task, _Desk.share)
    except Exception as error:  # such as an unknown class of the driver's main module
        return packed((_UNREADABLE, f"{type(error).__name__}: {error}"))
    at_hand = references([*_Desk.share, *args, *more.values()])
    reporter = None if number is None else _Reporter(number)
    try:
        found = work(*args, **more, **({} if reporter is None else {"progress": reporter}))
    except Exception as error:
        return _packed_error(error)
    finally:
        if reporter is not None:
            reporter.flush()
    return packed((_DONE, found), at_hand)


def _packed_error(error: Exception) -> bytes:
    """Return a pickled error for the driver, with its traceback unless gridsim raised it on purpose."""
    trace = "" if isinstance(error, GridsimError) else "".join(traceback.format_exception(error))
    try:
        if trace:
            error.add_note(f"In a worker process:\n{trace}")
        text = packed((_RAISED, error))
        unpacked(text)
    except Exception:  # an error whose attributes cannot be pickled
        return packed((_RAISED, RuntimeError(trace or str(error))))
    return text


class _Packer(pickle.Pickler):
    """Pickler that replaces known objects by references, and classes of plain files by their files."""

    def __init__(self, file: io.BytesIO, known: Mapping[int, int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._known = known

    def persistent_id(self, thing: Any) -> int | None:
        return self._known.get(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type) and (file := registry.file_of(thing)) is not None:
            return registry.find, ("class", f"{file}:{thing.__name__}")
        return NotImplemented


def references(things: Sequence[Any]) -> dict[int, int]:
    """Return the positions of objects known to the other side, by ``id``."""
    return {id(thing): place for place, thing in enumerate(things) if not isinstance(thing, _PLAIN)}


_PLAIN = (str, bytes, int, float, type(None))
"""Types that are as short as a reference."""


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, place: int) -> Any:
        return self._known[place]


def packed(thing: Any, known: Mapping[int, int] | None = None) -> bytes:
    """Pickle an object; *known* are the positions, by ``id``, of objects known to the other side."""
    file = io.BytesIO()
    _Packer(file, known or {}).dump(thing)
    return file.getvalue()


def unpacked(text: bytes, known: Sequence[Any] = ()) -> Any:
    """Unpickle an object; *known* are the referenced objects by position."""
    return _Unpacker(io.BytesIO(text), known).load()
