"""State of a cluster at one moment: running and waiting jobs, nodes, reservations and licences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gridsim.files import plain
from gridsim.model.capacity import WHOLE_GPU, NodeGroup
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform

LABELS = ("user", "account", "partition", "qos")
"""Labels of the jobs of a state, which may also be given for one that is not submitted yet."""

WaitingKind = Literal["held", "never", "after", "not before", "queued"]
NodeState = Literal["up", "no new jobs", "down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateJob:
    """A job of a state.

    Parameters
    ----------
    job : str
        Id: the job number, or ``ARRAY_TASK``.
    user, account, partition, qos : str
        Names; empty if unknown. A job can be in several partitions, separated by commas.
    limit : int or None
        Time limit, s; None for no limit.
    features : str
        Constraint in Slurm's syntax, such as ``ib|rome``.
    reservation : str
        Reservation that the job uses or waits for; empty for none.
    cores : int
        Number of cores: allocated to a running job, requested by a waiting job.
    memory : int
        Memory on all nodes, MiB; 0 if unknown.
    gpus : mapping of str to int
        GPUs on all nodes by type; the type is empty for any type.
    licences : mapping of str to int
        Licences by name.
    nodes : int
        Number of nodes; for a waiting job the least number.
    """

    job: str
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    limit: int | None
    features: str
    reservation: str = ""
    cores: int
    memory: int
    gpus: Mapping[str, int]
    licences: Mapping[str, int]
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob(StateJob):
    """A job that has started and not ended.

    Parameters
    ----------
    start : int
        Unix time of its start, s.
    elapsed : int
        Time that it has run, without suspensions, s.
    stopped : bool
        Whether it is suspended at this moment.
    on : tuple of str
        Names of its nodes.
    """

    start: int
    elapsed: int
    stopped: bool
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob(StateJob):
    """A job that has not started; by default it has no conditions.

    Parameters
    ----------
    kind : {"held", "never", "after", "not before", "queued"}
        Held by a user or an administrator; unable to start; waits for other jobs; for a time; or in the queue.
    reason : str
        Slurm's reason, or the state of a job that is held by its state.
    priority : int
        Slurm's priority.
    submit : int
        Unix time of its submission, s.
    eligible : int or None
        Unix time before which it cannot start, s; None if that time is over.
    after : tuple of (str, str, str)
        Dependencies that are not fulfilled: type, job (``*`` after the number for all tasks), and state.
    any_one : bool
        Whether one of these dependencies is enough.
    array : int or None
        Number of its job array.
    throttle : int or None
        Greatest number of tasks of the array that run at once.
    required, excluded : tuple of str
        Nodes that it has to use, and that it must not use.
    slurm_start : int or None
        Slurm's own estimate of its start (Unix time, s), if the state has one.
    """

    kind: WaitingKind = "queued"
    reason: str = ""
    priority: int = 0
    submit: int
    eligible: int | None = None
    after: tuple[tuple[str, str, str], ...] = ()
    any_one: bool = False
    array: int | None = None
    throttle: int | None = None
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    slurm_start: int | None = None


def requested(cores: int, limit: int, labels: Mapping[str, Any], demand: Demand | None) -> dict[str, Any]:
    """Return the fields of a job of a state from its cores, its limit (s), its labels by name, and its demand."""
    demand = demand or Demand(cores=cores)
    gpus = demand.gpu * demand.tasks // WHOLE_GPU
    return {
        **labels,
        "limit": limit,
        "cores": cores,
        "features": "&".join(demand.features),
        "memory": demand.total("memory"),
        "licences": dict(demand.pools),
        "gpus": {(demand.gpu_kinds or ("",))[0]: gpus} if gpus else {},
        "nodes": demand.min_nodes,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNode:
    """A node.

    Parameters
    ----------
    node : str
        Name.
    cores : int
        Number of cores that jobs can use.
    memory : int
        Memory, MiB.
    gpus : mapping of str to int
        GPUs by type.
    features, partitions : tuple of str
        Features that jobs can request, and partitions of the node.
    weight : int
        Slurm's weight; nodes with low weights are used first.
    state : {"up", "no new jobs", "down"}
        Whether jobs can start on it; on a node without new jobs, running jobs continue.
    """

    node: str
    cores: int
    memory: int
    gpus: Mapping[str, int]
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    weight: int
    state: NodeState

    @classmethod
    def of(cls, platform: Platform) -> tuple[StateNode, ...]:
        """Return the nodes of a machine; a machine without nodes is one node."""
        cluster = next(platform.clusters())
        groups = cluster.nodes or [NodeGroup(group="machine", capacity={"cores": cluster.cores})]
        return tuple(
            cls(
                node=name,
                cores=group.capacity.get("cores", 0),
                memory=group.capacity.get("memory", 0),
                gpus={group.gpu_kind: group.gpus} if group.gpus else {},
                weight=group.weight,
                state="up",
                features=group.features,
                partitions=group.partitions,
            )
            for group in groups
            for name in group.names
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReservation:
    """A reservation.

    Parameters
    ----------
    name : str
        Name.
    start, end : int
        Unix times, s; an *end* of None is unknown.
    nodes : tuple of str
        Names of its nodes.
    cores : int or None
        Number of reserved cores on all nodes; None for all.
    users, accounts : tuple of str
        Names of those that may use it.
    maintenance : bool
        Whether it is a maintenance.
    """

    name: str
    start: int
    end: int | None
    nodes: tuple[str, ...]
    cores: int | None
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    maintenance: bool


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Canonical state of a cluster, from which a forecast starts.

    Parameters
    ----------
    at : int
        Moment of the state (Unix time, s).
    running : tuple of RunningJob
        Jobs that run, by start and id.
    waiting : tuple of WaitingJob
        Jobs that wait, by descending priority and submission; tasks of an array in their order.
    nodes : tuple of StateNode
        Nodes in the order of their list.
    reservations : tuple of StateReservation
        Present and later reservations.
    licences : mapping of str to mapping of str to int
        Licences by name: ``total`` and ``used``.
    left_out : mapping of str to int
        Number of other entries of the list of jobs, such as completed ones, by state.
    notes : tuple of str
        Sentences on the source that the output of a forecast repeats.
    """

    at: int
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    nodes: tuple[StateNode, ...] = ()
    reservations: tuple[StateReservation, ...] = ()
    licences: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``state.json``, without notes and estimates of Slurm if there are none."""
        content: dict[str, Any] = plain(asdict(self))
        for each in (content, *content["waiting"]):
            for name in {"notes", "slurm_start"} & each.keys():
                if not each[name]:
                    del each[name]
        return content
