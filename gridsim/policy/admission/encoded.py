"""Admissions as numbers, for decisions that are compiled as a whole (`gridsim.policy.admission.deciding`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsim.model.exact import exact
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.admission import deciding
from gridsim.policy.admission.feedback import Feedback
from gridsim.policy.admission.heuristics import AscendingScheduledTime
from gridsim.policy.admission.mrt import MRT
from gridsim.policy.admission.msb import MSB
from gridsim.policy.admission.price import PRICES
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.restart import Restart
from gridsim.policy.capabilities import search_of
from gridsim.policy.ordering import EarliestDeadline, Fifo, LeastLaxity
from gridsim.policy.protocols import name_of

__all__ = ["numbers_of", "why_not"]

_ORDERS: dict[type, int] = {
    LeastLaxity: deciding.LAXITY,
    EarliestDeadline: deciding.DEADLINE,
    Fifo: deciding.ARRIVAL,
    AscendingScheduledTime: deciding.PLANNED,
}

_FINEST = 10_000
"""Most parts of a slack factor as a fraction: products of finer ones may not fit into 64 bits."""


def why_not(admission: Any) -> str:
    """Why the decisions of an admission are not compiled; empty where they are."""
    search = search_of(admission) if type(admission) in (Feedback, Restart) else admission
    if type(search) not in (QoPS, MSB, MRT):
        return f"{name_of(search)} searches in Python"
    if type(_order(search)) not in _ORDERS:
        return f"{name_of(_order(search))} is asked for each decision"
    if type(admission) is Feedback and exact(admission.slack_factor, "slack_factor").numerator > _FINEST:
        return f"the slack factor {admission.slack_factor} is too fine"
    return ""


def _order(search: Any) -> Any:
    return search.order if isinstance(search, MSB) else search.heuristic


def numbers_of(admission: Any, *, loosen: bool, tick: int) -> IntArray:
    """The numbers of an admission that `why_not` says nothing against: ``how`` of the compiled decisions.

    Parameters
    ----------
    loosen : bool
        Whether artificial deadlines are loosened until the job, appended to the plan, meets them.
    tick : int
        Unit of offered deadlines, whole microseconds.
    """
    how: IntArray = np.zeros(deciding.NUMBERS, dtype=np.int64)
    how[deciding.LOOSEN], how[deciding.TICK] = loosen, tick
    search = admission
    if isinstance(admission, Feedback | Restart):
        search, most = admission.inner, admission.max_kills
        how[deciding.MOST_KILLS] = NEVER if most is None else most
        how[deciding.KILLS] = isinstance(admission, Restart) or admission.kill_restart
    if isinstance(admission, Feedback):
        slack = exact(admission.slack_factor, "slack_factor")
        how[deciding.FEEDBACK], how[deciding.RETRIES] = True, admission.retry_count
        how[deciding.SLACK], how[deciding.SLACK_OF] = slack.numerator, slack.denominator
    how[deciding.ORDER] = _ORDERS[type(_order(search))]
    if isinstance(search, QoPS):
        price = PRICES.index(search.price) if search.slots == "best" else -1
        slots = search.slots == "first-slot-only", search.insertion == "first", search.append_slot
        how[deciding.SEARCH], how[deciding.PARAMETERS] = deciding.BY_SLOTS, (search.k_factor, *slots, price)
    elif isinstance(search, MSB):
        keeps = how[deciding.ORDER] == deciding.PLANNED
        how[deciding.SEARCH], how[deciding.PARAMETERS] = deciding.CHEAPEST, (keeps, PRICES.index(search.price), 0, 0, 0)
    else:
        window = NEVER if search.window is None else search.window
        parameters = (search.backtracks, window, not search.hole_filling, 0, 0)
        how[deciding.SEARCH], how[deciding.PARAMETERS] = deciding.DEPTH_FIRST, parameters
    return how
