"""Output of the command line: tables and sentences, and on standard error how far long work is.

The progress is a bar with the time left on a terminal, plain lines otherwise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from textwrap import TextWrapper
from typing import IO, TYPE_CHECKING, Any, Self
from unicodedata import category

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from gridsim.number_formatting import together

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress
    from gridsim.campaign.store import Failure


class Terminal(Console):
    """Standard output: colours and terminal width on a terminal, plain lines elsewhere; numbers are not coloured."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, with control characters made visible, so that log text cannot control the terminal.

        Sentences (without markup) are broken between words, and never between a number and its unit.
        """
        plain = not options.get("markup", True)
        super().print(*(self._shown(each, plain) if isinstance(each, str) else each for each in objects), **options)

    def say(self, *sentences: str) -> None:
        """Print sentences, each on its own line."""
        for sentence in sentences:
            self.print(sentence, markup=False)

    def _shown(self, text: str, plain: bool) -> str:
        text = _harmless(text)
        return "\n".join(_wrapped(line, self.width) for line in text.split("\n")) if plain else text

    def on_broken_pipe(self) -> None:
        """Leave a broken pipe to the caller; rich itself would exit with 1."""
        raise BrokenPipeError


def tell(lines: Iterable[str], file: IO[str] | None = None) -> None:
    """Print facts, one per line; long lines are broken between words, with an indent."""
    width = Terminal(file=file).width
    for line in lines:
        print(_wrapped(_harmless(line), width, "  "), file=file, flush=True)


def _wrapped(line: str, width: int, indent: str = "") -> str:
    """Break a line into lines of at most *width* characters, all but the first with an *indent*.

    Examples
    --------
    >>> _wrapped("They would wait 4 min 4 s.", 24)
    'They would wait\\n4 min 4 s.'
    """
    wrapper = TextWrapper(
        width,
        subsequent_indent=indent,
        break_long_words=False,  # paths must remain copyable
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return wrapper.fill(together(line, "\0").replace("--on ", "--on\0")).replace("\0", " ")


def _harmless(text: str) -> str:
    """Replace each control character except line ends by a visible sign.

    Examples
    --------
    >>> _harmless("user \\x1b[2Jann")
    'user \ufffd[2Jann'
    """
    return "".join("\ufffd" if category(each)[0] == "C" and each not in "\n\t" else each for each in text)


_PAUSE = 10.0  # seconds between two plain lines

_SHOWN = 10  # failures that are reported individually


class _Bars:
    """Base class: transient bars, only on a terminal and not in a pipe with forced colours."""

    def __init__(self, *columns: ProgressColumn) -> None:
        self._console = Console(file=sys.stderr)
        self._terminal = sys.stderr.isatty()
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            *columns,
            console=self._console,
            transient=True,
            disable=not self._terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


class JobsProgress(_Bars):
    """Display of the common progress of several simulations and their remaining time on standard error.

    Parameters
    ----------
    total : int, optional
        Number of jobs of each run.
    runs : int
        Expected number of runs.
    what : str
        Noun of the things that are counted; empty if the labels contain it.
    """

    def __init__(self, total: int | None = None, runs: int = 1, what: str = "jobs") -> None:
        super().__init__(TimeRemainingColumn())
        self._total, self._runs, self._what = total, runs, what
        self._released: dict[str, int] = {}
        self._label = ""
        self._task: TaskID | None = None
        self._said: set[str] = set()
        self._first: tuple[float, int] | None = None
        self._next = time.monotonic() + _PAUSE
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        from gridsim.machine.njit import when_compiling  # the compiler: not needed if workers simulate

        self._listening.enter_context(when_compiling(lambda module: self.say(compiling(module))))
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        super().__exit__(*_)

    def expect(self, runs: int) -> None:
        """Increase the expected number of runs."""
        self._runs += runs

    def say(self, text: str) -> None:
        """Print a message for the user; repeated messages are printed once."""
        if text not in self._said:
            self._said.add(text)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, label: str, jobs: int, total: int | None = None) -> None:
        """Show that *jobs* jobs have been released in a run, of a *total* that was unknown until now."""
        self._label, self._released[label], self._total = label, jobs, total or self._total
        self._runs = max(self._runs, len(self._released))
        self._first = self._first or (time.monotonic(), self.released)
        if self._terminal:
            if self._task is None:
                self._task = self._bars.add_task("simulating")
            self._bars.update(self._task, completed=self.released, total=self.total, description=self._runs_done())
        elif time.monotonic() > self._next:
            self._next = time.monotonic() + _PAUSE
            print(self._line(), file=sys.stderr, flush=True)

    @property
    def total(self) -> int | None:
        """Total number of jobs of all runs."""
        return None if self._total is None else self._total * self._runs

    @property
    def released(self) -> int:
        """Number of released jobs of all runs."""
        return sum(self._released.values())

    def _runs_done(self) -> str:
        if self._runs == 1 or self._total is None:
            return "simulating"
        done = sum(jobs == self._total for jobs in self._released.values())
        return f"{done} of {self._runs} runs"

    def _line(self) -> str:
        """Return the progress in one line."""
        total, released = self.total, self.released
        if total is None:
            return f"{self._label}: {self._released[self._label]:,} {self._what}".rstrip()
        state = f"{self._runs_done()}: {released:,} of {total:,} {self._what}"
        assert self._first is not None
        begun, before = self._first  # excludes the time before the first report (workers or compiler starting)
        if released - before <= total * _TOO_FEW:
            return state
        left = (time.monotonic() - begun) / (released - before) * (total - released)
        return f"{state}, about {_duration(left)} left"


_TOO_FEW = 0.001
"""Share of all jobs below which no remaining time is shown, since a compilation would distort it."""

LOOPS = {
    "gridsim.engine.deadline_loop": ("for guaranteed deadlines", 15),
    "gridsim.engine.tree_loop": ("for trees of clusters", 10),
    "gridsim.engine": ("of the event loop", 7),
    "gridsim.policy.scheduler.moldable_cycle": ("for moldable jobs", 7),
    "gridsim.policy.scheduler.machines": ("of list schedulers", 6),
    "gridsim.policy.scheduler": ("of backfilling", 3),
    "gridsim.policy.admission": ("of plans", 3),
    "gridsim.policy.slurm": ("of Slurm's scheduler", 14),
    "gridsim.workload.formats.number_table_parser": ("of the reader", 1),
    "gridsim.report.core_assignment": ("of the chart", 1),
    "gridsim.entities": ("of node allocations", 1),
    "gridsim.machine": ("of the chart", 5),
}
"""Purpose and compile time (measured, CPU seconds) of the loops in modules with this prefix."""


def compiling(module: str) -> str:
    """Return the message on the compilation of a module's loops.

    Examples
    --------
    >>> compiling("gridsim.policy.slurm.main_cycle")
    "Compiling the inner loops of Slurm's scheduler: about 14 s, once per installation."
    """
    what, seconds = next((told for name, told in LOOPS.items() if module.startswith(name)), (f"of {module}", 3))
    return f"Compiling the inner loops {what}: about {seconds} s, once per installation."


def hear_compiling(say: Callable[[str], None]) -> None:
    """Report compilations in a worker."""
    from gridsim.machine.njit import on_compile  # the compiler

    on_compile(lambda module: say(compiling(module)))


class RunsProgress(_Bars):
    """Display of the progress of a campaign on standard error: finished units, failures, remaining time."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.fields[failed]}"), TimeRemainingColumn(elapsed_when_finished=True))
        self._task: TaskID | None = None
        self._begun = self._next = time.monotonic()
        self._done = self._failures = 0

    def show(self, done: Finished, at: Progress) -> None:
        """Show a finished unit."""
        self._done += 1
        failed = f"{at.failed:,} failed" if at.failed else ""
        if done.failure is not None:
            self._say_why(done.failure)
        if self._terminal:
            if self._task is None:
                self._task = self._bars.add_task("runs", total=at.total, completed=at.total - at.left - 1, failed="")
            self._bars.update(self._task, completed=at.total - at.left, failed=failed)
        elif time.monotonic() > self._next or not at.left:
            self._next = time.monotonic() + _PAUSE
            left = (time.monotonic() - self._begun) / self._done * at.left
            parts = [
                f"{at.total - at.left:,} of {at.total:,} runs",
                failed,
                f"about {_duration(left)} left" * bool(at.left and self._done > 1),  # the first one waited for workers
            ]
            print(", ".join(part for part in parts if part), file=sys.stderr, flush=True)

    def _say_why(self, failure: Failure) -> None:
        """Print one line each for the first failures only, since a faulty policy may fail thousands of times."""
        self._failures += 1
        if self._failures <= _SHOWN:
            line = f"failed: {failure.unit}: {failure.error}"
            self._console.print(line, markup=False, style="red", soft_wrap=True, highlight=False)
        if self._failures == _SHOWN:
            self._console.print("further failures are only counted", soft_wrap=True)


def _duration(seconds: float) -> str:
    """Return an approximate duration as text.

    Examples
    --------
    >>> _duration(40), _duration(200), _duration(20_000)
    ('40 s', '3 min', '5.6 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
