"""Claims of the papers on guaranteed deadlines, tested on small windows of the model with scipy's tests.

The tests assert only results with a wide margin at this scale; `gridsim reproduce` judges the rest.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from gridsim.metrics.deadlines import broken, deadline_metrics
from gridsim.metrics.utilisation import arrival_window, utilisation
from gridsim.model.platform import Platform
from gridsim.model.random_streams import stream
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import Lublin
from gridsim.workload.synthetic.packed import Packed
from gridsim.workload.transform.deadlines import Deadlines
from gridsim.workload.transform.duplicate import Duplicate
from gridsim.workload.transform.estimates import ExactEstimates

CORES = 64
WINDOWS = range(6)
SCHEMES = ("qops", "msb", "mrt")


@cache
def trace(window: int, load: float = 1.6) -> Workload:
    """Jobs of a window of the model, 300 and duplicates."""
    base = ExactEstimates().apply(Lublin(jobs=300, cores=CORES, load=0.7).generate(window))
    return base if load == 1 else Duplicate(load=load).apply(base, stream(1, "claims", window))


@cache
def asked(window: int, stringency: float = 0.2, fraction: float = 1.0, load: float = 1.6) -> Workload:
    """The same with deadlines from the EASY schedule; the same jobs have one at each stringency."""
    deadlines = Deadlines(stringency=stringency, fraction=fraction)
    easy = simulate(trace(window, load), platform=Platform.single(CORES), policy="easy").record
    return deadlines.apply(trace(window, load), stream(1, "claims", "flags", window), easy)


@cache
def record(window: int, policy: str, stringency: float = 0.2, fraction: float = 1.0, load: float = 1.6) -> Record:
    return simulate(asked(window, stringency, fraction, load), platform=Platform.single(CORES), policy=policy).record


def numbers(metric: str, policy: str, **where: float) -> np.ndarray:
    """One value per window."""
    return np.array([deadline_metrics(record(window, policy, **where))[metric] for window in WINDOWS])


@pytest.mark.parametrize("policy", [*SCHEMES, "fqops?kill_restart=true"])
@pytest.mark.parametrize("fraction", [1.0, 0.2])
def test_every_promise_is_kept(policy: str, fraction: float) -> None:
    """TR-C21; P04-C07: also promises of jobs that were killed for others."""
    made = 0
    for window in WINDOWS:
        of = record(window, policy, fraction=fraction)
        assert not broken(of).any()
        made += int(deadline_metrics(of)["promises_made"])
    assert made > 300


@pytest.mark.parametrize("policy", SCHEMES)
def test_no_job_without_a_deadline_is_refused(policy: str) -> None:
    """TR-C22."""
    for window in WINDOWS:
        of = record(window, policy, fraction=0.2)
        assert of.ran[of.workload.deadline == asked(window, fraction=0.2).deadline.max()].all()
    assert numbers("deadline_unadmitted", policy, fraction=0.2).sum() > 0


@pytest.mark.parametrize("policy", SCHEMES)
def test_more_work_is_refused_the_more_stringent_deadlines_are(policy: str) -> None:
    """TR-C04; the number of jobs need not rise: here it is highest at 0.2 or 0.5."""
    refused = [numbers("deadline_unadmitted_area_share", policy, stringency=s) for s in (0.0, 0.2, 0.5, 0.8)]
    table = np.stack(refused, axis=1)
    assert stats.page_trend_test(table).pvalue < 0.001


@pytest.mark.parametrize("policy", SCHEMES)
def test_guarantees_cost_utilisation(policy: str) -> None:
    """TR-F06: lower than under EASY with the same jobs."""
    used = [
        np.array([utilisation(of, *arrival_window(of)) for of in (record(window, name) for window in WINDOWS)])
        for name in (policy, "easy")
    ]
    assert stats.ttest_rel(*used, alternative="less").pvalue < 0.025


@pytest.mark.parametrize("policy", SCHEMES)
@pytest.mark.parametrize("r", [0.0, 0.5, 5.0])
def test_packed_jobs_are_all_admitted_whatever_their_slack(policy: str, r: float) -> None:
    """TR-C01, and why TR-C02 cannot hold."""
    for seed in range(5):
        of = simulate(
            Packed(kind="dynamic", cores=8, jobs=40, r=r).generate(seed), platform=Platform.single(8), policy=policy
        ).record
        assert of.ran.all()


@pytest.mark.parametrize("policy", ["fqops", "fqops?slack_factor=1.5"])
def test_without_more_tolerance_than_slack_it_is_plain_qops(policy: str) -> None:
    """P04-C03: the same decisions and starts."""
    offered = 0.0
    for window in WINDOWS:
        plain, of = record(window, "qops"), record(window, policy)
        np.testing.assert_array_equal(of.start_us, plain.start_us)
        np.testing.assert_array_equal(of.status, plain.status)
        offered += deadline_metrics(of)["offers_made"]
    assert offered > 0
