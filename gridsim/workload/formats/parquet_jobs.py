"""Jobs of a Parquet file of any length, read in blocks with the memory of one block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, located
from gridsim.files import checksum
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.tables import require_table
from gridsim.workload.blocks import out_of_order

_BLOCK = 1 << 16
_NEEDED = ("submit", "runtime", "cores")
_WHOLE = ("job", "cores", "user", "group")
_LABELS = ("user", "group")
_NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("FLOAT", "DOUBLE", "DECIMAL"),
}


class ParquetJobs:
    """Table of rigid jobs in Parquet, such as the ``jobs.parquet`` of a result directory.

    The columns are ``submit``, ``runtime`` (s), ``cores``, and, where present, ``job`` (its number), ``estimate`` (s),
    ``user`` and ``group``; other columns are ignored.

    Parameters
    ----------
    path : path
        Path of the file.
    block : int
        Number of rows read at a time.

    Raises
    ------
    InputError
        If it is not a Parquet file, has no jobs, or lacks a required column, or if a column has another type.
    """

    def __init__(self, path: str | Path, *, block: int = _BLOCK) -> None:
        require_table("parquet")
        self.path, self._block = Path(path), block
        self._source = "'" + str(path).replace("'", "''") + "'"
        told = self._ask(f"describe select * from read_parquet({self._source})").fetchall()
        types: dict[str, str] = {name: str(kind).partition("(")[0] for name, kind, *_ in told}
        for name in _NEEDED:
            if name not in types:
                expected = f"expected the columns {', '.join(_NEEDED)} (--mapping reads other tables, as a whole)"
                raise InputError(f"is not a column of the file; {expected}", path=self.path, field=name)
        if "priority" in types:
            message = "is a column of the file; priority classes need the whole run: leave it out, or --stream"
            raise InputError(message, path=self.path, field="priority")
        self._columns = [name for name in ("job", *_NEEDED, "estimate", *_LABELS) if name in types]
        for name in self._columns:
            if types[name] not in _NUMBERS:
                raise InputError(f"is of type {types[name]}; expected numbers", path=self.path, field=name)
        self.jobs: int = self._ask(f"select count(*) from read_parquet({self._source})").fetchone()[0]
        if not self.jobs:
            raise InputError("contains no jobs", path=self.path)
        self.cores_stated: int | None = None
        self.provenance: Mapping[str, Any] = {
            "source": str(path),
            "sha256": checksum(self.path),
            "format": "parquet",
            "jobs_read": self.jobs,
            "jobs_kept": self.jobs,
            "cores_from": None,
            "cores_field": {"requested": self.jobs, "allocated": 0},
            "problems": [],
        }

    def _ask(self, question: str) -> Any:
        import duckdb  # of an extra

        try:
            base = duckdb.connect(config={"threads": 1})
            return base.execute(question)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"cannot be read ({reason}); expected a Parquet file", path=self.path) from error

    def __iter__(self) -> Iterator[Workload]:
        names = ", ".join(f'"{name}"' for name in self._columns)
        rows = f"select {names} from read_parquet({self._source}, file_row_number = true) where file_row_number"
        for first in range(0, self.jobs, self._block):
            found = self._ask(f"{rows} between {first} and {first + self._block - 1}").fetchnumpy()
            yield self._workload({name: self._numbers(name, found[name], first) for name in self._columns}, first)

    def _numbers(self, name: str, column: Any, first: int) -> npt.NDArray[Any]:
        """Return a column of a block; null labels are unknown, and null values of other columns are errors."""
        values, none = np.ma.getdata(column), np.ma.getmaskarray(column)
        if values.dtype.kind == "O":  # decimals
            values = values.astype(np.float64)
        if values.dtype.kind == "f":
            none = none | np.isnan(values)
        if name in _LABELS:
            values = np.where(none, UNKNOWN, values)
        elif none.any():
            row = first + int(np.argmax(none)) + 1
            raise InputError("is empty; expected a number", path=self.path, line=row, field=name)
        if name in _WHOLE and (odd := values != np.trunc(values)).any():
            row = first + int(np.argmax(odd))
            told = f"is {values[row - first]}; expected a whole number"
            raise InputError(told, path=self.path, line=row + 1, field=name)
        return values.astype(np.int64) if name in _WHOLE else values

    def _workload(self, columns: dict[str, npt.NDArray[Any]], first: int) -> Workload:
        submit, n = columns["submit"], len(columns["submit"])
        if (late := np.flatnonzero(np.diff(submit) < 0)).size:  # before sorting
            row = int(late[0]) + 1
            raise out_of_order(float(submit[row - 1]), float(submit[row]), self.path, first + row + 1)
        with located(self.path):
            return Workload.from_columns(
                submit=submit,
                runtime=columns["runtime"],
                cores=columns["cores"],
                estimate=columns.get("estimate"),
                job=columns.get("job", np.arange(first + 1, first + n + 1)),
                labels={name: columns[name] for name in _LABELS if name in columns},
                provenance=self.provenance,
            )
