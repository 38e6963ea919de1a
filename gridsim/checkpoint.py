"""Checkpoint files of interrupted runs; functions in the state are not saved.

A file is read only if it is complete, belongs to the same run, and only this user could have written it. It may refer
to classes defined by gridsim and to types of arrays and containers; any other name is rejected.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from enum import Enum
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from gridsim.files import distrust, write_atomically

_ARRAYS = frozenset(["ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar"])
_PLAIN = frozenset(
    [("types", "SimpleNamespace")]
    + [("builtins", name) for name in ("memoryview", "bytearray", "set", "frozenset", "slice", "complex", "range")]
    + [("collections", name) for name in ("deque", "OrderedDict", "Counter", "defaultdict")]
    + [("array", "array"), ("array", "_array_reconstructor"), ("fractions", "Fraction"), ("pathlib", "PosixPath")]
    + [(__name__, "_nothing"), ("copyreg", "_reconstructor"), ("builtins", "object")]
)


def _nothing() -> None:
    """Placeholder for a function, which a stopped run no longer needs."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, memoryview):
            return memoryview, (value.obj,)
        if isinstance(value, Enum):  # pickled by Python 3.11.0 to 3.11.3 as getattr, which is rejected
            return type(value), (value.value,)
        compiled = type(value).__module__.startswith("numba.")
        own = isinstance(value, FunctionType | MethodType) and value is not _nothing
        if compiled or (own and value.__module__.startswith("gridsim.")):
            return _nothing, ()
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN or (module.partition(".")[0] == "numpy" and name in _ARRAYS):
            return super().find_class(module, name)
        if module.startswith("gridsim.") and "." not in name:
            found = super().find_class(module, name)
            # Modules of gridsim also contain names of other packages, such as classes that start processes.
            if isinstance(found, type) and found.__module__.startswith("gridsim."):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a checkpoint")


def write_checkpoint(path: Path, of: str, state: Any) -> None:
    """Write a state to a file, atomically.

    Parameters
    ----------
    path : Path
        The file.
    of : str
        Identification of the run.
    state : object
        The state; functions in it are not saved.
    """
    file = io.BytesIO()
    _Pickler(file).dump(state)
    content = file.getvalue()
    head = f"{of} {hashlib.sha256(content).hexdigest()}\n".encode()
    write_atomically(path, lambda temporary: temporary.write_bytes(head + content))
    path.chmod(0o600)  # files writable by others are not read


def read_checkpoint(path: Path, of: str) -> Any:
    """Return the state in a file; None if it is missing, damaged, of another run, or writable by others."""
    try:
        with path.open("rb") as file:
            if distrust(os.fstat(file.fileno())):
                return None
            head, _, content = file.read().partition(b"\n")
        if head == f"{of} {hashlib.sha256(content).hexdigest()}".encode():
            return _Unpickler(io.BytesIO(content)).load()
    except (OSError, pickle.UnpicklingError, AttributeError, ImportError):
        pass
    return None
