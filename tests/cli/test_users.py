"""``--users react``: from the command line and recipes to valid files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gridsim.cli import main

HEADER = "; MaxProcs: 8\n"
RAN = "{job} {submit} {wait} {runtime} {cores} -1 -1 {cores} {runtime} -1 1 {user} 1 -1 1 -1 -1 -1"


def swf(path: Path, *, wait: int | None = None) -> Path:
    """Two users who each submit again 60 s after their last job has ended."""
    lines, clock = [], {1: 0, 2: 30}
    for job in range(1, 41):
        user = 1 + job % 2
        waited = 20 if wait is None else wait
        lines.append(
            (clock[user], RAN.format(job=job, submit=clock[user], wait=waited, runtime=200, cores=6, user=user))
        )
        clock[user] += 20 + 200 + 60
    path.write_text(HEADER + "\n".join(line for _, line in sorted(lines)) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return swf(tmp_path / "log.swf")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "jobs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_compare_lets_users_react_and_writes_what_validate_accepts(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["--policy", "fcfs", "--policy", "easy", "--users", "react", "--no-page", "--out", str(out)]
    assert main(["compare", str(log), *words]) == 0
    told = capsys.readouterr().out
    assert "transform: react: think 1200.0, gap 3600.0, sessions 2, reacting 38" in told
    assert "Users react: 38 of 40 jobs" in told
    jobs = rows(out / "easy")
    assert list(jobs[0])[:6] == ["job", "user", "group", "cores", "submit", "logged_submit"]
    assert any(job["submit"] != job["logged_submit"] for job in jobs)
    assert all(float(job["wait"]) == float(job["start"]) - float(job["submit"]) for job in jobs)
    assert main(["validate", str(out / "easy"), str(log)]) == 0
    assert main(["validate", str(out / "easy")]) == 0


@pytest.mark.long
def test_users_of_a_slurm_site_react_to_its_own_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"
    slurm = f"slurm?conf={site / 'slurm.conf'}&assoc={site / 'assoc.cfg'}&qos={site / 'qos.txt'}"
    out = tmp_path / "out"
    words = ["--users", "react", "--policy", slurm, "--policy", "easy", "--no-page", "--out", str(out)]
    assert main(["compare", str(site / "sacct.txt"), *words]) == 0
    assert "Users react: 271 of 282 jobs" in capsys.readouterr().out
    jobs = rows(out / "slurm")
    assert sum(job["submit"] != job["logged_submit"] for job in jobs) > 200
    began = [job for job in jobs if job["start"]]
    assert len(began) >= 275
    assert all(float(job["start"]) >= float(job["submit"]) for job in began)
    assert main(["validate", str(out / "slurm")]) == 0


@pytest.mark.long
def test_the_page_of_users_who_react_is_made_with_what_if(tmp_path: Path) -> None:
    """Policies with different submission times of jobs have the same periods of fairness."""
    site = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"
    words = ["--users", "react?reference=easy", "--policy", "fcfs", "--policy", "easy", "--what-if"]
    assert main(["compare", str(site), *words, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Inequality of slowdowns between users" in page
    assert 'id="what-if"' in page


def test_without_the_option_jobs_arrive_at_the_times_of_the_log(log: Path, tmp_path: Path) -> None:
    for name, words in (("plain", []), ("fixed", ["--users", "fixed"])):
        assert main(["compare", str(log), *words, "--policy", "easy", "--no-page", "--out", str(tmp_path / name)]) == 0
    assert rows(tmp_path / "plain" / "easy") == rows(tmp_path / "fixed" / "easy")
    assert "logged_submit" not in rows(tmp_path / "plain" / "easy")[0]


def test_reactions_are_found_before_the_load_is_raised(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--transform", "expand?load=1.5", "--policy", "easy", "--no-page", "--out", str(tmp_path / "out")]
    assert main(["compare", str(log), "--users", "react?think=120", *words]) == 0
    assert "gap 3600.0, sessions 2, reacting 38" in capsys.readouterr().out
    gaps = [float(job["wait"]) for job in rows(tmp_path / "out" / "easy")]
    assert max(gaps) <= 300  # at most one other job is ever ahead


def test_a_log_that_names_what_jobs_depend_on_needs_no_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, out = swf(tmp_path / "bare.swf", wait=-1), tmp_path / "out"
    lines = bare.read_text().splitlines()
    lines[3] = lines[3].removesuffix("-1 -1") + f"{lines[1].split()[0]} 900"
    bare.write_text("\n".join(lines) + "\n")
    assert main(["compare", str(bare), "--users", "react", "--policy", "easy", "--no-page", "--out", str(out)]) == 0
    assert "reacting 1, stated 1" in capsys.readouterr().out
    jobs = rows(out / "easy")
    assert float(jobs[2]["submit"]) == float(jobs[0]["end"]) + 900


def test_a_log_without_starts_is_refused_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = swf(tmp_path / "bare.swf", wait=-1)
    words = [str(bare), "--policy", "easy", "--no-page", "--out", str(tmp_path / "out")]
    assert main(["compare", *words, "--users", "react"]) == 2
    assert "give react?reference=easy" in capsys.readouterr().err
    assert main(["compare", *words, "--users", "react?reference=easy"]) == 0


def test_an_unknown_word_for_users_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(log), "--users", "reakt"]) == 2
    assert "did you mean 'react'" in capsys.readouterr().err


def test_whatif_takes_users_too(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(log), "--users", "react", "--add-cores", "+25%", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["changes"]) == 2


def test_a_recipe_states_it_with_a_key(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('policy = "easy"\n[workload]\nfile = "log.swf"\nusers = "react"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    assert "logged_submit" in rows(tmp_path / "out")[0]
    entries = json.loads((tmp_path / "out" / "run.json").read_text())["workload"]["transforms"]
    assert entries[0]["transform"] == "react"
    recipe.write_text('[workload]\nfile = "log.swf"\nusers = "reakt"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 2
    assert "workload.users" in capsys.readouterr().err


def test_a_sweep_takes_users_as_a_factor(log: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        'policy = "easy"\n[workload]\nfile = "log.swf"\nusers = "{users}"\n[factors]\nusers = ["fixed", "react"]\n'
    )
    assert main(["sweep", str(campaign), "--workers", "1", "--out", str(tmp_path / "swept")]) == 0
    with (tmp_path / "swept" / "runs.csv").open(newline="") as file:
        found = {row["users"]: float(row["makespan"]) for row in csv.DictReader(file)}
    assert set(found) == {"fixed", "react"}
