"""Nodes, GPUs and licences from submit lines, if no column of the log has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.workload import Workload
from gridsim.workload.formats.sacct.submit_lines import TELLING, submitted
from gridsim.workload.read import read_workload
from tests.workload.formats.test_sacct_job_labels import job, label, read

WORDS = ("constraint", "nodelist", "exclude", "licenses", "gpu_type")


def words(workload: Workload, number: int) -> dict[str, str]:
    """Return label texts of a job."""
    found = {}
    for name in WORDS:
        code = label(workload, name).get(number, -1)
        if code >= 0:
            found[name] = workload.names[name][code]
    return found


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"sbatch --constraint=[rack1*2&rack2*4] x", {"constraint": b"[rack1*2&rack2*4]"}),
        (b'sbatch -C "[a|b]" -w n[1-3,7] x', {"constraint": b"[a|b]", "nodelist": b"n[1-3,7]"}),
        (b"srun -xn1,n2 --nodelist n3 hostname", {"exclude": b"n1,n2", "nodelist": b"n3"}),
        (b"sbatch -L matlab:2,ansys x", {"licenses": b"matlab:2,ansys"}),
        (b"sbatch --licenses=matlab@db:2 x", {"licenses": b"matlab@db:2"}),
        (b"sbatch --gres=gpu:2 x", {"node_gpus": 2}),
        (b"sbatch --gres=tmp:10G,gpu:a100:2 x", {"node_gpus": 2, "gpu_type": b"a100"}),
        (b"sbatch --gres=gres/gpu:a100:1,gpu:v100:3 x", {"node_gpus": 4, "gpu_type": b"a100"}),
        (b"sbatch --gres=gpu x", {"node_gpus": 1}),
        (b"sbatch --gres=tmp:10G x", {}),
        (b"sbatch --gpus=8 x", {"all_gpus": 8}),
        (b"sbatch -G volta:3,kepler:1 x", {"all_gpus": 4, "gpu_type": b"volta"}),
        (b"sbatch --gpus-per-node=v100:4 x", {"node_gpus": 4, "gpu_type": b"v100"}),
        (b"sbatch --gpus-per-task 1 x", {"task_gpus": 1}),
        (b"sbatch --exclusive --nodelist=/home/ann/hosts x", {"alone": 1}),
        (b"sbatch --gpus=many x", {"all_gpus": 1, "gpu_type": b"many"}),
    ],
)
def test_options_are_read_in_all_their_forms(line: bytes, said: dict[str, Any]) -> None:
    assert TELLING.search(line)
    assert submitted(line) == submitted(b"sbatch x")._replace(**said)


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        (b"sbatch -N 2 run.sh -N 9", 2),
        (b"sbatch -p gpu -t 10:00 --job-name big -H -N 2 run.sh", 2),
        (b"sbatch run.sh -N 9 --exclusive -w n1", -1),
        (b"srun --pty -N3 bash -i -N 9", 3),
        (b"sbatch --wrap=sleep 10 -N 4", 4),  # the end of the command is unknown
        (b"sbatch --job-name=my job, v2 --comment=a 13 -N 4", 4),  # sacct prints no quotes
        (b"sbatch -J bwa mem -N 4 run.sh -N 9", 4),
        (b"sbatch --job-name bwa mem -N 4", 4),
        (b"sbatch --job-name=bwa run.sh -N 9", -1),
        (b"sbatch --job-name=bwa mem", -1),
        (b"sbatch --job-name=bwa -p gpu mem -N 9", -1),
        (b"/usr/bin/sbatch --requeue -J x -N 5 /home/ann/run.sh --nodes=9", 5),
    ],
)
def test_arguments_after_the_script_belong_to_the_script(line: bytes, nodes: int) -> None:
    said = submitted(line)
    assert said.least_nodes == nodes
    assert (said.alone, said.nodelist) == (-1, b"")


def test_labels_come_from_submit_lines_where_columns_say_nothing(tmp_path: Path) -> None:
    two = {"NNodes": 2, "ReqCPUS": 8, "AllocCPUS": 8, "ReqTRES": "cpu=8,node=2"}
    jobs = [
        job(1, SubmitLine="sbatch -C [a*1&b*1] --gres=gpu:a100:2 -L matlab:2 x"),
        job(2, SubmitLine="sbatch -w n1 -x n[7-9] --gpus=4 x", **two),
        job(3, SubmitLine="sbatch --gpus-per-task=1 -c 4 x", **two),
        job(
            4,
            ReqTRES="cpu=4,node=1,gres/gpu=1,gres/gpu:v100=1",
            AllocTRES="cpu=4,gres/gpu=1",
            SubmitLine="sbatch --gres=gpu:a100:2 x",
        ),
        job(5, ReqTRES="cpu=4,node=1,license/idl=1", SubmitLine="sbatch -L matlab:2 x"),
        job(6),
    ]
    workload = read(tmp_path, *jobs)
    assert words(workload, 1) == {"constraint": "[a*1&b*1]", "licenses": "matlab:2", "gpu_type": "a100"}
    assert words(workload, 2) == {"nodelist": "n1", "exclude": "n[7-9]"}
    assert label(workload, "gpus") == {1: 2, 2: 2, 3: 1, 4: 1, 5: -1, 6: -1}
    assert words(workload, 4) == {
        "gpu_type": "v100"
    }  # resource lists have precedence over submit lines, which plugins may change
    assert words(workload, 5) == {"licenses": "idl:1"}
    assert words(workload, 6) == words(workload, 3) == {}


def test_a_column_of_constraints_is_above_submit_lines(tmp_path: Path) -> None:
    names = "JobID|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|ReqCPUS|Constraints|SubmitLine\n"
    row = "{}|ann|2026-01-05T00:01:00|2026-01-05T00:02:00|2026-01-05T00:03:00|60|5|COMPLETED|1|{}|sbatch -C b x\n"
    path = tmp_path / "sacct.txt"
    path.write_text(names + row.format(1, "a") + row.format(2, ""))
    workload = read_workload(path, format="sacct")
    assert [words(workload, number) for number in (1, 2)] == [{"constraint": "a"}, {"constraint": "b"}]


def test_demands_have_what_submit_lines_say(tmp_path: Path) -> None:
    lines = ("sbatch --gpus-per-node=a100:2 -L matlab:3 x", "sbatch -w n1 x", "sbatch -C ib&big x", "sbatch -C [a|b] x")
    workload = read(tmp_path, *(job(row, SubmitLine=line) for row, line in enumerate(lines, start=1)))
    assert workload.demands is not None
    first, _, third, _ = (workload.demands[row] for row in range(4))
    assert (first.tasks * first.gpu, first.gpu_kinds, first.pools) == (2 * WHOLE_GPU, ("a100",), {"matlab": 3})
    assert set(third.features) == {"ib", "big"}
    told = workload.provenance["demands"]
    assert (told["constraints_not_held"], told["nodes_by_name_not_held"]) == (1, 1)
