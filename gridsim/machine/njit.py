"""Decorators of compiled loops: a loop is compiled at its first call and cached until a source of any loop changes.

A loop can also be compiled in a separate process, while this process compiles others.

numba is imported with the first loop that is called, since the import takes 0.3 CPU s and 90 MB.
"""

from __future__ import annotations

import atexit
import errno
import functools
import gc
import getpass
import hashlib
import importlib
import os
import pickle
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsim.files import distrust, warn

if TYPE_CHECKING:
    from subprocess import Popen


def _setting(name: str) -> Any:
    """Return a compiler setting: from numba if it is loaded or has a configuration file, else from the environment."""
    config: Any = sys.modules.get("numba.core.config")
    if config is None and Path(".numba_config.yaml").exists():
        config = importlib.import_module("numba.core.config")
    return getattr(config, name) if config is not None else os.environ.get(f"NUMBA_{name}", "")


def _is_plain() -> bool:
    """Return whether loops remain plain Python."""
    return str(_setting("DISABLE_JIT")) not in {"", "0", "False"}


def folder(package: Path, say: Callable[[str], None] = lambda notice: None) -> str:
    """Return the cache folder of loops compiled from these sources; empty if no folder can be used.

    The first folder is used that this user can write and other users cannot: the folder of ``NUMBA_CACHE_DIR`` or of
    the package, the user's cache folder, a temporary folder.

    Parameters
    ----------
    package : path
        Folder of the sources.
    say : callable, optional
        Called with the reason why a folder is not used, and with the temporary folder that is used.
    """
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    named = _setting("CACHE_DIR")
    bases = [Path(named) if named else package / "__pycache__"]
    with suppress(RuntimeError):  # no home folder
        bases.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gridsim"))
    kept, state = len(bases), f"compiled-{state_of(package)}"
    with suppress(OSError):  # no temporary folder either
        bases.append(Path(tempfile.gettempdir(), f"gridsim-{user}"))
    for number, base in enumerate(bases):
        try:
            reason = _prepare(base / state)
        except OSError as error:
            reason = f"it cannot be written ({error.strerror})" if named and number == 0 else ""
        else:
            if not reason:
                if number >= kept:
                    say(f"compiled loops are kept in the temporary folder {base}, since no other folder can be used")
                return str(base / state)
        if reason:
            say(f"{base / state} is not used for compiled loops: {reason}")
    say("compiled loops are not kept, since no folder can be used: each process compiles its own")
    return ""


_SOURCES = (
    *("engine", "entities", "machine", "model", "policy", "record.py"),
    *("metrics/node_timeline.py", "report/core_assignment.py", "workload/formats/number_table_parser.py"),
)
"""Files with compiled loops or their constants, and folders of such files; relative to the package."""


def state_of(package: Path) -> str:
    """Return a checksum of all sources that contain compiled loops or their constants."""
    digest = hashlib.blake2b(digest_size=8)
    for part in _SOURCES:
        sources = [part] if part.endswith(".py") else []
        for folder, inside, names in os.walk(package / part):
            inside[:] = [name for name in inside if name != "__pycache__"]
            sources += [os.path.relpath(f"{folder}/{name}", package) for name in names if name.endswith(".py")]
        for source in sorted(sources):
            with suppress(FileNotFoundError), open(package / source, "rb", buffering=0) as file:  # noqa: PTH123
                content = file.read()
                digest.update(f"{source} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _prepare(folder: Path) -> str:
    """Create a folder for this user only; return why an existing folder, or its parent, cannot be trusted."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    above = folder.parent.stat()
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        return f"other users can write to {folder.parent}"
    if hasattr(os, "geteuid") and above.st_uid not in (os.geteuid(), 0):
        return f"{folder.parent} belongs to another user (uid {above.st_uid})"
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    return distrust(folder.lstat())


_NOTICES: list[str] = []
"""Messages about the cache folder; shown once the compiler is needed."""

FOLDER = folder(Path(__file__).parents[1], _NOTICES.append)
"""Cache folder of compiled loops, which no other user can write; empty if there is none."""


def njit(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays at its first call, and cache it for other processes.

    If several processes need it at once, one of them compiles it, and the others wait and load it.
    ``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled. Named tuples of arrays bundle related data. From Python, a
    plain tuple is faster to pass (0.1 µs instead of 0.5); the loop converts it to the named tuple.
    """
    return _made(function, {"_nrt": True})  # explicit, since a loop would inherit it from its caller


_LEAN = {"_nrt": False, "error_model": "numpy"}
_PHASE = {"inline": "always", **_LEAN}


def njit_noalloc(function: Callable[..., Any]) -> Any:
    """Like `njit`, without reference counting; the loop must not allocate.

    This halves the compile time, and counting took 80 % of a short backfill cycle. The compiler rejects a loop that
    allocates.
    """
    return _made(function, _LEAN)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a part of a loop into the loop: for readable code where a call would cost 0.1 µs with bundles.

    Called from Python, it is a `njit_noalloc` loop.
    """
    return _made(function, _PHASE)


def verb(stub: Callable[..., Any], options: dict[str, Any] = _LEAN) -> Any:
    """Make a function with one implementation for each class of its first argument, in Python and in compiled loops.

    Implementations are registered as with `functools.singledispatch`, for classes of named tuples. A loop that calls a
    verb is compiled with the implementation of that class, like a `njit_noalloc` loop.
    """
    function = functools.singledispatch(stub)
    if not _is_plain():
        _VERBS.append((function, options))
        if "numba" in sys.modules:
            _load()
    return function


def inline_verb(stub: Callable[..., Any]) -> Any:
    """Make a `verb` whose implementations are compiled into the loop that calls it, like `inline`."""
    return verb(stub, _PHASE)


def _made(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    if _is_plain():
        return function
    loop = Loop(function, options, FOLDER)
    if "numba" not in sys.modules:
        _WAITING.append(loop)
        return loop
    _load()
    return loop.make()


class Loop:
    """A loop for which numba has not been imported yet; `_load` replaces it by numba's dispatcher in all modules.

    Parameters
    ----------
    function : callable
        Source of the loop.
    options : dict
        Options of `numba.njit`.
    folder : str
        Folder of the cache; empty for no cache.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], folder: str) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._options, self._folder = function, options, folder
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call numba's dispatcher."""
        return self.made(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    @property
    def made(self) -> Any:
        """Dispatcher of numba for the loop; imports numba."""
        if self._compiled is None:
            _load()
        return self._compiled

    def make(self) -> Any:
        """Create numba's dispatcher of the loop."""
        self._compiled = _compiler().make(self.py_func, self._folder, self._options)
        return self._compiled


_WAITING: list[Loop] = []
_VERBS: list[tuple[Any, dict[str, Any]]] = []
_LOADING = threading.RLock()


@functools.cache
def _compiler() -> Any:
    compiler = importlib.import_module("gridsim.machine.compiler")
    compiler.register(report)
    return compiler


def preload() -> None:
    """Import numba and all modules for the first loop, so that forked processes have them."""
    if not _is_plain():
        with _uncollected():
            _load()
            _compiler().load_target()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Suspend garbage collection while the compiler creates many objects and hardly any garbage; saves a fifth."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _load() -> None:
    """Import numba and replace previously defined loops by its dispatchers, which are faster to call."""
    with _LOADING, _uncollected():
        compiler = _compiler()
        while _NOTICES:
            warn(_NOTICES.pop(0))
        while _VERBS:
            compiler.make_verb(*_VERBS.pop())
        if not _WAITING:
            return
        for loop in _WAITING:
            loop.make()
        _WAITING.clear()
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", {})
            for name, value in list(names.items()):
                if type(value) is Loop:
                    names[name] = value.made


def is_kept(loop: Any) -> bool:
    """Return whether a loop can be called without compilation: it is compiled in this process or cached."""
    if not isinstance(loop, Loop) and getattr(loop, "signatures", None):
        return True
    plain = getattr(loop, "py_func", None)
    if plain is None or not FOLDER:
        return plain is None  # never compiled
    return _on_disk(f"{plain.__module__.rpartition('.')[2]}.{plain.__qualname__}-")


@functools.cache
def _on_disk(stem: str) -> bool:
    """Return whether the cache has a loop compiled by an earlier process; checked once per process."""
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    return any(Path(FOLDER).rglob(f"{stem}*.py{version}.nbi"))


def as_python(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function of a loop, which accepts objects and integers of any size."""
    return getattr(loop, "py_func", loop)


def worth_compiling(loop: Any, many: bool) -> bool:
    """Return whether a compiled loop is faster than slower code without it, compile and import time included.

    *many* states that the loop has so much work that compilation is always faster.
    """
    return as_python(loop) is not loop and (many or (not isinstance(loop, Loop) and is_kept(loop)))


_LISTENERS: dict[Callable[[str], None], set[str]] = {}
"""Listeners for compile events, and the modules of which each has been notified."""


def report(module: str) -> None:
    """Notify each listener once that loops of a module are compiled."""
    for say, known in list(_LISTENERS.items()):
        if module not in known:
            known.add(module)
            say(module)


@contextmanager
def when_compiling(say: Callable[[str], None]) -> Iterator[None]:
    """Call *say* with the name of a module when its first uncached loop is compiled."""
    on_compile(say)
    try:
        yield
    finally:
        del _LISTENERS[say]


def on_compile(say: Callable[[str], None]) -> None:
    """Do the same as `when_compiling` for the rest of this process."""
    _LISTENERS[say] = set()
    listen()


def listen() -> None:
    """Load the compiler, which reports compile events, if other code has already imported numba."""
    if _LISTENERS and "numba" in sys.modules:
        _load()


def compile_in_background(loop: Any, arguments: tuple[Any, ...]) -> Popen[bytes] | None:
    """Compile a loop for the types of some arguments in a new process; return that process.

    Return None for commands that do not wait, with a single core, and for loops that are cached or not compiled. The
    new process ends with this one. A process that calls the loop loads it from the cache, and waits for its compilation
    to end.
    """
    from subprocess import DEVNULL, PIPE, Popen  # only for Slurm's loops

    plain = getattr(loop, "py_func", None)
    if plain is None or not _LISTENERS or _cores() < 2 or is_kept(loop):
        return None
    types = pickle.dumps(tuple(loop.typeof_pyval(each) for each in arguments))
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = Popen(
            [sys.executable, "-c", _COMPILE, plain.__module__, plain.__qualname__],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env=places,
            start_new_session=True,  # Ctrl-C ends it with this process, without output
        )
        assert process.stdin is not None
        with process.stdin as stream:
            stream.write(types)
    except OSError:  # the loop is compiled at its call instead
        return None
    atexit.register(process.kill)
    return process


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_COMPILE = (
    "import importlib, pickle, sys;"
    "getattr(importlib.import_module(sys.argv[1]), sys.argv[2]).compile(pickle.load(sys.stdin.buffer))"
)
"""Program of that process."""


def records(**columns: Any) -> Any:
    """Return columns of whole numbers as one array, which is as fast to pass to a loop as a single column.

    Loops read ``records.name[row]``; other code reads ``records["name"][row]``.
    """
    found = np.rec.fromarrays(list(columns.values()), dtype=[(name, np.int64) for name in columns])
    # Only uncompiled loops need the attributes, which are slow to look up.
    return found if _is_plain() else found.view(np.ndarray).view(np.dtype(found.dtype.descr))
