"""The smallest machine that halves what users wait, found by trying."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gridsim.errors import InputError
from gridsim.metrics.summary import metrics
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import nodes_to
from gridsim.questions.changes import Change, sized
from gridsim.questions.whatif import record_under
from gridsim.workers import Awaited, Workers, crew

__all__ = ["cores_for"]

_FINEST = 0.01
"""Part of the machine in whose steps its size is searched where nobody says how large a node is."""

_LARGEST = 64
"""Times the machine up to which a size is searched."""


def cores_for(
    workload: Workload,
    platform: Platform,
    *,
    part: float = 0.5,
    metric: str = "wait_mean",
    node: int | None = None,
    policy: Any = "easy",
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Change:
    """The smallest machine, in steps of a node, on which a number is at most a part of what it is now.

    Parameters
    ----------
    part : float
        Above 0 and below 1: 0.5 halves it.
    metric : str
        Of `gridsim.metrics.summary.METRICS`, one of which less is better.
    node : int, optional
        Cores that are added at a time; where left out, those of a node of a policy that knows its nodes, else a
        hundredth of the machine.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate: sizes that may be asked for next are tried beside those that are. The answer is the
        same with any number.

    Raises
    ------
    InputError
        When the number is 0 already or not known, when no machine up to 64 times as large is enough, and when *node*
        is no whole number of the nodes of the policy.

    Notes
    -----
    The size is found by doubling what is added and then halving the gap: on most logs waits fall as the machine grows,
    though not always from one step to the next.
    """
    options = options or Run()
    if not 0 < part < 1:
        raise InputError(f"a part of {part:g}; expected one above 0 and below 1", field="part")
    if node is not None and node < 1:
        raise InputError(f"{node} cores; expected 1 or more to add at a time", field="node")
    asked = [make_policy(policy)]
    known = nodes_to(asked, platform.cores)
    if known is not None and node is not None and node % known.each:
        raise InputError(f"{node} cores at a time; the nodes of the site have {known.each}", field="node")
    step = node or (max(1, round(platform.cores * _FINEST)) if known is None else known.each)

    def tried(more: int, workers: Workers) -> Awaited[float]:
        change = sized(workload, platform, platform.cores + more * step, asked)
        told = None if progress is None else partial(progress, change.label)
        what = (change.workload, change.platform, policy, options, metric)
        return workers.submit(_value, *what, name="the policy", progress=told)

    with crew(workers, share=[workload]) as team:
        trials = _Trials(partial(tried, workers=team), team.count, _LARGEST * platform.cores // step)
        wanted = trials.value(0, [1, 2]) * part
        if not wanted > 0:
            why = "is 0 on the machine as it is; nothing is left to gain"
            why = why if wanted == 0 else "is not known on this machine"
            raise InputError(f"{metric} {why}", field="metric")
        more = _least(trials, wanted)
        if more is None:
            raise InputError(
                f"{metric} does not fall to {part:g} of what it is on any machine up to {_LARGEST} times as large"
            )
        return sized(workload, platform, platform.cores + more * step, asked)


@dataclass
class _Trials:
    """Values of machines of so many steps more, each simulated once; with several workers some of the next in advance.

    Attributes
    ----------
    begin : callable
        Has a machine simulated.
    workers : int
        How many are simulated at once.
    most : int
        Steps beyond which nothing is tried.
    """

    begin: Callable[[int], Awaited[float]]
    workers: int
    most: int
    _known: dict[int, Awaited[float]] = field(default_factory=dict)

    def value(self, more: int, then: Iterable[int]) -> float:
        """The value; *then* are those that may be asked for next, the likelier first."""
        later = [steps for steps in then if 0 < steps <= self.most]
        for steps in [more, *later][: self.workers]:
            if steps not in self._known:
                self._known[steps] = self.begin(steps)
        return self._known[more].result()


def _least(trials: _Trials, wanted: float) -> int | None:
    """The fewest steps by which a value is no more than is wanted; None where it is not up to the most of them."""
    low, more = 0, 1
    while trials.value(more, [2 * more, 4 * more]) > wanted:
        low, more = more, 2 * more
        if more > trials.most:
            return None
    while more - low > 1:
        middle = (low + more) // 2
        next_two = [(low + middle) // 2, (middle + more) // 2]
        low, more = (middle, more) if trials.value(middle, next_two) > wanted else (low, middle)
    return more


def _value(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run,
    metric: str,
    progress: Callable[[int], None] | None = None,
) -> float:
    return metrics(record_under(workload, platform, policy, options, progress))[metric]
