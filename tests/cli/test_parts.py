"""Custom components in a plain file or an installed package: every verb that takes their kind finds them."""

from __future__ import annotations

import csv
import json
import re
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
METRICS = '''
import dataclasses

import numpy as np


@dataclasses.dataclass
class LongWaits:
    """Share of the jobs that waited longer than *limit* seconds."""

    limit: float = 5.0
    better = "lower"

    def measure(self, record):
        return np.mean(record.wait > self.limit)


class Price:
    """Two a core."""

    unit = "EUR"

    def charge(self, record):
        return 2 * record.workload.cores


class Nothing:
    def measure(self, record):
        return "nothing"

    def charge(self, record):
        return [1]


class Makespan(LongWaits):
    """One that has a name already."""
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
    """A folder with a log and components, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text(LOG)
    (tmp_path / "parts.py").write_text(READER + TRANSFORM)
    (tmp_path / "own.py").write_text(METRICS)
    return tmp_path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Add a package with a module and an entry point of a kind to the path, as an installer would."""

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
        registry.forget()

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


def test_a_reader_gets_only_the_options_that_it_names(folder: Path) -> None:
    with pytest.raises(InputError, match="'timezone': is not an option of the format 'triples'; it has tick"):
        gs.read_workload("log.txt", format="parts.py:Triples", timezone="UTC")
    with pytest.raises(InputError, match="'rules': is not an option of the format 'triples'"):
        gs.read_workload("log.txt", format="parts.py:Triples", rules={"zero-runtime": "repair"})
    assert len(gs.read_workload("log.txt", format="parts.py:Triples", rules={"never-ran": "keep"})) == 3
    with pytest.raises(InputError, match="2 files; expected one"):
        gs.read_workload(["log.txt", "log.txt"], format="parts.py:Triples")


def test_a_reader_that_gives_no_workload_is_named(folder: Path) -> None:
    (folder / "broken.py").write_text("class Broken:\n    def read(self, path):\n        return [1, 2]\n")
    with pytest.raises(InputError, match=r"Broken\.read returned list; expected a Workload"):
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


def compared(*more: str) -> list[str]:
    given = ["compare", "log.txt", "--format", "parts.py:Triples", "--policy", "fcfs", "--policy", "easy"]
    return [*given, *more]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_a_metric_in_a_plain_file_is_in_the_table_the_numbers_and_the_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(compared("--metric", "own.py:LongWaits?limit=8", "--metric", "own.py:LongWaits")) == 0
    printed = capsys.readouterr().out
    assert re.search(r"long waits +0\.667 +0\.333 \*", printed)
    out = folder / "gridsim-results"
    found = {(row["policy"], row["metric"]): float(row["value"]) for row in rows(out / "metrics.csv") if row["value"]}
    assert (found["fcfs", "long_waits"], found["easy", "long_waits"]) == (2 / 3, 1 / 3)
    assert (found["fcfs", "long_waits(limit=8)"], found["easy", "long_waits(limit=8)"]) == (2 / 3, 1 / 3)
    assert json.loads((out / "fcfs" / "metrics.json").read_text())["long_waits"] == 2 / 3
    page = (out / "report.html").read_text()
    assert "Share of the jobs that waited longer than" in page
    assert ">long waits (limit=8)</th>" in page
    told = json.loads((out / "run.json").read_text())
    assert told["measures"] == ["long_waits(limit=8)", "long_waits"]
    assert [plugin["file"] for plugin in told["plugins"]] == ["own.py"]


def test_a_charge_in_a_plain_file_is_a_number_of_the_run_and_a_column_of_its_jobs(folder: Path) -> None:
    assert main(compared("--charge", "own.py:Price", "--charge", "core-hours?price=1800", "--no-page")) == 0
    out = folder / "gridsim-results"
    assert [row["Price".lower()] for row in rows(out / "easy" / "jobs.csv")] == ["4", "8", "4"]
    assert [row["core_hours(price=1800)"] for row in rows(out / "easy" / "jobs.csv")] == ["10", "20", "5"]
    (price,) = (row for row in rows(out / "metrics.csv") if (row["policy"], row["metric"]) == ("easy", "price"))
    assert (price["value"], price["unit"]) == ("16.0", "EUR")


def test_a_number_of_gridsims_own_is_shown_where_it_is_requested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(compared("--metric", "wait_p99", "--metric", "makespan", "--no-page")) == 0
    assert len(re.findall(r"^ wait p99 ", capsys.readouterr().out, re.MULTILINE)) == 1


def test_recipes_and_python_name_metrics_and_charges_too(folder: Path) -> None:
    workload = '[workload]\nfile = "log.txt"\nformat = "parts.py:Triples"\n'
    recipe = f'metric = ["own.py:LongWaits?limit=12"]\ncharge = ["own.py:Price"]\npolicy = "fcfs"\n{workload}'
    (folder / "one.toml").write_text(recipe)
    assert main(["run", "one.toml", "--metric", "own.py:LongWaits"]) == 0
    numbers = json.loads((folder / "gridsim-results" / "metrics.json").read_text())
    assert (numbers["long_waits(limit=12)"], numbers["long_waits"], numbers["price"]) == (1 / 3, 2 / 3, 16.0)
    factors = '[factors]\npolicy = ["fcfs", "easy"]\n'
    (folder / "many.toml").write_text(recipe.replace('policy = "fcfs"\n', "") + factors)
    assert main(["sweep", "many.toml", "--workers", "1", "--out", "swept"]) == 0
    assert [row["price"] for row in rows(folder / "swept" / "runs.csv")] == ["16.0", "16.0"]
    log = gs.read_workload("log.txt", format="parts.py:Triples")
    long_waits = registry.find("metric", "own.py:LongWaits")(limit=1.0)
    assert gs.compare(log, ["fcfs"], metrics=[long_waits]).metrics["fcfs"]["long_waits"] == 2 / 3


@pytest.mark.parametrize(
    ("option", "spec", "told"),
    [
        ("metric", "wait_p98", "unknown metric 'wait_p98'; did you mean 'wait_p9"),
        ("charge", "core-hour", "unknown charge 'core-hour'; did you mean 'core-hours'"),
        ("metric", "own.py:Price", "price is not a metric; it has no method 'measure'"),
        ("charge", "own.py:LongWaits", "long-waits is not a charge; it has no method 'charge'"),
        ("metric", "own.py:Makespan", "'makespan' exists already; give its class another 'name'"),
        ("metric", "own.py:Nothing", "'nothing' is 'nothing'; expected one number"),
        ("charge", "own.py:Nothing", "'nothing' has shape (1,); expected one number per job, 3"),
        ("metric", "own.py:LongWaits?limits=3", "unknown parameter of own.py:LongWaits 'limits'"),
    ],
)
def test_errors_in_a_metric_or_charge_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, spec: str, told: str
) -> None:
    assert main(compared(f"--{option}", spec, "--no-page")) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_metrics_and_charges_of_an_installed_package_have_names(
    folder: Path, installed: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed("metric", METRICS.split("class Price")[0])
    assert main(compared("--metric", "long-waits?limit=1", "--no-page")) == 0
    assert "long waits (limit=1)" in capsys.readouterr().out
    assert main(["list", "metrics"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    assert "from our-site 1.0" in listed
    assert "wait_mean" in listed


@pytest.mark.parametrize("kind", sorted(kind for kind, own in registry.KINDS.items() if own))
def test_an_unknown_name_of_any_kind_is_met_with_the_nearest_one(kind: str) -> None:
    known = registry.spellings(kind)
    with pytest.raises(UnknownNameError, match=f"unknown {kind} '{known[0]}x'; did you mean"):
        registry.make(kind, f"{known[0]}x")
