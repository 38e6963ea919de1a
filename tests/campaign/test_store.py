"""A folder of finished units: each unit is one file, written atomically."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsim.campaign.store import Failure, Shard, Store
from gridsim.errors import InputError
from gridsim.files import checksum


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_result_exists_only_with_all_of_its_files(store: Store) -> None:
    assert not store.has("ab/abc.json")
    store.put_failure("ab/abc.json", Failure("a unit", "KeyError: 'x'", "Traceback"))
    assert store.has_failed("ab/abc.json")
    store.put("ab/abc.json", b"{}", {"records/abc/jobs.csv": b"job\n"})
    assert store.has("ab/abc.json")
    assert not store.has_failed("ab/abc.json")
    assert (store.folder / "records/abc/jobs.csv").read_bytes() == b"job\n"


def test_further_files_are_written_before_the_result(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr("gridsim.campaign.store._put", lambda path, _: written.append(path.name))
    store.put("abc.json", b"{}", {"records/abc/jobs.csv": b"job\n"})
    assert written == ["jobs.csv", "abc.json"]


def without_checksums(store: Store) -> list[str]:
    """Names of results in the format of an earlier version."""
    for name in "abcd":
        store.put(f"{name}.json", b"{}\n", {})
    (store.folder / "checksums.jsonl").unlink()
    return store.files()


def test_an_interruption_discards_no_result_of_an_earlier_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = without_checksums(store)
    with monkeypatch.context() as patched:

        def interrupted(path: Path) -> str:
            if path.name == "c.json":
                raise KeyboardInterrupt
            return checksum(path)

        patched.setattr("gridsim.campaign.store.checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Store(store.folder).adopt(Shard())
    later = Store(store.folder)
    assert later.adopt(Shard()) == len(files)
    assert [file for file in files if later.is_intact(file)] == files


def test_two_shards_accept_the_results_of_an_earlier_version(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    files, other, found = without_checksums(store), Store(store.folder), list[int]()

    def meanwhile(path: Path) -> str:
        if path.name == "c.json" and not found:
            found.append(0)
            found[0] = other.adopt(Shard(2, 2))
        return checksum(path)

    monkeypatch.setattr("gridsim.campaign.store.checksum", meanwhile)
    own = Store(store.folder)
    assert (own.adopt(Shard(1, 2)), found) == (len(files), [len(files)])
    for each in (own, other, Store(store.folder)):
        assert [file for file in files if each.is_intact(file)] == files
        assert each.adopt(Shard(1, 2)) == 0


# What results are of


def test_a_store_keeps_to_what_its_results_are_of(store: Store) -> None:
    store.claim({"version": "1", "seeds": (1, 2), "inputs": {"a.swf": "aa"}})
    store.claim({"version": "1", "seeds": [1, 2], "inputs": {"a.swf": "aa"}})
    with pytest.raises(
        InputError, match=r"campaign.json.*'seeds': the folder has results of \[1, 2\], not \[1, 2, 3\]"
    ):
        store.claim({"version": "1", "seeds": [1, 2, 3], "inputs": {"a.swf": "aa"}})
    with pytest.raises(InputError, match="give another folder"):
        store.claim({"version": "2", "seeds": [1, 2], "inputs": {"a.swf": "aa"}})
    store.claim({"version": "1", "seeds": [3], "inputs": {}}, may_change=("seeds",))
    assert store.identity() == {"version": "1", "seeds": [3], "inputs": {"a.swf": "aa"}}


def test_an_input_that_changed_is_refused_and_one_more_is_not(store: Store) -> None:
    store.claim({"inputs": {"a.swf": "aa"}})
    store.claim({"inputs": {"b.swf": "bb"}})
    assert store.identity()["inputs"] == {"a.swf": "aa", "b.swf": "bb"}
    with pytest.raises(InputError, match=r"^a.swf: has changed since results were made from it"):
        store.claim({"inputs": {"a.swf": "a2", "b.swf": "bb"}})


def test_looking_whether_results_fit_changes_nothing(store: Store) -> None:
    store.check({"version": "1"})
    assert not store.folder.exists()


@pytest.mark.parametrize("text", ["", '{"version": "1', "[1, 2]"])
def test_a_torn_note_is_named(store: Store, text: str) -> None:
    store.claim({"version": "1"})
    store.note.write_text(text)
    with pytest.raises(InputError, match=r"campaign.json"):
        store.claim({"version": "1"})


@pytest.mark.parametrize("text", ["", '{"unit": "a', '{"unit": "a"}', "[]"])
def test_a_torn_failure_is_named(store: Store, text: str) -> None:
    store.put_failure("abc.json", Failure("a", "b", "c"))
    store.failure_path("abc.json").write_text(text)
    with pytest.raises(InputError, match=r"abc.json line 1.*(expected|is missing)"):
        store.failure("abc.json")


# Who works on it


def test_one_driver_holds_the_whole_and_parts_hold_theirs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridsim.campaign.store._PATIENCE", 0.0)
    whole, first, second = Shard(), Shard(1, 2), Shard(2, 2)
    for held, free, taken in [(whole, [], [whole, first, second]), (first, [second], [whole, first])]:
        with store.held(held):
            for shard in taken:
                with pytest.raises(InputError, match=r"is in use by process \d+ on "), store.held(shard):
                    pass
            for shard in free:
                with store.held(shard):
                    pass
    assert store.driver() is None
    with store.held(whole):
        pass


def test_asking_who_works_on_a_store_stops_no_other(store: Store) -> None:
    assert store.driver() is None
    with store.held(Shard()):
        told = store.driver()
        assert told is not None
        assert told.startswith("process ")
    assert store.driver() is None


def test_the_lock_of_a_killed_driver_is_not_held(store: Store) -> None:
    store.folder.mkdir()
    left = json.dumps({"process": 1, "host": "elsewhere", "since": "yesterday"})
    for name in ("lock", "lock-1-of-2"):
        (store.folder / name).write_text(left)
    assert store.driver() is None
    with store.held(Shard(1, 2)):
        told = store.driver()
        assert told is not None
        assert "elsewhere" not in told


def test_half_written_files_are_swept_up_and_nothing_else(store: Store) -> None:
    store.put("ab/abc.json", b"{}", {"records/abc/jobs.csv": b"job\n"})
    half = ["runs/ab/.abd.json.x1", "records/abd/.jobs.csv.x1", "failed/.abe.json.x1", ".runs.csv.a1b2c3d4"]
    for name in (*half, ".gitignore", "notes.txt"):
        (store.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (store.folder / name).write_text("half")
    with store.held(Shard(1, 2)):  # others may be writing
        assert all((store.folder / name).exists() for name in half)
    with store.held(Shard()):
        assert not any((store.folder / name).exists() for name in half)
    kept = {str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()}
    assert kept >= {"runs/ab/abc.json", "records/abc/jobs.csv", ".gitignore", "notes.txt"}


# Journal


def test_a_line_that_was_cut_off_costs_no_other(store: Store) -> None:
    store.folder.mkdir()
    store.note_down({"unit": "a"}, Shard())
    journal = store.folder / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"unit": "b", "cp')
    store.note_down({"unit": "c"}, Shard())
    store.note_down({"unit": "d"}, Shard())
    assert [entry["unit"] for entry in store.journal()] == ["a", "c", "d"]


# Parts that are brought together


def test_results_of_another_store_are_taken_over_once(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    store.put("1.json", b"one", {})
    for name, content in (("1.json", b"one"), ("2.json", b"two")):
        other.put(name, content, {f"records/{name[0]}/jobs.csv": content})
    other.put_failure("3.json", Failure("three", "no", ""))
    (other.folder / "runs" / ".4.json.x1").write_text("half")
    other.note_down({"unit": "2"}, Shard(1, 2))
    assert store.take_over(other) == 1
    assert store.path("2.json").read_bytes() == b"two"
    assert (store.folder / "records/2/jobs.csv").read_bytes() == b"two"
    assert not (store.folder / "runs" / ".4.json.x1").exists()
    assert store.has_failed("3.json")
    other.note_down({"unit": "3"}, Shard(1, 2))
    other.put("3.json", b"three", {})
    assert store.take_over(other) == 1
    assert not store.has_failed("3.json")
    assert [entry["unit"] for entry in store.journal()] == ["2", "3"]


def test_a_failure_does_not_replace_a_result(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.put_failure("a/1.json", Failure("one", "no", ""))
    store.put("a/1.json", b"one", {})
    store.take_over(other)
    assert not store.has_failed("a/1.json")


def test_results_that_differ_are_refused(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    store.put("1.json", b"one", {})
    other.put("1.json", b"uno", {})
    with pytest.raises(InputError, match=r"other/runs/1.json: differs from .*store/runs/1.json"):
        store.take_over(other)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"])
def test_an_invalid_part_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a part; expected i/n"):
        Shard.of(text)
