"""``--workers``: the same answer, files and errors with any number of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gridsim.cli import main, source, terminal

LOG = ["--jobs", "150", "--load", "1.1", "--machine", "64"]


def written(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ["compare", *LOG, "--policy", "fcfs", "--policy", "easy"],
        ["whatif", *LOG[:4], "--machine", "64", "--add-cores", "+25%", "--load-times", "1.2"],
        ["whatif", *LOG[:4], "--machine", "64", "--halve"],
    ],
    ids=["compare", "whatif", "halve"],
)
def test_workers_change_nothing_in_what_is_written_and_reported(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for count in ("1", "2"):
        line = [*words, "--out", "out", "--workers", count]
        monkeypatch.setattr("sys.argv", ["gridsim", *line])
        assert main(line) == 0
        found.append((capsys.readouterr().out, written(tmp_path / "out")))
    (output, files), others = found
    assert (output, files) == others
    assert any(name.endswith(".html") for name in files)


def test_workers_replay_as_this_process_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.swf"
    log.write_text(
        "; MaxProcs: 4\n"
        + "".join(f"{n} {n * 5} {n} 20 {1 + n % 4} -1 -1 {1 + n % 4} 30 -1 1 1 1 1 1 -1 -1 -1\n" for n in range(1, 60))
    )
    output = []
    for count in ("1", "2"):
        assert main(["calibrate", str(log), "--workers", count]) == 0
        output.append(capsys.readouterr().out)
    assert output[0] == output[1]


POLICY = """
class Faulty:
    def rank(self, queue, now):
        {}
"""


@pytest.mark.parametrize(
    ("does", "error"), [("return [0.0]", "gridsim: error: "), ("return queue.cores[:-1] * 1.0", "gridsim: error: ")]
)
def test_a_policy_that_fails_in_a_worker_is_reported_as_in_this_process(
    does: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("faulty.py").write_text(POLICY.format(does))
    found = []
    for count in ("1", "2"):
        code = main(["compare", *LOG, "--policy", "easy", "--policy", "faulty.py:Faulty", "--workers", count])
        output = capsys.readouterr().err.splitlines()
        found.append(
            (code, [line for line in output if not line.startswith("Compiling")])
        )  # the first process prints it
    assert found[0] == found[1]
    assert found[0][0] == 2
    assert found[0][1][0].startswith(error)
    assert not Path("gridsim-results").exists()


LOCKED = """
import threading

class Locked:
    def setup(self, *_):
        pass
    def __init__(self):
        self.lock = threading.Lock()
    def __deepcopy__(self, memo):
        return Locked()
    __copy__ = lambda self: Locked()
    def rank(self, queue, now):
        return queue.cores * 1.0
"""


def test_a_policy_that_cannot_be_sent_runs_in_this_process_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("locked.py").write_text(LOCKED)
    line = ["compare", *LOG, "--no-page", "--what-if", "--policy", "locked.py:Locked", "--policy", "fcfs", "--workers"]
    outs = []
    for count in ("1", "2"):
        assert main([*line, count]) == 0
        outs.append(capsys.readouterr())
    assert outs[0].out == outs[1].out
    assert outs[1].err.count("cannot be sent to another process") == 1
    assert "locked.py:Locked cannot be sent" in outs[1].err


def test_no_number_of_workers_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["compare", "--workers", "0"])
    assert exit_.value.code == 2
    assert "'0' is not a whole number; expected 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [["--workers", "2"], ["--workers=2"], ["--worker", "2"], ["-j", "2"], ["-j2"], ["-j=2"]]
)
def test_the_command_that_is_kept_is_without_workers(given: list[str]) -> None:
    assert source.command(["compare", *given, "--warmup", "2d"]) == "gridsim compare --warmup 2d"


@pytest.mark.long
def test_a_compile_in_a_worker_is_announced_with_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fresh.py").write_text(
        "import numba\n"
        "@numba.njit\n"
        "def halved(cores):\n"
        "    return cores / 2\n"
        "class Fresh:\n"
        "    def rank(self, queue, now):\n"
        "        return halved(queue.cores)\n"
    )
    line = ["compare", *LOG, "--no-page", "--policy", "fresh.py:Fresh", "--policy", "fcfs", "--workers", "2"]
    assert main(line) == 0
    output = capsys.readouterr().err
    assert output.count("Compiling the inner loops of gridsim_plugin_fresh: about") == 1
    assert "once per installation" in output


def test_progress_has_a_total_over_all_runs_and_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_PAUSE", 0.0)
    with terminal.JobsProgress(1000, runs=3) as shown:
        shown.show("easy", 500)
        shown.show("easy", 503)
        shown.show("fcfs", 1000)
        shown.expect(2)
        shown.show("fcfs, load times 1.2", 500)
        shown.say("once")
        shown.say("once")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 of 3 runs: 500 of 3,000 jobs"  # the speed is not known yet
    assert lines[1] == "0 of 3 runs: 503 of 3,000 jobs"  # nor by three jobs
    assert lines[2].startswith("1 of 3 runs: 1,503 of 3,000 jobs, about ")
    assert lines[3].startswith("1 of 5 runs: 2,003 of 5,000 jobs, about ")
    assert lines[3].endswith(" left")
    assert lines[4:] == ["once"]


SLOW = """
import os, time
from pathlib import Path

class Slow:
    def rank(self, queue, now):
        Path(f"{os.getpid()}.pid").touch()
        time.sleep(900)

class Slower(Slow):
    pass
"""


@pytest.mark.long
def test_an_interrupt_is_said_once_and_leaves_no_worker_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = [*LOG, "--policy", "slow.py:Slow", "--policy", "slow.py:Slower", "--workers", "2"]
    line = [sys.executable, "-m", "gridsim", "compare", *words]
    driver = subprocess.Popen(
        line,
        cwd=tmp_path,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell disables it for background processes
    )
    try:
        until = time.monotonic() + 300
        while len(met := [int(path.stem) for path in tmp_path.glob("*.pid")]) < 2:
            assert time.monotonic() < until, "no workers came"
            time.sleep(0.02)
        assert driver.pid not in met
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: every process gets the signal
        _, output = driver.communicate(timeout=300)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    assert driver.returncode == 130
    assert output.splitlines()[-1] == "gridsim: interrupted; no incomplete file was left"
    assert "Traceback" not in output
    for pid in met:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".pid", ".py", ""}
    assert not (tmp_path / "gridsim-results").exists()
