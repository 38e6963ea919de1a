"""Sentences about a comparison: the correct best policy, with the correct certainty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gridsim.metrics.compare import Difference, Verdict
from gridsim.questions.evidence import GroupRow
from gridsim.questions.replications import Replicated, settled
from gridsim.record import Record, Status
from gridsim.report import caveats, differences, page, sentences
from gridsim.report.change import signed
from gridsim.report.comparison import Comparison


def difference(policy: str, baseline: str, **changes: object) -> Difference:
    known = Difference(
        metric="wait", policy=policy, baseline=baseline, policy_mean=3600.0, baseline_mean=7200.0,
        mean=-3600.0, low=-4000.0, high=-3200.0, ratio=0.5, ratio_low=0.45, ratio_high=0.56, effect=-2.0,
        p=1e-6, p_holm=3e-6, better=0.6, worse=0.1, same=0.3, jobs=1000, blocks=8,
        verdict="better",
    )  # fmt: skip
    return replace(known, **changes)  # type: ignore[arg-type]


def told(
    comparison: Comparison, *differences: Difference, groups: tuple[GroupRow, ...] = (), **metrics: dict[str, float]
) -> list[str]:
    """Sentences about the first two policies of a comparison with other evidence and *metrics* of a policy."""
    two = dict(list(comparison.records.items())[:2])
    numbers = {
        "fcfs": {**comparison.metrics["fcfs"], "wait_mean": 7200.0, "bounded_slowdown_mean": 9.0},
        "greedy": {**comparison.metrics["greedy"], "wait_mean": 3600.0, "bounded_slowdown_mean": 5.0},
    }
    alike = {"wait_max": 9e4, "wait_mean_by_area": 9e3}
    numbers = {label: {**each, **alike, **metrics.get(label, {})} for label, each in numbers.items()}
    return sentences.answer(replace(comparison, records=two, metrics=numbers, differences=differences, groups=groups))


def test_a_significant_difference_names_the_base_the_ratio_and_its_interval(comparison: Comparison) -> None:
    answer = told(comparison, difference("greedy", "fcfs"))
    assert answer[0] == (
        "Jobs wait least under greedy: 1 h on average, 50 % less than under fcfs "
        "(95 % interval 44 to 55 % less; p < 0.001)."
    )
    assert answer.count("Intervals are for other periods of this length with the same users on this machine.") == 1


def of_three(comparison: Comparison, *found: Difference, base: str = "easy") -> list[str]:
    """Sentences on easy, conservative and fcfs (mean waits of 1 h, 1 h 30 min and 2 h)."""
    one = next(iter(comparison.records.values()))
    means = {"easy": 3600.0, "conservative": 5400.0, "fcfs": 7200.0}
    numbers = {
        label: {**comparison.metrics["fcfs"], "wait_mean": mean, "wait_max": 9e4, "wait_mean_by_area": 9e3}
        for label, mean in means.items()
    }
    order = (base, *(label for label in means if label != base))
    same = difference("conservative", "easy", metric="bounded_slowdown", verdict="no clear difference")
    slowdowns = [same, replace(same, policy="fcfs"), replace(same, policy="fcfs", baseline="conservative")]
    records = dict.fromkeys(means, one)
    shown = replace(
        comparison, records=records, metrics=numbers, differences=[*found, *slowdowns], groups=[], order=order
    )
    return sentences.answer(shown)


SLOW = {"policy_mean": 7200.0, "mean": 3600.0, "low": 2880.0, "high": 4680.0, "ratio_low": 1.8, "ratio_high": 2.3}


def test_every_sentence_is_against_the_base(comparison: Comparison) -> None:
    """FCFS is never a base where another policy is: the others are compared with the best, then with the base."""
    fcfs = difference("fcfs", "easy", ratio=2.0, baseline_mean=3600.0, verdict="worse", **SLOW)
    lost = difference("conservative", "fcfs")
    worse = difference("conservative", "easy", ratio=1.5, ratio_low=1.2, ratio_high=1.9, verdict="worse")
    unclear = replace(worse, verdict="no clear difference", p=0.3, p_holm=0.3, ratio_low=0.8, ratio_high=2.8)
    assert of_three(comparison, worse, fcfs, lost)[0] == (
        "Jobs wait least under easy: 1 h on average; the mean wait under conservative is 50 % higher than under easy "
        "(95 % interval 20 to 90 % higher; p < 0.001, Holm-corrected for 3 comparisons); the mean wait under fcfs is "
        "2.0 times as high as under easy (95 % interval 1.8 to 2.3 times; p < 0.001)."
    )
    told = of_three(comparison, unclear, fcfs, lost)
    assert told[0].startswith("The log does not show whether jobs wait longer under easy or under conservative")
    assert told[1].startswith("The mean wait under fcfs is 2.0 times as high as under easy (95 % interval")
    told = of_three(comparison, worse, fcfs, lost, base="conservative")
    assert told[0].startswith("Jobs wait least under easy: 1 h on average, 33 % less than under conservative (95 % ")
    assert "the mean wait under fcfs is 2.0 times as high as under conservative (95 % interval" in told[0]
    assert not any("than under fcfs (" in sentence for sentence in told)


def test_the_direction_of_the_evidence_does_not_matter(comparison: Comparison) -> None:
    there = told(comparison, difference("greedy", "fcfs"))
    assert told(comparison, difference("greedy", "fcfs").turned()) == there


def test_a_difference_that_is_lost_in_the_correction_is_reported_as_such(comparison: Comparison) -> None:
    several = difference("greedy", "fcfs", verdict="no clear difference", p=0.03, p_holm=0.09)
    assert told(comparison, several, several, several)[0] == (
        "The log does not show whether jobs wait longer under greedy or under fcfs: 50 % less under greedy in this log "
        "(1 h against 2 h), 95 % interval 44 to 55 % less; not significant after correction for 3 comparisons."
    )


def test_less_is_never_the_first_clause_without_a_significant_difference(comparison: Comparison) -> None:
    unclear = difference(
        "greedy", "fcfs", verdict="no clear difference", p=0.5, p_holm=0.5, ratio=0.98, ratio_low=0.93, ratio_high=1.04
    )
    answer = told(comparison, unclear)
    assert answer[0] == (
        "The log does not show whether jobs wait longer under greedy or under fcfs: 2 % less under greedy in this log "
        "(1 h against 2 h), 95 % interval 7 % less to 4 % more."
    )
    assert not any("wait least" in sentence for sentence in answer)


def test_a_sentence_and_the_table_report_the_same_one_of_two_policies(comparison: Comparison) -> None:
    unclear = difference(
        "greedy", "fcfs", verdict="no clear difference", p=0.5, p_holm=0.5, ratio=0.969, ratio_low=0.9, ratio_high=1.04
    )
    clear = difference("greedy", "fcfs")
    for evidence, change in ((unclear, "3.1 % less"), (clear.turned(), "50 % less")):
        assert change in " ".join(told(comparison, evidence)[:2])
        told_of = page.better_first([evidence])
        assert [(it.policy, it.baseline) for it in told_of] == [("greedy", "fcfs")]
        assert signed(told_of[0].ratio) == f"-{change.removesuffix(' less')}"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"jobs": 57, "p": math.nan}, "too few jobs (57, at least 80 are needed)"),
        ({"p": math.nan}, "all waiting falls in one eighth of the log"),
        (
            {"p": 0.5, "p_holm": 0.5, "ratio_low": 0.25, "ratio_high": 5.0},
            "the 95 % interval reaches from 25 % to 5.0 times",
        ),
        (
            {"p": 0.5, "p_holm": 0.5, "ratio_low": 4e-8, "ratio_high": 10_332.0},
            "the 95 % interval is undetermined",
        ),
    ],
)
def test_too_little_data_names_its_reason(comparison: Comparison, changes: dict[str, float], reason: str) -> None:
    few = difference("greedy", "fcfs", verdict="too little data", **changes)
    assert told(comparison, few)[0] == (
        f"There is too little data to compare greedy with fcfs: {reason}; the mean wait is 50 % less under greedy in "
        "this log (1 h against 2 h)."
    )


def test_a_mean_of_zero_is_reported_as_an_amount(comparison: Comparison) -> None:
    unclear = difference("greedy", "fcfs", verdict="too little data", ratio=math.nan, p=math.nan, policy_mean=0.0)
    assert "; the mean wait is 1 h less under greedy in this log (0 s against 2 h)." in told(comparison, unclear)[0]


def overtaken(jobs: int, every: float) -> Record:
    """One core, jobs of 10 s submitted at an interval of *every* seconds, under FCFS."""
    free, rows = 0.0, []
    for number in range(jobs):
        start = max(free, every * number)
        free = start + 10
        rows.append({"submit": every * number, "start": start, "end": free, "cores": 1})
    return Record.from_rows(rows)


def test_a_saturated_policy_is_named(comparing: Callable[..., Comparison]) -> None:
    slow = overtaken(400, 9)
    assert sentences.answer(comparing({"a": slow}))[1] == (
        "a is saturated: its queue is still growing at the last submission, so its mean wait depends on the "
        "length of the log (40 jobs waiting at its end)."
    )
    assert any(
        sentence.startswith(
            "a and b are saturated: their queues are still growing at the last submission, so their mean waits "
            "depend on the length of the log (40 and 40 jobs waiting at its end)."
        )
        for sentence in sentences.answer(comparing({"a": slow, "b": slow}))
    )
    assert not any("saturated" in sentence for sentence in sentences.answer(comparing({"a": overtaken(400, 11)})))


def test_equal_waits_are_called_equal(comparison: Comparison) -> None:
    equal = difference("greedy", "fcfs", verdict="equal", better=0.0, worse=0.0, same=1.0, p=1.0, mean=0.0)
    assert told(comparison, equal)[0] == "Every job waits exactly as long under fcfs as under greedy."


def group(name: str, jobs: int, policy: float, base: float, low: float, high: float, verdict: Verdict) -> GroupRow:
    """A group by cores under greedy against fcfs; means in s."""
    ratio, ends = policy / base, (base * (low - 1), base * (high - 1))
    return GroupRow("size", name, "greedy", "fcfs", jobs, policy, base, ratio, low, high, 0.01, verdict, *ends)


def test_groups_that_wait_significantly_longer_follow_the_headline(comparison: Comparison) -> None:
    """Sentence rule G1."""
    worse = group("257-338", 132, 29e4, 1e4, 12.0, 74.0, "worse")
    unclear = group("33-64", 900, 1400.0, 1000.0, 0.9, 2.0, "no clear difference")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(unclear, worse))
    assert answer[1] == (
        "These jobs wait significantly longer under greedy than under fcfs: the 132 jobs of 257 to 338 cores 29 times "
        "as long (95 % interval 12 to 74 times)."
    )
    assert not any(sentence.startswith("No group") for sentence in answer)


def test_an_interval_without_a_useful_end_is_cut_at_a_hundred_times(comparison: Comparison) -> None:
    wide = difference("greedy", "fcfs", ratio_low=3e-9)
    assert "(95 % interval 44 to more than 99 % less; p < 0.001)" in told(comparison, wide)[0]
    group_of_few = group("257-338", 132, 29e4, 1e4, 12.0, 7e6, "worse")
    assert "(95 % interval 12 to more than 100 times)" in told(comparison, wide, groups=(group_of_few,))[1]


@pytest.mark.parametrize(("policy", "base", "low"), [(1.04e4, 1e4, 1.01), (1.4e4, 1e4, 1.04), (300.0, 200.0, 1.2)])
def test_a_small_loss_is_not_named_however_certain_it_is(
    comparison: Comparison, policy: float, base: float, low: float
) -> None:
    row = group("65-128", 90, policy, base, low, 2.0, "worse")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(row,))
    assert "No group of jobs (by cores) waits significantly longer under greedy (threshold: 5 % and 1 min)." in answer


def test_a_small_group_that_waits_twice_as_long_is_named(comparison: Comparison) -> None:
    """Sentence rule G2: sentences never present too little data as no loss."""
    small = group("257-338", 57, 40 * 86_400, 40 * 86_400 / 29, 0.5, 900.0, "too little data")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(small,))
    assert (
        "No group of jobs waits significantly longer. In this log the 57 jobs of 257 to 338 cores waited 29 times as "
        "long under greedy as under fcfs (40 d against 1 d 9 h); too few jobs to generalise."
    ) in answer
    unknown = replace(small, policy_mean=1500.0, baseline_mean=1000.0, ratio=1.5)
    answer = told(comparison, difference("greedy", "fcfs"), groups=(unknown,))
    assert "There is too little data on the only group of jobs (by cores)." in answer
    same = group("1", 900, 1000.0, 1000.0, 0.9, 1.1, "no clear difference")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(unknown, same))
    assert (
        "No group of jobs (by cores) waits significantly longer under greedy; 1 of 2 groups have too little data."
    ) in answer
    short = group("1", 57, 100.0, 45.0, 0.5, 900.0, "too little data")
    assert not any("n this log the" in it for it in told(comparison, difference("greedy", "fcfs"), groups=(short,)))


def test_of_many_groups_three_are_named(comparison: Comparison) -> None:
    rows = [group(str(size), 50, 3e4, 1e4, 0.5, 9.0, "too little data") for size in range(1, 6)]
    answer = told(comparison, difference("greedy", "fcfs"), groups=tuple(rows))
    assert any("and 2 more groups (groups.csv); too few jobs to generalise." in sentence for sentence in answer)


def test_a_group_that_did_not_wait_at_all_loses_by_an_amount(comparison: Comparison) -> None:
    nan = math.nan
    row = GroupRow("size", "1", "greedy", "fcfs", 90, 300.0, 0.0, nan, nan, nan, 0.001, "worse", 200.0, 400.0)
    answer = told(comparison, difference("greedy", "fcfs"), groups=(row,))
    assert answer[1] == (
        "These jobs wait significantly longer under greedy than under fcfs: the 90 jobs of 1 core 5 min longer "
        "(95 % interval 3 min 20 s to 6 min 40 s longer)."
    )
    unclear = replace(row, verdict="too little data")
    answer = told(comparison, difference("greedy", "fcfs"), groups=(unclear,))
    assert any("the 90 jobs of 1 core waited under greedy but not under fcfs" in it for it in answer)


def test_the_longest_wait_and_waits_weighted_by_core_seconds_follow_the_headline(comparison: Comparison) -> None:
    """Sentence rules G4 and G5."""
    longer = {"wait_max": 138.5 * 86_400, "wait_mean_by_area": 345_568.0}
    usual = {"wait_max": 3.5 * 86_400, "wait_mean_by_area": 55_397.0}
    answer = told(comparison, difference("greedy", "fcfs"), greedy=longer, fcfs=usual)
    assert answer[1:3] == [
        "The longest wait is 138 d under greedy and 3 d 12 h under fcfs.",
        "Weighted by core-seconds, jobs wait 6.2 times as long under greedy as under fcfs: 4 d against 15 h 23 min.",
    ]
    near = {"wait_max": 1.9 * 3.5 * 86_400, "wait_mean_by_area": 1.2 * 55_397.0}
    answer = told(comparison, difference("greedy", "fcfs"), greedy=near, fcfs=usual)
    assert not any(sentence.startswith(("The longest", "Weighted")) for sentence in answer)


def rejecting(jobs: int = 600) -> dict[str, Record]:
    """Every third job is wide: it waits 4 h under *all*, and is rejected by *narrow*."""

    def record(wide: int | None, others: int | None) -> Record:
        waits = [wide if number % 3 == 0 else others for number in range(jobs)]
        starts = [None if wait is None else 100 * number + wait for number, wait in enumerate(waits)]
        rows = [
            {"submit": 100 * number, "start": start, "end": None if start is None else start + 60,
             "cores": 1 if number % 3 else 8, "runtime": 60}
            for number, start in enumerate(starts)
        ]  # fmt: skip
        return Record.from_rows(rows, cores=64)

    return {"all": record(4 * 3600, 0), "narrow": record(None, 0)}


def test_jobs_that_wait_and_are_rejected_elsewhere_are_not_said_not_to_wait(
    comparing: Callable[..., Comparison],
) -> None:
    answer = comparing(rejecting()).sentences()
    assert "The jobs that ran under every policy do not wait under any of them." in answer
    assert not any(sentence.startswith("No job waits") for sentence in answer)


def test_intervals_are_explained_only_where_there_are_any(comparison: Comparison) -> None:
    few = difference("greedy", "fcfs", verdict="too little data", jobs=57, p=math.nan)
    assert not any(sentence.startswith("Intervals") for sentence in told(comparison, few))


def test_individual_jobs_are_counted(comparison: Comparison) -> None:
    last = told(comparison, difference("greedy", "fcfs"))[-1]
    assert last == "Individual jobs differ: 10 % wait longer than under fcfs, 60 % shorter."


def test_a_shaken_input_that_disagrees_withdraws_the_verdict(comparison: Comparison) -> None:
    """6 % less at p = 0.016 is not significant when the sign holds in 5 of 8 resampled inputs."""
    waits = {"fcfs": np.full(8, 3700.0), "greedy": np.array([3600.0] * 5 + [3800.0] * 3)}
    original = {label: {"wait_mean": value} for label, value in (("fcfs", 7200.0), ("greedy", 3600.0))}
    numbers = {label: {"wait_mean": column} for label, column in waits.items()}
    shaken = Replicated("shake", {"replicas": 8, "by": 60}, original, numbers)
    (found,) = settled([difference("greedy", "fcfs", p=0.016, p_holm=0.016)], [shaken])
    assert found.verdict == "no clear difference"
    assert told(replace(comparison, replicated=(shaken,)), found)[0].endswith(
        "95 % interval 44 to 55 % less; with submit times shaken by up to 1 min only 5 of 8 runs have this sign."
    )
    numbers["greedy"] = {"wait_mean": np.full(8, 3600.0)}
    (confirmed,) = settled([difference("greedy", "fcfs", p=0.016, p_holm=0.016)], [shaken])
    assert confirmed.verdict == "better"


def test_means_of_other_jobs_do_not_withdraw_the_verdict() -> None:
    """A policy that rejects long waits has a lower mean over its accepted jobs, in every resampled input too."""
    original = {label: {"wait_mean": value} for label, value in (("fcfs", 1800.0), ("greedy", 3600.0))}
    numbers = {label: {"wait_mean": np.full(8, each["wait_mean"])} for label, each in original.items()}
    numbers["greedy"]["wait_mean"][0] = 1700.0
    shaken = Replicated("shake", {"replicas": 8, "by": 60}, original, numbers)
    (found,) = settled([difference("greedy", "fcfs")], [shaken])
    assert found.verdict == "better"


def test_with_resampled_users_the_wider_interval_decides(comparison: Comparison) -> None:
    rng = np.random.default_rng(1)
    original = {label: {"wait_mean": value} for label, value in (("fcfs", 7200.0), ("greedy", 3600.0))}
    logs = rng.normal(0, 1, 20)
    numbers = {"fcfs": {"wait_mean": np.ones(20)}, "greedy": {"wait_mean": np.exp(logs)}}
    drawn = Replicated("resample", {"replicas": 20}, original, numbers)
    (found,) = settled([difference("greedy", "fcfs")], [drawn])
    assert found.ratio_high / found.ratio == pytest.approx(np.exp(2.093024 * logs.std(ddof=1)), rel=1e-6)
    assert found.verdict == "too little data"


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
    ahead = "The mean bounded slowdown is lower under fcfs: 2, 50 % lower than the 4 under greedy ("
    assert any(it.startswith(ahead) for it in answer)


def test_real_schedules_give_few_sentences_without_gaps(comparison: Comparison) -> None:
    answer = sentences.answer(comparison)
    assert answer[0].startswith("Jobs wait least under greedy: 19 h 28 min on average, 94 % less than under fcfs (")
    assert 2 <= len(answer) <= 9
    assert not any("nan" in sentence for sentence in comparison.sentences())


def test_no_job_waits_on_a_large_machine(comparing: Callable[..., Comparison]) -> None:
    rows = [{"submit": t, "start": t, "end": t + 1, "cores": 1} for t in range(50)]
    record = Record.from_rows(rows, cores=8)
    assert "No job waits" in comparing({"a": record, "b": record}).sentences()[0]


def test_the_same_schedule_twice_is_no_difference(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    answer = comparing({"a": records["fcfs"], "b": records["fcfs"]}).sentences()
    assert "Every job waits exactly as long under b as under a." in answer


def test_a_schedule_in_which_nothing_ran_is_reported(comparing: Callable[..., Comparison]) -> None:
    rows = [{"submit": t, "start": None, "end": None, "cores": 1, "runtime": 5} for t in range(3)]
    record = Record.from_rows(rows, cores=8)
    assert comparing({"a": record, "b": record}).sentences()[0].startswith("No job ran")


def test_killed_jobs_and_lines_left_out_are_mentioned(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    status = np.where(np.arange(4000) < 12, Status.killed_walltime, Status.completed).astype(np.int8)
    killed = {name: replace(record, status=status) for name, record in records.items()}
    notes = caveats.caveats(comparing(killed))
    assert "Under every policy, 12 jobs were killed at their requested walltime." in notes
    assert "Of the log's 4,003 jobs, 3 were skipped (zero runtime)." in notes


def test_a_single_job_is_reported_as_one(records: dict[str, Record], comparing: Callable[..., Comparison]) -> None:
    status = np.full(4000, Status.completed, dtype=np.int8)
    status[:2] = Status.killed_walltime, Status.rejected
    notes = caveats.caveats(comparing({name: replace(each, status=status) for name, each in records.items()}))
    assert "Under every policy, 1 job was killed at its requested walltime." in notes
    assert "Under every policy, 1 job was rejected because the machine can never run it." in notes


@pytest.mark.parametrize(
    ("kind", "group", "text"), [("size", "1", "jobs of 1 core"), ("length", "under 1 min", "jobs under 1 min")]
)
def test_groups_read_as_parts_of_sentences(kind: str, group: str, text: str) -> None:
    assert differences.group_name(kind, group) == text
