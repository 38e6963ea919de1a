"""The study of moldable jobs: its schedules, pairs, and stored numbers."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsim.campaign.run import run_campaign
from gridsim.errors import InputError, UnknownNameError
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.model.time import MICROSECOND
from gridsim.policy.presets import policy
from gridsim.policy.scheduler.moldable_cycle import DUE, HELD, HOLDERS
from gridsim.policy.scheduler.moldable_state import MoldableState
from gridsim.registry import parse
from gridsim.simulation import simulate
from gridsim_papers.deadline.lines import StoredRows
from gridsim_papers.deadline.recipes import read_recipes
from gridsim_papers.moldable.campaign import (
    BASELINE,
    COLUMNS,
    COMBINED,
    METHODS,
    WAITED,
    MoldableCampaign,
    Point,
    Replicate,
    read_rows,
)
from gridsim_papers.moldable.changes import LEAST_JOBS, promise_waits
from gridsim_papers.moldable.figures import CONDITIONS, bars_of
from gridsim_papers.paper import RECIPES
from gridsim_papers.units import Row, Unit

pytestmark = pytest.mark.long

RECIPE = RECIPES / "moldable.toml"
STANDIN = ("npb-standin",)
UNIT = Unit("model", 0, "0.65")


@pytest.fixture(scope="module")
def replicate() -> Replicate:
    """The first window of the model, 300 jobs, at base load 0.65."""
    return Replicate(MoldableCampaign(logs=("model",), jobs=300), UNIT, None)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Rows of all experiments at the scale of the tests, one window; some seconds of CPU."""
    folder = tmp_path_factory.mktemp("moldable")
    run_campaign(MoldableCampaign.from_toml(RECIPE, scale="test", windows=1).on(None), folder)
    return read_rows(folder)


def test_the_recipe_has_four_scales_and_the_full_one_is_the_default_campaign() -> None:
    assert MoldableCampaign.from_toml(RECIPE, scale="full") == MoldableCampaign()
    jobs = [
        campaign.jobs * len(campaign.units())
        for campaign in (MoldableCampaign.from_toml(RECIPE, scale=scale) for scale in ("tiny", "test", "small", "full"))
    ]
    assert jobs == sorted(jobs)
    assert len(MoldableCampaign().units()) == 2 * (10 + 15)


def test_every_experiment_of_the_claims_is_run(claims: Callable[[str], list[dict[str, str]]]) -> None:
    wanted = {name for claim in claims("moldable") for name in re.findall(r"mold-\w+", claim["experiment"])}
    assert wanted == set(MoldableCampaign().experiments_wanted())


def test_every_policy_exists_and_is_written_one_way() -> None:
    for scheme in {point.scheme for point in MoldableCampaign().points()}:
        assert str(parse(scheme)) == scheme
        policy(scheme)


def test_the_whole_grid_is_run_under_the_combined_scheme_and_its_predecessors() -> None:
    points = set(MoldableCampaign().points())
    for scheme in (BASELINE, *COMBINED, "moldable-submit", "moldable-start"):
        grid = {p for p in points if p.scheme == scheme and p.method == "gaps" and not p.profiles}
        assert len({p for p in grid if p.range_factor <= 4}) == 3 * 3 * 4


def test_the_baseline_is_next_to_every_setting() -> None:
    points = MoldableCampaign().points()
    settings = {point._replace(scheme="") for point in points}
    assert {point._replace(scheme="") for point in points if point.scheme == BASELINE} == settings
    assert len(set(points)) == len(points)


def test_unknown_values_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="mold-fig01"):
        MoldableCampaign(experiments=("mold-fig1",))
    with pytest.raises(UnknownNameError, match="sdsc"):
        MoldableCampaign(logs=("sdcs",))
    with pytest.raises(UnknownNameError, match="npb-standin"):
        MoldableCampaign(profiles=("npb",))
    with pytest.raises(InputError, match="base load of '-1'"):
        MoldableCampaign(bases=("-1",))


def test_without_logs_and_measured_profiles_a_model_and_the_substitute_are_taken(tmp_path: Path) -> None:
    alone = MoldableCampaign().on(tmp_path)
    assert (alone.logs, alone.profiles) == (("model",), STANDIN)
    (tmp_path / "npb").mkdir()
    (tmp_path / "npb" / "npb-pi4-cluster.csv").touch()
    (tmp_path / "swf").mkdir()
    (tmp_path / "swf" / "SDSC-SP2-1998-4.2-cln.swf.gz").touch()
    attached = MoldableCampaign().on(tmp_path / "swf")
    assert (attached.logs, attached.profiles) == (("sdsc",), MoldableCampaign().profiles)


def test_a_base_load_is_what_is_offered_at_load_factor_100(replicate: Replicate) -> None:
    assert replicate.trace(Point()).offered_load(replicate.cores) == pytest.approx(0.65, abs=1e-6)
    raised = replicate.trace(Point(load_factor=125.0)).offered_load(replicate.cores)
    assert raised == pytest.approx(1.25 * 0.65, abs=1e-6)


def test_base_loads_and_load_factors_have_the_same_jobs(replicate: Replicate) -> None:
    logged = Replicate(MoldableCampaign(logs=("model",), jobs=300), replace_base(UNIT, "as-logged"), None)
    other = logged.trace(Point(load_factor=150.0))
    own = replicate.trace(Point())
    for column in ("job", "cores", "runtime", "estimate"):
        assert (getattr(own, column) == getattr(other, column)).all()
    assert (own.estimate == own.runtime).all()
    profiled = [
        it.workload(Point(load_factor=load, profiles="npb-standin")).moldable
        for it, load in ((replicate, 100.0), (logged, 150.0))
    ]
    assert profiled[0] is not None
    assert profiled[1] is not None
    assert (profiled[0].maximum == profiled[1].maximum).all()


def replace_base(unit: Unit, base: str) -> Unit:
    return unit._replace(part=base)


@pytest.mark.parametrize("method", METHODS)
def test_every_way_to_a_higher_load_gets_there(replicate: Replicate, method: str) -> None:
    offered = replicate.trace(Point(method, 125.0)).offered_load(replicate.cores)
    assert offered == pytest.approx(1.25 * 0.65, rel=0.15)


def test_ranges_are_around_what_is_requested_and_the_baseline_is_rigid(replicate: Replicate) -> None:
    moldable = replicate.workload(Point(range_factor=4.0, scheme="moldable-base"))
    assert moldable.moldable is not None
    assert (moldable.moldable.minimum <= moldable.cores).all()
    assert (moldable.cores <= moldable.moldable.maximum).all()
    assert replicate.record(Point()).workload.moldable is None


def test_promises_of_those_who_waited_follow_from_the_record(
    replicate: Replicate, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossed: dict[int, int] = {}
    run_cycle = MoldableState.run_cycle

    def watched(self: MoldableState, now: int) -> object:
        holding = set(self.table[HELD, : self.meta[HOLDERS]].tolist())
        for row in self._waiting[self.meta[HEAD] : self.meta[TAIL]].tolist():
            if row not in holding and self.table[DUE, row] < now:
                crossed.setdefault(row, now)
        return run_cycle(self, now)

    monkeypatch.setattr(MoldableState, "run_cycle", watched)
    point = Point(load_factor=150.0, scheme=WAITED)
    record = simulate(replicate.workload(point), platform=replicate.platform, policy=WAITED, engine="simpy").record
    expected = np.full(len(record), np.nan)
    for row, now in crossed.items():
        expected[row] = (now - record.workload.submit[row]) / MICROSECOND
    assert len(crossed) > 20
    np.testing.assert_array_equal(promise_waits(record), expected)


def test_rows_are_complete_unique_and_finite(rows: list[Row]) -> None:
    assert tuple(rows[0]) == COLUMNS
    keys = [tuple(row[name] for name in COLUMNS[:-1]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert np.isfinite([row["value"] for row in rows]).all()


def test_categories_hold_the_same_jobs_under_every_policy_and_few_have_no_mean(rows: list[Row]) -> None:
    jobs: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    means: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        key = tuple(row[name] for name in (*COLUMNS[:3], *Point._fields))
        if row["metric"] in ("completed", "response_mean"):
            (jobs if row["metric"] == "completed" else means)[key][row["group"]] = row["value"]
    of_setting: dict[tuple[object, ...], list[dict[str, float]]] = defaultdict(list)
    for key, counts in jobs.items():
        total = counts.pop("")
        assert sum(counts.values()) == total
        of_setting[key[:-1]].append(counts)
        own = means[key]
        assert set(own) - {""} == {group for group, count in counts.items() if count >= LEAST_JOBS}
    assert all(counts == every[0] for every in of_setting.values() for counts in every)


def test_the_baseline_depends_on_the_load_alone(rows: list[Row]) -> None:
    found: dict[tuple[object, ...], set[float]] = defaultdict(set)
    for row in rows:
        if row["scheme"] == BASELINE and row["metric"] == "response_mean" and not row["group"]:
            load = ("" if row["load_factor"] == 100 else row["method"], row["load_factor"])
            found[row["base"], *load].add(row["value"])
    assert {len(values) for values in found.values()} == {1}
    assert len(found) == 2 * (3 + 2)


def test_waits_until_a_promise_are_longer_than_three_times_the_sequential_runtime(rows: list[Row]) -> None:
    waits = {
        int(row["group"].removeprefix("weight:")): row["value"]
        for row in rows
        if row["metric"] == "promise_wait_median" and row["base"] == "as-logged" and row["load_factor"] == 100
    }
    assert waits
    for category, wait in waits.items():
        assert wait > (0 if category == 1 else 3 * 100 * 3.0 ** (category - 2) * (1 - 1e-9))


def test_every_panel_of_every_figure_finds_its_rows(rows: list[Row]) -> None:
    recipes = read_recipes(RECIPES / "moldable-figures.toml", CONDITIONS)
    stored = StoredRows(rows, recipes["S03-F01"].usual, CONDITIONS)
    for recipe in recipes.values():
        for panel in recipe.of_log("model").panels:
            if panel.where["profiles"] != "npb-measured":
                for bars in bars_of(recipe.name, panel, stored):
                    assert math.isfinite(bars.changes[""].change)


def test_a_folder_keeps_existing_files_and_refuses_another_campaign(tmp_path: Path) -> None:
    campaign = MoldableCampaign(
        logs=("model",), windows=1, jobs=40, bases=("0.65",), experiments=("mold-m19",), profiles=STANDIN
    )
    assert run_campaign(campaign, tmp_path).schedules == 2
    more = replace(campaign, bases=("0.65", "as-logged"), windows=2)
    told: list[tuple[int, str]] = []
    run_campaign(more, tmp_path, listener=lambda done, at: told.append(done.unit[1:]))
    assert told == [(0, "as-logged"), (1, "0.65"), (1, "as-logged")]
    with pytest.raises(InputError, match="not 50"):
        run_campaign(replace(campaign, jobs=50), tmp_path)
