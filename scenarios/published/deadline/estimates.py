"""Cost of inaccurate estimates, and the effect of slack on kept promises: future work according to the papers.

Estimates that are too long (user estimates of a log; a job that reaches its estimate is killed) keep every promise but
reduce admission. Estimates that are too short (drawn: the true runtime times an error of median 1; a job that reaches
its estimate continues) break promises, and slack keeps more of them. The results are in ``estimates.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gridsim.campaign.run import Finished, Progress, run_campaign
from gridsim.errors import InputError, UnknownNameError
from gridsim.files import write_atomically
from gridsim.metrics.deadlines import broken, granted
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.scenario import transformed
from gridsim.simulation import Run, simulate
from gridsim.workload.read import read_workload
from gridsim.workload.synthetic.lublin import Lublin
from gridsim_papers.deadline.estimates import slack_figure
from gridsim_papers.units import Row, Table, Tabled

BoolArray = npt.NDArray[np.bool_]

TABLE = Table(
    {
        "part": str,  # long: logged against exact estimates; short: drawn estimates
        "log": str,
        "window": int,
        "load": float,
        "estimates": str,  # logged, exact or noisy
        "spread": float,
        "slack_by": str,  # none, reserve, request or offer
        "slack": float,
        "scheme": str,
        "metric": str,
        "value": float,
    }
)

CORES = {"ctc": 430, "sdsc": 128, "model": 430}
FILES = {"ctc": "CTC-SP2-1996-3.1-cln.swf.gz", "sdsc": "SDSC-SP2-1998-4.2-cln.swf.gz"}
SCHEMES = ("qops", "msb", "mrt")
SPREADS = (0.0, 0.25, 0.5, 1.0)
SLACKS = (1.0, 1.25, 1.5, 2.0, 3.0)
STRINGENCY = 0.2
PATIENT = 10.0
"""Tolerance of users who get offers with slack: users with a tolerance up to the slack would reject such an offer."""
METRICS = (
    "deadline_unadmitted_share",
    "deadline_unadmitted_area_share",
    "deadline_met_share",
    "utilisation_arrivals",
    "promises_made",
    "promises_broken",
)


@dataclass(frozen=True)
class Unit:
    """One window of a log at one load."""

    log: str
    window: int
    load: float
    jobs: int = 5000

    @property
    def file(self) -> str:
        """Name of its file of rows."""
        return f"{self.log}-{self.window}-{self.load:g}.csv"

    def __str__(self) -> str:
        return f"{self.log} window {self.window} at load {self.load:g}"

    @property
    def platform(self) -> Platform:
        """The machine of the log."""
        return Platform.single(CORES[self.log])


SCALES: Mapping[str, tuple[Unit, ...]] = {
    "tiny": (Unit("model", 0, 1.3, 300),),
    "small": tuple(Unit("ctc", window, load) for window in range(3) for load in (1.0, 1.3, 1.6)),
    "full": tuple(
        Unit(log, window, load)
        for log, windows in (("ctc", 15), ("sdsc", 10))
        for window in range(windows)
        for load in (1.0, 1.3, 1.6)
    ),
}


@dataclass(frozen=True)
class Study(Tabled):
    """Units of a scale."""

    table: ClassVar[Table] = TABLE
    may_grow: ClassVar[tuple[str, ...]] = ("wanted",)
    wanted: tuple[Unit, ...]

    def units(self) -> Sequence[Unit]:
        """All of them."""
        return self.wanted

    def reads(self, data: Path | None) -> list[Path]:
        """Logs."""
        return [
            data / FILES[log] for log in sorted({unit.log for unit in self.wanted} & set(FILES)) if data is not None
        ]

    def rows(self, unit: Unit, data: str | Path | None = None) -> list[Row]:
        """Numbers of one unit."""
        return list(rows_of(unit, None if data is None else Path(data)))


def window_of(unit: Unit, data: Path | None = None) -> Workload:
    """The jobs of a unit before its load is raised, with the runtimes that their estimates allow.

    Raises
    ------
    InputError
        For a unit of a log without a folder that contains it.
    """
    if unit.log == "model":
        log = Lublin(jobs=unit.jobs * (unit.window + 1), cores=CORES[unit.log], estimates="multiples").generate(1)
    elif data is None:
        raise InputError(f"'{unit.log}' is a log; give the folder that holds it, or --scale tiny", field="--data")
    else:
        log = read_workload(data / FILES[unit.log], cores=CORES[unit.log])
    window = transformed(log, [f"slice?jobs={unit.jobs}&window={unit.window}&origin=true"], platform=unit.platform)
    return replace(window, runtime=np.minimum(window.runtime, window.estimate))


def rows_of(unit: Unit, data: Path | None = None) -> Iterator[Row]:
    """All rows of a unit; *data* is the folder of the logs."""
    window = window_of(unit, data)
    loaded = [f"duplicate?load={unit.load}", f"deadlines?stringency={STRINGENCY}"]
    yield from _too_long(unit, transformed(window, loaded, platform=unit.platform))
    yield from _too_short(unit, transformed(window, ["exact-estimates", *loaded], platform=unit.platform))


def _too_long(unit: Unit, logged: Workload) -> Iterator[Row]:
    """The same jobs with the same deadlines, once with user estimates and once with exact ones."""
    for estimates, jobs in (("logged", logged), ("exact", transformed(logged, ["exact-estimates"]))):
        for scheme in SCHEMES:
            record, numbers = _run(unit, jobs, scheme)
            assert not broken(record).any()
            yield from _rows(unit, numbers, part="long", estimates=estimates, scheme=scheme)


def _too_short(unit: Unit, exact: Workload) -> Iterator[Row]:
    """Rows for estimates with errors, at several spreads, and slack in three places."""
    for spread in SPREADS:
        noisy = transformed(exact, [f"noisy-estimates?spread={spread}"])
        said = {"part": "short", "estimates": "noisy", "spread": spread}
        tight, numbers = _run(unit, noisy, "qops", overrun="extend")
        for slack in SLACKS:
            kept = {"kept_share": kept_with_reserve(tight, slack), "innocent_share": innocent(tight, slack)}
            yield from _rows(unit, numbers | kept, **said, slack_by="reserve", slack=slack, scheme="qops")
            for how, scheme, jobs in (
                ("request", "qops", with_later_deadlines(noisy, slack)),
                ("offer", f"fqops?slack_factor={slack:g}", with_tolerance(noisy, PATIENT)),
            ):
                record, measured = _run(unit, jobs, scheme, overrun="extend")
                kept = {"kept_share": kept_with_reserve(record), "innocent_share": innocent(record)}
                yield from _rows(unit, measured | kept, **said, slack_by=how, slack=slack, scheme=scheme)


def _run(unit: Unit, jobs: Workload, scheme: str, **options: Any) -> tuple[Record, dict[str, float]]:
    result = simulate(jobs, platform=unit.platform, policy=scheme, options=Run(**options))
    numbers = result.metrics()
    return result.record, {name: numbers[name] for name in METRICS}


def _rows(unit: Unit, numbers: Mapping[str, float], **said: Any) -> Iterator[Row]:
    where = {"log": unit.log, "window": unit.window, "load": unit.load}
    for metric, value in numbers.items():
        yield {"spread": 0.0, "slack_by": "none", "slack": 1.0, **where, **said, "metric": metric, "value": value}


def with_later_deadlines(workload: Workload, factor: float) -> Workload:
    """The workload with deadlines at *factor* times the response, rounded up to whole microseconds."""
    return replace(workload, deadline=stretched(workload.submit, workload.deadline, factor))


def with_tolerance(workload: Workload, factor: float) -> Workload:
    """The workload with users who accept *factor* times their requested response."""
    return replace(workload, tolerance=np.full(len(workload), factor))


def stretched(submit: IntArray, deadline: IntArray, factor: float) -> IntArray:
    """Deadlines at *factor* times the response, rounded up to whole microseconds; `NEVER` stays."""
    share = Fraction(str(factor))
    response = np.where(deadline < NEVER, deadline - submit, 0)
    later: IntArray = submit - -response * share.numerator // share.denominator
    return np.where(deadline < NEVER, later, NEVER)


def late(record: Record, slack: float = 1.0) -> BoolArray:
    """Promises that would be broken if each promised response were *slack* times the planned one."""
    assert record.promises is not None
    promised = stretched(record.workload.submit, record.promises.granted_us, slack)
    return granted(record) & (record.end_us > promised)


def kept_with_reserve(record: Record, slack: float = 1.0) -> float:
    """Share of kept promises with such a slack."""
    return 1.0 - float(late(record, slack).sum() / granted(record).sum())


def innocent(record: Record, slack: float = 1.0) -> float:
    """Share of the broken promises made to jobs that stayed within their own estimates; NaN without any."""
    broken_ones = late(record, slack)
    within = broken_ones & (record.workload.runtime <= record.workload.estimate)
    return float(within.sum() / broken_ones.sum()) if broken_ones.any() else float("nan")


def table_of(rows: Sequence[Row]) -> str:
    """Cost of user estimates relative to exact ones: means over the windows, by log, load and scheme."""
    lines = [
        "estimates that are too long, and exact ones",
        f"{'log':6}{'load':>5}  {'scheme':8}{'estimates':11}{'jobs away':>10}{'work away':>10}{'utilisation':>12}",
    ]
    long = [row for row in rows if row["part"] == "long"]
    names = ("log", "load", "scheme", "estimates")
    for key in dict.fromkeys(tuple(row[name] for name in names) for row in long):
        here = [row for row in long if tuple(row[name] for name in names) == key]
        away, area, used = (
            float(np.mean([row["value"] for row in here if row["metric"] == metric]))
            for metric in ("deadline_unadmitted_share", "deadline_unadmitted_area_share", "utilisation_arrivals")
        )
        log, load, scheme, estimates = key
        lines.append(f"{log:6}{load:5.1f}  {scheme:8}{estimates:11}{away:10.1%}{area:10.1%}{used:12.1%}")
    return "\n".join(lines)


def slack_table_of(rows: Sequence[Row]) -> str:
    """Share of kept promises by slack: means over the windows, by log, load, place of the slack and spread."""
    lines = [
        f"{'log':6}{'load':>5}  {'slack in':9}{'spread':>7}{'slack':>7}{'kept':>9}{'innocent':>10}{'jobs away':>11}"
    ]
    short = [row for row in rows if row["part"] == "short"]
    names = ("log", "load", "slack_by", "spread", "slack")
    values: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in short:
        values.setdefault(tuple(row[name] for name in names), {}).setdefault(row["metric"], []).append(row["value"])
    for (log, load, place, spread, slack), here in sorted(values.items()):
        shown = ("kept_share", "innocent_share", "deadline_unadmitted_share")
        kept, within, away = (_mean(here[metric]) for metric in shown)
        lines.append(f"{log:6}{load:5.1f}  {place:9}{spread:7.2f}{slack:7.2f}{kept:9.2%}{within:10.0%}{away:11.1%}")
    return "\n".join(["estimates with errors of median 1", *lines])


def _mean(values: Sequence[float]) -> float:
    """Mean of the values that are not NaN; NaN without any."""
    there = [value for value in values if value == value]
    return sum(there) / len(there) if there else float("nan")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the figure of these rows as PNG."""
    figure = slack_figure(rows)
    write_atomically(path, lambda place: figure.savefig(place, format="png", dpi=110, facecolor="w"))


def told(done: Finished, at: Progress) -> None:
    """Table lines, one per unit."""
    print(f"{done.unit}: {'done' if done.failure is None else done.failure.error}  {at.left} left", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the archive logs (small and full)")
    parser.add_argument("--out", required=True, type=Path, help="folder of the rows and figures; finished units stay")
    parser.add_argument("--scale", default="small", help="tiny (synthetic jobs), small or full")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    if args.scale not in SCALES:
        raise UnknownNameError("scale", args.scale, SCALES)
    run_campaign(Study(SCALES[args.scale]), args.out, data=args.data, workers=args.workers, listener=told)
    rows = TABLE.read(args.out)
    print(table_of(rows), slack_table_of(rows), sep="\n\n")
    for log, load in sorted({(row["log"], row["load"]) for row in rows}):
        here = [row for row in rows if (row["part"], row["log"], row["load"]) == ("short", log, load)]
        path = args.out / f"slack-{log}-{load:g}.png"
        draw(here, path)
        print(path)


if __name__ == "__main__":
    main()
