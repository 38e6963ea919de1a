"""Run simulators on the same logs, in turn; print their costs and whether their schedules agree, as markdown.

    python benchmarks/others/compare.py [LOG[@JOBS] …] [--python accasim=PYTHON] [--python lapis=PYTHON]
                                        [--python simgrid=PYTHON] [--runs 3]

A simulator without a `--python` option runs with this interpreter; accasim, lapis and simgrid run only if their
interpreter is given. Every figure is that of a whole process, start-up included, from the operating system: CPU is user
plus system time of all threads, memory the peak resident size. This script uses little memory, because the peak of a
child process begins with the size of its parent.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
HEAD = """\
| log | policy | simulator | CPU, s | of that start-up | against gridsim | peak memory, MiB |
|---|---|---|---:|---:|---:|---:|"""


class Simulator(NamedTuple):
    """A script of this folder, its policies, and the maximum number of jobs that it runs on."""

    name: str
    script: str
    policies: tuple[str, ...]
    jobs: int = 1_000_000
    options: tuple[str, ...] = ()


SIMULATORS = (
    Simulator("gridsim", "run_gridsim.py", ("fcfs", "easy", "conservative", "first-fit")),
    Simulator("plain", "run_plain.py", ("fcfs", "easy")),
    Simulator("oracle", "run_oracle.py", ("fcfs", "easy", "conservative"), jobs=10_000),
    Simulator("accasim", "run_accasim.py", ("fcfs", "easy")),
    Simulator("lapis", "run_lapis.py", ("first-fit",)),
    Simulator("simpy", "bare_simpy.py", ("none",)),
    Simulator("simgrid", "bare_simgrid.py", ("none",), options=("--log=root.thresh:error",)),
)
ELSEWHERE = ("accasim", "lapis", "simgrid")


class Cost(NamedTuple):
    """Cost of one process; CPU is infinite if it was stopped."""

    cpu: float
    memory: float


class Case(NamedTuple):
    """A command to measure several times."""

    log: Path
    policy: str
    simulator: Simulator
    python: str

    def cost(self, log: Path, limit: int) -> Cost:
        """Run the command once; stop it after *limit* CPU seconds."""
        output = self.log.with_name(f"{log.stem}.{self.policy}.{self.simulator.name}.csv")
        script = str(HERE / self.simulator.script)
        command = [self.python, script, str(log), self.policy, str(output), *self.simulator.options]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > 0:
            sys.exit(f"failed, exit code {process.returncode}: {' '.join(command)}")
        cpu = used.ru_utime + used.ru_stime
        if process.returncode:
            output.unlink(missing_ok=True)
            cpu = float("inf")
        elif log != self.log:
            output.unlink(missing_ok=True)
        return Cost(cpu, used.ru_maxrss / 1024)


def cases(logs: list[Path], pythons: dict[str, str]) -> Iterator[Case]:
    """Yield all commands, with the simulators of a log and policy one after another."""
    for log in logs:
        jobs = sum(not line.startswith(b";") for line in log.read_bytes().splitlines())
        for policy in dict.fromkeys(policy for simulator in SIMULATORS for policy in simulator.policies):
            for simulator in SIMULATORS:
                there = simulator.name not in ELSEWHERE or simulator.name in pythons
                if there and policy in simulator.policies and jobs <= simulator.jobs:
                    yield Case(log, policy, simulator, pythons.get(simulator.name, sys.executable))


def measured(listed: list[Case], runs: int, limit: int, long: float) -> dict[Case, tuple[list[Cost], list[Cost]]]:
    """Measure each case on its log and on the first ten jobs of it, in *runs* rounds; *long* cases run once."""
    found: dict[Case, tuple[list[Cost], list[Cost]]] = {case: ([], []) for case in listed}
    for number in range(runs):
        for case, (whole, start) in found.items():
            if whole and whole[0].cpu > long:
                continue
            print(f"round {number + 1}: {case.log.stem} {case.policy} {case.simulator.name}", file=sys.stderr)
            start.append(case.cost(case.log.with_suffix(".ten.swf"), limit))
            whole.append(case.cost(case.log, limit))
    return found


def row(case: Case, whole: list[Cost], start: list[Cost], ours: list[Cost], limit: int) -> str:
    """Return the medians, the smallest and largest CPU time, and the ratio to gridsim in the same rounds."""
    cpu = [cost.cpu for cost in whole]
    spent, ratio = f"over {limit}", f"over {limit / ours[0].cpu:.0f}"
    if max(cpu) < float("inf"):
        spent = f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})" if len(cpu) > 1 else f"{cpu[0]:.2f}"
        ratio = f"{statistics.median(one.cpu / other.cpu for one, other in zip(whole, ours, strict=False)):.2f}"
    begun = statistics.median(cost.cpu for cost in start)
    memory = statistics.median(cost.memory for cost in whole)
    name = case.simulator.name
    return f"| {case.log.stem} | {case.policy} | {name} | {spent} | {begun:.2f} | {ratio} | {memory:.0f} |"


def main() -> None:
    """Prepare the logs, measure, print and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", default=["generated"], metavar="LOG[@JOBS]")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PYTHON", help="its interpreter")
    parser.add_argument("--runs", type=int, default=3, help="how often each command is run")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds after which a command is stopped")
    parser.add_argument("--long", type=float, default=60, help="CPU seconds beyond which a command is run only once")
    parser.add_argument("--folder", type=Path, default=Path("others-results"), help="where logs and schedules go")
    args = parser.parse_args()
    prepare = [sys.executable, str(HERE / "prepare.py"), str(args.folder), *args.logs]
    names = subprocess.run(prepare, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    pythons = dict(one.split("=", 1) for one in args.python)
    listed = list(cases([args.folder / f"{name}.swf" for name in names], pythons))
    found = measured(listed, args.runs, args.limit, args.long)
    ours = {(case.log, case.policy): whole for case, (whole, _) in found.items() if case.simulator.name == "gridsim"}
    print(HEAD)
    for case, (whole, start) in found.items():
        print(row(case, whole, start, ours.get((case.log, case.policy), ours[case.log, "easy"]), args.limit))
    print(flush=True)
    subprocess.run([sys.executable, str(HERE / "check.py"), str(args.folder)], check=True)


if __name__ == "__main__":
    main()
