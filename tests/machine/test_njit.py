"""Compiled loops are cached, and recompiled when any of them has changed."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from gridsim.machine import compiler
from gridsim.machine import njit as compiled_loops
from gridsim.machine.njit import compile_in_background, folder, njit, njit_noalloc, when_compiling


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for name in ("machine/blocks.py", "policy/ordering.py", "report/page.py", "record.py"):
        (tmp_path / "package" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "package" / name).write_text("loop = 1\n")
    return tmp_path / "package"


@pytest.mark.parametrize("name", ["machine/blocks.py", "policy/ordering.py", "record.py"])
def test_each_state_of_the_loops_has_a_separate_folder_by_content(package: Path, name: str) -> None:
    before = folder(package)
    assert Path(before).parent == package / "__pycache__"
    times = (package / name).stat()
    os.utime(package / name, ns=(1, 1))
    assert folder(package) == before
    (package / name).write_text("loop = 2\n")
    os.utime(package / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert folder(package) != before, "a loop that others may have taken in, of the same size and time"


def test_the_state_covers_every_file_with_a_compiled_loop() -> None:
    package = Path(compiled_loops.__file__).parents[1]
    decorated = re.compile(r"^@(njit|njit_noalloc|inline)$", re.MULTILINE)
    found = {path.relative_to(package) for path in package.rglob("*.py") if decorated.search(path.read_text())}
    assert found
    covered = {path for path in found for source in compiled_loops._SOURCES if path.is_relative_to(source)}
    assert found - covered == set()


def test_a_package_that_cannot_be_written_has_its_folder_at_home(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("no folder")
    notices: list[str] = []
    assert Path(folder(package, notices.append)).parent == tmp_path / "home" / "gridsim"
    assert not notices


def test_without_a_home_loops_are_kept_in_a_temporary_folder_and_that_is_said(package: Path, tmp_path: Path) -> None:
    for place in (package / "__pycache__", tmp_path / "home"):
        place.write_text("no folder")
    notices: list[str] = []
    found = Path(folder(package, notices.append))
    assert found.parent.parent == tmp_path / "tmp"
    assert notices == [
        f"compiled loops are kept in the temporary folder {found.parent}, since no other folder can be used"
    ]
    assert found.stat().st_mode & 0o777 == 0o700
    (tmp_path / "elsewhere").mkdir()
    found.rmdir()
    found.symlink_to(tmp_path / "elsewhere")
    assert folder(package, notices.append) == "", "somebody else could have made the link"
    assert "are not kept" in notices[-1]


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (0o770, "other users can write to it"),
        (0o707, "other users can write to it"),
        (None, "another user (uid 12345)"),
    ],
)
def test_a_folder_that_others_could_have_filled_is_not_used(
    package: Path, tmp_path: Path, mode: int | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(folder(package))
    if mode is None:
        owned = os.stat_result((0o40700, 0, 0, 0, 12345, 0, 0, 0, 0, 0))
        lstat = Path.lstat
        monkeypatch.setattr(Path, "lstat", lambda path: owned if path == before else lstat(path))
    else:
        before.chmod(mode)
    notices: list[str] = []
    assert Path(folder(package, notices.append)).parent == tmp_path / "home" / "gridsim"
    assert len(notices) == 1
    assert notices[0].startswith(f"{before} is not used for compiled loops")
    assert reason in notices[0]


def test_a_folder_below_one_of_another_user_is_not_used(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(folder(package))
    owned, stat = os.stat_result((0o40755, 0, 0, 0, 12345, 0, 0, 0, 0, 0)), Path.stat
    other = before.parent
    monkeypatch.setattr(Path, "stat", lambda path, **how: owned if path == other else stat(path, **how))
    notices: list[str] = []
    assert Path(folder(package, notices.append)).parent == tmp_path / "home" / "gridsim"
    assert notices == [f"{before} is not used for compiled loops: {other} belongs to another user (uid 12345)"]


def test_uncompiled_functions_do_not_count(package: Path) -> None:
    before = folder(package)
    (package / "report" / "page.py").write_text("page = 2\n")
    assert folder(package) == before


def test_the_users_own_folder_holds_the_states(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "mine"))
    assert Path(folder(package)).parent == tmp_path / "mine"
    (tmp_path / "mine").chmod(0o777)
    notices: list[str] = []
    assert Path(folder(package, notices.append)).parent == tmp_path / "home" / "gridsim"
    assert "other users can write to" in notices[0]
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "file"))
    assert Path(folder(package, notices.append)).parent == tmp_path / "home" / "gridsim"
    assert "it cannot be written" in notices[1]


def test_a_compiled_loop_is_called_like_any_other_and_leaves_the_users_setting_alone() -> None:
    import numba

    before = numba.config.CACHE_DIR

    @njit
    def doubled(value):  # type: ignore[no-untyped-def]
        return 2 * value

    assert doubled(21) == 42
    assert before == numba.config.CACHE_DIR


def test_a_loop_is_compiled_once_for_all_numbers_that_its_callers_write_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gridsim.machine.njit.FOLDER", str(tmp_path))

    @njit_noalloc
    def changed(value, by, twice):  # type: ignore[no-untyped-def]
        return value + 2 * by if twice else value + by

    @njit
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
from gridsim.machine import njit as home
home.FOLDER = sys.argv[1]
from numba.core import event

class Count(event.Listener):
    made = 0
    def on_start(self, now):
        self.made += 1
    def on_end(self, now):
        pass

@home.njit
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


def doubled(value):  # type: ignore[no-untyped-def]
    """A loop that tests compile."""
    return 2 * value


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Call `doubled` as a process with the cache of others; return how often that compiles it."""
    monkeypatch.setattr(compiled_loops, "FOLDER", str(tmp_path / "kept"))
    made: list[str] = []

    def called() -> int:
        before = len(made)
        with when_compiling(made.append):
            assert njit(doubled)(21) == 42
        return len(made) - before

    return called


def test_damaged_files_are_compiled_again_once(compilations: Callable[[], int], tmp_path: Path) -> None:
    assert [compilations(), compilations()] == [1, 0]
    (index,), (data,) = (tmp_path / "kept").rglob("*.nbi"), (tmp_path / "kept").rglob("*.nbc")
    for file in (index, data):
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) * 2 // 3] ^= 1
        for damaged in (b"", whole[:20], whole[: len(whole) // 2], bytes(flipped), b"\x80" * len(whole)):
            file.write_bytes(damaged)
            assert [compilations(), compilations()] == [1, 0]


def test_files_that_others_could_have_written_are_compiled_again(
    compilations: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o002)
    try:
        assert [compilations(), compilations()] == [1, 0]
    finally:
        os.umask(before)
    for file in [*(tmp_path / "kept").rglob("*.nb[ci]")]:
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o666)
        with pytest.warns(UserWarning, match=f"{file} is not used: other users can write to it"):
            assert compilations() == 1
        assert compilations() == 0
    monkeypatch.setattr("os.fstat", lambda _: os.stat_result((0o100600, 0, 0, 0, 12345, 0, 0, 0, 0, 0)))
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert compilations() == 1


def test_a_full_disk_keeps_no_loop_and_ends_none(
    compilations: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compiler._CheckedFiles, "_save", full)
    assert [compilations(), compilations()] == [1, 1]


SOURCE = """
import sys
from gridsim.machine import njit as home
home.FOLDER = sys.argv[1]

@home.njit
def doubled(value):
    return 2 * value

print(doubled(21))
"""


@pytest.mark.long
def test_a_source_of_the_same_size_and_time_is_another_by_its_content(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    for source, answer in ((SOURCE, "42"), (SOURCE.replace("2 *", "3 *"), "63")):
        script.write_text(source)
        os.utime(script, ns=(10**18, 10**18))
        words = [sys.executable, str(script), str(tmp_path / "kept")]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == answer


@pytest.mark.long
def test_a_loop_of_no_file_is_compiled_and_not_kept(tmp_path: Path) -> None:
    words = [sys.executable, "-", str(tmp_path / "kept")]
    done = subprocess.run(words, input=SOURCE, capture_output=True, text=True, check=True)
    assert done.stdout == "42\n"


DOT = """
import sys
import numba, numpy as np
from gridsim.machine import blocks
assert blocks.block_at(np.array([0, 3, 7]), 3, 5) == 1
assert "scipy.linalg" not in sys.modules
assert "scipy.linalg.cython_blas" not in sys.modules
squared = numba.njit(lambda row: np.dot(row, row))
print(squared(np.arange(4.0)))
"""


@pytest.mark.long
def test_no_loop_waits_for_linear_algebra_and_whoever_wants_it_has_it() -> None:
    output = subprocess.run([sys.executable, "-c", DOT], capture_output=True, text=True, check=True).stdout
    assert output == "14.0\n"


NESTED = """
import sys
from pathlib import Path
import numpy as np
from gridsim.machine import njit as home
home.FOLDER = sys.argv[1]
from numba.core import event

class Names(event.Listener):
    names = []
    def on_start(self, now):
        self.names.append(now.data["dispatcher"].py_func.__name__)
    def on_end(self, now):
        pass

@home.njit_noalloc
def inner(value):
    if value < 0:
        raise ValueError("negative")
    return value + 1

@home.njit_noalloc
def between(value):
    return inner(value) * 2

@home.njit
def outer(value):
    return np.full(2, between(value)).sum()

@home.njit_noalloc
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

    def output(*calls: str) -> str:
        words = [sys.executable, "-W", "error", str(tmp_path / "nested.py"), str(tmp_path / "kept"), *calls]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert output("outer:3") == "16 outer between inner"
    assert output("outer:3", "other:3") == "16 4 other", "between and inner are kept for loops"
    assert output("other:-1", "inner:3", "between:3", "inner:-1") == "negative 4 8 negative inner between"
    assert output("between:4", "outer:4", "inner:4") == "10 20 5", "nothing is compiled any more"
    assert output("inner:5", "other:5") == "6 6"


USER_LOOPS = (
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

@home.njit_noalloc
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
def test_user_loops_are_compiled_as_usual(tmp_path: Path) -> None:
    (tmp_path / "user_loops.py").write_text(USER_LOOPS)
    words = [sys.executable, "-W", "error", str(tmp_path / "user_loops.py"), str(tmp_path / "kept")]
    for ours in ("outer between inner refused other", "refused"):
        output = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (output.stdout.strip(), output.stderr) == (ours, "")


@pytest.mark.long
def test_with_another_compiler_loops_are_compiled_as_it_would(tmp_path: Path) -> None:
    of_another = "from gridsim.machine import compiler\ncompiler.binding = object()  # lacks what parts need\n"
    (tmp_path / "nested.py").write_text(NESTED.replace("home.FOLDER", of_another + "home.FOLDER"))
    words = [sys.executable, "-W", "error", str(tmp_path / "nested.py"), str(tmp_path / "kept")]
    for compiled_then in (" outer between inner other", ""):
        output = subprocess.run([*words, "outer:3", "other:3", "between:3"], capture_output=True, text=True, check=True)
        assert output.stdout.strip() == "16 4 8" + compiled_then


def test_called_functions_are_linked_after_their_callers() -> None:
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


_ALONE = """
import numpy as np
from gridsim.machine.njit import compile_in_background
from gridsim.machine.njit import when_compiling
from gridsim.policy.slurm.backfill_map import is_clear, plan_for

arguments = (0, 5, 1, np.array([3]), plan_for(4, 40))
with when_compiling(lambda module: print("compiled here:", module)):
    process = compile_in_background(is_clear, arguments)
    print("ended with", process.wait(timeout=300))
    print("is clear:", bool(is_clear(*arguments)))
    print("again:", compile_in_background(is_clear, arguments))
"""


@pytest.mark.long
def test_loops_compiled_by_another_process_are_loaded(tmp_path: Path) -> None:
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = subprocess.run(
        [sys.executable, "-c", _ALONE], env=places, capture_output=True, text=True, check=True, timeout=600
    )
    assert output.stdout.splitlines() == ["ended with 0", "is clear: True", "again: None"]
    assert list(tmp_path.rglob("backfill_map.is_clear*.nbi"))


class _Never:
    """A loop that is never compiled."""

    def py_func(self) -> None:
        """Stand-in for the source function."""

    def typeof_pyval(self, _: Any) -> None:
        raise AssertionError("it is compiled")


@pytest.mark.parametrize("why", ["nobody hears", "one core"])
def test_nothing_is_compiled_ahead_where_that_does_not_pay(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridsim.machine.njit._cores", lambda: 1 if why == "one core" else 2)
    if why == "nobody hears":
        assert compile_in_background(_Never(), (np.zeros(1),)) is None
        return
    with when_compiling(print):
        assert compile_in_background(_Never(), (np.zeros(1),)) is None
        monkeypatch.setattr("gridsim.machine.njit._cores", lambda: 2)
        with pytest.raises(AssertionError, match="it is compiled"):
            compile_in_background(_Never(), (np.zeros(1),))
