"""Experiments as tables: a name, and grids of settings with the policies of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any

from gridsim.errors import UnknownNameError
from gridsim.files import read_toml
from gridsim_papers.paper import RECIPES
from gridsim_papers.units import Tabled

__all__ = ["Grid", "experiments", "schedules"]

Grid = Mapping[str, Any]
"""Values of each part of a setting, and the ``schemes``; ``groups`` of jobs whose numbers are also stored."""


@cache
def _file(family: str) -> Mapping[str, Any]:
    return read_toml(RECIPES / f"{family}-experiments.toml")


def experiments(family: str, *tables: str) -> dict[str, Sequence[Grid]]:
    """Grids of each experiment by name, in file order, limited to the given tables."""
    return {name: grids for table in tables for name, grids in _file(family)[table].items()}


def schedules(
    family: str, grid: Grid, campaign: Tabled, sets: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Any, ...]]:
    """Every combination of a grid, in the order of the usual settings, of which the first varies slowest.

    Parameters
    ----------
    family : str
        Family whose file contains the grid; its ``[usual]`` table has the settings that a grid omits.
    campaign : Tabled
        ``"all name"`` in a grid means its attribute *name*, and ``"last name"`` the last value of it. Without a name,
        the attribute with the name of the setting is used.
    sets : mapping of str to sequence of str
        Names for groups of policies, in addition to those of ``[sets]``.

    Raises
    ------
    UnknownNameError
        For an unknown part of a setting, or an unknown way to take values from the campaign.
    """
    usual = _file(family)["usual"]
    for name in grid:
        if name not in usual and name != "groups":
            raise UnknownNameError(f"key of an experiment of {family}", name, (*usual, "groups"))
    values = {name: _values(name, told, campaign) for name, told in {**usual, **grid}.items() if name != "groups"}
    every = {**_file(family).get("sets", {}), **sets}
    values["schemes"] = [policy for scheme in values["schemes"] for policy in every.get(scheme, (scheme,))]
    return product(*values.values())


def _values(name: str, told: Sequence[Any] | str, campaign: Tabled) -> Sequence[Any]:
    if not isinstance(told, str):
        return told
    which, _, other = told.partition(" ")
    source = other or name
    ways = {"all": slice(None), "last": slice(-1, None)}
    if which not in ways:
        raise UnknownNameError("way to take values from a campaign", which, ways)
    if not hasattr(campaign, source):
        known = [entry.name for entry in fields(campaign)]  # type: ignore[arg-type]  # a dataclass
        raise UnknownNameError("key of a campaign", source, known)
    values: Sequence[Any] = getattr(campaign, source)
    return values[ways[which]]
