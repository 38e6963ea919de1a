"""Parts of a user's own, in a plain file or an installed package: found by every verb that takes one of their kind."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gridsim as gs
from gridsim import registry
from gridsim.cli import main
from gridsim.errors import InputError, UnknownNameError

READER = '''
"""Another program's log."""
import numpy as np
from gridsim import Workload

__all__ = ["Triples"]


class Triples:
    """Submit, runtime and cores of a job a line."""

    def recognises(self, beginning):
        return beginning.startswith(b"triples")

    def read(self, path, *, cores=None, tick=1.0):
        with open(path) as file:
            table = np.array([line.split() for line in file if line[:1].isdigit()], dtype=float)
        submit, runtime, width = table.T
        return Workload.from_columns(submit=submit, runtime=runtime * tick, cores=width.astype(int), cores_stated=4)
'''
LOG = "triples\n0 10 2\n1 10 4\n2 5 2\n"
TRANSFORM = '''
import dataclasses


@dataclasses.dataclass
class Doubled:
    """Runtimes and estimates *times* as long."""

    times: int = 2

    def apply(self, workload, rng):
        longer = {name: getattr(workload, name) * self.times for name in ("runtime", "estimate")}
        return dataclasses.replace(workload, **longer)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log and parts, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text(LOG)
    (tmp_path / "parts.py").write_text(READER + TRANSFORM.replace("import dataclasses", "import dataclasses", 1))
    return tmp_path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Puts a package with a module and an entry point of a kind on the path, as an installer would."""

    def install(kind: str, module: str) -> None:
        info = tmp_path / "site" / "our_site-1.0.dist-info"
        info.mkdir(parents=True)
        (tmp_path / "site" / "our_site.py").write_text(module)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-site\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[gridsim.{kind}]\nours = our_site\n")
        monkeypatch.syspath_prepend(tmp_path / "site")
        forget()

    def forget() -> None:
        sys.modules.pop("our_site", None)
        registry._modules.cache_clear()
        registry._table.cache_clear()

    yield install
    monkeypatch.undo()
    forget()


def test_a_reader_in_a_plain_file_reads_for_every_verb(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = ["--format", "parts.py:Triples"]
    assert main(["compare", "log.txt", *reader, "--policy", "fcfs", "--policy", "easy", "--no-page"]) == 0
    assert "log.txt, 3 of 3 jobs" in capsys.readouterr().out
    told = json.loads((folder / "gridsim-results" / "run.json").read_text())["workload"]
    assert (told["source"], told["format"], told["jobs_read"]) == ("log.txt", "triples", 3)
    assert [plugin["file"] for plugin in told["plugins"]] == ["parts.py"]
    assert main(["workload", "describe", "log.txt", *reader]) == 0
    assert main(["workload", "check", "log.txt", *reader]) == 0
    assert "3 kept of 3" in capsys.readouterr().out
    assert main(["workload", "convert", "log.txt", "log.swf", *reader]) == 0
    assert gs.read_workload(folder / "log.swf").runtime.tolist() == [10_000_000, 10_000_000, 5_000_000]


def test_a_reader_in_a_plain_file_is_named_in_a_recipe_and_from_python(folder: Path) -> None:
    (folder / "recipes").mkdir()
    for name in ("log.txt", "parts.py"):
        (folder / name).rename(folder / "recipes" / name)
    recipe = '[workload]\nfile = "log.txt"\nformat = "parts.py:Triples"\ntransforms = ["parts.py:Doubled?times=3"]\n'
    (folder / "recipes" / "one.toml").write_text(recipe)
    assert main(["run", "recipes/one.toml"]) == 0
    told = json.loads((folder / "gridsim-results" / "run.json").read_text())["workload"]
    assert told["transforms"] == [{"transform": "Doubled(times=3)"}]
    read = gs.read_workload(folder / "recipes" / "log.txt", format=f"{folder}/recipes/parts.py:Triples", tick=2.0)
    assert read.runtime.tolist() == [20_000_000, 20_000_000, 10_000_000]


def test_a_transform_in_a_plain_file_changes_the_workload(folder: Path) -> None:
    given = ["compare", "log.txt", "--format", "parts.py:Triples", "--policy", "fcfs", "--no-page"]
    assert main([*given, "--transform", "parts.py:Doubled"]) == 0
    assert json.loads((folder / "gridsim-results" / "metrics.json").read_text())["fcfs"]["makespan"] == 50.0


def test_a_reader_is_asked_only_for_what_it_names(folder: Path) -> None:
    with pytest.raises(InputError, match="'timezone': is no option of the format 'triples'; it has tick"):
        gs.read_workload("log.txt", format="parts.py:Triples", timezone="UTC")
    with pytest.raises(InputError, match="'rules': is no option of the format 'triples'"):
        gs.read_workload("log.txt", format="parts.py:Triples", rules={"zero-runtime": "repair"})
    assert len(gs.read_workload("log.txt", format="parts.py:Triples", rules={"never-ran": "keep"})) == 3
    with pytest.raises(InputError, match="2 files; expected one"):
        gs.read_workload(["log.txt", "log.txt"], format="parts.py:Triples")


def test_a_reader_that_gives_no_workload_is_named(folder: Path) -> None:
    (folder / "broken.py").write_text("class Broken:\n    def read(self, path):\n        return [1, 2]\n")
    with pytest.raises(InputError, match=r"Broken\.read gave list; expected a Workload"):
        gs.read_workload("log.txt", format="broken.py:Broken")


def test_a_reader_of_an_installed_package_recognises_its_files(
    folder: Path, installed: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed("reader", READER)
    workload = gs.read_workload("log.txt")
    assert workload.provenance["plugins"][0]["package"] == "our-site 1.0"
    assert main(["list", "readers"]) == 0
    assert "from our-site 1.0" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(UnknownNameError, match="unknown reader 'tripels'; did you mean 'triples'"):
        gs.read_workload("log.txt", format="tripels")


def test_a_transform_of_an_installed_package_has_a_name(folder: Path, installed: Callable[[str, str], None]) -> None:
    installed("transform", TRANSFORM)
    given = ["compare", "log.txt", "--format", "parts.py:Triples", "--policy", "fcfs", "--no-page"]
    assert main([*given, "--transform", "doubled?times=3"]) == 0
    assert json.loads((folder / "gridsim-results" / "metrics.json").read_text())["fcfs"]["makespan"] == 75.0


@pytest.mark.parametrize("kind", sorted(registry.KINDS))
def test_an_unknown_name_of_any_kind_is_met_with_the_nearest_one(kind: str) -> None:
    known = registry.spellings(kind)
    with pytest.raises(UnknownNameError, match=f"unknown {kind} '{known[0]}x'; did you mean"):
        registry.make(kind, f"{known[0]}x")
