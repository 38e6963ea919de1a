"""How far these simulations are from what the machine did: told right below the answer of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gridsim.model.time import seconds
from gridsim.words import duration, number

if TYPE_CHECKING:
    from gridsim.report.evidence import Evidence

__all__ = ["Trust", "trust"]


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known of a replay of the log against what the log says did happen.

    Attributes
    ----------
    sentences : tuple of str
        For the reader, the first one alone if there is no more room.
    numbers : mapping of str to float
        The same for programs: seconds, shares and counts by name.
    policy : str
        Label of the policy that it is about; empty where it is not said.
    own : bool
        Whether that is the site's own.
    far : bool
        Whether its replay is so far from the log that the first sentence is a warning, to be told before any answer.
    """

    sentences: tuple[str, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)
    policy: str = ""
    own: bool = False
    far: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is told before the answer."""
        return self.sentences[:1] if self.far else ()

    @property
    def rest(self) -> tuple[str, ...]:
        """What is told behind the answer."""
        return self.sentences[1:] if self.far else self.sentences


def trust(comparison: Evidence) -> Trust | None:
    """What the comparison carries; else how far the first policy is from the waits in the log; None without such waits.

    Logs that were transformed are not what the machine ran, and of DAG jobs no waits are known.
    """
    if comparison.trust is not None:
        return comparison.trust
    label = comparison.baseline
    record = comparison.records[label]
    logged = record.workload.logged.get("wait")
    if logged is None or comparison.of_dags or comparison.info.get("workload", {}).get("transforms"):
        return None
    waits = np.asarray(logged, dtype=np.float64)
    known = comparison.kept & record.ran & np.isfinite(waits)
    if not known.any():
        return None
    wait = seconds(record.first_start_us[known] - record.workload.submit[known])
    apart = float(np.median(np.abs(wait - waits[known])))
    middle = float(np.median(waits[known]))
    count = int(known.sum())
    told = (
        "How far to trust this: no policy of the site is known, so nothing here was fitted to the machine. Under "
        f"{label} the simulated wait of a job is {duration(apart)} away from the logged one at the median "
        f"(of {number(count)} job{'' if count == 1 else 's'}; the median logged wait is {duration(middle)})."
    )
    return Trust((told,), {"jobs": count, "wait_error_median": apart, "logged_wait_median": middle}, policy=label)
