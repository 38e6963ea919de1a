"""The page for a decision: headline, recommendation, descriptions, the recorded log, usage, and hidden names."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gridsim.cli import main
from gridsim.metrics.compare import Difference
from gridsim.model.capacity import NodeGroup
from gridsim.model.failures import Failures
from gridsim.model.platform import Platform
from gridsim.model.site import Notice
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.questions.changes import NOW
from gridsim.questions.compare import evidence_of
from gridsim.questions.replay import LOG, recorded_schedule
from gridsim.record import Reasons, Record, Refusal, Status
from gridsim.report import gantt, page, tables
from gridsim.report.comparison import Comparison
from gridsim.report.headline import headline
from gridsim.report.policy_descriptions import description
from gridsim.result import Result
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import Lublin

EASY = "Backfilling(ordering=Fifo(), reserve=Easy())"


def words(markup: str) -> str:
    """Visible text of a page: without scripts and tags."""
    without = re.sub(r"<(script|style)\b.*?</\1>", "", markup, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


def given(comparison: Comparison, verdict: str, *, own: str | None = "fcfs", **changes: Any) -> Comparison:
    """The comparison of fcfs and greedy, with a given verdict of greedy against fcfs."""
    two = dict(list(comparison.records.items())[:2])
    found = Difference(
        metric="wait", policy="greedy", baseline="fcfs", policy_mean=3600.0, baseline_mean=7200.0,
        mean=-3600.0, low=-4000.0, high=-3200.0, ratio=0.5, ratio_low=0.45, ratio_high=0.56, effect=-2.0,
        p=1e-6, p_holm=3e-6, better=0.6, worse=0.1, same=0.3, jobs=1000, blocks=8, verdict=verdict,
    )  # fmt: skip
    numbers = {label: {**comparison.metrics[label]} for label in two}
    numbers["fcfs"]["wait_mean"], numbers["greedy"]["wait_mean"] = 7200.0, 3600.0
    info = {**comparison.info, **({"own": own} if own else {})}
    made = {"records": two, "metrics": numbers, "differences": [found], "groups": [], "info": info, **changes}
    return replace(comparison, **made)


# ---- headline ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "badge"),
    [
        ("better", "significant"),
        ("no clear difference", "not significant"),
        ("too little data", "too little data"),
    ],
)
def test_the_headline_is_one_sentence_against_the_own_policy_with_a_badge(
    comparison: Comparison, verdict: str, badge: str
) -> None:
    main_result = headline(given(comparison, verdict))
    assert main_result is not None
    assert main_result.sentence == "The mean wait under greedy is 50 % lower than under fcfs, the site's own policy."
    assert main_result.badge == badge
    assert main_result.interval == (
        "95 % interval 44 to 55 % lower; p < 0.001. Mean wait: 1 h under greedy, 2 h under fcfs (1,000 jobs)."
    )


def test_without_an_own_policy_the_first_one_is_the_base(comparison: Comparison) -> None:
    main_result = headline(given(comparison, "better", own=None))
    assert main_result is not None
    assert main_result.sentence == "The mean wait under greedy is 50 % lower than under fcfs."


def test_the_own_policy_is_named_if_it_is_the_best(comparison: Comparison) -> None:
    main_result = headline(given(comparison, "better", own="greedy", order=("greedy", "fcfs")))
    assert main_result is not None
    assert main_result.sentence == (
        "The mean wait is lowest under greedy, the site's own policy; under fcfs, the next best, it is 100 % higher."
    )
    assert main_result.recommendation == "Keep greedy: the mean wait is significantly higher under every other policy."


def test_a_recommendation_needs_results_that_support_it(comparison: Comparison) -> None:
    def advice(verdict: str, **changes: Any) -> str:
        found = headline(given(comparison, verdict, **changes))
        assert found is not None
        return found.recommendation

    assert advice("better") == "Use greedy instead of fcfs; no group of jobs waits significantly longer."
    assert advice("no clear difference") == "Keep fcfs: this log shows no significant advantage of another policy."
    assert advice("no clear difference", own=None) == ""
    assert advice("too little data") == ""
    loser = next(row for row in comparison.groups if row.kind == "size" and row.policy == "greedy")
    worse = replace(
        loser, verdict="worse", ratio=2.0, ratio_low=1.5, ratio_high=3.0, low=600.0, high=1200.0, baseline="fcfs",
        policy_mean=7200.0, baseline_mean=3600.0,
    )  # fmt: skip
    assert advice("better", groups=[worse]).startswith("Consider greedy instead of fcfs, but check the groups")


@pytest.mark.parametrize(
    ("larger", "text"),
    [(3500.0, "9 more nodes under fcfs would reduce waits as much."), (5000.0, "would reduce waits less.")],
)
def test_a_larger_machine_with_the_same_effect_is_named(comparison: Comparison, larger: float, text: str) -> None:
    def effects(policy: str, *waits: float) -> Any:
        labels = (NOW, "5 more nodes", "9 more nodes")
        outcomes = [
            SimpleNamespace(label=label, cores=128 + 8 * place, numbers={"wait_mean": wait})
            for place, (label, wait) in enumerate(zip(labels, waits, strict=False))
        ]

        class Found(SimpleNamespace):
            def __getitem__(self, label: str) -> Any:
                return next(one for one in outcomes if one.label == label)

        return Found(policy=policy, outcomes=outcomes)

    whatifs = (effects("fcfs", 7200.0, 6000.0, larger), effects("greedy", 3600.0))
    found = headline(given(comparison, "better", whatifs=whatifs))
    assert found is not None
    assert found.recommendation.endswith(text)


def test_a_simulation_that_differs_from_the_log_supports_no_recommendation(comparison: Comparison) -> None:
    agreed = SimpleNamespace(
        median=5.0, median_low=1.0, median_high=9.0, jobs=900, wait=9000.0, logged_wait=1000.0, within_60=0.1
    )
    replay: Any = SimpleNamespace(
        policy="fcfs", agreement=agreed, own=True, alone=False, extended=False, several_runs=False, preempted={},
        provenance={}, far=True,
    )  # fmt: skip
    found = headline(given(comparison, "better", replay=replay))
    assert found is not None
    assert found.recommendation == ""


def test_one_policy_has_no_headline(comparison: Comparison) -> None:
    one = {"fcfs": comparison.records["fcfs"]}
    assert headline(replace(comparison, records=one, differences=[], groups=[])) is None


@pytest.fixture(scope="module")
def logged(making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]) -> Comparison:
    """A comparison with recorded waits of a minute, two accounts and GPUs."""
    records = making(600, policies=3)
    workload = next(iter(records.values())).workload
    labels = {**workload.labels, "account": np.arange(600) % 2, "gpus": np.arange(600) % 3}
    workload = replace(
        workload,
        labels=labels,
        names={"account": ("physics", "biology")},
        logged={"wait": np.full(600, 60.0)},
    )
    return comparing({label: replace(record, workload=workload) for label, record in records.items()})


@pytest.fixture(scope="module")
def made(logged: Comparison) -> str:
    """The page of that comparison, of a log with a header, policies with files, and reasons of one policy."""
    header = {"Installation": ["Cornell Theory Center"], "Computer": ["IBM SP2"], "UnixStartTime": ["835823160"]}
    workload = {**logged.info["workload"], "header": header, "source": "/data/logs/ctc.swf"}
    policies = {"fcfs": EASY.replace("Easy", "Strict"), "greedy": EASY, "modest": "Slurm(conf='/etc/slurm.conf')"}
    command = "gridsim compare /data/logs/ctc.swf -p 'slurm?conf=/etc/slurm.conf'"
    info = {**logged.info, "title": "Autumn", "workload": workload, "policies": policies, "command": command}
    numbers = {label: dict(each) for label, each in logged.metrics.items()}
    numbers["modest"] |= {"waits_by_reason[Priority]": 0.75, "waits_by_reason[AssocGrpCpuLimit]": 0.25}
    return page.render(replace(logged, info=info, metrics=numbers))


# ---- head of the page -------------------------------------------------------------------------------------------


def test_the_top_of_the_page_has_title_site_period_and_descriptions(made: str) -> None:
    assert "<h1>Autumn</h1>" in made
    head = re.search(r"<header>.*?</header>", made, re.DOTALL)
    assert head is not None
    assert "Cornell Theory Center" in head[0]
    assert re.search(r"submitted over \d+", words(head[0]))
    linked = set(re.findall(r'<a href="#([\w-]+)">', head[0]))
    assert linked >= {"answer", "numbers", "pictures", "winners", "usage", "schedule", "sure", "made"}
    assert all(f'id="{one}"' in made for one in linked)
    read = words(made)
    assert "greedy : Aggressive backfilling: only the first job in the queue has a reservation." in read
    assert "modest : Slurm's scheduler with slurm.conf." in read
    assert "/data" not in made
    assert "/etc" not in made


def test_a_policy_is_described_by_the_preset_and_what_differs() -> None:
    assert description(EASY) == "Aggressive backfilling: only the first job in the queue has a reservation."
    assert description("Backfilling(ordering=Fifo(), reserve=Strict())") == "First come, first served, in strict order."
    assert description("Other(path='/home/ann/other.py')") == "Other(path='other.py')"
    assert description("no call") == "no call"


@pytest.mark.parametrize("text", ["Slurm(conf=open('x'))", "Slurm(conf=1, changes=2)", "Slurm(\0)", "(" * 3000])
def test_a_damaged_description_of_a_policy_is_shown(text: str) -> None:
    assert description(text)


# ---- the recorded log, usage and reasons ------------------------------------------------------------------------


def test_the_log_is_a_column_that_is_never_marked_as_best(logged: Comparison) -> None:
    assert LOG in tables.columns(logged)
    rows = {row.metric: row for row in tables.page_rows(logged)}
    assert rows["wait_mean"].cells[LOG].text == "1 min"
    assert not any(row.cells[LOG].best for row in rows.values())
    assert np.isnan(rows["backfilled_share"].cells[LOG].value)
    log = recorded_schedule(logged.records["fcfs"])
    assert log is not None
    assert (log.wait == 60).all()
    assert (log.held == logged.records["fcfs"].workload.runtime / 1e6).all()


def test_a_log_without_starts_is_no_column(comparison: Comparison) -> None:
    assert LOG not in tables.columns(comparison)


def test_the_best_policy_is_the_first_column(comparison: Comparison) -> None:
    assert comparison.best == "greedy"
    assert tables.columns(comparison) == ["greedy", "fcfs", "modest"]


def test_empty_rows_are_hidden(comparison: Comparison) -> None:
    numbers = {
        label: {**each, "backfilled_share": 0.0, "queue_length_mean": float("nan"), "wait_median": 0.0}
        for label, each in comparison.metrics.items()
    }
    shown = {row.metric for row in tables.page_rows(replace(comparison, metrics=numbers))}
    assert not shown & {"backfilled_share", "queue_length_mean", "killed_walltime"}
    assert shown >= {"wait_median", "wait_mean"}


def test_hours_and_waits_are_by_account_and_user(logged: Comparison, made: str) -> None:
    read = words(made)
    assert "Priority: jobs of higher priority were waiting 75 %" in read
    assert LOG in read
    assert "account jobs core-hours GPU-hours" in read
    assert "user jobs core-hours GPU-hours" in read
    record, rows = logged.records["greedy"], np.arange(600) % 2 == 0
    found = {(row.kind, row.group, row.policy): row for row in page.curves.usage(logged)}
    physics = found["account", "account physics", "greedy"]
    assert physics.jobs == 300
    assert physics.core_hours == pytest.approx(record.area[rows].sum() / 3600)
    assert physics.gpu_hours == pytest.approx((record.held * (np.arange(600) % 3))[rows].sum() / 3600)
    assert physics.wait_mean == pytest.approx(record.wait[rows].mean())
    assert found["account", "account physics", LOG].wait_mean == 60


def test_lost_core_hours_are_by_user(comparing: Callable[..., Comparison]) -> None:
    labels, names = {"user": [1, 2]}, {"user": ("", "ann", "bob")}
    jobs = replace(Workload.from_columns(submit=[0, 0], runtime=[60, 60], cores=[4, 4], labels=labels), names=names)
    machine = Platform.of_nodes([NodeGroup(group="n", count=2, capacity={"cores": 4})])
    options = Run(failures=Failures([(["n-1"], 45, 90)]))
    records = {name: simulate(jobs, platform=machine, policy=name, options=options).record for name in ("easy", "fcfs")}
    found = comparing(records)
    lost = {(row.group, row.policy): row.lost_core_hours for row in page.curves.usage(found)}
    assert (lost["user ann", "easy"], lost["user bob", "easy"]) == (0, pytest.approx(4 * 45 / 3600))
    assert "user jobs core-hours lost core-hours" in words(page.render(found))


def test_waiting_time_is_by_reason(logged: Comparison) -> None:
    numbers = {label: dict(each) for label, each in logged.metrics.items()}
    numbers["modest"] |= {"waits_by_reason[Priority]": 0.75, "waits_by_reason[AssocGrpCpuLimit]": 0.25}
    found = replace(logged, metrics=numbers)
    labels, rows = tables.reasons(found)
    assert labels == ["modest"]
    assert rows[0] == ("Priority: jobs of higher priority were waiting", ["75 %"])
    assert rows[1] == ("AssocGrpCpuLimit: a limit of the site", ["25 %"])
    assert not [row for row in tables.page_rows(found) if row.metric.startswith("waits_by_reason")]


def test_recorded_reasons_are_shown_if_the_log_has_them(logged: Comparison) -> None:
    records = {}
    for label, record in logged.records.items():
        reason = np.where(np.arange(600) % 4 > 0, 1, 0)
        names = {**record.workload.names, "logged_reason": ("", "Resources")}
        logged_too = {**record.workload.logged, "reason": reason}
        records[label] = replace(record, workload=replace(record.workload, names=names, logged=logged_too))
    labels, rows = tables.reasons(replace(logged, records=records))
    assert labels == [LOG]
    assert rows[0] == ("Resources: eligible nodes had too few free resources", ["75 %"])


# ---- chart ------------------------------------------------------------------------------------------------------


def test_the_chart_opens_at_the_day_with_the_highest_utilisation() -> None:
    day = 86_400
    rows = [{"submit": place * day + 10, "start": place * day + 10, "end": place * day + 3610} for place in range(5)]
    rows.append({"submit": 3 * day + 5000, "start": 3 * day + 5000, "end": 3 * day + 80_000})
    record = Record.from_rows([{**row, "cores": 2} for row in rows], cores=4)
    packed = gantt.pack({"a": record})
    first, last = packed["opens"]
    assert first * packed["tick"] + packed["origin"] == pytest.approx(3 * day + 10, abs=11)
    assert (last - first) * packed["tick"] == pytest.approx(day, abs=11)
    assert "opens" not in gantt.pack({"a": record.select(slice(0, 1))})


# ---- names ------------------------------------------------------------------------------------------------------

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "sacct.txt"
NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "physics", "biolab")


_TWO = ("-p", "easy", "-p", "fcfs", "--shake", "0", "--workers", "1")


def test_no_names_leaves_out_users_and_accounts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    asked = ["compare", str(MINI), "--timezone", "UTC", *_TWO, "--out", str(folder)]
    assert main([*asked, "--no-names", "--title", "A decision"]) == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>A decision</h1>" in text
    assert json.loads((folder / "run.json").read_text())["title"] == "A decision"
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".html", ".csv", ".json")]
    read = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert not [(name, file) for file, text in read.items() for name in NAMES if re.search(rf"\b{name}\b", text)]
    assert str(tmp_path) not in text
    assert str(MINI.parent) not in text
    assert re.search(r"user \d", text)
    capsys.readouterr()


MAPPING = """
[columns]
job = "job"
user = "user"
submit = {column = "submit", time = "s"}
runtime = "ran"
estimate = "ran"
cores = "cores"
"""


@pytest.mark.long
def test_report_of_a_folder_has_title_and_no_names_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{job},{NAMES[job % 6]},{job * 7},{60 + job},{1 + job % 3}" for job in range(1, 90)]
    (tmp_path / "log.csv").write_text("\n".join(["job,user,submit,ran,cores", *rows]), encoding="utf-8")
    (tmp_path / "log.toml").write_text(MAPPING, encoding="utf-8")
    log = [str(tmp_path / "log.csv"), "--mapping", str(tmp_path / "log.toml"), "--machine", "8"]
    folder, out = tmp_path / "out", tmp_path / "page"
    assert main(["compare", *log, *_TWO, "--out", str(folder), "--no-page"]) == 0
    assert re.search(r"\bbob\b", (folder / "groups.csv").read_text())
    assert main(["report", str(folder), "--out", str(out), "--no-names", "--title", "Again"]) == 0
    text = (out / "report.html").read_text(encoding="utf-8")
    assert "<h1>Again</h1>" in text
    assert not [name for name in NAMES if re.search(rf"\b{name}\b", text)]
    capsys.readouterr()


def test_names_are_left_out_of_notices_policies_and_reasons_of_rejections(logged: Comparison) -> None:
    names = {"user": ("alice", "bob"), "account": ("physics",), "job_name": ("train",), "partition": ("batch",)}
    workload = replace(logged.records["fcfs"].workload, names=names)
    refused = {3: Refusal("AssocMaxWallDurationPerJobLimit", "account physics", 60.0, "s", "MaxWall of user bob")}
    none = np.empty(0, dtype=np.int64)
    reasons = Reasons((), none, none, none, none, none, none, none, refused)
    record = replace(logged.records["fcfs"], workload=workload, reasons=reasons)
    notices = [
        Notice("SchedulerParameters alice_boost", unknown=True),
        Notice("reservation carol 7 (from 10 h to 12 h)", outside=True),
        Notice("PreemptMode of train in partition batch"),
    ]
    limited = "Slurm(conf='slurm.conf', set_limit='user.alice.MaxJobs=1')"
    result = Result(record, policy=limited, platform=Platform.single(128), notices=notices)
    hidden = result.without_names()
    assert [it.text for it in hidden.notices] == [
        "SchedulerParameters …_boost",
        "a reservation (from 10 h to 12 h)",
        "PreemptMode of … in partition batch",
    ]
    assert hidden.policy == "Slurm(conf='slurm.conf', set_limit='user.….MaxJobs=1')"
    assert hidden.record.reasons is not None
    assert (hidden.record.reasons.refused[3][1], hidden.record.reasons.refused[3][4]) == (
        "account …",
        "MaxWall of user …",
    )
    facts = " ".join(value for _, value in page._facts(evidence_of({"a": hidden}, options=Run()).info))
    assert "SchedulerParameters …_boost" in facts
    assert not [name for name in ("alice", "bob", "carol", "physics", "train") if name in facts]


# ---- many policies, requeued jobs -------------------------------------------------------------------------------


def test_the_table_of_many_policies_has_pairs_with_the_baseline_or_the_best(
    making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]
) -> None:
    made = making(200)
    found = comparing({**{f"{label} again": record for label, record in made.items()}, **made})
    assert len(found.labels) == 6
    pairs = page._pairs_of_interest(found)
    assert len(found.differences) == 2 * 15
    assert len(pairs) == 2 * (5 + 4)
    assert page._pairs_of_interest(comparing(made)) == comparing(made).differences


def test_a_pair_of_policies_is_once_in_the_table_of_groups(comparison: Comparison) -> None:
    rows = page._clear_groups(comparison)
    pairs = [(row.kind, row.group, frozenset((row.policy, row.baseline))) for row in rows]
    assert rows
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {
        (row.kind, row.group, frozenset((row.policy, row.baseline)))
        for row in comparison.groups
        if row.verdict in ("better", "worse") and row.kind != "user"
    }


def test_a_requeued_job_of_the_log_is_stated_to_be_one_run(logged: Comparison) -> None:
    def with_runs(runs: int) -> str:
        logged_too = {"wait": np.full(600, 60.0), "runs": np.where(np.arange(600) < 3, runs, 1)}
        records = {
            label: replace(record, workload=replace(record.workload, logged=logged_too))
            for label, record in logged.records.items()
        }
        return words(page.render(replace(logged, records=records)))

    assert "3 jobs ran several times in the log" in with_runs(2)
    assert "several times in the log" not in with_runs(1)


def test_waits_of_a_job_under_other_policies_are_one_sentence() -> None:
    waits = {"a": 60.0, "b": 0.0, "c": float("nan"), "d": 60.0, "e": 5.0}
    assert page._waited(waits) == [
        "started at once under b",
        "did not run under c",
        "waited 1 min under a and d",
        "5 s under e",
    ]


def test_few_cancelled_jobs_leave_a_recommendation(comparison: Comparison) -> None:
    def advice(share: float) -> str:
        less = comparison.records["greedy"]
        ran = int(len(less) * share)
        start, end = less.start_us.copy(), less.end_us.copy()
        start[ran:] = end[ran:] = NEVER
        status = np.where(np.arange(len(less)) < ran, less.status, Status.cancelled).astype(np.int8)
        records = {
            "fcfs": comparison.records["fcfs"],
            "greedy": replace(less, start_us=start, end_us=end, status=status),
        }
        changed = given(comparison, "better")
        found = headline(replace(changed, records=records))
        assert found is not None
        return found.recommendation

    assert advice(0.96).startswith("Use greedy instead of fcfs")
    assert advice(0.9) == ""


def test_the_title_of_a_generated_workload_names_the_model() -> None:
    generated = Lublin(jobs=20, cores=64).generate(1)
    results = {"fcfs": simulate(generated, policy="fcfs")}
    assert evidence_of(results, options=Run()).info["title"] == "Built-in workload (Lublin model, 20 jobs)"
    assert evidence_of(results, options=Run(), title="Ours").info["title"] == "Ours"


def test_the_title_of_a_log_is_its_file_even_if_a_model_has_that_name() -> None:
    log = Lublin(jobs=20, cores=64).generate(1).with_provenance(source="lublin", jobs_read=20)
    assert evidence_of({"fcfs": simulate(log, policy="fcfs")}, options=Run()).info["title"] == "lublin"
