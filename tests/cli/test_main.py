"""The command line as a whole: verbs, exit codes, imports, and failures."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import gridsim.cli.list
from gridsim.cli import VERBS, build_parser, main
from gridsim.cli.arguments import GROUPS, check_names, declared, options_of
from gridsim.errors import CheckFailed

HEAVY = ("numpy", "numba", "simpy", "scipy", "matplotlib", "jinja2", "networkx", "rich")


def gridsim_process(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gridsim", *words], capture_output=True, text=True, cwd=cwd)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_imports_nothing_that_it_does_not_need(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from gridsim.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as stop:\n    assert stop.code == 0\n"
        f"print('\\nimported:', sorted(set({HEAVY}) & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout
    assert told.startswith("usage: gridsim")
    assert told.endswith("imported: []\n")


def test_help_names_every_verb_and_where_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert all(verb in told for verb in VERBS)
    assert "Start with: gridsim compare" in told


@pytest.mark.parametrize("words", [[verb] for verb in sorted(VERBS)] + [["workload", "check"], ["workload", "slice"]])
def test_a_slip_is_answered_by_a_few_lines(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--frobnicate"]) == 2
    told = capsys.readouterr().err
    assert "error:" in told
    assert len(told.splitlines()) <= 6


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("verb", [*declared()["command"], ""])
def test_every_command_has_help_of_80_columns(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = printed([*verb.split(), "--help"], capsys)
    assert told.startswith(f"usage: gridsim {verb}")
    assert printed(["help", *verb.split()], capsys) == told
    more = printed([*verb.split(), "--help-all"], capsys) if "\n  --help-all" in told else told
    assert max(map(len, more.splitlines())) <= 80
    assert max(map(len, told.splitlines())) <= 80
    titles = [line[:-1] for line in more.splitlines() if line[:-1] in GROUPS and line.endswith(":")]
    assert titles == sorted(titles, key=GROUPS.index)
    assert "\nadvanced:" not in told
    names = {name.split("/")[0] for name in options_of(verb)}
    assert all(f" {name}" in more for name in names if name.startswith("-"))


@pytest.mark.usefixtures("narrow")
def test_the_help_of_compare_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(["compare", "--help"], capsys)
    assert len(told.splitlines()) <= 110
    assert len(re.findall(r"^  (?:-|log\b)", told, flags=re.M)) <= 35
    assert told.count("\n  gridsim compare ") == 3


def test_without_words_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed([], capsys) == printed(["--help"], capsys)


@pytest.mark.parametrize("line", [it for found in declared()["command"].values() for it in found.get("examples", ())])
def test_examples_of_the_help_are_understood(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])[1:]
    check_names(words)
    build_parser(words[0]).parse_args(words)


def test_the_short_options_are_those_of_four_long_ones() -> None:
    short = {it["short"]: name for name, it in declared()["option"].items() if "short" in it}
    assert short == {"-p": "--policy", "-o": "--out", "-j": "--workers"}  # and -h
    args = build_parser("compare").parse_args(["compare", "-p", "easy", "-pfcfs", "-o", "out", "-j2"])
    assert (args.policy, args.out, args.workers) == (["easy", "fcfs"], "out", 2)


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("gridsim 0.")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["compare", "--warmup", "soon"],
            "'soon' is not a duration; expected for example 7200, 90m, 2h, 3d4h or 2:00:00",
        ),
        (["compare", "--overrun", "forgive"], "invalid choice: 'forgive'"),
        (["compare", "--on", "zero-runtim=skip"], "did you mean 'zero-runtime'? known: array-parent, "),
        (["compare", "--on", "zero-runtime=sum"], "unknown rule for zero-runtime 'sum'; known: error, repair, skip"),
        (["compare", "--on", "zero-runtime"], "'zero-runtime' has no rule; expected KIND=RULE"),
        (["compare", "--bound", "0"], "'0' is not a bound; expected seconds above 0, such as 10"),
        (["compare", "--bound=-1"], "'-1' is not a bound"),
        (["compare", "--bound", "inf"], "'inf' is not a bound"),
        (["compare", "--bound", "x"], "'x' is not a bound"),
    ],
)
def test_wrong_usage_exits_with_two(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["comparr"], "unknown command 'comparr'; did you mean 'compare'? known: "),
        (["workload", "chek", "log.swf"], "unknown command of gridsim workload 'chek'; did you mean 'check'?"),
        (
            ["compare", "--polizy", "easy"],
            "unknown option --polizy; did you mean --policy? (see gridsim compare --help)",
        ),
        (["--versoin"], "unknown option --versoin; did you mean --version? (see gridsim --help)"),
        (["compare", "--zzzz"], "unknown option --zzzz (see gridsim compare --help)"),
    ],
)
def test_a_wrong_name_is_answered_with_the_most_similar_one(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"gridsim: error: {told}")


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (["compare", "log.swf", "--cores", "4"], "--machine N"),
        (["compare", "--cores=4", "log.swf"], "--machine N"),
        (["calibrate", "log.swf", "--cores", "4"], "--machine N"),
        (["validate", "out", "--cores", "4"], "--machine N"),
        (["workload", "check", "log.swf", "--cores", "4"], "--machine N"),
        (["workload", "generate", "--cores", "4", "out.swf"], "--machine N"),
        (["whatif", "--cores", "+4"], "--add-cores N"),
        (["whatif", "--nodes", "+4"], "--add-nodes [PARTITION:]N"),
        (["compare", "--nodes", "gpu:+4"], "--add-nodes [PARTITION:]N"),
        (["run", "recipe.toml", "--nodes", "+4"], "--add-nodes [PARTITION:]N"),
        (["reproduce", "--format", "svg"], "--figures NAME"),
        (["compare", "--on-zero-runtime", "skip"], "--on zero-runtime=RULE"),
        (["quote", "--cores", "4", "--walltime", "1h", "--on-never-ran", "skip"], "--on never-ran=RULE"),
    ],
)
def test_a_renamed_option_names_the_new_one(words: list[str], new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert f"was renamed; give {new} (see gridsim " in capsys.readouterr().err


@pytest.mark.parametrize("verb", [name for name in declared()["command"] if name != "workload"])
def test_an_option_has_one_meaning_in_all_commands(verb: str) -> None:
    names = {name.split("/")[0] for name in options_of(verb)}
    assert ("--cores" in names or "--nodes" in names) == (verb in ("quote", "forecast"))
    assert not {"--on-zero-runtime", "--add-licences"} & names
    assert "--format" not in names or "log" in names or "file" in names
    fields = {
        name.split("/")[0]: {**declared()["option"][name.split("/")[0]], **declared()["option"][name]}
        for name in options_of(verb)
    }
    meanings = {
        "--machine": "number of cores of the machine",
        "--cores": "number of cores of the job",
        "--nodes": "number of nodes of the job",
        "--add-cores": "add N cores",
        "--add-nodes": "add N nodes",
        "--add-pool": "add N licences",
        "--format": "format of the log",
        "--figures": "figure",
        "--table": "format of the",
    }
    for name in names & meanings.keys():
        assert meanings[name] in fields[name]["help"], name


def test_bad_input_exits_with_two_and_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "politics"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("gridsim: error: unknown kind 'politics'; did you mean 'policies'?")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (CheckFailed("one job overlaps"), 1, "gridsim: error: one job overlaps"),
        (KeyboardInterrupt(), 130, "gridsim: interrupted"),
        (PermissionError(13, "Permission denied", "/etc/x"), 2, "gridsim: error: /etc/x: Permission denied"),
    ],
)
def test_the_error_of_a_verb_sets_the_exit_code(
    error: BaseException, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(args: object) -> int:
        raise error

    monkeypatch.setattr(gridsim.cli.list, "run", stopped)
    assert main(["list"]) == code
    assert capsys.readouterr().err.startswith(told)


def test_a_full_standard_output_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["list", "policies"]) == 2
    assert capsys.readouterr().err == "gridsim: error: standard output: No space left on device\n"


@pytest.mark.long
@pytest.mark.parquet
def test_a_second_interruption_ends_a_streamed_run_at_once_and_the_next_one_continues(tmp_path: Path) -> None:
    (tmp_path / "log.toml").write_text("[workload]\nmodel = 'lublin?jobs=600000&cores=128&estimates=multiples'\n")
    words = [sys.executable, "-m", "gridsim", "run", "log.toml", "--stream"]
    parts = tmp_path / "gridsim-results" / ".jobs.parquet.parts"
    for times in (1, 2):
        process = subprocess.Popen(
            words,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )
        before = set(parts.glob("0*"))
        while not set(parts.glob("0*")) - before and process.poll() is None:
            time.sleep(0.01)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        _, told = process.communicate()
        assert process.returncode in ((130,) if times == 1 else (130, -signal.SIGINT))
        assert told in ("", "gridsim: interrupted; the same command continues from here\n")
        assert (parts / "state").is_file()
    assert subprocess.run(words, cwd=tmp_path, capture_output=True).returncode == 0
    assert not parts.exists()


def test_a_warning_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def warned(args: object) -> int:
        print(warnings.formatwarning("compiled loops are not kept", UserWarning, __file__, 1), end="", file=sys.stderr)
        return 0

    monkeypatch.setattr(gridsim.cli.list, "run", warned)
    assert main(["list"]) == 0
    assert capsys.readouterr().err == "gridsim: warning: compiled loops are not kept\n"
    assert ".py:1:" in warnings.formatwarning("of a library", UserWarning, __file__, 1)


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    done = gridsim_process("list", "reservations", cwd=tmp_path)
    assert done.returncode == 0
    assert "first-fit" in done.stdout
    assert done.stderr == ""


@pytest.mark.long
@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"], ["workload", "generate", "{}/a.swf"]])
def test_a_reader_that_goes_away_is_met_quietly(words: list[str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gridsim", *(word.format(tmp_path) for word in words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
