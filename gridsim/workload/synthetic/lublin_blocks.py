"""The model of Lublin and Feitelson, block by block: the same jobs as when they are made at once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.streams import stream
from gridsim.model.workload import Workload
from gridsim.workload.synthetic.lublin import FACTOR, Lublin, log_runtimes, overestimated, sizes, zipf_users
from gridsim.workload.synthetic.lublin_law import DailyClock, cycle

__all__ = ["LublinBlocks"]

_BLOCK = 1 << 16


class LublinBlocks:
    """Jobs of a model that are drawn as they are asked for, any number of them, in the memory of a block.

    Parameters
    ----------
    model : Lublin
        With estimates that are multiples of the runtimes (modal ones are dealt to all jobs at once), a load in
        expectation, and one class of jobs.
    seed : int
        Of the random streams.
    block : int
        Jobs that are drawn at once, which changes none of them.

    Raises
    ------
    InputError
        When the model has to see all jobs at once.
    """

    def __init__(self, model: Lublin, seed: int = 1, *, block: int = _BLOCK) -> None:
        for field, bad, cure in (
            ("estimates", model.estimates_drawn == "modal", "modal estimates are dealt to all; say multiples"),
            ("realised", model.realised, "a load is reached in the sample when all are drawn; leave it out"),
            ("kind", len(model.classes()) > 1, "the jobs of two classes are sorted into each other; say all"),
        ):
            if bad:
                raise InputError(f"needs all jobs at once, and they are drawn block by block: {cure}", field=field)
        self._model, self._seed, self._block = model, seed, block
        natural = model.natural_load()
        wanted = natural if model.load is None else model.load
        self._gaps = natural / wanted
        self.jobs, self.cores_stated = model.jobs, model.cores
        f = FACTOR if model.f is None else model.f
        self.provenance: Mapping[str, Any] = {
            "source": "lublin",
            "parameters": {**asdict(model), "f": f, "estimates": "multiples"},
            "seed": seed,
            "natural_load": natural,
            "expected_load": wanted,
            "gap_factor": self._gaps,
        }

    def __iter__(self) -> Iterator[Workload]:
        model, (job_class,) = self._model, self._model.classes()
        clock = DailyClock(cycle(job_class), model.start_bucket)

        @functools.cache
        def drawn(*names: str) -> np.random.Generator:
            return stream(self._seed, "workload", *names)

        def of_runtimes(role: str) -> np.random.Generator:
            return drawn("runtimes", job_class.name, role)

        f, reached = self.provenance["parameters"]["f"], 0.0
        for first in range(0, self.jobs, self._block):
            count = min(self._block, self.jobs - first)
            gaps = np.exp(job_class.log_gap.draw(count, drawn("arrivals", job_class.name)))
            points = np.cumsum(np.concatenate([[reached], gaps]))[1:]
            reached = float(points[-1])
            size = sizes(job_class, model.cores, *drawn("sizes", job_class.name).random((count, 3)).T)
            runtime = np.maximum(np.floor(np.exp(log_runtimes(job_class, size, of_runtimes))), 1.0)
            users = {} if model.users is None else {"user": zipf_users(count, model.users, drawn("users"))}
            yield Workload.from_columns(
                submit=clock.time(points * self._gaps),
                runtime=runtime,
                cores=size,
                estimate=overestimated(runtime, drawn("estimates"), f=f, step=model.estimate_step),
                job=np.arange(first + 1, first + count + 1),
                labels=users,
                cores_stated=model.cores,
                provenance=self.provenance,
            )
