"""Where tables and sentences are printed."""

from __future__ import annotations

from typing import Any

from rich.console import Console

__all__ = ["Terminal"]


class Terminal(Console):
    """Standard output: colours and its own width on a terminal, plain lines elsewhere; numbers are not coloured."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich itself would exit with 1."""
        raise BrokenPipeError
