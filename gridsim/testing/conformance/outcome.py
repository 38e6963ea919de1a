"""Outcome of a case: its runs, each passed, failed or unsupported, with reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

Status = Literal["passed", "failed", "unsupported"]


class Unsupported(Exception):
    """A feature of a case that this version of gridsim cannot simulate or compare."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, or one part that is compared by itself, of a case."""

    name: str
    status: Status
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdict on a case.

    Attributes
    ----------
    status : {"passed", "failed", "unsupported"}
        Failed when any run fails; passed when there are runs and all pass; unsupported otherwise.
    messages : tuple of str
        Differences, or what is not supported.
    passed, failed, unsupported : int
        Runs of each kind.
    family, name : str
        Family and name of the case, where they are known.
    """

    status: Status
    messages: tuple[str, ...] = ()
    passed: int = 0
    failed: int = 0
    unsupported: int = 0
    family: str = ""
    name: str = ""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Outcome:
        """Verdict from the verdicts on its runs."""
        counts = {status: sum(run.status == status for run in runs) for status in ("passed", "failed", "unsupported")}
        status: Status = "unsupported"
        if counts["failed"]:
            status = "failed"
        elif runs and counts["passed"] == len(runs):
            status = "passed"
        told = [run for run in runs if run.status == status] if status != "passed" else []
        messages = tuple(f"{run.name}: {message}" for run in told for message in run.messages)
        return cls(
            status,
            messages if runs else ("holds nothing to run",),
            counts["passed"],
            counts["failed"],
            counts["unsupported"],
        )

    @classmethod
    def cannot(cls, reason: str) -> Outcome:
        """Verdict on a case of which nothing can be run."""
        return cls("unsupported", (reason,), unsupported=1)

    @classmethod
    def malformed(cls, reason: str) -> Outcome:
        """Verdict on a case that cannot be read or run."""
        return cls("failed", (reason,), failed=1)

    @property
    def summary(self) -> str:
        """The verdict in a few words."""
        total = self.passed + self.failed + self.unsupported
        return f"{self.passed} of {total} run{'' if total == 1 else 's'} pass{'es' if total == 1 else ''}"

    def to_json(self) -> dict[str, Any]:
        """The verdict in JSON's types."""
        return {
            "status": self.status,
            "runs": {"passed": self.passed, "failed": self.failed, "unsupported": self.unsupported},
            "messages": list(self.messages),
        }


@dataclass(slots=True)
class Comparison:
    """Collects differences between what a run expects and what was found, and fields that cannot be compared."""

    differences: list[str] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    compared: int = 0

    def equal(self, where: str, found: Any, expected: Any) -> None:
        """Compare exactly; None is "none"."""
        self.compared += 1
        if found != expected:
            self.differences.append(f"{where} is {found}, expected {expected}")

    def differs(self, message: str) -> None:
        """Note a difference that was found elsewhere."""
        self.differences.append(message)

    def near(self, where: str, found: Any, expected: Any, tolerance: float) -> None:
        """Compare numbers, equal when they differ by at most *tolerance*."""
        self.compared += 1
        if found is None or expected is None:
            agree = found is expected
        elif not (math.isfinite(found) and math.isfinite(expected)):
            agree = found == expected
        else:
            # As they are written: differences of binary fractions would blur a tolerance of their last digit.
            agree = abs(Fraction(str(found)) - Fraction(str(expected))) <= Fraction(str(tolerance))
        if not agree:
            self.differences.append(f"{where} is {found}, expected {expected} within {tolerance:g}")

    def cannot(self, what: str) -> None:
        """Note an expected field that gridsim does not produce."""
        self.missing[what] = None

    def compares(self, of: Iterable[str], known: Sequence[str]) -> None:
        """Note the fields that are not among those *known*."""
        self.missing |= dict.fromkeys(name for name in of if name not in known)

    def verdict(self, name: str) -> Run:
        """Failed if anything differs, unsupported if anything could not be compared, else passed."""
        if self.differences:
            return Run(name, "failed", tuple(self.differences))
        if self.missing:
            count = f"{self.compared} values agree; " if self.compared else ""
            return Run(name, "unsupported", (f"{count}not produced: {', '.join(self.missing)}",))
        return Run(name, "passed")
