"""The machine of a workload: what the caller gives, else what its source states. Said in one place for everybody."""

from __future__ import annotations

from gridsim.errors import InputError
from gridsim.model.exact import MOST_CORES, shown
from gridsim.model.workload import Workload

__all__ = ["check_cores", "machine_cores"]


def machine_cores(workload: Workload, cores: int | None = None) -> tuple[int, str]:
    """Cores of the machine and where the number comes from: ``given``, or the source's own word for it.

    Raises
    ------
    InputError
        When neither the caller nor the source says how large the machine is.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[1], cores=[1], provenance={"cores_from": "MaxProcs"})
    >>> machine_cores(log, 4)
    (4, 'given')
    """
    check_cores(cores)
    if cores is not None:
        return cores, "given"
    provenance = workload.provenance
    if workload.cores_stated is None:
        header = ": no MaxProcs and no MaxNodes in the header" if provenance.get("format") == "swf" else ""
        raise InputError(
            f"does not state the size of its machine{header}; give --cores, or a platform",
            path=provenance.get("source", "the workload"),
            field="MaxProcs" if header else "cores",
        )
    return workload.cores_stated, provenance.get("cores_from") or "the workload"


def check_cores(cores: int | None) -> None:
    """Refuse a machine without cores; None is a size that nobody gave.

    Raises
    ------
    InputError
        When there are fewer than one, or more than can be.
    """
    if cores is not None and cores < 1:
        raise InputError(f"the machine has {cores} cores; expected at least 1 (--cores)", field="cores")
    if cores is not None and cores > MOST_CORES:
        message = f"the machine has {shown(cores)} cores; expected at most {MOST_CORES:,} (--cores)"
        raise InputError(message, field="cores")
