"""Decorators of compiled loops: a loop is compiled at its first call and cached until a source of any loop changes.

numba is imported with the first loop that is called, since the import takes 0.3 CPU s and 90 MB.
"""

from __future__ import annotations

import errno
import functools
import getpass
import hashlib
import importlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.files import distrust, warn


def _setting(name: str) -> Any:
    """A setting of the compiler: its own where it is loaded or has a file of settings, else that of the environment."""
    config: Any = sys.modules.get("numba.core.config")
    if config is None and Path(".numba_config.yaml").exists():
        config = importlib.import_module("numba.core.config")
    return getattr(config, name) if config is not None else os.environ.get(f"NUMBA_{name}", "")


def _is_plain() -> bool:
    """Whether loops stay the Python that they are written in."""
    return str(_setting("DISABLE_JIT")) not in {"", "0", "False"}


def folder(package: Path, say: Callable[[str], None] = lambda notice: None) -> str:
    """Where loops compiled from this state of the sources are kept; empty where no folder can be used.

    The first of these that can be written and that other users cannot write: the folder that the user names
    (``NUMBA_CACHE_DIR``) or that of the package, the user's folder for caches, a temporary folder.

    Parameters
    ----------
    package : path
        Folder of the sources.
    say : callable, optional
        Called with the reason why a folder is not used, and with the temporary one that is.
    """
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    named = _setting("CACHE_DIR")
    bases = [Path(named) if named else package / "__pycache__"]
    with suppress(RuntimeError):  # no home
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
"""Files with compiled loops or their constants, and folders of them; sought in the folder of the package."""


def state_of(package: Path) -> str:
    """The content of all sources that compiled loops are made of, or have constants from, as a checksum."""
    digest = hashlib.blake2b(digest_size=8)
    for room in _SOURCES:
        sources = [room] if room.endswith(".py") else []
        for folder, inside, names in os.walk(package / room):
            inside[:] = [name for name in inside if name != "__pycache__"]
            sources += [os.path.relpath(f"{folder}/{name}", package) for name in names if name.endswith(".py")]
        for source in sorted(sources):
            with suppress(FileNotFoundError), open(package / source, "rb", buffering=0) as file:  # noqa: PTH123
                content = file.read()
                digest.update(f"{source} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _prepare(folder: Path) -> str:
    """Make a folder that this user alone can use; why it is not to be trusted where it, or the one above, is there."""
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
"""What the user should know about the folder; issued once the compiler is needed."""

_FOLDER = folder(Path(__file__).parents[1], _NOTICES.append)


def njit(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays when it is first called, and keep it for the next process.

    Of several processes that need it at once, one compiles it and the others wait and take what it kept.
    ``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled. Named tuples of arrays bundle what belongs together. From
    Python a plain tuple is handed over quicker (0.1 µs instead of 0.5); the loop gives its parts their names.
    """
    return _made(function, {"_nrt": True})  # said of each, since a loop would have it from the one that calls it


_LEAN = {"_nrt": False, "error_model": "numpy"}
_PHASE = {"inline": "always", **_LEAN}


def njit_noalloc(function: Callable[..., Any]) -> Any:
    """The same for a loop that makes no arrays and keeps none: nobody counts who holds them.

    That takes half the time to compile, and counting was 80 % of a short pass of backfilling. The compiler refuses a
    loop that makes one.
    """
    return _made(function, _LEAN)


def inline(function: Callable[..., Any]) -> Any:
    """A part of a loop, compiled into it: named to be read, where a call would cost (0.1 µs with bundles).

    Called from Python it is a lean loop.
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
    """Make a `verb` whose implementations are compiled into the loop that calls it, like a `inline`."""
    return verb(stub, _PHASE)


def _made(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    if _is_plain():
        return function
    loop = Loop(function, options, _FOLDER)
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
        """numba's dispatcher of the loop; imports numba."""
        if self._compiled is None:
            _load()
        return self._compiled

    def make(self) -> Any:
        """Create numba's dispatcher."""
        self._compiled = _compiler().make(self.py_func, self._folder, self._options)
        return self._compiled


_WAITING: list[Loop] = []
_VERBS: list[tuple[Any, dict[str, Any]]] = []
_LOADING = threading.RLock()


def _compiler() -> Any:
    return importlib.import_module("gridsim.machine.compiler")


def preload() -> None:
    """Import numba with all that the first loop needs, so that copies of this process have it."""
    if not _is_plain():
        _load()
        _compiler().load_target()


def _load() -> None:
    """Import numba and replace the loops that were defined before by its dispatchers, which are faster to call."""
    with _LOADING:
        compiler = _compiler()
        while _NOTICES:
            warn(_NOTICES.pop(0))
        for hearing in _HEARING:
            hearing.begin(compiler)
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
    """Whether a loop can be called without being compiled: in this process, or by what another one kept."""
    if not isinstance(loop, Loop) and getattr(loop, "signatures", None):
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


def pays(loop: Any, many: bool) -> bool:
    """Return whether a compiled loop is faster than slower code without it, compile and import time included.

    *many* states that the loop has so much work that it pays in any case.
    """
    if getattr(loop, "py_func", None) is None:
        return False  # not compiled at all
    return many or (not isinstance(loop, Loop) and is_kept(loop))


class _Hearing:
    """Somebody who is told what is compiled, from the moment at which the compiler is loaded."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._end: Callable[[], None] | None = None

    def begin(self, compiler: Any) -> None:
        if self._end is None:
            self._end = compiler.register(self._say)

    def end(self) -> None:
        _HEARING.remove(self)
        if self._end is not None:
            self._end()


_HEARING: list[_Hearing] = []


@contextmanager
def when_compiling(say: Callable[[str], None]) -> Iterator[None]:
    """Call *say* with the name of a module when the first loop of it is compiled that was not kept."""
    hearing = _hear(say)
    try:
        yield
    finally:
        hearing.end()


def tell_compiling(say: Callable[[str], None]) -> None:
    """`when_compiling` for the rest of this process."""
    _hear(say)


def _hear(say: Callable[[str], None]) -> _Hearing:
    hearing = _Hearing(say)
    _HEARING.append(hearing)
    listen()
    return hearing


def is_heard() -> bool:
    """Whether anybody is told what is compiled."""
    return bool(_HEARING)


def listen() -> None:
    """Have those who are told what is compiled be told of others' loops, where these have loaded the compiler."""
    if _HEARING and "numba" in sys.modules:
        _load()


def records(**columns: Any) -> Any:
    """Columns of whole numbers as one array: a loop takes it over as quickly as a single column.

    Loops read ``records.name[row]``, all others ``records["name"][row]``.
    """
    found = np.rec.fromarrays(list(columns.values()), dtype=[(name, np.int64) for name in columns])
    # Only uncompiled loops need the attributes, and looking for them is slow.
    return found if _is_plain() else found.view(np.ndarray).view(np.dtype(found.dtype.descr))
