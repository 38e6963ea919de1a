"""How far long work is: a bar with the time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

__all__ = ["Progress"]

_PAUSE = 10.0  # seconds between two plain lines


class Progress:
    """Tells on standard error how many jobs of each policy have been released.

    Parameters
    ----------
    total : int, optional
        Jobs of each policy.
    """

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._console = Console(file=sys.stderr)
        self._tasks: dict[str, object] = {}
        self._next = time.monotonic() + _PAUSE
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def told(self, policy: str, jobs: int) -> None:
        """Show that *jobs* jobs of *policy* have been released."""
        if policy not in self._tasks:
            self._tasks[policy] = self._bars.add_task(policy, total=self._total)
        if self._console.is_terminal:
            self._bars.update(self._tasks[policy], completed=jobs)  # type: ignore[arg-type]
        elif time.monotonic() > self._next:
            self._next = time.monotonic() + _PAUSE
            print(
                f"{policy}: {jobs:,}{f' of {self._total:,}' if self._total else ''} jobs", file=sys.stderr, flush=True
            )
