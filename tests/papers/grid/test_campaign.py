"""The published campaign: its schedules, stored numbers, and a restart that runs only the missing units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gridsim as gs
from gridsim.campaign.run import run_campaign
from gridsim.errors import InputError, UnknownNameError
from gridsim.model.platform import machine_cores
from gridsim.record import Record
from gridsim_papers.grid.campaign import GridCampaign, read_rows, schedule_rows
from gridsim_papers.grid.industrial import KIND, LOG, MINUTES, IndustrialCampaign, industrial_rows, with_shares

SMALL = GridCampaign(workloads=1, kinds=("prob", "log-ind"), loads=(0.8, 1.2), part=0.02, cluster_cores=40)


@pytest.mark.parametrize(("scale", "schedules"), [("tiny", 140), ("test", 210), ("small", 700), ("full", 5_250)])
def test_the_recipe_has_the_schedules_of_its_scale(recipe: Path, scale: str, schedules: int) -> None:
    assert GridCampaign.from_toml(recipe, scale=scale).schedules == schedules


def test_the_full_scale_is_the_default_campaign_and_the_small_one_a_part_of_it(recipe: Path) -> None:
    full = GridCampaign.from_toml(recipe, scale="full")
    assert full == GridCampaign()
    assert GridCampaign.from_toml(recipe, scale="small") == GridCampaign(workloads=4)


def test_the_grid_has_three_clusters_of_the_first_kind_and_one_of_the_second() -> None:
    platform = GridCampaign().platform
    clusters = [(cluster.kind, cluster.cores) for cluster in platform.clusters()]
    assert clusters == [("Kind1", 1_000)] * 3 + [("Kind2", 1_000)]
    assert platform.network.ccr == "1/5"


@pytest.mark.parametrize(
    ("text", "scale", "named"),
    [("[scale.small]\nworkloads = 1", "smal", "small"), ("job = 3\n[scale.small]", "small", "job")],
)
def test_an_unknown_scale_or_key_is_named(tmp_path: Path, text: str, scale: str, named: str) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(text)
    with pytest.raises(UnknownNameError, match=named):
        GridCampaign.from_toml(path, scale=scale)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(UnknownNameError, match="chain"):
        GridCampaign(kinds=("chian",))


def test_the_same_workload_is_met_at_every_load() -> None:
    low, high = (SMALL.workload("prob", 1, load) for load in (0.8, 1.2))
    assert low.tasks is not None
    assert high.tasks is not None
    for name in ("runtime", "cores", "kind", "edge_to", "first"):
        assert (getattr(low.tasks, name) == getattr(high.tasks, name)).all()
    assert (low.labels["share"] == high.labels["share"]).all()
    np.testing.assert_allclose(low.submit[1:] / high.submit[1:], 1.5, rtol=1e-3)


def test_the_loguniform_twin_changes_sizes_where_the_paper_says_log_alone() -> None:
    twin = GridCampaign(workloads=1, part=0.02, sizes="loguniform")
    plain = GridCampaign(workloads=1, part=0.02)
    assert (twin.workload("uni-ind", 1, 1.0).runtime == plain.workload("uni-ind", 1, 1.0).runtime).all()
    ratios = [
        float(np.quantile(campaign.workload("log-ind", 1, 1.0).runtime, 0.9))
        / float(np.quantile(campaign.workload("log-ind", 1, 1.0).runtime, 0.1))
        for campaign in (plain, twin)
    ]
    assert ratios[1] > 50 * ratios[0]


@pytest.mark.long
def test_rows_do_not_depend_on_workers_on_other_units_or_on_a_restart(tmp_path: Path) -> None:
    alone, shared, resumed = (tmp_path / name for name in ("alone", "shared", "resumed"))
    run_campaign(SMALL, alone)
    run_campaign(SMALL, shared, workers=2)
    run_campaign(replace(SMALL, kinds=("log-ind",)), resumed)
    told: list[str] = []
    run_campaign(SMALL, resumed, listener=lambda done, at: told.append(done.unit.log))
    assert told == ["prob"]
    files = sorted(path.name for path in (alone / "runs").iterdir())
    assert files == ["log-ind-01.csv", "prob-01.csv"]
    for name in files:
        one, other, third = ((folder / "runs" / name).read_bytes() for folder in (alone, shared, resumed))
        assert one == other == third
    assert run_campaign(SMALL, alone).units == 0


def test_random_may_draw_again_at_each_cycle_and_keeps_its_name() -> None:
    tiny = GridCampaign(
        workloads=1, kinds=("prob",), loads=(1.2,), policies=("random", "srtf"), part=0.1, cluster_cores=100
    )
    again = replace(tiny, random_hold=False)
    worst = [
        {row["policy"]: row["value"] for row in campaign.rows(campaign.units()[0]) if row["metric"] == "mean_slr"}
        for campaign in (tiny, again)
    ]
    assert worst[0]["srtf"] == worst[1]["srtf"]
    assert worst[0]["random"] != worst[1]["random"]


def test_a_folder_takes_more_workloads_but_no_other_campaign(tmp_path: Path) -> None:
    tiny = GridCampaign(workloads=1, kinds=("log-ind",), loads=(1.2,), policies=("srtf",), part=0.01)
    run_campaign(tiny, tmp_path)
    more = replace(tiny, workloads=2)
    told: list[int] = []
    run_campaign(more, tmp_path, listener=lambda done, at: told.append(done.unit.window))
    assert told == [2]
    other = replace(tiny, seed=2)
    with pytest.raises(InputError, match=r"campaign.json.*seed"):
        run_campaign(other, tmp_path)


def test_a_folder_without_rows_and_a_file_with_other_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run the campaign first"):
        read_rows(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "rows.csv").write_text("kind,load\n")
    with pytest.raises(InputError, match=r"rows.csv line 1.*kind, load"):
        read_rows(tmp_path)


def test_cumulative_completion_counts_up_to_the_longest_makespan_of_the_policies() -> None:
    def record(start: float) -> Record:
        return Record.from_rows([{"submit": 0, "start": start, "end": start + 4, "cores": 1}])

    rows = list(schedule_rows({"early": record(0), "late": record(6)}, {"kind": "", "workload": 1, "load": 1.0}))
    found = {(row["policy"], row["metric"]): row["value"] for row in rows if row["decile"] is None}
    assert found["early", "cumulative_completion_base"] == found["late", "cumulative_completion_base"] == 10
    assert found["early", "cumulative_completion"] == (1 + 10 - 4) * 4
    assert found["late", "cumulative_completion"] == (1 + 10 - 10) * 4


def test_queue_numbers_of_three_jobs_equal_a_calculation_by_hand() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 4, "cores": 1},
            {"submit": 1, "start": 4, "end": 8, "cores": 1},
            {"submit": 10, "start": 10, "end": 14, "cores": 1},
        ]
    )
    rows = schedule_rows({"fifo": record}, {"kind": "", "workload": 1, "load": 1.0})
    found = {row["metric"]: row["value"] for row in rows if row["decile"] is None}
    assert found["queue_mean"] == pytest.approx(3 / 10)  # one job waits 3 s of the 10 s of arrivals
    assert found["queue_most"] == 1
    assert found["completion_gap"] == pytest.approx(4 / 4)
    assert found["least_slr"] == 1


SITE = gs.Workload.from_columns(
    submit=[0, 60, 60, 120, 180], runtime=[600, 60, 120, 60, 300], cores=[4, 2, 4, 1, 3], job=[1, 2, 3, 4, 5]
)


def test_the_industrial_rows_draw_shares_and_order_again_and_nothing_else() -> None:
    rows = list(industrial_rows(SITE, 4, seeds=3))
    draws = {
        policy: {row["workload"] for row in rows if row["policy"] == policy and row["kind"] == KIND}
        for policy in ("p-slr", "random", "fair-share")
    }
    assert draws == {"p-slr": {1}, "random": {1, 2, 3}, "fair-share": {1, 2, 3}}
    assert {row["policy"] for row in rows if row["kind"] == MINUTES} == {"p-slr"}
    assert not any(row["metric"] == "starts_equal" for row in rows)
    assert (with_shares(SITE, 1).labels["share"] == with_shares(SITE, 1).labels["share"]).all()


def test_without_the_industrial_log_synthetic_jobs_replace_it(tmp_path: Path) -> None:
    small = IndustrialCampaign(seeds=1, jobs=60, cores=32)
    assert small.on(None).log == small.on(tmp_path / "swf").log == "model"
    rows = small.on(None).rows(small.on(None).units()[0])
    assert {row["policy"] for row in rows} >= {"p-slr", "srtf", "lrtf"}
    assert not any(row["metric"] == "starts_equal" for row in rows)
    with pytest.raises(InputError, match="industrial"):
        small.rows(small.units()[0], tmp_path)
    (tmp_path / LOG.parent).mkdir()
    (tmp_path / LOG).touch()
    (tmp_path / "swf").mkdir()
    for data in (tmp_path, tmp_path / "swf"):
        assert small.on(data).log == "industrial"
        assert small.reads(data) == [tmp_path / LOG]


def test_a_log_with_odd_seconds_has_no_rows_by_the_minute() -> None:
    odd = gs.Workload.from_columns(submit=[0, 61], runtime=[600, 60], cores=[4, 2])
    assert not any(row["kind"] == MINUTES for row in industrial_rows(odd, 4, seeds=1))


THREE = gs.Workload.from_columns(
    submit=[0, 60, 60], runtime=[600, 120, 60], cores=[4, 4, 4], logged={"wait": [0, 540, 660]}, cores_stated=4
)
"""One that holds all cores, and two that wait for it, the longer one first."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("source", "by_kind", "by_minute", "deviations"),
    [
        ("generated", 5.667, 5.667, {"srtf": 4.509, "p-slr": 4.509, "lrtf": 5.53}),
        pytest.param(
            "industrial-grid/industrial-grid-5888.swf.gz",
            *(1.871, 1.863, {"srtf": 1.901, "p-slr": 2.232, "fair-share": 42.597}),
            marks=pytest.mark.others,
        ),
    ],
)
def test_the_industrial_log_gives_the_published_fifo_and_the_known_mean_slr(
    others: Callable[[str], Path], source: str, by_kind: float, by_minute: float, deviations: dict[str, float]
) -> None:
    log = THREE if source == "generated" else gs.read_workload(others(source))
    rows = [row for row in industrial_rows(log, machine_cores(log)[0], seeds=1) if row["decile"] is None]
    value = {(row["kind"], row["policy"], row["metric"]): row["value"] for row in rows}
    assert value[KIND, "fifo-job", "starts_equal"] == 1
    assert round(value[KIND, "p-slr", "mean_slr"], 3) == by_kind
    assert round(value[MINUTES, "p-slr", "mean_slr"], 3) == by_minute
    assert len({row["value"] for row in rows if row["metric"] == "utilisation" and row["kind"] == KIND}) == 1
    assert {policy: round(value[KIND, policy, "sd_slr"], 3) for policy in deviations} == deviations
