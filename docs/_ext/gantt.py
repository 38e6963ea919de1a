"""A directive that simulates a few jobs and draws who held which cores when: no picture here is drawn by hand."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import gridsim as gs
from gridsim.profile.placement import place
from gridsim.record import Record
from gridsim.report.figures import PALETTE

_WIDTH, _ROW, _LEFT, _TOP, _BOTTOM = 640, 24, 8, 6, 24


def _job(line: str) -> dict[str, float]:
    submit, cores, runtime, *estimate = map(float, line.split())
    return {"submit": submit, "cores": cores, "runtime": runtime, "estimate": estimate[0] if estimate else runtime}


def _options(words: list[str]) -> dict[str, Any]:
    return dict(word.split("=", 1) for word in words)


def svg(record: Record, until: float, title: str) -> str:
    """Schedule as SVG: time to the right in seconds, cores upwards."""
    height = record.cores * _ROW
    scale = (_WIDTH - 2 * _LEFT) / until
    starts = ", ".join(
        f"job {job} at {start:g} s" for job, start in zip(record.workload.job, record.start, strict=True)
    )
    parts = [
        f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {_TOP + height + _BOTTOM}" '
        f'aria-label="{html.escape(title)}: starts {starts}">',
        *_axis(until, scale, height),
        *_boxes(record, scale, height),
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


def _boxes(record: Record, scale: float, height: int) -> Iterator[str]:
    placement = place(record.start_us, record.end_us, record.workload.cores, record.cores)
    for row in range(len(record)):
        start, end = float(record.start[row]), float(record.end[row])
        colour = PALETTE[row % len(PALETTE)]
        for piece in range(int(placement.offset[row]), int(placement.offset[row + 1])):
            low, size = int(placement.low[piece]), int(placement.size[piece])
            x, y = _LEFT + start * scale, _TOP + height - (low + size) * _ROW
            width = (end - start) * scale
            yield (
                f'<rect x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{size * _ROW - 2}" rx="3" '
                f'style="fill:{colour};stroke:{colour}"/>'
                f'<text class="job" x="{x + width / 2:.1f}" y="{y + size * _ROW / 2 + 5:.1f}">'
                f"{record.workload.job[row]}</text>"
            )


class Gantt(Directive):
    """``{gantt} fcfs | easy``: body lines ``submit cores runtime [estimate]``, options ``:cores:``, ``:until:``."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"cores": directives.positive_int, "until": directives.positive_int}  # noqa: RUF012 (docutils' own way)

    def run(self) -> list[nodes.Node]:
        jobs = [_job(line) for line in self.content if line.strip()]
        columns: dict[str, Any] = {name: [job[name] for job in jobs] for name in jobs[0]}
        workload = gs.Workload.from_columns(**columns)
        platform = gs.Platform.single(self.options["cores"])
        runs = {}
        for text in self.arguments[0].split("|"):
            policy, *options = text.split()
            title = " ".join([policy, *(word.replace("=", " = ") for word in options)])
            runs[title] = gs.simulate(workload, platform=platform, policy=policy, **_options(options)).record
        until = self.options.get("until") or max(float(record.end.max()) for record in runs.values())
        found: list[nodes.Node] = []
        for title, record in runs.items():
            caption = f"<figcaption>{html.escape(title)}</figcaption>"
            figure = f'<figure class="gantt">{svg(record, until, title)}{caption}</figure>'
            found.append(nodes.raw("", figure, format="html"))
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("gantt", Gantt)
    return {"parallel_read_safe": True}
