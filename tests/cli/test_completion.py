"""``gridsim completion``: scripts of the shells, and what bash completes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gridsim.cli import VERBS, main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(words: str, folder: Path) -> list[str]:
    """Return the completions that bash offers for the last word."""
    code = r"""
source ./script
COMP_WORDS=(gridsim $1)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p gridsim | sed 's/.*-F \([^ ]*\).*/\1/')
$function gridsim "${COMP_WORDS[-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", code, "bash", words], cwd=folder, capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


def test_bash_completes_commands_options_choices_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script").write_text(script("bash", capsys))
    (tmp_path / "site.swf").touch()
    (tmp_path / "sites").mkdir()
    assert completed("comp", tmp_path) == ["compare", "completion"]
    assert completed("workload chec", tmp_path) == ["check"]
    assert completed("compare --add-", tmp_path) == ["--add-nodes", "--add-pool"]
    assert completed("quote --add-", tmp_path) == []
    assert completed("whatif --partitions ap", tmp_path) == ["apart"]
    assert completed("compare --shake-", tmp_path) == ["--shake-by"]  # an advanced option
    assert completed("compare --platform si", tmp_path) == ["site.swf", "sites"]
    assert completed("calibrate site", tmp_path) == ["site.swf", "sites"]
    assert completed("compare --out si", tmp_path) == ["sites"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_every_shell_has_a_script_with_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = script(shell, capsys)
    assert all(verb in told for verb in VERBS)
    assert "flurries" in told  # below workload


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err == "gridsim: error: completion needs shtab; pip install shtab\n"
