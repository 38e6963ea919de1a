"""One schedule of the campaigns on guaranteed deadlines: the construction of its workload, and its stored numbers.

The list of schedules is in `gridsim_papers.deadline.campaign`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gridsim import Platform, Record, Run, Workload, simulate
from gridsim.metrics.charges import CategorySlowdowns, category_slowdowns
from gridsim.metrics.deadlines import deadline_metrics, deadline_requested, granted, refused, taken, terciles
from gridsim.metrics.groups import rows_by_group
from gridsim.metrics.summary import DEADLINE_METRICS, Metric, metrics
from gridsim.model.random_streams import stream
from gridsim.model.time import NEVER, seconds
from gridsim.workload.synthetic.packed import Packed
from gridsim.workload.transform.deadlines import Deadlines, Tolerance, by_number
from gridsim.workload.transform.duplicate import Duplicate, Expand
from gridsim.workload.transform.estimates import ExactEstimates
from gridsim_papers.units import Row, Unit
from gridsim_papers.windows import seed_of

__all__ = ["BASELINES", "EXTRA_METRICS", "Point", "Replicate", "numbers_of", "of_single_cores", "row_of"]

BASELINES = ("easy", "conservative")
"""Policies that ignore deadlines: a trace has one schedule under each, whatever deadlines its jobs request."""

_KEPT = (
    *("utilisation", "utilisation_arrivals", "offered_load", "makespan", "response_mean", "slowdown_mean"),
    *("bounded_slowdown_mean", "submitted", "completed", "killed_walltime", "unadmitted"),
)
"""Stored metrics of `gridsim.metrics.summary.METRICS`; all metrics about deadlines are stored."""

_OF_SERVICE = ("offers_made", "offers_taken", "kills", "lost_area", "resource_charge", "qos_charge")
"""Metrics that only the 2004 paper needs."""

_OF_GROUPS = (
    *("deadline_jobs", "deadline_area", "deadline_unadmitted", "deadline_unadmitted_share", "deadline_guaranteed"),
    *("deadline_guaranteed_share", "deadline_guaranteed_area", "offers_taken", "non_deadline_jobs"),
    *("non_deadline_response_mean", "non_deadline_slowdown_mean"),
)
"""Metrics stored for terciles, in addition to the means of response and slowdown."""

EXTRA_METRICS = {
    "deadline_guaranteed_area_median": Metric(
        "core-seconds", None, "true work of a job that asked for a deadline and was promised one: median"
    ),
    "deadline_unadmitted_area_median": Metric(
        "core-seconds", None, "true work of a job that asked for a deadline and was refused: median"
    ),
    "offers_taken_area": Metric("core-seconds", None, "true work of the jobs that took a later deadline"),
    "artificial_stretch_max": Metric(
        "", "lower", "longest response of a job without a deadline over the artificial one, before any doubling"
    ),
}
"""Additional numbers that are stored for single claims."""

_TERCILES = {"runtime": ("short", "middle", "long"), "area": ("light", "middle", "heavy")}


class Point(NamedTuple):
    """One schedule of a unit, with the fields of the rows.

    Attributes
    ----------
    method : str
        Method to raise the load: ``random-arrival`` or ``same-arrival`` duplication, or ``expansion``.
    load : float
        In multiples of the window's original load.
    stringency, fraction, tolerance, random_tolerance
        Of the deadlines, as in `gridsim.workload.transform.deadlines.Deadlines`.
    estimates : str
        ``exact``; ``logged`` (jobs are killed at their estimates); or ``logged-extended`` (jobs continue beyond them).
    scheme : str
        The policy.
    """

    method: str
    load: float
    stringency: float = 0.2
    fraction: float = 1.0
    tolerance: float = 1.0
    random_tolerance: bool = False
    estimates: str = "exact"
    scheme: str = "easy"

    @property
    def trace(self) -> tuple[str, float, str]:
        """Key of the jobs without deadlines: at load 1 they are those of the window, with any method."""
        return ("" if self.load == 1 else self.method), self.load, self.estimates

    @property
    def schedule(self) -> tuple[Any, ...]:
        """Key of the schedule and its numbers: only FQoPS uses the tolerance of users."""
        alone = self if self.scheme.startswith("fqops") else self._replace(tolerance=1.0, random_tolerance=False)
        return self.trace, alone[2:]


def of_single_cores(packed: Packed, seed: int) -> Workload:
    """Pack every core separately, with its share of the jobs: no job needs two cores."""
    one = replace(packed, cores=1, jobs=max(packed.jobs // packed.cores, 1))
    parts = [one.generate(seed_of(seed, "core", core)) for core in range(packed.cores)]
    submit, runtime, deadline = (
        np.concatenate([seconds(getattr(part, name)) for part in parts]) for name in ("submit", "runtime", "deadline")
    )
    order = stream(seed, "cores").permutation(len(submit))
    order = order[np.argsort(submit[order], kind="stable")]
    return Workload.from_columns(
        submit=submit[order], runtime=runtime[order], deadline=deadline[order], cores=np.ones(len(order))
    )


@dataclass(eq=False)
class Replicate:
    """Workloads of one unit, and their EASY schedules, which determine deadlines and the prices of categories.

    Attributes
    ----------
    logged : Workload
        The window.
    cores : int
        Cores of the machine.
    seed : int
        Seed of the random streams, each of which is named after the unit.
    unit : Unit
        The unit of these workloads.
    """

    logged: Workload
    cores: int
    seed: int
    unit: Unit
    _traces: dict[tuple[str, float, str], Workload] = field(default_factory=dict)
    _plain: dict[tuple[Any, ...], Record] = field(default_factory=dict)
    _last: tuple[Any, Workload] | None = None

    def numbers(self, point: Point, kinds: set[str]) -> Iterator[tuple[str, str, float]]:
        """Metric, group and value of one schedule, for the defined values."""
        workload = self.workload(point)
        if point.scheme in BASELINES:
            record = replace(self.plain(point), workload=workload)
        else:
            record = self._run(workload, point)
        slowdowns = None
        if point.method == "same-arrival":
            slowdowns = category_slowdowns(self.plain(point._replace(scheme="easy")))
        yield from numbers_of(record, point, kinds, slowdowns)

    @property
    def platform(self) -> Platform:
        """The machine."""
        return Platform.single(self.cores)

    def workload(self, point: Point) -> Workload:
        """Jobs of a point with their deadlines."""
        key = (point.method if point.load > 1 else "", *point[1:-1])
        if self._last is None or self._last[0] != key:
            self._last = key, self._requested(point)
        return self._last[1]

    def _requested(self, point: Point) -> Workload:
        if point.trace[0] == "same-arrival":
            base = self._with_deadlines(point._replace(load=1.0, fraction=1.0))
            workload = _keep_deadlines(self._raised(base, point), point.fraction, self._stream("own flags"))
        else:
            workload = self._with_deadlines(point)
        if point.tolerance == 1 and not point.random_tolerance:
            return workload
        return Tolerance(point.tolerance, random=point.random_tolerance).apply(workload, self._stream("tolerance"))

    def _with_deadlines(self, point: Point) -> Workload:
        easy = self.plain(point._replace(scheme="easy"))
        deadlines = Deadlines(stringency=point.stringency, fraction=point.fraction)
        return deadlines.apply(easy.workload, self._stream("flags"), easy)

    def plain(self, point: Point) -> Record:
        """The schedule of a trace without deadlines, under one of `BASELINES`."""
        key = (point.trace, point.scheme)
        if key not in self._plain:
            self._plain[key] = self._run(self.trace(point), point)
        return self._plain[key]

    def _run(self, workload: Workload, point: Point) -> Record:
        options = Run(overrun="extend" if point.estimates == "logged-extended" else "kill", engine="compiled")
        return simulate(workload, platform=self.platform, policy=point.scheme, options=options).record

    def trace(self, point: Point) -> Workload:
        """Jobs of a point without deadlines."""
        if point.trace not in self._traces:
            base = ExactEstimates().apply(self.logged) if point.estimates == "exact" else self.logged
            self._traces[point.trace] = self._raised(base, point)
        return self._traces[point.trace]

    def _raised(self, workload: Workload, point: Point) -> Workload:
        """Jobs at the load of a point, generated from a workload of load 1."""
        if point.load == 1:
            return workload
        if point.method == "expansion":
            return Expand(point.load).apply(workload)
        arrival = point.method.removesuffix("-arrival")
        return Duplicate(point.load, arrival=arrival).apply(workload, self._stream("copies"))  # type: ignore[arg-type]

    def _stream(self, role: str) -> np.random.Generator:
        return stream(self.seed, "deadline", *self.unit, role)


def _keep_deadlines(workload: Workload, fraction: float, rng: np.random.Generator) -> Workload:
    """The *workload* with deadlines for only a share of its jobs; copies of a job are drawn independently."""
    if fraction == 1:
        return workload
    keeps = by_number(workload.job, rng) < fraction
    return replace(workload, deadline=np.where(keeps, workload.deadline, NEVER))


def numbers_of(
    record: Record, point: Point, kinds: Iterable[str] = (), slowdowns: CategorySlowdowns | None = None
) -> Iterator[tuple[str, str, float]]:
    """Metric, group and value of all finite numbers of a schedule."""
    found = metrics(record, deadlines=True, slowdowns=slowdowns)
    unasked = () if point.method == "same-arrival" else _OF_SERVICE
    kept = {name: found[name] for name in (*_KEPT, *DEADLINE_METRICS) if name not in unasked}
    for name, value in (kept | _extra(record)).items():
        if not np.isnan(value):
            yield name, "", value
    for kind in sorted(set(kinds) & set(_TERCILES)):
        for group, part in _thirds(record, kind):
            numbers = deadline_metrics(part) | {
                "response_mean": _mean(part.response),
                "slowdown_mean": _mean(part.response / part.held),
            }
            for name in (*_OF_GROUPS, "response_mean", "slowdown_mean"):
                if not np.isnan(numbers[name]):
                    yield name, group, numbers[name]
    if "category" in kinds:
        yield from _by_category(record)


def _extra(record: Record) -> dict[str, float]:
    """`EXTRA_METRICS` of a schedule with promises."""
    if record.promises is None:
        return {}
    area, wanted = record.workload.area, deadline_requested(record)
    numbers = {
        f"deadline_{name}_area_median": float(np.median(area[wanted & chosen]))
        for name, chosen in (("guaranteed", granted(record)), ("unadmitted", refused(record)))
        if (wanted & chosen).any()
    }
    if taken(record).any():
        numbers["offers_taken_area"] = float(area[taken(record)].sum())
    others = ~wanted & granted(record)
    if others.any():
        response = record.promises.granted_us[others] - record.workload.submit[others]
        first = response / 2.0 ** record.promises.doublings[others]
        numbers["artificial_stretch_max"] = float((record.response[others] / seconds(first)).max())
    return numbers


def _thirds(record: Record, kind: str) -> Iterator[tuple[str, Record]]:
    """Terciles of jobs by core-seconds, or of jobs without a deadline by runtime, as one record each."""
    chosen = record.select(~deadline_requested(record)) if kind == "runtime" else record
    groups = terciles(chosen, kind)  # type: ignore[arg-type]  # one of _TERCILES
    words = dict(zip(groups.names, _TERCILES[kind], strict=True))
    for name, rows in rows_by_group(groups).items():
        yield f"{kind}:{words[name]}", chosen.select(rows)


def _by_category(record: Record) -> Iterator[tuple[str, str, float]]:
    """Number and mean slowdown of jobs that ran, by class of runtime and class of cores."""
    found = category_slowdowns(record)
    for time_class, core_class in np.argwhere(found.jobs > 0).tolist():
        group = f"category:{time_class},{core_class}"
        yield "completed", group, float(found.jobs[time_class, core_class])
        yield "slowdown_mean", group, float(found.mean[time_class, core_class])


def _mean(values: np.typing.NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def row_of(names: Mapping[str, Any], point: Point, metric: str, group: str, value: float) -> Row:
    return {**names, **point._asdict(), "metric": metric, "group": group, "value": value}
