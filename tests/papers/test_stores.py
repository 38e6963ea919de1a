"""Stores created when the campaigns were part of gridsim can still be continued.

``stores.json`` contains the identities of the stores of ``gridsim reproduce --scale tiny`` at that time, without the
version, and the names of their files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.campaign.paper import Order
from gridsim.campaign.run import progress_of, run_campaign
from gridsim.campaign.store import RUNS, Store
from gridsim.errors import InputError
from gridsim.result import versions
from gridsim_papers.grid.campaign import TABLE, GridCampaign
from gridsim_papers.moldable.campaign import LANES
from gridsim_papers.moldable.campaign import TABLE as MOLDABLE
from gridsim_papers.paper import Part
from gridsim_papers.papers import PAPERS

STORES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("stores.json").read_text(encoding="utf-8"))


def begun(folder: Path, campaign: dict[str, Any], files: dict[str, str]) -> Store:
    """A store as an earlier run left it, with the present version."""
    (folder / RUNS).mkdir(parents=True)
    told = {"version": versions()["gridsim"], **campaign}
    (folder / "campaign.json").write_text(json.dumps(told), encoding="utf-8")
    for name, text in files.items():
        (folder / RUNS / name).write_text(text, encoding="utf-8")
    return Store(folder)


def parts() -> dict[str, Part]:
    """Units of each paper at the smallest scale."""
    return {part.store: part for paper in PAPERS.values() for part in paper.family.plan(paper, Order("tiny")).parts}


def test_every_part_of_the_papers_has_a_store_from_then() -> None:
    assert set(parts()) == set(STORES)


@pytest.mark.parametrize("name", STORES)
def test_a_finished_store_is_one_of_its_campaign_and_nothing_is_run(name: str, tmp_path: Path) -> None:
    there = STORES[name]
    part = parts()[name]
    store = begun(tmp_path / name, there["campaign"], dict.fromkeys(there["runs"], part.campaign.table.text([])))
    with pytest.warns(UserWarning, match="of an earlier version without checksums, used unverified"):
        assert run_campaign(part.campaign, store.folder).units == 0
    at = progress_of(part.campaign, store)
    assert at.finished == at.total == len(there["runs"])


def test_a_store_that_was_stopped_continues_with_what_is_missing(tmp_path: Path) -> None:
    campaign = GridCampaign(workloads=2, kinds=("chain",), policies=("srtf", "lrtf"), loads=(1.2,), part=0.005)
    then = {**STORES["grid-tiny"]["campaign"], "policies": ["srtf", "lrtf"], "loads": [1.2], "part": 0.005}
    store = begun(tmp_path / "again", {**then, "cluster_cores": 1000}, {"chain-01.csv": TABLE.text([])})
    with pytest.warns(UserWarning, match="1 result of an earlier version without checksums, used unverified"):
        assert run_campaign(campaign, store.folder).units == 1
    assert {row["workload"] for row in TABLE.read(store.folder)} == {2}


def test_rows_that_were_damaged_are_computed_again(tmp_path: Path) -> None:
    campaign = GridCampaign(workloads=2, kinds=("chain",), policies=("srtf", "lrtf"), loads=(1.2,), part=0.005)
    store = Store(tmp_path / "store")
    run_campaign(campaign, store.folder)
    path = store.path("chain-02.csv")
    before = path.read_bytes()
    path.write_bytes(before.rsplit(b"\n", 2)[0] + b"\n")  # without its last row
    with pytest.raises(InputError, match=r"chain-02\.csv: is damaged"):
        TABLE.read(store.folder)
    with pytest.warns(UserWarning, match=r"1 damaged result discarded, which run again: .*chain-02\.csv"):
        assert run_campaign(campaign, store.folder).units == 1
    assert path.read_bytes() == before
    assert {row["workload"] for row in TABLE.read(store.folder)} == {1, 2}


def test_rows_of_a_policy_whose_parameter_had_another_name_are_found_under_its_present_one() -> None:
    texts = ["ctc", "0", "0.65", "gaps", "100.0", "0.0", "1.0", ""]
    scheme = "moldable-base?reserve=xfactor(k=4,{}=category)"
    row = MOLDABLE.value_of([*texts, scheme.format("besides"), "response_mean", "", "3.5"])
    assert row["scheme"] == scheme.format("others") == LANES[2]
