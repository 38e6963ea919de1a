"""What each kind of policy must answer. Classes need no base class: having the methods is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from gridsim.errors import PolicyError, call, failed, name_of, raise_failed
from gridsim.model.capacity import Capacity
from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.policy.queue import ClusterView, Queue

if TYPE_CHECKING:
    from gridsim.machine.allocations import Holdings

__all__ = [
    "NOTHING",
    "Answers",
    "Arrangement",
    "Capabilities",
    "Changes",
    "Decision",
    "Lanes",
    "Nodes",
    "Offer",
    "Ordering",
    "Partition",
    "Passes",
    "Pieces",
    "Placement",
    "PlacementRule",
    "Quote",
    "ReservationRule",
    "Scheduler",
    "Start",
    "Stop",
    "Then",
    "call",
    "failed",
    "lanes_of",
    "name_of",
    "raise_failed",
    "ranks_of",
    "representation",
    "starting",
    "starts_of",
    "whole_numbers",
]

Changes = Literal["static", "linear", "pass", "start"]
"""When ranks are asked again: never (once, when a request is ready), never since they are lines in time, at each pass,
after each start."""


class Ordering(Protocol):
    """Which waiting request comes first?

    An ordering may say how often it is asked (`changes`, ``"pass"`` where it does not) and may define
    ``pick(queue, now) -> int`` beside or instead of `rank`: the index of the next request in job order, asked under a
    rule that lets nobody pass; with a true ``hold``, a picked request that does not fit is the next of the coming pass
    too. One with ``setup(rng)`` is told of each run.
    """

    changes: Changes

    def rank(self, queue: Queue, now: float) -> FloatArray:
        """One number a request, lower first; ties go to the earlier job. *now* in seconds; NaN is refused."""
        ...


class Lanes(NamedTuple):
    """Who may hold a promised start: each lane is held by its first ``capacity`` blocked requests.

    ``lane`` numbers the lane of each request, ``capacity`` has one entry a lane; ``due`` is the instant after which a
    waiting request has a promise of its own, beside all lanes (whole microseconds, `NEVER` for none).
    """

    lane: IntArray
    capacity: IntArray
    due: IntArray | None = None


class ReservationRule(Protocol):
    """Who holds a promised start, and may anybody pass a blocked request (``blocking`` false)?

    A rule with ``holders = "acquired"`` lets whoever holds a promise keep it until it starts, and serves holders before
    all others, in the order in which they became holders. Without, holders are found afresh at each pass.
    """

    blocking: bool

    def lanes(self, queue: Queue) -> Lanes:
        """Lanes of the requests; asked once for all that may come."""
        ...


class Partition(Protocol):
    """How many cores may a moldable request get?

    ``choices`` sizes (or ``"all"``) from the least of a request up to its limit are tried, spread by ``grid``
    (``"geometric"`` or ``"linear"``); it takes that by which it ends first.
    """

    choices: Any
    grid: Literal["geometric", "linear"]

    def limits(self, queue: Queue, now: float) -> IntArray:
        """Most cores of each waiting request; a request's own range stands above it. *now* in seconds.

        ``queue.state`` has ``total`` cores, and the ``running`` requests as a queue whose state has ``began`` and
        ``expected`` ends, s.
        """
        ...


class Arrangement(NamedTuple):
    """A plan as what it is determined by: the waiting requests by planned start, then job order, and these starts.

    On machines of nodes and pools also where: *holdings* in which they, and the running requests, lie so.
    """

    rows: IntArray
    starts: IntArray
    holdings: Holdings | None = None


class Offer(NamedTuple):
    """A place for a request, and what it takes. Instants in whole microseconds.

    Attributes
    ----------
    start : int
        Planned start of the request.
    arrangement : Arrangement or None
        Where all waiting requests go, the new one among them; None: all others stay.
    granted : int
        Latest end that is promised; `NEVER` until the scheduler has made it the deadline asked for.
    kills : tuple of int
        Running requests that make room: they are in the arrangement, and begin anew.
    doublings : int
        How often an artificial deadline was doubled.
    price : float
        By the admission's own price.
    """

    start: int
    arrangement: Arrangement | None = None
    granted: int = NEVER
    kills: tuple[int, ...] = ()
    doublings: int = 0
    price: float = 0.0


class Quote(NamedTuple):
    """What a scheduler answers to a new request, and what it takes it in by; nothing has changed until then.

    Attributes
    ----------
    request : int
        The request.
    offer : Offer or None
        Its place in a plan.
    cores : int
        The size chosen for it; 0 where that is left open.
    entries : tuple of int
        Under rules that know partitions: the entries of the queue in which it could start.
    """

    request: int
    offer: Offer | None = None
    cores: int = 0
    entries: tuple[int, ...] = ()


class Placement(NamedTuple):
    """Where a request runs on a machine of nodes: each column has one entry a node, of all its tasks there together.

    Attributes
    ----------
    node : sequence of int
        Numbers of the nodes, each once.
    amounts : mapping
        What it takes of each node by resource: ``cores``; ``memory`` in MiB; any other in units of its own.
    gpus : sequence of sequence of (int, int)
        Numbers of GPUs of the node, each with the thousandths taken of it; empty where the request takes none.
    tasks : sequence of int
        Tasks on each node; empty where the request does not count tasks.
    """

    node: Sequence[int] | IntArray
    amounts: Mapping[str, Sequence[int] | IntArray]
    gpus: Sequence[Sequence[tuple[int, int]]] = ()
    tasks: Sequence[int] | IntArray = ()


class Nodes(NamedTuple):
    """Nodes as a placement rule sees them; columns with one entry a node.

    Attributes
    ----------
    free : mapping of str to (n,) int64
        What is free of each resource over the whole time of the request, less its own earlier tasks.
    gpus : (n, g) int64
        Thousandths free of each GPU; 0 for those that a node does not have.
    capacity : mapping of str to (n,) int64
        What each node has.
    weight : (n,) int64
        Weights of the nodes.
    tasks : (n,) int64
        Tasks of the request that have been laid down there.
    able : (n,) bool
        Nodes that the next task may go to; scores of others do not matter.
    """

    free: Mapping[str, IntArray]
    gpus: IntArray
    capacity: Mapping[str, IntArray]
    weight: IntArray
    tasks: IntArray
    able: npt.NDArray[np.bool_]


class PlacementRule(Protocol):
    """Where does the next task go?

    One with ``setup(rng)`` is told of each run; one with ``gpu(free, share) -> int`` chooses among the GPUs of the node
    that have room for a share: an index of *free*, thousandths by GPU.
    """

    def scores(self, task: Mapping[str, int], nodes: Nodes) -> FloatArray:
        """One number a node, lower first; *task* has what each task asks for, ``gpu`` in thousandths."""
        ...


class Start(NamedTuple):
    """A waiting request that starts: on so many *cores*, 0 for those of its quote, or asked for; at a *placement*.

    A request that comes without a placement is laid out by the machine, where that has nodes.
    """

    request: int
    cores: int = 0
    placement: Placement | None = None


Then = Literal["requeue", "checkpoint", "cancel", "suspend"]
"""What becomes of a request that is stopped: it waits anew and what it did is lost, or is kept; it is over; it waits
where it is."""


class Stop(NamedTuple):
    """A running request that has to go, and what *then* becomes of it.

    *by* is the request that it makes room for, -1 where that is none in particular.
    """

    request: int
    then: Then
    by: int = -1


class Decision(NamedTuple):
    """What a scheduler decides at an instant; carried out in the order withdrawals, stops, starts.

    Attributes
    ----------
    starts : sequence of Start
        Waiting requests that start now.
    stops : sequence of Stop
        Running requests that make room.
    withdrawals : sequence of int
        Waiting requests that are cancelled: by their users, or since they can never run.
    wake : int
        Next instant that needs a decision although nothing happens, whole microseconds; `NEVER` for none.
    """

    starts: Sequence[Start] = ()
    stops: Sequence[Stop] = ()
    withdrawals: Sequence[int] = ()
    wake: int = NEVER


NOTHING = Decision()
"""The decision that nothing happens, and that none is due before something does."""


class Answers(NamedTuple):
    """What requests are answered in a compiled run, and who is killed for others; whole microseconds.

    Attributes
    ----------
    granted, offer : (n,) int64
        Ends promised, and later ones than asked for that were offered, taken or not; `NEVER` for none.
    doublings : (n,) int64
        Of artificial deadlines.
    refused : (n,) bool
        Who is turned away, or declines.
    takes : (n,) int64
        The latest end that each user takes; written down by the calendar, since policies do not know.
    cut : (4, n) int64
        Runs cut short to make room: request, start, end, for which request.
    cuts : (1,) int64
        How many.
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
        """Those of a run of so many requests that begins."""
        never: IntArray = np.full(requests, NEVER, dtype=np.int64)
        zero: IntArray = np.zeros(requests, dtype=np.int64)
        refused = np.zeros(requests, dtype=np.bool_)
        cut = np.zeros((4, requests), dtype=np.int64)
        return cls(never, never.copy(), zero, refused, never.copy(), cut, np.zeros(1, dtype=np.int64))


class Passes(NamedTuple):
    """What a scheduler's passes work on, for a calendar that plays a whole run in one compiled loop.

    Attributes
    ----------
    loop : str
        Name of the entry of the loop in `gridsim.engine`, which says what the columns are.
    columns : tuple
        Arrays, and tuples of arrays.
    ask : callable or None
        Told the instant of each pass, whole microseconds, before which the loop stops and something is asked in Python;
        or of a pass that is stopped until a column has more room. Answers with the columns where those are others then.
    pieces : callable or None
        Where requests were laid down so far, since it was asked last; none where there are no nodes.
    answers : Answers or None
        Where the loop writes down what is promised; None where nothing is.
    """

    loop: str
    columns: tuple[Any, ...]
    ask: Callable[[int], tuple[Any, ...] | None] | None = None
    pieces: Callable[[], Pieces] | None = None
    answers: Answers | None = None


class Pieces(NamedTuple):
    """Where requests lie on nodes, a row a request and node.

    Attributes
    ----------
    request, node, tasks : (k,) int64
        Which request, the number of the node, and its tasks there.
    amounts : mapping of str to (k,) int64
        What it holds there, by resource.
    gpus : (g, 3) int64
        Row of these, number of the GPU, thousandths.
    """

    request: IntArray
    node: IntArray
    tasks: IntArray
    amounts: Mapping[str, IntArray]
    gpus: IntArray


_tuple = tuple.__new__  # takes a third of the time of Start(request), of which there are as many as jobs


def starts_of(requests: Iterable[int]) -> list[Start]:
    """Starts of requests on the cores that they asked for."""
    return [_tuple(Start, (request, 0, None)) for request in requests]


def starting(starts: Sequence[Start], wake: int = NEVER) -> Decision:
    """The decision that these start and nothing else happens; made in a third of the time of ``Decision(starts)``."""
    return _tuple(Decision, (starts, (), (), wake))


@dataclass(frozen=True)
class Capabilities:
    """What a scheduler does, and what it may be asked, beyond the methods of `Scheduler`.

    It says so in an attribute or property ``capabilities``, which is read when a run is made and when it is over.

    Attributes
    ----------
    withdraws : bool
        It knows of users who cancel what still waits; otherwise their jobs never come.
    sizes : bool
        It starts moldable jobs on other numbers of cores than they ask for.
    guarantees : bool
        It guarantees deadlines. It has ``promise(request, deadline, now) -> Quote | None``, its quote if the user
        requested that deadline, ``declined(quote) -> Quote | None``, what remains for a request whose user does not
        accept an offer, and ``broken``, (n,) bool, requests whose guarantees an overrun broke.
    preempts : str or None
        Running requests may be stopped for others: the label that decides which requests may preempt which (``qos``,
        ``partition``), empty for none. None: it does not preempt.
    scope : {"cluster", "grid"}
        Whether its order depends on other clusters too, so that all decide whenever one does.
    effort : float
        About how long a run takes against one of EASY: of several policies the slowest begins first.
    plan : bool
        It has ``plan``, a `gridsim.policy.admission.plan.Plan`: whoever is taken in has a planned start, and its quotes
        say where.
    expected_starts : bool
        It has ``expected_starts(now)``: when it expects each waiting request to start, whole microseconds by request.
    reasons : bool
        It has ``reasons() -> gridsim.record.Reasons``, asked when the run is over: why requests waited.
    alone : bool
        It has ``alone(now)``, told before `dispatch` where nothing is to happen any more but what it is woken for.
    epoch : bool
        It has ``epoch``: Unix time of second 0, s; where it is None, a run sets it to that of the workload.
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
        Requests may be submitted that were not known when it was set up.
    predicts : bool
        It plans with predicted run times: it has ``predicted(request)``, the present prediction, whole microseconds,
        ``corrected(request, now)``, which is told that a running request outlives it and answers the next one, and
        ``predictions() -> gridsim.record.Predictions``.
    oracle : bool
        It plans with true run times, ``ClusterView.runtime``.
    vectors : bool
        It starts requests where a machine of nodes and pools has what they ask for; others know one pool of cores.
    held : bool
        It has ``held(request, until, now)``: a request that is no job holds its cores until an instant, whole
        microseconds, and `ended` tells of its end. On a machine of nodes ``held(request, until, now, placement)``.
    compiled : frozenset of {"pool", "nodes", "windows"}
        Runs that the compiled event loop supports: one pool of cores, nodes or several pools, and the windows of a long
        run. For any of them it has ``passes(rows) -> Passes``, the arrays of a scheduler state to which the requests
        *rows* are submitted in this order; no other method is called in such a run. For windows it has ``go_on(before,
        rows, came) -> waiting``, called between `setup` and ``passes``: it continues from a scheduler of the same
        policy in the window before. *rows* (w,) int64 are the rows here of the requests there, -1 for those that have
        ended, *came* is how many had been submitted; it returns the rows of the waiting requests in queue order.
    in_python : str
        Why the compiled loop does not support the others, where that is known.
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
    held: bool = False
    compiled: frozenset[Literal["pool", "nodes", "windows"]] = frozenset()
    in_python: str = ""
    vectors: bool = False
    nodes: Capacity | None = None


class Scheduler(Protocol):
    """Who starts now? Works in whole microseconds; a request is a row of `Requests`.

    What it decides it has done to itself already: who is stopped has given its cores back, who starts holds them. One
    that does more than to start requests says so in ``capabilities`` (`Capabilities`).

    The cluster calls `ended` and `overran` for what happened, `settled` once when the ends of an instant are
    complete, `quote` and `commit` for arrivals, `dispatch` for the decision, which says when the next one is due
    although nothing happens.
    """

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run."""
        ...

    def ended(self, request: int, now: int) -> None:
        """The running request gave its cores back."""
        ...

    def overran(self, request: int, expected_end: int, now: int) -> None:
        """The running request reached its estimate and goes on until *expected_end* at least."""
        ...

    def settled(self, now: int) -> None:
        """All ends of this instant have been told."""
        ...

    def quote(self, request: int, now: int) -> Quote | None:
        """Answer to a new request; None rejects it."""
        ...

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Take the quoted request in; the running requests that make room for it, before the next one comes."""
        ...

    def dispatch(self, now: int) -> Decision:
        """Who starts now, who makes room, who leaves, and when to decide again."""
        ...


def representation(policy: Any) -> str:
    """The ``repr`` of a dataclass that leaves out what is as usual of the fields marked ``repr=False``."""
    shown = [it.name for it in fields(policy) if it.repr or getattr(policy, it.name) != _usual(it)]
    return f"{type(policy).__name__}({', '.join(f'{name}={getattr(policy, name)!r}' for name in shown)})"


def _usual(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def whole_numbers(
    policy: Any, what: str, answer: Any, count: int | None = None, *, least: int = -NEVER, most: int = NEVER
) -> IntArray:
    """Return a column that a policy returned as int64, after a check of its shape, type and range.

    Parameters
    ----------
    what : str
        Name of the column, for errors.
    count : int, optional
        Number of entries; any number where left out.
    least, most : int
        The range of the entries, both ends included.

    Raises
    ------
    PolicyError
        For anything else than whole numbers in that range.
    """
    try:
        column = np.asarray(answer)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"{name_of(policy)} returned {what} that is no column: {error}") from error
    expected = "one whole number for each entry" if count is None else f"{count} whole numbers"
    if column.ndim != 1 or len(column) != (len(column) if count is None else count):
        raise PolicyError(f"{name_of(policy)} returned {what} of shape {column.shape}; expected {expected}")
    if len(column) and column.dtype.kind not in "iu":
        raise PolicyError(f"{name_of(policy)} returned {what} of type {column.dtype}; expected {expected}")
    if len(column) and not least <= int(column.min()) <= int(column.max()) <= most:
        place = int(((column < least) | (column > most)).argmax())
        message = f"{name_of(policy)} returned {what} with {column[place]} at index {place}"
        raise PolicyError(f"{message}; expected whole numbers from {least}{'' if most == NEVER else f' to {most}'}")
    return np.ascontiguousarray(column, dtype=np.int64)


def lanes_of(rule: Any, queue: Queue) -> Lanes:
    """Return the lanes of a reservation rule, checked: each request has a lane, and each lane a capacity from 0.

    A capacity above the number of requests is that number.

    Raises
    ------
    PolicyError
        When the rule returns anything else, or fails.
    """
    lanes = call(rule, "lanes", queue)
    if not isinstance(lanes, Lanes):
        raise PolicyError(f"{name_of(rule)} returned {type(lanes).__name__} from lanes; expected Lanes(lane, capacity)")
    count = len(queue)
    capacity = whole_numbers(rule, "a capacity", lanes.capacity, least=0)
    lane = whole_numbers(rule, "lanes", lanes.lane, count, least=0, most=len(capacity) - 1)
    due = None if lanes.due is None else whole_numbers(rule, "due instants", lanes.due, count)
    return Lanes(lane, np.minimum(capacity, len(queue.requests)), due)


def ranks_of(ordering: Any, queue: Queue, now: float) -> FloatArray:
    """What an ordering answers, checked: one number a request.

    Raises
    ------
    PolicyError
        When it answers anything else, or fails.
    """
    try:
        answer = ordering.rank(queue, now)
    except Exception as error:
        if isinstance(error, AttributeError) and error.name == "rank" and error.obj is ordering:
            what = "has no rank; with pick alone it needs a rule that lets nobody pass"
            raise PolicyError(f"{name_of(ordering)} {what}") from error
        raise_failed(ordering, "rank", error)
    try:
        ranks = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise PolicyError(f"{name_of(ordering)} ranked {len(queue)} requests with no numbers: {error}") from error
    # argmax finds a NaN, in a fifth of the time of np.isnan.
    if ranks.shape != queue.rows.shape or (len(ranks) and (last := ranks.item(ranks.argmax())) != last):
        what = f"shape {ranks.shape}" if ranks.shape != queue.rows.shape else "NaN"
        raise PolicyError(f"{name_of(ordering)} ranked {len(queue)} requests with {what}; one number each is needed")
    return ranks
