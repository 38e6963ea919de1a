"""Live states of Slurm: the golden cases in all forms, a real cluster, and damaged lists."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.slurm_state import check_history, print_collect, read_slurm_state
from gridsim.world import World
from tests.forecasts.states import json_of, state_of

GOLDEN = Path(__file__).parent / "golden"
CASES = ("f05-live-state", "f06-live-state-other-forms")


def case(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return content


def folder(place: Path, given: Mapping[str, Any], **files: str) -> Path:
    """A folder with the machine of a case, and other files."""
    machine = {name: given[f"scontrol_{name}"] for name in ("node", "reservation", "licenses")}
    texts = {"now": f"{given['at']}\n"} | {f"scontrol_{name}.txt": text for name, text in machine.items()}
    for name, text in (texts | files).items():
        (place / name).write_text(text)
    return place


def jobs_of(given: Mapping[str, Any], **changes: Any) -> str:
    """The document of a case with changes of its jobs, by ``job_NUMBER``."""
    entries = [entry | changes.get(f"job_{entry['job_id']}", {}) for entry in given["squeue_json"]["jobs"]]
    return json.dumps({"jobs": entries}, indent=1)


def printed(job: Mapping[str, Any]) -> str:
    """A job of the document of Slurm 22.05 as `squeue` prints it, without memory and suspensions."""

    def date(seconds: int) -> str:
        return str(np.datetime64(seconds, "s")) if seconds else "N/A"

    minutes = job["time_limit"]
    begin = job["eligible_time"] if job["state_reason"] == "BeginTime" else job["start_time"]
    used = job["pre_sus_time"] or max(1_795_521_600 - job["start_time"], 0)
    listed = dict(part.split("=") for part in (job["tres_alloc_str"] or job["tres_req_str"]).split(","))
    gpu = next((f"gres:{name[5:]}:{count}" for name, count in listed.items() if name.startswith("gres/gpu:")), "")
    licences = ",".join(f"{name[8:]}:{count}" for name, count in listed.items() if name.startswith("license/"))
    gpu = gpu or (f"gres:gpu:{listed['gres/gpu']}" if "gres/gpu" in listed else "N/A")
    cells = (
        *(
            job["job_id"],
            job["array_job_id"] or job["job_id"],
            job["array_task_id"] or job["array_task_string"] or "N/A",
        ),
        *(job["user_name"], job["account"], job["partition"], job["qos"], job["job_state"], job["priority"]),
        *(
            listed["cpu"],
            job["node_count"],
            "UNLIMITED" if minutes is None else f"{minutes // 60}:{minutes % 60:02}:00",
        ),
        *(f"{used // 3600}:{used // 60 % 60:02}:{used % 60:02}", date(job["submit_time"]), date(begin)),
        *(job["dependency"] or "(null)", licences or "(null)", job["resv_name"] or "(null)", "OK"),
        *(job["required_nodes"], job["excluded_nodes"], job["nodes"], gpu),
        *(listed["mem"] if job["node_count"] == 1 else "8000M", job["state_reason"], job["features"] or "(null)"),
    )
    return "|".join(map(str, cells)) + "\n"


def without(content: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """A state without some fields of its jobs."""

    def kept(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name: value for name, value in job.items() if name not in names} for job in jobs]

    return content | {key: kept(content[key]) for key in ("running", "waiting")}


@pytest.mark.parametrize("name", CASES)
def test_golden_case_from_a_document(name: str, tmp_path: Path) -> None:
    given = case(name)
    state = read_slurm_state(folder(tmp_path, given, **{"squeue.json": jobs_of(given)}), timezone="UTC")
    assert json_of(state) == given["expected"]
    assert state_of(given["expected"]) == state
    assert state.notes == ()


def test_golden_case_from_scontrol_and_from_squeue_in_text(tmp_path: Path) -> None:
    given = case(CASES[1])
    state = read_slurm_state(folder(tmp_path, given, **{"scontrol_job.txt": given["scontrol_job"]}), timezone="UTC")
    assert json_of(state) == given["expected"]
    (tmp_path / "scontrol_job.txt").unlink()
    (tmp_path / "squeue.txt").write_text("".join(map(printed, case(CASES[0])["squeue_json"]["jobs"])))
    by_squeue = json_of(read_slurm_state(tmp_path, timezone="UTC"))
    unknown = {"eligible", "slurm_start"}  # the eligible time of other jobs than those that wait for their begin time
    assert without(by_squeue, unknown) == without(given["expected"], unknown)
    assert {job["job"] for job in by_squeue["waiting"] if job["eligible"]} == {"106"}


def test_local_times_are_those_of_the_zone_and_compressed_files_are_read(tmp_path: Path) -> None:
    given = case(CASES[1])
    folder(tmp_path, given)
    with gzip.open(tmp_path / "scontrol_job.txt.gz", "wt") as file:
        file.write(given["scontrol_job"])
    (tmp_path / "now").unlink()
    state = read_slurm_state(tmp_path, timezone="Europe/Berlin")
    assert {job.job: job.start for job in state.running}["100"] == 1795518600 - 3600
    assert state.at == 1795521540 - 3600, "the start of 109_2"
    assert len(state.notes) == 1
    assert "newest time" in state.notes[0]
    with pytest.raises(InputError, match=r"scontrol_job.txt.gz line 1, field '\w+': is the local date .* --timezone"):
        read_slurm_state(tmp_path)


def test_two_lists_of_a_real_cluster_give_the_same_state(run_a: Path, tmp_path: Path) -> None:
    found = []
    for name, source in (("squeue.json.gz", "squeue.json.gz"), ("scontrol_job.txt.gz", "scontrol_job_o.txt.gz")):
        place = tmp_path / source
        place.mkdir()
        (place / name).symlink_to(run_a / "logs" / source)
        for other in ("scontrol_node.txt.gz", "scontrol_reservation.txt"):
            (place / other).symlink_to(run_a / "logs" / other)
        found.append(json_of(read_slurm_state(place, timezone="UTC")))
    by_document, by_scontrol = found
    requeued = next(job for job in by_scontrol["waiting"] if job["job"] == "41501")
    assert requeued["memory"] == 0, "the memory of a requeued job (C2)"
    requeued["memory"] = 8000
    assert by_document == by_scontrol
    assert by_document["at"] == 1795246149, "the last scheduling cycle, 07:29:09"
    assert [job["job"] for job in by_document["running"]] == ["41512", "41513_1", "41513_2", "41513_3"]
    tasks = [job["job"] for job in by_document["waiting"] if job["array"]]
    assert tasks == [f"41513_{task}" for task in range(4, 13)]
    kinds = {job["job"]: job["kind"] for job in by_document["waiting"] if not job["array"]}
    assert kinds == {"41333": "never", "41492": "never", "41359": "after", "41517": "queued", "41501": "queued"} | {
        "41518": "held"
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dependency": "afterok:1(failed)?afterok:2(unfulfilled)"}, ("after", [["afterok", "2", "unfulfilled"]])),
        ({"dependency": "afterok:1(failed)?afterok:2(failed)"}, ("never", [])),
        ({"dependency": "afterok:1(fulfilled)?afterok:2(unfulfilled)"}, ("queued", [])),
        ({"dependency": "afterok:1(failed),afterok:2(unfulfilled)"}, ("never", [["afterok", "2", "unfulfilled"]])),
        ({"dependency": "afterany:7_*(unfulfilled)"}, ("after", [["afterany", "7_*", "unfulfilled"]])),
        ({"dependency": "singleton(unfulfilled)"}, ("after", [["singleton", "", "unfulfilled"]])),
        ({"state_reason": "PartitionDown"}, ("never", [])),
        ({"state_reason": "JobHeldAdmin", "dependency": "afterok:1(failed)"}, ("held", [])),
        ({"job_state": ["PENDING", "REQUEUE_HOLD"]}, ("held", [])),
        ({"priority": {"set": False, "infinite": False, "number": 0}}, ("queued", [])),
        ({"eligible_time": 1795521601}, ("not before", [])),
        ({"eligible_time": 1795521600}, ("queued", [])),
    ],
)
def test_kinds_of_waiting_jobs(change: dict[str, Any], expected: tuple[str, list[Any]], tmp_path: Path) -> None:
    given = case(CASES[0])
    state = read_slurm_state(folder(tmp_path, given, **{"squeue.json": jobs_of(given, job_103=change)}), timezone="UTC")
    job = next(job for job in json_of(state)["waiting"] if job["job"] == "103")
    assert (job["kind"], job["after"]) == expected


@pytest.mark.parametrize(
    ("tasks", "expected", "throttle"),
    [("1,4,9", [1, 4, 9], 2), ("0-8:4%1", [0, 4, 8], 1), ("0x1554", [2, 4, 6, 8, 10, 12], 2), ("7", [7], 2)],
)
def test_tasks_of_arrays(tasks: str, expected: list[int], throttle: int, tmp_path: Path) -> None:
    given = case(CASES[0])
    document = jobs_of(given, job_109={"array_task_string": tasks}, job_110={"array_task_id": 3})
    state = read_slurm_state(folder(tmp_path, given, **{"squeue.json": document}), timezone="UTC")
    found = [job for job in state.waiting if job.array == 109]
    assert [job.job for job in found] == [f"109_{task}" for task in expected]
    assert {job.throttle for job in found} == {throttle}


def test_a_job_that_was_suspended_ran_before_and_since(tmp_path: Path) -> None:
    given = case(CASES[0])
    document = jobs_of(
        given,
        job_111={"job_state": "RUNNING", "suspend_time": 1795521000},
        job_100={"cpus": 6} | {"tres_alloc_str": "cpu=6,mem=16000M"},
    )
    state = read_slurm_state(folder(tmp_path, given, **{"squeue.json": document}), timezone="UTC")
    job = next(job for job in state.running if job.job == "111")
    assert (job.elapsed, job.stopped) == (2500 + 600, False)


def test_limits_of_partitions(tmp_path: Path) -> None:
    given = case(CASES[0])
    partitions = "PartitionName=cpu DefaultTime=NONE MaxTime=1-00:00:00\nPartitionName=gpu DefaultTime=00:10:00\n"
    files = {"squeue.json": jobs_of(given), "scontrol_partition.txt": partitions}
    state = read_slurm_state(folder(tmp_path, given, **files), timezone="UTC")
    assert next(job.limit for job in state.waiting if job.job == "104") == 86_400
    unlimited = {f"job_{job['job_id']}": {"time_limit": None} for job in given["squeue_json"]["jobs"]}
    files = {"squeue.json": jobs_of(given, **unlimited), "scontrol_partition.txt": ""}
    state = read_slurm_state(folder(tmp_path, given, **files), timezone="UTC")
    with pytest.raises(InputError, match="field 'limit': no job and no partition has a time limit"):
        World.from_state(state, "easy")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        *(("IDLE+PLANNED", "up"), ("IDLE+CLOUD+POWERED_DOWN", "up"), ("MIXED+MAINT", "up")),
        *(("IDLE+DRAIN", "no new jobs"), ("DOWN+DRAIN", "down"), ("IDLE+NOT_RESPONDING", "down")),
        *(("MIXED+FAIL", "down"), ("IDLE*+DRAIN", "down")),
    ],
)
def test_states_of_nodes(state: str, expected: str, tmp_path: Path) -> None:
    given = case(CASES[0])
    nodes = given["scontrol_node"].replace("State=ALLOCATED", f"State={state}")
    files = {"squeue.json": jobs_of(given), "scontrol_node.txt": nodes}
    assert read_slurm_state(folder(tmp_path, given, **files), timezone="UTC").nodes[0].state == expected


def test_nodes_of_sinfo_are_those_of_scontrol(tmp_path: Path) -> None:
    given = case(CASES[0])
    folder(tmp_path, given, **{"squeue.json": jobs_of(given)})
    (tmp_path / "scontrol_node.txt").unlink()
    lines = ("n1|8|32000|(null)|ib|allocated|cpu*|1", "n2|8|32000|gpu:a:2(S:0)|(null)|draining|cpu*|5")
    more = ("n2|8|32000|gpu:a:2(S:0)|(null)|draining|gpu|5", "n3|8|32000|(null)|(null)|down*|cpu*|1")
    (tmp_path / "sinfo.txt").write_text("\n".join((*lines, *more)) + "\n")
    assert json_of(read_slurm_state(tmp_path, timezone="UTC"))["nodes"] == given["expected"]["nodes"]


def test_jobs_that_exceed_a_node_are_an_error_or_enlarge_it(tmp_path: Path) -> None:
    given = case(CASES[0])
    changed = {"nodes": "n[1-2]", "tres_alloc_str": "cpu=12,mem=16000M,node=2"}
    files = {"squeue.json": jobs_of(given, job_100=changed)}
    assert read_slurm_state(folder(tmp_path, given, **files), timezone="UTC").nodes[0].cores == 8, "3 fit on n2"
    files = {"squeue.json": jobs_of(given, job_100=changed | {"tres_alloc_str": "cpu=15,mem=16000M,node=2"})}
    with pytest.raises(InputError, match=r"squeue.json: overfull: found 10 cores in use .* node n2, .* 8; .*=keep"):
        read_slurm_state(folder(tmp_path, given, **files), timezone="UTC")
    state = read_slurm_state(tmp_path, timezone="UTC", rules={"overfull": "keep"})
    assert [node.cores for node in state.nodes] == [8, 10, 8]
    assert len(state.notes) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"user_name": ""}, "user_name"),
        ({"partition": None}, "partition"),
        ({"cpus": 0, "tres_req_str": ""}, "cpus"),
    ],
)
def test_a_job_without_a_needed_field_is_named_or_left_out(change: dict[str, Any], field: str, tmp_path: Path) -> None:
    given = case(CASES[0])
    folder(tmp_path, given, **{"squeue.json": jobs_of(given, job_103=change)})
    expected = rf"squeue.json line \d+, field '{field}': missing-field: found no value for job 103; .*=skip"
    with pytest.raises(InputError, match=expected):
        read_slurm_state(tmp_path, timezone="UTC")
    state = read_slurm_state(tmp_path, timezone="UTC", rules={"missing-field": "skip"})
    assert "103" not in {job.job for job in state.waiting}
    assert "103" in state.notes[0]


def cut(text: str) -> str:
    return text[: len(text) * 2 // 3]


SHOWN = case(CASES[1])["scontrol_job"]
DOCUMENT = jobs_of(case(CASES[0]))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "has no list of jobs; expected a folder with squeue.json or scontrol_job.txt or squeue.txt"),
        ({"scontrol_job.txt": "\n"}, "scontrol_job.txt: is empty, so it was cut: an empty list is 'No jobs in the"),
        ({"squeue.json": cut(DOCUMENT)}, r"squeue.json line \d+: is not valid JSON: .* the whole output of squeue"),
        ({"squeue.json": DOCUMENT + DOCUMENT}, r"squeue.json line \d+: is not valid JSON: Extra data"),
        ({"squeue.json": '{"jobs": [{"job_id": 1, "time": {}}]}'}, "line 1, field 'job_state': is '' for job 1;"),
        ({"scontrol_job.txt": cut(SHOWN)}, r"scontrol_job.txt line \d+: was cut: its last line has no end"),
        (
            {"scontrol_job.txt": SHOWN[: SHOWN.index("Priority=")] + "\n"},
            "field 'JobState': is '' for job 100;",
        ),
        ({"scontrol_job.txt": SHOWN + SHOWN}, "scontrol_job.txt, field 'JobId': is '100'; .* once in the list"),
        ({"scontrol_job.txt": SHOWN + case(CASES[0])["scontrol_node"]}, "line 15: 'NodeName=n1 .*' is not JobId=…"),
        ({"squeue.txt": "JOBID PARTITION\n"}, r"squeue.txt line 1: has \d+ fields; expected 26 \(squeue -h -o "),
        ({"squeue.json": DOCUMENT, "scontrol_node.txt": ""}, "has no nodes"),
        ({"squeue.json": DOCUMENT, "now": "today\n"}, "now line 1: is 'today'"),
        ({"squeue.json": DOCUMENT.replace('"n1"', '"m1"')}, "field 'NodeList': is m1 for job 1.*a node of the list"),
        ({"squeue.json": DOCUMENT.replace("RUNNING", "RUNING")}, "'job_state': is 'RUNING' for job 100; expected a st"),
        ({"squeue.json": DOCUMENT.replace("3-5%2", "3-5,...%2")}, "'array_task_string': .* SLURM_BITSTR_LEN=0"),
    ],
)
def test_damaged_lists_are_errors_with_file_and_record(files: dict[str, str], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        read_slurm_state(folder(tmp_path, case(CASES[0]), **files), timezone="UTC")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("squeue.txt", ""), ("scontrol_job.txt", "No jobs in the system\n")])
def test_a_list_without_jobs_is_a_state(name: str, text: str, tmp_path: Path) -> None:
    state = read_slurm_state(folder(tmp_path, case(CASES[0]), **{name: text}), timezone="UTC")
    assert (state.running, state.waiting) == ((), ())


def test_an_old_state_and_a_repeated_reservation_are_noted(tmp_path: Path) -> None:
    given = case(CASES[0]) | {"at": 1795521600 + 900}
    given["scontrol_reservation"] = given["scontrol_reservation"].replace("MAINT,", "MAINT,DAILY,")
    notes = read_slurm_state(folder(tmp_path, given, **{"squeue.json": DOCUMENT}), timezone="UTC").notes
    assert [note[:22] for note in notes] == ["'now' is 16 min from t", "reservation service is"]


def test_a_history_of_another_cluster_is_an_error() -> None:
    state = state_of(case(CASES[0])["expected"])
    jobs = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1], labels={"user": [0, 1]})
    check_history(state, replace(jobs, names={"user": ("zoe", "alice")}))
    check_history(state, jobs)
    with pytest.raises(InputError, match=r"sacct.txt, field 'User': has users such as yan, zoe, .*alice"):
        check_history(state, replace(jobs, names={"user": ("zoe", "yan")}), "sacct.txt")


def test_the_collecting_script_is_valid_and_writes_every_list(tmp_path: Path) -> None:
    script = tmp_path / "collect.sh"
    script.write_text(print_collect())
    subprocess.run(["bash", "-n", script], check=True)
    assert not re.search(r"@\w+@", print_collect())
    tools = tmp_path / "tools"  # commands that print their name and options; squeue has no --json
    tools.mkdir()
    for name in ("squeue", "scontrol", "sinfo", "sshare", "sacctmgr", "sacct"):
        refuse = '[ "${2-}" != --json ] || exit 1\n' if name == "squeue" else ""
        (tools / name).write_text(f'#!/bin/bash\n{refuse}echo "{name} $*"\n')
        (tools / name).chmod(0o755)
    subprocess.run(["bash", script, tmp_path / "state"], check=True, env={"PATH": f"{tools}:/usr/bin:/bin"})
    names = {path.name: path.read_text() for path in (tmp_path / "state").iterdir()}
    assert names["scontrol_job.txt"] == "scontrol -a -o show job\n"
    assert "squeue.json" not in names
    assert {"now", "scontrol_node.txt", "scontrol_reservation.txt", "scontrol_licenses.txt", "sshare.txt"} <= set(names)
    assert names["sacct.txt"].startswith("sacct -a -X -D -P --delimiter=\x1f -S now-26weeks -E now -o JobID")
