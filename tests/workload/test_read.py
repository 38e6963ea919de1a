"""From files to a workload: the selected reader, for every file encoding."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.model.site_file.conf import read_slurm_conf
from gridsim.workload.read import read_workload

SACCT = (
    "JobID|User|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|AllocCPUS\n"
    "7|Änne|1700000000|1700000000|1700000010|1700000070|60|10|COMPLETED|2\n"
    "8|Bö|1700000005|1700000005|1700000070|1700000130|60|10|COMPLETED|2\n"
)
SWF = "; MaxProcs: 8\n1 0 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\n2 3 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\n"
PBS = (
    "01/02/2024 10:00:00;E;12.srv;user=ann group=g queue=q ctime=1704189000 start=1704189100 "
    "Resource_List.ncpus=4 Resource_List.walltime=01:00:00 end=1704189600 resources_used.walltime=00:08:20\n"
)
GWF = "WorkflowID, JobID, RunTime, ReqNProcs, Dependencies\n1, 1, 5, 2, -1\n2, 2, 5, 2, -1\n"
TASKS = '"tasks": [{"id": "a", "name": "a", "parents": [], "children": []}]'
WORKFLOW = (
    f'{{"name": "w", "schemaVersion": "1.5", "workflow": {{"specification": {{{TASKS}}}, '
    '"execution": {"tasks": [{"id": "a", "runtimeInSeconds": 2}]}}}'
)
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("text", "jobs"), [(SACCT, 2), (SWF, 2), (PBS, 1), (GWF, 2), (WORKFLOW, 1)])
def test_a_text_of_another_system_is_read(tmp_path: Path, text: str, jobs: int, encoding: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    workload = read_workload(path)
    path.write_bytes(text.encode())
    same = read_workload(path)
    assert len(workload) == len(same) == jobs
    assert workload.names == same.names
    assert workload.runtime.tolist() == same.runtime.tolist()


def test_a_compressed_text_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(SACCT.encode("utf-16")))
    assert read_workload(path).names["user"][1:] == ("Änne", "Bö")


def test_a_site_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_bytes("NodeName=n[1-2] CPUs=4\r\nPartitionName=p Nodes=ALL Default=YES\r\n".encode("utf-16"))
    assert len(read_slurm_conf(path).nodes) == 2


def test_a_damaged_text_in_utf_16_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes((SWF + "2 1\n").encode("utf-16")[:-1])
    assert "first_lines': [4]" in str(read_workload(path).provenance["problems"])


@pytest.mark.parametrize("option", [{"timezone": "Europe/Berlin"}, {"tick": 1.0}, {"submit": 0.0}, {}])
def test_a_file_that_is_not_there_is_said_not_to_be_there(tmp_path: Path, option: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"none\.txt: cannot be read \(No such file or directory\)"):
        read_workload(tmp_path / "none.txt", **option)  # type: ignore[arg-type]


def test_a_folder_with_a_timezone_is_said_to_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_workload(tmp_path, timezone="Europe/Berlin")


def test_an_option_of_another_format_is_refused_of_a_log_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    with pytest.raises(InputError, match="is not an option of the format 'swf'"):
        read_workload(tmp_path / "log.swf", timezone="Europe/Berlin")
