"""Trackable resources (TRES) of a Slurm site: their names, and amounts or weights of several.

Names are those of slurm.schedmd.com/tres.html, version 22.05.
"""

from __future__ import annotations

from gridsim.model.capacity import GPU

__all__ = ["BILLING", "CPU", "GPUS", "LICENCE", "MEMORY", "NODE", "Weights", "gpu_type", "licence"]

CPU, MEMORY, NODE, BILLING = "cpu", "mem", "node", "billing"
GPUS = f"gres/{GPU}"
"""GPUs of any type; those of one are ``gres/gpu:a100``."""
LICENCE = "license/"
"""Before the name of a licence."""

Weights = tuple[tuple[str, float], ...]
"""Names and a weight of each unit: a core, a MiB, a node, a GPU, a licence."""


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
