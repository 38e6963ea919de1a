"""The verb `workload`, and the loading options shared by all verbs."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from gridsim.cli import source, workload
from gridsim.cli.arguments import add_arguments
from gridsim.errors import InputError
from gridsim.scenario import Scenario
from gridsim.workload.formats.swf import read_swf
from gridsim.workload.problems import KINDS, option

LOG = """\
; Version: 2.2
; MaxProcs: 8
1 0 5 10 2 -1 -1 2 20 -1 1 1 -1 -1 1 -1 -1 -1
2 5 0 0 1 -1 -1 1 20 -1 0 1 -1 -1 1 -1 -1 -1
3 9 0 30 4 -1 -1 4 20 -1 1 2 -1 -1 1 -1 -1 -1
4 9 0 10 4 -1 -1 16 20 -1 1 2 -1 -1 1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def run(*words: object) -> int:
    parser = ArgumentParser()
    add_arguments(parser, "workload")
    return workload.run(parser.parse_args(list(map(str, words))))


def loaded(*words: object):
    parser = ArgumentParser()
    add_arguments(parser, "compare")
    return source.load(parser.parse_args(list(map(str, words))))


def test_check_lists_each_kind_with_its_lines_and_rule(log, capsys):
    assert run("check", log) == 0
    shown = capsys.readouterr().out
    for text in ("2 kept of 4", "8 cores (from: MaxProcs)", "--on zero-runtime=skip", "over-estimate", "too-wide"):
        assert text in shown
    assert "\x1b" not in shown


def test_check_as_json_is_what_the_reader_found(log, capsys):
    assert run("check", log, "--json", "--on", "too-wide=repair", "--machine", 4) == 0
    findings = json.loads(capsys.readouterr().out)
    assert (findings["jobs_read"], findings["jobs_kept"]) == (4, 3)
    assert (findings["cores"], findings["cores_from"]) == (4, "given")
    assert {entry["kind"]: (entry["first_lines"], entry["rule"]) for entry in findings["problems"]} == {
        "zero-runtime": ([4], "skip"),
        "too-wide": ([6], "repair"),
        "over-estimate": ([5], "keep"),
    }
    assert findings["missing"] == []


def test_check_says_what_a_log_lacks(tmp_path, capsys):
    (tmp_path / "log.swf").write_text("1 0 -1 10 2 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    run("check", tmp_path / "log.swf", "--json")
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert [text.split(" (")[0] for text in missing] == [
        "size of the machine",
        "requested walltimes",
        "wait times",
        "users",
    ]


def test_describe_prints_facts(log, capsys):
    assert run("describe", log) == 0
    shown = capsys.readouterr().out
    assert "2 jobs on 8 cores" in shown
    assert "runtime, s" in shown


def test_describe_as_json(log, capsys):
    run("describe", log, "--json")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["jobs"], facts["cores"], facts["accuracy"]["over"]) == (2, 8, 1)


def test_describe_needs_a_machine(tmp_path):
    (tmp_path / "log.swf").write_text(LOG.split("\n", 2)[2])
    with pytest.raises(InputError, match="--machine"):
        run("describe", tmp_path / "log.swf")


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz", "out.swf.xz"])
def test_convert_applies_the_rules_and_leaves_a_sound_log(log, tmp_path, capsys, name):
    out = tmp_path / name
    assert run("convert", log, out, "--on", "zero-runtime=repair", "--on", "over-estimate=repair") == 0
    assert "zero-runtime: 1 line (4) repaired: the run time becomes 1 s" in capsys.readouterr().out
    back = read_swf(out)
    assert back.job.tolist() == [1, 2, 3]
    assert back.provenance["problems"] == []


def test_convert_writes_the_machine_that_was_given(log, tmp_path):
    run("convert", log, tmp_path / "out.swf", "--machine", 16)
    back = read_swf(tmp_path / "out.swf")
    assert (back.cores_stated, len(back)) == (16, 3)


def test_slice_writes_the_part(log, tmp_path):
    run("slice", log, tmp_path / "out.swf", "--start", 1, "--origin")
    back = read_swf(tmp_path / "out.swf")
    assert back.job.tolist() == [3]
    assert back.submit.tolist() == [0]


def test_generate_writes_the_same_log_for_the_same_seed(tmp_path):
    for name in ("a.swf", "b.swf"):
        assert run("generate", tmp_path / name, "--jobs", 50, "--machine", 64, "--seed", 3) == 0
    assert (tmp_path / "a.swf").read_bytes() == (tmp_path / "b.swf").read_bytes()
    back = read_swf(tmp_path / "a.swf")
    assert (len(back), back.cores_stated) == (50, 64)
    assert back.provenance["problems"] == []


WRITES = {
    "convert": ["log.swf", "OUT"],
    "anonymise": ["log.swf", "OUT", "--key-text", "a key that is long enough"],
    "slice": ["log.swf", "OUT", "--start", "1"],
    "generate": ["OUT", "--jobs", "5", "--machine", "8"],
}
"""Actions that write one file."""


@pytest.mark.parametrize("action", WRITES)
def test_a_file_that_exists_stays_without_overwrite(action, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [action, *(word.replace("OUT", "out.swf") for word in WRITES[action])]
    (tmp_path / "out.swf").write_text("precious")
    with pytest.raises(InputError, match=r"out.swf: exists; give another file, or --overwrite"):
        run(*words)
    assert (tmp_path / "out.swf").read_text() == "precious"
    assert run(*words, "--overwrite") == 0
    assert (tmp_path / "out.swf").read_text().startswith("; Version: 2.2")


@pytest.mark.parametrize("action", ["convert", "anonymise", "slice"])
def test_the_log_is_never_replaced(action, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.swf").symlink_to(log)
    for output in ("log.swf", "link.swf"):
        with pytest.raises(InputError, match="is an input of this command"):
            run(action, *(word.replace("OUT", output) for word in WRITES[action]), "--overwrite")
    assert log.read_text() == LOG


def test_a_key_and_a_joined_table_are_inputs_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("id,at,took,cores\n1,0,10,1\n2,5,10,2\n")
    (tmp_path / "limits.csv").write_text("id,limit\n1,60\n2,60\n")
    (tmp_path / "map.toml").write_text(
        '[columns]\njob = "id"\nsubmit = {column = "at", time = "s"}\nruntime = "took"\n'
        'cores = "cores"\n[join.limits]\nfile = "limits.csv"\nkey = "id"\n'
        'columns = {estimate = "limit"}\n'
    )
    (tmp_path / "key").write_text("a key that is long enough")
    words = ["convert", "jobs.csv", "--mapping", "map.toml", "--anonymise", "key", "--overwrite"]
    assert run(*words, "out.swf") == 0
    for output in ("key", "map.toml", "limits.csv"):
        before = (tmp_path / output).read_bytes()
        with pytest.raises(InputError, match="is an input of this command"):
            run(*words, output)
        assert (tmp_path / output).read_bytes() == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
@pytest.mark.parametrize("to", ["a pipe", "a file"])
def test_standard_output_receives_the_log_and_nothing_else(output, to, log, tmp_path):
    words = [sys.executable, "-m", "gridsim", "workload", "convert", str(log), output]
    with (tmp_path / "out.swf").open("w") as file:
        file.write("; first line\n")
        file.flush()
        told = subprocess.PIPE if to == "a pipe" else file
        done = subprocess.run(words, stdout=told, stderr=subprocess.PIPE, text=True, check=True)
    run("convert", log, tmp_path / "expected.swf")
    expected = (tmp_path / "expected.swf").read_text()
    found = done.stdout if to == "a pipe" else (tmp_path / "out.swf").read_text().removeprefix("; first line\n")
    assert found == expected
    assert "/dev/stdout: 2 jobs" in done.stderr


def test_errors_reach_the_caller_with_exit_code_2(tmp_path):
    with pytest.raises(InputError) as caught:
        run("check", tmp_path / "absent.swf")
    assert caught.value.exit_code == 2


def test_a_rule_of_the_command_line_reaches_the_reader(log):
    with pytest.raises(InputError, match=r"log\.swf line 4, field 'run time'.*--on zero-runtime=skip"):
        run("check", log, "--on", "zero-runtime=error")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_option_with_its_rules(kind, log, capsys):
    for rule in KINDS[kind].rules:
        if rule != "error":
            assert run("check", log, *option(kind, rule).split()) == 0
    with pytest.raises(SystemExit):
        run("check", log, *option(kind, "ignore").split())


def test_several_files_of_sacct_are_checked_as_one_and_distinguished(tmp_path, capsys):
    header, line = "JobID|Submit|Start|End|AllocCPUS|State\n", "|1795244026|1795244030|1795244090|2|COMPLETED\n"
    january, february = tmp_path / "jan.txt", tmp_path / "feb.txt"
    january.write_text(header + "7" + line)
    february.write_text(header + "7" + line + "8" + line)
    run("check", january, february, "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs_read"], found["jobs_kept"]) == (2, 2)
    assert found["problems"][0]["first_places"] == [f"{january}:2"]
    recipe = {"workload": {"file": ["jan.txt", "feb.txt"]}}
    assert len(Scenario.from_mapping(recipe, path=tmp_path / "recipe.toml").load()) == 2


def test_load_reports_what_was_read(log):
    jobs, platform = loaded(log)
    assert (len(jobs), platform.cores, platform.origin) == (2, 8, "MaxProcs")
    assert source.summary_lines(jobs, platform) == [
        f"workload: {log}, 2 of 4 jobs",
        "machine: 8 cores (MaxProcs in the header)",
        "zero-runtime: 1 line (4) left out (--on zero-runtime=skip)",
        "too-wide: 1 line (6) left out (--on too-wide=skip)",
        "over-estimate: 1 line (5) kept unchanged (--on over-estimate=keep)",
    ]


def test_load_counts_allocated_cores_that_replaced_requests(tmp_path):
    (tmp_path / "log.swf").write_text("1 0 -1 10 2 -1 -1 -1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    lines = source.summary_lines(*loaded(tmp_path / "log.swf", "--machine", 4))
    assert "machine: 4 cores (given)" in lines
    assert any("allocated 1 times" in line for line in lines)


def test_without_a_log_the_built_in_workload_is_loaded():
    jobs, platform = loaded("--jobs", 40, "--machine", 32, "--seed", 5)
    assert (len(jobs), platform.cores) == (40, 32)
    assert "seed 5" in source.summary_lines(jobs, platform)[0]


def test_options_of_the_built_in_workload_are_refused_with_a_log(log):
    with pytest.raises(InputError, match="--load apply to the built-in workload"):
        loaded(log, "--load", 0.5)


def test_building_the_parser_imports_no_numpy():
    code = (
        "import sys; from gridsim.cli import build_parser, workload; build_parser('workload'); "
        "print([name for name in ('numpy', 'networkx', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
