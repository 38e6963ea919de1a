"""Figures 3, 4 and 5 of Burkimsher, Bate and Indrusiak, digit for digit; where the paper's digits are wrong, both.

Figures 3 and 4 show two schedules of one workload each, A and B; Figure 5 two jobs side by side. The charts are not in
the text: the printed values of schedule A of Figure 3 leave only these finish times, up to exchanging jobs 2 and 3.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import NamedTuple

import pytest

from gridsim.metrics.dag import dag_metrics
from gridsim.metrics.schedule import Schedule
from gridsim.testing.conformance import CASES
from gridsim.testing.exact_metrics import Exact, exact_jobs, exact_metrics
from gridsim.testing.grid_metrics_cases import check_metrics_case


class Task(NamedTuple):
    """A row of a table of tasks: job, start, execution time; all of one core, all jobs arrive at 0."""

    job: int
    start: int
    time: int


FIGURE_3A = [(1, 0, 3), (1, 5, 9), (2, 0, 2), (3, 3, 2), (4, 0, 2), (4, 2, 4), (4, 2, 4), (4, 6, 4), (4, 6, 4)]
FIGURE_3B = [(1, 0, 3), (1, 3, 9), (2, 0, 2), (3, 0, 2), (4, 2, 2), (4, 4, 4), (4, 4, 4), (4, 8, 4), (4, 8, 4)]
FIGURE_4A = [(1, 0, 1), (1, 2, 1), (1, 4, 1), (2, 1, 1), (2, 3, 1), (2, 5, 1)]
FIGURE_4B = [(1, 0, 1), (1, 1, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1), (2, 5, 1)]
FIGURE_5 = [(job, start, 1) for job in (1, 2) for start in range(5)]

PATHS_3, PATHS_4, PATHS_5 = (12, 2, 2, 6), (2, 3), (3, 5)
"""Critical paths: of Figure 3 a chain of two, two single tasks, and a fork into four; of 4 a fork and a chain."""


def schedule(rows: list[tuple[int, int, int]], critical_paths: tuple[int, ...], cores: int) -> Schedule:
    tasks = [Task(*row) for row in rows]
    return Schedule.from_tasks(
        arrival=[0] * len(critical_paths),
        critical_path=critical_paths,
        task_job=[task.job - 1 for task in tasks],
        task_start=[task.start for task in tasks],
        task_finish=[task.start + task.time for task in tasks],
        cores=cores,
    )


SCHEDULES = {
    "3a": schedule(FIGURE_3A, PATHS_3, 3),
    "3b": schedule(FIGURE_3B, PATHS_3, 3),
    "4a": schedule(FIGURE_4A, PATHS_4, 1),
    "4b": schedule(FIGURE_4B, PATHS_4, 1),
    "5": schedule(FIGURE_5, PATHS_5, 2),
}
BASES = {"3a": 14, "3b": 14, "4a": 6, "4b": 6, "5": 5}
"""Common base of cumulative completion: the longer makespan of the two schedules."""

EXACT = {name: exact_metrics(one, base=BASES[name]) for name, one in SCHEDULES.items()}


def column(figure: str, name: str) -> list[Exact]:
    return [job[name] for job in exact_jobs(SCHEDULES[figure])]


def two_decimals(value: Exact) -> str:
    """As the paper prints: halves away from 0."""
    hundredths = math.floor(Fraction(value) * 100 + Fraction(1, 2))
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def ratio(metric: str, figure: str) -> Exact:
    """Schedule B divided by schedule A, as Tables 3d and 4d print it."""
    a, b = EXACT[f"{figure}a"][metric], EXACT[f"{figure}b"][metric]
    return b / a if isinstance(a, float) or isinstance(b, float) else Fraction(b) / Fraction(a)


@pytest.mark.parametrize(
    ("figure", "work", "finish"),
    [
        ("3a", [12, 2, 2, 18], [14, 2, 5, 10]),
        ("3b", [12, 2, 2, 18], [12, 2, 2, 12]),
        ("4a", [3, 3], [5, 6]),
        ("4b", [3, 3], [3, 6]),
        ("5", [5, 5], [5, 5]),
    ],
)
def test_work_and_finish_of_the_jobs(figure: str, work: list[int], finish: list[int]) -> None:
    assert column(figure, "exec") == work
    assert column(figure, "finish") == finish


@pytest.mark.parametrize(
    ("figure", "stretch", "slr", "speedup"),
    [
        (
            "3a",
            [Fraction(7, 6), 1, Fraction(5, 2), Fraction(5, 9)],
            [Fraction(7, 6), 1, Fraction(5, 2), Fraction(5, 3)],
            [Fraction(6, 7), 1, Fraction(2, 5), Fraction(9, 5)],
        ),
        ("3b", [1, 1, 1, Fraction(2, 3)], [1, 1, 1, 2], [1, 1, 1, Fraction(3, 2)]),
        ("4a", [Fraction(5, 3), 2], [Fraction(5, 2), 2], [Fraction(3, 5), Fraction(1, 2)]),
        ("4b", [1, 2], [Fraction(3, 2), 2], [1, Fraction(1, 2)]),
        ("5", [1, 1], [Fraction(5, 3), 1], [1, 1]),
    ],
)
def test_stretch_slr_and_speedup_of_the_jobs(
    figure: str, stretch: list[Fraction], slr: list[Fraction], speedup: list[Fraction]
) -> None:
    assert column(figure, "stretch") == stretch
    assert column(figure, "slr") == slr
    assert column(figure, "speedup") == speedup


PRINTED = {
    "3a": {
        "makespan": "14.00",
        "flow": "0.29",
        "peak_in_flight": "3.00",
        "mean_stretch": "1.31",
        "worst_stretch": "2.50",
        "worst_slr": "2.50",
        "worst_speedup": "0.40",
        "cumulative_completion": "148.00",
        "sd_stretch": "0.84",
        "sd_slr": "0.67",
        "sd_speedup": "0.58",
    },
    "3b": {
        "makespan": "12.00",
        "flow": "0.33",
        "peak_in_flight": "3.00",
        "worst_stretch": "1.00",
        "mean_slr": "1.25",
        "worst_slr": "2.00",
        "mean_speedup": "1.13",
        "worst_speedup": "1.00",
        "cumulative_completion": "142.00",
        "sd_stretch": "0.17",
        "sd_slr": "0.50",
        "sd_speedup": "0.25",
    },
    "4a": {
        "makespan": "6.00",
        "utilisation": "1.00",
        "peak_in_flight": "2.00",
        "mean_stretch": "1.83",
        "worst_stretch": "2.00",
        "mean_slr": "2.25",
        "worst_slr": "2.50",
        "mean_speedup": "0.55",
        "worst_speedup": "0.50",
        "cumulative_completion": "9.00",
        "sd_stretch": "0.24",
        "sd_slr": "0.35",
        "sd_speedup": "0.07",
    },
    "4b": {
        "makespan": "6.00",
        "utilisation": "1.00",
        "peak_in_flight": "1.00",
        "mean_stretch": "1.50",
        "worst_stretch": "2.00",
        "mean_slr": "1.75",
        "worst_slr": "2.00",
        "mean_speedup": "0.75",
        "worst_speedup": "0.50",
        "cumulative_completion": "15.00",
        "sd_slr": "0.35",
        "sd_speedup": "0.35",
    },
}
"""Numbers of Tables 3d and 4d that are right, to two decimals."""


@pytest.mark.parametrize(("figure", "metric"), [(figure, metric) for figure in PRINTED for metric in PRINTED[figure]])
def test_the_tables_are_right_to_the_digit(figure: str, metric: str) -> None:
    assert two_decimals(EXACT[figure][metric]) == PRINTED[figure][metric]


@pytest.mark.parametrize(("figure", "percent"), [("3a", "81.0"), ("3b", "94.4")])
def test_utilisation_of_figure_3_in_per_cent(figure: str, percent: str) -> None:
    assert f"{float(100 * Fraction(EXACT[figure]['utilisation'])):.1f}" == percent


@pytest.mark.parametrize(
    ("figure", "metric", "printed", "exact", "right"),
    [
        ("3a", "mean_slr", "1.59", Fraction(19, 12), "1.58"),  # the average of rounded job values
        ("3a", "mean_speedup", "1.02", Fraction(71, 70), "1.01"),  # the same
        ("3b", "mean_stretch", "0.91", Fraction(11, 12), "0.92"),  # truncated
        ("4a", "flow", "0.30", Fraction(1, 3), "0.33"),
        ("4b", "flow", "0.30", Fraction(1, 3), "0.33"),
        ("4b", "sd_stretch", "0.70", math.sqrt(0.5), "0.71"),  # truncated
    ],
)
def test_a_misprint_of_the_tables(figure: str, metric: str, printed: str, exact: Exact, right: str) -> None:
    value = EXACT[figure][metric]
    assert value == (pytest.approx(exact, rel=1e-12) if isinstance(exact, float) else exact)
    assert two_decimals(value) == right != printed


@pytest.mark.parametrize(
    ("figure", "metric", "printed", "exact"),
    [
        ("3", "mean_slr", "0.78", 15 / 19),
        ("3", "mean_speedup", "1.10", 315 / 284),
        ("3", "sd_speedup", "0.42", 0.25 / 0.5829785121067768),
        ("4", "worst_slr", "1.00", 0.8),
        ("4", "sd_stretch", "2.94", 3.0),
    ],
)
def test_a_misprint_of_the_ratios(figure: str, metric: str, printed: str, exact: float) -> None:
    assert float(ratio(metric, figure)) == pytest.approx(exact, abs=5e-6)
    assert two_decimals(ratio(metric, figure)) != printed


@pytest.mark.parametrize(
    ("metric", "printed"),
    [
        ("makespan", "0.86"),
        ("utilisation", "1.17"),
        ("flow", "1.17"),
        ("sd_slr", "0.74"),
        ("cumulative_completion", "0.96"),
    ],
)
def test_the_ratios_of_figure_3_that_are_right(metric: str, printed: str) -> None:
    assert two_decimals(ratio(metric, "3")) == printed


def test_thirds_are_truncated_in_tables_4c_and_5c() -> None:
    five_thirds = column("4a", "stretch")[0]
    assert five_thirds == column("5", "slr")[0] == Fraction(5, 3)
    assert two_decimals(five_thirds) == "1.67"
    assert math.floor(100 * five_thirds) == 166


def test_the_printed_mean_slr_is_the_mean_of_rounded_values() -> None:
    rounded = [Fraction(two_decimals(value)) for value in column("3a", "slr")]
    assert two_decimals(sum(rounded) / 4) == "1.59"


def test_cumulative_completion_142_is_on_the_base_of_the_longer_schedule() -> None:
    assert exact_metrics(SCHEDULES["3b"], base=14)["cumulative_completion"] == 142
    assert exact_metrics(SCHEDULES["3b"])["cumulative_completion"] == 74


def test_the_tables_count_from_arrival_and_not_from_start() -> None:
    """Section 2.2.1 says from start: job 2 of Figure 4 B, which runs in [3, 6), would then have stretch 1."""
    second = exact_jobs(SCHEDULES["4b"])[1]
    assert second["stretch"] == 2
    assert second["response_from_start"] == second["exec"] == 3


def test_the_deviations_are_those_of_samples() -> None:
    population = {"3a": "0.72", "4a": "0.17"}
    for figure, wrong in population.items():
        n = len(SCHEDULES[figure])
        value = EXACT[figure]["sd_stretch"]
        assert two_decimals(float(value) * math.sqrt((n - 1) / n)) == wrong != PRINTED[figure]["sd_stretch"]


def test_better_packing_raises_every_number_but_cumulative_completion() -> None:
    """Section 3.2.1, where A and B are swapped: flow and utilisation are higher for B, and B is the fairer one."""
    a, b = EXACT["3a"], EXACT["3b"]
    for metric in ("utilisation", "flow", "mean_speedup", "worst_speedup"):
        assert b[metric] > a[metric]
    for metric in ("makespan", "mean_stretch", "worst_stretch", "mean_slr", "worst_slr"):
        assert b[metric] < a[metric]
    for metric in ("sd_stretch", "sd_slr", "sd_speedup"):
        assert b[metric] < a[metric]
    assert b["cumulative_completion"] < a["cumulative_completion"]
    assert [b < a for a, b in zip(column("3a", "finish"), column("3b", "finish"), strict=True)] == [
        True,
        False,
        True,
        False,
    ]


def test_jobs_in_sequence_are_fewer_in_flight_and_the_first_is_done_earlier() -> None:
    """Section 3.2.2, where A and B are swapped: the peak of 2 is that of A, the earlier job 1 is in B."""
    assert (EXACT["4a"]["peak_in_flight"], EXACT["4b"]["peak_in_flight"]) == (2, 1)
    assert (column("4a", "finish")[0], column("4b", "finish")[0]) == (5, 3)
    assert (column("4b", "stretch")[0], column("4b", "slr")[0]) == (1, Fraction(3, 2))


def test_when_dependencies_count_both_schedules_of_figure_4_are_equally_fair() -> None:
    assert EXACT["4a"]["sd_slr"] == EXACT["4b"]["sd_slr"] == pytest.approx(0.3535533905932738, rel=1e-12)
    assert EXACT["4a"]["sd_stretch"] < EXACT["4b"]["sd_stretch"]
    assert EXACT["4a"]["sd_speedup"] < EXACT["4b"]["sd_speedup"]


def test_only_the_slr_reports_unused_parallelism_from_a_chain() -> None:
    """Figure 5: the same tasks on one processor each."""
    assert column("5", "stretch") == column("5", "speedup") == [1, 1]
    assert column("5", "slr") == [Fraction(5, 3), 1]


@pytest.mark.parametrize("figure", SCHEDULES)
def test_the_fast_numbers_are_the_exact_ones(figure: str) -> None:
    fast = dag_metrics(SCHEDULES[figure], base=BASES[figure])
    exact = EXACT[figure]
    assert list(fast) == list(exact)
    for name, value in exact.items():
        assert fast[name] == pytest.approx(float(value), rel=1e-12, abs=1e-15, nan_ok=True), name


METRICS = (
    "m1-figure3-schedule-a",
    "m2-figure3-schedule-b",
    "m3-figure4-schedule-a",
    "m4-figure4-schedule-b",
    "m5-figure5",
)


@pytest.mark.parametrize("name", METRICS)
def test_the_golden_cases_hold_in_every_field(name: str) -> None:
    case = json.loads((CASES / "grid-dag" / f"{name}.json").read_text())
    assert check_metrics_case(case) == []
