"""Workloads that are too long to hold: blocks of jobs, one after the other, in order of their submit times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import seconds
from gridsim.model.workload import Workload


class Blocks(Protocol):
    """Jobs of a source that can be gone through block by block, as often as one likes.

    Attributes
    ----------
    cores_stated : int or None
        Size of the machine according to the source.
    jobs : int
        How many there are.
    provenance : mapping
        As `Workload.provenance`.
    """

    @property
    def cores_stated(self) -> int | None:
        """Size of the machine according to the source."""
        ...

    @property
    def jobs(self) -> int:
        """How many there are."""
        ...

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where they come from."""
        ...

    def __iter__(self) -> Iterator[Workload]:
        """The blocks: rigid jobs of one task on plain cores, with the same labels in each."""
        ...


def joined(one: Workload, other: Workload) -> Workload:
    """The jobs of two blocks of one source."""
    names = ("job", "submit", "runtime", "estimate", "cores", "deadline")
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    labels = {name: np.concatenate([column, other.labels[name]]) for name, column in one.labels.items()}
    logged = {name: np.concatenate([column, other.logged[name]]) for name, column in one.logged.items()}
    return replace(one, **columns, labels=labels, logged=logged)


def out_of_order(before: float, came: float, path: Any, line: int) -> InputError:
    """Of a job that was submitted at *came*, in a row behind one of *before*, s."""
    told = f"is {came:.15g} s, and {before:.15g} s in the row above"
    cure = "a log that is simulated block by block is in order of its submit times: sort it, or leave out --stream"
    return InputError(f"{told}; {cure}", path=path, line=line, field="submit")


def whole_instants(blocks: Iterable[Workload]) -> Iterator[tuple[Workload, bool]]:
    """The same jobs in blocks that share no submit time, and of each whether another comes behind it.

    Raises
    ------
    InputError
        For the first job that was submitted before the one before it.
    """
    held: Workload | None = None
    rows = 0
    for block in blocks:
        if not len(block):
            continue
        found = block if held is None else joined(held, block)
        if (earlier := np.flatnonzero(np.diff(found.submit) < 0)).size:
            row = int(earlier[0]) + 1
            line = rows - (0 if held is None else len(held)) + row + 1
            before, came = seconds(found.submit[row - 1 : row + 1]).tolist()
            raise out_of_order(before, came, found.provenance.get("source"), line)
        cut = int(np.searchsorted(found.submit, found.submit[-1], side="left"))
        if cut:
            yield found.select(slice(0, cut)), True
        held = found.select(slice(cut, None))
        rows += len(block)
    if held is not None:
        yield held, False
