"""Admission next to waits: guarantees of each policy; waits of different sets of jobs are not compared as equal."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from rich.console import Console

from gridsim.metrics.deadlines import OUTCOMES
from gridsim.metrics.summary import DEADLINE_METRICS, METRICS
from gridsim.model.time import NEVER, IntArray
from gridsim.record import Promises, Record, Status
from gridsim.report import admission, figures, gantt, tables
from gridsim.report.comparison import Comparison

Comparing = Callable[..., Comparison]


def with_deadlines(record: Record, every: int = 2) -> Record:
    """Two of three jobs request to end within *every* run times after arrival."""
    workload = record.workload
    deadline = np.where(np.arange(len(record)) % 3, workload.submit + every * workload.runtime, NEVER)
    return replace(record, workload=replace(workload, deadline=deadline))


def promising(record: Record, granted: IntArray, **changes: Any) -> Record:
    """The record with promises; jobs whose place in *granted* is `NEVER` are rejected."""
    n, gone = len(record), granted >= NEVER
    nothing, nobody = np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int64)
    promises = Promises(granted, nothing + NEVER, nothing, nothing > 0, nobody, nobody, nobody)
    return replace(
        record,
        start_us=np.where(gone, NEVER, record.start_us),
        end_us=np.where(gone, NEVER, record.end_us),
        status=np.where(gone, Status.unadmitted, record.status).astype(np.int8),
        promises=replace(promises, **changes),
    )


def choosy(record: Record, every: int = 5) -> Record:
    """Promise each job its actual end, but reject some jobs with a deadline, at a fixed interval."""
    gone = (np.arange(len(record)) % every == 1) & (record.workload.deadline < NEVER)
    return promising(record, np.where(gone, NEVER, np.maximum(record.end_us, record.workload.submit + 1)))


@pytest.fixture(scope="module")
def pair(records: Mapping[str, Record]) -> dict[str, Record]:
    """Two schedules of the first 900 jobs; the policy of the second promises deadlines and rejects jobs."""
    asked = {label: with_deadlines(records[label].select(slice(0, 900))) for label in ("fcfs", "greedy")}
    return {"fcfs": asked["fcfs"], "keeper": choosy(asked["greedy"])}


@pytest.fixture(scope="module")
def told(pair: dict[str, Record], comparing: Comparing) -> Comparison:
    return comparing(pair)


def printed(rows: list[tables.Row]) -> str:
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(tables.terminal(rows))
    return out.getvalue()


def test_the_first_sentence_states_the_number_of_guarantees_by_policy(told: Comparison) -> None:
    numbers = told.metrics
    assert told.sentences()[0] == (
        f"keeper guaranteed {numbers['keeper']['deadline_guaranteed']:.0f} of 600 deadlines "
        f"({100 * numbers['keeper']['deadline_guaranteed_area_share']:.0f} % of their core-seconds) and kept every "
        f"guarantee; fcfs met {numbers['fcfs']['deadline_met']:.0f} without guarantees."
    )


def test_jobs_without_a_deadline_are_distinguished(told: Comparison) -> None:
    sentence = told.sentences()[1]
    assert sentence.startswith("The mean response of jobs without a deadline is ")
    assert sentence.endswith(" under keeper.")


def test_waits_are_said_to_be_of_different_jobs(told: Comparison) -> None:
    ran = int(told.records["keeper"].ran.sum())
    assert not told.comparable
    assert any(
        "Waits are compared over the jobs that ran under both policies of a pair" in sentence
        for sentence in told.sentences()
    )
    assert (
        f"Jobs: 4,003 in the log, 4,000 kept, 900 after transforms; 900 ran under fcfs and {ran} under keeper, {ran} "
        "of them under every policy."
    ) in told.sentences()
    assert {it.jobs for it in told.differences} == {ran}


def test_the_winner_is_that_of_the_jobs_that_all_ran(comparing: Comparing) -> None:
    rows = [{"submit": t, "start": t + 10, "end": t + 11, "cores": 1} for t in range(0, 4000, 10)]
    late = [{**row, "start": row["submit"] + 900, "end": row["submit"] + 901} if not row["submit"] % 40 else row
            for row in rows]  # fmt: skip
    both = with_deadlines(Record.from_rows(late))
    gone = np.arange(400) % 4 == 0  # the jobs with long waits
    slower = replace(both, start_us=both.start_us + 1_000_000, end_us=both.end_us + 1_000_000)
    refusing = promising(slower, np.where(gone, NEVER, slower.end_us))
    comparison = comparing({"all": both, "some": refusing})
    assert comparison.metrics["some"]["wait_mean"] < comparison.metrics["all"]["wait_mean"]
    assert comparison.means == pytest.approx({"all": 10, "some": 11})
    assert comparison.best == "all"
    assert any(
        "ran under every policy, jobs wait least under all: 10 s" in sentence for sentence in comparison.sentences()
    )


def test_the_longest_and_the_weighted_wait_are_of_the_jobs_that_all_ran(comparing: Comparing) -> None:
    def waiting(waits: list[int], cores: list[int], gone: range = range(0)) -> Record:
        rows: list[dict[str, Any]] = [
            {"submit": t, "start": t + wait, "end": t + wait + 9, "cores": width}
            for t, (wait, width) in enumerate(zip(waits, cores, strict=True))
        ]
        for row in gone:
            rows[row] |= {"start": None, "end": None, "runtime": 9, "status": Status.unadmitted}
        return Record.from_rows(rows, cores=64)

    width = [64, *[1] * 99]
    found = comparing({"b": waiting([9, *[20] * 99], width, range(1)), "a": waiting([90_000, *[10] * 99], width)})
    assert found.best == "a"
    assert not any(it.startswith(("The longest wait", "Weighted by")) for it in found.sentences()), "b rejects job 1"


def test_a_policy_that_beats_the_winner_on_more_jobs_is_reported(comparing: Comparing) -> None:
    n = 900
    base = with_deadlines(Record.from_rows([{"submit": t, "start": t, "end": t + 1, "cores": 1} for t in range(n)]))
    third = np.arange(n) % 3

    def waiting(seconds: list[int]) -> Record:
        moved = np.array(seconds)[third] * 1_000_000
        return replace(base, start_us=base.start_us + moved, end_us=base.end_us + moved)

    few = waiting([5, 5, 5])
    narrow = promising(few, np.where(third == 0, few.end_us, NEVER))
    comparison = comparing({"a": waiting([1, 9, 9]), "b": waiting([2, 1, 1]), "narrow": narrow})
    assert comparison.best == "a"
    assert any(
        sentence.startswith("Over all jobs that ran under both, the mean wait under b is 79 % less than under a")
        for sentence in comparison.sentences()
    )


def test_the_table_shows_admission_first_and_marks_no_wait(told: Comparison) -> None:
    table = {row.metric: row for row in told.table()}
    assert list(table)[:4] == [
        "deadline_guaranteed", "deadline_guaranteed_area_share", "deadline_met", "deadline_met_area_share",
    ]  # fmt: skip
    assert table["deadline_guaranteed"].cells["keeper"].best
    for name in ("wait_mean", "bounded_slowdown_mean", "response_mean", "queue_length_mean", "makespan"):
        assert not any(cell.best for cell in table[name].cells.values())
    assert any(cell.best for cell in table["utilisation"].cells.values())
    assert not {"kills", "useful_utilisation", "qos_charge", "promises_broken"} & set(table)


@pytest.mark.parametrize("policies", [1, 2, 5, 9])
def test_the_table_of_deadlines_fits_80_columns(told: Comparison, policies: int) -> None:
    labels = ["fcfs", "keeper", *(f"fqops?kill_restart=true&slack_factor=1.{k}" for k in range(9))]
    text = printed(tables.rows(dict.fromkeys(labels[:policies], told.metrics["keeper"])))
    assert max(map(len, text.splitlines())) <= 80
    assert "guaranteed" in text


def test_without_deadlines_nothing_of_them_is_reported(comparison: Comparison) -> None:
    assert not admission.answer(comparison)
    assert not admission.caveats(comparison)
    assert list(comparison.metrics["fcfs"]) == list(METRICS)
    assert comparison.comparable


def test_promises_without_deadlines_asked_are_no_answer(records: Mapping[str, Record], comparing: Comparing) -> None:
    plain, greedy = (records[label].select(slice(0, 200)) for label in ("fcfs", "greedy"))
    comparison = comparing({"a": plain, "b": promising(greedy, greedy.end_us)})
    assert list(comparison.metrics["a"]) == [*METRICS, *DEADLINE_METRICS]
    assert not admission.answer(comparison)
    assert "deadline_met" not in {row.metric for row in comparison.table()}


def test_without_promises_deadlines_met_are_counted(records: Mapping[str, Record], comparing: Comparing) -> None:
    asked = {label: with_deadlines(records[label].select(slice(0, 300))) for label in ("fcfs", "greedy")}
    comparison = comparing(asked)
    met = [f"{comparison.metrics[label]['deadline_met']:.0f}" for label in asked]
    assert comparison.sentences()[0] == (
        f"fcfs met {met[0]} of the 200 deadlines requested and greedy {met[1]}; no policy gives guarantees."
    )
    assert comparison.comparable
    assert comparison.sentences()[2].startswith(
        "There is too little data to compare greedy with fcfs: the 95 % interval reaches from 2.5 % to 1.1 times; the "
        "mean wait is 83 % less under greedy in this log ("
    )


def test_broken_promises_offers_and_kills_are_reported(pair: dict[str, Record], comparing: Comparing) -> None:
    keeper = pair["keeper"]
    promises = keeper.promises
    assert promises is not None
    offers, late = promises.granted_us.copy(), np.zeros(len(keeper), dtype=np.bool_)
    offers[:100] = NEVER
    late[keeper.ran.nonzero()[0][:3]] = True
    row = int(np.flatnonzero(keeper.ran)[-1])
    cut = {"killed": np.array([row]), "killed_start_us": np.array([0]), "killed_end_us": np.array([3_600_000_000])}
    worse = replace(keeper, promises=replace(promises, offer_us=offers, broken=late, **cut))
    comparison = comparing({**pair, "worse": worse})
    numbers = comparison.metrics["worse"]
    text = " ".join(comparison.sentences())
    assert (
        f"worse broke 3 of its {numbers['promises_made']:.0f} guarantees; the other policies kept all of theirs."
        in text
    )
    assert f"Under worse, {numbers['offers_taken']:.0f} of {numbers['offers_made']:.0f} jobs" in text
    hours = f"{int(keeper.workload.cores[row]):,.3g}"
    assert (
        f"To free cores for other jobs, worse killed one run, to be restarted later: {hours} core-hours were lost."
        in text
    )
    assert {"promises_broken", "offers_taken", "kills", "useful_utilisation"} <= {r.metric for r in comparison.table()}


def test_refusals_are_said_to_be_chaotic_where_two_policies_promise(
    pair: dict[str, Record], comparing: Comparing
) -> None:
    other = choosy(with_deadlines(pair["fcfs"]), every=7)
    text = " ".join(comparing({**pair, "other": other}).sentences())
    assert "Every guarantee was kept." in text
    assert "is chaotic" in text
    assert "is chaotic" not in " ".join(comparing(pair).sentences())


def test_many_policies_are_not_all_named(pair: dict[str, Record], comparing: Comparing) -> None:
    many = {f"p{every}": choosy(pair["fcfs"], every=every) for every in range(3, 10)}
    first = comparing(many).sentences()[0]
    assert re.fullmatch(r"p8 guaranteed \d+ of 600 deadlines \(.*\), p7 \d+, .* and 3 others \d+ to \d+\.", first)


def test_the_qos_charge_is_reported_where_easy_is_among_the_policies(
    pair: dict[str, Record], comparing: Comparing
) -> None:
    comparison = comparing(pair, reference="fcfs")
    charges = {label: numbers["qos_charge"] for label, numbers in comparison.metrics.items()}
    assert charges["fcfs"] == 0 < charges["keeper"]
    assert "QoS charge" in printed(comparison.table())
    assert all(math.isnan(numbers["qos_charge"]) for numbers in comparing(pair).metrics.values())


def test_files_and_json_hold_the_numbers_of_admission(told: Comparison, tmp_path: Path) -> None:
    told.write(tmp_path)
    with (tmp_path / "metrics.csv").open(encoding="utf-8") as file:
        values = {(row["policy"], row["metric"]): row for row in csv.DictReader(file)}
    assert values["keeper", "deadline_guaranteed_area"]["unit"] == "core-seconds"
    assert float(values["keeper", "deadline_jobs"]["value"]) == 600
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["metrics"]["keeper"]["qos_charge"] is None


@pytest.mark.long
def test_the_page_with_jobs_rejected_is_made(told: Comparison, tmp_path: Path) -> None:
    text = told.page(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Outcomes of requested deadlines" in text
    assert "none is marked as best" in text
    assert "keeper guaranteed" in text
    gone = int((~told.records["keeper"].ran).sum())
    assert f"rejected {gone}" in text
    assert "NaN" not in text.split("<script")[0]
    assert gantt.pack(told.records)["jobs"] == 900


@pytest.mark.long
def test_the_page_of_a_policy_that_rejects_all_jobs_is_made(
    pair: dict[str, Record], comparing: Comparing, tmp_path: Path
) -> None:
    nobody = promising(pair["fcfs"], np.full(900, NEVER))
    comparison = comparing({"fcfs": pair["fcfs"], "nobody": nobody})
    assert comparison.best == "fcfs"
    text = " ".join(comparison.sentences())
    assert "nobody guaranteed 0 of 600 deadlines" in text
    assert "nan" not in text
    assert "nobody" in comparison.page(tmp_path / "report.html").read_text(encoding="utf-8")
    assert comparing({"nobody": nobody}).sentences()


def test_the_figure_has_a_part_for_each_outcome_that_there_is() -> None:
    counts = {
        "a": dict(zip(OUTCOMES, (3, 0, 0, 1, 0), strict=True)),
        "b": dict(zip(OUTCOMES, (0, 0, 2, 2, 0), strict=True)),
    }
    axes = figures.deadlines(counts).axes[0]
    assert axes.get_legend_handles_labels()[1] == ["guaranteed", "met without a guarantee", "missed"]
    widths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert widths == [0.75, 0, 0, 0.5, 0.25, 0.5]


def test_one_line_reconciles_jobs_that_were_read_kept_counted_and_run(comparing: Comparing) -> None:
    rows = [{"submit": t, "start": t, "end": t + 1, "cores": 1} for t in range(0, 4000, 10)]
    both = Record.from_rows(rows)

    def without(gone: range) -> Record:
        start, end, status = both.start_us.copy(), both.end_us.copy(), both.status.copy()
        start[gone], end[gone], status[gone] = NEVER, NEVER, Status.rejected
        return replace(both, start_us=start, end_us=end, status=status)

    def read(record: Record, jobs_read: int, jobs_kept: int) -> Record:
        return replace(record, workload=record.workload.with_provenance(jobs_read=jobs_read, jobs_kept=jobs_kept))

    records = {"a": read(without(range(10, 30)), 500, 450), "b": without(range(20, 60))}
    found = comparing(records, warmup=45)
    assert (
        "Jobs: 500 in the log, 450 kept, 400 after transforms, 395 counted; 375 ran under a and 355 under b, "
        "345 of them under every policy."
    ) in found.sentences()
    alike = comparing({label: read(records["a"], 400, 400) for label in "ab"})
    assert "Jobs: 400 in the log; 380 ran under every policy." in alike.sentences()
    assert not any(sentence.startswith("Jobs:") for sentence in comparing({"a": both, "b": both}).sentences())


def test_jobs_that_users_cancelled_are_not_called_rejected(comparing: Comparing) -> None:
    rows: list[dict[str, Any]] = [{"submit": t, "start": t, "end": t + 1, "cores": 1} for t in range(100)]
    both = Record.from_rows(rows)
    status = np.where(np.arange(100) == 7, Status.cancelled, both.status).astype(np.int8)
    never = np.where(np.arange(100) == 7, NEVER, both.start_us), np.where(np.arange(100) == 7, NEVER, both.end_us)
    one_less = replace(both, status=status, start_us=never[0], end_us=never[1])
    told = " ".join(comparing({"a": both, "b": one_less}).sentences())
    assert "the others were cancelled while they waited" in told
    assert "rejects" not in told
    rejected = replace(one_less, status=np.where(status == Status.cancelled, Status.unadmitted, status).astype(np.int8))
    assert "A policy that rejects jobs" in " ".join(comparing({"a": both, "b": rejected}).sentences())
