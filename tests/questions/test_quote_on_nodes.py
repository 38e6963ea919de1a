"""A quote for a job that requests more than cores equals its start in a run, under each policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError

MACHINE = gs.Platform.of_nodes(
    [
        gs.NodeGroup(group="thin", count=2, capacity={"cores": 8, "memory": 4096}),
        gs.NodeGroup(group="fat", capacity={"cores": 8, "memory": 16384}, gpus=2, features=("big",)),
    ],
    {"idl": 1},
)

WANTED = [
    gs.Demand(tasks=1, each={"cores": 2, "memory": 1024}, gpu=1000),
    gs.Demand(tasks=1, each={"cores": 1, "memory": 1024}, gpu=500),
    gs.Demand(tasks=3, each={"cores": 4, "memory": 2048}, max_nodes=2),
    gs.Demand(tasks=1, each={"cores": 1, "memory": 8192}, pools={"idl": 1}, features=("big",), exclusive=True),
    gs.Demand(cores=9),
]


def log() -> gs.Workload:
    """Forty jobs of three kinds that arrive faster than they can run."""
    rng = np.random.default_rng(3)
    kinds = [WANTED[0], WANTED[2], gs.Demand(tasks=1, each={"cores": 6, "memory": 3000})]
    return gs.Workload.from_columns(
        submit=np.arange(40) * 20.0,
        runtime=rng.integers(20, 200, 40).astype(float),
        estimate=np.full(40, 250.0),
        demands=gs.Demands.of([kinds[each] for each in rng.integers(0, 3, 40)]),
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs"])
@pytest.mark.parametrize("demand", WANTED)
def test_the_start_to_expect_is_that_of_a_run_in_which_all_take_as_long_as_they_may(
    demand: gs.Demand, policy: str
) -> None:
    jobs = log()
    exact = gs.Workload.from_columns(
        submit=np.append(jobs.submit / 1e6, 800.0),
        runtime=np.append(jobs.estimate / 1e6, 60.0),
        demands=gs.Demands.of([*(jobs.demands[row] for row in range(40)), demand]),  # type: ignore[index]
    )
    asked = gs.Workload.from_columns(
        submit=exact.submit[:40] / 1e6,
        runtime=exact.runtime[:40] / 1e6,
        demands=jobs.demands,
    )
    quoted = gs.quote(asked, at=800, demand=demand, walltime=60, policies=[policy], platform=MACHINE)
    result = gs.simulate(exact, platform=MACHINE, policy=policy)
    assert quoted[policy].start == result.jobs["start"][-1]
    assert quoted.demand == demand


def test_a_job_of_several_tasks_could_have_half_of_them() -> None:
    quoted = gs.quote(log(), at=800, demand=WANTED[2], walltime=60, policies=["easy"], platform=MACHINE)
    assert [(one.cores, one.limit) for one in quoted.forecasts["easy"].shapes] == [(4, 60.0), (12, 30.0), (4, 30.0)]


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        (gs.Demand(tasks=1, each={"cores": 1, "memory": 20000}), "no node is large enough for one of its tasks"),
        (gs.Demand(tasks=4, each={"cores": 6, "memory": 1}), "all nodes together"),
        (gs.Demand(tasks=2, each={"cores": 1}, features=("small",)), "features"),
        (gs.Demand(tasks=1, each={"cores": 1}, gpu=1000, gpu_kinds=("a100",)), "GPUs of the requested type"),
        (gs.Demand(cores=1, pools={"idl": 2}), "more of pool 'idl' than the machine has"),
        (
            gs.Demand(tasks=2, each={"cores": 1}, min_nodes=2, features=("big",)),
            "the requested number of nodes is too small",
        ),
    ],
)
def test_jobs_that_the_machine_can_never_hold_are_reported(demand: gs.Demand, told: str) -> None:
    with pytest.raises(InputError, match=told):
        gs.quote(log(), at=800, demand=demand, walltime=60, policies=["easy"], platform=MACHINE)


def test_a_demand_replaces_cores_and_needs_nodes() -> None:
    with pytest.raises(InputError, match="either cores or a demand"):
        gs.quote(log(), at=800, walltime=60, policies=["easy"], platform=MACHINE)
    with pytest.raises(InputError, match="one pool"):
        gs.quote(log(), at=800, demand=WANTED[0], walltime=60, policies=["easy"], platform=gs.Platform.single(24))


def test_a_job_is_selected_as_a_user_types_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site.toml").write_text(
        '[platform]\ncluster = "c"\n[[platform.nodes]]\ngroup = "fat"\ncount = 2\n'
        'capacity = {cores = 8, memory = 16384}\ngpus = 2\nfeatures = ["big"]\n'
    )
    where = ["quote", "--jobs", "50", "--platform", str(tmp_path / "site.toml"), "--policy", "easy"]
    words = [*where, "--cores", "8", "--walltime", "1h", "--tasks", "2", "--task-memory", "2G", "--task-gpus", "0.5"]
    code = main([*words, "--feature", "big"])
    out = capsys.readouterr()
    assert code == 0, out.err
    assert "job: 8 cores in 2 tasks (each 4 cores, 2 GiB of memory, 0.5 GPUs), nodes with big for 1 h" in " ".join(
        out.out.split()
    )
    assert main([*where, "--cores", "8", "--walltime", "1h", "--nodes", "2"]) == 0
    assert "job: 8 cores in 2 tasks (each 4 cores) on 2 nodes for 1 h" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--nodes", "1"]) == 0
    assert "0.5 GPUs) on 1 node for 1 h" in " ".join(capsys.readouterr().out.split())
    for more, told in (
        (["--nodes", "3", "--tasks", "2"], "3 nodes; expected 1 to the number of tasks, 2"),
        (["--nodes", "3"], "3 tasks cannot share 8 cores evenly"),
        (["--tasks", "3"], "3 tasks cannot share 8 cores evenly"),
        (["--task-memory", "2Q"], "'2Q' is not an amount of memory"),
        (["--pool", "idl"], "'idl' has no amount"),
    ):
        assert main([*where, "--cores", "8", "--walltime", "1h", *more]) == 2
        assert told in capsys.readouterr().err
