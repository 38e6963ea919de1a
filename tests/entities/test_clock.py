"""The clock: priorities of one instant."""

from __future__ import annotations

from simpy import Environment

from gridsim.entities.clock import BATCHED, PER_EVENT, PriorityEvent, Wakeup, modes


def test_batched_is_ends_overruns_arrivals_decisions() -> None:
    assert BATCHED.end < BATCHED.overrun < BATCHED.arrival < BATCHED.decide


def test_per_event_is_overruns_arrivals_ends_decisions() -> None:
    assert PER_EVENT.overrun < PER_EVENT.arrival < PER_EVENT.end < PER_EVENT.decide


def test_modes_go_by_the_names_of_the_option() -> None:
    assert modes == {"batched": BATCHED, "per-event": PER_EVENT}


def test_events_of_one_instant_come_by_priority_and_equal_ones_as_they_were_made() -> None:
    env = Environment()
    seen: list[str] = []
    for name, priority in (("late", 3), ("first", 1), ("early", 2), ("second", 1)):
        PriorityEvent(env, 5, priority, lambda event: seen.append(event.value), name)
    env.run()
    assert seen == ["first", "second", "early", "late"]
    assert env.now == 5


def test_an_event_without_callback_can_be_waited_for() -> None:
    env = Environment()
    seen: list[float] = []

    def process() -> object:
        yield PriorityEvent(env, 7, 1)
        seen.append(env.now)

    env.process(process())  # type: ignore[arg-type]
    env.run()
    assert seen == [7]


def test_a_ring_wakes_once_behind_what_comes_first_in_its_instant() -> None:
    env, seen = Environment(), list[str]()
    ring = Wakeup(env, 3)

    def sleeper() -> object:
        yield ring
        seen.append("woken")

    env.process(sleeper())  # type: ignore[arg-type]
    for _ in range(2):
        PriorityEvent(env, 5, 1, lambda event: ring.ring())
    PriorityEvent(env, 5, 2, lambda event: seen.append("before"))
    PriorityEvent(env, 5, 4, lambda event: seen.append("after"))
    env.run()
    assert seen == ["before", "woken", "after"]
