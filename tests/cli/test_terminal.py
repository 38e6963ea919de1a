"""What is printed: names of a log can steer no terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.cli.terminal import Terminal


def test_control_characters_are_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(width=200).print("job 1 of user \x1b[2J\x07\x9b\u202eann, 3\u00a0h\nnext", markup=False)
    assert capsys.readouterr().out == "job 1 of user \ufffd[2J\ufffd\ufffd\ufffdann, 3\u00a0h\nnext\n"


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_no_escape_comes_through(text: str) -> None:
    terminal = Terminal(width=200)
    with terminal.capture() as captured:
        terminal.print(text, markup=False)
    assert "\x1b" not in captured.get()
    assert "\x9b" not in captured.get()
