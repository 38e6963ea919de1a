"""Files that are whole or not there: written in one step; read, or refused with a clear word."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import os
import shutil
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gridsim.errors import InputError

__all__ = [
    "check_output",
    "checksum",
    "encoding_of",
    "identity",
    "is_stream",
    "naming",
    "read_text",
    "read_toml",
    "write_atomically",
    "write_json",
    "write_text",
]


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Have *write* fill a temporary file in the same folder, then put it in place of *path* in one step.

    Folders above *path* are made. Nothing is left behind, and nothing is lost, when *write* raises. A device or a pipe
    (`is_stream`) is not replaced: it receives the finished content.
    """
    path = Path(path)
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="gridsim-") as folder:
            content = Path(folder, "content")
            write(content)
            with naming(path), content.open("rb") as source, _opened_stream(path) as stream:
                shutil.copyfileobj(source, stream)
        return
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


def is_stream(path: str | Path) -> bool:
    """Whether *path* is a device, a pipe or a socket, or names an open file of a process, such as ``/dev/stdout``."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):  # a redirected /dev/stdout, or any /dev/fd/N
        parent = path.parent.resolve()
        return parent == Path("/dev") or parent.is_relative_to("/proc")
    return not stat.S_ISDIR(mode)


def _opened_stream(path: Path) -> IO[bytes]:
    """Open a stream for writing; standard output by its descriptor, so that a redirected file keeps its position."""
    with suppress(OSError):
        if os.path.samestat(path.stat(), os.fstat(1)):
            sys.stdout.flush()
            return os.fdopen(os.dup(1), "wb")
    return path.open("wb")


def identity(path: str | Path) -> tuple[int, int] | None:
    """Device and inode of a regular file, the same under all its names and links; None for everything else."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def check_output(path: str | Path, inputs: Iterable[str | Path], *, overwrite: bool) -> None:
    """Refuse an output file that is an input, by whatever name or link, or that exists and may not be replaced.

    Raises
    ------
    InputError
        Naming the file.
    """
    if not os.path.lexists(path):
        return
    own = identity(path)
    for other in inputs if own else ():
        if identity(other) == own:
            same = "" if Path(path) == Path(other) else f" ({other})"
            raise InputError(f"is an input of this command{same}; give another output file", path=path)
    if Path(path).is_dir():
        raise InputError("is a folder; expected a file to write", path=path)
    if not overwrite and not (is_stream(path) and not Path(path).is_block_device()):
        raise InputError("exists; give another file, or --overwrite to replace it", path=path)


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


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
"""Bytes that texts of an encoding begin with, the longer ones first."""


def encoding_of(beginning: bytes) -> str:
    """How a text that begins so is encoded: by its mark, and UTF-16 without one by its zeros; else UTF-8.

    Examples
    --------
    >>> encoding_of("7|ann".encode("utf-16")), encoding_of("7|ann".encode("utf-16-be")), encoding_of(b"7|ann")
    ('utf-16', 'utf-16-be', 'utf-8')
    """
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding
    even, odd = beginning[0:16:2], beginning[1:16:2]
    if len(odd) > 1 and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if len(odd) > 1 and not any(even) and all(odd) else "utf-8"


def read_text(path: str | Path, *, errors: str = "strict") -> str:
    """Text of a file in UTF-8, or in UTF-16 as other systems write it; line breaks become ``\\n``.

    Parameters
    ----------
    errors : {"strict", "replace"}
        What becomes of bytes that are no text.
    """
    data = Path(path).read_bytes()
    text = data.decode(encoding_of(data[:16]), errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Tables of a TOML file.

    Raises
    ------
    InputError
        Naming the file, when it cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(read_text(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML: {error}", path=path) from error


def checksum(path: str | Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
