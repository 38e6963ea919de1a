"""Presets for public traces: each reads ten constructed rows that include the irregularities of the published files."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main
from gridsim.model.workload import Workload
from gridsim.workload.formats.table import mapping_of, presets
from gridsim.workload.read import read_workload

SLURM = (
    "job_id,user_id,group_id,submit_time,start_time,end_time,run_time,time_limit,num_cores_req,num_nodes_req,"
    "num_gpus_req,mem_req,partition,job_state\n"
    "1,7,1,2020-05-04 10:00:00,2020-05-04 10:05:00,2020-05-04 11:05:00,3600,120,128,4,16,950,1,COMPLETED\n"
    "2,7,1,2020-05-04 10:01:00,2020-05-04 10:05:00,2020-05-04 10:06:00,60,INFINITE,32,1,4,240,1,FAILED\n"
    + "".join(
        f"{3 + row},8,2,2020-05-04 10:{10 + row}:00,2020-05-04 11:00:00,2020-05-04 12:00:00,"
        "3600,60,32,1,0,240,2,TIMEOUT\n"
        for row in range(7)
    )
    + "10,8,2,2020-05-04 10:30:00,,2020-05-04 10:31:00,,60,32,1,0,240,2,CANCELLED\n"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
    "a,u1,2,16,240,Pretrain,COMPLETED,{d} 10:00:00{z},{d} 10:00:10{z},{d} 11:00:10{z},3600,10,57600\n"
    + "".join(
        f"b{row},u2,1,{row % 2},8,Other,FAILED,"
        f"{{d}} 10:00:{11 + row}{{z}},{{d}} 10:10:00{{z}},{{d}} 10:11:00{{z}},60,0,60\n"
        for row in range(8)
    )
    + "c,u2,1,1,8,Other,CANCELLED,{d} 10:00:30{z},,{d} 10:11:00{z},,,0\n"
)
TEN: dict[str, str] = {
    "alibaba-2020": "".join(
        f"job{row},worker,{1 + row % 3},{'Terminated' if row else 'Failed'},{1000 + 10 * row},{1500 + 10 * row},600,"
        f"29.3,{50 if row % 2 else 200},{'T4' if row else 'V100'}\n"
        for row in range(9)
    )
    + "job9,ps,1,Waiting,,,600,29.3,,\n",
    "alibaba-2026": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
    + "".join(f"j{row},org{row % 2},A10,{4 + row},1,{1 + row % 4},{100 * row},{600 + row},HP\n" for row in range(9))
    + "j9,org1,H800,16,8,2,950,,Spot\n",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u1,vc1,8,48,1,COMPLETED,2020-04-01 08:00:00,2020-04-01 08:00:05,2020-04-01 09:00:05,3600,5\n"
    + "".join(
        f"{2 + row},u2,vc1,0,4,1,TIMEOUT,2020-04-01 08:00:{10 + row},2020-04-01 08:01:00,2020-04-01 08:02:00,60,0\n"
        for row in range(8)
    )
    + "10,u2,vc2,1,4,1,CANCELLED,2020-04-01 08:00:30,,2020-04-01 08:01:00,0,30\n",
    "acme-seren": ACME.format(d="2023-03-01", z="+08:00"),
    "acme-kalos": ACME.format(d="2023-05-01", z="+00:00"),
    "pm100": SLURM,
    "marconi100": SLURM,
    "fugaku": "jid,usr,jnam,adt,sdt,edt,nnumr,elpl,pri,exit state\n"
    "h1,x1,n1,2021-04-01 00:00:00,2021-04-01 00:10:00,2021-04-01 01:10:00,384,7200,127,completed\n"
    + "".join(
        f"h{2 + row},x2,n2,2021-04-01 00:00:{10 + row},2021-04-01 00:10:00,2021-04-01 00:11:00,1,60,127,failed\n"
        for row in range(8)
    )
    + "h10,x2,n2,2021-04-01 00:01:00,,,1,60,127,failed\n",
    "eagle": "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,"
    "start_time,end_time,run_time,state\n"
    "17,u1,a1,standard,normal,7200,4,4,0,90000,2019-01-01 10:00:00,2019-01-01 10:30:00,"
    "2019-01-01 11:30:00,3600,COMPLETED\n"
    + "".join(
        f"18,u2,a1,short,normal,60,1,1,{row % 2},90000,2019-01-01 10:00:{10 + row},2019-01-01 10:30:00,"
        "2019-01-01 10:31:30,90,TIMEOUT\n"
        for row in range(8)
    )
    + "19,u2,a1,short,normal,60,1,1,0,90000,2019-01-01 10:01:00,,,,CANCELLED\n",
    "supercloud": "id_job,id_user,time_submit,time_start,time_end,timelimit,nodes_alloc,tres_alloc\n"
    '1,5,1609459200,1609459210,1609462810,120,2,"1=80,2=340000,4=4,1002=4"\n'
    + "".join(f'{2 + row},6,{1609459210 + row},1609459300,1609459360,4294967295,1,"1=8,2=34000"\n' for row in range(8))
    + '10,6,1609459230,0,0,60,0,""\n',
}
PHILLY = [
    {
        "jobid": "app_1",
        "user": "u1",
        "vc": "v1",
        "status": "Pass",
        "submitted_time": "2017-10-03 10:00:00",
        "attempts": [
            {"start_time": "2017-10-03 10:01:00", "end_time": "2017-10-03 10:02:00", "detail": []},
            {
                "start_time": "2017-10-03 10:10:00",
                "end_time": "2017-10-03 11:00:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu3"]}],
            },
        ],
    },
    *(
        {
            "jobid": f"app_{2 + row}",
            "user": "u2",
            "vc": "v1",
            "status": ("Killed", "Failed")[row % 2],
            "submitted_time": f"2017-10-03 10:0{row}:30",
            "attempts": [
                {
                    "start_time": "2017-10-03 12:00:00",
                    "end_time": "2017-10-03 12:30:00",
                    "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
                }
            ],
        }
        for row in range(7)
    ),
    {
        "jobid": "app_9",
        "user": "u2",
        "vc": "v1",
        "status": "Killed",
        "submitted_time": "2017-10-03 11:00:00",
        "attempts": [{"start_time": "2017-10-03 12:00:00", "end_time": None, "detail": []}],
    },
    {
        "jobid": "app_10",
        "user": "u2",
        "vc": "v1",
        "status": "Failed",
        "submitted_time": "2017-10-03 11:01:00",
        "attempts": [],
    },
]
# kept, seconds of the first job, its limit where it has one, cores, thousandths of GPU, zone
EXPECTED: dict[str, tuple[Any, ...]] = {
    "alibaba-2020": (9, 500, None, 6, 2000),
    "alibaba-2026": (9, 600, None, 4, 1000),
    "helios": (9, 3600, None, 48, 8000),
    "acme-seren": (9, 3600, None, 240, 16000),
    "acme-kalos": (9, 3600, None, 240, 16000),
    "philly": (8, 3060, None, 0, 4000),
    "pm100": (9, 3600, 7200, 128, 16000),
    "marconi100": (9, 3600, 7200, 128, 16000),
    "fugaku": (9, 3600, 7200, 18432, 0),
    "eagle": (9, 3600, 7200, 144, 0),
    "supercloud": (9, 3600, 7200, 80, 4000),
}


def made(folder: Path, name: str) -> Path:
    """Return ten rows in the format of the published file."""
    form = mapping_of(name).form
    file = folder / f"{name}.{form}"
    if form == "json":
        file.write_text(json.dumps(PHILLY))
    elif form == "parquet":
        duckdb = importlib.import_module("duckdb")
        (folder / "rows.csv").write_text(TEN[name])
        duckdb.sql(f"copy (select * from read_csv('{folder}/rows.csv', header = true)) to '{file}' (format parquet)")
    else:
        file.write_text(TEN[name])
    (folder / "pai_job_table.csv").write_text(
        "".join(f"job{row},i,u{row},Terminated,{900 + row},9\n" for row in range(9))
    )
    return file


def read(folder: Path, name: str) -> Workload:
    return read_workload(made(folder, name), mapping=name)


def test_every_preset_has_ten_rows() -> None:
    assert {*EXPECTED, "alibaba-2023"} == {*presets()}


BY_FORM = [
    pytest.param(name, marks=pytest.mark.parquet) if mapping_of(name).form == "parquet" else name for name in EXPECTED
]


@pytest.mark.parametrize("name", BY_FORM)
def test_ten_rows_of_each(tmp_path: Path, name: str) -> None:
    jobs = read(tmp_path, name)
    kept, runtime, limit, cores, gpus = EXPECTED[name]
    told = jobs.provenance
    assert (told["jobs_read"], len(jobs)) == (10, kept)
    assert not told["damaged"]
    left = {it["kind"]: it["count"] for it in told["problems"] if it["rule"] == "skip"}
    assert sum(left.values()) == 10 - kept
    assert jobs.demands is not None
    first = jobs.demands[0]
    assert (jobs.runtime[0] / 1e6, jobs.cores[0]) == (runtime, cores)
    assert (first.gpu * first.tasks if first.gpu else 0) == gpus
    if limit is not None:
        assert jobs.estimate[0] / 1e6 == limit
    assert bool(mapping_of(name).unverified) == (name not in ("alibaba-2020", "eagle"))


def test_anomalies_in_the_logs(tmp_path: Path) -> None:
    tasks = read(tmp_path, "alibaba-2020")
    assert tasks.names["user"][int(tasks.labels["user"][0])] == "u0"
    assert tasks.logged["wait"][0] == 100  # relative to the start of its job
    seren = read(tmp_path, "acme-seren")
    assert seren.epoch == 1677636000  # 10:00 at +08:00
    endless = read(tmp_path, "supercloud")
    assert endless.estimate[1] / 1e6 == 365 * 86400
    assert endless.demands is not None
    assert endless.demands[0].each == {"cores": 40, "memory": 170000}
    spot = read(tmp_path, "alibaba-2026")
    assert spot.demands is not None
    assert spot.demands[1].tasks == 2
    assert spot.demands[0].gpu_kinds == ("A10",)


@pytest.mark.parquet
def test_elements_of_an_array_share_a_number(tmp_path: Path) -> None:
    arrays = read(tmp_path, "eagle")
    assert sorted(arrays.job.tolist()) == list(range(1, 10))
    kinds = {it["kind"]: it["count"] for it in arrays.provenance["problems"]}
    assert kinds["over-estimate"] == 8


def test_presets_that_no_job_verified_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = made(tmp_path, "supercloud")
    assert main(["compare", str(file), "--mapping", "supercloud", "--policy", "fcfs", "--no-page"]) == 0
    told = capsys.readouterr()
    assert (told.out + told.err).count(
        "mapping 'supercloud': column names not verified against the published file"
    ) == 1
    assert main(["list", "mappings", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["mappings"]}
    assert "not verified" in rows["marconi100"]["summary"]
    assert "no published file was read" in rows["helios"]["summary"]
    assert tomllib.loads(presets()["eagle"].read_text())["source"] == rows["eagle"]["source"]
