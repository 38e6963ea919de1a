"""Deterministic parts of the Lublin-Feitelson model, compared with each number of its specification."""

from __future__ import annotations

import numpy as np
import pytest

from gridsim.testing import lublin_cases as exactly
from gridsim.workload.synthetic import lublin_parameters as law
from gridsim.workload.synthetic.lublin import SIZE_KINDS, size_exponents, size_kinds, sizes
from gridsim.workload.synthetic.lublin_parameters import ALL, BATCH, INTERACTIVE, DailyClock, JobClass, cycle


@pytest.mark.parametrize(
    ("job_class", "midnight", "five_in_the_morning", "busiest"),
    [
        (ALL, 0.50782072, 0.16491787, (27, 1.8331139)),
        (BATCH, 0.54615866, 0.34715449, (26, 1.66594016)),
        (INTERACTIVE, 0.51350544, 0.1186938, (28, 1.88099382)),
    ],
)
def test_the_daily_cycle(
    job_class: JobClass, midnight: float, five_in_the_morning: float, busiest: tuple[int, float]
) -> None:
    weights = cycle(job_class)
    assert len(weights) == 48
    assert weights.mean() == pytest.approx(1.0, abs=1e-12)
    assert weights[[0, 10]] == pytest.approx([midnight, five_in_the_morning], abs=1e-8)
    assert weights.argmax() == busiest[0]
    assert weights.max() == pytest.approx(busiest[1], abs=1e-8)


@pytest.mark.parametrize(
    ("start_bucket", "points", "time"),
    [
        (0, 0, 0.0),
        (0, 1, 1.969199),
        (0, 914.0775, 1800.000429),
        (0, 20_000, 37_821.31421),
        (0, 86_500, 86_596.919888),
        (0, 864_000, 864_000.0),
        (16, 1, 1.218288),
        (16, 7200, 7029.835134),
        (16, 200_000, 192_182.218177),
    ],
)
def test_the_clock(start_bucket: int, points: float, time: float) -> None:
    assert DailyClock(cycle(ALL), start_bucket).time(points) == pytest.approx(time, abs=1e-6)


@pytest.mark.parametrize(
    ("u_kind", "u_stage", "u_place", "kind", "exponent", "cores"),
    [
        (0.244, 0.5, 0.5, "serial", 2.65, 1),
        (0.2441, 0.5, 0.5, "power-of-two", 2.65, 8),
        (0.5, 0.2, 0.0, "power-of-two", 0.8, 2),
        (0.5, 0.86, 0.3, "power-of-two", 1.91, 4),
        (0.5, 0.8601, 0.0, "power-of-two", 4.5, 32),
        (0.82, 0.5, 0.4, "power-of-two", 2.28, 4),
        (0.8201, 0.5, 0.4, "other", 2.28, 5),
        (0.9, 0.9, 0.5, "other", 5.75, 54),
        (0.9, 0.99, 1.0, "other", 7.0, 128),
    ],
)
def test_uniform_numbers_make_sizes(
    u_kind: float, u_stage: float, u_place: float, kind: str, exponent: float, cores: int
) -> None:
    assert SIZE_KINDS[int(size_kinds(ALL, u_kind))] == kind
    assert size_exponents(ALL, u_stage, u_place) == pytest.approx(exponent, abs=1e-12)
    assert sizes(ALL, 128, u_kind, u_stage, u_place) == cores


@pytest.mark.parametrize(
    ("cores", "weight", "share"),
    [
        (1, 0.7746, 0.77431106),
        (32, 0.6072, 0.6068054),
        (128, 0.0888, 0.08866625),
        (144, 0.0024, 0.00239604),
        (145, 0, 0),
    ],
)
def test_wider_jobs_are_longer_more_often(cores: int, weight: float, share: float) -> None:
    assert law.short_weight(ALL, cores) == pytest.approx(weight, abs=1e-12)
    assert law.short_share(ALL, cores) == pytest.approx(share, abs=1e-8)


def test_exact_sizes() -> None:
    expected = {1: 0.244, 2: 0.1155531, 3: 0.02030921, 16: 0.13765476, 45: 0.00032318, 128: 0.01618492}
    probabilities = law.size_probabilities(ALL, 128)
    assert probabilities[list(expected)] == pytest.approx(list(expected.values()), abs=1e-8)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert probabilities[[2, 4, 8, 16, 32, 64, 128]].sum() == pytest.approx(0.6251, abs=5e-5)
    assert exactly.mean_size(ALL, 128) == pytest.approx(12.133928, abs=1e-6)


def test_exact_runtimes() -> None:
    quantiles = exactly.runtime_quantile(ALL, 128, [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
    expected = [7.386, 19.593, 108.125, 7003.672, 14_632.413, 19_806.895, 33_911.115]
    assert quantiles == pytest.approx(expected, abs=6e-4)
    assert law.mean_area(ALL, 128) == pytest.approx(84_241, abs=0.6)


def test_exact_gaps() -> None:
    gap = ALL.log_gap
    assert gap.shape == pytest.approx(10.46048175, abs=1e-8)
    assert gap.scale == 0.4871
    assert gap.kept == pytest.approx(0.99988345, abs=1e-8)
    assert gap.mean_exponential == pytest.approx(911.29, abs=6e-3)
    expected = [16.5882, 52.6332, 138.887, 424.576, 2780.6915, 12_651.7664]
    assert np.exp(gap.quantile([0.05, 0.25, 0.5, 0.75, 0.95, 0.99])) == pytest.approx(expected, abs=6e-4)
