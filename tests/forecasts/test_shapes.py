"""Other shapes of a job in the same futures, and when the queue is empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.forecasts.answers import forecaster_of
from gridsim.forecasts.forecaster import PARTS, shapes_of
from gridsim.forecasts.model import Options
from gridsim.model.failures import Failures
from gridsim.model.platform_file import read_platform
from gridsim.model.windows import Window
from gridsim.options import Run

DAY = 86_400


def small_queue() -> gs.Workload:
    """One job holds half of the machine until 1000 s; three jobs wait at 10 s."""
    return gs.Workload.from_columns(
        submit=[0, 1, 2, 3],
        runtime=[1000, 50, 50, 400],
        estimate=[1000, 600, 600, 500],
        cores=[4, 8, 8, 8],
        labels={"user": [1, 2, 3, 4]},
        cores_stated=8,
    )


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_smaller_job_starts_earlier_in_all_futures(engine: str) -> None:
    options = Options(futures=19, horizon=2 * DAY, arrivals=False)
    found = forecaster_of(small_queue(), "easy", None, Run(engine=engine), options)  # type: ignore[arg-type]
    state = found.state(10)
    assert state.waiting.tolist() == [1, 2, 3]
    narrow, short, same = found.shapes(state, 2, [(4, 500), (8, 100), (4, 2000)])
    assert (narrow.earlier, narrow.median, narrow.clearly) == (19, 0.0, True)
    assert (short.earlier, short.clearly) == (0, False)
    assert same.earlier == 0
    present, at_all = found.until_empty(state)
    requested = found.runs(state).by_requested_walltimes([2])
    assert (present <= requested[0]).all()
    assert np.array_equal(present, at_all)


def test_the_queue_is_empty_later_with_arrivals() -> None:
    rng = np.random.default_rng(3)
    n = 900
    run = rng.integers(100, 12_000, n)
    columns = {"submit": np.sort(rng.integers(0, 60 * DAY, n)), "runtime": run, "cores": rng.integers(1, 9, n)}
    log = gs.Workload.from_columns(**columns, labels={"user": rng.integers(0, 5, n)}, cores_stated=8)
    found = forecaster_of(log, "easy", None, Run(), Options(futures=19, horizon=2 * DAY))
    at = next(int(t) for t in log.submit[500:] // 10**6 if len(found.state(int(t)).waiting))
    present, at_all = found.until_empty(found.state(at))
    assert (at_all >= present).all()
    assert (at_all > present).any()


@pytest.mark.parametrize("text", ["cores", "cores=0", "nodes=4", "cores=-1"])
def test_another_word_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="expected cores=N or walltime=D"):
        shapes_of(8, 3600.0, [text])


def test_every_shape_is_a_part_of_cores_and_limit() -> None:
    found = shapes_of(8, 3600.0, [], PARTS)
    assert len(found) == 15
    assert (4, 1800.0) in found
    assert (8, 3600.0) not in found


def test_a_maintenance_of_the_logs_clock_delays_the_jobs_that_reach_into_it() -> None:
    """The window begins 100 s after the moment, and the waiting jobs have limits above 100 s."""
    window = Window(["ALL"], 110, 5000, announced=0)
    options = Run(failures=Failures(windows=[window]))
    how: dict[str, Any] = {"at": 10, "futures": 19, "arrivals": False, "calibrate": False, "horizon": 2 * DAY}
    platform = read_platform("8x1")
    free = gs.forecast(small_queue(), platform=platform, **how)
    later = gs.forecast(small_queue(), platform=platform, options=options, **how)
    assert later.jobs[0].median >= 4990 > free.jobs[0].median
    assert len(later.jobs) == len(free.jobs) == 3


def test_a_maintenance_of_a_pool_of_cores_is_that_of_one_node_for_each_core() -> None:
    options = Run(failures=Failures(windows=[Window(["ALL"], 110, 5000, announced=0)]))
    how: dict[str, Any] = {"at": 10, "futures": 19, "arrivals": False, "calibrate": False, "horizon": 2 * DAY}
    pool = gs.forecast(small_queue(), options=options, **how)
    nodes = gs.forecast(small_queue(), platform=read_platform("8x1"), options=options, **how)
    assert np.array_equal(pool.samples, nodes.samples)
    assert pool.samples.min() >= 4990
