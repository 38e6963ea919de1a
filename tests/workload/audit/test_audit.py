"""Audits of traces: counted rows, conserved totals, inconsistencies, and memory use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.cli import main
from gridsim.workload.read import read_workload

MAPPING = """
[columns]
job = "id"
submit = {column = "at", time = "s"}
start = {column = "began", time = "s"}
end = {column = "over", time = "s"}
estimate = "limit"
gpus = "gpus"
gpu_kind = "kind"
status = "state"
[status]
WAITS = "pending"
[filter.tests]
column = "state"
values = ["TEST"]
[capacity]
gpus = 3
"""
HEAD = "id,at,began,over,limit,gpus,kind,state\n"
WORKED = f"{HEAD}a,0,0,100,,2,,\nb,0,0,100,,1,,\nc,0,50,150,,2,,\n"


def audited(
    folder: Path, table: str, capsys: pytest.CaptureFixture[str], *more: str, mapping: str = MAPPING, code: int = 0
) -> dict[str, Any]:
    (folder / "map.toml").write_text(mapping)
    (folder / "t.csv").write_text(table)
    command = ["workload", "audit", str(folder / "t.csv"), "--mapping", str(folder / "map.toml"), "--json", *more]
    assert main(command) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def demand(found: dict[str, Any], resource: str = "gpus", kind: str = "") -> dict[str, Any]:
    return next(it for it in found["demands"] if (it["resource"], it["kind"]) == (resource, kind))


def test_the_worked_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    it = demand(audited(tmp_path, WORKED, capsys))
    assert it["ran"]["mean"] / 3 == pytest.approx(1.1111, abs=5e-5)
    assert it["ran"]["peak"] / 3 == pytest.approx(1.6667, abs=5e-5)
    assert it["ran"]["above"] == pytest.approx(1 / 3)
    assert it["ran"]["area"] == 500
    assert it["conserved"]


def test_bins_have_the_means_of_the_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    rows = HEAD
    for row, at in enumerate(rng.integers(0, 50_000, 4000).tolist()):
        start = at + int(rng.integers(0, 900))
        end = start + int(rng.integers(1, 9000))
        rows += f"{row},{at},{start},{end},100,{rng.integers(1, 5)},{rng.choice(['A', 'B', 'A|B'])},\n"
    exact = audited(tmp_path, rows, capsys)
    monkeypatch.setattr("gridsim.workload.audit.scan.KEPT", 100)
    binned = audited(tmp_path, rows, capsys)
    for kind in ("", "A", "B"):
        one, other = demand(exact, kind=kind), demand(binned, kind=kind)
        for view in ("ran", "unwaited"):
            assert one[view]["exact"]
            assert not other[view]["exact"]
            assert other[view]["mean"] == pytest.approx(one[view]["mean"], rel=1e-9)
            assert other[view]["area"] == pytest.approx(one[view]["area"], rel=1e-9)
            assert 0.9 * one[view]["peak"] < other[view]["peak"] <= one[view]["peak"]
    assert exact["conserved"]
    assert binned["conserved"]
    assert any("2,048 equal intervals" in sentence for sentence in binned["verdict"])
    assert exact["limits"] == binned["limits"] == {"given": 4000, "over": exact["limits"]["over"]}
    assert exact["limits"]["over"] > 3900


ODD = (
    WORKED + "a,10,20,30,5,1,,\n"  # a again, while it runs; exceeds its limit
    "d,40,30,60,,1,,\n"  # starts before it is submitted
    "e,50,,,,9,,WAITS\n"  # never ran and could never run
    "f,50,60,40,,1,,\n"  # ends before it starts
    ",,60,70,,1,,\n"  # no submit
    "g,60,70,80,,1,,TEST\n"  # excluded
    + "".join(f"n{row},{100 + row},{200 + row},{300 + row},,1,,\n" for row in range(30))
    + "h,x,60,70,,1,,\n"  # damaged
    "i,60,61\n"
)


def test_every_row_is_kept_or_left_out_for_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = audited(tmp_path, ODD, capsys)
    left = {"damaged": 2, "tests": 1, "no submit time": 1, "never ran": 1, "ends before it starts": 1}
    assert found["rows"] == {"read": 41, "kept": 35, "left_out": left}
    assert {output.split(":")[0] for output in found["damaged"]} == {"row 41", "row 42"}
    assert found["start_before_submit"] == 1
    assert found["job_names"] == {"names": 1, "rows": 2, "overlaps": 1}
    assert found["limits"] == {"given": 1, "over": 1}
    assert found["infeasible"] == [{"resource": "gpus", "of": "machine", "jobs": 1, "most": 9.0, "capacity": 3.0}]
    assert "1 job requests more GPUs than the machine has: up to 9 of 3." in found["verdict"]
    assert "overlaps" in found["findings"]
    audited(tmp_path, ODD, capsys, "--strict", code=1)
    fine = HEAD + "a,0,0,100,200,2,,\nb,100,100,200,200,1,,\n"
    assert audited(tmp_path, fine, capsys, "--strict")["findings"] == []


def test_a_trace_that_does_not_fit_its_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Demand of 1.33 by construction: starts are missing, and the queue can only grow."""
    columns = MAPPING.replace('start = {column = "began", time = "s"}\nend = {column = "over", time = "s"}\n', "")
    mapping = columns.replace('estimate = "limit"', 'runtime = "limit"').replace("gpus = 3", "gpu_kinds = {A10 = 300}")
    rows = "".join(f"{row},{10 * (row // 133)},,,10,3,A10,\n" for row in range(133 * 100))
    found = audited(tmp_path, HEAD + rows, capsys, mapping=mapping)
    it = demand(found, kind="A10")
    assert it["unwaited"]["mean"] / it["capacity"] == pytest.approx(1.33)
    assert it["ran"] is None
    assert found["verdict"][0].startswith(
        "The trace does not fit the machine: without waiting, it would need 133 % of "
    )
    assert found["verdict"][1] == "The trace has no start times, so the recorded schedule is unknown."
    assert "does-not-fit" in found["findings"]


def test_resources_of_a_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site.toml").write_text(
        '[platform]\ncluster = "c"\n[[platform.nodes]]\ngroup = "g"\ncount = 4\ncapacity = {cores = 8}\ngpus = 2\n'
        'gpu_kind = "T4"\n'
    )
    rows = HEAD + "a,0,0,10,,3,,\nb,0,0,10,,2,T4,\nc,0,0,10,,1,V100,\nd,0,0,10,,1,V100|T4,\n"
    mapping = MAPPING.replace('gpus = "gpus"', 'gpus = "gpus"\nnodes = {value = 1}')
    found = audited(tmp_path, rows, capsys, "--platform", str(tmp_path / "site.toml"), mapping=mapping)
    assert [(it["resource"], it["of"], it["jobs"]) for it in found["infeasible"]] == [
        ("gpus", "node", 1),
        ("gpu_kind", "machine", 1),
    ]
    assert demand(found)["capacity"] == 8
    assert demand(found, kind="T4")["capacity"] == 8


def test_nodes_that_two_jobs_had_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = MAPPING.replace('gpu_kind = "kind"', 'node_list = "kind"')
    rows = HEAD + "a,0,0,10,,1,n1|n2,\nb,0,5,10,,1,n2,\nc,0,10,20,,1,n1|n2,\n"
    assert audited(tmp_path, rows, capsys, mapping=mapping)["nodes_held_alone"] == {
        "names": 2,
        "rows": 5,
        "overlaps": 1,
    }


def test_a_log_of_another_format(capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(__file__).parents[3] / "scenarios" / "examples" / "damaged.swf"
    assert main(["workload", "audit", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"]["read"], found["rows"]["kept"]) == (400, 386)
    assert demand(found, "cores")["capacity"] == 64
    assert found["verdict"][0].startswith("The trace fits the machine: without waiting, it would need at most")
    assert found["verdict"][1] == "The trace has no start times, so the recorded schedule is unknown."


def test_gpus_that_were_requested_without_a_type_count_as_of_the_type_that_was_allocated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|AllocCPUS|ReqTRES|AllocTRES"
    t = 1_700_000_000
    typed, untyped = "gres/gpu:a100=1,gres/gpu=1", "gres/gpu=3"
    rows = [
        f"1|{t}|{t}|{t + 10}|10|5|COMPLETED|1|4|cpu=4,{typed}|cpu=4,{typed}",
        f"2|{t}|{t}|{t + 10}|10|5|COMPLETED|1|4|cpu=4,{untyped}|cpu=4,gres/gpu:a100=3,{untyped}",
        f"3|{t}|{t}|{t + 10}|10|5|COMPLETED|1|4|cpu=4,{untyped}|cpu=4,gres/gpu:h100=3,{untyped}",
    ]
    log, conf = tmp_path / "sacct.txt", tmp_path / "slurm.conf"
    log.write_text("\n".join([head, *rows]) + "\n")
    conf.write_text(
        "NodeName=n[1-2] CPUs=8 Gres=gpu:4\nNodeName=n3 CPUs=8 Gres=gpu:a100:4\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    assert main(["workload", "audit", str(log), "--platform", str(conf), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {kind: demand(found, kind=kind)["ran"]["mean"] for kind in ("", "a100", "h100")} == {
        "": 7.0,
        "a100": 4.0,
        "h100": 3.0,
    }
    assert not found["infeasible"]  # the third job requested no h100, which the machine does not have
    assert read_workload(log).labels["gpu_type"].tolist() == [0, -1, -1]


@pytest.mark.parametrize(
    ("more", "output"),
    [
        (
            ["--on", "zero-runtime=skip"],
            "--on zero-runtime=skip: audit reads the rows of a table unchanged; leave it out",
        ),
        (["--machine", "3", "--platform", "x.toml"], "--machine and --platform x.toml both give the machine"),
    ],
)
def test_invalid_options_of_an_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], output: str
) -> None:
    (tmp_path / "map.toml").write_text(MAPPING)
    (tmp_path / "t.csv").write_text(WORKED)
    assert main(["workload", "audit", str(tmp_path / "t.csv"), "--mapping", str(tmp_path / "map.toml"), *more]) == 2
    assert output in capsys.readouterr().err


PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def pods_of_our_own() -> str:
    """Return many jobs that request nearly all GPUs but never overlap, and some jobs that never ran."""
    ran = "".join(
        f"p{row},9000,40000,1,1000,,LS,Failed,{row * 2000},{row * 2000 + 616},{row * 2000}\n" for row in range(6000)
    )
    return PODS + ran + "".join(f"w{row},9000,10,1,1000,,LS,Pending,{row},{row},\n" for row in range(90))


@pytest.mark.parametrize("source", ["made", pytest.param("openb", marks=pytest.mark.others)])
def test_a_packing_problem_is_no_log_of_a_busy_machine(
    tmp_path: Path, source: str, others: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "pods.csv"
    made.write_text(pods_of_our_own())
    path = made if source == "made" else others("openb/openb_pod_list_default.csv.gz")
    assert main(["workload", "audit", str(path), "--mapping", "alibaba-2023", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = (6090, 6000, 90) if source == "made" else (8152, 7255, 897)
    assert (found["rows"]["read"], found["rows"]["kept"], found["rows"]["left_out"]["never ran"]) == rows
    assert found["median_runtime"] == 616
    gpus = demand(found)
    assert round(100 * gpus["requested"] / gpus["capacity"], 1) == 98.0
    if source == "openb":
        shares = [
            round(100 * demand(found, it)["requested"] / demand(found, it)["capacity"], 1) for it in ("cores", "memory")
        ]
        assert shares == [68.1, 49.6]
        assert round(gpus["ran"]["peak"], 1) == 65.6
        assert found["verdict"][0].startswith(
            "The machine was not busy (peak 1.1 % of capacity): in the recorded schedule"
        )
        assert round((found["span"]["ran"][1] - found["span"]["ran"][0]) / 86400) == 149
    assert "Simulate the trace as a packing problem, without departures" in found["verdict"][1]


def test_the_same_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.toml").write_text(MAPPING)
    (tmp_path / "t.csv").write_text(ODD)
    assert main(["workload", "audit", str(tmp_path / "t.csv"), "--mapping", str(tmp_path / "map.toml")]) == 0
    output = " ".join(capsys.readouterr().out.split())
    for part in (
        "41 read, 35 kept, excluded: 2 damaged, 1 tests, 1 no submit time, 1 never ran and 1 ends before it starts",
        "1 occur several times, in 2 rows; 1 begin before an earlier one has ended",
        "Nothing is missing",
    ):
        assert part in output


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of memory is read from /proc")
def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    """Peak memory of an audit of 1,500,000 rows, six times the number kept, stays within 200 MiB."""
    (tmp_path / "map.toml").write_text(MAPPING)
    with (tmp_path / "t.csv").open("w") as file:
        file.write(HEAD)
        for row in range(1_500_000):
            file.write(f"job-{row},{row},{row + 5},{row + 600},1000,1,,DONE\n")
    code = (  # the system's usage figures are the parent's, if those are higher
        "import re\nfrom pathlib import Path\nfrom gridsim.cli import main\n"
        f"assert main(['workload', 'audit', '{tmp_path}/t.csv', '--mapping', '{tmp_path}/map.toml', '--json']) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(output.splitlines()[-1]) * 1024 < 200 * 2**20
    assert json.loads(output[: output.rindex("}") + 1])["rows"]["kept"] == 1_500_000
