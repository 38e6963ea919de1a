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
"""For limits on the number of jobs: no TRES."""
GPUS = f"gres/{GPU}"
"""GPUs of any type; those of one are ``gres/gpu:a100``."""
LICENCE = "license/"
"""Before the name of a licence."""

Weights = tuple[tuple[str, float], ...]
"""Names and a weight of each unit: a core, a MiB, a node, a GPU, a licence."""


Amounts = tuple[tuple[str, int], ...]
"""Names and how many units of each."""


@dataclass(frozen=True, slots=True)
class TresLimits:
    """Limits of resources that an association or a QOS sets, beside those of cores that have fields of their own.

    Attributes
    ----------
    group, user, account : tuple of (str, int)
        ``GrpTRES``, ``MaxTRESPU`` and ``MaxTRESPA``: held at once by all, by each user, by each account.
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
        """Resources that any of them limits."""
        return (name for each in fields(self) for name, _ in getattr(self, each.name))


NO_LIMITS = TresLimits()


def gpu_type(name: str) -> str:
    """The type of the GPUs that a name stands for; empty for GPUs of any, and for all else.

    Examples
    --------
    >>> gpu_type("gres/gpu:a100"), gpu_type("gres/gpu"), gpu_type("cpu")
    ('a100', '', '')
    """
    return name.removeprefix(f"{GPUS}:") if name.startswith(f"{GPUS}:") else ""


def licence(name: str) -> str:
    """The licence that a name stands for; empty for all else.

    Examples
    --------
    >>> licence("license/matlab"), licence("mem")
    ('matlab', '')
    """
    return name.removeprefix(LICENCE) if name.startswith(LICENCE) else ""


def licences_asked(text: str) -> dict[str, int]:
    """How many of each licence a job asks for (sbatch(1), ``--licenses``): "the license name can be followed by a colon
    or an equals sign and a count; the default is one".

    Of alternatives (``a|b``) the first counts.

    Examples
    --------
    >>> licences_asked("matlab:2,ansys@server=4,idl")
    {'matlab': 2, 'ansys@server': 4, 'idl': 1}
    """
    found: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in re.split("[,;]", text.partition("|")[0]))):
        name, _, count = re.sub("[=:](?=[0-9]+$)", " ", word).partition(" ")
        found[name] = found.get(name, 0) + int(count or 1)
    return found
