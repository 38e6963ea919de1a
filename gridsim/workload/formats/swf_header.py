"""Metadata of the Standard Workload Format: fields, status codes, and the header of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gridsim.model.decimal_numbers import MOST_CORES

FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time used",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
"""Fields of a line."""

STATUSES: Mapping[int, str] = {
    -1: "not known",
    0: "failed",
    1: "completed",
    2: "part of a job, to be continued",
    3: "last part, completed",
    4: "last part, failed",
    5: "cancelled",
}
"""Meaning of the status codes."""

CANCELLED = 5
"""Status of a job that was cancelled, before or during its run."""

_DIRECTIVE = re.compile(r"([A-Za-z]\w*)\s*:(?!//)\s*(.*)")
_LEADING_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+")


def decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


class Header:
    """Comments above the first job: ``key: value`` lines in order, with all their values.

    A comment without a key continues the value above it (after a line break). After an empty comment, it is stored
    under the key ``""``.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {}
        self._key: str | None = None

    def add(self, comment: bytes) -> None:
        text = decoded(comment.strip().lstrip(b";")).strip()
        directive = _DIRECTIVE.match(text)
        if not text:
            self._key = None
        elif directive:
            self._key = directive[1]
            self.values.setdefault(self._key, []).append(directive[2].rstrip())
        elif self._key is None:
            self.values.setdefault("", []).append(text)
        else:
            self.values[self._key][-1] += f"\n{text}"

    def cores(self) -> tuple[int, str] | tuple[None, None]:
        """Return the cores of the machine and the key that defines them: first number of MaxProcs, else MaxNodes."""
        for key in ("MaxProcs", "MaxNodes"):
            for value in self.values.get(key, ()):
                number = _LEADING_NUMBER.match(value)
                digits = number[0].replace(",", "") if number else ""
                if len(digits) < 20 and 0 < (cores := int(digits or 0)) <= MOST_CORES:
                    return cores, key
        return None, None
