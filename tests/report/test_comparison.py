"""The numbers of a comparison, and the files they are written to."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.summary import METRICS, metrics
from gridsim.questions.evidence import COMPARED
from gridsim.questions.whatif import whatif
from gridsim.record import Record
from gridsim.report.comparison import Comparison


def test_metrics_are_those_of_the_records(comparison: Comparison, records: dict[str, Record]) -> None:
    assert comparison.metrics["greedy"] == pytest.approx(metrics(records["greedy"]), nan_ok=True)


def test_every_pair_is_tested_for_every_compared_metric(comparison: Comparison) -> None:
    assert len(comparison.differences) == 3 * len(COMPARED)


def test_a_difference_is_found_whichever_way_round(comparison: Comparison) -> None:
    one, other = comparison.difference("wait", "greedy", "fcfs"), comparison.difference("wait", "fcfs", "greedy")
    assert one.mean == -other.mean
    assert (one.ratio, one.ratio_low, one.ratio_high) == pytest.approx(
        (1 / other.ratio, 1 / other.ratio_high, 1 / other.ratio_low)
    )
    assert (one.low, one.high) == pytest.approx(
        [one.baseline_mean * (end - 1) for end in (one.ratio_low, one.ratio_high)]
    )
    assert (one.better, one.worse) == (other.worse, other.better)
    assert {one.verdict, other.verdict} in ({"better", "worse"}, {"no clear difference"}, {"too little data"})


def test_an_unknown_pair_has_no_difference(comparison: Comparison) -> None:
    with pytest.raises(InputError, match="between 'fcfs' and 'nobody'"):
        comparison.difference("wait", "fcfs", "nobody")


def test_groups_compare_all_with_the_baseline_and_the_best_with_all(comparison: Comparison) -> None:
    pairs = {(row.policy, row.baseline) for row in comparison.groups}
    assert pairs == {("greedy", "fcfs"), ("modest", "fcfs"), ("greedy", "modest")}
    assert {row.kind for row in comparison.groups} == {"size", "length", "user"}
    by_size = [row for row in comparison.groups if row.kind == "size" and row.policy == "modest"]
    assert sum(row.jobs for row in by_size) == 4000


def test_one_policy_is_described_without_differences(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    alone = comparing({"fcfs": records["fcfs"]})
    assert not alone.differences
    assert not alone.groups
    assert alone.sentences()


def test_no_policy_and_no_jobs_are_refused(records: dict[str, Record]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Comparison.of({}, info={})
    with pytest.raises(InputError, match="no jobs"):
        Comparison.of({"fcfs": records["fcfs"].select(slice(0, 0))}, info={})


def test_the_files_are_tidy_and_say_the_same(comparison: Comparison, tmp_path: Path) -> None:
    comparison.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "differences.csv",
        "distributions.csv",
        "fairness.csv",
        "groups.csv",
        "metrics.csv",
        "metrics.json",
        "over_time.csv",
        "usage.csv",
    ]
    with (tmp_path / "metrics.csv").open(encoding="utf-8") as file:
        values = {(row["policy"], row["metric"]): row for row in csv.DictReader(file)}
    assert len(values) == 3 * len(METRICS)
    assert float(values["fcfs", "wait_mean"]["value"]) == comparison.metrics["fcfs"]["wait_mean"]
    assert values["fcfs", "wait_mean"]["unit"] == "s"
    with (tmp_path / "differences.csv").open(encoding="utf-8") as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == [it.verdict for it in comparison.differences]
    with (tmp_path / "groups.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(comparison.groups)
    assert json.loads((tmp_path / "metrics.json").read_text())["fcfs"]["submitted"] == 4000


def test_the_dictionary_is_json(comparison: Comparison) -> None:
    told: dict[str, Any] = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert told["sentences"] == comparison.sentences()
    assert told["baseline"] == "fcfs"


def test_cuts_reach_every_number(records: dict[str, Record], comparing: Callable[..., Comparison]) -> None:
    span = float(np.ptp(records["fcfs"].submit))
    cut = comparing(records, warmup=span / 10, cooldown=span / 10)
    kept = int(cut.kept.sum())
    assert kept < 4000
    assert {it.jobs for it in cut.differences} == {kept}
    assert any(f"Excluded: {4000 - kept:,} jobs" in sentence for sentence in cut.sentences())


def test_comparing_imports_neither_matplotlib_nor_jinja() -> None:
    heavy = ("matplotlib", "jinja2", "rich", "scipy.stats")
    code = f"import sys, gridsim.report.comparison; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- in a notebook ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Comparison:
    jobs = gs.Workload.from_columns(submit=range(40), runtime=[10, 30, 5, 20] * 10, cores=[1, 4, 2, 3] * 10)
    return gs.compare(jobs, ["fcfs", "easy"], platform=gs.Platform.single(4))


def test_public_objects_print_in_a_few_lines(small: Comparison) -> None:
    record = small.records["easy"]
    jobs = record.workload
    result = gs.simulate(jobs, platform=gs.Platform.single(4), policy="qops")
    quotation = gs.quote(jobs, at=20.0, cores=2, walltime=50, platform=gs.Platform.single(4))
    changed = whatif(jobs, platform=gs.Platform.single(4))
    for thing in (small, record, jobs, result, result.record.promises, result.platform, quotation, changed):
        for text in (str(thing), repr(thing)):
            assert text.count("\n") < 12, text
            assert len(text) < 2000, text
            assert "array(" not in text


def test_a_comparison_shows_its_answer_and_table_in_a_notebook(small: Comparison) -> None:
    html = small._repr_html_()
    assert small.sentences()[0].replace("<", "&lt;") in html
    assert html.count("<tr>") == len(small.table()) + 1
    assert "<b>" in html


def test_a_frame_of_a_comparison_is_tidy(small: Comparison) -> None:
    pytest.importorskip("pandas")
    frame = small.to_pandas()
    assert frame.columns.tolist() == ["policy", "metric", "value", "unit"]
    row = frame[(frame.policy == "easy") & (frame.metric == "wait_mean")]
    assert row["value"].item() == small.metrics["easy"]["wait_mean"]
    assert row["unit"].item() == "s"
    assert small.to_pandas("differences")["ratio"].tolist() == [it.ratio for it in small.differences]
    assert len(small.to_pandas("groups")) == len(small.groups)
    with pytest.raises(UnknownNameError, match="did you mean 'metrics'"):
        small.to_pandas("metric")
