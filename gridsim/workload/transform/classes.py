"""Priority classes of jobs by their users, accounts, partitions or QOS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from gridsim.errors import InputError, require_known
from gridsim.model.workload import UNKNOWN, Workload, recorded

__all__ = ["Classes"]


@dataclass(frozen=True)
class Classes:
    """Jobs get the priority classes of their users, accounts, partitions or QOS: ``classes?by=qos&urgent=2&low=-1``.

    Parameters
    ----------
    by : {"user", "account", "partition", "qos"}
        Label whose names have classes.
    levels : mapping of str to int
        Class of each name, higher classes first; in a specification each name is a parameter. All other jobs are in
        class 0.

    Notes
    -----
    Higher classes precede lower ones in the queue, and can preempt them if the policy has ``preempt``. Users without
    names have their numbers.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, labels={"user": [7, 8]})
    >>> Classes(by="user", levels={"8": 2}).apply(jobs, np.random.default_rng(1)).labels["priority"]
    array([0, 2])
    """

    by: Literal["user", "account", "partition", "qos"]
    levels: Mapping[str, int] = field(default_factory=dict)

    other_keys: ClassVar[str] = "levels"

    def __post_init__(self) -> None:
        if not self.levels:
            raise InputError(f"gives no class; expected for example classes?by={self.by}&urgent=2", field="classes")
        for name, level in self.levels.items():
            if type(level) is not int or abs(level) > 2**31:
                raise InputError(f"is {level!r}; expected a whole number, the priority class", field=name)

    def apply(self, workload: Workload, rng: np.random.Generator) -> Workload:
        """Return the *workload* with the label ``priority``."""
        column, names = workload.labels.get(self.by), workload.names.get(self.by, ())
        if column is None:
            raise InputError(f"is '{self.by}', which the jobs do not have", field="by")
        present = np.unique(column[column != UNKNOWN]).tolist()
        number = {(names[value] if value < len(names) else "") or str(value): value for value in present}
        number |= {name: value for value, name in enumerate(names) if name and name not in number}
        priority = np.zeros(len(workload), dtype=np.int64)
        for name, level in self.levels.items():
            require_known(self.by, number, name)
            priority[column == number[name]] = level
        return recorded(replace(workload, labels={**workload.labels, "priority": priority}), self)
