"""How far long work is: a bar with the time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

if TYPE_CHECKING:
    from gridsim.campaign.run import Finished
    from gridsim.campaign.run import Progress as Standing
    from gridsim.campaign.store import Failure

__all__ = ["Progress", "RunsProgress"]

_PAUSE = 10.0  # seconds between two plain lines

_SHOWN = 10  # failures that are told one by one


class _Told:
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


class Progress(_Told):
    """Tells on standard error how many jobs of each policy have been released.

    Parameters
    ----------
    total : int, optional
        Jobs of each policy.
    """

    def __init__(self, total: int | None = None) -> None:
        super().__init__(TimeRemainingColumn())
        self._total = total
        self._tasks: dict[str, TaskID] = {}
        self._next = time.monotonic() + _PAUSE
        self._listening = ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        if self._terminal:
            from gridsim.profile.compiled import when_compiling  # the compiler: not needed where workers simulate

            self._listening.enter_context(when_compiling(self._compiling))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        super().__exit__(kind, error, trace)

    def _compiling(self) -> None:
        self._bars.console.print("Compiling the inner loops, once for this installation: up to half a minute.")

    def told(self, policy: str, jobs: int) -> None:
        """Show that *jobs* jobs of *policy* have been released."""
        if policy not in self._tasks:
            self._tasks[policy] = self._bars.add_task(policy, total=self._total)
        if self._terminal:
            self._bars.update(self._tasks[policy], completed=jobs)
        elif time.monotonic() > self._next:
            self._next = time.monotonic() + _PAUSE
            print(
                f"{policy}: {jobs:,}{f' of {self._total:,}' if self._total else ''} jobs", file=sys.stderr, flush=True
            )


class RunsProgress(_Told):
    """Tells on standard error how far a campaign is, how many of its units failed, and what is left of its time."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.fields[failed]}"), TimeRemainingColumn(elapsed_when_finished=True))
        self._task: TaskID | None = None
        self._begun = self._next = time.monotonic()
        self._done = self._failures = 0

    def told(self, done: Finished, at: Standing) -> None:
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
