"""One way to compile a loop: kept on disk, and made anew when any compiled loop of gridsim has changed.

The compiler keeps what it made beside the source of each loop and looks at the age of that file alone. A loop that has
taken in another one from another file would then go on with what that one was before an update.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

__all__ = ["compiled", "folder", "records", "when_compiling"]

_OPTIONS: Any = numba.config


def folder(package: Path) -> str:
    """Where this state of all loops is kept; empty for the compiler's own choice where the package cannot be written.

    A folder that the user names (``NUMBA_CACHE_DIR``) holds one folder for each state.
    """
    files = [path for room in ("profile", "policy") for path in sorted((package / room).rglob("*.py"))]
    stamps = [(str(path.relative_to(package)), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    state = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    base = Path(_OPTIONS.CACHE_DIR) if _OPTIONS.CACHE_DIR else package / "__pycache__"
    writable = os.access(base if base.exists() else base.parent, os.W_OK)
    return str(base / f"compiled-{state}") if writable else ""


_FOLDER = folder(Path(__file__).parents[1])


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays when it is first called, and keep it for the next process.

    ``NUMBA_DISABLE_JIT=1`` runs the same source uncompiled.
    """
    before = _OPTIONS.CACHE_DIR
    _OPTIONS.CACHE_DIR = _FOLDER or before
    try:
        return numba.njit(cache=True)(function)
    finally:
        _OPTIONS.CACHE_DIR = before


class _Once(event.Listener):
    """Says once that something is compiled, and not fetched."""

    def __init__(self, say: Callable[[], None]) -> None:
        self._say: Callable[[], None] | None = say

    def on_start(self, _: Any) -> None:
        if self._say is not None:
            say, self._say = self._say, None
            say()

    def on_end(self, _: Any) -> None:
        """Nothing to say."""


@contextmanager
def when_compiling(say: Callable[[], None]) -> Iterator[None]:
    """Call *say* once, when the first loop is compiled that was not kept."""
    with event.install_listener("numba:compile", _Once(say)):
        yield


def records(**columns: Any) -> Any:
    """Columns of whole numbers as one array: a loop takes it over as quickly as a single column.

    Loops read ``records.name[row]``, all others ``records["name"][row]``.
    """
    found = np.rec.fromarrays(list(columns.values()), dtype=[(name, np.int64) for name in columns])
    # Only uncompiled loops need the attributes, and looking for them is slow.
    return found if _OPTIONS.DISABLE_JIT else found.view(np.ndarray).view(np.dtype(found.dtype.descr))
