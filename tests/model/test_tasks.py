"""Tasks of DAG jobs as columns."""

from __future__ import annotations

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.tasks import Job, Task, Tasks
from gridsim.model.workload import Workload
from tests.oracles.strategies import grids

SECOND = 10**6
TWO = Tasks.from_edges(
    counts=[3, 2],
    runtime=[2, 3, 4, 5, 6],
    cores=[1, 2, 3, 4, 5],
    kind=[0, 1, 0, 1, 1],
    kinds=("A", "B"),
    edges=[(1, 2), (0, 2), (0, 1), (3, 4)],
    names=["a", "b", "c", "d", "e"],
    volume=[12.0, 2.0, 1.0, 34.0],
)


def test_edges_are_grouped_by_their_first_task_with_their_volumes() -> None:
    assert [TWO.successors(row).tolist() for row in range(5)] == [[1, 2], [2], [], [4], []]
    assert TWO.volume is not None
    assert TWO.volume.tolist() == [1.0, 2.0, 12.0, 34.0]
    assert TWO.predecessor_counts().tolist() == [0, 1, 2, 0, 1]
    assert TWO.roots().tolist() == [0, 3]


def test_jobs_own_rows() -> None:
    assert (TWO.jobs, len(TWO)) == (2, 5)
    assert TWO.job_rows().tolist() == [0, 0, 0, 1, 1]
    assert TWO.area().tolist() == [2 + 6 + 12, 20 + 30]


def test_some_jobs_in_another_order_keep_their_edges_names_and_volumes() -> None:
    other = TWO.select([1, 0])
    assert other.names == ("d", "e", "a", "b", "c")
    assert (other.runtime // SECOND).tolist() == [5, 6, 2, 3, 4]
    assert [other.successors(row).tolist() for row in range(5)] == [[1], [], [3, 4], [4], []]
    assert other.volume is not None
    assert other.volume.tolist() == [34.0, 1.0, 2.0, 12.0]
    assert TWO.rows_of([1, 0]).tolist() == [3, 4, 0, 1, 2]
    assert TWO.rows_of(np.array([False, True])).tolist() == [3, 4]
    assert len(TWO.select(slice(0, 0))) == 0


def test_chains_are_longest_ways_to_the_end() -> None:
    assert (TWO.chains(TWO.runtime) // SECOND).tolist() == [9, 7, 4, 11, 6]
    transfers = np.array([10, 0, 0, 1]) * SECOND
    assert (TWO.chains(TWO.runtime, transfers) // SECOND).tolist() == [19, 7, 4, 12, 6]


def test_tasks_may_be_in_another_order_than_their_edges() -> None:
    backwards = Tasks.from_edges(counts=[3], runtime=[1, 2, 3], cores=1, edges=[(2, 1), (1, 0)])
    order = backwards.topological()
    assert order is not None
    assert order.tolist() == [2, 1, 0]
    assert (backwards.chains(backwards.runtime) // SECOND).tolist() == [1, 3, 6]


@given(grid=grids())
def test_whole_levels_at_once_give_the_same_chains(grid: tuple[Workload, Platform]) -> None:
    tasks = grid[0].tasks
    assert tasks is not None
    along = np.arange(len(tasks.edge_to)) * SECOND
    if len(along):
        by_level = tasks._chains_by_level(tasks.runtime, along, len(tasks))
        assert by_level is not None
        assert by_level.tolist() == tasks._chains_by_task(tasks.runtime, along).tolist()


def test_graphs_come_back_as_they_went_in() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_node("x", exec=3, cores=2, kind="A")
    graph.add_node("y", exec=4, cores=1, kind="B", estimate=9)
    graph.add_edge("x", "y")
    tasks = Tasks.from_graphs({"job": graph})
    assert tasks.names == ("x", "y")
    assert (tasks.estimate // SECOND).tolist() == [3, 9]
    back = tasks.graph(0)
    assert back.nodes[1] == {"exec": 4.0, "cores": 1, "kind": "B", "name": "y"}
    assert list(back.edges) == [(0, 1)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"counts": [2, 0]}, "job 2 has no tasks"),
        ({"runtime": [1, 0]}, "job 1 task 1 has 0.0; expected a runtime above 0 s"),
        ({"cores": [0, 1]}, "job 1 task 0 has 0; expected at least 1 core"),
        ({"estimate": [1, -1]}, "job 1 task 1 has -1.0; expected an estimate above 0 s"),
        ({"edges": [(0, 0)]}, "job 1 task 0 depends on itself"),
        ({"edges": [(0, 1), (1, 0)]}, "job 1 task 0 is in a cycle"),
        ({"edges": [(0, 2)]}, "an edge from row 0 to row 2 connects two jobs"),
        ({"edges": [(-1, 0)]}, "an edge from row -1 to row 0 connects two jobs"),
        ({"counts": [1, 1], "edges": [(0, 1)]}, "an edge from row 0 to row 1 connects two jobs"),
    ],
)
def test_an_invalid_job_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Tasks.from_edges(**{"counts": [2], "runtime": [1, 1], "cores": [1, 1], "edges": [], **change})


def test_errors_are_reported_with_the_file_the_job_and_the_task() -> None:
    with pytest.raises(InputError, match=r"^flow.json, field 'edges': job left task two is in a cycle"):
        Tasks.from_edges(
            counts=[3],
            runtime=[1, 1, 1],
            cores=1,
            edges=[(0, 1), (1, 2), (2, 1)],
            names=["one", "two", "three"],
            jobs=["left"],
            path="flow.json",
        )


def test_a_graph_without_an_attribute_is_refused() -> None:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_node("x", exec=3)
    with pytest.raises(InputError, match="job 7 task x has no 'cores'"):
        Tasks.from_graphs({7: graph})


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_an_undirected_graph_is_refused(kind: Any) -> None:
    graph = kind([("one", "two")])
    nx.set_node_attributes(graph, 3, "exec")
    nx.set_node_attributes(graph, 1, "cores")
    with pytest.raises(InputError, match=r"job 7 is an undirected graph; expected a networkx\.DiGraph"):
        Tasks.from_graphs({7: graph})


def test_a_workload_of_tasks_is_sorted_by_submit_time() -> None:
    workload = Workload.from_tasks(TWO, submit=[5, 1], job=[10, 20])
    assert workload.job.tolist() == [20, 10]
    assert workload.tasks is not None
    assert workload.tasks.names == ("d", "e", "a", "b", "c")
    assert workload.cores.tolist() == [5, 3]
    assert (workload.runtime // SECOND).tolist() == [11, 9]


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("cores", [1, 2**70], "field 'cores': has 1180591620717411303424; expected whole numbers of at most 64 bits"),
        ("cores", [1, 2**40], "job 1 task 1 has 1099511627776; expected at most 2,147,483,647 cores"),
        ("runtime", [1, 2**70], "field 'runtime': job 1 task 1 has inf; expected a finite run time"),
        ("runtime", [1, 1e300], "field 'runtime': job 1 task 1 has inf; expected a finite run time"),
        ("runtime", [2e12, 2e12], "tasks of job 1 have 4e+12 s together"),
        ("estimate", [1, 2**70], "field 'estimate': job 1 task 1 has inf; expected a finite estimate"),
        ("edges", [(0, 2**70)], "field 'edges': has 1180591620717411303424"),
        ("counts", [2**70], "field 'tasks': has 1180591620717411303424"),
    ],
)
def test_a_number_beyond_64_bits_is_refused(column: str, value: list[Any], told: str) -> None:
    columns: dict[str, Any] = {"counts": [2], "runtime": [1, 1], "cores": [1, 1], "edges": [(0, 1)], column: value}
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        Tasks.from_edges(**columns, path="dag.json")
    assert caught.value.path == "dag.json"


def test_the_graph_of_a_job_with_a_runtime_beyond_64_bits_is_refused() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("long", exec=10**400, cores=1)
    with pytest.raises(InputError, match="job 7 task long has inf; expected a finite run time"):
        Tasks.from_graphs({7: graph})


def test_the_graph_has_a_node_a_task_and_an_edge_a_dependency() -> None:
    tasks = tuple(Task(cores=cores, runtime=5.0, estimate=6.0) for cores in (1, 2, 4))
    graph = Job(id=7, submit=0.0, tasks=tasks, edges=((0, 1), (0, 2))).graph
    assert list(graph.nodes) == [0, 1, 2]
    assert sorted(graph.edges) == [(0, 1), (0, 2)]
    assert graph.nodes[2]["task"].cores == 4


def test_a_rigid_job_is_a_graph_of_one_node() -> None:
    graph = Job(id=1, submit=0.0, tasks=(Task(1, 1.0, 1.0),)).graph
    assert (len(graph), graph.size()) == (1, 0)
