"""Speed of simulation relative to the machine's limit: jobs per CPU second, compared with a short C program.

    python benchmarks/limit.py LOG.swf.gz [LOG …] [--repeat 5] [--reference refsim.c]
    python benchmarks/limit.py --jobs 1000000              # a generated workload at a load of 0.8
    python benchmarks/limit.py --jobs 500 --check          # no timing: both engines and the C program have equal starts
    python benchmarks/limit.py --stream --jobs 10000000    # gridsim run --stream of a generated log

A row is one policy on one log: a simulation from the workload in memory to its record, once with SimPy and several
times compiled, and a separate process from the file to the starts, in CPU seconds. The C program is an independent
implementation of FCFS, EASY and conservative; without it (or without a compiler) its columns are empty. Its input is
the log as read by gridsim: run times are cut at the estimates.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gridsim as gs
from gridsim.errors import CheckFailed
from gridsim.model.platform import machine_cores
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.simulation import Run, run
from gridsim.workload.synthetic.lublin import default_workload

POLICIES = {
    "fcfs": "fcfs",
    "easy": "easy",
    "first-fit": "",
    "easy?ordering=sjf": "",
    "conservative": "",
    "conservative?compress=arrival": "cons",
    "sjbf": "",
    "easy++": "",
    "easy?predict=recent&correct=steps": "",
    "easy++?predict=similar": "",
    "easy++?predict=average": "",
    "wfp3": "",
    "unicef": "",
    "xfactor": "",
    "easy?ordering=wfp3": "",
    "easy?ordering=random": "",
    "easy?backfill_order=wfp3": "",
}
"""Measured policies, with the option of the C program where it has one."""

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "perf" / "refsim.c"

ALONE = """
import sys
import gridsim as gs
workload = gs.read_workload(sys.argv[1])
gs.simulate(workload, platform=gs.Platform.single(int(sys.argv[2])), policy=sys.argv[3])
"""


class Trace(NamedTuple):
    """A workload and the input file of the C program."""

    workload: Workload
    cores: int
    file: Path


def traced(workload: Workload, folder: Path) -> Trace:
    """Return the jobs that fit the machine, in whole seconds, and write them as SWF."""
    cores, _ = machine_cores(workload, None)
    workload = workload.select(workload.cores <= cores)
    submit = workload.submit // MICROSECOND
    estimate = np.maximum(1, workload.estimate // MICROSECOND)
    runtime = np.clip(workload.runtime // MICROSECOND, 1, estimate)
    file = folder / "trace.swf"
    user = workload.labels.get("user", np.ones(len(workload), dtype=np.int64))
    jobs = (submit, runtime, workload.cores, estimate, user)
    columns = zip(*(column.tolist() for column in jobs), strict=True)
    with file.open("w") as lines:
        lines.write(f"; MaxProcs: {cores}\n")
        for job, (came, ran, width, asked, of) in enumerate(columns, 1):
            lines.write(f"{job} {came} -1 {ran} {width} -1 -1 {width} {asked} -1 1 {of} 1 -1 -1 -1 -1 -1\n")
    whole = Workload.from_columns(
        submit=submit, runtime=runtime, estimate=estimate, cores=workload.cores, labels={"user": user}
    )
    return Trace(whole, cores, file)


def compiled_reference(source: Path, folder: Path) -> Path | None:
    """Return the compiled C program; None if the source or a compiler is missing."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not source.is_file():
        return None
    subprocess.run([compiler, "-O2", "-o", str(folder / "reference"), str(source)], check=True)
    return folder / "reference"


def by_reference(program: Path, trace: Trace, word: str, folder: Path) -> tuple[float, np.ndarray]:
    """Return the CPU seconds of the C program's simulation alone, and its starts, s."""
    out = folder / "starts.csv"
    words = [str(program), str(trace.file), str(trace.cores), word, str(out)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    found = re.search(r"\bsim ([0-9.]+)", told)
    assert found is not None
    return float(found[1]), np.loadtxt(out, delimiter=",", skiprows=1, usecols=2, ndmin=1)


def simulated(trace: Trace, policy: str, engine: str) -> tuple[float, Record]:
    """Return the CPU seconds of one simulation, and its record."""
    begun = time.process_time()
    record = run(trace.workload, gs.Platform.single(trace.cores), policy, Run(engine=engine))  # type: ignore[arg-type]
    return time.process_time() - begun, record


def alone(trace: Trace, policy: str) -> float:
    """Return the CPU seconds of a whole process from the file to the starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", ALONE, str(trace.file), str(trace.cores), policy], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def check(name: str, trace: Trace, program: Path | None, folder: Path) -> None:
    """Raise `CheckFailed` if the engines or the C program differ in a start."""
    for policy, word in POLICIES.items():
        _, record = simulated(trace, policy, "compiled")
        others = {"SimPy": simulated(trace, policy, "simpy")[1].start_us}
        if word and program is not None:
            others["C"] = np.round(by_reference(program, trace, word, folder)[1] * MICROSECOND).astype(np.int64)
        for other, start in others.items():
            if (different := int(np.count_nonzero(record.start_us != start))) or (start >= NEVER).any():
                raise CheckFailed(f"{name}: {policy}: {different} starts are not those of {other}")
        print(f"{name}: {policy}: {len(record)} starts as by {' and '.join(others)}")


def measured(name: str, trace: Trace, program: Path | None, folder: Path, repeat: int) -> None:
    """Print a row for each policy."""
    for policy, word in POLICIES.items():
        for engine in ("compiled", "simpy"):
            simulated(trace._replace(workload=trace.workload.select(slice(0, 1000))), policy, engine)  # loads loops
        ours, theirs = [], []
        events = simulated(trace, policy, "simpy")[0]
        for _ in range(repeat):
            ours.append(simulated(trace, policy, "compiled")[0])
            if word and program is not None:
                theirs.append(by_reference(program, trace, word, folder)[0])
        jobs, took, process = len(trace.workload), float(np.median(ours)), alone(trace, policy)
        row = f"{name:32} {policy:33} {jobs:9,} {events:8.2f} {took:8.3f} {jobs / took / 1e6:9.2f} {process:10.2f}"
        if theirs:
            least = float(np.median(theirs))
            row += f" {least:8.3f} {jobs / least / 1e6:9.2f} {took / least:6.1f}"
        print(row, flush=True)


STREAMED = """policy = "easy"

[workload]
model = "lublin?jobs={jobs}&cores=128&load=0.8&estimates=multiples&users=50"
"""


def streamed(jobs: int, folder: Path) -> None:
    """Print the cost of a generated log block by block, the whole command, and again with the existing record."""
    recipe, out = folder / "long.toml", folder / "long"
    recipe.write_text(STREAMED.format(jobs=jobs))
    # A separate process with a single child, so that the peak of memory is that of the child.
    measure = (
        "import resource, subprocess, sys"
        "; told = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True)"
        "; used = resource.getrusage(resource.RUSAGE_CHILDREN)"
        "; print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, told.stdout.splitlines()[-1].split(' ')[0])"
    )
    command = [sys.executable, "-m", "gridsim", "run", str(recipe), "--stream", "--out", str(out)]
    for _ in range(2):
        begun = time.monotonic()
        told = subprocess.run([sys.executable, "-c", measure, *command], check=True, capture_output=True, text=True)
        cpu, memory, word = told.stdout.split()
        clock = time.monotonic() - begun
        size = (out / "jobs.parquet").stat().st_size / 1e6
        print(
            f"{jobs:,} jobs, {'simulated' if word == 'written' else 'there'}: {float(cpu):.1f} CPU s, {clock:.1f} s on "
            f"the clock, at most {float(memory):,.0f} MiB; jobs.parquet {size:,.0f} MB",
            flush=True,
        )


def workloads(args: argparse.Namespace) -> Iterator[tuple[str, Workload]]:
    """Yield the logs, or a generated workload."""
    for log in args.logs:
        yield Path(log).name, gs.read_workload(log)
    if args.jobs:
        yield f"generated ({args.jobs})", default_workload(jobs=args.jobs, load=0.8, seed=1)


def main() -> None:
    """Print the table, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--reference", type=Path, default=REFERENCE)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stream", action="store_true")
    args = parser.parse_args()
    if args.stream:
        with tempfile.TemporaryDirectory() as made:
            streamed(args.jobs or 1_000_000, Path(made))
        return
    if not args.check:
        print(f"{'':32} {'':33} {'':9} {'SimPy':>8} {'compiled':>18} {'process':>10} {'C':>18}")
        units = f"{'s':>8} {'s':>8} {'M jobs/s':>9} {'s':>10} {'s':>8} {'M jobs/s':>9} {'x':>6}"
        print(f"{'log':32} {'policy':33} {'jobs':>9} {units}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        program = compiled_reference(args.reference, folder)
        for name, workload in workloads(args):
            trace = traced(workload, folder)
            if args.check:
                check(name, trace, program, folder)
            else:
                measured(name, trace, program, folder, args.repeat)


if __name__ == "__main__":
    main()
