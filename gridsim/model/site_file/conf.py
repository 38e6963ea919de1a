"""Nodes and partitions of a ``slurm.conf``, as defined by its manual page (slurm.conf(5), version 22.05)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from gridsim.errors import InputError, located
from gridsim.files import read_text
from gridsim.model.capacity import GPU
from gridsim.model.site import Allowed, Node, Site, SitePartition
from gridsim.model.site.parameters import Weights
from gridsim.model.site.vocabulary import canonical, matters
from gridsim.model.site_file.parameters import general
from gridsim.model.site_file.settings import Setting, change_keywords, change_partitions
from gridsim.model.site_file.syntax import ConfLine, minutes, span, weights
from gridsim.model.time import MICROSECOND, NEVER


def read_slurm_conf(path: str | Path, settings: Sequence[Setting] = ()) -> Site:
    """Return the nodes, partitions and scheduling parameters of a ``slurm.conf``, with changed keywords and partitions.

    ``Include`` lines are followed. Raises `InputError` with file, line and field.
    """
    path = Path(path)
    ignored: Counter[str] = Counter()
    keys: dict[str, tuple[str, ConfLine]] = {}
    nodes: list[Node] = []
    partitions: list[tuple[ConfLine, str, dict[str, str]]] = []
    node_defaults: dict[str, str] = {}
    partition_defaults: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for line in _lines(path):
        spelled |= line.spelled
        if other := next((word for word in _OTHER_LINES if word in line.rest), None):
            ignored[other] += 1
        elif "nodename" in line.rest:
            name = line.text("NodeName")
            if name == "DEFAULT":
                node_defaults.update(line.rest)
            else:
                nodes += _nodes(ConfLine(line.path, line.number, node_defaults | line.rest), name, ignored)
        elif "partitionname" in line.rest:
            name = line.text("PartitionName")
            if name == "DEFAULT":
                partition_defaults.update(line.rest)
            else:
                partitions.append((line, name, partition_defaults | line.rest))
        else:
            keys.update((key, (value, line)) for key, value in line.rest.items())
    if not nodes:
        raise InputError("has no node; expected at least one line NodeName=…", path=path, field="NodeName")
    if not partitions:
        raise InputError("has no partition; expected a line PartitionName=…", path=path, field="PartitionName")
    without_effect, changed_default = change_partitions(partitions, settings)
    made = []
    for line, name, words in partitions:
        with nullcontext() if line.path else located(below=f"partition.{name}"):
            made.append(partition_of(ConfLine(line.path, line.number, words), name, nodes, ignored))
    by_default = changed_default or next(
        (name for _, name, words in partitions if words.get("default", "").upper() == "YES"), None
    )
    without_effect += change_keywords(keys, settings)
    parts = general(keys, ignored)
    known = {_spelled(text, spelled): count for text, count in ignored.items()}
    known = {text: count for text, count in known.items() if text not in without_effect}
    parts |= {"ignored": known, "without_effect": tuple(dict.fromkeys(without_effect))}
    default = by_default or made[0].name
    with located(path):
        return Site(tuple(nodes), tuple(made), default_partition=default, **parts)


GROUPS = "PartitionName AllowGroups"
"""Counted text if the members of the groups are unknown."""

_OTHER_LINES = ("downnodes", "nodeset", "frontendname")
"""Keys of line types that are not modelled."""


def _spelled(text: str, spelled: Mapping[str, str]) -> str:
    """Return a counted text with its key as in the manual, or as in the file if the key is unknown."""
    kind, _, key = text.rpartition(" ")
    if kind not in ("", "NodeName", "PartitionName"):
        return text
    return f"{kind} {canonical(kind, spelled.get(key, key))}".strip()


def _lines(path: Path, depth: int = 0) -> Iterator[ConfLine]:
    if not path.exists():
        raise InputError("no such file; expected a slurm.conf", path=path)
    text = read_text(path, errors="replace")
    if depth > 8:
        raise InputError("has more than 8 levels of Include; expected at most 8", path=path, field="Include")
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
            raise InputError(f"'{whole[:60]}' is not Key=Value", path=path, line=number)
        yield ConfLine(path, number, {key: value.strip('"') for key, value in words})


def _nodes(line: ConfLine, names: str, ignored: Counter[str]) -> list[Node]:
    per_socket, threads = line.number_of("CoresPerSocket", 1), line.number_of("ThreadsPerCore", 1)
    boards = line.number_of("Boards", 1)
    sockets = line.number_of("Sockets", 0) or line.number_of("SocketsPerBoard", 1) * boards
    cpus = line.number_of("CPUs", line.number_of("Procs", sockets * per_socket * threads))
    memory, weight = line.number_of("RealMemory", 1), line.number_of("Weight", 1)
    if cpus < 1 or memory < 1:
        raise line.wrong("CPUs" if cpus < 1 else "RealMemory", str(min(cpus, memory)), "1 or more")
    spared = line.number_of("CoreSpecCount", 0) * threads or _listed_cpus(line)
    cpus, memory = cpus - spared, memory - line.number_of("MemSpecLimit", 0)
    if cpus < 1 or memory < 1:
        raise line.wrong("CoreSpecCount" if cpus < 1 else "MemSpecLimit", str(spared), "less than the node has")
    features = tuple(filter(None, (line.text("Features") or line.text("Feature")).split(",")))
    gpus, kind, other = _gres(line, ignored)
    down = line.rest.get("state", "UNKNOWN").upper() in ("DOWN", "DRAIN", "FAIL", "FUTURE")
    _count(line, "NodeName", ignored)
    if down:
        ignored["NodeName State (nodes left out)"] += 1
        return []
    return [Node(name, cpus, memory, weight, features, gpus, kind, other) for name in line.names("NodeName", names)]


def _listed_cpus(line: ConfLine) -> int:
    """Return the number of CPUs in ``CpuSpecList``, a list such as ``0-1,7``."""

    def count(text: str) -> int:
        return sum(len(span(part)) for part in filter(None, text.split(",")))

    return line.read("CpuSpecList", line.text("CpuSpecList"), count, "CPUs such as 0-1,7")


def _gres(line: ConfLine, ignored: Counter[str]) -> tuple[int, str, tuple[tuple[str, int], ...]]:
    """Return the GPUs of a node and their type, and other generic resources; count those that are not modelled.

    Raises
    ------
    InputError
        If it has GPUs of two types, because nodes are modelled with one type.
    """
    written = line.text("Gres")
    gpus, other = generic_resources(line, written)
    ignored.update(f"NodeName Gres {name}" for name in other)
    if len(gpus) > 1:
        types = " and ".join(kind or GPU for kind in gpus)
        raise line.wrong("Gres", written, f"GPUs of one type per node; this node has the types {types}")
    return sum(gpus.values()), next(iter(gpus), "") or GPU, tuple(other.items())


def generic_resources(line: ConfLine, written: str) -> tuple[Counter[str], Counter[str]]:
    """Return the GPUs by type (empty if none is given), and the numbers of other resources, as in ``Gres``."""
    gpus, other = Counter[str](), Counter[str]()
    for word in filter(None, re.sub(r"\([^)]*\)", "", written).split(",")):
        name, *rest = word.split(":")
        number = re.fullmatch(r"(\d{1,16})([KMGTP]?)", rest[-1]) if rest and rest[-1] != "no_consume" else None
        count = int(number[1]) * 1024 ** " KMGTP".index(number[2] or " ") if number else 1
        if count >= 2**53:
            raise line.wrong("Gres", written, "a number below 2**53")
        if name != GPU:
            other[name] += count
            continue
        kind = next((part for part in rest[:-1] if part), "") if number else rest[0] if rest else ""
        gpus[kind] += count
    return gpus, other


def _limit_of(line: ConfLine, key: str) -> int | None:
    """Return the number of a key; None if it is missing or unlimited."""
    text = line.text(key)
    if not text or text.upper() in ("UNLIMITED", "INFINITE"):
        return None
    return ConfLine(line.path, line.number, {key.lower(): text}).number_of(key, 0)


def _allowed(line: ConfLine, only: str, never: str) -> Allowed:
    """Return the names of an Allow… key, or without a value or with ALL, all except those of the Deny… key."""
    wanted, unwanted = line.text(only), line.text(never)
    if wanted and wanted.upper() != "ALL":
        return Allowed(only=tuple(wanted.split(",")))
    return Allowed(never=tuple(filter(None, unwanted.split(","))))


def _mode(line: ConfLine) -> str:
    """Return ``PreemptMode`` of a partition."""
    words = [word for word in line.text("PreemptMode").upper().split(",") if word and word != "GANG"]
    return words[0] if words else ""


def partition_of(line: ConfLine, name: str, nodes: Sequence[Node], ignored: Counter[str]) -> SitePartition:
    listed = line.text("Nodes", "")
    known = [node.name for node in nodes]
    wanted = known if listed.upper() == "ALL" else line.names("Nodes", listed)
    oversubscribe = line.text("OverSubscribe", line.text("Shared", "NO")).upper()
    if oversubscribe.startswith(("YES", "FORCE")) and not oversubscribe.endswith(":1"):
        ignored[f"PartitionName OverSubscribe={oversubscribe}"] += 1
    unknown = [node for node in wanted if node not in known]
    if unknown:
        raise line.wrong("Nodes", listed, f"nodes of a NodeName line; '{unknown[0]}' is not one of them")
    priority = line.number_of("Priority", 1)
    made = SitePartition(
        name=name,
        nodes=tuple(wanted),
        longest=line.time_of("MaxTime", NEVER, minutes),
        default_time=line.time_of("DefaultTime", NEVER, minutes),
        job_factor=line.number_of("PriorityJobFactor", priority),
        tier=line.number_of("PriorityTier", priority),
        exclusive=oversubscribe == "EXCLUSIVE",
        most_nodes=max(0, _limit_of(line, "MaxNodes") or 0),
        qos=line.text("QOS"),
        preempt=_mode(line),
        grace=line.number_of("GraceTime", 0) * MICROSECOND,
        least_nodes=line.number_of("MinNodes", 0),
        state=line.text("State", "UP").upper(),
        accounts=_allowed(line, "AllowAccounts", "DenyAccounts"),
        levels=_allowed(line, "AllowQos", "DenyQos"),
        needs_reservation=line.text("ReqResv", "NO").upper() == "YES",
        default_memory=_limit_of(line, "DefMemPerNode"),
        default_core_memory=_limit_of(line, "DefMemPerCPU"),
        most_memory=_limit_of(line, "MaxMemPerNode"),
        billing=_billing(line, ignored),
        groups=_groups(line, ignored),
        node_cores=_node_cores(line),
        least_loaded=_yes(line, "LLN"),
    )
    _count(line, "PartitionName", ignored)
    return made


def _groups(line: ConfLine, ignored: Counter[str]) -> tuple[str, ...]:
    """Return ``AllowGroups``; counted as ignored without a list of members (`gridsim.model.site_file.read_groups`)."""
    text = line.text("AllowGroups", "ALL")
    if text.upper() == "ALL":
        return ()
    ignored[GROUPS] += 1
    return tuple(filter(None, text.split(",")))


def _node_cores(line: ConfLine) -> int:
    """Return ``MaxCPUsPerNode``; 0 if all cores of a node can be used."""
    count = _limit_of(line, "MaxCPUsPerNode")
    if count is not None and count < 1:
        raise line.wrong("MaxCPUsPerNode", str(count), "a number of CPUs above 0, or UNLIMITED")
    return count or 0


def _yes(line: ConfLine, key: str) -> bool:
    text = line.text(key, "NO")
    if text.upper() not in ("YES", "NO"):
        raise line.wrong(key, text, "YES or NO")
    return text.upper() == "YES"


def _billing(line: ConfLine, ignored: Counter[str]) -> Weights:
    """Return ``TRESBillingWeights``."""
    key, expected = "TRESBillingWeights", "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
    found, unknown = line.read(key, line.text(key), weights, expected)
    ignored.update(f"PartitionName TRESBillingWeights {name}" for name in unknown)
    return found


def _count(line: ConfLine, kind: str, ignored: Counter[str]) -> None:
    """Count keys that are unknown to Slurm, or relevant but not modelled."""
    ignored.update(f"{kind} {key}" for key, value in line.rest.items() if matters(kind, key, value))
