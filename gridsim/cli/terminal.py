"""Output of tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import TextWrapper
from typing import IO, Any
from unicodedata import category

from rich.console import Console

from gridsim.words import together


class Terminal(Console):
    """Standard output: colours and terminal width on a terminal, plain lines elsewhere; numbers are not coloured."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, but with control characters made visible, so that text of a log cannot control the
        terminal.

        Sentences (without markup) are broken between words, and never between a number and its unit.
        """
        plain = not options.get("markup", True)
        super().print(*(self._shown(each, plain) if isinstance(each, str) else each for each in objects), **options)

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
    return wrapper.fill(together(line, "\0")).replace("\0", " ")


def _harmless(text: str) -> str:
    """Replace each control character except line ends by a visible sign.

    Examples
    --------
    >>> _harmless("user \\x1b[2Jann")
    'user \ufffd[2Jann'
    """
    return "".join("\ufffd" if category(each)[0] == "C" and each not in "\n\t" else each for each in text)
