"""The reader and writer of workflows: all figures of the instances, the meaning of fields, and rejected input."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.tasks import Tasks
from gridsim.model.time import seconds
from gridsim.model.workload import Workload
from gridsim.workload.formats.wfformat import looks_like_wfformat, read_workflows
from gridsim.workload.formats.wfformat_writer import write_workflow
from gridsim.workload.read import machine_cores, read_workload
from gridsim.workload.synthetic.grid import Grid

# file, tasks, edges, levels, widest level, roots, sum of runtimes, critical path, cores of its machines
INSTANCES = [
    ("1000genome-chameleon-4ch-250k-001.json", 164, 212, 3, 104, 104, 11_884.3, 347.5, 144),
    ("blast-chameleon-small-001.json", 43, 120, 3, 40, 1, 382.9, 10.4, 48),
    ("bwa-chameleon-large-001.json", 1004, 4000, 3, 1000, 2, 13_276.7, 1_655.5, 96),
    ("epigenomics-chameleon-hep-1seq-100k-001.json", 41, 48, 9, 9, 1, 539.3, 104.8, 48),
    ("epigenomics-chameleon-ilmn-2seq-100k-001.json", 263, 324, 9, 64, 2, 5_182.9, 183.9, 96),
    ("helloworld-chain-5-chameleon.wf16.json", 5, 4, 5, 1, 1, 501.2, 501.2, 64),
    ("helloworld-forkjoin-10-chameleon.json", 10, 16, 3, 8, 1, 1_028.7, 307.4, 64),
    ("montage-chameleon-2mass-01d-001.json", 103, 231, 8, 45, 21, 362.6, 21.1, 48),
    ("montage-chameleon-dss-10d-001.json", 472, 1284, 8, 360, 48, 37_089.3, 935.8, 192),
    ("seismology-chameleon-200p-001.json", 201, 200, 2, 200, 200, 147.2, 4.4, 240),
    ("soykb-chameleon-10fastq-10ch-001.json", 96, 194, 11, 50, 5, 11_814.5, 2_933.3, 96),
    ("srasearch-chameleon-10a-001.json", 22, 30, 3, 11, 11, 6_996.8, 1_005.9, 48),
    ("srasearch-chameleon-20a-001.wf16.json", 42, 60, 3, 21, 21, 46_182.8, 4_151.6, 96),
]

# layers of tasks; each task depends on the whole layer above, so that the next layer waits for the slowest
GENERATED = [
    ("fork-join.json", 12, 20, 3, 10, 1, 14.0 + 14.5 + 55.0, 14.0 + 10.0 + 14.5, 48),
    ("layers.wf16.json", 9, 18, 4, 4, 2, 1.5 * 2 + 10.0 + 0.1 * 2 + 2.0, 1.5 + 4.0 + 0.1 + 2.0, 96),
    ("chain.json", 5, 4, 5, 1, 1, 15.0, 15.0, 64),
]
LAYERS = {
    "fork-join.json": [[14.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [14.5]],
    "layers.wf16.json": [[1.5, 1.5], [1.0, 2.0, 3.0, 4.0], [0.1, 0.1], [2.0]],
    "chain.json": [[1.0], [2.0], [3.0], [4.0], [5.0]],
}
"""Seconds of the tasks of each layer."""


def tasks_of(workload: Workload) -> Tasks:
    assert workload.tasks is not None
    return workload.tasks


def task(identity: str, parents: Any = (), children: Any = (), **more: Any) -> dict[str, Any]:
    return {"name": identity, "id": identity, "parents": list(parents), "children": list(children), **more}


def ran(identity: str, runtime: Any = 2.5, **more: Any) -> dict[str, Any]:
    return {"id": identity, "runtimeInSeconds": runtime, **more}


@pytest.fixture
def document() -> dict[str, Any]:
    """Return ``a`` before ``b`` and ``c``, which receive 100 and 30 bytes."""
    return {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    task("a", children=["b", "c"], outputFiles=["x", "y", "z"]),
                    task("b", parents=["a"], inputFiles=["x", "y", "given"]),
                    task("c", parents=["a"], inputFiles=["y"]),
                ],
                "files": [
                    {"id": "x", "sizeInBytes": 70},
                    {"id": "y", "sizeInBytes": 30},
                    {"id": "z", "sizeInBytes": 9},
                    {"id": "given", "sizeInBytes": 1000},
                ],
            },
            "execution": {
                "makespanInSeconds": 10,
                "executedAt": "whenever",
                "tasks": [ran("c", 1.5), ran("a", 2.0004, coreCount=2.5), ran("b", 0)],
            },
        },
    }


def generated(folder: Path, name: str) -> Path:
    """Return an instance of `GENERATED` on two machines, with a separate file for each edge."""
    ids = [[f"t{layer}-{place}" for place in range(len(row))] for layer, row in enumerate(LAYERS[name])]
    flat = [(layer, identity) for layer, row in enumerate(ids) for identity in row]
    files = [(one, other) for above, below in itertools.pairwise(ids) for one in above for other in below]
    tasks = [
        task(
            identity,
            ids[layer - 1] if layer else [],
            ids[layer + 1] if layer + 1 < len(ids) else [],
            inputFiles=[f"{one} {other}" for one, other in files if other == identity],
            outputFiles=[f"{one} {other}" for one, other in files if one == identity],
        )
        for layer, identity in flat
    ]
    half = next(row[-1] for row in GENERATED if row[0] == name) // 2
    execution = {
        "makespanInSeconds": 1000,
        "executedAt": "whenever",
        "tasks": [
            ran(identity, runtime) for (_, identity), runtime in zip(flat, itertools.chain(*LAYERS[name]), strict=True)
        ],
        "machines": [{"nodeName": node, "cpu": {"coreCount": half}} for node in ("one", "two")],
    }
    sizes = [{"id": f"{one} {other}", "sizeInBytes": 1000 + place} for place, (one, other) in enumerate(files)]
    version = "1.6" if ".wf16" in name else "1.5"
    body = {"specification": {"tasks": tasks, "files": sizes}, "execution": execution}
    (folder / name).write_text(json.dumps({"name": name, "schemaVersion": version, "workflow": body}))
    return folder / name


@pytest.fixture
def instance(others: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a published or a generated instance by name."""
    return lambda name: generated(tmp_path, name) if name in LAYERS else others(f"workflows/{name}")


@pytest.fixture
def read(tmp_path):
    def reading(content: Any, **options: Any) -> Workload:
        path = tmp_path / "small.json"
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return read_workload(path, **options)

    return reading


# The instances


def of_others(rows: list[Any]) -> list[Any]:
    return [pytest.param(row, marks=pytest.mark.others) for row in rows]


@pytest.mark.parametrize("row", [*GENERATED, *of_others(INSTANCES)], ids=lambda row: row[0])
def test_every_figure_of_the_instance_is_found(instance, row):
    name, count, edges, levels, widest, roots, runtimes, critical_path, cores = row
    workload = read_workload(instance(name))
    tasks = tasks_of(workload)
    level = tasks.chains(np.ones(len(tasks), dtype=np.int64))
    assert (len(workload), len(tasks), len(tasks.edge_to), len(tasks.roots())) == (1, count, edges, roots)
    generations = list(nx.topological_generations(tasks.graph(0)))
    assert (len(generations), max(map(len, generations))) == (levels, widest)
    assert level.max() == levels
    assert seconds(tasks.runtime).sum() == pytest.approx(runtimes, abs=0.051 + 0.0005 * count)
    assert seconds(int(workload.runtime[0])) == pytest.approx(critical_path, abs=0.06)
    assert workload.cores.tolist() == [1]
    assert machine_cores(workload) == (cores, "workflow.execution.machines")
    assert workload.provenance["problems"] == []
    assert workload.provenance["workflows"][0]["files_beside_edges"] == 0
    workload.check()


@pytest.mark.parametrize("row", [*GENERATED, *of_others(INSTANCES)], ids=lambda row: row[0])
def test_every_instance_survives_the_way_out_and_back(instance, tmp_path, row):
    workload = read_workload(instance(row[0]))
    write_workflow(workload, tmp_path / "out.json")
    assert same(tasks_of(workload), tasks_of(read_workload(tmp_path / "out.json")))


def same(one: Tasks, other: Tasks) -> bool:
    columns = ("first", "runtime", "cores", "kind", "edge_first", "edge_to", "volume")
    return (one.names, one.kinds) == (other.names, other.kinds) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in columns
    )


@pytest.mark.parametrize(
    ("rows", "second", "cores"),
    [
        (GENERATED, "fork-join", 96),
        pytest.param(INSTANCES, "blast-chameleon-small-001", 240, marks=pytest.mark.others),
    ],
    ids=["generated", "others"],
)
def test_a_folder_is_one_workload(instance, rows, second, cores):
    folders = {instance(row[0]).parent for row in rows}
    workload = read_workload(folders.pop())
    assert len(workload) == len(rows)
    assert len(tasks_of(workload)) == sum(row[1] for row in rows)
    assert workload.names["executable"][1] == second
    assert machine_cores(workload)[0] == cores


# Meaning of fields


def test_runtimes_cores_and_edges_land_in_their_columns(document, read):
    workload = read(document)
    tasks = tasks_of(workload)
    assert tasks.names == ("a", "b", "c")
    assert seconds(tasks.runtime).tolist() == [2.0, 0.001, 1.5]
    assert tasks.cores.tolist() == [3, 1, 1]
    assert [tasks.successors(row).tolist() for row in range(3)] == [[1, 2], [], []]
    assert seconds(workload.runtime).tolist() == [3.5]


def test_an_edge_carries_the_files_from_its_parent_to_its_child(document, read):
    assert tasks_of(read(document)).volume.tolist() == [100.0, 30.0]


def test_without_files_edges_carry_nothing_known(document, read):
    del document["workflow"]["specification"]["files"]
    assert tasks_of(read(document)).volume is None


def test_files_that_go_where_no_edge_goes_are_counted(document, read):
    specification = document["workflow"]["specification"]["tasks"]
    specification[1]["outputFiles"] = ["given"]
    specification[2]["inputFiles"] = ["given"]
    assert read(document).provenance["workflows"][0]["files_beside_edges"] == 1


def test_only_zero_length_tasks_become_a_tick_and_are_counted_with_their_line(document, read, tmp_path):
    entry = read(document).provenance["problems"]
    (line,) = entry[0].pop("first_lines")
    assert entry == [{"kind": "zero-length-task", "count": 1, "rule": "repair"}]
    assert '"id": "b"' in (tmp_path / "small.json").read_text().splitlines()[line - 1]


def test_a_zero_length_task_can_be_an_error(document, read):
    with pytest.raises(InputError, match="zero-length-task") as caught:
        read(document, rules={"zero-length-task": "error"})
    assert caught.value.field == "workflow.execution.tasks[2].runtimeInSeconds"
    assert str(caught.value.path).endswith("small.json")


@pytest.mark.parametrize(("tick", "runtimes"), [(1.0, [2, 1, 2]), (0.5, [2, 0.5, 1.5]), (1e-6, [2.0004, 1e-6, 1.5])])
def test_runtimes_are_rounded_to_the_tick(document, read, tick, runtimes):
    workload = read(document, tick=tick)
    assert seconds(tasks_of(workload).runtime).tolist() == runtimes
    assert workload.provenance["tick"] == tick


def test_tasks_may_name_their_architecture(document, read):
    document["workflow"]["specification"]["tasks"][1]["kind"] = "gpu"
    tasks = tasks_of(read(document))
    assert [tasks.kinds[kind] for kind in tasks.kind] == ["any", "gpu", "any"]


def test_an_edge_that_is_repeated_is_one_edge(document, read):
    document["workflow"]["specification"]["tasks"][1]["parents"] = ["a", "a"]
    assert len(tasks_of(read(document)).edge_to) == 2


def test_version_1_6_is_read_too(document, read):
    document["schemaVersion"] = "1.6"
    assert read(document).provenance["workflows"][0]["version"] == "1.6"


def test_a_compressed_workflow_is_found_out(document, tmp_path):
    (tmp_path / "w.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert len(tasks_of(read_workload(tmp_path / "w.json.gz"))) == 3
    assert read_workload(tmp_path).names["executable"] == ("w",)


def test_json_is_taken_for_a_workflow_and_a_log_is_not():
    assert looks_like_wfformat(b'\xef\xbb\xbf \n{"name"')
    assert not looks_like_wfformat(b"; Version: 2.2")


# Several workflows


@pytest.fixture
def two(document, tmp_path) -> list[Path]:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        file.write_text(json.dumps(document))
        document["workflow"]["specification"]["tasks"].append(task("d"))
        document["workflow"]["execution"]["tasks"].append(ran("d"))
    return files


def test_several_workflows_arrive_at_their_given_times(two):
    workload = read_workload(two, submit=[50.0, 20.0])
    assert seconds(workload.submit).tolist() == [20, 50]
    assert np.diff(tasks_of(workload).first).tolist() == [4, 3]
    assert [workload.names["executable"][code] for code in workload.labels["executable"]] == ["two", "one"]


def test_more_arrivals_than_workflows_repeat_them_in_turn(two):
    workload = read_workload(two, submit=range(0, 50, 10))
    assert np.diff(tasks_of(workload).first).tolist() == [3, 4, 3, 4, 3]
    assert tasks_of(workload).names[7:10] == ("a", "b", "c")
    assert len(tasks_of(workload).volume) == 10


def test_one_time_is_the_arrival_of_all(two):
    assert seconds(read_workload(two, submit=5.0).submit).tolist() == [5, 5]


@pytest.mark.parametrize("submit", [[1.0], [[1.0, 2.0]], [0.0, -1.0], [0.0, float("nan")]])
def test_submit_times_that_do_not_fit_are_refused(two, submit):
    with pytest.raises(InputError, match="submit"):
        read_workload(two, submit=submit)


def test_only_workflows_can_be_several_files(tmp_path):
    log = tmp_path / "a.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 5 1 -1 -1 1 5 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    assert len(read_workload([log])) == 1
    with pytest.raises(InputError, match="2 files; expected one"):
        read_workload([log, log])
    with pytest.raises(InputError, match="'submit': is not an option of the format 'swf'"):
        read_workload(log, submit=3.0)


# Rejected input


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the document with one value replaced; ``None`` removes it."""
    *above, last = [
        int(part) if part.isdigit() else part for part in path.replace("[", ".").replace("]", "").split(".")
    ]
    inner: Any = document
    for part in above:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return document


SPECIFIED = "workflow.specification.tasks"
EXECUTED = "workflow.execution.tasks"


@pytest.mark.parametrize(
    "field",
    [
        "schemaVersion",
        "name",
        "workflow",
        "workflow.specification",
        SPECIFIED,
        f"{SPECIFIED}[1].id",
        f"{SPECIFIED}[1].name",
        f"{SPECIFIED}[2].parents",
        f"{SPECIFIED}[0].children",
        "workflow.specification.files[1].sizeInBytes",
        "workflow.execution",
        EXECUTED,
        f"{EXECUTED}[0].id",
        f"{EXECUTED}[1].runtimeInSeconds",
    ],
)
def test_a_missing_field_is_named_with_file_and_path(document, read, field):
    with pytest.raises(InputError, match="is missing") as caught:
        read(changed(document, field, None))
    assert caught.value.field == field
    assert str(caught.value.path).endswith("small.json")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schemaVersion", "1.4", "expected one of 1.5, 1.6"),
        ("name", 7, "is 7; expected a name"),
        (SPECIFIED, [], "is empty"),
        (SPECIFIED, {}, "expected a list"),
        (f"{SPECIFIED}[1].id", "a", "'a' is the id of an earlier task"),
        (f"{SPECIFIED}[2].id", "b", "'b' is the id of an earlier task"),
        (f"{SPECIFIED}[1].parents[0]", "nobody", "'nobody' is not a task"),
        (f"{SPECIFIED}[0].children[1]", "nobody", "'nobody' is not a task"),
        (f"{SPECIFIED}[1].parents[0]", "b", "task 'b' depends on itself"),
        (f"{SPECIFIED}[1].inputFiles[0]", "lost", "'lost' is not in workflow.specification.files"),
        (f"{EXECUTED}[0].id", "nobody", "'nobody' is not a task"),
        (f"{EXECUTED}[1].id", "c", "occurs twice"),
        (f"{EXECUTED}[0].runtimeInSeconds", -1, "is -1; expected a number from 0"),
        (f"{EXECUTED}[0].runtimeInSeconds", "long", "expected a number"),
        (f"{EXECUTED}[0].runtimeInSeconds", True, "expected a number"),
        (f"{EXECUTED}[1].coreCount", 0, "is 0; expected a number from 1"),
        ("workflow.specification.files[0].sizeInBytes", -5, "expected a number from 0"),
    ],
)
def test_a_wrong_value_is_named_with_file_and_path(document, read, field, value, said):
    with pytest.raises(InputError, match=said) as caught:
        read(changed(document, field, value))
    assert caught.value.field == field
    assert str(caught.value.path).endswith("small.json")


def test_a_task_that_was_not_executed_is_named(document, read):
    del document["workflow"]["execution"]["tasks"][0]
    with pytest.raises(InputError, match=r"field 'workflow.execution.tasks': has no record of task 'c'"):
        read(document)


def test_a_cycle_is_named_task_by_task(document, read):
    document["workflow"]["specification"]["tasks"] = [
        task("a", parents=["c"], children=["b"]),
        task("b", parents=["a"], children=["c"]),
        task("c", parents=["b"], children=["a"]),
    ]
    with pytest.raises(InputError, match=r"in a cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)") as caught:
        read(document)
    assert caught.value.field.endswith(".parents")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (f"{SPECIFIED}[1].parents", "'b' does not list 'a' as a parent"),
        (f"{SPECIFIED}[0].children", "'a' does not list 'b' as a child"),
    ],
)
def test_parents_and_children_that_disagree_are_refused(document, read, field, said):
    with pytest.raises(InputError, match=said):
        read(changed(document, field, []))


def test_a_task_that_is_wider_than_the_machine_is_named(document, read):
    with pytest.raises(InputError, match="task a needs 3 cores; the machine has 2"):
        read(document, cores=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"name": "x",\n "name2" 3}', "line 2: is not valid JSON"),
        (b'{"name": "x", "name": "y"}', "field 'name': occurs twice"),
        (b"[1]", "expected an object"),
        (b'{"name": "\xff"}', "not UTF-8"),
        (b"", "is empty"),
        (b'{"a":' * 100_000, "nested too deeply|is not valid JSON"),
    ],
)
def test_damaged_files_are_refused(tmp_path, text, said):
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(InputError, match=said):
        read_workload(tmp_path / "bad.json", format="wfformat")


def test_folders_and_names_without_workflows_are_refused(tmp_path):
    with pytest.raises(InputError, match="a folder without workflows"):
        read_workload(tmp_path, format="wfformat")
    with pytest.raises(InputError, match="cannot be read"):
        read_workflows(tmp_path / "absent.json")
    with pytest.raises(InputError, match="no workflow is given"):
        read_workflows([])
    with pytest.raises(UnknownNameError, match="zero-length-task"):
        read_workflows(tmp_path, rules={"zero-length-tasks": "error"})


@pytest.mark.parametrize("tick", [0.0, -1.0, 1e-7, float("inf")])
def test_a_tick_is_at_least_a_microsecond(document, read, tick):
    with pytest.raises(InputError, match="tick"):
        read(document, tick=tick)


# Output, and conversion with networkx


def test_a_synthetic_job_survives_the_way_out_and_back(tmp_path):
    workload = Grid(kind="chain", jobs=3).generate(1)
    for row in range(3):
        write_workflow(workload, tmp_path / "job.json", row=row)
        back = tasks_of(read_workload(tmp_path / "job.json"))
        ours = tasks_of(workload).select([row])
        assert np.array_equal(back.edge_to, ours.edge_to)
        assert np.array_equal(back.runtime, ours.runtime)
        assert [back.kinds[kind] for kind in back.kind] == [ours.kinds[kind] for kind in ours.kind]


def test_the_same_job_is_the_same_bytes(document, read, tmp_path):
    workload = read(document)
    for name in ("a.json", "b.json"):
        write_workflow(workload, tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_written_files_have_all_that_the_format_requires(document, read, tmp_path):
    write_workflow(read(document), tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["name"], written["schemaVersion"]) == ("small", "1.5")
    execution = written["workflow"]["execution"]
    assert execution["makespanInSeconds"] == 3.5
    assert execution["executedAt"]
    assert execution["tasks"][0] == {"id": "a", "runtimeInSeconds": 2.0, "coreCount": 3}


def test_a_rigid_job_is_a_workflow_of_one_task(tmp_path):
    workload = Workload.from_columns(submit=[0, 5], runtime=[10, 20], cores=[1, 4], job=[3, 9])
    write_workflow(workload, tmp_path / "rigid.json", row=1)
    back = read_workload(tmp_path / "rigid.json")
    assert (seconds(int(back.runtime[0])), int(back.cores[0])) == (20.0, 4)


def test_names_that_are_no_ids_are_made_ones(tmp_path):
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=1, edges=[(0, 1)], names=["first task", "second/task"])
    write_workflow(Workload.from_tasks(tasks, submit=[0]), tmp_path / "w.json")
    assert tasks_of(read_workload(tmp_path / "w.json")).names == ("first_task", "second/task")


def test_a_row_that_is_not_there_and_a_place_that_cannot_be_written_are_refused(document, read, tmp_path):
    workload = read(document)
    with pytest.raises(InputError, match="row"):
        write_workflow(workload, tmp_path / "out.json", row=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_workflow(workload, tmp_path / "file" / "out.json")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "small.json"]


def test_networkx_graphs_go_in_and_out(document, read):
    tasks = tasks_of(read(document))
    back = Tasks.from_graphs({"again": tasks.graph(0)})
    assert nx.is_isomorphic(tasks.graph(0), back.graph(0))
    for name in ("first", "runtime", "cores", "edge_first", "edge_to"):
        assert np.array_equal(getattr(tasks, name), getattr(back, name))


HUGE = ["9" * 19, str(2**63), str(2**70), "9" * 400, "9" * 5000, "1e400"]


@pytest.mark.parametrize("digits", HUGE)
@pytest.mark.parametrize(
    "field",
    [
        "workflow.specification.files[0].sizeInBytes",
        "workflow.execution.tasks[1].runtimeInSeconds",
        "workflow.execution.tasks[1].coreCount",
        "workflow.execution.machines[0].cpu.coreCount",
    ],
)
def test_a_number_beyond_64_bits_is_refused_with_its_field(document, tmp_path, field, digits):
    document["workflow"]["execution"]["machines"] = [{"cpu": {"coreCount": 4}}]
    place: Any = document
    *way, last = field.replace("[", ".").replace("]", "").split(".")
    for key in way:
        place = place[int(key) if key.isdigit() else key]
    place[last] = "HERE"
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document).replace('"HERE"', digits))
    with pytest.raises(InputError, match="expected a number from") as caught:
        read_workflows(path)
    assert (caught.value.path, caught.value.field, len(str(caught.value)) < 300) == (path, field, True)


def test_cores_of_machines_that_are_too_many_together_are_refused(document, tmp_path):
    document["workflow"]["execution"]["machines"] = [{"cpu": {"coreCount": 2**30}}] * 2
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"machines\[1\].cpu.coreCount.*2,147,483,648 cores in total"):
        read_workflows(path)


@pytest.mark.parametrize("submit", [1e300, 10**400, 2**63, [0, 2**70]])
def test_a_submit_time_beyond_64_bits_is_refused(document, tmp_path, submit):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="expected submit times from 0 s"):
        read_workflows(path, submit=submit)
