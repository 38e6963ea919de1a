"""Predictors, correctors and backfill orders, in addition to the golden cases of the family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsim as gs
from gridsim.cli import main
from gridsim.metrics.prediction import prediction_metrics
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import policy
from gridsim.questions.explain import explain
from gridsim.questions.schedules import JobSchedule, read_schedules
from gridsim.report.explain_text import sentences

POLICIES = (
    "easy",
    "depth?k=3",
    "first-fit",
    "conservative",
    "backfilling?ordering=sjf",
    "backfilling?ordering=wfp3",
    "backfilling?ordering=xfactor",
)
ORDERS = ("queue", "shortest", "smallest-cores", "wfp3")


def drawn(seed: int, jobs: int = 60) -> gs.Workload:
    """Return jobs of four users, one of them unknown, with rough estimates and many equal submit times."""
    rng = np.random.default_rng(seed)
    runtime = rng.integers(1, 60, jobs)
    return gs.Workload.from_columns(
        submit=np.sort(rng.integers(0, jobs * 6, jobs)),
        runtime=np.where(rng.random(jobs) < 0.1, runtime * 2, runtime),
        estimate=np.where(rng.random(jobs) < 0.3, runtime, runtime * rng.integers(1, 8, jobs)),
        cores=rng.integers(1, 9, jobs),
        labels={"user": rng.integers(-1, 3, jobs)},
    )


def ran(workload: gs.Workload, text: Any, **options: Any) -> gs.Result:
    return gs.simulate(workload, platform=gs.Platform.single(cores=10), policy=text, **options)


class Slow:
    """A backfill cycle with two orders as specified: no profile, one cell per second."""

    def __init__(self, workload: gs.Workload, k: int, rank: Callable[[int], float]) -> None:
        self.jobs, self.k, self.rank = workload, k, rank
        self.held: dict[int, int] = {}

    def starts(self) -> list[int]:
        second = 1_000_000
        submit, estimate = self.jobs.submit // second, self.jobs.estimate // second
        runs = np.minimum(self.jobs.runtime // second, estimate)
        start = [-1] * len(self.jobs)
        waiting: list[int] = []
        for now in range(int(submit.max() + estimate.sum()) + 1):
            over = [job for job in self.held if start[job] + runs[job] == now]
            come = np.flatnonzero(submit == now).tolist()
            for job in over:
                del self.held[job]
            waiting += come
            if over or come:
                for job in self._decide(waiting, now, estimate):
                    start[job], self.held[job] = now, now + int(estimate[job])
                    waiting.remove(job)
        return start

    def _decide(self, waiting: list[int], now: int, estimate: Any) -> list[int]:
        spans = [(now, end, int(self.jobs.cores[job])) for job, end in self.held.items()]

        def able(job: int, at: int) -> bool:
            need, end = int(self.jobs.cores[job]), at + int(estimate[job])
            marks = [at, *(begin for begin, _, _ in spans if at < begin < end)]
            return all(need + sum(c for begin, stop, c in spans if begin <= t < stop) <= 10 for t in marks)

        begun, blocked, rest = [], 0, list(waiting)
        while rest and blocked < max(self.k, 1):
            job = rest.pop(0)
            at = now
            if able(job, now):
                begun.append(job)
            else:
                blocked += 1
                if blocked > self.k:
                    continue
                at = min(end for _, end, _ in spans if end > now and able(job, end))
            spans.append((at, at + int(estimate[job]), int(self.jobs.cores[job])))
        for job in sorted(rest, key=self.rank):
            if able(job, now):
                begun.append(job)
                spans.append((now, now + int(estimate[job]), int(self.jobs.cores[job])))
        return begun


@given(seed=st.integers(0, 10**6), k=st.sampled_from([0, 1, 3]))
def test_two_orders_are_those_of_a_slow_second_implementation(seed: int, k: int) -> None:
    jobs = drawn(seed, 40)
    for order, rank in (("shortest", jobs.estimate), ("smallest-cores", jobs.cores)):
        slow = Slow(jobs, k, rank.tolist().__getitem__).starts()
        fast = ran(jobs, f"backfilling?reserve=depth(k={k})&backfill_order={order}").record
        assert (fast.start_us // 1_000_000).tolist() == slow


@given(seed=st.integers(0, 10**6), text=st.sampled_from(POLICIES))
def test_requests_that_are_predicted_change_nothing(seed: int, text: str) -> None:
    jobs, more = drawn(seed), "&" if "?" in text else "?"
    plain = ran(jobs, text)
    corrected = ran(jobs, f"{text}{more}predict=requested&correct=steps")
    assert plain.record.start_us.tolist() == corrected.record.start_us.tolist()
    exact = gs.Workload.from_columns(
        **{name: getattr(jobs, name) / 1e6 for name in ("submit", "runtime")}, cores=jobs.cores, labels=jobs.labels
    )
    known = ran(exact, f"{text}{more}predict=clairvoyant").record
    assert known.start_us.tolist() == ran(exact, text).record.start_us.tolist()
    assert known.predictions is not None
    assert not known.predictions.corrections.any()


@given(seed=st.integers(0, 10**6), order=st.sampled_from(ORDERS), instant=st.sampled_from(["batched", "per-event"]))
def test_predictions_do_not_change_run_times(seed: int, order: str, instant: Any) -> None:
    jobs = drawn(seed)
    for predict in ("recent(n=1)", "average(alpha=0.3)", "similar"):
        for correct in ("steps", "added", "double(cap=False)"):
            text = f"easy?backfill_order={order}&predict={predict}&correct={correct}"
            record = ran(jobs, text, instant=instant).record
            held = np.minimum(jobs.runtime, jobs.estimate)
            assert (record.end_us - record.start_us == held).all()
            assert (record.start_us >= jobs.submit).all()
            assert record.predictions is not None
            first = record.predictions.prediction_us
            assert ((first >= 1_000_000) & (first <= jobs.estimate)).all()
            assert correct != "steps" or (record.predictions.corrections <= 12).all()


def test_the_last_job_is_an_average_that_forgets_all_others() -> None:
    jobs = drawn(3)
    last, forgets = (ran(jobs, f"easy?predict={text}&correct=steps") for text in ("recent(n=1)", "average(alpha=1.0)"))
    assert {name: column.tolist() for name, column in last.jobs.items()} == {
        name: column.tolist() for name, column in forgets.jobs.items()
    }


MEMORY = '''
from dataclasses import dataclass
import numpy as np

@dataclass
class Mean:
    """Mean of all that has run, whoever asked."""
    def setup(self, rng):
        self.ran = []
    def predict(self, queue, now):
        return np.full(len(queue), np.mean(self.ran) if self.ran else np.inf)
    def finished(self, queue, ran, now):
        self.ran += ran.tolist()

@dataclass
class Plus:
    by: float = 10.0
    def correct(self, first, present, times, estimate):
        return present + self.by

@dataclass
class Huge:
    def setup(self, rng): pass
    def correct(self, first, present, times, estimate):
        return 10**400
    def predict(self, queue, now):
        return [10**400]
    def finished(self, queue, ran, now): pass

@dataclass
class Bad:
    answer: float = -1.0
    def setup(self, rng): pass
    def predict(self, queue, now):
        return np.array([self.answer])
    def finished(self, queue, ran, now): pass
'''


def test_a_predictor_and_a_corrector_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MEMORY)
    jobs = gs.Workload.from_columns(
        submit=[0, 20, 40], runtime=[10, 16, 35], estimate=[100, 100, 100], cores=[1, 1, 1], labels={"user": [1, 2, 3]}
    )
    result = ran(jobs, f"easy?predict={file}:Mean&correct={file}:Plus(by=4)")
    assert result.jobs["prediction"].tolist() == [100, 10, 13]
    assert result.jobs["corrections"].tolist() == [0, 2, 6]
    with pytest.raises(gs.PolicyError, match=r"predicts \[-1.0\] for request 0"):
        ran(jobs, f"easy?predict={file}:Bad")
    with pytest.raises(gs.PolicyError, match=r"predicts \[nan\]"):
        ran(jobs, _with_nan(file))
    with pytest.raises(gs.PolicyError, match=r"corrects 10.0 s of request 1 to 10.0 s; expected more"):
        ran(jobs, f"easy?predict={file}:Mean&correct={file}:Plus(by=0)")
    huge = ran(jobs, f"easy?predict={file}:Mean&correct={file}:Huge")
    assert huge.jobs["corrections"].tolist() == [0, 1, 1]
    with pytest.raises(gs.PolicyError, match=r"expected one number of seconds"):
        ran(jobs, f"easy?predict={file}:Huge")


def _with_nan(file: Path) -> Any:
    made = policy(f"easy?predict={file}:Bad")
    made.predict.answer = float("nan")
    return made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fcfs?backfill_order=shortest", "has no effect without backfilling"),
        ("qops?predict=recent", "parameter of qops 'predict'"),
        ("moldable-greedy?predict=recent", "leave out partition, or predict"),
        ("moldable-start?predict=recent", "parameter of moldable-start 'predict'"),
        ("easy?predict=recent(n=0)", "at least 1 is needed"),
        ("easy?predict=average(alpha=0.0)", "alpha is 0.0"),
        ("easy?backfill_order=shortes", "shortest"),
    ],
)
def test_policies_without_predictions_are_refused(text: str, message: str) -> None:
    with pytest.raises(gs.GridsimError) as error:
        policy(text)
    assert message in str(error.value)


@pytest.mark.parametrize("predict", ["recent", "average", "similar", "clairvoyant"])
def test_promised_starts_are_not_predicted_in_per_event_order(predict: str, tmp_path: Path) -> None:
    with pytest.raises(gs.InputError, match="expected batched"):
        ran(drawn(0), f"conservative?predict={predict}", instant="per-event")
    words = ["compare", "--jobs", "20", "--policy", "easy", "--policy", f"conservative?predict={predict}"]
    assert main([*words, "--instant", "per-event", "--no-page", "--out", str(tmp_path)]) == 2


def test_promised_starts_by_requests_are_made_in_per_event_order_whatever_corrects_them() -> None:
    plain, corrected = (
        ran(drawn(0), text, instant="per-event").record
        for text in ("conservative", "conservative?predict=requested&correct=steps")
    )
    assert plain.start_us.tolist() == corrected.start_us.tolist()


def test_predictors_are_reported_and_defaults_are_not() -> None:
    assert repr(policy("easy")) == "Backfilling(ordering=Fifo(), reserve=Easy())"
    assert repr(policy("sjbf")).endswith("backfill_order=Shortest())")
    assert repr(policy("conservative?predict=recent")).endswith("predict=Recent(n=2))")
    assert capabilities_of(policy("easy?predict=clairvoyant")).oracle
    assert capabilities_of(policy("easy++")).predicts
    assert not capabilities_of(policy("sjbf")).predicts


def test_each_cluster_learns_from_its_own_jobs() -> None:
    jobs = drawn(5, 80)
    platform = gs.Platform.apart({"0": 10, "1": 10}, "partition")
    apart = np.arange(80) % 2
    split = gs.Workload.from_columns(
        **{name: getattr(jobs, name) / 1e6 for name in ("submit", "runtime", "estimate")},
        cores=jobs.cores,
        labels={"user": jobs.labels["user"], "partition": apart},
    )
    both = gs.simulate(split, platform=platform, policy="easy++").jobs
    for part in (0, 1):
        alone = ran(split.select(apart == part), "easy++").jobs
        for name in ("start", "prediction", "corrections"):
            assert both[name][apart == part].tolist() == alone[name].tolist()


def test_accuracy_is_reported_for_predictions_and_requests() -> None:
    numbers = ran(drawn(7), "easy++").metrics()
    assert 0 < numbers["prediction_accuracy"] < 1
    parts = ("prediction_under", "prediction_exact", "prediction_over")
    assert sum(numbers[name] for name in parts) == pytest.approx(1)
    plain = ran(drawn(7), "easy")
    assert "prediction_accuracy" not in plain.metrics()
    assert prediction_metrics(plain.record)["prediction_accuracy"] == pytest.approx(numbers["request_accuracy"])
    promised = ran(drawn(7), "conservative?predict=recent&correct=double").metrics()
    assert promised["starts_late"] >= 0
    assert {"promised", "moved", "late"} <= set(ran(drawn(7), "conservative?predict=recent").jobs)


def test_a_comparison_states_the_predictions_and_the_clairvoyant_policies() -> None:
    jobs, platform = drawn(7), gs.Platform.single(cores=10)
    policies = ["easy", "easy++", "sjbf?predict=clairvoyant", "conservative?predict=recent(n=1)"]
    told = gs.compare(jobs, platform=platform, policies=policies)
    text = " ".join(told.sentences())
    assert "Under sjbf?predict=clairvoyant, plans use true run times, which no real scheduler knows." in text
    assert "Under easy++, run times were predicted with an accuracy of" in text
    assert "of the jobs started after their first planned start" in text
    assert "Under easy, run times were predicted" not in text
    numbers = told.metrics
    assert numbers["easy"]["prediction_accuracy"] == numbers["easy"]["request_accuracy"]


def test_explaining_a_wait_names_who_exceeded_predictions(tmp_path: Path) -> None:
    # The predicted run time of job 2 is 10 s, as of job 1, but it runs 90 s; job 3 waits for it from 40 on.
    jobs = gs.Workload.from_columns(
        submit=[0, 30, 35], runtime=[10, 90, 5], estimate=[100, 100, 5], cores=[10, 10, 10], labels={"user": [1, 1, 2]}
    )
    result = ran(jobs, "easy?predict=recent(n=1)")
    result.write(tmp_path)
    for schedule in (JobSchedule.of(result.record), *read_schedules(tmp_path).values()):
        found = explain(schedule, 3)
        assert [(one.job, beyond) for one, beyond in found.exceeded] == [(2, 80.0)]
        (text,) = (it for it in sentences(found, "easy") if "predicted" in it)
        assert text == "While it waited, these jobs exceeded their predicted run times: job 2 of user 1 (1 min 20 s)."
    assert explain(JobSchedule.of(ran(jobs, "easy").record), 3).exceeded == ()
