"""Input and output of log files: names, compression, encoding, blocks of whole lines, checksums and errors."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import importlib
import io
import lzma
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gridsim.errors import InputError, installed
from gridsim.files import DAMAGED, encoding_of

_BLOCK = 1 << 20
"""Number of bytes parsed at a time."""

_LONGEST_LINE = 1 << 20

_ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of a file compressed with zstd."""


class Digesting(io.RawIOBase):
    """File wrapper that computes the checksum of all bytes read, so that pipes are supported."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._digest.update(data)
        buffer[: len(data)] = data
        return len(data)

    def hexdigest(self) -> str:
        """Return the SHA-256 of the whole file."""
        while rest := self._file.read(_BLOCK):
            self._digest.update(rest)
        return self._digest.hexdigest()


class _Recoded(io.RawIOBase):
    """Text in another encoding, as bytes of UTF-8; invalid input becomes the replacement character."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._rest = file, b""
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            data = self._file.read(_BLOCK)
            self._rest = self._decoder.decode(data, final=not data).encode()
            if not data:
                break
        given = self._rest[: len(buffer)]
        self._rest = self._rest[len(given) :]
        buffer[: len(given)] = given
        return len(given)


class _Unpacked(io.RawIOBase):
    """File compressed with zstd; damaged data raises `OSError`, as with other compressions."""

    def __init__(self, file: IO[bytes], path: object) -> None:
        try:
            self._contents = importlib.import_module("compression.zstd").open(file)  # Python 3.14
        except ImportError:
            zstandard = installed("zstandard", "is compressed with zstd, which needs zstandard", path)
            self._contents = zstandard.open(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._contents.read(len(buffer))
        except Exception as error:  # each of the two packages has a separate error class
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)


def _file(path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); expected a log file", path=path) from error


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], Digesting]]:
    """Open a file as bytes of UTF-8, whatever its compression and encoding; yield it with its running checksum."""
    if Path(path).is_dir():
        raise InputError("is a folder; expected a log file", path=path)
    with _file(path) as file:
        digesting = Digesting(file)
        stream = io.BufferedReader(digesting, 1 << 16)
        magic = stream.peek(6)[:6]
        if not magic:
            raise InputError("is empty; expected an SWF log", path=path)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=stream) as contents:
                yield _in_utf8(contents), digesting  # type: ignore[arg-type]
        elif magic.startswith(b"\xfd7zXZ\x00"):
            with lzma.LZMAFile(stream) as contents:
                yield _in_utf8(contents), digesting
        elif magic.startswith(b"BZh"):
            with bz2.BZ2File(stream) as contents:
                yield _in_utf8(contents), digesting
        elif magic.startswith(_ZSTD):
            yield _in_utf8(io.BufferedReader(_Unpacked(stream, path), 1 << 16)), digesting
        else:
            yield _in_utf8(stream), digesting


def _in_utf8(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream without a byte order mark, converted from UTF-16 or UTF-32 if necessary."""
    try:
        encoding = encoding_of(stream.peek(16)[:16])  # type: ignore[attr-defined]
    except DAMAGED:  # reported by the next read
        return stream
    if encoding == "utf-8-sig":
        stream.read(len(codecs.BOM_UTF8))
    if encoding.startswith("utf-8"):
        return stream
    return io.BufferedReader(_Recoded(stream, encoding), 1 << 16)


def first_bytes(path: str | os.PathLike[str], size: int = 4096) -> bytes:
    """Return the first bytes of a file, decompressed; fewer if it is damaged."""
    with opened(path) as (stream, _):
        try:
            return stream.read(size)
        except DAMAGED:
            return b""


def blocks(stream: IO[bytes], path: object, expected: str = "lines of 18 fields (SWF)") -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line; *expected* is used in error messages."""
    line, rest = 1, b""
    while True:
        try:
            data = stream.read(_BLOCK)
        except DAMAGED as error:
            line += rest.count(b"\n")
            raise InputError(
                f"the compressed data is truncated or damaged ({error}); copy the file again",
                path=path,
                line=line,
            ) from error
        if b"\0" in data:
            line += (rest + data[: data.index(b"\0")]).count(b"\n")
            raise InputError(f"contains a NUL byte, so it is a binary file; expected {expected}", path=path, line=line)
        text = rest + data
        cut = text.rfind(b"\n") + 1 if data else len(text)
        if cut:
            yield line, text[:cut]
            line += text.count(b"\n", 0, cut)
        rest = text[cut:]
        if len(rest) > _LONGEST_LINE:
            raise InputError(f"a line of more than 1 MiB; expected {expected}", path=path, line=line)
        if not data:
            return


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder of files, or several of both."""


def files_of(paths: Paths, expected: str) -> list[Path]:
    """Return the files, including those in folders; *expected* describes the files that a folder should contain."""
    found: list[Path] = []
    for place in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        inside = list(files_in(place)) if place.is_dir() else [place]
        if not inside:
            raise InputError(f"is a folder without files; expected {expected}", path=place)
        found += inside
    if not found:
        raise InputError(f"no file was given; expected {expected}", field="path")
    return found


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder by name, without empty ones (days without events)."""
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.name.startswith(".") and file.stat().st_size:
            yield file


def name_of_all(paths: Paths, files: Sequence[Path]) -> str:
    """Return a common name of the files: that of a single file, or that of the folder."""
    if len(files) == 1:
        return os.fspath(files[0])
    return os.fspath(paths) if isinstance(paths, str | os.PathLike) else f"{files[0]} and {len(files) - 1} more"


def digest_of(digests: Sequence[str]) -> str:
    """Return one checksum for those of several files, in their order."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def compressing(file: IO[bytes], suffix: str) -> Iterator[Any]:
    """Yield a file to write to, compressed according to its suffix; equal content gives equal bytes."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.open(file, "wb", preset=3) as stream:
            yield stream
    else:
        yield file
