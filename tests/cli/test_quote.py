"""``gridsim quote``: kept promises, prices, and reports about them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsim as gs
from gridsim.cli import main
from gridsim.errors import InputError
from gridsim.model.dates import calendar_of, duration, instant
from gridsim.model.time import NEVER, to_us
from gridsim.questions.quote import busiest_moment
from gridsim.record import Record, Status
from gridsim.report.quotation import Quotation, sentences
from gridsim.scenario import transformed

SITE = Path(__file__).resolve().parents[2] / "scenarios" / "examples" / "site.swf"
KEEPING_DEADLINES = ("msb", "mrt", "qops", "fqops")
MOMENTS = (57_354.0, 93_600.0, 180_000.0)
THREE = """; MaxProcs: 4
; UnixStartTime: 835466398
; TimeZoneString: Europe/Stockholm
1 10 -1 100 3 -1 -1 3 100 -1 1 3 1 -1 -1 -1 -1 -1
2 11 -1 40 4 -1 -1 4 40 -1 1 3 1 -1 -1 -1 -1 -1
3 12 -1 30 2 -1 -1 2 30 -1 1 4 1 -1 -1 -1 -1 -1
"""


@pytest.fixture(scope="module")
def site() -> gs.Workload:
    return gs.read_workload(SITE)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(THREE)
    return path


def with_job(workload: gs.Workload, at: float, cores: int, walltime: float, deadline: float | None) -> gs.Workload:
    """The whole log with one additional job, behind the others of its instant; its number is 0."""
    more = {"job": 0, "submit": to_us(at), "runtime": to_us(walltime), "estimate": to_us(walltime), "cores": cores}
    more["deadline"] = NEVER if deadline is None else to_us(deadline)
    columns: dict[str, Any] = {name: np.append(getattr(workload, name), value) for name, value in more.items()}
    joined = replace(workload, **columns, labels={}, logged={})
    return joined.select(np.argsort(joined.submit, kind="stable"))


def outcome(workload: gs.Workload, policy: str) -> tuple[Record, int]:
    """The whole log under a policy, and the row of the added job."""
    record = gs.simulate(workload, policy=policy).record
    return record, int(np.flatnonzero(record.workload.job == 0)[0])


# -- the promise is true -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", MOMENTS)
@pytest.mark.parametrize("policy", KEEPING_DEADLINES)
def test_a_job_that_requests_the_quoted_deadline_is_taken_in_and_ends_by_it(
    site: gs.Workload, policy: str, at: float
) -> None:
    answer = gs.quote(site, at=at, cores=48, walltime=7200, policies=[policy])[policy]
    record, row = outcome(with_job(site, at, 48, 7200, answer.guaranteed), policy)
    assert record.status[row] == Status.completed
    assert record.end[row] <= answer.guaranteed
    assert record.promises is not None
    assert record.promises.granted_us[row] == to_us(answer.guaranteed)


@pytest.mark.parametrize("at", MOMENTS)
@pytest.mark.parametrize("policy", ["msb", "mrt", "qops"])
def test_a_job_that_requests_the_last_refused_deadline_is_rejected(site: gs.Workload, policy: str, at: float) -> None:
    answer = gs.quote(site, at=at, cores=48, walltime=7200, policies=[policy])[policy]
    assert 0 < answer.guaranteed - answer.refused <= 1
    record, row = outcome(with_job(site, at, 48, 7200, answer.refused), policy)
    assert record.status[row] == Status.unadmitted


@pytest.mark.parametrize("policy", KEEPING_DEADLINES)
@pytest.mark.parametrize("cores", [8, 100])
def test_a_promise_is_kept_among_jobs_with_deadlines(policy: str, cores: int) -> None:
    jobs = transformed(gs.default_workload(jobs=300, load=1.2), ["deadlines?stringency=0.5"])
    at = float(jobs.submit[200]) / 1e6
    answer = gs.quote(jobs, at=at, cores=cores, walltime=3600, policies=[policy])[policy]
    record, row = outcome(with_job(jobs, at, cores, 3600, answer.guaranteed), policy)
    assert record.status[row] == Status.completed
    assert record.end[row] <= answer.guaranteed


@pytest.mark.parametrize("at", MOMENTS)
def test_conservative_keeps_the_start_that_it_promised(site: gs.Workload, at: float) -> None:
    answer = gs.quote(site, at=at, cores=48, walltime=7200, policies=["conservative"])["conservative"]
    record, row = outcome(with_job(site, at, 48, 7200, None), "conservative")
    assert record.start[row] <= answer.start
    assert answer.guaranteed == answer.start + 7200


def test_a_price_is_what_kill_and_restart_does(site: gs.Workload) -> None:
    found = gs.quote(site, at=180_000, cores=48, walltime=7200, policies=["qops"])
    killing = [price for price in found.prices if price.kills]
    assert killing
    for price in killing:
        record, row = outcome(with_job(site, 180_000, 48, 7200, price.deadline), "fqops?kill_restart=true")
        assert record.end[row] <= price.deadline
        assert record.workload.job[record.kills > 0].tolist() == list(price.kills)
        assert record.lost.sum() == price.lost


def test_a_deadline_that_no_kill_makes_possible_is_rejected(site: gs.Workload) -> None:
    found = gs.quote(site, at=93_600, cores=48, walltime=7200, policies=["qops"])
    impossible = [price for price in found.prices if not price.possible]
    assert impossible
    record, row = outcome(with_job(site, 93_600, 48, 7200, impossible[0].deadline), "fqops?kill_restart=true")
    assert record.status[row] == Status.unadmitted


def test_the_expected_start_of_easy_is_exact_when_all_goes_as_estimated() -> None:
    jobs = gs.Workload.from_columns(
        submit=[0, 1, 2], runtime=[100, 40, 30], cores=[3, 4, 2], cores_stated=4
    )  # job 4 may not delay job 2, the first job in the queue
    answer = gs.quote(jobs, at=5, cores=1, walltime=96, policies=["easy"])["easy"]
    assert (answer.promise, answer.start) == ("none", 140.0)
    assert np.isnan(answer.guaranteed)


# -- requests
# ------------------------------------------------------------------------------------------------------------


def test_a_deadline_is_answered_by_each_policy(site: gs.Workload) -> None:
    found = gs.quote(
        site, at=93_600, cores=48, walltime=7200, deadline=140_000, policies=["easy", "conservative", "msb", "qops"]
    )
    assert {it.policy: it.keeps for it in found.answers} == {
        "easy": False,
        "conservative": False,
        "msb": False,
        "qops": True,
    }


def test_the_moment_where_none_is_given_meets_the_longest_queue(site: gs.Workload) -> None:
    platform = gs.Platform.single(64)
    waits = gs.simulate(site, policy="easy").record
    at = busiest_moment(site, platform)
    assert at in waits.submit
    lengths = [int(((waits.submit <= t) & (waits.start > t)).sum()) for t in waits.submit]
    assert lengths[int(np.flatnonzero(waits.submit == at)[0])] == max(lengths)


def test_at_the_last_event_of_the_log_the_machine_is_idle_and_later_it_is_not_known() -> None:
    log = gs.Workload.from_columns(submit=[0, 5], runtime=[10, 10], cores=[2, 2], cores_stated=4)
    found = gs.quote(log, at=15, cores=4, walltime=60, policies=["qops", "conservative"])
    assert [(it.running, it.waiting, it.guaranteed) for it in found.answers] == [(0, 0, 75.0)] * 2
    assert [price.deadline for price in found.prices] == [75.0]
    with pytest.raises(gs.InputError, match="is after the last event of the log, 0 d 00:00:15"):
        gs.quote(log, at=16, cores=4, walltime=60)
    logged = replace(log, logged={"wait": np.array([0.0, 30.0])})
    assert gs.quote(logged, at=45, cores=4, walltime=60, policies=["easy"]).answers[0].start == 45
    with pytest.raises(gs.InputError, match="is after the last event of the log, 0 d 00:00:45"):
        gs.quote(logged, at=46, cores=4, walltime=60)


def test_jobs_of_later_instants_change_no_answer(site: gs.Workload) -> None:
    known = site.select(site.submit <= to_us(93_600))
    for workload in (site, known):
        found = gs.quote(workload, at=93_600, cores=48, walltime=7200, policies=["qops"]).to_dict()
        assert found == gs.quote(site, at=93_600, cores=48, walltime=7200, policies=["qops"]).to_dict()


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_answer_is_reported_in_tables_and_sentences(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--at", "15s", "--cores", "4", "--walltime", "0:00:20", "--policy", "qops", "--policy", "easy"]
    assert main(["quote", str(log), *words]) == 0
    told = capsys.readouterr().out
    assert "moment: 1996-06-22 20:00:13 Europe/Stockholm, 0 d 00:00:15 of the log (15 s)" in told
    assert "state under qops and easy: 1 job runs on 3 of 4 cores, 2 wait" in told
    assert "1996-06-22 20:02:08" in told  # 130 s: behind job 1
    assert "Price of a tighter deadline under qops" in told
    assert "job 1 would be restarted" in " ".join(told.split())
    assert "easy guarantees nothing" in " ".join(told.split())


def test_no_line_is_wider_than_the_terminal(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    policies = ["easy", "conservative", "qops?heuristic=edf&k_factor=3", "fqops?kill_restart=true"]
    words = ["--at", "15", "--cores", "4", "--walltime", "20", "--deadline", "+2m"]
    assert main(["quote", str(log), *words, *(word for it in policies for word in ("--policy", it))]) == 0
    told = capsys.readouterr().out
    told = told[told.index("moment:") :]  # the lines above are those of every verb
    assert max(map(len, told.splitlines())) <= 80
    assert "…" not in told
    assert "fqops?kill_restart=true would kill and restart job 1 for it" in " ".join(told.split())


def test_json_has_everything_as_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--at", "15", "--cores", "4", "--walltime", "20", "--policy", "qops", "--policy", "easy", "--json"]
    assert main(["quote", str(log), *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["at"], told["walltime"], told["machine"], told["priced_by"]) == (15.0, 20.0, 4, "qops")
    qops, easy = told["answers"]
    assert (qops["guaranteed"], qops["refused"], qops["keeps"]) == (130.0, 129.0, None)
    assert (easy["promise"], easy["guaranteed"]) == ("none", None)
    first, *_, last = told["prices"]
    assert (first["deadline"], first["kills"], first["lost"]) == (35.0, [1], 15.0)
    assert (last["deadline"], last["kills"], last["possible"]) == (130.0, [], True)
    assert first["charge"] > last["charge"]


def test_a_date_is_an_instant_where_the_log_states_when_it_began(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--at", "1996-06-22T20:00:13", "--cores", "4", "--walltime", "20", "--policy", "qops", "--json"]
    assert main(["quote", str(log), *words]) == 0
    assert json.loads(capsys.readouterr().out)["at"] == 15.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cores", "5", "--walltime", "20"], "field 'cores': 5 cores; expected 1 to 4"),
        (["--cores", "0", "--walltime", "20"], "field 'cores': 0 cores; expected 1 to 4"),
        (["--cores", "1", "--walltime", "0"], "field 'walltime': 0 s; expected a finite walltime above 0 s"),
        (["--cores", "1", "--walltime", "2:00"], "field 'walltime': '2:00' is not a duration"),
        (["--cores", "1", "--walltime", "20", "--at", "9"], "9 s is not within the log, which begins at 10 s"),
        (["--cores", "1", "--walltime", "20", "--at", "noon"], "field 'at': 'noon' is not a time"),
        (["--cores", "1", "--walltime", "20", "--at", "+9"], "field 'at': '+9' is not a time"),
        (["--cores", "1", "--walltime", "20", "--deadline", "34"], "34 s is before 35 s, when the job would end"),
        (["--cores", "1", "--walltime", "20", "--deadline", "+19"], "34 s is before 35 s, when the job would end"),
        (["--cores", "1", "--walltime", "20", "--policy", "qosp"], "unknown policy 'qosp'; did you mean 'qops'?"),
        (["--cores", "1", "--walltime", "20", "--machine", "0"], "0"),
    ],
)
def test_bad_input_is_refused_with_value_and_rule(
    log: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    moment = [] if "--at" in words else ["--at", "15"]
    assert main(["quote", str(log), *moment, *words]) == 2
    assert told in capsys.readouterr().err


def test_a_log_without_the_size_of_its_machine_is_an_error_with_the_right_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.swf"
    path.write_text(THREE.split("\n", 1)[1])
    assert main(["quote", str(path), "--cores", "1", "--walltime", "20"]) == 2
    assert "give --machine" in capsys.readouterr().err


def test_a_grid_has_no_quote(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[platform]\nrouter = "grid"\nchildren = [{cluster = "a", cores = 4}, {cluster = "b", cores = 4}]\n'
    )
    code = main(["quote", str(log), "--platform", str(grid), "--cores", "1", "--walltime", "20", "--at", "15"])
    assert code == 2
    assert "the platform has 2 clusters; expected one" in capsys.readouterr().err


# -- words and times ---------------------------------------------------------------------------------------------------


def test_sentences_say_when_nothing_is_in_the_way() -> None:
    log = gs.Workload.from_columns(submit=[0], runtime=[60], cores=[1], cores_stated=2)
    found = gs.quote(log, at=30, cores=1, walltime=3600, policies=["msb"])
    assert sentences(found)[:2] == [
        "msb could guarantee completion in 1 h: the job would start at once.",
        "Under msb, no tighter deadline is possible.",
    ]


def test_sentences_report_a_later_deadline_that_is_refused() -> None:
    answer = gs.quote(
        gs.Workload.from_columns(submit=[0], runtime=[9], cores=[1], cores_stated=1),
        at=1,
        cores=1,
        walltime=5,
        deadline=20,
        policies=["qops"],
    ).answers[0]
    refusing = replace(answer, keeps=False)
    told = sentences(Quotation(1.0, 1, 5.0, 1, 20.0, (refusing,), None, (), 1))
    assert any("could guarantee the earlier 0 d 00:00:14" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5h", 5400), ("1d2h3m4s", 93_784), ("2:00:00", 7200), ("1-00:00:01", 86_401)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert duration(text, "walltime") == seconds


@pytest.mark.parametrize("text", ["", "-5", "2x", "1h30", "nan", "2:60:00"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration; expected for example"):
        duration(text, "walltime")


def test_dates_follow_the_shift_of_a_slice() -> None:
    provenance = {"header": {"UnixStartTime": ["1000"]}, "transforms": [{"transform": "slice", "shift": 50.0}]}
    begin = calendar_of(provenance)
    assert begin is not None
    assert begin.epoch == 1050
    assert instant("1970-01-01T00:17:35", "at", provenance) == 5.0
    assert instant("1970-01-01T01:17:35+01:00", "at", provenance) == 5.0
    with pytest.raises(InputError, match="has no start date"):
        instant("1970-01-01", "at", {})
    with pytest.raises(InputError, match="is not a date"):
        instant("1970-13-01", "at", provenance)
