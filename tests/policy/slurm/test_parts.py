"""Parts of the Slurm-like scheduler, compared with calculations by hand and the output of a real cluster."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Association, Priority
from gridsim.model.site_file import read_associations, read_site
from gridsim.policy.slurm.factors import Factors, age_factor, size_factor, weighted_sum
from gridsim.policy.slurm.fair_tree import FairShares

SECOND = 1_000_000


def printed(path: Path) -> dict[int, list[dict[str, str]]]:
    """Return rows of a queue file by the time of the output."""
    found = defaultdict(list)
    for row in csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines(), delimiter="|"):
        found[int(row["now"])].append(row)
    return found


def test_fair_tree_gives_every_factor_that_sshare_printed(run_a: Path) -> None:
    shares = FairShares(read_associations(run_a / "logs" / "sacctmgr_dump.cfg")[0])
    compared = 0
    for rows in printed(run_a / "queue" / "sshare.psv.gz").values():
        users = [row for row in rows if row["User"]]
        for row in users:
            shares.used[shares.users.index((row["Account"].strip(), row["User"]))] = float(row["RawUsage"])
        factors = dict(zip(shares.users, shares.factors(), strict=True))
        for row in users:
            assert factors[row["Account"].strip(), row["User"]] == pytest.approx(float(row["FairShare"]), abs=1e-6)
            compared += 1
    assert compared == 320


def test_the_other_factors_are_those_that_sprio_printed(run_a: Path) -> None:
    site = read_site(run_a / "config/slurm.conf", qos=run_a / "logs/sacctmgr_qos.txt")
    asked = {}
    for row in csv.DictReader((run_a / "schedule.csv").read_text().splitlines()):
        asked[row["jobid_raw"]] = row
    rows = list(csv.DictReader((run_a / "workload.csv").read_text().splitlines()))
    nodes, whole = ({row["id"]: row[name] for row in rows} for name in ("nodes", "exclusive"))
    highest = max(qos.priority for qos in site.qos)
    qos = {each.name: each.priority / highest for each in site.qos}
    compared = 0
    for now, rows in printed(run_a / "queue" / "sprio.psv.gz").items():
        for row in rows:
            job = asked.get(row["jobid"])
            if job is None or not job["workload_id"] or not job["eligible"].isdigit():
                continue
            one = np.array([1])
            size = size_factor(
                (4 if whole[job["workload_id"]] else int(job["req_cpus"])) * one,
                int(nodes[job["workload_id"]] or 1) * one,
                one,
                all_cores=32,
                all_nodes=8,
                priority=site.priority,
            )
            assert round(500 * float(size[0])) == int(row["jobsize"])
            assert round(3000 * qos[job["qos"]]) == int(row["qos"])
            assert int(row["partition_w"]) == 1000 * site.partition(row["partition"]).job_factor / 10
            compared += 1
            if "_" in job["jobid"]:  # one row represents all waiting tasks of an array
                continue
            # Ages are those of the last calculation, at most one period before the output.
            waited = (now - int(job["eligible"])) * SECOND * one
            newest = 2000 * float(age_factor(waited, site.priority)[0])
            assert newest - 2000 * 61 / 1200 - 1 <= int(row["age"]) <= newest + 1
    assert compared > 300


def test_a_priority_is_the_weighted_sum_less_the_nice_value() -> None:
    weights = Priority(age=1000, fair_share=100, size=10, partition=4, qos=2)
    half = np.array([0.5])
    factors = Factors(half, half, half, half, half, np.array([3]), np.zeros(1))
    assert weighted_sum(factors, weights).tolist() == [558 - 3]


def test_small_jobs_are_favoured_and_time_counts_where_the_site_says_so() -> None:
    one = np.array([1])
    sizes = {"all_cores": 100, "all_nodes": 10}
    small = size_factor(10 * one, one, 60 * SECOND * one, **sizes, priority=Priority(favor_small=True))
    assert small.tolist() == [0.9]
    relative = size_factor(10 * one, one, 120 * SECOND * one, **sizes, priority=Priority(relative_size=True))
    assert relative.tolist() == [0.05]


def test_usage_halves_in_a_half_life_and_grows_by_what_runs() -> None:
    shares = FairShares([Association("root", "ann")], half_life=100.0)
    shares.used[:] = 80.0
    shares.decay(100.0)
    assert shares.used.tolist() == [40.0]
    shares.charge(np.array([0]), np.array([2.0]), np.array([0.0]), 1.0)
    assert shares.used[0] == pytest.approx(42.0, abs=0.02)


def test_tied_users_have_the_same_rank_and_children_of_tied_accounts_are_merged() -> None:
    accounts = [Association("a", parent="root"), Association("b", parent="root")]
    users = [Association("a", "ann"), Association("a", "bob"), Association("b", "cy")]
    shares = FairShares([*accounts, *users])
    assert shares.factors().tolist() == [1.0, 1.0, 1.0]
    shares.used[:] = 5, 5, 10
    # a and b are tied at 1; ann and bob have 1/2 over 1/2 each, cy has 1 over 1.
    assert shares.factors().tolist() == [1.0, 1.0, 1.0]
    shares.used[:] = 9, 1, 10
    assert shares.factors() * 3 == pytest.approx([1, 3, 2])


def test_children_of_an_account_with_its_parents_shares_count_as_those_of_the_account_above() -> None:
    accounts = [Association("a", parent="root"), Association("b", parent="a", shares=PARENT)]
    users = [Association("b", "ann"), Association("a", "bob")]
    shares = FairShares([*accounts, *users])
    shares.used[:] = 30, 10
    assert shares.factors() * 2 == pytest.approx([1, 2])


def test_the_classic_factor_is_a_half_where_use_is_the_share() -> None:
    accounts = [Association("a", parent="root"), Association("b", parent="root")]
    users = [Association("a", "ann"), Association("b", "bob")]
    shares = FairShares([*accounts, *users], fair_tree=False)
    shares.used[:] = 10, 10
    assert shares.factors() == pytest.approx([0.5, 0.5])
    shares.used[:] = 20, 0
    assert shares.factors() == pytest.approx([0.25, 1.0])


def test_an_account_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="account 'gone' is not in the associations"):
        FairShares([Association("gone", "ann")])
