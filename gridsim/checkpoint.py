"""State of a run that was stopped, in a file: written with what cannot be kept left out, and read with care.

A file is read only where it is whole and of the same run. It can name classes of gridsim and what arrays are made of;
no other code is called.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from gridsim.files import write_atomically

__all__ = ["read_checkpoint", "write_checkpoint"]

_ARRAYS = frozenset(["ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar"])
_PLAIN = frozenset(
    [("types", "SimpleNamespace")]
    + [("builtins", name) for name in ("memoryview", "bytearray", "set", "frozenset", "slice", "complex", "range")]
    + [("collections", name) for name in ("deque", "OrderedDict", "Counter", "defaultdict")]
    + [("array", "array"), ("array", "_array_reconstructor"), ("fractions", "Fraction"), ("pathlib", "PosixPath")]
    + [(__name__, "_nothing"), ("copyreg", "_reconstructor"), ("builtins", "object"), ("builtins", "getattr")]
)


def _nothing() -> None:
    """In the place of a function, which a stopped run does not need any more."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, memoryview):
            return memoryview, (value.obj,)
        compiled = type(value).__module__.startswith("numba.")
        own = isinstance(value, FunctionType | MethodType) and value is not _nothing
        if compiled or (own and value.__module__.startswith("gridsim.")):
            return _nothing, ()
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        arrays = module.partition(".")[0] == "numpy" and name in _ARRAYS
        own = module.startswith("gridsim.") and "." not in name
        found = super().find_class(module, name) if arrays or own or (module, name) in _PLAIN else None
        if found is None or (own and (module, name) not in _PLAIN and not isinstance(found, type)):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a checkpoint")
        return found


def write_checkpoint(path: Path, of: str, state: Any) -> None:
    """Write a state, atomically.

    Parameters
    ----------
    path : Path
        Where to.
    of : str
        What it is the state of.
    state : object
        Data; functions in it are left out.
    """
    file = io.BytesIO()
    _Pickler(file).dump(state)
    content = file.getvalue()
    head = f"{of} {hashlib.sha256(content).hexdigest()}\n".encode()
    write_atomically(path, lambda temporary: _write(temporary, head + content))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def read_checkpoint(path: Path, of: str) -> Any:
    """State in a file; None where it is not there, damaged, or of something else."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
        if head == f"{of} {hashlib.sha256(content).hexdigest()}".encode():
            return _Unpickler(io.BytesIO(content)).load()
    except (OSError, pickle.UnpicklingError, AttributeError, ImportError):
        pass
    return None
