"""WfFormat, versions 1.5 and 1.6: workflows as DAG jobs, with their measured run times and the bytes between tasks."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from gridsim.errors import InputError
from gridsim.files import DAMAGED, parse_json
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.tasks import ANY_KIND
from gridsim.model.workload import Workload
from gridsim.schema import NAME, Number, check
from gridsim.workload.formats.dag_jobs import Graph, Submit, assembled, check_tick, cycle, in_ticks
from gridsim.workload.formats.stream import opened
from gridsim.workload.problems import SHOWN_LINES, Problems

TICK = 0.001
"""Length of a tick (s): run times of workflows are often far below a second."""

FILE_SUFFIXES = (".json", ".json.gz", ".json.xz")
"""Suffixes of workflow files in a folder."""

_LONGEST = 1e12
"""Longest run time of a task (s)."""

_LARGEST = 1e18
"""Largest file (bytes)."""

_TASK = {
    "id": NAME,
    "name": NAME,
    "kind?": (NAME, None),
    "parents": [NAME],
    "children": [NAME],
    "inputFiles?": ([NAME], None),
    "outputFiles?": ([NAME], None),
}
_EXECUTED = {
    "id": NAME,
    "runtimeInSeconds": Number(0, _LONGEST),
    "coreCount?": (Number(1, MOST_CORES), None),
    "memoryInBytes?": (Number(0, _LARGEST), None),
}
_MACHINE = {"cpu?": ({"coreCount?": (Number(0, MOST_CORES), None)}, None)}
_FILE = {"id": NAME, "sizeInBytes": Number(0, _LARGEST)}
_WORKFLOW = {
    "schemaVersion": Literal["1.5", "1.6"],  # they differ only in optional fields
    "name": NAME,
    "workflow": {
        "specification": {"tasks": [_TASK], "files?": ([_FILE], None)},
        "execution": {"tasks": [_EXECUTED], "machines?": ([_MACHINE], None)},
    },
}
_TASKS = "workflow.specification.tasks"
_EXECUTION = "workflow.execution.tasks"

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
        content, self._text, self.sha256 = _read(path)
        self.version, self.name, body = content["schemaVersion"], content["name"], content["workflow"]
        self.graph = Graph(path.name.removesuffix(next((end for end in FILE_SUFFIXES if path.name.endswith(end)), "")))
        self._specified, self._execution = body["specification"]["tasks"], body["execution"]
        self._place = self._places()
        self._measured(problems, tick)
        self._edges()
        self.beside_edges = self._volumes(body["specification"].get("files"))

    def _wrong(self, field: str, message: str) -> NoReturn:
        raise InputError(message, path=self.path, field=field)

    def _places(self) -> dict[str, int]:
        """Return the index of each task by its id."""
        places: dict[str, int] = {}
        if not self._specified:
            self._wrong(_TASKS, "is empty; expected at least 1")
        for place, task in enumerate(self._specified):
            if task["id"] in places:
                self._wrong(
                    f"{_TASKS}[{place}].id", f"'{task['id']}' is the id of an earlier task; expected a unique id"
                )
            places[task["id"]] = place
            self.graph.kinds.append(task.get("kind") or ANY_KIND)
        self.graph.tasks = list(places)
        return places

    def _measured(self, problems: Problems, tick: float) -> None:
        """Set run times and cores from the list of executed tasks."""
        rows: dict[str, int] = {}
        for row, record in enumerate(self._execution["tasks"]):
            identity, field = record["id"], f"{_EXECUTION}[{row}].id"
            if identity not in self._place:
                self._wrong(field, f"'{identity}' is not a task of workflow.specification.tasks")
            if rows.setdefault(identity, row) != row:
                self._wrong(field, f"'{identity}' occurs twice in the list; expected one record of each task")
        if missing := [task for task in self.graph.tasks if task not in rows]:
            why = f"has no record of task '{missing[0]}', so its run time is unknown; expected a record of each task"
            self._wrong(_EXECUTION, why)
        records = [self._execution["tasks"][rows[task]] for task in self.graph.tasks]
        runtimes = [float(record["runtimeInSeconds"]) for record in records]
        self.graph.cores = [math.ceil(record.get("coreCount") or 1) for record in records]
        memory = [math.ceil((record.get("memoryInBytes") or 0) / 2**20) for record in records]
        self.graph.memory = memory if any(memory) else []
        self.core_counts = sum(record.get("coreCount") is not None for record in records)
        self.graph.runtime, zero = in_ticks(runtimes, tick)
        if zero:
            problems.source = self.path
            problems.found(
                "zero-length-task",
                [self._line(self.graph.tasks[place]) for place in zero[:SHOWN_LINES]],
                count=len(zero),
                value=f"{runtimes[zero[0]]:g} s",
                field=f"{_EXECUTION}[{rows[self.graph.tasks[zero[0]]]}].runtimeInSeconds",
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
        edges = {(parent, child): where for (child, parent), where in self._stated("parents").items()}
        stated, tasks = self._stated("children"), self.graph.tasks
        for edge, where in edges.items():
            if edge not in stated:
                self._wrong(where, f"'{tasks[edge[0]]}' does not list '{tasks[edge[1]]}' as a child")
        for edge, where in stated.items():
            if edge not in edges:
                self._wrong(where, f"'{tasks[edge[1]]}' does not list '{tasks[edge[0]]}' as a parent")
        self.graph.edges = list(edges)
        ring = cycle(self.graph.edges, len(tasks))
        if ring:
            names = [tasks[place] for place in (*ring, ring[0])]
            why = f"task '{names[0]}' is in a cycle: {' -> '.join(names)}; expected an acyclic graph"
            self._wrong(f"{_TASKS}[{ring[0]}].parents", why)

    def _stated(self, key: str) -> dict[tuple[int, int], str]:
        """Return the pairs (task, other) in the lists under *key*, each with its location."""
        pairs: dict[tuple[int, int], str] = {}
        for place, task in enumerate(self._specified):
            for at, other in enumerate(task[key]):
                where = f"{_TASKS}[{place}].{key}[{at}]"
                if other not in self._place:
                    self._wrong(where, f"'{other}' is not a task of the workflow")
                if self._place[other] == place:
                    self._wrong(where, f"task '{other}' depends on itself; expected an acyclic graph")
                pairs.setdefault((place, self._place[other]), where)
        return pairs

    def _volumes(self, files: Sequence[Mapping[str, Any]] | None) -> int | None:
        """Set the bytes along each edge; return the number of files without an edge, or None if there are no sizes."""
        if files is None:
            return None
        sizes: dict[str, float] = {}
        for file in files:
            sizes.setdefault(file["id"], float(file["sizeInBytes"]))
        makers: dict[str, list[int]] = {}
        for place, name in self._files("outputFiles", sizes):
            makers.setdefault(name, []).append(place)
        volume = dict.fromkeys(self.graph.edges, 0.0)
        attached = 0
        for place, name in self._files("inputFiles", sizes):
            for maker in makers.get(name, ()):
                if (maker, place) in volume:
                    volume[maker, place] += sizes[name]
                else:
                    attached += maker != place
        self.graph.volume = list(volume.values())
        return attached

    def _files(self, key: str, sizes: Mapping[str, float]) -> Iterator[tuple[int, str]]:
        """Return the files that each task lists under *key*, each once, with the task."""
        for place, task in enumerate(self._specified):
            names = task.get(key) or []
            for at, name in enumerate(names):
                if name not in sizes:
                    why = f"'{name}' is not in workflow.specification.files, so its size is unknown"
                    self._wrong(f"{_TASKS}[{place}].{key}[{at}]", why)
            yield from ((place, name) for name in dict.fromkeys(names))

    def _machine_cores(self) -> int | None:
        """Return the cores of all machines together, None unless each machine has a value."""
        total = 0
        for place, machine in enumerate(self._execution.get("machines") or []):
            count = (machine.get("cpu") or {}).get("coreCount")
            if count is None:
                return None
            total += math.floor(count)
            if total > MOST_CORES:
                why = f"gives the machines {total:,} cores in total; expected at most {MOST_CORES:,}"
                self._wrong(f"workflow.execution.machines[{place}].cpu.coreCount", why)
        return total or None

    def facts(self) -> dict[str, Any]:
        """Return the facts on the file for `run.json`."""
        return {
            "source": str(self.path),
            "sha256": self.sha256,
            "name": self.name,
            "version": self.version,
            "tasks": len(self.graph.tasks),
            "edges": len(self.graph.edges),
            "files_beside_edges": self.beside_edges,
            "machine_cores": self._machine_cores(),
            "recorded_makespan": self._execution.get("makespanInSeconds"),
        }


def _read(path: str | os.PathLike[str]) -> tuple[Any, bytes, str]:
    """Return the contents of a JSON file, plain or compressed, its decompressed bytes and its checksum."""
    with opened(path) as (stream, digesting):
        try:
            text = stream.read()
        except DAMAGED as error:
            raise InputError(f"the compressed data is damaged ({error}); copy the file again", path=path) from error
        sha256 = digesting.hexdigest()
    content = parse_json(text, path, "a workflow")
    check(content, _WORKFLOW, path=path, data=text)
    return content, text, sha256
