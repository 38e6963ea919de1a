"""Tables of every format give the same jobs: CSV with and without quotes, Parquet by row group, JSON, joins, parts."""

from __future__ import annotations

import bz2
import csv
import importlib
import io
import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.workload.formats.table import cells as cells_module
from gridsim.workload.formats.table.cells import csv_cells
from gridsim.workload.formats.table.mapping import ColumnRule
from gridsim.workload.formats.table.values import Wrong, numbers
from gridsim.workload.read import read_workload

COLUMNS = 'submit = {column = "at", time = "s"}\nruntime = "took"\ncores = "procs"\nuser = "who"\n'
ROWS = [(10 + row, 5 + row % 7, 1 + row % 3, f"u{row % 4}") for row in range(300)]
NAMES = ["at", "took", "procs", "who"]


def read(folder: Path, name: str, content: bytes, mapping: str = f"[columns]\n{COLUMNS}") -> Workload:
    (folder / "map.toml").write_text(mapping)
    (folder / name).write_bytes(content)
    return read_workload(folder / name, mapping=str(folder / "map.toml"))


def text_of(rows: list[tuple[object, ...]], **options: object) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", **options).writerows([NAMES, *rows])  # type: ignore[arg-type]
    return text.getvalue()


def facts(jobs: Workload) -> list[object]:
    names = [jobs.names["user"][number] for number in jobs.labels["user"].tolist()]
    return [jobs.job.tolist(), jobs.submit.tolist(), jobs.runtime.tolist(), jobs.cores.tolist(), names]


@pytest.fixture
def plain(tmp_path: Path) -> list[object]:
    return facts(read(tmp_path, "plain.csv", text_of(ROWS).encode()))


@pytest.mark.parametrize("name", ["quoted.csv", "crlf.csv", "late.csv", "packed.csv.bz2", "tabs.tsv"])
def test_ways_to_write_a_table_are_one(
    tmp_path: Path, plain: list[object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells_module, "_CHUNK", 700)  # lines that cross blocks
    monkeypatch.setattr(cells_module, "BLOCK", 40)
    text, mapping = text_of(ROWS), f"[columns]\n{COLUMNS}"
    if name == "quoted.csv":
        text = text_of(ROWS, quoting=csv.QUOTE_ALL)
    elif name == "crlf.csv":
        text = text.replace("\n", "\r\n")
    elif name == "late.csv":  # a mark after which the csv module reads
        text = text.replace("u3\n", '"u3"\n').replace('"u3"', "u3", 40)
    elif name == "tabs.tsv":
        text, mapping = text.replace(",", " \t "), f'format = "tsv"\n{mapping}'
    content = bz2.compress(text.encode()) if name.endswith("bz2") else text.encode()
    assert facts(read(tmp_path, name, content, mapping)) == plain


def test_a_table_of_objects(tmp_path: Path, plain: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridsim.workload.formats.table.objects._CHUNK", 50)
    objects = [{**dict(zip(NAMES, row, strict=True)), "more": [{"x": None}]} for row in ROWS]
    jobs = read(tmp_path, "t.json", json.dumps(objects).encode(), f'format = "json"\n[columns]\n{COLUMNS}')
    assert facts(jobs) == plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"at": 1}', "no array; expected an array of objects"),
        ("[1]", "object 1 is '1'; expected an array of objects"),
        ('[{"at": 1}, {"at": ', "in object 2; expected an array of objects"),
        ('[{"att": 1, "took": 2, "procs": 3, "who": 4}]', "unknown column of .*'at'; did you mean 'att'"),
    ],
)
def test_an_invalid_array_of_objects_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, "t.json", content.encode(), f'format = "json"\n[columns]\n{COLUMNS}')


@pytest.mark.parquet
def test_parquet_is_read_by_row_group(tmp_path: Path, plain: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = importlib.import_module("duckdb")
    monkeypatch.setattr(cells_module, "_PART", 1000)
    (tmp_path / "rows.csv").write_text(text_of(ROWS * 20))
    file = str(tmp_path / "t.parquet")
    source = f"select *, timestamp '2026-01-01 12:00:00' as made, [1, 2] as power from read_csv('{tmp_path}/rows.csv')"
    duckdb.sql(f"copy ({source}) to '{file}' (format parquet, row_group_size 2048)")
    (tmp_path / "map.toml").write_text(f'format = "parquet"\nsort = false\n[columns]\n{COLUMNS}')
    jobs = read_workload(file, mapping=str(tmp_path / "map.toml"))
    assert len(jobs) == 6000
    assert jobs.provenance["jobs_read"] == 6000
    assert sorted(jobs.job.tolist()) == list(range(1, 6001))
    first = jobs.select(np.argsort(jobs.job)[:300])
    assert facts(first) == plain
    (tmp_path / "map.toml").write_text(
        'format = "parquet"\n[columns]\nsubmit = "made"\nruntime = "took"\ncores = "procs"\n'
    )
    assert read_workload(file, mapping=str(tmp_path / "map.toml")).epoch == 1767268800
    (tmp_path / "none.parquet").write_text("at,took")
    with pytest.raises(InputError, match=r"none.parquet: cannot be read \(.*expected a Parquet file"):
        read_workload(tmp_path / "none.parquet", mapping=str(tmp_path / "map.toml"))


def test_parts_of_a_table_are_one(tmp_path: Path, plain: list[object]) -> None:
    (tmp_path / "map.toml").write_text(f"[columns]\n{COLUMNS}")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        (tmp_path / "parts" / f"{part}.csv").write_text(text_of(ROWS[100 * part : 100 * part + 100]))
    jobs = read_workload(tmp_path / "parts", mapping=str(tmp_path / "map.toml"))
    assert facts(jobs)[1:] == plain[1:]
    assert len(set(jobs.job.tolist())) == 300
    (tmp_path / "parts" / "2.csv").write_text(text_of([*ROWS[200:], ("x", 1, 1, "u1")]))
    message = read_workload(tmp_path / "parts", mapping=str(tmp_path / "map.toml")).provenance["problems"]
    assert next(it for it in message if it["kind"] == "damaged-row")["first_places"] == [f"{tmp_path}/parts/2.csv:102"]


JOIN = f"""
[columns]
{COLUMNS.replace('user = "who"', 'group = "who"')}
[join.people]
file = "people.csv"
key = "who"
header = ["who", "name", "since"]
columns = {{user = "name"}}
"""


def test_a_joined_table(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("u0,ada,1\nu1,bob,2\nu2,eve,3\nu0,zoe,4\n")
    jobs = read(tmp_path, "t.csv", text_of(ROWS).encode(), JOIN)
    assert [jobs.names["user"][it] if it > 0 else "" for it in jobs.labels["user"][:4].tolist()] == [
        "ada",
        "bob",
        "eve",
        "",
    ]
    assert jobs.provenance["not_joined"] == {"people": 75}
    (tmp_path / "people.csv").unlink()
    with pytest.raises(InputError, match=r"people.csv: does not exist; the mapping joins it \(\[join.people\]\)"):
        read(tmp_path, "t.csv", text_of(ROWS).encode(), JOIN)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (JOIN.replace("columns = {", 'columns = {group = "since", '), "field 'join.people.columns.group': is also in"),
        (JOIN.replace('key = "who"\n', ""), "field 'join.people.key': is missing"),
        (JOIN.replace("user", "usr"), r"unknown key of \[join.people.columns\] in .*'usr'; did you mean 'user'"),
        (JOIN.replace('"name"}', '"nam"}'), "unknown column of .*people.csv, .*join.people' names 'nam'; did you mean"),
        (f"[columns]\n{COLUMNS}[capacity]\ngpu = 3\n", r"unknown key of \[capacity\] in .*'gpu'; did you mean 'gpus'"),
        (f"[columns]\n{COLUMNS}[capacity]\ngpus = 0\n", "field 'capacity.gpus': is 0; expected a number above 0"),
        (
            f'format = "json"\ndelimiter = ";"\n[columns]\n{COLUMNS}',
            "field 'delimiter': applies to csv and tsv",
        ),
        (
            f'[columns]\n{COLUMNS}name = {{column = "who", since = "at"}}',
            "field 'columns.name.since': applies to",
        ),
    ],
)
def test_mistakes_of_joins_and_capacities(tmp_path: Path, mapping: str, message: str) -> None:
    (tmp_path / "people.csv").write_text("u0,ada,1\n")
    with pytest.raises(InputError, match=message):
        read(tmp_path, "t.csv", text_of(ROWS).encode(), mapping)


def test_limits_that_are_none_and_packed_texts(tmp_path: Path) -> None:
    rows = [(0, 90, "1=4,2=8000,4=2", "INFINITE"), (1, 90, "1=2", "2")]
    mapping = f"""
[columns]
{COLUMNS.replace('user = "who"', "").replace('"procs"', '{column = "procs", key = "1"}')}
gpus = {{column = "procs", key = "4"}}
estimate = {{column = "who", unit = "min", unlimited = ["INFINITE"]}}
"""
    jobs = read(tmp_path, "t.csv", text_of(rows).encode(), mapping)
    assert (jobs.estimate / 1e6).tolist() == [365 * 86400, 120]
    assert jobs.cores.tolist() == [4, 2]
    assert jobs.demands is not None
    assert jobs.demands.total("gpu").tolist() == [2000, 0]
    assert [it["kind"] for it in jobs.provenance["problems"]] == ["unlimited"]


@given(st.lists(st.text('ab,\n" \r', max_size=12), min_size=1, max_size=8))
def test_lines_are_cut_as_csv_cuts_them(lines: list[str]) -> None:
    text = "\n".join(lines).replace("\r", "") + "\n"
    expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    found = list(csv_cells(io.StringIO(text, newline=""), ",", ["x", "y"], ["x", "y"], 1))
    kept = [pair for block in found for pair in zip(block.columns["x"], block.columns["y"], strict=True)]
    assert kept == [(row[0].strip(), row[1].strip()) for row in expected if len(row) == 2]
    assert [it for block in found for it in (width for _, width in block.ragged)] == [
        len(row) for row in expected if len(row) != 2
    ]


FORMS = ("{:%Y-%m-%d %H:%M:%S}", "{:%Y-%m-%dT%H:%M:%S.%f}", "{:%Y-%m-%d %H:%M}", "{:%Y-%m-%d}")


@given(
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1)), min_size=1, max_size=5),
    st.sampled_from(FORMS),
    st.sampled_from(["", "Z", "+08:00", "-0330", "+05"]),
    st.sampled_from(["UTC", "Europe/Berlin", "US/Pacific", "Asia/Kolkata"]),
)
def test_iso_times_all_at_once_are_those_one_by_one(times: list[datetime], form: str, ending: str, zone: str) -> None:
    ending = "" if form.endswith("%d}") else ending
    texts = [*(form.format(time) + ending for time in times), "NULL"]
    wrong: list[Wrong] = []
    found = numbers(ColumnRule("instant", "at"), {"at": texts}, len(texts), zone, wrong)
    one = [datetime.fromisoformat(text) for text in texts[:-1]]
    expected = [(it if it.tzinfo else it.replace(tzinfo=ZoneInfo(zone))).timestamp() for it in one]
    assert found[:-1].tolist() == expected
    assert np.isnan(found[-1])
    assert not wrong
    mixed = [*texts, "2020-01-01T00:00:00-01:00", "2020-13-01", "yesterday"]
    found = numbers(ColumnRule("instant", "at"), {"at": mixed}, len(mixed), zone, wrong)
    assert found[:-4].tolist() == expected
    assert [it.text for it in wrong] == ["2020-13-01", "yesterday"]
