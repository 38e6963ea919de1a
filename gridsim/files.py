"""Files that are whole or not there: written in one step; read, or refused with a clear word."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gridsim.errors import InputError

__all__ = ["checksum", "naming", "read_toml", "write_atomically", "write_json", "write_text"]


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Have *write* fill a temporary file in the same folder, then put it in place of *path* in one step.

    Folders above *path* are made. Nothing is left behind, and nothing is lost, when *write* raises.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what the system refuses, such as a write to a full disk, name the file that was meant."""
    try:
        yield
    except OSError as error:
        own = error.filename is None or Path(os.fsdecode(error.filename)).name.startswith(f".{path.name}.")
        if error.errno is None or not own:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write *text* as UTF-8, atomically."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8", newline="\n")

    write_atomically(path, write)


def write_json(path: str | Path, content: Any) -> None:
    """Write *content* as indented JSON, atomically; NaN and infinity become null."""
    write_text(path, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """*value* in JSON's types; numbers of other packages through their ``item`` method."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if not isinstance(value, str | int | float | None) and hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_toml(path: str | Path) -> dict[str, Any]:
    """Tables of a TOML file.

    Raises
    ------
    InputError
        Naming the file, when it cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML: {error}", path=path) from error


def checksum(path: str | Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
