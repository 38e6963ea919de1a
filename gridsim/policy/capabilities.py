"""What a policy can do: as it declares it, or as a plain file shows it when it is looked at, once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from numpy.random import Generator

from gridsim.policy.protocols import Capabilities, Decision, Quote, Stop, starts_of, told
from gridsim.policy.queue import ClusterView

__all__ = ["Earlier", "adapted", "capabilities_of"]


def capabilities_of(scheduler: Any) -> Capabilities:
    """What a scheduler can do: what it declares, or what those of the earlier form show by the methods that they have.

    Examples
    --------
    >>> from gridsim.policy.scheduler.backfilling import Backfilling
    >>> capabilities_of(Backfilling()).withdraws
    False
    """
    declared = getattr(scheduler, "capabilities", None)
    return declared if isinstance(declared, Capabilities) else Capabilities(withdraws=hasattr(scheduler, "leaving"))


def adapted(scheduler: Any) -> Any:
    """The scheduler; one in the earlier form as one that answers decisions.

    Warns
    -----
    DeprecationWarning
        For the earlier form, which is to go with the next release but one.
    """
    if not any(hasattr(scheduler, name) for name in ("wake", "leaving", "stopped")):
        return scheduler
    warnings.warn(
        f"{told(scheduler)} has wake, leaving or stopped; dispatch is to return a Decision(starts, stops, withdrawals, "
        "wake) instead, and commit the stops of the request it takes in",
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
