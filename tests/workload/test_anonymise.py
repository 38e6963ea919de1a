"""Anonymised logs: unchanged values, pseudonyms, and removed values."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.workload import anonymise
from gridsim.workload.anonymise import anonymised, check_key, pseudonym, read_key
from gridsim.workload.formats.pbs import read_pbs
from gridsim.workload.formats.swf import read_swf
from gridsim.workload.formats.swf_writer import write_swf

KEY = b"a key that is long enough"

SWF = """\
; Version: 2.2
; Computer: Ada's machine
; Installation: the site of Ada
; UnixStartTime: 1700000000
; TimeZoneString: Europe/Berlin
; MaxProcs: 8
; Queue: 3 secret
1 100 5 10 2 -1 -1 2 20 -1 1 7 4 9 3 1 -1 -1
2 109 0 30 4 -1 -1 4 40 -1 1 8 4 -1 3 1 -1 -1
3 112 1 30 4 -1 -1 4 40 -1 0 7 -1 9 0 1 -1 -1
"""

PBS = "\n".join(
    f"11/14/2023 23:14:30;E;{job}.login.site.org;user={user} group=math account=grant7 jobname=engine queue=batch "
    f"ctime={170_000_000_0 + job} start=1700000010 end=1700000070 exec_host=n1/0 Resource_List.ncpus=1 "
    f"Resource_List.walltime=00:10:00 owner={user}@login1 Exit_status=0"
    for job, user in enumerate(["ada", "eve", "ada"], start=1)
)


@pytest.fixture
def swf(tmp_path: Path) -> Workload:
    (tmp_path / "log.swf").write_text(SWF)
    return read_swf(tmp_path / "log.swf")


@pytest.fixture
def pbs(tmp_path: Path) -> Workload:
    (tmp_path / "20231114").write_text(PBS + "\n")
    return read_pbs(tmp_path / "20231114")


def names(workload: Workload, label: str) -> list[str]:
    return [workload.names[label][code] if code >= 0 else "" for code in workload.labels[label].tolist()]


def test_a_pseudonym_is_that_of_hmac_with_sha_256():
    # computed with: printf 'user\0ada' | openssl dgst -sha256 -hmac 'a key that is long enough'
    assert pseudonym(KEY, "user", "ada") == "9eee156f19b6"
    assert pseudonym(KEY + b"!", "user", "ada") != "9eee156f19b6"


def test_names_become_pseudonyms_and_everything_else_stays(pbs):
    made = anonymised(pbs, KEY)
    assert names(made, "user") == [pseudonym(KEY, "user", user) for user in ("ada", "eve", "ada")]
    assert set(made.labels) == {"user", "group", "executable", "queue", "account"}
    for name in ("job", "submit", "runtime", "estimate", "cores", "deadline"):
        assert getattr(made, name).tolist() == getattr(pbs, name).tolist()
    assert made.logged["wait"].tolist() == pbs.logged["wait"].tolist()
    made.check()


def test_codes_are_those_of_sorted_pseudonyms_so_that_no_order_is_reported(pbs):
    made = anonymised(pbs, KEY)
    assert made.names["user"] == ("", *sorted(pseudonym(KEY, "user", user) for user in ("ada", "eve")))


def test_numbers_are_the_pseudonyms_and_survive_swf(pbs, tmp_path):
    made = anonymised(pbs, KEY, numbers=True)
    assert made.names == {}
    write_swf(made, tmp_path / "out.swf")
    back = read_swf(tmp_path / "out.swf")
    assert back.labels["user"].tolist() == [int(pseudonym(KEY, "user", user), 16) for user in ("ada", "eve", "ada")]


def test_a_name_has_one_pseudonym_in_every_log_and_kind_of_column(pbs, swf):
    other = read_again(pbs)
    assert names(anonymised(other, KEY), "user")[0] == names(anonymised(pbs, KEY), "user")[1]
    assert pseudonym(KEY, "user", "math") != pseudonym(KEY, "group", "math")
    numbered = anonymised(swf, KEY)
    assert names(numbered, "user") == [pseudonym(KEY, "user", user) for user in ("7", "8", "7")]


def read_again(workload: Workload) -> Workload:
    """Return the part of a log with its second job."""
    return workload.select(np.array([1]))


def test_a_job_without_a_name_stays_without(swf):
    made = anonymised(swf, KEY, numbers=True)
    assert (made.labels["executable"] == -1).tolist() == [False, True, False]
    assert (made.labels["group"] == -1).tolist() == [False, False, True]
    assert -1 not in made.labels["queue"].tolist()


def test_no_text_of_the_log_is_kept(swf, pbs, tmp_path):
    for workload, words in ((swf, "ada site berlin secret"), (pbs, "ada eve math grant7 engine batch login site")):
        made = anonymised(workload, KEY, numbers=True)
        write_swf(made, tmp_path / "out.swf")
        told = (tmp_path / "out.swf").read_text() + json.dumps(dict(made.provenance)) + repr(made.names)
        assert not re.search("|".join([*words.split(), str(tmp_path)]), told, re.IGNORECASE)
        assert workload.provenance["sha256"] not in told


def test_the_date_is_kept_unless_times_are_shifted(swf, tmp_path):
    write_swf(anonymised(swf, KEY, numbers=True), tmp_path / "kept.swf")
    kept = read_swf(tmp_path / "kept.swf")
    assert kept.provenance["header"]["UnixStartTime"] == ["1700000000"]
    assert (kept.submit // 10**6).tolist() == [100, 109, 112]
    write_swf(anonymised(swf, KEY, shift=True, numbers=True), tmp_path / "shifted.swf")
    shifted = read_swf(tmp_path / "shifted.swf")
    assert "UnixStartTime" not in shifted.provenance["header"]
    assert (shifted.submit // 10**6).tolist() == [0, 9, 12]
    assert shifted.logged["wait"].tolist() == [5, 0, 1]
    assert shifted.cores_stated == 8


def test_tasks_lose_their_names():
    tasks = Tasks.from_edges(counts=[2], runtime=[2, 3], cores=[1, 1], edges=[(0, 1)], names=("align", "merge"))
    made = anonymised(Workload.from_tasks(tasks, submit=[0]), KEY)
    assert made.tasks is not None
    assert made.tasks.names == (pseudonym(KEY, "task", "align"), pseudonym(KEY, "task", "merge"))
    assert made.tasks.successors(0).tolist() == [1]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=30, unique=True))
def test_different_names_have_different_pseudonyms_and_equal_ones_the_same(texts):
    n = len(texts)
    workload = Workload.from_columns(
        submit=range(2 * n), runtime=[1] * 2 * n, cores=[1] * 2 * n, labels={"user": [*range(n), *range(n)]}
    )
    made = names(anonymised(replace(workload, names={"user": tuple(texts)}), KEY), "user")
    assert made[:n] == made[n:]
    assert len(set(made)) == n
    assert all(re.fullmatch("[0-9a-f]{12}", name) for name in made)


def test_two_names_never_become_one(pbs, monkeypatch):
    monkeypatch.setattr(anonymise, "_DIGITS", 0)
    with pytest.raises(InputError, match="two names of user would get the same pseudonym; use another key"):
        anonymised(pbs, KEY)


def test_a_key_is_read_without_what_an_editor_adds(tmp_path):
    (tmp_path / "key").write_bytes(KEY + b"\r\n")
    assert read_key(tmp_path / "key") == KEY


def test_a_key_that_can_be_guessed_is_refused(tmp_path, pbs):
    (tmp_path / "key").write_text("short\n")
    with pytest.raises(InputError, match=r"the key has 5 bytes; expected at least 16.*openssl rand") as caught:
        read_key(tmp_path / "key")
    assert caught.value.path == tmp_path / "key"
    with pytest.raises(InputError, match="the key has 0 bytes"):
        anonymised(pbs, b"")
    with pytest.raises(InputError, match="cannot be read"):
        read_key(tmp_path / "none")
    assert check_key(b"x" * 16) == b"x" * 16
