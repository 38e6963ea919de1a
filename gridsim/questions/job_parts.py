"""Parts of a workload that a change of the machine may concern: by partition, by requested resource, by owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.site.tres import licences_asked
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN, Workload

__all__ = ["GPU_JOBS", "JobPart", "job_parts"]

GPU_JOBS = "GPU jobs"
"""Name of the jobs that request GPUs of any type."""


class JobPart(NamedTuple):
    """Jobs with something in common.

    Attributes
    ----------
    kind : str
        ``partition``, ``gpu``, ``gpu type``, ``pool``, ``qos``, ``account`` or ``user``.
    value : str
        Which: the name of the partition, the type of GPU, the licence …
    name : str
        For tables: "partition gpu", "GPU jobs".
    rows : (n,) bool
        The jobs.
    """

    kind: str
    value: str
    name: str
    rows: npt.NDArray[np.bool_]

    def __str__(self) -> str:
        """For sentences: "jobs of partition gpu", "GPU jobs"."""
        if self.kind in ("gpu", "gpu type"):
            return self.name
        return f"jobs that request {self.name}" if self.kind == "pool" else f"jobs of {self.name}"


def job_parts(workload: Workload, owners: Iterable[tuple[str, str]] = ()) -> list[JobPart]:
    """Parts of the jobs by partition, where there are several, by GPUs and licences that they request, and by *owners*.

    Parts without a job are left out. A job that names several partitions is in the part of each.

    Parameters
    ----------
    owners : iterable of (str, str)
        Label (``qos``, ``account``, ``user``) and name of owners whose jobs are a part too.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=1, labels={"gpus": [0, 2], "qos": [0, 1]})
    >>> [(str(each), each.rows.tolist()) for each in job_parts(log, [("qos", "1")])]
    [('GPU jobs', [False, True]), ('jobs of QOS 1', [False, True])]
    """
    if workload.tasks is not None:
        return []
    found = [*_partitions(workload), *_gpus(workload), *_pools(workload)]
    for label, name in owners:
        if any((each.kind, each.value) == (label, name) for each in found):
            continue
        texts, of = _texts(workload, label)
        rows = np.array([text == name for text in texts], dtype=np.bool_)[of]
        found.append(JobPart(label, name, f"{'QOS' if label == 'qos' else label} {name}", rows))
    return [each for each in found if each.rows.any()]


def _texts(workload: Workload, label: str) -> tuple[list[str], IntArray]:
    """Texts of the different values of a label, empty for unknown ones, and which of them each job has."""
    column = workload.labels.get(label)
    if column is None:
        return [""], np.zeros(len(workload), dtype=np.int64)
    codes, of = np.unique(column, return_inverse=True)
    names = workload.names.get(label, ())
    texts = ["" if it == UNKNOWN else names[it] if 0 <= it < len(names) else str(it) for it in codes.tolist()]
    return texts, of.reshape(-1).astype(np.int64)


def _partitions(workload: Workload) -> Iterator[JobPart]:
    texts, of = _texts(workload, "partition")
    names = list(dict.fromkeys(name for text in texts for name in text.split(",") if name))
    for name in names if len(names) > 1 else ():
        rows = np.array([name in text.split(",") for text in texts], dtype=np.bool_)[of]
        yield JobPart("partition", name, f"partition {name}", rows)


def _gpus(workload: Workload) -> Iterator[JobPart]:
    """GPU jobs, and by type where jobs name several types."""
    demands = workload.demands
    if "gpus" in workload.labels:
        some = workload.labels["gpus"] > 0
        texts, of = _texts(workload, "gpu_type")
        sets: Sequence[tuple[str, ...]] = [(text,) if text else () for text in texts]
    elif demands is not None:
        some, of, sets = demands.gpu > 0, demands.gpu_kinds.of, demands.gpu_kinds.sets
    else:
        return
    yield JobPart("gpu", "", GPU_JOBS, some)
    types = list(dict.fromkeys(name for number in np.unique(of[some]).tolist() for name in sets[number]))
    for name in types if len(types) > 1 else ():
        rows = some & np.array([name in each for each in sets], dtype=np.bool_)[of]
        yield JobPart("gpu type", name, f"{GPU_JOBS} ({name})", rows)


def _pools(workload: Workload) -> Iterator[JobPart]:
    """Jobs by the licences that they request, or by units of other pools."""
    texts, of = _texts(workload, "licenses")
    asked = [licences_asked(text) for text in texts]
    names = dict.fromkeys(name for each in asked for name in each)
    for name in names:
        rows = np.array([each.get(name, 0) > 0 for each in asked], dtype=np.bool_)[of]
        yield JobPart("pool", name, f"licence {name}", rows)
    pools = {} if workload.demands is None else workload.demands.pools
    for name, amounts in pools.items():
        if name not in names:
            yield JobPart("pool", name, f"pool {name}", amounts > 0)
