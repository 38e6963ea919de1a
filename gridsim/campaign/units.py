"""Units of a campaign: run once each, by one process or several, a file of rows for each; finished ones are kept.

What a unit is, and what its rows say, is the campaign's own business.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from gridsim.errors import InputError, UnknownNameError
from gridsim.files import read_toml, write_atomically, write_json

__all__ = ["Finished", "Row", "Table", "claim", "from_recipe", "is_one_of", "run_missing", "run_units"]

Row = Mapping[str, Any]

Campaign = TypeVar("Campaign")
Unit = TypeVar("Unit")
Done = TypeVar("Done")


class Filed(Protocol):
    """A campaign (a dataclass) each of whose units keeps its rows in a ``file`` of its own.

    Attributes
    ----------
    table : Table
        Of its rows.
    may_grow : sequence of str
        Fields of which a folder may have more later.
    """

    table: ClassVar[Table]
    may_grow: ClassVar[Sequence[str]]

    @property
    def logs(self) -> Sequence[str]:
        """What it is run on."""
        ...

    @property
    def experiments(self) -> Sequence[str]:
        """What is run: names, or patterns of names."""
        ...

    def units(self) -> Sequence[Any]:
        """In the order in which they are run."""
        ...

    def rows(self, unit: Any, data: str | Path | None = None) -> Sequence[Row]:
        """Numbers of one unit; *data* is the folder of the archive's logs."""
        ...


class Finished(NamedTuple):
    """A unit that was run: CPU seconds with everything, schedules, jobs in them."""

    unit: Any
    cpu: float
    schedules: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Table:
    """How rows are kept as CSV.

    Attributes
    ----------
    columns : mapping of str to callable
        What makes the value of each column of its text.

    Examples
    --------
    >>> Table({"load": float, "policy": str}).value_of(["1.5", "easy"])
    {'load': 1.5, 'policy': 'easy'}
    """

    columns: Mapping[str, Callable[[str], Any]]

    def write(self, path: str | Path, rows: Iterable[Row]) -> None:
        """Write rows, whole or not at all; numbers keep every digit."""

        def write(temporary: Path) -> None:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(self.columns), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)

        write_atomically(path, write)

    def read(self, folder: str | Path) -> list[Row]:
        """Rows of every file of a folder, in order of their names.

        Raises
        ------
        InputError
            When the folder has no such file, or one has other columns.
        """
        paths = sorted(Path(folder).glob("*.csv"))
        if not paths:
            raise InputError("has no stored rows; run the campaign first", path=Path(folder))
        return [row for path in paths for row in self._read(path)]

    def _read(self, path: Path) -> Iterator[Row]:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if header != list(self.columns):
                told = f"has the columns {', '.join(header)}; expected {', '.join(self.columns)}"
                raise InputError(told, path=path, line=1)
            for texts in reader:
                yield self.value_of(texts)

    def value_of(self, texts: Sequence[str]) -> Row:
        """The row of one line."""
        return {name: make(text) for (name, make), text in zip(self.columns.items(), texts, strict=True)}


def from_recipe(kind: type[Campaign], path: str | Path, scale: str, changes: Mapping[str, Any]) -> Campaign:
    """Campaign (a dataclass) of a recipe: its own keys, then those of one of its scales, then *changes*.

    Raises
    ------
    InputError
        When the file has no such scale, or a key that is none.
    """
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
    """Whether a name fits one of the patterns, such as ``A-*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def claim(folder: str | Path, campaign: Mapping[str, Any]) -> None:
    """Note what the rows of a folder are of.

    Raises
    ------
    InputError
        When the folder holds rows of something else.
    """
    told, note = json.loads(json.dumps(campaign)), Path(folder) / "campaign.json"
    if not note.exists():
        write_json(note, told)
        return
    there = json.loads(note.read_text(encoding="utf-8"))
    for name, value in told.items():
        if there.get(name) != value:
            raise InputError(
                f"the rows there are of {there.get(name)}, not {value}; give another folder", path=note, field=name
            )


def run_units(
    units: Sequence[Unit],
    work: Callable[[Unit], Done],
    *,
    workers: int = 1,
    told: Callable[[Done, int], None] | None = None,
) -> list[Done]:
    """What *work* answers for each unit, in the order in which they are done.

    Parameters
    ----------
    work : callable
        Runs one unit and keeps its rows; with several workers, in another process.
    workers : int
        Processes.
    told : callable, optional
        Called with each unit that is done and the number still to do.
    """
    if workers == 1:
        return list(_followed(map(work, units), len(units), told))
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(work, unit) for unit in units]
        return list(_followed((future.result() for future in as_completed(futures)), len(units), told))


def _followed(units: Iterable[Done], left: int, told: Callable[[Done, int], None] | None) -> Iterator[Done]:
    for unit in units:
        left -= 1
        if told is not None:
            told(unit, left)
        yield unit


def run_missing(
    campaign: Filed,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    workers: int = 1,
    told: Callable[[Finished, int], None] | None = None,
) -> list[Finished]:
    """Run every unit of a campaign whose file is missing from a folder, and write it there.

    Parameters
    ----------
    folder : path
        Where the rows are; a unit is a file there, whole or not at all.
    data : path, optional
        Folder of the archive's logs; not needed for the model.
    workers : int
        Processes.
    told : callable, optional
        Called with each unit that is done and the number still to do.

    Raises
    ------
    InputError
        When the folder holds rows of another campaign. More of what may grow of the same one is welcome. Also when
        none of the experiments is run on any of the logs.
    """
    units = campaign.units()
    if not units:
        logs, names = ", ".join(campaign.logs), ", ".join(campaign.experiments)
        raise InputError(f"nothing of {names} is run on {logs}", field="experiments")
    told_of = asdict(campaign)  # type: ignore[call-overload]  # a dataclass
    claim(folder, {name: value for name, value in told_of.items() if name not in campaign.may_grow})
    missing = [unit for unit in units if not (Path(folder) / unit.file).exists()]
    return run_units(missing, partial(_run_unit, campaign, Path(folder), data), workers=workers, told=told)


def _run_unit(campaign: Filed, folder: Path, data: str | Path | None, unit: Any) -> Finished:
    begun = time.process_time()
    made = campaign.rows(unit, data)
    campaign.table.write(folder / unit.file, made)
    jobs = [int(row["value"]) for row in made if row["metric"] == "submitted" and not row.get("group")]
    return Finished(unit, time.process_time() - begun, len(jobs), sum(jobs))
