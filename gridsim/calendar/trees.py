"""Whole runs on trees of clusters, compiled: tasks that wait for others and for their data, and a pass a cluster.

An instant is played as SimPy plays it. ``batched``: all ends and data, all overruns, the arrivals in job order, one
pass for each cluster to which something happened, in tree order. ``per-event``: overruns, arrivals, then ends and data
in the order in which they were expected, with a pass after each; what has ended of a job is passed on behind those that
were expected before.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar.events import (
    BATCHED,
    COME,
    CORES,
    ENDS,
    ESTIMATE,
    EXTEND,
    FAILED,
    LOOKS,
    NEXT,
    NOW,
    NUMBERS,
    ORDER,
    OVER,
    RUNTIME,
    SHORT,
    START,
    TICK,
    pop,
    push,
)
from gridsim.calendar.events import RUNG as ANY_RUNG
from gridsim.calendar.routing import (
    BLOCKED,
    DIRTY,
    ENDED,
    FREE,
    OFFERED,
    QUEUED,
    RUNG,
    UNFINISHED,
    Routes,
    place_job,
)
from gridsim.calendar.routing import COME as CAME
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.scheduler.kernels import PLACE, QUEUE, READY, backfill, take_in
from gridsim.policy.scheduler.lines import strict_linear
from gridsim.policy.scheduler.picks import USED, by_shares, drawn
from gridsim.policy.scheduler.state import EVERYONE
from gridsim.profile.compiled import lean
from gridsim.profile.running import expect_end
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["BY_SHARES", "DRAWN", "IN_LINES", "SORTED", "Jobs", "Turns", "on_tree"]

SHORT_AT, LENDS, AT_ONCE, TOGETHER, PASS, BY_READY, WAITS, AGAIN = range(len(NUMBERS), len(NUMBERS) + 8)
"""Numbers besides those of `gridsim.calendar.events`: on which cluster too few cores were free; whether one has lent
some within this instant; whether data need no time; whether the transfers of a task start together; what kind of passes
there are; whether tasks are sorted by when they became ready; whether a blocked first request waits for an end; whether
an order of shares is made again after each start."""

SORTED, IN_LINES, DRAWN, BY_SHARES = range(4)
"""Kinds of passes: over a queue that stays sorted, along lines in time, drawn, by shares."""

_AT = 0
_NOBODY = -1
_NEXT, _FIRST, _LAST = range(3)


class Jobs(NamedTuple):
    """What a run waits for, and the tree on which it happens. Times in whole microseconds.

    Attributes
    ----------
    numbers : (m,) int64
        As named here and in `gridsim.calendar.events`.
    jobs : (4, n) int64
        As `gridsim.calendar.events.Events` has them.
    come : (2, m) int64
        Arrivals: instants, ascending, and jobs.
    expected : (3, room) int64
        A heap of ends, data and news: the instant, the order in which they were expected, and the request that ends,
        ``n +`` the request that gets data, or ``2 n +`` the job some tasks of which have ended.
    looks : (3, room) int64
        A heap of looks at requests that may outlive their estimates.
    first : (m + 1,) int64
        First request of each job.
    edge_first, edge_to : (n + 1,), (e,) int64
        Edges by the request that they come from.
    missing : (n,) int64
        How many data each request waits for.
    job_of : (n,) int64
        Job of each request.
    news : (3, n) int64
        Of each request that ended the next one of its job that did, then by job the first and the last of them.
    routes : tuple
        `gridsim.calendar.routing.Routes` as a plain tuple.
    """

    numbers: IntArray
    jobs: IntArray
    come: IntArray
    expected: IntArray
    looks: IntArray
    first: IntArray
    edge_first: IntArray
    edge_to: IntArray
    missing: IntArray
    job_of: IntArray
    news: IntArray
    routes: Any


class Turns(NamedTuple):
    """What the passes of all clusters work on, cluster by cluster: columns of `gridsim.policy.scheduler.kernels`.

    Attributes
    ----------
    table, running, moves, blocks, lanes : (k, …) int64
        One of each for every cluster.
    meta : (k, 6) int64
        One for every cluster.
    slots : tuple
        Lines of all requests, then what `gridsim.policy.scheduler.lines.Slots` has besides, for every cluster.
    draws : (k, 6) uint64
        One for every cluster.
    held : (k, 2) int64
        As `gridsim.policy.scheduler.picks.drawn` has it.
    group : (n,) int64
        Share of each request.
    shares : (k, 3, leaves) int64
        As `gridsim.policy.scheduler.picks.by_shares` has them.
    """

    table: IntArray
    running: IntArray
    moves: IntArray
    blocks: IntArray
    lanes: IntArray
    meta: IntArray
    slots: Any
    draws: Any
    held: IntArray
    group: IntArray
    shares: IntArray


@lean
def on_tree(work, events, passes):  # type: ignore[no-untyped-def]
    """Go on for some work; *events* and *passes* are `Jobs` and `Turns` as plain tuples."""
    numbers = events[0]
    while work > 0 and numbers[FAILED] < 0:
        now = _next_instant(events)
        if numbers[OVER]:
            break
        numbers[NOW] = now
        work -= _play_instant(now, events, passes) if numbers[BATCHED] else _play_event(now, events, passes)


@lean
def _next_instant(events):  # type: ignore[no-untyped-def]
    """When something happens next; sets ``numbers[OVER]`` where nothing does, or what was lent is not back."""
    numbers, come, expected, looks, clusters = events[0], events[2], events[3], events[4], Routes(*events[11]).clusters
    now = come[0, numbers[NEXT]] if numbers[NEXT] < numbers[COME] else NEVER
    if numbers[ENDS]:
        now = min(now, expected[_AT, 0])
    if numbers[LOOKS]:
        now = min(now, looks[_AT, 0])
    if numbers[ANY_RUNG]:
        now = numbers[NOW]
    if numbers[LENDS] and now > numbers[NOW]:
        numbers[LENDS] = 0
        for k in range(clusters.shape[1]):
            if clusters[FREE, k] < 0:
                numbers[OVER], numbers[SHORT_AT] = 1, k
                return now
    if now >= NEVER:
        numbers[OVER] = 1
    return now


@lean
def _play_instant(now, events, passes):  # type: ignore[no-untyped-def]
    """Let all happen that does at an instant, then let clusters decide; how much work that was."""
    numbers, expected, clusters = events[0], events[3], Routes(*events[11]).clusters
    work = 1
    while numbers[ENDS] and expected[_AT, 0] == now:
        _happen(now, pop(expected, numbers[ENDS]), events, passes)
        work += 1
    if numbers[LOOKS]:
        _look(now, events, passes)
    while numbers[NEXT] < numbers[COME] and events[2][0, numbers[NEXT]] == now:
        _admit(now, events, passes)
        work += 1
    for k in range(clusters.shape[1]):
        if clusters[DIRTY, k] and numbers[FAILED] < 0:
            _decide(now, k, events, passes)
            work += 1
    return work


@lean
def _play_event(now, events, passes):  # type: ignore[no-untyped-def]
    """Let one thing happen, with its pass; how much work that was."""
    numbers, come, expected, looks, clusters = events[0], events[2], events[3], events[4], Routes(*events[11]).clusters
    if numbers[LOOKS] and looks[_AT, 0] == now:
        _look(now, events, passes)
        return 1
    if numbers[NEXT] < numbers[COME] and come[0, numbers[NEXT]] == now:
        work = 0
        while numbers[NEXT] < numbers[COME] and come[0, numbers[NEXT]] == now:
            _admit(now, events, passes)
            work += 1
        for k in range(clusters.shape[1]):
            if clusters[DIRTY, k]:
                _decide(now, k, events, passes)
        return work
    if numbers[ENDS] and expected[_AT, 0] == now:
        _happen(now, pop(expected, numbers[ENDS]), events, passes)
        return 1
    numbers[ANY_RUNG] = 0
    for k in range(clusters.shape[1]):
        if clusters[RUNG, k]:
            clusters[RUNG, k] = 0
            _decide(now, k, events, passes)
    return 1


@lean
def _happen(now, what, events, passes):  # type: ignore[no-untyped-def]
    """Let one of those happen that are expected: an end, data that arrive, news of a job; it is off the heap."""
    numbers, jobs, news, job_of = events[0], events[1], events[10], events[9]
    numbers[ENDS] -= 1
    n = jobs.shape[1]
    if what < n:
        k = _finish(what, events, passes)
        if numbers[BATCHED]:
            _pass_on(now, what, events, passes)
            return
        job = job_of[what]
        if events[5][job + 1] - events[5][job] > 1:
            news[_NEXT, what] = _NOBODY
            if news[_FIRST, job] == _NOBODY:
                news[_FIRST, job] = what
                _expect(now, 2 * n + job, events)
            else:
                news[_NEXT, news[_LAST, job]] = what
            news[_LAST, job] = what
        _decide(now, k, events, passes)
    elif what < 2 * n:
        _arrive(now, what - n, events, passes)
    else:
        row = news[_FIRST, what - 2 * n]
        news[_FIRST, what - 2 * n] = _NOBODY
        while row != _NOBODY:
            _pass_on(now, row, events, passes)
            row = news[_NEXT, row]


@lean
def _expect(at, what, events):  # type: ignore[no-untyped-def]
    """Expect an end, data or news."""
    numbers = events[0]
    push(events[3], numbers[ENDS], at, numbers[ORDER], what)
    numbers[ENDS] += 1
    numbers[ORDER] += 1


@lean
def _finish(row, events, passes):  # type: ignore[no-untyped-def]
    """A request gives back what it held; the cluster on which it ran."""
    numbers, jobs = events[0], events[1]
    routes, moves, shares = Routes(*events[11]), passes[2], passes[10]
    clusters, k = routes.clusters, routes.where[row]
    cores = jobs[CORES, row]
    clusters[FREE, k] += cores
    clusters[UNFINISHED, k] -= cores * jobs[ESTIMATE, row]
    moves[k, 1, clusters[ENDED, k]] = row
    clusters[ENDED, k] += 1
    clusters[DIRTY, k], clusters[BLOCKED, k] = 1, 0
    if numbers[PASS] == BY_SHARES:
        shares[k, USED, passes[9][row]] -= cores
    return k


@lean
def _pass_on(now, row, events, passes):  # type: ignore[no-untyped-def]
    """Pass on the data of a request that has ended: here at once, elsewhere along the links."""
    numbers, edge_first, edge_to, n = events[0], events[6], events[7], events[1].shape[1]
    routes = Routes(*events[11])
    where = routes.where
    for edge in range(edge_first[row], edge_first[row + 1]):
        successor = edge_to[edge]
        if numbers[TOGETHER]:
            _count_down(now, successor, events, passes)
        elif numbers[AT_ONCE] or where[successor] == where[row]:
            _arrive(now, successor, events, passes)
        else:
            delay = routes.delays[routes.level[where[row], where[successor]], edge]
            _expect(now + delay, n + successor, events)


@lean
def _count_down(now, row, events, passes):  # type: ignore[no-untyped-def]
    """Start all transfers to a request when the last of those that it needs has ended."""
    missing, n, routes = events[8], events[1].shape[1], Routes(*events[11])
    where, needs, first = routes.where, routes.needs, routes.needs_first
    missing[row] -= 1
    if missing[row]:
        return
    for k in range(first[row], first[row + 1]):
        if where[needs[1, k]] != where[row]:
            missing[row] += 1
    if missing[row] == 0:
        _submit(now, row, events, passes)
        return
    for k in range(first[row], first[row + 1]):
        source = where[needs[1, k]]
        if source != where[row]:
            _expect(now + routes.delays[routes.level[source, where[row]], needs[0, k]], n + row, events)


@lean
def _arrive(now, row, events, passes):  # type: ignore[no-untyped-def]
    """A datum is here: the request waits for cores when it was the last."""
    missing = events[8]
    missing[row] -= 1
    if missing[row] == 0:
        _submit(now, row, events, passes)


@lean
def _admit(now, events, passes):  # type: ignore[no-untyped-def]
    """The next job comes: down the tree, and those of its requests wait for cores that wait for nobody."""
    numbers, jobs, first, missing = events[0], events[1], events[5], events[8]
    job = events[2][1, numbers[NEXT]]
    numbers[NEXT] += 1
    if not place_job(first[job], first[job + 1], jobs, events[11]):
        return
    for row in range(first[job], first[job + 1]):
        if missing[row] == 0:
            _submit(now, row, events, passes)


@lean
def _submit(now, row, events, passes):  # type: ignore[no-untyped-def]
    """A request waits for cores from now on."""
    numbers, jobs, routes, table = events[0], events[1], Routes(*events[11]), passes[0]
    clusters, k = routes.clusters, routes.where[row]
    table[k, READY, row] = now
    if numbers[BY_READY]:
        table[k, PLACE, row] = now
    table[k, QUEUE, clusters[CAME, k]] = row
    clusters[CAME, k] += 1
    clusters[OFFERED, k] += jobs[CORES, row]
    clusters[DIRTY, k] = 1
    if not numbers[BATCHED]:
        _decide(now, k, events, passes)


@lean
def _decide(now, k, events, passes):  # type: ignore[no-untyped-def]
    """A pass of a cluster, which knows all that has happened to it."""
    numbers, clusters = events[0], Routes(*events[11]).clusters
    table, running, moves, meta = passes[0][k], passes[1][k], passes[2][k], passes[5][k]
    clusters[DIRTY, k] = clusters[OFFERED, k] = 0
    if clusters[BLOCKED, k]:
        return
    ended, tail = clusters[ENDED, k], clusters[CAME, k]
    clusters[ENDED, k] = 0
    if numbers[PASS] == SORTED:
        count = backfill(now, EVERYONE, ended, tail, table, running, moves, passes[3][k], passes[4][k], meta)
        clusters[BLOCKED, k] = numbers[WAITS] and tail > meta[HEAD]
    elif numbers[PASS] == IN_LINES:
        keys, rows, where, spare, firsts, expiry, counts = passes[6]
        slots = (keys, rows[k], where[k], spare[k], firsts[k], expiry[k], counts[k])
        count = strict_linear(now, ended, tail, table, running, moves, meta, slots)
    elif numbers[PASS] == DRAWN:
        count = drawn(now, ended, tail, table, running, moves, meta, passes[7][k], passes[8][k])
    else:
        again = numbers[AGAIN]
        count = by_shares(now, ended, tail, table, running, moves, meta, passes[9], passes[10][k], again)
    for start in range(count):
        _begin(now, moves[0, start], k, events)


@lean
def _begin(now, row, k, events):  # type: ignore[no-untyped-def]
    """A request holds its cores from now on, and its end is expected, and a look at it where it may go on past that."""
    numbers, jobs, clusters = events[0], events[1], Routes(*events[11]).clusters
    cores, held, estimate = jobs[CORES, row], jobs[RUNTIME, row], jobs[ESTIMATE, row]
    clusters[FREE, k] -= cores
    if clusters[FREE, k] < 0:
        if numbers[BATCHED]:
            if numbers[FAILED] < 0:
                numbers[FAILED], numbers[SHORT], numbers[SHORT_AT] = row, clusters[FREE, k] + cores, k
            return
        numbers[LENDS] = 1
    jobs[START, row] = now
    clusters[QUEUED, k] -= cores * estimate
    if held > estimate:
        if numbers[EXTEND]:
            push(events[4], numbers[LOOKS], now + estimate, numbers[ORDER], row)
            numbers[LOOKS] += 1
            numbers[ORDER] += 1
        else:
            held = estimate
    _expect(now + held, row, events)


@lean
def _look(now, events, passes):  # type: ignore[no-untyped-def]
    """Look at all requests that should have ended by now: who goes on does so for a tick, two, four … more."""
    numbers, jobs, looks = events[0], events[1], events[4]
    routes = Routes(*events[11])
    clusters = routes.clusters
    while numbers[LOOKS] and looks[_AT, 0] == now:
        row = pop(looks, numbers[LOOKS])
        numbers[LOOKS] -= 1
        if jobs[START, row] + jobs[RUNTIME, row] <= now:
            continue
        planned = jobs[START, row] + jobs[ESTIMATE, row]
        until = planned + max(2 * (now - planned), numbers[TICK])
        k = routes.where[row]
        table, running, moves, meta = passes[0][k], passes[1][k], passes[2][k], passes[5][k]
        if clusters[ENDED, k]:
            take_in(table, running, moves, meta, clusters[ENDED, k], meta[TAIL])
            clusters[ENDED, k] = 0
        expect_end(running, meta, row, until)
        clusters[DIRTY, k], clusters[BLOCKED, k] = 1, 0
        if not numbers[BATCHED]:
            clusters[RUNG, k] = numbers[ANY_RUNG] = 1
        push(looks, numbers[LOOKS], until, numbers[ORDER], row)
        numbers[LOOKS] += 1
        numbers[ORDER] += 1
