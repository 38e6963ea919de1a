"""The event loop of a run on one cluster, and the verbs by which it calls a scheduler state.

The class of a state selects the implementations. A state has the arrays ``moves``, requests that a decision starts and
requests that ended, and ``meta``, the counts of `gridsim.machine.queue_order`. *step* is a
`gridsim.engine.events.Step`, *events* are the arrays of `Events` as a plain tuple.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.engine.events import ASKING, FREE, NEXT, NOW, OVER, Step, begin, next_step
from gridsim.machine.njit import inline_verb, njit_noalloc, verb
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import expect_end
from gridsim.model.time import NEVER


@inline_verb
def wake(state):  # type: ignore[no-untyped-def]
    """Return the time of the next decision that is due without events."""
    return NEVER


@inline_verb
def effort(state):  # type: ignore[no-untyped-def]
    """Return the amount of work of a step."""
    return 1 + state.meta[TAIL] - state.meta[HEAD]


@inline_verb
def ended(state, step, events):  # type: ignore[no-untyped-def]
    """Begin a step: process the requests that ended in it, if any."""


@verb
def take_ended(state, now, ended):  # type: ignore[no-untyped-def]
    """Remove the first *ended* of the ended requests from the queue before a decision, which would otherwise do so."""


@inline_verb
def overran(state, step, events):  # type: ignore[no-untyped-def]
    """Process the requests, at least one, that exceed their expected ends in this step."""


@inline_verb
def arrived(state, step, events):  # type: ignore[no-untyped-def]
    """Process the arrivals of this step, at least one."""


@inline_verb
def settled(state, step, events):  # type: ignore[no-untyped-def]
    """Return whether a decision follows this step."""
    return step.decides


@inline_verb
def needs_python(state):  # type: ignore[no-untyped-def]
    """Return whether Python must be called before a decision."""
    return False


@inline_verb
def decide(state, step, events):  # type: ignore[no-untyped-def]
    """Decide which requests start, write them to ``moves[0]`` and return their number.

    A negative number is a code: Python must act, and the next call continues the decision.
    """


@njit_noalloc
def run_loop(work, events, state):  # type: ignore[no-untyped-def]
    """Run for an amount of *work*; the caller reports progress and calls again.

    If Python is needed, the loop stops before the decision or within it, and the next call continues there.
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
    """Set later expected ends of the requests that continue."""
    for k in range(step.late):
        expect_end(running, meta, late[0, k], late[1, k])
