"""A second Slurm: slow and obviously right, for tens of jobs on a few nodes.

Written after docs/background/slurm.md and Slurm's manual pages, in lists and dictionaries, with a function for each
rule; what nodes have left is counted anew each time it is asked for. Nothing is shared with `gridsim.policy`.

It covers all that the scheduler ``slurm`` models (entries, intake, priorities, the order of the queue, limits, nodes
with cores, memory and GPUs, both passes, plans, preemption, reservations, dependencies, arrays, withdrawals), in the
order ``batched``. It does not cover: why jobs wait (`Record.reasons`), users who react, jobs that are killed at a limit
and go on in another one, dates (``epoch``), and the error for preemption that goes on for ever.
"""

from gridsim.testing.slurm.run import Run, Schedule, schedule

__all__ = ["Run", "Schedule", "schedule"]
