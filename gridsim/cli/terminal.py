"""Output of the command line: tables and sentences, and on standard error how far long work is.

The progress is a bar with the time left on a terminal, plain lines otherwise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from textwrap import TextWrapper
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self
from unicodedata import category

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from gridsim.words import together

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished, Progress
    from gridsim.campaign.store import Failure


class Terminal(Console):
    """Standard output: colours and its own width on a terminal, plain lines elsewhere; numbers are not coloured."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints, but what a log holds can steer no terminal: control characters are shown as such.

        Sentences (without markup) are broken between words, and never between a number and its unit.
        """
        plain = not options.get("markup", True)
        super().print(*(self._shown(each, plain) if isinstance(each, str) else each for each in objects), **options)

    def _shown(self, text: str, plain: bool) -> str:
        text = _harmless(text)
        return "\n".join(_wrapped(line, self.width) for line in text.split("\n")) if plain else text

    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich itself would exit with 1."""
        raise BrokenPipeError


def tell(lines: Iterable[str], file: IO[str] | None = None) -> None:
    """Print a list of facts, a line each: broken between words where it is too long, and what goes on is indented."""
    width = Terminal(file=file).width
    for line in lines:
        print(_wrapped(_harmless(line), width, "  "), file=file, flush=True)


def _wrapped(line: str, width: int, indent: str = "") -> str:
    """A line as several of at most *width* characters, all but the first after an *indent*.

    Examples
    --------
    >>> _wrapped("They would wait 4 min 4 s.", 24)
    'They would wait\\n4 min 4 s.'
    """
    wrapper = TextWrapper(
        width,
        subsequent_indent=indent,
        break_long_words=False,  # a path is copied from here
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return wrapper.fill(together(line, "\0")).replace("\0", " ")


def _harmless(text: str) -> str:
    """The text with a visible sign in place of each control character but the ends of lines.

    Examples
    --------
    >>> _harmless("user \\x1b[2Jann")
    'user \ufffd[2Jann'
    """
    return "".join("\ufffd" if category(each)[0] == "C" and each not in "\n\t" else each for each in text)


_PAUSE = 10.0  # seconds between two plain lines

_SHOWN = 10  # failures that are told one by one


class _Bars:
    """What both have: bars on a terminal, not where colours are forced into a pipe, and nothing of them left behind."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()


class JobsProgress(_Bars):
    """Tells on standard error how far the simulations of a question are, all together, and what is left of their time.

    Parameters
    ----------
    total : int, optional
        Jobs of each run.
    runs : int
        How many runs there will be, as far as is known.
    """

    def __init__(self, total: int | None = None, runs: int = 1) -> None:
        super().__init__(TimeRemainingColumn())
        self._total, self._runs = total, runs
        self._released: dict[str, int] = {}
        self._task: TaskID | None = None
        self._said: set[str] = set()
        self._first: tuple[float, int] | None = None
        self._next = time.monotonic() + _PAUSE
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        from gridsim.machine.njit import when_compiling  # the compiler: not needed where workers simulate

        self._listening.enter_context(when_compiling(lambda module: self.say(compiling(module))))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        super().__exit__(kind, error, trace)

    def expect(self, runs: int) -> None:
        """There are so many runs more than was said."""
        self._runs += runs

    def say(self, text: str) -> None:
        """Tell something that the user should know; the same only once."""
        if text not in self._said:
            self._said.add(text)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, label: str, jobs: int) -> None:
        """Show that *jobs* jobs have been released in a run."""
        self._released[label] = jobs
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
        """Jobs of all runs."""
        return None if self._total is None else self._total * self._runs

    @property
    def released(self) -> int:
        """Jobs released in all runs."""
        return sum(self._released.values())

    def _runs_done(self) -> str:
        if self._runs == 1 or self._total is None:
            return "simulating"
        done = sum(jobs == self._total for jobs in self._released.values())
        return f"{done} of {self._runs} runs"

    def _line(self) -> str:
        """How far it is, in one line."""
        total, released = self.total, self.released
        if total is None:
            return f"{next(iter(self._released))}: {released:,} jobs"
        told = f"{self._runs_done()}: {released:,} of {total:,} jobs"
        assert self._first is not None
        begun, before = self._first  # what went before the first word was waiting, for workers or a compiler
        if released - before <= total * _TOO_FEW:
            return told
        left = (time.monotonic() - begun) / (released - before) * (total - released)
        return f"{told}, about {_duration(left)} left"


_TOO_FEW = 0.001
"""Part of all jobs of which nothing is foretold: a compile in between would count for all of them."""

_LOOPS = {
    "gridsim.engine.guarantees": ("for guaranteed deadlines", 15),
    "gridsim.engine.tree_loop": ("for trees of clusters", 10),
    "gridsim.engine": ("of the event loop", 7),
    "gridsim.policy.scheduler.moldable_cycle": ("for moldable jobs", 7),
    "gridsim.policy.scheduler.machines": ("of list schedulers", 6),
    "gridsim.policy.scheduler": ("of backfilling", 3),
    "gridsim.policy.admission": ("of plans", 3),
    "gridsim.policy.slurm": ("of Slurm's scheduler", 14),
    "gridsim.workload.formats.number_table_parser": ("of the reader", 1),
    "gridsim.report.core_assignment": ("of the chart", 1),
    "gridsim.machine": ("of the chart", 5),
}
"""What the loops of modules with this beginning are for, and how long compiling them takes: measured, CPU seconds."""


def compiling(module: str) -> str:
    """What is said when loops of a module are compiled.

    Examples
    --------
    >>> compiling("gridsim.policy.slurm.passes")
    "Compiling the inner loops of Slurm's scheduler: about 14 s, once for this installation."
    """
    what, seconds = next((told for name, told in _LOOPS.items() if module.startswith(name)), (f"of {module}", 3))
    return f"Compiling the inner loops {what}: about {seconds} s, once for this installation."


def hear_compiling(say: Callable[[str], None]) -> None:
    """In a worker: have it said when a loop is compiled."""
    from gridsim.machine.njit import tell_compiling  # the compiler

    tell_compiling(lambda module: say(compiling(module)))


class RunsProgress(_Bars):
    """Tells on standard error how far a campaign is, how many of its units failed, and what is left of its time."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.fields[failed]}"), TimeRemainingColumn(elapsed_when_finished=True))
        self._task: TaskID | None = None
        self._begun = self._next = time.monotonic()
        self._done = self._failures = 0

    def show(self, done: Finished, at: Progress) -> None:
        """Show that a unit came back."""
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
                f"about {_duration(left)} left" * bool(at.left and self._done > 1),  # the first had to wait for workers
            ]
            print(", ".join(part for part in parts if part), file=sys.stderr, flush=True)

    def _say_why(self, failure: Failure) -> None:
        """One line each, for the first few: a policy that always fails does so thousands of times."""
        self._failures += 1
        if self._failures <= _SHOWN:
            line = f"failed: {failure.unit}: {failure.error}"
            self._console.print(line, markup=False, style="red", soft_wrap=True, highlight=False)
        if self._failures == _SHOWN:
            self._console.print("further failures are only counted", soft_wrap=True)


def _duration(seconds: float) -> str:
    """In words, roughly.

    Examples
    --------
    >>> _duration(40), _duration(200), _duration(20_000)
    ('40 s', '3 min', '5.6 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
