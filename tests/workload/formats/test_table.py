"""Tables with a mapping: results for rows, requests of jobs, and each error with file and key."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.model.demand import Demand
from gridsim.model.workload import Workload
from gridsim.scenario import Scenario
from gridsim.workload.formats.table import mapping_of, presets
from gridsim.workload.read import read_workload

TIMES = """
submit = {column = "at", time = "s"}
start = {column = "began", time = "s"}
end = {column = "over", time = "s"}
"""


def read(folder: Path, table: str, mapping: str, **options: object) -> Workload:
    (folder / "map.toml").write_text(mapping)
    (folder / "table.csv").write_text(table)
    return read_workload(folder / "table.csv", mapping=str(folder / "map.toml"), **options)  # type: ignore[arg-type]


PODS = """name,cpu,mem,gpus,milli,spec,qos,phase,at,over,began
a,4000,1024,1,500,,LS,Ok,100,110,100
b,4500,2048,2,1000,V100|A10,BE,Ok,101,111,102
c,1000,10,0,0,,BE,Waits,102,,
d,1000,10,0,0,,BE,Ok,103,103.5,103
e,1000,10,1,1000,,LS,Odd,104,99,101
f,x,10,1,1000,,LS,Ok,105,109,105
"""
OF_PODS = f"""
[columns]
{TIMES}
cores = {{column = "cpu", scale = 0.001}}
memory = {{column = "mem", unit = "GiB"}}
gpus = {{column = "gpus", times = "milli", scale = 0.001}}
gpu_kind = "spec"
group = "qos"
status = "phase"
[status]
Ok = "completed"
Waits = "pending"
"""
MANY = "".join(f"z{number},1000,1,0,0,,LS,Ok,{200 + number},{300 + number},{200 + number}\n" for number in range(20))


def test_rows_become_jobs_that_request_tasks(tmp_path: Path) -> None:
    jobs = read(tmp_path, PODS + MANY, OF_PODS)
    assert jobs.job[:4].tolist() == [1, 2, 4, 7]  # row numbers
    assert (jobs.submit[:3] / 1e6).tolist() == [0, 1, 3]
    assert (jobs.runtime[:3] / 1e6).tolist() == [10, 9, 0.5]
    assert jobs.logged["wait"][:2].tolist() == [0, 1]
    assert jobs.cores[:2].tolist() == [4, 5]
    assert jobs.demands is not None
    assert jobs.demands[0] == Demand(tasks=1, each={"cores": 4, "memory": 1 << 20}, gpu=500)
    assert jobs.demands[1] == Demand(tasks=1, each={"cores": 5, "memory": 2 << 20}, gpu=2000, gpu_kinds=("A10", "V100"))
    assert jobs.names["group"][jobs.labels["group"][1]] == "BE"


def test_rows_are_kept_or_counted_and_never_repaired(tmp_path: Path) -> None:
    message = read(tmp_path, PODS + MANY, OF_PODS).provenance
    found = {entry["kind"]: (entry["count"], entry["first_lines"]) for entry in message["problems"]}
    assert found["never-ran"] == (1, [4])
    assert found["negative-runtime"] == (1, [6])
    assert found["damaged-row"] == (1, [7])
    assert message["damaged"] == ["row 7: column 'cpu' is 'x'; expected a number"]
    assert message["statuses_unknown"] == {"Odd": 1}
    assert (message["format"], message["jobs_kept"], message["cores_from"]) == (
        "table",
        23,
        "most cores in use at once",
    )


def test_a_wrong_mapping_looks_like_damage_and_is_refused(tmp_path: Path) -> None:
    message = r"table.csv: 1 of 6 rows do not match the mapping '.*map.toml': row 7: column 'cpu' is 'x'"
    with pytest.raises(InputError, match=message):
        read(tmp_path, PODS, OF_PODS)
    dates = 'submit = {column = "at"}\nstart = {column = "began", time = "s"}\nend = {column = "over", time = "s"}\n'
    with pytest.raises(InputError, match='expected an ISO time; the mapping has time = "iso"'):
        read(tmp_path, PODS + MANY, OF_PODS.replace(TIMES, dates))


def test_iso_times_durations_and_a_zone(tmp_path: Path) -> None:
    table = "id,user,at,took,limit,procs\n7,ada,2026-01-01 12:00:00,00,2,\n" + "".join(
        f"{number},bob,2026-01-01T12:00:{number:02}+01:00,90,2,8\n" for number in range(10, 40)
    )
    mapping = """
timezone = "Europe/Berlin"
[columns]
job = "id"
user = "user"
submit = "at"
runtime = "took"
estimate = {column = "limit", unit = "min", missing = 60}
cores = "procs"
"""
    jobs = read(tmp_path, table, mapping)
    assert jobs.demands is None  # only cores
    assert jobs.job[:2].tolist() == [10, 11]
    assert (jobs.estimate[:1] / 1e6).tolist() == [120]
    assert jobs.epoch == 1767265210
    assert jobs.provenance["clock"]["zone"] == "Europe/Berlin"


def test_jobs_of_several_nodes_have_a_task_on_each(tmp_path: Path) -> None:
    mapping = """
[columns]
submit = {column = "at", time = "ms"}
runtime = "took"
nodes = "n"
cores = "procs"
gpus = "g"
exclusive = {value = 1}
[resources]
scratch = "disk"
"""
    table = "at,took,n,procs,g,disk\n5000,10,2,5,4,7\n6000,10,4,8,2,\n7000,10,1,0,0,3\n8000,10,1,0,0,0\n"
    jobs = read(tmp_path, table, mapping)
    assert jobs.demands is not None
    both = {"min_nodes": 2, "max_nodes": 2, "exclusive": True}
    assert jobs.demands[0] == Demand(tasks=2, each={"cores": 3, "scratch": 4}, gpu=2000, **both)  # type: ignore[arg-type]
    assert (jobs.demands[1].gpu, jobs.demands[1].min_nodes) == (500, 4)
    assert jobs.demands[2].each == {"scratch": 3}
    assert jobs.cores.tolist() == [6, 8, 0]
    assert [entry["kind"] for entry in jobs.provenance["problems"]] == ["missing-cores", "missing-estimate"]


def test_a_task_has_a_part_of_one_gpu_or_whole_ones(tmp_path: Path) -> None:
    rows = "".join(f"{number},1,1\n" for number in range(30))
    mapping = '[columns]\nsubmit = {column = "at", time = "s"}\nruntime = "took"\ngpus = "g"\n'
    message = read(tmp_path, f"at,took,g\n40,1,1.5\n{rows}", mapping).provenance["damaged"]
    assert message == ["row 2: a task requests 1.5 GPUs; expected a fraction of one GPU, or whole GPUs"]


def test_rows_are_left_out_by_filters_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = read(tmp_path, PODS + MANY, OF_PODS + '[filter.best-effort]\ncolumn = "qos"\nvalues = ["BE"]\n')
    assert jobs.provenance["left_out"] == {"best-effort": 3}
    command = ["workload", "describe", str(tmp_path / "table.csv"), "--mapping", str(tmp_path / "map.toml")]
    assert main(command) == 0
    capsys.readouterr()


def test_three_times_that_disagree_are_counted(tmp_path: Path) -> None:
    mapping = f'[columns]\n{TIMES}runtime = "took"\ncores = "procs"\n'
    table = "at,began,over,took,procs\n0,1,11,10.5,1\n0,1,11,20,1\n0,,11,4,1\n0,1,,4,1\n"
    jobs = read(tmp_path, table, mapping)
    assert (jobs.runtime / 1e6).tolist() == [10.5, 10, 4, 4]
    assert jobs.logged["wait"].tolist() == [1, 1, 7, 1]
    kinds = {entry["kind"]: entry["count"] for entry in jobs.provenance["problems"]}
    assert kinds["runtime-not-span"] == 1


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
def test_a_table_without_a_header_and_with_other_delimiters(tmp_path: Path, suffix: str) -> None:
    mark = "\t" if "tsv" in suffix else ";"
    form = 'format = "tsv"\n' if mark == "\t" else 'delimiter = ";"\n'
    columns = 'submit = {column = "at", time = "s"}\nruntime = "took"\ncores = {column = "tres", key = "1"}\n'
    (tmp_path / "map.toml").write_text(f'{form}header = ["at", "took", "tres"]\n[columns]\n{columns}')
    text = "3 4 1=2,2=8000\n5 6 1=3\n".replace(" ", mark).encode()
    (tmp_path / f"t{suffix}").write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    jobs = read_workload(tmp_path / f"t{suffix}", mapping=str(tmp_path / "map.toml"))
    assert (jobs.cores.tolist(), jobs.job.tolist()) == ([2, 3], [1, 2])


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("colums = 3", "unknown key of .*map.toml 'colums'; did you mean 'columns'"),
        ('format = "xml"', "unknown format of a table in .*map.toml 'xml'"),
        ('delimiter = "::"', "field 'delimiter': is '::'; expected one character"),
        ('header = ["a", "a"]', "field 'header': lists a column twice"),
        ("[columns]\ncores = 3", "field 'columns.cores': is 3; expected a text or a table"),
        ('[columns]\ncpus = "c"', r"unknown key of \[columns\] in .*map.toml 'cpus'"),
        ('[columns]\ncores = "c"', "field 'columns.submit': is missing"),
        ('[columns]\nsubmit = "a"\ncores = "c"', "field 'columns.runtime': is missing; expected a run time, or start"),
        (
            '[columns]\nsubmit = "a"\nruntime = "b"',
            "field 'columns.cores': is missing; expected the columns of requested resources",
        ),
        ('[columns]\nsubmit = {column = "a", time = "min"}', "unknown way to write a time .*'min'"),
        ('[columns]\nruntime = {column = "a", time = "s"}', "field 'columns.runtime.time': applies to times"),
        ('[columns]\nruntime = {column = "a", unit = "weeks"}', "unknown unit .*'weeks'"),
        (
            '[columns]\ncores = {column = "a", unit = "s"}',
            "field 'columns.cores.unit': applies to durations",
        ),
        ('[columns]\ncores = {column = "a", scale = 0}', "field 'columns.cores.scale': is 0; expected a number above"),
        ('[columns]\ncores = {column = "a", value = 1}', "field 'columns.cores': has both a column and a value, or"),
        ("[columns]\ncores = {scale = 2}", "field 'columns.cores': has both a column and a value, or neither"),
        ('timezone = "Mars"\n[columns]\nsubmit = "at"\nruntime = "b"\ncores = "c"', "'Mars' is not in"),
        ('[columns]\nsubmit = "at"\nruntime = "b"\ncores = "c"\n[status]\nOk = "fine"', r"unknown status .*'fine'"),
        (
            '[columns]\nsubmit = "at"\nruntime = "b"\ncores = "c"\n[filter.x]\ncolumn = "c"',
            "field 'filter.x.values': is missing",
        ),
        (
            '[columns]\nsubmit = {column = "att", time = "s"}\nruntime = "mem"\ncores = "cpu"',
            "unknown column of .*table.csv, which the mapping .* 'att'; did you mean 'at'",
        ),
    ],
)
def test_a_mapping_that_is_none_is_refused(tmp_path: Path, mapping: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, PODS, mapping)


def test_the_mappings_are_listed_if_none_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text(PODS)
    with pytest.raises(
        InputError, match=r"field 'mapping': is not given; expected a TOML file, or one of: .*alibaba-2023"
    ):
        read_workload(tmp_path / "table.csv", format="table")
    with pytest.raises(InputError, match="unknown mapping 'alibaba-23'; did you mean 'alibaba-2023'"):
        read_workload(tmp_path / "table.csv", mapping="alibaba-23")
    with pytest.raises(InputError, match="field 'mapping': is not an option of the format 'swf'"):
        read_workload(tmp_path / "table.csv", format="swf", mapping="alibaba-2023")
    assert main(["list", "mappings"]) == 0
    assert "alibaba-2023" in capsys.readouterr().out


@pytest.mark.parametrize("name", presets())
def test_presets_say_where_they_are_from(name: str) -> None:
    tables = tomllib.loads(presets()[name].read_text())
    assert {"title", "source"} <= {*tables}
    assert mapping_of(name).name == name


TEN = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,12537496,0
p1,6000,12288,1,460,,LS,Running,427061,12902960,427061
p2,3152,512,0,0,,BE,Succeeded,427070,427090,427071
p3,64000,262144,8,1000,V100M32|G2,LS,Failed,427071,427091,427071
p4,1000,512,1,1000,,BE,Pending,427080,427090,
p5,1000,512,1,1000,,BE,Pending,427081,,
p6,1000,512,1,100,,Burstable,Running,427082,12902960,427083
p7,1000,512,1,1000,T4,LS,Running,427084,12902960,427085
p8,1000,512,1,1000,,LS,Running,427086,12902960,427086
p9,2500,512,1,1000,,LS,Failed,427087,427100,427088
"""


@pytest.mark.parametrize("source", ["made", pytest.param("openb", marks=pytest.mark.others)])
def test_pods_of_alibaba(tmp_path: Path, source: str, others: Callable[[str], Path]) -> None:
    made = tmp_path / "pods.csv"
    made.write_text(TEN)
    path = made if source == "made" else others("openb/openb_pod_list_default.csv.gz")
    jobs = read_workload(path, mapping="alibaba-2023")
    rows, kept, gpus = (10, 8, 12_560) if source == "made" else (8152, 7255, 5_484_930)
    assert (jobs.provenance["jobs_read"], len(jobs)) == (rows, kept)
    assert jobs.demands is not None
    assert jobs.demands.total("gpu").sum() == gpus
    assert jobs.demands[1] == Demand(tasks=1, each={"cores": 6, "memory": 12288}, gpu=460, max_nodes=1)


def test_a_recipe_names_a_mapping_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(TEN)
    (tmp_path / "own.toml").write_text(presets()["alibaba-2023"].read_text())
    (tmp_path / "recipe.toml").write_text('[workload]\nfile = "pods.csv"\nmapping = "own.toml"\n')
    assert len(Scenario.from_toml(tmp_path / "recipe.toml").load()) == 8
    (tmp_path / "recipe.toml").write_text('[workload]\nfile = "pods.csv"\nmapping = "none.toml"\n')
    with pytest.raises(InputError, match=r"recipe.toml, field 'workload.mapping'"):
        Scenario.from_toml(tmp_path / "recipe.toml")
