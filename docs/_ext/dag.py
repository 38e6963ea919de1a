"""A directive that simulates a few DAG jobs and draws them: one band of cores a cluster, one colour a job."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gantt
import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import gridsim as gs
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import ANY_KIND, Tasks
from gridsim.model.time import MICROSECOND
from gridsim.report.core_assignment import assign_cores
from gridsim.report.figures import PALETTE
from gridsim.result import Result

_WIDTH, _ROW, _LEFT, _NAME, _BOTTOM = 640, 24, 8, 26, 24
_TOLD = 4


@dataclass
class _Job:
    """A job as the lines of the directive say it."""

    name: str
    submit: float
    share: str
    tasks: dict[str, tuple[float, int, str]] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)


def _jobs(lines: list[str]) -> list[_Job]:
    """Lines ``job NAME SUBMIT [SHARE]``, below each ``TASK RUNTIME CORES [KIND] [< TASK ...]``."""
    jobs: list[_Job] = []
    for line in lines:
        words, _, after = line.partition("<")
        name, *values = words.split()
        if name == "job":
            jobs.append(_Job(values[0], float(values[1]), values[2] if len(values) > 2 else "/all"))
        elif values:
            kind = values[2] if len(values) > 2 else ANY_KIND
            jobs[-1].tasks[name] = (float(values[0]), int(values[1]), kind)
            jobs[-1].edges += [(other, name) for other in after.split()]
    return jobs


def workload_of(jobs: list[_Job]) -> gs.Workload:
    """Workload of a few jobs."""
    rows = [(job, name, *task) for job in jobs for name, task in job.tasks.items()]
    place_of = {(job.name, name): row for row, (job, name, *_) in enumerate(rows)}
    kinds = list(dict.fromkeys(kind for *_, kind in rows))
    shares = list(dict.fromkeys(job.share for job in jobs))
    tasks = Tasks.from_edges(
        counts=[len(job.tasks) for job in jobs],
        runtime=[runtime for _, _, runtime, _, _ in rows],
        cores=[cores for *_, cores, _ in rows],
        kind=[kinds.index(kind) for *_, kind in rows],
        kinds=kinds,
        edges=[(place_of[job.name, one], place_of[job.name, other]) for job in jobs for one, other in job.edges],
        names=[name for _, name, *_ in rows],
        jobs=[job.name for job in jobs],
    )
    return gs.Workload.from_tasks(
        tasks,
        submit=[job.submit for job in jobs],
        labels={"share": np.array([shares.index(job.share) for job in jobs])},
        names={"share": tuple(shares)},
    )


def rigid_of(jobs: list[_Job]) -> gs.Workload:
    """The same jobs, of one task each, as jobs without tasks: what quotes are made for."""
    runtime, cores = zip(*(next(iter(job.tasks.values()))[:2] for job in jobs), strict=True)
    return gs.Workload.from_columns(submit=[job.submit for job in jobs], runtime=runtime, cores=cores)


def _clusters(text: str) -> RouterSpec:
    """One router over ``NAME CORES [KIND] [rate=PRICE], ...``."""
    return RouterSpec("root", tuple(_cluster(part.split()) for part in text.split(",")))


def _cluster(words: list[str]) -> ClusterSpec:
    name, cores, *kind = (word for word in words if "=" not in word)
    rate = [float(word.removeprefix("rate=")) for word in words if word.startswith("rate=")]
    return ClusterSpec(name, int(cores), *kind, rate=rate[0] if rate else 1.0)


def svg(result: Result, until: float, title: str) -> str:
    """Schedule as SVG: time to the right in seconds, clusters below one another in tree order."""
    clusters = list(result.platform.clusters())
    named = len(clusters) > 1
    scale = (_WIDTH - 2 * _LEFT) / until
    columns = _columns(result)
    names, cluster_of = columns["name"], columns["cluster"]
    middle: dict[int, tuple[float, float, float]] = {}
    parts: list[str] = []
    top = 0.0
    for index, cluster in enumerate(clusters):
        name = _NAME if named else gantt._TOP
        height = cluster.cores * _ROW
        if named:
            parts.append(f'<text class="time" x="{_LEFT}" y="{top + 20}">{html.escape(_called(cluster))}</text>')
        parts += _band(until, scale, top + name, height)
        rows = np.flatnonzero(cluster_of == index)
        found = assign_cores(columns["start_us"][rows], columns["end_us"][rows], columns["cores"][rows], cluster.cores)
        for number, row in enumerate(rows.tolist()):
            start, end = columns["start_us"][row] / MICROSECOND, columns["end_us"][row] / MICROSECOND
            colour = PALETTE[int(columns["owner"][row]) % len(PALETTE)]
            for piece in range(int(found.offset[number]), int(found.offset[number + 1])):
                low, size = int(found.low[piece]), int(found.size[piece])
                x, y, width = _LEFT + start * scale, top + name + height - (low + size) * _ROW, (end - start) * scale
                middle.setdefault(row, (x, x + width, y + size * _ROW / 2))
                parts.append(
                    f'<rect x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{size * _ROW - 2}" rx="3" '
                    f'style="fill:{colour};stroke:{colour}"/><text class="job" x="{x + width / 2:.1f}" '
                    f'y="{y + size * _ROW / 2 + 5:.1f}">{html.escape(str(names[row]))}</text>'
                )
        top += name + height
    parts += _transfers(result, middle, scale)
    parts += _times(until, scale, top)
    starts = ", ".join(
        f"{'task' if result.workload.tasks else 'job'} {name} at {start / MICROSECOND:g} s on {clusters[index].name}"
        for name, start, index in zip(names, columns["start_us"], cluster_of, strict=True)
    )
    label = f"{html.escape(title)}: starts {html.escape(starts)}"
    return "".join(
        [
            f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {top + _BOTTOM:.0f}" aria-label="{label}">',
            *parts,
            "</svg>",
        ]
    )


def _columns(result: Result) -> dict[str, Any]:
    """What is drawn of each task, or of each job where jobs have no tasks."""
    record, tasks = result.record, result.workload.tasks
    times = record.tasks
    if tasks is None or times is None:
        owner = np.arange(len(record))
        names, cores, times = result.jobs["job"], record.given, record
    else:
        owner, names, cores = tasks.job_rows(), result.tasks["task"], tasks.cores
    whole = {"cluster": times.cluster, "start_us": times.start_us, "end_us": times.end_us}
    return {**whole, "owner": owner, "name": names, "cores": cores}


def _called(cluster: ClusterSpec) -> str:
    return cluster.name if cluster.kind == ANY_KIND else f"{cluster.name} ({cluster.kind})"


def _step(until: float) -> int:
    return next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if until / step <= 12)


def _band(until: float, scale: float, top: float, height: float) -> Iterator[str]:
    yield f'<rect class="machine" x="{_LEFT}" y="{top}" width="{until * scale:.1f}" height="{height}"/>'
    for tick in range(0, int(until) + 1, _step(until)):
        x = _LEFT + tick * scale
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height + 3}"/>'


def _times(until: float, scale: float, top: float) -> Iterator[str]:
    step = _step(until)
    for tick in range(0, int(until) + 1, step):
        anchor = "start" if tick == 0 else "end" if tick + step > until else "middle"
        label = f"{tick} s" if tick == 0 else tick
        x = _LEFT + tick * scale
        yield f'<text class="time" x="{x:.1f}" y="{top + 18:.1f}" text-anchor="{anchor}">{label}</text>'


def _transfers(result: Result, middle: dict[int, tuple[float, float, float]], scale: float) -> Iterator[str]:
    """A dashed line for every datum that goes to another cluster, from its task's end to when the next is ready."""
    tasks, times = result.workload.tasks, result.record.tasks
    if tasks is None or times is None:
        return
    for row in range(len(tasks)):
        for successor in tasks.successors(row).tolist():
            if times.cluster[row] == times.cluster[successor]:
                continue
            _, end, one = middle[row]
            other, ready = middle[successor][2], _LEFT + float(times.ready_us[successor]) / MICROSECOND * scale
            yield f'<line class="transfer" x1="{end:.1f}" y1="{one:.1f}" x2="{ready:.1f}" y2="{other:.1f}"/>'


class Dag(Directive):
    """``{dag} fifo-job | p-slr``: one drawing a policy; body lines as `_jobs` takes them."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {  # noqa: RUF012 (docutils' own way)
        "clusters": directives.unchanged_required,
        "ccr": directives.unchanged,
        "network": directives.unchanged,
        "shares": directives.unchanged,
        "split": directives.unchanged,
        "rigid": directives.flag,
        "small": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        jobs = _jobs([line for line in self.content if line.strip()])
        workload = rigid_of(jobs) if "rigid" in self.options else workload_of(jobs)
        words: dict[str, Any] = {"ccr": self.options.get("ccr", "0"), "kind": self.options.get("network", "ccr")}
        shares = dict(word.split("=") for word in self.options.get("shares", "").split())
        platform = gs.Platform(
            _clusters(self.options["clusters"]),
            network=Network(**words),
            shares=ShareTree({path: int(share) for path, share in shares.items()}) if shares else None,
        )
        results = {}
        for text in self.arguments[0].split("|"):
            policy, *options = text.split()
            named = dict(word.split("=", 1) for word in options)
            title = ", ".join([policy, *(f"{name} {value}" for name, value in named.items())])
            results[title] = gs.simulate(
                workload, platform=platform, policy=policy, split=self.options.get("split"), **named
            )
        until = max(float(result.record.end.max()) for result in results.values())
        drawn = [
            gantt.figure(svg(result, until, title), f"{title}{_numbers(result)}") for title, result in results.items()
        ]
        return gantt.shown(drawn, small="small" in self.options)


def _numbers(result: Result) -> str:
    """End and SLR of every job, in words; nothing where there are many."""
    jobs = result.jobs
    if len(result.record) > _TOLD or result.workload.tasks is None:
        return ""
    return ": " + "; ".join(
        f"job {job} ends at {end:g} s, SLR {round(slr, 3):g}"
        for job, end, slr in zip(jobs["job"], jobs["end"], jobs["slr"], strict=True)
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("dag", Dag)
    return {"parallel_read_safe": True}
