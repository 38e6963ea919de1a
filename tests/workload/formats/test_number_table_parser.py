"""Number tables parsed by a compiled loop, compared with Python's parser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.machine import njit as compiled
from gridsim.machine.njit import njit_noalloc
from gridsim.workload.formats import number_table_parser
from gridsim.workload.formats.number_table_parser import table_of


def plainly(block: bytes, columns: int) -> tuple[list[list[float]], list[int]] | None:
    """Parse the table in Python; None if a line has another number of fields."""
    rows, lines = [], []
    for number, line in enumerate(block.split(b"\n")):
        if words := line.split():
            if len(words) != columns:
                return None
            rows.append(list(map(float, words)))
            lines.append(number)
    return rows, lines


numbers = st.from_regex(r"\A[+-]?([0-9]{1,12}(\.[0-9]{0,2})?|\.[0-9]{1,8})\Z").map(str.encode)
blanks = st.sampled_from([b" ", b"  ", b"\t", b" \t "])


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    made = []
    for words in draw(st.lists(st.lists(numbers, min_size=0, max_size=4), max_size=6)):
        begin, end = draw(st.sampled_from([b"", b" "])), draw(st.sampled_from([b"", b" ", b"\r"]))
        made.append(begin + b"".join(word + draw(blanks) for word in words).rstrip() + end)
    return b"\n".join(made) + (b"\n" if made and b"\r" in made[-1] else draw(st.sampled_from([b"", b"\n"])))


@settings(deadline=None)
@given(blocks(), st.integers(1, 4))
def test_numbers_are_those_that_python_reads_bit_for_bit(block: bytes, columns: int) -> None:
    expected, found = plainly(block, columns), table_of(block, columns, many=True)
    if expected is None:
        assert found is None
        return
    assert found is not None
    table, lines = found
    assert table.shape == (len(expected[0]), columns)
    assert table.tobytes() == np.array(expected[0], dtype=float).tobytes(), "minus zero too"
    assert lines.tolist() == expected[1]


@settings(deadline=None)
@given(st.binary(max_size=12), st.integers(1, 3))
def test_accepted_input_is_accepted_by_python_too(block: bytes, columns: int) -> None:
    found = table_of(block, columns, many=True)
    if found is not None:
        expected = plainly(block, columns)
        assert expected is not None
        assert found[0].tobytes() == np.array(expected[0], dtype=float).tobytes()


OTHERS = [b"1e3", b"nan", b"inf", b"1_0", b"--1", b"+", b".", b"1.2.3", b"1;", b"0x1", b"\xd9\xa3", b"1\r2"]
OTHERS += [b"9" * 16, b"0." + b"0" * 16 + b"1"]


@pytest.mark.parametrize("word", OTHERS)
def test_other_words_are_left_to_others(word: bytes) -> None:
    assert table_of(b"1 2\n3 " + word + b"\n", 2, many=True) is None


def test_few_lines_are_not_worth_a_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FOLDER", str(tmp_path))
    monkeypatch.setattr(number_table_parser, "parse", njit_noalloc(lambda text, table, lines, found: None))
    assert table_of(b"1 2\n", 2, many=False) is None
    monkeypatch.setattr(
        number_table_parser, "parse", lambda *columns: pytest.fail("Python itself is slower than any reader")
    )
    assert table_of(b"1 2\n", 2, many=True) is None
