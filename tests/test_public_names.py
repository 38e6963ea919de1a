"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gridsim


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", gridsim.__all__)
def test_every_public_name_is_there_and_has_a_docstring(name: str) -> None:
    assert getattr(gridsim, name).__doc__


def test_public_names_are_listed_before_they_are_asked_for() -> None:
    assert set(gridsim.__all__) <= set(dir(gridsim))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gridsim' has no attribute 'nothing'"):
        gridsim.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, gridsim; print(sorted({'numpy', 'numba', 'simpy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert python(code) == "[]"


def test_a_simulation_does_not_import_pictures_pages_or_statistics() -> None:
    code = (
        "import sys, gridsim as gs\n"
        "jobs = gs.Workload.from_columns(submit=[0], runtime=[1], cores=[1])\n"
        "gs.simulate(jobs, platform=gs.Platform.single(1)).metrics()\n"
        "heavy = {'matplotlib', 'jinja2', 'scipy.stats', 'scipy.linalg', 'networkx', 'duckdb', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(code) == "[]"
