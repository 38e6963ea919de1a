"""The public names of the package."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import gridsim
from gridsim.cli import VERBS, main


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", gridsim.__all__)
def test_every_public_name_is_there_and_has_a_docstring(name: str) -> None:
    assert getattr(gridsim, name).__doc__


def test_public_names_are_listed_before_they_are_requested() -> None:
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


class Called(Exception):
    """Raised instead of the work of a function."""


SITE = str(Path(__file__).resolve().parents[1] / "scenarios" / "examples" / "site.swf")
CAMPAIGN = str(Path(__file__).resolve().parents[1] / "scenarios" / "examples" / "campaign-higher-load.toml")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("gridsim.questions.whatif.whatif", ["whatif", "--jobs", "20"]),
        ("gridsim.questions.calibrate.calibrate", ["calibrate", SITE, "--policy", "fcfs"]),
        ("gridsim.ask.explain", ["explain", "results"]),
        ("gridsim.cli.reproduce.reproduce", ["reproduce", "qops", "--figure", "2", "--scale", "tiny"]),
        ("gridsim.ask.sweep", ["sweep", CAMPAIGN, "--workers", "1"]),
        ("gridsim.testing.schedule_reader.validate", ["validate", SITE, SITE]),
        ("gridsim.testing.conformance.verify", ["verify"]),
    ],
)
def test_a_command_calls_the_function_of_the_same_name(
    function: str, words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def called(*_: object, **__: object) -> None:
        raise Called

    found = getattr(gridsim, words[0])
    module, _, name = function.rpartition(".")
    assert getattr(importlib.import_module(module), name) is found
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(function, called)
    with pytest.raises(Called):
        main(words)


def test_every_command_of_a_question_is_a_function() -> None:
    others = {
        "run",
        "report",
        "workload",
        "list",
        "completion",
    }  # Scenario.run, Comparison.page, and what is no question
    assert set(VERBS) - others <= set(gridsim.__all__)
