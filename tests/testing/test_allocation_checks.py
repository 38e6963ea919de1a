"""Allocations of jobs: a valid table passes, each kind of error in it is found, and damaged lines are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.simulation import simulate
from gridsim.testing.invariants import Schedule, Violation, violations_of
from gridsim.testing.schedule_reader import read_allocations, read_schedule
from gridsim.testing.violation import PIECE_KINDS

SITE = Site(
    (Node("n1", 4, 1000), Node("n2", 4, 1000), Node("g1", 4, 1000, gpus=2)),
    (SitePartition("all", ("n1", "n2", "g1")),),
    "all",
    memory=True,
)
JOBS = Workload.from_columns(
    job=[11, 12, 13, 14], submit=[0, 0, 0, 0], runtime=[10, 10, 5, 5], estimate=[10, 10, 5, 5], cores=[6, 2, 2, 1]
)
SCHEDULE = "job,start,end,cores\n11,0,10,6\n12,0,10,2\n13,0,5,2\n14,5,10,1\n"
SOUND = """\
job,run,node,tasks,cores,memory,gpus,start,end
11,1,n1,4,4,1000,,0,10
11,1,n2,2,2,500,,0,10
12,1,g1,2,2,100,0:500,0,10
13,1,g1,2,2,100,0:500 1:1000,0,5
14,1,g1,1,4,100,1:1000,5,10
"""
"""The last job has three cores more than requested, on a node that it shares."""


def sound() -> str:
    return SOUND.replace("14,1,g1,1,4,", "14,1,g1,1,1,")


def found(text: str, path: Path, site: Site | None = SITE, schedule: str = SCHEDULE) -> dict[str, Violation]:
    (path / "allocations.csv").write_text(text)
    (path / "jobs.csv").write_text(schedule)
    capacity = None if site is None else site.capacity()
    read = read_schedule(path)
    return {each.kind: each for each in violations_of(read, JOBS, cores=12, capacity=capacity)}


def test_a_sound_table_has_no_violations(tmp_path: Path) -> None:
    assert not found(sound(), tmp_path)
    assert not found(sound(), tmp_path, site=None)
    assert not found("\n".join(sound().splitlines()[::-1][-1:] + sound().splitlines()[:0:-1]), tmp_path), "any order"


CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "no such job": ("unknown-run", lambda text: text + "15,1,n2,1,1,1,,0,5\n"),
    "no such run": ("unknown-run", lambda text: text + "13,2,n2,1,1,1,,6,8\n"),
    "nowhere": ("missing-pieces", lambda text: text.replace("12,1,g1,2,2,100,0:500,0,10\n", "")),
    "too few cores": ("wrong-pieces", lambda text: text.replace("11,1,n2,2,2,500,,0,10\n", "")),
    "too many cores": ("wrong-pieces", lambda text: text.replace("14,1,g1,1,1,", "14,1,g1,1,2,")),
    "held too long": ("wrong-pieces", lambda text: text.replace("11,1,n2,2,2,500,,0,10", "11,1,n2,2,2,500,,0,11")),
    "node": ("unknown-node", lambda text: text.replace("n2", "n3")),
    "gpu": ("unknown-node", lambda text: text.replace("1:1000,5,10", "2:1000,5,10")),
    "cores": ("node-oversubscribed", lambda text: text.replace("12,1,g1,2", "12,1,n2,2").replace("n1,4,4", "n2,4,4")),
    "memory": ("node-oversubscribed", lambda text: text.replace("13,1,g1,2,2,100", "13,1,g1,2,2,901")),
    "share": ("gpu-oversubscribed", lambda text: text.replace("0:500 1", "0:501 1")),
    "whole": ("gpu-oversubscribed", lambda text: text.replace("0:500,0,10", "1:1000,0,10")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_mistake_is_found(change: str, tmp_path: Path) -> None:
    kind, make = CHANGES[change]
    told = found(make(sound()), tmp_path)
    assert kind in told
    assert PIECE_KINDS[kind] in str(told[kind]) or told[kind].detail


def test_a_mistake_is_reported_with_jobs_instants_and_numbers(tmp_path: Path) -> None:
    told = found(sound().replace("13,1,g1,2,2,", "13,1,g1,2,3,"), tmp_path)
    text = "node-oversubscribed: 1 (jobs 12): 5 of 4 cores of node g1 in use; first at 0 s"
    assert str(told["node-oversubscribed"]) == text
    told = found(sound().replace("1:1000,5,10", "1:1000 0:501,5,10"), tmp_path)
    text = "gpu-oversubscribed: 1 (jobs 14): 1,001 of 1,000 thousandths of GPU 0 of node g1 in use; first at 5 s"
    assert str(told["gpu-oversubscribed"]) == text
    assert "3 of 2 cores" in str(found(sound().replace("12,1,g1,2,2", "12,1,g1,2,3"), tmp_path)["wrong-pieces"])


def test_a_job_that_has_nodes_to_itself_may_hold_more_than_it_requested(tmp_path: Path) -> None:
    whole = sound().replace("11,1,n2,2,2,", "11,1,n2,2,4,")
    assert not found(whole, tmp_path)
    shared = whole.replace("12,1,g1,2,2,100,0:500", "12,1,n2,2,2,100,")
    assert set(found(shared, tmp_path, site=None)) == {"wrong-pieces"}
    assert set(found(shared, tmp_path)) == {"wrong-pieces", "node-oversubscribed"}


def test_runs_that_were_cut_short_have_pieces_too(tmp_path: Path) -> None:
    (tmp_path / "killed_runs.csv").write_text("job,cores,start,end\n14,1,0,2\n")
    assert set(found(sound(), tmp_path)) == {"unknown-run", "wrong-pieces", "missing-pieces"} - {"unknown-run"}
    again = sound().replace("14,1,", "14,2,")
    assert not found(again + "14,1,n2,1,1,1,,0,2\n", tmp_path)


def test_pieces_on_no_node_count_for_the_cores_of_a_job(tmp_path: Path) -> None:
    pooled = "job,node,cores,start,end\n11,,6,0,10\n12,,2,0,10\n13,,2,0,5\n14,,1,5,10\n"
    assert not found(pooled, tmp_path)
    assert set(found(pooled.replace("13,,2", "13,,1"), tmp_path)) == {"wrong-pieces"}


def test_differences_of_times_within_the_tolerance_are_none(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text(sound().replace("1:1000,5,10", "1:1000,4.9995,10"))
    (tmp_path / "jobs.csv").write_text(SCHEDULE)
    read = read_schedule(tmp_path / "jobs.csv")
    held = Schedule(read.job, read.start, read.end, allocations=read_allocations(tmp_path / "other.csv"))
    capacity = SITE.capacity()
    assert violations_of(held, JOBS, cores=12, capacity=capacity)
    assert not violations_of(held, JOBS, cores=12, capacity=capacity, tolerance=0.001)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job,run,node,start,end\n", "line 1, field 'cores': is missing"),
        ("job,node,cores,start,end,cores\n", "line 1, field 'cores': occurs twice"),
        ("job,node,cores,start,end\n1,n1,2,0\n", "line 2: has 4 fields; the header has 5"),
        (
            "job,node,cores,start,end\n1,n1,2,0,9\n\n1,n1,two,0,9\n",
            "line 4, field 'cores': 'two' is not a whole number",
        ),
        ("job,node,cores,start,end\n1,n1,-2,0,9\n", "line 2, field 'cores': '-2' is not a whole number from 0"),
        ("job,node,cores,start,end\n1,n1,2,inf,9\n", "line 2, field 'start': 'inf' is not a time in seconds"),
        ("job,node,cores,start,end\n1,n1,2,,9\n", "line 2, field 'start': '' is not a time in seconds"),
        ("job,node,cores,start,end\n,n1,2,0,9\n", "line 2, field 'job': '' is not a job number"),
        ("job,node,cores,start,end,gpus\n1,n1,2,0,9,0:1001\n", "field 'gpus': '0:1001' is not thousandths"),
        ("job,node,cores,start,end,gpus\n1,n1,2,0,9,0\n", "field 'gpus': '0' is not thousandths"),
    ],
)
def test_damaged_lines_are_named(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "allocations.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_allocations(path)
    assert told in str(error.value)
    assert str(path) in str(error.value)


def drawn(count: int, seed: int = 3) -> Workload:
    """Jobs of all kinds: some request memory, GPUs or whole nodes; some can be preempted by others."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "submit": np.sort(rng.integers(0, 400, count)).tolist(),
        "runtime": rng.integers(1, 60, count).tolist(),
        "cores": rng.integers(1, 7, count).tolist(),
    }
    labels = {"gpus": rng.integers(0, 2, count), "exclusive": rng.integers(0, 2, count)}
    labels["memory_mb"] = rng.integers(1, 500, count)
    return Workload.from_columns(**columns, labels=labels)


@pytest.mark.parametrize("table", ["csv", pytest.param("parquet", marks=pytest.mark.parquet)])
def test_output_of_slurm_is_read_and_valid(table: str, tmp_path: Path) -> None:
    jobs = drawn(80)
    result = simulate(jobs, policy=Slurm(site=SITE))
    result.write(tmp_path, table=table)
    read = read_schedule(tmp_path)
    assert read.allocations is not None
    for name in ("job", "run", "tasks", "start_us", "end_us", "gpu", "gpu_share"):
        ours = getattr(result.record.allocations, name)
        expected = jobs.job[ours] if name == "job" else ours
        np.testing.assert_array_equal(getattr(read.allocations, name), expected)
    assert read.allocations.gpu_share.any()
    assert not violations_of(read, jobs, cores=12, capacity=SITE.capacity())
    planted = Schedule(**{name: getattr(read, name) for name in read.__slots__} | {"job": read.job + 1})
    assert violations_of(planted, jobs, cores=12)
