"""Files are written atomically."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.files import check_output, checksum, is_stream, plain, write_atomically, write_json, write_text


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


def test_a_pipe_receives_the_content_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    write_text(tmp_path / "pipe", "content")
    reader.join(10)
    assert received == [b"content"]
    assert (tmp_path / "pipe").is_fifo()
    assert [*tmp_path.iterdir()] == [tmp_path / "pipe"]


def test_an_open_file_is_written_in_place(tmp_path: Path) -> None:
    with (tmp_path / "file.txt").open("wb") as file:
        inode = os.fstat(file.fileno()).st_ino
        assert is_stream(f"/dev/fd/{file.fileno()}")
        write_text(f"/dev/fd/{file.fileno()}", "content")
    assert (tmp_path / "file.txt").read_text() == "content"
    assert (tmp_path / "file.txt").stat().st_ino == inode


@pytest.mark.parametrize("link", [None, os.link, os.symlink])
def test_an_input_is_no_output_by_any_of_its_names(link: Callable[..., None] | None, tmp_path: Path) -> None:
    own = tmp_path / "own.swf"
    own.write_text("")
    output = tmp_path / "folder" / ".." / "own.swf" if link is None else tmp_path / "other.swf"
    (tmp_path / "folder").mkdir()
    if link is not None:
        link(own, output)
    with pytest.raises(InputError, match="is an input of this command"):
        check_output(output, [tmp_path / "absent", own], overwrite=True)


def test_a_file_that_exists_is_replaced_only_where_that_is_allowed(tmp_path: Path) -> None:
    check_output(tmp_path / "new.swf", [], overwrite=False)
    (tmp_path / "old.swf").write_text("")
    (tmp_path / "dangling.swf").symlink_to("absent")
    for name in ("old.swf", "dangling.swf"):
        with pytest.raises(InputError, match="exists; give another file, or --overwrite"):
            check_output(tmp_path / name, [], overwrite=False)
        check_output(tmp_path / name, [], overwrite=True)
    with pytest.raises(InputError, match="is a folder"):
        check_output(tmp_path, [], overwrite=True)


def test_a_new_file_has_the_permissions_that_the_user_requests(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "")
    finally:
        os.umask(mask)
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o640


def test_values_without_a_json_type_are_not_written(tmp_path: Path) -> None:
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
