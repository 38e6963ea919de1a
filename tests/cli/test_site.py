"""The site of ``--site``, and variants of it without a file."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import gridsim
from gridsim.cli import main
from gridsim.policy.presets import policy, site_machine
from gridsim.questions.calibrate import calibrate
from gridsim.questions.changes import changes_of
from gridsim.questions.whatif import whatif
from gridsim.scenario import Scenario

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"
LOG = str(MINI / "sacct.txt")
FILES = f"assoc={MINI}/assoc.cfg,qos={MINI}/qos.txt,boot=2026-11-21T06:53:40,timezone=UTC"
SITE = f"{MINI}/slurm.conf,{FILES}"
WIDER = "PriorityWeightJobSize=20000"
TIMING = "SchedulerParameters=bf_continue"


def compared(folder: Path, *words: str) -> dict[str, Any]:
    assert main(["compare", LOG, "--no-page", "--shake", "0", "--out", str(folder), *words]) == 0
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def schedules(folder: Path, *labels: str) -> dict[str, bytes]:
    return {label: (folder / label / "jobs.csv").read_bytes() for label in labels}


def from_file(folder: Path, label: str, line: str = "") -> str:
    """Return the option of a policy with a configuration file: that of the site, with one more line."""
    file = folder / f"{label}.conf"
    file.write_text(f"Include {MINI}/slurm.conf\n{line}\n")
    return f"--policy={label}=slurm?conf={file}&{FILES.replace(',', '&')}"


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def from_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of the site and two variants that are separate files."""
    folder = tmp_path_factory.mktemp("files")
    given = {"site": "", "wide": WIDER, "timing": TIMING}
    compared(folder, "--platform", f"{MINI}/slurm.conf", *(from_file(folder, *each) for each in given.items()))
    return folder


def test_variants_have_the_schedules_of_separate_files(from_files: Path, tmp_path: Path) -> None:
    variants = ["--policy=site", f"--policy=wide=site?{WIDER}", f"--policy=timing=site?{TIMING}"]
    info = compared(tmp_path, "--site", SITE, *variants)
    labels = ("site", "wide", "timing")
    assert schedules(tmp_path, *labels) == schedules(from_files, *labels)
    assert len(set(schedules(tmp_path, *labels).values())) == 3
    assert info["own"] == "site"
    assert "changes" not in info["policies"]["site"]
    assert f"changes='{WIDER}'" in info["policies"]["wide"]
    assert f"changes='{TIMING}'" in info["policies"]["timing"]
    assert json.loads((tmp_path / "wide" / "run.json").read_text())["policy"] == info["policies"]["wide"]


def test_the_policy_slurm_accepts_the_same_keys(from_files: Path, tmp_path: Path) -> None:
    wide = f"wide=slurm?conf={MINI}/slurm.conf&{FILES.replace(',', '&')}&{WIDER}"
    info = compared(tmp_path, "--platform", f"{MINI}/slurm.conf", "--policy", wide)
    assert schedules(tmp_path, "wide") == schedules(from_files, "wide")
    assert "own" not in info  # a variant is not the site's own policy


def test_python_gives_the_schedules_of_the_command_line(from_files: Path) -> None:
    log = gridsim.read_workload(LOG, rules={"never-ran": "keep"})
    found = gridsim.compare(log, ["site", f"wide=site?{WIDER}", "easy"], site=SITE, shake=0)
    for label in ("site", "wide"):
        with (from_files / label / "jobs.csv").open(newline="") as file:
            waits = {int(row["job"]): float(row["wait"]) for row in csv.DictReader(file) if row["wait"]}
        record = found.records[label]
        ran = dict(zip(record.workload.job.tolist(), record.wait.tolist(), strict=True))
        assert {job: ran[job] for job in waits} == waits
        assert len(waits) > 270
    assert found.baseline == "site"


def test_questions_in_python_are_about_the_site() -> None:
    log = gridsim.read_workload(LOG)
    quoted = gridsim.quote(log, cores=4, walltime=300, at=60, site=SITE)
    assert [it.policy for it in quoted.answers] == ["site", "easy", "conservative"]
    machine = site_machine(SITE)
    assert calibrate(log, ["now=site"], platform=machine, site=SITE).own == "now"
    (wider,) = changes_of(log, machine, cores=[0.25], policies=[policy("site", SITE)])
    found = whatif(log, [wider], site=SITE)
    assert (found.policy, [it.cores for it in found.outcomes]) == ("site", [32, 40])


def test_a_recipe_gives_the_schedules_of_the_command_line(from_files: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    place = MINI.relative_to(MINI.parents[2])
    (tmp_path / "here").symlink_to(MINI.parents[2])
    keys = {"conf": "slurm.conf", "assoc": "assoc.cfg", "qos": "qos.txt"}
    table = "\n".join(f"{key} = 'here/{place}/{name}'" for key, name in keys.items())
    table += "\nboot = '2026-11-21T06:53:40'\ntimezone = 'UTC'"
    recipe.write_text(f"policy = 'wide=site?{WIDER}'\n[workload]\nfile = 'here/{place}/sacct.txt'\n[site]\n{table}\n")
    assert main(["run", str(recipe), "--out", str(tmp_path / "table")]) == 0
    assert (tmp_path / "table" / "jobs.csv").read_bytes() == schedules(from_files, "wide")["wide"]
    recipe.write_text(f"policy = 'site?{TIMING}'\n[workload]\nfile = 'here/{place}/sacct.txt'\n")
    with pytest.raises(gridsim.InputError, match="needs a site: --site FILE, site=FILE in Python, or the key site"):
        Scenario.from_toml(recipe)
    assert main(["run", str(recipe), "--site", SITE, "--out", str(tmp_path / "option")]) == 0
    assert (tmp_path / "option" / "jobs.csv").read_bytes() == schedules(from_files, "timing")["timing"]


def test_a_campaign_varies_the_site(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        f"site = '{SITE}'\n[workload]\nfile = '{LOG}'\ntransforms = ['slice?jobs=60']\n"
        f"[factors]\npolicy = ['site', 'wide=site?{WIDER}']\n"
    )
    assert main(["sweep", str(campaign), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert (tmp_path / "out" / "runs.csv").read_text().count("\nwide") + 1 >= 1
    inputs = json.loads((tmp_path / "out" / "campaign.json").read_text())["inputs"]
    assert {Path(name).name for name in inputs} >= {"slurm.conf", "assoc.cfg", "qos.txt", "sacct.txt"}


def test_without_policies_the_site_is_compared_with_two_usual_ones_on_its_nodes(tmp_path: Path) -> None:
    info = compared(tmp_path, "--site", SITE)
    assert list(info["policies"]) == ["site", "easy", "conservative"]
    assert info["own"] == "site"
    assert info["platform"]["cores"] == 32
    assert {name: (tmp_path / name / "allocations.csv").is_file() for name in info["policies"]} == dict.fromkeys(
        info["policies"], True
    )


def test_the_machine_of_the_site_yields_to_a_given_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path / "a", "--site", SITE, "--policy", "easy")
    assert "machine: 32 cores on 8 nodes (slurm.conf)" in capsys.readouterr().out
    compared(tmp_path / "b", "--site", SITE, "--policy", "easy", "--machine", "64")
    assert "machine: 64 cores (given)" in capsys.readouterr().out
    compared(tmp_path / "c", "--site", SITE, "--policy", "easy", "--add-nodes", "2")
    assert "machine: 40 cores on 10 nodes (slurm.conf)" in capsys.readouterr().out


def test_the_own_policy_is_the_unchanged_site(tmp_path: Path) -> None:
    variant = f"--policy=fast=site?{TIMING}"
    assert compared(tmp_path / "a", "--site", SITE, variant, "--policy=now=site")["own"] == "now"
    assert compared(tmp_path / "b", "--site", SITE, variant, "--policy=now=site", "--own", "fast")["own"] == "fast"


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", LOG],
        ["whatif", LOG, "--add-nodes", "1"],
        ["quote", LOG, "--cores", "4", "--walltime", "5m"],
    ],
)
def test_questions_are_about_the_site(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--site", SITE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    asked = found.get("policy") or list(found.get("policies") or (it["policy"] for it in found["answers"]))
    assert asked in ("site", ["site", "easy", "conservative"])


def test_a_schedule_is_checked_on_the_nodes_of_the_site(
    from_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(from_files / "site"), "--site", SITE]) == 0
    assert "32 cores" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("site", "told"),
    [
        (["a.conf", "b.conf"], "field 'site': is given twice; expected one site"),
        (["assoc=a.cfg"], "is not FILE[,KEY=PATH…]"),
        ([""], "is not FILE[,KEY=PATH…]"),
        (["slurm.conf,assoc"], "'assoc' is not FILE[,KEY=PATH…]"),
        (["slurm.conf,qos=a,qos=b"], "gives qos twice"),
        (["slurm.conf,qoss=a"], "unknown key of the site 'qoss'; did you mean 'qos'"),
        (["no-such.conf"], "no such file; expected a slurm.conf"),
    ],
)
def test_a_site_that_is_none_is_refused(site: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(["compare", *(f"--site={it}" for it in site)], capsys)


def test_the_policy_of_the_site_needs_a_site(capsys: pytest.CaptureFixture[str]) -> None:
    assert "needs a site: --site FILE" in refused(["compare", "--policy", "x=site?PriorityWeightAge=1"], capsys)


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        ("PriorityWeigthAge=1", "unknown key of a site 'PriorityWeigthAge'; did you mean 'PriorityWeightAge'"),
        ("PriorityWeightAge=1&PriorityWeightAge=2", "gives PriorityWeightAge twice"),
        ("PriorityWeightAge=1&priorityweightage=2", "field 'PriorityWeightAge': is given twice"),
        ("qos=a&qos=b", "gives qos twice"),
        ("partition.long.MaxTime=1&partition.long.maxtime=2", "field 'partition.long.MaxTime': is given twice"),
        ("SchedulerParameters=defer&SchedulerParameters+=bf_interval=1", "field 'SchedulerParameters': is given twice"),
        ("SchedulerParameters-=defer", "removes 'defer', which"),
        ("SchedulerParameters-=bf_interval=2", "removes 'bf_interval=2', which"),
        ("SchedulerParameters+=bf_intervall=2", "unknown option of SchedulerParameters 'bf_intervall'"),
        ("SchedulerParameters+=", "is empty; expected a value"),
        ("PriorityWeightAge=", "is empty; expected a value"),
        (
            "PriorityWeightAge+=5",
            "field 'PriorityWeightAge+': is not a list of options; expected PriorityWeightAge=VALUE",
        ),
        ("qos+=a.txt", "unknown key of a site 'qos'"),
        ("partition.long.MaxTime-=1", "is not a list of options"),
        ("PriorityWeightAge=much", "field 'PriorityWeightAge': is 'much'; expected a whole number"),
        ("partition.big.MaxTime=1", "unknown partition 'big'"),
        ("partition.long.MaxTme=1", "unknown field of a partition 'MaxTme'; did you mean 'MaxTime'"),
        ("partition.long.MaxTime=soon", "field 'partition.long.MaxTime': is 'soon'; expected a time"),
        ("partition.MaxTime=1", "has no name; expected partition.NAME.KEY"),
        ("queue.long.MaxTime=1", "unknown owner in 'queue.long.MaxTime' 'queue'"),
        ("qos.norm.Priority=1", "unknown QOS 'norm'; did you mean 'normal'"),
        ("qos.normal.Prio=1", "unknown field of a qos 'Prio'"),
        ("qos.normal.Priority=high", "field 'qos.normal.Priority': is 'high'; expected a number"),
        ("NodeName=n9", "field 'NodeName': defines a line, which a variant cannot change"),
        ("boot=soon", "soon"),
        ("nodes=2", "slurm: nodes was renamed; give add_nodes"),
        ("PriorityWeightAge", "is not parameter=value"),
        ("site=other.conf", "field 'site': is not a text"),
        ("conf=slurm.conf,assoc=assoc.cfg", "parameters of slurm are separated by & only"),
        ("partition.long.Shared=YES&partition.long.OverSubscribe=NO", "partition.long.OverSubscribe': is given twice"),
    ],
)
def test_a_variant_that_is_none_is_refused(variant: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(["calibrate", LOG, "--site", SITE, "--policy", f"x=site?{variant}"], capsys)


def test_the_option_that_a_variant_replaces_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    told = "the option --set-limit was renamed; give --policy 'LABEL=site?qos.NAME.LIMIT=VALUE'"
    assert told in refused(["compare", "--set-limit", "qos.a.MaxJobs=1"], capsys)
    told = "give recipe with policy = 'LABEL=site?qos.NAME.LIMIT=VALUE'"
    assert told in refused(["run", "recipe.toml", "--set-limit", "qos.a.MaxJobs=1"], capsys)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("qos={}/qos-new.txt", "qos"),
        ("priorityweightage=5000", "priority"),
        ("PriorityWeightAge=5000", "priority"),
        ("SchedulerParameters+=bf_interval=10,bf_max_job_test=100", "scheduling"),
        ("SchedulerParameters-=bf_interval", "scheduling"),
        ("partition.long.MaxTime=2-00:00:00", "partitions"),
        ("partition.long.Nodes=n[2-5]", "partitions"),
        ("partition.long.Default=YES", "default_partition"),
        ("qos.high.Priority=77", "qos"),
        ("qos.high.GrpTRES=cpu=8", "qos"),
        ("qos.high.MaxWall=10", "qos"),
    ],
)
def test_a_key_changes_one_part_of_the_site(
    key: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (MINI / "qos.txt").read_text()
    (tmp_path / "qos-new.txt").write_text(text.replace("high|100", "high|200"))
    before, after = (policy(text, SITE).site for text in ("site", f"site?{key.format(tmp_path)}"))
    assert [it.name for it in fields(before) if getattr(after, it.name) != getattr(before, it.name)] == [field]
    variant = f"x=site?{key.format(tmp_path)}"
    job = ["--cores", "4", "--walltime", "5m", "--at", "1m"]
    assert main(["quote", LOG, "--site", SITE, "--policy", variant, *job, "--json"]) == 0
    assert [it["policy"] for it in json.loads(capsys.readouterr().out)["answers"]] == ["x"]


def test_keys_and_their_effects() -> None:
    keys = (
        "SchedulerParameters+=bf_interval=10,bf_max_job_test=100&SchedulerParameters-=bf_window&PriorityFlags+=MAX_TRES"
    )
    site = policy(f"site?{keys}&partition.long.MaxTime=2-0&qos.high.MaxTRESPerUser=cpu=6,node=2", SITE).site
    before = policy("site", SITE).site
    assert site.scheduling.interval == 10_000_000
    assert (site.scheduling.tests, site.scheduling.resolution) == (100, before.scheduling.resolution)
    assert site.scheduling.window != before.scheduling.window
    assert site.priority.billed == "max"
    assert site.partition("long").longest == 2 * 86_400_000_000
    assert site.partition("batch") == before.partition("batch")
    assert next(each for each in site.qos if each.name == "high").user_cores == 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("PriorityWeightAssoc=7", "PriorityWeightAssoc"),
        ("SlurmdPort=7000", "SlurmdPort"),
        ("SchedulerParameters+=bf_busy_nodes,bf_max_time=30", "SchedulerParameters bf_busy_nodes and"),
        ("partition.long.Hidden=YES", "PartitionName Hidden"),
        ("qos.high.GrpWall=60", "QOS GrpWall"),
    ],
)
def test_unmodelled_keywords_are_named_as_without_effect(
    key: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", LOG, "--site", SITE, "--policy", "site", "--policy", f"x=site?{key}"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Under x: changed without effect, because they are not modelled: {named}" in told
    assert "not modelled (largest" not in told


def test_the_page_describes_a_variant_by_its_changed_keys(tmp_path: Path) -> None:
    words = ["compare", LOG, "--site", SITE, "--policy", "site", "--policy", f"wide=site?{WIDER}"]
    assert main([*words, "--shake", "0", "--out", str(tmp_path)]) == 0
    assert WIDER in (tmp_path / "report.html").read_text().split("Policy wide")[1][:400]


def test_an_audit_takes_the_machine_of_the_site(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "examples" / "gpus"
    audit = ["workload", "audit", str(folder / "sacct.txt"), "--json"]
    assert main([*audit, "--site", f"{folder / 'slurm.conf'},qos={folder / 'qos.txt'}"]) == 0
    of_site = json.loads(capsys.readouterr().out)
    assert main([*audit, "--platform", str(folder / "slurm.conf")]) == 0
    assert of_site == json.loads(capsys.readouterr().out)
    assert main([*audit, "--machine", "4"]) == 0
    assert of_site != json.loads(capsys.readouterr().out)
