"""Jobs that ran in the log but that the simulation rejects: the model of the site is wrong about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER
from gridsim.record import Record, Status

__all__ = ["ModelFailures", "failed_jobs", "model_failures"]


class ModelFailures(NamedTuple):
    """Number of such jobs under a policy, and the reasons of their rejection with the jobs of each."""

    jobs: int
    reasons: tuple[tuple[str, int], ...]


def failed_jobs(records: Mapping[str, Record], own: str | None = None) -> dict[str, npt.NDArray[np.bool_]]:
    """Jobs of each record that ran in the log and are rejected because the model of the site is wrong.

    These are jobs that never fit on a machine of the size of the site's, and jobs that the site's own policy (*own*)
    rejects. Other policies may reject jobs by their own rules, which is no failure.

    Examples
    --------
    >>> from dataclasses import replace
    >>> record = Record.from_rows([dict(submit=0, start=1, end=5), dict(submit=0, start=None, end=None, runtime=9)])
    >>> log = replace(record.workload, logged={"wait": np.array([1.0, 3.0])})
    >>> failed_jobs({"easy": replace(record, workload=log)})["easy"].tolist()
    [False, True]
    """
    own = own if own in records else None
    first = next(iter(records.values())) if own is None else records[own]
    logged = first.workload.logged_start
    if logged is None or not first.workload.has_recorded_schedule:
        return {label: np.zeros(len(record), dtype=bool) for label, record in records.items()}
    never_admitted = first.status == Status.unadmitted if own is not None else np.zeros(len(first), dtype=bool)
    return {
        label: (logged < NEVER)
        & (
            ((record.status == Status.rejected) & (record.cores >= first.cores))
            | ((record.status == Status.unadmitted) & never_admitted)
        )
        for label, record in records.items()
    }


def model_failures(
    records: Mapping[str, Record], own: str | None = None, kept: npt.NDArray[np.bool_] | None = None
) -> dict[str, ModelFailures]:
    """The failures under each policy that has any, of the jobs in *kept* (default: of all)."""
    found = {}
    for label, failed in failed_jobs(records, own).items():
        rows = np.flatnonzero(failed if kept is None else failed & kept)
        if len(rows):
            reasons = records[label].reasons
            refused = {} if reasons is None else reasons.refused
            counts = Counter(refused[row].reason for row in rows.tolist() if row in refused)
            found[label] = ModelFailures(len(rows), tuple(counts.most_common()))
    return found
