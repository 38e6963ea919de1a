"""The second Slurm implementation and the fast one make the same schedules on random sites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.random import Generator

from gridsim.errors import InputError
from gridsim.model.capacity import WHOLE_GPU
from gridsim.model.site import (
    PARENT,
    Allowed,
    Association,
    Node,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
    SitePartition,
    TresLimits,
)
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.queue import ClusterView
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.slurm.nodes import FREE, GPUS
from gridsim.record import Promises, Record
from gridsim.simulation import simulate
from gridsim.world import World
from tests.oracles.slurm.run import Run, schedule

pytestmark = pytest.mark.long

SECOND = 1_000_000
FEW = settings(max_examples=max(25, settings.default.max_examples // 2))  # type: ignore[union-attr]


class Watched(Slurm):
    """Scheduler that tests can read after the run."""

    last: ClassVar[list[Slurm]] = []

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        super().setup(cluster, rng)
        self.last[:] = [self]


def placed(record: Record) -> list[tuple[int, str, dict[str, int]]]:
    (slurm,) = Watched.last
    rows = np.flatnonzero(record.ran).tolist()
    return [(row, slurm.partition_of(row), slurm.nodes_of(row)) for row in rows]


def cut(promises: Promises | None) -> list[Any]:
    if promises is None:
        return []
    columns = (promises.killed, promises.killed_start_us, promises.killed_end_us, promises.killed_by)
    return [*(column.tolist() for column in columns), promises.cancelled_by.tolist()]


def assert_same(workload: Workload, site: Site, boot: float | None, overrun: Any = "kill") -> None:
    options: dict[str, Any] = {"platform": site.platform(), "overrun": overrun}
    try:
        fast = simulate(workload, policy=Watched(site=site, boot=boot), **options).record
    except InputError:  # they preempt one another endlessly
        reject()
    slow, runs = schedule(workload, site, boot=boot, overrun=overrun)
    last: dict[int, Run] = {run.row: run for run in runs}
    assert fast.status.tolist() == slow.status.tolist()
    assert fast.start_us.tolist() == slow.start_us.tolist()
    assert fast.end_us.tolist() == slow.end_us.tolist()
    assert cut(fast.promises) == cut(slow.promises)
    rows = np.flatnonzero(slow.ran).tolist()  # except jobs that were requeued and withdrawn after that
    assert placed(fast) == [(row, last[row].partition, last[row].cores) for row in rows]


# -- sites -----------------------------------------------------------------------------------------------------------


def maybe(*values: Any) -> st.SearchStrategy[Any]:
    """Draw nothing in most cases, else one of some values."""
    return st.sampled_from([None] * (len(values) + 1) + list(values))


def seconds(*values: float) -> st.SearchStrategy[int]:
    return st.sampled_from(values).map(lambda value: round(value * SECOND))


NODES = st.lists(
    st.builds(
        Node,
        st.just(""),
        st.sampled_from([1, 2, 4, 4, 4, 6]),
        memory=st.sampled_from([100, 100, 200]),
        weight=st.sampled_from([1, 1, 1, 2]),
        features=st.sampled_from([(), (), ("big",), ("big", "fast"), ("slow",)]),
        gpus=st.sampled_from([0, 0, 2]),
        gpu_kind=st.sampled_from(["gpu", "gpu", "a", "b"]),
    ),
    min_size=1,
    max_size=6,
).map(lambda nodes: tuple(replace(node, name=f"n{place}") for place, node in enumerate(nodes)))

SCHEDULING = st.builds(
    Scheduling,
    backfill=st.sampled_from([True, True, True, False]),
    interval=seconds(5, 7, 30),
    resolution=seconds(1, 5, 60),
    window=seconds(60, 86_400),
    linear=st.sampled_from([0, 0, 20 * SECOND]),
    queue_depth=st.sampled_from([1, 3, 100]),
    partition_depth=st.sampled_from([0, 0, 2]),
    full_interval=seconds(5, 20),
    least_interval=st.sampled_from([2, 2, SECOND]),
    batch_delay=seconds(0, 3),
    defer=st.sampled_from([False, False, True]),
    tests=st.sampled_from([500, 500, 4]),
    user_tests=st.sampled_from([0, 0, 2]),
    partition_tests=st.sampled_from([0, 0, 3]),
    association_tests=st.sampled_from([0, 0, 2]),
    both_tests=st.sampled_from([0, 0, 2]),
    starts=st.sampled_from([0, 0, 1]),
    array_reserves=st.sampled_from([20, 1]),
    partition_reserves=st.sampled_from([0, 0, 1]),
    least_age=seconds(0, 0, 10),
    least_priority=st.sampled_from([0, 0, 20]),
    once=st.booleans(),
    stop_at_limit=st.booleans(),
)

PRIORITY = st.builds(
    Priority,
    kind=st.sampled_from(["multifactor", "multifactor", "basic"]),
    age=st.sampled_from([0, 50]),
    fair_share=st.sampled_from([0, 500]),
    size=st.sampled_from([0, 100]),
    partition=st.sampled_from([0, 30]),
    qos=st.sampled_from([0, 60]),
    oldest=seconds(60, 86_400),
    half_life=seconds(0, 60),
    period=seconds(5, 20),
    favor_small=st.booleans(),
    relative_size=st.sampled_from([False, False, True]),
    fair_tree=st.sampled_from([True, True, False]),
    always_accrue=st.booleans(),
    dampening=st.sampled_from([1, 3]),
    tres=st.sampled_from(
        [(), (), (("cpu", 90.0), ("gres/gpu", -40.0)), (("mem", 50.0), ("node", 7.0), ("billing", 80.0))]
    ),
    billed=st.sampled_from(["sum", "max", "max gres"]),
)

USERS = ("ann", "bob", "cy")
BILLS = ((("cpu", 1.0), ("mem", 0.125), ("gres/gpu", 2.0)), (("mem", 0.5), ("node", 1.5)), (("cpu", 0.0),))
ACCOUNTS = ("", "phys", "chem")
QOS = ("normal", "high", "low")


@st.composite
def partitions(draw: st.DrawFn, nodes: tuple[Node, ...], *, limits: bool, preempts: bool) -> tuple[SitePartition, ...]:
    names = tuple(node.name for node in nodes)
    found = []
    for name in ("all", "some", "high")[: draw(st.integers(1, 3))]:
        members = names if name == "all" else names[draw(st.integers(0, len(names) - 1)) :]
        part = SitePartition(name, members, tier=draw(st.integers(1, 3)), job_factor=draw(st.integers(0, 3)))
        part = replace(part, billing=draw(st.sampled_from([(), (), (), *BILLS])))
        part = replace(part, least_loaded=draw(st.sampled_from([False, False, True])))
        part = replace(part, node_cores=draw(st.sampled_from([0, 0, 1, 2, 3])))
        if limits:
            part = replace(
                part,
                exclusive=draw(st.sampled_from([False, False, False, True])),
                longest=draw(seconds(60, 1000)),
                least_nodes=draw(st.sampled_from([0, 0, 0, 2])),
                most_nodes=draw(st.sampled_from([0, 0, 2])),
                qos=draw(st.sampled_from(["", "", "low"])),
                state=draw(st.sampled_from(["UP"] * 6 + ["DRAIN"])),
                accounts=draw(st.sampled_from([Allowed(), Allowed(), Allowed(never=("chem",))])),
                levels=draw(st.sampled_from([Allowed(), Allowed(), Allowed(only=("normal", "high"))])),
                groups=draw(st.sampled_from([(), (), ("staff",), ("guests", "nobody")])),
                default_core_memory=draw(maybe(10)),
                most_memory=draw(maybe(150)),
            )
        if preempts:
            part = replace(
                part,
                preempt=draw(st.sampled_from(["", "", "CANCEL", "OFF", "REQUEUE"])),
                grace=draw(seconds(0, 0, 9)),
            )
        found.append(part)
    return tuple(found)


CHOICES = (
    *(
        ("group", name, most)
        for name, most in (("mem", 150), ("node", 3), ("gres/gpu", 2), ("billing", 9), ("license/a", 1))
    ),
    *(("user", name, most) for name, most in (("mem", 120), ("node", 2), ("gres/gpu", 2))),
    *(("account", name, most) for name, most in (("mem", 150), ("billing", 8))),
    *(("job", "mem", 100), ("job", "gres/gpu", 2), ("node", "cpu", 3), ("least", "cpu", 2)),
    *(
        ("group_minutes", name, most)
        for name, most in (("cpu", 1), ("cpu", 3), ("mem", 40), ("node", 1), ("billing", 3))
    ),
    *(("group_run_minutes", name, most) for name, most in (("cpu", 4), ("node", 2), ("gres/gpu", 1))),
    *(("job_minutes", "cpu", 5), ("job_minutes", "mem", 60), ("group", "gres/gpu:a", 2)),
)
TRES = st.lists(st.sampled_from(CHOICES), max_size=2).map(
    lambda found: TresLimits(**{kind: ((name, most),) for kind, name, most in found})
)


@st.composite
def associations(draw: st.DrawFn, limits: bool) -> tuple[Association, ...]:
    if not draw(st.booleans()):
        return ()
    shares = st.sampled_from([1, 1, 2, 3, 0, PARENT])

    def more() -> dict[str, Any]:
        if not limits:
            return {}
        return {
            "most_jobs": draw(maybe(1, 2)),
            "most_submitted": draw(maybe(2, 4)),
            "group_jobs": draw(maybe(2)),
            "group_submitted": draw(maybe(4)),
            "group_cores": draw(maybe(4, 6)),
            "most_cores": draw(maybe(4)),
            "most_nodes": draw(maybe(1)),
            "longest": draw(st.sampled_from([NEVER, NEVER, 50 * SECOND])),
            "tres": draw(TRES),
        }

    phys = Association("phys", parent=draw(st.sampled_from(["root", ""])), shares=draw(shares), **more())
    chem = Association("chem", parent=draw(st.sampled_from(["root", "phys"])), shares=draw(shares), **more())
    found = [phys, chem]
    for account, user in (("phys", "ann"), ("phys", "bob"), ("chem", "bob"), ("root", "cy")):
        if draw(st.sampled_from([True, True, False])):
            usage = draw(st.sampled_from([0.0, 0.0, 40.0]))
            qos = draw(st.sampled_from(["", "", "high"]))
            found.append(Association(account, user, shares=draw(shares), usage=usage, default_qos=qos, **more()))
    return tuple(found)


@st.composite
def levels(draw: st.DrawFn, *, limits: bool, preempts: bool) -> tuple[Qos, ...]:
    found = []
    below = {"normal": ("low",), "high": ("low", "normal"), "low": ()}
    for name in QOS:
        qos = Qos(name, draw(st.integers(0, 3)), usage_factor=draw(st.sampled_from([1.0, 1.0, 2.0])))
        if limits:
            qos = replace(
                qos,
                user_jobs=draw(maybe(1, 2)),
                user_submitted=draw(maybe(3)),
                user_cores=draw(maybe(4)),
                account_jobs=draw(maybe(2)),
                account_cores=draw(maybe(6)),
                group_jobs=draw(maybe(3)),
                group_submitted=draw(maybe(6)),
                group_cores=draw(maybe(8)),
                most_cores=draw(maybe(4)),
                longest=draw(st.sampled_from([NEVER, NEVER, 60 * SECOND])),
                tres=draw(TRES),
                decays=draw(st.booleans()),
            )
        if preempts:
            qos = replace(
                qos,
                preempts=draw(st.sampled_from([below[name], below[name], (), QOS])),
                mode=draw(st.sampled_from(["", "", "CANCEL", "REQUEUE"])),
                grace=draw(seconds(0, 0, 9)),
                exempt=draw(st.sampled_from([None, None, 12 * SECOND])),
                within=draw(st.sampled_from([False, False, True])),
            )
        found.append(qos)
    return tuple(found)


PREEMPTION = st.builds(
    Preemption,
    kind=st.sampled_from(["partition", "qos"]),
    mode=st.sampled_from(["REQUEUE", "REQUEUE", "CANCEL", "OFF"]),
    within=st.sampled_from([False, False, True]),
    exempt=seconds(0, 0, 12),
    requeue=st.sampled_from([True, True, False]),
    reorder=st.sampled_from([1, 1, 0, 3]),
    strict_order=st.booleans(),
    youngest_first=st.booleans(),
    delay=seconds(15, 20),
)


@st.composite
def reservations(draw: st.DrawFn, nodes: tuple[Node, ...]) -> tuple[Reservation, ...]:
    found = []
    for name in ("r", "s", "t")[: draw(st.integers(1, 3))]:
        inside = draw(st.lists(st.sampled_from(nodes), min_size=1, unique=True))
        start = draw(st.integers(0, 80))
        length = draw(st.integers(5, 100))
        partly = draw(st.sampled_from([False, False, True]))
        period = draw(st.sampled_from([0, 0, 100, 150, 200]))
        found.append(
            Reservation(
                name,
                tuple(node.name for node in nodes if node in inside),
                start * SECOND,
                (start + length) * SECOND if period or draw(st.integers(0, 9)) else NEVER,
                users=draw(st.sampled_from([None, Allowed(), Allowed(("ann", "cy"))])),
                accounts=draw(st.sampled_from([None, None, Allowed(never=("chem",))])),
                cores=tuple((node.name, draw(st.integers(1, node.cores))) for node in inside if partly),
                flags=frozenset(draw(st.sets(st.sampled_from(FLAGS), max_size=2))),
                period=period * SECOND,
                idle=draw(maybe(10 * SECOND)),
                known=draw(st.sampled_from([-NEVER, -NEVER, 30 * SECOND])),
            )
        )
    return tuple(found)


FLAGS = ("MAINT", "OVERLAP", "FLEX", "MAGNETIC", "NO_HOLD_JOBS_AFTER")


@st.composite
def sites(draw: st.DrawFn, *, limits: bool = False, preempts: bool = False, reserves: bool = False) -> Site:
    """Draw sites of at most six nodes and three partitions."""
    nodes = draw(NODES)
    parts = draw(partitions(nodes, limits=limits, preempts=preempts))
    return Site(
        nodes,
        parts,
        parts[0].name,
        scheduling=draw(SCHEDULING),
        priority=draw(PRIORITY),
        associations=draw(associations(limits)),
        qos=draw(levels(limits=limits, preempts=preempts)) if draw(st.booleans()) or preempts else (),
        reservations=draw(reservations(nodes)) if reserves else (),
        memory=draw(st.booleans()),
        whole_nodes=draw(st.sampled_from([False] * 4 + [True])),
        default_memory=draw(st.sampled_from([0, 20])),
        default_core_memory=draw(st.sampled_from([0, 0, 10])),
        most_memory=draw(st.sampled_from([0, 0, 150])),
        associations_only=draw(st.booleans()),
        safe=limits and draw(st.booleans()),
        least_loaded=draw(st.sampled_from([False] * 4 + [True])),
        members={"staff": frozenset(["ann", "bob"]), "guests": frozenset(["cy"])} if draw(st.booleans()) else None,
        licences=draw(st.sampled_from([{}, {"a": 1}, {"a": 3, "b": 2}])),
        preemption=draw(PREEMPTION) if preempts else Preemption(),
    )


# -- jobs ------------------------------------------------------------------------------------------------------------


CONSTRAINTS = (
    *("big", "big&fast", "fast|big", "slow|big&fast", "slow|(big&fast)", "[big|slow]", "[fast|big]&big"),
    *("[big*1&fast*1]", "[slow*1&big*2]", "[(slow|fast)*2]", "slow*1", "big*2", "fast|slow&big*1"),
    *("[big*1&fast]", "big*0", "slow|", "[big*9]"),
)


@st.composite
def workloads(draw: st.DrawFn, site: Site, *, largest: int = 25, plain: bool = False) -> Workload:
    """Draw jobs for a site, with whole seconds or quarters of a second."""
    count = draw(st.integers(1, largest))
    unit = draw(st.sampled_from([1, 1, 1, 0.25]))

    def column(*values: Any) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))

    runtime = draw(st.lists(st.integers(1, 60), min_size=count, max_size=count))
    largest_size = min(site.cores, 14)
    words = {"partition": [part.name for part in site.partitions]}
    words["partition"] += [",".join(words["partition"]), ""]
    labels: dict[str, list[int]] = {}
    if not plain:
        words |= {
            "user": [*USERS, ""],
            "account": [*ACCOUNTS],
            "qos": [*QOS, "", ""],
            "licenses": ["", "", "", "a", "a:2,b"] if site.licences else [""],
            "gpu_type": ["", "", "", "", "a"],
            "constraint": ["", "", "", *CONSTRAINTS],
            "nodelist": ["", "", "", "", "n1", "n[0-1]", "n[1-2],n0", "n9"],
            "exclude": ["", "", "", "n0", "n[2-5]"],
        }
        if site.reservations:
            names = [each.name for each in site.reservations]
            words["reservation"] = ["", *names, ",".join(names), "nowhere"]
        labels = {
            "nodes": column(-1, -1, 1, 2, 3),
            "nodes_most": column(-1, -1, -1, 3),
            "memory_mb": column(-1, -1, 0, 10, 60, 150),
            "memory_granted_mb": column(-1, 50),
            "memory_core_mb": column(-1, -1, 20),
            "gpus": column(-1, -1, -1, 1, 2),
            "cores_per_task": column(-1, -1, 2),
            "tasks_per_node": column(-1, -1, -1, 1, 2),
            "exclusive": column(-1, 0, 0, 1),
            "requeue": column(-1, -1, 0, 1),
            "priority_nice": column(-1, -1, 0, 20),
            "array": column(-1, -1, 5, 6, 7),
            "begin": column(-1, -1, -1, 10, 30),
            "withdrawn": column(-1, -1, -1, 5, 40),
            "after": column(-1, -1, -1, *range(1, count + 1)),
        }
        labels["array_limit"] = [{5: 1, 6: 2}.get(each, -1) for each in labels["array"]]
        # Dependencies have no cycles: on earlier jobs, or of the first half on some of the second.
        half = draw(st.sampled_from([count, count, count // 2]))
        after = enumerate(labels["after"])
        labels["after"] = [
            each if (each > half or each <= row if row < half else half < each <= row) else -1 for row, each in after
        ]
    for label, values in words.items():
        known = [value for value in dict.fromkeys(values) if value]
        labels[label] = [known.index(value) if value else -1 for value in column(*values)]
        words[label] = known
    gaps = column(0, 0, 0, 1, 2, 5, 13)
    estimate = [max(1, length + extra) for length, extra in zip(runtime, column(0, 0, 5, 30, -3), strict=True)]
    jobs = Workload.from_columns(
        submit=np.cumsum(gaps) * unit,
        runtime=[length * unit for length in runtime],
        estimate=[length * unit for length in estimate],
        cores=draw(st.lists(st.integers(1, largest_size), min_size=count, max_size=count)),
        labels=labels,
    )
    return replace(jobs, names={label: tuple(values) for label, values in words.items()})


BOOTS = st.sampled_from([None, 0.0, -0.25, -3.0])


@FEW
@given(data=st.data(), site=sites(), boot=BOOTS)
def test_nodes_partitions_and_both_passes(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data.draw(workloads(site, plain=True)), site, boot)


@FEW
@given(data=st.data(), site=sites(preempts=True, limits=True), boot=BOOTS)
def test_the_node_counts_of_slurm_equal_those_of_the_machine(data: st.DataObject, site: Site, boot: Any) -> None:
    workload = data.draw(workloads(site))
    world = World(workload, site.platform(), Watched(site=site, boot=boot))
    try:
        while world.step() is not None:
            (slurm,) = Watched.last
            counted, nodes = slurm._machine.now, next(iter(world.machines.values())).nodes
            assert nodes is not None
            assert counted[FREE].tolist() == nodes.left[nodes.resources.index("cores")].tolist()
            if len(counted) > GPUS:
                assert (counted[GPUS] * WHOLE_GPU).tolist() == nodes.gpus.sum(axis=1).tolist()
    except InputError:  # they preempt one another endlessly
        reject()


@FEW
@given(data=st.data(), site=sites(), boot=BOOTS)
def test_priorities_and_what_jobs_request(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data.draw(workloads(site)), site, boot)


@FEW
@given(data=st.data(), site=sites(limits=True), boot=BOOTS)
def test_limits(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data.draw(workloads(site)), site, boot)


@FEW
@given(data=st.data(), site=sites(preempts=True), boot=BOOTS)
def test_preemption(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data.draw(workloads(site)), site, boot)


@FEW
@given(seed=st.integers(0, 100_000), preempts=st.booleans(), reserves=st.booleans())
def test_partitions_that_share_nodes_under_rare_backfill(seed: int, preempts: bool, reserves: bool) -> None:
    """Main scheduler cycles alone decide, so the test shows which job blocks which nodes."""
    rng = np.random.default_rng(seed)
    nodes = tuple(Node(f"n{place}", 4, features=("big",) if place % 2 else ()) for place in range(5))
    names = [node.name for node in nodes]
    parts = tuple(
        SitePartition(name, tuple(names[first:last]), tier=int(rng.integers(1, 3)))
        for name, first, last in (("all", 0, 5), ("left", 0, 3), ("right", 2, 5))
    )
    site = Site(
        nodes,
        parts,
        "all",
        scheduling=Scheduling(interval=3600 * SECOND, least_age=int(rng.integers(2)) * SECOND),
        priority=Priority(kind="basic"),
        preemption=Preemption("partition", "REQUEUE") if preempts else Preemption(),
        reservations=(Reservation("r", ("n1",), 90 * SECOND, 200 * SECOND),) if reserves else (),
    )
    count = 14
    choices = {
        "partition": range(3),
        "nodes": (-1, -1, 1, 2, 3),
        "exclusive": (-1, -1, -1, 1),
        "constraint": (-1, -1, -1, 0),
    }
    jobs = Workload.from_columns(
        submit=np.cumsum(rng.integers(0, 9, count)),
        runtime=rng.integers(20, 150, count),
        cores=rng.integers(1, 13, count),
        labels={label: rng.choice(values, count) for label, values in choices.items()},
    )
    words = {"partition": tuple(part.name for part in parts), "constraint": ("big",)}
    assert_same(replace(jobs, names=words), site, None)


@FEW
@given(data=st.data(), site=sites(reserves=True), boot=BOOTS)
def test_reservations(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data.draw(workloads(site)), site, boot)
