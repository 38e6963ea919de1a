"""The answer in words: right about who wins, honest about how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gridsim.metrics.compare import Difference
from gridsim.questions.evidence import GroupRow
from gridsim.record import Record, Status
from gridsim.report import caveats, differences, page, sentences
from gridsim.report.change import signed
from gridsim.report.comparison import Comparison


def difference(policy: str, baseline: str, **changes: object) -> Difference:
    known = Difference(
        metric="wait", policy=policy, baseline=baseline, policy_mean=3600.0, baseline_mean=7200.0,
        mean=-3600.0, low=-4000.0, high=-3200.0, ratio=0.5, ratio_low=0.45, ratio_high=0.56, effect=-2.0,
        p=1e-6, p_holm=3e-6, better=0.6, worse=0.1, same=0.3, jobs=1000, blocks=42, autocorrelation=0.0,
        verdict="better",
    )  # fmt: skip
    return replace(known, **changes)  # type: ignore[arg-type]


def told(comparison: Comparison, *differences: Difference, groups: tuple[GroupRow, ...] = ()) -> list[str]:
    """Sentences about the first two policies of a comparison with other evidence."""
    two = dict(list(comparison.records.items())[:2])
    numbers = {
        "fcfs": {**comparison.metrics["fcfs"], "wait_mean": 7200.0, "bounded_slowdown_mean": 9.0},
        "greedy": {**comparison.metrics["greedy"], "wait_mean": 3600.0, "bounded_slowdown_mean": 5.0},
    }
    return sentences.answer(replace(comparison, records=two, metrics=numbers, differences=differences, groups=groups))


def test_a_clear_winner_comes_with_its_lead_and_how_sure_it_is(comparison: Comparison) -> None:
    first = told(comparison, difference("greedy", "fcfs"))[0]
    assert first == (
        "greedy waits least: 1 h on average, 50 % less than fcfs "
        "(95 % interval 44 to 55 % less; p < 0.001, 42 blocks of time)."
    )


def test_the_direction_of_the_evidence_does_not_matter(comparison: Comparison) -> None:
    there = told(comparison, difference("greedy", "fcfs"))
    assert told(comparison, sentences.turned(difference("greedy", "fcfs"))) == there


def test_what_its_own_interval_would_call_clear_is_told_with_what_makes_it_unclear(comparison: Comparison) -> None:
    several = difference("greedy", "fcfs", verdict="no clear difference", p=0.03, p_holm=0.09)
    assert told(comparison, several)[1] == (
        "This log cannot tell greedy from fcfs "
        "(50 % less than under fcfs; 95 % interval 44 to 55 % less, but p = 0.09 after Holm)."
    )


def test_an_unclear_difference_is_told_as_such(comparison: Comparison) -> None:
    unclear = difference(
        "greedy", "fcfs", verdict="no clear difference", p=0.5, p_holm=0.5, ratio=0.98, ratio_low=0.93, ratio_high=1.04
    )
    answer = told(comparison, unclear)
    assert answer[0] == "greedy has the shortest mean wait in this log, 1 h."
    assert answer[1] == (
        "This log cannot tell greedy from fcfs (2 % less than under fcfs; 95 % interval 7 % less to 4 % more)."
    )


def test_a_sentence_and_the_table_tell_of_the_same_one_of_two_policies(comparison: Comparison) -> None:
    unclear = difference(
        "greedy", "fcfs", verdict="no clear difference", p=0.5, p_holm=0.5, ratio=0.969, ratio_low=0.9, ratio_high=1.04
    )
    clear = difference("greedy", "fcfs")
    for evidence, change in ((unclear, "3.1 % less"), (sentences.turned(clear), "50 % less")):
        assert change in " ".join(told(comparison, evidence)[:2])
        told_of = page.told_of([evidence])
        assert [(it.policy, it.baseline) for it in told_of] == [("greedy", "fcfs")]
        assert signed(told_of[0].ratio) == f"-{change.removesuffix(' less')}"


def test_too_little_data_is_no_verdict_but_what_happened_is_told(comparison: Comparison) -> None:
    answer = told(comparison, difference("greedy", "fcfs", verdict="too little data"))
    assert "waits least" not in answer[0]
    assert answer[1:3] == [
        "The mean wait under greedy is 50 % less than under fcfs (2 h; 60 % of the jobs wait less, 10 % longer).",
        "One congested stretch dominates this difference, so the log cannot say how far it holds elsewhere.",
    ]


def test_too_few_jobs_are_no_congested_stretch(comparison: Comparison) -> None:
    answer = told(comparison, difference("greedy", "fcfs", verdict="too little data", jobs=20))
    assert answer[2] == "Too few jobs ran, so the log cannot say how far that holds elsewhere."


def test_a_mean_of_nothing_is_told_as_an_amount(comparison: Comparison) -> None:
    unclear = difference("greedy", "fcfs", verdict="too little data", ratio=float("nan"), policy_mean=0.0)
    assert "is 1 h less than under fcfs (2 h;" in told(comparison, unclear)[1]


def overtaken(jobs: int, every: float) -> Record:
    """One core, jobs of 10 s submitted *every* so many seconds, first come first served."""
    free, rows = 0.0, []
    for number in range(jobs):
        start = max(free, every * number)
        free = start + 10
        rows.append({"submit": every * number, "start": start, "end": free, "cores": 1})
    return Record.from_rows(rows)


def test_a_policy_that_cannot_keep_up_is_told(comparing: Callable[..., Comparison]) -> None:
    slow = overtaken(400, 9)
    (told,) = caveats.caveats(comparing({"a": slow}))[:1]
    assert told == (
        "a does not keep up with this load: its queue still grows at the last submit (40 waiting jobs), so its mean "
        "wait says how long the workload is more than how good the policy is."
    )
    assert caveats.caveats(comparing({"a": slow, "b": slow}))[0].startswith(
        "a and b do not keep up with this load: their queues still grow at the last submit (40 and 40 waiting jobs)"
    )
    assert not any("keep up" in note for note in caveats.caveats(comparing({"a": overtaken(400, 11)})))


def test_equal_waits_are_called_equal(comparison: Comparison) -> None:
    alike = difference(
        "greedy", "fcfs", verdict="no clear difference", better=0.0, worse=0.0, same=1.0, p=1.0, mean=0.0
    )
    assert told(comparison, alike)[1] == "Under fcfs every job waits exactly as long."


def test_losers_are_named_with_their_interval(comparison: Comparison) -> None:
    loser = GroupRow("size", "65-128", "greedy", "fcfs", 90, 1400.0, 1000.0, 1.4, 1.1, 1.8, 0.01, "worse", 90.0)
    unsure = replace(loser, group="33-64", ratio=3.0, verdict="no clear difference")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(unsure, loser))
    assert answer[-1] == (
        "Who loses under greedy, by 5 % and 1 min at least: jobs of 65-128 cores wait 40 % longer than under fcfs "
        "(95 % interval 10 to 80 % longer)."
    )


@pytest.mark.parametrize(
    ("ratio", "low", "seconds"),
    [(1.04, 1.01, 600.0), (1.4, 1.04, 600.0), (1.4, 1.2, 50.0)],
)
def test_what_does_not_matter_is_no_loss_however_sure_it_is(
    comparison: Comparison, ratio: float, low: float, seconds: float
) -> None:
    row = GroupRow("size", "65-128", "greedy", "fcfs", 90, 1e3, 1e3, ratio, low, 2.0, 0.001, "worse", seconds, 900.0)
    answer = told(comparison, difference("greedy", "fcfs"), groups=(row,))
    assert answer[-1].startswith(
        "No class of size or length loses clearly under greedy (by 5 % and 1 min at least); single jobs do: 10 %"
    )


def test_a_class_that_did_not_wait_at_all_loses_by_an_amount(comparison: Comparison) -> None:
    nan = float("nan")
    row = GroupRow("size", "1", "greedy", "fcfs", 90, 300.0, 0.0, nan, nan, nan, 0.001, "worse", 200.0, 400.0)
    answer = told(comparison, difference("greedy", "fcfs"), groups=(row,))
    assert answer[-1].endswith(
        "jobs of 1 core wait 5 min longer than under fcfs (95 % interval 3 min 20 s to 6 min 40 s longer)."
    )


def test_without_a_losing_class_single_jobs_are_counted(comparison: Comparison) -> None:
    assert "10 % wait longer than under fcfs, 60 % wait less" in told(comparison, difference("greedy", "fcfs"))[-1]


def test_a_policy_that_is_ahead_by_slowdown_only_is_mentioned(comparison: Comparison) -> None:
    numbers = {
        "fcfs": {**comparison.metrics["fcfs"], "wait_mean": 7200.0, "bounded_slowdown_mean": 2.0},
        "greedy": {**comparison.metrics["greedy"], "wait_mean": 3600.0, "bounded_slowdown_mean": 4.0},
    }
    two = dict(list(comparison.records.items())[:2])
    evidence = [
        difference("greedy", "fcfs"),
        difference("fcfs", "greedy", metric="bounded_slowdown", policy_mean=2.0, baseline_mean=4.0),
    ]
    answer = sentences.answer(replace(comparison, records=two, metrics=numbers, differences=evidence, groups=[]))
    ahead = "By mean bounded slowdown fcfs is ahead: 2, 50 % less than the 4 under greedy ("
    assert any(it.startswith(ahead) for it in answer)


def test_real_schedules_give_few_sentences_that_name_the_winner(comparison: Comparison) -> None:
    answer = sentences.answer(comparison)
    assert 2 <= len(answer) <= 5
    assert answer[0].startswith("greedy ")
    assert not any("nan" in sentence for sentence in comparison.sentences())


def test_nobody_waits_on_a_large_machine(comparing: Callable[..., Comparison]) -> None:
    rows = [{"submit": t, "start": t, "end": t + 1, "cores": 1} for t in range(50)]
    record = Record.from_rows(rows, cores=8)
    assert "Nobody waits" in comparing({"a": record, "b": record}).sentences()[0]


def test_the_same_schedule_twice_is_no_difference(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    answer = comparing({"a": records["fcfs"], "b": records["fcfs"]}).sentences()
    assert "Under b every job waits exactly as long." in answer


def test_a_schedule_in_which_nothing_ran_is_told(comparing: Callable[..., Comparison]) -> None:
    rows = [{"submit": t, "start": None, "end": None, "cores": 1, "runtime": 5} for t in range(3)]
    record = Record.from_rows(rows, cores=8)
    assert comparing({"a": record, "b": record}).sentences()[0].startswith("No job ran")


def test_killed_jobs_and_lines_left_out_are_mentioned(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    status = np.where(np.arange(4000) < 12, Status.killed_walltime, Status.completed).astype(np.int8)
    killed = {name: replace(record, status=status) for name, record in records.items()}
    notes = caveats.caveats(comparing(killed))
    assert "12 jobs were killed at the walltime they had asked for under every policy." in notes
    assert "Of the log's 4,003 job lines, 3 were left out (zero runtime)." in notes


def test_a_single_job_is_told_of_as_one(records: dict[str, Record], comparing: Callable[..., Comparison]) -> None:
    status = np.full(4000, Status.completed, dtype=np.int8)
    status[:2] = Status.killed_walltime, Status.rejected
    notes = caveats.caveats(comparing({name: replace(each, status=status) for name, each in records.items()}))
    assert "1 job was killed at the walltime it had asked for under every policy." in notes
    assert "1 job was rejected: the machine can never run it under every policy." in notes


@pytest.mark.parametrize(
    ("kind", "group", "text"), [("size", "1", "jobs of 1 core"), ("length", "under 1 min", "jobs under 1 min")]
)
def test_groups_read_as_parts_of_sentences(kind: str, group: str, text: str) -> None:
    assert differences.group_name(kind, group) == text
