"""Lines whose delimiter also occurs in values: parsing by pattern equals parsing one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.formats.sacct import read_sacct, screening

NAMES = (
    "JobID JobIDRaw JobName User Submit Start End ElapsedRaw TimelimitRaw State AllocCPUS ReqTRES AllocTRES Priority"
)
PARTS = ("billing=4", "cpu=4", "mem=62.50G", "node=1", "gres/gpu=2")


def record(number: int, name: str = "run", more: int = 0) -> list[str]:
    asked, given_ = ",".join(PARTS[: 3 + more % 3]), ",".join(PARTS[: 2 + more % 2]) if more % 4 else ""
    state = ("COMPLETED", "CANCELLED by 1001", "TIMEOUT")[number % 3]
    times = [f"2026-01-05T00:{minute:02d}:{number % 60:02d}" for minute in (1, 2, 3)]
    return [str(number), str(number), name, f"u{number % 5}", *times, "60", "5", state, "4", asked, given_, str(number)]


def step(number: int) -> list[str]:
    fields = record(number)
    return [f"{number}.batch", f"{number}.batch", "batch", "", *fields[4:8], "", "COMPLETED", *fields[10:13], ""]


def write(path: Path, delimiter: str, rows: list[list[str]]) -> Path:
    path.write_text("".join(delimiter.join(row) + "\n" for row in [NAMES.split(), *rows]))
    return path


def said(workload: Workload) -> dict[str, list[object]]:
    """Return columns with names instead of numbers, which are assigned in order of first occurrence."""
    columns: dict[str, list[object]] = {name: np.nan_to_num(column).tolist() for name, column in workload.columns()}
    return columns | {
        name: [names[code] if code >= 0 else "" for code in workload.labels[name].tolist()]
        for name, names in workload.names.items()
    }


@pytest.mark.parametrize("delimiter", [",", " ", "-", "="])
def test_commas_in_lists_make_no_other_jobs(tmp_path: Path, delimiter: str) -> None:
    rows = [row for k in range(100, 160) for row in (record(k, more=k), step(k))]
    plain = read_sacct(write(tmp_path / "plain", "|", rows))
    other = read_sacct(write(tmp_path / "other", delimiter, rows))
    assert len(plain) == 60
    assert said(plain) == said(other)
    assert other.provenance["steps"] == plain.provenance["steps"] == 60


def test_names_with_commas_are_found_among_lists_with_commas(tmp_path: Path) -> None:
    names = ["a,b", "run", "x,1,y", "cpu=4,node=1", ",", "v2,"]
    rows = [record(100 + k, names[k % len(names)], k) for k in range(60)]
    read = read_sacct(write(tmp_path / "log", ",", rows))
    found = dict(zip(read.job.tolist(), read.labels["executable"].tolist(), strict=True))
    assert [read.names["executable"][found[100 + k]] for k in range(60)] == [names[k % len(names)] for k in range(60)]


FIELD = st.sampled_from(
    ["", "7", "x", "cpu=4", "node=1", "a=b", "COMPLETED", "2026-01-05T00:01:00", "8.batch", "=", "0:0"]
)


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(100, 130), st.lists(FIELD, max_size=4), st.integers(0, 7)), min_size=9, max_size=30)
)
def test_a_line_is_read_alone_as_with_any_name(tmp_path_factory, entries) -> None:
    """Neighbouring lines do not change the result of a line, and no line is lost."""
    rows = [record(number, ",".join(["n", *name, "e"]), more) for number, name, more in entries]
    path = write(tmp_path_factory.mktemp("alike") / "log", ",", rows)
    many, found = screening._MANY, []
    try:
        for least in (8, 10**9):
            screening._MANY = least
            try:
                found.append(read_sacct(path, rules={"repeated-line": "skip"}))
            except InputError as error:
                found.append(str(error))
    finally:
        screening._MANY = many
    if isinstance(found[0], Workload) and isinstance(found[1], Workload):
        assert said(found[0]) == said(found[1])
    else:
        assert found[0] == found[1]
