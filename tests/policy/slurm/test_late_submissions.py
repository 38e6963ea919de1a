"""Slurm schedules jobs submitted during a run as if they had been in the workload from the beginning."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from simpy import Event

import gridsim as gs
from gridsim.errors import InputError
from gridsim.model.allocations import Allocations
from gridsim.model.site import Association, Qos, Reservation, Site, SitePartition
from gridsim.model.workload import UNKNOWN, Workload
from gridsim.options import Run
from gridsim.policy.queue import Requests
from gridsim.policy.scheduler.slurm import Slurm
from gridsim.policy.slurm.queue_entries import entries_of, owners_of
from gridsim.record import Record, Status
from gridsim.simulation import simulate
from gridsim.world import World
from tests.agreement.test_slurm_oracle import BOOTS, cut, sites, workloads
from tests.policy.slurm.running import QUICK, SECOND, nodes

SOME = settings(max_examples=max(15, settings.default.max_examples // 4))  # type: ignore[union-attr]
Process = Generator[Event, Any, None]
INSTANTS = st.sampled_from(["batched", "per-event"])


def with_everybody(workload: Workload, site: Site) -> Site:
    """Return the site with an association for every user of a workload, so that the share tree is known at once."""
    for _ in range(2):  # a user with an association has a first account
        known = {(each.account, each.user) for each in site.associations if each.user}
        accounts = {each.account for each in site.associations if not each.user}
        requests = Requests(workload)
        owners = owners_of(requests, site, entries_of(requests, site))
        more = []
        for account, user in dict.fromkeys((each.account, each.user) for each in owners):
            if account not in accounts and account != "root":
                accounts.add(account)
                more.append(Association(account, parent="root"))
            if (account, user) not in known:
                more.append(Association(account, user))
        site = replace(site, associations=(*site.associations, *more))
    return site


def job_of(workload: Workload, row: int) -> dict[str, Any]:
    """Return a submitted job, with its labels by name."""
    one: dict[str, Any] = {"cores": int(workload.cores[row])}
    one |= {name: getattr(workload, name)[row] / SECOND for name in ("runtime", "estimate")}
    for name, column in workload.labels.items():
        if column[row] != UNKNOWN:
            known = workload.names.get(name)
            one[name] = int(column[row]) if known is None else known[column[row]]
    return one


def submitting(workload: Workload, site: Site, first: int, **options: Any) -> Record:
    """Return the record of a world in which a user process submits all jobs but the *first* ones."""
    boot = options.pop("boot", 0.0)
    given = replace(workload.select(slice(0, first)), names=workload.names)
    world = World(
        given, site.platform(), Slurm(site=site, boot=boot), Run(**options), max_jobs=len(workload) - first + 3
    )

    def user() -> Process:
        for row in range(first, len(workload)):
            if workload.submit[row] > world.env.instant:
                yield world.timeout((int(workload.submit[row]) - world.env.instant) / SECOND)
            world.submit(job_of(workload, row))

    world.env.process(user())
    world.run()
    return world.record()


def told(record: Record) -> list[Any]:
    """Return the schedule in a record: instants, places, preemptions, and reasons of waiting."""
    placed, reasons = record.allocations, record.reasons
    assert placed is not None
    assert reasons is not None
    found: list[Any] = [record.status, record.start_us, record.end_us, record.workload.submit]
    found += [getattr(reasons, name) for name in ("job", "since_us", "until_us", "eligible", "free", "pool")]
    words = [reasons.words[word] for word in reasons.word.tolist()]
    return [*(column.tolist() for column in found), words, dict(reasons.refused), cut(record.promises), rows_of(placed)]


def rows_of(placed: Allocations) -> list[Any]:
    """Return nodes, cores and memory of each run."""
    found = [getattr(placed, name) for name in ("job", "run", "node", "tasks", "start_us", "end_us")]
    return [column.tolist() for column in (*found, *placed.amounts.values())]


def assert_same(data: st.DataObject, workload: Workload, site: Site, boot: float | None) -> None:
    labels = dict(workload.labels)
    if "user" in labels:
        labels["user"] = np.maximum(labels["user"], 0)  # a job is submitted
    if "after" in labels:  # no job depends on an unknown job
        rows = np.arange(1, len(workload) + 1)
        labels["after"] = np.where(labels["after"] < rows, labels["after"], UNKNOWN)
    instant = data.draw(INSTANTS)
    submit = workload.submit
    if instant == "per-event":  # arrivals precede ends of the same instant there, and submissions of users follow them
        submit = submit + 137 + np.arange(len(workload))
    workload = replace(workload, labels=labels, submit=submit)
    boot = 0.0 if boot is None else boot
    site = with_everybody(workload, site) if "user" in labels else site
    options: dict[str, Any] = {"instant": instant, "overrun": "kill"}
    try:
        expected = simulate(workload, policy=Slurm(site=site, boot=boot), platform=site.platform(), **options).record
    except InputError:  # they preempt one another endlessly
        reject()
    first = data.draw(st.integers(0, len(workload) - 1))
    assert told(submitting(workload, site, first, boot=boot, **options)) == told(expected)


@pytest.mark.long
@SOME
@given(data=st.data(), site=sites(limits=True), boot=BOOTS)
def test_limits(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data, data.draw(workloads(site)), site, boot)


@pytest.mark.long
@SOME
@given(data=st.data(), site=sites(preempts=True), boot=BOOTS)
def test_preemption(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data, data.draw(workloads(site)), site, boot)


@pytest.mark.long
@SOME
@given(data=st.data(), site=sites(reserves=True), boot=BOOTS)
def test_reservations(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data, data.draw(workloads(site)), site, boot)


@pytest.mark.long
@SOME
@given(data=st.data(), site=sites(), boot=BOOTS)
def test_nodes_partitions_and_both_passes(data: st.DataObject, site: Site, boot: float | None) -> None:
    assert_same(data, data.draw(workloads(site, plain=True)), site, boot)


SITE = Site(
    nodes(2),
    (SitePartition("all", ("n1", "n2")), SitePartition("one", ("n2",), tier=2)),
    "all",
    scheduling=QUICK,
    associations=(
        Association("phys"),
        Association("phys", "ann", most_submitted=1),
        Association("phys", "bob"),
    ),
    qos=(Qos("normal"),),
)


def a_world(site: Site = SITE, *, max_jobs: int = 10, **columns: Any) -> World:
    """Return a workload with a job of ann in partition all."""
    given: dict[str, Any] = {"submit": [0], "runtime": [20], "cores": [8]} | columns
    jobs = Workload.from_columns(**given, labels={name: [0] for name in ("user", "partition")})
    jobs = replace(jobs, names={"user": ("ann",), "partition": ("all",)})
    return World(jobs, site.platform(), Slurm(site=site, boot=0.0), Run(overrun="extend"), max_jobs=max_jobs)


def test_a_submitted_job_reports_when_it_starts_and_ends() -> None:
    one, heard = a_world(), list[tuple[str, float, Any]]()

    def user() -> Process:
        yield one.timeout(3)
        made = one.submit({"cores": 4, "runtime": 10, "user": "bob", "partition": "one"})
        since = yield made.started
        heard.append(("started", one.now, since))
        status = yield made.ended
        heard.append(("ended", one.now, status))

    one.env.process(user())
    one.run()
    assert heard == [("started", 20.0, 20.0), ("ended", 30.0, Status.completed)]
    found = one.record()
    assert found.start.tolist() == [0.0, 20.0]
    reasons = found.reasons
    assert reasons is not None
    assert [reasons.words[word] for word in reasons.word[reasons.job == 1]][-1:] == ["Resources"]


def test_a_limit_turns_a_submitted_job_away() -> None:
    one = a_world()
    one.run(until=3)
    made = one.submit({"cores": 1, "runtime": 1, "user": "ann"})
    one.run()
    reasons = one.record().reasons
    assert made.ended.value is Status.unadmitted
    assert not made.started.triggered
    assert reasons is not None
    assert {job: why.reason for job, why in reasons.refused.items()} == {1: "AssocMaxSubmitJobLimit"}


def test_a_submitted_job_keeps_off_what_is_reserved() -> None:
    kept = Reservation("r", ("n1", "n2"), 25 * SECOND, 40 * SECOND)
    one = a_world(replace(SITE, reservations=(kept,)))
    made = one.submit({"cores": 1, "runtime": 10, "user": "bob"})
    one.run()
    assert made.started.value == 40.0


def test_an_unknown_user_and_a_demand_are_refused_by_name() -> None:
    one = a_world()
    with pytest.raises(InputError, match="has user 'dora', which no job of the workload has"):
        one.submit({"cores": 1, "runtime": 1, "user": "dora"})
    with pytest.raises(InputError, match="has a demand, and the policy's site defines the nodes; expected labels"):
        one.submit({"demand": gs.Demand(cores=1), "runtime": 1})


def test_there_is_as_much_capacity_as_requested() -> None:
    one = a_world(max_jobs=1)
    one.submit({"cores": 1, "runtime": 1, "user": "bob"})
    with pytest.raises(gs.PolicyError, match="1 jobs have been submitted"):
        one.submit({"cores": 1, "runtime": 1, "user": "bob"})
