"""The result of one run: columns, numbers and files."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from gridsim import tables
from gridsim.errors import InputError
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.result import Result
from gridsim.simulation import simulate
from gridsim.tables import read_names, read_table, write_table
from gridsim.workload.read import read_workload

JOBS = Workload.from_columns(
    submit=[0, 1, 2, 3],
    runtime=[10, 10.5, 5, 1],
    estimate=[10, 4, 5, 1],
    cores=[3, 2, 1, 9],
    deadline=[np.nan, 40, np.nan, np.nan],
    labels={"user": [7, 8, 7, 9]},
)


def result(policy: str = "easy", jobs: Workload = JOBS) -> Result:
    return simulate(jobs, platform=Platform.single(4), policy=policy)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_columns_are_one_row_a_job_in_seconds() -> None:
    jobs = result().jobs
    assert jobs["job"].tolist() == [1, 2, 3, 4]
    assert jobs["user"].tolist() == [7, 8, 7, 9]
    np.testing.assert_array_equal(jobs["start"], [0, 10, 2, np.nan])
    np.testing.assert_array_equal(jobs["end"], [10, 14, 7, np.nan])
    np.testing.assert_array_equal(jobs["wait"], [0, 9, 0, np.nan])
    np.testing.assert_array_equal(jobs["response"], [10, 13, 5, np.nan])
    assert jobs["runtime"].tolist() == [10, 10.5, 5, 1]
    assert jobs["estimate"].tolist() == [10, 4, 5, 1]
    assert jobs["status"].tolist() == ["completed", "killed_walltime", "completed", "rejected"]
    assert jobs["cluster"].tolist() == ["cluster", "cluster", "cluster", ""]
    np.testing.assert_array_equal(jobs["deadline"], [np.nan, 40, np.nan, np.nan])


def test_columns_that_say_nothing_are_left_out() -> None:
    jobs = result(jobs=Workload.from_columns(submit=[0], runtime=[1], cores=[1])).jobs
    assert {"deadline", "user", "group"}.isdisjoint(jobs)


def test_a_result_is_written_as_jobs_metrics_and_run(tmp_path: Path) -> None:
    result().write(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["jobs.csv", "metrics.json", "run.json"]
    assert rows(tmp_path / "out" / "jobs.csv")[1] == {
        "job": "2",
        "user": "8",
        "cores": "2",
        "submit": "1",
        "start": "10",
        "end": "14",
        "wait": "9",
        "runtime": "10.5",
        "estimate": "4",
        "response": "13",
        "slowdown": "3.25",
        "bounded_slowdown": "1.3",
        "cluster": "cluster",
        "status": "killed_walltime",
        "deadline": "40",
    }
    assert read(tmp_path / "out" / "metrics.json")["killed_walltime"] == 1
    run = read(tmp_path / "out" / "run.json")
    assert run["policy"] == "Backfilling(ordering=Fifo(), reserve=Easy())"
    message = {"overrun": "kill", "instant": "batched", "seed": 1, "tick": 1.0}
    assert run["options"] == {
        **message,
        "balancer": "expected-queue",
        "split": "task",
        "limits": "refuse",
        "engine": "auto",
    }
    assert run["platform"]["cores"] == 4
    assert {"python", "gridsim", "simpy", "numpy", "scipy", "numba"} == set(run["versions"])


def test_a_job_that_did_not_run_has_empty_fields(tmp_path: Path) -> None:
    result().write(tmp_path)
    rejected = rows(tmp_path / "jobs.csv")[3]
    assert [rejected[name] for name in ("start", "end", "wait", "response", "slowdown", "cluster")] == [""] * 6
    assert rejected["status"] == "rejected"


def test_numbers_are_read_back_as_they_were(tmp_path: Path) -> None:
    jobs = Workload.from_columns(submit=[0.1, 0.2, 1e9], runtime=[1 / 3, 1e-6, 7], cores=[4, 4, 4])
    made = result(jobs=jobs)
    made.write(tmp_path)
    for name in ("submit", "start", "end", "wait", "runtime", "slowdown"):
        assert [float(row[name]) for row in rows(tmp_path / "jobs.csv")] == made.jobs[name].tolist()


def test_cuts_and_bound_are_reported_and_the_bound_holds_in_the_table(tmp_path: Path) -> None:
    result().write(tmp_path, bound=1.0, warmup=1.0, cooldown=0.0)
    assert read(tmp_path / "run.json")["metrics"] == {"bound": 1.0, "warmup": 1.0, "cooldown": 0.0}
    assert read(tmp_path / "metrics.json")["jobs_cut"] == 1
    assert rows(tmp_path / "jobs.csv")[1]["bounded_slowdown"] == "3.25"
    assert len(rows(tmp_path / "jobs.csv")) == 4


def test_a_bound_that_makes_no_sense_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bound"):
        result().write(tmp_path, bound=-1)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_of_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'xls' is neither csv nor parquet"):
        result().write(tmp_path, table="xls")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_result_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result("fcfs").write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fails(column: Any) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gridsim.tables._texts", fails)
    with pytest.raises(OSError, match="No space left"):
        result("easy").write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("once", "again"):
        result("easy?ordering=random").write(tmp_path / folder)
    for name in ("jobs.csv", "metrics.json", "run.json"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_same_inputs_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys, gridsim as gs\n"
        "jobs = gs.default_workload(jobs=200, seed=4)\n"
        "for policy in ('easy', 'random', 'conservative?ordering=wfp3'):\n"
        "    gs.simulate(jobs, policy=policy).write(f'{sys.argv[1]}/{policy[:4]}')"
    )
    with mock.patch.object(sys, "argv", ["", str(tmp_path / "1")]):
        exec(code, {})
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "2")], env=env, check=True)
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.*"))
    assert len(files) == 9
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


SWF = """; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
2 5 -1 0 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
3 6 -1 20 2 -1 -1 2 10 -1 1 4 1 -1 -1 -1 -1 -1
"""


def test_run_json_reports_the_file_its_checksum_and_what_was_left_out_by_which_rule(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    simulate(read_workload(tmp_path / "log.swf"), policy="fcfs").write(tmp_path / "out")
    message = read(tmp_path / "out" / "run.json")
    workload = message["workload"]
    assert len(workload["sha256"]) == 64
    assert workload["jobs_read"] == 3
    problems = {problem["kind"]: problem for problem in workload["problems"]}
    assert problems["zero-runtime"]["count"] == 1
    assert problems["zero-runtime"]["rule"] == "skip"
    assert message["platform"]["cores"] == 4


def test_run_json_reports_the_file_of_a_policy_and_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class Mine:\n    def rank(self, queue, now):\n        return queue.cores\n")
    result(f"easy?ordering={path}:Mine").write(tmp_path / "out")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read(tmp_path / "out" / "run.json")["plugins"] == [{"file": str(path), "sha256": digest}]
    result("easy").write(tmp_path / "out")
    assert read(tmp_path / "out" / "run.json")["plugins"] == []


def test_an_existing_table_of_another_format_is_removed(tmp_path: Path) -> None:
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1")
    result().write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "metrics.json", "run.json"]


def test_a_data_frame_has_the_same_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = result().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(result().jobs)
    assert frame["wait"].tolist()[:3] == [0, 9, 0]


@pytest.mark.parametrize(("package", "message"), [("pandas", "pip install pandas"), ("duckdb", "pip install duckdb")])
def test_a_package_that_is_not_there_is_named(
    package: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=message):
        result().to_pandas() if package == "pandas" else result().write(tmp_path, table="parquet")
    assert list(tmp_path.iterdir()) == []


# -- parquet ---------------------------------------------------------------------------------------------------------


def columns(path: Path) -> dict[str, list[Any]]:
    duckdb = importlib.import_module("duckdb")
    relation = duckdb.read_parquet(str(path))
    return dict(zip(relation.columns, map(list, zip(*relation.fetchall(), strict=True)), strict=True))


@pytest.mark.parquet
def test_a_parquet_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    made = result()
    made.write(tmp_path / "it's here", table="parquet")
    found = columns(tmp_path / "it's here" / "jobs.parquet")
    assert list(found) == list(made.jobs)
    for name, column in made.jobs.items():
        known = [None if value in ("",) or value != value else value for value in column.tolist()]
        assert found[name] == known, name
    assert sorted(path.name for path in (tmp_path / "it's here").iterdir()) == [
        "jobs.parquet",
        "metrics.json",
        "run.json",
    ]


@pytest.mark.parquet
def test_the_types_of_a_parquet_table_do_not_depend_on_its_first_rows(tmp_path: Path) -> None:
    """25,000 jobs at whole seconds, then one between two: a reader that guesses from the first rows would round it."""
    n = 25_000
    submit = np.append(np.arange(n - 1) * 10.0, n * 10 + 0.25)
    jobs = Workload.from_columns(submit=submit, runtime=np.full(n, 5), cores=1)
    result(jobs=jobs).write(tmp_path, table="parquet")
    found = columns(tmp_path / "jobs.parquet")
    assert found["submit"][-1] == n * 10 + 0.25
    assert isinstance(found["submit"][0], float)


@pytest.mark.parquet
def test_a_parquet_table_of_jobs_that_did_not_run_has_its_types(tmp_path: Path) -> None:
    result(jobs=Workload.from_columns(submit=[0], runtime=[1], cores=[9])).write(tmp_path, table="parquet")
    duckdb = importlib.import_module("duckdb")
    relation = duckdb.read_parquet(str(tmp_path / "jobs.parquet"))
    types = dict(zip(relation.columns, relation.types, strict=True))
    assert {str(types[name]) for name in ("start", "wait", "slowdown")} == {"DOUBLE"}


@pytest.mark.parquet
def test_a_parquet_table_has_the_types_of_its_columns_without_any_row(tmp_path: Path) -> None:
    given = {
        'a "b"': np.array([3, -1, 2]),
        "float": np.array([np.inf, np.nan, -0.5]),
        "text": np.array(["NULL", "", 'nan, \n"ß"']),
        "backwards": np.arange(3)[::-1],
    }
    write_table(tmp_path / "some.parquet", given)
    found = columns(tmp_path / "some.parquet")
    assert found == {
        'a "b"': [3, -1, 2],
        "float": [np.inf, None, -0.5],
        "text": ["NULL", None, 'nan, \n"ß"'],
        "backwards": [2, 1, 0],
    }
    write_table(tmp_path / "none.parquet", {name: column[:0] for name, column in given.items()})
    relation = importlib.import_module("duckdb").read_parquet(str(tmp_path / "none.parquet"))
    assert [str(kind) for kind in relation.types] == ["BIGINT", "DOUBLE", "VARCHAR", "BIGINT"]
    assert relation.columns == [*given]
    assert relation.fetchall() == []


# -- DAG jobs ----------------------------------------------------------------------------------------------------------

# Job 1: 0 (A) -> 1 (B, named with a comma); job 2: one task of B.
GRAPHS = Workload.from_tasks(
    Tasks.from_edges(
        counts=[2, 1],
        runtime=[4, 6, 3],
        cores=[2, 1, 2],
        kind=[0, 1, 1],
        kinds=("A", "B"),
        edges=[(0, 1)],
        names=["first", 'second, "b"', "alone"],
    ),
    submit=[0, 8],
)
TREE = RouterSpec("root", (ClusterSpec("a", 2, "A"), ClusterSpec("b", 2, "B")))


def graphs(**options: Any) -> Result:
    return simulate(GRAPHS, platform=Platform(TREE, network=Network(ccr="1/4")), policy="fifo-job", **options)


def test_tasks_are_one_row_a_task_in_seconds() -> None:
    tasks = graphs().tasks
    assert {name: column.tolist() for name, column in tasks.items()} == {
        "job": [1, 1, 2],
        "task": ["first", 'second, "b"', "alone"],
        "cluster": ["a", "b", "b"],
        "kind": ["A", "B", "B"],
        "cores": [2, 1, 2],
        "ready": [0, 5, 8],
        "start": [0, 5, 11],
        "end": [4, 11, 14],
        "runtime": [4, 6, 3],
        "estimate": [4, 6, 3],
        "rank": [11, 6, 3],
        "status": ["completed"] * 3,
    }
    assert result().tasks == {}


def test_dag_jobs_report_their_critical_path_and_its_effect() -> None:
    jobs = graphs().jobs
    assert jobs["cluster"].tolist() == ["a+b", "b"]
    assert jobs["critical_path"].tolist() == [11, 3]
    assert jobs["response"].tolist() == [11, 6]
    assert jobs["slr"].tolist() == [1, 2]
    assert jobs["stretch"].tolist() == [11 / 14, 1]
    assert jobs["speedup"].tolist() == [14 / 11, 1]
    assert {"critical_path", "slr"}.isdisjoint(result().jobs)


def test_tasks_without_names_go_by_their_index() -> None:
    unnamed = Tasks.from_edges(counts=[1, 2], runtime=[1, 1, 1], cores=1, edges=[])
    done = simulate(Workload.from_tasks(unnamed, submit=[0, 0]), platform=Platform.single(4))
    assert done.tasks["task"].tolist() == ["0", "0", "1"]


def test_tasks_are_written_with_the_jobs_and_removed_by_a_run_without(tmp_path: Path) -> None:
    graphs().write(tmp_path)
    written = rows(tmp_path / "tasks.csv")
    assert [row["task"] for row in written] == ["first", 'second, "b"', "alone"]
    assert list(written[0]) == list(graphs().tasks)
    assert rows(tmp_path / "jobs.csv")[1]["slr"] == "2"
    result().write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "metrics.json", "run.json"]


@pytest.mark.parquet
def test_tasks_may_be_parquet(tmp_path: Path) -> None:
    duckdb = importlib.import_module("duckdb")
    graphs().write(tmp_path)
    graphs().write(tmp_path, table="parquet")
    assert not (tmp_path / "tasks.csv").exists()
    found = duckdb.sql(f"select task, ready, cores from '{tmp_path}/tasks.parquet'").fetchall()
    assert found == [("first", 0.0, 2), ('second, "b"', 5.0, 1), ("alone", 8.0, 2)]


def test_network_and_shares_of_the_platform_are_reported_where_it_has_any() -> None:
    assert set(result().provenance()["platform"]) == {"cores", "origin", "tree"}
    shares = ShareTree({"/eng": 1})
    jobs = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    platform = Platform(Platform.single(4).root, network=Network(ccr="1/5"), shares=shares)
    message = simulate(jobs, platform=platform).provenance()["platform"]
    assert message["network"]["ccr"] == "1/5"
    assert message["shares"] == {"/eng": 1}
    assert json.loads(json.dumps(message["network"])) == message["network"]


def test_numbers_about_cores_count_tasks() -> None:
    numbers = graphs().metrics()
    assert numbers["utilisation"] == pytest.approx((4 * 2 + 6 + 3 * 2) / (4 * 14))
    assert numbers["offered_load"] == pytest.approx(20 / (4 * 8))


def test_some_jobs_of_a_record_keep_their_tasks() -> None:
    record = graphs().record.select([1])
    assert record.tasks is not None
    assert record.rank is not None
    assert record.critical_path is not None
    assert (record.tasks.start_us.tolist(), record.tasks.cluster.tolist()) == ([11_000_000], [1])
    assert (record.rank.tolist(), record.critical_path.tolist()) == ([3_000_000], [3_000_000])
    assert record.area.tolist() == [6]


def test_names_that_a_spreadsheet_takes_for_formulas_are_escaped_and_read_back(tmp_path: Path) -> None:
    names = ("", "ann", "=cmd()", "'=x", "'bob", "-1", "@a", "+b", "''@c", "\tz", "a=b", "c\rd", "'")
    workload = Workload.from_columns(submit=range(12), runtime=[1] * 12, cores=1)
    workload = replace(workload, labels={"user": np.arange(1, 13)}, names={"user": names})
    simulate(workload, platform=Platform.single(4), policy="easy").write(tmp_path)
    assert list(read_names(tmp_path)["user"].values()) == list(names[1:])
    with (tmp_path / "names.csv").open(newline="") as file:
        cells = [row[2] for row in csv.reader(file)][1:]
    assert [cell for cell in cells if cell[0] in "=+-@\t\r"] == []
    assert cells[:2] == ["ann", "'=cmd()"]


@pytest.mark.parametrize("kind", [None, str, frozenset])
def test_texts_of_every_table_are_escaped_and_read_back(tmp_path: Path, kind: Any) -> None:
    texts = ["=cmd()", "'=x", "-5", "", "'bob", "a,=b", "\tz", "Priority"]
    numbers = np.array([-1, -2, 3, 4, 5, 6, 7, 8])
    write_table(tmp_path / "logged.csv", {"job": numbers, "start": -numbers / 2, "reason": np.array(texts)})
    with (tmp_path / "logged.csv").open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    assert [cell for *_, cell in rows if cell[:1] in {*"=+-@\t\r"} - {""}] == []
    assert [row[0] for row in rows] == list(map(str, numbers))
    found = read_table(tmp_path, "logged", {"reason": frozenset(texts) if kind is frozenset else kind}.get)
    assert (found["reason"].tolist(), found["job"].tolist()) == (texts, numbers.tolist())
    np.testing.assert_array_equal(found["start"], -numbers / 2)


def test_cells_of_numbers_are_read_without_a_function_call_for_each(tmp_path: Path) -> None:
    write_table(tmp_path / "jobs.csv", {"job": np.arange(1000), "start": np.arange(1000) / 4})
    calls: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename == tables.__file__:
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        found = read_table(tmp_path, "jobs", {"job": int, "start": float}.get)
    finally:
        sys.setprofile(None)
    assert found["start"][5] == 1.25
    assert len(calls) < 20


def test_names_that_python_takes_for_numbers_are_read_back_as_names(tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_text("job,task\n1,1_0\n1,1_1\n")
    assert read_table(tmp_path, "tasks")["task"].tolist() == ["1_0", "1_1"]
