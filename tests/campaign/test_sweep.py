"""One recipe with placeholders for factors, and every combination of their values."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.campaign.run import progress_of, run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep, write_runs
from gridsim.errors import InputError
from gridsim.scenario import Scenario

LOG = """; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 3 1 -1 -1 -1 -1 -1
2 1 -1 10 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
3 2 -1 5 1 -1 -1 1 5 -1 1 4 1 -1 -1 -1 -1 -1
"""


def sweep(place: Any, text: str) -> Sweep:
    return Sweep.from_toml(place.write(text))


def keys(found: Sweep) -> list[str]:
    return [one.key for one in found.scenarios()]


def test_factors_expand_with_policies_varying_fastest(place: Any) -> None:
    found = sweep(
        place,
        """
[workload]
model = "lublin?jobs={jobs}"
[factors]
policy = ["fcfs", "easy"]
jobs = {first = 10, last = 30, step = 10}
seed = [1, 2]
""",
    )
    scenarios = list(found.scenarios())
    assert [str(one) for one in scenarios[:3]] == [
        "policy fcfs, jobs 10, seed 1",
        "policy easy, jobs 10, seed 1",
        "policy fcfs, jobs 10, seed 2",
    ]
    assert len({one.key for one in scenarios}) == 12
    assert scenarios[0].recipe == {
        "workload": {"model": "lublin?jobs=10"},
        "policy": "fcfs",
        "options": {"seed": 1},
    }
    assert [len(group) for group in found.groups()] == [2] * 6


def test_a_table_as_a_value_goes_by_its_name_and_fills_several_places(place: Any) -> None:
    for name in ("a", "b"):
        place.write(LOG, f"{name}.swf")
    found = sweep(
        place,
        """
[workload]
file = "{log.file}"
cores = "{log.cores}"
[factors]
policy = ["easy"]
log = [{name = "A", file = "a.swf", cores = 4}, {name = "B", file = "b.swf", cores = 8}]
""",
    )
    first, second = found.scenarios()
    assert dict(first.factors) == {"policy": "easy", "log": "A"}
    assert second.recipe["workload"] == {"file": "b.swf", "cores": 8}
    assert list(first.inputs) == ["a.swf"]
    assert first.inputs["a.swf"] == second.inputs["b.swf"]
    assert first.key != second.key


def test_combinations_are_left_out(place: Any) -> None:
    text = """
exclude = [{policy = "easy", seed = 2}, {policy = "conservative"}]
[workload]
model = "lublin?jobs=10"
[factors]
policy = ["fcfs", "easy", "conservative"]
seed = [1, 2]
"""
    output = [str(one) for one in sweep(place, text).scenarios()]
    assert output == ["policy fcfs, seed 1", "policy easy, seed 1", "policy fcfs, seed 2"]


def test_the_same_scenario_has_the_same_key_in_any_sweep(place: Any) -> None:
    small = keys(sweep(place, RECIPE))
    grown = keys(sweep(place, RECIPE.replace("[1, 2]", "[0, 1, 2, 3]").replace('"easy"]', '"easy", "conservative"]')))
    assert len(grown) == 12
    assert set(small) < set(grown)
    for engine in ("simpy", "compiled"):  # which changes no result
        assert keys(sweep(place, f'options.engine = "{engine}"\n' + RECIPE)) == small
    assert set(small).isdisjoint(keys(sweep(place, "options.tick = 2\n" + RECIPE)))
    assert set(small).isdisjoint(keys(sweep(place, RECIPE.replace("jobs=20", "jobs=21"))))
    assert set(small).isdisjoint(keys(sweep(place, "metrics.bound = 60\n" + RECIPE)))


RECIPE = """
[workload]
model = "lublin?jobs=20"
[factors]
policy = ["fcfs", "easy"]
seed = [1, 2]
"""


def test_a_run_has_the_numbers_of_its_scenario(place: Any) -> None:
    found = sweep(place, "metrics = {bound = 60, warmup = 100}\n" + RECIPE)
    run_campaign(found, place.folder / "store")
    store = Store(place.folder / "store")
    one = next(iter(found.scenarios()))
    output = json.loads(store.path(one.file).read_text())
    expected = Scenario(model="lublin?jobs=20", policy="fcfs").run().metrics(bound=60, warmup=100)
    assert output["metrics"] == {name: None if value != value else value for name, value in expected.items()}
    assert output["scenario"] == one.recipe
    row = next(found.rows(store))
    assert (row["policy"], row["seed"], row["wait_mean"]) == ("fcfs", 1, expected["wait_mean"])


def test_a_name_that_changed_changes_no_result(place: Any) -> None:
    """Two names for one scenario are one result, regardless of which was first."""
    text = """
[workload]
model = "lublin?jobs={size.jobs}"
[factors]
policy = ["fcfs"]
size = [{name = "small", jobs = 20}, {name = "tiny", jobs = 20}]
"""
    found = sweep(place, text)
    run_campaign(found, place.folder / "store")
    first, second = found.rows(Store(place.folder / "store"))
    assert (first.pop("size"), second.pop("size")) == ("small", "tiny")
    assert repr(first) == repr(second)


def test_the_table_states_what_is_finished_failed_and_missing(place: Any) -> None:
    found = Sweep.from_toml(place.bad("Raises", 3))
    store = Store(place.folder / "store")
    write_runs(found, store, store.folder / "runs.csv")
    assert [row["status"] for row in table(store)] == ["missing"] * 3
    run_campaign(found, store.folder)
    write_runs(found, store, store.folder / "runs.csv")
    assert [row["status"] for row in table(store)] == ["finished", "failed", "finished"]
    assert [row["wait_mean"] != "" for row in table(store)] == [True, False, True]


def table(store: Store) -> list[dict[str, str]]:
    with (store.folder / "runs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# What changes


def test_a_policy_in_a_file_that_was_mended_is_another_policy(place: Any) -> None:
    found = Sweep.from_toml(place.bad("Raises", 3))
    store = Store(place.folder / "store")
    assert run_campaign(found, store.folder).failed == 1
    text = (place.folder / "bad.py").read_text()
    place.write(text.replace("if self.number == 1:", "if False:"), "bad.py")
    mended = Sweep.from_toml(place.folder / "campaign.toml")
    assert mended.changed_plugins(store) == ["bad.py"]
    assert set(keys(found)).isdisjoint(keys(mended))
    assert progress_of(mended, store) == (0, 0, 3)
    assert run_campaign(mended, store.folder).units == 3
    assert mended.changed_plugins(store) == []
    assert len(list(mended.rows(store))) == 3


def test_a_file_that_changes_while_the_sweep_runs_fails_its_runs(place: Any) -> None:
    log = place.write(LOG, "log.swf")
    found = sweep(place, '[workload]\nfile = "log.swf"\n[factors]\npolicy = ["fcfs", "easy"]\n')

    def output(*_: object) -> None:
        log.write_text(LOG.replace("10", "11"))

    summary = run_campaign(found, place.folder / "store", listener=output)
    assert (summary.units, summary.failed) == (1, 1)
    failure = Store(place.folder / "store").failure(list(found.scenarios())[1].file)
    assert failure.error == f"InputError: {log}: has changed since the sweep began"


def test_a_file_that_is_gone_fails_its_runs(place: Any) -> None:
    log = place.write(LOG, "log.swf")
    found = sweep(place, '[workload]\nfile = "log.swf"\n[factors]\npolicy = ["fcfs"]\n')
    log.unlink()
    assert run_campaign(found, place.folder / "store").failed == 1
    assert str(log) in Store(place.folder / "store").failure(next(found.scenarios()).file).error


def test_another_sweep_in_the_folder_is_refused_and_a_grown_one_is_not(place: Any) -> None:
    store = Store(place.folder / "store")
    first = sweep(place, RECIPE)
    first.belongs(store)
    run_campaign(first, store.folder)
    for grown in (
        RECIPE.replace("[1, 2]", "[5, 6]"),
        RECIPE.replace('"easy"]', '"conservative"]'),
        RECIPE.replace("jobs=20", "jobs={jobs}").replace("[factors]", "[factors]\njobs = [20, 30]"),
    ):
        sweep(place, grown).belongs(store)
    with pytest.raises(InputError, match="holds results of another sweep, none of whose scenarios is in"):
        sweep(place, RECIPE.replace("jobs=20", "jobs=21")).belongs(store)


def test_a_sweep_is_read_from_its_store(place: Any) -> None:
    found = Sweep.from_toml(place.bad("Raises", 3))
    run_campaign(found, place.folder / "store")
    for path in place.folder.glob("*.*"):
        path.unlink()
    store = Store(place.folder / "store")
    assert keys(Sweep.from_store(store)) == keys(found)
    with pytest.raises(InputError, match="holds no results of a sweep"):
        Sweep.from_store(Store(place.folder / "other"))


@pytest.mark.parametrize("text", ["", "{", '{"metrics": 3}', "[]", '{"metrics": {"wait_mean": "long"}}'])
def test_a_torn_result_is_named(place: Any, text: str) -> None:
    found = sweep(place, RECIPE)
    run_campaign(found, place.folder / "store")
    store = Store(place.folder / "store")
    path = store.path(list(found.scenarios())[2].file)
    path.write_text(text)
    with pytest.raises(InputError, match="differs from its checksum") as caught:
        list(found.rows(store))
    assert caught.value.path == path
    (store.folder / "checksums.jsonl").unlink()  # as in a store of an earlier version
    with pytest.raises(InputError, match=r"line 1.*; delete the file and sweep again") as caught:
        list(found.rows(Store(store.folder)))
    assert caught.value.path == path


def test_results_are_not_searched_for_redrawn_users_where_none_are_drawn(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, store = sweep(place, RECIPE), Store(place.folder / "store")
    run_campaign(found, store.folder)
    read: list[str] = []
    monkeypatch.setattr(Store, "content", lambda store, file: read.append(file) or b"{}")
    assert (found.resampled(store), read) == ({}, [])


# What is wrong with a recipe

FINE = 'model = "lublin?jobs=20"'


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("factors = [1]", "'factors': has no factors; expected"),
        (f"[workload]\n{FINE}", "'factors': has no factors; expected"),
        ("[factors]", "'factors': has no factors; expected"),
        ("[factors]\npolicy = 'easy'", "'factors.policy': is 'easy'; expected a list of values"),
        ("[compare]\nmetrics = 3", "'compare.metrics': is 3; expected a list of texts"),
        ("[compare]\nreplicates = [['a']]", "'compare.replicates[0]': is ['a']; expected a text"),
        ("[factors]\npolicy = []", "'factors.policy': is []"),
        (
            "[factors]\npolicy = ['easy', ['fcfs']]",
            "'factors.policy[1]': is ['fcfs']; expected text, a number",
        ),
        ("[factors]\npolicy = ['easy', 'easy']", "'factors.policy': has 'easy' twice"),
        ("[factors]\npolicy = ['easy', 'esy']", "'policy': unknown policy 'esy'; did you mean 'easy'"),
        ("[factors]\npolicy = [3]", "'policy': is 3; expected a text"),
        ("[factors]\nseed = {first = 1}", "'factors.seed': is {'first': 1}; expected a list, or whole numbers"),
        ("[factors]\nseed = {first = 3, last = 1}", "'factors.seed': is"),
        ("[factors]\nseed = {first = 1, last = 9, step = 0}", "'factors.seed': is"),
        ("[factors]\nseed = {first = 1, last = true}", "'factors.seed': is"),
        ("[factors]\nseed = {first = 1, last = 2, by = 3}", "'factors.seed': is"),
        ("[factors]\nseed = [nan]", "'factors.seed[0]': is nan"),
        ("[factors]\nseed = ['one']", "'options.seed': is 'one'"),
        ("[factors]\nlod = [1.0]", "'factors.lod': is never used; write {lod} instead of its value"),
        ("[factors]\nlog = [{file = 'a.swf'}]", "'factors.log[0]': is {'file': 'a.swf'}"),
        ("[factors]\nlog = ['gone.swf']", "gone.swf: cannot be read: No such file"),
        ("policy = 'easy'\n[factors]\npolicy = ['fcfs']", "'factors.policy': also has a value in the recipe (policy)"),
        ("workload = 3\n[factors]\nlog = ['a.swf']", "'workload': is 3; expected a table"),
        ("workload = 3\n[factors]\nseed = [1]", "'workload': is 3; expected a table"),
        ("workload = 3\nplatform = 4\n[factors]\nseed = [1]", "'workload': is 3"),
        ("options = 3\n[factors]\nseed = [1]", "'options': is 3; expected a table"),
        ("[workload]\nmodel = 'lublin?jobs={size}'\n[factors]\nseed = [1]", "unknown factor"),
        (
            "[workload]\nmodel = 'lublin?jobs={size.jobs}'\n[factors]\nsize = [{name = 'a'}]",
            "'factors.size': the value {'name': 'a'} of factor 'size' has no 'jobs'",
        ),
        ("[workload]\nmodl = 'lublin'\n[factors]\nseed = [1]", "unknown key of [workload]"),
        ("[workload]\ntransforms = 'slice'\n[factors]\nseed = [1]", "'workload.transforms': is 'slice'"),
        ("[workload]\ntransforms = ['slce']\n[factors]\nseed = [1]", "'workload.transforms[0]': unknown transform"),
        ("facters = 3\n[factors]\nseed = [1]", "unknown key of "),
        ("exclude = 3\n[factors]\nseed = [1]", "'exclude': is 3; expected a list"),
        ("exclude = {seed = 1}\n[factors]\nseed = [1]", "'exclude': is {'seed': 1}; expected a list"),
        ("exclude = [3]\n[factors]\nseed = [1]", "'exclude[0]': is 3; expected a table"),
        ("exclude = [{}]\n[factors]\nseed = [1]", "'exclude[0]': is empty; expected for example {policy"),
        ("exclude = [{sed = 1}]\n[factors]\nseed = [1]", "unknown factor in exclude[0]"),
        (
            "exclude = [{seed = 3}]\n[factors]\nseed = [1]",
            "'exclude[0].seed': is 3, which is not a value of the factor",
        ),
        ("exclude = [{seed = 1}]\n[factors]\nseed = [1]", "'exclude': leaves no combination"),
        ("metrics = 3\n[factors]\nseed = [1]", "'metrics': is 3; expected a table"),
        ("metrics = {bond = 1}\n[factors]\nseed = [1]", "unknown key of [metrics]"),
        ("metrics = {bound = -1}\n[factors]\nseed = [1]", "'metrics.bound': is -1; expected a number from 0"),
        ("metrics = {bound = nan}\n[factors]\nseed = [1]", "'metrics.bound': is nan; expected a number from 0"),
        ("records = 'yes'\n[factors]\nseed = [1]", "'records': is 'yes'; expected true or false"),
        ("compare = 3\n[factors]\nseed = [1]", "'compare'"),
        ("[factors", "is not valid TOML"),
    ],
)
def test_a_bad_recipe_is_reported_with_file_and_key(place: Any, text: str, output: str) -> None:
    path = place.write(text)
    with pytest.raises(InputError) as caught:
        Sweep.from_toml(path)
    assert output in str(caught.value)
    assert path.name in str(caught.value) or "gone.swf" in output


def test_a_recipe_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.toml: cannot be read: No such file"):
        Sweep.from_toml(tmp_path / "none.toml")
