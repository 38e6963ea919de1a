"""Requests of jobs in a `sacct` log as labels; jobs that were cancelled while they waited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridsim.model.workload import Workload
from gridsim.workload.formats.sacct import read_sacct
from gridsim.workload.read import read_workload

NAMES = (
    "JobID JobIDRaw User Account Partition Submit Eligible Start End ElapsedRaw TimelimitRaw State NNodes ReqCPUS "
    + "AllocCPUS ReqMem ReqTRES AllocTRES Reason SubmitLine"
).split()


def clock(second: Any) -> str:
    return second if isinstance(second, str) else f"2026-01-05T00:{second // 60:02d}:{second % 60:02d}"


def job(number: Any, raw: int | None = None, **more: Any) -> dict[str, str]:
    """Return a job of 4 cores on one node that was submitted at 100 s and ran from 105 s to 115 s."""
    values: dict[str, Any] = {"JobID": number, "JobIDRaw": number if raw is None else raw, "User": "ann"}
    values |= {"Account": "physics", "Partition": "batch", "Submit": 100, "Eligible": 100, "Start": 105, "End": 115}
    values |= {"ElapsedRaw": 10, "TimelimitRaw": 5, "State": "COMPLETED", "NNodes": 1, "ReqCPUS": 4, "AllocCPUS": 4}
    values |= {"ReqMem": "8000M", "ReqTRES": "cpu=4,mem=8000M,node=1", "AllocTRES": "", "Reason": "None"}
    values |= {"SubmitLine": "sbatch x", **more}
    return {
        name: clock(value) if name in ("Submit", "Eligible", "Start", "End") else str(value)
        for name, value in values.items()
    }


def waiting(number: Any, cancelled: int, raw: int | None = None, **more: Any) -> dict[str, str]:
    """Return a job that was cancelled while it waited."""
    state = {"Start": "None", "End": cancelled, "ElapsedRaw": 0, "State": "CANCELLED by 7"}
    return job(number, raw, **(state | more))


def read(folder: Path, *jobs: dict[str, str], without: str = "", **options: Any) -> Workload:
    names = [name for name in NAMES if name not in without.split()]
    path = folder / "sacct.txt"
    path.write_text(
        "".join("|".join(row) + "\n" for row in [names, *([entry[name] for name in names] for entry in jobs)])
    )
    return read_sacct(path, **options)


def label(workload: Workload, name: str) -> dict[int, int]:
    """Return a label by number of the job; empty if no job has it."""
    column = workload.labels.get(name)
    return {} if column is None else dict(zip(workload.job.tolist(), column.tolist(), strict=True))


def test_one_node_was_wanted_where_one_was_given_several_only_where_they_were_requested(tmp_path: Path) -> None:
    four = "cpu=16,mem=8000M,node=4"
    jobs = [job(1), job(2, NNodes=3), job(3, NNodes=4, ReqTRES=four), job(4, NNodes=6, ReqTRES=four)]
    workload = read(tmp_path, *jobs)
    assert label(workload, "nodes") == {1: 1, 2: -1, 3: 4, 4: 4}
    assert label(workload, "nodes_most") == {1: -1, 2: -1, 3: -1, 4: 6}


def test_a_job_that_did_not_start_has_no_number_of_nodes_unless_it_requested_one(tmp_path: Path) -> None:
    # `sacct` prints one node for it, for any number of nodes.
    pending = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "ElapsedRaw": 0, "ReqCPUS": 12, "AllocCPUS": 0}
    jobs = [job(1, **pending), job(2, NNodes=2, **pending | {"ReqTRES": "cpu=12,node=2"}), waiting(3, 130), job(4)]
    jobs += [job(5, **pending, SubmitLine="sbatch -N1 -n 12 x"), job(6, **pending, SubmitLine="sbatch --nodes=1-2 x")]
    workload = read(tmp_path, *jobs, rules={"still-waiting": "repair", "never-ran": "keep"})
    assert label(workload, "nodes") == {1: -1, 2: 2, 3: -1, 4: 1, 5: 1, 6: 1}


def test_without_a_request_several_nodes_count_where_they_were_used_exclusively(tmp_path: Path) -> None:
    jobs = [job(1), job(2, NNodes=2, AllocCPUS=6, ReqCPUS=6), job(3, NNodes=2, AllocCPUS=8, ReqCPUS=8)]
    assert label(read(tmp_path, *jobs, without="ReqTRES"), "nodes") == {1: 1, 2: -1, 3: 2}


def test_a_job_with_more_cores_than_requested_up_to_a_whole_node_used_it_exclusively(tmp_path: Path) -> None:
    threads = job(2, ReqCPUS=1, AllocCPUS=2)
    jobs = [job(1, ReqCPUS=1), threads, job(3), job(4, ReqCPUS=3, AllocCPUS=3, SubmitLine="sbatch --exclusive x")]
    assert label(read(tmp_path, *jobs), "exclusive") == {1: 1, 2: -1, 3: -1, 4: 1}
    sharing = job(5, SubmitLine="sbatch --exclusive=user x")
    assert label(read(tmp_path, sharing), "exclusive") == {}


@pytest.mark.parametrize(
    ("more", "of_node", "of_core"),
    [
        ({"ReqMem": "8000M"}, 8000, None),
        ({"ReqMem": "16G", "ReqTRES": "cpu=8,node=2", "NNodes": 2}, 8192, None),
        ({"ReqMem": "16G", "NNodes": 2}, 16384, None),  # one node was requested
        ({"ReqMem": "4000Mn", "ReqTRES": "cpu=8,node=2", "NNodes": 2}, 4000, None),
        ({"ReqMem": "2000Mc"}, None, 2000),
        ({"ReqMem": "0"}, 0, None),
        ({"ReqMem": "8000M", "ReqCPUS": 4, "SubmitLine": "sbatch --mem-per-cpu=2000 x"}, None, 2000),
        ({"ReqMem": "8000M", "ReqCPUS": 4, "SubmitLine": "sbatch --mem=8000 x"}, 8000, None),
        ({"ReqMem": "2000Mc", "SubmitLine": "sbatch --mem=8000 x"}, None, 2000),
    ],
)
def test_memory_is_that_of_a_node_or_of_a_core(
    tmp_path: Path, more: dict[str, Any], of_node: int | None, of_core: int | None
) -> None:
    workload = read(tmp_path, job(7, **more))
    for name, wanted in (("memory_mb", of_node), ("memory_core_mb", of_core)):
        assert label(workload, name) == ({} if wanted is None else {7: wanted})


@pytest.mark.parametrize(
    ("more", "of_node", "granted"),
    [
        ({"AllocTRES": "cpu=4,node=2"}, 12000, 6000),
        ({"AllocTRES": "cpu=4,mem=14000M,node=2"}, 12000, 7000),
        ({"ReqTRES": "cpu=4,mem=12000M,node=2"}, 6000, None),
        ({"SubmitLine": "sbatch --mem=12000 x"}, 12000, None),
        ({"ReqMem": "6000Mn"}, 6000, None),
        ({"NNodes": 1}, 12000, None),
        ({"ReqMem": "", "AllocTRES": "cpu=4,mem=14000M,node=2"}, 7000, None),
    ],
)
def test_memory_without_options_may_be_that_of_all_nodes(
    tmp_path: Path, more: dict[str, Any], of_node: int, granted: int | None
) -> None:
    workload = read(tmp_path, job(7, **{"ReqMem": "12000M", "NNodes": 2} | more))
    assert label(workload, "memory_mb") == {7: of_node}
    assert label(workload, "memory_granted_mb") == ({} if granted is None else {7: granted})


def test_a_job_with_more_cores_than_its_tasks_could_use_on_whole_nodes_does_not_require_them(tmp_path: Path) -> None:
    # 24 tasks, 4 a node, exclusive on six nodes, one of which has 12 cores: the job held 32 cores, and no six nodes can
    # provide these with 4 tasks each.
    line = {"NNodes": 6, "ReqTRES": "cpu=24,node=6", "ReqCPUS": 24, "SubmitLine": "sbatch --ntasks-per-node=4 x"}
    workload = read(tmp_path, job(1, AllocCPUS=32, **line), job(2, AllocCPUS=24, **line))
    assert label(workload, "tasks_per_node") == {1: -1, 2: 4}


def test_gpus_are_those_of_a_node(tmp_path: Path) -> None:
    workload = read(tmp_path, job(1, NNodes=2, AllocTRES="cpu=4,node=2,gres/gpu=8"), job(2))
    assert label(workload, "gpus") == {1: 4, 2: -1}


def test_an_array_is_throttled_as_its_submit_line_states(tmp_path: Path) -> None:
    tasks = [job(f"40_{task}", 40 + task, SubmitLine="sbatch --array=1-3%2 -c 2 x") for task in (1, 2)]
    workload = read(tmp_path, *tasks, job(50))
    assert label(workload, "array") == {41: 40, 42: 40, 50: -1}
    assert label(workload, "array_limit") == {41: 2, 42: 2, 50: -1}
    assert label(workload, "cores_per_task") == {41: 2, 42: 2, 50: -1}


def test_a_throttle_is_in_the_line_of_the_tasks_that_wait(tmp_path: Path) -> None:
    rest = job("40_[4-12%3]", 40, State="PENDING", Eligible="Unknown", Start="Unknown", End="Unknown")
    workload = read(tmp_path, job("40_1", 41), rest)
    assert label(workload, "array_limit") == {41: 3}


def test_an_unknown_throttle_is_the_largest_number_that_ran_at_once(tmp_path: Path) -> None:
    tasks = [
        job("40_1", 41),
        job("40_2", 42),
        job("40_3", 40, Eligible=115, Start=115, End=125, Reason="JobArrayTaskLimit"),
        *(job(f"60_{task}", 60 + task) for task in range(1, 4)),  # no task waited for a limit
    ]
    limits = label(read(tmp_path, *tasks), "array_limit")
    assert limits == {41: 2, 42: 2, 40: 2, 61: -1, 62: -1, 63: -1}


def test_a_job_knows_whom_it_waited_for(tmp_path: Path) -> None:
    second = job(8, Eligible=115, Start=116, End=126, SubmitLine="sbatch --dependency=afterok:7 x")
    assert label(read(tmp_path, job(7), second), "after") == {7: -1, 8: 7}


def test_nothing_is_reported_of_what_no_column_reports(tmp_path: Path) -> None:
    poor = read(tmp_path, job(7), without="NNodes ReqCPUS ReqMem ReqTRES AllocTRES Reason SubmitLine")
    assert set(poor.labels) == {"user", "account", "partition", "group"}


KEEP = {"never-ran": "keep"}


def test_cancelled_jobs_are_left_out_unless_they_are_requested(tmp_path: Path) -> None:
    assert read(tmp_path, job(7), waiting(8, 160)).job.tolist() == [7]
    workload = read(tmp_path, job(7), waiting(8, 160, Eligible=130), rules=KEEP)
    workload.check()
    assert label(workload, "withdrawn") == {7: -1, 8: 30}  # from its earliest possible start
    assert workload.logged["wait"].tolist()[0] == 5
    assert workload.logged_start is not None
    assert (workload.logged_start[1] >= 2**62) == (workload.logged_end[1] >= 2**62)  # type: ignore[index]
    assert workload.logged["status"].tolist() == [1, 5]


def test_a_start_that_is_the_cancellation_is_none(tmp_path: Path) -> None:
    """As versions before 20.11 print it."""
    workload = read(tmp_path, job(7), waiting(8, 160, Start=160), rules=KEEP)
    assert label(workload, "withdrawn") == {7: -1, 8: 60}
    assert workload.logged["wait"].tolist()[1] != workload.logged["wait"].tolist()[1]


def test_a_job_that_never_could_start_leaves_as_it_comes(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), waiting(8, 160, Eligible="Unknown"), rules=KEEP)
    assert label(workload, "withdrawn") == {7: -1, 8: 0}


def test_tasks_that_were_cancelled_together_are_separate_jobs(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), waiting("40_[2,4,6]", 160, 40), rules=KEEP)
    assert len(workload) == workload.provenance["jobs_read"] == 4
    assert sorted(workload.job.tolist()) == [7, 40, 41, 42]
    assert sorted(workload.labels["withdrawn"].tolist()) == [-1, 60, 60, 60]
    assert "duplicate-job" not in {entry["kind"] for entry in workload.provenance["problems"]}


def test_a_line_of_more_tasks_than_can_be_stays_one_job(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), waiting("40_[0-999999999]", 160, 40), rules=KEEP)
    assert len(workload) == 2
    assert "there are too many" in workload.provenance["missing"][-1] + workload.provenance["missing"][0]


QUEUE = {"still-waiting": "repair"}


def pending(number: Any, raw: int | None = None, **more: Any) -> dict[str, str]:
    """Return a job that was still waiting when the log was written."""
    state = {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": 0, "State": "PENDING", "AllocCPUS": 0, "ReqCPUS": 3}
    return job(number, raw, **(state | more))


def test_waiting_jobs_are_excluded_unless_requested_and_then_last_until_their_limit(tmp_path: Path) -> None:
    assert read(tmp_path, job(7), pending(8)).job.tolist() == [7]
    workload = read(tmp_path, job(7), pending(8), rules=QUEUE)
    workload.check()
    assert (workload.runtime[1], workload.estimate[1], workload.cores[1]) == (300_000_000, 300_000_000, 3)
    assert workload.logged_start is not None
    assert workload.logged_start[1] >= 2**61
    (entry,) = workload.provenance["problems"]
    assert (entry["kind"], entry["count"], entry["rule"]) == ("still-waiting", 1, "repair")


def test_jobs_that_could_not_start_yet_are_in_no_queue_and_counted(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), pending(8, Eligible="Unknown"), pending(9), rules=QUEUE)
    assert workload.job.tolist() == [7, 9]
    kinds = {entry["kind"]: entry["count"] for entry in workload.provenance["problems"]}
    assert kinds == {"still-waiting": 2, "not-eligible": 1}


def test_tasks_that_wait_on_one_line_are_separate_jobs(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), pending("40_[4-6%2]", 40), rules=QUEUE)
    assert sorted(workload.job.tolist()) == [7, 40, 41, 42]
    assert label(workload, "array_limit")[40] == 2


def test_without_a_limit_what_waits_lasts_as_long_as_others_did(tmp_path: Path) -> None:
    workload = read(tmp_path, job(7), pending(8), without="TimelimitRaw", rules=QUEUE)
    assert workload.runtime.tolist() == [10_000_000, 10_000_000]


def test_logs_that_do_not_say_when_a_job_was_cancelled_leave_it_out(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    fields = "-1 -1 2 10 -1 {} 1 1 -1 1 -1 -1 -1"
    log.write_text(f"; MaxProcs: 4\n1 0 0 10 2 {fields.format(1)}\n2 1 5 0 2 {fields.format(5)}\n")
    workload = read_workload(log, rules=KEEP)
    assert workload.job.tolist() == [1]
    (entry,) = workload.provenance["problems"]
    assert (entry["kind"], entry["rule"]) == ("never-ran", "skip")


def test_types_of_gpus_and_licences_are_those_that_were_requested(tmp_path: Path) -> None:
    plain = "cpu=4,mem=8000M,node=1"
    typed = f"{plain},gres/gpu=2,gres/gpu:a100=2,license/matlab=3,license/idl@far=1"
    found = read(tmp_path, job(1), job(2, ReqTRES=typed), job(3, ReqTRES=f"{plain},gres/gpu=1"))
    assert label(found, "gpu_type") == label(found, "licenses") == {1: -1, 2: 0, 3: -1}
    assert (found.names["gpu_type"], found.names["licenses"]) == (("a100",), ("idl@far:1,matlab:3",))
    assert "gpu_type" not in read(tmp_path, job(1)).labels
