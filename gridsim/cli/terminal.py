"""Where tables and sentences are printed."""

from __future__ import annotations

from typing import Any
from unicodedata import category

from rich.console import Console

__all__ = ["Terminal"]


class Terminal(Console):
    """Standard output: colours and its own width on a terminal, plain lines elsewhere; numbers are not coloured."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints, but what a log holds can steer no terminal: control characters are shown as such."""
        super().print(*(_harmless(each) if isinstance(each, str) else each for each in objects), **options)

    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich itself would exit with 1."""
        raise BrokenPipeError


def _harmless(text: str) -> str:
    """The text with a visible sign in place of each control character but the ends of lines.

    Examples
    --------
    >>> _harmless("user \\x1b[2Jann")
    'user \ufffd[2Jann'
    """
    return "".join("\ufffd" if category(each)[0] == "C" and each not in "\n\t" else each for each in text)
