"""Modal estimates: the worked counts, the assignment compared with a slow one, and the fit to logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gridsim.errors import InputError
from gridsim.model.random_streams import stream
from gridsim.model.tasks import Tasks
from gridsim.model.time import FloatArray
from gridsim.model.workload import Workload
from gridsim.scenario import transformed
from gridsim.simulation import simulate
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin, default_workload, overestimated
from gridsim.workload.synthetic.modal import Law, Modal, customary_maximum
from gridsim.workload.transform.estimates import ExactEstimates
from gridsim.workload.transform.rough_estimates import ModalEstimates

HOUR = 3600
WORKED = [100, 127, 107, 90, 76, 64, 54, 46, 39, 33, 28, 23, 20, 17, 14, 12, 10, 8, 7, 6]
WORKED_TAIL = [32, 17, 12, 9, 8, 6, 6, 5, 4, 4, 4, 3, 3, 3, 3]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_worked_counts() -> None:
    values, counts = Law().mix(1000, 18 * HOUR, rng())
    assert counts.tolist() == [*WORKED, *WORKED_TAIL]
    minutes = [1080, 120, 15, 30, 5, 60, 10, 180, 240, 360, 20, 720, 600, 480, 300, 90, 40, 45, 150, 900]
    assert (values[:20] / 60).tolist() == minutes
    assert len(set(values.tolist())) == 35
    assert (values[20:] % 300 == 0).all()
    assert values.max() == 18 * HOUR


@pytest.mark.parametrize("maximum", [60, 300, 600, 3600])
def test_a_short_limit_has_the_values_below_it_and_all_jobs_get_one(maximum: int) -> None:
    values, counts = Law().mix(5000, maximum, rng())
    assert counts.sum() == 5000
    assert values.max() == maximum == values[0]
    assert len(set(values.tolist())) == len(values)
    assert (values > 0).all()


def test_the_maximum_is_a_customary_limit() -> None:
    assert [customary_maximum(hours * HOUR) // HOUR for hours in (0, 18, 18.1, 40, 168, 169)] == [
        18,
        18,
        24,
        48,
        168,
        192,
    ]


def slowly(runtime: list[float], law: Law, seed: int, maximum: int) -> list[float]:
    """Implement section 1.2 of the specification, with the pool as a list."""
    draws = rng(seed)
    values, counts = law.mix(len(runtime), maximum, draws)
    left = sorted(
        (v for v, count in zip(values.tolist(), counts.tolist(), strict=True) for _ in range(count)), reverse=True
    )
    uniform = draws.random((len(runtime), 2)).tolist()
    found = [0.0] * len(runtime)
    for (first, second), job in zip(
        uniform, sorted(range(len(runtime)), key=lambda row: (-runtime[row], row)), strict=True
    ):
        pool = [value for value in left if value >= runtime[job]]
        if not pool:
            found[job] = -(-runtime[job] // 300) * 300
            continue
        found[job] = pool[-1] if first < law.tight else pool[int(second * len(pool))]
        left.remove(found[job])
    return found


@settings(max_examples=15)
@given(
    st.lists(st.integers(1, 30 * HOUR), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.integers(0, 5),
    st.sampled_from([600, 18 * HOUR, 36 * HOUR]),
)
def test_the_dealing_is_that_of_the_text(runtime: list[int], tight: float, seed: int, maximum: int) -> None:
    law = Law(tight=tight, spread=5)
    found = Modal.of(np.array(runtime, dtype=float), law, rng(seed), maximum=maximum)
    assert found.estimate.tolist() == slowly([float(it) for it in runtime], law, seed, maximum)
    assert (found.estimate >= runtime).all()


def test_all_values_are_given_where_all_suffice() -> None:
    found = Modal.of(np.full(1000, 60.0), Law(), rng())
    assert sorted(Counter(found.estimate.tolist()).values()) == sorted([*WORKED, *WORKED_TAIL])
    assert found.repaired == 0


def distance(mine: FloatArray, theirs: FloatArray) -> float:
    """Return Kolmogorov's distance: the largest difference between the distribution functions."""
    points = np.concatenate([mine, theirs])
    shares = [np.searchsorted(np.sort(each), points, side="right") / len(each) for each in (mine, theirs)]
    return float(np.abs(shares[0] - shares[1]).max())


def read(name: str, hours: int, others: Callable[[str], Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates and run times of a log, s, without the few jobs whose request exceeds the limit."""
    if name == "generated":  # its own estimates are modal, so resampled ones have the same law
        log = Lublin(jobs=10_000, cores=256, estimates="modal").generate(7)
    else:
        log = read_workload(others(f"swf/{name}.swf.gz"))
    log = log.select(log.estimate <= hours * HOUR * 1_000_000)
    return log.estimate / 1e6, np.minimum(log.runtime, log.estimate) / 1e6


FITS = [
    ("generated", 36, 0.10, (0.0, 1.0)),
    pytest.param("CTC-SP2-1996-3.1-cln", 18, 0.238, (0.40, 0.42), marks=pytest.mark.others),
    pytest.param("SDSC-SP2-1998-4.2-cln", 18, 0.097, (0.34, 0.37), marks=pytest.mark.others),
    pytest.param("SDSC-BLUE-2000-4.2-cln", 36, 0.011, (0.28, 0.31), marks=pytest.mark.others),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "hours", "share", "accuracy"), FITS)
def test_estimates_are_like_those_of_logs(
    name: str, hours: int, share: float, accuracy: tuple[float, float], others: Callable[[str], Path]
) -> None:
    own, runtime = read(name, hours, others)
    for seed in (1, 2, 3):
        found = Modal.of(runtime, Law(share_max=share), rng(seed), maximum=hours * HOUR)
        _, counts = np.unique(found.estimate, return_counts=True)
        assert 0.86 <= np.sort(counts)[-20:].sum() / len(own) <= 0.92
        assert distance(runtime / found.estimate, runtime / own) <= 0.10
        assert accuracy[0] <= np.mean(runtime / found.estimate) <= accuracy[1]
        assert found.repaired == 0


TABLE = [  # limit, h; share; distances of estimates and of accuracy, also for defaults; correlation; near 1; values
    ("generated", 36, 0.10, (0.02, 0.02), (0.01, 0.01), None, None, 110),
    pytest.param(
        *("CTC-SP2-1996-3.1-cln", 18, 0.238, (0.079, 0.194), (0.051, 0.175), 0.75, 0.112, 306), marks=pytest.mark.others
    ),
    pytest.param(
        *("SDSC-SP2-1998-4.2-cln", 18, 0.097, (0.082, 0.080), (0.056, 0.053), 0.65, 0.087, 256),
        marks=pytest.mark.others,
    ),
    pytest.param(
        *("SDSC-BLUE-2000-4.2-cln", 36, 0.011, (0.136, 0.202), (0.071, 0.079), 0.47, 0.073, 530),
        marks=pytest.mark.others,
    ),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("name", "hours", "share", "of_estimates", "of_accuracy", "rho", "near", "values"), TABLE)
def test_the_fit_is_that_of_the_table(
    name: str,
    hours: int,
    share: float,
    of_estimates: tuple[float, float],
    of_accuracy: tuple[float, float],
    rho: float | None,
    near: float | None,
    values: int,
    seed: int,
    others: Callable[[str], Path],
) -> None:
    own, runtime = read(name, hours, others)
    for law, estimates, accuracy in zip((Law(share_max=share), Law()), of_estimates, of_accuracy, strict=True):
        drawn = Modal.of(runtime, law, rng(seed), maximum=hours * HOUR).estimate
        assert distance(drawn, own) == pytest.approx(estimates, abs=0.02)
        assert distance(runtime / drawn, runtime / own) == pytest.approx(accuracy, abs=0.02)
        if law.share_max == share:
            assert len(np.unique(drawn)) == values
            assert rho is None or stats.spearmanr(runtime, drawn)[0] == pytest.approx(rho, abs=0.02)
            assert near is None or np.mean(runtime / drawn > 0.95) == pytest.approx(near, abs=0.01)
    multiples = overestimated(runtime, rng(seed))
    assert distance(multiples, own) > 0.2
    assert distance(runtime / multiples, runtime / own) > 0.3
    assert stats.spearmanr(runtime, multiples)[0] > 0.95


LONG = [pytest.mark.others, pytest.mark.long]
RESULTS = [  # mean bounded slowdown under EASY and SJBF: own estimates, modal estimates, and tolerances
    pytest.param("SDSC-SP2-1998-4.2-cln", (87.2, 96.5), (85.9, 60.5), (7.5, 5.0), marks=LONG),
    pytest.param("CTC-SP2-1996-3.1-cln", (40.2, 29.0), (36.5, 18.7), (4.5, 2.5), marks=LONG),
    ("generated", None, None, None),
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("name", "own", "modal", "off"), RESULTS)
def test_the_effect_of_modal_estimates_on_results(
    name: str,
    own: tuple[float, float] | None,
    modal: tuple[float, float] | None,
    off: tuple[float, float] | None,
    seed: int,
    others: Callable[[str], Path],
) -> None:
    def slowdown(jobs: Workload, policy: str) -> float:
        return simulate(jobs, policy=policy).metrics()["bounded_slowdown_mean"]

    if name == "generated":
        log = default_workload(jobs=1000, seed=seed)
    else:
        log = read_workload(others(f"swf/{name}.swf.gz")).select(slice(20_000, 30_000))
        log = replace(log, runtime=np.minimum(log.runtime, log.estimate))
    drawn = [ModalEstimates().apply(log, stream(seed, "modal", number)) for number in range(6)]
    means = {policy: float(np.mean([slowdown(it, policy) for it in drawn])) for policy in ("easy", "sjbf")}
    if own is None or modal is None or off is None:
        exact = ExactEstimates().apply(log)
        assert slowdown(exact, "sjbf") < means["sjbf"] < means["easy"]
        return
    for policy, before, now, width in zip(means, own, modal, off, strict=True):
        assert slowdown(log, policy) == pytest.approx(before, abs=0.05)
        assert means[policy] == pytest.approx(now, abs=width)


@pytest.mark.parametrize("name", ["generated", pytest.param("lublin_256", marks=pytest.mark.others)])
def test_a_synthetic_log_gets_estimates(name: str, others: Callable[[str], Path]) -> None:
    if name == "generated":
        log = Lublin(jobs=10_000, cores=256).generate(3)
    else:
        log = read_workload(others(f"swf/{name}.swf.gz"), rules={"missing-estimate": "repair"})
    modal = ModalEstimates().apply(log, rng())
    told, longest = modal.provenance["transforms"][-1], customary_maximum(log.runtime.max() / 1e6)
    counts = np.unique(modal.estimate, return_counts=True)[1]
    assert (told["transform"], told["maximum"], told["repaired"]) == ("modal", longest, 0)
    assert told["values"] == len(counts) == 110
    assert np.sort(counts)[-20:].sum() / len(log) == pytest.approx(0.897, abs=0.003)
    if name != "generated":
        assert longest == 36 * HOUR
        assert np.mean(modal.runtime / modal.estimate) == pytest.approx(0.24, abs=0.01)


def test_the_built_in_workload_takes_them_and_moves_nothing_else() -> None:
    modal, multiples = (Lublin(jobs=200, estimates=kind).generate(1) for kind in ("modal", "multiples"))  # type: ignore[arg-type]
    assert modal.submit.tolist() == multiples.submit.tolist()
    assert modal.runtime.tolist() == multiples.runtime.tolist()
    assert (modal.estimate >= modal.runtime).all()
    assert len(np.unique(modal.estimate)) <= 36


def test_a_log_without_estimates_gets_them_from_the_seed_of_the_scenario() -> None:
    log = Workload.from_columns(submit=np.arange(50), runtime=np.arange(1, 51) * 60, cores=np.ones(50, dtype=int))
    once, again = (transformed(log, ["modal?maximum=64800&share_max=0.1"]) for _ in range(2))
    assert once.estimate.tolist() == again.estimate.tolist()
    assert once.estimate.max() == 64_800_000_000


def test_a_deadline_that_cannot_be_requested_any_more_moves() -> None:
    log = Workload.from_columns(submit=[0, 5], runtime=[60, 60], cores=[1, 1], deadline=[60, 1e6])
    changed = ModalEstimates().apply(log, rng())
    assert changed.deadline.tolist() == np.maximum(log.deadline, log.submit + changed.estimate).tolist()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("modal?share_max=0.9", "field 'share_max': is 0.9; expected 0 to head_share, which is 0.88"),
        ("modal?maximum=10", "field 'maximum': is 10; expected 60 to"),
        ("modal?tight=2", "field 'tight'"),
        ("modal?head=0", "field 'head'"),
    ],
)
def test_errors_are_reported(spec: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        transformed(Workload.from_columns(submit=[0], runtime=[1], cores=[1]), [spec])
    assert told in str(error.value)


def test_dag_jobs_are_refused() -> None:
    tasks = Tasks.from_edges(counts=[2], runtime=[1, 1], cores=[1, 1], kind=[0, 0], kinds=("any",), edges=[])
    with pytest.raises(InputError, match="workflows"):
        ModalEstimates().apply(Workload.from_tasks(tasks, submit=[0]), rng())
