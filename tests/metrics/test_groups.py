"""Size, length and user groups."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.metrics.groups import by_group, by_label, length_classes, rows_by_group, size_classes, users
from gridsim.record import Record


def record_of(**columns: list[int]) -> Record:
    n = len(next(iter(columns.values())))
    rows = [{name: column[row] for name, column in columns.items()} for row in range(n)]
    return Record.from_rows([{"submit": 0, "start": 0, "end": row.get("runtime", 1), **row} for row in rows], cores=20)


def names_of(groups: object) -> list[str]:
    return [groups.names[row] for row in groups.index]  # type: ignore[attr-defined]


def test_size_classes_are_powers_of_two_up_to_the_machine() -> None:
    groups = size_classes(record_of(cores=[1, 2, 3, 4, 5, 8, 9, 16, 17, 20]))
    assert groups.names == ("1", "2-4", "5-8", "9-16", "17-20")
    assert names_of(groups) == ["1", "2-4", "2-4", "2-4", "5-8", "5-8", "9-16", "9-16", "17-20", "17-20"]


def test_jobs_wider_than_the_machine_have_a_separate_class() -> None:
    assert names_of(size_classes(record_of(cores=[20, 21]))) == ["17-20", "more than 20"]


@pytest.mark.parametrize(
    ("cores", "names"),
    [(1, ("1",)), (2, ("1", "2")), (3, ("1", "2-3")), (5, ("1", "2-4", "5")), (8, ("1", "2-4", "5-8"))],
)
def test_small_machines_have_fewer_classes(cores: int, names: tuple[str, ...]) -> None:
    record = Record.from_rows([{"submit": 0, "start": 0, "end": 1}], cores=cores)
    assert size_classes(record).names == names


def test_a_runtime_on_a_bound_belongs_to_the_longer_class() -> None:
    groups = length_classes(record_of(runtime=[59, 60, 600, 3599, 3600, 8 * 3600, 24 * 3600]))
    assert names_of(groups) == [
        "under 1 min", "1-10 min", "10-60 min", "10-60 min", "1-8 h", "8-24 h", "24 h or more",
    ]  # fmt: skip


def test_users_are_distinguished_by_their_work_and_unknown_ones_kept() -> None:
    record = record_of(user=[7, 3, 7, -1, 5, 9], runtime=[10, 15, 10, 99, 1, 15])
    groups = users(record, top=3)
    assert groups.names == ("user 7", "user 3", "user 9", "other users", "unknown")
    assert names_of(groups) == ["user 7", "user 3", "user 7", "unknown", "other users", "user 9"]
    with pytest.raises(InputError, match="0 users"):
        users(record, top=0)


def test_names_of_accounts_are_shown_where_the_workload_has_them() -> None:
    record = record_of(cores=[1, 2, 3, 4])
    labels = {"account": np.array([2, 1, 3, -1]), "qos": np.array([1, 1, 1, 2])}
    workload = replace(record.workload, labels=labels, names={"account": ("", "physics", "<b>")})
    record = replace(record, workload=workload)
    assert names_of(by_label(record, "account")) == ["account <b>", "account physics", "account 3", "unknown"]
    assert names_of(by_label(record, "qos", 1)) == ["QOS 1", "QOS 1", "QOS 1", "other QOS"]


def test_values_of_the_same_name_stay_apart() -> None:
    record = record_of(user=[1, 2, 1], runtime=[5, 4, 3])
    record = replace(record, workload=replace(record.workload, names={"user": ("", "ann", "ann")}))
    assert names_of(users(record)) == ["user ann (1)", "user ann (2)", "user ann (1)"]


def test_without_user_labels_every_user_is_unknown() -> None:
    assert names_of(users(record_of(cores=[1, 2]))) == ["unknown", "unknown"]


def test_rows_by_group_leaves_out_empty_groups_and_cut_jobs() -> None:
    groups = size_classes(record_of(cores=[1, 20, 1, 3]))
    assert {name: rows.tolist() for name, rows in rows_by_group(groups).items()} == {
        "1": [0, 2],
        "2-4": [3],
        "17-20": [1],
    }
    kept = rows_by_group(groups, np.array([False, True, True, False]))
    assert {name: rows.tolist() for name, rows in kept.items()} == {"1": [2], "17-20": [1]}


def test_the_table_by_group_by_hand() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 10, "cores": 4},
            {"submit": 1, "start": 10, "end": 20, "cores": 4},
            {"submit": 2, "start": 4, "end": 24, "cores": 1},
            {"submit": 3, "start": None, "end": None, "runtime": 9, "cores": 1},
        ]
    )
    table = by_group(record, size_classes(record))
    assert list(table) == ["1", "2-4"]
    assert table["2-4"]["wait_mean"] == 4.5
    assert table["2-4"]["bounded_slowdown_max"] == 1.9
    assert (table["2-4"]["area"], table["2-4"]["area_share"]) == (80, 0.8)
    assert (table["1"]["jobs"], table["1"]["ran"], table["1"]["backfilled_share"]) == (2, 1, 1.0)
    assert (table["1"]["wait_max"], table["1"]["response_median"]) == (2, 22)
    only = by_group(record, size_classes(record), rows=np.array([False, False, False, True]))["1"]
    assert only["ran"] == 0
    assert math.isnan(only["wait_mean"])
    assert math.isnan(only["area_share"])
