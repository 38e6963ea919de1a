"""Priority classes and preemption from the command line, in recipes, tables and worlds, and their result folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.metrics.groups import by_label
from gridsim.metrics.utilisation import queue_length
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from gridsim.questions.schedules import JobSchedule, read_schedules
from gridsim.scenario import Scenario, transformed
from gridsim.testing.invariants import violations
from gridsim.workload.formats.table.writer import write_jobs
from gridsim.workload.read import read_workload

LOG = """job,user,submit,runtime,estimate,cores,class,stop
1,a,0,100,200,2,,
2,a,0,100,200,2,-1,0
3,b,30,50,100,2,2,1
4,c,40,50,100,2,1,
"""
MAPPING = """[columns]
job = "job"
user = "user"
submit = { column = "submit", time = "s" }
runtime = "runtime"
estimate = "estimate"
cores = "cores"
priority = "class"
preemptible = "stop"
"""


@pytest.fixture
def log(tmp_path: Path) -> list[str]:
    """Words that name a table of jobs with classes, of which job 2 cannot be preempted."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    return [str(tmp_path / "log.csv"), "--mapping", str(tmp_path / "mapping.toml"), "--machine", "4"]


def recipe(folder: Path, policy: str, more: str = "", transform: str = "classes?by=user&1=2&2=-1") -> Path:
    file = folder / "recipe.toml"
    file.write_text(
        f'policy = "{policy}"\n[workload]\nmodel = "lublin?jobs=200&load=0.9&users=6&cores=64"\n'
        f'transforms = ["{transform}"]\n[platform]\nfile = "16x4"\n{more}'
    )
    return file


def table(path: Path) -> list[dict[str, str]]:
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


# -- classes of jobs ---------------------------------------------------------------------------------------------------


def test_a_table_has_classes_and_jobs_that_are_not_preemptible(log: list[str], tmp_path: Path) -> None:
    found = read_workload(log[0], mapping=log[2])
    assert found.labels["priority"].tolist() == [0, -1, 2, 1]
    assert found.labels["preemptible"].tolist() == [1, 0, 1, 1]
    write_jobs(found, tmp_path / "again")
    again = read_workload(str(tmp_path / "again" / "jobs.csv"), mapping=str(tmp_path / "again" / "mapping.toml"))
    for name in ("priority", "preemptible"):
        assert np.array_equal(again.labels[name], found.labels[name])
    assert found.to_pandas()["priority"].tolist() == [0, -1, 2, 1]


def test_a_class_that_is_no_whole_number_is_an_error_with_its_row(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text(LOG.replace(",2,1,\n", ",2,1.5,\n"))
    assert main(["compare", *log, "--no-page", "--out", str(tmp_path / "out")]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "row 5: column 'class' is '1.5'; expected a whole number of any sign" in text


def test_a_priority_in_a_slurm_log_is_no_class(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    rows = ["JobID|Submit|Eligible|Start|End|Elapsed|Timelimit|State|AllocCPUS|NNodes|NodeList|Priority"]
    times = "2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:10:00|00:10:00|00:20:00"
    rows += [f"{job}|{times}|COMPLETED|4|1|n-0|{1000 * job}" for job in (1, 2)]
    file.write_text("\n".join(rows) + "\n")
    found = read_workload(str(file))
    assert "priority" not in found.labels
    assert found.logged["priority"].tolist() == [1000, 2000]


@pytest.mark.parametrize(
    ("transform", "what"),
    [
        ("classes?by=user&d=1", "unknown user 'd'; known: a, b, c"),
        ("classes?by=qos&d=1", "field 'by': is 'qos', which the jobs do not have"),
        ("classes?by=user", "gives no class"),
        ("classes?by=user&a=high", "field 'a': is 'high'; expected a whole number"),
        ("classes?by=job&a=1", "unknown value of classes?by 'job'; known: account, partition, qos, user"),
    ],
)
def test_errors_of_the_transform(transform: str, what: str, log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *log, "--transform", transform, "--no-page"]) == 2
    assert what in " ".join(capsys.readouterr().err.split())


def test_the_transform_sets_classes_by_name() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1, 2], runtime=[1, 1, 1], cores=1, labels={"qos": [1, -1, 2]})
    found = transformed(jobs, ["classes?by=qos&2=-3"])
    assert found.labels["priority"].tolist() == [0, 0, -3]
    assert found.provenance["transforms"][-1]["levels"] == {"2": -3}


def test_a_world_accepts_classes_if_its_policy_preempts() -> None:
    jobs = gs.Workload.from_columns(submit=[0], runtime=[100], cores=[4])
    world = gs.World(jobs, gs.Platform.single(4), "easy?preempt=requeue")
    world.run(until=10)
    world.submit({"cores": 4, "runtime": 5, "priority": 3})
    world.submit({"cores": 4, "runtime": 5})
    world.run()
    found = world.result().jobs
    assert found["start"].tolist() == [15, 10, 115]
    assert found["priority"].tolist() == [0, 3, 0]
    assert found["preemptions"].tolist() == [1, 0, 0]
    world = gs.World(jobs, gs.Platform.single(4), "easy")
    with pytest.raises(InputError, match="has 'priority', which no job of the workload has"):
        world.submit({"cores": 4, "runtime": 5, "priority": 3})


def test_jobs_of_a_world_without_a_class_are_in_class_0() -> None:
    jobs = gs.Workload.from_columns(submit=[0], runtime=[100], cores=[4], labels={"priority": [-2]})
    world = gs.World(jobs, gs.Platform.single(4), "easy?preempt=requeue")
    world.run(until=10)
    world.submit({"cores": 4, "runtime": 5})
    world.run()
    assert world.result().jobs["start"].tolist() == [15, 10]


# -- recipes -----------------------------------------------------------------------------------------------------------


def test_the_preemption_of_a_recipe_is_that_of_its_policy(tmp_path: Path) -> None:
    file = recipe(tmp_path, "easy", '[preemption]\nmode = "requeue"\nvictims = "least-lost"\ngrace = 60\nmax = 3\n')
    assert (
        "preempt=Requeue(victims='least-lost', grace=60.0, max=3, min_run=0.0)" in Scenario.from_toml(file).run().policy
    )
    text = file.read_text()
    file.write_text(text.replace('"easy"', '"easy?preempt=suspend"'))
    assert "Suspend" in Scenario.from_toml(file).run().policy


@pytest.mark.parametrize(
    ("policy", "more", "what"),
    [
        ("easy", "grace = 1\n", "field 'preemption': has no mode"),
        ("easy", 'mode = "kill"\n', "unknown preemption 'kill'"),
        ("easy", 'mode = "requeue"\ngrace = -1\n', "is -1"),
        ("easy", 'mode = "suspend"\ngrace = 5\n', "has no effect"),
        ("easy", 'mode = "requeue"\nvictims = "oldest"\n', "known: checkpointed, least-lost, youngest"),
        ("msb", 'mode = "requeue"\n', "preempt"),
        ("moldable", 'mode = "requeue"\n', "is not supported by"),
    ],
)
def test_errors_of_the_preemption_of_a_recipe(
    policy: str, more: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(recipe(tmp_path, policy, f"[preemption]\n{more}"))]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert what in text
    assert "recipe.toml" in text


# -- rejected ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ["-p", "easy?preempt=suspend", "--engine", "compiled"],
            "compiled cannot run this: running jobs can be preempted",
        ),
        (["-p", "conservative?preempt=requeue", "--engine", "compiled"], "running jobs can be preempted"),
        (["-p", "easy", "--engine", "compiled"], "compiled cannot run this: jobs have priority classes"),
        (["-p", "fqops?kill_restart=true"], "field 'priority': classes of jobs are not supported by Guaranteed"),
        (["-p", "moldable"], "field 'priority': classes of jobs are not supported by"),
        (["-p", "moldable?preempt=requeue"], "unknown parameter of moldable 'preempt'"),
    ],
)
def test_what_has_no_classes(words: list[str], what: str, log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *log, "--no-page", "--workers", "1", *words]) == 2
    assert what in " ".join(capsys.readouterr().err.split())


@pytest.mark.parquet
def test_a_stream_has_no_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "stream.toml"
    file.write_text('policy = "easy?preempt=requeue"\n[workload]\nmodel = "lublin?estimates=multiples&jobs=50"\n')
    assert main(["run", str(file), "--stream", "--out", str(tmp_path / "out")]) == 2
    assert "running jobs can be preempted" in capsys.readouterr().err
    Scenario.from_toml(recipe(tmp_path, "easy")).run().write(tmp_path / "classes", table="parquet")
    file.write_text('policy = "easy"\n[workload]\nfile = "classes/jobs.parquet"\n')
    assert main(["run", str(file), "--stream", "--out", str(tmp_path / "out")]) == 2
    assert "field 'priority': is a column of the file; priority classes need the whole run" in capsys.readouterr().err


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_folder_contains_suspensions_and_their_causes(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Job 3 suspends job 1, since job 2 cannot be preempted; job 4 of class 1 follows job 3, and job 1 job 2.
    out = tmp_path / "out"
    assert main(["compare", *log, "-p", "easy?preempt=suspend", "-p", "easy", "--no-page", "--out", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Under easy?preempt=suspend, running jobs were suspended 1 time, for 0.0194 hours in all." in text
    rows = table(out / "easy-preempt-suspend" / "jobs.csv")
    assert [(row["priority"], row["preemptions"], row["suspended"], row["end"]) for row in rows] == [
        ("0", "1", "70", "170"),
        ("-1", "0", "0", "100"),
        ("2", "0", "0", "80"),
        ("1", "0", "0", "130"),
    ]
    assert (out / "easy-preempt-suspend" / "suspensions.csv").read_text() == "job,start,from,until,by\n1,0,30,100,3\n"
    assert "1,1,0,170,completed,,0,100,0,0,0,70" in (out / "easy-preempt-suspend" / "runs.csv").read_text()
    assert not (out / "easy" / "runs.csv").exists()
    assert "preemptions" not in (out / "easy" / "jobs.csv").read_text()
    assert main(["explain", str(out / "easy-preempt-suspend"), "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "waited 1 min 10 s under" in text
    assert "in addition to 30 s in 1 run suspended for other jobs" in text
    numbers = json.loads((out / "easy-preempt-suspend" / "metrics.json").read_text())
    assert (numbers["suspensions"], numbers["suspended_hours"], numbers["preempted"]) == (1, 70 / 3600, 0)
    assert numbers["utilisation"] == pytest.approx(600 / (4 * 170))


def test_validate_finds_wrong_suspensions(log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["compare", *log, "-p", "easy?preempt=suspend", "--no-page", "--out", str(out)]) == 0
    folder = next(out.glob("easy*"))
    assert main(["validate", str(folder)]) == 0
    capsys.readouterr()
    file = folder / "suspensions.csv"
    file.write_text("job,start,from,until,by\n1,0,30,120,3\n")
    assert main(["validate", str(folder)]) == 1
    assert "wrong-end: 1 (jobs 1): 170 s instead of 190 s" in capsys.readouterr().out
    file.write_text("job,start,from,until,by\n1,0,60,130,3\n")
    assert main(["validate", str(folder)]) == 1
    assert "oversubscribed" in capsys.readouterr().out


def test_runs_contain_the_job_for_which_they_were_stopped(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    policies = ["easy?preempt=requeue", "easy?preempt=cancel"]
    words = [word for policy in policies for word in ("-p", policy)]
    assert main(["compare", *log, *words, "--no-page", "--out", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 run of 1 job was preempted, for a job of class 2; 0.0167 core-hours of work were lost" in text
    runs = table(out / "easy-preempt-requeue" / "runs.csv")
    assert [(row["job"], row["reason"], row["by"], row["lost"]) for row in runs[:2]] == [
        ("1", "preempted", "3", "30"),
        ("1", "completed", "", "0"),
    ]
    assert not (out / "easy-preempt-requeue" / "killed_runs.csv").exists()
    jobs = table(out / "easy-preempt-cancel" / "jobs.csv")
    assert (jobs[0]["status"], jobs[0]["cancelled_by"], jobs[0]["preemptions"]) == ("preempted", "3", "1")
    assert json.loads((out / "easy-preempt-cancel" / "metrics.json").read_text())["preempted"] == 1
    for folder in out.glob("easy*"):
        assert main(["validate", str(folder)]) == 0


@pytest.mark.parametrize("mode", ["suspend", "requeue(grace=100)", "checkpoint", "cancel"])
@pytest.mark.parametrize("failing", [False, True])
def test_folders_have_what_the_record_has(mode: str, failing: bool, tmp_path: Path) -> None:
    more = '[failures]\nmtbf = "60h"\nmttr = "2h"\n[checkpoint]\ninterval = "1h"\ncost = "1m"\n' if failing else ""
    result = Scenario.from_toml(recipe(tmp_path, f"easy?preempt={mode}", more)).run()
    record = result.record
    assert record.preemptions.sum() > 5
    assert violations(record, platform=result.platform) == []
    result.write(tmp_path / "out")
    assert main(["validate", str(tmp_path / "out")]) == 0
    (read,) = read_schedules(tmp_path / "out").values()
    made = JobSchedule.of(record, result.platform)
    assert np.array_equal(read.start, made.start, equal_nan=True)
    assert (read.cut is None) == (made.cut is None)
    if made.cut is not None and read.cut is not None:
        for name in made.cut._fields:
            assert np.allclose(getattr(read.cut, name), getattr(made.cut, name)), name


def test_suspended_jobs_wait_and_hold_no_cores() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 30], runtime=[100, 50], cores=[4, 4], labels={"priority": [0, 1]})
    record = gs.simulate(jobs, platform=gs.Platform.single(4), policy="easy?preempt=suspend").record
    assert sorted(zip(*(column.tolist() for column in record.holds()), strict=True)) == [
        (0, 30_000_000, 4),
        (30_000_000, 80_000_000, 4),
        (80_000_000, 150_000_000, 4),
    ]
    assert record.held.tolist() == [100, 50]
    assert record.in_stretches.start_us.tolist() == [80_000_000, 30_000_000]
    queue = queue_length(record)
    assert [queue.at(instant) for instant in (29, 30, 79, 80)] == [0, 1, 1, 0]


def test_jobs_are_grouped_by_class_also_by_that_of_unknown_labels() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1, 2], runtime=[9, 1, 1], cores=1, labels={"priority": [-1, 0, 2]})
    record = gs.simulate(jobs, platform=gs.Platform.single(4), policy="easy").record
    groups = by_label(record, "priority")
    assert [groups.names[row] for row in groups.index] == ["class -1", "class 0", "class 2"]


@pytest.mark.parametrize("policy", ["easy", "conservative", "easy?ordering=wfp3"])
def test_a_run_with_one_class_has_the_files_of_a_run_without(policy: str, tmp_path: Path) -> None:
    both: list[dict[str, Any]] = []
    for name, given in (("plain", policy), ("able", f"{policy}{'&' if '?' in policy else '?'}preempt=requeue")):
        file = recipe(tmp_path, given)
        file.write_text("\n".join(line for line in file.read_text().splitlines() if "transforms" not in line))
        Scenario.from_toml(file).run().write(tmp_path / name)
        files = {each.name: each.read_bytes() for each in (tmp_path / name).iterdir() if each.name != "run.json"}
        both.append(files)
    assert both[0] == both[1]


def test_lost_work_of_preempted_runs_is_without_what_checkpoints_kept() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 30], runtime=[100, 50], cores=[4, 4], labels={"priority": [0, 1]})
    options = gs.Run(failures=Failures(checkpoints=Checkpoints(20)))
    platform = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4})])
    result = gs.simulate(jobs, platform=platform, policy="easy?preempt=requeue", options=options)
    assert result.metrics()["preempted_core_hours"] == pytest.approx(10 * 4 / 3600)
