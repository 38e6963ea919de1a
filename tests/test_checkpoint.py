"""Checkpoints: written files can be read, and files from other sources cannot call code."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gridsim.checkpoint import read_checkpoint, write_checkpoint
from gridsim.record import Status


def _named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    return b"X" + len(text).to_bytes(4, "little") + text.encode()


def _called(function: bytes, *arguments: bytes) -> bytes:
    return function + b"(" + b"".join(arguments) + b"tR"


def _forged(path: Path, program: bytes) -> Path:
    content = b"\x80\x04" + program + b"."
    path.write_bytes(f"run {hashlib.sha256(content).hexdigest()}\n".encode() + content)
    path.chmod(0o600)
    return path


def _by_getattr(code: str) -> bytes:
    """Reach ``eval`` from a class of gridsim through attributes."""
    attribute = _named("builtins", "getattr")
    names = _called(
        attribute, _called(attribute, _named("gridsim.errors", "InputError"), _text("__init__")), _text("__globals__")
    )
    builtin = _called(_called(attribute, names, _text("get")), _text("__builtins__"))
    return _called(_called(_called(attribute, builtin, _text("get")), _text("eval")), _text(code))


def test_data_are_read_back(tmp_path: Path) -> None:
    state = {"a": np.arange(3), "b": SimpleNamespace(x=(1, "two", None)), "c": Status.cancelled}
    write_checkpoint(tmp_path / "state", "run", state)
    found = read_checkpoint(tmp_path / "state", "run")
    assert found["a"].tolist() == [0, 1, 2]
    assert (found["b"].x, found["c"]) == ((1, "two", None), Status.cancelled)
    assert read_checkpoint(tmp_path / "state", "another run") is None
    assert read_checkpoint(tmp_path / "none", "run") is None


@pytest.mark.parametrize(
    "program",
    [
        _by_getattr("__import__('tests_ran')"),
        _called(_named("builtins", "eval"), _text("1")),
        _called(_named("os", "getcwd")),
        _called(_named("gridsim.files", "Path"), _text("/")),  # a class of another package under a name of gridsim
        _called(_named("gridsim.files", "read_text"), _text("/etc/hostname")),  # a function of gridsim
    ],
)
def test_a_forged_file_calls_nothing(program: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr("builtins.eval", lambda *words: called.append(words))
    path = _forged(tmp_path / "state", program)
    assert read_checkpoint(path, "run") is None
    assert called == []


def test_a_file_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_checkpoint(path, "run", [1])
    assert path.stat().st_mode & 0o077 == 0
    assert read_checkpoint(path, "run") == [1]
    path.chmod(0o666)
    assert read_checkpoint(path, "run") is None
    assert pickle.loads(path.read_bytes().partition(b"\n")[2]) == [1]
