"""Eligible part of the machine and reasons for waiting of jobs, from a record or from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import FloatArray, IntArray, seconds
from gridsim.record import Record, Refusal
from gridsim.run_folder import read_run_table


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a machine for which only some jobs are eligible.

    Attributes
    ----------
    pool : (n,) int64
        Pool of each job; jobs of different pools never compete; -1 if the job did not run and its pool is unknown.
    clusters : tuple of (str, int)
        Name and cores of each pool if pools are clusters; else empty.
    eligible, free : (n,) int64 or None
        For policies with nodes: cores of the nodes eligible for each job, and free ones at its submission; -1 if
        unknown.
    job, word, held : (k,) arrays
        Row, reason and seconds of each reported reason, by row.
    refused : mapping of int to Refusal
        Jobs rejected by a rule, by row.
    """

    pool: IntArray
    clusters: tuple[tuple[str, int], ...] = ()
    eligible: IntArray | None = None
    free: IntArray | None = None
    job: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    word: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, dtype=np.str_))
    held: FloatArray = field(default_factory=lambda: np.zeros(0))
    refused: Mapping[int, Refusal] = field(default_factory=dict)

    def reasons(self, row: int) -> tuple[tuple[str, float], ...]:
        """Return the reasons of a job and the total duration of each, s, longest first."""
        first, last = np.searchsorted(self.job, [row, row + 1])
        total: dict[str, float] = {}
        for word, held in zip(self.word[first:last].tolist(), self.held[first:last].tolist(), strict=True):
            if held > 0:
                total[word] = total.get(word, 0.0) + held
        return tuple(sorted(total.items(), key=lambda one: -one[1]))


def parts_of(record: Record, platform: Platform | None) -> Parts | None:
    """Return the parts of the machine of a record; None if it is one pool of cores."""
    told = record.reasons
    if told is not None:
        held = seconds(told.until_us) - seconds(told.since_us)
        words = np.array(told.words)[told.word]
        return Parts(told.pool, (), told.eligible, told.free, told.job, words, np.nan_to_num(held), told.refused)
    clusters = () if platform is None else tuple((each.name, each.cores) for each in platform.clusters())
    if len(clusters) < 2 or sum(cores for _, cores in clusters) != record.cores:
        return None
    return Parts(np.where(record.ran, record.cluster, -1).astype(np.int64), clusters)


def parts_read(folder: Path, columns: Mapping[str, npt.NDArray[Any]], tree: Any) -> Parts | None:
    """Return the parts for a result directory; *tree* is the machine in ``run.json``.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    if {"eligible", "free", "pool"} <= set(columns) and (folder / "reasons.csv").is_file():
        pool, eligible, free = (columns[name] for name in ("pool", "eligible", "free"))
        job, word, held = _reasons(folder, columns["job"])
        return Parts(pool, (), eligible, free, job, word, held, _refused(folder, columns["job"]))
    clusters = tuple(_clusters(tree))
    if len(clusters) < 2 or "cluster" not in columns:
        return None
    number = {name: row for row, (name, _) in enumerate(clusters)}
    return Parts(np.array([number.get(str(name), -1) for name in columns["cluster"]], dtype=np.int64), clusters)


def _clusters(tree: Any) -> list[tuple[str, int]]:
    """Return name and cores of the clusters of a machine, in tree order."""
    if not isinstance(tree, Mapping):
        return []
    if "children" in tree:
        return [one for child in tree["children"] for one in _clusters(child)]
    return [(str(tree.get("name")), int(tree.get("cores", 0)))]


def rows_of(job: IntArray, numbers: npt.NDArray[Any], path: Path) -> IntArray:
    """Return the rows of jobs by their numbers, read from *path*.

    Raises
    ------
    InputError
        For an unknown number.
    """
    if not len(job) and len(numbers):
        raise InputError(f"has job {numbers[0]}, which is not in jobs.csv", path=path)
    order = np.argsort(job, kind="stable")
    place = np.searchsorted(job[order], numbers).clip(max=max(len(job) - 1, 0))
    rows: IntArray = order[place]
    if len(numbers) and (job[rows] != numbers).any():
        raise InputError(f"has job {numbers[job[rows] != numbers][0]}, which is not in jobs.csv", path=path)
    return rows


def _reasons(folder: Path, job: IntArray) -> tuple[IntArray, npt.NDArray[Any], FloatArray]:
    told = read_run_table(folder, "reasons")
    rows = rows_of(job, told["job"], folder / "reasons.csv")
    order = np.argsort(rows, kind="stable")
    held = np.nan_to_num(told["until"] - told["from"])
    return rows[order], told["reason"][order], held[order]


def _refused(folder: Path, job: IntArray) -> dict[int, Refusal]:
    if not (folder / "refused.csv").is_file():
        return {}
    told = read_run_table(folder, "refused")
    rows = rows_of(job, told["job"], folder / "refused.csv").tolist()
    found = {}
    for place, row in enumerate(rows):
        reason, asked, most, unit, rule = (told[name][place] for name in Refusal._fields)
        known = most == most
        asked = float(asked) if known else str(asked)
        found[row] = Refusal(str(reason), asked, float(most) if known else None, str(unit), str(rule))
    return found
