"""WfFormat, versions 1.5 and 1.6: workflows as DAG jobs, with their measured run times and the bytes between tasks."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from gridsim.errors import InputError
from gridsim.files import DAMAGED, parse_json
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.tasks import ANY_KIND
from gridsim.model.workload import Workload
from gridsim.workload.formats.dag_jobs import Graph, Submit, assembled, check_tick, cycle, in_ticks
from gridsim.workload.formats.stream import opened
from gridsim.workload.problems import SHOWN_LINES, Problems

MOST = sys.float_info.max
"""Default upper limit of numbers."""

_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number"}


class JsonPlace:
    """A value of a JSON file.

    Parameters
    ----------
    value : object
        Value from the JSON module.
    path : object
        Path of the file.
    field : str
        Path of the value in the file, as in ``workflow.specification.tasks[3].id``; empty for the whole file.

    Examples
    --------
    >>> JsonPlace({"tasks": [{"id": "a"}]}, "w.json").get("tasks").items()[0].get("id").field
    'tasks[0].id'
    """

    __slots__ = ("field", "path", "value")

    def __init__(self, value: Any, path: object, field: str = "") -> None:
        self.value, self.path, self.field = value, path, field

    def wrong(self, message: str) -> NoReturn:
        """Raise `InputError` for this value."""
        raise InputError(message, path=self.path, field=self.field or "(the whole file)")

    def get(self, key: str) -> JsonPlace:
        """Return the value of a required key."""
        found = self.find(key)
        if found is None:
            raise InputError(f"is missing; expected by {self._name()}", path=self.path, field=self._of(key))
        return found

    def find(self, key: str) -> JsonPlace | None:
        """Return the value of a key, or None without it."""
        value = self._typed(dict).get(key)
        return None if value is None else JsonPlace(value, self.path, self._of(key))

    def items(self, key: str | None = None, *, least: int = 0) -> list[JsonPlace]:
        """Return the entries of this list, or of that under *key*; a missing list is empty if *least* is 0."""
        if key is not None:
            inner = self.get(key) if least else self.find(key)
            return [] if inner is None else inner.items(least=least)
        values = self._typed(list)
        if len(values) < least:
            self.wrong(f"is empty; expected at least {least}")
        return [JsonPlace(value, self.path, f"{self.field}[{index}]") for index, value in enumerate(values)]

    def text(self) -> str:
        """Return this value as a nonempty text."""
        value: str = self._typed(str)
        if not value:
            self.wrong("is empty; expected a text")
        return value

    def number(self, least: float = -math.inf, most: float = MOST) -> float:
        """Return this value as a number from *least* to *most*."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.wrong(f"is {_shown(self.value)}; expected a number")
        if not least <= self.value <= most:
            said = f"from {least:g}" if self.value < least or most == MOST else f"of at most {most:,.16g}"
            self.wrong(f"is {_shown(self.value)}; expected a number {said}")
        return float(self.value)

    def _typed(self, wanted: type) -> Any:
        if not isinstance(self.value, wanted):
            self.wrong(f"is {_shown(self.value)}; expected {_TYPES[wanted]}")
        return self.value

    def _of(self, key: str) -> str:
        return f"{self.field}.{key}" if self.field else key

    def _name(self) -> str:
        return f"'{self.field}'" if self.field else "the format"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def read_json(path: str | os.PathLike[str]) -> tuple[JsonPlace, bytes, str]:
    """Return the contents of a JSON file, plain or compressed, its decompressed bytes and its checksum.

    Raises
    ------
    InputError
        If the file cannot be read or is not valid JSON; with the line.
    """
    with opened(path) as (stream, digesting):
        try:
            text = stream.read()
        except DAMAGED as error:
            raise InputError(f"the compressed data is damaged ({error}); copy the file again", path=path) from error
        sha256 = digesting.hexdigest()
    return JsonPlace(parse_json(text, path, "a workflow"), path), text, sha256


VERSIONS = ("1.5", "1.6")
"""Supported versions, which differ only in optional fields."""

TICK = 0.001
"""Length of a tick (s): run times of workflows are often far below a second."""

FILE_SUFFIXES = (".json", ".json.gz", ".json.xz")
"""Suffixes of workflow files in a folder."""

_LONGEST = 1e12
"""Longest run time of a task (s)."""

_LARGEST = 1e18
"""Largest file (bytes)."""

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def looks_like_wfformat(beginning: bytes) -> bool:
    """Return whether a file with this beginning is probably a workflow: a JSON object."""
    return beginning.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def workflow_files(paths: Files) -> list[Path]:
    """Return the files in *paths*; for a folder, the workflows in it by name.

    Raises
    ------
    InputError
        For a folder without workflows, or if *paths* is empty.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted(entry for entry in path.iterdir() if entry.name.endswith(FILE_SUFFIXES))
            if not inside:
                raise InputError(f"is a folder without workflows; expected files {', '.join(FILE_SUFFIXES)}", path=path)
            files += inside
        else:
            files.append(path)
    if not files:
        raise InputError("no workflow is given; expected at least one file", field="paths")
    return files


def read_workflows(
    paths: Files,
    *,
    submit: Submit = 0.0,
    tick: float = TICK,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
) -> Workload:
    """Return workflows as one workload, with one DAG job each.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, plain or compressed, or folders of them.
    submit : float or sequence of float
        Submit time of all workflows (s), or one for each; with more times than workflows, the workflows repeat in
        turn.
    tick : float
        Unit to which run times are rounded (s). Run times that would round to 0 become one tick; they are counted.
    cores : int, optional
        Cores of the machine, which limit the width of every task.
    rules : mapping of str to str, optional
        Rule for ``zero-length-task``, if not the default.

    Raises
    ------
    InputError
        With the file and the path of the field: for a missing field, a task that is listed twice, an unknown parent or
        child, parents and children that disagree, a cycle, and an invalid value.

    Notes
    -----
    An edge transfers the files that are output of its first task and input of its second. A task without ``coreCount``
    needs one core. ``memoryInBytes`` is its demand on machines with memory. A task can name its architecture in
    ``kind``, a gridsim extension, because the format allows unknown fields. Jobs have the label ``executable``, whose
    ``names`` are the names of their files. The size of the machine is that of the machines on which the workflow ran,
    or the largest for several workflows.
    """
    check_tick(tick)
    problems = Problems(rules)
    files = workflow_files(paths)
    read = [_Workflow(path, problems, tick) for path in files]
    given = os.fspath(paths) if isinstance(paths, str | os.PathLike) else ", ".join(map(str, files))
    checksums = [workflow.sha256 for workflow in read]
    facts = [workflow.facts() for workflow in read]
    stated = [fact["machine_cores"] for fact in facts]
    workload = assembled(
        [workflow.graph for workflow in read],
        submit=submit,
        cores=cores,
        cores_field="coreCount",
        path=given,
        provenance={
            "source": given,
            "sha256": checksums[0] if len(read) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest(),
            "format": "wfformat",
            "lines": sum(workflow.lines for workflow in read),
            "comments": 0,
            "cores_field": {"requested": sum(workflow.core_counts for workflow in read), "allocated": 0},
            "tick": tick,
            "cores_from": None if None in stated else "workflow.execution.machines",
            "workflows": facts,
            "problems": problems.to_json(),
        },
    )
    return replace(workload, cores_stated=None if None in stated else max(stated))


class _Workflow:
    """One file: its graph, and further contents."""

    def __init__(self, path: Path, problems: Problems, tick: float) -> None:
        self.path = path
        self.root, self._text, self.sha256 = read_json(path)
        self.version = self.root.get("schemaVersion")
        if self.version.value not in VERSIONS:
            self.version.wrong(f"is {self.version.value!r}; expected {' or '.join(VERSIONS)}")
        body = self.root.get("workflow")
        self.name = self.root.get("name").text()
        self.graph = Graph(path.name.removesuffix(next((end for end in FILE_SUFFIXES if path.name.endswith(end)), "")))
        specification = body.get("specification")
        self._specified = specification.items("tasks", least=1)
        self._place = self._places()
        self._execution = body.get("execution")
        self._measured(problems, tick)
        self._edges()
        self.beside_edges = self._volumes(specification)

    def _places(self) -> dict[str, int]:
        """Return the index of each task by its id."""
        places: dict[str, int] = {}
        for task in self._specified:
            identity = task.get("id")
            if identity.text() in places:
                identity.wrong(f"'{identity.value}' is the id of an earlier task; expected a unique id")
            places[identity.value] = len(places)
            task.get("name").text()
            kind = task.find("kind")
            self.graph.kinds.append(ANY_KIND if kind is None else kind.text())
        self.graph.tasks = list(places)
        return places

    def _measured(self, problems: Problems, tick: float) -> None:
        """Set run times and cores from the list of executed tasks."""
        records: dict[str, JsonPlace] = {}
        for record in self._execution.items("tasks", least=1):
            identity = record.get("id")
            if identity.text() not in self._place:
                identity.wrong(f"'{identity.value}' is not a task of workflow.specification.tasks")
            if records.setdefault(identity.value, record) is not record:
                identity.wrong(f"'{identity.value}' occurs twice in the list; expected one record of each task")
        for task in self.graph.tasks:
            if task not in records:
                self._execution.get("tasks").wrong(
                    f"has no record of task '{task}', so its run time is unknown; expected a record of each task"
                )
        runtimes = [records[task].get("runtimeInSeconds").number(0, _LONGEST) for task in self.graph.tasks]
        self.graph.cores = [_cores(records[task]) for task in self.graph.tasks]
        memory = [_memory(records[task]) for task in self.graph.tasks]
        self.graph.memory = memory if any(memory) else []
        self.core_counts = sum(record.find("coreCount") is not None for record in records.values())
        self.graph.runtime, zero = in_ticks(runtimes, tick)
        if zero:
            problems.source = self.path
            problems.found(
                "zero-length-task",
                [self._line(self.graph.tasks[place]) for place in zero[:SHOWN_LINES]],
                count=len(zero),
                value=f"{runtimes[zero[0]]:g} s",
                field=f"{records[self.graph.tasks[zero[0]]].field}.runtimeInSeconds",
            )

    @property
    def lines(self) -> int:
        """Return the number of lines of the file."""
        return len(self._text.splitlines())

    def _line(self, task: str) -> int:
        """Return the line on which the execution of a task begins."""
        quoted = re.escape(json.dumps(task, ensure_ascii=False).encode())
        found = [match.start() for match in re.finditer(rb'"id"\s*:\s*' + quoted, self._text)]
        return 1 + self._text.count(b"\n", 0, found[-1]) if found else 1

    def _edges(self) -> None:
        """Set the edges, given by parents and by children, which must agree."""
        by_parent = self._stated("parents")
        by_child = {(other, one): where for (one, other), where in self._stated("children").items()}
        edges = {(parent, child): where for (child, parent), where in by_parent.items()}
        stated = {(parent, child): where for (child, parent), where in by_child.items()}
        for edge, where in edges.items():
            if edge not in stated:
                where.wrong(f"'{where.value}' does not list '{self.graph.tasks[edge[1]]}' as a child")
        for edge, where in stated.items():
            if edge not in edges:
                where.wrong(f"'{where.value}' does not list '{self.graph.tasks[edge[0]]}' as a parent")
        self.graph.edges = list(edges)
        ring = cycle(self.graph.edges, len(self.graph.tasks))
        if ring:
            names = [self.graph.tasks[place] for place in (*ring, ring[0])]
            self._specified[ring[0]].get("parents").wrong(
                f"task '{names[0]}' is in a cycle: {' -> '.join(names)}; expected an acyclic graph"
            )

    def _stated(self, key: str) -> dict[tuple[int, int], JsonPlace]:
        """Return the pairs (task, other) in the lists under *key*, each with its location."""
        pairs: dict[tuple[int, int], JsonPlace] = {}
        for place, task in enumerate(self._specified):
            for other in task.get(key).items():
                identity = other.text()
                if identity not in self._place:
                    other.wrong(f"'{identity}' is not a task of the workflow")
                if self._place[identity] == place:
                    other.wrong(f"task '{identity}' depends on itself; expected an acyclic graph")
                pairs.setdefault((place, self._place[identity]), other)
        return pairs

    def _volumes(self, specification: JsonPlace) -> int | None:
        """Set the bytes along each edge; return the number of files without an edge, or None if there are no sizes."""
        if specification.find("files") is None:
            return None
        sizes: dict[str, float] = {}
        for file in specification.items("files"):
            sizes.setdefault(file.get("id").text(), file.get("sizeInBytes").number(0, _LARGEST))
        makers: dict[str, list[int]] = {}
        for place, task in enumerate(self._specified):
            for name in _named(task, "outputFiles", sizes):
                makers.setdefault(name, []).append(place)
        volume = dict.fromkeys(self.graph.edges, 0.0)
        attached = 0
        for place, task in enumerate(self._specified):
            for name in _named(task, "inputFiles", sizes):
                for maker in makers.get(name, ()):
                    if (maker, place) in volume:
                        volume[maker, place] += sizes[name]
                    else:
                        attached += maker != place
        self.graph.volume = list(volume.values())
        return attached

    def _machine_cores(self) -> int | None:
        """Return the cores of all machines together, None unless each machine has a value."""
        total = 0
        for machine in self._execution.items("machines"):
            cpu = machine.find("cpu")
            count = None if cpu is None else cpu.find("coreCount")
            if count is None:
                return None
            total += math.floor(count.number(0, MOST_CORES))
            if total > MOST_CORES:
                count.wrong(f"gives the machines {total:,} cores in total; expected at most {MOST_CORES:,}")
        return total or None

    def facts(self) -> dict[str, Any]:
        """Return the facts on the file for `run.json`."""
        makespan = self._execution.find("makespanInSeconds")
        return {
            "source": str(self.path),
            "sha256": self.sha256,
            "name": self.name,
            "version": self.version.value,
            "tasks": len(self.graph.tasks),
            "edges": len(self.graph.edges),
            "files_beside_edges": self.beside_edges,
            "machine_cores": self._machine_cores(),
            "recorded_makespan": None if makespan is None else makespan.value,
        }


def _cores(record: JsonPlace) -> int:
    count = record.find("coreCount")
    if count is None:
        return 1
    if count.number(most=MOST_CORES) < 1:
        count.wrong(f"is {count.value:g}; expected at least 1 core")
    return math.ceil(count.number())


def _memory(record: JsonPlace) -> int:
    """Return the memory of a task, MiB, 0 if unknown."""
    found = record.find("memoryInBytes")
    return 0 if found is None else math.ceil(found.number(0, _LARGEST) / 2**20)


def _named(task: JsonPlace, key: str, sizes: Mapping[str, float]) -> list[str]:
    """Return the files that a task lists under *key*, each once."""
    for file in task.items(key):
        if file.text() not in sizes:
            file.wrong(f"'{file.value}' is not in workflow.specification.files, so its size is unknown")
    return list(dict.fromkeys(file.value for file in task.items(key)))
