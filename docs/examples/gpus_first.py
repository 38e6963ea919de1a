"""Jobs that ask for the largest part of all GPUs first; of those without, the smallest part of the memory."""

from dataclasses import dataclass


@dataclass
class GpusFirst:
    """Largest part of the GPUs first, then the smallest part of the memory."""

    def rank(self, queue, now):
        gpus = queue.demand("gpu") / queue.totals["gpu"]
        memory = queue.demand("memory") / queue.totals["memory"]
        return memory - 2 * gpus
