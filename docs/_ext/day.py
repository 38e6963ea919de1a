"""A directive that simulates `docs/examples/day.py` and draws its nodes, absences, runs and checkpoints."""

from __future__ import annotations

import html
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from gantt import figure, shown
from sphinx.application import Sphinx

from gridsim.record import REASONS, SUSPENDED
from gridsim.report.figures import PALETTE
from gridsim.report.gantt_rows import absent_rows, by_node

_WIDTH, _ROW, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 34, 34, 8, 6, 24
_HOUR = 3_600_000_000
_DAY = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "day.py"))


def svg(result: Any, checkpoints: Any, until: float, title: str) -> str:
    """Schedule as SVG: hours to the right, a row per node."""
    record = result.record.in_stretches
    axis = by_node({"": record})[0]
    held, names = axis.held[""], record.capacity.nodes
    height = len(names) * _ROW
    scale = (_WIDTH - _LEFT - _RIGHT) / until

    def box(low: int, size: int, start: float, end: float, style: str) -> str:
        x, wide = _LEFT + start / _HOUR * scale, (end - start) / _HOUR * scale
        place = f'x="{x + 1:.1f}" y="{_TOP + low * _ROW + 2}"'
        return f'<rect {place} width="{wide - 2:.1f}" height="{size * _ROW - 4}" {style}/>'

    parts = [
        f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {_TOP + height + _BOTTOM}" '
        f'aria-label="{html.escape(title)}: {html.escape("; ".join(_DAY["runs"](result)))}">',
        '<defs><pattern id="window" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<line class="absent" x1="0" x2="0" y1="0" y2="7"/></pattern></defs>',
        f'<rect class="machine" x="{_LEFT}" y="{_TOP}" width="{until * scale:.1f}" height="{height}"/>',
        *_axes(names, until, scale, height),
    ]
    for low, size, kind, down, up in zip(*(column.tolist() for column in absent_rows(axis, record)), strict=True):
        fill = 'class="absent"' if REASONS[kind] == "failure" else 'style="fill:url(#window);fill-opacity:1"'
        parts.append(box(low, size, down, up, fill))
    last = np.repeat(np.arange(len(record)), np.diff(held.placement.offset))
    pieces = [last, held.placement.low, held.placement.size, record.start_us[last], record.end_us[last]]
    found = record.interruptions
    stopped = set(zip(found.job.tolist(), found.start_us.tolist(), strict=True))
    asleep = found.reason == SUSPENDED
    stopped -= set(zip(found.job[asleep].tolist(), found.start_us[asleep].tolist(), strict=True))
    if record.promises is not None:
        cut = record.promises
        stopped |= set(zip(cut.killed.tolist(), cut.killed_start_us.tolist(), strict=True))
    texts: list[str] = []
    columns = (np.r_[one, more].tolist() for one, more in zip(pieces, held.earlier, strict=True))
    for job, low, size, start, end in zip(*columns, strict=True):
        colour = PALETTE[job % len(PALETTE)]
        kind = ' class="cut"' if (job, start) in stopped else ""
        parts.append(box(low, size, start, end, f'{kind} rx="3" style="fill:{colour};stroke:{colour}"'))
        x, y = _LEFT + (start + end) / 2 / _HOUR * scale, _TOP + (low + size / 2) * _ROW + 5
        texts.append(f'<text class="job" x="{x:.1f}" y="{y:.1f}">{record.workload.job[job]}</text>')
        if checkpoints is not None:
            parts += _written(result, checkpoints, job, start, low, size, scale)
    return "".join([*parts, *texts, "</svg>"])


def _axes(names: tuple[str, ...], until: float, scale: float, height: int) -> Iterator[str]:
    for row, name in enumerate(names):
        y = _TOP + (row + 0.5) * _ROW + 4
        yield f'<text class="time" x="{_LEFT - 5}" y="{y:.1f}" text-anchor="end">{html.escape(name)}</text>'
    for hour in range(0, int(until) + 1, 2):
        x = _LEFT + hour * scale
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_TOP + height + 4}"/>'
        text = f"{hour} h" if hour == 0 else str(hour)
        yield f'<text class="time" x="{x:.1f}" y="{_TOP + height + 18}" text-anchor="middle">{text}</text>'


def _written(result: Any, checkpoints: Any, row: int, start: int, low: int, size: int, scale: float) -> Iterator[str]:
    """Times in which the run of a job wrote its complete checkpoints, and its restart."""
    runs = result.runs
    (place,) = np.flatnonzero((runs["job"] == result.record.workload.job[row]) & (runs["start"] == start / 1e6))
    begin, restart, count = (float(runs[name][place]) for name in ("start", "restart", "checkpoints"))
    cost, interval = checkpoints.cost, checkpoints.interval
    ends = [begin + restart + (k + 1) * (interval + cost) for k in range(int(count))]
    if count and runs["reason"][place] == "preempted":  # the last one was forced at the end
        ends[-1] = float(runs["end"][place])
    spans = [(end - cost, end) for end in ends] + ([(begin, begin + restart)] if restart else [])
    for since, until in spans:
        x, wide = _LEFT + since / 3600 * scale, (until - since) / 3600 * scale
        yield (
            f'<rect class="written" x="{x:.1f}" y="{_TOP + low * _ROW + 3}" width="{wide:.1f}" '
            f'height="{size * _ROW - 6}"/>'
        )


class Day(Directive):
    """``{day} easy | easy?preempt=suspend``: the day under each policy.

    Options: ``:checkpoints:`` and ``:announced:`` (repairs), and ``:caption:`` with words for the policies.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {  # noqa: RUF012 (docutils' own way)
        "checkpoints": directives.flag,
        "announced": directives.flag,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        checkpoints = _DAY["HOURLY"] if "checkpoints" in self.options else None
        policies = [text.strip() for text in self.arguments[0].split("|")]
        titles = [text.strip() for text in self.options.get("caption", self.arguments[0]).split("|")]
        repair = "announced" if "announced" in self.options else "unknown"
        results = [_DAY["day"](policy, checkpoints=checkpoints, repair=repair) for policy in policies]
        drawn = [
            figure(svg(result, checkpoints, 20, title), title) for title, result in zip(titles, results, strict=True)
        ]
        return shown(drawn, small=False)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("day", Day)
    return {"parallel_read_safe": True}
