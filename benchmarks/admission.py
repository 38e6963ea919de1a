"""Cost of an admission decision by number of waiting jobs: compiled, plain, and without optimisations.

Each state is a full machine whose waiting jobs have a feasible plan. New jobs with tight deadlines arrive one at a time
and are decided on; the state does not change. With a log, also CPU seconds of whole runs on both engines: 5,000 jobs,
load 1.6 by duplication, deadlines of stringency 0.2, compared with a bare SimPy run of the same jobs.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numba import njit
from policies import bare

import gridsim as gs
from gridsim.engine.setup import Engine
from gridsim.machine.blocks import earliest, reserve
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.admission import trial
from gridsim.policy.admission.mrt import MRT
from gridsim.policy.admission.msb import MSB
from gridsim.policy.admission.plan import Plan, Search
from gridsim.policy.admission.qops import QoPS
from gridsim.policy.admission.trial import term
from gridsim.policy.queue import Requests
from gridsim.testing import admission_oracle
from gridsim.testing.oracle import jobs_of

CORES = 430
NEWCOMERS = 40
PLAIN_UP_TO = 30
"""Maximum number of waiting jobs for the plain version."""


@njit(cache=True)
def msb_from_scratch(times, free, size, cores, estimate, due, submit, planned, exits):  # type: ignore[no-untyped-def]
    """MSB (price slack) that builds every candidate from the running jobs on; with *exits* it stops early.

    Returns the best price and the number of placed jobs.
    """
    new = cores.shape[0] - 1
    best, placed = np.inf, 0
    later, later_free = np.empty_like(times), np.empty_like(free)
    for place in range(new + 1):
        later[:size], later_free[:size] = times[:size], free[:size]
        later_size, cost, works = size, 0.0, True
        for i in range(new + 1):
            job = i if i < place else new if i == place else i - 1
            if i < place:
                start = planned[job]
            else:
                start = earliest(later, later_free, later_size, cores[job], estimate[job])
                placed += 1
            if start + estimate[job] > due[job]:
                works = False
                if exits:
                    break
            else:
                cost += term(0, start, planned[job], cores[job], estimate[job], due[job], submit[job])
            if exits and cost >= best * (1 - 1e-9):
                works = False
                break
            later_size = reserve(later, later_free, later_size, start, start + estimate[job], cores[job])
        if works and cost < best * (1 - 1e-9):
            best = cost
    return best, placed


class State:
    """A full machine and *waiting* planned jobs with some slack in their guarantees; new jobs are behind them."""

    def __init__(self, waiting: int, seed: int) -> None:
        rng = stream(seed, "state", waiting)
        running = 60
        n = running + waiting + NEWCOMERS
        cores = np.minimum(np.exp(rng.uniform(0, np.log(65), n)).astype(np.int64), 64)
        estimate = np.ceil(np.exp(rng.uniform(np.log(60), np.log(64_800), n)))
        self.workload = Workload.from_columns(submit=np.arange(n), runtime=estimate, cores=cores)
        self.now = int(self.workload.submit[-1])
        requests = Requests(self.workload)
        self.plan = plan = Plan(requests, CORES)
        for row in range(running):
            if plan.earliest(row, 0) == 0:
                plan.reserve(row, 0)
        plan.due(0)
        self.waiting = range(running, running + waiting)
        for row in self.waiting:
            start = plan.earliest(row, self.now)
            plan.reserve(row, start)
            slack = rng.uniform(0, 0.3) * (start - int(requests.submit[row]))
            plan.granted[row] = start + int(requests.estimate[row]) + int(slack)
        self.new = [
            (row, int(requests.submit[row]) + int(1.2 * int(requests.estimate[row])) + int(rng.uniform(0, 2e10)))
            for row in range(running + waiting, n)
        ]

    def search(self, row: int, deadline: int) -> Search:
        """Return the search for a new job."""
        return self.plan.search(row, deadline, self.now)

    def view(self) -> tuple[admission_oracle.View, list[Any]]:
        """Return the same search for the plain version."""
        jobs = jobs_of(self.workload)
        requests, plan = self.plan.requests, self.plan
        for row in self.waiting:
            jobs[row].granted = int(plan.granted[row])
        ends = zip(plan.running().tolist(), plan.expected_ends().tolist(), strict=True)
        held = [(0, end, int(requests.cores[row])) for row, end in ends]
        planned = {jobs[row]: start for row, start in plan.starts().items()}
        return admission_oracle.View(self.now, CORES, held, planned), jobs


def per_decision(decide: Callable[[int, int], Any], new: list[tuple[int, int]]) -> float:
    """Return the CPU microseconds per decision; the first one, which may compile, is not counted."""
    decide(*new[0])
    begun = time.process_time()
    for row, deadline in new[1:]:
        decide(row, deadline)
    return 1e6 * (time.process_time() - begun) / (len(new) - 1)


def growth(counts: list[int], seed: int) -> None:
    """Print a row for each number of waiting jobs."""
    admissions: dict[str, Any] = {"qops": QoPS(), "msb": MSB(), "mrt": MRT()}
    plain = {"qops": admission_oracle.qops, "msb": admission_oracle.msb, "mrt": admission_oracle.mrt}
    print(f"CPU microseconds a decision on {CORES} cores, mean over {NEWCOMERS - 1} new jobs; taken: share taken in")
    print(f"{'waiting':>7} " + " ".join(f"{name:>9} {'taken':>5} {'plain':>10}" for name in admissions), end="")
    print(f" {'msb: no reuse':>14} {'nor exits':>10} {'placed':>9}")
    for waiting in counts:
        state = State(waiting, seed)
        cells = [f"{waiting:7}"]
        for name, admission in admissions.items():
            decide = functools.partial(admission.plan, plan=state.plan, now=state.now)
            spent = per_decision(decide, state.new)
            taken = np.mean([decide(*new) is not None for new in state.new])
            cells.append(f"{spent:9,.0f} {taken:5.2f} {_plain(state, plain[name], waiting):>10}")
        scratch = [functools.partial(_scratch, state, exits=exits) for exits in (True, False)]
        spent = [per_decision(decide, state.new) for decide in scratch]
        placed = np.mean([scratch[1](row, due)[1] for row, due in state.new])
        cells.append(f"{spent[0]:14,.0f} {spent[1]:10,.0f} {placed:9,.0f}")
        print(" ".join(cells), flush=True)


def _scratch(state: State, row: int, due: int, *, exits: bool) -> Any:
    search = state.search(row, due)
    columns = (search.cores, search.estimate, search.due, search.submit, search.planned)
    return msb_from_scratch(search.times, search.free, search.size, *columns, exits)


def _plain(state: State, decide: Callable[..., Any], waiting: int) -> str:
    if waiting > PLAIN_UP_TO:
        return "-"
    view, jobs = state.view()

    def one(row: int, due: int) -> Any:
        jobs[row].granted = due
        return decide(view, jobs[row])

    return f"{per_decision(one, state.new[:4]):,.0f}"


class Counted:
    """A trial that counts the placements of a published search, on the profile of one pool of cores."""

    one_pool = True

    def __init__(self, search: Search) -> None:
        self._pool, self.count = trial.pool_trial.py_func(tuple(search[:-2])), 0
        self.state, self.cost = self._pool.state, self._pool.cost

    def place_all(self, jobs: Any, *how: Any) -> int:
        laid = int(trial.place_all(self._pool, jobs, *how))
        self.count += min(laid + 1, len(jobs))
        return laid

    def all_in_time(self, jobs: Any, *how: Any) -> bool:
        """Place every remaining job, as in the published MRT, until one would be late."""
        one, works = self._pool, bool(trial.all_in_time(self._pool, jobs, *how))
        for job in jobs:
            self.count += 1
            start = earliest(one.later_times, one.later_free, one.state[trial.WORK], one.cores[job], one.estimate[job])
            if start + one.estimate[job] > one.due[job]:
                break
        return works

    @property
    def known(self) -> Any:
        """Times at which jobs can be placed; searches remove them."""
        return self._pool.known

    @property
    def starts(self) -> Any:
        """Starts of the placed jobs."""
        return self._pool.starts

    @property
    def estimate(self) -> Any:
        """Estimates of the jobs."""
        return self._pool.estimate


trial.place_all.register(Counted, Counted.place_all)
trial.all_in_time.register(Counted, Counted.all_in_time)
for each in (trial.keep_first, trial.take_off, trial.save):
    each.register(Counted, lambda counted, *how, each=each: each(counted._pool, *how))


def placements(state: State, admission: Any) -> float:
    """Return the mean number of placements of an admission: its search on a trial that counts."""
    count = 0

    class Asked:
        """A search that an admission runs on a trial that counts."""

        def __init__(self, search: Search) -> None:
            self.search = search

        def __getattr__(self, name: str) -> Any:
            return getattr(self.search, name)

        def run(self, loop: Any, *arguments: Any) -> None:
            nonlocal count
            counted = Counted(self.search)
            loop.py_func(counted, *arguments)
            count += counted.count

    plan, search = state.plan, state.plan.search
    with mock.patch.object(type(plan), "search", lambda _, *given: Asked(search(*given))):
        for row, deadline in state.new:
            admission.plan(row, deadline, plan, state.now)
    return count / len(state.new)


def cost(counts: list[int], seed: int, path: Path) -> None:
    """Write rows of the study: placements of each admission by number of waiting jobs, five states each.

    MSB and MRT make all placements of their papers; placements that gridsim avoids are counted, too.
    """
    from gridsim.files import write_text
    from gridsim_papers.deadline.campaign import TABLE

    counts_of: dict[str, Callable[[State], float]] = {
        "qops": lambda state: placements(state, QoPS()),
        "msb": lambda state: float(np.mean([_scratch(state, *new, exits=True)[1] for new in state.new])),
        "mrt": lambda state: placements(state, MRT()),
    }
    rows = []
    for waiting in counts:
        for stream_number in range(5):
            state = State(waiting, seed + stream_number)
            for scheme, count_of in counts_of.items():
                values = {"log": "cost", "window": stream_number, "stream": 0, "method": "", "load": float(waiting)}
                values |= {"stringency": 1.0, "fraction": 1.0, "tolerance": 1.0, "random_tolerance": False}
                values |= {"estimates": "exact", "scheme": scheme, "metric": "placements", "group": ""}
                rows.append(values | {"value": count_of(state)})
        print(waiting, {row["scheme"]: round(row["value"]) for row in rows[-3:]}, flush=True)
    write_text(path, TABLE.text(rows))


def runs(log: str, window: int, repeat: int) -> None:
    """Print a row for each policy: CPU seconds of whole runs."""
    from gridsim.scenario import transformed

    cores = gs.Platform.single(CORES)
    texts = [f"slice?window={window}&jobs=5000&origin=true", "exact-estimates", "duplicate?load=1.6", "deadlines"]
    workload = transformed(gs.read_workload(log), texts, platform=cores)
    asked = int((workload.deadline < NEVER).sum())
    print(f"\n{log.rpartition('/')[2]}, window {window}: {len(workload):,} jobs, {asked:,} with deadlines")
    print(f"{'policy':34} {'CPU s':>7} {'compiled':>9} {'over bare SimPy':>16} {'waiting: mean':>14}", end="")
    print(f" {'most':>5} {'refused':>8}")
    for policy in ("easy", "conservative", "qops", "msb", "mrt", "fqops", "fqops?kill_restart=true"):
        spent: dict[Engine, list[float]] = {"simpy": [], "compiled": []}
        floor = []
        for engine, times in spent.items():
            gs.simulate(workload.select(slice(0, 300)), platform=cores, policy=policy, engine=engine)
            for _ in range(repeat):
                begun = time.process_time()
                result = gs.simulate(workload, platform=cores, policy=policy, engine=engine)
                times.append(time.process_time() - begun)
        for _ in range(repeat):
            floor.append(bare(workload))
        numbers = result.metrics()
        print(
            f"{policy:34} {min(spent['simpy']):7.2f} {min(spent['compiled']):9.2f} "
            f"{min(spent['simpy']) / min(floor):16.1f} {numbers['queue_length_mean']:14.1f} "
            f"{numbers['queue_length_max']:5.0f} {numbers['unadmitted']:8.0f}",
            flush=True,
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", nargs="?", help="SWF log, for whole runs")
    parser.add_argument("--waiting", type=int, nargs="+", default=[3, 10, 30, 100, 300, 1000])
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--placements", type=Path, metavar="CSV", help="count placements instead, as rows of the study")
    args = parser.parse_args()
    if args.placements is not None:
        cost(args.waiting, args.seed, args.placements)
        return
    growth(args.waiting, args.seed)
    if args.log is not None:
        runs(args.log, args.window, args.repeat)


if __name__ == "__main__":
    main()
