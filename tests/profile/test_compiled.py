"""Compiled loops are kept, and made anew when any of them has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numba
import pytest

from gridsim.profile import compiler
from gridsim.profile.compiled import compiled, folder, lean, when_compiling


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("profile/kernels.py", "policy/admission/kernels.py", "report/page.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("loop = 1\n")
    return tmp_path


def test_a_state_of_all_loops_has_a_folder_of_its_own(package: Path) -> None:
    before = folder(package)
    assert folder(package) == before
    assert Path(before).parent == package / "__pycache__"
    os.utime(package / "profile" / "kernels.py", ns=(1, 1))
    assert folder(package) != before, "a loop that others may have taken in"


def test_what_is_not_compiled_does_not_count(package: Path) -> None:
    before = folder(package)
    (package / "report" / "page.py").write_text("page = 2\n")
    assert folder(package) == before


def test_the_users_own_folder_holds_the_states(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "mine"))
    assert Path(folder(package)).parent == tmp_path / "mine"


def test_a_compiled_loop_is_called_like_any_other_and_leaves_the_users_setting_alone() -> None:
    import numba

    before = numba.config.CACHE_DIR

    @compiled
    def doubled(value):  # type: ignore[no-untyped-def]
        return 2 * value

    assert doubled(21) == 42
    assert before == numba.config.CACHE_DIR


def test_a_loop_is_compiled_once_for_all_numbers_that_its_callers_write_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridsim.profile.compiled._FOLDER", str(tmp_path))

    @lean
    def changed(value, by, twice):  # type: ignore[no-untyped-def]
        return value + 2 * by if twice else value + by

    @compiled
    def several(value):  # type: ignore[no-untyped-def]
        one, other = changed(value, 1, True), changed(value, by=-1, twice=False)
        return one, other, changed(value, value, value > 2), changed(7, 0, value < 2)

    assert several(3) == (5, 2, 9, 7)
    assert len(changed.overloads) == 1


def test_it_is_said_once_that_loops_are_compiled_and_not_where_they_are_kept() -> None:
    said: list[str] = []
    one, two = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)
    with when_compiling(said.append):
        assert (one(1), two(1), one(2)) == (2, 3, 3)
    assert said == [__name__]
    with when_compiling(said.append):
        assert (one(1), two(1)) == (2, 3)
    assert len(said) == 1


TWO = """
import sys, time
from gridsim.profile import compiled as home
home._FOLDER = sys.argv[1]
from numba.core import event

class Count(event.Listener):
    made = 0
    def on_start(self, now):
        self.made += 1
    def on_end(self, now):
        pass

@home.compiled
def doubled(value):
    return 2 * value

count = Count()
event.register("numba:compile", count)
while time.time() < float(sys.argv[2]):
    pass
assert doubled(21) == 42
print(count.made)
"""


@pytest.mark.long
def test_of_two_processes_one_compiles_and_the_other_takes_it(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    words = [sys.executable, str(tmp_path / "two.py"), str(tmp_path / "kept"), str(time.time() + 1.5)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(process.communicate(timeout=300)[0].strip() for process in both) == ["0", "1"]


DOT = """
import sys
import numba, numpy as np
from gridsim.profile import blocks
assert blocks.block_at(np.array([0, 3, 7]), 3, 5) == 1
assert "scipy.linalg" not in sys.modules
assert "scipy.linalg.cython_blas" not in sys.modules
squared = numba.njit(lambda row: np.dot(row, row))
print(squared(np.arange(4.0)))
"""


def test_no_loop_waits_for_linear_algebra_and_whoever_wants_it_has_it() -> None:
    told = subprocess.run([sys.executable, "-c", DOT], capture_output=True, text=True, check=True).stdout
    assert told == "14.0\n"


NESTED = """
import sys
from pathlib import Path
import numpy as np
from gridsim.profile import compiled as home
home._FOLDER = sys.argv[1]
from numba.core import event

class Names(event.Listener):
    names = []
    def on_start(self, now):
        self.names.append(now.data["dispatcher"].py_func.__name__)
    def on_end(self, now):
        pass

@home.lean
def inner(value):
    if value < 0:
        raise ValueError("negative")
    return value + 1

@home.lean
def between(value):
    return inner(value) * 2

@home.compiled
def outer(value):
    return np.full(2, between(value)).sum()

@home.lean
def other(value):
    return between(value) - inner(value)

event.register("numba:compile", Names())
for call in sys.argv[2:]:
    name, value = call.split(":")
    try:
        print(globals()[name](int(value)), end=" ")
    except ValueError as error:
        print(error, end=" ")
print(*(name for name in Names.names if name in globals()))
"""


@pytest.mark.long
def test_a_loop_that_loops_call_is_kept_for_them_and_made_again_for_python(tmp_path: Path) -> None:
    (tmp_path / "nested.py").write_text(NESTED)

    def told(*calls: str) -> str:
        words = [sys.executable, "-W", "error", str(tmp_path / "nested.py"), str(tmp_path / "kept"), *calls]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert told("outer:3") == "16 outer between inner"
    assert told("outer:3", "other:3") == "16 4 other", "between and inner are kept for loops"
    assert told("other:-1", "inner:3", "between:3", "inner:-1") == "negative 4 8 negative inner between"
    assert told("between:4", "outer:4", "inner:4") == "10 20 5", "nothing is compiled any more"
    assert told("inner:5", "other:5") == "6 6"


BESIDE = (
    NESTED[: NESTED.index("event.register")]
    + """
import ctypes
import numba
from numba.core.codegen import JITCPUCodegen, JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig

codegen = cpu_target.target_context.codegen()
options = TargetConfig.__dict__["__eq__"], TargetConfig.__dict__["__hash__"]
flags = numba.core.compiler.Flags()
kept = {flags: "found"}

def is_the_compilers_own():
    return (
        codegen._library_class is JITCodeLibrary
        and not {"_library_class", "set_env"} & set(vars(codegen))
        and (TargetConfig.__dict__["__eq__"], TargetConfig.__dict__["__hash__"]) == options
    )

class Look(event.Listener):
    seen = []
    def on_start(self, now):
        same = hash(flags) == options[1](flags) and kept[flags.copy()] == "found"
        self.seen.append((now.data["dispatcher"].py_func.__name__, is_the_compilers_own(), same))
    def on_end(self, now):
        pass

event.register("numba:compile", Look())

@home.lean
def refused(value):
    return between(value) + value.nothing

@numba.njit
def part(value):
    return np.full(2, value + 1).sum()  # what the loop compiled for itself before

@numba.njit
def users(value):
    if value < 0:
        raise ValueError("the user's")
    return part(value) + 1

@numba.njit
def with_loops(value):
    return outer(value) + between(value)

@numba.vectorize(["int64(int64)"])
def each(value):
    return users(value)

def plain(value):
    return users(value)

assert is_the_compilers_own()
assert outer(3) == 16 and is_the_compilers_own()
try:
    refused(3)
except numba.TypingError:
    assert is_the_compilers_own()
else:
    raise AssertionError("compiled")
assert users(3) == 9
try:
    users(-3)
except ValueError as error:
    assert str(error) == "the user's"
assert each(np.arange(3)).tolist() == [3, 5, 7]
called = numba.cfunc("int64(int64)")(plain)
assert called.ctypes(4) == 11
assert type(called._library) is JITCodeLibrary
(result,) = users.overloads.values()
assert type(result.library) is JITCodeLibrary
assert with_loops(3) == 24 and other(3) == 4
assert is_the_compilers_own()
during = {name: own for name, own, same in Look.seen}
assert all(same for *_, same in Look.seen)
print(*(name for name, own in during.items() if not own and name in globals()))
"""
)


@pytest.mark.long
def test_what_a_user_compiles_beside_our_loops_is_compiled_as_ever(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(BESIDE)
    words = [sys.executable, "-W", "error", str(tmp_path / "beside.py"), str(tmp_path / "kept")]
    for ours in ("outer between inner refused other", "refused"):
        told = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (told.stdout.strip(), told.stderr) == (ours, "")


@pytest.mark.long
def test_with_another_compiler_loops_are_compiled_as_it_would(tmp_path: Path) -> None:
    of_another = "from gridsim.profile import compiler\ncompiler.binding = object()  # lacks what parts need\n"
    (tmp_path / "nested.py").write_text(NESTED.replace("home._FOLDER", of_another + "home._FOLDER"))
    words = [sys.executable, "-W", "error", str(tmp_path / "nested.py"), str(tmp_path / "kept")]
    for compiled_then in (" outer between inner other", ""):
        told = subprocess.run([*words, "outer:3", "other:3", "between:3"], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "16 4 8" + compiled_then


def test_what_a_loop_calls_is_taken_in_after_all_that_call_it() -> None:
    @dataclass(eq=False)
    class Library:
        name: str
        _linking_libraries: list[Library]
        _finalized: bool = False

    leaf = Library("leaf", [])
    middle, kept = Library("middle", [leaf]), Library("kept", [Library("within", [])], True)
    entry = Library("entry", [leaf, middle, kept, Library("other", [middle, leaf])])
    order = [each.name for each in compiler._Part._all_parts(entry)]  # type: ignore[arg-type]
    assert order.index("other") < order.index("middle") < order.index("leaf")
    assert sorted(order) == ["kept", "leaf", "middle", "other"]
