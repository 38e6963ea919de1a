"""With users who react, waits do not grow with the length of the log, on an archive log and on a generated one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsim.scenario import transformed
from gridsim.simulation import simulate
from gridsim.testing import assert_valid
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin


@pytest.mark.parametrize("name", ["generated", pytest.param("SDSC-SP2-1998-4.2-cln", marks=pytest.mark.others)])
def test_waits_at_one_and_a_half_times_the_load_stay_bounded_where_users_react(
    others: Callable[[str], Path], name: str
) -> None:
    if name == "generated":
        drawn = Lublin(jobs=10_000, cores=128, load=0.8, users=100, f=4.0).generate(1)
        log = replace(drawn, logged={"wait": simulate(drawn, policy="easy").record.wait})
    else:
        log = read_workload(others(f"swf/{name}.swf.gz")).select(slice(0, 10_000))
    fixed = simulate(transformed(log, ["expand?load=1.5"]), policy="easy").record
    reacting = simulate(transformed(log, ["react", "expand?load=1.5"]), policy="easy").record
    assert_valid(reacting)
    halves = (slice(0, 5_000), slice(5_000, None))
    grown = [float(np.mean(record.wait[halves[1]]) / np.mean(record.wait[halves[0]])) for record in (fixed, reacting)]
    assert fixed.wait.mean() > 5 * reacting.wait.mean()
    assert grown[0] > 2.2 > 2 > grown[1]
