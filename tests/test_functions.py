"""Limits for the length of functions and for the number of arguments of compiled loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gridsim

LINES = 80
"""Of a function from ``def`` to its end, without its docstring."""

ARGUMENTS = 10
"""Arguments of a compiled loop; related ones are passed in a bundle."""

COMPILED = {"inline", "jit", "njit", "njit_noalloc"}

PACKAGE = Path(gridsim.__file__).parent


def functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    doc = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    told = 0 if doc is None else (doc.end_lineno or 0) - doc.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - told


def arguments_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    every = function.args
    return len(every.posonlyargs) + len(every.args) + len(every.kwonlyargs)


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    return any(ast.unparse(each).rpartition(".")[2] in COMPILED for each in called)


@cache
def everything() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for function in functions(path.read_text(encoding="utf-8")):
            found[f"{path.relative_to(PACKAGE)}:{function.lineno} {function.name}"] = function
    return found


@pytest.mark.long
def test_no_function_is_longer_than_can_be_read_at_once() -> None:
    assert {name: lines for name, each in everything().items() if (lines := lines_of(each)) > LINES} == {}


@pytest.mark.long
def test_no_compiled_loop_has_more_arguments_than_can_be_distinguished() -> None:
    found = {name: each for name, each in everything().items() if is_compiled(each)}
    assert len(found) > 50, "the decorators have other names now"
    assert {name: count for name, each in found.items() if (count := arguments_of(each)) > ARGUMENTS} == {}


def test_docstrings_do_not_count_and_decorators_with_options_do() -> None:
    (one,) = functions('@numba.njit(cache=True)\ndef one(a, b, *, c):\n    """Told\n    at length."""\n    return a\n')
    assert (lines_of(one), arguments_of(one), is_compiled(one)) == (2, 3, True)
    (other,) = functions("@cache\ndef other():\n    pass\n")
    assert (lines_of(other), is_compiled(other)) == (2, False)
