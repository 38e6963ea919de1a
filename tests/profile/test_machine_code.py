"""Machine code of whole loops that is called without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gridsim.profile import machine_code
from gridsim.profile.machine_code import PAGE, MachineCode, described, is_possible, processor, written

needed = pytest.mark.skipif(
    not (sys.platform == "linux" and bool(processor())) or os.uname().machine != "x86_64",
    reason="machine code is kept by itself by Linux on x86-64 alone",
)

LOOPS = """
import sys
import numpy as np
from gridsim.profile import compiled as home
home._FOLDER = sys.argv[1]

@home.lean
def weighed(value, by):
    return value * by if value > 2 else value - by

@home.whole
def added(by, columns, factor):
    values, (table, flags) = columns
    for k in range(values.shape[0]):
        for j in range(table.shape[1]):
            table[1, j] += weighed(values[k], by)
        values[k] += flags[0] * factor

@home.whole
def refused(at, column):
    if at < 0:
        raise ValueError("negative")
    column[at] += 1

values, table = np.arange(5), np.arange(6).reshape(2, 3)
columns = (values, (table, np.array([0.5])))
for name in sys.argv[2:]:
    if name == "added":
        added(2, (np.arange(5.0), columns[1]), 4)
    if name == "other":
        added(2, (values, (table, np.array([3]))), 4)
    if name == "again":
        same = (values, (table, np.array([3])))
        for by in range(4):
            added(by, same, 1)
    if name == "refused":
        refused(2, values)
        try:
            refused(-1, values)
        except ValueError as error:
            print(error, end=" ")
print(values.tolist(), table.tolist(), "numba" in sys.modules)
"""


def told(folder: Path, *names: str, **environment: str) -> str:
    (folder / "loops.py").write_text(LOOPS)
    words = [sys.executable, "-W", "error", str(folder / "loops.py"), str(folder / "kept"), *names]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | environment
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout.strip()


@needed
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_machine_code_that_other_users_can_write_is_not_called(tmp_path: Path, mode: int) -> None:
    told(tmp_path, "added")
    assert told(tmp_path, "added").endswith("False")
    (kept,) = (tmp_path / "kept").glob("__main__.added-*.code")
    kept.chmod(mode)
    assert told(tmp_path, "added").endswith("True")


@needed
def test_what_is_kept_of_a_loop_does_what_the_loop_does_without_the_compiler(tmp_path: Path) -> None:
    plain = told(tmp_path, "other", "again", NUMBA_DISABLE_JIT="1")
    assert not (tmp_path / "kept").exists()
    first, then = told(tmp_path, "other", "again"), told(tmp_path, "other", "again")
    assert first == plain.replace("False", "True")
    assert then == plain
    assert len(list((tmp_path / "kept").glob("__main__.added-*.code"))) == 1


@needed
def test_each_kind_of_arguments_is_kept_apart(tmp_path: Path) -> None:
    told(tmp_path, "other")
    assert told(tmp_path, "other").endswith("False")
    assert told(tmp_path, "other", "added").endswith("True"), "columns of other numbers need the compiler"
    assert told(tmp_path, "other", "added").endswith("False")


@needed
def test_a_loop_that_raises_is_the_compilers_alone(tmp_path: Path) -> None:
    for _ in range(2):
        assert told(tmp_path, "refused") == "negative [0, 1, 3, 3, 4] [[0, 1, 2], [3, 4, 5]] True"
    assert not list((tmp_path / "kept").glob("*.code"))


@pytest.mark.long
@needed
def test_who_asks_something_of_the_compiler_gets_the_compiler(tmp_path: Path) -> None:
    told(tmp_path, "other")
    assert told(tmp_path, "other").endswith("False")
    assert told(tmp_path, "other", NUMBA_BOUNDSCHECK="1").endswith("True")


@pytest.mark.sampled(4)
@needed
@pytest.mark.parametrize("damage", ["another processor", "cut off", "changed", "empty"])
def test_code_that_is_not_what_was_kept_is_not_called(damage: str, tmp_path: Path) -> None:
    right = told(tmp_path, "other")
    assert told(tmp_path, "other") == right.replace("True", "False")
    (file,) = (tmp_path / "kept").glob("*.code")
    kept = file.read_bytes()
    if damage == "another processor":
        kept = kept.replace(processor().encode(), b"0" * 64)
    elif damage == "cut off":
        kept = kept[:-100]
    elif damage == "changed":
        kept = kept[:-1] + bytes([kept[-1] ^ 1])
    else:
        kept = b""
    file.write_bytes(kept)
    assert told(tmp_path, "other") == right, "the compiler's is taken"


THREADS = """
import sys, threading
import numpy as np
import gridsim as gs

jobs = gs.default_workload(jobs=2_000, load=0.9, seed=3)
def run(policy, found):
    for _ in range(20):
        found.append(gs.simulate(jobs, policy=policy, engine="compiled").record.start_us)
answers = {policy: gs.simulate(jobs, policy=policy, engine="compiled").record.start_us for policy in ("easy", "fcfs")}
sys.setswitchinterval(1e-6)
found = {policy: [] for policy in answers}
threads = [threading.Thread(target=run, args=one) for one in found.items()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(all(len(made) == 20 and all(np.array_equal(one, answers[policy]) for one in made)
          for policy, made in found.items()), "numba" in sys.modules)
"""


@pytest.mark.long
@needed
def test_threads_that_simulate_at_once_do_not_get_in_each_others_way() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    words = [sys.executable, "-c", THREADS]
    for _ in range(2):
        made = subprocess.run(words, capture_output=True, text=True, check=True, env=kept).stdout.split()
        assert made[0] == "True"
    assert made[1] == "False"


@pytest.mark.sampled(3)
@needed
@pytest.mark.parametrize("policy", ["easy", "conservative", "sjbf"])
def test_a_simulation_needs_no_compiler_where_its_loop_is_kept(policy: str) -> None:
    code = (
        "import sys, gridsim as gs\n"
        "jobs = gs.Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])\n"
        f"run = gs.simulate(jobs, platform=gs.Platform.single(4), policy={policy!r}, engine='compiled')\n"
        "print(run.record.start.tolist(), 'numba' in sys.modules)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    once, again = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kept).stdout
        for _ in range(2)
    )
    assert once.split(" ")[:3] == again.split(" ")[:3]
    assert again.strip().endswith("False")


@pytest.mark.parametrize(
    ("args", "kinds"),
    [
        ((1, np.zeros(3, dtype=np.int64)), "i,int64x1"),
        ((np.zeros((2, 3)), (1, (np.zeros(1, dtype=np.bool_),))), "float64x2,(i,(boolx1))"),
        ((np.broadcast_to(np.int64(1), (1,)),), "int64x1r"),
        ((True,), ""),
        ((1.5,), ""),
        ((np.zeros((4, 4))[::2],), ""),
        ((np.zeros(3, dtype=">i8"),), ""),
        ((None, 1), ""),
    ],
)
def test_kinds_of_arguments(args: tuple[object, ...], kinds: str) -> None:
    assert described(args) == kinds


def test_a_file_begins_with_a_page_that_says_what_it_is() -> None:
    kept = written(b"code", 2, "i")
    assert len(kept) == PAGE + 4
    assert kept.endswith(b"\ncode")
    assert b'"kinds": "i"' in kept


def test_nothing_is_called_where_nothing_is_kept(tmp_path: Path) -> None:
    assert not MachineCode(lambda kinds: tmp_path / kinds).call((1, np.zeros(3)))


def test_other_systems_leave_loops_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(machine_code.sys, "platform", "darwin")
    is_possible.cache_clear()
    try:
        assert not is_possible()
    finally:
        monkeypatch.undo()
        is_possible.cache_clear()
