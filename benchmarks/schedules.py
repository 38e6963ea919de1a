"""Checksums of schedules, which must not change, byte for byte, when code is rebuilt.

    python benchmarks/schedules.py LOG.swf.gz [LOG …] [--site FOLDER] --out before.csv
    python benchmarks/schedules.py LOG.swf.gz [LOG …] [--site FOLDER] --against before.csv  # exit 1: differs

The cases are every preset on every log (plan searches and moldable sizes on a part of it), the orderings, both instant
modes, jobs that exceed their estimates, the five synthetic kinds of DAG jobs on the grid of the paper under several
balancers, and, for a folder with ``sacct.txt`` and ``slurm.conf``, Slurm's rules. A row is one schedule: start, end,
place, cores, status, guarantee and number of stopped runs of each job.

Generated workloads on machines of nodes with memory, GPUs and licences, and of pools without nodes, need no file:
``--only generated:`` selects them. Their checksums also contain predictions and allocations: nodes, cores, GPUs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gridsim as gs
from gridsim.model.allocations import Allocations
from gridsim.model.capacity import NodeGroup
from gridsim.model.demand import Demand, Demands
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy as made
from gridsim.policy.site_policy import machine
from gridsim.record import Record
from gridsim.scenario import rules_for, transformed
from gridsim.simulation import Run, run
from gridsim.workload.synthetic.grid import Grid

SHORT = 5_000
"""Jobs of a log for policies that need milliseconds per decision."""

WHOLE = ("fcfs", "easy", "first-fit", "depth?k=4", "conservative")
ORDERINGS = (
    *("sjf", "ljf", "narrowest", "widest", "saf", "laf", "edf", "llf", "wfp3", "unicef", "xfactor", "random"),
    *("p-slr", "p-slr-sf", "lrtf", "srtf", "fair-tree"),
)
PLANS = ("conservative?compress=arrival", "conservative?compress=none", "conservative?ordering=sjf")
GUARANTEES = ("msb", "mrt", "qops", "fqops", "qops?k_factor=3")
DEADLINES = ("load-factor?percent=140", "deadlines?stringency=0.2&fraction=0.8", "tolerance?factor=1.5&random=true")
MOLDABLE = (
    *("moldable-greedy", "moldable-submit", "moldable-start", "moldable-base"),
    *("moldable-combined", "moldable-combined-2003"),
)
RANGES = ("load-factor?percent=150", "noisy-estimates", "moldable?range_factor=2&sigma=1")
KINDS = ("uni-ind", "log-ind", "prob", "fan", "chain")
TOTAL = 10**9
"""Work of a synthetic workload of DAG jobs, a tenth of that of the paper."""

TASKS = ("fifo-task", "lrtf", "p-slr", "p-slr-sf", "random", "easy?ordering=p-slr", "first-fit?ordering=fifo-task")
BALANCERS = ("expected-queue", "round-robin", "power-of-two", "earliest-start", "data-local")

GENERATED = ("cores", "pools", "memory", "gpus", "licences")
"""Machines of generated workloads; the last three have nodes."""

LISTS = (
    *("fcfs", "easy", "first-fit", "depth?k=4", "fcfs?ordering=p-slr", "first-fit?ordering=random"),
    *("sjf", "easy?ordering=sjf", "easy?ordering=wfp3", "depth?k=2&ordering=unicef", "easy?ordering=fair-tree"),
    *("easy?backfill_order=laf", "first-fit?backfill_order=wfp3", "depth?k=4&backfill_order=random"),
    *("sjbf", "easy++", "easy++?predict=average&correct=double", "first-fit?predict=similar&correct=added"),
    *("easy?predict=clairvoyant", "sjbf?ordering=wfp3&backfill_order=smallest-area"),
)
PLANNED = (
    "conservative",
    *PLANS,
    "conservative?predict=recent&correct=steps",
    "conservative?predict=average&compress_at=every",
)
PLACEMENTS = ("weight", "pack", "spread", "dot-product", "fragmentation", "random")
ON_NODES = ("msb", "mrt", "mrt?heuristic=edf+est", "qops", "fqops", "qops?k_factor=3&placement=pack")


@dataclass(frozen=True)
class Case:
    """Parameters of one schedule as texts, so that it can be sent to another process and written in a row."""

    source: str
    policy: str
    jobs: int = 0
    transforms: str = ""
    instant: str = "batched"
    overrun: str = "kill"
    balancer: str = "expected-queue"
    seed: int = 1


class Row(NamedTuple):
    """One schedule: its case, number of jobs, checksum and cost."""

    case: Case
    jobs: int
    sha256: str
    cpu: float


def cases(logs: Sequence[str], site: str | None) -> Iterator[Case]:
    """Yield every case."""
    for log in logs:
        for policy in WHOLE:
            yield Case(log, policy)
        for policy in ("easy", "conservative", "depth?k=4"):
            yield Case(log, policy, overrun="extend")
        for policy in ("fcfs", "easy"):
            yield Case(log, policy, instant="per-event")
        yield Case(log, "conservative", SHORT, instant="per-event", overrun="extend")
        for ordering in ORDERINGS:
            yield Case(log, ordering, SHORT)
            yield Case(log, f"easy?ordering={ordering}" if ordering != "random" else "random?hold=false", SHORT)
        for policy in PLANS:
            yield Case(log, policy, SHORT)
        for seed in (1, 2):
            for policy in GUARANTEES:
                yield Case(log, policy, SHORT, ";".join(DEADLINES), seed=seed)
            for policy in MOLDABLE:
                yield Case(log, policy, SHORT, ";".join(RANGES), seed=seed)
        for policy in ("easy++", "sjbf", "easy?backfill_order=wfp3", "conservative?predict=recent&correct=steps"):
            yield Case(log, policy, SHORT)
    yield from generated_cases()
    for kind in KINDS:
        for policy in TASKS:
            yield Case(f"grid:{kind}", policy)
        for balancer in (
            BALANCERS if kind != "fan" else BALANCERS[:3]
        ):  # searches for starts in long queues take minutes
            yield Case(f"grid:{kind}", "fifo", balancer=balancer, seed=2)
    if site is not None:
        yield Case(f"site:{site}", "slurm")
        yield Case(f"site:{site}", "slurm", overrun="extend")
        yield Case(f"allocations:{site}", "slurm")


def generated_cases() -> Iterator[Case]:
    """Yield the cases with generated workloads."""
    for name in GENERATED:
        source = f"generated:{name}"
        for policy in LISTS:
            yield Case(source, policy, 2_000)
        for policy in PLANNED:
            yield Case(source, policy, 800)
        for policy in ("easy", "first-fit?backfill_order=sjf", "easy++", "conservative"):
            yield Case(source, policy, 800, overrun="extend")
            yield Case(source, policy, 800, overrun="extend", instant="per-event", seed=2)
        if name in GENERATED[2:]:
            for rule in PLACEMENTS:
                yield Case(source, f"easy?placement={rule}", 800)
                yield Case(source, f"conservative?placement={rule}", 300)
        for policy in ON_NODES:
            yield Case(source, policy, 1_000, ";".join(DEADLINES))
        for policy in MOLDABLE:
            yield Case(source, policy, 400, RANGES[-1])


def loaded(case: Case, policy: Any) -> tuple[Workload, Platform]:
    """Return the workload and machine of a case."""
    kind, _, what = case.source.rpartition(":")
    if kind == "grid":
        clusters = tuple(ClusterSpec(f"cluster{n}", 1000, "Kind2" if n == 4 else "Kind1") for n in range(1, 5))
        platform = Platform(RouterSpec("router", clusters), network=Network(ccr="1/5"))
        return Grid(kind=what, load=1.1, total=TOTAL).generate(case.seed), platform
    if kind == "generated":
        workload, platform = generated(what, case.jobs, case.seed)
        texts = [text for text in case.transforms.split(";") if text]
        return transformed(workload, texts, platform=platform, options=Run(seed=case.seed)), platform
    if kind in ("site", "allocations"):
        workload = gs.read_workload(Path(what) / "sacct.txt", rules=rules_for([policy]))
        return workload, machine(workload, policies=[policy])
    workload = _read(case.source)
    platform = machine(workload)
    if case.jobs:
        workload = workload.select(slice(0, case.jobs))
    texts = [text for text in case.transforms.split(";") if text]
    return transformed(workload, texts, platform=platform, options=Run(seed=case.seed)), platform


def generated(name: str, jobs: int, seed: int) -> tuple[Workload, Platform]:
    """Return a machine and jobs of 12 users that request about 1.1 times its cores; integer draws only."""
    rng = np.random.default_rng([GENERATED.index(name), seed])
    thin = NodeGroup(group="thin", count=16, capacity={"cores": 32, "memory": 131_072}, weight=2, features=("fast",))
    fat = NodeGroup(group="fat", count=4, capacity={"cores": 64, "memory": 524_288}, partitions=("large",))
    old = NodeGroup(group="old", count=6, capacity={"cores": 32, "memory": 262_144}, gpus=4, gpu_kind="old")
    new = NodeGroup(group="new", count=4, capacity={"cores": 64, "memory": 524_288}, gpus=8, gpu_kind="new")
    platform = {
        "cores": Platform.single(512),
        "pools": Platform.of_nodes([], {"cores": 512, "memory": 1_048_576, "matlab": 8, "burst": 60}),
        "memory": Platform.of_nodes([thin, fat]),
        "gpus": Platform.of_nodes([thin, old, new]),
        "licences": Platform.of_nodes([thin, fat], {"matlab": 8, "burst": 60}),
    }[name]
    runtime = rng.integers(1, 61, jobs) * 4 ** rng.integers(0, 5, jobs)
    demands = [_demand(name, rng) for _ in range(jobs)]
    cores = np.array([demand.total("cores") for demand in demands])
    horizon = int((cores * runtime).sum()) * 10 // (11 * sum(cluster.cores for cluster in platform.clusters()))
    workload = Workload.from_columns(
        submit=np.sort(rng.integers(0, horizon, jobs)),
        runtime=runtime,
        estimate=1 + runtime * rng.integers(3, 17, jobs) // 4,
        demands=None if name == "cores" else Demands.of(demands),
        cores=cores,
        labels={"user": rng.integers(0, 12, jobs), "group": rng.integers(0, 4, jobs)},
    )
    return workload, platform


def _demand(name: str, rng: np.random.Generator) -> Demand:
    """Return the demand of one job on a generated machine."""
    tasks, each, kind = int(2 ** rng.integers(0, 5)), int(2 ** rng.integers(0, 5)), int(rng.integers(0, 10))
    memory = each * int(rng.choice([1_024, 4_096, 8_192]))
    pools = {"matlab": int(rng.integers(0, 3)), "burst": int(rng.integers(0, 21))}
    if name == "cores":
        return Demand(cores=tasks * each)
    if name == "pools":
        return Demand(cores=tasks * each, pools={**pools, "memory": tasks * memory})
    if kind == 0:
        return Demand(cores=tasks * each, pools=pools if name == "licences" else {})
    gpu = 0
    if name == "gpus" and kind > 5:
        tasks, gpu = min(tasks, 4), int(rng.choice([250, 500, 1_000, 2_000, 4_000]))
    return Demand(
        tasks=tasks,
        each={"cores": each, "memory": memory},
        gpu=gpu,
        gpu_kinds=("new",) if gpu and kind == 9 else (),
        tasks_per_node=1 if kind == 1 else 0,
        exclusive=kind == 2,
        features=("fast",) if kind == 3 else (),
        partitions=("large",) if kind == 4 and name != "gpus" else (),
        pools=pools if name == "licences" and kind > 3 else {},
    )


@cache
def _read(log: str) -> Workload:
    return gs.read_workload(log)


def checksum(record: Record, *, allocations: bool = False) -> str:
    """Return the SHA-256 of a record: columns in a fixed order and width, with *allocations* if requested."""
    columns: list[Any] = [record.start_us, record.end_us, record.status, record.cluster, record.cores_used]
    if record.tasks is not None:
        tasks = record.tasks
        columns += [tasks.ready_us, tasks.start_us, tasks.end_us, tasks.status, tasks.cluster, tasks.cores_used]
    if record.promises is not None:
        it = record.promises
        columns += [it.granted_us, it.offer_us, it.doublings, it.broken]
        columns += [it.killed, it.killed_start_us, it.killed_end_us]
    if record.predictions is not None:
        columns += [record.predictions.prediction_us, record.predictions.corrections]
    if allocations and record.allocations is not None:
        columns += _columns_of(record.allocations)
    found = hashlib.sha256()
    for column in columns:
        found.update(b"-" if column is None else np.ascontiguousarray(column, dtype="<i8").tobytes())
    return found.hexdigest()


def _columns_of(held: Allocations) -> list[Any]:
    """Return the columns of allocations: pieces, amounts by resource name, and GPUs."""
    columns: list[Any] = [held.job, held.run, held.node, held.tasks, held.start_us, held.end_us]
    columns += [held.amounts[name] for name in sorted(held.amounts)]
    return [*columns, held.gpu_row, held.gpu, held.gpu_share]


def scheduled(case: Case) -> Row:
    """Return the schedule of a case."""
    spec = case.policy
    kind, _, what = case.source.rpartition(":")
    if kind in ("site", "allocations"):
        spec = f"slurm?conf={Path(what) / 'slurm.conf'}"
    policy = made(spec)
    options = Run(overrun=case.overrun, instant=case.instant, seed=case.seed, balancer=case.balancer)  # type: ignore[arg-type]
    workload, platform = loaded(case, policy)
    begun = time.process_time()
    record = run(workload, platform, policy, options)
    found = checksum(record, allocations=kind in ("generated", "allocations"))
    return Row(case, len(record), found, time.process_time() - begun)


def rows(found: Iterable[Case], workers: int) -> Iterator[Row]:
    """Yield schedules in the order of the cases."""
    if workers == 1:
        yield from map(scheduled, found)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(scheduled, found)


def _named(case: Case) -> tuple[str, ...]:
    """Return a case without the folder of its source."""
    kind, _, what = case.source.rpartition(":")
    return (f"{kind}:{Path(what).name}" if kind else Path(what).name, *map(str, astuple(case)[1:]))


def main() -> int:
    """Write or compare checksums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--site", help="folder with sacct.txt and slurm.conf")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", help="cases with this text in their source or policy")
    args = parser.parse_args()
    chosen = [
        case for case in cases(args.logs, args.site) if not args.only or args.only in f"{case.source} {case.policy}"
    ]
    before: dict[tuple[str, ...], str] = {}
    if args.against is not None:
        with args.against.open(encoding="utf-8", newline="") as file:
            before = {tuple(row[:-2]): row[-1] for row in csv.reader(file)}
    told: list[tuple[str, ...]] = []
    different = 0
    for row in rows(chosen, args.workers):
        name = _named(row.case)
        changed = bool(before) and before.get(name) != row.sha256
        different += changed
        told.append((*name, str(row.jobs), row.sha256))
        word = "DIFFERENT" if changed and name in before else "NEW" if changed else ""
        print(f"{row.cpu:8.2f} s  {row.sha256[:12]}  {' '.join(name)} {word}", flush=True)
    if args.out is not None:
        with args.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(told)
    print(f"{len(told)} schedules" + (f", {different} different" if before else ""))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
