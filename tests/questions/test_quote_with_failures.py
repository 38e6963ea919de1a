"""Quotes while nodes are absent count only what is known of their return, and report it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.model.failures import Failures
from gridsim.model.windows import Window
from gridsim.options import Run

MACHINE = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=3, capacity={"cores": 4})])
AT = 300.0
ENDLESS = math.inf


def log(*more: float) -> gs.Workload:
    """Return twenty jobs that run as long as estimated, and one at `AT` of so many nodes and seconds."""
    rng = np.random.default_rng(5)
    tasks, runtime = rng.integers(1, 3, 20).tolist(), rng.integers(20, 90, 20).tolist()
    demands = [gs.Demand(tasks=count, each={"cores": 4}) for count in tasks]
    submit = [15.0 * at for at in range(20)]
    if more:
        nodes, seconds = more
        submit, runtime = [*submit, AT], [*runtime, seconds]
        demands.append(gs.Demand(tasks=int(nodes), each={"cores": 4}))
    return gs.Workload.from_columns(submit=submit, runtime=runtime, demands=gs.Demands.of(demands))


def quoted(policy: str, nodes: int, failures: Failures, seconds: float = 60.0) -> Any:
    how: dict[str, Any] = {"policies": [policy], "platform": MACHINE, "options": Run(failures=failures)}
    return gs.quote(log(), at=AT, demand=gs.Demand(tasks=nodes, each={"cores": 4}), walltime=seconds, **how)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("repair", ["unknown", "announced"])
@pytest.mark.parametrize("policy", ["easy", "fcfs", "first-fit", "conservative"])
def test_the_start_is_that_of_a_run_in_which_nothing_unknown_happens(policy: str, repair: Any, nodes: int) -> None:
    # n-0 failed before, n-2 is down now until 700 s, and n-1 fails later; two windows are known, one is not yet.
    windows = [
        Window(["n-1"], 900, 950, announced=100),
        Window(["n-1"], 1100, 1300, announced=100, deleted=400),
        Window(["n-1"], 500, 800, announced=301),
    ]
    trace: list[Any] = [(["n-0"], 20, 90), (["n-2"], 250, 700), (["n-1"], 310, 5000)]
    found = quoted(policy, nodes, Failures(trace, windows=windows, repair=repair))
    known = [trace[0], (["n-2"], 250, 700 if repair == "announced" else ENDLESS)]
    windows = [windows[0], Window(["n-1"], 1100, 1300, announced=100)]
    options = Run(failures=Failures(known, windows=windows, repair=repair))
    expected = gs.simulate(log(nodes, 60), platform=MACHINE, policy=policy, options=options).record.first_start_us[20]
    assert found[policy].start == expected / 1e6 > AT
    back = "the last returns in 6 min 40 s" if repair == "announced" else "repair unknown"
    assert f"nodes: 1 of 3 nodes is absent; {back}" in list(gs.report.quotation.state_lines(found))
    assert found.absent[:2] == (1, 3)
    assert found[policy].busy == (4 if policy == "fcfs" else 8)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_job_that_fits_at_no_known_time_is_reported(policy: str) -> None:
    down: list[Any] = [(["n-2"], 250, 700), (["n-0"], 260, 900)]
    found = quoted(policy, 2, Failures(down))
    assert math.isnan(found[policy].start)
    assert math.isnan(found[policy].guaranteed)
    text = f"Under {policy} the job would start at no known time: 2 of 3 nodes are absent; repair unknown."
    assert text in str(found).splitlines()
    assert f"There is no forecast under {policy}: field 'failures'" in str(found)
    assert "cannot guarantee" not in str(found)
    later = quoted(policy, 2, Failures(down, repair="announced"))
    assert later[policy].start >= 700
    assert "no known time" not in str(later)


def test_nothing_is_said_when_all_nodes_are_present() -> None:
    found = quoted("easy", 1, Failures([(["n-2"], 20, 90)]))
    assert found.absent is None
    assert "absent" not in str(found)


def test_drawn_failures_are_those_of_the_run_up_to_the_moment() -> None:
    from gridsim.model.failures import FailureModel

    drawn = Failures(models=[FailureModel(mtbf=200, mttr=50)], repair="announced")
    options = Run(failures=drawn, seed=4)
    record = gs.simulate(log(), platform=MACHINE, policy="easy", options=options).record.interruptions
    assert record is not None
    down = [(record.names[node], a, b) for node, a, b in zip(record.node, record.down_us, record.up_us, strict=True)]
    trace: list[Any] = [([name], a / 1e6, b / 1e6) for name, a, b in down if a <= AT * 1e6]
    how: dict[str, Any] = {"at": AT, "cores": 4, "walltime": 60, "policies": ["easy"], "platform": MACHINE}
    given = gs.quote(log(), **how, options=Run(failures=Failures(trace, repair="announced")))
    assert gs.quote(log(), **how, options=options).to_dict() == given.to_dict()


def test_the_command_reports_absent_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("node,down,up\nn-0,20000,90000\nn-1,30000,90000\n")
    words = ["quote", "--jobs", "60", "--load", "0.8", "--platform", "8x4", "--at", "40000", "--walltime", "1h"]
    words += ["--failures", str(trace)]
    assert main([*words, "--cores", "28", "-p", "easy"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"failures: 2 failures of {trace}; repairs unknown" in text
    assert "nodes: 2 of 8 nodes are absent; repair unknown" in text
    assert "Under easy the job would start at no known time" in text
    assert main([*words, "--cores", "4", "-p", "easy", "--json", "--repair", "announced"]) == 0
    assert json.loads(capsys.readouterr().out)["absent"] == [2, 8, 90000.0]
