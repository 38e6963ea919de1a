"""Groups of nodes from TOML, and from a table of nodes (CSV) that it names."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NoReturn

from gridsim.errors import InputError, UnknownNameError
from gridsim.files import csv_records
from gridsim.model.capacity import GPU, NodeGroup
from gridsim.model.exact import rational

__all__ = ["groups_of", "pools_of"]

_GROUP = ("group", "count", "capacity", "gpus", "gpu_kind", "features", "partitions", "weight", "names")
_TABLE = ("file", "name", "group", "capacity", "gpus", "gpu_kind", "features", "partitions", "weight", "separator")
_MOST = 1_000_000
_NUMBERS = ("count", "gpus", "weight")
_LISTS = ("features", "partitions", "names")
_PACKED: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
}


def groups_of(given: Any, where: str, path: Path | None) -> tuple[NodeGroup, ...]:
    """Groups of nodes as a platform file has them: a list of tables, or one table that names a file of nodes.

    Parameters
    ----------
    given : object
        The value of the key.
    where : str
        The key, for errors.
    path : Path or None
        The platform file: a file of nodes is looked for beside it.

    Returns
    -------
    tuple of NodeGroup
        In their order.

    Raises
    ------
    InputError
        Naming the file, the key or the line, and what was expected.
    """
    if isinstance(given, Mapping):
        return _NodeTable(given, where, path).groups()
    if not isinstance(given, list) or not given:
        wrong = f"is {given!r}; a list of groups of nodes was expected, or a table with the file that lists them"
        raise InputError(wrong, path=path, field=where)
    return tuple(_group(table, f"{where}[{place}]", path) for place, table in enumerate(given))


def pools_of(given: Any, where: str, path: Path | None) -> dict[str, int]:
    """Pools of a cluster: names with whole amounts.

    Raises
    ------
    InputError
        For what is no whole amount from 0.
    """
    return _amounts(given, where, path)


def _group(table: Any, where: str, path: Path | None) -> NodeGroup:
    if not isinstance(table, Mapping):
        raise InputError(f"is {table!r}; a table was expected", path=path, field=where)
    _known(table, _GROUP, where, path)
    if not isinstance(table.get("group", ""), str) or not table.get("group"):
        raise InputError("is not there; the name of the group was expected", path=path, field=f"{where}.group")
    values: dict[str, Any] = {"group": table["group"]}
    values["capacity"] = _amounts(table.get("capacity", {}), f"{where}.capacity", path)
    for key in _NUMBERS:
        if key in table:
            values[key] = _whole(table[key], f"{where}.{key}", path)
    if values.get("count", 1) > _MOST:
        wrong = f"is {values['count']}; at most {_MOST:,} nodes were expected"
        raise InputError(wrong, path=path, field=f"{where}.count")
    for key in _LISTS:
        if key in table:
            values[key] = _words(table[key], f"{where}.{key}", path)
    if "gpu_kind" in table:
        values["gpu_kind"] = _word(table["gpu_kind"], f"{where}.gpu_kind", path)
    try:
        return NodeGroup(**values)
    except InputError as error:
        raise InputError(error.message, path=path, field=f"{where}.{error.field}") from error


def _amounts(given: Any, where: str, path: Path | None) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise InputError(f"is {given!r}; a table of amounts was expected", path=path, field=where)
    return {name: _whole(amount, f"{where}.{name}", path) for name, amount in given.items()}


def _whole(value: Any, where: str, path: Path | None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**53) < value < 2**53:
        value = value if not isinstance(value, int) else "beyond 2**53"
        raise InputError(f"is {value!r}; a whole number was expected", path=path, field=where)
    return value


def _word(value: Any, where: str, path: Path | None) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"is {value!r}; a word was expected", path=path, field=where)
    return value


def _words(value: Any, where: str, path: Path | None) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"is {value!r}; a list of words was expected", path=path, field=where)
    return tuple(_word(word, f"{where}[{place}]", path) for place, word in enumerate(value))


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str, path: Path | None) -> None:
    for key in table:
        if key not in keys:
            raise UnknownNameError(f"key of {where} in {path or 'the platform'}", key, keys)


@dataclass(frozen=True, slots=True)
class _Amount:
    """A column of amounts, and what they are multiplied by."""

    column: str
    scale: Fraction = Fraction(1)


class _NodeTable:
    """A table of nodes, one a row, of which alike ones that follow one another are a group."""

    def __init__(self, table: Mapping[str, Any], where: str, path: Path | None) -> None:
        _known(table, _TABLE, where, path)
        if "file" not in table:
            raise InputError("is not there; the file of the nodes was expected", path=path, field=f"{where}.file")
        name = _word(table["file"], f"{where}.file", path)
        self._file = Path(name) if path is None else path.parent / name
        self._columns = {
            key: _word(table[key], f"{where}.{key}", path)
            for key in _TABLE
            if key not in ("capacity", "file")
            if key in table
        }
        self._separator = self._columns.pop("separator", "|")
        self._capacity = self._amounts_of(table.get("capacity", {}), f"{where}.capacity", path)
        self._line = 1

    @staticmethod
    def _amounts_of(given: Any, where: str, path: Path | None) -> dict[str, _Amount]:
        if not isinstance(given, Mapping):
            raise InputError(f"is {given!r}; a table of columns was expected", path=path, field=where)
        found = {}
        for name, rule in given.items():
            inner = f"{where}.{name}"
            if isinstance(rule, Mapping):
                _known(rule, ("column", "scale"), inner, path)
                scale = rule.get("scale", 1)
                if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < 2**53:
                    raise InputError(f"is {scale!r}; a number above 0 was expected", path=path, field=f"{inner}.scale")
                found[name] = _Amount(_word(rule.get("column"), f"{inner}.column", path), Fraction(str(scale)))
            else:
                found[name] = _Amount(_word(rule, inner, path))
        return found

    def groups(self) -> tuple[NodeGroup, ...]:
        nodes = list(self._rows())
        found = []
        for _, alike in groupby(nodes, key=lambda node: (node[0], *node[2:])):
            members = list(alike)
            group, name, capacity, gpus, kind, features, partitions, weight = members[0]
            try:
                made = NodeGroup(
                    group=group or name,
                    count=len(members),
                    capacity=dict(capacity),
                    gpus=gpus,
                    gpu_kind=kind,
                    features=features,
                    partitions=partitions,
                    weight=weight,
                    names=tuple(member[1] for member in members),
                )
            except InputError as error:
                raise InputError(error.message, path=self._file, field=error.field) from error
            found.append(made)
        if not found:
            raise InputError("lists no node", path=self._file)
        return tuple(found)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        with self._text() as text:
            header, rows = csv_records(text, self._file)
            for column in (*self._columns.values(), *(it.column for it in self._capacity.values())):
                if column not in header:
                    raise UnknownNameError(f"column of {self._file}", column, header)
            for number, (self._line, row) in enumerate(rows):
                yield (
                    self._cell(row, "group", ""),
                    self._cell(row, "name", f"node-{number}"),
                    tuple((name, self._amount(row, rule)) for name, rule in self._capacity.items()),
                    self._number(row, "gpus", 0),
                    self._cell(row, "gpu_kind", GPU) or GPU,
                    self._several(row, "features"),
                    self._several(row, "partitions"),
                    self._number(row, "weight", 1),
                )

    def _text(self) -> IO[str]:
        try:
            text = self._file.read_bytes()
            for magic, unpacked in _PACKED.items():
                text = unpacked(text) if text.startswith(magic) else text
            return io.StringIO(text.decode("utf-8-sig"), newline="")
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot be read: {reason}; expected a table of nodes", path=self._file) from error
        except UnicodeDecodeError as error:
            raise InputError("is no text in UTF-8; expected a table of nodes", path=self._file) from error

    def _cell(self, row: Mapping[str, str], key: str, otherwise: str) -> str:
        return otherwise if key not in self._columns else row[self._columns[key]].strip()

    def _several(self, row: Mapping[str, str], key: str) -> tuple[str, ...]:
        return tuple(filter(None, self._cell(row, key, "").split(self._separator)))

    def _number(self, row: Mapping[str, str], key: str, otherwise: int) -> int:
        return otherwise if key not in self._columns else self._amount(row, _Amount(self._columns[key]))

    def _amount(self, row: Mapping[str, str], rule: _Amount) -> int:
        text = row[rule.column].strip()
        try:
            amount = rational(text) * rule.scale
        except (ValueError, ZeroDivisionError):
            self._wrong(rule.column, text)
        if not 0 <= amount < 2**53 or amount.denominator != 1:
            self._wrong(rule.column, text if rule.scale == 1 else f"{text} times {rule.scale}")
        return int(amount)

    def _wrong(self, column: str, text: str) -> NoReturn:
        message = f"is {text!r}; a whole number from 0 was expected"
        raise InputError(message, path=self._file, line=self._line, field=column)
