"""Run AccaSim with its own reader, dispatchers and output; the machine is one node with all cores.

Version 1.1.3 requires Python 3.5 or 3.6; the only name that it needs and Python 3.10 removed is restored. Times are
shifted by one day, because a job submitted at 0 confuses its clock, and shifted back afterwards.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import logging
import sys
import tempfile
from pathlib import Path

from joblist import read_jobs, write_schedule

collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402

DISPATCHERS = {"fcfs": FirstInFirstOut, "easy": EASYBackfilling}
SHIFT = 86_400
OUTPUT = {"format": "{job} {start}", "attributes": {"job": ("id", "str"), "start": ("start_time", "str")}}


def simulated(log: str, policy: str, cores: int, folder: Path, *, nodes: int = 1) -> dict[int, int]:
    """Return the start of each job by its number, s."""
    machine = {
        "groups": {"all": {"core": cores // nodes}},
        "resources": {"all": nodes},
        "equivalence": {"processor": {"core": 1}},
        "start_time": SHIFT,
    }
    config = folder / "machine.json"
    config.write_text(json.dumps(machine), encoding="utf-8")
    simulator = Simulator(
        log,
        str(config),
        DISPATCHERS[policy](FirstFit()),
        statistics_output=False,
        show_statistics=False,
        RESULTS_FOLDER_PATH=str(folder),
        SCHEDULE_OUTPUT=OUTPUT,
        LOG_LEVEL="ERROR",
    )
    written = simulator.start_simulation()["sched-"]
    rows = (line.split() for line in Path(written).read_text(encoding="utf-8").splitlines())
    return {int(number): int(start) - SHIFT for number, start in rows}


if __name__ == "__main__":
    workload, name, output = sys.argv[1:4]
    size, listed = read_jobs(workload)
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as scratch:
        starts = simulated(workload, name, size, Path(scratch), nodes=size if sys.argv[4:] == ["nodes"] else 1)
    write_schedule(output, listed, (starts[job.number] for job in listed))
