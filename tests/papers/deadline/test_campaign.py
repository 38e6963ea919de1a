"""Campaigns on guaranteed deadlines: their schedules, pairs, and stored numbers."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsim.campaign.run import run_campaign
from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.summary import DEADLINE_METRICS
from gridsim.model.time import NEVER
from gridsim.simulation import run
from gridsim_papers.deadline.campaign import (
    BASELINES,
    COLUMNS,
    PACKED,
    SCHEMES,
    DeadlineCampaign,
    Point,
    Replicate,
    feedback,
    read_rows,
)
from gridsim_papers.deadline.lines import StoredRows, lines_of
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.paper import RECIPES
from gridsim_papers.units import Row, Unit
from gridsim_papers.windows import LOGS

pytestmark = pytest.mark.long

RECIPE = RECIPES / "deadline.toml"
MODEL = Unit("model", 0, 0)
TINY = DeadlineCampaign(logs=("model",), windows=1, jobs=60, loads=(1.0, 1.6), experiments=("A-model-dup",))


@pytest.fixture(scope="module")
def replicate() -> Replicate:
    """The first window of the model, 200 jobs."""
    campaign = DeadlineCampaign(logs=("model",), jobs=200)
    return Replicate(campaign.window(MODEL, None), campaign.cores("model"), campaign.seed, MODEL)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Rows of all experiments at the scale of the tests; a few seconds of CPU."""
    folder = tmp_path_factory.mktemp("deadline")
    run_campaign(DeadlineCampaign.from_toml(RECIPE, scale="test", windows=1), folder)
    return read_rows(folder)


def test_the_recipe_has_four_scales_and_the_full_one_is_the_default_campaign() -> None:
    assert DeadlineCampaign.from_toml(RECIPE, scale="full") == DeadlineCampaign()
    windows = [DeadlineCampaign.from_toml(RECIPE, scale=scale).windows for scale in ("tiny", "test", "small")]
    assert windows == sorted(windows)


def test_every_experiment_of_the_claims_is_run(claims: Callable[[str], list[dict[str, str]]]) -> None:
    wanted = {name for claim in claims("deadline") for name in claim["experiment"].split(", ")}
    general = {name for name in wanted if name.startswith("as ") or name in ("golden", "cost", "every experiment")}
    campaign = DeadlineCampaign()
    known = {name for log in (*campaign.logs, *PACKED) for name in campaign.experiments_on(log)}
    assert {name for name in wanted - general if "*" not in name} <= known


def test_the_report_has_its_mixes_loads_and_schemes_on_both_logs() -> None:
    campaign = DeadlineCampaign(experiments=("[AM]-*-dup", "[AM]-*-exp"))
    for log in ("ctc", "sdsc"):
        assert len(campaign.points(Unit(log, 0, 0))) == 2 * 4 * 2 * 3 * 5
    assert {unit.log for unit in campaign.units()} == {"ctc", "sdsc"}
    assert sum(unit.log == "ctc" for unit in campaign.units()) == 15
    assert sum(unit.log == "sdsc" for unit in campaign.units()) == 10


def test_expansion_draws_nothing_so_it_is_run_with_the_first_stream_alone() -> None:
    campaign = DeadlineCampaign(streams=2)
    methods = [{point.method for point in campaign.points(Unit("ctc", 0, number))} for number in (0, 1)]
    assert methods[0] - methods[1] == {"expansion"}


def test_dearer_experiments_may_have_fewer_windows() -> None:
    campaign = DeadlineCampaign(windows=3, experiments=("A-ctc-dup", "K"), fewer={"K*": 1})
    methods = [{point.method for point in campaign.points(Unit("ctc", window, 0))} for window in (0, 1)]
    assert methods == [{"random-arrival", "same-arrival"}, {"random-arrival"}]
    with pytest.raises(UnknownNameError, match="Q"):
        DeadlineCampaign(fewer={"Q*": 1})


def test_without_the_logs_the_model_replaces_them(tmp_path: Path) -> None:
    assert DeadlineCampaign().on(tmp_path).logs == ("model",)
    assert DeadlineCampaign().on(None).logs == ("model",)
    (tmp_path / "SDSC-SP2-1998-4.2-cln.swf.gz").touch()
    assert DeadlineCampaign().on(tmp_path).logs == ("sdsc",)


def test_unknown_values_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="A-ctc-dup"):
        DeadlineCampaign(experiments=("A-ctc-dub",))
    with pytest.raises(UnknownNameError, match="sdsc"):
        DeadlineCampaign(logs=("sdcs",))
    with pytest.raises(UnknownNameError, match="smal"):
        DeadlineCampaign.from_toml(RECIPE, scale="smal")
    with pytest.raises(InputError, match="nothing to run"):
        list(DeadlineCampaign(logs=("sdsc",), experiments=("T-fixed",)).groups())


@pytest.mark.parametrize("method", ["random-arrival", "same-arrival"])
def test_a_higher_load_contains_every_lower_one(replicate: Replicate, method: str) -> None:
    low, high = (replicate.trace(Point(method, load)) for load in (1.2, 1.6))
    arrivals = dict(zip(high.job.tolist(), high.submit.tolist(), strict=True))
    assert len(high) == 320
    assert all(arrivals[job] == submit for job, submit in zip(low.job.tolist(), low.submit.tolist(), strict=True))


def test_fewer_jobs_with_deadlines_are_some_of_the_many(replicate: Replicate) -> None:
    few, many = (replicate.workload(Point("random-arrival", 1.6, fraction=share)) for share in (0.2, 0.8))
    asked = [workload.deadline < NEVER for workload in (few, many)]
    assert not (asked[0] & ~asked[1]).any()
    assert 0.1 < asked[0].mean() < 0.3 < 0.7 < asked[1].mean() < 0.9


def test_a_copy_that_arrives_with_its_original_has_its_request_in_the_window_only(
    replicate: Replicate,
) -> None:
    alone, both = (replicate.workload(Point("same-arrival", load)) for load in (1.0, 1.6))
    deadlines: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for row in zip(alone.submit.tolist(), alone.runtime.tolist(), alone.cores.tolist(), alone.deadline, strict=True):
        deadlines[row[:3]].add(int(row[3]))
    for row in zip(both.submit.tolist(), both.runtime.tolist(), both.cores.tolist(), both.deadline, strict=True):
        assert int(row[3]) in deadlines[row[:3]]


def test_copies_draw_for_themselves_whether_they_have_a_deadline_and_what_they_tolerate(replicate: Replicate) -> None:
    point = Point("same-arrival", 1.6, fraction=0.2, tolerance=4.0, random_tolerance=True)
    workload = replicate.workload(point)
    asked = workload.deadline < NEVER
    assert 0.1 < asked.mean() < 0.3
    assert workload.tolerance is not None
    originals, copies = workload.job <= 200, workload.job > 200
    assert asked[originals].any()
    assert asked[copies].any()
    assert len(np.unique(workload.tolerance)) > 200
    assert workload.tolerance.max() <= 8


def test_a_policy_without_deadlines_has_one_schedule_a_trace(replicate: Replicate) -> None:
    for scheme in BASELINES:
        point = Point("random-arrival", 1.6, scheme=scheme)
        asked = run(replicate.workload(point), replicate.platform, scheme)
        plain = replicate.plain(point)
        assert (asked.start_us == plain.start_us).all()
        assert (asked.end_us == plain.end_us).all()


def test_parameters_are_written_one_way() -> None:
    points = {point.scheme for point in DeadlineCampaign().points(Unit("ctc", 0, 0))}
    assert {"qops", "qops?relaxation=2", "mrt?relaxation=10", feedback(1.5, kill_restart=True)} <= points
    assert not any("relaxation=5" in scheme or "slack_factor=1&" in scheme for scheme in points)


def test_rows_are_complete_unique_and_finite(rows: list[Row]) -> None:
    assert tuple(rows[0]) == COLUMNS
    keys = [tuple(row[name] for name in COLUMNS[:-1]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert np.isfinite([row["value"] for row in rows]).all()
    assert {row["metric"] for row in rows} >= set(DEADLINE_METRICS)


def test_all_jobs_of_a_trace_are_accounted_for_under_every_scheme(rows: list[Row]) -> None:
    table = _by_schedule(rows)
    for key, numbers in table.items():
        ended = numbers["completed"] + numbers["killed_walltime"] + numbers["unadmitted"]
        assert ended == numbers["submitted"], key
        if key.estimates != "logged-extended":
            assert numbers["promises_broken"] == 0, key


def test_schemes_are_paired_and_methods_agree_at_load_one(rows: list[Row]) -> None:
    table = _by_schedule(row for row in rows if row["log"] == "model")
    offered: dict[object, set[float]] = defaultdict(set)
    for point, numbers in table.items():
        offered[point.trace].add(numbers["offered_load"])
    assert {len(loads) for loads in offered.values()} == {1}
    for scheme in (*SCHEMES, *BASELINES):
        for fraction in (1.0, 0.8):
            one = Point("random-arrival", 1.0, fraction=fraction, scheme=scheme)
            assert table[one] == table[one._replace(method="expansion")]


def test_fqops_of_users_without_tolerance_is_qops(rows: list[Row]) -> None:
    table = _by_schedule(rows)
    for tolerance, scheme in ((1.0, "fqops"), (2.0, "fqops?slack_factor=2")):
        point = Point("same-arrival", 1.6, tolerance=tolerance, scheme=scheme)
        ours, plain = dict(table[point]), dict(table[point._replace(scheme="qops")])
        assert ours.pop("offers_made") >= plain.pop("offers_made") == 0
        assert ours == plain


def test_dynamic_packed_jobs_are_all_admitted_and_static_ones_where_there_is_capacity(rows: list[Row]) -> None:
    refused: dict[tuple[str, float], float] = defaultdict(float)
    for row in rows:
        if row["metric"] == "deadline_unadmitted" and row["log"] in PACKED:
            refused[row["log"], row["load"]] += row["value"]
    assert not any(value for (log, _), value in refused.items() if log == "packed-dynamic")
    assert refused["packed-static", 0.0] > refused["packed-static", 5.0] == 0


def test_every_panel_of_every_figure_finds_its_rows(rows: list[Row]) -> None:
    recipes = read_recipes(RECIPES / "deadline-figures.toml").values()
    usual = next(iter(recipes)).usual
    stored = StoredRows(rows, usual)
    for recipe in recipes:
        for panel in recipe.of_log("model").panels:
            assert any(line.points for line in lines_of(recipe.name, panel, stored)), recipe.name


def _by_schedule(rows: Iterable[Row]) -> dict[Point, dict[str, float]]:
    table: dict[Point, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if not row["group"] and row["window"] == 0:
            point = Point(*(row[name] for name in Point._fields))
            method = point.method or row["log"]
            table[point._replace(method=method)][row["metric"]] = row["value"]
    return table


def test_groups_are_thirds_of_the_jobs_and_categories_of_all(rows: list[Row]) -> None:
    point = Point("random-arrival", 1.6, scheme="easy")
    counts = _groups(rows, point, "deadline_jobs", "area:")
    assert list(counts) == ["area:light", "area:middle", "area:heavy"]
    assert sum(counts.values()) == 128
    assert max(counts.values()) - min(counts.values()) <= 1
    waits = _groups(rows, Point("random-arrival", 1.6, fraction=0.2, scheme="qops"), "response_mean", "runtime:")
    assert waits["runtime:short"] < waits["runtime:long"]
    jobs = _groups(rows, Point("same-arrival", 1.6, scheme="easy"), "completed", "category:")
    assert sum(jobs.values()) == 128


def _groups(rows: list[Row], point: Point, metric: str, kind: str) -> dict[str, float]:
    return {
        row["group"]: row["value"]
        for row in rows
        if row["group"].startswith(kind)
        and row["metric"] == metric
        and point == tuple(row[name] for name in Point._fields)
    }


def test_rows_do_not_depend_on_workers_on_other_units_or_on_a_restart(tmp_path: Path) -> None:
    alone, resumed = tmp_path / "alone", tmp_path / "resumed"
    more = DeadlineCampaign(logs=("model",), windows=2, jobs=60, loads=(1.0, 1.6), experiments=("A-model-dup",))
    run_campaign(more, alone, workers=2)
    run_campaign(TINY, resumed)
    told: list[Unit] = []
    run_campaign(more, resumed, listener=lambda done, at: told.append(done.unit))
    assert told == [Unit("model", 1, 0)]
    for name in ("model-00-0.csv", "model-01-0.csv"):
        assert (alone / "runs" / name).read_bytes() == (resumed / "runs" / name).read_bytes()
    assert run_campaign(more, alone).units == 0
    with pytest.raises(InputError, match=r"campaign.json.*seed"):
        run_campaign(replace(more, seed=2), alone)


def drawn_logs(folder: Path) -> Path:
    """Logs with the names of the archive, of 15 and 10 windows of 40 jobs; two lines of nine must not be run."""
    for log, windows, cores in (("ctc", 15, 336), ("sdsc", 10, 128)):
        rows = [
            (1000 if row % 9 == 4 else row % cores + 1, 0 if row % 9 == 8 else 60 + row)
            for row in range(windows * 40 * 9 // 7 + 9)
        ]
        lines = [
            f"{row + 1} {100 + 30 * row} 0 {runtime} {width} -1 -1 {width} {runtime} -1 1 1 1 1 1 1 -1 -1\n"
            for row, (width, runtime) in enumerate(rows)
        ]
        (folder / LOGS[log].file).write_bytes(gzip.compress("".join(lines).encode()))
    return folder


@pytest.mark.parametrize(("source", "jobs"), [("generated", 40), pytest.param("swf", 5_000, marks=pytest.mark.others)])
def test_ctc_has_fifteen_windows_on_430_cores_and_sdsc_ten_on_128(
    others: Callable[[str], Path], tmp_path: Path, source: str, jobs: int
) -> None:
    campaign, data = DeadlineCampaign(jobs=jobs), drawn_logs(tmp_path) if source == "generated" else others(source)
    for unit in (Unit("ctc", 14, 0), Unit("sdsc", 9, 0)):
        window = campaign.window(unit, data)
        assert len(window) == jobs
        assert window.submit[0] == 0
        assert window.runtime.min() >= 1_000_000
        assert window.cores.max() <= campaign.cores(unit.log)
    narrow = DeadlineCampaign(jobs=jobs, ctc_cores=338)
    assert (narrow.window(Unit("ctc", 3, 0), data).job == campaign.window(Unit("ctc", 3, 0), data).job).all()
