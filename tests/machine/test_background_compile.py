"""A loop is compiled in another process while this one continues."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.machine import background_compile as ahead
from gridsim.machine.background_compile import compile_in_background
from gridsim.machine.njit import when_compiling

_ALONE = """
import numpy as np
from gridsim.machine.background_compile import compile_in_background
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
    monkeypatch.setattr(ahead, "_cores", lambda: 1 if why == "one core" else 2)
    if why == "nobody hears":
        assert compile_in_background(_Never(), (np.zeros(1),)) is None
        return
    with when_compiling(print):
        assert compile_in_background(_Never(), (np.zeros(1),)) is None
        monkeypatch.setattr(ahead, "_cores", lambda: 2)
        with pytest.raises(AssertionError, match="it is compiled"):
            compile_in_background(_Never(), (np.zeros(1),))
