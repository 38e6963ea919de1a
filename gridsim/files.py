"""Reading and writing of files: atomic writes, and errors that name the file and line."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import json
import lzma
import math
import multiprocessing
import os
import re
import shutil
import stat
import sys
import tempfile
import tomllib
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gridsim.errors import InputError


def write_atomically(path: str | Path, write: Callable[[Path], object]) -> None:
    """Let *write* fill a temporary file in the same folder, then replace *path* with it in one step.

    Missing parent folders are created. If *write* raises, the temporary file is removed and *path* is unchanged. A
    device
    or a pipe (`is_stream`) is not replaced: the complete content is written to it.
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
    """Return whether *path* is a device, a pipe or a socket, or an open file of a process, such as ``/dev/stdout``."""
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
    """Return device and inode of a regular file, equal for all its names and links; None for everything else."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def distrust(found: os.stat_result) -> str:
    """Return why pickles in a folder or file are not loaded.

    Empty if only this user or root could have written them.
    """
    if sys.platform == "win32":
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user (uid {found.st_uid})"
    return "other users can write to it" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def check_output(path: str | Path, inputs: Iterable[str | Path], *, overwrite: bool) -> None:
    """Raise an error for an output file that is also an input (under any name or link), or exists without *overwrite*.

    Raises
    ------
    InputError
        With the name of the file.
    """
    path = Path(path)
    if not is_stream(path):
        check_folder(path.parent)
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


def check_folder(folder: str | Path) -> None:
    """Raise `InputError` for a folder that is a file or below one, or in which nothing can be written."""
    there = next(it for it in (Path(folder), *Path(folder).parents) if os.path.lexists(it))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError("cannot be written to" if there.is_dir() else "is a file; expected a folder", path=there)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file name to errors of the operating system, such as a full disk."""
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
    write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """Return *content* as indented JSON; NaN and infinity become null."""
    return json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def print_json(content: Any, indent: int = 1) -> None:
    """Print an object as JSON, with the values of `plain`."""
    print(json.dumps(plain(content), indent=indent, allow_nan=False))


def plain(value: Any) -> Any:
    """Return *value* with JSON types only; numbers of other packages are converted by their ``item`` method."""
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
"""Byte order marks by encoding, longer ones first."""


def encoding_of(beginning: bytes) -> str:
    """Return the encoding of a text by its first bytes: byte order mark, zero bytes of UTF-16, else UTF-8.

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


DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""Errors raised for compressed data that is truncated or damaged."""


def unpacked(data: bytes) -> bytes:
    """Return the contents of a file, decompressed if it is a gzip or xz file."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data


def read_text(path: str | Path, *, errors: str = "strict") -> str:
    """Return the text of a file in UTF-8 or UTF-16; line breaks become ``\\n``.

    Parameters
    ----------
    errors : {"strict", "replace"}
        Handling of invalid bytes.

    Raises
    ------
    InputError
        If it cannot be read, and for invalid bytes, with the line.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from error
    text = decoded(data, path, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes, path: object, errors: str = "strict") -> str:
    """Decode UTF-8 or UTF-16 with its line breaks; raise `InputError` with the line for invalid bytes."""
    encoding = encoding_of(data[:16])
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not {encoding.upper()} text: {error.reason}", path=path, line=line) from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises
    ------
    InputError
        With the file and the line, if it cannot be read or is not TOML.
    """
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise _beyond_limits(text, path) from error


def parse_json(data: bytes, path: object, expected: str) -> Any:
    """Return the value of a JSON text; a number of more than 4,300 digits is infinite.

    Parameters
    ----------
    path : path
        File of the text.
    expected : str
        Expected content, for error messages.

    Raises
    ------
    InputError
        If the text is not JSON, or an object has a duplicate key; with the line.
    """
    text = decoded(data, path)
    try:
        return json.loads(text, object_pairs_hook=_with_keys_once, parse_int=integer)
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg} (column {error.colno}); expected {expected}"
        raise InputError(message, path=path, line=error.lineno) from error
    except RecursionError as error:
        raise _beyond_limits(text, path) from error
    except _RepeatedKeyError as error:
        raise InputError("occurs twice in one object; expected it once", path=path, field=str(error)) from error


def _beyond_limits(text: str, path: object) -> InputError:
    """Return the error for a text that is nested too deeply, or has an integer that Python does not convert."""
    depth = 0
    for mark in re.finditer(r"[\[{]|[\]}]|\d[\d_]{4300,}", text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], DEEPEST)
        if depth >= DEEPEST:
            what = "has an integer of more than 4,300 digits" if mark[0][0].isdigit() else "is nested too deeply"
            return InputError(what, path=path, line=text.count("\n", 0, mark.start()) + 1)
    return InputError("is nested too deeply", path=path)


DEEPEST = 100
"""Nesting level from which a file is rejected."""


def integer(digits: str) -> float:
    """Convert a whole number; infinity if it has too many digits for Python, which the check of its field rejects."""
    try:
        return int(digits)
    except ValueError:
        return math.inf


class _RepeatedKeyError(ValueError):
    """Error for a duplicate key in an object."""


def _with_keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def csv_rows(lines: Iterable[str], path: object, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with the number of its last line.

    Raises
    ------
    InputError
        For a row that cannot be read, with the line.
    """
    rows = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"cannot be read as a row of a table ({error})", path=path, line=rows.line_num) from error
        yield rows.line_num, row


def csv_records(lines: Iterable[str], path: object) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the header of a table, and its rows as mappings with their line numbers; a missing cell is empty.

    Raises
    ------
    InputError
        For a row that cannot be read, with the line.
    """
    rows = csv_rows(lines, path)
    _, header = next(rows, (1, []))
    blank = dict.fromkeys(header, "")
    return header, ((line, blank | dict(zip(header, row, strict=False))) for line, row in rows if row)


def checksum(path: str | Path) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def warn(notice: str) -> None:
    """Issue a warning about cached files, only in the process that the user started."""
    if multiprocessing.parent_process() is None:
        warnings.warn(notice, stacklevel=2)
