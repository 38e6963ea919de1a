"""A directive that simulates a few jobs and draws who held which cores when: no picture here is drawn by hand."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import gridsim as gs
from gridsim.model.time import NEVER, IntArray, seconds
from gridsim.record import Record
from gridsim.report.core_assignment import assign_cores
from gridsim.report.figures import PALETTE
from gridsim.workload.transform.moldable import MoldableJobs

_WIDTH, _ROW, _LOW_ROW, _LEFT, _TOP, _BOTTOM = 640, 24, 16, 8, 6, 24
_TALL = 8
"""A machine of more cores has lower rows."""

_EXAMPLES = Path(__file__).parents[1] / "examples"
"""Where policies find the files that they name."""


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
    return {
        "submit": submit,
        "cores": cores,
        "runtime": runtime,
        "estimate": estimate[0] if estimate else runtime,
        "deadline": float(_options(words).get("by", "inf")),
        "tolerance": float(_options(words).get("accepts", 1)),
    }


def _workload(lines: list[str]) -> gs.Workload:
    """Jobs of the lines; words ``name=value`` are labels (a user, an account), but for ``by`` and ``accepts``."""
    jobs = [_job(line) for line in lines]
    columns: dict[str, Any] = {name: [job[name] for job in jobs] for name in jobs[0]}
    said = [_options(line.split()) for line in lines]
    labels, names = {}, {}
    for label in sorted({name for words in said for name in words} - {"by", "accepts"}):
        texts = [words.get(label, "0") for words in said]
        if all(text.isdecimal() for text in texts):
            labels[label] = np.array([int(text) for text in texts])
        else:
            names[label] = tuple(dict.fromkeys(texts))
            labels[label] = np.array([names[label].index(text) for text in texts])
    return replace(gs.Workload.from_columns(**columns, labels=labels), names=names)


def _options(words: list[str]) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def _holds(record: Record) -> Iterator[Held]:
    """Stretches of all jobs, those cut short behind the others."""
    rows, start, end, cores = np.arange(len(record)), record.start_us, record.end_us, record.given
    cut = record.promises
    if cut is not None:
        rows = np.concatenate([rows, cut.killed])
        start, end = np.concatenate([start, cut.killed_start_us]), np.concatenate([end, cut.killed_end_us])
        cores = np.concatenate([cores, record.given[cut.killed]])
    placement = assign_cores(start, end, cores, record.cores)
    for index, row in enumerate(rows.tolist()):
        if start[index] < NEVER:
            bounds = range(int(placement.offset[index]), int(placement.offset[index + 1]))
            pieces = [(int(placement.low[piece]), int(placement.size[piece])) for piece in bounds]
            times = (float(seconds(start[index])), float(seconds(end[index])))
            yield Held(row, *times, index >= len(record), pieces)


def svg(record: Record, until: float, title: str, colour: str | None = None) -> str:
    """Schedule as SVG: time to the right in seconds, cores upwards; a colour a job, or of the label *colour*."""
    hues = record.workload.labels[colour] if colour else np.arange(len(record))
    low = _ROW if record.cores <= _TALL else _LOW_ROW
    height = record.cores * low
    scale = (_WIDTH - 2 * _LEFT) / until
    jobs = zip(record.workload.job, record.start, record.ran, strict=True)
    starts = ", ".join(f"job {job} at {start:g} s" if ran else f"job {job} not" for job, start, ran in jobs)
    parts = [
        f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {_TOP + height + _BOTTOM}" '
        f'aria-label="{html.escape(title)}: starts {starts}">',
        *_axis(until, scale, height),
        *_boxes(record, hues, scale, height, low),
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


def _boxes(record: Record, hues: IntArray, scale: float, height: int, low: int) -> Iterator[str]:
    for held in _holds(record):
        colour = PALETTE[int(hues[held.row]) % len(PALETTE)]
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
    rejected = record.workload.job[~record.ran].tolist()
    return f"{title}: job {', '.join(map(str, rejected))} is rejected" if rejected else title


class Gantt(Directive):
    """``{gantt} fcfs | easy``: body lines ``submit cores runtime [estimate] [by=DEADLINE] [accepts=TOLERANCE]``.

    Other words are labels: ``user=ann``.

    Options ``:cores:``, ``:until:``, and ``:moldable:`` with the linear speedup of all jobs, by its range factor.
    ``:first:`` takes so many of the jobs only: where runtimes are the estimates, that is the plan before the next one
    comes. ``:caption:`` puts words for the names of the policies, ``:colour:`` a colour for each value of a label, and
    ``:small:`` the drawings side by side. Files that policies name are those of ``docs/examples``.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {  # noqa: RUF012 (docutils' own way)
        "cores": directives.positive_int,
        "until": directives.positive_int,
        "moldable": float,
        "first": directives.positive_int,
        "caption": directives.unchanged_required,
        "colour": directives.unchanged_required,
        "small": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        lines = [line for line in self.content if line.strip()][: self.options.get("first")]
        workload = _workload(lines)
        if "moldable" in self.options:
            form = MoldableJobs(range_factor=self.options["moldable"], sigma=0, cores=self.options["cores"])
            workload = form.apply(workload)
        runs = self._runs(workload)
        until = self.options.get("until") or max(float(np.nanmax(record.end)) for record in runs.values())
        drawn = [
            figure(svg(record, until, title, self.options.get("colour")), _caption(title, record))
            for title, record in runs.items()
        ]
        return shown(drawn, small="small" in self.options)

    def _runs(self, workload: gs.Workload) -> dict[str, Record]:
        """Record of each policy by its title."""
        platform = gs.Platform.single(self.options["cores"])
        texts = self.arguments[0].split("|")
        titles = [title.strip() for title in self.options.get("caption", "").split("|")]
        runs = {}
        with contextlib.chdir(_EXAMPLES):
            for number, text in enumerate(texts):
                policy, *options = text.split()
                title = " ".join([policy, *(word.replace("=", " = ") for word in options)])
                if number < len(titles) and titles[number]:
                    title = titles[number]
                runs[title] = gs.simulate(workload, platform=platform, policy=policy, **_options(options)).record
        return runs


def figure(picture: str, caption: str) -> str:
    """HTML of a picture with a line of text below it."""
    return f'<figure class="gantt">{picture}<figcaption>{html.escape(caption)}</figcaption></figure>'


def shown(figures: list[str], *, small: bool) -> list[nodes.Node]:
    """Figures as parts of a page, small ones side by side."""
    if small:
        figures = [f'<div class="gallery">{"".join(figures)}</div>']
    return [nodes.raw("", text, format="html") for text in figures]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("gantt", Gantt)
    return {"parallel_read_safe": True}
