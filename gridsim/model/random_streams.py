"""Named random streams: one seed per scenario, and one independent generator per purpose."""

from __future__ import annotations

import zlib

import numpy as np

from gridsim.errors import InputError


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator for a path of *names*; it is the same for the same seed and names on every machine.

    Parameters
    ----------
    seed : int
        Seed of the scenario.
    *names : str or int
        Path of the purpose, such as ``("workload", "arrivals")`` or ``("cluster", 0)``. Streams of different paths are
        independent, so drawing more numbers from one does not change another.

    Examples
    --------
    >>> int(stream(1, "workload").integers(1000)) == int(stream(1, "workload").integers(1000))
    True
    """
    if seed < 0:
        raise InputError(f"is {seed}; expected a whole number from 0", field="seed")
    key = tuple(name if isinstance(name, int) else zlib.crc32(name.encode()) for name in names)
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=key))


def of_replica(seed: int, role: str, number: int) -> np.random.Generator:
    """Return the generator of replication *number*, from 1, of a workload; it is the same for every policy.

    Examples
    --------
    >>> int(of_replica(1, "shake", 1).integers(1000)) == int(stream(1, "shake", 0).integers(1000))
    True
    """
    return stream(seed, role, number - 1)
