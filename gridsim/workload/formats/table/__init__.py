"""Any table as a workload: a file of rows, and a mapping that says which of its columns is what of a job."""

from __future__ import annotations

from collections.abc import Mapping

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.formats.stream import Paths, digest_of, files_of, name_of_all
from gridsim.workload.formats.table.cells import joined
from gridsim.workload.formats.table.mapping import mapping_of, presets
from gridsim.workload.formats.table.rows import TableRows
from gridsim.workload.problems import Problems

__all__ = ["mapping_of", "presets", "read_mapped"]


def read_mapped(
    path: Paths,
    *,
    mapping: str | None = None,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    timezone: str | None = None,
) -> Workload:
    """Jobs of a table: CSV, TSV or JSON, plain or compressed with gzip, xz, bzip2 or zstd, or Parquet.

    Parameters
    ----------
    path : path or sequence of paths
        The table; several, and folders, are the parts of one, in their order.
    mapping : str
        A TOML file that says what its columns are, or the name of a preset (`presets`).
    cores : int, optional
        Cores of the machine that jobs must fit; where left out, the most cores that the table has in use at once.
    rules : mapping of str to str, optional
        Rule by kind of damaged row (`gridsim.workload.problems.KINDS`).
    timezone : str, optional
        Of times that say none; that of the mapping where left out.

    Raises
    ------
    InputError
        When the table or the mapping cannot be read, names a column that is not there, holds no usable job, or where
        more than 5 % of its rows are not what the mapping says.

    Notes
    -----
    Amounts are those of a whole job. A job of several nodes has a task on each; one that asks for memory, GPUs or
    another resource and names no nodes is one task; one that asks for cores alone asks for plain cores. Parts of cores
    are rounded up. The number of a row is that of its job where jobs have no numbers of their own.
    """
    if mapping is None:
        message = f"is not given; expected a TOML file, or one of: {', '.join(presets())} (--mapping)"
        raise InputError(message, path=path, field="mapping")
    columns = mapping_of(mapping)
    files = files_of(path, "tables")
    name, problems = name_of_all(path, files), Problems(rules, source=files[0])
    rows = TableRows(name, cores, problems, columns, timezone or columns.timezone, joined(columns, files[0]))
    try:
        digests = [rows.read(file) for file in files]
        rows.refuse_damage()
        return rows.workload(digest_of(digests))
    except InputError as error:
        raise problems.located(error) if len(files) > 1 else error from error
