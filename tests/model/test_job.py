"""One job and its graph."""

from __future__ import annotations

from gridsim.model.job import Job, Task


def test_the_graph_has_a_node_a_task_and_an_edge_a_dependency() -> None:
    tasks = tuple(Task(cores=cores, runtime=5.0, estimate=6.0) for cores in (1, 2, 4))
    graph = Job(id=7, submit=0.0, tasks=tasks, edges=((0, 1), (0, 2))).graph
    assert list(graph.nodes) == [0, 1, 2]
    assert sorted(graph.edges) == [(0, 1), (0, 2)]
    assert graph.nodes[2]["task"].cores == 4


def test_a_rigid_job_is_a_graph_of_one_node() -> None:
    graph = Job(id=1, submit=0.0, tasks=(Task(1, 1.0, 1.0),)).graph
    assert (len(graph), graph.size()) == (1, 0)
