"""What a policy can do: as it declares it, or as a plain file shows it when it is looked at, once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from numpy.random import Generator

from gridsim.errors import PolicyError
from gridsim.policy.protocols import Capabilities, Changes, Decision, Quote, Stop, name_of, starts_of
from gridsim.policy.queue import ClusterView

_CHANGES = get_args(Changes)


def capabilities_of(scheduler: Any) -> Capabilities:
    """What a scheduler can do: what it declares, or what a plain file shows by the attributes that it has.

    Examples
    --------
    >>> from gridsim.policy.scheduler.planned import Planned
    >>> can = capabilities_of(Planned())
    >>> can.plan, can.guarantees, can.effort
    (True, False, 10.0)
    """
    declared = getattr(scheduler, "capabilities", None)
    if isinstance(declared, Capabilities):
        return _with_more(_of_its_own(declared, scheduler), scheduler)
    partition = getattr(scheduler, "partition", None)
    has: dict[str, Any] = {name: hasattr(scheduler, name) for name in _MEMBERS}
    return Capabilities(
        withdraws=hasattr(scheduler, "leaving"),
        sizes=partition is not None and not fixes_sizes(partition),
        guarantees=_guarantees(scheduler),
        preempts=getattr(scheduler, "preempts", None),
        scope=scope_of(getattr(scheduler, "ordering", None)),
        effort=float(getattr(scheduler, "effort", 1.0)),
        **has,
    )


def _of_its_own(declared: Capabilities, scheduler: Any) -> Capabilities:
    """Without passes as a whole where a class is derived in a plain file, or stands before a scheduler.

    What it does at single events would not be asked of it.
    """
    has = hasattr(type(scheduler), "passes") or not declared.compiled
    return declared if is_own(scheduler) and has else replace(declared, compiled=frozenset(), in_python="")


def _with_more(declared: Capabilities, scheduler: Any) -> Capabilities:
    """What a class declares, and what one that is derived from it in a plain file has besides."""
    if is_own(scheduler):
        return declared
    more: dict[str, Any] = {name: True for name in _MEMBERS if not getattr(declared, name) and hasattr(scheduler, name)}
    return replace(declared, **more) if more else declared


_MEMBERS = ("plan", "expected_starts", "reasons", "alone", "held", "epoch", "site")


def _guarantees(scheduler: Any) -> bool:
    """Return whether a scheduler of a plain file guarantees deadlines; it then has the methods for that."""
    found = bool(getattr(scheduler, "guarantees", False))
    missing = [name for name in ("promise", "declined", "broken") if not hasattr(scheduler, name)]
    if found and missing:
        raise PolicyError(f"{name_of(scheduler)} guarantees deadlines without {', '.join(missing)}")
    return found


def first_of(policy: Any, *methods: str) -> str | None:
    """The first of these methods that a policy has, which says of what kind it is; None where it has none of them."""
    return next((method for method in methods if hasattr(policy, method)), None)


# -- parts: what they say by attributes, which all have defaults ------------------------------------------------------


class OrderingCapabilities(NamedTuple):
    """What an ordering says of itself: how often it is asked, and whether it has more than ranks.

    Attributes
    ----------
    changes : str
        When ranks are asked again.
    pick, hold : bool
        Whether it names the next request itself, and whether one that does not fit stays the next.
    keep, group : bool
        Whether it keeps usage by share, and whether it orders groups of requests.
    """

    changes: Changes
    pick: bool
    hold: bool
    keep: bool
    group: bool


def of_ordering(ordering: Any) -> OrderingCapabilities:
    """What an ordering says of itself; one that does not say how often it is asked is asked at every pass.

    Raises
    ------
    PolicyError
        When it says something else than how often there is.
    """
    changes: Changes = getattr(ordering, "changes", "pass")
    if changes not in _CHANGES:
        raise PolicyError(f"{name_of(ordering)} changes {changes!r}; expected one of {', '.join(_CHANGES)}")
    pick, keep, group = (hasattr(ordering, name) for name in ("pick", "keep", "group"))
    return OrderingCapabilities(changes, pick, bool(getattr(ordering, "hold", False)), keep, group)


def scope_of(ordering: Any) -> Literal["cluster", "grid"]:
    """Whether the order depends on other clusters too."""
    return "grid" if getattr(ordering, "scope", "cluster") == "grid" else "cluster"


def begin(part: Any, rng: Generator) -> None:
    """Tell a part of a policy of a new run, where it wants to know."""
    if hasattr(part, "setup"):
        part.setup(rng)


def blocks(rule: Any) -> bool:
    """Whether a reservation rule lets nobody pass."""
    return bool(getattr(rule, "blocking", False))


def keeps_holders(rule: Any) -> bool:
    """Whether who holds a promise by a reservation rule keeps it until it starts."""
    return bool(getattr(rule, "holders", "fresh") != "fresh")


def fixes_sizes(partition: Any) -> bool:
    """Whether every job gets the cores that it asks for."""
    return bool(getattr(partition, "fixed", False))


def knows_runtimes(predictor: Any) -> bool:
    """Whether a predictor is told true run times."""
    return bool(getattr(predictor, "oracle", False))


def is_own(part: Any) -> bool:
    """Whether a part is of a class of gridsim itself, not one of a plain file or derived there."""
    return type(part).__module__.startswith("gridsim.")


def asked_once(ordering: Any) -> bool:
    """Whether an ordering of gridsim's own, or none, ranks each request by what is known of it from the beginning."""
    return ordering is None or (is_own(ordering) and of_ordering(ordering).changes == "static")


def ages(ordering: Any) -> bool:
    """Whether an ordering is one of gridsim's own by waits (`gridsim.policy.ordering.Ageing`), which are compiled."""
    return hasattr(ordering, "terms") and is_own(ordering)


def draws_alone(ordering: Any) -> bool:
    """Whether an ordering is gridsim's own that draws the next request by nothing else, which is compiled."""
    return hasattr(ordering, "stream") and is_own(ordering)


def counts_in_columns(ordering: Any) -> bool:
    """Whether an ordering is gridsim's own by shares, whose keys are a weight times what is in use; once it is set up.

    That is compiled.
    """
    return getattr(ordering, "column", None) is not None and is_own(ordering)


def predicts_in_columns(predictor: Any) -> bool:
    """Whether a predictor is one of gridsim's own, which are compiled and learn in columns."""
    return hasattr(predictor, "histories") and is_own(predictor)


def corrects_by_rule(corrector: Any) -> bool:
    """Whether a corrector is one of gridsim's own, whose rules are compiled."""
    return hasattr(corrector, "rule") and is_own(corrector)


def shifts_left(admission: Any) -> bool:
    """Whether an admission leaves no single waiting request that could start earlier."""
    return bool(getattr(admission, "left_shifted", False))


def on_nodes(admission: Any) -> bool:
    """Whether an admission searches where requests ask for several resources, too; one around another as that does."""
    inner = getattr(admission, "inner", None)
    return bool(getattr(admission, "vectors", False)) if inner is None else on_nodes(inner)


def scores_in_columns(rule: Any) -> bool:
    """Whether a placement rule is compiled: gridsim's own columns, and no scores that a plug-in defines instead."""
    columns = getattr(type(rule), "columns", None)
    return getattr(columns, "__module__", "").startswith("gridsim.") and not hasattr(rule, "scores")


def limits_in_columns(partition: Any) -> bool:
    """Whether a partition is one of gridsim's own, whose limits are compiled."""
    return hasattr(partition, "columns") and is_own(partition)


def picks_gpus(rule: Any) -> bool:
    """Whether a placement rule says which GPU of a node a share goes to."""
    return hasattr(rule, "gpu")


def search_of(admission: Any) -> Any:
    """The admission that is asked for deadlines which the system sets itself: the inner one, where there is one."""
    return getattr(admission, "inner", admission)


def compares_quotes(balancer: Any) -> bool:
    """Whether a balancer asks clusters for quotes."""
    return bool(getattr(balancer, "quotes", False))


# -- the earlier form ------------------------------------------------------------------------------------------------


def adapted(scheduler: Any) -> Any:
    """The scheduler; one in the earlier form as one that answers decisions.

    Warns
    -----
    DeprecationWarning
        For the earlier form, which is to go with the next release but one.
    """
    if first_of(scheduler, "wake", "leaving", "stopped") is None:
        return scheduler
    warnings.warn(
        f"{name_of(scheduler)} has wake, leaving or stopped; dispatch is to return a Decision(starts, stops, "
        "withdrawals, wake) instead, and commit the stops of the request it takes in",
        DeprecationWarning,
        stacklevel=2,
    )
    return Earlier(scheduler)


class Earlier:
    """A scheduler of the earlier form: `dispatch` answers requests, and three more methods what else is decided.

    Parameters
    ----------
    inner : object
        The scheduler. Of ``leaving(now)`` (asked before `dispatch`), ``stopped()`` (after it) and ``wake(now)`` it
        may have any; the kills of an offer that it makes happen when its quote is committed.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def capabilities(self) -> Capabilities:
        """What the inner scheduler can do."""
        return capabilities_of(self._inner)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Begin a run."""
        self._inner.setup(cluster, rng)

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Take the request in; who gives way to it waits again."""
        self._inner.commit(quote, now)
        return [Stop(victim, "requeue", quote.request) for victim in quote.offer.kills] if quote.offer else ()

    def dispatch(self, now: int) -> Decision:
        """What the methods of the inner scheduler answer, together."""
        inner = self._inner
        withdrawn = inner.leaving(now) if hasattr(inner, "leaving") else ()
        started = starts_of(inner.dispatch(now))
        stopped = inner.stopped() if hasattr(inner, "stopped") else ()
        stops = [Stop(request, "requeue" if again else "cancel", *by) for request, again, *by in stopped]
        return Decision(started, stops, withdrawn, *((inner.wake(now),) if hasattr(inner, "wake") else ()))
