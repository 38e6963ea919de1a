"""Speed and memory of reading logs: a large generated log of Slurm or in SWF.

    python benchmarks/readers.py --lines 1000000 [--form P|steps|names|wide|comma|table|json|swf]

Forms: `P` has allocations with a delimiter; `steps` has two more lines per job; `names` has the delimiter in every
seventh name; `wide` has submit lines, which contain it a second time; `comma` has commas between columns, and within
those that list resources; `table` has fixed widths. For `swf`, a small log is read first, so that the loop is compiled.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gridsim.workload.formats.sacct import read_sacct
from gridsim.workload.formats.swf import read_swf

COLUMNS = (
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End"),
    *("Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw", "State", "ExitCode", "NNodes", "NCPUS", "ReqCPUS"),
    *("AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "Reason", "Priority"),
)
_BEGIN = 1_700_000_000
_STATES = ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001")


def _clock(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _length(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def records(jobs: int, delimiter_every: int = 0) -> Iterator[dict[str, str]]:
    """Yield the column texts of generated jobs, whole numbers of a simple sequence."""
    for k in range(jobs):
        submit = _BEGIN + 13 * k
        wait, run, cores = (k * 7919) % 4000, 1 + (k * 104729) % 7200, 1 << (k % 7)
        minutes = 10 + run // 60 * 2
        name = f"run|lr=0.{k % 10}" if delimiter_every and k % delimiter_every == 0 else f"run_{k % 400}"
        tres = f"billing={cores},cpu={cores},mem={cores * 2000}M,node={1 + cores // 16}"
        number = str(1000 + k) if k % 5 else f"{1000 + k - k % 50}_{k % 50}"
        yield dict(
            zip(
                COLUMNS,
                (
                    number,
                    str(1000 + k),
                    name,
                    f"user{k % 300}",
                    f"acct{k % 40}",
                    ("batch", "long")[k % 2],
                    "normal",
                    _clock(submit),
                    _clock(submit),
                    _clock(submit + wait),
                    _clock(submit + wait + run),
                    _length(run),
                    str(run),
                    _length(minutes * 60),
                    str(minutes),
                    _STATES[k % 6],
                    "0:0",
                    str(1 + cores // 16),
                    str(cores),
                    str(cores),
                    str(cores),
                    f"{cores * 2000}M",
                    tres,
                    tres,
                    "None",
                    str(1000 + k % 5000),
                ),
                strict=True,
            )
        )


def _joined(texts: Iterable[str]) -> str:
    return "|".join(texts) + "\n"


def _plain(jobs: int, every: int = 0) -> Iterator[str]:
    yield _joined(COLUMNS)
    for record in records(jobs, every):
        yield _joined(list(record.values()))


def _steps(jobs: int) -> Iterator[str]:
    yield _joined(COLUMNS)
    for record in records(jobs // 3):
        yield _joined(list(record.values()))
        for step in ("batch", "0"):
            own = {**record, "JobID": f"{record['JobID']}.{step}", "JobIDRaw": f"{record['JobIDRaw']}.{step}"}
            yield _joined(
                list((own | dict.fromkeys(("User", "Partition", "QOS", "Timelimit", "TimelimitRaw"), "")).values())
            )


def _wide(jobs: int) -> Iterator[str]:
    yield _joined([*COLUMNS, "SubmitLine"])
    for record in records(jobs, 7):
        yield _joined(
            [*record.values(), f"sbatch --job-name={record['JobName']} --time={record['TimelimitRaw']} job.sh"]
        )


def _comma(jobs: int) -> Iterator[str]:
    yield ",".join(COLUMNS) + "\n"
    for record in records(jobs):
        yield ",".join(record.values()) + "\n"


def _table(jobs: int) -> Iterator[str]:
    names = [name for name in COLUMNS if name not in ("ReqTRES", "AllocTRES", "JobName")]
    yield " ".join(f"{name:>20}" for name in names) + " \n"
    yield " ".join(["-" * 20] * len(names)) + " \n"
    for record in records(jobs):
        yield " ".join(f"{record[name]:>20}" for name in names) + " \n"


def _document(jobs: int) -> Iterator[str]:
    yield '{"meta": {"plugin": {"type": "openapi/dbv0.0.38"}}, "jobs": [\n'
    for k, record in enumerate(records(jobs)):
        submit = _BEGIN + 13 * k
        run, wait = int(record["ElapsedRaw"]), (k * 7919) % 4000
        cores = int(record["NCPUS"])
        times = {"submission": submit, "eligible": submit, "start": submit + wait, "end": submit + wait + run}
        entry = {
            "job_id": 1000 + k,
            "name": record["JobName"],
            "user": record["User"],
            "account": record["Account"],
            "partition": record["Partition"],
            "time": {**times, "elapsed": run, "limit": int(record["TimelimitRaw"])},
            "state": {"current": record["State"].partition(" ")[0]},
            "required": {"CPUs": cores},
            "tres": {"allocated": [{"type": "cpu", "count": cores}], "requested": []},
            "steps": [],
        }
        yield (",\n" if k else "") + json.dumps(entry, indent=1)
    yield "\n]}\n"


def _swf(jobs: int) -> Iterator[str]:
    yield "; MaxProcs: 128\n"
    for k in range(jobs):
        wait, run, cores = (k * 7919) % 4000, 1 + (k * 104729) % 7200, 1 << (k % 7)
        asked = 600 + run // 60 * 120
        yield f"{k + 1} {13 * k} {wait} {run} {cores} {run - 0.5} {1000 * cores} {cores} {asked} -1 1 {k % 300} "
        yield f"{k % 40} {k % 500} {k % 4} 1 -1 -1\n"


FORMS: dict[str, Callable[[int], Iterator[str]]] = {
    "P": _plain,
    "steps": _steps,
    "names": lambda jobs: _plain(jobs, 7),
    "wide": _wide,
    "comma": _comma,
    "table": _table,
    "json": _document,
    "swf": _swf,
}


def main() -> None:
    """Write a log, read it, and print the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--form", choices=FORMS, default="P")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        with path.open("w") as file:
            file.writelines(FORMS[args.form](args.lines))
        size = path.stat().st_size / 2**20
        read = read_sacct
        if args.form == "swf":
            read, few = read_swf, Path(folder, "few")
            few.write_text("".join(_swf(50_000)))
            read_swf(few)
        before = resource.getrusage(resource.RUSAGE_SELF)
        workload = read(path)
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = workload.provenance.get("lines", args.lines)
    grown = (after.ru_maxrss - before.ru_maxrss) / 1024
    print(
        f"{args.form}: {lines:,} lines, {len(workload):,} jobs, {size:.0f} MB; {seconds:.1f} s CPU, "
        f"{lines / seconds:,.0f} lines/s; peak {after.ru_maxrss / 1024:.0f} MB, {grown:.0f} MB more than before "
        f"({grown / size:.2f} of the file)"
    )


if __name__ == "__main__":
    main()
