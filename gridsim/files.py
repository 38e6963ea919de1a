"""Files that are whole or not there: written in one step; read, or refused with a clear word."""

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


def distrust(found: os.stat_result) -> str:
    """Why pickles in a folder or file are not loaded; empty where only this user, or root, could have written them."""
    if sys.platform == "win32":
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user (uid {found.st_uid})"
    return "other users can write to it" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


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


DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""Errors of reading compressed data that is cut short or damaged."""


def unpacked(data: bytes) -> bytes:
    """Contents of a file that may be compressed with gzip or xz."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data


def read_text(path: str | Path, *, errors: str = "strict") -> str:
    """Text of a file in UTF-8, or in UTF-16 as other systems write it; line breaks become ``\\n``.

    Parameters
    ----------
    errors : {"strict", "replace"}
        What becomes of bytes that are no text.

    Raises
    ------
    InputError
        For bytes that are no text, naming the line.
    """
    data = Path(path).read_bytes()
    text = decoded(data, path, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes, path: object, errors: str = "strict") -> str:
    """Text in UTF-8 or UTF-16 with its line breaks; `InputError` with the line for bytes that are no text."""
    encoding = encoding_of(data[:16])
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"is no text in {encoding.upper()}: {error.reason}", path=path, line=line) from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """Tables of a TOML file.

    Raises
    ------
    InputError
        Naming the file and the line, when it cannot be read or is no TOML.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is no TOML: {error}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise _beyond_limits(text, path) from error


def parse_json(data: bytes, path: object, expected: str) -> Any:
    """Value of a JSON text; a number of more than 4,300 digits is infinite.

    Parameters
    ----------
    path : path
        File of the text.
    expected : str
        What errors ask for.

    Raises
    ------
    InputError
        When it is no JSON, or an object has a key twice; naming the line.
    """
    text = decoded(data, path)
    try:
        return json.loads(text, object_pairs_hook=_with_keys_once, parse_int=integer)
    except json.JSONDecodeError as error:
        message = f"is no JSON: {error.msg} (column {error.colno}); expected {expected}"
        raise InputError(message, path=path, line=error.lineno) from error
    except RecursionError as error:
        raise _beyond_limits(text, path) from error
    except _RepeatedKeyError as error:
        raise InputError("occurs twice in one object; expected it once", path=path, field=str(error)) from error


def _beyond_limits(text: str, path: object) -> InputError:
    """Error for a text that is nested too deeply, or has an integer that Python does not convert."""
    depth = 0
    for mark in re.finditer(r"[\[{]|[\]}]|\d[\d_]{4300,}", text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], DEEPEST)
        if depth >= DEEPEST:
            what = "has an integer of more than 4,300 digits" if mark[0][0].isdigit() else "is nested too deeply"
            return InputError(what, path=path, line=text.count("\n", 0, mark.start()) + 1)
    return InputError("is nested too deeply", path=path)


DEEPEST = 100
"""Levels of nesting from which on a file is refused."""


def integer(digits: str) -> float:
    """A whole number; infinity where it has more digits than Python converts, which its field then refuses."""
    try:
        return int(digits)
    except ValueError:
        return math.inf


class _RepeatedKeyError(ValueError):
    """A key that an object has twice."""


def _with_keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def csv_rows(lines: Iterable[str], path: object, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Rows of a table, each with the number of its last line.

    Raises
    ------
    InputError
        For a row that cannot be read, naming the line.
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
    """Header of a table, and its rows as mappings with the numbers of their lines; a missing cell is empty.

    Raises
    ------
    InputError
        For a row that cannot be read, naming the line.
    """
    rows = csv_rows(lines, path)
    _, header = next(rows, (1, []))
    blank = dict.fromkeys(header, "")
    return header, ((line, blank | dict(zip(header, row, strict=False))) for line, row in rows if row)


def checksum(path: str | Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def warn(notice: str) -> None:
    """Issue a notice about kept files, only in the process that the user started."""
    if multiprocessing.parent_process() is None:
        warnings.warn(notice, stacklevel=2)
