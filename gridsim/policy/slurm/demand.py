"""Translation of a demand for nodes into the labels of jobs at a Slurm site.

Sources: sbatch(1), ``--ntasks``, ``--cpus-per-task``, ``--mem-per-cpu``, ``--gres``, ``--constraint``, ``--licenses``.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.errors import InputError
from gridsim.model.capacity import GPU, WHOLE_GPU
from gridsim.model.demand import Demand
from gridsim.model.site import Node, Site


def labels_of(demand: Demand, site: Site) -> dict[str, int | str]:
    """Return the labels (`gridsim.model.site.LABELS`) with which a job requests a demand.

    Slurm allocates GPUs by node. If several tasks have GPUs, the number of tasks per node is the largest divisor of
    their number that the site's nodes can hold, as ``--nodes`` and ``--ntasks-per-node`` would set it.

    Raises
    ------
    InputError
        For demands that cannot be requested of the site: fractions of GPUs, several kinds of GPUs, other resources,
        and unknown licences.

    Examples
    --------
    >>> demand = Demand(tasks=2, each={"cores": 2, "memory": 4096}, features=["ssd"], exclusive=True)
    >>> labels_of(demand, Site.of(nodes=2, cores=4))
    {'cores_per_task': 2, 'memory_core_mb': 2048, 'constraint': 'ssd', 'exclusive': 1}
    """
    found: dict[str, int | str] = {}
    cores = demand.each.get("cores", 1)
    if other := set(demand.each) - {"cores", "memory"}:
        raise InputError(
            f"cannot be requested from a Slurm site; expected cores or memory, not {min(other)}", field="each"
        )
    if cores > 1:
        found["cores_per_task"] = cores
    if memory := demand.each.get("memory", 0):
        found["memory_core_mb"] = -(-memory // cores)
    if demand.gpu:
        found |= _gpus(demand, site.nodes)
    if demand.features:
        found["constraint"] = "&".join(demand.features)
    if demand.exclusive:
        found["exclusive"] = 1
    if demand.tasks_per_node:
        found["tasks_per_node"] = demand.tasks_per_node
    if demand.min_nodes > 1:
        found["nodes"] = demand.min_nodes
    if demand.max_nodes:
        found["nodes_most"] = demand.max_nodes
    if unknown := set(demand.pools) - set(site.licences):
        known = ", ".join(sorted(site.licences)) or "none"
        raise InputError(f"'{min(unknown)}' is not a licence of the site; known: {known}", field="pools")
    if demand.pools:
        found["licenses"] = ",".join(f"{name}:{count}" for name, count in sorted(demand.pools.items()))
    return found


def _gpus(demand: Demand, nodes: Sequence[Node]) -> dict[str, int | str]:
    """Return the labels for GPUs per node, number of nodes, and GPU type."""
    each, rest = divmod(demand.gpu, WHOLE_GPU)
    if rest:
        raise InputError(f"has {demand.gpu / WHOLE_GPU:g} GPUs per task; expected whole GPUs under slurm", field="gpu")
    if len(demand.gpu_kinds) > 1:
        raise InputError(f"names {', '.join(demand.gpu_kinds)}; expected one GPU type under slurm", field="gpu_kinds")
    cores, memory = (max(demand.each.get(name, 0), 1) for name in ("cores", "memory"))
    kinds = (*demand.gpu_kinds, GPU) if demand.gpu_kinds else ()
    fits = [
        min(node.gpus // each, node.cores // cores, node.memory // memory)
        for node in nodes
        if not kinds or node.gpu_kind in kinds
    ]
    most = max(fits, default=0)
    on_a_node = max((count for count in range(1, most + 1) if demand.tasks % count == 0), default=1)
    found: dict[str, int | str] = {"gpus": each * on_a_node}
    if demand.tasks > 1 or on_a_node > 1:
        found |= {"nodes": demand.tasks // on_a_node, "tasks_per_node": on_a_node}
    return found | ({"gpu_type": demand.gpu_kinds[0]} if demand.gpu_kinds else {})
