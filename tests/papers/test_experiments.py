"""Tables of experiments: the schedules that they define, each under its policy, in a stable order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from gridsim.errors import UnknownNameError
from gridsim_papers.deadline.campaign import DeadlineCampaign
from gridsim_papers.experiments import schedules
from gridsim_papers.moldable.campaign import MoldableCampaign
from gridsim_papers.paper import RECIPES

Points = Mapping[tuple[Any, ...], Iterable[str]]

DEADLINE = {
    ("tiny", "ctc"): (445, "60e10ecec985b68b"),
    ("tiny", "sdsc"): (261, "6f820ea9efd4830b"),
    ("tiny", "model"): (445, "7dcc5cad65c065b5"),
    ("test", "ctc"): (1_205, "922494c21a363187"),
    ("test", "sdsc"): (837, "8359b7462c21d033"),
    ("test", "model"): (1_205, "26a4b44d059f085c"),
    ("small", "ctc"): (4_881, "5acc87efe5a92fbc"),
    ("small", "sdsc"): (2_337, "555f3158396a9a52"),
    ("small", "model"): (4_881, "6c582ef9d0816504"),
    ("full", "ctc"): (19_281, "082a2e9862b6099a"),
    ("full", "sdsc"): (7_641, "ddd50fa9d7ab024c"),
    ("full", "model"): (19_281, "5c141917bb2bac2f"),
}
"""By scale and log: the number of schedules, and a checksum from the time when experiments were written in Python."""

MOLDABLE = {
    "tiny": (224, "b8671641b8e6091a"),
    "test": (956, "d18405a20b6ae499"),
    "small": (7_176, "5c99fafa5ac1758b"),
    "full": (14_950, "3980eb3dc8cbf251"),
}


def told(unit: str, points: Points) -> list[str]:
    """A line for each schedule of a unit; 1 and 1.0 are different, as in stored rows."""
    return [", ".join(map(repr, (unit, *point, *sorted(groups)))) for point, groups in points.items()]


def checked(lines: list[str]) -> tuple[int, str]:
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("scale", "log"), DEADLINE)
def test_schedules_of_the_deadline_studies_are_those_of_stores_begun_before(scale: str, log: str) -> None:
    campaign = DeadlineCampaign.from_toml(RECIPES / "deadline.toml", scale=scale, logs=(log,), streams=2)
    lines = [line for unit in campaign.units() for line in told(unit.file, campaign.points(unit))]
    assert checked(lines) == DEADLINE[scale, log]


@pytest.mark.parametrize("scale", MOLDABLE)
def test_schedules_of_the_moldable_study_are_those_of_stores_begun_before(scale: str) -> None:
    campaign = MoldableCampaign.from_toml(RECIPES / "moldable.toml", scale=scale)
    points: Points = dict.fromkeys(campaign.points(), ())
    lines = [line for unit in campaign.units() for line in told(unit.file, points)]
    # An old name: such rows are read with the present name.
    assert checked([line.replace("others=", "besides=") for line in lines]) == MOLDABLE[scale]


def test_a_grid_is_every_combination_with_defaults_for_missing_entries() -> None:
    campaign = MoldableCampaign(sigmas=(0.0, 2.0), load_factors=(100.0, 150.0))
    sets = {"@two": ("moldable-base", "moldable-start")}
    grid = {"load_factors": "last", "sigmas": "all", "schemes": ["@two"]}
    assert list(schedules("moldable", grid, campaign, sets)) == [
        (150.0, sigma, "gaps", 1, "", scheme) for sigma in (0.0, 2.0) for scheme in ("moldable-base", "moldable-start")
    ]
    assert list(schedules("moldable", {}, campaign, sets)) == [(100, 0, "gaps", 1, "", "conservative")]


def test_values_may_be_those_that_the_campaign_has_under_another_name() -> None:
    campaign = DeadlineCampaign(service_loads=(1.3, 1.9))
    for told, loads in (("all service_loads", [1.3, 1.9]), ("last service_loads", [1.9]), ("last", [1.6])):
        settings = schedules("deadline", {"loads": told, "schemes": ["easy"]}, campaign, {})
        assert [load for _, load, *_ in settings] == loads


def test_claims_without_an_experiment_are_named() -> None:
    campaign = DeadlineCampaign()
    with pytest.raises(UnknownNameError, match="lods"):
        schedules("deadline", {"lods": [1.0]}, campaign, {})
    with pytest.raises(UnknownNameError, match="first"):
        schedules("deadline", {"loads": "first"}, campaign, {})
    with pytest.raises(UnknownNameError, match="servce_loads"):
        schedules("deadline", {"loads": "all servce_loads"}, campaign, {})


@pytest.mark.long
def test_every_set_of_policies_that_an_experiment_names_is_one() -> None:
    deadline = DeadlineCampaign()
    named = {point.scheme for unit in deadline.units() for point in deadline.points(unit)}
    named |= {point.scheme for point in MoldableCampaign().points()}
    assert len(named) > 40
    assert not [scheme for scheme in named if scheme.startswith("@")]
