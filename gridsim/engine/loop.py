"""The event loop of a whole run on one cluster, and the verbs of a scheduler state by which it asks for decisions.

The class of a state selects the implementations. A state has the arrays ``moves``, requests that a decision starts and
requests that ended, and ``meta``, the counts of `gridsim.machine.queue_order`. *step* is a
`gridsim.engine.events.Step`, *events* are the arrays of `Events` as a plain tuple.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from gridsim.engine.events import ASKING, FREE, NEXT, NOW, OVER, Step, begin, next_step
from gridsim.machine.njit import inline_verb, njit_noalloc, verb
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import expect_end
from gridsim.model.time import NEVER


@inline_verb
def wake(state):  # type: ignore[no-untyped-def]
    """Return when a decision is due even if nothing happens."""
    return NEVER


@inline_verb
def effort(state):  # type: ignore[no-untyped-def]
    """Return how much work a step is."""
    return 1 + state.meta[TAIL] - state.meta[HEAD]


@inline_verb
def ended(state, step, events):  # type: ignore[no-untyped-def]
    """Begin a step: account for the requests that ended in it, if any."""


@verb
def take_ended(state, now, ended):  # type: ignore[no-untyped-def]
    """Remove the first *ended* of the requests that ended from the queue, before a decision that would do so."""


@inline_verb
def overran(state, step, events):  # type: ignore[no-untyped-def]
    """Account for the requests that continue beyond their expected ends in this step; there are some."""


@inline_verb
def arrived(state, step, events):  # type: ignore[no-untyped-def]
    """Account for the arrivals of this step; there are some."""


@inline_verb
def settled(state, step, events):  # type: ignore[no-untyped-def]
    """Return whether a decision follows this step."""
    return step.decides


@inline_verb
def needs_python(state):  # type: ignore[no-untyped-def]
    """Return whether Python has to be called before a decision."""
    return False


@inline_verb
def decide(state, step, events):  # type: ignore[no-untyped-def]
    """Decide which requests start, write them to ``moves[0]`` and return their number.

    A negative number means that Python has to help; the decision then continues when it is called again.
    """


@njit_noalloc
def run_loop(work, events, state):  # type: ignore[no-untyped-def]
    """Run for some *work*; the caller reports progress and calls again.

    Where Python is needed, the loop stops before the decision or within it, and continues there.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    starts, gone = state.moves[0], state.moves[1]
    while work > 0:
        step = Step(numbers[NOW], 0, 0, numbers[NEXT], numbers[NEXT], True)
        if not numbers[ASKING]:
            work -= effort(state)
            step = next_step(wake(state), gone, jobs, come, refused, ends, looks, late, numbers)
            if numbers[OVER]:
                break
            ended(state, step, events)
            if step.late:
                overran(state, step, events)
            if step.last > step.first:
                arrived(state, step, events)
            if not settled(state, step, events):
                continue
            if needs_python(state):
                numbers[ASKING] = 1
                break
        count = decide(state, step, events)
        numbers[ASKING] = count < 0
        if count < 0:
            break
        for k in range(count):
            if not begin(numbers[NOW], starts[k], numbers, FREE, jobs, ends, looks, numbers):
                return


@njit_noalloc
def expect_late(step, late, running, meta):  # type: ignore[no-untyped-def]
    """Expect the requests that continue to end later."""
    for k in range(step.late):
        expect_end(running, meta, late[0, k], late[1, k])
