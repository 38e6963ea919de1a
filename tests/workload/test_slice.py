"""Slices: selected jobs, and the data of the slice that other modules use."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.time import NEVER, seconds
from gridsim.model.workload import Workload
from gridsim.workload.formats.swf import read_swf
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.transform.slice import Slice


@pytest.fixture
def log() -> Workload:
    return Workload.from_columns(
        submit=[10, 20, 20, 30, 40],
        runtime=[1] * 5,
        cores=[1] * 5,
        deadline=[50, np.inf, 60, 70, 80],
        labels={"user": [1, 2, 3, 4, 5]},
        logged={"wait": np.arange(5.0)},
        cores_stated=8,
    )


@pytest.mark.parametrize(
    ("part", "jobs"),
    [
        (Slice(), [1, 2, 3, 4, 5]),
        (Slice(first=2), [3, 4, 5]),
        (Slice(first=1, jobs=2), [2, 3]),
        (Slice(jobs=99), [1, 2, 3, 4, 5]),
        (Slice(start=20), [2, 3, 4, 5]),
        (Slice(end=20), [1]),
        (Slice(start=20, end=40), [2, 3, 4]),
        (Slice(start=20, end=40, first=1, jobs=1), [3]),
        (Slice(jobs=2, window=0), [1, 2]),
        (Slice(jobs=2, window=1), [3, 4]),
        (Slice(jobs=2, window=2), [5]),
        (Slice(jobs=2, window=1, first=1), [4, 5]),
    ],
    ids=repr,
)
def test_positions_count_inside_the_half_open_window(log, part, jobs):
    assert part.apply(log).job.tolist() == jobs


def test_every_column_is_cut(log):
    part = Slice(first=3).apply(log)
    assert part.labels["user"].tolist() == [4, 5]
    assert part.logged["wait"].tolist() == [3, 4]
    assert part.cores_stated == 8


def test_a_new_origin_moves_submits_and_deadlines_together(log):
    part = Slice(first=1, jobs=2, origin=True).apply(log)
    assert seconds(part.submit).tolist() == [0, 0]
    assert part.deadline[0] == NEVER
    assert seconds(int(part.deadline[1])) == 40
    assert log.submit[0] == 10_000_000


def test_provenance_lists_each_transform_in_json(log):
    part = Slice(jobs=3, origin=True).apply(Slice(first=1).apply(log))
    entries = json.loads(json.dumps(part.provenance["transforms"]))
    assert [(entry["transform"], entry["first"], entry["jobs_kept"], entry["shift"]) for entry in entries] == [
        ("slice", 1, 4, 0.0),
        ("slice", 0, 3, 20.0),
    ]


@pytest.mark.parametrize("part", [Slice(first=5), Slice(start=41), Slice(end=10), Slice(start=21, end=30)], ids=repr)
def test_a_slice_without_jobs_is_refused(log, part):
    with pytest.raises(InputError, match=r"Slice\(.* selects no job; .*10 s to 40 s"):
        part.apply(log)


@pytest.mark.parametrize(
    "fields", [{"first": -1}, {"jobs": 0}, {"start": 5, "end": 5}, {"window": 1}, {"window": -1, "jobs": 2}]
)
def test_impossible_bounds_are_refused(fields):
    with pytest.raises(InputError, match="expected"):
        Slice(**fields)


def test_the_clock_of_a_written_slice_moves_with_its_origin(log, tmp_path):
    dated = log.with_provenance(header={"UnixStartTime": ["1000"], "StartTime": ["Thu Jan 01 00:16:40 UTC 1970"]})
    write_swf(Slice(first=1, origin=True).apply(dated), tmp_path / "out.swf")
    header = read_swf(tmp_path / "out.swf").provenance["header"]
    assert header["UnixStartTime"] == ["1020"]
    assert "StartTime" not in header
