"""Protocols of the policies. Policy classes need no base class: the methods suffice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from gridsim.errors import PolicyError, call, name_of, policy_error, raise_failed
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.policy.queue import ClusterView, Queue

if TYPE_CHECKING:
    from gridsim.machine.allocations_over_time import Holdings

Changes = Literal["static", "linear", "pass", "start"]
"""When the ranks of an ordering are computed again: never (static: once, when a request is ready), never (linear in
time), at each scheduling cycle, or after each start."""


class Ordering(Protocol):
    """Order of the waiting requests.

    An ordering may define how often it is evaluated (`changes`; default ``"pass"``). Instead of `rank`, or in addition
    to it, it may define ``pick(queue, now) -> int``: the index of the next request in job order. `pick` is called
    under reservation rules that do not allow backfilling. With a true ``hold``, a picked request that does not fit is
    also the next one of the following cycle. An ordering with ``setup(rng)`` is initialised at the start of each run.
    """

    changes: Changes

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """Return one number per request, lower first; ties by job order. *now* is in seconds; NaN is an error."""


class Static:
    """Base of orderings whose ranks depend on initial data only."""

    changes: ClassVar[Changes] = "static"


class Lanes(NamedTuple):
    """Requests that may hold a reservation: in each lane, the first ``capacity`` blocked requests hold one.

    ``lane`` is the lane number of each request; ``capacity`` has one entry per lane. ``due`` is the instant after
    which a waiting request holds its own reservation, independent of all lanes (whole microseconds, `NEVER` for none).
    """

    lane: IntArray
    capacity: IntArray
    due: IntArray | None = None


class ReservationRule(Protocol):
    """Requests that hold a reservation, and whether others may start ahead of a blocked request (``blocking`` false).

    Under a rule with ``holders = "acquired"``, a request keeps its reservation until it starts. Holders are served
    before all other requests, in the order in which they became holders. Otherwise, each cycle determines the holders
    again.
    """

    blocking: bool

    def lanes(self, queue: Queue) -> Lanes:
        """Return the lanes of the requests; called once for all requests that may be submitted."""


class Partition(Protocol):
    """Limit of the number of cores of a moldable request.

    ``choices`` sizes (or ``"all"``) from the minimum of a request up to its limit are tried, spaced by ``grid``
    (``"geometric"`` or ``"linear"``). The size with the earliest end is used.
    """

    choices: Any
    grid: Literal["geometric", "linear"]

    def limits(self, queue: Queue, now: float) -> IntArray:
        """Return the maximum number of cores of each waiting request. *now* is in seconds.

        The request's own range takes precedence over this limit. ``queue.state`` has ``total``, the number of cores,
        and ``running``, the running requests as a queue whose state has ``began`` and ``expected`` ends, s.
        """


class PlannedStarts(NamedTuple):
    """A plan: the waiting requests, sorted by planned start and then job order, and their planned starts.

    On machines of nodes and pools, *holdings* has the allocations of these and of the running requests over time.
    """

    rows: IntArray
    starts: IntArray
    holdings: Holdings | None = None


class Offer(NamedTuple):
    """A planned start for a request, and its consequences for other requests. Instants in whole microseconds.

    Attributes
    ----------
    start : int
        Planned start of the request.
    arrangement : PlannedStarts or None
        Plan of all waiting requests, the new one included; None if all other requests keep their planned starts.
    granted : int
        Latest end that is guaranteed; `NEVER` until the scheduler sets it to the requested deadline.
    kills : tuple of int
        Running requests that are stopped to free cores. They are in the arrangement and start from the beginning.
    doublings : int
        Number of times that an artificial deadline was doubled.
    price : float
        Price of the offer, defined by the admission policy.
    """

    start: int
    arrangement: PlannedStarts | None = None
    granted: int = NEVER
    kills: tuple[int, ...] = ()
    doublings: int = 0
    price: float = 0.0


class Quote(NamedTuple):
    """Answer of a scheduler to a new request. The scheduler's state does not change until the quote is committed.

    Attributes
    ----------
    request : int
        The request.
    offer : Offer or None
        The planned start.
    cores : int
        Number of cores chosen for it; 0 if not yet chosen.
    entries : tuple of int
        For schedulers with partitions: queue entries (job-partition pairs) in which it could start.
    """

    request: int
    offer: Offer | None = None
    cores: int = 0
    entries: tuple[int, ...] = ()


class Placement(NamedTuple):
    """Allocation of a request on a machine of nodes; columns have one entry per node, the sum over its tasks.

    Attributes
    ----------
    node : sequence of int
        Node numbers, without duplicates.
    amounts : mapping
        Amount per node by resource: ``cores``; ``memory`` in MiB; any other resource in its own unit.
    gpus : sequence of sequence of (int, int)
        Per node: numbers of the allocated GPUs, each with its allocated thousandths; empty for requests without GPUs.
    tasks : sequence of int
        Tasks on each node; empty for requests that do not count tasks.
        Tasks on each node; empty where the request does not count tasks.
    """

    node: Sequence[int] | IntArray
    amounts: Mapping[str, Sequence[int] | IntArray]
    gpus: Sequence[Sequence[tuple[int, int]]] = ()
    tasks: Sequence[int] | IntArray = ()


class Nodes(NamedTuple):
    """Nodes as a placement rule sees them; columns have one entry per node.

    Attributes
    ----------
    free : mapping of str to (n,) int64
        Free amount of each resource over the whole duration of the request, without that of its earlier tasks.
    gpus : (n, g) int64
        Free thousandths of each GPU; 0 for GPUs that a node does not have.
    capacity : mapping of str to (n,) int64
        Total amount of each resource.
    weight : (n,) int64
        Weights of the nodes.
    tasks : (n,) int64
        Tasks of the request that are already placed on the node.
    able : (n,) bool
        Nodes that can host the next task; scores of other nodes are ignored.
    """

    free: Mapping[str, IntArray]
    gpus: IntArray
    capacity: Mapping[str, IntArray]
    weight: IntArray
    tasks: IntArray
    able: npt.NDArray[np.bool_]


class PlacementRule(Protocol):
    """Choice of the node for the next task.

    A rule with ``setup(rng)`` is initialised at the start of each run. A rule with ``gpu(free, share) -> int`` chooses
    among the GPUs of the node that have enough free capacity for a share. It returns an index of *free*, the free
    thousandths of each GPU.
    """

    def scores(self, task: Mapping[str, int], nodes: Nodes) -> FloatArray:
        """Return one number per node, lower first; *task* has the demand of each task, with ``gpu`` in thousandths."""


class Start(NamedTuple):
    """A waiting request that starts on *cores* cores; 0 means the cores of its quote, or else the requested cores.

    On a machine of nodes, the machine places a request whose *placement* is None.
    """

    request: int
    cores: int = 0
    placement: Placement | None = None


Then = Literal["requeue", "checkpoint", "cancel", "suspend"]
"""Consequence of a stop: the request is queued again and its progress is lost (requeue) or kept (checkpoint); it ends
(cancel); or it is suspended on its nodes."""


class Stop(NamedTuple):
    """A running request that is stopped, and *then*, the consequence.

    *by* is the request that needs its resources; -1 if there is no specific one.

    With *grace* the run works on for so long, whole microseconds, and then leaves, after a last checkpoint if *then* is
    ``checkpoint``; the cluster calls `Scheduler.ended`, and submits the request again. It decides again in the same
    instant if a run left at once. Without, the run is stopped at once, and the scheduler has recorded this.
    """

    request: int
    then: Then
    by: int = -1
    grace: int | None = None


class Decision(NamedTuple):
    """Decision of a scheduler at one instant, applied in the order withdrawals, stops, starts.

    Attributes
    ----------
    starts : sequence of Start
        Waiting requests that start now.
    stops : sequence of Stop
        Running requests that are stopped to free resources.
    withdrawals : sequence of int
        Waiting requests that are cancelled, by their users or because they can never run.
    wake : int
        Next instant that needs a decision even if no event occurs, whole microseconds; `NEVER` for none.
    """

    starts: Sequence[Start] = ()
    stops: Sequence[Stop] = ()
    withdrawals: Sequence[int] = ()
    wake: int = NEVER


NOTHING = Decision()
"""Empty decision: no starts, stops or withdrawals, and no decision is due before the next event."""


class Absence(NamedTuple):
    """A node, or one of its GPUs, that holds no capacity in ``[begin, end)``, whole microseconds, as far as is known.

    Attributes
    ----------
    node, gpu : int
        Number of the node, and of its GPU; -1 for the whole node.
    begin, end : int
        The interval; *end* is `NEVER` if the return is unknown.
    announced : bool
        Whether it was announced before it began.
    amounts : tuple of int or None
        Absent amount of each resource of the node, sorted by name, and of each of its GPUs; None for the whole node.
    """

    node: int
    gpu: int
    begin: int
    end: int = NEVER
    announced: bool = False
    amounts: tuple[int, ...] | None = None


class CapacityChange(NamedTuple):
    """Change of the capacity of a machine of nodes at one instant.

    Attributes
    ----------
    lost, restored : sequence of Absence
        Absences that are known from now on, and earlier ones that are over; first *restored* is applied. An absence
        whose end changes is in both.
    requeued : sequence of int
        Stopped requests that are queued again at this instant, at their previous places in the queue.
    held : sequence of Absence
        Absences for which a plan need not be made again: what was not available before either.
    reserved : sequence of int
        Numbers of the reservations that are announced, begin or are over at this instant.
    """

    lost: Sequence[Absence] = ()
    restored: Sequence[Absence] = ()
    requeued: Sequence[int] = ()
    held: Sequence[Absence] = ()
    reserved: Sequence[int] = ()


class Answers(NamedTuple):
    """Answers to requests in a compiled run, and runs that were stopped for other requests; whole microseconds.

    Attributes
    ----------
    granted, offer : (n,) int64
        Guaranteed ends, and offered ends later than the requested deadline, accepted or not; `NEVER` for none.
    doublings : (n,) int64
        Number of doublings of artificial deadlines.
    refused : (n,) bool
        Requests that were rejected, or whose users declined the offer.
    takes : (n,) int64
        Latest end that each user accepts. The event loop fills it in, since policies do not know it.
    cut : (4, n) int64
        Runs that were stopped to free cores: request, start, end, and the request that needed the cores.
    cuts : (1,) int64
        Number of these runs.
    """

    granted: IntArray
    offer: IntArray
    doublings: IntArray
    refused: npt.NDArray[np.bool_]
    takes: IntArray
    cut: IntArray
    cuts: IntArray

    @classmethod
    def none_yet(cls, requests: int) -> Answers:
        """Return the answers at the start of a run with this number of requests."""
        never: IntArray = np.full(requests, NEVER, dtype=np.int64)
        zero: IntArray = np.zeros(requests, dtype=np.int64)
        refused = np.zeros(requests, dtype=np.bool_)
        cut = np.zeros((4, requests), dtype=np.int64)
        return cls(never, never.copy(), zero, refused, never.copy(), cut, np.zeros(1, dtype=np.int64))


class LoopState(NamedTuple):
    """Scheduler state as arrays, for the compiled event loop.

    Attributes
    ----------
    loop : str
        Name of the loop's entry in `gridsim.engine`, which defines the columns.
    columns : tuple
        Arrays, and tuples of arrays.
    ask : callable or None
        Called with the instant, in whole microseconds, of each cycle before which the loop returns to Python, and of a
        cycle that is interrupted because a column is too small. Returns the columns if they were replaced, else None.
    pieces : callable or None
        Returns the placements since its last call; None for machines without nodes.
    answers : Answers or None
        Arrays in which the loop records guarantees; None without guarantees.
    """

    loop: str
    columns: tuple[Any, ...]
    ask: Callable[[int], tuple[Any, ...] | None] | None = None
    pieces: Callable[[], Pieces] | None = None
    answers: Answers | None = None


class Pieces(NamedTuple):
    """Allocations of requests on nodes, one row per request and node.

    Attributes
    ----------
    request, node, tasks : (k,) int64
        Request, number of the node, and number of tasks on it.
    amounts : mapping of str to (k,) int64
        Allocated amount by resource.
    gpus : (g, 3) int64
        Row of these columns, number of the GPU, allocated thousandths.
    """

    request: IntArray
    node: IntArray
    tasks: IntArray
    amounts: Mapping[str, IntArray]
    gpus: IntArray


_tuple = tuple.__new__  # takes a third of the time of Start(request), which is made for each job


def starts_of(requests: Iterable[int]) -> list[Start]:
    """Return starts of requests on the cores that they requested."""
    return [_tuple(Start, (request, 0, None)) for request in requests]


def starting(starts: Sequence[Start], wake: int = NEVER) -> Decision:
    """Return a decision with these starts only; takes a third of the time of ``Decision(starts)``."""
    return _tuple(Decision, (starts, (), (), wake))


@dataclass(frozen=True)
class Capabilities:
    """Features of a scheduler beyond the methods of `Scheduler`.

    A scheduler declares them in an attribute or property ``capabilities``, which is read before and after a run.

    Attributes
    ----------
    withdraws : bool
        It supports users who cancel waiting jobs. Without it, such jobs are not submitted.
    sizes : bool
        It starts moldable jobs on other numbers of cores than requested.
    guarantees : bool
        It guarantees deadlines. It has ``promise(request, deadline, now) -> Quote | None``, its quote if the user
        requested that deadline, ``declined(quote) -> Quote | None``, the remaining quote for a request whose user does
        not accept an offer, and ``broken``, (n,) bool, requests whose guarantees an overrun or an absence broke.
    preempts : str or None
        It may stop running requests for others. The value is the label that decides which requests may preempt which
        (``qos``, ``partition``), empty for none. None: it does not preempt.
    scope : {"cluster", "grid"}
        ``grid`` if its order depends on other clusters too, so that all clusters decide whenever one does.
    effort : float
        Approximate duration of a simulation relative to EASY. When several policies are simulated, the slowest begins
        first.
    plan : bool
        It has ``plan``, a `gridsim.policy.admission.plan.Plan`. Each admitted request has a planned start, which is
        part of its quote.
    expected_starts : bool
        It has ``expected_starts(now)``: the expected start of each waiting request, whole microseconds by request.
    reasons : bool
        It has ``reasons() -> gridsim.record.Reasons``, called at the end of a run: the reasons why requests waited.
    alone : bool
        It has ``alone(now)``, called before `dispatch` if no events remain except those that wake it. With
        ``still(now)``, failures occur as long as no request runs, but one may still start.
    epoch : bool
        It has ``epoch``: the Unix time of second 0, s. If it is None, a run sets it to that of the workload.
    site : bool
        It follows the configuration files of a site. It has ``epoch`` and

        - ``site``: a `gridsim.model.site.Site` or None, whose names jobs may request;
        - ``timezone``: the zone of local dates in the files; where it is None, a run sets it to that of the workload;
        - ``notices``: settings of the files that it does not follow, and ``outside(first, last, longest)``: notices of
          dates outside a run and its longest walltime (whole microseconds);
        - ``machine()``, ``on_nodes()`` and ``pools(names)``: the `Platform` of the site as one pool of cores, with its
          nodes, and with some partitions as clusters (or `InputError`), and ``node_cores``;
        - ``sized(cores)`` and ``changed(change)``: the policy for another machine, after a
          `gridsim.policy.site_policy.SiteChange`;
        - ``longest(workload)``: (n,) int64, the longest time that each job may request, whole microseconds;
        - ``labels_of(demand)``: the labels by which a job requests what a `Demand` does, and ``requested() ->
          gridsim.record.Requested``: the resources that it read from labels;
        - ``held_by(request, now)``: the limit that holds a request back, or the `Refusal` of a rejected one; empty for
          none; ``binding_limits(record)``: the limits that held jobs back.
    nodes : Capacity or None
        Nodes of the machine that it decides for, which placements number; None where cores are one pool.
    takes_more : bool
        It supports requests that are submitted during the run and were unknown at `setup`.
    predicts : bool
        It plans with predicted run times. It has ``predicted(request)``, the present prediction, whole microseconds,
        ``corrected(request, now)``, called when a running request exceeds its prediction, which returns the next one,
        and ``predictions() -> gridsim.record.Predictions``.
    oracle : bool
        It plans with true run times, ``ClusterView.runtime``.
    vectors : bool
        It starts requests where a machine of nodes and pools has the requested resources. Other schedulers support one
        pool of cores only.
    notified : frozenset of {"held", "capacity_changed", "requeue_rule"}
        Methods for what is no job, which it has. ``held(request, until, now)``: a request of a user process holds its
        cores until an instant, whole microseconds; `ended` reports its end. On a machine of nodes ``held(request,
        until, now, placement)``. ``capacity_changed(change, now)``: nodes or GPUs became absent or returned, a
        `CapacityChange`; called after `ended` of all requests that were stopped, and before `settled`.
        ``requeue_rule(request)``: whether a request is queued again after an interruption, and how often; the scheduler
        then determines when and at which place.
    compiled : frozenset of {"pool", "nodes", "windows"}
        Runs that the compiled event loop supports: one pool of cores, nodes or several pools, and the windows of a long
        run. For any of them it has ``passes(rows) -> LoopState``, the arrays of a scheduler state to which the
        requests *rows* are submitted in this order; no other method is called in such a run. For windows it has
        ``resume(before, rows, submitted) -> waiting``, called between `setup` and ``passes``: it continues from a
        scheduler of the same policy in the previous window. *rows* (w,) int64 are the rows in this window of the
        requests of the previous one, -1 for those that have ended; *submitted* is the number of requests that had been
        submitted. It returns the rows of the waiting requests in queue order.
    in_python : str
        Reason why the compiled loop does not support the other runs, if known.
    """

    withdraws: bool = False
    sizes: bool = False
    guarantees: bool = False
    preempts: str | None = None
    scope: Literal["cluster", "grid"] = "cluster"
    effort: float = 1.0
    plan: bool = False
    expected_starts: bool = False
    reasons: bool = False
    alone: bool = False
    epoch: bool = False
    site: bool = False
    takes_more: bool = True
    predicts: bool = False
    oracle: bool = False
    notified: frozenset[Literal["held", "capacity_changed", "requeue_rule"]] = frozenset()
    compiled: frozenset[Literal["pool", "nodes", "windows"]] = frozenset()
    in_python: str = ""
    vectors: bool = False
    nodes: Capacity | None = None


class Scheduler(Protocol):
    """Scheduler of one cluster. Times are whole microseconds; a request is a row of `Requests`.

    The scheduler has already applied its decisions to its own state: stopped requests have released their cores, and
    started requests hold theirs. A scheduler that does more than start requests declares it in ``capabilities``
    (`Capabilities`).

    The cluster calls `ended` and `overran` to report events, ``capacity_changed`` after a change of the machine,
    `settled` once after all ends of an instant, `quote` and `commit` for arrivals and requeued requests, and `dispatch`
    for the decision. The decision includes the next instant at which one is due
    even if no event occurs.
    """

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the state for a run."""

    def ended(self, request: int, now: int) -> None:
        """Record that the running request has ended and released its cores."""

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """Record that the running request reached its estimate and continues until *expected_end* or later."""

    def settled(self, now: int) -> None:
        """Record that all ends of this instant have been reported."""

    def quote(self, request: int, now: int) -> Quote | None:
        """Return the answer to a new request; None rejects it."""

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Admit the quoted request; return the running requests that are stopped for it, before the next arrival."""

    def dispatch(self, now: int) -> Decision:
        """Return the starts, stops and withdrawals at this instant, and the instant of the next decision."""


def representation(policy: Any) -> str:
    """Return the ``repr`` of a dataclass without fields marked ``repr=False`` that have their default value."""
    shown = [it.name for it in fields(policy) if it.repr or getattr(policy, it.name) != _usual(it)]
    return f"{type(policy).__name__}({', '.join(f'{name}={getattr(policy, name)!r}' for name in shown)})"


def _usual(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def integer_column(
    policy: Any, what: str, answer: Any, count: int | None = None, *, least: int = -NEVER, most: int = NEVER
) -> IntArray:
    """Return a column that a policy returned as int64, after a check of its shape, type and range.

    Parameters
    ----------
    what : str
        Name of the column, for errors.
    count : int, optional
        Number of entries; unchecked if omitted.
    least, most : int
        Range of the entries, both ends included.

    Raises
    ------
    PolicyError
        If the column is anything else than whole numbers in that range.
    """
    try:
        column = np.asarray(answer)
    except (TypeError, ValueError) as error:
        raise policy_error(policy, f"returned {what} that is not a column: {error}") from error
    expected = "one whole number for each entry" if count is None else f"{count} whole numbers"
    if column.ndim != 1 or len(column) != (len(column) if count is None else count):
        raise policy_error(policy, f"returned {what} of shape {column.shape}; expected {expected}")
    if len(column) and column.dtype.kind not in "iu":
        raise policy_error(policy, f"returned {what} of type {column.dtype}; expected {expected}")
    if len(column) and not least <= int(column.min()) <= int(column.max()) <= most:
        place = int(((column < least) | (column > most)).argmax())
        message = f"{name_of(policy)} returned {what} with {column[place]} at index {place}"
        raise PolicyError(f"{message}; expected whole numbers from {least}{'' if most == NEVER else f' to {most}'}")
    return np.ascontiguousarray(column, dtype=np.int64)


def lanes_of(rule: Any, queue: Queue) -> Lanes:
    """Return the checked lanes of a reservation rule: each request has a lane, and each lane a capacity of 0 or more.

    Capacities are at most the number of requests.

    Raises
    ------
    PolicyError
        If the rule returns anything else, or fails.
    """
    lanes = call(rule, "lanes", queue)
    if not isinstance(lanes, Lanes):
        raise policy_error(rule, f"returned {type(lanes).__name__} from lanes; expected Lanes(lane, capacity)")
    count = len(queue)
    capacity = integer_column(rule, "a capacity", lanes.capacity, least=0)
    lane = integer_column(rule, "lanes", lanes.lane, count, least=0, most=len(capacity) - 1)
    due = None if lanes.due is None else integer_column(rule, "due instants", lanes.due, count)
    return Lanes(lane, np.minimum(capacity, len(queue.requests)), due)


def ranks_of(ordering: Any, queue: Queue, now: float) -> FloatArray:
    """Return the checked ranks of an ordering: one number per request.

    Raises
    ------
    PolicyError
        If the ordering returns anything else, or fails.
    """
    try:
        answer = ordering.rank(queue, now)
    except Exception as error:
        if isinstance(error, AttributeError) and error.name == "rank" and error.obj is ordering:
            what = "has no rank; with only pick, it needs reserve=strict or first-fit"
            raise policy_error(ordering, what) from error
        raise_failed(ordering, "rank", error)
    try:
        ranks = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise policy_error(ordering, f"ranked {len(queue)} requests with non-numbers: {error}") from error
    # argmax finds a NaN, in a fifth of the time of np.isnan.
    if ranks.shape != queue.rows.shape or (len(ranks) and (last := ranks.item(ranks.argmax())) != last):
        what = f"shape {ranks.shape}" if ranks.shape != queue.rows.shape else "NaN"
        raise policy_error(ordering, f"ranked {len(queue)} requests with {what}; one number each is needed")
    return ranks
