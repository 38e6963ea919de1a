"""Effects of changes of a Slurm site on subsets of the jobs: commands with GPU nodes, licences and limits."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main

pytestmark = pytest.mark.long

SITE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "gpus"
GPU_NODES = "1 node of 8 cores and 2 GPUs (a100), in partition gpu"


def is_gpu_job(job: int) -> bool:
    return job % 3 == 0


@pytest.fixture
def site() -> Path:
    """A site of CPU and GPU nodes with a licence, and a busy log of it; all GPU jobs have the same QOS."""
    return SITE


def policy(site: Path) -> str:
    return f"slurm?conf={site}/slurm.conf&qos={site}/qos.txt"


def asked(site: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[list[Any], str]:
    """Changes as JSON, and the text output of the same command."""
    command = ["whatif", str(site / "sacct.txt"), "--policy", policy(site), *words]
    assert main([*command, "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert main(command) == 0
    return changes, " ".join(capsys.readouterr().out.split())


def waits(folder: Path, label: str) -> dict[int, float]:
    with (folder / label / "jobs.csv").open(newline="") as file:
        return {int(row["job"]): float(row["wait"]) for row in csv.DictReader(file)}


def test_nodes_of_a_machine_without_partitions_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    table = [str(SITE.parent / name) for name in ("gpu-jobs.csv", "gpu-jobs.toml", "gpu-site.toml")]
    words = ["whatif", table[0], "--mapping", table[1], "--platform", table[2], "--policy", "easy", "--add-nodes", "+2"]
    assert main(words) == 0
    assert "Added: 2 nodes of 32 cores and 128 GiB of memory." in " ".join(capsys.readouterr().out.split())


def test_waits_of_gpu_jobs_are_those_of_their_runs(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, told = asked(site, ["--add-nodes", "gpu:+1"], capsys)
    parts = {(it["kind"], it["part"]): it["wait"] for it in changes[1]["parts"]}
    for label, words in (("now", []), ("more", ["--add-nodes", "gpu:+1"])):
        command = ["compare", str(site / "sacct.txt"), "--policy", f"{label}={policy(site)}", *words]
        assert main([*command, "--no-page", "--out", str(tmp_path / label)]) == 0
    before, after = waits(tmp_path / "now", "now"), waits(tmp_path / "more", "more")
    for key, rows in (
        (("gpu", ""), [job for job in before if is_gpu_job(job)]),
        (("partition", "cpu"), [job for job in before if not is_gpu_job(job)]),
        (("pool", "matlab"), [job for job in before if job % 10 == 0]),
    ):
        assert parts[key]["jobs"] == len(rows)
        assert parts[key]["baseline_mean"] == pytest.approx(sum(before[job] for job in rows) / len(rows))
        assert parts[key]["policy_mean"] == pytest.approx(sum(after[job] for job in rows) / len(rows))
    assert f"Added: {GPU_NODES}." in told
    assert "GPU jobs (133) wait" in told
    assert [it["concerned"] for it in changes[1]["parts"]] == [it["part"] in ("gpu", "") for it in changes[1]["parts"]]


def test_a_limit_below_the_added_gpus_is_named_only_where_jobs_wait_for_it(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stops = "QOS gpu is limited to 12 of 14 GPUs (GrpTRES), so 2 GPUs are always idle;"
    changes, told = asked(site, ["--add-nodes", "gpu:1,1"], capsys)
    assert stops in told
    assert told.count("is limited to") == 1  # nodes without GPUs are unaffected
    (limit,) = changes[1]["limits"]
    assert (limit["owner"], limit["resource"], limit["most"], limit["available"]) == ("QOS gpu", "gres/gpu", 12, 14)
    assert limit["jobs"] > 0
    raised = ["--add-nodes", "gpu:+1", "--set-limit", "qos.gpu.GrpTRES=gres/gpu=14", "--together"]
    changes, told = asked(site, raised, capsys)
    assert "is limited to" not in told
    assert changes[1]["change"] == "1 more node of gpu (+10 % cores) and GrpTRES=gres/gpu=14 of QOS gpu"


def test_a_limit_that_no_job_reaches_is_not_reported(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["whatif", str(site / "sacct.txt"), "--add-nodes", "gpu:+64", "--json", "--policy"]
    assert main([*command, f"{policy(site)}&set_limit=qos.gpu.GrpTRES=gres/gpu=139"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][1]["limits"] == []  # of 140 GPUs


def test_licences_and_limits_are_changes_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--add-pool", "matlab:2", "--set-limit", "qos.gpu.GrpTRES=gres/gpu=4"]
    (now, more, fewer), told = asked(site, words, capsys)
    assert more["change"] == "4 matlab licences (+100 %)"
    assert fewer["change"] == "GrpTRES=gres/gpu=4 of QOS gpu"
    of_matlab = next(it["wait"] for it in more["parts"] if it["part"] == "matlab")
    assert of_matlab["policy_mean"] < of_matlab["baseline_mean"]
    assert fewer["metrics"]["wait_mean"] > now["metrics"]["wait_mean"]
    assert "Jobs that request licence matlab (40) wait" in told
    assert "Jobs of QOS gpu (133) wait" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--add-pool", "ansys:1"], "unknown pool or licence 'ansys'"),
        (["--add-pool", ","], "field 'add-pool': is empty; expected at least one value"),
        (["--set-limit", "qos.cpu.GrpJobs=1"], "unknown QOS 'cpu'"),
        (["--add-nodes", "gpu:+1;many", "--together"], "'many' is not a number of nodes"),
    ],
)
def test_changes_of_what_is_not_there_are_refused(
    words: list[str], message: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", str(site / "sacct.txt"), "--policy", policy(site), *words]) == 2
    assert message in capsys.readouterr().err


def test_the_page_has_a_line_for_each_type_of_node_and_the_waits_of_parts(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["whatif", str(site / "sacct.txt"), "--policy", policy(site), "--add-nodes", "gpu:+1,gpu:+2,+1,+2"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "whatif.html").read_text()
    assert "a line for each type of node: nodes of 8 cores and 2 GPUs (a100), in partition gpu:" in page
    assert '<h2 id="parts">By partition and requested resource</h2>' in page
    with (tmp_path / "whatif_parts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {"partition", "gpu", "pool"}
    assert len(rows) == 4 * 4
    capsys.readouterr()


def test_one_node_of_each_type_is_no_line(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["whatif", str(site / "sacct.txt"), "--policy", policy(site), "--add-nodes", "gpu:+1,+2"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert "Waits against cores" not in (tmp_path / "whatif.html").read_text()
    capsys.readouterr()


def test_policies_of_different_sites_run_each_on_its_own_machine(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, bigger = f"now={policy(site)}", f"bigger={policy(site)}&add_nodes=gpu:2&Licenses=matlab:5"
    command = ["compare", str(site / "sacct.txt"), "--policy", now, "--policy", bigger, "--policy", "easy"]
    assert main([*command, "--shake", "2", "--no-page", "--out", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "different machines: now on 80 cores, bigger on 96 cores and easy on 80 cores" in told
    more = "2 more nodes of 8 cores and 2 GPUs (a100), in partition gpu; 3 more matlab"
    assert f"Compared with now, the machine of bigger has {more}." in told
    cores = {}
    for label in ("now", "bigger", "easy"):
        made = json.loads((tmp_path / label / "run.json").read_text())
        held = json.loads((tmp_path / label / "metrics.json").read_text())
        cores[label] = made["platform"]["cores"]
        with (tmp_path / label / "jobs.csv").open(newline="") as file:
            area = sum(int(row["cores"]) * float(row["runtime"]) for row in csv.DictReader(file))
        assert held["utilisation"] * cores[label] * held["makespan"] == pytest.approx(area, rel=1e-6)
    assert cores == {"now": 80, "bigger": 96, "easy": 80}
    alone = ["compare", str(site / "sacct.txt"), "--policy", bigger, "--no-page", "--out", str(tmp_path / "alone")]
    assert main(alone) == 0
    assert waits(tmp_path / "alone", "bigger") == waits(tmp_path, "bigger")


def test_cores_that_are_given_and_are_not_those_of_the_site_are_refused(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(site / "sacct.txt"), "--policy", policy(site), "--machine", "64", "--no-page"]) == 2
    assert "has 64 cores; the nodes of the site have 80" in capsys.readouterr().err
