"""The table of commands and options."""

from __future__ import annotations

import argparse
import re

import pytest

from gridsim.cli import VERBS
from gridsim.cli.arguments import GROUPS, add_arguments, declared, options_of
from gridsim.cli.list import KINDS


def test_every_option_and_set_is_used_and_exists() -> None:
    table = declared()
    holders = [*table["command"].values(), *({"options": it} for it in table["set"].values())]
    named = {part for it in holders for name in it.get("options", ()) for part in name.split(" | ")}
    variants = {name.split("/")[0] for name in table["option"] if "/" in name}
    assert {name for name in named if name[0] != "@"} | variants == table["option"].keys()
    assert {name[1:] for name in named if name[0] == "@"} == table["set"].keys()
    assert {it["group"] for name, it in table["option"].items() if "/" not in name} == {*GROUPS}


def test_a_renamed_option_has_its_new_name_in_a_command() -> None:
    table = declared()
    for old, new in table["renamed"].items():
        name, _, command = old.partition("/")
        holders = [command] if command else table["command"]
        assert [it for it in holders if new.split()[0] in options_of(it) and name not in options_of(it)], old


def test_a_variant_changes_something() -> None:
    options = declared()["option"]
    for name, fields in options.items():
        base = options[name.split("/")[0]]
        if "/" in name:
            assert fields
            assert all(repr(base.get(key)) != repr(value) for key, value in fields.items()), name
            assert all(key in base for key, value in fields.items() if value is False), name


def test_help_names_every_kind_that_can_be_listed() -> None:
    assert ", ".join(KINDS) in declared()["option"]["kind"]["help"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_default_in_a_help_text_is_the_default(verb: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, verb)
    for action in parser._actions:
        stated = re.search(r"\(default: (\w+)\)$", action.help or "")
        if stated and action.default is not None and action.choices:
            assert str(action.default) == stated[1], action.option_strings
