"""Comparison of a campaign's runs: each policy with a baseline on the same workloads, and means of every policy.

The tests are those of `gridsim.metrics.campaign`; this module defines the pairs of runs.

Notes
-----
*Pairs.* A *replicate* is a workload: one value of each factor that changes the workload (seed, window, log). A
*condition* is one value of each other factor, except the compared one. In a condition, every other value of the
compared factor is compared with the baseline, over the replicates that have a result under both. ``missing`` is the
number of the campaign's other replicates.

*Over all conditions*, the log ratios of a replicate are averaged first, so each replicate counts once. Only replicates
with a pair in every condition are included, since an average over other conditions would be a different quantity. A
condition in which a policy has no pair is excluded from its comparison; ``conditions`` is the number of included ones.

*Families* of Holm's correction consist of the values compared with the baseline, for one metric and one condition (or
all).

*Independence.* Replicates of one *source*, such as windows of one log or seeds on one window, are not independent.
Their log ratios are averaged, and the tests are over sources, with Student's t and degrees of freedom from the number
of sources. For windows nested in logs, this is the test of the mean under a random effect of the log. It is exact for
equal numbers of windows (Donald and Lang 2007), and keeps its level for few logs, unlike cluster-robust variance
estimates. If there is only one source, results cannot be generalised to other sources. Its parts (blocks of time) are
then the units, and the output states that the results apply to this source only.

References
----------
Donald, Lang: Inference with difference-in-differences and other panel data. Review of Economics and Statistics, 2007.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gridsim.errors import InputError, UnknownNameError, require_known
from gridsim.metrics.campaign import Paired, PolicyComparison, compare_policies, corrected
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.measures import Metric
from gridsim.metrics.paired_tests import CERTAIN, MARGIN, RESAMPLES, Better, t_test
from gridsim.metrics.summary import DEADLINE_METRICS, GRID_METRICS, METRICS
from gridsim.model.time import FloatArray, IntArray

AS_IT_IS = 0
"""Value of `REPLICAS` factors for the unchanged workload."""

REPLICAS = {"shaken": "shake", "redrawn": "resample"}
"""Factors whose values are replicas of one workload, and the transform that creates them."""

_MOST = 10_000


@dataclass(frozen=True)
class Replications:
    """Replicas of workloads that are added to a scenario file.

    Parameters
    ----------
    shake, resample : int
        Replicas of each workload, 2 or more; 0 for none. One of them at a time.
    shake_by : int, optional
        Largest shift of a submit time, s.
    resample_load : float, optional
        Number of users of resampled workloads, as a factor.
    flurries : {"keep", "drop", "both"}
        Treatment of bursts of jobs by one user.

    Raises
    ------
    InputError
        For too few replicas, both kinds together, and *shake_by* or *resample_load* alone.
    """

    shake: int = 0
    shake_by: int | None = None
    resample: int = 0
    resample_load: float | None = None
    flurries: str = "keep"

    def __post_init__(self) -> None:
        for name in REPLICAS.values():
            if getattr(self, name) and not 2 <= getattr(self, name) <= _MOST:
                raise InputError(f"{getattr(self, name)} replicas; expected 2 to {_MOST:,}", field=name)
        if self.shake and self.resample:
            raise InputError("shaken and resampled workloads need two campaigns; leave out one", field="resample")
        if self.shake_by is not None and not self.shake:
            raise InputError("sets how far to shake, but not how often; also give --shake 20", field="shake-by")
        if self.resample_load is not None and not self.resample:
            told = "sets the load, but not the number of samples; also give --resample 20"
            raise InputError(told, field="resample-load")

    def added(self, told: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """Return the tables of a sweep with these factors added.

        Raises
        ------
        InputError
            If it already has a factor of that name.
        """
        factors, transforms = dict(told.get("factors", {})), list(told.get("workload", {}).get("transforms", ()))
        new: dict[str, list[dict[str, Any]]] = {}
        if self.flurries == "drop":
            transforms.insert(0, "without-flurries")
        if self.flurries == "both":
            new["flurries"] = [{"name": "keep", "flurries": ""}, {"name": "drop", "flurries": "without-flurries"}]
            transforms.insert(0, "{flurries}")
        factor = "shaken" if self.shake else "redrawn"
        if count := self.shake or self.resample:
            how = {"by": self.shake_by, "load": self.resample_load}
            given = "".join(f"{name}={value}&" for name, value in how.items() if value is not None)
            new[factor] = [{"name": AS_IT_IS, factor: ""}]
            new[factor] += [
                {"name": each, factor: f"{REPLICAS[factor]}?{given}replica={each}"} for each in range(1, count + 1)
            ]
            transforms.append(f"{{{factor}}}")
        for name in new:
            if name in factors:
                message = "is already a factor of the recipe; rename that factor"
                raise InputError(message, path=path, field=f"factors.{name}")
        if not new and self.flurries != "drop":
            return dict(told)
        compare = dict(told.get("compare", {}))
        if count and "replicates" in compare:
            compare["replicates"] = [*compare["replicates"], factor]
        workload = {**told.get("workload", {}), "transforms": transforms}
        made = {**told, "workload": workload, "factors": {**factors, **new}}
        return {**made, "compare": compare} if compare else made


KNOWN: Mapping[str, Metric] = {
    **{name: Metric(it.unit, it.better, it.description) for name, it in DAG_METRICS.items()},
    **DEADLINE_METRICS,
    **GRID_METRICS,
    **METRICS,
}
"""Metrics that runs may have, by name."""

USUAL = (
    *("wait_mean", "bounded_slowdown_mean", "response_mean", "utilisation"),
    *("deadline_guaranteed_share", "deadline_met_share", "mean_slr", "worst_slr"),
)
"""Metrics compared by default, if the runs have them."""

REPLICATES = ("log", "workload", "window", "seed", *REPLICAS)
"""Default factors that change the workload."""

SOURCES = ("log", "workload")
"""Default factors whose other replicates are parts.

Without them the sources are windows, with several seeds each, and the workloads from which shaken or resampled ones
are made.
"""

DRAWN = 2_000_000
"""Largest number of simultaneous random numbers of the bootstrap (16 MB).

Many replicates have fewer resamples at once.
"""

FEWEST_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Comparing:
    """Settings of the comparison of a campaign.

    Attributes
    ----------
    factor : str
        Factor whose values are compared.
    baseline : object, optional
        The value that the others are compared with; by default the first.
    replicates : tuple of str, optional
        Factors that change the workload; by default those of `REPLICATES` that the campaign has.
    sources : tuple of str, optional
        Factors of *replicates* of which the others are only parts (windows of a log); empty if all are independent. By
        default those of `SOURCES`.
    metrics : tuple of str, optional
        Names of `KNOWN`; by default those of `USUAL` that the runs have.
    margin : float
        Largest relative deviation from 1 of ratios that count as equal.
    confidence : float
        Confidence level of the intervals, and 1 minus the level of the verdicts.
    seed, resamples : int
        Parameters of the bootstrap.
    """

    factor: str = "policy"
    baseline: Any = None
    replicates: tuple[str, ...] | None = None
    metrics: tuple[str, ...] | None = None
    margin: float = MARGIN
    confidence: float = 0.95
    seed: int = 0
    resamples: int = RESAMPLES
    sources: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            told = f"{self.confidence} is not a confidence level; expected a fraction between 0 and 1"
            raise InputError(told, field="confidence")
        if not self.margin > 0:
            raise InputError(f"is {self.margin}; expected a fraction above 0", field="margin")
        if self.factor in (self.replicates or ()):
            raise InputError(f"'{self.factor}' is compared, so it cannot also define replicates", field="replicates")
        for name in self.metrics or ():
            require_known("metric", KNOWN, name)
            if KNOWN[name].better is None:
                raise InputError(f"no change of '{name}' is an improvement; leave it out", field="metrics")

    def replicates_of(self, factors: Iterable[str]) -> tuple[str, ...]:
        """Return the existing factors that change the workload."""
        known = list(factors)
        require_known("factor", known, self.factor)
        if self.replicates is None:
            return tuple(name for name in REPLICATES if name in known and name != self.factor)
        require_known("factor", known, *self.replicates)
        return self.replicates

    def sources_of(self, replicates: Sequence[str]) -> tuple[str, ...]:
        """Return the factors of which the other *replicates* are parts; none if all replicates are independent."""
        require_known("factor that defines replicates", replicates, *(self.sources or ()))
        if self.sources is not None:
            return self.sources if len(self.sources) < len(replicates) else ()
        whole = tuple(name for name in SOURCES if name in replicates)
        if whole and len(whole) < len(replicates):
            return whole
        if "window" in replicates and len(replicates) > 1 and not whole:
            return ("window",)
        made_of = tuple(name for name in replicates if name not in REPLICAS)
        return made_of if len(made_of) < len(replicates) else ()


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of a value of the factor with the baseline: one metric in one condition, or over all.

    Attributes
    ----------
    condition : mapping, optional
        Values of the other factors; None for all conditions.
    conditions : int
        Number of conditions included for each replicate.
    value, baseline : object
        Values of the factor.
    missing : int
        Number of replicates of the campaign without a pair: a run failed, is missing, or has no such metric.
    mean, baseline_mean : float
        Means over the pairs, in the unit of the metric.
    test : Comparison
        Results of the tests. Its ``workloads`` are the paired replicates.
    """

    condition: Mapping[str, Any] | None
    conditions: int
    value: Any
    baseline: Any
    missing: int
    mean: float
    baseline_mean: float
    test: PolicyComparison

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.test.metric


class Agreement(NamedTuple):
    """Agreement of replicas on the difference between a value of the factor and the baseline, over all conditions.

    Attributes
    ----------
    metric, role : str
        Compared metric; kind of replicas, ``shake`` or ``resample``.
    value, baseline : object
        Values of the factor.
    lower, pairs : int
        Number of replicas with a lower metric than under the baseline, and of all replicas.
    certain, workloads : int
        Number of workloads (each in a condition) with a share of at least `CERTAIN` of replicas that agree with their
        mean, and of all workloads.
    """

    metric: str
    role: str
    value: Any
    baseline: Any
    lower: int
    pairs: int
    certain: int
    workloads: int


class Mean(NamedTuple):
    """Mean of a metric over the replicates of one condition, with the interval of Student's t.

    ``replicates`` have a value and ``missing`` have none; means over different replicates are not comparable.
    """

    metric: str
    condition: Mapping[str, Any]
    value: Any
    mean: float
    low: float
    high: float
    replicates: int
    missing: int


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Results of `compare_runs`.

    Attributes
    ----------
    comparing : Comparing
        Settings, with defaults filled in.
    values : tuple
        Values of the factor, baseline first.
    others : tuple of str
        Factors that define conditions.
    runs, replicates, conditions : int
        Number of runs read, workloads, conditions.
    sources : int
        Number of sources of which the workloads are parts, such as logs of windows; equal to the number of workloads
        if these are independent.
    of_one : bool
        Whether all workloads are parts of one log, or derived from one, so that results do not apply to others.
    agreements : tuple of Agreement
        Agreement of replicas, if there are any, by metric and value.
    found : tuple of Compared
        Comparisons by metric and condition, over all conditions last, grouped by family of Holm's correction.
    means : tuple of Mean
        Means by metric, condition and value.
    """

    comparing: Comparing
    values: tuple[Any, ...]
    others: tuple[str, ...]
    runs: int
    replicates: int
    conditions: int
    found: tuple[Compared, ...]
    means: tuple[Mean, ...]
    sources: int = 0
    of_one: bool = False
    agreements: tuple[Agreement, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparisons of {self.runs:,} runs by {self.comparing.factor}: {', '.join(map(str, self.values))}>"

    @property
    def nested(self) -> bool:
        """True if tests are over sources of which the workloads are parts."""
        return 1 < self.sources < self.replicates

    @property
    def metrics(self) -> tuple[str, ...]:
        """Compared metrics."""
        return self.comparing.metrics or ()

    def overall(self, metric: str) -> list[Compared]:
        """Return the comparisons of a metric over all conditions, or in the only one."""
        only = self.conditions == 1
        return [it for it in self.found if it.metric == metric and (only or it.condition is None)]


def compare_runs(
    rows: Iterable[Mapping[str, Any]],
    factors: Sequence[str] | Mapping[str, Iterable[Any]],
    comparing: Comparing | None = None,
) -> Comparisons:
    """Compare the runs of a campaign by metric, in each condition and over all, and compute means.

    Parameters
    ----------
    rows : iterable of mapping
        One row per run: a text or number for each factor, and a float for each metric. Rows are read once and kept as
        columns of 8 bytes per number.
    factors : sequence or mapping
        Names of all factors; a mapping also defines the order of values, by default that of appearance. A run without
        a row is missing, also for values of which all runs failed.
    comparing : Comparing, optional
        Settings of the comparison.

    Raises
    ------
    InputError
        If a row has no value of a factor, two rows are of the same run, or a name is unknown.

    Examples
    --------
    >>> waits = {"fcfs": [9.0, 12.0, 30.0, 41.0], "easy": [3.0, 4.1, 9.8, 14.0]}
    >>> rows = [
    ...     {"policy": name, "seed": seed, "wait_mean": value}
    ...     for name, values in waits.items()
    ...     for seed, value in enumerate(values)
    ... ]
    >>> found = compare_runs(rows, ["policy", "seed"]).found[0]
    >>> found.value, found.baseline, round(found.test.ratio, 2), found.test.verdict
    ('easy', 'fcfs', 0.34, 'better')
    """
    comparing = comparing or Comparing()
    columns = _Columns.read(rows, factors, comparing)
    grid = _Grid.of(columns, comparing)
    found: list[Compared] = []
    means: list[Mean] = []
    agreements: list[Agreement] = []
    for metric in columns.metrics:
        values = grid.values(columns.metrics[metric])
        agreements += grid.agreements(metric, values)
        found += grid.comparisons(metric, values)
        means += grid.means(metric, values)
    return Comparisons(
        replace(grid.comparing, metrics=tuple(columns.metrics)),
        (grid.baseline, *(value for value in grid.compared if value != grid.baseline)),
        grid.others,
        columns.runs,
        grid.shape[0],
        grid.shape[1],
        tuple(found),
        tuple(means),
        len(set(grid.sources.tolist())),
        grid.of_one,
        tuple(agreements),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Runs as columns: a code of the value of each factor, a number for each metric."""

    values: Mapping[str, tuple[Any, ...]]
    codes: Mapping[str, IntArray]
    metrics: Mapping[str, FloatArray]
    runs: int

    @classmethod
    def read(
        cls, rows: Iterable[Mapping[str, Any]], factors: Sequence[str] | Mapping[str, Iterable[Any]], how: Comparing
    ) -> _Columns:
        declared = factors if isinstance(factors, Mapping) else dict.fromkeys(factors, ())
        places = {name: {value: place for place, value in enumerate(of)} for name, of in declared.items()}
        codes = {name: array("q") for name in places}
        numbers = {name: array("d") for name in how.metrics or USUAL}
        runs = 0
        for row in rows:
            runs += 1
            for name, column in codes.items():
                if name not in row:
                    raise InputError(f"run {runs} has no value of the factor '{name}'", field=name)
                column.append(places[name].setdefault(row[name], len(places[name])))
            for name, filled in numbers.items():
                value = row.get(name)
                filled.append(np.nan if value is None else float(value))
        if not runs:
            raise InputError("no run has finished, so there is nothing to compare")
        metrics = {name: np.frombuffer(filled) for name, filled in numbers.items()}
        there = {name: filled for name, filled in metrics.items() if np.isfinite(filled).any()}
        for name in metrics if how.metrics or not there else ():
            if name not in there:
                raise InputError(f"no run has a number of the metric '{name}'", field="metrics")
        return cls(
            {name: tuple(known) for name, known in places.items()},
            {name: np.frombuffer(column, dtype=np.int64) for name, column in codes.items()},
            there,
            runs,
        )

    def combined(self, names: Sequence[str]) -> tuple[IntArray, list[dict[str, Any]]]:
        """Return the combination of some factors of each run, and the list of combinations in order."""
        shape = tuple(len(self.values[name]) for name in names)
        if not names:
            return np.zeros(self.runs, dtype=np.int64), [{}]
        number = np.ravel_multi_index(tuple(self.codes[name] for name in names), shape)
        there, codes = np.unique(number, return_inverse=True)
        places = zip(*(column.tolist() for column in np.unravel_index(there, shape)), strict=True)
        return codes, [
            {name: self.values[name][code] for name, code in zip(names, place, strict=True)} for place in places
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Position of each run: replicate, condition, value of the factor."""

    comparing: Comparing
    others: tuple[str, ...]
    compared: tuple[Any, ...]
    baseline: Any
    conditions: list[dict[str, Any]]
    cells: IntArray
    shape: tuple[int, int, int]
    sources: IntArray
    of_one: bool
    made_of: IntArray
    role: str | None

    @classmethod
    def of(cls, columns: _Columns, how: Comparing) -> _Grid:
        made_by = how.replicates_of(columns.values)
        others = tuple(name for name in columns.values if name != how.factor and name not in made_by)
        replicate, replicates = columns.combined(made_by)
        condition, conditions = columns.combined(others)
        compared = columns.values[how.factor]
        baseline = _baseline(how, compared)
        shape = (len(replicates), len(conditions), len(compared))
        cells = np.ravel_multi_index((replicate, condition, columns.codes[how.factor]), shape)
        _, first, count = np.unique(cells, return_index=True, return_counts=True)
        if (count > 1).any():
            run = int(first[count > 1][0])
            names = ", ".join(f"{name} {columns.values[name][code[run]]}" for name, code in columns.codes.items())
            raise InputError(f"{count.max()} runs of {names}; expected one")
        asked, whole = how.sources, how.sources_of(made_by)
        how = replace(how, baseline=baseline, replicates=made_by, sources=whole)
        parts = [tuple(each[name] for name in whole or made_by) for each in replicates]
        places = {part: place for place, part in enumerate(dict.fromkeys(parts))}
        sources = np.array([places[part] for part in parts], dtype=np.int64)
        windows = asked is None and "window" in made_by and not {*SOURCES} & {*made_by}
        role = next((role for name, role in REPLICAS.items() if name in made_by), None)
        of_one = len(parts) > 1 and (windows or len(places) == 1 or set(made_by) <= {*REPLICAS})
        given = [tuple(value for name, value in each.items() if name not in REPLICAS) for each in replicates]
        numbers = {workload: place for place, workload in enumerate(dict.fromkeys(given))}
        made_of = np.array([numbers[workload] for workload in given], dtype=np.int64)
        return cls(how, others, compared, baseline, conditions, cells, shape, sources, of_one, made_of, role)

    def agreements(self, metric: str, values: FloatArray) -> Iterator[Agreement]:
        """Return the agreement of replicas for one metric and each value of the factor; empty without replicas."""
        if self.role is None:
            return
        theirs = values[:, :, self.compared.index(self.baseline)]
        for place, value in enumerate(self.compared):
            if value == self.baseline:
                continue
            difference = values[:, :, place] - theirs
            groups = [difference[self.made_of == workload] for workload in np.unique(self.made_of)]
            each = [group[np.isfinite(group[:, at]), at] for group in groups for at in range(self.shape[1])]
            known = [replicas for replicas in each if len(replicas)]
            same = [float(np.mean(np.sign(of) == np.sign(of.mean()))) for of in known]
            lower, pairs = sum(int(np.sum(of < 0)) for of in known), sum(map(len, known))
            certain = sum(share >= CERTAIN for share in same)
            yield Agreement(metric, self.role, value, self.baseline, lower, pairs, certain, len(known))

    def values(self, column: FloatArray) -> FloatArray:
        """Return one metric by replicate, condition and value of the factor; NaN for missing values."""
        filled = np.full(self.shape, np.nan)
        filled.flat[self.cells] = np.where(np.isfinite(column), column, np.nan)
        return filled

    def comparisons(self, metric: str, values: FloatArray) -> Iterator[Compared]:
        """Return the comparisons of one metric, in each condition and, if there are several, over all."""
        theirs = values[:, :, self.compared.index(self.baseline)]
        against = [(place, value) for place, value in enumerate(self.compared) if value != self.baseline]
        sets: list[tuple[dict[str, Any] | None, slice]] = [
            (condition, slice(at, at + 1)) for at, condition in enumerate(self.conditions)
        ]
        for condition, at in [*sets, *([(None, slice(None))] if len(sets) > 1 else [])]:
            family = [
                self._compared(metric, condition, value, values[:, at, place], theirs[:, at])
                for place, value in against
            ]
            tests = corrected([it.test for it in family], _better(metric), self.comparing.confidence)
            yield from (replace(it, test=test) for it, test in zip(family, tests, strict=True))

    def _compared(
        self, metric: str, condition: dict[str, Any] | None, value: Any, mine: FloatArray, theirs: FloatArray
    ) -> Compared:
        paired = np.isfinite(mine) & np.isfinite(theirs)
        used = np.flatnonzero(paired.any(axis=0))
        if not len(used):
            used = np.zeros(1, dtype=np.int64)  # no pair of one condition instead of none
        rows = np.flatnonzero(paired[:, used].all(axis=1))
        both = np.stack([column[np.ix_(rows, used)] for column in (mine, theirs)], axis=-1)
        mean, baseline_mean = both.mean(axis=(0, 1)).tolist() if len(rows) else (np.nan, np.nan)
        test = replace(self._test(metric, both, self._sources(rows)), policy=str(value), other=str(self.baseline))
        missing = len(mine) - len(rows)
        return Compared(condition, len(used), value, self.baseline, missing, mean, baseline_mean, test)

    def _sources(self, rows: IntArray) -> IntArray | None:
        """Return the source of each replicate; None if there is only one, or all are independent."""
        count = len(np.unique(self.sources))
        return self.sources[rows] if 1 < count < len(self.sources) else None

    def _test(self, metric: str, both: FloatArray, sources: IntArray | None) -> PolicyComparison:
        """Return the tests of complete pairs, before Holm's correction."""
        n, conditions, _ = both.shape
        how = self.comparing
        found = compare_policies(
            Paired(
                metric,
                _better(metric),
                workloads=tuple(("", row) for row in range(n)),
                loads=tuple(map(float, range(conditions))),
                policies=("mine", "theirs"),
                values=both,
            ),
            "mine",
            by_load=False,
            margin=how.margin,
            confidence=how.confidence,
            seed=how.seed,
            resamples=min(how.resamples, max(FEWEST_RESAMPLES, DRAWN // max(n, 1))),
            sources=sources,
        )
        return replace(found[0], load=None)

    def means(self, metric: str, values: FloatArray) -> Iterator[Mean]:
        """Return the means of one metric, in each condition for each value of the factor, baseline first."""
        order = sorted(range(len(self.compared)), key=lambda place: self.compared[place] != self.baseline)
        for at, condition in enumerate(self.conditions):
            for place in order:
                column = values[:, at, place]
                known = column[~np.isnan(column)]
                scale = float(np.abs(known).max(initial=0.0))
                test = t_test(known, scale=scale, confidence=self.comparing.confidence)
                missing = len(column) - len(known)
                yield Mean(
                    *(metric, condition, self.compared[place]),
                    *(test.mean, test.low, test.high),
                    *(len(known), missing),
                )


def _better(metric: str) -> Better:
    return KNOWN[metric].better or "lower"


def _baseline(how: Comparing, values: Sequence[Any]) -> Any:
    """Return the baseline among the values, which may be given as text."""
    if how.baseline is None:
        return values[0]
    same = [value == how.baseline or str(value) == str(how.baseline) for value in values]
    if not any(same):
        raise UnknownNameError(f"{how.factor}", str(how.baseline), map(str, values))
    return next(compress(values, same))
