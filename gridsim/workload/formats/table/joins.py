"""Further tables that rows of the first one have a row of: kept in memory by their key."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from sys import intern

from gridsim.errors import InputError
from gridsim.workload.formats.table.cells import TableFile
from gridsim.workload.formats.table.mapping import Joined, TableMapping

__all__ = ["JoinedTable", "joined", "joined_files"]

_SUFFIXES = ("", ".gz", ".xz", ".bz2", ".zst")


class JoinedTable:
    """Texts by key.

    Attributes
    ----------
    table : Joined
        What it is.
    missing : int
        Rows of the first table that have none of it.
    """

    def __init__(self, table: Joined, mapping: TableMapping, folder: Path) -> None:
        self.table, self.missing = table, 0
        self._named = mapping.named_of(table.name)
        self._by_key: dict[str, tuple[str, ...]] = {}
        path = _located(table, folder)
        wanted = tuple(dict.fromkeys((table.key, *self._named)))
        own = TableMapping(f"{mapping.name}, join.{table.name}", table.delimiter, table.header)
        for block in TableFile(path, own, wanted).blocks():
            columns = [map(intern, block.columns[name]) for name in self._named]
            for key, *texts in zip(block.columns[table.key], *columns, strict=True):
                self._by_key.setdefault(key, tuple(texts))

    def columns(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Columns of the rows with these keys, by what they are called among those of all tables; empty for none."""
        nothing = ("",) * len(self._named)
        found = [self._by_key.get(key, nothing) for key in keys]
        self.missing += sum(key not in self._by_key for key in keys)
        return {
            f"{self.table.name}: {name}": [texts[place] for texts in found] for place, name in enumerate(self._named)
        }


def joined(mapping: TableMapping, beside: str | os.PathLike[str]) -> list[JoinedTable]:
    """All further tables of a mapping, whose files are in the folder of the first one.

    Raises
    ------
    InputError
        When one is not there, or cannot be read.
    """
    return [JoinedTable(it, mapping, Path(beside).parent) for it in mapping.joins]


def joined_files(mapping: TableMapping, folder: Path) -> list[Path]:
    """Files in *folder* of the further tables of a mapping.

    Raises
    ------
    InputError
        When one is not there.
    """
    return [_located(it, folder) for it in mapping.joins]


def _located(table: Joined, folder: Path) -> Path:
    for path in (folder / f"{table.file}{suffix}" for suffix in _SUFFIXES):
        if path.is_file():
            return path
    raise InputError(f"is not there; the mapping joins it ([join.{table.name}])", path=folder / table.file)
