"""Bad platforms and workflows on the command line: exit code 2, file and field, no partial output."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main

OK = '[platform]\nrouter = "R"\nchildren = [{cluster = "c", cores = 4}, {cluster = "d", cores = 2}]\n'


def workflow() -> dict[str, Any]:
    """``a`` before ``b``."""
    return {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"name": "a", "id": "a", "parents": [], "children": ["b"]},
                    {"name": "b", "id": "b", "parents": ["a"], "children": []},
                ]
            },
            "execution": {
                "tasks": [
                    {"id": "a", "runtimeInSeconds": 2.5, "coreCount": 2},
                    {"id": "b", "runtimeInSeconds": 4, "coreCount": 1},
                ]
            },
        },
    }


def tasks(document: dict[str, Any], part: str = "specification") -> Any:
    return document["workflow"][part]["tasks"]


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run ``compare`` on a workflow and a platform; return the exit code and standard error."""

    def run(platform: str = OK, document: Any = None, *words: str) -> tuple[int, str]:
        (tmp_path / "grid.toml").write_text(platform)
        (tmp_path / "flow.json").write_text(json.dumps(workflow() if document is None else document))
        files = [str(tmp_path / "flow.json"), "--platform", str(tmp_path / "grid.toml")]
        policy = () if "--policy" in words else ("--policy", "fifo-job")
        code = main(["compare", *files, "--no-page", "--out", str(tmp_path / "out"), *policy, *words])
        return code, capsys.readouterr().err

    return run


Compare = Callable[..., tuple[int, str]]


def test_a_good_workflow_on_a_good_platform_is_answered_for(compare: Compare, tmp_path: Path) -> None:
    assert compare(OK, None, "--policy", "fifo-job", "--policy", "p-slr") == (0, "")
    with (tmp_path / "out" / "p-slr" / "tasks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["task"], row["cluster"], row["start"], row["end"]) for row in rows] == [
        ("a", "c", "0", "2.5"),
        ("b", "c", "2.5", "6.5"),
    ]


def cycle(document: Any) -> None:
    tasks(document)[1]["children"] = ["a"]
    tasks(document)[0]["parents"] = ["b"]


def unknown_task(document: Any) -> None:
    tasks(document)[0]["children"] = ["b", "z"]


def too_wide(document: Any) -> None:
    tasks(document, "execution")[1]["coreCount"] = 5


def unknown_kind(document: Any) -> None:
    tasks(document)[1]["kind"] = "gpu"


def missing_field(document: Any) -> None:
    del tasks(document, "execution")[1]["runtimeInSeconds"]


@pytest.mark.parametrize(
    ("spoil", "field", "told"),
    [
        (cycle, "workflow.specification.tasks", "cycle"),
        (unknown_task, "workflow.specification.tasks[0].children", "'z'"),
        (too_wide, "coreCount", "5 cores; the machine has 4"),
        (unknown_kind, "kind", "job 1 task b needs a cluster of kind 'gpu'; the platform has any"),
        (missing_field, "workflow.execution.tasks[1]", "runtimeInSeconds"),
    ],
)
def test_a_bad_workflow_is_reported_with_its_file_and_field(
    compare: Compare, tmp_path: Path, spoil: Callable[[Any], None], field: str, told: str
) -> None:
    document = workflow()
    spoil(document)
    code, error = compare(OK, document)
    assert code == 2
    assert "flow.json" in error
    assert f"field '{field}" in error
    assert told in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("platform", "told"),
    [
        ('[platform]\nrouter = "R"\nchildren = []\n', "field 'platform.children': router 'R' has no children"),
        (OK.replace("cores = 4", "cores = 0"), "field 'platform.children[0].cores': cluster 'c' has 0 cores"),
        (OK + '[shares]\n"/eng/ann" = 1\n', "field 'shares': '/eng/ann' is listed, but its parent '/eng' is not"),
        (OK + '[network]\nkind = "fluid"\n', "field 'network.kind': is 'fluid'; expected one of ccr, shared, fifo"),
        (OK.replace("cores", "cors"), "'cors'; did you mean 'cores'"),
        ("[platform", "is not valid TOML"),
    ],
)
def test_a_bad_platform_is_reported_with_its_file_and_key(
    compare: Compare, tmp_path: Path, platform: str, told: str
) -> None:
    code, error = compare(platform)
    assert code == 2
    assert "grid.toml" in error
    assert told in error
    assert not (tmp_path / "out").exists()


def test_a_task_wider_than_the_clusters_of_its_kind_is_reported(compare: Compare, tmp_path: Path) -> None:
    document = workflow()
    tasks(document)[0]["kind"] = "gpu"
    code, error = compare(OK.replace('"d", ', '"d", kind = "gpu", ').replace("cores = 2", "cores = 1"), document)
    assert code == 2
    assert (
        "flow.json, field 'cores': job 1 task a needs 2 cores of kind 'gpu'; the widest cluster of that kind has 1"
        in error
    )
    assert not (tmp_path / "out").exists()


def test_a_platform_with_cores_is_a_conflict(compare: Compare, tmp_path: Path) -> None:
    code, error = compare(OK, None, "--machine", "4")
    assert code == 2
    assert "--machine and --platform" in error
    assert not (tmp_path / "out").exists()


def test_fair_share_of_jobs_without_shares_is_reported_with_the_file(compare: Compare, tmp_path: Path) -> None:
    code, error = compare(OK, None, "--policy", "fair-share")
    assert code == 2
    assert "flow.json, field 'share': fair share needs jobs with a share" in error
    assert not (tmp_path / "out").exists()


def test_rigid_jobs_need_a_cluster_without_a_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text(OK.replace("cores", 'kind = "gpu", cores'))
    words = ["--jobs", "5", "--platform", str(tmp_path / "grid.toml"), "--no-page", "--out", str(tmp_path / "out")]
    assert main(["compare", *words]) == 2
    assert (
        "field 'kind': the jobs have no kind, but every cluster of the platform has one (gpu)"
        in capsys.readouterr().err
    )


def test_rigid_jobs_are_spread_over_the_clusters_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text(OK.replace("cores = 4", "cores = 64").replace("cores = 2", "cores = 64"))
    words = ["--jobs", "60", "--platform", str(tmp_path / "grid.toml"), "--no-page", "--out", str(tmp_path / "out")]
    assert main(["compare", *words, "--policy", "easy"]) == 0
    assert "machine: 128 cores in 2 clusters (" in " ".join(capsys.readouterr().out.split())
    with (tmp_path / "out" / "easy" / "jobs.csv").open(newline="") as file:
        assert {"c", "d"} <= {row["cluster"] for row in csv.DictReader(file)}


# -- recipes -----------------------------------------------------------------------------------------------------------

RECIPE = 'policy = "fair-share"\n[workload]\nmodel = "grid?kind=prob,jobs=5,total=20000"\n'
KINDS = (
    '[platform]\nrouter = "R"\n'
    'children = [{cluster = "a", kind = "Kind1", cores = 40}, {cluster = "b", kind = "Kind2", cores = 20}]\n'
)


def run_recipe(folder: Path, text: str) -> int:
    (folder / "recipe.toml").write_text(text)
    return main(["run", str(folder / "recipe.toml"), "--out", str(folder / "out")])


def test_a_recipe_may_hold_its_platform_or_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(KINDS)
    written = []
    for text in (RECIPE + KINDS, RECIPE + '[platform]\nfile = "grid.toml"\n'):
        assert run_recipe(tmp_path, text) == 0
        written.append((tmp_path / "out" / "tasks.csv").read_text())
    assert written[0] == written[1]
    assert {"a", "b"} == {row["cluster"] for row in csv.DictReader(written[0].splitlines())}
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["platform"]["origin"] == str(tmp_path / "grid.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (RECIPE + KINDS + '[shares]\n"/share1" = 1\n', "'/share2' is not a leaf of the shares; known: /share1"),
        (RECIPE + KINDS.replace("Kind2", "Kind1"), "needs a cluster of kind 'Kind2'; the platform has Kind1"),
        (RECIPE + KINDS + '[options]\nbalancer = "round-robbin"\n', "unknown balancer 'round-robbin'"),
        (
            RECIPE + KINDS + '[options]\nsplit = "half"\n',
            "recipe.toml, field 'options.split': is 'half'; expected one",
        ),
        (RECIPE + "cores = 8\n" + KINDS, "recipe.toml, field 'workload.cores': [platform] gives the machine"),
        (
            RECIPE + '[platform]\nfile = "grid.toml"\nrouter = "R"\n',
            "field 'platform.file': gives the platform; leave out",
        ),
        (RECIPE + '[platform]\nfile = "grid.toml"\n[network]\nccr = "1"\n', "leave out either it or network"),
        (RECIPE + "[platform]\nfile = 3\n", "field 'platform.file': is 3; expected a text"),
        (RECIPE + '[platform]\nfile = "none.toml"\n', "none.toml: cannot be read"),
        (RECIPE + '[network]\nccr = "1"\n', "recipe.toml, field 'platform': is missing"),
        (RECIPE + "[platform]\nrouter = 3\n", "recipe.toml, field 'platform.children': is missing"),
    ],
)
def test_a_bad_platform_in_a_recipe_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    assert run_recipe(tmp_path, text) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
