"""A job that is not submitted yet: its labels by name, and its place in a log or in the state of a cluster."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.cluster_state import LABELS, ClusterState, WaitingJob, requested
from gridsim.model.demand import Demand
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, seconds, to_us
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.policy.capabilities import capabilities_of

NAME = "the new job"
"""Its id in a state and in a forecast."""

_IMPOSSIBLE = {
    "task": "no node is large enough for one of its tasks",
    "tasks": "all nodes together are too small for its tasks",
    "nodes": "the requested number of nodes is too small for its tasks",
    "features": "no node has all the requested features",
    "gpu-kind": "no node has GPUs of the requested type",
}
"""Reasons for a job that cannot run on the machine."""

_SHOWN = 5
"""Number of names in the error for an unknown one."""


class NewJob(NamedTuple):
    """A job that is not submitted yet.

    Attributes
    ----------
    cores : int
        Its cores.
    walltime : float
        Its limit, s.
    labels : mapping of str to str or int
        User, account, partition and qos by name; numbers are those of the workload.
    demand : Demand, optional
        Its request of nodes and pools.
    """

    cores: int
    walltime: float
    labels: Mapping[str, Any] = {}
    demand: Demand | None = None

    def check(self, platform: Platform, *, sited: bool = False) -> None:
        """Raise an error for a walltime or a number of cores that is not possible on a machine.

        Parameters
        ----------
        platform : Platform
            The machine.
        sited : bool
            Whether a policy describes the nodes, instead.
        """
        has_nodes = sited or any(cluster.nodes for cluster in platform.clusters())
        if self.demand is not None and self.demand.tasks and not has_nodes:
            message = "the machine is one pool, but the job has tasks; give --platform with nodes, slurm, or cores"
            raise InputError(message, field="demand")
        if not isinstance(self.cores, int | np.integer) or not 1 <= self.cores <= platform.cores:
            raise InputError(
                f"{self.cores!r} cores; expected 1 to {platform.cores}, the cores of the machine", field="cores"
            )
        if not 0 < self.walltime < seconds(NEVER - 1) or not to_us(float(self.walltime)):
            raise InputError(f"{self.walltime:g} s; expected a finite walltime above 0 s", field="walltime")

    def in_log(self, workload: Workload, policy: Any) -> tuple[Workload, NewJob]:
        """Return the workload and the job with labels by number; for a policy that reads labels also its demand.

        Parameters
        ----------
        workload : Workload
            The log.
        policy : object
            The policy; names in its site are also accepted.

        Returns
        -------
        (Workload, NewJob)
            The log with the names of the job, and the job.

        Raises
        ------
        InputError
            For a name that is unknown, with similar names.
        """
        (workload, labels), demand = owned(workload, self.labels, [policy]), self.demand
        if demand is not None and capabilities_of(policy).site:
            for label, value in policy.labels_of(demand).items():
                workload, labels[label] = _numbered(workload, label, value, [str(value)])
            demand = None
        return workload, self._replace(labels=labels, demand=demand)

    def in_state(self, state: ClusterState, history: Workload | None = None, policy: Any = None) -> ClusterState:
        """Return the state with the job at the end of its queue.

        Parameters
        ----------
        state : ClusterState
            The state.
        history : Workload, optional
            Log of the cluster, whose names are also accepted.
        policy : object, optional
            The policy; names in its site are also accepted.

        Returns
        -------
        ClusterState
            The state with one more waiting job.

        Raises
        ------
        InputError
            For cores or a walltime that are not possible, and for a name that is unknown, with similar names.
        """
        up = sum(node.cores for node in state.nodes if node.state != "down")
        self.check(Platform.single(max(up, 1)), sited=True)  # nodes are ignored
        for label, name in self.labels.items():
            known = {*_names_of_sites([] if policy is None else [policy], label)}
            known |= {part for job in (*state.running, *state.waiting) for part in getattr(job, label).split(",")}
            known |= set() if history is None else {*history.names.get(label, ())}
            known |= {part for node in state.nodes for part in node.partitions} if label == "partition" else set()
            _require_known(label, str(name), [*filter(None, known)])
        asked = requested(self.cores, math.ceil(self.walltime), self.labels, self.demand)
        return replace(state, waiting=(*state.waiting, WaitingJob(**asked, job=NAME, submit=state.at)))


def owned(
    workload: Workload, names: Mapping[str, str | int], policies: Iterable[Any] = ()
) -> tuple[Workload, dict[str, int]]:
    """Return the numbers of names by label, and the workload with these names.

    Parameters
    ----------
    names : mapping of str to str or int
        Name by label, as in the log, or its number in the workload.
    policies : iterable of object
        Policies; names in their sites are also accepted (`gridsim.model.site.Site.names`).

    Raises
    ------
    InputError
        For a name that is neither in the log nor in a site, with similar names, and for a number without a name.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0], runtime=[9], cores=[8], labels={"user": [7]})
    >>> owned(log, {"user": "7"})[1]
    {'user': 7}
    """
    policies, found = list(policies), dict[str, int]()
    for label, name in names.items():
        of_sites, most = _names_of_sites(policies, label), len(workload.names.get(label) or ()) or NEVER
        if not isinstance(name, str) and not (isinstance(name, int | np.integer) and UNKNOWN <= name < most):
            raise InputError(f"is {name!r}; expected a name, or its number in the workload", field=label)
        workload, found[label] = _numbered(workload, label, name, of_sites)
    return workload, found


def _names_of_sites(policies: Iterable[Any], label: str) -> list[str]:
    """Return the names of a label in the sites of policies."""
    if label not in LABELS:
        raise InputError(f"is not a property of a job; expected one of {', '.join(LABELS)}", field=label)
    sites = [policy.site for policy in policies if capabilities_of(policy).site and policy.site is not None]
    return [name for site in sites for name in site.names(label)]


def _numbered(workload: Workload, label: str, name: str | int, of_sites: list[str]) -> tuple[Workload, int]:
    """Return the number of a label's value, and the workload with the label; a name found only in a site is added."""
    column, names = workload.labels.get(label), workload.names.get(label)
    if column is None:
        column, names = np.full(len(workload), UNKNOWN, dtype=np.int64), ("",)
    if not isinstance(name, str):
        return replace(workload, labels={**workload.labels, label: column}), name
    if names is None:
        numbers = {str(number): number for number in np.unique(column[column != UNKNOWN]).tolist()}
        if name not in numbers:
            raise _unknown(label, name, list(numbers))
        return workload, numbers[name]
    if name in names and name:
        return workload, names.index(name)
    _require_known(label, name, [*dict.fromkeys([*filter(None, names), *of_sites])])
    added = {"labels": {**workload.labels, label: column}, "names": {**workload.names, label: (*names, name)}}
    return replace(workload, **added), len(names)  # type: ignore[arg-type]


def impossible(reason: str) -> InputError:
    """Return the error for a demand that the empty machine cannot hold, from the resource that is missing."""
    what, _, pool = reason.partition(":")
    why = f"it requests more of pool '{pool}' than the machine has" if pool else _IMPOSSIBLE.get(what, what)
    return InputError(f"the empty machine can never hold it: {why}", field="demand")


def _require_known(label: str, name: str, known: list[str]) -> None:
    """Raise an error for a name that is unknown; a job can request several partitions, separated by commas."""
    for part in name.split(",") if label == "partition" else [name]:
        if part not in known:
            raise _unknown(label, part, known)


def _unknown(label: str, name: str, known: list[str]) -> InputError:
    if not known:
        return InputError(f"'{name}' is unknown: neither the log nor a site configuration has names", field=label)
    near = difflib.get_close_matches(name, known, n=_SHOWN, cutoff=0.5) or sorted(known)[:_SHOWN]
    others = len(known) - len(near)
    shown = f"{', '.join(near)} and {others:,} more" if others else ", ".join(near)
    return InputError(f"'{name}' is not a {label} of the log, the state or the site; known: {shown}", field=label)
