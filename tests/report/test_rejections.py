"""Praise of a policy includes the jobs that it rejects, and the report lists alternative user behaviour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsim.ask import compare
from gridsim.cli import main
from gridsim.model.site import Site
from gridsim.model.site_file import read_site
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.site_policy import machine
from gridsim.questions.calibrate import calibrate
from gridsim.questions.changes import changes_of
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule
from gridsim.questions.whatif import whatif
from gridsim.report import rejections, validation, whatif_text
from gridsim.report.comparison import Comparison
from gridsim.report.explain_text import sentences
from gridsim.simulation import Run, simulate
from gridsim.workload.read import read_workload
from tests.entities.test_walltime_limit import HOUR, site
from tests.policy.slurm.running import SECOND

pytestmark = pytest.mark.long

JOBS = {
    "submit": [60 * row for row in range(40)],
    "runtime": [6 * HOUR if row % 4 == 0 else 600 for row in range(40)],
    "cores": [4] * 40,
}


def compared(limits: str = "refuse", **more: Site) -> Comparison:
    policies = {"today": Slurm(site=site()), "short": Slurm(site=site(2 * HOUR * SECOND))}
    policies |= {label: Slurm(site=each) for label, each in more.items()}
    return compare(Workload.from_columns(**JOBS), policies, options=Run(limits=limits))  # type: ignore[arg-type]


def test_the_first_sentence_states_the_number_of_rejections_by_policy() -> None:
    found = compared()
    assert found.best == "short"
    assert found.sentences()[0] == (
        "Of 40 jobs, short rejects 10 (25 %) and today none; 30 ran under every policy "
        "(--limits clip or split: simulate users who shorten or split jobs that exceed a time limit)."
    )


def test_where_all_reject_as_many_the_answer_begins_with_the_waits() -> None:
    workload = Workload.from_columns(**JOBS)
    same = Slurm(site=site(2 * HOUR * SECOND))
    found = compare(workload, {"a": same, "b": same})
    assert rejections.answer(found) == []


def test_clipped_jobs_run_under_both_and_what_was_lost_is_reported() -> None:
    found = compared("clip")
    assert found.comparable
    assert rejections.answer(found) == []
    (told,) = rejections.caveats(found)
    assert told == (
        "Under short, 10 jobs above the time limit requested the limit instead: 10 of them were killed at the limit, "
        "and their 80 core-hours were lost."
    )


def test_split_jobs_stay_paired_by_job_and_no_work_is_lost() -> None:
    found = compared("split")
    assert found.comparable
    assert found.metrics["short"]["completed"] == 40
    area = {label: float(record.area.sum()) for label, record in found.records.items()}
    assert area["short"] == pytest.approx(area["today"])
    (told,) = rejections.caveats(found)
    assert told.startswith("Under short, 10 jobs above the time limit were split into chains with 30")


def test_a_job_that_ended_within_the_limit_was_in_no_chain() -> None:
    runtime = np.where(np.arange(40) < 4, 5 * HOUR, 600)
    workload = Workload.from_columns(**JOBS | {"runtime": runtime}, estimate=[6 * HOUR] * 40)
    found = compare(workload, {"short": Slurm(site=site(2 * HOUR * SECOND))}, options=Run(limits="split"))
    (told,) = rejections.caveats(found)
    assert told.startswith(
        "Under short, 4 jobs above the time limit were split into chains with 12 pieces in total "
        "(36 more ended within the limit); "
    )


def test_a_chain_first_starts_with_its_first_piece() -> None:
    record = compared("split").records["short"]
    assert record.beyond is not None
    chained = record.beyond.pieces > 0
    assert chained.sum() == 10
    assert (record.first_start_us < record.start_us)[chained].all()
    assert (record.first_start_us == record.start_us)[~chained].all()


def test_the_wait_of_a_chain_is_explained_as_it_is_counted() -> None:
    record = compared("split").records["short"]
    assert record.beyond is not None
    row = int(np.flatnonzero(record.beyond.pieces == 2)[-1])
    schedule = JobSchedule.of(record)
    told = explain(schedule, int(record.workload.job[row]))
    assert (told.wait, told.pieces, told.earlier) == (record.wait[row], 3, 4 * HOUR)
    assert schedule.wait == pytest.approx(record.wait, nan_ok=True)
    lines = sentences(told, "short")
    assert "under short, summed over the 3 pieces of its chain." in lines[0]
    assert any(line.startswith("Its last piece started ") for line in lines)


def test_jobs_that_request_too_much_and_need_less_have_one_piece() -> None:
    workload = Workload.from_columns(**JOBS | {"runtime": [600] * 40}, estimate=[6 * HOUR] * 40)
    found = compare(workload, {"short": Slurm(site=site(2 * HOUR * SECOND))}, options=Run(limits="split"))
    assert list(rejections.caveats(found)) == [
        "Under short, 40 jobs above the time limit ended within it, in one piece."
    ]


CONF = "NodeName=n1 CPUs=4\nPartitionName=a Nodes=n1 MaxTime={}\nSchedulerParameters=batch_sched_delay=0\n"


@pytest.mark.parametrize("limits", ["refuse", "clip", "split"])
def test_the_command_and_a_recipe_accept_reactions_of_users(
    limits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.swf"
    job = "{} {} -1 {} 4 -1 -1 4 {} -1 1 1 1 -1 1 -1 -1 -1\n"
    log.write_text("".join(job.format(row + 1, 60 * row, run, run) for row, run in enumerate((60, 9000, 120))))
    for name, most in (("long", "UNLIMITED"), ("short", "60")):
        (tmp_path / f"{name}.conf").write_text(CONF.format(most))
    words = [f"--policy={name}=slurm?conf={tmp_path}/{name}.conf" for name in ("long", "short")]
    assert main(["compare", str(log), *words, "--limits", limits, "--out", str(tmp_path / "out"), "--no-page"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("short rejects 1 (33 %)" in told) == (limits == "refuse")
    assert (tmp_path / "out" / "short" / "pieces.csv").exists() == (limits == "split")
    if limits == "split":
        capsys.readouterr()
        assert main(["explain", str(tmp_path / "out"), "2", "--policy", "short"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "under short, summed over the 3 pieces of its chain" in told
        assert "policy waits" in told
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'policy = "slurm?conf=short.conf"\n[workload]\nfile = "log.swf"\n[options]\nlimits = "{limits}"\n'
    )
    assert main(["run", str(recipe), "--out", str(tmp_path / "run"), "--json"]) == 0
    ran = {"refuse": '"unadmitted": 1.0', "clip": '"killed_walltime": 1.0', "split": '"completed": 3.0'}
    assert ran[limits] in capsys.readouterr().out


SACCT = """\
JobID|Submit|Start|End|TimelimitRaw|State|NNodes|AllocCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|SubmitLine
7|1760000000|1760000005|1760000605|20|COMPLETED|2|4|4|12000M|cpu=4,mem=12000M,node=1|cpu=4,node=2|sbatch job.sh
8|1760000010|1760000015|1760000605|20|COMPLETED|1|4|4|9000M|cpu=4,mem=9000M,node=1|cpu=4,node=1|sbatch job.sh
"""
SITE = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-4] CPUs=4 RealMemory=8000
PartitionName=batch Nodes=n[1-4] Default=YES
"""


@pytest.fixture
def logged(tmp_path: Path) -> tuple[Path, Path]:
    """A log and the site's file: memory for job 7 is on two nodes, and no node has enough for job 8."""
    log, conf = tmp_path / "sacct.txt", tmp_path / "slurm.conf"
    log.write_text(SACCT)
    conf.write_text(SITE)
    return log, conf


def test_a_job_whose_memory_was_on_several_nodes_runs(logged: tuple[Path, Path]) -> None:
    log, conf = logged
    workload = read_workload(log)
    assert simulate(workload, policy=Slurm(conf=str(conf))).record.ran.tolist() == [True, False]
    assert simulate(workload, policy="easy", platform=read_site(conf).on_nodes()).record.ran.tolist() == [True, False]


@pytest.mark.parametrize("slurm", [True, False])
def test_jobs_that_ran_in_the_log_and_are_rejected_are_counted_apart(logged: tuple[Path, Path], slurm: bool) -> None:
    log, conf = logged
    policies = {"today": Slurm(conf=str(conf)) if slurm else "easy"}
    found = compare(read_workload(log), policies, platform=None if slurm else read_site(conf).on_nodes(), own="today")
    under = "today (PartitionConfig)" if slurm else "today"
    assert list(rejections.caveats(found)) == [
        f"1 job ran in the log but the simulation rejects it under {under}: the model of the site is wrong for it."
    ]


def test_a_failure_of_the_model_is_counted_once(logged: tuple[Path, Path]) -> None:
    log, conf = logged
    found = compare(read_workload(log), {"today": Slurm(conf=str(conf)), "easy": "easy"})
    assert rejections.refused(found) == {"today": 0, "easy": 0}
    rows = {row.title: [cell.text for cell in row.cells.values()] for row in found.table()}
    assert rows["model failures"] == ["1", "0"], "easy has one pool of cores, without memory"
    assert not {"rejected (cannot run)", "rejected by admission"} & rows.keys()
    assert sum("reject" in sentence for sentence in found.sentences()) == 1
    assert not any("turn" in sentence for sentence in found.sentences())


def test_a_job_that_another_policy_rejects_by_its_own_rules_is_no_failure(logged: tuple[Path, Path]) -> None:
    log, conf = logged
    strict = conf.with_name("strict.conf")
    strict.write_text(SITE.replace("Default=YES", "Default=YES MaxTime=1") + "EnforcePartLimits=ALL\n")
    found = compare(read_workload(log), {"today": Slurm(conf=str(conf)), "strict": Slurm(conf=str(strict))})
    assert rejections.refused(found) == {"today": 0, "strict": 1}, "job 7; job 8 is a failure under both"
    assert found.metrics["strict"]["model_failures"] == 1


def test_without_a_common_job_one_plain_sentence_remains(logged: tuple[Path, Path]) -> None:
    log, conf = logged
    log.write_text("\n".join(line for line in SACCT.splitlines() if not line.startswith("7|")) + "\n")
    found = compare(read_workload(log), {"today": Slurm(conf=str(conf)), "again": Slurm(conf=str(conf))})
    told = found.sentences()
    assert told[0] == "No job ran under any policy, so there is nothing to compare."
    assert any(sentence.startswith("1 job ran in the log but the simulation rejects it") for sentence in told)
    assert not any("unknown" in sentence for sentence in told)
    told = compare(read_workload(log), {"today": Slurm(conf=str(conf)), "easy": "easy"}).sentences()
    assert told[0] == "No job ran under both today and easy, so there is nothing to compare."
    assert not any("unknown" in sentence for sentence in told)


def test_what_if_and_calibrate_count_failures_of_the_model_too(logged: tuple[Path, Path]) -> None:
    log, conf = logged
    workload = read_workload(log)
    failure = "1 job ran in the log but the simulation rejects it under slurm (PartitionConfig): the model of the site "
    asked = whatif(
        workload,
        changes_of(workload, machine(workload, policies=[Slurm(conf=str(conf))]), loads=[2.0]),
        policy=Slurm(conf=str(conf)),
        platform=machine(workload, policies=[Slurm(conf=str(conf))]),
        label="slurm",
    )
    replayed = calibrate(workload, {"slurm": Slurm(conf=str(conf))}, platform=read_site(conf).on_nodes())
    for told, counts in (
        (whatif_text.sentences(asked), "Jobs: 2 in the log; 1 ran in every run."),
        (
            validation.sentences(replayed),
            "Jobs: 2 in the log; 2 ran on the machine and 1 under slurm, 1 of them in every run.",
        ),
    ):
        assert sum(sentence.startswith(failure) for sentence in told) == 1
        assert counts in told
