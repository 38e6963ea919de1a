"""Machine code of whole loops, kept by itself: called without the compiler, whose loading takes longer than a run.

`gridsim.profile.linking` writes such a file when a loop is compiled. It begins with a line of JSON in a page of its
own; what follows is the code and its constants, which stand at any address as they are. The code is that of one
processor with one set of instructions; any other has the loop compiled anew.

A call hands over the address of numbers, 64 bits each: room for what a loop of the compiler's returns, and its
arguments. Of an array that is, as the compiler has it, two unused addresses, how many elements it has and how long each
is, where it is, its shape, and its strides; tuples are taken apart.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import mmap
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gridsim.files import distrust

__all__ = ["PAGE", "RESULTS", "MachineCode", "described", "is_possible", "processor", "written"]

PAGE = 4096
"""Bytes before the code: an address that memory can be mapped at."""

RESULTS = 2
"""Addresses before the arguments: where a loop would write what it returns and what it raises."""

_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}


@functools.cache
def is_possible() -> bool:
    """Whether machine code is kept by itself here: by Linux on x86-64, where nothing is asked of the compiler."""
    known = sys.platform == "linux" and platform.machine() == "x86_64"
    asked = {name for name in os.environ if name.startswith("NUMBA_")} - _HARMLESS
    return known and not asked and bool(processor())


@functools.cache
def processor() -> str:
    """Which processor this is, with its instructions; empty where the system does not tell."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as told:
            first = told.read(16384).split("\n\n")[0].splitlines()
    except OSError:
        return ""
    telling = [line for line in first if line.startswith(("vendor_id", "cpu family", "model", "flags"))]
    return hashlib.sha256("\n".join(telling).encode()).hexdigest() if telling else ""


def written(code: bytes, entry: int, kinds: str) -> bytes:
    """A file of machine code that begins at byte *entry*, for arguments of some kinds (`described`)."""
    told = {"kinds": kinds, "processor": processor(), "entry": entry, "sha256": hashlib.sha256(code).hexdigest()}
    return json.dumps(told).encode().ljust(PAGE - 1) + b"\n" + code


def described(args: Sequence[Any]) -> str:
    """The kinds of arguments: numbers, arrays and tuples of them; empty where there are others."""
    words = []
    for value in args:
        if type(value) is int:
            words.append("i")
        elif type(value) is np.ndarray and value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative:
            words.append(f"{value.dtype}x{value.ndim}{'' if value.flags.writeable else 'r'}")
        elif type(value) is tuple and (within := described(value)):
            words.append(f"({within})")
        else:
            return ""
    return ",".join(words)


def _numbers(args: Sequence[Any]) -> list[int]:
    """Arguments as the numbers that a loop takes."""
    found: list[int] = []
    for value in args:
        if isinstance(value, np.ndarray):
            found += (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        elif isinstance(value, tuple):
            found += _numbers(value)
        else:
            found.append(value)
    return found


class _Call(NamedTuple):
    """A call of a loop: what it was given, the code, and its arguments as numbers."""

    args: tuple[Any, ...]
    code: Any
    numbers: Any

    def fits(self, args: tuple[Any, ...]) -> bool:
        """Whether only numbers before all arrays differ; they are put in their places."""
        first = 0
        while first < len(args) and type(args[first]) is int:
            first += 1
        rest, before = args[first:], self.args[first:]
        if len(args) != len(self.args) or not all(one is other for one, other in zip(rest, before, strict=True)):
            return False
        if any(type(value) is not int for value in self.args[:first]):
            return False
        self.numbers[RESULTS : RESULTS + first] = args[:first]  # nobody else has these arrays
        return True


class MachineCode:
    """What is kept of a loop.

    Parameters
    ----------
    path : callable
        The file for arguments of some kinds.
    """

    def __init__(self, path: Callable[[str], Path]) -> None:
        self._path = path
        self._codes: dict[str, tuple[mmap.mmap, Any] | None] = {}
        self._last: _Call | None = None

    def call(self, args: tuple[Any, ...]) -> bool:
        """Call the loop; False where nothing is kept for such arguments.

        Raises
        ------
        RuntimeError
            When the loop says that it failed, which none can that is kept.
        """
        made = self._last  # another thread may put its own there
        if made is None or not made.fits(args):
            made = self._prepared(args)
        if made is None:
            return False
        self._last = made
        status = made.code(made.numbers)
        if status not in (0, -2):  # returned, and returned nothing
            raise RuntimeError(f"a loop that cannot fail says that it did ({status})")
        return True

    def _prepared(self, args: tuple[Any, ...]) -> _Call | None:
        """The code and its arguments; None where nothing is kept for them."""
        kinds = described(args)
        if kinds not in self._codes:
            self._codes[kinds] = _mapped(self._path(kinds), kinds) if kinds else None
        code = self._codes[kinds]
        if code is None:
            return None
        given = [0] * RESULTS + _numbers(args)
        numbers = (ctypes.c_int64 * (len(given) + RESULTS))(*given)
        scratch = ctypes.addressof(numbers) + 8 * len(given)
        for k in range(RESULTS):
            numbers[k] = scratch + 8 * k
        return _Call(args, code[1], numbers)


def _mapped(file: Path, kinds: str) -> tuple[mmap.mmap, Any] | None:
    """The code in a file, and how it is called; None where it is not for this processor, or cannot be called."""
    try:
        with file.open("rb") as kept:
            if distrust(os.fstat(kept.fileno())):
                return None
            told = json.loads(kept.read(PAGE))
            code = kept.read()
            if (told["kinds"], told["processor"]) != (kinds, processor()):
                return None
            if told["sha256"] != hashlib.sha256(code).hexdigest():
                return None
            memory = mmap.mmap(
                kept.fileno(), len(code), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC, offset=PAGE
            )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data + told["entry"]
    entry = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)  # holding the lock of Python, as loops do
    return memory, entry
