"""What the paper on moldable jobs claims, tested on small windows of the model with scipy's own tests.

Only what holds with a wide margin at this scale is asserted; `scenarios/published/moldable/claims.py` judges the rest.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.campaign.moldable import (
    BASELINE,
    COMBINED,
    GREEDY,
    LANES,
    WEIGHTS,
    MoldableCampaign,
    Point,
    Replicate,
    Unit,
    run_campaign,
)
from gridsim.metrics.moldable import CATEGORIES, category_responses, change
from gridsim.record import Record
from gridsim.report.moldable.claims import EXACT, QUESTIONS

SCRIPT = Path(__file__).resolve().parents[2] / "scenarios" / "published" / "moldable" / "claims.py"
WINDOWS = range(8)


@cache
def replicate(window: int) -> Replicate:
    """300 jobs of the model at base load 0.65."""
    return Replicate(MoldableCampaign(logs=("model",), jobs=300), Unit("model", window, "0.65"), None)


@cache
def record(window: int, scheme: str, load_factor: float = 100.0, sigma: float = 0.0, **where: Any) -> Record:
    return replicate(window).record(Point(load_factor=load_factor, sigma=sigma, scheme=scheme, **where))


def means(scheme: str, **where: Any) -> np.ndarray:
    """Logarithms of the mean responses, one a window."""
    records = [record(window, scheme, **where) for window in WINDOWS]
    return np.array([np.log(one.response[one.ran].mean()) for one in records])


def better(mine: str, theirs: str, **where: Any) -> float:
    """p that the first of two schemes is not better overall."""
    return float(stats.ttest_rel(means(mine, **where), means(theirs, **where), alternative="less").pvalue)


@pytest.mark.parametrize("scheme", COMBINED)
@pytest.mark.parametrize("load_factor", [100.0, 150.0])
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_the_combined_scheme_is_better_than_rigid_jobs(scheme: str, load_factor: float, sigma: float) -> None:
    """M33, M34: corners of the grid, with either weight factor."""
    assert better(scheme, BASELINE, load_factor=load_factor, sigma=sigma) < 0.025


@pytest.mark.parametrize("scheme", ["moldable-submit", "moldable-start"])
def test_fair_shares_are_better_than_the_greedy_choice(scheme: str) -> None:
    """M05."""
    assert better(scheme, GREEDY) < 0.01


def test_roots_of_weights_are_better_overall() -> None:
    """M20."""
    assert better(WEIGHTS[0], "moldable-base") < 0.001


def test_starting_on_scraps_is_worse_for_heavy_jobs() -> None:
    """X02: what is free now instead of the best choice; the three heaviest categories together."""
    scraps, best = (heavy(scheme) for scheme in ("moldable-start?backfill=now", "moldable-start"))
    assert stats.ttest_rel(np.log(scraps), np.log(best), alternative="greater").pvalue < 0.001
    assert change(scraps, best).change > 0.5


def heavy(scheme: str) -> np.ndarray:
    """Mean response of the jobs of categories 8 to 10, one a window."""
    found = []
    for window in WINDOWS:
        groups = [category_responses(record(window, scheme)).get(name, (0, 0.0)) for name in CATEGORIES[7:]]
        found.append(sum(jobs * mean for jobs, mean in groups) / sum(jobs for jobs, _ in groups))
    return np.array(found)


def test_the_combined_scheme_is_better_than_its_predecessor_where_jobs_scale_poorly() -> None:
    """M37, at load factor 150 and sigma 2."""
    assert better(COMBINED[0], "moldable-start", load_factor=150.0, sigma=2.0) < 0.01


@pytest.mark.parametrize("scheme", [*COMBINED, "moldable-start", *LANES])
def test_jobs_of_one_size_make_no_use_of_shares(scheme: str) -> None:
    """A large range factor leaves every job as it was, and limits play no part: all fair shares are backfilling."""
    one = record(0, scheme, range_factor=1000.0)
    np.testing.assert_array_equal(one.cores_used, one.workload.cores)


@pytest.mark.parametrize("claim", EXACT, ids=lambda claim: claim.id)
def test_what_the_code_decides_holds(claim: Any) -> None:
    """M01, M15, M23."""
    found = claim.judge()
    assert found.answer == "holds"
    assert found.n > 1000


def test_the_script_has_a_verdict_on_each_claim_and_says_what_it_lacks(tmp_path: Path) -> None:
    ledger, out = tmp_path / "claims.csv", tmp_path / "verdicts.csv"
    figures = [f"F{number:02}" for number in range(1, 15)]
    names = [*figures, *(claim.id for claim in EXACT), *(question.id for question in QUESTIONS)]
    ledger.write_text("id\n" + "\n".join(names) + "\n", encoding="utf-8")
    run = _script("--golden", str(tmp_path), "--ledger", str(ledger), "--out", str(out))
    assert run.returncode == 0, run.stderr
    assert "not testable here: 54, holds: 3" in run.stdout
    assert "case m09 not found" in run.stdout
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["claim"] for row in rows} == set(names)
    assert {row["base load"] for row in rows if row["claim"] == "F01"} == {"0.65", "as-logged"}
    assert {row["weight factor"] for row in rows if row["claim"] == "M30"} == {"1", "2"}


def test_rows_of_the_model_stand_in_for_both_logs(tmp_path: Path) -> None:
    campaign = MoldableCampaign(
        logs=("model",), windows=3, jobs=100, bases=("0.65",), experiments=("mold-fig04",), profiles=()
    )
    run_campaign(campaign, tmp_path)
    run = _script("--rows", str(tmp_path), "--log", "model")
    assert run.returncode == 0, run.stderr
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("| M20 |") and "| 0.65 |" in line)
    assert "| 3 | " in line
    assert "square-root weights against base, model LF 100" in line


def test_the_exact_cases_decide_too(shared: Path) -> None:
    run = _script("--golden", str(shared / "spec" / "golden" / "moldable"))
    for claim in EXACT:
        (line,) = (line for line in run.stdout.splitlines() if line.startswith(f"| {claim.id} |") and "case" in line)
        assert "**holds**" in line
        assert f"case {claim.cases} as expected" in line


def _script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
