"""The Lublin-Feitelson model against its specification: exact integrals, samples, and reproducibility by seed."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.random_streams import stream
from gridsim.model.time import seconds
from gridsim.model.workload import Workload
from gridsim.testing import lublin_cases as exactly
from gridsim.testing.conformance import CASES
from gridsim.testing.lublin_cases import check_case
from gridsim.workload.synthetic import lublin_parameters as law
from gridsim.workload.synthetic.lublin import (
    Lublin,
    default_workload,
    log_runtimes,
    overestimated,
    size_exponents,
    sizes,
    zipf_users,
)
from gridsim.workload.synthetic.lublin_parameters import (
    ALL,
    BATCH,
    BUCKET,
    BUCKETS,
    DAY,
    INTERACTIVE,
    DailyClock,
    JobClass,
    TruncatedGamma,
    cycle,
)
from gridsim.workload.synthetic.modal import customary_maximum

SEED = 2003
SAMPLE = 100_000
NOT_REJECTED = 0.001


@pytest.fixture(scope="module")
def sample() -> Workload:
    """Return one hundred thousand jobs of class all on 128 cores at the model's own load."""
    return Lublin(jobs=SAMPLE, f=0).generate(SEED)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    path = CASES / "moldable" / "m20-lublin-parts.json"
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


# Exact values


@pytest.mark.parametrize(
    ("cores", "size", "runtime", "load", "unscaled"),
    [
        (64, 6.841, 4463.9, 0.7816, 0.5978),
        (128, 12.134, 4358.0, 0.7222, 0.7222),
        (256, 22.169, 4286.2, 0.6829, 0.8689),
        (512, 41.393, 4235.7, 0.6557, 0.9597),
        (1024, 78.501, 4199.1, 0.6360, 1.0202),
    ],
)
def test_the_integrals_are_those_of_the_table(
    cores: int, size: float, runtime: float, load: float, unscaled: float
) -> None:
    fitted = ALL.on(cores)
    assert exactly.mean_size(fitted, cores) == pytest.approx(size, abs=6e-4)
    assert exactly.mean_runtime(fitted, cores) == pytest.approx(runtime, abs=0.06)
    assert Lublin(cores=cores).natural_load() == pytest.approx(load, abs=6e-5)
    assert Lublin(cores=cores, rescale=False).natural_load() == pytest.approx(unscaled, abs=6e-5)


@pytest.mark.parametrize(
    ("job_class", "size", "runtime", "gap", "load", "median"),
    [
        (ALL, 12.1339, 4358.0, 911.29, 0.7222, 108.13),
        (BATCH, 13.893, 9492.3, 3516.9, 0.3632, 814.7),
        (INTERACTIVE, 8.045, 241.02, 619.30, 0.0374, 13.57),
    ],
)
def test_each_class_has_its_published_means(
    job_class: JobClass, size: float, runtime: float, gap: float, load: float, median: float
) -> None:
    assert exactly.mean_size(job_class, 128) == pytest.approx(size, abs=6e-4)
    assert exactly.mean_runtime(job_class, 128) == pytest.approx(runtime, abs=0.06)
    assert job_class.log_gap.mean_exponential == pytest.approx(gap, abs=0.06)
    assert law.expected_load([job_class], 128) == pytest.approx(load, abs=6e-5)
    assert exactly.runtime_quantile(job_class, 128, 0.5) == pytest.approx(median, abs=0.06)


def test_size_probabilities_are_the_share_of_a_fine_grid() -> None:
    place = (np.arange(2000) + 0.5) / 2000
    for cores in (1, 2, 3, 9, 100, 128):
        fitted = ALL.on(cores)
        brute = np.zeros(cores + 1)
        for u_kind, kind_share in ((0.1, fitted.serial), (0.5, fitted.pow2), (0.9, 0.18)):
            for u_stage, stage_share in ((0.0, fitted.u_prob), (1.0, 1 - fitted.u_prob)):
                size = sizes(fitted, cores, u_kind, u_stage, place)
                brute += kind_share * stage_share * np.bincount(size, minlength=cores + 1) / len(place)
        np.testing.assert_allclose(law.size_probabilities(fitted, cores), brute, atol=5e-4)


def test_sizes_never_exceed_a_machine_that_is_no_power_of_two() -> None:
    u_kind, u_stage, u_place = np.random.default_rng(SEED).random((3, 20_000))
    for cores in (1, 2, 3, 5, 100, 129):
        size = sizes(ALL.on(cores), cores, u_kind, u_stage, u_place)
        assert size.min() == 1
        assert size.max() <= cores
        regular = size[(u_kind > ALL.serial) & (u_kind <= ALL.serial + ALL.pow2)]
        assert set(np.log2(regular) % 1) == {0.0}


def test_another_machine_moves_the_stages_and_the_tie_to_runtimes() -> None:
    fitted = ALL.on(256)
    assert (fitted.u_low, fitted.u_med, fitted.u_hi) == (0.8, 5.5, 8.0)
    assert fitted.pa == ALL.pa / 2
    assert ALL.on(256, rescale=False).pa == ALL.pa
    assert ALL.on(128) == ALL


@pytest.mark.long
def test_closed_form_of_the_mean_exponential_is_the_integral() -> None:
    for truncated in (ALL.short, ALL.long, ALL.log_gap, BATCH.short, BATCH.long, INTERACTIVE.log_gap):
        probability = (np.arange(400_000) + 0.5) / 400_000
        assert np.exp(truncated.quantile(probability)).mean() == pytest.approx(truncated.mean_exponential, rel=2e-4)


def test_the_golden_case_passes(golden: dict[str, Any]) -> None:
    assert check_case(golden) == []


def test_a_wrong_number_in_the_golden_case_is_found(golden: dict[str, Any]) -> None:
    golden = json.loads(json.dumps(golden))
    golden["cycle"]["batch"][3] += 3e-6
    golden["sizes"][0]["cores"] = 2
    golden["gap_points"]["quantiles"]["0.05"] += 1e-3
    golden["weather"] = "fair"
    assert len(check_case(golden)) == 4


# The clock


def walk(points: list[float], weights: np.ndarray) -> list[float]:
    """Return arrivals as in the model: subtract each bucket until the points of the job are used up."""
    bucket, fraction, times = 0, 0.0, []
    for left in points:
        while left > (1 - fraction) * weights[bucket % BUCKETS] * BUCKET:
            left -= (1 - fraction) * weights[bucket % BUCKETS] * BUCKET
            bucket, fraction = bucket + 1, 0.0
        fraction += left / (weights[bucket % BUCKETS] * BUCKET)
        times.append((bucket + fraction) * BUCKET)
    return times


def test_the_clock_agrees_with_the_literal_walk() -> None:
    points = np.exp(ALL.log_gap.draw(20_000, np.random.default_rng(SEED)))
    times = DailyClock(cycle(ALL)).time(np.cumsum(points))
    np.testing.assert_allclose(times, walk(points.tolist(), cycle(ALL)), atol=2e-6, rtol=0)


def test_the_clock_spends_a_day_of_points_in_a_day() -> None:
    for start_bucket in (0, 16, 47):
        clock = DailyClock(cycle(BATCH), start_bucket)
        assert clock.time([0.0, DAY, 1000 * DAY]).tolist() == [0.0, DAY, 1000 * DAY]
        assert (np.diff(clock.time(np.linspace(0, 3 * DAY, 5000))) > 0).all()


# Samples


def test_a_sample_has_the_reference_statistics(sample: Workload) -> None:
    runtime, gap = seconds(sample.runtime), np.diff(seconds(sample.submit), prepend=0.0)
    cores = sample.cores
    powers = (cores > 1) & (cores & (cores - 1) == 0)
    found_expected_deviation = {
        "mean size": (cores.mean(), 12.1339, 0.068),
        "mean runtime": (runtime.mean(), 4358.0, 28),
        "median runtime": (np.median(runtime), 107.4, 1.3),
        "90 % runtime": (np.quantile(runtime, 0.9), 14_627, 83),
        "mean gap": (gap.mean(), 911.29, 21),
        "median gap": (np.median(gap), 116.4, 0.6),
        "load": (sample.offered_load(128), 0.7222, 0.018),
        "Spearman": (stats.spearmanr(cores, runtime).statistic, 0.1271, 0.0031),
        "Pearson": (np.corrcoef(cores, runtime)[0, 1], 0.1754, 0.0051),
        "serial": ((cores == 1).mean(), 0.2440, 0.0013),
        "powers of two": (powers.mean(), 0.6251, 0.0012),
    }
    far = {name: row for name, row in found_expected_deviation.items() if not abs(row[0] - row[1]) <= 4 * row[2]}
    assert not far


def test_a_sample_has_the_reference_quantiles(sample: Workload) -> None:
    sizes_at = {0.25: 2, 0.5: 4, 0.75: 16, 0.9: 32, 0.95: 64, 0.99: 128}
    runtimes_at = {0.05: 4.75, 0.1: 7.39, 0.25: 19.59, 0.5: 108.13, 0.75: 7003.7, 0.9: 14632, 0.95: 19807, 0.99: 33911}
    for column, exact in ((sample.cores, sizes_at), (seconds(sample.runtime), runtimes_at)):
        for probability, value in exact.items():
            deviation = 4 * math.sqrt(probability * (1 - probability) / SAMPLE)
            assert (column < math.floor(value)).mean() <= probability + deviation
            assert (column <= math.floor(value)).mean() >= probability - deviation


def test_mean_runtime_grows_with_the_size(sample: Workload) -> None:
    exact = {1: 3596, 2: 3665, 4: 3802, 8: 4075, 16: 4623, 32: 5718, 45: 6607, 64: 7906, 128: 12_280}
    for cores, mean in exact.items():
        assert law.runtime_given_size(ALL, cores) == pytest.approx(mean, abs=0.6)
        runtime = seconds(sample.runtime[sample.cores == cores])
        assert abs(runtime.mean() - mean) < 4 * runtime.std() / math.sqrt(len(runtime))


def test_runtimes_follow_the_exact_mixture() -> None:
    cores = sizes(ALL, 128, *np.random.default_rng(SEED).random((3, SAMPLE)))
    runtime = np.exp(log_runtimes(ALL, cores, lambda role: stream(SEED, "test", role)))
    assert stats.kstest(exactly.runtime_cdf(ALL, 128, runtime), "uniform").pvalue > NOT_REJECTED


def test_runtimes_of_one_size_are_those_of_the_literal_redraw() -> None:
    for job_class, cores in ((ALL, 1), (ALL, 100), (BATCH, 128), (INTERACTIVE, 8)):
        rng, short = np.random.default_rng(SEED), law.short_weight(job_class, cores)
        literal = np.empty(0)
        while len(literal) < 20_000:
            first = rng.random(20_000) < short
            value = np.where(
                first, rng.gamma(job_class.a1, job_class.b1, 20_000), rng.gamma(job_class.a2, job_class.b2, 20_000)
            )
            literal = np.concatenate((literal, value[value <= 12]))
        ours = log_runtimes(job_class, np.full(20_000, cores), lambda role: stream(SEED, "test", role))
        assert ours.max() <= 12
        assert stats.ks_2samp(ours, literal).pvalue > NOT_REJECTED


@pytest.mark.parametrize("job_class", [ALL, BATCH, INTERACTIVE], ids=lambda job_class: job_class.name)
def test_gaps_follow_the_truncated_gamma(job_class: JobClass) -> None:
    points = np.exp(job_class.log_gap.draw(SAMPLE, stream(SEED, "workload", "arrivals", job_class.name)))
    assert points.max() <= math.exp(13)
    assert stats.kstest(job_class.log_gap.cdf(np.log(points)), "uniform").pvalue > NOT_REJECTED


def test_sizes_follow_their_exact_probabilities(sample: Workload) -> None:
    expected = SAMPLE * law.size_probabilities(ALL, 128)
    found = np.bincount(sample.cores, minlength=129)
    often = expected >= 5
    expected = np.append(expected[often], expected[~often].sum())
    found = np.append(found[often], found[~often].sum())
    assert stats.chisquare(found[expected > 0], expected[expected > 0]).pvalue > NOT_REJECTED


def test_arrivals_follow_the_daily_cycle_without_drift(sample: Workload) -> None:
    share = cycle(ALL).reshape(24, 2).sum(axis=1) / BUCKETS
    published = (
        "2.01 1.61 1.28 1.01 0.78 0.84 1.59 2.58 3.71 4.87 5.91 6.76 7.33 7.61 7.60 7.35 6.90 6.32 5.65 4.95 4.26 3.61 "
        "3.01 2.47"
    )
    np.testing.assert_allclose(100 * share, np.array(published.split(), dtype=float), atol=0.006)
    hour = (seconds(sample.submit) % DAY // 3600).astype(int)
    for part in (hour, hour[: SAMPLE // 5], hour[-SAMPLE // 5 :]):
        thinned = np.bincount(part[::20], minlength=24)
        assert stats.chisquare(thinned, share * thinned.sum()).pvalue > NOT_REJECTED


def test_two_classes_are_merged_by_time_in_proportion_to_their_rates() -> None:
    workload = Lublin(jobs=50_000, kind="two-class").generate(SEED)
    assert (np.diff(workload.submit) >= 0).all()
    rate = 1 / np.array([INTERACTIVE.log_gap.mean_exponential, BATCH.log_gap.mean_exponential])
    # Four standard deviations: gaps vary by 9.9 (interactive) and 5.8 (batch) times their means.
    assert workload.labels["queue"].mean() == pytest.approx(rate[1] / rate.sum(), abs=4 * 0.0105)
    for queue, job_class in enumerate((INTERACTIVE, BATCH)):
        runtime = seconds(workload.runtime[workload.labels["queue"] == queue])
        mean = exactly.mean_runtime(job_class, 128)
        assert abs(runtime.mean() - mean) < 4 * runtime.std() / math.sqrt(len(runtime))
    assert Lublin(kind="two-class").natural_load() == pytest.approx(0.401, abs=6e-4)
    assert workload.offered_load(128) == pytest.approx(0.4005, rel=4 * 0.09)


# Load


def test_a_load_makes_every_gap_longer_by_one_factor() -> None:
    own, wanted = Lublin(jobs=2000).generate(SEED), Lublin(jobs=2000, load=0.36).generate(SEED)
    assert wanted.provenance["gap_factor"] == pytest.approx(0.7222 / 0.36, rel=1e-4)
    assert wanted.submit[-1] / own.submit[-1] == pytest.approx(0.7222 / 0.36, rel=0.02)
    assert (own.runtime == wanted.runtime).all()


@pytest.mark.parametrize("kind", ["all", "two-class", "batch", "interactive"])
@pytest.mark.parametrize(("jobs", "load"), [(2, 0.1), (500, None), (5000, 0.65), (5000, 1.3)])
def test_a_realised_load_is_hit_on_the_nose(kind: str, jobs: int, load: float | None) -> None:
    model = Lublin(jobs=jobs, load=load, realised=True, kind=kind)
    workload = model.generate(SEED)
    wanted = model.natural_load() if load is None else load
    assert workload.offered_load(128) == pytest.approx(wanted, rel=1e-6)
    assert workload.provenance["realised_load"] == pytest.approx(wanted, rel=1e-6)
    assert len(workload) == jobs


# Estimates, users, and reproducibility by seed


def test_estimates_lie_between_the_runtime_and_f_times_more() -> None:
    runtime = np.random.default_rng(1).integers(1, 10_000, 5000).astype(float)
    factor = overestimated(runtime, np.random.default_rng(2), f=5) / runtime
    assert factor.min() >= 1
    assert factor.max() < 6
    assert stats.kstest((factor - 1) / 5, "uniform").pvalue > NOT_REJECTED
    minutes = overestimated(runtime, np.random.default_rng(2), f=5, step=60)
    assert (minutes % 60 == 0).all()
    assert (minutes >= factor * runtime).all()


def test_no_overestimate_is_the_runtime(sample: Workload) -> None:
    assert (sample.estimate == sample.runtime).all()
    assert (sample.runtime >= 1_000_000).all()
    assert (sample.runtime % 1_000_000 == 0).all()


def test_users_follow_zipf() -> None:
    found = np.bincount(zipf_users(20_000, 30, np.random.default_rng(3)), minlength=31)[1:]
    share = 1 / np.arange(1, 31)
    assert stats.chisquare(found, 20_000 * share / share.sum()).pvalue > NOT_REJECTED


def test_a_seed_gives_the_same_workload_again_and_another_seed_another() -> None:
    model = Lublin(jobs=3000, kind="two-class", users=9)
    first, again, other = model.generate(1), model.generate(1), model.generate(2)
    for (name, column), (_, repeated) in zip(first.columns(), again.columns(), strict=True):
        assert column.tobytes() == repeated.tobytes(), name
    assert first.provenance == again.provenance
    assert (first.submit != other.submit).any()
    assert (first.runtime != other.runtime).any()


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"f": 2.0}, {"estimate"}),
        ({"estimate_step": 60.0}, {"estimate"}),
        ({"users": 7}, {"user"}),
        ({"load": 0.3}, {"submit"}),
        ({"start_bucket": 20}, {"submit"}),
        ({"load": 0.3, "realised": True}, {"submit"}),
        ({"cores": 100}, {"cores", "runtime", "estimate", "submit"}),
    ],
)
def test_a_parameter_moves_only_what_it_means(change: dict[str, Any], moved: set[str]) -> None:
    base = Lublin(jobs=1000, users=20, load=0.5)
    before = dict(base.generate(SEED).columns())
    after = dict(dataclasses.replace(base, **change).generate(SEED).columns())
    assert {name for name in before if (before[name] != after[name]).any()} == moved


@pytest.mark.parametrize(("estimates", "dealt"), [("multiples", {"estimate"}), ("modal", set())])
def test_more_jobs_begin_with_the_same_ones(estimates: Any, dealt: set[str]) -> None:
    few, many = (
        Lublin(jobs=jobs, kind="two-class", users=9, estimates=estimates).generate(SEED) for jobs in (500, 5000)
    )
    shared_columns = {name for name, column in few.columns() if (column == dict(many.columns())[name][:500]).all()}
    assert shared_columns == {"job", "submit", "runtime", "cores", "deadline", "user", "queue"} | dealt


def test_estimates_are_modal_unless_multiples_are_requested_or_described() -> None:
    drawn = {str(model): model.generate(SEED) for model in (Lublin(jobs=300), Lublin(jobs=300, estimates="modal"))}
    plain, modal = drawn.values()
    assert plain.estimate.tolist() == modal.estimate.tolist()
    assert plain.provenance["parameters"] == modal.provenance["parameters"]
    multiples = Lublin(jobs=300, estimates="multiples").generate(SEED)
    assert multiples.estimate.tolist() == Lublin(jobs=300, f=5.0).generate(SEED).estimate.tolist()
    assert multiples.estimate.tolist() != plain.estimate.tolist()
    assert (multiples.provenance["parameters"]["estimates"], multiples.provenance["parameters"]["f"]) == (
        "multiples",
        5,
    )
    stepped = Lublin(jobs=300, estimate_step=60.0)
    assert (stepped.estimates_drawn, set((stepped.generate(SEED).estimate % 60_000_000).tolist())) == ("multiples", {0})


@pytest.mark.parametrize("field", ["f", "estimate_step"])
def test_parameters_of_multiples_are_refused_with_modal_estimates(field: str) -> None:
    with pytest.raises(InputError, match=f"field '{field}': requires estimates=multiples"):
        Lublin(estimates="modal", **{field: 2.0})  # type: ignore[arg-type]


def test_the_default_workload_has_modal_estimates_and_gives_the_old_ones_back() -> None:
    now, before = default_workload(jobs=500), default_workload(jobs=500, estimates="multiples")
    assert len(np.unique(now.estimate)) <= round(1.1 * 500**0.5)
    assert int(now.estimate.max()) == customary_maximum(now.runtime.max() / 1e6) * 1_000_000
    model = Lublin(jobs=500, load=0.5, realised=True, f=5.0, estimate_step=60.0, users=50)
    assert before.estimate.tolist() == model.generate(1).estimate.tolist()
    assert before.submit.tolist() == now.submit.tolist()


def test_provenance_is_json_and_says_everything() -> None:
    provenance = json.loads(json.dumps(dict(default_workload(jobs=50).provenance)))
    assert provenance["source"] == "lublin"
    assert provenance["seed"] == 1
    assert provenance["parameters"] == dataclasses.asdict(
        Lublin(jobs=50, load=0.5, realised=True, users=50, estimates="modal")
    )
    assert provenance["expected_load"] == 0.5
    assert provenance["realised_load"] == pytest.approx(0.5)


def test_the_default_workload_accepts_parameters() -> None:
    workload = default_workload(jobs=400, load=0.6, seed=3, cores=64)
    assert (len(workload), workload.cores_stated) == (400, 64)
    assert workload.cores.max() <= 64
    assert workload.offered_load(64) == pytest.approx(0.6)
    assert (workload.estimate >= workload.runtime).all()


def test_a_workload_of_one_job_has_no_load() -> None:
    workload = Lublin(jobs=1).generate(1)
    assert len(workload) == 1
    assert workload.provenance["realised_load"] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("jobs", 0),
        ("cores", 0),
        ("load", 0.0),
        ("load", math.nan),
        ("f", -1.0),
        ("users", 0),
        ("estimate_step", 0.0),
        ("start_bucket", 48),
    ],
)
def test_an_impossible_parameter_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"field '{field}': is {value}; expected"):
        Lublin(**{field: value})


def test_an_unknown_kind_answers_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'two-class'"):
        Lublin(kind="twoclass")


def test_helpers_refuse_impossible_parameters() -> None:
    rng = np.random.default_rng(1)
    for call in (
        lambda: overestimated(np.ones(1), rng, f=-1),
        lambda: overestimated(np.ones(1), rng, step=0),
        lambda: zipf_users(1, 0, rng),
        lambda: TruncatedGamma(1.0, 1.5, 12.0),
    ):
        with pytest.raises(InputError, match="expected"):
            call()


def test_exponents_fill_both_stages() -> None:
    assert size_exponents(ALL, [0.0, 1.0], [1.0, 0.0]).tolist() == [4.5, 4.5]
