"""What jobs of a workload say of their needs, for a Slurm site."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LABELS"]


LABELS: Mapping[str, str] = {
    "user": "who submitted the job",
    "account": "account that is charged",
    "partition": "partition asked for",
    "qos": "quality of service",
    "reservation": "name of a reservation",
    "constraint": "features that the nodes must have, such as intel&gpu, [rack1|rack2] or [fat*1&thin*4]",
    "nodelist": "names of nodes that must be among its own, such as n[1-4,7]",
    "exclude": "names of nodes that must not",
    "gpu_type": "type of the GPUs asked for; where the node's GPUs have none in the site's file any will do",
    "licenses": "licences asked for, such as matlab:2,ansys",
    "nodes": "number of nodes asked for, or the least; unknown or 0: as many as it takes",
    "nodes_most": "most nodes, where a range is asked for",
    "memory_mb": "memory asked for on each node, MiB; 0: all of the node's; unknown: the site's default",
    "memory_granted_mb": "memory that the job had on each of its nodes, MiB; replaces memory_mb where no node of its "
    "partition has that much",
    "memory_core_mb": "memory asked for on each core, MiB, in place of memory_mb",
    "gpus": "GPUs asked for on each node",
    "cores_per_task": "cores of a task, which all lie on one node; unknown: 1",
    "tasks_per_node": "most tasks on a node; unknown or 0: no limit",
    "exclusive": "1: whole nodes",
    "requeue": "whether it may be requeued when it is preempted: 1 or 0; unknown: as the site says",
    "priority_nice": "nice value, taken off the priority",
    "array": "number of the job array that the job belongs to",
    "array_limit": "how many jobs of the array may run at once",
    "after": "number of the job whose end it waits for",
    "begin": "seconds after its submission before which it is held",
    "withdrawn": "seconds after its submission at which it is cancelled if it still waits",
}
"""Labels of a workload that the Slurm policy looks at; jobs without one have `gridsim.model.workload.UNKNOWN` there.
All but the first ten are plain numbers. Of several partitions, separated by commas, the one that starts the job first
is taken."""
