"""Deviation of a comparison from the recorded schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridsim.metrics.agreement import agreement
from gridsim.questions.replay import Replay
from gridsim.report import page
from gridsim.report.comparison import Comparison
from gridsim.report.validation import trust


@pytest.mark.long
def test_without_logged_waits_nothing_is_reported(comparison: Comparison) -> None:
    assert trust(comparison) is None
    assert 'class="trust"' not in page.render(comparison)


@pytest.mark.long
def test_additional_results_of_a_comparison_are_reported_below_the_answer(comparison: Comparison) -> None:
    far = agreement(comparison.records["fcfs"], comparison.records["greedy"].start_us)
    carrying = replace(comparison, replay=Replay("fcfs", replace(far, median=6.0)))
    text = page.render(carrying)
    assert text.index("Results</h2>") < text.index("Under fcfs, the most accurate") < text.index("Metrics</h2>")
    assert carrying.to_dict()["validation"]["numbers"]["start_error_median"] == 6.0
