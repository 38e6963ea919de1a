"""A day of four nodes with a failure, a maintenance window, checkpoints and an urgent job; times in hours."""

import gridsim as gs
from gridsim.model.checkpoints import Checkpoints
from gridsim.model.failures import Failures
from gridsim.model.windows import Window

HOUR = 3600
MACHINE = gs.Platform.of_nodes([gs.NodeGroup(group="n", count=4, capacity={"cores": 8})])
JOBS = [  # submit, nodes, run time, walltime, priority class
    (0.0, 2, 9, 14, 0),
    (0.0, 1, 6, 7, 0),
    (0.5, 1, 4, 5, 0),
    (1.0, 2, 5, 6, 0),
    (2.0, 1, 3, 4, 0),
    (11.0, 2, 3, 4, 1),
]
FAILURE = (["n-1"], 4 * HOUR, 7 * HOUR)
UPGRADE = Window(["n-3"], 14 * HOUR, 18 * HOUR, announced=6 * HOUR, id="upgrade")
HOURLY = Checkpoints(2 * HOUR, cost=HOUR / 4, restart=HOUR / 4)


def day(policy="easy", *, checkpoints=None, repair="unknown"):
    """Simulate the day under a policy."""
    submit, nodes, runtime, walltime, level = zip(*JOBS, strict=True)
    jobs = gs.Workload.from_columns(
        submit=[hours * HOUR for hours in submit],
        cores=[8 * count for count in nodes],
        runtime=[hours * HOUR for hours in runtime],
        estimate=[hours * HOUR for hours in walltime],
        labels={"priority": level},
    )
    failures = Failures([FAILURE], windows=[UPGRADE], checkpoints=checkpoints, repair=repair)
    return gs.simulate(jobs, platform=MACHINE, policy=policy, options=gs.Run(failures=failures))


def runs(result):
    """Return the runs as lines: job, run, start, end, reason, lost hours."""
    columns = (result.runs[name].tolist() for name in ("job", "run", "start", "end", "reason", "lost"))
    for job, run, start, end, reason, lost in zip(*columns, strict=True):
        yield f"{job}.{run}  {start / HOUR:5g} to {end / HOUR:5g} h  {reason:12} lost {lost / HOUR:g} h"
