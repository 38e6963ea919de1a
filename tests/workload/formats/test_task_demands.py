"""Requests for resources other than cores in SWF, sacct, PBS and workflow files; totals become tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.demand import Demand, Demands
from gridsim.model.workload import Workload
from gridsim.workload.anonymise import anonymised, pseudonym
from gridsim.workload.formats.pbs_record import Needs, fields_of, needs
from gridsim.workload.formats.task_demands import demands_of
from gridsim.workload.read import read_workload

KEY = b"0123456789abcdef"


def of(cores: int, **more: Any) -> Demand:
    columns = {
        name: value
        if isinstance(value, list)
        else {key: np.array([each]) for key, each in value.items()}
        if isinstance(value, dict)
        else np.array([value])
        for name, value in more.items()
    }
    return demands_of(cores=np.array([cores]), **columns)[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"cores": 6, "memory": 10}, Demand(tasks=6, each={"cores": 1, "memory": 2})),
        ({"cores": 6, "unit": 3, "nodes": 2}, Demand(tasks=2, each={"cores": 3}, min_nodes=2, max_nodes=2)),
        ({"cores": 7, "unit": 3}, Demand(tasks=7, each={"cores": 1})),
        ({"cores": 8, "gpus": 2}, Demand(tasks=2, each={"cores": 4}, gpu=1000)),
        ({"cores": 3, "gpus": 4}, Demand(tasks=1, each={"cores": 3}, gpu=4000)),
        (
            {"cores": 128, "gpus": 8, "nodes": 2, "cores_per_node": 64},
            Demand(tasks=8, each={"cores": 16}, gpu=1000, min_nodes=2, max_nodes=2, tasks_per_node=4),
        ),
        ({"cores": 4, "nodes": 1, "most_nodes": 3}, Demand(tasks=4, each={"cores": 1}, max_nodes=3)),
        ({"cores": 4, "others": {"fpga": 2}}, Demand(tasks=2, each={"cores": 2, "fpga": 1})),
        ({"cores": 4, "tasks": 2, "pools": {"idl": 1}}, Demand(tasks=2, each={"cores": 2}, pools={"idl": 1})),
        (
            {"cores": 2, "exclusive": True, "features": [("ib",)]},
            Demand(tasks=2, each={"cores": 1}, exclusive=True, features=("ib",)),
        ),
        ({"cores": 2, "nodes": -1, "memory": -1, "gpus": -1, "unit": 0}, Demand(tasks=2, each={"cores": 1})),
    ],
)
def test_totals_become_tasks(given: dict[str, Any], expected: Demand) -> None:
    assert of(**given) == expected


@pytest.mark.parametrize(("memory", "each"), [("requested", [3, 0]), ("used", [1, 4])])
def test_memory_of_swf_is_of_each_processor(tmp_path: Path, memory: str, each: list[int]) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 5 2 -1 1000 2 9 2049 1 1 1 -1 1 -1 -1 -1\n2 1 0 5 3 -1 4096 3 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    jobs = read_workload(log, memory=memory)
    assert jobs.demands is not None
    assert jobs.demands.each["memory"].tolist() == each
    assert (jobs.demands.tasks.tolist(), jobs.cores.tolist()) == ([2, 3], [2, 3])
    assert jobs.provenance["demands"]["memory"] == memory
    jobs.check()
    assert read_workload(log).demands is None
    with pytest.raises(InputError, match="unknown field of memory 'asked'; did you mean"):
        read_workload(log, memory="asked")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select=2:ncpus=4:mem=8gb:ngpus=1", Needs(2, 16384, 2)),
        ("select=1:ncpus=8:mem=1500mb+2:ncpus=4:ngpus=1", Needs(0, 1500, 2)),
        ("nodes=3:ppn=8:gpus=2 Resource_List.mem=6gb", Needs(3, 6144, 6)),
        ("ncpus=4 Resource_List.mem=4194304kb Resource_List.ngpus=2", Needs(0, 4096, 2)),
        ("select=2:ncpus=4 Resource_List.place=scatter:excl", Needs(2, 0, 0, 1, 1)),
        ("select=x:ncpus=4:mem=much:ngpus=-1 Resource_List.ngpus=?", Needs(1, 0, 0)),
        ("walltime=5", Needs()),
    ],
)
def test_a_request_of_pbs_says_chunks_memory_and_gpus(text: str, found: Needs) -> None:
    assert needs(fields_of(f"Resource_List.{text}".encode())) == found


def test_chunks_of_pbs_are_tasks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    times = "ctime=100 qtime=100 etime=100 start=110 end=120 Resource_List.walltime=60"
    log.write_text(
        f"11/21/2026 10:00:00;E;1.s;user=a {times} Resource_List.select=2:ncpus=4:mem=8gb:ngpus=1 "
        "Resource_List.place=scatter\n"
        f"11/21/2026 10:00:00;E;2.s;user=a {times} Resource_List.ncpus=3\n"
    )
    jobs = read_workload(log)
    assert jobs.demands is not None
    assert jobs.demands[0] == Demand(tasks=2, each={"cores": 4, "memory": 8192}, gpu=1000, tasks_per_node=1)
    assert jobs.demands[1] == Demand(tasks=3, each={"cores": 1})
    jobs.check()


FIELDS = (
    "JobID User Account Partition Submit Start End TimelimitRaw State NNodes ReqCPUS AllocCPUS ReqMem ReqTRES AllocTRES"
)


def sacct(folder: Path, *rows: str, constraints: tuple[str, ...] = ()) -> Workload:
    times = "ann bio batch 1795244000 1795244010 1795244100 10 COMPLETED"
    lines = [f"{number} {times} {row}".split() for number, row in enumerate(rows, 1)]
    header = FIELDS.split() + (["Constraints"] if constraints else [])
    lines = [[*line, each] for line, each in zip(lines, constraints, strict=True)] if constraints else lines
    text = "\n".join("|".join(line) for line in [header, *lines])
    (folder / "sacct.txt").write_text(text + "\n")
    return read_workload(folder / "sacct.txt")


def test_resources_of_sacct_are_read(tmp_path: Path) -> None:
    jobs = sacct(
        tmp_path,
        "2 64 64 512G cpu=64,gres/gpu=8,gres/gpu:a100=8,mem=512G,node=2 cpu=64,gres/gpu=8,mem=512G,node=2",
        "1 4 4 8G cpu=4,license/matlab=2,mem=8G,node=1 cpu=4,mem=8G,node=1",
        "1 2 2 1000Mc cpu=2,gres/fpga=1,mem=2000M,node=1 cpu=2,mem=2000M,node=1",
        constraints=("ib&big", "intel|amd", ""),
    )
    assert jobs.demands is not None
    gpus, licences, other = (jobs.demands[row] for row in range(3))
    assert (gpus.tasks, gpus.each, gpus.gpu) == (8, {"cores": 8, "memory": 65536}, 1000)
    assert (gpus.gpu_kinds, gpus.features, gpus.min_nodes, gpus.max_nodes) == (("a100",), ("big", "ib"), 2, 2)
    assert (licences.pools, licences.features, licences.each["memory"]) == ({"matlab": 2}, (), 2048)
    assert (other.tasks, other.each) == (1, {"cores": 2, "memory": 2000, "fpga": 1})
    assert jobs.provenance["demands"] == {
        "resources": ["cores", "fpga", "memory", "gpu", "matlab"],
        "constraints_not_held": 1,
    }
    jobs.check()


def test_anonymised_jobs_ask_under_pseudonyms(tmp_path: Path) -> None:
    row = "1 4 4 8G cpu=4,license/matlab=2,mem=8G,node=1 cpu=4,mem=8G,node=1"
    hidden = anonymised(sacct(tmp_path, row, constraints=("ib",)), KEY)
    assert hidden.demands is not None
    demand = hidden.demands[0]
    assert demand.features == (pseudonym(KEY, "feature", "ib"),)
    assert demand.pools == {pseudonym(KEY, "licence", "matlab"): 2}
    assert "matlab" not in json.dumps(dict(hidden.provenance))


def test_tasks_of_workflows_request_the_memory_that_they_had(tmp_path: Path) -> None:
    names = ("a", "b")
    links = {"a": ([], ["b"]), "b": (["a"], [])}
    tasks = [{"name": it, "id": it, "parents": links[it][0], "children": links[it][1]} for it in names]
    ran = [
        {"id": "a", "runtimeInSeconds": 5, "coreCount": 2, "memoryInBytes": 3 << 20},
        {"id": "b", "runtimeInSeconds": 5},
    ]
    content = {
        "name": "w",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": tasks}, "execution": {"tasks": ran, "makespanInSeconds": 9}},
    }
    (tmp_path / "w.json").write_text(json.dumps(content))
    jobs = read_workload(tmp_path / "w.json", submit=[9, 4])
    assert jobs.demands is not None
    assert jobs.demands[0] == Demand(tasks=1, each={"cores": 2, "memory": 3})
    assert jobs.demands[3] == Demand(tasks=1, each={"cores": 1})
    jobs.check()


def test_demands_are_joined_by_name() -> None:
    one = Demands.of([Demand(tasks=2, each={"cores": 1, "memory": 5}, features=("a", "b"), pools={"x": 1})])
    other = Demands.of([Demand(cores=3), Demand(tasks=1, each={"disk": 4}, gpu=1000, features=("b",))])
    both = one.joined(other)
    assert [both[row] for row in range(3)] == [one[0], other[0], other[1]]
