"""A job as users see it: tasks and their order. Whole logs are columns (`gridsim.model.workload`); this is one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Job", "Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """A rigid piece of work: *cores* cores for *runtime* seconds, of which *estimate* seconds were asked for."""

    cores: int
    runtime: float
    estimate: float
    kind: str = "any"


@dataclass(frozen=True, slots=True)
class Job:
    """Tasks that arrive together at *submit* (s).

    Parameters
    ----------
    id : int
        Number of the job in its source.
    submit : float
        Submit time, s.
    tasks : tuple of Task
        In the order of their task index.
    edges : tuple of (int, int)
        Pairs of task indices: the second needs the first.
    user : int or None
        Number of the user, if the source tells.
    deadline : float or None
        Latest completion that was asked for, s.
    """

    id: int
    submit: float
    tasks: tuple[Task, ...]
    edges: tuple[tuple[int, int], ...] = ()
    user: int | None = None
    deadline: float | None = None

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The job as a networkx graph, built when asked for: nodes are task indices with their `Task` as ``task``."""
        import networkx as nx  # 11 MB and a tenth of a second that no rigid log needs

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from((index, {"task": task}) for index, task in enumerate(self.tasks))
        graph.add_edges_from(self.edges)
        return graph
