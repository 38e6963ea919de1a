"""Compilation of a loop in a separate process, while the calling process compiles other loops.

    python -m gridsim.machine.background_compile MODULE LOOP < TYPES

The process that calls the loop loads it from the cache, and waits if it is still being compiled
(`gridsim.machine.njit`).
"""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
import subprocess
import sys
from typing import Any

from gridsim.machine.njit import has_listeners, is_kept


def compile_in_background(loop: Any, arguments: tuple[Any, ...]) -> subprocess.Popen[bytes] | None:
    """Compile a loop for the types of some arguments in a new process; return that process.

    Return None for commands that do not wait, with a single core, and for loops that are cached or not compiled. The
    new process ends with this one.
    """
    plain = getattr(loop, "py_func", None)
    if plain is None or not has_listeners() or _cores() < 2 or is_kept(loop):
        return None
    types = pickle.dumps(tuple(loop.typeof_pyval(each) for each in arguments))
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, plain.__module__, plain.__qualname__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=places,
            start_new_session=True,  # Ctrl-C ends it with this process, without output
        )
        assert process.stdin is not None
        with process.stdin as told:
            told.write(types)
    except OSError:  # the loop is compiled at its call instead
        return None
    atexit.register(process.kill)
    return process


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    getattr(importlib.import_module(sys.argv[1]), sys.argv[2]).compile(pickle.load(sys.stdin.buffer))
