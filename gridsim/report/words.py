"""Where `gridsim.words` was."""

from gridsim.words import duration, listed, percent

__all__ = ["duration", "listed", "percent"]
