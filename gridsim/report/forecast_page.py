"""Page, figures and files of forecasts and of their back-test."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gridsim.files import json_text, write_text
from gridsim.forecasts.answer import Answer
from gridsim.forecasts.backtest import BASELINES, Backtest
from gridsim.forecasts.intervals import LEVELS
from gridsim.number_formatting import counted, duration, percent
from gridsim.report import figures, forecast_text
from gridsim.report.figures import INK, PALETTE
from gridsim.report.gallery import Gallery
from gridsim.report.markup import breakable, environment, prose, style
from gridsim.report.pictures import Drawing, Picture
from gridsim.report.tables import csv_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = "forecast.html"

FILES = frozenset({PAGE, "backtest.csv", "backtest.json", "forecast.csv", "forecast.json", "samples.csv", "state.json"})
"""Names of all files of a forecast."""

SHOWN, TESTED = 30, 50
"""Largest number of waiting jobs on the page, and of judged forecasts in the figure of their intervals."""

_BARS = ((0.9, 0.6, 2.5), (0.8, 0.5, 7.0), (0.5, 1.0, 7.0))
"""Level, opacity and width of the bars of an interval, from the back."""

_WAITS = (0, 600, 3600, 6 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400)


class _Output:
    """Output of a forecast or of a back-test."""

    title, command = "Forecast", ""

    @classmethod
    def view(cls, data: Any, **page: str) -> Self:
        """Return existing data with output; *page* has its title and command line."""
        made = object.__new__(cls)
        vars(made).update(vars(data), **page)
        return made

    def page(self, path: str | Path, *, backtest: Backtest | None = None) -> Path:
        """Write the self-contained page, atomically; return its path.

        Parameters
        ----------
        path : path
            The file.
        backtest : Backtest, optional
            Back-test of these forecasts, for the same page.
        """
        write_text(path, self._page(backtest))
        return Path(path)

    def write(self, folder: str | Path, *, backtest: Backtest | None = None) -> list[str]:
        """Write the page, the tables and the numbers to a folder; return the names of the files.

        Parameters
        ----------
        folder : path
            The folder; created if missing.
        backtest : Backtest, optional
            Back-test of these forecasts, for the same page.
        """
        answer, tested = self._parts(backtest)
        tables = [] if answer is None else [*forecast_text.files(answer)]
        tables += [] if tested is None else [forecast_text.backtest_file(tested)]
        numbers: dict[str, Any] = {"forecast": answer and answer.to_dict(), "backtest": tested and tested.to_dict()}
        numbers["state"] = answer and answer.cluster_state and answer.cluster_state.to_json()
        texts = {f"{name}.json": json_text(content) for name, content in numbers.items() if content is not None}
        texts |= {name: csv_text(header, *rows) for name, header, rows in tables}
        texts[PAGE] = self._page(backtest, texts)
        for name, text in texts.items():
            write_text(Path(folder, name), text)
        return [*texts]

    @property
    def figures(self) -> Gallery:
        """Figures of the page by name, each a matplotlib ``Figure``; ``save`` writes them as files for a paper."""
        return Gallery(lambda: {it.drawing.name: it.drawing.figure for it in pictures(*self._parts(None))})

    def _page(self, backtest: Backtest | None, files: Collection[str] = ()) -> str:
        """Return the text of the page; *files* are names in its folder, to which it links."""
        answer, tested = self._parts(backtest)
        templates = environment(prose=prose, breakable=breakable, duration=duration, counted=counted, percent=percent)
        content: dict[str, Any] = {"output": self, "files": files, "answer": answer, "tested": tested, "shown": SHOWN}
        content |= {"brief": answer and replace(answer, shapes=(), left_out={}, notes=()), "baselines": BASELINES}
        content |= {"pictures": {one.drawing.name: one.shown() for one in pictures(answer, tested)}}
        page = templates.get_template("forecast.html.j2")
        return page.render(text=forecast_text, style=style("page.css"), **content)

    def _parts(self, backtest: Backtest | None) -> tuple[Answer | None, Backtest | None]:
        return (self, backtest) if isinstance(self, Answer) else (None, self if isinstance(self, Backtest) else None)


class Forecast(_Output, Answer):
    """Forecasts at a moment with their output; for the attributes see `Answer`."""


class ForecastTest(_Output, Backtest):
    """Judged forecasts of earlier moments with their output; for the attributes see `Backtest`."""


def pictures(answer: Answer | None, tested: Backtest | None) -> Iterator[Picture]:
    """Return the figures: intervals of waiting jobs, and of a back-test the coverage and the intervals of some jobs."""
    if answer is not None and answer.jobs:
        text = f"Intervals of the start of {counted(min(SHOWN, len(answer.jobs)), 'job')}, by median."
        yield Picture("Starts", text, Drawing(starts(answer), "forecast-starts"), "forecast.csv")
    if tested is not None:
        shares = [f"{percent(float(tested.covered(it).mean()))} at {percent(it)}" for it in LEVELS]
        text = f"Observed coverage of {len(tested.tests)} forecasts by stated coverage: {', '.join(shares)}."
        yield Picture("Coverage", text, Drawing(coverage(tested), "forecast-coverage"), "backtest.csv")
        text = f"Intervals of {min(TESTED, len(tested.tests))} earlier forecasts with the true waits, by true wait."
        yield Picture("True waits", text, Drawing(outcomes(tested), "forecast-outcomes"), "backtest.csv")


def starts(answer: Answer) -> Figure:
    """Draw the intervals of the waiting jobs that start first, one row for each, with the estimates of Slurm."""
    jobs = answer.jobs[:SHOWN]
    ends = [end for job in jobs for interval in job.intervals.values() for end in interval]
    last = max([60.0, *(it for it in (*ends, *(job.median for job in jobs)) if it <= answer.horizon)])
    with figures.drawing(height=1.3 + 0.24 * len(jobs)) as (figure, axes):
        _bars(axes, [job.intervals for job in jobs], last)
        _marks(axes, [job.median for job in jobs], last, marker="|", color=INK, label="median")
        slurm = [np.inf if job.slurm is None else job.slurm for job in jobs]
        _marks(axes, slurm, last, marker="D", color=PALETTE[1], label="Slurm's estimate")
        figures.name_rows(axes, [job.job for job in jobs])
        axes.set_xlim(-0.01 * last, 1.02 * last)
        if answer.calendar:
            figures.date_ticks(axes, answer.calendar, answer.at, answer.at + last)
        else:
            axes.set_xticks(*figures.round_durations(last))
            axes.set_xlabel("wait from the moment of the forecast on")
        figures.legend(axes)
        return figure


def _bars(axes: Axes, intervals: Any, last: float, *, scale: float = 1.0) -> None:
    """Draw the intervals of each row up to *last* (s), with an arrow for those that end later."""
    for level, alpha, width in _BARS:
        ends = np.minimum(np.array([it[level] for it in intervals]), last)
        look: dict[str, Any] = {"alpha": alpha, "linewidth": width * scale, "label": percent(level)}
        axes.hlines(range(len(ends)), ends[:, 0], ends[:, 1], color=PALETTE[0], **look)
    if beyond := [row for row, it in enumerate(intervals) if it[LEVELS[-1]][1] > last]:
        axes.plot([last] * len(beyond), beyond, ">", color=PALETTE[0], markersize=5 * scale, clip_on=False)


def _marks(axes: Axes, waits: Sequence[float], last: float, *, size: float = 6, **look: Any) -> None:
    """Draw a mark in the row of each wait that is not beyond *last*."""
    if rows := [row for row, wait in enumerate(waits) if wait <= last]:
        axes.plot([waits[row] for row in rows], rows, linestyle="none", markersize=size, markeredgewidth=1.6, **look)


def coverage(tested: Backtest) -> Figure:
    """Draw stated against observed coverage, with the band of 95 % of the outcomes if the stated one is true."""
    from scipy.stats import binom  # 1 s: only for this figure

    many, stated = len(tested.tests), np.linspace(0.02, 0.98, 49)
    with figures.drawing() as (figure, axes):
        low, high = (binom.ppf(p, many, stated) / many for p in (0.025, 0.975))
        axes.fill_between(stated, low, high, color=PALETTE[6], alpha=0.3, linewidth=0, label="95 % band")
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
        places = np.linspace(0.1, 0.9, 9).tolist()
        raw = [float(tested.covered(it, raw=True).mean()) for it in places]
        axes.plot(places, raw, "s--", color=PALETTE[1], markersize=4, linewidth=1, label="futures, not calibrated")
        found = [float(tested.covered(it).mean()) for it in LEVELS]
        axes.plot(LEVELS, found, "o", color=PALETTE[0], markersize=7, label="calibrated")
        axes.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="stated coverage", ylabel="observed coverage")
        figures.share_ticks(axes)
        axes.set_xticks(axes.get_yticks(), [it.get_text() for it in axes.get_yticklabels()])
        figures.legend(axes)
        return figure


def outcomes(tested: Backtest) -> Figure:
    """Draw the intervals of some judged forecasts, by true wait, with the true waits."""
    chosen = np.linspace(0, len(tested.tests) - 1, min(TESTED, len(tested.tests))).round().astype(int).tolist()
    tests = sorted((tested.tests[i] for i in chosen), key=lambda test: test[0].wait)
    with figures.drawing(height=4.6) as (figure, axes):
        ends = [{level: it.calibrated for level, it in judged.intervals.items()} for _, judged in tests]
        _bars(axes, ends, tested.horizon, scale=0.5)
        waits = [pair.wait for pair, _ in tests]
        _marks(axes, waits, tested.horizon, size=2.5, marker="o", color=INK, label="true wait")
        missed = [np.inf if judged.intervals[LEVELS[-1]].holds(pair.wait) else pair.wait for pair, judged in tests]
        _marks(axes, missed, tested.horizon, size=3.5, marker="x", color=PALETTE[1], label="outside of 90 %")
        axes.set_xscale("symlog", linthresh=600.0, linscale=0.4)
        axes.set_xlim(0, tested.horizon)
        figures.duration_ticks(axes, _WAITS, linear_to=600.0)
        figures.name_rows(axes, [""] * len(tests))
        axes.set(xlabel="wait", ylabel="forecasts, by true wait")
        figures.legend(axes)
        return figure
