"""Usage resets (slurm.conf(5), ``PriorityUsageResetPeriod``)."""

from __future__ import annotations

from datetime import datetime, timedelta

from gridsim.model.site_file import SiteClock

SECOND = 1_000_000


def last_reset(period: str, at: int, clock: SiteClock) -> int:
    """Return the last usage reset up to *at*; whole microseconds.

    "DAILY: cleared every day at midnight. WEEKLY: every week on Sunday at time 00:00. MONTHLY: on the first day of each
    month", and so on with the quarters and the years.

    Parameters
    ----------
    period : str
        One of these.
    at : int
        Instant, whole microseconds of the simulation.
    clock : SiteClock
        Start of the simulation, and time zone of the site.

    Examples
    --------
    >>> day = 86_400 * SECOND
    >>> [last_reset(each, 40 * day, SiteClock(epoch=0)) // day for each in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")]
    [40, 38, 31, 0]
    """
    assert clock.epoch is not None
    now = datetime.fromtimestamp(at / SECOND + clock.epoch, clock.zone())
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "WEEKLY":
        day -= timedelta(days=(day.weekday() + 1) % 7)
    elif period == "MONTHLY":
        day = day.replace(day=1)
    elif period == "QUARTERLY":
        day = day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
    elif period == "YEARLY":
        day = day.replace(day=1, month=1)
    return round((day.timestamp() - clock.epoch) * SECOND)
