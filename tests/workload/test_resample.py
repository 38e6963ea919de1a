"""Resampled workloads of the same users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.random_streams import stream
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import default_workload
from gridsim.workload.transform.react import React
from gridsim.workload.transform.resample import Resample

WEEK = 7 * 86_400
SECOND = 1_000_000


def log(submits: list[int], users: list[int], **more: object) -> Workload:
    n = len(submits)
    return Workload.from_columns(
        submit=np.sort(submits),
        runtime=np.arange(1, n + 1),  # distinguishes jobs
        cores=1 + np.arange(n) % 3,
        labels={"user": np.array(users)},
        **more,  # type: ignore[arg-type]
    )


def streams(workload: Workload, user: IntArray) -> dict[int, list[tuple[int, int]]]:
    """Return submit and runtime (s) of the jobs of each user, in their order."""
    found: dict[int, list[tuple[int, int]]] = {}
    for whose, submit, runtime in zip(user.tolist(), workload.submit.tolist(), workload.runtime.tolist(), strict=True):
        found.setdefault(whose, []).append((submit // SECOND, runtime // SECOND))
    return found


def own_users(workload: Workload) -> IntArray:
    user = workload.labels["user"]
    return np.where(user < 0, 1000 + np.arange(len(user)), user)


JOBS = st.lists(st.tuples(st.integers(0, 20 * WEEK), st.integers(-1, 6)), min_size=4, max_size=40)


@settings(max_examples=30)
@given(JOBS, st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.0]))
def test_each_new_user_is_an_old_one_in_other_weeks(jobs: list[tuple[int, int]], seed: int, load: float) -> None:
    given_jobs = log([at for at, _ in jobs], [user for _, user in jobs])
    theirs = streams(given_jobs, own_users(given_jobs))
    start = int(given_jobs.submit[0]) // SECOND
    weeks = {user: [(at - start) // WEEK for at, _ in jobs] for user, jobs in theirs.items()}
    classes = [
        {user for user, of in weeks.items() if (of[-1] - of[0] + 1 >= 12) == lasting} for lasting in (True, False)
    ]
    counts = [round(load * len(members)) for members in classes]
    transform = Resample(load=load, within=None)
    if not any(counts):
        with pytest.raises(InputError, match="no user was selected"):
            transform.apply(given_jobs, np.random.default_rng(seed))
        return
    made = transform.apply(given_jobs, np.random.default_rng(seed))
    length = made.provenance["transforms"][-1]["weeks"]
    by_jobs = {frozenset(runtime for _, runtime in jobs): user for user, jobs in theirs.items()}
    begins: dict[int, list[int]] = {}
    drawn: Counter[bool] = Counter()
    for mine in streams(made, made.labels["user"]).values():
        user = by_jobs[frozenset(runtime for _, runtime in mine)]  # all of their jobs, and no others
        assert len(mine) == len(theirs[user])
        old = {runtime: at for at, runtime in theirs[user]}
        moves = [(at - old[runtime]) for at, runtime in mine]
        assert all(move % WEEK == 0 for move in moves)  # hour and weekday are unchanged
        moved = sorted({move // WEEK for move in moves})
        assert len(moved) == 1 or (len(moved) == 2 and moved[1] - moved[0] == length)  # one wrap
        begins.setdefault(user, []).append(moved[-1] % length)
        drawn[user in classes[0]] += 1
    assert [drawn[True], drawn[False]] == counts
    assert all(len(set(weeks)) == len(weeks) for weeks in begins.values() if len(weeks) <= length)
    assert made.submit.min() >= 0
    assert (np.diff(made.submit) >= 0).all()


def test_jobs_stay_after_those_that_they_come_after_or_forget_them() -> None:
    rows = np.arange(40)
    named = np.where(rows % 2, rows, -1)
    given_jobs = log((rows * WEEK // 2).tolist(), (rows // 2 % 4).tolist(), logged={"preceding": named})
    made = Resample(within=None).apply(given_jobs, np.random.default_rng(5))
    runtime = dict(zip(made.job.tolist(), made.runtime.tolist(), strict=True))
    place = dict(zip(made.job.tolist(), range(len(made)), strict=True))
    kept = 0
    for row, before in enumerate(made.logged["preceding"].tolist()):
        if before > 0:
            kept += 1
            assert place[before] < row
            assert made.labels["user"][place[before]] == made.labels["user"][row]
            assert runtime[before] + SECOND == made.runtime[row]  # the identical job
    assert kept + made.provenance["transforms"][-1]["turned_round"] == np.count_nonzero(made.runtime // SECOND % 2 == 0)


def test_weeks_begin_on_monday_where_the_log_has_dates() -> None:
    friday = 893_466_664  # 1998-04-25 02:04 UTC, a Saturday; Friday evening in California
    header = {"UnixStartTime": [str(friday)], "TimeZoneString": ["America/Los_Angeles"]}
    given_jobs = log([0, 2 * 86_400, 3 * 86_400], [1, 2, 3], provenance={"header": header})
    made = Resample(within=None).apply(given_jobs, np.random.default_rng(1))
    assert made.provenance["transforms"][-1]["weeks"] == 2  # Sunday is in the first week, Monday in the second
    assert given_jobs.epoch is not None
    assert made.epoch is not None
    assert {(at // SECOND + made.epoch) % WEEK for at in made.submit.tolist()} <= {
        (at // SECOND + given_jobs.epoch) % WEEK for at in given_jobs.submit.tolist()
    }


def test_users_who_react_are_copied_with_what_they_wait_for() -> None:
    given_jobs = default_workload(jobs=400, load=0.1, cores=64)
    reference = simulate(given_jobs, policy="easy").record
    reacting = React().apply(given_jobs, reference=reference)
    made = Resample(load=1.5, within=None).apply(reacting, np.random.default_rng(2))
    assert made.reactions is not None
    assert reacting.reactions is not None
    shares = [int(it.reactions.answers.sum()) / len(it) for it in (reacting, made)]  # type: ignore[union-attr]
    assert shares[1] == pytest.approx(shares[0], abs=0.1)
    batches, owner = made.reactions.batch, made.labels["user"]
    of = {number: user for number, user in zip(batches.tolist(), owner.tolist(), strict=True) if number >= 0}
    for number, user in zip(made.reactions.before.tolist(), owner.tolist(), strict=True):
        assert number < 0 or of.get(number, user) == user
    for first in np.unique(batches[batches >= 0]):
        assert np.ptp(made.submit[batches == first]) <= WEEK * SECOND  # no batch crosses the end of the period
    record = simulate(made, policy="easy").record
    assert record.ran.all()
    with pytest.raises(InputError, match="with react, expected at least"):
        Resample(weeks=1).apply(reacting, np.random.default_rng(2))


def distance(mine: IntArray, theirs: IntArray) -> float:
    points = np.concatenate([mine, theirs])
    shares = [np.searchsorted(np.sort(each), points, side="right") / len(each) for each in (mine, theirs)]
    return float(np.abs(shares[0] - shares[1]).max())


def profile(workload: Workload) -> FloatArray:
    """Return the share of the jobs in each hour of the week."""
    return np.bincount(workload.submit // SECOND % WEEK // 3600, minlength=168) / len(workload)


ARCHIVE = [
    pytest.param(name, 20, (0.85, 0.94, 0.12), marks=[pytest.mark.others, pytest.mark.long])
    for name in ("CTC-SP2-1996-3.1-cln", "SDSC-SP2-1998-4.2-cln", "SDSC-BLUE-2000-4.2-cln")
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("name", "replicas", "bounds"), [("generated", 8, (0.7, 0.8, 0.3)), *ARCHIVE])
def test_replicas_have_the_same_distribution(
    name: str, replicas: int, bounds: tuple[float, float, float], seed: int, others: Callable[[str], Path]
) -> None:
    if name == "generated":
        given_jobs = default_workload(jobs=10_000)
    else:
        given_jobs = gs.read_workload(others(f"swf/{name}.swf.gz"))
    for load in (1.0, 0.8, 1.2):
        made = [Resample(load=load).apply(given_jobs, stream(seed, "resample", it)) for it in range(replicas)]
        work = [it.area.sum() / given_jobs.area.sum() for it in made]
        assert np.mean(work) == pytest.approx(load, abs=0.03)
        assert all(abs(it / load - 1) <= 0.05 + 1e-9 for it in work)
        if load == 1:
            alike = [np.corrcoef(profile(it), profile(given_jobs))[0, 1] for it in made]
            assert min(alike) >= bounds[0]
            assert np.mean(alike) >= bounds[1]
            assert max(distance(it.runtime, given_jobs.runtime) for it in made) <= bounds[2]


@pytest.mark.parametrize(
    ("asked", "told"), [({"load": 0.0}, "field 'load'"), ({"weeks": 0}, "field 'weeks'"), ({"within": 0.0}, "'within'")]
)
def test_errors_are_reported(asked: dict[str, float], told: str) -> None:
    with pytest.raises(InputError) as error:
        Resample(**asked)  # type: ignore[arg-type]
    assert told in str(error.value)
