"""Requests of the jobs of a workload to a site: one queue entry for each partition that a job names.

Sources: sbatch(1), ``--partition``, ``--reservation``, ``--nodes``, ``--mem``; sched_config.html
("jobs submitted to multiple partitions will have as many entries in the list as requested partitions").
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gridsim.model.site import Association, Site, SitePartition
from gridsim.model.time import NEVER
from gridsim.model.workload import UNKNOWN, Workload
from tests.oracles.slurm.node_requests import Kind, NodeRequest, node_request_of

__all__ = ["UNKNOWN_PARTITION", "WHOLE", "Entry", "Job", "jobs_of"]

WHOLE = -1
"""Memory value for all memory of a node."""

UNKNOWN_PARTITION = "?"
"""Marker of a reservation that the site does not have, or that excludes the user of the job."""


@dataclass(eq=False)
class Job:
    """A job and its state; times in whole microseconds."""

    row: int
    number: int
    submit: int
    cores: int
    estimate: int
    runtime: int
    numbers: dict[str, int]
    words: dict[str, str]
    entries: list[Entry] = field(default_factory=list)
    chosen: list[Entry] = field(default_factory=list)
    came: int = NEVER
    requeued: bool = False
    over: bool = False


@dataclass(eq=False)
class Entry:
    """A job in one partition; memory in MiB, times in whole microseconds."""

    job: Job
    partition: SitePartition
    reservation: str
    waits: bool
    place: int
    account: str
    user: str
    qos: str
    cores: int
    nodes: int
    most_nodes: int
    node_memory: int
    core_memory: int
    gpus: int
    task: int
    most_on_node: int
    exclusive: bool
    spread: bool
    members: list[bool]
    kinds: list[Kind]
    widens: bool
    priority: int = 0
    since: int = 0

    @property
    def limit(self) -> int:
        """The time limit of the entry."""
        return self.job.estimate

    @property
    def lane(self) -> tuple[str, str]:
        """Key of entries that wait for one another."""
        return self.partition.name, self.reservation

    def memory_on(self, memory: int, cores: int) -> int:
        """Return the MiB that the entry holds of a node with this memory and these cores of it."""
        return memory if self.node_memory == WHOLE else self.node_memory + self.core_memory * cores


def jobs_of(workload: Workload, site: Site) -> list[Job]:
    """Return the jobs with their entries."""
    jobs = []
    for row in range(len(workload.job)):
        numbers = {label: int(column[row]) for label, column in workload.labels.items()}
        words = {label: _word(workload, label, code) for label, code in numbers.items()}
        job = Job(
            row=row,
            number=int(workload.job[row]),
            submit=int(workload.submit[row]),
            cores=int(workload.cores[row]),
            estimate=int(workload.estimate[row]),
            runtime=int(workload.runtime[row]),
            numbers=numbers,
            words=words,
        )
        job.entries = job.chosen = [
            _entry(job, site, site.partition(partition), reservation, waits, place)
            for place, (reservation, waits, partition) in enumerate(_alternatives(job, site))
        ]
        jobs.append(job)
    return jobs


def _word(workload: Workload, label: str, code: int) -> str:
    names = workload.names.get(label)
    return "" if code < 0 else names[code] if names is not None else str(code)


def _alternatives(job: Job, site: Site) -> list[tuple[str, bool, str]]:
    """Return each reservation and partition, and whether the entry is only queued after that reservation is over."""
    partitions = [name for name in job.words.get("partition", "").split(",") if name] or [site.default_partition]
    named = job.words.get("reservation", "")
    user = job.words.get("user", "")
    account = job.words.get("account", "") or next((each.account for each in _users(site, user)), "")
    admitting = {each.name: each for each in reversed(site.reservations) if each.admits(user, account)}
    wanted: list[tuple[str, bool]] = [("", False)]
    if named and site.reservations:
        wanted = [(name if name in admitting else UNKNOWN_PARTITION, False) for name in named.split(",")]
        letting_go = {"NO_HOLD_JOBS_AFTER", "NO_HOLD_JOBS_AFTER_END"}
        if any(name in admitting and admitting[name].flags & letting_go for name, _ in wanted):
            wanted.append(("", True))
    else:
        names = dict.fromkeys(each.name for each in site.reservations)
        wanted += [(name, False) for name in names if name in admitting and "MAGNETIC" in admitting[name].flags]
    return [(*each, partition) for each in wanted for partition in dict.fromkeys(partitions)]


def _users(site: Site, user: str) -> list[Association]:
    return [each for each in site.associations if user and each.user == user]


def _entry(job: Job, site: Site, partition: SitePartition, reservation: str, waits: bool, place: int) -> Entry:
    account, user, qos = _owner(job, site)
    node_request = node_request_of(job.words, site, partition)
    nodes, most_nodes, widens = _node_range(job, partition, node_request)
    node_memory, core_memory = _memory(job, site, partition, nodes)
    cores = max(job.cores, nodes)
    task = max(job.numbers.get("cores_per_task", 1), 1)
    task = task if cores % task == 0 else 1
    return Entry(
        job=job,
        partition=partition,
        reservation=reservation,
        waits=waits,
        place=place,
        account=account,
        user=user,
        qos=qos,
        cores=cores,
        nodes=nodes,
        most_nodes=most_nodes,
        node_memory=node_memory,
        core_memory=core_memory,
        gpus=max(job.numbers.get("gpus", 0), 0),
        task=task,
        most_on_node=max(job.numbers.get("tasks_per_node", 0), 0) * task,
        exclusive=job.numbers.get("exclusive", 0) > 0 or partition.exclusive or site.whole_nodes,
        spread=partition.least_loaded or site.least_loaded,
        members=[any(node in kind.nodes for kind in node_request.kinds) for node in range(len(site.nodes))],
        kinds=node_request.kinds,
        widens=widens,
    )


def _owner(job: Job, site: Site) -> tuple[str, str, str]:
    """Return account, user and QOS: the user's first account, and the default QOS of the association or "normal"."""
    account, user, qos = (job.words.get(label, "") for label in ("account", "user", "qos"))
    own = _users(site, user)
    if not account and own:
        account = own[0].account
    if not qos:
        qos = next((each.default_qos for each in reversed(own) if each.account == account), "")
    if not qos and any(each.name == "normal" for each in site.qos):
        qos = "normal"
    return account or "root", user, qos


def _node_range(job: Job, partition: SitePartition, node_request: NodeRequest) -> tuple[int, int, bool]:
    """Return fewest and most nodes (0: no limit), and whether the job takes more than the fewest only if needed.

    "The partition's node limits supersede those of the job" (sbatch(1)).
    """
    asked, most = (max(job.numbers.get(label, 0), 0) for label in ("nodes", "nodes_most"))
    fewest = max(asked, partition.least_nodes if partition.least_nodes > 1 else 0)
    named = min((kind.fewest for kind in node_request.kinds), default=0)
    says_none = not asked and not most
    if named and says_none and node_request.exact:
        most = max(named, fewest)
    fewest = max(fewest, named)
    most = most or asked or partition.most_nodes
    if partition.most_nodes:
        most = min(most, partition.most_nodes)
    return fewest, max(most, fewest) if most else 0, bool(named and says_none and not node_request.exact)


def _memory(job: Job, site: Site, partition: SitePartition, nodes: int) -> tuple[int, int]:
    """Return MiB per node and per core: the request, or the default of partition or site, or all memory of the node.

    A request equal to the default per core times all cores counts as the default: a log omits the form of the request.
    """
    if not site.memory:
        return 0, 0
    node_default, core_default = partition.default_memory, partition.default_core_memory
    if node_default is None and core_default is None:
        node_default, core_default = site.default_memory, site.default_core_memory
    core_default = core_default or 0
    node, core = (job.numbers.get(label, UNKNOWN) for label in ("memory_mb", "memory_core_mb"))
    by_default = -(-core_default * job.cores // max(nodes, 1))
    if node == 0 or (node > 0 and node != by_default):
        granted = job.numbers.get("memory_granted_mb", UNKNOWN)
        if granted > 0 and node > max(each.memory for each in site.nodes if each.name in partition.nodes):
            node = granted
        return node or WHOLE, 0
    core = core if core > 0 else core_default
    if core > 0:
        return 0, core
    return node_default or WHOLE, 0
