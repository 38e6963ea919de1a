"""Lists of what gridsim models, for ``what-is-modelled.md``: combinations that were simulated, counts, and refusals."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import gridsim as gs
from gridsim import registry
from gridsim.cli.list import KINDS
from gridsim.errors import GridsimError
from gridsim.model import site
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.tasks import Tasks
from gridsim.model.time import NEVER
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import PRESETS, policy
from gridsim.scenario import transformed

DOCS = Path(__file__).parents[1]
SLURM = Path(site.__file__).with_name("slurm_parameters.toml")
FEATURES = tomllib.loads((DOCS / "what-is-modelled.toml").read_text(encoding="utf-8"))["feature"]

POLICIES = {
    "first come, first served": "fcfs",
    "backfilling": "easy",
    "conservative": "conservative",
    "guaranteed deadlines": "qops",
    "sizes by the scheduler": "moldable-combined",
    "Slurm": f"slurm?conf={DOCS / 'examples' / 'passes.conf'}",
}
"""One policy of each kind."""

MACHINES = {
    "a pool of cores": gs.Platform.single(4),
    "nodes": gs.Platform.of_nodes([gs.NodeGroup(group="thin", count=4, capacity={"cores": 1, "memory": 1024})]),
    "a grid": gs.Platform(RouterSpec("grid", (ClusterSpec("north", 4), ClusterSpec("south", 4)))),
}


def workloads() -> dict[str, gs.Workload]:
    """Return three jobs of each kind."""
    columns = {"submit": [0, 1, 2], "runtime": [10, 10, 5], "cores": [2, 4, 2]}
    rigid = gs.Workload.from_columns(**columns, cores_stated=4)
    tasks = Tasks.from_edges(counts=[3], runtime=[2, 3, 4], cores=[1, 1, 2], edges=[(0, 1), (0, 2)])
    return {
        "rigid": rigid,
        "with deadlines": gs.Workload.from_columns(**columns, deadline=[60, 60, 60], cores_stated=4),
        "with priority classes": gs.Workload.from_columns(**columns, labels={"priority": [0, 1, 1]}, cores_stated=4),
        "moldable": transformed(rigid, ["moldable"]),
        "workflows": gs.Workload.from_tasks(tasks, submit=[0]),
    }


def combinations() -> Iterator[tuple[str, str, list[str]]]:
    """Simulate each kind of jobs on each machine under each kind of policy; yield the results by job and machine."""
    for jobs, workload in workloads().items():
        for machine, platform in MACHINES.items():
            yield jobs, machine, [_result(workload, platform, spec) for spec in POLICIES.values()]


def _result(workload: gs.Workload, platform: gs.Platform, spec: str) -> str:
    try:
        record = gs.simulate(workload, platform=platform, policy=spec, engine="simpy").record
    except GridsimError:
        return "–"
    can = capabilities_of(policy(spec))
    if not record.ran.all():
        return "–"
    if workload.moldable is not None and not can.sizes:
        return "at the requested size"
    with_deadlines = bool((workload.deadline < NEVER).any())
    return "without guarantees" if with_deadlines and not can.guarantees else "yes"


def missing() -> Iterator[str]:
    """Yield the features that are not modelled."""
    return (feature["what"] for feature in FEATURES)


def keywords() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each kind of line or list in Slurm's files: modelled keywords, and those that every result reports."""
    for section, groups in tomllib.loads(SLURM.read_text(encoding="utf-8")).items():
        reported = " ".join(names for effect, names in groups.items() if effect not in ("followed", "none"))
        names = groups.get("followed", "").split(), sorted(word.partition(":")[0] for word in reported.split())
        if any(names):
            yield section, *names


def plugins() -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of plug-in with the names of its members."""
    for kind in KINDS:
        if kind not in ("policies", "metrics", "charges", "mappings", "problems"):
            yield kind, [row["name"] for row in registry.describe(kind.removesuffix("s"), own=True)]
        elif kind == "policies":
            yield kind, list(PRESETS)
