"""The published campaign at the scale of the tests, run once per session."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.campaign.run import run_campaign
from gridsim_papers.grid.campaign import GridCampaign, Row, read_rows
from gridsim_papers.paper import RECIPES

RECIPE = RECIPES / "grid.toml"


@pytest.fixture(scope="session")
def recipe() -> Path:
    """The recipe of the campaign."""
    return RECIPE


@pytest.fixture(scope="session")
def campaign_rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Rows of 5 kinds x 3 workloads x 2 loads x 7 policies, a tenth of the jobs on a tenth of the cores; 12 s CPU."""
    folder = tmp_path_factory.mktemp("campaign")
    run_campaign(GridCampaign.from_toml(RECIPE, scale="test"), folder)
    return read_rows(folder)
