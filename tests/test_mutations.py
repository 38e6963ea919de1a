"""Damaged input of every kind that gridsim reads: it is read, or an error of gridsim names the file."""

from __future__ import annotations

import functools
import gzip
import json
import lzma
import os
import random
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gridsim.campaign.run import run_campaign
from gridsim.campaign.store import Store
from gridsim.campaign.sweep import Sweep, write_runs
from gridsim.cli.folder import Earlier
from gridsim.errors import GridsimError
from gridsim.model.demand import Demand, Demands
from gridsim.model.platform_file import read_platform
from gridsim.model.site_file import SiteClock, read_reservations, read_site
from gridsim.model.workload import Workload
from gridsim.questions.result_folders import recorded
from gridsim.questions.schedules import read_schedules
from gridsim.registry import Spec
from gridsim.scenario import Scenario
from gridsim.simulation import simulate
from gridsim.testing.conformance import CASES, check, read_cases
from gridsim.testing.schedule_reader import nodes_of, overrun_of, read_allocations, read_jobs, read_schedule
from gridsim.workload.read import read_workload
from gridsim.workload.slurm_state import read_slurm_state
from gridsim.workload.transform.profiles import read_profiles
from gridsim.workload.transform.ranges import Ranges
from gridsim_papers.ledger import LEDGERS, read_ledger

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
PATIENCE = 30
"""Seconds after which reading an input counts as endless."""


@dataclass(frozen=True)
class Input:
    """Files that belong together, and the function that reads them from their folder."""

    files: Mapping[str, bytes]
    read: Callable[[Path], object]
    damaged: Sequence[str] = ()
    """Files to damage; by default all."""


# What is read


def log(*names: str, **options: Any) -> Callable[[Path], object]:
    return lambda folder: read_workload(
        [folder / name for name in names] if names[1:] else folder / names[0], **options
    )


def example(*names: str) -> dict[str, bytes]:
    return {Path(name).name: (EXAMPLES / name).read_bytes() for name in names}


def first_lines(path: Path, count: int) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[:count])


WORKFLOW = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "parents": [], "children": ["b"], "outputFiles": ["x"]},
                {"name": "b", "id": "b", "parents": ["a"], "children": [], "inputFiles": ["x"]},
            ],
            "files": [{"id": "x", "sizeInBytes": 100}],
        },
        "execution": {
            "tasks": [{"id": "a", "runtimeInSeconds": 2.5, "coreCount": 2}, {"id": "b", "runtimeInSeconds": 3}],
            "machines": [{"nodeName": "m", "cpu": {"coreCount": 8}}],
        },
    },
}
SLURM_JOBS = {
    "meta": {"slurm": {"version": {"major": "22"}}},
    "jobs": [
        {
            "job_id": 7,
            "name": "a",
            "user": "ann",
            "account": "physics",
            "partition": "batch",
            "qos": "normal",
            "time": {"submission": 1795244026, "start": 1795244031, "end": 1795244041, "elapsed": 10, "limit": 5},
            "state": {"current": "COMPLETED"},
            "required": {"CPUs": 2},
            "array": {"job_id": 0, "task": None, "task_id": None},
            "het": {"job_id": 0, "job_offset": None},
            "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 100}], "requested": []},
        }
    ],
}
GWF = b"""WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies
7, 1, 16, 11, 2, 3,
7, 2, 40, 12, 2, -1, 1
8, 3, 50, 13, 1, 1,
"""
GWF_FULL = b"# a trace\n" + b"\t".join([*b"1 0 2 10 3".split(), *[b"-1"] * 2, *b"4 20 -1 1".split(), *[b"-1"] * 18])
PBS = b"".join(
    b"11/14/2023 23:13:20;%s;%d.server;user=ada group=math queue=batch ctime=1700000000 qtime=1700000000 "
    b"etime=1700000000 start=1700000010 exec_host=n1/0+n1/1 Resource_List.nodes=1:ppn=2 "
    b"Resource_List.walltime=00:10:00 session=7 end=1700000070 Exit_status=0 resources_used.walltime=00:01:00\n"
    % (kind, number)
    for number in (1, 2)
    for kind in (b"S", b"E")
)
TYPICAL = [{"each": {"cores": 1}, "gpu": 1000, "gpu_kinds": ["v100"], "count": 3}, {"each": {"cores": 4}, "count": 2}]
RANGES = b"job,minimum,maximum,parallelism,sigma\n1,1,4,4,0.5\n3,2,4,,\n"
OBJECTS = b"format = 'json'\n" + (EXAMPLES / "gpu-jobs.toml").read_bytes()
TABLE_JOBS = [{"job": n, "submitted": 374 * n, "ran_s": 60, "cores": 4, "wall_hours": 1, "memory_gib": 2, "gpus": 0,
               "kind": "", "user": "ann"} for n in (1, 2, 3)]  # fmt: skip
SITES = b"""[platform]
router = "grid"
[[platform.children]]
cluster = "home"
cores = 64
rate = 1.5
[[platform.children]]
cluster = "near"
kind = "gpu"
[platform.children.nodes]
file = "nodes.csv"
name = "sn"
capacity = {cores = "cpu", memory = {column = "memory_mib", scale = 0.5}}
gpus = "gpu"
[network]
ccr = "1/5"
[shares]
"/physics" = 3
"/physics/ann" = 2
"""
NODES = b"sn,cpu,memory_mib,gpu\na,8,16384,0\nb,8,16384,2\n"
SITE = b"""ClusterName=mini
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_window=1440,bf_resolution=60,default_queue_depth=100
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityWeightFairshare=1000
PriorityWeightTRES=CPU=1000,Mem=2000
PreemptType=preempt/qos
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:4
NodeName=n[1-4] CPUs=4 RealMemory=8000 Gres=gpu:a100:2 Features=big Weight=3
NodeName=m1 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000 CpuSpecList=0-1
PartitionName=batch Nodes=n[1-4],m1 Default=YES MaxTime=1-0 PriorityTier=2 TRESBillingWeights=CPU=1.0,Mem=0.25G
PartitionName=debug Nodes=m1 MaxTime=30 MaxCPUsPerNode=2 DefMemPerCPU=1000 AllowGroups=wheel
"""
SSHARE = b"""Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root||0|0.0|100|1.0|0.5
 physics||3|0.75|75|0.75|0.5
  physics|ann|2|0.5|50|0.5|0.5
"""
ASSOCIATIONS = b"""Account|User|ParentName|Share|GrpJobs|MaxTRES|MaxWall|GrpTRESMins|DefaultQOS
root|||1||||||
physics||root|3|10|cpu=8,mem=100G|1-00:00:00|cpu=1000|normal
physics|ann||2|5|node=2|60||high
"""
QOS = b"""Name|Priority|UsageFactor|GrpTRES|MaxWall|MaxJobsPU|GraceTime|Preempt|PreemptExemptTime|MinTRES|Flags
normal|30|1.0|cpu=8|1-0|5|00:00:00||||
high|100|2.0||60||00:05:00|normal|00:01:00|cpu=2|NoDecay
"""
RESERVATIONS = b"""ReservationName=maint StartTime=2026-11-21T07:00:00 EndTime=2026-11-21T08:00:00 Duration=01:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=8 PartitionName=batch Flags=MAINT,WEEKLY,PURGE_COMP=00:10:00 Users=ann
     NodeName=n1 CoreIDs=0-1
"""
GROUPS = b"wheel:x:10:ann,bob\nann : users wheel\n"
RECIPE = b"""policy = "today=easy?ordering=sjf"
metric = ["utilisation"]
[workload]
file = "five.swf"
cores = 8
transforms = ["slice?first=0&jobs=4", "duplicate?load=1.4"]
[workload.on]
zero-runtime = "repair"
[options]
overrun = "kill"
seed = 3
tick = 1.0
instant = "batched"
"""
CAMPAIGN = b"""[factors]
policy = ["easy", "fcfs"]
cores = [4, 8]
seed = {first = 1, last = 3, step = 2}
[workload]
file = "five.swf"
[options]
tick = 1.0
[[exclude]]
policy = "fcfs"
cores = 8
[compare]
baseline = "easy"
[metrics]
bound = 10.0
"""


def site(folder: Path) -> None:
    whole = {"assoc": "assoc.txt", "qos": "qos.txt", "usage": "sshare.txt", "groups": "groups.txt"}
    found = read_site(folder / "slurm.conf", **{name: folder / file for name, file in whole.items()})
    read_reservations(folder / "reservations.txt", found.nodes, SiteClock(1_795_000_000, "UTC"))
    found.on_nodes()


def recipe(folder: Path) -> None:
    scenario = Scenario.from_toml(folder / "recipe.toml")
    with suppress(GridsimError):  # for any jobs of the log
        scenario.load()


def campaign(folder: Path) -> None:
    sweep = Sweep.from_toml(folder / "campaign.toml")
    for place, _ in zip(sweep.scenarios(), range(20), strict=False):
        str(place)


@functools.cache
def result_files(policy: str, kind: str = "csv") -> dict[str, bytes]:
    """Files of the result folder of a run."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "five.swf").write_bytes((EXAMPLES / "five.swf").read_bytes())
        platform = None
        how: dict[str, Any] = {"file": str(folder / "five.swf")}
        if policy == "nodes":
            (folder / "gpu-jobs.csv").write_bytes(first_lines(EXAMPLES / "gpu-jobs.csv", 6))
            platform = read_platform(EXAMPLES / "gpu-site.toml")
            how = {
                "file": str(folder / "gpu-jobs.csv"),
                "mapping": str(EXAMPLES / "gpu-jobs.toml"),
                "platform": platform,
            }
        if policy == "kills":
            how |= {"transforms": ["deadlines?stringency=0.2"]}
        spec = {"nodes": "easy", "kills": "fqops?kill_restart=true&slack_factor=2", "rigid": "easy"}[policy]
        Scenario(**how, policy=spec).run().write(folder / "out", table=kind)
        found = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    return found | ({"killed_runs.csv": b"job,start,end\n3,0,3\n"} if policy == "kills" else {})


def refused(read: Callable[[Path], object], folder: Path) -> GridsimError | None:
    """The error when a folder is read, or None."""
    try:
        read(folder)
    except GridsimError as error:
        return error
    return None


def page(folder: Path) -> None:
    """Read a folder like `gridsim report`."""
    for one in recorded([str(folder)]).results.values():
        one.metrics()


def result(folder: Path) -> None:
    """All functions that read a result folder."""
    readers = (read_schedule, read_jobs, nodes_of, overrun_of, read_schedules, Earlier.of, page)
    found = [error for read in readers if (error := refused(read, folder)) is not None]
    assert [str(error) for error in found if str(folder) not in str(error)] == [], "no file is named"


@functools.cache
def stored_sweep() -> dict[str, bytes]:
    """Files of the store of a sweep."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        put({"campaign.toml": CAMPAIGN, **FIVE}, folder)
        run_campaign(Sweep.from_toml(folder / "campaign.toml"), folder / "store")
        inside = (path for path in (folder / "store").rglob("*") if path.is_file())
        return {str(path.relative_to(folder / "store")): path.read_bytes() for path in inside}


def store(folder: Path) -> None:
    there = Store(folder)
    sweep = Sweep.from_store(there)
    list(there.journal())
    write_runs(sweep, there, folder / "runs.csv")
    sweep.compared(there)


def golden(folder: Path) -> None:
    error = refused(lambda place: [check(case, path=path) for path, case in read_cases([place])], folder)
    assert "is not a well-formed case" not in str(error), "the schema accepts what the code does not"
    if error is not None:
        raise error


def ranges(folder: Path) -> None:
    Ranges(file=str(folder / "ranges.csv")).apply(read_workload(folder / "five.swf", cores=64))


def typical(folder: Path) -> None:
    platform = read_platform(EXAMPLES / "gpu-site.toml")
    jobs = Workload.from_columns(submit=[0], runtime=[1], demands=Demands.of([Demand(tasks=1, each={"cores": 1})]))
    policy = Spec("easy", {"placement": Spec("fragmentation", {"typical": str(folder / "typical.json")})})
    simulate(jobs, platform=platform, policy=policy)


def live_state(folder: Path) -> None:
    """A state that is read can be written."""
    state = read_slurm_state(folder, timezone="Europe/Berlin", rules={"overfull": "keep", "missing-field": "skip"})
    json.dumps(state.to_json(), allow_nan=False)
    read_slurm_state(folder, timezone="Europe/Berlin")


def ledger(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gridsim_papers.ledger.LEDGERS", folder)
        read_ledger("grid")


def smallest_cases() -> dict[str, Path]:
    """The shortest golden case of each family and kind."""
    found: dict[str, Path] = {}
    for path in sorted(CASES.rglob("*.json"), key=lambda path: (path.stat().st_size, path)):
        found.setdefault(f"case {path.parent.name} {json.loads(path.read_bytes())['kind']}", path)
    return found


def packed(files: Mapping[str, bytes], how: str) -> dict[str, bytes]:
    compress = {".gz": functools.partial(gzip.compress, mtime=0), ".xz": lzma.compress}[how]
    return {name + how: compress(content) for name, content in files.items()}


INPUTS: dict[str, Input | Callable[[], Input]] = {}
"""Damaged inputs by name; some are generated when needed."""
FIVE = example("five.swf")
FLOW = {"flow.json": json.dumps(WORKFLOW, indent=1).encode()}
JOBS = {"sacct.json": json.dumps(SLURM_JOBS, indent=1).encode()}
for how in ("", ".gz", ".xz"):
    for name, files in {"swf": FIVE, "wfformat": FLOW, "sacct json": JOBS}.items():
        given = packed(files, how) if how else files
        INPUTS[name + how] = Input(given, log(*given))
INPUTS |= {
    "gwf": Input({"trace.gwf": GWF}, log("trace.gwf")),
    "gwf of 29 fields": Input({"trace.gwf": GWF_FULL}, log("trace.gwf")),
    "pbs": Input({"20231114": PBS}, log("20231114")),
    "sacct": Input({"sacct.txt": first_lines(EXAMPLES / "sacct.txt", 6)}, log("sacct.txt")),
    "sacct wide": Input({"sacct.txt": first_lines(EXAMPLES / "mini" / "sacct.txt", 6)}, log("sacct.txt")),
    "table": Input(
        {"jobs.csv": first_lines(EXAMPLES / "gpu-jobs.csv", 6), **example("gpu-jobs.toml")},
        lambda folder: read_workload(folder / "jobs.csv", mapping=str(folder / "gpu-jobs.toml")),
    ),
    "table json": Input(
        {"jobs.json": json.dumps(TABLE_JOBS).encode(), "gpu-jobs.toml": OBJECTS},
        lambda folder: read_workload(folder / "jobs.json", mapping=str(folder / "gpu-jobs.toml")),
    ),
    "table json.gz": Input(
        {**packed({"jobs.json": json.dumps(TABLE_JOBS).encode()}, ".gz"), "gpu-jobs.toml": OBJECTS},
        lambda folder: read_workload(folder / "jobs.json.gz", mapping=str(folder / "gpu-jobs.toml")),
        ["jobs.json.gz"],
    ),
    "platform": Input(example("gpu-site.toml"), lambda folder: read_platform(folder / "gpu-site.toml")),
    "platform of sites": Input(
        {"sites.toml": SITES, "nodes.csv": NODES}, lambda folder: read_platform(folder / "sites.toml")
    ),
    "site": Input(
        {
            "slurm.conf": SITE,
            "assoc.txt": ASSOCIATIONS,
            "sshare.txt": SSHARE,
            "qos.txt": QOS,
            "reservations.txt": RESERVATIONS,
            "groups.txt": GROUPS,
        },
        site,
    ),
    "site dump": Input(
        {
            "slurm.conf": SITE,
            "assoc.txt": (EXAMPLES / "mini" / "assoc.cfg").read_bytes(),
            "sshare.txt": SSHARE,
            "qos.txt": QOS,
            "reservations.txt": RESERVATIONS,
            "groups.txt": GROUPS,
        },
        site,
        ["assoc.txt"],
    ),
    "recipe": Input({"recipe.toml": RECIPE, **FIVE}, recipe, ["recipe.toml"]),
    "campaign": Input({"campaign.toml": CAMPAIGN, **FIVE}, campaign, ["campaign.toml"]),
    "speedup tables": Input(example("scaling.csv"), lambda folder: read_profiles(folder / "scaling.csv")),
    "schedule csv": Input(example("elsewhere.csv"), lambda folder: read_schedule(folder / "elsewhere.csv")),
    "schedule of Batsim": Input(example("batsim-jobs.csv"), lambda folder: read_schedule(folder / "batsim-jobs.csv")),
    "schedule swf": Input(FIVE, lambda folder: read_schedule(folder / "five.swf")),
    "schedule swf.gz": Input(packed(FIVE, ".gz"), lambda folder: read_schedule(folder / "five.swf.gz")),
    "ledger": Input({"grid.csv": first_lines(LEDGERS / "grid.csv", 4)}, ledger),
    "ranges": Input({"ranges.csv": RANGES, **FIVE}, ranges, ["ranges.csv"]),
    "typical tasks": Input({"typical.json": json.dumps(TYPICAL).encode()}, typical),
    "allocations": Input(example("places.csv"), lambda folder: read_allocations(folder / "places.csv")),
}


STATE = {
    path.stem[:3]: json.loads(path.read_bytes()) for path in (Path(__file__).parent / "forecasts").rglob("f0[56]*")
}
MACHINE = {name: STATE["f05"][f"scontrol_{name}"].encode() for name in ("node", "reservation", "licenses")}
MACHINE = {f"scontrol_{name}.txt": text for name, text in MACHINE.items()} | {"now": b"1795521600\n"}
PARTITIONS = b"PartitionName=cpu DefaultTime=NONE MaxTime=1-0\nPartitionName=gpu DefaultTime=10:00 MaxTime=UNLIMITED\n"
SQUEUE = b"""\
100|100|N/A|ann|a|cpu|q|RUNNING|900|8|1|1:00:00|50:00|1795512600|1795518600|||(null)|OK|||n1|N/A|8G|None|
109|109|3-5%2|bob|a|gpu|q|PENDING|600|1|1|20:00|0:00|1795520700|N/A|(null)|m:2||OK|||||gres:gpu:a:1|2Gc|Priority|ib|a
"""
STATES = {
    "state json": {"squeue.json": json.dumps(STATE["f05"]["squeue_json"], indent=1).encode()},
    "state newer json": {"squeue.json": json.dumps(STATE["f06"]["squeue_json"], indent=1).encode()},
    "state scontrol": {"scontrol_job.txt": STATE["f06"]["scontrol_job"].encode()},
    "state squeue": {"squeue.txt": SQUEUE, "scontrol_partition.txt": PARTITIONS},
}
INPUTS |= {name: Input({**MACHINE, **files}, live_state) for name, files in STATES.items()}
INPUTS |= {
    f"result folder {policy}": functools.partial(lambda policy: Input(result_files(policy), result), policy)
    for policy in ("rigid", "kills", "nodes")
}
INPUTS |= {"store": lambda: Input(stored_sweep(), store)}
INPUTS |= {name: Input({path.name: path.read_bytes()}, golden) for name, path in smallest_cases().items()}


def mutated(content: bytes, dice: random.Random) -> bytes:
    """The content with one to three kinds of damage."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        content = dice.choice(MUTATIONS)(content, dice)
    return content


def cut(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content) + 1)]


def flip(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(min(len(found), dice.choice((1, 1, 3, 10)))):
        found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def _pieces(content: bytes, dice: random.Random) -> list[bytes]:
    return re.split(rb"(\n)" if dice.random() < 0.5 else rb"([,|;:= \t]+)", content)


def duplicate(content: bytes, dice: random.Random) -> bytes:
    found = _pieces(content, dice)
    place = dice.randrange(len(found))
    return b"".join([*found[:place], *found[place : place + 2] * dice.choice((2, 2, 40)), *found[place + 2 :]])


def drop(content: bytes, dice: random.Random) -> bytes:
    found = _pieces(content, dice)
    place = dice.randrange(len(found))
    return b"".join(found[:place] + found[place + dice.choice((1, 2)) :])


TOKEN = re.compile(rb"-?\d+(?:\.\d+)?|\"[^\"\n]*\"|[\w./]+")
NUMBERS = (
    *(
        b"-1",
        b"0",
        b"1",
        b"3.5",
        b"1e999",
        b"1e99999999",
        b"1e-99999999",
        b"-1e308",
        b"nan",
        b"inf",
        b"1_0",
        b"9223372036854775808",
        b"1e18",
    ),
    *(b"4294967296", b"1000000007", b"9" * 25, b"9" * 400, b"9" * 4300, b"1" + b"0" * 4400, b"0x1F", "٣".encode()),
    b"9007199254740993",
)
VALUES = (*NUMBERS, b"", b"null", b"[]", b"{}", b"true", b'""', b'"x"', b"[1]", b'{"a": 1}', b"\x00", b"\xff", b"[[]]")


def _exchanged(content: bytes, dice: random.Random, among: Sequence[bytes], wanted: re.Pattern[bytes]) -> bytes:
    places = [match.span() for match in wanted.finditer(content)]
    if not places:
        return content
    first, last = dice.choice(places)
    return content[:first] + dice.choice(among) + content[last:]


def huge(content: bytes, dice: random.Random) -> bytes:
    return _exchanged(content, dice, NUMBERS, re.compile(rb"-?\d+(?:\.\d+)?"))


def other(content: bytes, dice: random.Random) -> bytes:
    own = [match[0] for match in TOKEN.finditer(content)]
    return _exchanged(content, dice, VALUES if dice.random() < 0.5 or not own else own, TOKEN)


def nest(content: bytes, dice: random.Random) -> bytes:
    depth = dice.choice((2, 2, 300, 50_000))
    opened, closed = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b""), (b"(", b")"), (b"{a=", b"}")))
    places = [match.span() for match in TOKEN.finditer(content)] or [(0, 0)]
    first, last = dice.choice(places)
    return content[:first] + opened * depth + content[first:last] + closed * depth + content[last:]


MUTATIONS = (cut, flip, duplicate, drop, huge, huge, other, other, nest)


@contextmanager
def patient() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"was not read in {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damaged(of: Input, seed: str, count: int) -> Iterator[dict[str, bytes]]:
    """Files of an input, one of which is damaged."""
    names = sorted(of.damaged or of.files)
    for number in range(count):
        dice = random.Random(f"{seed} {number}")
        yield {names[number % len(names)]: mutated(of.files[names[number % len(names)]], dice)}


def is_named(error: GridsimError, of: Input, folder: Path) -> bool:
    return any(Path(name).name in str(error) for name in (*of.files, folder.name))


def put(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


MANY = 100_000 if os.environ.get("GRIDSIM_HYPOTHESIS") == "thorough" else 25_000
"""Damaged inputs in total; the first ones are the same."""


def attack(name: str, folder: Path, count: int) -> None:
    """Read damaged inputs."""
    given = INPUTS[name]
    of = given() if callable(given) else given
    put(of.files, folder)
    of.read(folder)  # undamaged
    before: dict[str, bytes] = {}
    for number, files in enumerate(damaged(of, name, count)):
        put({**before, **files}, folder)
        before = {file: of.files[file] for file in files}
        try:
            with patient():
                error = refused(of.read, folder)
        except BaseException as escaped:
            escaped.add_note(f"input {number} of '{name}'")
            raise
        assert error is None or is_named(error, of, folder), f"input {number} of '{name}' names no file: {error}"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", INPUTS)
def test_damaged_input_is_read_or_refused_with_its_name(name: str, tmp_path: Path) -> None:
    attack(name, tmp_path, 12)


@pytest.mark.long
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", INPUTS)
def test_many_damaged_inputs_are_read_or_refused_with_their_names(name: str, tmp_path: Path) -> None:
    attack(name, tmp_path, -(-MANY // len(INPUTS)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("count", [80, pytest.param(2_500, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", STATES)
def test_damaged_states_are_read_or_refused_with_their_names(name: str, count: int, tmp_path: Path) -> None:
    attack(name, tmp_path, count)
