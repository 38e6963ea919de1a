"""Several clusters in one log: selection, and separation of their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridsim.errors import InputError, require_known
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.sacct.values import BoolArray, SacctColumns

ALL = "all"
"""Option value that selects all clusters of a log, kept separate."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Selected clusters of a log, and its other clusters.

    Attributes
    ----------
    names : tuple of str
        Names in alphabetical order; empty if the log has no cluster names.
    codes : (k,) int64
        Numbers of the clusters in the column of the lines.
    column : (n,) int64
        Number of the cluster of each remaining line.
    step : int
        Offset between the job numbers of consecutive clusters; 0 if no number occurs twice.
    left_out : mapping of str to int
        Number of jobs of the other clusters.
    """

    names: tuple[str, ...]
    codes: IntArray
    column: IntArray
    step: int
    left_out: dict[str, int]

    @classmethod
    def of(
        cls, lines: SacctColumns, edges: list[tuple[int, int]], known: Sequence[str], asked: str | Sequence[str] | None
    ) -> Clusters:
        """Select the clusters of a log; remove lines of others, and make job numbers of several clusters unique.

        Parameters
        ----------
        lines : SacctColumns
            Lines of all clusters; modified.
        edges : list of (int, int)
            Row, and number of a job that it waited for; modified with the lines.
        known : sequence of str
            Names by number in the column.
        asked : str or sequence of str, optional
            Names, or `ALL`.

        Raises
        ------
        InputError
            If there are several clusters and none was selected, if lines of separate clusters have no name, and for
            unknown names.
        """
        wanted = (asked,) if isinstance(asked, str) else asked
        if "cluster" not in lines:
            if wanted is not None and tuple(wanted) != (ALL,):
                raise InputError("the log has no column Cluster (sacct -o ...,Cluster)", field="cluster")
            return cls((), np.zeros(0, dtype=np.int64), np.zeros(lines.rows, dtype=np.int64), 0, {})
        counts = _jobs(lines, known)
        chosen = _chosen(counts, wanted)
        codes = np.array([known.index(name) for name in chosen], dtype=np.int64)
        if len(chosen) < len(counts):
            _keep(lines, edges, np.isin(lines.columns["cluster"], codes))
        column = lines.columns["cluster"].astype(np.int64)
        step = 0
        if len(chosen) > 1:
            if unnamed := int(np.count_nonzero(column == UNKNOWN)):
                raise InputError(f"{unnamed:,} lines name no cluster; choose a cluster by name", field="cluster")
            step = _step(lines, column)
            lines.several = _ranks(codes, column)
            _renumber(lines, edges, lines.several * step)
        left = {name: count for name, count in counts.items() if name not in chosen}
        return cls(tuple(chosen), codes, column, step, left)

    @property
    def several(self) -> bool:
        """Return whether jobs of more than one cluster are read."""
        return len(self.names) > 1

    def parts(self, rows: BoolArray) -> Iterator[BoolArray]:
        """Yield the given lines of each cluster; all lines for a single cluster."""
        if not self.several:
            yield rows
            return
        for code in self.codes:
            yield rows & (self.column == code)

    def provenance(self, rows: IntArray, peaks: Sequence[int]) -> dict[str, Any]:
        """Return the facts on clusters for the provenance, from the rows of the jobs and the peak numbers of cores."""
        found: dict[str, Any] = {}
        if self.several:
            found["clusters"] = [
                {
                    "name": name,
                    "jobs": int(np.count_nonzero(self.column[rows] == code)),
                    "cores": peak,
                    "numbers_from": place * self.step,
                }
                for place, (name, code, peak) in enumerate(zip(self.names, self.codes, peaks, strict=True))
            ]
        elif self.names:
            found["cluster"] = self.names[0]
        if self.left_out:
            found["clusters_left_out"] = dict(self.left_out)
        return found


def _jobs(lines: SacctColumns, known: Sequence[str]) -> dict[str, int]:
    """Return the number of jobs of each cluster of a log by name, with several runs counted once."""
    column = lines.columns["cluster"]
    keys = np.stack([column, lines.identity(), lines.column("task"), lines.column("part")])
    codes, counts = np.unique(np.unique(keys, axis=1)[0], return_counts=True)
    found = {known[code]: int(count) for code, count in zip(codes, counts, strict=True) if code != UNKNOWN}
    return dict(sorted(found.items()))


def _chosen(counts: dict[str, int], wanted: Sequence[str] | None) -> list[str]:
    if wanted is None:
        if len(counts) > 1:
            listed = ", ".join(f"{name} ({count:,} jobs)" for name, count in counts.items())
            raise InputError(
                f"contains {len(counts)} clusters: {listed}; choose one (--cluster NAME), or simulate a machine of "
                f"several (--cluster {ALL})",
                field="Cluster",
            )
        return list(counts)
    if tuple(wanted) == (ALL,):
        return list(counts)
    require_known("cluster of the log", counts, *wanted)
    return sorted(set(wanted))


def _keep(lines: SacctColumns, edges: list[tuple[int, int]], keep: BoolArray) -> None:
    """Remove all other lines."""
    place = np.cumsum(keep) - 1
    edges[:] = [(int(place[row]), other) for row, other in edges if keep[row]]
    lines.select(keep)


def _step(lines: SacctColumns, column: IntArray) -> int:
    """Return a power of ten above all job numbers if two clusters share one; else 0."""
    names = [name for name in ("base", "raw") if name in lines]
    shared = False
    for name in names:
        pairs = np.unique(np.stack([lines.columns[name], column]), axis=1)
        shared |= bool((pairs[0, 1:] == pairs[0, :-1]).any())
    largest = max(int(lines.columns[name].max(initial=0)) for name in names)
    return 10 ** len(str(largest)) if shared else 0


def _renumber(lines: SacctColumns, edges: list[tuple[int, int]], more: IntArray) -> None:
    for name in ("base", "raw"):
        if name in lines:
            numbers = lines.columns[name].astype(np.int64)
            lines.columns[name] = np.where(numbers < 0, numbers, numbers + more)
    edges[:] = [(row, other + int(more[row])) for row, other in edges]


def _ranks(codes: IntArray, column: IntArray) -> IntArray:
    """Return the index of each number in *codes*."""
    order = np.argsort(codes)
    return order[np.searchsorted(codes[order], column)]
