"""User, account and QOS of a queue entry."""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """Owner of an entry: account, user, QOS, QOS of its partition; array and its task limit, -1 for none."""

    account: str
    user: str
    qos: str
    partition_qos: str = ""
    array: int = -1
    array_limit: int = -1
