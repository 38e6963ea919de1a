"""Commands of an operator under the policy of a Slurm site."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gridsim.cli import main

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"
LOG = MINI / "sacct.txt"
POLICY = f"slurm?conf={MINI}/slurm.conf&assoc={MINI}/assoc.cfg&qos={MINI}/qos.txt"
BEGAN = 1_795_244_026
QUOTE = ["--cores", "16", "--walltime", "5m", "--policy", POLICY, "--json"]


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def changes(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    found = answer(["whatif", str(LOG), "--policy", POLICY, *words, "--json"], capsys)
    return {one["change"]: one for one in found["changes"]} | {"rounded": found["rounded"]}


@pytest.mark.long
def test_the_machine_grows_by_whole_nodes_and_says_what_it_made_of_other_sizes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = changes(["--add-cores", "+1,2%,8"], capsys)
    assert list(found) == [
        "as it is",
        "1 more node of 4 cores (+12 %)",
        "2 more nodes of 4 cores (+25 %)",
        "rounded",
    ]
    assert [found[label]["cores"] for label in list(found)[:3]] == [32, 36, 40]
    assert found["rounded"] == ["33 cores became 1 more node of 4 cores (+12 %), 36 in total"]
    waits = [found[label]["metrics"]["wait_mean"] for label in list(found)[:3]]
    assert waits[2] < waits[0]


@pytest.mark.long
def test_halving_is_reported_in_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    now, more, _ = changes(["--halve"], capsys).values()
    assert more["metrics"]["wait_mean"] <= now["metrics"]["wait_mean"] / 2
    assert more["change"].startswith(f"{(more['cores'] - 32) // 4} more nodes of 4 cores")


def test_users_react_under_the_policy_of_the_site_too(capsys: pytest.CaptureFixture[str]) -> None:
    now, more, _ = changes(["--users", "react", "--add-cores", "16"], capsys).values()
    assert (now["cores"], more["cores"]) == (32, 48)
    assert more["metrics"]["wait_mean"] < now["metrics"]["wait_mean"]


def test_a_step_that_is_no_node_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(LOG), "--policy", POLICY, "--halve", "--node", "6"]) == 2
    assert "6 cores; expected a multiple of 4, the cores of a node" in capsys.readouterr().err


@pytest.mark.long
def test_what_if_of_a_comparison_queries_the_same_sizes_of_both_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", str(LOG), "--policy", "easy", "--policy", POLICY, "--own", "easy", "--what-if", "--no-page"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "cannot be simulated" not in capsys.readouterr().out
    with (tmp_path / "whatif.csv").open() as file:
        rows = list(csv.DictReader(file))
    sizes = {row["policy"]: [int(each["cores"]) for each in rows if each["policy"] == row["policy"]] for row in rows}
    assert list(sizes.values()) == [[32, 36, 40, 32, 32]] * 2
    assert {"1 more node of 4 cores (+12 %)"} <= {row["change"] for row in rows}


def test_added_nodes_are_a_parameter_of_the_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(LOG), "--policy", f"{POLICY}&add_nodes=2", "--json"]) == 0
    assert "machine: 40 cores (slurm.conf, nodes 2)" in capsys.readouterr().err


def as_of(seconds: int, path: Path) -> Path:
    """The log as printed the given number of seconds after its beginning."""
    head, *lines = LOG.read_text().splitlines()
    names, now = head.split("\x1f"), BEGAN + seconds
    printed = [head]
    for line in lines:
        row = dict(zip(names, line.split("\x1f"), strict=True))
        start, end = (int(row[name]) if row[name].isdigit() else None for name in ("Start", "End"))
        if int(row["Submit"]) > now:
            continue
        if (start or end or now) > now:
            row |= {"Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "State": "PENDING", "AllocCPUS": "0"}
            row["Eligible"] = (
                row["Eligible"] if row["Eligible"].isdigit() and int(row["Eligible"]) <= now else "Unknown"
            )
        elif start and end and end > now:
            row |= {"End": "Unknown", "ElapsedRaw": str(now - start), "State": "RUNNING"}
        printed.append("\x1f".join(row.values()))
    path.write_text("\n".join(printed) + "\n")
    return path


@pytest.mark.long
def test_jobs_that_wait_still_are_before_the_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(as_of(600, tmp_path / "now.txt"))
    # Alice's share is used up, so her job is behind the queue. A job without a user starts at 655 s with any queue.
    words = ["quote", log, "--at", "now", "--user", "alice", *QUOTE]
    with_queue = answer(words, capsys)
    without = answer([*words, "--on", "still-waiting=skip"], capsys)
    assert with_queue["at"] == pytest.approx(600, abs=5)
    assert with_queue["answers"][0]["waiting"] > without["answers"][0]["waiting"] + 10
    assert with_queue["answers"][0]["start"] > without["answers"][0]["start"]


def test_jobs_that_still_wait_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quote", str(as_of(600, tmp_path / "now.txt")), "--at", "now", *QUOTE[:-1]]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "repaired: the run time becomes the requested walltime (--on still-waiting=repair)" in told


@pytest.mark.long
def test_a_start_depends_on_whose_job_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    starts = {}
    for user in ("alice", "frank"):
        found = answer(["quote", str(LOG), "--at", "700", "--user", user, "--qos", "normal", *QUOTE], capsys)
        assert found["owner"] == {"user": user, "qos": "normal"}
        starts[user] = found["answers"][0]["start"]
    assert starts["frank"] < starts["alice"]  # users with used-up shares are later in the queue


def test_a_user_with_one_more_submission_allowed_is_not_rejected_by_a_quote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slurm.conf").write_text(
        "AccountingStorageEnforce=limits\nNodeName=n1 CPUs=4\nPartitionName=all Nodes=n1 Default=YES\n"
    )
    (tmp_path / "assoc.cfg").write_text(
        "Cluster - 'c'\nParent - 'root'\nUser - 'bob':DefaultAccount='root'\n"
        "User - 'ann':DefaultAccount='root':MaxSubmitJobs=1\n"
    )
    (tmp_path / "log.txt").write_text(
        "JobID|User|Account|Submit|Start|End|State|AllocCPUS|Timelimit\n"
        "1|bob|root|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00|COMPLETED|4|01:00:00\n"
        "2|ann|root|2026-01-05T02:00:00|2026-01-05T02:00:00|2026-01-05T03:00:00|COMPLETED|4|01:00:00\n"
    )
    policy = f"slurm?conf={tmp_path / 'slurm.conf'}&assoc={tmp_path / 'assoc.cfg'}"
    words = ["quote", str(tmp_path / "log.txt"), "--at", "600", "--cores", "4", "--walltime", "10m", "--policy", policy]
    found = answer([*words, "--user", "ann", "--json"], capsys)
    assert found["answers"][0]["start"] == pytest.approx(3600, abs=90)


GPU_SITE = """AccountingStorageEnforce=limits
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:2
NodeName=c[1-2] CPUs=4 RealMemory=8000 Feature=ssd
NodeName=g[1-2] CPUs=4 RealMemory=8000 Gres=gpu:a100:2
PartitionName=all Nodes=c[1-2],g[1-2] Default=YES
"""
GPU_LOG = """JobID|User|Account|QOS|Submit|Start|End|State|AllocCPUS|Timelimit
1|ann|root|low|1970-01-01T00:00:00|1970-01-01T00:10:00|1970-01-01T00:20:00|COMPLETED|4|00:10:00
2|bob|root|low|1970-01-01T00:00:30|1970-01-01T00:15:00|1970-01-01T00:30:00|COMPLETED|4|00:15:00
"""
"""The log starts both jobs minutes later than an idle machine could."""


def of_gpu_site(folder: Path, at: str, cores: int, *more: str) -> list[str]:
    (folder / "slurm.conf").write_text(GPU_SITE)
    (folder / "qos.txt").write_text("Name|Priority|MaxJobsPU\nlow|0|1\nnormal|0|\n")
    (folder / "log.txt").write_text(GPU_LOG)
    policy = f"slurm?conf={folder}/slurm.conf&qos={folder}/qos.txt"
    job = ["--at", at, "--cores", str(cores), "--walltime", "10m"]
    return ["quote", str(folder / "log.txt"), *job, "--policy", policy, *more]


def test_the_state_of_a_quote_is_that_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, state in ((300, [0, 0, 2]), (700, [1, 4, 1]), (1000, [2, 8, 0]), (1500, [1, 4, 0])):
        found = answer(of_gpu_site(tmp_path, str(at), 4, "--json"), capsys)
        assert found["recorded"] == state
        (one,) = found["answers"]
        assert [one["running"], one["busy"], one["waiting"]] == state
    assert main(of_gpu_site(tmp_path, "700", 4)) == 0
    assert "state in the log and under slurm: 1 job runs on 4 of 16 cores, 1 waits" in capsys.readouterr().out
    assert main(of_gpu_site(tmp_path, "1801", 4)) == 2
    assert "is after the last event of the log" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cores", "words", "start"),
    [
        (8, ["--task-gpus", "2", "--tasks", "2"], 1000),
        (8, ["--task-gpus", "1", "--gpu-kind", "a100", "--tasks", "4"], 1000),
        (
            4,
            ["--task-gpus", "3"],
            "no nodes of partition all can hold 4 cores with the requested memory and GPUs",
        ),
        (2, ["--task-gpus", "1", "--gpu-kind", "v100"], "with the requested features"),
        (8, ["--pool", "matlab=2"], 1000),
        (4, ["--pool", "matlab=3"], "slurm rejects the job: 3 of licence matlab is above Licenses 2"),
        (4, ["--feature", "ssd"], 1200),  # the jobs of the log are on these nodes, until 1200 and 1800 s
        (4, ["--feature", "none"], "no nodes of partition all can hold the requested features"),
        (4, ["--task-memory", "9000"], "with the requested memory and GPUs"),
        (16, ["--exclusive"], 1800),
        (
            4,
            ["--user", "bob", "--qos", "low"],
            "QOSMaxJobsPerUserLimit of QOS low, a limit of the site, holds the job now",
        ),
    ],
)
def test_gpus_licences_memory_and_limits_of_a_quoted_job_count_under_slurm(
    cores: int, words: list[str], start: float | str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = of_gpu_site(tmp_path, "1000", cores, *words)
    found = answer([*words, "--json"], capsys)["answers"][0]["start"]
    if not isinstance(start, str):
        assert found == pytest.approx(start, abs=90)
        return
    assert main(words) == 0
    assert start in " ".join(capsys.readouterr().out.split())
    assert found is None or "limit of" in start


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--task-gpus", "0.5"], "has 0.5 GPUs per task; expected whole GPUs under slurm"),
        (["--pool", "ansys=1"], "'ansys' is not a licence of the site; known: matlab"),
        (["--task-gpus", "1", "--gpu-kind", "a", "--gpu-kind", "b"], "expected one GPU type"),
    ],
)
def test_unsupported_questions_about_a_slurm_site_are_refused(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(of_gpu_site(tmp_path, "1000", 4, *words)) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_limits_of_the_partition_that_is_requested_hold(capsys: pytest.CaptureFixture[str]) -> None:
    refused = answer(["quote", str(LOG), "--at", "900", "--partition", "debug", *QUOTE], capsys)
    assert refused["answers"][0]["start"] is None  # 16 cores exceed its cores, and 5 min exceeds its time limit


@pytest.mark.long
def test_the_owner_is_reported_and_names_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quote", str(LOG), "--at", "900", *QUOTE[:-1]]
    assert main([*words, "--user", "alice", "--account", "physics"]) == 0
    assert "job: 16 cores for 5 min, user alice, account physics" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--user", "alcie"]) == 2
    assert "'alcie' is not a user of the log, the state or the site; known: alice and" in capsys.readouterr().err


@pytest.fixture
def misspelt(tmp_path: Path) -> str:
    text = (MINI / "slurm.conf").read_text().replace("PriorityWeightAge", "PriorityWeigthAge")
    (tmp_path / "slurm.conf").write_text(text + "PriorityWeightAssoc=1000\n")
    return f"slurm?conf={tmp_path}/slurm.conf"


UNKNOWN = "nknown to Slurm and ignored: PriorityWeigthAge (did you mean PriorityWeightAge?)"


@pytest.mark.long
def test_a_misspelt_key_and_one_that_is_not_modelled_are_next_to_the_answer_and_on_the_page(
    misspelt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(LOG), "--policy", misspelt, "--policy", "easy", "--out", str(tmp_path / "out")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert UNKNOWN in told
    assert "not modelled: PriorityWeightAssoc." in told
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("PriorityWeigthAge") >= 2
    assert "Unknown to Slurm" in page
    made = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [it["text"] for it in made["not_followed"]["slurm"]] == ["PriorityWeigthAge", "PriorityWeightAssoc"]


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", str(LOG)],
        ["whatif", str(LOG), "--load-times", "1.1"],
        ["quote", str(LOG), "--cores", "16", "--walltime", "5m"],
    ],
)
def test_every_verb_that_loads_a_site_reports_its_slips(
    words: list[str], misspelt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--policy", misspelt]) == 0
    assert UNKNOWN in " ".join(capsys.readouterr().out.split())


BOOT = "&boot=2026-11-21T06:53:40"
RESERVATION = "ReservationName={name} StartTime={start} EndTime={end} Nodes=n1 Flags=MAINT Users=root\n\n"


@pytest.mark.long
def test_local_dates_with_unix_times_need_the_zone_of_the_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", str(tmp_path / "out"), "41273", "--json"]
    compared = ["compare", str(LOG), "--no-page", "--out", str(tmp_path / "out")]
    assert main([*compared, "--policy", POLICY + BOOT]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "field 'boot'" in told
    assert "but the site's time zone is unknown; give it, such as --timezone" in told
    assert main([*compared, "--policy", POLICY + BOOT, "--timezone", "America/Chicago"]) == 0
    capsys.readouterr()
    assert answer(words, capsys)["submitted"] == "2026-11-21 00:56:32"  # Chicago is six hours behind
    assert main([*compared, "--policy", f"{POLICY}{BOOT}&timezone=America/Chicago"]) == 0
    capsys.readouterr()
    assert answer(words, capsys)["submitted"] == "2026-11-21 00:56:32"


@pytest.mark.long
def test_reservations_are_read_in_the_zone_of_the_log_and_named_where_they_lie_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = tmp_path / "reservations.txt"
    dates = {
        "now": ("2026-11-21T08:00:00", "2026-11-21T08:05:00"),
        "old": ("2025-11-21T08:00:00", "2025-11-21T08:05:00"),
    }
    shown.write_text("".join(RESERVATION.format(name=name, start=a, end=b) for name, (a, b) in dates.items()))
    words = ["compare", str(LOG), "--no-page", "--out", str(tmp_path / "out")]
    words += ["--policy", f"{POLICY}&reservations={shown}&boot=2027-11-21T08:00:00"]
    assert main([*words, "--timezone", "Europe/Berlin"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "Outside the period of the log, so without effect: reservation old (2025-11-21 08:00 to 08:05) and boot time "
        "2027-11-21 08:00 (it determines only the phase of the scheduler's periods)." in told
    )
    assert main([*words, "--timezone", "UTC"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "reservation now (2026-11-21 08:00 to 08:05)" in told, "the log ends at 07:17 UTC"


def test_a_recipe_that_names_a_site_reports_its_slips(
    misspelt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'policy = "{misspelt}"\n[workload]\nfile = "{LOG}"\n')
    assert main(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    assert UNKNOWN in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def halves(tmp_path: Path) -> str:
    """A site of two kinds of nodes, and a log of two short jobs and a wide one on it."""
    conf = "NodeName=n[1-4] CPUs=4\nNodeName=g[1-2] CPUs=8 Gres=gpu:1\nPartitionName=cpu Nodes=n[1-4] Default=YES\n"
    (tmp_path / "slurm.conf").write_text(conf + "PartitionName=gpu Nodes=g[1-2]\nPartitionName=all Nodes=ALL\n")
    job = "{0} {1} -1 100 {2} -1 -1 {2} 200 -1 1 1 1 -1 1 -1 -1 -1\n"
    (tmp_path / "log.swf").write_text(job.format(1, 0, 4) + job.format(2, 1, 4) + job.format(3, 2, 16))
    return f"slurm?conf={tmp_path}/slurm.conf"


@pytest.mark.parametrize(
    ("nodes", "cores", "more"), [("+2", 40, "2 more nodes"), ("gpu:+2", 48, "of gpu"), ("-1", 28, "1 fewer node")]
)
def test_nodes_of_a_partition_are_like_its_commonest(
    halves: str, nodes: str, cores: int, more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "log.swf")
    found = answer(["whatif", log, "--policy", halves, "--add-nodes", nodes, "--json"], capsys)
    now, change = found["changes"]
    assert (now["cores"], change["cores"]) == (32, cores)
    assert more in change["change"]
    assert (
        main(["compare", log, "--policy", halves, "--add-nodes", nodes, "--no-page", "--out", str(tmp_path / "o")]) == 0
    )
    told = " ".join(capsys.readouterr().out.split())
    assert f"machine: {cores} cores (slurm.conf, nodes {nodes})" in told
    assert "Validation of" not in told
    assert ("rejected by admission" in told) == (nodes == "-1")  # the wide job needs all four nodes of cpu


def test_a_recipe_takes_nodes_too(halves: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "recipe.toml").write_text(f'policy = "{halves}"\n[workload]\nfile = "log.swf"\n')
    words = ["run", str(tmp_path / "recipe.toml"), "--add-nodes", "+1,gpu:-1", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["platform"]["cores"] == 28


@pytest.mark.parametrize(
    ("policy", "nodes", "told"),
    [
        ("slurm", "ten", "'ten' is not a number of nodes; expected +10"),
        ("slurm", "big:+1", "'big' is not a partition; known: cpu, gpu, all"),
        ("slurm", "gpu:-3", "3 nodes fewer; partition 'gpu' has 2 of 8 cores"),
        ("easy", "+1", "needs a policy that describes its site"),
    ],
)
def test_nodes_that_are_none_are_refused(
    policy: str, nodes: str, told: str, halves: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = halves if policy == "slurm" else policy
    assert main(["compare", str(tmp_path / "log.swf"), "--policy", asked, "--add-nodes", nodes, "--machine", "32"]) == 2
    assert told in capsys.readouterr().err


def test_the_compiled_engine_is_an_error_with_the_engines_that_run_slurm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(LOG), "--policy", POLICY, "--engine", "compiled", "--no-page"]) == 2
    error = capsys.readouterr().err
    assert "field 'engine': compiled cannot run this: Slurm's scheduler requires the engine simpy; use auto" in error
