"""Rows of the study of moldable jobs, indexed by their conditions, and changes of the mean response.

Tests on the bars are in `parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gridsim import InputError
from gridsim.number_formatting import percent
from gridsim_papers.deadline.lines import StoredRows, written
from gridsim_papers.ledger import MARGIN
from gridsim_papers.moldable.campaign import BASELINE, COMBINED
from gridsim_papers.moldable.changes import CATEGORIES, Change, change
from gridsim_papers.moldable.figures import CONDITIONS, SCHEMES
from gridsim_papers.paired import Values, changes
from gridsim_papers.verdicts import FEWEST, Finding

__all__ = ["MEAN", "USUAL", "Bar", "Bars", "Case", "Judge", "Setting", "Study", "between"]

USUAL: Mapping[str, Any] = {"method": "gaps", "profiles": ""}
"""Conditions that need no mention."""

MEAN = "response_mean"
"""The compared metric."""


class Setting(NamedTuple):
    """Conditions of a schedule in the study except its scheme; names as in the stored rows."""

    log: str = "sdsc"
    base: str = "0.65"
    method: str = "gaps"
    load_factor: float = 100.0
    sigma: float = 0.0
    range_factor: float = 1.0
    profiles: str = ""

    def __str__(self) -> str:
        """Description of a setting among those of its base load."""
        if self.profiles:
            return f"{self.log} LF {self.load_factor:g} {self.profiles}"
        told = f"{self.log} LF {self.load_factor:g} sigma {self.sigma:g} RF {self.range_factor:g}"
        return told if self.method == "gaps" else f"{told} {self.method}"


class Bar(NamedTuple):
    """Change of the mean response of one category (all jobs: the empty name) from one scheme to another.

    Attributes
    ----------
    logs : values
        Logarithms of the ratios.
    change : Change
        Over windows, p not corrected.
    """

    setting: Setting
    scheme: str
    against: str
    group: str
    logs: Values
    change: Change

    @property
    def words(self) -> str:
        """Description of the bar and the size of its change."""
        group = self.group.replace("weight:", "category ") or "overall"
        against = "" if self.against == BASELINE else f" against {_title(self.against)}"
        return f"{_title(self.scheme)}{against}, {self.setting}, {group} ({percent(self.change.change, sign=True)})"


Bars = Mapping[str, Bar]
"""Bars by existing category; all jobs have the empty name."""


def _title(scheme: str) -> str:
    return SCHEMES.get(scheme, scheme)


@dataclass(frozen=True, slots=True)
class Study:
    """Stored rows.

    Attributes
    ----------
    stored : StoredRows
        Rows as read for figures.
    logs : mapping of str to str
        Logs that replace others.
    cells : mapping
        By metric, setting and scheme: values of each group.
    found : dict
        Cached bars.
    """

    stored: StoredRows
    logs: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[tuple[str, Setting, str], Mapping[str, Values]] = field(default_factory=dict)
    found: dict[tuple[Setting, str, str], Bars] = field(default_factory=dict)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], logs: Mapping[str, str] | None = None) -> Study:
        """Index stored rows.

        Raises
        ------
        InputError
            When a number occurs twice, with different values.
        """
        stored = StoredRows(rows, USUAL, CONDITIONS)
        cells: dict[tuple[str, Setting, str], dict[str, Values]] = {}
        for metric in stored.metrics:
            for condition, values in stored.values(metric, {}, *stored.columns).items():
                run = dict(zip(stored.columns, condition, strict=True))
                scheme, group = run.pop("scheme"), run.pop("group")
                cells.setdefault((metric, Setting(**run), scheme), {})[group] = values
        return cls(stored, logs or {}, cells)

    def at(self, setting: Setting) -> Setting:
        """The setting on the log that replaces its log."""
        return setting._replace(log=self.logs.get(setting.log, setting.log))

    def numbers(self, metric: str, setting: Setting, scheme: str) -> Mapping[str, Values]:
        """Values of one schedule by group.

        Raises
        ------
        InputError
            When it was not run.
        """
        found = self.cells.get((metric, self.at(setting), scheme))
        if found is None:
            told = written({**self.at(setting)._asdict(), "scheme": scheme}, USUAL)
            raise InputError(f"no row of '{metric}' with {told}")
        return found

    def bars(self, setting: Setting, scheme: str, against: str) -> Bars:
        """Changes of one scheme against another on the same jobs; see `between`."""
        key = self.at(setting), scheme, against
        if key not in self.found:
            mine, theirs = (self.numbers(MEAN, setting, name) for name in (scheme, against))
            self.found[key] = between(mine, theirs, self.at(setting), scheme, against)
        return self.found[key]


def between(
    mine: Mapping[str, Values], theirs: Mapping[str, Values], setting: Setting, scheme: str, against: str
) -> Bars:
    """Changes by category, without those with too few windows for a test.

    Raises
    ------
    InputError
        When the two share no window.
    """
    found = {}
    for group in ("", *CATEGORIES):
        both = sorted(mine.get(group, {}).keys() & theirs.get(group, {}).keys())
        if both:
            found[group] = change(*(np.array([of[group][unit] for unit in both]) for of in (mine, theirs)))
    if "" not in found:
        raise InputError(f"no window in which '{scheme}' and '{against}' were both run at {setting}")
    least = min(FEWEST, found[""].windows)
    return {
        group: Bar(setting, scheme, against, group, changes(mine[group], theirs[group], ratio=True), one)
        for group, one in found.items()
        if one.windows >= least
    }


@dataclass(frozen=True, slots=True)
class Case:
    """Circumstances in which a claim is judged.

    Attributes
    ----------
    study : Study
        The rows.
    base : str
        Offered load at load factor 100.
    factor : int
        Weight factor of the combined scheme (and of the base, if the claim is about both), 1 or 2.
    margin : float
        Negligible ratio of the claim, from the ledger.
    """

    study: Study
    base: str = "0.65"
    factor: int = 2
    margin: float = MARGIN

    @property
    def combined(self) -> str:
        """The combined scheme with this weight factor."""
        return COMBINED[0] if self.factor == 2 else COMBINED[1]

    @property
    def plain(self) -> str:
        """Fair share at start with one promise and this weight factor."""
        return "moldable-start" if self.factor == 2 else "moldable-base"

    @property
    def logs(self) -> tuple[str, ...]:
        """The paper's logs; logs with the same replacement are listed once."""
        return tuple({self.study.logs.get(log, log): log for log in ("ctc", "sdsc")}.values())

    def name(self, log: str) -> str:
        """The log itself, or its replacement."""
        return self.study.logs.get(log, log)

    def bars(self, scheme: str, against: str = BASELINE, **where: Any) -> Bars:
        """Changes at the setting defined by *where*."""
        return self.study.bars(self.setting(**where), scheme, against)

    def has(self, scheme: str, **where: Any) -> bool:
        """Return whether a scheme was run at the setting defined by *where*."""
        return (MEAN, self.study.at(self.setting(**where)), scheme) in self.study.cells

    def setting(self, **where: Any) -> Setting:
        """The setting defined by *where*, at this base load."""
        return Setting(base=self.base, **where)


Judge = Callable[[Case], Finding]
"""Judge of a claim in given circumstances."""
