"""Forecasts at moments of a log: laws, texts, bad input, and kept calibration pairs."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.forecasts.answer import Answer, JobForecast
from gridsim.forecasts.answers import forecaster_of
from gridsim.forecasts.intervals import LEVELS
from gridsim.forecasts.model import Options
from gridsim.forecasts.new_job import NewJob
from gridsim.model.dates import Calendar
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.policy.presets import policy as make_policy
from gridsim.report.forecast_text import sentence, sentences, times
from gridsim.workload.formats.swf_writer import write_swf
from tests.forecasts.states import state_of

GOLDEN = Path(__file__).parent / "golden"
DAY = 86_400
AT = 45 * DAY


def busy_log(seed: int = 1, days: int = 60) -> gs.Workload:
    rng = np.random.default_rng(seed)
    n = 16 * days
    run = np.minimum(rng.lognormal(8.3, 1.2, n).astype(int) + 1, DAY)
    estimate = np.minimum(run * rng.integers(1, 5, n), 2 * DAY)
    submit = np.sort(rng.integers(0, days * DAY, n))
    columns: dict[str, Any] = {"submit": submit, "runtime": run, "estimate": estimate, "cores": rng.integers(1, 9, n)}
    return gs.Workload.from_columns(**columns, labels={"user": rng.integers(0, 6, n)}, cores_stated=8)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_nothing_after_the_moment_changes_a_forecast() -> None:
    """Later submissions and the run times of jobs that still run or wait may be anything."""
    log = busy_log()
    for policy in ("easy", "fcfs", "sjf"):
        first = gs.forecast(log, at=AT, policy=policy, futures=19, calibrate=False)
        record = gs.simulate(log, policy=policy).record
        open_then = record.end_us > AT * MICROSECOND
        rng = np.random.default_rng(2)
        shorter = (log.runtime * rng.uniform(0.2, 1, len(log))).astype(np.int64)
        elapsed = AT * MICROSECOND - record.start_us + MICROSECOND
        runtime = np.where(
            open_then, np.maximum(shorter, np.where(record.start_us < AT * MICROSECOND, elapsed, 1)), log.runtime
        )
        changed = replace(log, runtime=np.maximum(runtime, MICROSECOND))
        few = changed.select((log.submit <= AT * MICROSECOND) | (rng.random(len(log)) < 0.5))
        other = gs.forecast(few, at=AT, policy=policy, futures=19, calibrate=False)
        assert first.waiting > 0
        assert [it.job for it in other.jobs] == [it.job for it in first.jobs]
        assert np.array_equal(other.samples, first.samples)


def test_results_do_not_depend_on_workers_or_the_engine() -> None:
    log = busy_log()
    one = gs.forecast(log, at=AT, futures=20, calibrate=False, options=gs.Run(engine="simpy"))
    two = gs.forecast(log, at=AT, futures=20, calibrate=False, options=gs.Run(engine="compiled"), workers=2)
    assert np.array_equal(one.samples, two.samples)


def test_a_second_forecast_uses_kept_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    log = busy_log()
    made: list[int] = []

    def hear(now: int, of: int) -> None:
        made.append(now)

    how: dict[str, Any] = {"at": AT, "futures": 19, "horizon": 2 * DAY, "progress": hear}
    first = gs.forecast(log, **how)
    assert made[-1] > 50
    assert all(it.pairs >= 50 for it in first.jobs)
    made.clear()
    again = gs.forecast(log, **how)
    assert not made
    assert again.to_dict() == first.to_dict()


def test_a_forecast_at_another_moment_uses_kept_pairs() -> None:
    log = busy_log()
    made: list[int] = []
    how: dict[str, Any] = {"futures": 19, "horizon": 2 * DAY, "progress": lambda now, of: made.append(of)}
    for new in (None, NewJob(8, 3600.0, {})):
        gs.forecast(log, at=AT - DAY, new=new, **how)
        first, made[:] = made[-1], []
        gs.forecast(log, at=AT, new=new, **how)
        assert first > 100
        assert made[-1] < first / 10
        made.clear()


@pytest.mark.parametrize("ask", ["new", "pending"])
def test_moments_that_calibrate_are_at_most_400_and_those_of_a_later_forecast_are_mostly_the_same(ask: Any) -> None:
    found = forecaster_of(busy_log(), "easy", None, gs.Run(), Options(horizon=DAY))
    grids = [set(found.calibrating(AT + days * DAY, ask)) for days in (-20, -1, 0)]
    assert all(150 < len(grid) <= 400 for grid in grids)
    for earlier, later in itertools.pairwise(grids):
        assert all(at > max(earlier)[0] for at, _ in later - earlier)


@pytest.mark.parametrize("ask", ["new", "pending"])
def test_a_cancellation_that_is_not_known_yet_does_not_change_what_calibrates(ask: Any) -> None:
    log = busy_log()
    found = forecaster_of(log, "easy", None, gs.Run(), Options(horizon=DAY))
    asked = found.calibrating(AT, ask)
    _, row = asked[len(asked) // 2]
    start = found.start.copy()
    start[row] = NEVER

    def cancelled(at: int) -> list[Any]:
        after = np.full(len(log), -1)
        after[row] = at - int(found.history.submit[row])
        labelled = replace(log, labels={**log.labels, "withdrawn": after})
        return replace(found, log=labelled, start=start).calibrating(AT, ask)

    assert any(it[1] == row for it in cancelled(AT + 1))
    assert [it for it in cancelled(AT + 1) if it[1] != row] == [it for it in cancelled(AT) if it[1] != row]
    assert row not in [it[1] for it in cancelled(AT)]


def test_an_interrupted_calibration_keeps_what_it_made() -> None:
    log, made = busy_log(), []

    def stop(now: int, of: int) -> None:
        made.append((now, of))
        if len(made) == 2:
            raise KeyboardInterrupt

    how: dict[str, Any] = {"at": AT, "futures": 19, "horizon": 2 * DAY, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        gs.forecast(log, **how)
    gs.forecast(log, **how)
    assert made[-1][1] == made[0][1] - made[1][0]


def test_moments_of_a_log_with_fractions_of_seconds_are_those_at_which_the_job_waits() -> None:
    log = busy_log()
    shifted = np.sort(log.submit + np.random.default_rng(4).integers(1, MICROSECOND, len(log)))
    found = forecaster_of(replace(log, submit=shifted), "easy", None, gs.Run(), Options(horizon=DAY))
    questions = found.questions(0, AT, 200)
    assert len(questions) == 200
    assert all(row in found.state(at).waiting for at, row in questions)


def test_a_job_that_is_not_submitted_yet_waits_behind_the_others() -> None:
    log = busy_log()
    new = NewJob(8, 3600.0, {"user": 2})
    found = gs.forecast(log, at=AT, new=new, policy="fcfs", futures=19, calibrate=False)
    others = gs.forecast(log, at=AT, policy="fcfs", futures=19, calibrate=False)
    assert found.waiting == others.waiting + 1
    assert found.jobs[0].requested >= max(it.requested for it in others.jobs)


def test_a_moment_without_waiting_jobs_has_no_forecasts() -> None:
    log = gs.Workload.from_columns(submit=[0, 5], runtime=[9, 9], cores=[1, 1], cores_stated=8)
    found = gs.forecast(log, at=5, arrivals=False, calibrate=False)
    assert (found.running, found.waiting, found.samples.shape) == (2, 0, (99, 0))


def test_the_state_of_a_cluster_needs_no_history() -> None:
    case = json.loads((Path(__file__).parent / "golden" / "f07-world.json").read_text())
    found = gs.forecast(state_of(case["state"]), arrivals=False)
    assert {it.job for it in found.jobs} <= case["expected"].keys()
    assert found.waiting == len(found.jobs) > 0


def test_a_job_that_is_not_submitted_yet_waits_behind_the_jobs_of_a_live_state() -> None:
    case = json.loads((Path(__file__).parent / "golden" / "f07-world.json").read_text())
    known = state_of(case["state"])
    user, cores = known.waiting[0].user, sum(node.cores for node in known.nodes if node.state != "down")
    first = gs.forecast(known, policy="fcfs", arrivals=False)
    found = gs.forecast(known, new=gs.NewJob(cores, 3600.0, {"user": user}), policy="fcfs", arrivals=False)
    assert [job.job for job in found.jobs] == ["the new job"]
    assert found.waiting == first.waiting + 1
    assert found.jobs[0].requested > max(job.requested for job in first.jobs)
    assert found.cluster_state is not None
    assert (last := found.cluster_state.waiting[-1]).submit == known.at
    assert (last.cores, last.limit, last.user, last.kind) == (cores, 3600, user, "queued")
    with pytest.raises(InputError, match="'eve' is not a user of the log, the state or the site"):
        gs.forecast(known, new=gs.NewJob(1, 60.0, {"user": "eve"}), arrivals=False)
    with pytest.raises(InputError, match=f"expected 1 to {cores}"):
        gs.forecast(known, new=gs.NewJob(cores + 1, 60.0), arrivals=False)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (NewJob(2, math.inf), "'walltime': inf s; expected a finite walltime"),
        (NewJob(2, math.nan), "'walltime': nan s; expected a finite walltime"),
        (NewJob(2, -1.0), "'walltime': -1 s; expected a finite walltime"),
        (NewJob(0, 60.0), "'cores': 0 cores; expected 1 to"),
        (NewJob(1.5, 60.0), "'cores': 1.5 cores; expected 1 to"),  # type: ignore[arg-type]
        (NewJob(2, 60.0, {"colour": "red"}), "'colour': is not a property of a job"),
    ],
)
def test_a_job_that_is_not_possible_in_a_live_state_has_one_clear_error(new: NewJob, message: str) -> None:
    state = state_of(json.loads((Path(__file__).parent / "golden" / "f07-world.json").read_text())["state"])
    with pytest.raises(InputError, match=message):
        gs.forecast(state, new=new, arrivals=False)


def test_partitions_of_nodes_are_known_without_jobs_and_a_short_walltime_is_a_limit() -> None:
    state = state_of(json.loads((Path(__file__).parent / "golden" / "f07-world.json").read_text())["state"])
    idle = replace(state, running=(), waiting=(), nodes=tuple(replace(it, partitions=("gpu",)) for it in state.nodes))
    found = gs.forecast(idle, new=gs.NewJob(1, 0.5, {"partition": "gpu"}), arrivals=False)
    assert (found.jobs[0].limit, found.jobs[0].requested) == (1, 0)
    with pytest.raises(InputError, match="'cpu' is not a partition"):
        gs.forecast(idle, new=gs.NewJob(1, 60.0, {"partition": "gpu,cpu"}), arrivals=False)


@pytest.mark.parametrize(("label", "number"), [("user", 3), ("user", -2), ("user", None), ("colour", 1)])
def test_numbers_of_labels_are_checked(label: str, number: Any) -> None:
    log = replace(busy_log(), names={"user": ("ann", "bob", "cy")})
    log = replace(log, labels={"user": log.labels["user"] % 3})
    with pytest.raises(InputError, match=label):
        gs.forecast(log, at=AT, new=gs.NewJob(1, 60.0, {label: number}), futures=19, calibrate=False)


def test_several_clusters_are_an_error() -> None:
    machine = gs.Platform(RouterSpec("r", (ClusterSpec("x", 8), ClusterSpec("y", 8))))
    with pytest.raises(InputError, match="has several clusters"):
        gs.forecast(busy_log(), at=AT, platform=machine, futures=19, calibrate=False)


def test_a_job_that_is_not_submitted_yet_can_request_tasks() -> None:
    log, machine = busy_log(), gs.Platform.of_nodes([gs.NodeGroup(group="n", count=2, capacity={"cores": 4})])
    how: dict[str, Any] = {"at": AT, "platform": machine, "futures": 19, "calibrate": False}
    spread, whole = (gs.Demand(tasks=tasks, each={"cores": 4}) for tasks in (1, 2))
    medians = [gs.forecast(log, new=gs.NewJob(it.total("cores"), 3600.0, {}, it), **how) for it in (spread, whole)]
    assert medians[0].jobs[0].median <= medians[1].jobs[0].median
    large = gs.Demand(tasks=1, each={"cores": 5})
    with pytest.raises(InputError, match="no node is large enough for one of its tasks"):
        gs.forecast(log, new=gs.NewJob(5, 3600.0, {}, large), **how)
    with pytest.raises(InputError, match="the machine is one pool, but the job has tasks"):
        gs.forecast(log, new=gs.NewJob(4, 3600.0, {}, spread), **{**how, "platform": None})


def test_the_state_of_a_log_is_a_state_of_a_cluster() -> None:
    """Without arrivals and calibration, a forecast from the written state is that of the log."""
    log = busy_log()
    log = replace(log, runtime=log.estimate)
    found = gs.forecast(log, at=AT, arrivals=False, calibrate=False, futures=19)
    state = found.cluster_state
    assert state is not None
    assert (state.at, len(state.running), len(state.waiting)) == (AT, found.running, found.waiting)
    assert sum(job.cores for job in state.running) == found.busy
    again = gs.forecast(state, arrivals=False, futures=19)
    assert {it.job: it.requested for it in again.jobs} == {it.job: it.requested for it in found.jobs}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": 99 * DAY}, "is 99 d 00:00:00; expected 0 d [0-9:]+ to"),
        ({"at": 5 * DAY}, "arrivals need 2 weeks"),
        ({"job": 1}, "has ended"),
        ({"job": 10**6}, "is unknown at this moment"),
        ({"at": math.nan}, "expected [0-9]+ d"),
        ({"at": math.inf}, "expected [0-9]+ d"),
        ({"horizon": 60}, "at least 1 h"),
        ({"horizon": math.nan}, "at least 1 h"),
        ({"horizon": math.inf}, "at least 1 h"),
        ({"horizon": 11 * 365 * DAY}, "at most 3650 d"),
        ({"futures": 18}, "is 18; expected a whole number from 19"),
        ({"futures": 20.5}, "is 20.5; expected a whole number from 19"),
        ({"seed": -1}, "is -1; expected a whole number from 0"),
        ({"state": "guessed"}, "expected simulated or recorded"),
        ({"new": NewJob(9, 60, {})}, "'cores': 9 cores; expected 1 to 8"),
        ({"new": NewJob(0, 60, {})}, "'cores': 0 cores; expected 1 to 8"),
        ({"new": NewJob(4, 0, {})}, "'walltime': 0 s; expected a finite walltime above 0"),
        ({"new": NewJob(4, 60, {}), "instead": ["cores=9"]}, "9 cores; expected 1 to 8"),
        ({"new": NewJob(4, 60, {}), "instead": ["cores=4"]}, "is the shape of the job itself"),
        ({"new": NewJob(4, 60, {}), "instead": ["walltime=0"]}, "expected a walltime above 0"),
        ({"policy": "easy?predict=clairvoyant"}, "'policy': predict=.* needs true run times, unknown in a forecast"),
        ({"policy": "easy?predict=true"}, "unknown predictor 'true'.*clairvoyant"),
        ({"parts": [0.5]}, "'shapes': is for one job"),
    ],
)
def test_bad_input_has_one_clear_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gs.forecast(busy_log(), **{"at": AT, "futures": 19, "calibrate": False, **change})


def test_a_live_state_has_its_own_moment() -> None:
    state = state_of({"at": 10, "running": [], "waiting": [], "nodes": [], "reservations": []})
    with pytest.raises(InputError, match="a live state has its own moment"):
        gs.forecast(state, at=5, arrivals=False)
    machine = state_of(json.loads((GOLDEN / "f05-live-state.json").read_text())["expected"]).nodes
    with pytest.raises(InputError, match="has no start date"):
        gs.forecast(replace(state, nodes=machine), history=busy_log(), arrivals=False)


class Halved:
    """A policy whose text is its address, which may become that of another policy."""

    def __new__(cls) -> Any:
        found = make_policy("easy")
        return type("Halved", (type(found),), {"__repr__": object.__repr__})(found.ordering, found.reserve)


def test_damaged_and_unwritable_kept_pairs_are_made_again_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"at": AT, "futures": 19, "horizon": DAY, "arrivals": False}
    first = gs.forecast(busy_log(), **how).to_dict()
    (file,) = tmp_path.rglob("*.pairs")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="is damaged; the earlier forecasts are made again"):
        assert gs.forecast(busy_log(), **how).to_dict() == first
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="cannot be written"):
        assert gs.forecast(busy_log(), **how).to_dict() == first


def test_pairs_of_other_labels_or_of_an_object_without_a_text_are_not_mixed(tmp_path: Path) -> None:
    how: dict[str, Any] = {"at": AT, "futures": 19, "horizon": DAY, "arrivals": False}
    log = busy_log()
    gs.forecast(log, **how)
    gs.forecast(replace(log, labels={**log.labels, "account": 1 - log.labels["user"] % 2}), **how)
    assert len(list(tmp_path.rglob("*.pairs"))) == 2
    gs.forecast(log, policy=Halved(), **how)
    assert len(list(tmp_path.rglob("*.pairs"))) == 2


def test_no_earlier_forecast_is_made_if_the_log_is_too_short(tmp_path: Path) -> None:
    made: list[int] = []
    gs.forecast(busy_log(), at=5 * DAY, futures=19, arrivals=False, progress=lambda number, _: made.append(number))
    assert made == []
    assert not list(tmp_path.rglob("*.pairs"))


def test_a_new_plan_is_stated() -> None:
    note = "the policy makes a new plan at the moment, in the order of the queue"
    for policy, stated in (("conservative", True), ("easy", False)):
        answer = gs.forecast(busy_log(), at=AT, futures=19, horizon=DAY, policy=policy, calibrate=False)
        assert (note in answer.notes) == stated


def test_an_empty_queue_and_one_beyond_the_horizon_have_sentences() -> None:
    answer = answer_of(job_of(intervals=dict.fromkeys(LEVELS, (0.0, 0.0)), requested=0.0))
    assert set(times(answer, answer.jobs[0]).values()) == {"now", "13:58"}
    late, soon = np.full(99, math.inf), np.full(99, 3600.0)
    found = list(sentences(replace(answer, empty=(late, soon))))[-2:]
    assert found == [
        "It takes longer than 7 d until no job of the present queue waits (median; 90 %: > 7 d; not calibrated).",
        "From 13:00 on no job waits at all (median; 90 %: 13:00; not calibrated).",
    ]
    assert list(sentences(replace(answer, jobs=[]))) == ["No job waits for cores at this moment."]
    waits = replace(answer, jobs=[job_of(delay=(30.0, 0))])
    unchanged = (
        "0 of 1 job start at least 1 min later than without windows and failures, in at least 90 % of the futures."
    )
    assert list(sentences(waits))[-1] == unchanged
    assert replace(answer, calendar=Calendar(0)).to_dict()["date"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("known", "why"),
    [(None, ""), (0, ", as there are no earlier forecasts"), (31, ": 31 earlier forecasts, 50 needed")],
)
def test_the_reason_is_stated_only_with_a_calibration(known: int | None, why: str) -> None:
    answer = replace(answer_of(job_of()), jobs=[job_of(pairs=0, known=known)] * 2)
    assert next(sentences(answer)) == f"The intervals are not calibrated{why}."
    for calibrate in (True, False):
        found = gs.forecast(busy_log(), at=8 * DAY, futures=19, arrivals=False, calibrate=calibrate)
        assert {it.known for it in found.jobs} == {0 if calibrate else None}


def test_intervals_of_several_jobs_state_their_numbers_of_earlier_forecasts() -> None:
    for pairs, stated in (((200, 181), "181 to 200"), ((200, 0), "200")):
        answer = replace(answer_of(job_of()), jobs=[job_of(pairs=many) for many in pairs])
        assert f"The intervals are calibrated on {stated} earlier forecasts." in list(sentences(answer))


def answer_of(job: JobForecast, at: float = 0.0) -> Answer:
    known = (at, Calendar(1795521600 - at), "easy", "live", 64, 3, 40, 1, [job], {}, [], 99, 7 * DAY, 1)
    return Answer(*known, np.zeros((99, 1)))


def job_of(**changes: Any) -> JobForecast:
    sample = np.full(99, 7080.0)
    given: dict[str, Any] = {
        "job": "310128",
        "cores": 8,
        "limit": 3600.0,
        "waited": 60.0,
        "sample": sample,
        "known": 400,
    }
    given |= {"intervals": {0.9: (3630.0, 9001.0)}, "pairs": 200, "source": "futures", "requested": 9.0}
    return JobForecast(**given | changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {},
            "Job 310128 starts between 13:00 and 14:35 with 90 % probability (calibrated on 200 earlier forecasts); "
            "median 13:58.",
        ),
        ({"sample": np.zeros(99), "intervals": {0.9: (0.0, 60.0)}}, "Job 310128 starts now."),
        (
            {"sample": np.zeros(99), "intervals": {0.9: (0.0, 61.0)}},
            "Job 310128 starts from now on, at the latest 12:02, with 90 % probability (calibrated on 200 earlier "
            "forecasts); median now.",
        ),
        (
            {"sample": np.zeros(99), "intervals": {0.9: (0.0, 0.0)}, "not_modelled": "QOSMaxJobsPerUserLimit"}
            | {"pairs": 0, "known": None},
            "Job 310128 starts now. Not modelled: QOSMaxJobsPerUserLimit.",
        ),
        (
            {"not_modelled": "AssocGrpCpuLimit", "pairs": 0, "observed": {0.9: (80, 100)}},
            "Job 310128 starts between 13:00 and 14:35 in 90 % of the futures (not calibrated); median 13:58. "
            "Not modelled: AssocGrpCpuLimit.",
        ),
        (
            {"intervals": {0.9: (3630.0, math.inf)}},
            "Job 310128 starts after 13:00 with 90 % probability (calibrated on 200 earlier forecasts); median 13:58. "
            "No later limit can be stated.",
        ),
        (
            {"intervals": {0.9: (math.inf, math.inf)}, "sample": np.full(99, math.inf)},
            "Job 310128 starts later than 7 d with 90 % probability (calibrated on 200 earlier forecasts); median "
            "later than 7 d. No later limit can be stated.",
        ),
        (
            {"pairs": 0, "known": 31},
            "Job 310128 starts between 13:00 and 14:35 in 90 % of the futures (not calibrated: 31 earlier forecasts, "
            "50 needed); median 13:58.",
        ),
        (
            {"observed": {0.9: (80, 100)}},
            "Job 310128 starts between 13:00 and 14:35 with 80 % probability (calibrated on 200 earlier forecasts); "
            "median 13:58. Of the last 100 such forecasts 80 contained the start.",
        ),
        (
            {"sample": np.full(99, math.inf), "not_modelled": "QOSMaxCpuPerUserLimit", "pairs": 0, "known": 0},
            "Job 310128 starts between 13:00 and 14:35 in 90 % of the futures (not calibrated); median later than 7 d. "
            "Not modelled: QOSMaxCpuPerUserLimit.",
        ),
    ],
)
def test_the_sentence_of_a_job(changes: dict[str, Any], text: str) -> None:
    job = job_of(**changes)
    assert sentence(answer_of(job), job) == text


def test_the_command_prints_and_writes_a_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = tmp_path / "log.swf", tmp_path / "out"
    write_swf(busy_log(), log)
    words = ["forecast", str(log), "--at", str(AT), "--state", "simulated", "--futures", "19", "--no-calibration"]
    assert main([*words, "--json", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = (out / "forecast.csv").read_text().splitlines()
    assert len(rows) == 1 + len(found["jobs"]) == 1 + found["waiting"]
    assert len((out / "samples.csv").read_text().splitlines()) == 1 + 19 * found["waiting"]
    assert main([*words, "--cores", "4", "--walltime", "1h", "--user", "2"]) == 0
    assert "The new job starts" in " ".join(capsys.readouterr().out.split())
    assert main(["forecast", str(log)]) == 2
    assert "field 'at'" in capsys.readouterr().err


def test_the_command_tests_forecasts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.swf"
    write_swf(busy_log(days=150), log)
    words = ["forecast", str(log), "--backtest", "--moments", "200", "--futures", "19", "--horizon", "2d"]
    assert main([*words, "--state", "simulated", "-j", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "started within the 90 % interval" in shown
    assert "requested walltimes" in shown
