"""The study of inaccurate estimates: the meaning of its numbers, and an end-to-end run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.simulation import simulate
from gridsim_papers.deadline.estimates import PLACES, slack_figure

SCRIPT = Path(__file__).resolve().parents[3] / "scenarios" / "published" / "deadline" / "estimates.py"
STUDY = runpy.run_path(str(SCRIPT))
SECOND = 1_000_000


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Rows of the tiny scale, as stored by the command line; 6 s CPU."""
    out = tmp_path_factory.mktemp("estimates")
    old, sys.argv = sys.argv, ["estimates.py", "--scale", "tiny", "--out", str(out)]
    try:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    finally:
        sys.argv = old
    assert [path.name for path in (out / "runs").iterdir()] == ["model-0-1.3.csv"]
    assert (out / "slack-model-1.3.png").is_file()
    found: list[Any] = STUDY["TABLE"].read(out)
    return found


def values(rows: list[Any], metric: str, **where: Any) -> list[float]:
    return [
        row["value"]
        for row in rows
        if row["metric"] == metric and all(row[name] == value for name, value in where.items())
    ]


def test_exact_estimates_break_no_promise_wherever_the_slack_is(rows: list[Any]) -> None:
    kept = values(rows, "kept_share", part="short", spread=0.0)
    assert kept == [1.0] * len(PLACES) * len(STUDY["SLACKS"])
    assert min(values(rows, "kept_share", part="short", spread=1.0, slack=1.0)) < 1


def test_more_in_reserve_keeps_more_promises_and_rejects_no_job(rows: list[Any]) -> None:
    for spread in STUDY["SPREADS"]:
        kept = values(rows, "kept_share", slack_by="reserve", spread=spread)
        assert kept == sorted(kept)
        assert len(set(values(rows, "deadline_unadmitted_share", slack_by="reserve", spread=spread))) == 1


def test_no_slack_in_requests_is_none_in_reserve(rows: list[Any]) -> None:
    for metric in ("kept_share", "deadline_unadmitted_share", "promises_made"):
        reserve, request = (values(rows, metric, slack_by=place, slack=1.0) for place in ("reserve", "request"))
        assert reserve == request


def test_users_estimates_and_exact_ones_are_compared_on_the_same_jobs(rows: list[Any]) -> None:
    for scheme in STUDY["SCHEMES"]:
        for estimates in ("logged", "exact"):
            assert values(rows, "promises_broken", part="long", scheme=scheme, estimates=estimates) == [0.0]
    unit = STUDY["SCALES"]["tiny"][0]
    window = STUDY["window_of"](unit)
    assert (window.runtime <= window.estimate).all()
    assert len(window) == 300


def test_responses_are_stretched_exactly_and_no_deadline_stays_none() -> None:
    submit, deadline = np.array([10, 10, 7]), np.array([13, 20, NEVER])
    assert STUDY["stretched"](submit, deadline, 1.1).tolist() == [14, 21, NEVER]  # 3.3 and 11 after the submit
    assert STUDY["stretched"](submit, deadline, 1.0).tolist() == deadline.tolist()


def test_broken_promises_are_distinguished_from_wrong_estimates() -> None:
    # The first job runs 20 s instead of 10 and so breaks its own promise and that of the second.
    jobs = Workload.from_columns(
        submit=[0, 0, 100], runtime=[20, 5, 5], estimate=[10, 5, 5], cores=[4, 4, 4], deadline=[10, 16, 105]
    )
    record = simulate(jobs, platform=Platform.single(4), policy="qops", overrun="extend").record
    assert STUDY["late"](record).tolist() == [True, True, False]
    assert STUDY["kept_with_reserve"](record) == pytest.approx(1 / 3)
    assert STUDY["innocent"](record) == 0.5
    assert STUDY["kept_with_reserve"](record, 2.0) == 1.0
    assert np.isnan(STUDY["innocent"](record, 2.0))


def test_the_figure_has_a_panel_for_each_place_of_slack_and_a_line_for_each_spread(rows: list[Any]) -> None:
    figure = slack_figure(rows)
    assert len(figure.axes) == 2 * len(PLACES)
    for axes in figure.axes:
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) == len(STUDY["SLACKS"])]
        assert len(lines) >= len(STUDY["SPREADS"])
    last = figure.axes[0].containers[-1][0]
    assert list(last.get_ydata()) == values(rows, "kept_share", slack_by="reserve", spread=1.0)


def test_no_rows_are_no_figure() -> None:
    with pytest.raises(InputError, match="no rows of slack"):
        slack_figure([])


def test_a_log_without_its_folder_is_refused() -> None:
    with pytest.raises(InputError, match="'ctc' is a log; give the folder that holds it"):
        STUDY["window_of"](STUDY["SCALES"]["small"][0])


def test_the_scales_are_windows_of_the_logs_at_three_loads() -> None:
    assert [len(STUDY["SCALES"][scale]) for scale in ("tiny", "small", "full")] == [1, 9, 75]
