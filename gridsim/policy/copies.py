"""Copies of policies, one per cluster of a run; policies may contain locks and queues."""

from __future__ import annotations

import copy
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gridsim.errors import GridsimError, policy_error

_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type)


def per_cluster_copy(policy: Any) -> Any:
    """Return an independent copy of a policy, which shares no mutable state with it.

    Locks of the copy are new and open. Queues, conditions and events based on them are new too and have copies of the
    contents.

    Raises
    ------
    PolicyError
        For a part that cannot be copied, such as an open file; the message contains its path in the policy.

    Examples
    --------
    >>> waiting = queue.Queue()
    >>> waiting.put("a job")
    >>> per_cluster_copy([waiting])[0].get(), waiting.qsize()
    ('a job', 1)
    """
    try:
        return copy.deepcopy(policy)
    except GridsimError:
        raise
    except Exception:  # deepcopy reports locks with pickle's errors
        memo = _renewed(policy)
    try:
        return copy.deepcopy(policy, dict(memo))
    except GridsimError:
        raise
    except Exception as error:
        where, part = _culprit(policy, type(policy).__name__, memo)
        raise policy_error(
            policy,
            f"cannot be copied, but every cluster of a run needs a separate copy: {where} is a "
            f"{type(part).__name__} ({error}); create it in setup, or give its class a __deepcopy__",
        ) from error


def _renewed(policy: Any) -> dict[int, Any]:
    """Return new locks, and new objects that contain locks, by the identity of the old ones."""
    memo: dict[int, Any] = {}
    parts = list(_parts(policy))
    for part in parts:
        if isinstance(part, _LOCKS):
            memo[id(part)] = type(part)() if isinstance(part, _LOCKS[1]) else threading.Lock()
        elif isinstance(part, threading.local):
            memo[id(part)] = type(part)()
    for part in parts:
        if isinstance(part, threading.Condition):
            memo[id(part)] = threading.Condition(memo.get(id(vars(part)["_lock"])))
        elif isinstance(part, queue.SimpleQueue):
            memo[id(part)] = _second(part)
    memo[id(memo)] = parts  # keeps the objects alive, so that their identities stay valid
    return memo


def _second(held: queue.SimpleQueue[Any]) -> queue.SimpleQueue[Any]:
    """Return a queue with copies of another queue's entries, which are accessible only by removing them."""
    other: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(held.qsize()):
        entry = held.get_nowait()
        held.put(entry)
        other.put(copy.deepcopy(entry))
    return other


def _parts(policy: Any) -> Iterator[Any]:
    """Yield every object that a policy refers to, once."""
    seen, left = set[int](), deque([policy])
    while left:
        part = left.popleft()
        if id(part) not in seen and not isinstance(part, _ATOMS):
            seen.add(id(part))
            yield part
            left.extend(value for _, value in _members(part))


def _members(part: Any) -> Iterable[tuple[str, Any]]:
    """Yield attributes and entries of an object, each with its suffix in an expression."""
    if isinstance(part, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in list(part.items()))
    elif isinstance(part, list | tuple | set | frozenset | deque):
        yield from ((f"[{place}]", value) for place, value in enumerate(list(part)))
    else:
        slots = (name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(part, name))
        names = dict.fromkeys([*getattr(part, "__dict__", {}), *slots])
        yield from ((f".{name}", getattr(part, name)) for name in names if name != "__dict__")


def _culprit(part: Any, name: str, memo: dict[int, Any]) -> tuple[str, Any]:
    """Return the innermost part that cannot be copied, and its path."""
    for written, value in _members(part):
        try:
            copy.deepcopy(value, dict(memo))
        except Exception:
            return _culprit(value, name + written, memo)
    return name, part
