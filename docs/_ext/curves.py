"""Directives that draw numbers which the program answers: speedups over cores, submits over the hours of the day."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import gridsim as gs
from gridsim import registry
from gridsim.model.time import FloatArray, seconds
from gridsim.report.figures import PALETTE

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 260, 44, 190, 14, 28
_HOUR, _DAY = 3600, 86_400


def _frame(across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]], right: float) -> list[str]:
    """Ticks with their texts, at places in the drawing; lines from side to side."""
    foot = _HEIGHT - _BOTTOM
    parts = [
        f'<line class="tick" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="time" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        for y, text in up
    ]
    parts += [
        f'<text class="time" x="{x:.1f}" y="{foot + 20}" text-anchor="middle">{html.escape(text)}</text>'
        for x, text in across
    ]
    return parts


def _figure(parts: Sequence[str], label: str, caption: str) -> nodes.raw:
    drawing = (
        f'<svg class="gantt" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-label="{html.escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
    text = f'<figure class="gantt">{drawing}<figcaption>{html.escape(caption)}</figcaption></figure>'
    return nodes.raw("", text, format="html")


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """The same heights, moved down where two would be closer than *gap*."""
    found = list(places)
    for above, below in zip(np.argsort(places)[:-1], np.argsort(places)[1:], strict=True):
        found[below] = max(found[below], found[above] + gap)
    return found


class Speedups(Directive):
    """``{speedups} 16``: a curve for each line ``NAME: LAW`` of the body, a law as ``moldable?speedup=`` takes it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        most = int(self.arguments[0])
        cores = np.arange(1, most + 1)
        lines = [line.partition(":") for line in self.content if line.strip()]
        laws = {name.strip(): self._speedup(law.strip(), cores) for name, _, law in lines}
        right, foot = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        x = _LEFT + (cores - 1) / (most - 1) * (right - _LEFT)
        scale = (foot - _TOP) / most
        up = [(foot - value * scale, f"{value} ×") for value in range(0, most + 1, most // 4)]
        parts = _frame(
            [(at, f"{n}") for at, n in zip(x, cores, strict=True) if n in {1, most} or n % 4 == 0], up, right
        )
        ends = _apart([foot - speedup[-1] * scale for speedup in laws.values()], 21)
        for number, (law, speedup) in enumerate(laws.items()):
            points = " ".join(f"{at:.1f},{foot - value * scale:.1f}" for at, value in zip(x, speedup, strict=True))
            parts.append(f'<polyline points="{points}" style="stroke:{PALETTE[number]}"/>')
            parts.append(f'<text x="{right + 8}" y="{ends[number] + 4:.1f}">{html.escape(law)}</text>')
        told = "; ".join(f"{law} {speedup[-1]:.3g} times as fast" for law, speedup in laws.items())
        return [_figure(parts, f"Speedup on 1 to {most} cores; on {most}: {told}", "speedup over cores")]

    def _speedup(self, law: str, cores: np.ndarray) -> FloatArray:
        runtime = registry.make("speedup", law).relative(cores)
        return np.asarray(runtime[0] / runtime, dtype=float)


class Hours(Directive):
    """``{hours} 1``: share of the jobs of the default workload with that seed by the hour of their submit."""

    required_arguments = 1
    option_spec = {"jobs": directives.positive_int}  # noqa: RUF012 (docutils' own way)

    def run(self) -> list[nodes.Node]:
        model = gs.Lublin(jobs=self.options.get("jobs", 10_000))
        submit = seconds(model.generate(seed=int(self.arguments[0])).submit)
        share = np.bincount((submit % _DAY // _HOUR).astype(int), minlength=24) / len(submit)
        foot = _HEIGHT - _BOTTOM
        width, scale = (_WIDTH - _LEFT - 10) / 24, (foot - _TOP) / share.max()
        top = int(share.max() * 100)
        up = [(foot - value / 100 * scale, f"{value} %") for value in range(0, top + 1, 2)]
        across = [(_LEFT + (hour + 0.5) * width, f"{hour} h") for hour in range(0, 24, 4)]
        parts = _frame(across, up, _WIDTH - 10)
        parts += [
            f'<rect x="{_LEFT + hour * width + 2:.1f}" y="{foot - each * scale:.1f}" width="{width - 4:.1f}" '
            f'height="{each * scale:.1f}" style="fill:{PALETTE[0]};stroke:{PALETTE[0]}"/>'
            for hour, each in enumerate(share)
        ]
        most, least = int(share.argmax()), int(share.argmin())
        label = f"Jobs by hour of submission: from {share[least]:.1%} at {least} h to {share[most]:.1%} at {most} h"
        return [_figure(parts, label, f"share of {len(submit):,} jobs by hour of submission")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("speedups", Speedups)
    app.add_directive("hours", Hours)
    return {"parallel_read_safe": True}
