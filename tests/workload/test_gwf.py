"""The GWF reader: the form with dependencies, the form with 29 fields, and rejected input."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.tasks import Tasks
from gridsim.model.time import seconds
from gridsim.model.workload import Workload
from gridsim.registry import names
from gridsim.workload.formats.gwf import FIELDS, looks_like_gwf
from gridsim.workload.formats.stream import first_bytes
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.formats.wfformat_writer import write_workflow
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin

NAMES = "WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies"


def tasks_of(workload: Workload) -> Tasks:
    assert workload.tasks is not None
    return workload.tasks


@pytest.fixture
def dag(tmp_path):
    """Write lines below the column names of the reduced form, and read them."""

    def reading(*lines: str, header: str = NAMES, **options: Any) -> Workload:
        path = tmp_path / "trace.gwf"
        path.write_text("\n".join([header, *lines]) + "\n")
        return read_workload(path, **options)

    return reading


def full(job=1, submit=0, wait=2, runtime=10, allocated=3, requested=4, estimate=20, status=1, **more):
    """Return a line of 29 fields."""
    values = dict.fromkeys(FIELDS, "-1")
    values |= {
        "JobID": job,
        "SubmitTime": submit,
        "WaitTime": wait,
        "RunTime": runtime,
        "NProcs": allocated,
        "ReqNProcs": requested,
        "ReqTime": estimate,
        "Status": status,
        "JobStructure": "UNITARY",
        **more,
    }
    return list(map(str, values.values()))


@pytest.fixture
def trace(tmp_path):
    """Write lines of the full form, and read them."""

    def reading(*lines: list[str], above: str = "# a trace\n", between: str = "\t", **options: Any) -> Workload:
        path = tmp_path / "trace.gwf"
        path.write_text(above + "\n".join(map(between.join, lines)) + "\n")
        return read_workload(path, **options)

    return reading


# With dependencies


def generated(path: Path) -> Path:
    """Return ten workflows of a task, three after it, one, and two more; in two of them the first three are empty."""
    needs = ["-1", "1", "1", "1", "2 3 4", "5", "6"]
    rows = [
        f"{workflow}, {7 * workflow + task + 1}, {16 * workflow}, {0 if workflow % 5 == 4 and task < 3 else 11}, 1, 1, "
        + " ".join(str(7 * workflow + int(need)) if need != "-1" else need for need in needs[task].split())
        for workflow in range(10)
        for task in range(7)
    ]
    path.write_text("\n".join([NAMES, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("source", "edges", "runtimes", "zero", "lines"),
    [
        ("generated", 80, ([55.0] * 4 + [45.0]) * 2, 6, [30, 31, 32, 65, 66]),
        pytest.param(
            "gwf/opendc-workflows-sample.gwf",
            *(80, [44.0] * 7 + [4.0, 44.0, 44.0], 7, [51, 52, 53, 54, 55]),
            marks=pytest.mark.others,
        ),
    ],
)
def test_every_workflow_of_the_sample_is_a_job(others, tmp_path, source, edges, runtimes, zero, lines):
    path = generated(tmp_path / "generated.gwf") if source == "generated" else others(source)
    workload = read_workload(path)
    tasks = tasks_of(workload)
    assert (len(workload), len(tasks), len(tasks.edge_to)) == (10, 70, edges)
    assert workload.names["executable"] == tuple(map(str, range(10)))
    assert all(nx.is_directed_acyclic_graph(tasks.graph(job)) for job in range(10))
    assert seconds(workload.runtime).tolist() == runtimes
    assert workload.provenance["format"] == "gwf"
    assert workload.provenance["problems"] == [
        {"kind": "zero-length-task", "count": zero, "first_lines": lines, "rule": "repair"}
    ]


def test_tasks_needs_and_cores_land_in_their_columns(dag):
    workload = dag("7, 1, 16, 11, 2, 3,", "7, 2, 40, 12, 2, -1, 1", "7, 3, 40, 13, 2, 1, 1 2")
    tasks = tasks_of(workload)
    assert tasks.names == ("1", "2", "3")
    assert seconds(tasks.runtime).tolist() == [11, 12, 13]
    assert tasks.cores.tolist() == [3, 2, 1]
    assert [tasks.successors(row).tolist() for row in range(3)] == [[1, 2], [2], []]


def test_workflows_may_be_mixed_and_a_task_may_be_before_those_that_it_needs(dag):
    tasks = tasks_of(dag("1, 2, 0, 5, 1, 1, 4", "2, 3, 0, 5, 1, 1, -1", "1, 4, 0, 5, 1, 1,"))
    assert tasks.names == ("2", "4", "3")
    assert tasks.successors(1).tolist() == [0]


def test_the_logged_submit_times_of_tasks_are_not_arrivals(dag):
    lines = ["1, 1, 77, 5, 1, 1,", "2, 2, 99, 5, 1, 1,"]
    assert dag(*lines).submit.tolist() == [0, 0]
    assert seconds(dag(*lines, submit=[3.0, 8.0]).submit).tolist() == [3, 8]


def test_columns_are_found_by_their_names(dag):
    tasks = tasks_of(dag(", 1, 9, 4", header="Dependencies, JobID, RunTime, WorkflowID"))
    assert (seconds(int(tasks.runtime[0])), int(tasks.cores[0])) == (9.0, 1)


def test_a_compressed_trace_is_found_out(tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress(f"# comment\n{NAMES}\n1, 1, 0, 5, 1, 1,\n".encode()))
    assert len(tasks_of(read_workload(tmp_path / "t.gz"))) == 1


@pytest.mark.parametrize(
    ("lines", "line", "field", "said"),
    [
        (["1, 1, 0, 5, 1, 1, 9"], 2, "Dependencies", "task 1 needs 9, which is not a task"),
        (["1, 1, 0, 5, 1, 1,", "2, 2, 0, 5, 1, 1, 1"], 3, "Dependencies", "task 2 needs 1 of workflow 1"),
        (["1, 1, 0, 5, 1, 1, 1"], 2, "Dependencies", "task 1 depends on itself"),
        (["1, 1, 0, 5, 1, 1, 2", "1, 2, 0, 5, 1, 1, 1"], None, "Dependencies", "in a cycle"),
        (["1, 1, 0, 5, 1, 1,", "1, 1, 0, 5, 1, 1,"], 3, "JobID", "1 is also on line 2"),
        (["1, 1, 0, 5, 0, 0,"], 2, "ReqNProcs", "expected at least 1 core"),
        (["1, 1, 0, -1, 1, 1,"], 2, "RunTime", "expected a runtime from 0 s"),
        (["1, 1, 0, nan, 1, 1,"], 2, "RunTime", "expected a runtime from 0 s"),
        (["1, 1, 0, long, 1, 1,"], 2, "RunTime", "'long'; expected a number"),
        (["1, one, 0, 5, 1, 1,"], 2, "JobID", "'one'; expected a whole number"),
        (["1, 1, 0, 5, 1, 1, 2 x"], 2, "Dependencies", "'x'; expected a whole number"),
        ([", 1, 0, 5, 1, 1,"], 2, "WorkflowID", "is empty"),
        (["1, 1, 0, 5"], 2, None, "has 4 fields; expected 7"),
        ([], None, None, "contains no task"),
    ],
)
def test_a_wrong_line_is_named(dag, lines, line, field, said):
    with pytest.raises(InputError, match=said) as caught:
        dag(*lines)
    assert str(caught.value.path).endswith("trace.gwf")
    assert caught.value.field == field
    assert line is None or caught.value.line == line


def test_a_column_that_must_be_there_is_named(dag):
    with pytest.raises(InputError, match="field 'RunTime': is missing in"):
        dag("1, 1,", header="WorkflowID, JobID, Dependencies")


def test_a_zero_length_task_can_be_an_error(dag):
    with pytest.raises(InputError, match="line 2, field 'RunTime': zero-length-task"):
        dag("1, 1, 0, 0, 1, 1,", rules={"zero-length-task": "error"})


def test_a_task_that_is_wider_than_the_machine_is_named(dag):
    with pytest.raises(InputError, match="task 1 needs 5 cores; the machine has 4"):
        dag("1, 1, 0, 5, 1, 5,", cores=4)


# With 29 fields


def test_each_field_lands_in_its_column(trace):
    workload = trace(full(job=7, submit=1_100_000_000, UserID="user12", GroupID="G1/site3", QueueID="2"))
    assert workload.tasks is None
    assert workload.job.tolist() == [7]
    assert [seconds(int(column[0])) for column in (workload.submit, workload.runtime, workload.estimate)] == [
        1_100_000_000,
        10,
        20,
    ]
    assert workload.cores.tolist() == [4]
    assert {name: column.tolist() for name, column in workload.logged.items()} == {
        "wait": [2],
        "status": [1],
        "allocated": [3],
    }
    assert {name: workload.names[name][workload.labels[name][0]] for name in workload.labels} == {
        "user": "user12",
        "group": "G1/site3",
        "queue": "2",
    }


def test_the_same_text_is_the_same_number_and_an_unknown_one_is_none(trace):
    workload = trace(*(full(job=job, UserID=user) for job, user in enumerate(["b", "a", "-1", "b"], start=1)))
    assert workload.labels["user"].tolist() == [1, 2, -1, 1]
    assert workload.names["user"] == ("", "b", "a")


@pytest.mark.parametrize("between", ["\t", " ", " , "])
def test_fields_are_between_tabs_blanks_or_commas(trace, between):
    assert len(trace(full(), full(job=2), between=between)) == 2


def test_a_thirtieth_field_moves_nothing(trace):
    line = full(UserID="u")
    assert trace([*line[:18], "extra", *line[18:]]).names == {"user": ("", "u")}


def test_names_of_columns_say_where_they_are(trace):
    turned = "\t".join(reversed(FIELDS)) + "\n"
    workload = trace(full(job=5)[::-1], above=turned)
    assert (workload.job.tolist(), workload.cores.tolist()) == ([5], [4])


def test_damaged_lines_meet_the_rules_of_logs(trace):
    workload = trace(
        full(), full(job=2, runtime=0), full(job=3)[:20], full(job=4, runtime="x"), full(job=5, requested=-1)
    )
    assert workload.job.tolist() == [1, 5]
    assert workload.cores.tolist() == [4, 3]
    assert {entry["kind"]: entry["first_lines"] for entry in workload.provenance["problems"]} == {
        "too-few-fields": [4],
        "not-a-number": [5],
        "zero-runtime": [3],
    }
    assert (workload.provenance["format"], workload.provenance["jobs_read"]) == ("gwf", 5)


def test_a_short_line_can_be_an_error(trace):
    with pytest.raises(InputError, match=r"line 2: has 20 fields; expected 29 \(GWF\)"):
        trace(full()[:20], rules={"too-few-fields": "error"})


def test_a_trace_with_times_takes_no_others(trace):
    with pytest.raises(InputError, match="submit times"):
        trace(full(), submit=3.0)


def test_a_trace_without_jobs_is_refused(trace):
    with pytest.raises(InputError, match="contains no job; expected lines of 29 fields"):
        trace(above="# nothing\n")
    with pytest.raises(InputError, match="field 'ReqTime': is missing in"):
        trace(full(), above="JobID\tSubmitTime WaitTime RunTime NProcs AverageCPUTimeUsed UsedMemory ReqNProcs\n")


# Which format


def one_of_each(folder: Path) -> Callable[[str], Path]:
    """Create folders of logs and workflows, named as in archives of users."""
    for name in ("swf", "workflows", "gwf"):
        (folder / name).mkdir()
    log = Lublin(jobs=20, cores=16).generate(1)
    write_swf(log, folder / "swf" / "log.swf.gz")
    write_workflow(log, folder / "workflows" / "task.json")
    generated(folder / "gwf" / "trace.gwf")
    return lambda name: folder / name


@pytest.mark.parametrize("source", ["generated", pytest.param("others", marks=pytest.mark.others)])
def test_formats_are_distinguished(others, tmp_path, source):
    data = one_of_each(tmp_path) if source == "generated" else others
    for folder, pattern, name in (("swf", "*.gz", "swf"), ("workflows", "*.json", "wfformat"), ("gwf", "*.gwf", "gwf")):
        paths = list(data(folder).glob(pattern))
        assert paths
        for path in paths:
            recognising = [
                kind
                for kind, reader in names("reader").items()
                if hasattr(reader, "recognises") and reader.recognises(first_bytes(path))
            ]
            assert recognising == [name], path


def test_the_shape_of_a_trace():
    assert looks_like_gwf(b"\n# comment")
    assert looks_like_gwf(" ".join(full()).encode())
    assert looks_like_gwf(NAMES.encode())
    assert not looks_like_gwf(b"")
    assert not looks_like_gwf(b"1 2 3")


def test_many_lines_are_read_in_blocks(trace):
    workload = trace(*(full(job=job, submit=job, UserID=f"u{job % 7}") for job in range(1, 15_001)))
    assert len(workload) == 15_000
    assert np.unique(workload.labels["user"]).tolist() == list(range(1, 8))


@pytest.mark.parametrize("digits", ["9" * 19, str(2**63), str(2**70), "9" * 400, "9" * 5000])
@pytest.mark.parametrize("field", ["ReqNProcs", "NProcs", "RunTime", "Dependencies"])
def test_a_number_beyond_64_bits_is_refused_with_its_line_and_field(dag, field, digits):
    values = dict(zip(NAMES.split(", "), ["1", "2", "0", "5", "2", "-1", "1"], strict=True))
    values[field] = digits
    with pytest.raises(InputError) as caught:
        dag("1, 1, 0, 5, 1, 2, -1", ", ".join(values.values()))
    assert (caught.value.line, caught.value.field) == (3, field)


def test_cores_beyond_64_bits_in_a_trace_of_jobs_are_a_damaged_line(trace):
    workload = trace(full(), full(job=2, requested=2**70))
    assert workload.job.tolist() == [1]
    assert "not-a-number" in str(workload.provenance["problems"])
