"""Schedules generated without simulation: the report must not depend on the source of a record."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.metrics.responsiveness import CUTS
from gridsim.model.platform import Platform
from gridsim.model.random_streams import stream
from gridsim.model.workload import Workload
from gridsim.questions.compare import pending_changes
from gridsim.record import Record
from gridsim.report.comparison import Comparison
from gridsim.simulation import Run
from gridsim.workers import crew

CORES = 128


def made_workload(jobs: int, cores: int = CORES, *, load: float = 0.9, seed: int = 1) -> Workload:
    """Jobs of all sizes and lengths that arrive evenly, some of them in the same second."""
    rng = stream(seed, "report")
    width = np.minimum(cores, (2 ** rng.exponential(2.2, jobs)).astype(int))
    runtime = np.rint(rng.lognormal(6.5, 1.6, jobs).clip(1, 64_800))
    span = float(width @ runtime) / (cores * load)
    return Workload.from_columns(
        submit=np.sort(np.rint(rng.uniform(0, span, jobs))),
        runtime=runtime,
        cores=width,
        labels={"user": np.minimum(300, rng.zipf(1.6, jobs))},
        provenance={
            "source": "made.swf",
            "jobs_read": jobs + 3,
            "jobs_kept": jobs,
            "problems": [{"kind": "zero-runtime", "count": 3, "first_lines": [7, 8, 9], "rule": "skip"}],
        },
    )


def list_schedule(workload: Workload, cores: int = CORES, *, depth: int = 0) -> Record:
    """Start the first waiting job that fits, at most *depth* places behind one that does not; 0 is FCFS."""
    start, end = np.zeros(len(workload), np.int64), np.zeros(len(workload), np.int64)
    submit, width, runtime = workload.submit.tolist(), workload.cores.tolist(), workload.runtime.tolist()
    running: list[tuple[int, int]] = []
    waiting: list[int] = []
    free, arrived = cores, 0
    while arrived < len(submit) or waiting:
        now = min(submit[arrived : arrived + 1] + [end_of for end_of, _ in running[:1]])
        while running and running[0][0] <= now:
            free += width[heapq.heappop(running)[1]]
        while arrived < len(submit) and submit[arrived] <= now:
            waiting.append(arrived)
            arrived += 1
        place = 0
        while place < min(len(waiting), depth + 1) and free:
            job = waiting[place]
            if width[job] > free:
                place += 1
                continue
            waiting.pop(place)
            free -= width[job]
            start[job], end[job] = now, now + runtime[job]
            heapq.heappush(running, (int(end[job]), job))
    n = len(workload)
    return Record(workload, start, end, np.zeros(n, np.int8), np.zeros(n, np.int16), cores)


def made_records(jobs: int, *, policies: int = 3, cores: int = CORES, seed: int = 1) -> dict[str, Record]:
    workload = made_workload(jobs, cores, seed=seed)
    names = ("fcfs", "greedy", "modest")[:policies]
    return {name: list_schedule(workload, cores, depth=depth) for name, depth in zip(names, (0, 40, 3), strict=False)}


INFO: dict[str, Any] = {
    "title": "made.swf",
    "platform": {"cores": CORES, "origin": "MaxProcs"},
    "policies": {"fcfs": "Backfilling()", "greedy": "Greedy()", "modest": "Modest()"},
    "options": {"instant": "batched", "overrun": "kill", "seed": 1, "bound": 10.0, "warmup": 0.0, "cooldown": 0.0},
    "versions": {"gridsim": "0", "python": "3"},
    "command": "gridsim compare made.swf",
}


def made_comparison(
    records: dict[str, Record], *, reference: str | None = None, platform: Platform | None = None, **cuts: Any
) -> Comparison:
    provenance = next(iter(records.values())).workload.provenance
    info = {**INFO, "workload": provenance}
    return Comparison.of(records, info=info, cuts={**CUTS, **cuts}, reference=reference, platform=platform)


@pytest.fixture(scope="session")
def records() -> dict[str, Record]:
    """Three schedules of the same 4,000 jobs."""
    return made_records(4000)


@pytest.fixture(scope="session")
def comparison(records: dict[str, Record]) -> Comparison:
    """Their comparison."""
    return made_comparison(records)


@pytest.fixture(scope="session")
def comparing() -> Callable[..., Comparison]:
    """Compare records made by a test."""
    return made_comparison


@pytest.fixture(scope="session")
def making() -> Callable[..., dict[str, Record]]:
    """Make records with a given number of jobs."""
    return made_records


@pytest.fixture(scope="session")
def visit() -> Callable[[Any, str], Any]:
    """Open a page in a browser and wait until its chart is drawn; earlier console messages are discarded."""
    ready = """
        const done = arguments[arguments.length - 1];
        const look = () => window.gridsimGantt ? done(true) : setTimeout(look, 20);
        look();
    """

    def visiting(browser: Any, address: str) -> Any:
        browser.get_log("browser")
        browser.get(address)
        assert browser.execute_async_script(ready)
        return browser

    return visiting


@pytest.fixture(scope="session")
def with_changes() -> Callable[..., Comparison]:
    """Add the results of ``--what-if`` to a comparison, as the command does."""

    def ask(compared: Comparison, policies: Mapping[str, Any], platform: Platform) -> Comparison:
        cuts = {"bound": compared.bound, "warmup": compared.warmup, "cooldown": compared.cooldown}
        with crew(1) as team:
            pending = pending_changes(compared, policies, team, platform=platform, options=Run())
            found = tuple(each.whatif(label, cuts, lenient=True) for label, each in pending.items())
        return replace(compared, whatifs=found)

    return ask
