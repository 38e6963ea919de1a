"""Capabilities of a policy: declared, or derived from the attributes of a user-defined class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from numpy.random import Generator

from gridsim.errors import name_of, policy_error
from gridsim.policy.protocols import Capabilities, Changes, Decision, Quote, Stop, starts_of
from gridsim.policy.queue import ClusterView

_CHANGES = get_args(Changes)


def is_variant(policy: Any) -> bool:
    """Return whether a policy is a variant of a site: keys of the site's files are changed."""
    return bool(getattr(policy, "changes", None))


def capabilities_of(scheduler: Any) -> Capabilities:
    """Return the capabilities of a scheduler: declared, or derived from its attributes.

    Examples
    --------
    >>> from gridsim.policy.scheduler.plan_based import Planned
    >>> can = capabilities_of(Planned())
    >>> can.plan, can.guarantees, can.effort
    (True, False, 10.0)
    """
    declared = getattr(scheduler, "capabilities", None)
    if isinstance(declared, Capabilities):
        return _with_more(_of_its_own(declared, scheduler), scheduler)
    partition = getattr(scheduler, "partition", None)
    has: dict[str, Any] = {name: hasattr(scheduler, name) for name in _MEMBERS} | {"notified": _notified(scheduler)}
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
    """Return the capabilities without compiled runs for user-defined subclasses and for wrappers of a scheduler.

    In a compiled run, their methods for single events would not be called.
    """
    has = hasattr(type(scheduler), "passes") or not declared.compiled
    return declared if is_own(scheduler) and has else replace(declared, compiled=frozenset(), in_python="")


def _with_more(declared: Capabilities, scheduler: Any) -> Capabilities:
    """Return the declared capabilities, and those that a user-defined subclass adds."""
    if is_own(scheduler):
        return declared
    more: dict[str, Any] = {name: True for name in _MEMBERS if not getattr(declared, name) and hasattr(scheduler, name)}
    if notified := _notified(scheduler) - declared.notified:
        more["notified"] = declared.notified | notified
    return replace(declared, **more) if more else declared


_MEMBERS = ("plan", "expected_starts", "reasons", "alone", "epoch", "site")


def _notified(scheduler: Any) -> frozenset[Any]:
    """Return the methods for what is no job that a scheduler has."""
    return frozenset(name for name in ("held", "capacity_changed", "requeue_rule") if hasattr(scheduler, name))


def _guarantees(scheduler: Any) -> bool:
    """Return whether a user-defined scheduler guarantees deadlines; it must then have the methods for that."""
    found = bool(getattr(scheduler, "guarantees", False))
    missing = [name for name in ("promise", "declined", "broken") if not hasattr(scheduler, name)]
    if found and missing:
        raise policy_error(scheduler, f"guarantees deadlines without {', '.join(missing)}")
    return found


def takes_running(scheduler: Any) -> bool:
    """Return whether a scheduler can begin a run with requests that run already (its method ``held``)."""
    return "held" in capabilities_of(scheduler).notified or (is_own(scheduler) and hasattr(type(scheduler), "held"))


def first_of(policy: Any, *methods: str) -> str | None:
    """Return the first of these methods that a policy has, which determines its kind; None if it has none of them."""
    return next((method for method in methods if hasattr(policy, method)), None)


def attribute_of(policy: Any, name: str, default: Any = None) -> Any:
    """Return an attribute that only some schedulers of gridsim have; a default for all others."""
    return getattr(policy, name, default)


# -- parts: capabilities from attributes, which all have defaults -----------------------------------------------------


class OrderingCapabilities(NamedTuple):
    """Capabilities of an ordering.

    Attributes
    ----------
    changes : str
        When ranks are computed again.
    pick, hold : bool
        Whether it picks the next request itself, and whether a request that does not fit stays the next one.
    keep, group : bool
        Whether it records usage by share, and whether it orders groups of requests.
    """

    changes: Changes
    pick: bool
    hold: bool
    keep: bool
    group: bool


def of_ordering(ordering: Any) -> OrderingCapabilities:
    """Return the capabilities of an ordering; without ``changes`` its ranks are computed at every scheduling cycle.

    Raises
    ------
    PolicyError
        For an unknown value of ``changes``.
    """
    changes: Changes = getattr(ordering, "changes", "pass")
    if changes not in _CHANGES:
        raise policy_error(ordering, f"changes {changes!r}; expected one of {', '.join(_CHANGES)}")
    pick, keep, group = (hasattr(ordering, name) for name in ("pick", "keep", "group"))
    return OrderingCapabilities(changes, pick, bool(getattr(ordering, "hold", False)), keep, group)


def scope_of(ordering: Any) -> Literal["cluster", "grid"]:
    """Return ``grid`` if the order depends on other clusters too."""
    return "grid" if getattr(ordering, "scope", "cluster") == "grid" else "cluster"


def begin(part: Any, rng: Generator) -> None:
    """Call the `setup` of a part of a policy at the start of a run, if it has one."""
    if hasattr(part, "setup"):
        part.setup(rng)


def blocks(rule: Any) -> bool:
    """Return whether a reservation rule forbids backfilling."""
    return bool(getattr(rule, "blocking", False))


def keeps_holders(rule: Any) -> bool:
    """Return whether a request with a reservation keeps it until it starts."""
    return bool(getattr(rule, "holders", "fresh") != "fresh")


def fixes_sizes(partition: Any) -> bool:
    """Return whether every job gets its requested cores."""
    return bool(getattr(partition, "fixed", False))


def uses_run_times(predictor: Any) -> bool:
    """Return whether a predictor uses true run times."""
    return bool(getattr(predictor, "oracle", False))


def is_own(part: Any) -> bool:
    """Return whether a part, and what it wraps, has a class of gridsim, not a user-defined class or subclass."""
    return is_own(part._inner) if isinstance(part, Wrapper) else type(part).__module__.startswith("gridsim.")


def is_static(ordering: Any) -> bool:
    """Return whether an ordering is None or a static one of gridsim: its ranks depend on initial data only."""
    return ordering is None or (is_own(ordering) and of_ordering(ordering).changes == "static")


def ages(ordering: Any) -> bool:
    """Return whether an ordering is one of gridsim by waits (`gridsim.policy.ordering.Ageing`), which are compiled."""
    return hasattr(ordering, "terms") and is_own(ordering)


def draws_alone(ordering: Any) -> bool:
    """Return whether an ordering is one of gridsim that draws the next request at random only, which is compiled."""
    return hasattr(ordering, "stream") and is_own(ordering)


def counts_in_columns(ordering: Any) -> bool:
    """Return whether an ordering is one of gridsim by shares, with keys weight times cores in use; valid after `keep`.

    Such orderings are compiled.
    """
    return getattr(ordering, "column", None) is not None and is_own(ordering)


def predicts_in_columns(predictor: Any) -> bool:
    """Return whether a predictor is one of gridsim, which are compiled and learn in columns."""
    return hasattr(predictor, "histories") and is_own(predictor)


def corrects_by_rule(corrector: Any) -> bool:
    """Return whether a corrector is one of gridsim, whose rules are compiled."""
    return hasattr(corrector, "rule") and is_own(corrector)


def shifts_left(admission: Any) -> bool:
    """Return whether an admission leaves no waiting request that alone could start earlier."""
    return bool(getattr(admission, "left_shifted", False))


def on_nodes(admission: Any) -> bool:
    """Return whether an admission, or the inner one of a wrapper, supports demands for several resources."""
    inner = getattr(admission, "inner", None)
    return bool(getattr(admission, "vectors", False)) if inner is None else on_nodes(inner)


def scores_in_columns(rule: Any) -> bool:
    """Return whether a placement rule is compiled: it has columns of gridsim, and no user-defined scores."""
    columns = getattr(type(rule), "columns", None)
    return getattr(columns, "__module__", "").startswith("gridsim.") and not hasattr(rule, "scores")


def limits_in_columns(partition: Any) -> bool:
    """Return whether a partition is one of gridsim, whose limits are compiled."""
    return hasattr(partition, "columns") and is_own(partition)


def picks_gpus(rule: Any) -> bool:
    """Return whether a placement rule chooses the GPU of a node for a share."""
    return hasattr(rule, "gpu")


def search_of(admission: Any) -> Any:
    """Return the admission that evaluates deadlines set by the system: the inner one, if any."""
    return getattr(admission, "inner", admission)


def compares_quotes(balancer: Any) -> bool:
    """Return whether a balancer requests quotes from clusters."""
    return bool(getattr(balancer, "quotes", False))


# -- deprecated interface --------------------------------------------------------------------------------------------


def adapted(scheduler: Any) -> Any:
    """Return the scheduler; with the deprecated interface, wrapped as one that returns decisions.

    Warns
    -----
    DeprecationWarning
        For the deprecated interface, which will be removed in the release after the next one.
    """
    if first_of(scheduler, "wake", "leaving", "stopped") is None:
        return scheduler
    warnings.warn(
        f"{name_of(scheduler)} has wake, leaving or stopped; dispatch must return a Decision(starts, stops, "
        f"withdrawals, wake) instead, and commit must return the stops for the accepted request",
        DeprecationWarning,
        stacklevel=2,
    )
    return Earlier(scheduler)


class Wrapper:
    """Scheduler around another one, which has all attributes of the inner one that it does not define.

    Parameters
    ----------
    inner : object
        The scheduler.
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
        """Capabilities of the inner scheduler."""
        return capabilities_of(self._inner)

    def setup(self, cluster: ClusterView, rng: Generator) -> None:
        """Initialise the inner scheduler for a run."""
        self._inner.setup(cluster, rng)


class Earlier(Wrapper):
    """Adapter for the deprecated interface: `dispatch` returns requests, and three other methods the other decisions.

    Parameters
    ----------
    inner : object
        The scheduler. It may have any of ``leaving(now)`` (called before `dispatch`), ``stopped()`` (after it) and
        ``wake(now)``. The kills of its offer are carried out when the quote is committed.
    """

    def commit(self, quote: Quote, now: int) -> Sequence[Stop]:
        """Admit the request; requests that are stopped for it are queued again."""
        self._inner.commit(quote, now)
        return [Stop(victim, "requeue", quote.request) for victim in quote.offer.kills] if quote.offer else ()

    def dispatch(self, now: int) -> Decision:
        """Return the decision from the methods of the inner scheduler."""
        inner = self._inner
        withdrawn = inner.leaving(now) if hasattr(inner, "leaving") else ()
        started = starts_of(inner.dispatch(now))
        stopped = inner.stopped() if hasattr(inner, "stopped") else ()
        stops = [Stop(request, "requeue" if again else "cancel", *by) for request, again, *by in stopped]
        return Decision(started, stops, withdrawn, *((inner.wake(now),) if hasattr(inner, "wake") else ()))
