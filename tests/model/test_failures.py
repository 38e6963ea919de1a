"""Failures: traces, models and their random streams, and errors that name the place."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.failures import Failure, FailureModel, Failures, Machines, failures_from, read_trace

NODES = gs.Platform.of_nodes(
    [
        gs.NodeGroup(group="thin", count=3, capacity={"cores": 4}, features=("rack1",)),
        gs.NodeGroup(group="fat", count=1, capacity={"cores": 4}, gpus=2),
    ]
)
(CLUSTER,) = NODES.clusters()
assert CLUSTER.capacity is not None
MACHINES = Machines([CLUSTER.capacity], ["cluster"])
HOUR = 3600.0
TIME = "expected seconds from 0, or a date such as 2026-11-21T07:00"


def _first(model: FailureModel, count: int, seed: int = 1) -> list[Failure]:
    return list(itertools.islice(Failures(models=[model]).failures(MACHINES, seed), count))


def test_rows_with_the_same_times_are_one_failure(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("node,down,up,gpus\nthin-0,10,20,\nthin-1,10,20,\nfat,5.5,,0 1\nthin-2,7,7,\n")
    assert read_trace(trace) == [(["thin-0", "thin-1"], 10, 20), (["fat:0", "fat:1"], 5.5, math.inf)]
    found = list(Failures(read_trace(trace)).failures(MACHINES, 1))
    assert [(it.down, it.parts) for it in found] == [
        (5_500_000, ((3, 0), (3, 1))),
        (10_000_000, ((0, -1), (1, -1))),
    ]


@pytest.mark.parametrize(
    ("text", "what", "line", "field"),
    [
        ("node,down\nthin-0,1\n", "is missing; expected the columns node, down, up", 1, "up"),
        (
            "node,down,up\nthin-0,x,2\n",
            f"is 'x'; {TIME}",
            2,
            "down",
        ),
        (
            "node,down,up\nthin-0,-1,2\n",
            f"is '-1'; {TIME}",
            2,
            "down",
        ),
        ("node,down,up\nthin-0,2026-13-01,2\n", f"is '2026-13-01'; {TIME}", 2, "down"),
        ("node,down,up\nthin-0,5,2\n", "is 2, before down (5)", 2, "up"),
        ("node,down,up\n,5,7\n", "is empty; expected the name of a node", 2, "node"),
        ("node,down,up,gpus\nfat,5,7,a\n", "is 'a'; expected numbers of GPUs", 2, "gpus"),
    ],
)
def test_an_error_of_a_trace_names_line_and_field(tmp_path: Path, text: str, what: str, line: int, field: str) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(text)
    with pytest.raises(InputError) as error:
        read_trace(trace)
    assert (error.value.message, error.value.line, error.value.field) == (what, line, field)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        (["thin-9"], "no node of the machine is named 'thin-9'; it has thin-0, thin-1, thin-2, …"),
        (["fat:2"], "node 'fat' has no GPU 2; it has 2, from 0"),
        (["thin-0:0"], "node 'thin-0' has no GPU 0; it has 0, from 0"),
    ],
)
def test_an_unknown_node_is_an_error(nodes: list[str], what: str) -> None:
    with pytest.raises(InputError, match=what):
        next(Failures([(nodes, 1, 2)]).failures(MACHINES, 1))


def test_nodes_of_several_clusters_are_named_with_their_cluster() -> None:
    grid = Machines([MACHINES.capacities[0], MACHINES.capacities[0]], ["east", "west"])
    assert grid.parts(["west/thin-1", "east/fat:1"]) == {1: [(1, -1)], 0: [(3, 1)]}
    with pytest.raises(InputError, match="several clusters have a node 'thin-1'; expected cluster/node"):
        grid.parts(["thin-1"])


def test_streams_are_those_of_the_seed_and_of_each_node() -> None:
    model = FailureModel(mtbf=100 * HOUR)
    found = _first(model, 50)
    assert found == _first(model, 50)
    assert found != _first(model, 50, seed=2)
    assert [it.down for it in found] == sorted(it.down for it in found)
    # Another model before it does not change the stream of a model of the same number.
    alone = [it for it in found if it.parts == ((2, -1),)]
    for one, other in itertools.pairwise(alone):
        assert one.up < other.down


@pytest.mark.parametrize("time", ["exponential", "weibull"])
@pytest.mark.parametrize("repair", ["exponential", "lognormal", "fixed"])
def test_means_are_those_of_the_model(time: Any, repair: Any) -> None:
    model = FailureModel(mtbf=50 * HOUR, mttr=2 * HOUR, time=time, shape=1.5, repair=repair, sigma=0.5)
    found = [it for it in _first(model, 16_000) if it.parts == ((0, -1),)]
    down = np.array([it.up - it.down for it in found]) / 1e6
    up = np.array([b.down - a.up for a, b in itertools.pairwise(found)]) / 1e6
    for values, mean in ((down, 2 * HOUR), (up, 50 * HOUR)):
        assert abs(values.mean() - mean) <= 3 * values.std() / math.sqrt(len(values)) + 1e-6


def test_groups_fail_together() -> None:
    by_feature = FailureModel(mtbf=HOUR, scope="group", feature=["rack1"])
    assert {it.parts for it in _first(by_feature, 5)} == {((0, -1), (1, -1), (2, -1))}
    named = FailureModel(mtbf=HOUR, scope="group", groups={"pair": ["thin-0", "fat"]})
    assert {it.parts for it in _first(named, 5)} == {((0, -1), (3, -1))}
    gpus = FailureModel(mtbf=HOUR, scope="gpu")
    assert {it.parts for it in _first(gpus, 20)} == {((3, 0),), ((3, 1),)}
    with pytest.raises(InputError, match="no node has the feature 'rack2'"):
        _first(FailureModel(mtbf=HOUR, scope="group", feature=["rack2"]), 1)


def test_a_table_of_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("node,down,up\nthin-0,10,20\n")
    found = failures_from({"file": "t.csv", "repair": "announced", "requeue_delay": "2m", "max_restarts": 1}, tmp_path)
    assert (found.repair, found.requeue_delay, found.max_restarts, len(found.trace)) == ("announced", 120, 1, 1)
    both = failures_from({"mtbf": "2000h", "model": [{"mtbf": "1h", "scope": "gpu", "repair_time": "fixed"}]})
    assert [(it.mtbf, it.mttr, it.scope, it.repair) for it in both.models] == [
        (2000 * HOUR, 4 * HOUR, "node", "exponential"),
        (HOUR, 4 * HOUR, "gpu", "fixed"),
    ]
    assert both.written()["models"][1] == {"mtbf": HOUR, "scope": "gpu", "repair": "fixed"}


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"mtbf": "1h", "file": "t.csv"}, "together with a trace"),
        ({"mttr": "1h"}, "without mtbf"),
        ({"mtbf": 0}, "expected a number above 0"),
        ({"mtbf": "soon"}, "is not a duration"),
        ({"mtbf": "1h", "repair": "maybe"}, "expected one of unknown, announced"),
        ({"mtbf": "1h", "requeue": "first"}, "expected one of original, behind"),
        ({"mtbf": "1h", "max_restarts": -1}, "expected a whole number from 0"),
        ({"mtbf": "1h", "spares": -1}, "expected a whole number from 0 or a list of texts"),
        ({"mtbf": "1h", "requeue_delay": -1}, "expected a number from 0"),
        ({"model": [{"mttr": 5}]}, "is missing in a model"),
        ({"model": [{"mtbf": 5, "scope": "group"}]}, "give groups or feature"),
        ({"model": 3}, "failures.model': is 3; expected a list"),
        ({"model": [3]}, r"failures.model\[0\]': is 3; expected a table"),
        ({"model": [{"mtbf": 5, "scope": "group", "groups": "n-0"}]}, "failures.groups': is 'n-0'"),
        ({"model": [{"mtbf": 5, "scope": "group", "groups": {"r": [3]}}]}, "failures.groups.r"),
        ({"model": [{"mtbf": 5, "scope": "group", "feature": 3}]}, "failures.feature': is 3; expected a list of names"),
        ({"mean": 5}, "mean"),
    ],
)
def test_a_wrong_table_is_an_error(table: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        failures_from(table)


def test_a_trace_repeats_with_its_period() -> None:
    failures = Failures([(["thin-0"], 10, 20), (["fat"], 90, 100)], repeat=100)
    found = itertools.islice(failures.dated({}).failures(MACHINES, 1), 5)
    assert [(it.down // 10**6, it.up // 10**6, it.parts) for it in found] == [
        (10, 20, ((0, -1),)),
        (90, 100, ((3, -1),)),
        (110, 120, ((0, -1),)),
        (190, 200, ((3, -1),)),
        (210, 220, ((0, -1),)),
    ]
    assert failures.mtbf(MACHINES) == (4 * 100 - 20) / 2  # up seconds of a period over its failures
    assert failures.written()["repeat"] == 100


def test_a_repeated_trace_is_simulated_to_the_last_end() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 0], runtime=[25, 12], cores=[4, 4])
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4})])
    options = gs.Run(failures=Failures([(["n"], 30, 35)], repeat=40))
    result = gs.simulate(jobs, platform=machine, policy="fcfs", options=options)
    assert result.jobs["end"].tolist() == [25, 47]
    assert result.failures["down"].tolist() == [30]
    slow = gs.Workload.from_columns(submit=[0], runtime=[36], cores=[4])
    options = gs.Run(failures=Failures([(["n"], 30, 35)], repeat=40, max_restarts=3))
    result = gs.simulate(slow, platform=machine, policy="fcfs", options=options)
    assert result.runs["start"].tolist() == [0, 35, 75, 115]
    assert result.jobs["status"].tolist() == ["failed"]


@pytest.mark.parametrize("up", [101.0, math.inf])
def test_a_failure_must_end_within_the_period(up: float) -> None:
    with pytest.raises(InputError, match=f"is absent until {up:g} s, beyond the period of 100 s"):
        Failures([(["thin-0"], 10, up)], repeat=100).dated({})


@pytest.mark.parametrize("table", [{"repeat": "1d"}, {"repeat": 0.5}, {"file": 7}])
def test_repeat_needs_a_trace(table: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"without a trace|expected the name of a file"):
        failures_from(table)


@pytest.mark.parametrize("period", [-1, math.inf, True, "x"])
def test_a_period_is_a_number(period: Any) -> None:
    with pytest.raises(InputError, match=r"failures\.repeat"):
        Failures([(["thin-0"], 0, 1)], repeat=period)


DATES = {"header": {"UnixStartTime": ["1795244400"], "TimeZoneString": ["Europe/Berlin"]}}  # 2026-11-21T08:00


def test_dates_of_a_trace_are_on_the_clock_of_the_log(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = ["thin-0,2026-11-21T08:00:10,2026-11-21T07:01:00Z", "thin-1,2026-11-21T07:00,2026-11-21T08:00:05"]
    rows += ["thin-2,2026-11-20,2026-11-21", "fat,2026-11-21T08:00:10,2026-11-21T07:01:00Z"]
    trace.write_text("\n".join(["node,down,up", *rows, ""]))
    found = failures_from({"file": str(trace)})
    assert found.dated(DATES).trace == [(["thin-0", "fat"], 10, 60), (["thin-1"], 0, 5)]
    with pytest.raises(InputError, match=r"trace\.csv, field 'date': '2026-11-21T08:00:10' is a date, but"):
        found.dated({})
    trace.write_text("node,down,up\nthin-0,2026-11-21T08:00:10,2026-11-21T08:00:09\n")
    with pytest.raises(InputError, match="field 'up': of node 'thin-0' is 2026-11-21T08:00:09, before down"):
        failures_from({"file": str(trace)}).dated(DATES)
