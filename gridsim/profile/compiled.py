"""One way to compile a loop: kept on disk, and made anew when any compiled loop of gridsim has changed.

The compiler keeps what it made beside the source of each loop and looks at the age of that file alone. A loop that has
taken in another one from another file would then go on with what that one was before an update.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import event

if sys.platform != "win32":
    import fcntl

__all__ = ["compiled", "folder", "is_kept", "lean", "phase", "records", "tell_compiling", "when_compiling"]

_OPTIONS: Any = numba.config


def folder(package: Path) -> str:
    """Where this state of all loops is kept; empty for the compiler's own choice where the package cannot be written.

    A folder that the user names (``NUMBA_CACHE_DIR``) holds one folder for each state.
    """
    files = [path for room in ("profile", "policy", "calendar") for path in sorted((package / room).rglob("*.py"))]
    stamps = [(str(path.relative_to(package)), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    state = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    base = Path(_OPTIONS.CACHE_DIR) if _OPTIONS.CACHE_DIR else package / "__pycache__"
    writable = os.access(base if base.exists() else base.parent, os.W_OK)
    return str(base / f"compiled-{state}") if writable else ""


_FOLDER = folder(Path(__file__).parents[1])


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays when it is first called, and keep it for the next process.

    Of several processes that need it at once, one compiles it and the others wait and take what it kept.
    ``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled. Named tuples of arrays bundle what belongs together. From
    Python a plain tuple is handed over quicker (0.1 µs instead of 0.5); the loop gives its parts their names.
    """
    return _compiled(function, _nrt=True)  # said of each, since a loop would have it from the one that calls it


def lean(function: Callable[..., Any]) -> Any:
    """The same for a loop that makes no arrays and keeps none: nobody counts who holds them.

    That takes half the time to compile, and counting was 80 % of a short pass of backfilling. The compiler refuses a
    loop that makes one.
    """
    return _compiled(function, _nrt=False, error_model="numpy")


def phase(function: Callable[..., Any]) -> Any:
    """A part of a loop, compiled into it: named to be read, where a call would cost (0.1 µs with bundles).

    Called from Python it is a lean loop.
    """
    return _compiled(function, inline="always", _nrt=False, error_model="numpy")


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    before = _OPTIONS.CACHE_DIR
    _OPTIONS.CACHE_DIR = _FOLDER or before
    try:
        made: Any = numba.njit(cache=True, **options)(function)
    finally:
        _OPTIONS.CACHE_DIR = before
    if _FOLDER and hasattr(made, "compile"):
        made.compile = _by_one(made.compile, Path(_FOLDER, f"{function.__module__}.{function.__qualname__}.lock"))
    return made


def _by_one(make: Callable[[Any], Any], lock: Path) -> Callable[[Any], Any]:
    """Look for what is kept, and else compile it, while no other process does so.

    A loop calls others, and none of them calls it: nobody waits for who waits for him.
    """

    def compile_or_take(signature: Any) -> Any:
        _load_compiler()
        with _held(lock):
            return make(signature)

    return compile_or_take


_BLAS = "scipy.linalg.cython_blas"


@functools.cache
def _load_compiler() -> None:
    """Load what the compiler loads for its first loop, but for SciPy's linear algebra: 0.13 s that no loop here needs.

    The compiler asks whether it is there by loading it. It is told so, and loads it when a loop calls it.
    """
    if _BLAS in sys.modules or importlib.util.find_spec("scipy") is None:
        return
    sys.modules[_BLAS] = ModuleType(_BLAS)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[_BLAS]


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    """Hold a file, as far as the system can: at the worst a loop is compiled twice."""
    with ExitStack() as until:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = until.enter_context(lock.open("a"))
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_kept(loop: Any) -> bool:
    """Whether a loop can be called without being compiled: in this process, or by what another one kept."""
    if getattr(loop, "signatures", None):
        return True
    plain = getattr(loop, "py_func", None)
    if plain is None or not _FOLDER:
        return plain is None  # never compiled at all
    return _on_disk(f"{plain.__module__.rpartition('.')[2]}.{plain.__qualname__}-")


@functools.cache
def _on_disk(stem: str) -> bool:
    """Whether what an earlier process compiled is there; looked for once in a process."""
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    return any(Path(_FOLDER).rglob(f"{stem}*.py{version}.nbi"))


class _Modules(event.Listener):
    """Says of each module once that loops of it are compiled, and not fetched."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[str] = set()
        self._within = 0

    def on_start(self, now: Any) -> None:
        self._within += 1
        module = now.data["dispatcher"].py_func.__module__
        if self._within == 1 and module not in self._said:  # loops that it calls belong to it
            self._said.add(module)
            self._say(module)

    def on_end(self, _: Any) -> None:
        self._within -= 1


@contextmanager
def when_compiling(say: Callable[[str], None]) -> Iterator[None]:
    """Call *say* with the name of a module when the first loop of it is compiled that was not kept."""
    with event.install_listener("numba:compile", _Modules(say)):
        yield


def tell_compiling(say: Callable[[str], None]) -> None:
    """`when_compiling` for the rest of this process."""
    event.register("numba:compile", _Modules(say))  # type: ignore[no-untyped-call]


def records(**columns: Any) -> Any:
    """Columns of whole numbers as one array: a loop takes it over as quickly as a single column.

    Loops read ``records.name[row]``, all others ``records["name"][row]``.
    """
    found = np.rec.fromarrays(list(columns.values()), dtype=[(name, np.int64) for name in columns])
    # Only uncompiled loops need the attributes, and looking for them is slow.
    return found if _OPTIONS.DISABLE_JIT else found.view(np.ndarray).view(np.dtype(found.dtype.descr))
