"""Trackable resources (TRES) of a Slurm site: their names, and amounts or weights of several.

Names are those of slurm.schedmd.com/tres.html, version 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

from gridsim.model.capacity import GPU

CPU, MEMORY, NODE, BILLING = "cpu", "mem", "node", "billing"
JOBS = "jobs"
"""Name for limits on the number of jobs, which is not a TRES."""
GPUS = f"gres/{GPU}"
"""GPUs of any type; those of one type are ``gres/gpu:a100``."""
LICENCE = "license/"
"""Prefix of the name of a licence."""

Weights = tuple[tuple[str, float], ...]
"""Names and the weight per unit: a core, a MiB, a node, a GPU, a licence."""


Amounts = tuple[tuple[str, int], ...]
"""Names and the number of units."""


@dataclass(frozen=True, slots=True)
class TresLimits:
    """Limits of resources for an association or a QOS, in addition to limits of cores with separate fields.

    Attributes
    ----------
    group, user, account : tuple of (str, int)
        ``GrpTRES``, ``MaxTRESPU`` and ``MaxTRESPA``: allocated at one time in total, per user, and per account.
    job, node, least : tuple of (str, int)
        ``MaxTRES``, ``MaxTRESPerNode`` and ``MinTRES`` of one job.
    group_minutes, group_run_minutes, job_minutes : tuple of (str, int)
        ``GrpTRESMins``, ``GrpTRESRunMins`` and ``MaxTRESMins``, unit-minutes.

    Examples
    --------
    >>> sorted(TresLimits(group=(("mem", 100),), least=(("cpu", 2),)).names())
    ['cpu', 'mem']
    """

    group: Amounts = ()
    user: Amounts = ()
    account: Amounts = ()
    job: Amounts = ()
    node: Amounts = ()
    least: Amounts = ()
    group_minutes: Amounts = ()
    group_run_minutes: Amounts = ()
    job_minutes: Amounts = ()

    def names(self) -> Iterator[str]:
        """Return the resources that any of them limits."""
        return (name for each in fields(self) for name, _ in getattr(self, each.name))


NO_LIMITS = TresLimits()


def gpu_type(name: str) -> str:
    """Return the type of the GPUs with this name; empty for GPUs of any type, and for other resources.

    Examples
    --------
    >>> gpu_type("gres/gpu:a100"), gpu_type("gres/gpu"), gpu_type("cpu")
    ('a100', '', '')
    """
    return name.removeprefix(f"{GPUS}:") if name.startswith(f"{GPUS}:") else ""


def licence(name: str) -> str:
    """Return the licence with this name; empty for other resources.

    Examples
    --------
    >>> licence("license/matlab"), licence("mem")
    ('matlab', '')
    """
    return name.removeprefix(LICENCE) if name.startswith(LICENCE) else ""


def licences_requested(text: str) -> dict[str, int]:
    """Return the number of requested licences by name.

    "The license name can be followed by a colon or an equals sign and a count; the default is one" (sbatch(1),
    ``--licenses``). Of alternatives (``a|b``), the first is used.

    Examples
    --------
    >>> licences_requested("matlab:2,ansys@server=4,idl")
    {'matlab': 2, 'ansys@server': 4, 'idl': 1}
    """
    found: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in re.split("[,;]", text.partition("|")[0]))):
        name, _, count = re.sub("[=:](?=[0-9]+$)", " ", word).partition(" ")
        found[name] = found.get(name, 0) + int(count or 1)
    return found
