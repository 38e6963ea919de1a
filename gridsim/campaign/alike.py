"""Factors that make other workloads of one for a sweep: shaken, with users drawn anew, without floods of jobs.

They are factors like any other, ``shaken``, ``redrawn`` and ``flurries``, with a place in the recipe that is left out
where the workload is to stay as it is. So runs of a sweep that was made without them are found again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsim.errors import InputError

__all__ = ["AS_IT_IS", "REPLICAS", "Alike"]

AS_IT_IS = 0
"""Value of `REPLICAS` factors of the workload itself."""

REPLICAS = {"shaken": "shake", "redrawn": "resample"}
"""Factors whose values are replicas of one workload, and the transform that makes these."""

_MOST = 10_000


@dataclass(frozen=True)
class Alike:
    """Which other workloads are asked about beside those of a recipe.

    Parameters
    ----------
    shake, resample : int
        Replicas of each workload, 2 or more; 0 for none. One of them at a time.
    shake_by : int, optional
        Seconds by which a submit time moves at most.
    resample_load : float, optional
        How many times as many users there are.
    flurries : {"keep", "drop", "both"}
        Floods of jobs by one user.

    Raises
    ------
    InputError
        For too few replicas, both kinds at once, and for *shake_by* or *resample_load* alone.
    """

    shake: int = 0
    shake_by: int | None = None
    resample: int = 0
    resample_load: float | None = None
    flurries: str = "keep"

    def __post_init__(self) -> None:
        for name in REPLICAS.values():
            if getattr(self, name) and not 2 <= getattr(self, name) <= _MOST:
                raise InputError(f"{getattr(self, name)} replicas; expected 2 to {_MOST:,}", field=name)
        if self.shake and self.resample:
            raise InputError("shaken workloads and users drawn anew are two campaigns; leave out one", field="resample")
        if self.shake_by is not None and not self.shake:
            raise InputError("says how far to shake and nothing says how often; give --shake 20 too", field="shake-by")
        if self.resample_load is not None and not self.resample:
            told = "says at which load and nothing says how often; give --resample 20 too"
            raise InputError(told, field="resample-load")

    def added(self, told: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """The recipe of a sweep with these factors.

        Raises
        ------
        InputError
            Where it has a factor of that name.
        """
        factors, transforms = dict(told.get("factors", {})), list(told.get("workload", {}).get("transforms", ()))
        new: dict[str, list[dict[str, Any]]] = {}
        if self.flurries == "drop":
            transforms.insert(0, "without-flurries")
        if self.flurries == "both":
            new["flurries"] = [{"name": "keep", "flurries": ""}, {"name": "drop", "flurries": "without-flurries"}]
            transforms.insert(0, "{flurries}")
        factor = "shaken" if self.shake else "redrawn"
        if count := self.shake or self.resample:
            how = {"by": self.shake_by, "load": self.resample_load}
            given = "".join(f"{name}={value}&" for name, value in how.items() if value is not None)
            new[factor] = [{"name": AS_IT_IS, factor: ""}]
            new[factor] += [
                {"name": each, factor: f"{REPLICAS[factor]}?{given}replica={each}"} for each in range(1, count + 1)
            ]
            transforms.append(f"{{{factor}}}")
        for name in new:
            if name in factors:
                message = "is a factor of the recipe already; call that one otherwise"
                raise InputError(message, path=path, field=f"factors.{name}")
        if not new and self.flurries != "drop":
            return dict(told)
        compare = dict(told.get("compare", {}))
        if count and "replicates" in compare:
            compare["replicates"] = [*compare["replicates"], factor]
        workload = {**told.get("workload", {}), "transforms": transforms}
        made = {**told, "workload": workload, "factors": {**factors, **new}}
        return {**made, "compare": compare} if compare else made
