"""Claims of the README: two commands, of which CI runs the second."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gridsim.cli.arguments import add_arguments

ROOT = Path(__file__).resolve().parent.parent


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line[2:] for block in re.findall(r"```console\n(.*?)```", text, re.S) for line in block.splitlines()]


def test_the_readme_sets_up_and_answers_in_one_line_and_tests_in_another() -> None:
    main, tests, *_ = commands()
    assert main.endswith("&& .venv/bin/gridsim compare")
    assert "pytest" in tests


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert commands()[1] in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


def test_every_file_that_the_readme_shows_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_output_of_commands_is_not_left_untracked_in_a_clone() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not in a clone")
    campaigns = [Path(command.split()[2]).stem for command in commands() if "gridsim sweep" in command]
    assert campaigns
    default = argparse.ArgumentParser()
    add_arguments(default, "reproduce")
    folders = ["gridsim-results", *(f"{stem}-results" for stem in campaigns), default.get_default("out")]
    for folder in folders:
        found = subprocess.run(["git", "check-ignore", "-q", f"{folder}/runs.csv"], cwd=ROOT, check=False)
        assert found.returncode == 0, folder
