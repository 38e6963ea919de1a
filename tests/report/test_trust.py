"""How far a comparison is from what the log says did happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gridsim.metrics.agreement import agreement
from gridsim.questions.replay import Replay
from gridsim.record import Record
from gridsim.report import page
from gridsim.report.comparison import Comparison
from gridsim.report.trust import trust


def logged(records: dict[str, Record], wait: np.ndarray) -> dict[str, Record]:
    workload = replace(records["fcfs"].workload, logged={"wait": wait})
    return {label: replace(record, workload=workload) for label, record in records.items()}


@pytest.mark.long
def test_without_logged_waits_nothing_is_told(comparison: Comparison) -> None:
    assert trust(comparison) is None
    assert 'class="trust"' not in page.render(comparison)


def test_the_median_distance_from_the_logged_waits_is_told(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    wait = records["fcfs"].wait + 90.0
    wait[::2] = np.nan
    found = trust(comparing(logged(records, wait)))
    assert found is not None
    assert found.numbers["wait_error_median"] == 90.0
    assert found.numbers["jobs"] == len(wait) // 2
    assert "Under fcfs the simulated wait of a job is 1 min 30 s away from the logged one at the median" in " ".join(
        found.sentences
    )


def test_a_workload_that_was_transformed_is_not_what_the_machine_ran(
    records: dict[str, Record], comparing: Callable[..., Comparison]
) -> None:
    comparison = comparing(logged(records, records["fcfs"].wait))
    info = {**comparison.info, "workload": {**comparison.info["workload"], "transforms": [{"transform": "load"}]}}
    assert trust(replace(comparison, info=info)) is None


def test_what_a_comparison_carries_is_told_below_the_answer(comparison: Comparison) -> None:
    far = agreement(comparison.records["fcfs"], comparison.records["greedy"].start_us)
    carrying = replace(comparison, replay=Replay("<easy>", replace(far, median=6.0)))
    text = page.render(carrying)
    assert text.index("The answer</h2>") < text.index("Replayed under &lt;easy&gt;") < text.index("The numbers</h2>")
    assert carrying.to_dict()["trust"]["numbers"]["start_error_median"] == 6.0
