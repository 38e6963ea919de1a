"""Installed files: every package and data file of both roots, and no missing file."""

from __future__ import annotations

import configparser
import importlib.metadata
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"gridsim": ROOT / "gridsim", "gridsim_papers": ROOT / "scenarios" / "papers" / "gridsim_papers"}


@pytest.fixture(scope="module")
def told() -> configparser.ConfigParser:
    """Content of setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_the_roots_are_where_they_are_said_to_be(told: configparser.ConfigParser) -> None:
    places = dict(line.split(" = ") for line in lines(told["options"]["package_dir"]))
    assert {name: ROOT / place for name, place in places.items()} == FOLDERS


def test_every_package_is_listed_once(told: configparser.ConfigParser) -> None:
    there = {
        ".".join((root, *path.parent.relative_to(folder).parts))
        for root, folder in FOLDERS.items()
        for path in folder.rglob("*.py")
    }
    assert lines(told["options"]["packages"]) == sorted(there)


@pytest.mark.parametrize("root", FOLDERS)
def test_every_data_file_is_taken_along(root: str, told: configparser.ConfigParser) -> None:
    patterns = lines(told["options.package_data"][root])
    files = [path.relative_to(FOLDERS[root]) for path in FOLDERS[root].rglob("*") if path.is_file()]
    names = {str(path) for path in files if path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts}
    assert names
    assert not {name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)}
    assert not {pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)}


def requirements(told: configparser.ConfigParser) -> list[tuple[str, str, str]]:
    """Name, oldest version and bound of each requirement of the package and its extras."""
    texts = [told["options"]["install_requires"], *told["options.extras_require"].values()]
    found = [
        re.fullmatch(r"([a-z0-9-]+) >= ([0-9.]+), < ([0-9.]+)(?:;.*)?", line) for text in texts for line in lines(text)
    ]
    assert None not in found
    return sorted({match.group(1, 2, 3) for match in found if match is not None})


def test_the_oldest_versions_that_ci_runs_are_those_that_are_declared(told: configparser.ConfigParser) -> None:
    file = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    run = {line.split(" == ")[0]: line.split(" == ")[1] for line in lines(file) if not line.startswith("#")}
    declared = {name: oldest for name, oldest, _ in requirements(told)}
    assert run == {name: declared.get(name) for name in run}
    tested = [
        told["options"]["install_requires"],
        *(told["options.extras_require"][it] for it in ("test", "parquet", "zstd")),
    ]
    assert run.keys() == {line.split()[0] for text in tested for line in lines(text)}


def test_installed_packages_are_within_the_declared_versions(told: configparser.ConfigParser) -> None:
    def numbers(version: str) -> list[int]:
        return [int(part) for part in re.findall(r"[0-9]+", version)]

    outside = []
    for name, oldest, bound in requirements(told):
        with suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            if not numbers(oldest) <= numbers(version) < numbers(bound):
                outside.append((name, version))
    assert outside == []


def test_entry_points_name_existing_files(told: configparser.ConfigParser) -> None:
    for entries in told["options.entry_points"].values():
        for entry in lines(entries):
            module, _, attribute = entry.split(" = ")[1].partition(":")
            assert hasattr(importlib.import_module(module), attribute or "__doc__")
