"""Common parts of the campaigns of papers, whose units store rows of numbers in one CSV file each.

Each campaign defines its units and the meaning of their rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from gridsim import InputError
from gridsim.campaign.run import Made
from gridsim.campaign.store import Store
from gridsim.errors import UnknownNameError
from gridsim.files import checksum, read_toml

__all__ = ["Row", "Table", "Tabled", "Unit", "is_one_of"]

Row = Mapping[str, Any]

Campaign = TypeVar("Campaign")


@dataclass(frozen=True, slots=True)
class Table:
    """CSV format of rows.

    Attributes
    ----------
    columns : mapping of str to callable
        Function that converts the text of each column to its value.

    Examples
    --------
    >>> Table({"load": float, "policy": str}).value_of(["1.5", "easy"])
    {'load': 1.5, 'policy': 'easy'}
    """

    columns: Mapping[str, Callable[[str], Any]]

    def text(self, rows: Iterable[Row]) -> str:
        """Rows as stored; numbers keep every digit."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def read(self, folder: str | Path) -> list[Row]:
        """Rows of every unit of a store, sorted by file name.

        Raises
        ------
        InputError
            When a file is missing, has other columns, or has changed since it was written.
        """
        store = Store(folder)
        files = [file for file in store.files() if file.endswith(".csv")]
        if not files:
            raise InputError("has no stored rows; run the campaign first", path=Path(folder))
        return [row for file in files for row in self._read(store.content(file).decode(), store.path(file))]

    def _read(self, content: str, path: Path) -> Iterator[Row]:
        reader = csv.reader(io.StringIO(content, newline=""))
        header = next(reader, [])
        if header != list(self.columns):
            told = f"has the columns {', '.join(header)}; expected {', '.join(self.columns)}"
            raise InputError(told, path=path, line=1)
        for texts in reader:
            yield self.value_of(texts)

    def value_of(self, texts: Sequence[str]) -> Row:
        """The row of one line."""
        return {name: make(text) for (name, make), text in zip(self.columns.items(), texts, strict=True)}


class Unit(NamedTuple):
    """Runs that are executed together: a window of a log, or a workload of a kind, and a part of the conditions.

    Attributes
    ----------
    log : str
        Log, or kind of workload.
    window : int
        Number of the window or workload; -1 for the log as a whole.
    part : str or int
        Such as a stream of random numbers; empty for all.
    """

    log: str
    window: int = -1
    part: str | int = ""

    @property
    def file(self) -> str:
        """Name of the file of its rows."""
        window = [] if self.window < 0 else [f"{self.window:02d}"]
        return "-".join([self.log, *window, *([] if self.part == "" else [str(self.part)])]) + ".csv"

    def __str__(self) -> str:
        window = "" if self.window < 0 else f" window {self.window}"
        return f"{self.log}{window}" + ("" if self.part == "" else f", {self.part}")

    def named(self, *names: str) -> dict[str, Any]:
        """The first fields of its rows: each of these names with the value of the unit in this place."""
        return dict(zip(names, self, strict=False))


class Tabled:
    """A campaign (a dataclass) whose units store rows of numbers; `gridsim.campaign.run` executes it.

    Attributes
    ----------
    table : Table
        Of its rows.
    may_grow : sequence of str
        Fields that may get more values later in the same store.
    """

    __slots__ = ()

    table: ClassVar[Table]
    may_grow: ClassVar[Sequence[str]]
    may_change: ClassVar[Sequence[str]] = ()

    @classmethod
    def from_toml(cls, path: str | Path, *, scale: str = "small", **changes: Any) -> Self:
        """Campaign of a recipe: its own keys, then those of one of its scales, then *changes*.

        Raises
        ------
        InputError
            When the file lacks the scale, or has an unknown key.
        """
        return _from_recipe(cls, path, scale, changes)

    def reads(self, data: Path | None) -> Sequence[Path]:
        """Files that it reads; *data* is the folder of the archive's logs."""
        return ()

    def units(self) -> Sequence[Any]:
        """Units in execution order."""
        raise NotImplementedError

    def rows(self, unit: Any, data: str | Path | None = None) -> Sequence[Row]:
        """Numbers of one unit; *data* is the folder of the archive's logs."""
        raise NotImplementedError

    def identity(self, data: Path | None) -> dict[str, Any]:
        """Identity of the rows: all fields except those that may grow, and the checksums of input files."""
        told = asdict(self)  # type: ignore[call-overload]  # a dataclass
        inputs = {path.name: checksum(path) for path in self.reads(data)}
        return {**{name: value for name, value in told.items() if name not in self.may_grow}, "inputs": inputs}

    def groups(self) -> Iterator[Sequence[Any]]:
        """A campaign for each unit.

        Raises
        ------
        InputError
            When there is none.
        """
        units = self.units()
        if not units:
            raise InputError(f"there is nothing to run in {self}")
        return ([unit] for unit in units)

    def made(self, unit: Any, data: Path | None = None) -> Made:
        """Rows of one unit, as its file has them."""
        rows = self.rows(unit, data)
        jobs = [int(row["value"]) for row in rows if row["metric"] == "submitted" and not row.get("group")]
        return Made(self.table.text(rows).encode(), schedules=len(jobs), jobs=sum(jobs))


def _from_recipe(kind: type[Campaign], path: str | Path, scale: str, changes: Mapping[str, Any]) -> Campaign:
    recipe = read_toml(path)
    scales = recipe.pop("scale", {})
    if scale not in scales:
        raise UnknownNameError("scale", scale, scales)
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    values = {**recipe, **scales[scale], **changes}
    for name in values:
        if name not in known:
            raise UnknownNameError(f"key of {Path(path).name}", name, known)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def is_one_of(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, such as ``A-*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
