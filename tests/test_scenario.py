"""Recipes: all inputs of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.platform import Platform
from gridsim.model.platform_file import platform_of
from gridsim.model.workload import Workload
from gridsim.scenario import Scenario, simulate_all, transformed
from gridsim.simulation import Run, simulate
from gridsim.workers import Workers
from gridsim.workload.synthetic.lublin import default_workload

SWF = """; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 3 1 -1 -1 -1 -1 -1
2 5 -1 0 2 -1 -1 2 10 -1 1 3 1 -1 -1 -1 -1 -1
3 6 -1 20 2 -1 -1 2 30 -1 1 4 1 -1 -1 -1 -1 -1
"""
MINE = """from dataclasses import dataclass


@dataclass
class Mine:
    tie: float = 1.0

    def rank(self, queue, now):
        return queue.cores * self.tie
"""
HALF = """class Half:
    def apply(self, workload, rng):
        return workload.select(slice(None, len(workload) // 2))
"""
RECIPE = """policy = "easy?ordering=sjf"

[workload]
file = "log.swf"
cores = 8
transforms = ["slice?first=1"]

[workload.on]
zero-runtime = "repair"

[options]
overrun = "extend"
instant = "per-event"
seed = 7
tick = 2.5
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "log.swf").write_text(SWF)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_states_everything(recipe: Path) -> None:
    scenario = Scenario.from_toml(recipe)
    assert scenario == Scenario(
        file=str(recipe.parent / "log.swf"),
        cores=8,
        rules={"zero-runtime": "repair"},
        transforms=("slice?first=1",),
        policy="easy?ordering=sjf",
        options=Run("extend", "per-event", 7, 2.5),
    )


def test_a_recipe_runs_and_its_result_reports_what_was_done(recipe: Path) -> None:
    result = Scenario.from_toml(recipe).run()
    assert result.workload.job.tolist() == [2, 3]
    assert result.workload.runtime.tolist() == [1_000_000, 20_000_000]
    assert (result.platform.cores, result.platform.origin) == (8, "given")
    told = result.provenance()
    assert told["options"]["seed"] == 7
    assert told["policy"] == "Backfilling(ordering=ShortestEstimate(), reserve=Easy())"
    assert told["workload"]["transforms"][0]["transform"] == "slice"
    assert {problem["kind"]: problem["rule"] for problem in told["workload"]["problems"]}["zero-runtime"] == "repair"


def test_an_empty_recipe_is_the_built_in_workload_under_easy(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("")
    assert Scenario.from_toml(tmp_path / "recipe.toml") == Scenario()


def test_an_empty_workload_is_that_of_compare_without_arguments() -> None:
    for scenario, known in (
        (Scenario(), default_workload()),
        (Scenario(cores=64, options=Run(seed=3)), default_workload(seed=3, cores=64)),
    ):
        made = scenario.load()
        for (name, column), (_, expected) in zip(made.columns(), known.columns(), strict=True):
            np.testing.assert_array_equal(column, expected, err_msg=name)


@pytest.mark.parametrize("policy", ["mine.py:Mine", "easy?ordering=mine.py:Mine", "mine.py:Mine?tie=2"])
def test_the_files_of_a_policy_are_searched_next_to_the_recipe(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.py").write_text(MINE)
    (tmp_path / "there" / "recipe.toml").write_text(f"policy = '{policy}'\n[workload]\nmodel = 'lublin?jobs=20'\n")
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.from_toml(Path("there") / "recipe.toml")
    assert "there/mine.py" in str(scenario.policy)
    told = scenario.run().provenance()
    assert "Mine(tie=" in told["policy"]
    assert [plugin["file"] for plugin in told["plugins"]] == ["there/mine.py"]


def test_the_files_of_a_model_and_a_transform_are_reported_with_the_workload(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(HALF)
    (tmp_path / "recipe.toml").write_text("[workload]\nmodel = 'lublin?jobs=20'\ntransforms = ['half.py:Half']\n")
    workload = Scenario.from_toml(tmp_path / "recipe.toml").load()
    assert len(workload) == 10
    assert workload.provenance["plugins"][0]["file"] == str(tmp_path / "half.py")


def test_a_transform_that_reports_nothing_of_itself_is_reported_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(HALF)
    workload = Scenario(model="lublin?jobs=20", transforms=[f"{tmp_path}/half.py:Half"]).load()
    assert workload.provenance["transforms"] == [{"transform": "half"}]
    assert workload.provenance["jobs_before_transforms"] == 20


def test_a_reference_policy_meets_the_workload_as_it_is_on_the_machine_of_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    scenario = Scenario(
        file=str(tmp_path / "log.swf"),
        cores=3,
        rules={"zero-runtime": "repair"},
        transforms=["expand?load=2", "exact-estimates", "deadlines?stringency=0"],
        policy="fcfs",
    )
    made = scenario.load()
    before = Scenario(file=scenario.file, rules=scenario.rules, transforms=scenario.transforms[:2]).load()
    easy = simulate(before, platform=Platform.single(3), policy="easy").record
    assert made.deadline.tolist() == easy.end_us.tolist()
    told = made.provenance["transforms"]
    assert [entry["transform"] for entry in told] == ["expand", "exact-estimates", "deadlines"]
    assert (told[2]["reference"], told[2]["reference_cores"]) == ("easy", 3)
    assert scenario.run().workload.deadline.tolist() == made.deadline.tolist()


def test_a_reference_policy_may_be_any_and_has_the_options_of_the_scenario() -> None:
    ends = {}
    for reference in ("fcfs", "conservative(compress=none)"):
        scenario = Scenario(
            model="lublin?jobs=60&load=1.5&f=0",
            cores=16,
            transforms=[f"deadlines?stringency=0&reference={reference}"],
            options=Run(instant="per-event", seed=4),
        )
        plain = Scenario(model=scenario.model, cores=16, options=scenario.options).load()
        record = simulate(plain, platform=Platform.single(16), policy=reference, options=scenario.options).record
        ends[reference] = scenario.load().deadline.tolist()
        late = np.array(ends[reference]) - record.end_us  # responses are rounded up to whole seconds
        assert ((late >= 0) & (late < 1_000_000)).all()
    assert ends["fcfs"] != ends["conservative(compress=none)"]


def test_a_reference_policy_meets_a_platform_of_several_clusters() -> None:
    children = [{"cluster": "wide", "cores": 3}, {"cluster": "narrow", "cores": 2}]
    platform = platform_of({"platform": {"router": "R", "children": children}})
    made = transformed(JOBS, ["deadlines?stringency=0"], platform=platform)
    assert made.deadline.tolist() == simulate(JOBS, platform=platform, policy="easy").record.end_us.tolist()


def test_one_more_transform_of_another_kind_moves_no_draw_of_a_transform() -> None:
    with_slice, without = (
        Scenario(model="lublin?jobs=40", transforms=[*more, "duplicate?load=1.5"]).load() for more in (["slice"], [])
    )
    assert with_slice.submit.tolist() == without.submit.tolist()
    twice = transformed(JOBS, ["duplicate?load=2", "duplicate?load=2"])
    assert len(twice) == 12


def test_an_unknown_machine_size_is_an_error_before_the_reference_runs() -> None:
    with pytest.raises(InputError, match="does not state the size of its machine"):
        transformed(JOBS, ["deadlines"])


def test_the_files_of_a_reference_policy_are_reported_with_the_workload(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "recipe.toml").write_text(
        "[workload]\nmodel = 'lublin?jobs=20'\ntransforms = ['deadlines?reference=mine.py:Mine()']\n"
    )
    workload = Scenario.from_toml(tmp_path / "recipe.toml").load()
    assert [plugin["file"] for plugin in workload.provenance["plugins"]] == [str(tmp_path / "mine.py")]
    assert workload.provenance["transforms"][0]["reference"] == f"{tmp_path}/mine.py:Mine"


def test_a_model_takes_its_parameters_the_cores_and_the_seed() -> None:
    made = [Scenario(model="lublin?jobs=20", cores=32, options=Run(seed=seed)).load() for seed in (1, 1, 2)]
    assert [len(workload) for workload in made] == [20, 20, 20]
    assert made[0].cores.max() <= 32
    assert made[0].runtime.tolist() == made[1].runtime.tolist() != made[2].runtime.tolist()


def test_the_machine_is_what_the_source_states_where_no_cores_are_given() -> None:
    result = Scenario(model="lublin?jobs=20&cores=64").run()
    assert result.platform.cores == 64


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("policy = easy", "recipe.toml: is not valid TOML: Invalid value"),
        ("polcy = 'easy'", "unknown key of {} 'polcy'; did you mean 'policy'?"),
        ("policy = 3", "recipe.toml, field 'policy': is 3; expected a text"),
        ("policy = 'eazy'", "recipe.toml, field 'policy': unknown policy 'eazy'; did you mean 'easy'?"),
        ("policy = 'depth?k=x'", "recipe.toml, field 'policy': depth: 'x' is not int"),
        ("workload = 'log.swf'", "recipe.toml, field 'workload': is 'log.swf'; expected a table"),
        ("[workload]\nfil = 'x'", "unknown key of [workload] in {} 'fil'; did you mean 'file'?"),
        ("[workload]\nfile = 3", "field 'workload.file': is 3; expected a text"),
        ("[workload]\ncores = '8'", "field 'workload.cores': is '8'; expected a whole number"),
        ("[workload]\ncores = true", "field 'workload.cores': is True"),
        ("[workload]\non = 'skip'", "field 'workload.on': is 'skip'; expected a table"),
        ("[workload]\ntransforms = 'slice'", "field 'workload.transforms': is 'slice'; expected a list of texts"),
        ("[workload]\ntransforms = [3]", "field 'workload.transforms[0]': is 3; expected a text"),
        ("[workload]\ntransforms = ['slize']", "field 'workload.transforms[0]': unknown transform 'slize'"),
        (
            "[workload]\ntransforms = ['deadlines?stringency=2']",
            "field 'workload.transforms[0]': is 2.0; expected 0 to 1",
        ),
        (
            "[workload]\ntransforms = ['slice', 'deadlines?reference=eazy']",
            "field 'workload.transforms[1]': unknown policy 'eazy'; did you mean 'easy'?",
        ),
        ("[workload]\nfile = 'x'\nmodel = 'lublin'", "field 'workload.model': give a file or a model, not both"),
        ("[workload]\nmodel = 'lublim'", "field 'workload.model': unknown model 'lublim'; did you mean 'lublin'?"),
        ("[workload]\nmodel = 'lublin?job=3'", "field 'workload.model': unknown parameter of lublin 'job'"),
        ("[options]\nseed = 'x'", "field 'options.seed': is 'x'; expected a whole number from 0"),
        ("[options]\noverrun = 'forgive'", "field 'options.overrun': is 'forgive'; expected one of kill, extend"),
        ("[options]\ninstant = 3", "field 'options.instant': is 3; expected one of batched, per-event"),
        ("[preemption]\nmode = 3", "field 'preemption.mode': is 3; expected a text"),
        ("[options]\ntik = 3", "unknown key of [options] in {} 'tik'; did you mean 'tick'?"),
    ],
)
def test_errors_in_a_recipe_are_reported_with_file_and_key(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        Scenario.from_toml(path)
    assert told.format(path) in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_recipe_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.toml: cannot be read: No such file"):
        Scenario.from_toml(tmp_path / "absent.toml")


def test_a_recipe_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b"\xff\x01\x00")
    with pytest.raises(InputError, match=r"recipe.toml line 1: is not UTF-8"):
        Scenario.from_toml(tmp_path / "recipe.toml")


def test_a_mapping_is_a_recipe_too() -> None:
    scenario = Scenario.from_mapping({"policy": "fcfs", "workload": {"model": "lublin?jobs=5"}})
    assert scenario.run().metrics()["submitted"] == 5
    with pytest.raises(InputError, match=r"^field 'options.seed'"):
        Scenario.from_mapping({"options": {"seed": -1}})


# -- several policies ------------------------------------------------------------------------------------------------

JOBS = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[3, 2, 1])


def test_several_policies_meet_the_same_workload_by_label() -> None:
    told: list[Any] = []
    results = simulate_all(
        JOBS, {"a": "fcfs", "b": "easy"}, platform=Platform.single(4), progress=lambda *words: told.append(words)
    )
    assert list(results) == ["a", "b"]
    assert results["a"].record.start.tolist() == [0, 10, 10]
    assert results["b"].record.start.tolist() == [0, 10, 2]
    assert told == [("a", 3), ("b", 3)]  # at the end of each


def test_the_longest_unit_begins_first_without_a_visible_effect() -> None:
    told: list[str] = []

    class Counted(Workers):
        def submit(self, *args: Any, **more: Any) -> Any:
            told.append(more["name"])
            return super().submit(*args, **more)

    policies = {"a": "fcfs", "b": "easy", "c": "conservative"}
    with Counted() as one:
        results = simulate_all(JOBS, policies, platform=Platform.single(4), workers=one)
    assert told == ["c", "a", "b"]
    assert list(results) == ["a", "b", "c"]


def test_each_is_what_it_would_be_alone() -> None:
    options = Run(instant="per-event", seed=3)
    both = simulate_all(JOBS, {"x": "random", "y": "easy"}, platform=Platform.single(4), options=options)
    alone = simulate(JOBS, platform=Platform.single(4), policy="easy", instant="per-event", seed=3)
    assert both["y"].record.start.tolist() == alone.record.start.tolist()
    assert both["y"].options == alone.options


def test_an_unknown_policy_is_reported_before_the_first_one_runs() -> None:
    class Fatal:
        def rank(self, queue: Any, now: float) -> Any:
            raise AssertionError("it ran")

    with pytest.raises(UnknownNameError):
        simulate_all(JOBS, {"first": Fatal(), "second": "eazy"}, platform=Platform.single(4))
