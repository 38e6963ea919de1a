"""Reader of any table: a file of rows, and a mapping that defines the meaning of its columns."""

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
    """Return the jobs of a table: CSV, TSV or JSON, plain or compressed with gzip, xz, bzip2 or zstd, or Parquet.

    Parameters
    ----------
    path : path or sequence of paths
        Path of the table; several files, and folders, are the parts of one table, in their order.
    mapping : str
        TOML file that defines the meaning of its columns, or the name of a preset (`presets`).
    cores : int, optional
        Size of the machine, which limits the width of jobs; by default the peak number of cores in use in the table.
    rules : mapping of str to str, optional
        Rule by kind of damaged row (`gridsim.workload.problems.KINDS`).
    timezone : str, optional
        Time zone of times without one; by default that of the mapping.

    Raises
    ------
    InputError
        If the table or the mapping cannot be read, if a column is missing, if there is no usable job, or if more than
        5 % of the rows do not match the mapping.

    Notes
    -----
    Amounts are totals of a job. A job on several nodes has one task per node. A job that requests memory, GPUs or
    another resource but no nodes has one task. A job that requests only cores requests plain cores. Fractional cores
    are rounded up. If jobs have no numbers, the job number is the row number.
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
