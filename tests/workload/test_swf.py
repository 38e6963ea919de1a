"""The SWF reader and writer: valid lines, damaged lines, and round trips."""

from __future__ import annotations

import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError, UnknownNameError
from gridsim.model.platform import Platform, machine_cores
from gridsim.model.time import seconds
from gridsim.model.workload import LABELS, Workload
from gridsim.record import Record, Status
from gridsim.simulation import run
from gridsim.workload.formats import stream, swf
from gridsim.workload.formats.swf import read_swf
from gridsim.workload.formats.swf_header import FIELDS
from gridsim.workload.formats.swf_writer import write_swf
from gridsim.workload.read import read_workload
from gridsim.workload.transform.react import React

HEADER = "; Version: 2.2\n; MaxProcs: 8\n"


def line(job=1, submit=0, wait=-1, runtime=10, allocated=1, requested=1, estimate=20, status=1, user=-1, queue=-1):
    return (
        f"{job} {submit} {wait} {runtime} {allocated} -1 -1 {requested} {estimate} -1 {status} "
        f"{user} -1 -1 {queue} -1 -1 -1"
    )


@pytest.fixture
def log(tmp_path):
    """Write lines to a file and read them."""

    def reading(*lines, header=HEADER, name="log.swf", **options):
        path = tmp_path / name
        content = (header + "\n".join(lines) + "\n").encode("latin-1")
        path.write_bytes(content)
        return read_swf(path, **options)

    return reading


def found(workload):
    return {entry["kind"]: entry["count"] for entry in workload.provenance["problems"]}


# Contents of a valid line


def test_each_field_lands_in_its_column(log):
    workload = log("7 1.5 2.25 10 3 -1 -1 4 20 -1 1 5 6 9 2 1 -1 -1")
    assert workload.job.tolist() == [7]
    assert [seconds(int(column[0])) for column in (workload.submit, workload.runtime, workload.estimate)] == [
        1.5,
        10,
        20,
    ]
    assert workload.cores.tolist() == [4]
    assert {name: column.tolist() for name, column in workload.labels.items()} == {
        "user": [5],
        "group": [6],
        "executable": [9],
        "queue": [2],
        "partition": [1],
    }
    assert {name: column.tolist() for name, column in workload.logged.items()} == {
        "wait": [2.25],
        "status": [1],
        "allocated": [3],
    }
    workload.check()


def test_requested_cores_win_and_each_use_of_allocated_ones_is_counted(log):
    workload = log(line(1, allocated=2, requested=4), line(2, allocated=3, requested=-1), line(3, allocated=-1))
    assert workload.cores.tolist() == [4, 3, 1]
    assert workload.provenance["cores_field"] == {"requested": 2, "allocated": 1}


def test_labels_that_the_log_never_gives_are_left_out(log):
    assert list(log(line(1, user=3), line(2, submit=1, queue=0)).labels) == ["user", "queue"]


def test_an_unknown_wait_is_nan(log):
    wait = log(line(1, wait=-1), line(2, wait=0)).logged["wait"]
    assert np.isnan(wait[0])
    assert wait[1] == 0


def test_dependencies_of_the_log_are_kept(log):
    after = line(2, submit=9).removesuffix("-1 -1")
    workload = log(line(1), after + "1 60.5", line(3, submit=9).removesuffix("-1 -1") + "0 5", line(4, submit=9))
    assert workload.logged["preceding"].tolist() == [-1, 1, -1, -1]
    np.testing.assert_array_equal(workload.logged["think"], [np.nan, 60.5, 5, np.nan])
    assert not {"preceding", "think"} & set(log(line(1), line(2)).logged)
    assert found(log(line(1), after + "1.5 3")) == {"not-a-number": 1}


def test_blank_lines_windows_line_ends_tabs_and_late_comments_do_no_harm(log):
    text = [line(1).replace(" ", "\t") + "\r", "", "  ; a remark", "   " + line(2, submit=5) + "  \r", " \t"]
    workload = log(*text)
    assert workload.job.tolist() == [1, 2]
    assert workload.provenance["problems"] == []
    assert (workload.provenance["lines"], workload.provenance["comments"]) == (7, 3)


def test_a_last_line_without_line_end_counts(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(HEADER + line(1) + "\n" + line(2))
    assert len(read_swf(path)) == 2
    assert read_swf(path).provenance["lines"] == 4


# The header


def test_the_header_keeps_every_value_in_order_and_continuations_below_their_key(log):
    header = (
        ";Computer: Café\n; Note: one\n;   goes on\n;\n; free text\n"
        "; Information: http://a\n;   http://b:80/\n; Note: two\n"
    )
    kept = log(line(), header=header, cores=4).provenance["header"]
    assert kept == {
        "Computer": ["Café"],
        "Note": ["one\ngoes on", "two"],
        "": ["free text"],
        "Information": ["http://a\nhttp://b:80/"],
    }
    assert list(kept) == ["Computer", "Note", "", "Information"]


@pytest.mark.parametrize(
    ("header", "cores", "key"),
    [
        ("; MaxNodes: 4\n; MaxProcs: 32\n", 32, "MaxProcs"),
        ("; MaxNodes: 338 (batch partition; 512 total)\n", 338, "MaxNodes"),
        ("; MaxProcs: N/A\n; MaxNodes: 1,152\n", 1152, "MaxNodes"),
        ("; MaxProcs: -1\n", None, None),
        ("", None, None),
    ],
)
def test_machine_size_is_the_leading_number_of_maxprocs_else_of_maxnodes(log, header, cores, key):
    workload = log(line(), header=header)
    assert (workload.cores_stated, workload.provenance["cores_from"]) == (cores, key)


def test_the_caller_knows_the_machine_better_than_the_header(log):
    assert machine_cores(log(line()), 4) == (4, "given")
    assert machine_cores(log(line())) == (8, "MaxProcs")


def test_an_unknown_machine_size_is_an_error(log):
    with pytest.raises(InputError, match=r"log\.swf.*--machine"):
        machine_cores(log(line(), header=""))


def test_provenance_is_json_and_says_what_was_read(log):
    provenance = json.loads(json.dumps(log(line(1), line(2, runtime=0), line(3, status=0, submit=4)).provenance))
    assert (provenance["jobs_read"], provenance["jobs_kept"]) == (3, 2)
    assert provenance["statuses"] == {"0": 1, "1": 2}
    assert provenance["format"] == "swf"
    assert "origin_shift" not in provenance


def test_a_late_first_submit_is_noted_and_not_shifted(log):
    workload = log(line(submit=99))
    assert seconds(int(workload.submit[0])) == 99
    assert "99 s" in workload.provenance["origin_shift"]


# Damaged and impossible lines

DAMAGED = {
    "too-few-fields": line(2)[:-3],
    "not-a-number": line(2, runtime="ten"),
    "bad-submit": line(2, submit=-1),
    "partial": line(2, status=3),
    "never-ran": line(2, runtime=-1, status=5, allocated=-1),
    "negative-runtime": line(2, runtime=-1),
    "zero-runtime": line(2, runtime=0),
    "missing-cores": line(2, requested=-1, allocated=0),
    "too-wide": line(2, requested=9),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_lines_that_are_no_job_are_left_out_counted_and_located(log, kind):
    workload = log(line(1), DAMAGED[kind], line(3))
    assert workload.job.tolist() == [1, 3]
    assert workload.provenance["problems"] == [{"kind": kind, "count": 1, "first_lines": [4], "rule": "skip"}]


@pytest.mark.parametrize(
    "damaged",
    [
        *DAMAGED.items(),
        ("too-many-fields", line(2) + " 5"),
        ("missing-estimate", line(2, estimate=-1)),
        ("over-estimate", line(2, runtime=30)),
        ("out-of-order", line(2, submit=4)),
        ("duplicate-job", line(1, submit=5)),
    ],
    ids=lambda pair: pair[0],
)
def test_the_rule_error_stops_at_the_first_line_of_its_kind(log, damaged):
    kind, text = damaged
    with pytest.raises(InputError) as caught:
        log(line(1, submit=5), text, text, rules={kind: "error"})
    assert caught.value.line == 4
    assert str(caught.value.path).endswith("log.swf")
    assert kind in str(caught.value)
    assert f"--on {kind}=" in str(caught.value)
    assert caught.value.field in (None, *FIELDS)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "1e10", "1_0", "0x10", "1,5", "²"])
def test_values_that_are_no_time_are_not_numbers(log, value):
    workload = log(line(1), line(2, runtime=value), line(3))
    assert found(workload) == {"not-a-number": 1}
    assert workload.job.tolist() == [1, 3]


def test_invalid_numbers_and_values_are_found_in_the_order_of_lines(log):
    lines = [line(1, runtime="nan"), line(2, runtime="x"), line(3)]
    assert log(*lines).provenance["problems"][0]["first_lines"] == [3, 4]
    with pytest.raises(InputError, match=r"line 3, field 'run time': not-a-number: found nan;"):
        log(*lines, rules={"not-a-number": "error"})


@pytest.mark.parametrize(
    "fields", [{"requested": 1.5}, {"job": 2.5}, {"user": 0.5}, {"requested": 1e10}, {"status": 1.5}]
)
def test_fractions_and_huge_values_where_whole_numbers_belong_are_not_numbers(log, fields):
    assert found(log(line(1), line(**{"job": 2, **fields}))) == {"not-a-number": 1}


def test_too_many_fields_are_cut_to_18(log):
    workload = log(line(1), line(2) + " 77 remark")
    assert workload.job.tolist() == [1, 2]
    assert found(workload) == {"too-many-fields": 1}
    assert len(log(line(1), line(2) + " 77", rules={"too-many-fields": "skip"})) == 1


def test_a_line_of_17_fields_does_not_borrow_from_one_of_19(log):
    assert found(log(line(1), line(2)[:-3], line(3) + " 1")) == {"too-few-fields": 1, "too-many-fields": 1}


def test_zero_runtimes_become_a_second_where_asked(log):
    workload = log(line(runtime=0), rules={"zero-runtime": "repair"})
    assert seconds(workload.runtime).tolist() == [1]


def test_too_wide_jobs_get_the_machine_where_asked(log):
    workload = log(line(requested=9), rules={"too-wide": "repair"}, cores=4)
    assert workload.cores.tolist() == [4]


def test_the_machine_given_decides_what_is_too_wide(log):
    assert found(log(line(1, requested=9), cores=9)) == {}
    assert found(log(line(1), line(2, requested=5), cores=4)) == {"too-wide": 1}


def test_without_a_known_machine_nothing_is_too_wide(log):
    assert found(log(line(requested=5000), header="")) == {}


def test_a_missing_estimate_is_the_runtime(log):
    workload = log(line(estimate=-1, runtime=7))
    assert seconds(workload.estimate).tolist() == [7]
    assert found(workload) == {"missing-estimate": 1}


def test_runtimes_over_the_estimate_stay_or_lift_it(log):
    over = line(runtime=30, estimate=20)
    assert seconds(log(over).estimate).tolist() == [20]
    assert seconds(log(over, rules={"over-estimate": "repair"}).estimate).tolist() == [30]
    with pytest.raises(InputError, match="no usable job among 1 job lines"):
        log(over, rules={"over-estimate": "skip"})


def test_lines_out_of_order_are_sorted_stably(log):
    workload = log(line(1, submit=5), line(2, submit=9), line(3, submit=5), line(4, submit=0))
    assert workload.job.tolist() == [4, 1, 3, 2]
    assert found(workload) == {"out-of-order": 2}
    assert log(line(1, submit=5), line(2), rules={"out-of-order": "skip"}).job.tolist() == [1]


def test_a_line_that_is_left_out_puts_nothing_out_of_order(log):
    assert found(log(line(1, submit=5), line(2, runtime=0), line(3, submit=5))) == {"zero-runtime": 1}


def test_repeated_and_missing_job_numbers_become_new_ones(log):
    workload = log(line(3), line(1), line(3), line(-1), line(1))
    assert workload.job.tolist() == [3, 1, 4, 5, 6]
    assert found(workload) == {"duplicate-job": 3}
    assert log(line(3), line(1), line(3), rules={"duplicate-job": "skip"}).job.tolist() == [3, 1]


def test_part_lines_stay_where_the_status_is_no_code_of_the_format(log):
    workload = log(line(status=2), rules={"partial": "keep"})
    assert len(workload) == 1
    assert found(workload) == {"partial": 1}


def test_a_line_counts_under_one_reason_to_be_left_out(log):
    assert found(log(line(1), line(2, submit=-1, runtime=-1, requested=-1, allocated=-1, status=5))) == {
        "bad-submit": 1
    }


def test_unknown_kinds_and_formats_are_refused(log):
    with pytest.raises(UnknownNameError):
        log(line(), rules={"zero": "skip"})
    with pytest.raises(UnknownNameError, match="reader"):
        read_workload("any", format="svf")
    with pytest.raises(InputError, match="--machine"):
        read_workload("any", cores=0)


# Blocks


def test_line_numbers_hold_across_blocks(log, monkeypatch):
    lines = [line(job, submit=job) for job in range(1, 200)]
    lines[70], lines[150] = "broken", line(151, submit=151, runtime=0)
    whole_log = log(*lines)
    monkeypatch.setattr(stream, "_BLOCK", 100)
    in_blocks = log(*lines)
    assert in_blocks.provenance == whole_log.provenance
    assert [entry["first_lines"] for entry in in_blocks.provenance["problems"]] == [[73], [153]]
    assert (in_blocks.job == whole_log.job).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.just(""),
            st.just("; remark"),
            st.lists(
                st.sampled_from(["1", "-1", "0", "5.25", "nan", "x", "1e3", "+7", ".5"]), min_size=16, max_size=19
            ).map(" ".join),
            st.builds(line, job=st.integers(1, 5), submit=st.integers(0, 3), runtime=st.sampled_from([-1, 0, 3.5, 30])),
        ),
        max_size=12,
    ),
    st.sampled_from([40, 90, 1 << 20]),
)
def test_line_by_line_and_at_once_are_the_same(tmp_path_factory, lines, block):
    path = tmp_path_factory.mktemp("logs") / "log.swf"
    path.write_text("\n".join([*lines, line(9)]))
    with pytest.MonkeyPatch.context() as patch:
        at_once = read_swf(path)
        patch.setattr(swf, "_fast", lambda block, first_line, read: None)
        patch.setattr(stream, "_BLOCK", block)
        one_by_one = read_swf(path)
    assert at_once.provenance == one_by_one.provenance
    assert_same(at_once, one_by_one)
    at_once.check()


# Files that are no logs


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
def test_compression_is_recognised_by_the_bytes_not_by_the_name(tmp_path, pack):
    path = tmp_path / "log.dat"
    path.write_bytes(pack((HEADER + line()).encode()))
    assert len(read_workload(path)) == 1


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_a_truncated_archive_names_the_line_that_was_reached(tmp_path, pack):
    path = tmp_path / "log.swf.gz"
    rng = np.random.default_rng(0)
    text = HEADER + "\n".join(line(job, submit=job, runtime=rng.integers(1, 10**6)) for job in range(1, 2000))
    path.write_bytes(pack(text.encode())[:-40])
    with pytest.raises(InputError, match="truncated or damaged") as caught:
        read_workload(path)
    assert caught.value.line >= 1
    assert caught.value.exit_code == 2


def test_a_corrupt_archive_is_refused(tmp_path):
    path = tmp_path / "log.swf.gz"
    packed = bytearray(gzip.compress((HEADER + line()).encode()))
    packed[-6] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(InputError, match="damaged"):
        read_workload(path)


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "log.swf"
    path.write_bytes((HEADER + line()).encode() + b"\n\x7fELF\0\0")
    with pytest.raises(InputError, match=r"line 4: contains a NUL byte, so it is a binary file"):
        read_workload(path)


def test_a_line_without_end_is_refused(tmp_path):
    path = tmp_path / "log.swf"
    path.write_bytes(b"7" * 3_000_000)
    with pytest.raises(InputError, match="1 MiB"):
        read_workload(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "no usable job"),
        (HEADER.encode(), "no usable job: none of the 2 lines"),
        (b"hello\n", r"no usable job among 1 job lines \(1 too-few-fields\)"),
        (line(runtime=0).encode(), r"\(1 zero-runtime\)"),
    ],
)
def test_a_file_without_a_usable_job_is_refused(tmp_path, content, message):
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_workload(path)


def test_folders_and_absent_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_workload(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_workload(tmp_path / "absent.swf")


# Writing


def assert_same(one, other):
    ours, theirs = dict(one.columns()), dict(other.columns())
    assert ours.keys() == theirs.keys()
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)


@st.composite
def workloads(draw):
    n = draw(st.integers(1, 8))
    microseconds = st.integers(0, 2**31).flatmap(
        lambda full: st.sampled_from([0, 1, 500_000, 999_999]).map(lambda part: full * 10**6 + part)
    )

    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    workload = Workload.from_columns(
        submit=np.zeros(n),
        runtime=np.ones(n),
        cores=column(st.integers(1, 2**31 - 1)),
        job=draw(st.lists(st.integers(0, 2**50), min_size=n, max_size=n, unique=True)),
        labels={name: column(st.integers(-1, 10**6)) for name in draw(st.sets(st.sampled_from(LABELS)))},
        logged={
            "wait": column(st.one_of(st.just(np.nan), st.integers(0, 10**12).map(lambda value: value / 1e6))),
            "status": column(st.sampled_from([-1, 0, 1, 5])),
            "allocated": column(st.integers(-1, 5000)),
        },
        cores_stated=2**31 - 1,
    )
    if draw(st.booleans()):
        preceding = column(st.one_of(st.just(-1), st.integers(1, 2**50)))
        preceding[draw(st.integers(0, n - 1))] = 7
        think = column(st.one_of(st.just(np.nan), st.integers(0, 10**12).map(lambda value: value / 1e6)))
        workload = replace(workload, logged={**workload.logged, "preceding": preceding, "think": think})
    return replace(
        workload,
        submit=np.sort(column(microseconds)),
        runtime=column(microseconds) + 1,
        estimate=column(microseconds) + 1,
    )


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(workloads(), st.sampled_from(["log.swf", "log.swf.gz", "log.swf.xz"]))
def test_written_values_are_read_back(tmp_path_factory, workload, name):
    path = tmp_path_factory.mktemp("logs") / name
    write_swf(workload, path)
    back = read_swf(path)
    known = {name for name, column in workload.labels.items() if (column != -1).any()}
    assert set(back.labels) == known
    for name, column in workload.columns():
        if name not in LABELS or name in known:
            np.testing.assert_array_equal(column, dict(back.columns())[name], err_msg=name)
    assert back.cores_stated == workload.cores_stated
    assert set(found(back)) <= {"over-estimate"}


def test_whole_numbers_are_written_whole_and_fractions_short(tmp_path):
    workload = Workload.from_columns(submit=[0, 1.25], runtime=[10, 0.000001], cores=[1, 2], estimate=[10, 3])
    write_swf(workload, tmp_path / "out.swf")
    jobs = [text.split() for text in (tmp_path / "out.swf").read_text().splitlines() if text[0] != ";"]
    assert [(job[1], job[3], job[8]) for job in jobs] == [("0", "10", "10"), ("1.25", "0.000001", "3")]
    assert all(len(job) == 18 for job in jobs)


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz", "out.swf.xz"])
def test_the_same_jobs_are_the_same_bytes(tmp_path, name):
    workload = Workload.from_columns(submit=[0, 1], runtime=[1, 1], cores=[1, 1])
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_swf(workload, tmp_path / folder / name)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_writing_twice_changes_nothing_and_keeps_the_header(log, tmp_path):
    header = (
        "; Version: 2\n; Computer: Café\n; Note: one\n;   goes on\n;\n; free text\n"
        "; MaxNodes: 8 (of 9)\n; MaxJobs: 99\n"
    )
    original = log(line(1), line(2, submit=3), header=header)
    write_swf(original, tmp_path / "once.swf")
    once = read_swf(tmp_path / "once.swf")
    assert once.provenance["header"]["MaxJobs"] == ["2"]
    assert once.provenance["header"]["Note"][0] == "one\ngoes on"
    assert once.provenance["header"][""] == ["free text"]
    assert once.provenance["cores_from"] == "MaxNodes"
    write_swf(once, tmp_path / "twice.swf")
    assert (tmp_path / "once.swf").read_bytes() == (tmp_path / "twice.swf").read_bytes()


def test_a_record_writes_the_simulated_waits_and_what_became_of_each_job(tmp_path):
    record = Record.from_rows(
        [
            {"submit": 0, "start": 30, "end": 35, "cores": 2},
            {
                "submit": 1,
                "start": 1,
                "end": 9,
                "cores": 1,
                "runtime": 20,
                "estimate": 8,
                "status": Status.killed_walltime,
            },
            {"submit": 2, "start": None, "end": None, "cores": 4, "runtime": 5, "status": Status.rejected},
        ],
        cores=4,
    )
    write_swf(record.workload, tmp_path / "out.swf", record=record)
    jobs = [text.split() for text in (tmp_path / "out.swf").read_text().splitlines() if text[0] != ";"]
    wait, runtime, allocated, requested, status = zip(*((j[2], j[3], j[4], j[7], j[10]) for j in jobs), strict=True)
    assert wait == ("30", "0", "-1")
    assert runtime == ("5", "8", "-1")
    assert allocated == ("2", "1", "-1")
    assert requested == ("2", "1", "4")
    assert status == ("1", "0", "5")
    assert "; MaxProcs: 4\n" in (tmp_path / "out.swf").read_text()


def test_a_record_of_users_who_react_writes_the_submits_of_the_run_in_their_order(tmp_path):
    log = Workload.from_columns(
        submit=[0, 1, 20, 40], runtime=[10, 30, 5, 1], cores=[4, 4, 4, 1], labels={"user": [1, 2, 3, 1]},
        logged={"wait": [28, 0, 0, 0]},
    )  # fmt: skip
    record = run(React().apply(log), Platform.single(4), "fcfs")
    write_swf(log, tmp_path / "out.swf", record=record)
    back = read_swf(tmp_path / "out.swf")
    assert back.job.tolist() == [1, 2, 4, 3]
    assert back.logged_start is not None
    assert back.logged_start.tolist() == record.start_us[back.job - 1].tolist()
    assert back.submit.tolist() == record.workload.submit[back.job - 1].tolist()


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    workload = Workload.from_columns(submit=[0], runtime=[1], cores=[1])
    (tmp_path / "out.swf").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(workload, tmp_path / "out.swf")
    assert [path.name for path in tmp_path.iterdir()] == ["out.swf"]


# The logs of the archive, and one with all of their irregularities

LOGS = {
    "generated": {
        "read": 20_000,
        "kept": 18_800,
        "cores": (64, "MaxProcs"),
        "field": (15_000, 5_000),
        "problems": {
            "never-ran": 400,
            "negative-runtime": 400,
            "zero-runtime": 400,
            "missing-estimate": 800,
            "over-estimate": 1_200,
        },
        "statuses": {"0": 800, "1": 18_800, "5": 400},
        "labels": ["user", "queue"],
    },
    "CTC-SP2-1996-3.1-cln": {
        "read": 77_222,
        "kept": 77_205,
        "cores": (338, "MaxProcs"),
        "field": (0, 77_222),
        "problems": {"zero-runtime": 17, "missing-estimate": 6, "over-estimate": 7_174},
        "statuses": {"0": 16_669, "1": 60_553},
        "labels": ["user", "executable", "queue"],
    },
    "NASA-iPSC-1993-3.1-cln": {
        "read": 18_239,
        "kept": 18_066,
        "cores": (128, "MaxProcs"),
        "field": (0, 18_239),
        "problems": {"zero-runtime": 173, "missing-estimate": 18_066},
        "statuses": {"-1": 18_239},
        "labels": ["user", "group", "executable"],
    },
    "SDSC-BLUE-2000-4.2-cln": {
        "read": 243_306,
        "kept": 232_536,
        "cores": (1152, "MaxProcs"),
        "field": (243_306, 0),
        "problems": {"never-ran": 10_764, "negative-runtime": 2, "zero-runtime": 4, "over-estimate": 23_434},
        "statuses": {"-1": 2, "1": 195_586, "5": 47_718},
        "labels": ["user", "queue"],
    },
    "SDSC-SP2-1998-4.2-cln": {
        "read": 59_715,
        "kept": 54_034,
        "cores": (128, "MaxProcs"),
        "field": (59_715, 0),
        "problems": {"never-ran": 5_681, "missing-estimate": 35, "over-estimate": 4_134},
        "statuses": {"1": 43_117, "5": 16_598},
        "labels": ["user", "group", "executable", "queue"],
    },
    "lublin_256": {
        "read": 10_000,
        "kept": 10_000,
        "cores": (256, "MaxNodes"),
        "field": (0, 10_000),
        "problems": {"missing-estimate": 10_000},
        "statuses": {"1": 10_000},
        "labels": ["queue"],
    },
}


ARCHIVE = tuple(pytest.param(name, marks=pytest.mark.others) for name in LOGS if name != "generated")


def generated(path: Path, jobs: int = 20_000) -> Path:
    """Return a log in which every fiftieth line never ran, the next one has a negative runtime, and so on."""
    odd: dict[int, dict[str, int]] = {
        0: {"runtime": -1, "status": 5, "allocated": -1, "requested": 3},
        1: {"runtime": -1, "status": 0},
        2: {"runtime": 0, "status": 0},
    }
    odd |= {place: {"estimate": -1 if place < 5 else 30} for place in range(3, 8)}
    lines = []
    for job in range(1, jobs + 1):
        usual = {"runtime": 60 + job % 900, "allocated": job % 64 + 1, "requested": job % 64 + 1, "estimate": 3600}
        usual |= {"requested": -1} if job % 4 == 1 else {}
        lines.append(line(job, 30 * job, job % 600, **(usual | {"user": job % 40, "queue": 1} | odd.get(job % 50, {}))))
    path.write_bytes(gzip.compress(("; MaxProcs: 64\n" + "\n".join(lines) + "\n").encode(), 1))
    return path


@pytest.fixture
def archived(others: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a log of the archive, or the generated one."""
    return lambda name: generated(tmp_path / "in.swf.gz") if name == "generated" else others(f"swf/{name}.swf.gz")


@pytest.mark.parametrize("name", ["generated", *ARCHIVE])
def test_the_known_counts_of_archive_logs_are_found(archived, name):
    facts = LOGS[name]
    workload = read_workload(archived(name))
    workload.check()
    provenance = workload.provenance
    assert (provenance["jobs_read"], provenance["jobs_kept"], len(workload)) == (
        facts["read"],
        facts["kept"],
        facts["kept"],
    )
    assert machine_cores(workload) == facts["cores"]
    assert tuple(provenance["cores_field"].values()) == facts["field"]
    assert found(workload) == facts["problems"]
    assert provenance["statuses"] == facts["statuses"]
    assert list(workload.labels) == facts["labels"]


SDSC = pytest.param("SDSC-SP2-1998-4.2-cln", marks=pytest.mark.others)


@pytest.mark.parametrize("name", ["generated", SDSC])
def test_an_archive_log_survives_the_round_trip(archived, tmp_path, name):
    original = read_workload(archived(name))
    write_swf(original, tmp_path / "out.swf.gz")
    back = read_workload(tmp_path / "out.swf.gz")
    assert_same(original, back)
    assert found(back) == {"over-estimate": LOGS[name]["problems"]["over-estimate"]}


@pytest.mark.parametrize(("name", "most"), [("generated", 13e6), pytest.param(*SDSC.values, 40e6, marks=SDSC.marks)])
def test_reading_a_log_takes_little_memory(archived, name, most):
    path = archived(name)
    tracemalloc.start()
    try:
        read_workload(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
