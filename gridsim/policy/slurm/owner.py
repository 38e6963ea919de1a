"""Whose an entry of the queue is."""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """Whose a request is: account, user, QOS, QOS of its partition; array and its throttle, -1 for none."""

    account: str
    user: str
    qos: str
    partition_qos: str = ""
    array: int = -1
    array_limit: int = -1
