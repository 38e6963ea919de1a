"""Slurm sites from their own files: ``slurm.conf``, and what ``sacctmgr`` and ``sshare`` print of shares and limits.

What is read of ``slurm.conf``, and what the words mean, is what its manual page says (slurm.conf(5), version 22.05).
Keys that are not modelled are counted in `Site.ignored`; those that have nothing to do with scheduling are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Association, Node, Priority, Qos, Scheduling, Site, SitePartition
from gridsim.model.time import MICROSECOND, NEVER

__all__ = ["expanded", "read_associations", "read_qos", "read_site", "read_slurm_conf"]

ASSOCIATION_COMMANDS = (
    "'sacctmgr dump CLUSTER file=assoc.cfg', 'sacctmgr -P show assoc tree' or 'sshare -alP' say who is below whom"
)


def read_site(
    conf: str | Path, *, assoc: str | Path | None = None, qos: str | Path | None = None, usage: str | Path | None = None
) -> Site:
    """Site of a ``slurm.conf`` and of what the accounting database says.

    Parameters
    ----------
    conf : path
        The configuration.
    assoc : path, optional
        Associations, as `read_associations` takes them; equal shares and no limits where left out.
    qos : path, optional
        Output of ``sacctmgr -P show qos``.
    usage : path, optional
        Output of ``sshare -alP``: the decayed usage with which the simulation begins.

    Raises
    ------
    InputError
        Naming the file, the line and the field.
    """
    site = read_slurm_conf(conf)
    ignored = Counter(site.ignored)
    if assoc is not None:
        associations, more = read_associations(assoc)
        ignored.update(more)
        site = replace(site, associations=associations)
    if qos is not None:
        levels, more = read_qos(qos)
        ignored.update(more)
        site = replace(site, qos=levels)
    if usage is not None:
        used = {(found.account, found.user): found.usage for found in read_associations(usage)[0]}
        known = tuple(replace(found, usage=used.get((found.account, found.user), 0.0)) for found in site.associations)
        site = replace(site, associations=known)
    return replace(site, ignored=dict(ignored))


# -- slurm.conf ----------------------------------------------------------------------------------------------------


def expanded(names: str) -> list[str]:
    """Host names of a list as Slurm writes it.

    Examples
    --------
    >>> expanded("n[1-3,7],login"), expanded("r[1-2]n[08-10]")[:4]
    (['n1', 'n2', 'n3', 'n7', 'login'], ['r1n08', 'r1n09', 'r1n10', 'r2n08'])
    """
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]+|\[[^\]]*\])+", names):
        heads = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            tails = [plain] if plain else [number for span in ranges.split(",") for number in _span(span)]
            heads = [head + tail for head in heads for tail in tails]
        found += heads
    return found


def _span(text: str) -> list[str]:
    low, dash, high = text.strip().partition("-")
    if not dash:
        return [low]
    if not (low.isdigit() and high.isdigit()) or int(high) < int(low) or int(high) - int(low) > 1_000_000:
        raise InputError(f"'{text}' is no range of numbers, such as 1-8", field="NodeName")
    return [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]


class _Line:
    """Words of a line as key and value, keys in lower case; what nobody asks for stays in `rest`."""

    def __init__(self, path: Path, number: int, words: Mapping[str, str]) -> None:
        self.path, self.number, self.rest = path, number, dict(words)

    def text(self, key: str, default: str = "") -> str:
        return self.rest.pop(key.lower(), default)

    def number_of(self, key: str, default: int) -> int:
        text = self.text(key)
        if not text:
            return default
        try:
            return int(text)
        except ValueError as error:
            raise self.wrong(key, text, "a whole number") from error

    def time_of(self, key: str, default: int, read: Callable[[str], int]) -> int:
        text = self.text(key)
        if not text:
            return default
        try:
            return read(text)
        except ValueError as error:
            raise self.wrong(key, text, "a time such as 30, 00:15:00, 7-0 or UNLIMITED") from error

    def wrong(self, key: str, value: str, expected: str) -> InputError:
        return InputError(f"is '{value}'; expected {expected}", path=self.path, line=self.number, field=key)


def minutes(text: str) -> int:
    """A time limit as Slurm takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:…]; microseconds.

    Examples
    --------
    >>> [minutes(text) // 1_000_000 for text in ("15", "15:30", "00:15:00", "1-0", "2-12:30")]
    [900, 930, 900, 86400, 217800]
    """
    if text.upper() in ("UNLIMITED", "INFINITE", "NONE", "-1"):
        return NEVER
    days, dash, rest = text.partition("-")
    parts = [int(part) for part in (rest if dash else text).split(":")]
    if len(parts) > 3 or min(parts) < 0:
        raise ValueError(text)
    if dash:
        hours, minute, second = [*parts, 0, 0][:3]
        return (((int(days) * 24 + hours) * 60 + minute) * 60 + second) * MICROSECOND
    hours, minute, second = (0, *parts, 0) if len(parts) == 1 else (0, *parts) if len(parts) == 2 else tuple(parts)
    return ((hours * 60 + minute) * 60 + second) * MICROSECOND


def read_slurm_conf(path: str | Path) -> Site:
    """Nodes, partitions and scheduling parameters of a ``slurm.conf``.

    ``Include`` lines are followed. Raises `InputError` with file, line and field.
    """
    path = Path(path)
    ignored: Counter[str] = Counter()
    general: dict[str, tuple[str, _Line]] = {}
    nodes: list[Node] = []
    partitions: list[tuple[_Line, str, dict[str, str]]] = []
    node_defaults: dict[str, str] = {}
    partition_defaults: dict[str, str] = {}
    for line in _lines(path):
        if "nodename" in line.rest:
            name = line.text("NodeName")
            if name == "DEFAULT":
                node_defaults.update(line.rest)
            else:
                nodes += _nodes(_Line(line.path, line.number, node_defaults | line.rest), name, ignored)
        elif "partitionname" in line.rest:
            name = line.text("PartitionName")
            if name == "DEFAULT":
                partition_defaults.update(line.rest)
            else:
                partitions.append((line, name, partition_defaults | line.rest))
        else:
            general.update((key, (value, line)) for key, value in line.rest.items())
    if not nodes:
        raise InputError("names no node; expected at least one line NodeName=…", path=path, field="NodeName")
    if not partitions:
        raise InputError("names no partition; expected a line PartitionName=…", path=path, field="PartitionName")
    made = [_partition(_Line(line.path, line.number, words), name, nodes, ignored) for line, name, words in partitions]
    by_default = next((name for _, name, words in partitions if words.get("default", "").upper() == "YES"), None)
    parts = _general(general, ignored)
    return Site(
        nodes=tuple(nodes),
        partitions=tuple(made),
        default_partition=by_default or made[0].name,
        ignored=dict(ignored),
        **parts,
    )


def _lines(path: Path, depth: int = 0) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise InputError("no such file; expected a slurm.conf", path=path) from error
    if depth > 8:
        raise InputError("files that include one another; expected at most 8 levels", path=path, field="Include")
    joined, first = "", 0
    for number, raw in enumerate(text.split("\n"), start=1):
        plain = re.sub(r"(?<!\\)#.*", "", raw).strip()
        first = first or number
        if plain.endswith("\\"):
            joined += plain[:-1]
            continue
        whole, number, joined, first = joined + plain, first, "", 0
        if not whole:
            continue
        if whole.lower().startswith("include "):
            yield from _lines(path.parent / whole.split(None, 1)[1].strip().strip('"'), depth + 1)
            continue
        words = re.findall(r'([A-Za-z][\w/]*)\s*\+?=\s*("[^"]*"|\S+)', whole)
        if not words:
            raise InputError(f"'{whole[:60]}' is no Key=Value", path=path, line=number)
        yield _Line(path, number, {key.lower(): value.strip('"') for key, value in words})


_QUIET_NODE = frozenset(
    [
        "nodehostname",
        "nodeaddr",
        "port",
        "state",
        "boards",
        "tmpdisk",
        "reason",
        "bcastaddr",
        "procs",
        "boards",
        "socketsperboard",
        "threadspercore",
        "cpuspecsonline",
        "memspeclimit",
        "corespeccount",
        "feature",
        "features",
    ]
)
_QUIET_PARTITION = frozenset(
    [
        "default",
        "hidden",
        "rootonly",
        "disablerootjobs",
        "allocnodes",
        "lln",
        "powerdownonidle",
        "resumetimeout",
        "suspendtime",
        "suspendtimeout",
        "minnodes",
        "defmempercpu",
        "defmempernode",
        "maxmempernode",
        "maxmempercpu",
    ]
)


def _nodes(line: _Line, names: str, ignored: Counter[str]) -> list[Node]:
    per_socket, threads = line.number_of("CoresPerSocket", 1), line.number_of("ThreadsPerCore", 1)
    boards = line.number_of("Boards", 1)
    sockets = line.number_of("Sockets", 0) or line.number_of("SocketsPerBoard", 1) * boards
    cpus = line.number_of("CPUs", sockets * per_socket * threads)
    memory, weight = line.number_of("RealMemory", 1), line.number_of("Weight", 1)
    if cpus < 1 or memory < 1:
        raise line.wrong("CPUs" if cpus < 1 else "RealMemory", str(min(cpus, memory)), "1 or more")
    down = line.rest.get("state", "UNKNOWN").upper() in ("DOWN", "DRAIN", "FAIL", "FUTURE")
    _count(line, "NodeName", _QUIET_NODE, ignored)
    if down:
        ignored["NodeName State (nodes left out)"] += 1
        return []
    try:
        return [Node(name, cpus, memory, weight) for name in expanded(names)]
    except InputError as error:
        raise InputError(error.message, path=line.path, line=line.number, field="NodeName") from error


def _partition(line: _Line, name: str, nodes: Sequence[Node], ignored: Counter[str]) -> SitePartition:
    listed = line.text("Nodes", "")
    known = [node.name for node in nodes]
    wanted = known if listed.upper() == "ALL" else expanded(listed)
    oversubscribe = line.text("OverSubscribe", line.text("Shared", "NO")).upper()
    if oversubscribe.startswith(("YES", "FORCE")) and not oversubscribe.endswith(":1"):
        ignored[f"PartitionName OverSubscribe={oversubscribe}"] += 1
    if line.text("ExclusiveUser", "NO").upper() == "YES":
        ignored["PartitionName ExclusiveUser"] += 1
    if line.text("State", "UP").upper() != "UP":
        ignored["PartitionName State"] += 1
    unknown = [node for node in wanted if node not in known]
    if unknown:
        raise line.wrong("Nodes", listed, f"nodes that a NodeName line names; '{unknown[0]}' is not among them")
    priority = line.number_of("Priority", 1)
    most = line.text("MaxNodes", "UNLIMITED")
    made = SitePartition(
        name=name,
        nodes=tuple(wanted),
        longest=line.time_of("MaxTime", NEVER, minutes),
        default_time=line.time_of("DefaultTime", NEVER, minutes),
        job_factor=line.number_of("PriorityJobFactor", priority),
        tier=line.number_of("PriorityTier", priority),
        exclusive=oversubscribe == "EXCLUSIVE",
        most_nodes=int(most) if most.isdigit() else 0,
        qos=line.text("QOS"),
        preempt=line.text("PreemptMode").upper(),
        grace=line.number_of("GraceTime", 0) * MICROSECOND,
    )
    _count(line, "PartitionName", _QUIET_PARTITION, ignored)
    return made


def _count(line: _Line, kind: str, quiet: frozenset[str], ignored: Counter[str]) -> None:
    ignored.update(f"{kind} {key}" for key in line.rest if key not in quiet)


def _of_seconds(text: str) -> int:
    return int(text) * MICROSECOND


_SCHEDULING: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "bf_interval": ("interval", _of_seconds),
    "bf_resolution": ("resolution", _of_seconds),
    "bf_window": ("window", lambda text: int(text) * 60 * MICROSECOND),
    "bf_max_job_test": ("tests", int),
    "max_job_bf": ("tests", int),
    "bf_max_job_user": ("user_tests", int),
    "bf_max_job_part": ("partition_tests", int),
    "bf_max_job_assoc": ("association_tests", int),
    "bf_max_job_start": ("starts", int),
    "bf_window_linear": ("linear", _of_seconds),
    "default_queue_depth": ("queue_depth", int),
    "partition_job_depth": ("partition_depth", int),
    "sched_interval": ("full_interval", _of_seconds),
    "sched_min_interval": ("least_interval", int),
    "batch_sched_delay": ("batch_delay", _of_seconds),
}
_FLAGS = {"defer": "defer", "assoc_limit_stop": "stop_at_limit"}
_AS_IT_IS = frozenset(
    {
        "bf_continue",  # a pass takes no time here, so it is never cut short
        "bf_max_time",
        "bf_yield_interval",
        "bf_yield_sleep",
        "bf_yield_rpc_cnt",
        "bf_node_space_size",
        "max_sched_time",
        "sched_max_job_start",
        "max_rpc_cnt",
    }
)


def _scheduling(text: str, line: _Line | None, ignored: Counter[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, _, value = word.partition("=")
        if name in _SCHEDULING:
            field, read = _SCHEDULING[name]
            try:
                found[field] = read(value)
            except ValueError as error:
                assert line is not None
                raise line.wrong(f"SchedulerParameters {name}", value, "a whole number") from error
        elif name in _FLAGS:
            found[_FLAGS[name]] = True
        elif name not in _AS_IT_IS:
            ignored[f"SchedulerParameters {name}"] += 1
    return found


_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fair_share",
    "priorityweightjobsize": "size",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
}
_NOT_MODELLED = (
    "priorityweightassoc",
    "priorityweighttres",
    "priorityusageresetperiod",
    "prioritysitefactorplugin",
    "licenses",
    "grestypes",
    "topologyplugin",
    "completewait",
    "jobsubmitplugins",
    "suspendprogram",
    "resumeprogram",
    "overtimelimit",
)
_PRIORITY_FLAGS = {
    "SMALL_RELATIVE_TO_TIME": ("relative_size", True),
    "NO_FAIR_TREE": ("fair_tree", False),
    "FAIR_TREE": ("fair_tree", True),
    "ACCRUE_ALWAYS": ("always_accrue", True),
    "CALCULATE_RUNNING": None,
    "MAX_TRES": None,
}


def _general(keys: Mapping[str, tuple[str, _Line]], ignored: Counter[str]) -> dict[str, Any]:
    def text(key: str, default: str = "") -> str:
        return keys[key.lower()][0] if key.lower() in keys else default

    def time(key: str, default: int) -> int:
        if key.lower() not in keys:
            return default
        value, line = keys[key.lower()]
        return _Line(line.path, line.number, {key.lower(): value}).time_of(key, default, minutes)

    def number(key: str, default: int) -> int:
        if key.lower() not in keys:
            return default
        value, line = keys[key.lower()]
        return _Line(line.path, line.number, {key.lower(): value}).number_of(key, default)

    ignored.update(key for key in _NOT_MODELLED if text(key).lower() not in ("", "0", "none", "topology/none"))
    parameters = keys.get("schedulerparameters", ("", None))
    scheduling = Scheduling(
        **{
            "backfill": text("SchedulerType", "sched/backfill") == "sched/backfill",
            **_scheduling(parameters[0], parameters[1], ignored),
        }
    )
    weights: dict[str, Any] = {field: number(key, 0) for key, field in _WEIGHTS.items()}
    flags: dict[str, Any] = {}
    for flag in filter(None, text("PriorityFlags").upper().split(",")):
        if flag not in _PRIORITY_FLAGS:
            ignored[f"PriorityFlags {flag}"] += 1
        elif (meaning := _PRIORITY_FLAGS[flag]) is not None:
            flags[meaning[0]] = meaning[1]
    kind = text("PriorityType", "priority/multifactor" if any(weights.values()) else "priority/basic")
    half_life, oldest = time("PriorityDecayHalfLife", 7 * 86_400 * MICROSECOND), time("PriorityMaxAge", -1)
    priority = Priority(
        kind="basic" if kind == "priority/basic" else "multifactor",
        half_life=0 if half_life >= NEVER else half_life,
        oldest=7 * 86_400 * MICROSECOND if oldest < 0 else oldest,
        period=time("PriorityCalcPeriod", 300 * MICROSECOND),
        favor_small=text("PriorityFavorSmall", "NO").upper() == "YES",
        dampening=max(1, number("FairShareDampeningFactor", 1)),
        **weights,
        **flags,
    )
    select, resources = text("SelectType", "select/cons_tres"), text("SelectTypeParameters").upper()
    for word in filter(None, resources.split(",")):
        if word not in ("CR_CORE", "CR_CPU", "CR_CORE_MEMORY", "CR_CPU_MEMORY", "CR_MEMORY", "CR_SOCKET"):
            ignored[f"SelectTypeParameters {word}"] += 1
    preempt = text("PreemptType", "preempt/none")
    kinds = {"preempt/partition_prio": "partition", "preempt/qos": "qos"}
    mode = text("PreemptMode", "OFF").upper()
    modes = [word for word in mode.split(",") if word != "GANG"]
    if "SUSPEND" in modes:
        ignored["PreemptMode SUSPEND"] += 1
    enforce = text("AccountingStorageEnforce").lower().replace(" ", "").split(",")
    return {
        "scheduling": scheduling,
        "priority": priority,
        "memory": "MEMORY" in resources,
        "whole_nodes": select == "select/linear",
        "preemption": kinds.get(preempt, "none"),
        "preempt_mode": next((word for word in modes if word in ("REQUEUE", "CANCEL")), "OFF"),
        "enforce": bool({"limits", "safe", "all", "1"} & set(enforce)) or "qos" in enforce,
    }


# -- associations and QOS ------------------------------------------------------------------------------------------


def read_associations(path: str | Path) -> tuple[tuple[Association, ...], Counter[str]]:
    """Accounts and users with shares and limits, and how often each limit that is not modelled is set.

    Four forms are read: the file of ``sacctmgr dump``, ``sacctmgr -P show assoc tree`` and ``sshare -alP`` (leading
    spaces say who is below whom; the latter knows shares and usage but no limits), and any ``|``-separated list with a
    column ``ParentName``. Plain ``sacctmgr -P show assoc`` does not say which account is below which; it is read where
    no account but the root has another one, and refused otherwise.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError as error:
        raise InputError("no such file; expected what sacctmgr or sshare printed", path=path) from error
    ignored: Counter[str] = Counter()
    if any(line.startswith(("Cluster - ", "Parent - ")) for line in lines):
        return _dumped(path, lines, ignored), ignored
    return _listed(path, lines, ignored), ignored


_NAMES = {
    "fairshare": "shares",
    "share": "shares",
    "rawshares": "shares",
    "maxjobs": "most_jobs",
    "maxsubmitjobs": "most_submitted",
    "maxsubmit": "most_submitted",
    "grpjobs": "group_jobs",
    "grpsubmitjobs": "group_submitted",
    "grpsubmit": "group_submitted",
    "maxwalldurationperjob": "longest",
    "maxwall": "longest",
    "defaultqos": "default_qos",
    "def qos": "default_qos",
}
_NO_LIMITS = frozenset(
    [
        "cluster",
        "account",
        "user",
        "partition",
        "qos",
        "description",
        "organization",
        "defaultaccount",
        "adminlevel",
        "coordinator",
        "priority",
        "normshares",
        "rawusage",
        "normusage",
        "effectvusage",
        "fairshare",
        "levelfs",
        "tresrunmins",
    ]
)


def _limits(words: Mapping[str, str], ignored: Counter[str], where: tuple[Path, int]) -> dict[str, Any]:
    """Fields of an association, or those of them that a QOS shares, from words with keys in lower case."""
    found: dict[str, Any] = {}
    for key, text in words.items():
        if not text:
            continue
        field = _NAMES.get(key)
        try:
            if field == "shares":
                found[field] = PARENT if text.lower() == "parent" else int(float(text))
            elif field == "longest":
                found[field] = minutes(text)
            elif field == "default_qos":
                found[field] = text
            elif field is not None:
                found[field] = None if int(text) < 0 else int(text)
            elif key in ("grptres", "maxtres", "maxtresperjob"):
                _tres(key, text, "group" if key == "grptres" else "most", found, ignored)
            elif key not in _NO_LIMITS:
                ignored[f"association {key}"] += 1
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=where[0], line=where[1], field=key) from error
    return found


def _tres(key: str, text: str, prefix: str, found: dict[str, Any], ignored: Counter[str]) -> None:
    """Limits of resources such as ``cpu=8,node=2``: cores are modelled, nodes of one job too."""
    for word in text.split(","):
        name, _, value = word.partition("=")
        if name in ("cpu", "1"):
            found[f"{prefix}_cores"] = int(value)
        elif name in ("node", "4") and prefix == "most":
            found["most_nodes"] = int(value)
        else:
            ignored[f"{key} {name}"] += 1


def _dumped(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Associations of a file that ``sacctmgr dump`` wrote."""
    found: list[Association] = [Association("root")]
    parent = "root"
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        matched = re.match(r"(Cluster|Parent|Account|User) - '([^']*)'(.*)$", line)
        if matched is None:
            raise InputError(
                f"'{line[:60]}' is none of Cluster, Parent, Account and User - 'name':…", path=path, line=number
            )
        kind, name, rest = matched.groups()
        words = {key.lower(): value.strip("'") for key, value in re.findall(r":([^=:]+)=('[^']*'|[^:]*)", rest)}
        limits = _limits(words, ignored, (path, number))
        if kind == "Parent":
            if name not in {each.account for each in found if not each.user}:
                raise InputError(f"'{name}' is no account named before", path=path, line=number, field="Parent")
            parent = name
        elif kind == "Cluster":
            found[0] = replace(found[0], **limits)
        elif kind == "Account":
            found.append(Association(name, parent=parent, **limits))
        else:
            found.append(Association(parent, user=name, **limits))
    return tuple(found)


def _listed(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Associations of a list with columns."""
    rows = list(_table(path, lines, ("account", "user")))
    if not rows:
        raise InputError("has no association; expected lines below the header", path=path)
    if "parentname" not in rows[0][1] and not any(row["account"].startswith(" ") for _, row in rows):
        deep = {row["account"] for _, row in rows if not row["user"] and row["account"] != "root"}
        if len(deep) > 1:
            raise InputError(f"does not say which account is below which; {ASSOCIATION_COMMANDS}", path=path)
    found: list[Association] = []
    above: list[str] = []
    for number, row in rows:
        account, user = row["account"].strip(), row["user"].strip()
        depth = len(row["account"]) - len(row["account"].lstrip(" "))
        words = {key: value for key, value in row.items() if key not in ("account", "user", "parentname")}
        usage = words.pop("rawusage", "")
        if usage:  # a list of sshare, whose column FairShare is the factor, not the shares
            words.pop("fairshare", None)
            words = {key: value for key, value in words.items() if key == "rawshares"}
        limits = _limits(words, ignored, (path, number))
        limits["usage"] = float(usage or 0.0)
        if user:
            found.append(Association(account, user=user, **limits))
            continue
        del above[depth:]
        named = row.get("parentname") or (above[-1] if above else "root" if account != "root" else "")
        found.append(Association(account, parent=named if account != "root" else "", **limits))
        above.append(account)
    if not any(each.account == "root" and not each.user for each in found):
        found.insert(0, Association("root"))
    return tuple(found)


def _table(path: Path, lines: Sequence[str], needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines of a ``|``-separated list with a header, keys in lower case."""
    header: list[str] = []
    for number, line in enumerate(lines, start=1):
        cells = line.split("|")
        if not header:
            header = [cell.strip().lower() for cell in cells]
            lacking = [name for name in needed if name not in header]
            if lacking:
                raise InputError(
                    f"has no column {lacking[0]}; expected a header of a list printed with -P",
                    path=path,
                    line=number,
                    field=lacking[0],
                )
        elif line.strip():
            if len(cells) < len(header):
                raise InputError(f"has {len(cells)} fields, the header {len(header)}", path=path, line=number)
            yield number, dict(zip(header, cells, strict=False))


_QOS = {
    "grpjobs": "group_jobs",
    "grpsubmit": "group_submitted",
    "grpsubmitjobs": "group_submitted",
    "maxjobspu": "user_jobs",
    "maxjobsperuser": "user_jobs",
    "maxsubmitpu": "user_submitted",
    "maxsubmitjobsperuser": "user_submitted",
    "maxjobspa": "account_jobs",
}
_QOS_TRES = {"grptres": "group", "maxtres": "most", "maxtrespu": "user", "maxtrespa": "account"}
_QOS_QUIET = frozenset(["name", "gracetime", "preemptexempttime", "usagethres", "description", "id"])


def read_qos(path: str | Path) -> tuple[tuple[Qos, ...], Counter[str]]:
    """QOS of ``sacctmgr -P show qos``, and how often each limit that is not modelled is set."""
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError as error:
        raise InputError("no such file; expected what 'sacctmgr -P show qos' printed", path=path) from error
    ignored: Counter[str] = Counter()
    return tuple(_qos(path, number, row, ignored) for number, row in _table(path, lines, ("name", "priority"))), ignored


def _qos(path: Path, number: int, row: Mapping[str, str], ignored: Counter[str]) -> Qos:
    found: dict[str, Any] = {}
    for key, text in row.items():
        if not text or key in _QOS_QUIET:
            continue
        try:
            if key == "priority":
                found["priority"] = int(text)
            elif key == "usagefactor":
                found["usage_factor"] = float(text)
            elif key == "maxwall":
                found["longest"] = minutes(text)
            elif key in _QOS:
                found[_QOS[key]] = int(text)
            elif key in _QOS_TRES:
                _tres(f"QOS {key}", text, _QOS_TRES[key], found, ignored)
            elif key == "preempt":
                found["preempts"] = tuple(text.split(","))
            elif key == "preemptmode":
                found["mode"] = "" if text.lower() == "cluster" else text.upper()
            else:
                ignored[f"QOS {key}"] += 1
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=path, line=number, field=key) from error
    found.pop("most_nodes", None)
    return Qos(row["name"], **found)
