"""CPU seconds for machines with nodes and pools: several pools and cores only, a site with memory and GPUs, a log."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import gridsim as gs
from gridsim.model.demand import Demands, WordSets
from gridsim.model.platform import machine_cores
from gridsim.model.workload import Workload

MEMORY = 262_144
"""MiB per node of the generated site."""


def seconds(workload: Workload, platform: gs.Platform, policy: str) -> float:
    """Return the CPU seconds of one SimPy run with compiled loops."""
    gs.simulate(workload.select(slice(0, 50)), platform=platform, policy=policy, engine="simpy")
    begun = time.process_time()
    gs.simulate(workload, platform=platform, policy=policy, engine="simpy")
    return time.process_time() - begun


def demands(n: int, **columns: Any) -> Demands:
    """Return demands without limits on nodes and without features."""
    none = np.zeros(n, dtype=np.int64)
    words = WordSets(none, ((),))
    usual = {
        "plain": none,
        "tasks": none,
        "each": {},
        "gpu": none,
        "gpu_kinds": words,
        "features": words,
        "partitions": words,
        "min_nodes": none + 1,
        "max_nodes": none,
        "tasks_per_node": none,
        "exclusive": np.zeros(n, dtype=np.bool_),
        "pools": {},
    }
    return Demands(**usual | columns)


def site(jobs: int, load: float, seed: int = 1) -> tuple[Workload, gs.Platform]:
    """Return 200 nodes with 64 cores, memory and 4 GPUs, and jobs with the given load of the scarcest resource."""
    rng = np.random.default_rng(seed)
    group = gs.NodeGroup(group="n", count=200, capacity={"cores": 64, "memory": MEMORY}, gpus=4)
    tasks = rng.choice([1, 1, 1, 2, 4, 8, 16, 32], jobs)
    cores = rng.choice([1, 2, 4, 8, 16, 32, 64], jobs)
    memory = np.minimum(cores * rng.choice([1024, 2048, 4096, 4096, 8192], jobs), MEMORY)
    gpu = np.where(rng.random(jobs) < 0.25, rng.choice([200, 500, 1000, 1000, 2000, 4000], jobs), 0)
    runtime = np.clip(rng.lognormal(8, 1.5, jobs).astype(int), 1, 2 * 86400)
    estimate = np.maximum(runtime, np.clip((runtime * rng.uniform(1, 5, jobs)).astype(int), 60, 4 * 86400))
    parts = (cores / 64, memory / MEMORY, gpu / 4000)
    span = max(float((tasks * part * runtime).sum()) for part in parts) / 200 / load
    asked = demands(jobs, tasks=tasks, each={"cores": cores, "memory": memory}, gpu=gpu)
    submit = np.sort(rng.uniform(0, span, jobs)).astype(int)
    workload = Workload.from_columns(submit=submit, runtime=runtime, estimate=estimate, demands=asked)
    return workload, gs.Platform.of_nodes([group])


def pooled(workload: Workload, cores: int) -> tuple[Workload, gs.Platform]:
    """Return the same jobs with memory and licences in addition to cores, each in one pool; only cores are scarce."""
    asked = demands(
        len(workload), pools={"cores": workload.cores, "memory": 1000 * workload.cores, "licence": workload.cores % 3}
    )
    columns = {name: getattr(workload, name) / 1e6 for name in ("submit", "runtime", "estimate")}
    pools = {"cores": cores, "memory": 1000 * cores, "licence": 2 * cores}
    return Workload.from_columns(**columns, demands=asked), gs.Platform.of_nodes([], pools)


def main() -> None:
    """Print a line for each machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", help="a log whose jobs ask for three pools, against cores only")
    parser.add_argument("--nodes", help="a log whose jobs run as tasks of one core on nodes of 8 cores")
    parser.add_argument("--jobs", type=int, default=0, help="jobs of the drawn site; none by itself")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--policy", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    if args.log:
        plain = gs.read_workload(args.log)
        cores, _ = machine_cores(plain)
        pools = pooled(plain, cores)
        pairs = [
            (seconds(plain, gs.Platform.single(cores), "easy"), seconds(*pools, "easy")) for _ in range(args.repeat)
        ]
        ratio = statistics.median(many / one for one, many in pairs)
        print(f"easy, three pools against cores only, {len(plain):,} jobs: {ratio:.2f} times")
    if args.nodes:
        workload = gs.read_workload(args.nodes)
        count = machine_cores(workload)[0] // 8
        platform = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=count, capacity={"cores": 8})])
        took = seconds(workload, platform, "easy")
        print(f"easy on {count} nodes of 8 cores: {len(workload) / took:,.0f} jobs a second")
    for policy in (args.policy or ["easy", "conservative"]) if args.jobs else ():
        took = seconds(*site(args.jobs, args.load), policy)
        print(f"{policy} on 200 nodes of 64 cores, memory and 4 GPUs, {args.jobs:,} jobs: {took:.1f} s")


if __name__ == "__main__":
    main()
