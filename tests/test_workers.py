"""Worker processes: the same results and the same errors, for any values."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gridsim import registry
from gridsim.errors import GridsimError, InputError, PolicyError, UnknownNameError
from gridsim.workers import Workers, crew, packed, references, started_by, unpacked


def doubled(value: int) -> int:
    return 2 * value


def place(_: object) -> int:
    return os.getpid()


def telling(count: int, *, progress: Callable[[str, int], None]) -> int:
    for step in range(count):
        progress("step", step)
    return count


def failing(kind: str) -> None:
    if kind == "name":
        raise UnknownNameError("policy", "eazy", ["easy", "fcfs"])
    if kind == "input":
        raise InputError("is damaged", path="log.swf", line=3, field="cores")
    if kind == "policy":
        raise PolicyError("job 3 was started twice")
    raise LookupError(kind)


def given_back(thing: object, more: list[object]) -> tuple[object, list[object]]:
    return thing, more


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.fixture(params=["copies", "others"])
def two(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Two workers: forks of this process, and those of a process that has a second thread."""
    stop = threading.Event()
    if request.param == "others":
        threading.Thread(target=stop.wait, daemon=True).start()
    try:
        with Workers(2) as workers:
            yield workers
    finally:
        stop.set()


def test_answers_are_in_the_order_of_the_questions(two: Workers) -> None:
    answers = [two.submit(doubled, value) for value in range(5)]
    assert [answer.result() for answer in answers] == [0, 2, 4, 6, 8]
    assert two.submit(place, None).result() != os.getpid()


def test_one_worker_is_this_process_and_works_when_asked() -> None:
    with Workers(1) as workers:
        answer = workers.submit(failing, "input")
        assert workers.submit(place, None).result() == os.getpid()
        with pytest.raises(InputError):
            answer.result()


def test_progress_is_heard_to_the_last_word(two: Workers) -> None:
    heard: list[tuple[str, int]] = []
    answer = two.submit(telling, 1000, progress=lambda *words: heard.append(words))
    assert answer.result() == 1000
    assert heard[-1] == ("step", 999)
    assert len(heard) < 1000  # at intervals, not for each result


@pytest.mark.parametrize("kind", ["name", "input", "policy"])
def test_an_error_of_a_worker_is_the_same_error(two: Workers, kind: str) -> None:
    with pytest.raises((InputError, PolicyError)) as here:
        failing(kind)
    with pytest.raises(type(here.value)) as there:
        two.submit(failing, kind).result()
    assert str(there.value) == str(here.value)
    assert vars(there.value) == vars(here.value)


def test_an_unforeseen_error_says_where_in_the_worker(two: Workers) -> None:
    with pytest.raises(LookupError, match="unforeseen") as error:
        two.submit(failing, "unforeseen").result()
    assert "test_workers.py" in error.value.__notes__[0]


def test_objects_that_cannot_be_sent_run_here_and_are_reported_once() -> None:
    said: list[str] = []
    with Workers(2, say=said.append) as workers:
        answers = [workers.submit(place, Locked(), name="mine") for _ in range(2)]
        assert {answer.result() for answer in answers} == {os.getpid()}
    assert said == [
        "mine cannot be sent to another process (cannot pickle '_thread.lock' object), so it runs in this one"
    ]


def test_objects_that_were_sent_are_returned_by_reference(two: Workers) -> None:
    thing = {"large": list(range(1000))}
    first, (second,) = two.submit(given_back, thing, [thing]).result()
    assert first is second is thing
    with Workers(2, share=[thing]) as workers:
        first, (second,) = workers.submit(given_back, 1, [thing]).result()
        assert (first, second is thing) == (1, True)


def test_a_worker_that_dies_is_reported_with_the_cure(two: Workers) -> None:
    with pytest.raises(GridsimError, match="a worker process died"):
        two.submit(os._exit, 9).result()
    with pytest.raises(GridsimError, match="a worker process died"):  # the others end with it
        two.submit(doubled, 4).result()


def test_every_death_is_seen_also_of_a_worker_that_was_just_made() -> None:
    for _ in range(10):
        with Workers(2) as workers, pytest.raises(GridsimError, match="a worker process died"):
            workers.submit(os._exit, 9).result()


def test_a_worker_that_is_at_work_ends_with_the_others() -> None:
    with Workers(2) as workers:
        busy = workers.submit(time.sleep, 600)
        with pytest.raises(GridsimError, match="a worker process died"):
            workers.submit(os._exit, 9).result()
        with pytest.raises(GridsimError, match="a worker process died"):
            busy.result()


def test_no_workers_are_refused() -> None:
    for count in (0, 1001):
        with pytest.raises(InputError, match=f"{count} workers; expected at least 1 and at most 1,000"), crew(count):
            pass


def test_copies_are_made_only_while_there_is_one_thread() -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        assert started_by(copies=True).get_start_method() != "fork"
    finally:
        stop.set()
        other.join()


def test_objects_known_to_the_other_process_are_not_sent() -> None:
    large, word = list(range(1000)), "word"
    text = packed({"large": large, "word": word}, references([large, word]))
    assert len(text) < 100
    assert unpacked(text, [large, word])["large"] is large


def test_a_class_of_a_plain_file_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "widest.py"
    file.write_text("class Widest:\n    def __init__(self):\n        self.kind = Widest\n")
    made = registry.make("ordering", f"{file}:Widest")
    text = packed(made)
    assert str(file).encode() in text
    assert b"gridsim_plugin" not in text  # a module that is unknown to other processes
    assert type(unpacked(text)) is type(made)


def test_a_shared_object_of_a_plain_file_is_known_to_processes_that_are_no_copies(tmp_path: Path) -> None:
    """A second thread, as in a notebook, rules out forks."""
    file = tmp_path / "narrowest.py"
    file.write_text("class Narrowest:\n    size = 7\n")
    made, stop = registry.make("ordering", f"{file}:Narrowest"), threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        with crew(2, share=(made,)) as workers:
            assert workers.submit(getattr, made, "size").result() == 7
    finally:
        stop.set()
        other.join()
