"""A reservation rule: only wide requests are protected."""

from dataclasses import dataclass

import numpy as np

from gridsim.policy.protocols import Lanes

__all__ = ["ProtectWide"]


@dataclass
class ProtectWide:
    """The first blocked request of at least *cores* cores holds a promised start; narrower ones hold none."""

    cores: int = 32
    blocking = False

    def lanes(self, queue):
        narrow = queue.cores < self.cores
        return Lanes(lane=narrow.astype(np.int64), capacity=np.array([1, 0], dtype=np.int64))
