"""Features that are not modelled are refused, with a pointer to the page that lists them."""

from __future__ import annotations

import importlib.util
import shutil
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from gridsim.cli import main
from gridsim.errors import NOT_MODELLED, UnknownNameError

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/what-is-modelled"
FEATURES = tomllib.loads((ROOT / f"{PAGE}.toml").read_text(encoding="utf-8"))["feature"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for examples in ("docs/examples", "scenarios/examples"):
        shutil.copytree(ROOT / examples, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("command", [command for feature in FEATURES for command in feature["refused"]])
def test_unmodelled_features_are_refused_with_a_pointer(
    command: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert main(command.split()) == 2
    assert f"not modelled (see {PAGE})" in capsys.readouterr().err


def test_the_page_that_errors_name_exists() -> None:
    assert (ROOT / f"{PAGE}.md").is_file()


@pytest.mark.parametrize("word", NOT_MODELLED.split())
def test_a_name_with_a_word_of_a_missing_feature_points_to_the_page(word: str) -> None:
    error = UnknownNameError("parameter", f"node_{word}", ["order", word[:-1]])
    assert PAGE in str(error)
    assert "did you mean" not in str(error)


def test_other_unknown_names_are_only_unknown() -> None:
    error = UnknownNameError("ordering", "sfj", ["sjf"])
    assert str(error) == "unknown ordering 'sfj'; did you mean 'sjf'? known: sjf"


@pytest.fixture(scope="module")
def modelled() -> ModuleType:
    """The module that makes the lists of the page."""
    spec = importlib.util.spec_from_file_location("modelled", ROOT / "docs" / "_ext" / "modelled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_deadlines_of_workflows_and_some_policies_with_classes_are_refused(modelled: ModuleType) -> None:
    policies = list(modelled.POLICIES)
    refused = {
        (jobs, machine, policies[place])
        for jobs, machine, results in modelled.combinations()
        for place, result in enumerate(results)
        if result == "–"
    }
    classless = ("guaranteed deadlines", "sizes by the scheduler", "Slurm")
    assert refused == {
        *(("workflows", machine, "guaranteed deadlines") for machine in modelled.MACHINES),
        *(("with priority classes", machine, policy) for machine in modelled.MACHINES for policy in classless),
    }


def test_keywords_that_are_modelled_are_not_listed_as_missing(modelled: ModuleType) -> None:
    for section, known, reported in modelled.keywords():
        assert known or reported, section
        assert not set(known) & set(reported), section
