"""Conversion of demands to columns of a table and back."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.demand import Demand, Demands, columns_of, demands_of
from tests.oracles.machine.random_machines import draw_jobs, draw_machine
from tests.oracles.machine.translated import workload_of


def texts(demands: Demands) -> dict[str, list[str]]:
    return {name: [str(value) for value in column.tolist()] for name, column in columns_of(demands).items()}


def test_demands_are_the_same_after_they_were_written_and_read() -> None:
    rng = np.random.default_rng(26)
    for _ in range(40):
        demands = workload_of(draw_jobs(rng, draw_machine(rng))).demands
        assert demands is not None
        back = demands_of(texts(demands), demands.cores.tolist())
        assert back is not None
        assert [back[row] for row in range(len(back))] == [demands[row] for row in range(len(demands))]


def test_plain_cores_and_pools_of_cores_are_distinguished() -> None:
    demands = Demands.of([Demand(cores=3, pools={"cores": 2}), Demand(pools={"cores": 2}), Demand(cores=1)])
    back = demands_of(texts(demands), [5, 2, 1])
    assert back is not None
    assert back.plain.tolist() == [3, 0, 1]
    assert back.pools["cores"].tolist() == [2, 2, 0]


def test_a_table_without_tasks_reports_no_demands_and_a_damaged_one_is_refused() -> None:
    assert demands_of({"cores": ["1"]}, [1]) is None
    with pytest.raises(InputError, match=r"field 'each_memory': has a value that is not a whole number"):
        demands_of({"tasks": ["1"], "each_memory": ["much"]}, [0])
