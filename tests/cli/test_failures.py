"""Options and recipes with failures of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures, read_trace

SMALL = ["--jobs", "60", "--load", "0.8", "--platform", "8x4"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.csv"
    file.write_text("node,down,up\nn-0,20000,40000\nn-1,30000,60000\n")
    return file


def test_compare_with_failures(tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["compare", *SMALL, "--failures", str(trace), "--repair", "announced", "-p", "easy", "-p", "conservative"]
    assert main([*words, "--out", str(out), "--no-page", "--workers", "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"failures: 2 failures of {trace}; repairs announced" in text
    options = json.loads((out / "easy" / "run.json").read_text())["options"]["failures"]
    assert options["repair"] == "announced"
    numbers = json.loads((out / "easy" / "metrics.json").read_text())
    assert 0 < numbers["availability"] < 1
    assert [nodes for nodes, *_ in read_trace(out / "easy" / "failures.csv")] == [["n-0"], ["n-1"]]


def test_whatif_compares_with_the_run_without_failures(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", *SMALL, "--failures", str(trace), "--json", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)["changes"]
    assert [one["change"] for one in found] == ["as it is", "failures"]
    assert found[1]["metrics"]["wait_mean"] >= found[0]["metrics"]["wait_mean"]


def test_a_recipe_with_failures_and_its_validation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """
policy = "easy"
[workload]
model = "lublin?jobs=80&load=0.9"
[platform]
file = "8x4"
[failures]
mtbf = "20h"
mttr = "1h"
"""
    )
    out = tmp_path / "out"
    assert main(["run", str(recipe), "--out", str(out)]) == 0
    assert "interrupted_runs" in capsys.readouterr().out
    assert main(["validate", str(out)]) == 0
    (out / "failures.csv").write_text("node,down,up\nn-0,0,\n")
    assert main(["validate", str(out)]) == 1
    assert "on-absent-node" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ["compare", "--jobs", "20", "--mtbf", "10h"],
            "define its nodes, for example 128 nodes of",
        ),
        (["compare", *SMALL, "--mttr", "10h"], "--mttr has no effect without --failures, --mtbf or --maintenance"),
        (["compare", *SMALL, "--mtbf", "soon"], "'soon' is not a duration"),
        (["compare", *SMALL, "--mtbf", "9h", "--failures", "t.csv"], "together with a trace"),
        (["compare", *SMALL, "--failures", "missing.csv"], "cannot be read"),
        (["compare", *SMALL, "--mtbf", "9h", "--engine", "compiled"], "compiled cannot run this: nodes can fail"),
        (["compare", *SMALL, "--mtbf", "9h", "-p", "moldable-start"], "it chooses sizes of jobs; expected for example"),
    ],
)
def test_errors(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--workers", "1"]) == 2
    assert what in " ".join(capsys.readouterr().err.split())


def test_a_stream_has_no_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'policy = "easy"\n[workload]\nmodel = "lublin?estimates=multiples&jobs=50"\n[failures]\nmtbf = "9h"\n'
    )
    assert main(["run", str(recipe), "--stream", "--out", str(tmp_path / "out")]) == 2
    assert "failures" in capsys.readouterr().err


def test_an_unknown_node_of_a_trace_is_an_error_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.csv"
    file.write_text("node,down,up\ngpu-7,20000,40000\n")
    assert main(["compare", *SMALL, "--failures", str(file), "--workers", "1"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert f"{file}" in text
    assert "no node of the machine is named 'gpu-7'; it has n-0" in text


def test_whatif_with_maintenance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "windows.toml"
    file.write_text('[[window]]\nnodes = ["n-[0-3]"]\nbegin = 20000\nend = "20h"\nannounced = 0\n')
    assert main(["whatif", *SMALL, "--maintenance", str(file), "--json", "--workers", "1"]) == 0
    text = capsys.readouterr()
    assert "windows: 1 maintenance window" in text.err
    found = json.loads(text.out)["changes"]
    assert [one["change"] for one in found] == ["as it is", "maintenance"]


def test_a_recipe_with_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """
policy = "conservative"
[workload]
model = "lublin?jobs=80&load=0.9"
[platform]
file = "8x4"
[[windows]]
nodes = ["ALL"]
begin = "10h"
end = "14h"
"""
    )
    out = tmp_path / "out"
    assert main(["run", str(recipe), "--out", str(out)]) == 0
    assert "scheduled_availability" in capsys.readouterr().out
    assert "maintenance" in (out / "runs.csv").read_text()
    assert not (out / "failures.csv").exists()
    assert main(["validate", str(out)]) == 0
    assert json.loads((out / "run.json").read_text())["options"]["failures"]["windows"][0]["begin"] == "10h"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[window]]\nbegin = 5\n", "field 'window.0.nodes': is missing"),
        ('[[window]]\nnodes = ["m-1"]\nbegin = 5\n', "field 'window.0.nodes': no node of the machine is named 'm-1'"),
        ('[[window]]\nnodes = ["n-1"]\nbegin = 2026-11-21T07:00:00\n', "is a date, but the log has no start date"),
        ("[[windows]]\n", "did you mean 'window'?"),
        ("window", "is not valid TOML"),
    ],
)
def test_a_wrong_file_of_windows_is_an_error(
    text: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "windows.toml"
    file.write_text(text)
    assert main(["compare", *SMALL, "--maintenance", str(file), "--workers", "1"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert what in error
    assert str(file) in error


def test_explain_names_interruptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["compare", *SMALL, "--mtbf", "20h", "--mttr", "1h", "-p", "easy", "--no-page", "--workers", "1"]
    assert main([*words, "--out", str(out)]) == 0
    job = next(line.split(",")[0] for line in (out / "easy" / "runs.csv").read_text().splitlines() if "failure" in line)
    capsys.readouterr()
    assert main(["explain", str(out / "easy"), job]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "interrupted by absent nodes" in text
    assert "stopped for other jobs" not in text


def test_whatif_compares_failures_without_and_with_checkpoints(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["whatif", *SMALL, "--failures", str(trace), "--checkpoint", "10m", "--checkpoint-cost", "5s"]
    assert main([*words, "--json", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)["changes"]
    assert [one["change"] for one in found] == ["as it is", "failures", "failures and checkpoints"]
    assert found[2]["metrics"]["lost_core_hours"] < found[1]["metrics"]["lost_core_hours"]


def test_a_cost_without_checkpoints_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", *SMALL, "--checkpoint-cost", "5s"]) == 2
    assert "--checkpoint-cost has no effect without --checkpoint" in capsys.readouterr().err


def written(folder: Path, policy: str, overrun: Any, log: gs.Workload, failures: Failures) -> Path:
    machine = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=1, capacity={"cores": 4})])
    options = gs.Run(failures=failures, overrun=overrun)
    gs.simulate(log, platform=machine, policy=policy, options=options).write(folder)
    return folder


@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("remaining", ["original", "remaining"])
def test_runs_with_checkpoints_are_valid_and_judged_by_their_parts(
    overrun: str, remaining: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Job 1 loses 6 s at 50 s, restarts at 60 s and needs 5 + 60 + 2 * 2 s; the walltime ends job 2 in a checkpoint.
    log = gs.Workload.from_columns(submit=[0, 1], runtime=[100, 102], estimate=[110, 110], cores=[4, 4])
    saving = Checkpoints(20, cost=2, restart=5, requeue_estimate=remaining)
    out = written(tmp_path, "easy", overrun, log, Failures([(["n"], 50, 60)], checkpoints=saving))
    assert main(["validate", str(out)]) == 0
    assert "valid" in capsys.readouterr().out
    jobs = (out / "jobs.csv").read_text()
    assert ("killed_walltime" in jobs) == (overrun == "kill")
    runs = (out / "runs.csv").read_text()
    for file, old, new, what in (
        ("runs.csv", "1,1,0,50,failure,0,40,", "1,1,0,50,failure,0,20,", "wrong-end: 1 (jobs 1)"),
        ("runs.csv", "1,1,0,50,failure,0,40,", "1,1,0,50,failure,0,60,", "two-runs-at-once: 1 (jobs 1)"),
        ("jobs.csv", "completed", "killed_walltime", "wrong-status"),
    ):
        text = {"runs.csv": runs, "jobs.csv": jobs}[file]
        assert old in text
        (out / file).write_text(text.replace(old, new, 1))
        assert main(["validate", str(out)]) == 1
        assert what in capsys.readouterr().out
        (out / file).write_text(text)


def test_a_job_that_is_killed_in_the_first_checkpoint_of_all_is_valid(tmp_path: Path) -> None:
    log = gs.Workload.from_columns(submit=[0], runtime=[100], estimate=[102], cores=[4])
    out = written(tmp_path, "easy", "kill", log, Failures(checkpoints=Checkpoints(99, cost=5)))
    assert "1,1,0,102,killed_walltime,0,0,0,0,102" in (out / "runs.csv").read_text()
    assert main(["validate", str(out)]) == 0


def test_killed_runs_with_checkpoints_count_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Job 2 runs from 0 to 4, writes two checkpoints without cost, is preempted by a job with a deadline, and resumes.
    log = gs.Workload.from_columns(
        submit=[0, 0, 4], runtime=[10, 10, 6], cores=[2, 2, 2], deadline=[40, 40, 10], restartable=[False, True, False]
    )
    out = written(tmp_path, "fqops?kill_restart=true", "kill", log, Failures(checkpoints=Checkpoints(2)))
    assert (out / "killed_runs.csv").is_file()
    assert "2,1,0,4,preempted,0,4," in (out / "runs.csv").read_text()
    assert main(["validate", str(out)]) == 0
    capsys.readouterr()
    assert main(["explain", str(out), "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cut"], found["lost"], found["wait"]) == (1, 4, 6)
    assert found["stopped_by"] == [["other jobs", 1]]


def test_explain_names_each_reason_why_runs_were_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = gs.Workload.from_columns(submit=[0], runtime=[300], estimate=[100], cores=[4])
    saving = Checkpoints(10, save_before=20)
    out = written(tmp_path, "easy", "kill", log, Failures([(["n"], 50, 60)], checkpoints=saving))
    assert main(["validate", str(out)]) == 0
    reasons = [line.split(",")[4] for line in (out / "runs.csv").read_text().splitlines()[1:]]
    assert reasons == ["failure", "saved", "saved", "completed"]
    capsys.readouterr()
    assert main(["explain", str(out), "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "in 3 runs (1 interrupted by absent nodes and 2 ended by a save before the walltime)" in text


SITE = """JobID|Submit|Eligible|Start|End|Elapsed|Timelimit|State|AllocCPUS|NNodes|NodeList
1|2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:10:00|00:10:00|00:20:00|NODE_FAIL|4|1|n-0
1|2026-11-21T07:10:00|2026-11-21T07:12:01|2026-11-21T07:12:01|2026-11-21T07:25:01|00:13:00|00:20:00|COMPLETED|4|1|n-1
2|2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:00:00|2026-11-21T07:05:00|00:05:00|00:20:00|COMPLETED|4|1|n-1
3|2026-11-21T07:06:00|2026-11-21T07:06:00|2026-11-21T07:06:00|2026-11-21T07:08:00|00:02:00|00:20:00|NODE_FAIL|4|1|n-1
3|2026-11-21T07:08:00|2026-11-21T07:12:00|2026-11-21T07:12:00|2026-11-21T07:20:00|00:08:00|00:20:00|COMPLETED|4|1|n-1
4|2026-11-21T07:30:00|2026-11-21T07:30:00|2026-11-21T07:30:00|2026-11-21T07:31:00|00:01:00|00:20:00|COMPLETED|4|1|n-0
"""
NODE_EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
mini||2026-11-21T06:53:41|Unknown||Cluster Registered TRES|
mini|n-0|2026-11-21T07:10:00|2026-11-21T07:20:00|DOWN*|Not responding|slurm(64030)
mini|n-0|2026-11-21T07:1
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "log.txt").write_text(SITE)
    (tmp_path / "events.txt").write_text(NODE_EVENTS)
    (tmp_path / "recipe.toml").write_text(
        """
policy = "easy"
[workload]
file = "log.txt"
timezone = "Europe/Berlin"
[platform]
file = "2x4"
[failures]
file = ["events.txt", "log.txt"]
on_failure = "cancel"
"""
    )
    return tmp_path


def test_events_and_node_fail_runs_of_a_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, events = str(site / "log.txt"), str(site / "events.txt")
    words = ["compare", log, "--platform", "2x4", "-p", "easy", "--no-page", "--workers", "1", "--out", str(site / "o")]
    assert main([*words, "--failures", events, "--failures", log]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"failures: 1 failure of {events}, {log}, 1 failure inferred from NODE_FAIL runs; repairs unknown" in text
    assert f"failures: 1 damaged line of {events} left out: 4" in text
    assert read_trace(site / "o" / "easy" / "failures.csv") == [(["n-1"], 480, 720), (["n-0"], 600, 1200)]
    written = json.loads((site / "o" / "easy" / "run.json").read_text())["options"]["failures"]
    assert (written["trace"], written["inferred"], written["damaged_lines"]) == (1, 1, {events: [4]})


def test_validate_counts_the_node_fail_runs_that_are_interrupted(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = str(site / "log.txt"), str(site / "out")
    assert main(["run", str(site / "recipe.toml"), "--out", out]) == 0
    assert "failures: 1 damaged line" in capsys.readouterr().out
    assert main(["validate", out, "--failures", log]) == 0
    assert "NODE_FAIL: 2 of 2 recorded runs are interrupted in the recorded second" in capsys.readouterr().out
    (site / "recipe.toml").write_text((site / "recipe.toml").read_text().replace(', "log.txt"]', "]"))
    assert main(["run", str(site / "recipe.toml"), "--out", out]) == 0
    capsys.readouterr()
    assert main(["validate", out, "--failures", log, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["node_fail"] == {"runs": 2, "interrupted": 1}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (NODE_EVENTS, "has no runs; expected the output of sacct -D -P"),
        (SITE.replace("\n3|", "\n3_1|"), "line 5, field 'JobIDRaw': is missing"),
        ("JobID|State\n", "field 'nodelist': is missing"),
    ],
)
def test_validate_needs_runs(text: str, what: str, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(site / "recipe.toml"), "--out", str(site / "out")]) == 0
    (site / "other.txt").write_text(text)
    assert main(["validate", str(site / "out"), "--failures", str(site / "other.txt")]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert what in error
    assert "other.txt" in error


def test_events_need_the_clock_of_the_log(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *SMALL, "--failures", str(site / "events.txt"), "--workers", "1"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "events.txt line 3, field 'date': '2026-11-21T07:10:00' is a date, but the log has no start date" in error
