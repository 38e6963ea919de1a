"""Printed text: names in a log cannot send control sequences to a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.cli import main
from gridsim.cli.terminal import Terminal


def test_control_characters_are_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(width=200).print("job 1 of user \x1b[2J\x07\x9b\u202eann, 3\u00a0h\nnext", markup=False)
    assert capsys.readouterr().out == "job 1 of user \ufffd[2J\ufffd\ufffd\ufffdann, 3\u00a0h\nnext\n"


@pytest.mark.long
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_no_escape_comes_through(text: str) -> None:
    terminal = Terminal(width=200)
    with terminal.capture() as captured:
        terminal.print(text, markup=False)
    assert "\x1b" not in captured.get()
    assert "\x9b" not in captured.get()


def test_a_sentence_breaks_between_values_and_never_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    for width in range(30, 80):
        Terminal(width=width).print(
            "The mean wait is 1 min 34 s, in the log 1 min 25 s: 30 % on 32 cores.", markup=False
        )
        shown = capsys.readouterr().out
        assert all(len(line) <= width for line in shown.splitlines())
        assert all(value in shown for value in ("1 min 34 s,", "1 min 25 s:", "30 %", "32 cores."))


def test_problems_of_a_log_break_between_words_and_stay_within_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    job = "2 5 5 {run} 2 -1 -1 2 {ask} -1 1 1 1 1 1 -1 -1 -1"
    lines = [f"{number} {job[2:].format(run=10 + 40 * (number % 2), ask=20)}" for number in range(1, 20)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join([*lines, "20 1 2"]) + "\n")
    monkeypatch.chdir(tmp_path)  # a path is never wrapped, regardless of its length
    words = ["compare", "log.swf", "--on", "over-estimate=repair", "--no-page", "--out", "out"]
    assert main([*words, "--policy", "fcfs"]) == 0
    out = capsys.readouterr().out.split("\n\n")[0]
    assert max(map(len, out.splitlines())) <= 80
    assert "\n  " in out
    whole = " ".join(out.split())
    assert re.search(r"over-estimate: 10 lines \(\S.*?\) repaired: .*? \(--on over-estimate=repair\)", whole)
