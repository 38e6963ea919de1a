"""Commands of ``gridsim calibrate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.cli import main

LOG = Path(__file__).resolve().parents[2] / "docs" / "examples" / "sacct.txt"


def test_a_log_of_slurm_is_replayed_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--machine", "32", "--policy", "fcfs", "--policy", "easy"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "of their recorded start" in told
    assert "by user:" in told
    assert "The largest differences" in told


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--machine", "32", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["policies"]) == {"fcfs", "easy", "conservative"}
    assert told["policies"][told["best"]]["median"] == min(one["median"] for one in told["policies"].values())


def test_a_log_without_starts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert main(["calibrate", str(log)]) == 2
    assert "the log has no start time of any job, so there is nothing to compare" in capsys.readouterr().err


def test_a_policy_that_rejects_every_job_is_not_a_fault_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slurm.conf").write_text(CONF.replace("00:15:00", "00:00:01") + "EnforcePartLimits=ALL\n")
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 5 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert main(["calibrate", str(log), "--policy", f"slurm?conf={tmp_path / 'slurm.conf'}"]) == 2
    assert "no job of the log runs under any of these policies" in capsys.readouterr().err


CONF = """NodeName=n[1-8] CPUs=4 RealMemory=8000
PartitionName=batch Nodes=n[1-8] Default=YES MaxTime=00:15:00
PartitionName=debug Nodes=n[7-8] MaxTime=00:02:00
PartitionName=long Nodes=n1 MaxTime=UNLIMITED
SchedulerType=sched/backfill
"""


@pytest.fixture
def site(tmp_path: Path) -> str:
    """The site's policy, as specified on the command line."""
    (tmp_path / "slurm.conf").write_text(CONF)
    return f"slurm?conf={tmp_path / 'slurm.conf'}"


def test_the_site_s_own_policy_brings_its_machine_and_the_jobs_that_were_cancelled(
    site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(LOG), "--policy", site]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "machine: 32 cores (slurm.conf)" in told
    assert "never-ran: 2 lines (39, 40) kept unchanged (--on never-ran=keep)" in told
    assert "Under slurm, the site's own policy, half of the 48 jobs start" in told


def test_requested_options_override_those_of_the_site(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--policy", site, "--on", "never-ran=skip"]) == 0
    assert "(39, 40) left out (--on never-ran=skip)" in capsys.readouterr().out
    assert main(["calibrate", str(LOG), "--policy", site, "--machine", "64"]) == 2
    assert "has 64 cores; the nodes of the site have 32" in capsys.readouterr().err


@pytest.mark.long
def test_every_verb_takes_the_site_s_own_policy(site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["compare", str(LOG), "--policy", "easy", "--policy", site, "--out", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Validation of slurm, the site's own policy" in told
    assert "Validation of slurm, the site" in (out / "report.html").read_text()
    assert main(["explain", str(out), "41229", "--policy", "slurm"]) == 0
    assert main(["whatif", str(LOG), "--policy", site, "--load-times", "1.2"]) == 0
    assert main(["quote", str(LOG), "--policy", site, "--cores", "4", "--walltime", "5m", "--at", "60"]) == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'policy = "{site}"\n[workload]\nfile = "{LOG}"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "run"), "--json"]) == 0
    assert "32 cores" in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
def test_names_of_a_hostile_log_are_text_on_the_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    log = tmp_path / "sacct.txt"
    head = "JobID|JobIDRaw|JobName|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State"
    rows = [
        f"{k}|{k}|{evil}|{evil}|{evil}|{evil}|{evil}|{1795244000 + k}|{1795244000 + k}|{1795244050 + 9 * k}"
        f"|{1795244059 + 9 * k}|9|1|COMPLETED|4"
        for k in range(1, 40)
    ]
    log.write_text("\n".join([f"{head}|AllocCPUS", *rows]) + "\n")
    assert main(["compare", str(log), "--out", str(tmp_path / "out")]) == 0
    assert evil not in (tmp_path / "out" / "report.html").read_text()
