"""From a `sacct` file to the report page: CPU seconds of the command ``gridsim compare`` on a large generated log.

    python benchmarks/page.py [--jobs 100000] [--load 0.8] [--steps] [-- ARGUMENTS OF COMPARE]

The log is the built-in workload on a machine with 1,024 cores, scheduled by EASY so that waits are realistic. With
`--steps`, each job has two more lines. The command runs in a separate process, as started by an operator.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gridsim.model.time import MICROSECOND
from gridsim.simulation import simulate
from gridsim.workload.synthetic.lublin import default_workload

COLUMNS = (
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "TimelimitRaw", "State", "NNodes", "ReqCPUS", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES"),
)
_BEGIN = 1_700_000_000
_CORES, _NODE = 1024, 32
_STATES = ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001")


def write(path: Path, jobs: int, load: float, *, steps: bool) -> None:
    """Write the log."""
    workload = default_workload(jobs=jobs, load=load, seed=1, cores=_CORES)
    record = simulate(workload, policy="easy").record

    def clock(second: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(_BEGIN + second))

    columns = (workload.submit, record.start_us, record.end_us, workload.estimate)
    rows = zip(*((column // MICROSECOND).tolist() for column in columns), workload.cores.tolist(), strict=True)
    with path.open("w") as file:
        file.write("|".join(COLUMNS) + "\n")
        for k, (submit, start, end, limit, cores) in enumerate(rows):
            nodes, end = -(-cores // _NODE), max(end, start + 1)
            tres = f"billing={cores},cpu={cores},mem={cores * 2000}M,node={nodes}"
            named = (
                f"run_{k % 400}",
                f"user{k * k % 300}",
                f"acct{k * k % 300 // 8}",
                ("batch", "long")[k % 2],
                "normal",
            )
            times = (clock(submit), clock(submit), clock(start), clock(end), str(end - start), str(-(-limit // 60)))
            sizes = (str(nodes), str(cores), str(cores), f"{cores * 2000}M", tres, tres)
            texts = [str(1000 + k), str(1000 + k), *named, *times, _STATES[k % 6], *sizes]
            file.write("|".join(texts) + "\n")
            for step in ("batch", "0") if steps else ():
                own = [
                    f"{1000 + k}.{step}",
                    f"{1000 + k}.{step}",
                    step,
                    "",
                    named[1],
                    "",
                    "",
                    *times[:5],
                    "",
                    "COMPLETED",
                ]
                file.write("|".join([*own, *sizes]) + "\n")


def main() -> None:
    """Write a log, run the comparison, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("more", nargs="*", help="more arguments of gridsim compare")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "sacct.txt"), Path(folder, "out")
        write(path, args.jobs, args.load, steps=args.steps)
        command = [sys.executable, "-m", "gridsim", "compare", str(path), "--machine", str(_CORES), "--out", str(out)]
        began = time.monotonic()
        subprocess.run([*command, *args.more], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        size = (out / "report.html").stat().st_size / 2**20
    print(
        f"{args.jobs:,} jobs at a load of {args.load:g}{', with steps' if args.steps else ''}: "
        f"{used.ru_utime + used.ru_stime:.1f} s CPU, {wall:.1f} s on the clock; peak {used.ru_maxrss / 1024:.0f} MB; "
        f"page of {size:.1f} MB"
    )


if __name__ == "__main__":
    main()
