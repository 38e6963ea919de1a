"""Worker processes of this machine: how they start and end, and how objects are pickled for them.

What they are for stands above: units of a campaign (`gridsim.campaign.executors`), the runs of one question
(`gridsim.scenario`). Nothing here knows a workload.
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
"""Seconds between two words of a worker about its progress, and between two looks at what was said."""

_GRACE = 0.5
"""Seconds that a worker has to leave what it is at, when nobody waits for it any more."""


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def started_by(*, copies: bool = False) -> Any:
    """How processes are started.

    Parameters
    ----------
    copies : bool
        Whether they may be copies of this process, where that is safe: on Linux, while it has no second thread. They
        are there within 10 ms and share its memory; any others must first import what they need (0.6 s).
    """
    if copies and sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    if os.name == "posix":
        context.set_forkserver_preload(["gridsim.scenario"])
    return context


class Processes:
    """Processes of this machine, started once; they end with their driver, however it ends.

    Parameters
    ----------
    workers : int
        How many.
    context : optional
        How they are started; where left out, by a server that has imported what most need.
    prepare : callable, optional
        What a worker does first, with *given* as its arguments; both must pass to a worker.
    """

    def __init__(
        self,
        workers: int,
        *,
        context: Any = None,
        prepare: Callable[..., None] | None = None,
        given: Sequence[Any] = (),
    ) -> None:
        self.workers = workers
        self._context = context or started_by()
        self._prepare, self._given = prepare, tuple(given)
        self._start()

    @property
    def _copied(self) -> Any:
        """What a copy of this process has too, and others have not."""
        return self._own_end if self._context.get_start_method() == "fork" else None

    def _start(self) -> None:
        self._line, self._own_end = self._context.Pipe(duplex=False)  # nothing is sent: it breaks when the driver ends
        first = (self._line, self._copied, self._prepare, self._given)
        self._executor = ProcessPoolExecutor(self.workers, mp_context=self._context, initializer=_begin, initargs=first)
        # All workers start with the first task, as copies of this process do. One that is started with a later task is
        # not watched from its first moment, and its death is never seen (CPython 3.11).
        self._executor._safe_to_dynamically_spawn_children = False  # type: ignore[attr-defined]

    def submit(self, work: Callable[..., T], /, *args: Any) -> Future[T]:
        """Have something done."""
        return self._executor.submit(work, *args)

    def _broken(self) -> bool:
        """Whether a worker has died, and the pool with it."""
        try:
            self._executor.submit(_nothing)
        except BrokenProcessPool:
            return True
        return False

    def renew(self) -> None:
        """Begin with new workers after one has died."""
        self.close(at_once=True)
        self._start()

    def close(self, *, at_once: bool) -> None:
        """Stop; *at_once*: what is under way is not waited for, as nobody would keep it."""
        at_once = at_once or self._broken()
        if at_once:
            self._own_end.close()  # ends every worker, whatever it is at
        self._executor.shutdown(wait=True, cancel_futures=True)
        if not at_once:
            self._own_end.close()
        self._line.close()


def _begin(line: Any, copied: Any, prepare: Callable[..., None] | None, given: Sequence[Any]) -> None:
    """In a worker: end when the driver does. A pool alone would leave its workers waiting for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver is interrupted too, and says so once
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing to tidy up yet
    if copied is not None:
        copied.close()  # or the line would never break: a copy of the driver has its end too

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            line.recv_bytes()
        signal.raise_signal(signal.SIGTERM)  # whoever writes a file takes away what is half written
        time.sleep(_GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if prepare is not None:
        prepare(*given)
    signal.signal(signal.SIGTERM, _stop)


def _stop(*_: object) -> None:
    """Leave what this worker is at: tidily, or else by force, as the pool takes an exit for an answer of the work."""
    if hasattr(signal, "setitimer"):  # not on Windows, where nobody is asked before
        signal.setitimer(signal.ITIMER_REAL, _GRACE)
    raise SystemExit(1)


class Awaited(Protocol[T_co]):
    """What will be known."""

    def result(self) -> T_co:
        """The answer; waits for it. Raises what the work raised."""
        ...


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """An answer that is there."""

    value: T

    def result(self) -> T:
        """The answer."""
        return self.value


class Workers:
    """Who does the runs of one question: this process, or a few others, with the same answers in the same order.

    Parameters
    ----------
    count : int
        Processes; 1 for none but this one.
    share : sequence of object
        What most of the work needs, such as the workload: each worker gets it once.
    say : callable, optional
        Told what the user should know; `warnings.warn` where left out.
    prepare : callable, optional
        What each worker does first, told how to *say* something.
    preload : callable, optional
        Called before this process is copied, to import modules once for all workers.

    Notes
    -----
    What cannot be sent to another process (a class of a notebook, an object that holds a lock) is done in this one.

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
        if count < 1:
            raise InputError(f"{count} workers; expected at least 1", field="workers")
        self.count, self._share, self._prepare, self._preload = count, tuple(share), prepare, preload
        self._say = say or (lambda text: warnings.warn(text, stacklevel=4))
        self._told: dict[int, Callable[..., None]] = {}
        self._named: set[str] = set()
        self._processes: Processes | None = None

    def __enter__(self) -> Self:
        if self.count > 1:
            _give_back()  # or each copy would have it too
            context = started_by(copies=True)
            if self._preload is not None and context.get_start_method() == "fork":
                self._preload()
            self._heard = context.SimpleQueue()
            given = (self._heard, self._share, self._prepare)
            self._processes = Processes(self.count, context=context, prepare=_ready, given=given)
            self._processes.submit(_nothing)  # copies of this process are made now, before it has other threads
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
        """Have something done: soon by a worker, or by this process when its answer is asked for.

        Parameters
        ----------
        work : callable
            Of a module.
        name : str, optional
            Whose work it is: the user is told when it has to be done in this process.
        progress : callable, optional
            *work* gets a ``progress`` of its own; what it is told there is told here, while an answer is waited for.
        """
        here = _Here(
            partial(work, *args, **more, **({} if progress is None else {"progress": self._hearing(progress)}))
        )
        if self._processes is None:
            return here
        sent = [*args, *more.values()]
        number = len(self._told)
        self._told[number] = progress or _unheard
        try:
            task = packed((work, args, more), references(self._share))
        except Exception as error:  # whatever the class of a user raises
            self._stays(name, error)
            return here
        with _alive():
            future = self._processes.submit(_worked, task, None if progress is None else number)
        _give_back()
        return _Elsewhere(self, future, sent, here, name)

    def _stays(self, name: str | None, error: object) -> None:
        """Say once that a policy runs in this process."""
        if name is not None and name not in self._named:
            self._named.add(name)
            self._say(f"{name} cannot be sent to another process ({error}), so it runs in this one")

    def _hearing(self, progress: Callable[..., None]) -> Callable[..., None]:
        """Progress of work in this process; what workers say is passed on meanwhile."""
        if self._processes is None:
            return progress

        def told(*words: Any) -> None:
            self.listen()
            progress(*words)

        return told

    def listen(self) -> None:
        """Pass on what workers have said."""
        while self._processes is not None and not self._heard.empty():
            number, words = self._heard.get()
            if number is None:
                self._say(*words)
            else:
                self._told[number](*words)


@contextmanager
def crew(workers: int | Workers, share: Sequence[Any] = ()) -> Iterator[Workers]:
    """Those who are there already, or as many as are asked for, for as long as they are needed."""
    if isinstance(workers, Workers):
        yield workers
    else:
        with Workers(workers, share=share) as found:
            yield found


@contextmanager
def _alive() -> Iterator[None]:
    """Let it be told that a worker was killed, as the system does where memory is short."""
    try:
        yield
    except BrokenProcessPool as error:
        raise GridsimError("a worker process died; was memory short? --workers 1 needs the least") from error


def _give_back() -> None:
    """Give the system the memory that is not used any more, which the C library would keep.

    That takes 1 ms, and was a tenth of what a comparison needed.
    """
    if _trim is not None:
        _trim(0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
"""Of glibc alone."""


def _unheard(*_: Any) -> None:
    """Nobody wants to know."""


def _nothing() -> None:
    """For a worker to be there."""


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
    """Work that a worker was given."""

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


# In a worker.

_DONE, _RAISED, _UNREADABLE = "done", "raised", "unreadable"


class _Desk:
    """What a worker has at hand."""

    heard: Any = None
    share: tuple[Any, ...] = ()


def _ready(heard: Any, share: tuple[Any, ...], prepare: Callable[[Callable[[str], None]], None] | None) -> None:
    _Desk.heard, _Desk.share = heard, share
    if prepare is not None:
        prepare(lambda text: heard.put((None, (text,))))


class _Reporter:
    """Progress of a task, told to the driver now and then; the last word at the end."""

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
    """What the work returned or raised, packed; what it held meanwhile is the system's again."""
    try:
        return _answer(task, number)
    finally:
        _give_back()


def _answer(task: bytes, number: int | None) -> bytes:
    """What the work returned or raised, packed: what came with the task is not sent back."""
    try:
        work, args, more = unpacked(task, _Desk.share)
    except Exception as error:  # such as a class of the driver's own main module
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
    """An error for the driver, with its place unless it was raised on purpose."""
    told = "" if isinstance(error, GridsimError) else "".join(traceback.format_exception(error))
    try:
        if told:
            error.add_note(f"In a worker process:\n{told}")
        text = packed((_RAISED, error))
        unpacked(text)
    except Exception:  # an error that holds what cannot be sent
        return packed((_RAISED, RuntimeError(told or str(error))))
    return text


class _Packer(pickle.Pickler):
    """Leaves out what the other side has; classes of plain files are named by their files."""

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
    """What stands for things that the other side has, by their ``id``: their places."""
    return {id(thing): place for place, thing in enumerate(things) if not isinstance(thing, _PLAIN)}


_PLAIN = (str, bytes, int, float, type(None))
"""As short as a reference to them."""


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, place: int) -> Any:
        return self._known[place]


def packed(thing: Any, known: Mapping[int, int] | None = None) -> bytes:
    """A thing as bytes; *known* are references, by ``id``, to what the other side has."""
    file = io.BytesIO()
    _Packer(file, known or {}).dump(thing)
    return file.getvalue()


def unpacked(text: bytes, known: Sequence[Any] = ()) -> Any:
    """The thing again; *known* is what references stand for, by place."""
    return _Unpacker(io.BytesIO(text), known).load()
