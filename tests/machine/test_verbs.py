"""Verbs: the class of the first argument selects the implementation, in Python and in compiled loops."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gridsim.machine import nodes, pool, verbs

SOURCE = """
import sys
from typing import Any, NamedTuple
import numpy as np
from gridsim.machine import njit as home
home.FOLDER = sys.argv[1]

class Square(NamedTuple):
    side: Any

class Box(NamedTuple):
    sides: Any

@home.verb
def area(shape, factor):
    return -factor

@area.register(Square)
def area_of_square(shape, factor):
    return shape.side[0] * shape.side[0] * factor

if len(sys.argv) > 2:
    @area.register(Box)
    def area_of_box(shape, factor):
        return shape.sides[0] * shape.sides[1] * factor

@home.njit_noalloc
def both(square, box):
    return area(Square(*square), 1) + 1000 * area(Box(*box), 2)

square, box = (np.array([3]),), (np.array([4, 5]),)
assert both(square, box) == area(Square(*square), 1) + 1000 * area(Box(*box), 2)
print(both(square, box), len(both.stats.cache_hits) if hasattr(both, "stats") else "plain")
"""


def output(tmp_path: Path, *more: str, **environment: str) -> str:
    path = tmp_path / f"shapes{len(more)}.py"
    path.write_text(SOURCE)
    words = [sys.executable, "-W", "error", str(path), str(tmp_path / "kept"), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return done.stdout.strip()


@pytest.mark.long
def test_compiled_and_plain_loops_call_the_implementation_of_the_class_else_the_default(tmp_path: Path) -> None:
    assert output(tmp_path, NUMBA_DISABLE_JIT="1") == "-1991 plain"
    assert output(tmp_path) == "-1991 0"
    assert output(tmp_path) == "-1991 1", "a loop that calls verbs is cached"
    assert output(tmp_path, "box") == "40009 0"


@pytest.mark.parametrize("module", [pool, nodes])
def test_implementations_have_distinct_names(module: object) -> None:
    """In the cache, two compiled functions with the same name and signature in a module could be confused."""
    source = ast.parse(Path(str(vars(module)["__file__"])).read_text(encoding="utf-8"))
    names = [each.name for each in source.body if isinstance(each, ast.FunctionDef)]
    assert len(names) == len(set(names))
    verbs_there = {name.removesuffix("_in_pool").removesuffix("_on_nodes") for name in names}
    assert verbs_there & set(vars(verbs))
