"""Compiled routing of jobs in a tree of clusters: which children can hold a piece, and which one gets it.

The balancers are those of `gridsim.policy.balancing`, with the same order of ties. Nodes are numbered: clusters in tree
order, then routers.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.engine.events import CORES, ESTIMATE, START, pop, push
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.scheduler.linear_priority import larger
from gridsim.policy.scheduler.random_selection import draw_below

ALL_KINDS = NOWHERE = -1

FIRST_CHILD, LAST_CHILD, FIRST_LEAF, LAST_LEAF = range(4)
SIZE, KIND, FREE, OFFERED, UNFINISHED, QUEUED, DIRTY, RUNG, ENDED, ARRIVALS, BLOCKED, LENT, LEFT = range(13)
"""Fields of a cluster: cores, kind; free cores, and cores of requests since the last cycle; work placed on it that has
not ended, and that has not started; whether events have had no cycle yet, and whether a cycle is requested at the end
of the instant; requests that ended since the last cycle, and that arrived in total; whether its first request waits for
an end; whether it is overcommitted within this instant; remaining work of running requests, or the earliest start of
the widest task of a piece."""

BALANCER, PAIR, NEAR, WORK, CANDIDATE, ANY, WEIGHTED, BY_KIND, KINDS, PIECE, OLDEST = range(11)
"""Parameters of routing: the balancer; whether it chooses between two random children, or among the nearest; for the
expected queue the counted work, whether that of the piece is included, whether routers report any cluster; whether
random choices are weighted by cores; whether pieces are split by kind first; number of kinds of the piece, and its
work; the first request that may wait."""

EXPECTED, IN_TURN, DRAWN, LEAST_UTILISED, FIRST_START = range(5)
ALL, NOT_STARTED, REMAINING = range(3)
WIDEST, IN_ORDER, SAVED = range(3)


class Routes(NamedTuple):
    """The tree, and the state of its clusters that balancers use.

    Attributes
    ----------
    nodes : (4, nodes) int64
        First and last + 1 child of routers; first and last + 1 leaf of all nodes.
    children : (c,) int64
        Child nodes, router by router.
    clusters : (13, k) int64
        See the names above.
    how : (11,) int64
        See the names above.
    widest : (3, kinds) int64
        Scratch: cores of the widest task of each kind of a piece; its kinds in order of first appearance; cores of the
        widest task of each kind of the job.
    able : (c,) int64
        Scratch: children that can hold a piece.
    turns : (nodes, 2 ^ kinds) int64
        Round-robin counters, by the first of these children and the set of the piece's kinds.
    draws : (6,) uint64
        State of random balancers (`gridsim.policy.scheduler.random_selection`).
    kind, where : (n,) int64
        Kind of each request, and its cluster, or `NOWHERE` before placement.
    delays : (levels, edges) int64
        Delays of the data of edges, by the levels between two clusters, whole microseconds.
    level : (k, k) int64
        Row of *delays* for each pair of clusters; `NOWHERE` for the same cluster.
    needs : (3, edges) int64
        Incoming edges, sorted by request: the edge, and the request that it comes from.
    needs_first : (n + 1,) int64
        Index of the first incoming edge of each request.
    """

    nodes: IntArray
    children: IntArray
    clusters: IntArray
    how: IntArray
    widest: IntArray
    able: IntArray
    turns: IntArray
    draws: Any
    kind: IntArray
    where: IntArray
    delays: IntArray
    level: IntArray
    needs: IntArray
    needs_first: IntArray


@njit_noalloc
def _look_at(begin, end, kind, jobs, routes):  # type: ignore[no-untyped-def]
    """Find the kinds, the widest tasks and the work of a piece: the requests [begin, end) of one kind, or of all."""
    how, widest, kinds = routes[3], routes[4], routes[8]
    count, work = 0, 0
    for row in range(begin, end):
        of = kinds[row]
        if kind != ALL_KINDS and of != kind:
            continue
        cores = jobs[CORES, row]
        work += cores * jobs[ESTIMATE, row]
        known = False
        for k in range(count):
            if widest[IN_ORDER, k] == of:
                known = True
        if not known:
            widest[IN_ORDER, count], widest[WIDEST, of] = of, 0
            count += 1
        widest[WIDEST, of] = max(widest[WIDEST, of], cores)
    how[KINDS], how[PIECE] = count, work


@njit_noalloc
def _can_hold(node, routes):  # type: ignore[no-untyped-def]
    """Return whether, for every kind of the piece, a cluster at or below a node can run its widest task."""
    nodes, clusters, how, widest = routes[0], routes[2], routes[3], routes[4]
    for k in range(how[KINDS]):
        of = widest[IN_ORDER, k]
        found = False
        for leaf in range(nodes[FIRST_LEAF, node], nodes[LAST_LEAF, node]):
            if clusters[KIND, leaf] == of and widest[WIDEST, of] <= clusters[SIZE, leaf]:
                found = True
                break
        if not found:
            return False
    return True


@njit_noalloc
def _queue_of(leaf, routes):  # type: ignore[no-untyped-def]
    """Return the work of a cluster that the balancer counts, core-microseconds."""
    clusters, how = routes[2], routes[3]
    work = clusters[UNFINISHED, leaf] if how[WORK] == ALL else clusters[QUEUED, leaf]
    if how[WORK] == REMAINING:
        work += clusters[LEFT, leaf]
    return work + (how[PIECE] if how[CANDIDATE] else 0)


@njit_noalloc
def _best_leaf(node, kind, routes):  # type: ignore[no-untyped-def]
    """Return the cluster with the shortest queue at or below a node that fits the widest task of a kind, or of any."""
    nodes, clusters, widest = routes[0], routes[2], routes[4]
    best = NOWHERE
    for leaf in range(nodes[FIRST_LEAF, node], nodes[LAST_LEAF, node]):
        if kind != ALL_KINDS and (clusters[KIND, leaf] != kind or clusters[SIZE, leaf] < widest[WIDEST, kind]):
            continue
        if best == NOWHERE or _shorter(leaf, best, routes):
            best = leaf
    return best


@njit_noalloc
def _shorter(one, other, routes):  # type: ignore[no-untyped-def]
    """Return whether a cluster's queue per core is shorter than another's, in exact arithmetic."""
    clusters = routes[2]
    return larger(_queue_of(other, routes), clusters[SIZE, other], _queue_of(one, routes), clusters[SIZE, one])


@njit_noalloc
def _value(node, routes):  # type: ignore[no-untyped-def]
    """Return the cluster whose queue a child reports as its own."""
    nodes, how, widest = routes[0], routes[3], routes[4]
    if nodes[LAST_LEAF, node] - nodes[FIRST_LEAF, node] == 1:
        return nodes[FIRST_LEAF, node]
    if how[ANY]:
        return _best_leaf(node, ALL_KINDS, routes)
    worst = NOWHERE
    for k in range(how[KINDS]):
        best = _best_leaf(node, widest[IN_ORDER, k], routes)
        if worst == NOWHERE or _shorter(worst, best, routes):
            worst = best
    return worst


@njit_noalloc
def _shortest(count, routes):  # type: ignore[no-untyped-def]
    """Return the index of the able child with the shortest expected queue."""
    able = routes[5]
    least, value = 0, _value(able[0], routes)
    for place in range(1, count):
        other = _value(able[place], routes)
        if _shorter(other, value, routes):
            least, value = place, other
    return least


@njit_noalloc
def _turn(count, routes):  # type: ignore[no-untyped-def]
    """Return the index of the able child that is next in round-robin order."""
    how, widest, able, turns = routes[3], routes[4], routes[5], routes[6]
    kinds = 0
    for k in range(how[KINDS]):
        kinds |= 1 << widest[IN_ORDER, k]
    turn = turns[able[0], kinds]
    turns[able[0], kinds] += 1
    return turn % count


@njit_noalloc
def _sum_below(field, node, routes):  # type: ignore[no-untyped-def]
    """Return the sum of a field of the clusters at or below a node; for `FREE` the cores that are or will be busy."""
    nodes, clusters = routes[0], routes[2]
    total = 0
    for leaf in range(nodes[FIRST_LEAF, node], nodes[LAST_LEAF, node]):
        if field == FREE:
            size = clusters[SIZE, leaf]
            total += min(size, size - clusters[FREE, leaf] + clusters[OFFERED, leaf])
        else:
            total += clusters[field, leaf]
    return total


@njit_noalloc
def _at_random(count, routes):  # type: ignore[no-untyped-def]
    """Return the index of a random able child, uniform or weighted by cores."""
    how, able, draws = routes[3], routes[5], routes[7]
    if not how[WEIGHTED]:
        return draw_below(draws, count)
    total = 0
    for place in range(count):
        total += _sum_below(SIZE, able[place], routes)
    found = draw_below(draws, total)
    for place in range(count):
        cores = _sum_below(SIZE, able[place], routes)
        if found < cores:
            return place
        found -= cores
    return count - 1


@njit_noalloc
def _least_utilised(count, routes):  # type: ignore[no-untyped-def]
    """Return the index of the able child with the smallest share of busy cores, then with the least work per core."""
    able = routes[5]
    least = 0
    for place in range(1, count):
        busy, size = _sum_below(FREE, able[place], routes), _sum_below(SIZE, able[place], routes)
        known, of = _sum_below(FREE, able[least], routes), _sum_below(SIZE, able[least], routes)
        if busy * of < known * size:
            least = place
        elif busy * of == known * size:
            work = _sum_below(UNFINISHED, able[least], routes)
            if larger(work, of, _sum_below(UNFINISHED, able[place], routes), size):
                least = place
    return least


@njit_noalloc
def _delay_to(leaf, begin, end, kind, routes):  # type: ignore[no-untyped-def]
    """Return the delays of data from placed predecessors to a cluster, summed over a piece; whole microseconds."""
    kinds, where, delays, level, needs, first = routes[8], routes[9], routes[10], routes[11], routes[12], routes[13]
    total = 0
    for row in range(begin, end):
        if kind != ALL_KINDS and kinds[row] != kind:
            continue
        for k in range(first[row], first[row + 1]):
            source = where[needs[1, k]]
            if source != NOWHERE and source != leaf:
                total += delays[level[source, leaf], needs[0, k]]
    return total


@njit_noalloc
def _keep_nearest(count, begin, end, kind, routes):  # type: ignore[no-untyped-def]
    """Keep only the able children with the smallest data delay; return their number."""
    nodes, clusters, how, widest, able = routes[0], routes[2], routes[3], routes[4], routes[5]
    least, kept = NEVER, 0
    for place in range(count):
        nearest = NEVER
        for k in range(how[KINDS]):
            of = widest[IN_ORDER, k]
            for leaf in range(nodes[FIRST_LEAF, able[place]], nodes[LAST_LEAF, able[place]]):
                if clusters[KIND, leaf] == of and clusters[SIZE, leaf] >= widest[WIDEST, of]:
                    nearest = min(nearest, _delay_to(leaf, begin, end, kind, routes))
        if nearest < least:
            least, kept = nearest, 0
        if nearest == least:
            able[kept] = able[place]
            kept += 1
    return kept


@njit_noalloc
def _draw_pair(count, routes):  # type: ignore[no-untyped-def]
    """Keep two random able children, in their order."""
    able, draws = routes[5], routes[7]
    one = draw_below(draws, count)
    other = draw_below(draws, count - 1)
    other += other >= one
    able[0], able[1] = able[min(one, other)], able[max(one, other)]
    return 2


@njit_noalloc
def _soonest(count, routes):  # type: ignore[no-untyped-def]
    """Return the index of the able child on which the piece, a single task, could start first."""
    nodes, clusters, able, widest = routes[0], routes[2], routes[5], routes[4]
    best, least = 0, NEVER
    for place in range(count):
        for leaf in range(nodes[FIRST_LEAF, able[place]], nodes[LAST_LEAF, able[place]]):
            of = clusters[KIND, leaf]
            if of != NOWHERE and clusters[SIZE, leaf] >= widest[WIDEST, of] and clusters[LEFT, leaf] < least:
                best, least = place, clusters[LEFT, leaf]
    return best


@njit_noalloc
def measure_left(now, leaf, jobs, running, count, clusters):  # type: ignore[no-untyped-def]
    """Record the remaining work of the *count* running requests of a cluster by their estimates, each at least 0."""
    clusters[LEFT, leaf] = 0
    for k in range(count):
        row = running[1, k]
        clusters[LEFT, leaf] += jobs[CORES, row] * max(0, jobs[START, row] + jobs[ESTIMATE, row] - now)


@njit_noalloc
def measure_start(now, row, leaf, jobs, running, count, routes, ends):  # type: ignore[no-untyped-def]
    """Record when a request could start on a cluster behind all waiting requests, in job order.

    *count* requests run. *ends* is scratch: a heap of the ends of running requests and of those started by then.
    """
    clusters, how, where = routes[2], routes[3], routes[9]
    if jobs[CORES, row] > clusters[SIZE, leaf]:
        return
    free, at = clusters[FREE, leaf], now
    for k in range(count):
        other = running[1, k]
        push(ends, k, max(now, jobs[START, other] + jobs[ESTIMATE, other]), 0, jobs[CORES, other])
    while how[OLDEST] < row and (where[how[OLDEST]] == NOWHERE or jobs[START, how[OLDEST]] < NEVER):
        how[OLDEST] += 1
    for other in range(how[OLDEST], row + 1):
        if other < row and (where[other] != leaf or jobs[START, other] < NEVER):
            continue
        while free < jobs[CORES, other]:
            at = max(at, ends[0, 0])
            free += pop(ends, count)
            count -= 1
        free -= jobs[CORES, other]
        push(ends, count, at + jobs[ESTIMATE, other], 0, jobs[CORES, other])
        count += 1
    clusters[LEFT, leaf] = at


@njit_noalloc
def _picked(count, begin, end, kind, routes):  # type: ignore[no-untyped-def]
    """Return the able child that gets a piece; there are several."""
    how, able = routes[3], routes[5]
    if how[PAIR]:
        count = _draw_pair(count, routes)
    elif how[NEAR]:
        count = _keep_nearest(count, begin, end, kind, routes)
    if how[BALANCER] == EXPECTED:
        place = _shortest(count, routes)
    elif how[BALANCER] == IN_TURN:
        place = _turn(count, routes)
    elif how[BALANCER] == DRAWN:
        place = _at_random(count, routes)
    elif how[BALANCER] == FIRST_START:
        place = _soonest(count, routes)
    else:
        place = _least_utilised(count, routes)
    return able[place]


@njit_noalloc
def _route_piece(node, begin, end, kind, jobs, routes):  # type: ignore[no-untyped-def]
    """Send a piece down from a node; return `NOWHERE` if placed, else the router whose children cannot hold it."""
    nodes, children, clusters, able = routes[0], routes[1], routes[2], routes[5]
    kinds, where = routes[8], routes[9]
    _look_at(begin, end, kind, jobs, routes)
    while node >= clusters.shape[1]:
        count = 0
        for k in range(nodes[FIRST_CHILD, node], nodes[LAST_CHILD, node]):
            if _can_hold(children[k], routes):
                able[count] = children[k]
                count += 1
        if count == 0:
            return node
        node = able[0] if count == 1 else _picked(count, begin, end, kind, routes)
    for row in range(begin, end):
        if kind == ALL_KINDS or kinds[row] == kind:
            where[row] = node
            work = jobs[CORES, row] * jobs[ESTIMATE, row]
            clusters[UNFINISHED, node] += work
            clusters[QUEUED, node] += work
    return NOWHERE


@njit_noalloc
def place_job(begin, end, jobs, routes):  # type: ignore[no-untyped-def]
    """Place the requests [begin, end) of a job, splitting it where necessary; return whether clusters can hold it."""
    how, widest, kinds = routes[3], routes[4], routes[8]
    root = routes[0].shape[1] - 1
    _look_at(begin, end, ALL_KINDS, jobs, routes)
    if not _can_hold(root, routes):
        return False
    stuck = _route_piece(root, begin, end, ALL_KINDS, jobs, routes)
    if stuck == NOWHERE:
        return True
    if not how[BY_KIND] or how[KINDS] == 1:
        for row in range(begin, end):
            _route_piece(stuck, row, row + 1, ALL_KINDS, jobs, routes)
        return True
    count = how[KINDS]
    for k in range(count):
        widest[SAVED, k] = widest[IN_ORDER, k]
    for k in range(count):
        of = widest[SAVED, k]
        left = _route_piece(stuck, begin, end, of, jobs, routes)
        if left == NOWHERE:
            continue
        for row in range(begin, end):
            if kinds[row] == of:
                _route_piece(left, row, row + 1, ALL_KINDS, jobs, routes)
    return True
