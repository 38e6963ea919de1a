"""``gridsim compare``, end to end."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main
from gridsim.simulation import simulate
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import default_workload

LOG = """; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 3 1 -1 -1 -1 -1 -1
2 1 -1 10 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
3 2 -1 5 1 -1 -1 1 5 -1 1 4 1 -1 -1 -1 -1 -1
4 2 -1 0 1 -1 -1 1 5 -1 1 4 1 -1 -1 -1 -1 -1
"""
SMALL = ["--jobs", "300", "--no-page"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def compare(*words: str, out: Path) -> int:
    return main(["compare", *words, "--out", str(out)])


def test_without_a_log_the_built_in_workload_is_answered_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*SMALL, out=tmp_path / "out") == 0
    output = capsys.readouterr().out
    assert output.startswith("workload: lublin model, seed 1, 300 jobs\nmachine: 128 cores")
    for policy in ("fcfs", "easy", "conservative"):
        assert policy in output
        assert (tmp_path / "out" / policy / "jobs.csv").is_file()
    assert "wait, mean" in output
    assert (
        "The mean wait under fcfs is 6.2 times as high as under easy (95 % interval 1.7 to 22 times; "
        "p = 0.037, Holm-corrected for 3 comparisons)."
    ) in " ".join(output.split())
    assert "--shake 8 (default)" in output
    assert "not shaken" not in output
    assert output.count("In 8 replicas") == 1
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_comparison_that_is_not_shaken_by_default_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridsim.questions.run_replications.CHEAP", 100)
    shown = {}
    for words in ((), ("--shake", "0"), ("--policy", "easy")):
        assert compare(*SMALL, *words, out=tmp_path / "out") == 0
        shown[words] = "no shaking: 8 shaken workloads would take long" in capsys.readouterr().out
    assert shown == {(): True, ("--shake", "0"): False, ("--policy", "easy"): False}


def test_json_alone_is_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*SMALL, "--json", "--policy", "fcfs", "--policy", "easy", out=tmp_path) == 0
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert list(answer["metrics"]) == ["fcfs", "easy"]
    assert answer["baseline"] == "fcfs"
    assert answer["sentences"]
    assert "workload: lublin model" in output.err


def test_the_numbers_are_those_of_the_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*SMALL, "--json", "--policy", "sjf", "--policy", "easy", out=tmp_path) == 0
    answer = json.loads(capsys.readouterr().out)
    workload = default_workload(jobs=300)
    for policy in ("sjf", "easy"):
        known = simulate(workload, policy=policy).metrics()
        assert answer["metrics"][policy]["wait_mean"] == known["wait_mean"]
        written = json.loads((tmp_path / policy / "metrics.json").read_text())
        assert written["wait_mean"] == known["wait_mean"]


def test_a_log_is_answered_for_and_what_was_left_out_is_said(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(str(log), "--no-page", "--policy", "fcfs", "--policy", "easy", out=tmp_path / "out") == 0
    output = " ".join(capsys.readouterr().out.split())  # a long path is on a separate line
    assert "3 of 4 jobs" in output
    assert "machine: 4 cores (MaxProcs in the header)" in output
    assert "zero-runtime: 1 line (5) left out (--on zero-runtime=skip)" in output
    with (tmp_path / "out" / "easy" / "jobs.csv").open(newline="") as file:
        assert [row["start"] for row in csv.DictReader(file)] == ["0", "10", "2"]
    run = json.loads((tmp_path / "out" / "easy" / "run.json").read_text())
    assert run["workload"]["problems"][0]["rule"] == "skip"


def test_rules_and_cores_and_options_reach_the_run(log: Path, tmp_path: Path) -> None:
    words = ["--on", "zero-runtime=repair", "--machine", "8", "--overrun", "extend", "--instant", "per-event"]
    assert compare(str(log), "--no-page", *words, "--policy", "fcfs", "--policy", "easy", out=tmp_path / "out") == 0
    run = json.loads((tmp_path / "out" / "fcfs" / "run.json").read_text())
    assert run["platform"]["cores"] == 8
    assert (run["options"]["overrun"], run["options"]["instant"]) == ("extend", "per-event")
    assert len(read_workload(log, rules={"zero-runtime": "repair"})) == 4
    assert len((tmp_path / "out" / "fcfs" / "jobs.csv").read_text().splitlines()) == 1 + 4


def test_cuts_are_reported_where_they_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cuts = ["--warmup", "12h", "--cooldown", "90", "--bound", "60"]
    assert compare(*SMALL, *cuts, "--policy", "fcfs", "--policy", "easy", out=tmp_path) == 0
    run = json.loads((tmp_path / "easy" / "run.json").read_text())
    assert run["metrics"] == {"bound": 60.0, "warmup": 43200.0, "cooldown": 90.0}
    assert "12 h" in capsys.readouterr().out


def test_a_policy_of_a_file_is_compared_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("widest.py").write_text("class Widest:\n    def rank(self, queue, now):\n        return -queue.cores\n")
    assert compare(*SMALL, "--json", "--policy", "easy", "--policy", "widest.py:Widest", out=tmp_path / "out") == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == ["easy", "widest.py:Widest"]
    assert (tmp_path / "out" / "widest-py-Widest" / "jobs.csv").is_file()


def test_the_page_is_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--jobs", "200", "--policy", "fcfs", "--policy", "easy", out=tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "Page: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["--policy", "eazy"], "unknown policy 'eazy'; did you mean 'easy'?"),
        (["--policy", "fcfs", "--policy", "eazy"], "unknown policy 'eazy'"),
        (["--policy", "easy", "--policy", "easy"], "'easy' is given twice"),
        (["--policy", "absent.py:Mine"], "absent.py: no such file"),
        (["--policy", "depth?k=x"], "depth: 'x' is not int"),
        (["absent.swf"], "absent.swf"),
        (["--jobs", "0"], "0"),
        (["--machine", "0"], "0"),
    ],
)
def test_bad_input_exits_with_two_and_leaves_nothing(
    words: list[str], output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [] if {"--jobs", "absent.swf"} & set(words) else ["--jobs", "50"]
    assert compare(*words, *jobs, "--no-page", out=tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert error.startswith("gridsim: error: ")
    assert output in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", [["compare", "absent.swf"], ["run", "absent.toml"]])
def test_parquet_without_its_package_is_refused_before_anything_is_read(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main([*verb, "--table", "parquet", "--out", str(tmp_path / "out")]) == 2
    assert "Parquet needs duckdb; pip install duckdb" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_order_inside_an_instant_and_what_happens_at_the_walltime_are_reported(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--no-page", "--policy", "fcfs"]
    assert compare(str(log), *words, out=tmp_path / "out") == 0
    assert "\nsimulation: --instant batched, --overrun kill\n" in capsys.readouterr().out
    assert compare(str(log), *words, "--instant", "per-event", "--overrun", "extend", out=tmp_path / "out") == 0
    assert "\nsimulation: --instant per-event, --overrun extend\n" in capsys.readouterr().out


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_run_json_reports_the_folder_of_each_policy(tmp_path: Path) -> None:
    assert compare(*SMALL, "--policy", "fcfs", "--policy", "easy?ordering=sjf", out=tmp_path) == 0
    output = json.loads((tmp_path / "run.json").read_text())
    assert output["folders"] == {"fcfs": "fcfs", "easy?ordering=sjf": "easy-ordering-sjf"}
    assert output["options"]["instant"] == "batched"
    assert output["policies"]["fcfs"] == "Backfilling(ordering=Fifo(), reserve=Strict())"


@pytest.mark.long
def test_files_of_an_earlier_compare_are_removed_by_a_later_one(tmp_path: Path) -> None:
    assert compare("--jobs", "100", "--policy", "fcfs", "--policy", "sjf", "--policy", "easy", out=tmp_path) == 0
    (tmp_path / "sjf" / "notes.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "jobs.csv").write_text("")
    assert compare(*SMALL, "--policy", "easy", "--policy", "conservative", out=tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"sjf", "easy", "conservative", "other"}
    assert "notes.txt" in names(tmp_path / "sjf")
    assert "report.html" not in names(tmp_path)


@pytest.mark.long
def test_runs_that_were_killed_go_with_the_rest_of_a_policy(tmp_path: Path) -> None:
    words = ["--jobs", "400", "--load", "1.2", "--transform", "deadlines?stringency=0.3"]
    assert compare(*words, "--policy", "easy", "--policy", "fqops?kill_restart=true", out=tmp_path) == 0
    killing = next(folder for folder in tmp_path.iterdir() if folder.is_dir() and folder.name != "easy")
    assert "killed_runs.csv" in names(killing)
    assert compare(*SMALL, "--policy", "easy", "--policy", "fcfs", out=tmp_path) == 0
    assert not killing.exists()


def test_a_run_json_that_is_not_ours_moves_nothing(tmp_path: Path) -> None:
    for content in ("[]", "{", '{"folders": {"a": "other"}}', '{"versions": {}, "folders": {"a": "../other", "b": 3}}'):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / "run.json").write_text(content)
        for folder in (tmp_path / "other", tmp_path / "out" / "other"):
            folder.mkdir(exist_ok=True)
            (folder / "jobs.csv").write_text("")
        assert compare(*SMALL, "--policy", "easy", out=tmp_path / "out") == 0
        assert names(tmp_path / "other") == names(tmp_path / "out" / "other") == {"jobs.csv"}


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "{0}/other", "a/b"])
def test_folders_of_policies_are_names_in_the_result_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, name = tmp_path / "out", name.format(tmp_path)
    (tmp_path / "recipe.toml").write_text("[workload]\nmodel = 'lublin?jobs=20'\n")
    for folder in (tmp_path / "other", out):
        assert main(["run", str(tmp_path / "recipe.toml"), "--out", str(folder)]) == 0
    (out / "run.json").write_text(json.dumps({"versions": {}, "folders": {"a": name}}))
    assert main(["explain", str(out)]) == 2
    assert f"run.json line 1, field 'folders.a': is {name!r}"[:60] in capsys.readouterr().err
    assert main(["run", str(tmp_path / "recipe.toml"), "--out", str(out)]) == 0
    assert names(out) == names(tmp_path / "other") == {"jobs.csv", "metrics.json", "run.json"}


def test_a_run_and_a_compare_in_the_same_folder_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[workload]\nmodel = 'lublin?jobs=20'\n")
    out = tmp_path / "out"
    assert compare(*SMALL, "--policy", "easy", "--policy", "fcfs", out=out) == 0
    assert main(["run", str(tmp_path / "recipe.toml"), "--out", str(out)]) == 0
    assert names(out) == {"jobs.csv", "metrics.json", "run.json"}
    assert compare(*SMALL, "--policy", "easy", out=out) == 0
    tables = ("metrics", "differences", "groups", "distributions", "over_time", "fairness", "usage")
    assert names(out) == {"easy", "metrics.json", "run.json", *(f"{name}.csv" for name in tables)}


def test_files_of_numbers_that_a_later_compare_has_not_go(log: Path, tmp_path: Path) -> None:
    words = [*SMALL, "--transform", "deadlines?stringency=0.3"]
    assert compare(*words, "--policy", "easy", "--policy", "fcfs", out=tmp_path / "out") == 0
    assert {"fairness.csv", "deadlines.csv"} <= names(tmp_path / "out")
    assert compare(str(log), "--no-page", "--policy", "easy", "--policy", "fcfs", out=tmp_path / "out") == 0
    assert not {"fairness.csv", "deadlines.csv"} & names(tmp_path / "out")


@pytest.mark.long
def test_the_page_contains_the_numbers_of_its_pictures(tmp_path: Path) -> None:
    assert compare("--jobs", "300", "--policy", "easy", "--policy", "fcfs", out=tmp_path) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    linked = set(re.findall(r'<a class="numbers" href="#data-([^"]*)"', text))
    embedded = set(re.findall(r'<a id="data-([^"]*)" download', text))
    assert {"distributions.csv", "over_time.csv", "groups.csv"} <= linked <= embedded <= names(tmp_path)
    assert len(re.findall('<a class="numbers"[^>]*>[^<]*</a></figcaption>', text)) == text.count("<figcaption>")


@pytest.mark.long
def test_a_real_log_has_its_distance_from_the_recorded_schedule(tmp_path: Path) -> None:
    logged = re.sub(r"(?m)^(\d+ \d+) -1", r"\1 7", LOG)
    (tmp_path / "log.swf").write_text(logged)
    assert compare(str(tmp_path / "log.swf"), "--policy", "fcfs", "--policy", "easy", out=tmp_path / "out") == 0
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert text.index("Results</h2>") < text.index("Not validated: name the site") < text.index("Metrics</h2>")


def test_a_replay_far_from_the_log_is_warned_of_above_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.swf").write_text(re.sub(r"(?m)^(\d+ \d+) -1", r"\1 777", LOG))
    words = [str(tmp_path / "log.swf"), "--policy", "today=fcfs", "--policy", "easy", "--own", "today", "--no-page"]
    assert compare(*words, out=tmp_path / "out") == 0
    output = " ".join(capsys.readouterr().out.split())
    assert (
        output.count("Warning: the simulation differs from the recorded log. Under today, the site's own policy") == 1
    )
    assert output.index("Warning: ") < output.index("wait, mean") < output.index("Validation of today, the site's own")
    assert compare(*words[:-3], "--own", "fcfs", out=tmp_path / "out") == 2
    assert "unknown policy in --own 'fcfs'" in capsys.readouterr().err


@pytest.mark.long
def test_the_folders_of_a_file_are_not_part_of_its_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wide.py").write_text(
            "class Wide:\n    def rank(self, queue, now):\n        return -queue.cores"
        )
    there, too = (f"easy?ordering={tmp_path}/{name}/wide.py:Wide" for name in ("a", "b"))
    assert compare(*SMALL, "--json", "--policy", "easy", "--policy", there, out=tmp_path / "out") == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == ["easy", "easy?ordering=wide.py:Wide"]
    assert compare(*SMALL, "--json", "--policy", there, "--policy", too, out=tmp_path / "out") == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == [there, too]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert compare(*SMALL, "--policy", "fcfs", "--policy", "easy", out=tmp_path / "file" / "out") == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_policy_that_decides_something_impossible_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("class Wrong:\n    def rank(self, queue, now):\n        return queue.cores * float('nan')\n")
    assert compare(*SMALL, "--policy", f"{path}:Wrong", "--policy", "easy", out=tmp_path / "out") == 2
    assert "Wrong object" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def run_in_a_process(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gridsim", "compare", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_two_processes_write_the_same_numbers(tmp_path: Path) -> None:
    written: list[dict[str, Any]] = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        done = run_in_a_process([*SMALL, "--policy", "easy", "--policy", "random"], folder, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        written.append({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")})
    assert written[0] == written[1]
    assert {"gridsim-results/shake.csv", "gridsim-results/shake_pairs.csv"} <= written[0].keys()
    assert len(written[0]) == 17


GRID = """[platform]
router = "root"
children = [{ cluster = "east", cores = 2 }, { cluster = "west", cores = 1 }]
[network]
ccr = "1/5"
"""


def workflow() -> dict[str, Any]:
    """A fork: first, then two tasks at once, then last."""
    parents: dict[str, list[str]] = {"first": [], "left": ["first"], "right": ["first"], "last": ["left", "right"]}
    tasks = [
        {
            "name": name,
            "id": name,
            "parents": before,
            "children": [other for other, needs in parents.items() if name in needs],
        }
        for name, before in parents.items()
    ]
    runtimes = {"first": 2.5, "left": 4.0, "right": 3.0, "last": 1.0}
    return {
        "name": "fork",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks},
            "execution": {
                "makespanInSeconds": 7.5,
                "executedAt": "2023-05-04T10:54:31Z",
                "tasks": [{"id": name, "runtimeInSeconds": runtime} for name, runtime in runtimes.items()],
            },
        },
    }


def of_workflow(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    policies = ["--policy", "fifo-job", "--policy", "p-slr", "--policy", "easy"]
    assert compare(str(path), "--platform", str(grid), *policies, "--json", out=tmp_path / "out") == 0
    return json.loads(capsys.readouterr().out), (tmp_path / "out" / "report.html").read_text()


@pytest.mark.long
def test_a_workflow_is_compared_by_its_schedule_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fork.json"
    path.write_text(json.dumps(workflow()))
    answer, page = of_workflow(path, tmp_path, capsys)
    assert answer["metrics"]["fifo-job"]["mean_slr"] == 1.0
    assert answer["metrics"]["fifo-job"]["makespan"] == 7.5
    assert answer["metrics"]["fifo-job"]["sd_slr"] is None
    assert answer["metrics"]["easy"]["utilisation"] == pytest.approx(10.5 / (3 * 7.5))
    assert answer["sentences"][0].startswith("The job finishes at the same time under every policy")
    assert "1 job" in page
    assert "4 tasks" in page
    assert "east (2 cores), west (1 core)" in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "tasks"),
    [
        ("generated", 4),
        pytest.param("workflows/helloworld-forkjoin-10-chameleon.json", 10, marks=pytest.mark.others),
    ],
)
def test_a_published_workflow_is_compared(
    others: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, tasks: int
) -> None:
    if source == "generated":
        path = tmp_path / "fork.json"
        path.write_text(json.dumps(workflow()))
    else:
        path = others(source)
    answer, page = of_workflow(path, tmp_path, capsys)
    assert all(numbers["completed"] == 1 for numbers in answer["metrics"].values())
    assert all(numbers["mean_slr"] >= 1 for numbers in answer["metrics"].values())
    assert f"{tasks} tasks" in page


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_figures_for_a_paper_are_written_and_those_of_an_earlier_run_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = ["compare", "--jobs", "60", "--policy", "fcfs", "--policy", "easy", "--no-page"]
    assert main([*ask, "--figures", "svg"]) == 0
    figures = tmp_path / "gridsim-results" / "figures"
    assert {path.name for path in figures.iterdir()} >= {"waits.svg", "queue.svg"}
    assert main([*ask, "--figures", "pdf"]) == 0
    assert {path.suffix for path in figures.iterdir()} == {".pdf"}
    assert main(ask) == 0
    assert not figures.exists()
