"""Files are whole or not there."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from gridsim.files import checksum, plain, write_atomically, write_json, write_text


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "file.txt", "Grüße\n")
    assert (tmp_path / "a" / "b" / "file.txt").read_bytes() == "Grüße\n".encode()


def test_a_write_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fails(temporary: Path) -> None:
        temporary.write_text("half")
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        write_atomically(path, fails)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(temporary: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file.txt", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_has_the_permissions_that_the_user_asks_for(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "")
    finally:
        os.umask(mask)
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_json_is_not_written(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"a": object()})
    assert (tmp_path / "x.json").read_text() == '{\n "a": 1\n}\n'


@pytest.mark.parametrize(
    ("value", "simple"),
    [
        (math.nan, None),
        (-math.inf, None),
        (np.float64(0.5), 0.5),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({1: {"a": np.int8(1)}}, {"1": {"a": 1}}),
        (None, None),
        ("text", "text"),
    ],
)
def test_values_become_those_of_json(value: object, simple: object) -> None:
    assert json.dumps(plain(value), allow_nan=False) == json.dumps(simple)


def test_a_checksum_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert checksum(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
