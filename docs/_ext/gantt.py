"""A directive that simulates a few jobs and draws who held which cores when: no picture here is drawn by hand."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import gridsim as gs
from gridsim.model.time import NEVER, seconds
from gridsim.profile.placement import place
from gridsim.record import Record
from gridsim.report.figures import PALETTE
from gridsim.workload.transform.moldable import MoldableJobs

_WIDTH, _ROW, _LOW_ROW, _LEFT, _TOP, _BOTTOM = 640, 24, 16, 8, 6, 24
_TALL = 8
"""A machine of more cores has lower rows."""


class Held(NamedTuple):
    """A stretch in which a job held cores; *cut* where it was killed to make room for another."""

    row: int
    start: float
    end: float
    cut: bool
    pieces: list[tuple[int, int]]


def _job(line: str) -> dict[str, float]:
    words = line.split()
    submit, cores, runtime, *estimate = (float(word) for word in words if "=" not in word)
    due = [float(word.removeprefix("by=")) for word in words if word.startswith("by=")]
    return {
        "submit": submit,
        "cores": cores,
        "runtime": runtime,
        "estimate": estimate[0] if estimate else runtime,
        "deadline": due[0] if due else float("inf"),
    }


def _options(words: list[str]) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in words)


def _holds(record: Record) -> Iterator[Held]:
    """Stretches of all jobs, those cut short behind the others."""
    rows, start, end, cores = np.arange(len(record)), record.start_us, record.end_us, record.given
    cut = record.promises
    if cut is not None:
        rows = np.concatenate([rows, cut.killed])
        start, end = np.concatenate([start, cut.killed_start_us]), np.concatenate([end, cut.killed_end_us])
        cores = np.concatenate([cores, record.given[cut.killed]])
    placement = place(start, end, cores, record.cores)
    for index, row in enumerate(rows.tolist()):
        if start[index] < NEVER:
            bounds = range(int(placement.offset[index]), int(placement.offset[index + 1]))
            pieces = [(int(placement.low[piece]), int(placement.size[piece])) for piece in bounds]
            times = (float(seconds(start[index])), float(seconds(end[index])))
            yield Held(row, *times, index >= len(record), pieces)


def svg(record: Record, until: float, title: str) -> str:
    """Schedule as SVG: time to the right in seconds, cores upwards."""
    low = _ROW if record.cores <= _TALL else _LOW_ROW
    height = record.cores * low
    scale = (_WIDTH - 2 * _LEFT) / until
    jobs = zip(record.workload.job, record.start, record.ran, strict=True)
    starts = ", ".join(f"job {job} at {start:g} s" if ran else f"job {job} not" for job, start, ran in jobs)
    parts = [
        f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {_TOP + height + _BOTTOM}" '
        f'aria-label="{html.escape(title)}: starts {starts}">',
        *_axis(until, scale, height),
        *_boxes(record, scale, height, low),
        *_deadlines(record, until, scale, height),
        "</svg>",
    ]
    return "".join(parts)


def _axis(until: float, scale: float, height: int) -> Iterator[str]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if until / step <= 10)
    yield f'<rect class="machine" x="{_LEFT}" y="{_TOP}" width="{until * scale:.1f}" height="{height}"/>'
    for tick in range(0, int(until) + 1, step):
        x = _LEFT + tick * scale
        anchor = "start" if tick == 0 else "end" if tick + step > until else "middle"
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + height + 4}"/>'
        label = f"{tick} s" if tick == 0 else tick
        yield f'<text class="time" x="{x:.1f}" y="{_TOP + height + 18}" text-anchor="{anchor}">{label}</text>'


def _boxes(record: Record, scale: float, height: int, low: int) -> Iterator[str]:
    for held in _holds(record):
        colour = PALETTE[held.row % len(PALETTE)]
        kind = ' class="cut"' if held.cut else ""
        for first, size in held.pieces:
            x, y = _LEFT + held.start * scale, _TOP + height - (first + size) * low
            width = (held.end - held.start) * scale
            yield (
                f'<rect{kind} x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{size * low - 2}" rx="3" '
                f'style="fill:{colour};stroke:{colour}"/>'
                f'<text class="job" x="{x + width / 2:.1f}" y="{y + size * low / 2 + 5:.1f}">'
                f"{record.workload.job[held.row]}</text>"
            )


def _deadlines(record: Record, until: float, scale: float, height: int) -> Iterator[str]:
    """A line at the deadline of each job that asks for one, in its colour."""
    for row, due in enumerate(seconds(record.workload.deadline).tolist()):
        if due <= until:
            x = _LEFT + due * scale
            yield (
                f'<line class="due" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + height}" '
                f'style="stroke:{PALETTE[row % len(PALETTE)]}"/>'
            )


def _caption(title: str, record: Record) -> str:
    refused = record.workload.job[~record.ran].tolist()
    return f"{title}: job {', '.join(map(str, refused))} is turned away" if refused else title


class Gantt(Directive):
    """``{gantt} fcfs | easy``: body lines ``submit cores runtime [estimate] [by=DEADLINE]``.

    Options ``:cores:``, ``:until:``, and ``:moldable:`` with the linear speedup of all jobs, by its range factor.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {  # noqa: RUF012 (docutils' own way)
        "cores": directives.positive_int,
        "until": directives.positive_int,
        "moldable": float,
    }

    def run(self) -> list[nodes.Node]:
        jobs = [_job(line) for line in self.content if line.strip()]
        columns: dict[str, Any] = {name: [job[name] for job in jobs] for name in jobs[0]}
        cores = self.options["cores"]
        workload = gs.Workload.from_columns(**columns)
        if "moldable" in self.options:
            workload = MoldableJobs(range_factor=self.options["moldable"], sigma=0, cores=cores).apply(workload)
        runs = {}
        for text in self.arguments[0].split("|"):
            policy, *options = text.split()
            title = " ".join([policy, *(word.replace("=", " = ") for word in options)])
            platform = gs.Platform.single(cores)
            runs[title] = gs.simulate(workload, platform=platform, policy=policy, **_options(options)).record
        until = self.options.get("until") or max(float(np.nanmax(record.end)) for record in runs.values())
        found: list[nodes.Node] = []
        for title, record in runs.items():
            caption = f"<figcaption>{html.escape(_caption(title, record))}</figcaption>"
            figure = f'<figure class="gantt">{svg(record, until, title)}{caption}</figure>'
            found.append(nodes.raw("", figure, format="html"))
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("gantt", Gantt)
    return {"parallel_read_safe": True}
