"""Files of a log: which they are where it has several, what they are called together, how one is compressed."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gridsim.errors import InputError

__all__ = ["Paths", "compressing", "digest_of", "files_in", "files_of", "name_of_all"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder of files, or several of both."""


def files_of(paths: Paths, expected: str) -> list[Path]:
    """Files, those of folders among them; *expected* is what a folder without any should hold."""
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
    """Files of a folder by name, without empty ones: those of days on which nothing happened."""
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.name.startswith(".") and file.stat().st_size:
            yield file


def name_of_all(paths: Paths, files: Sequence[Path]) -> str:
    """What the files are called together: a single one, or a folder, by its own name."""
    if len(files) == 1:
        return os.fspath(files[0])
    return os.fspath(paths) if isinstance(paths, str | os.PathLike) else f"{files[0]} and {len(files) - 1} more"


def digest_of(digests: Sequence[str]) -> str:
    """One checksum for those of several files, in their order."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def compressing(file: IO[bytes], suffix: str) -> Iterator[Any]:
    """A file to write to, compressed as its suffix says; the same bytes make the same file."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.open(file, "wb", preset=3) as stream:
            yield stream
    else:
        yield file
