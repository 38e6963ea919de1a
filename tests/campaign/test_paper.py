"""Papers from installed packages."""

from __future__ import annotations

import importlib.metadata
import sys
from types import ModuleType

import pytest

from gridsim.campaign.paper import GROUP, papers
from gridsim.cli import main
from gridsim.errors import InputError


def bring(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Simulate the installation of packages whose entry points name these modules, and of no others."""
    entries = [importlib.metadata.EntryPoint(f"entry{at}", name, GROUP) for at, name in enumerate(modules)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> str:
    made = ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return name


def test_papers_of_all_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = object(), object()
    names = [module(monkeypatch, "own_study", PAPERS={"z": one}), module(monkeypatch, "more", PAPERS={"a": other})]
    bring(monkeypatch, *names)
    assert papers() == {"z": one, "a": other}


def test_errors_in_a_package_are_reported_with_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, "nowhere_to_be_found")
    with pytest.raises(InputError, match=r"entry point 'entry0' of gridsim.paper.*cannot be imported: ModuleNotFound"):
        papers()
    bring(monkeypatch, module(monkeypatch, "own_study"))
    with pytest.raises(InputError, match="own_study has no PAPERS; expected a mapping"):
        papers()
    bring(monkeypatch, *(module(monkeypatch, name, PAPERS={"mine": object()}) for name in ("own_study", "more")))
    with pytest.raises(InputError, match=r"entry1.*there is another paper 'mine'"):
        papers()


def test_without_papers_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bring(monkeypatch)
    assert main(["reproduce"]) == 2
    assert "no installed package contains papers" in capsys.readouterr().err
