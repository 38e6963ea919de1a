"""Progress of jobs over several runs: work that is saved, checkpoints, restarts, and what a later run requests."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from gridsim.entities.outcome import Outcome
from gridsim.model.checkpoints import LABELS, Checkpoints, Stretch
from gridsim.model.time import MICROSECOND, NEVER, to_us
from gridsim.policy.queue import Requests


class Progress:
    """Runs of requests with checkpoints; `Outcome.runtime` contains the duration of the present run of each request.

    Parameters
    ----------
    options : Checkpoints
        Interval, costs, and what later runs request.
    mtbf : float
        Mean time between failures of one node, s; infinite without failures.
    tick : int
        Unit of the formulas for the interval, whole microseconds.
    """

    def __init__(self, requests: Requests, outcome: Outcome, options: Checkpoints, mtbf: float, tick: int) -> None:
        self._requests, self._outcome, self._options = requests, outcome, options
        self._mtbf, self._tick = (mtbf if options.mtbf is None else options.mtbf) * MICROSECOND, tick
        self._defaults = [to_us(value) for value in (options.cost, options.restart)]
        self._before = NEVER if options.save_before is None else to_us(options.save_before)
        self._runs: dict[int, Stretch] = {}
        self._share: dict[int, Fraction] = defaultdict(Fraction)  # of the run time that is saved
        self._spent: dict[int, int] = defaultdict(int)  # saved work and checkpoints since the last save at a walltime
        self._estimates: dict[int, int] = {}

    def begin(self, request: int, requested: int, nodes: int) -> None:
        """Begin a run on a number of nodes that may last as long as *requested*, whole microseconds."""
        outcome, options = self._outcome, self._options
        full = outcome.full(request)
        cost, restart = (self._own(at, request, default) for at, default in enumerate(self._defaults, 1))
        interval = self._own(0, request, -1) or NEVER
        if interval < 0:
            interval = options.interval_us(cost, self._mtbf / nodes, self._tick)
        work = full - round(self._share[request] * full) if request in self._share else full
        run = options.stretch(work, interval, cost, restart if request in self._requests.earlier else 0)
        leaves = requested - self._own(3, request, self._before)
        if run.length > requested and run.worked(leaves) > 0:
            run = run._replace(save=leaves)
        self._runs[request] = run
        outcome.runtime[request] = run.length

    def _own(self, label: int, request: int, default: int) -> int:
        """Return the value of a request, or the default of the run."""
        own = self._requests.own(LABELS[label], request, -1)
        return default if own < 0 else own * MICROSECOND

    def saves(self, request: int, passed: int) -> bool:
        """Return whether a run that ends after this time has saved all its work in order to leave."""
        run = self._runs[request]
        return run.save < NEVER and passed >= run.length

    def lost(self, request: int, passed: int) -> int:
        """Return the time that a run would lose if it was stopped *passed* after its start, whole microseconds."""
        kept = self._runs[request].after(passed)
        return passed - kept.restart - kept.work - kept.writing

    def cost(self, request: int) -> int | None:
        """Return the duration of a checkpoint of a running request; None for one without checkpoints."""
        if self._runs[request].interval >= NEVER and self._own(3, request, self._before) >= NEVER:
            return None
        return self._own(1, request, self._defaults[0])

    def leave(self, request: int, passed: int) -> int | None:
        """Let a run write a last checkpoint from now on; return its duration, None for a job without checkpoints."""
        if self.cost(request) is None:
            return None
        run = self._runs[request]
        if run.save > passed:
            self._runs[request] = run = run._replace(save=passed)
            self._outcome.runtime[request] = run.length
        return run.length - passed

    def end(self, request: int, began: int, passed: int, *, again: bool) -> None:
        """Record what a run of this duration has kept, and whether the request will run *again*."""
        run = self._runs.pop(request)
        kept, full = run.after(passed), self._outcome.full(request)
        assert self._outcome.kept is not None
        self._outcome.kept.append((request, began, *kept))
        if not again:
            return
        self._share[request] += Fraction(kept.work, max(full, 1))
        self._spent[request] += kept.work + kept.writing
        learnt, _ = self._requests.earlier.get(request, (0, 0))
        self._requests.earlier[request] = (learnt + kept.restart + kept.work + kept.writing, 0)

    def request_again(self, request: int, *, saved: bool) -> None:
        """Set what the next run requests, after the scheduler knows that the previous one has ended."""
        if saved:  # its user submits it again, with the same estimate
            self._spent[request] = 0
        if self._options.requeue_estimate == "original":
            return
        requests = self._requests
        estimate = self._estimates.setdefault(request, int(requests.estimate[request]))
        left = 0 if saved else self._spent[request] - self._own(2, request, self._defaults[1])
        requests.earlier[request] = (requests.earlier[request][0], left)
        requests.ask(request, max(1, estimate - left))
