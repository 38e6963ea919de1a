"""Claims of the grid paper, and the stored rows that decide each claim.

Identifiers are those of the ledger of claims, which contains the statements and the evidence for claims that no row
decides.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim import InputError
from gridsim.metrics.campaign import PolicyComparison
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import ROUNDING, bootstrap_means
from gridsim.model.random_streams import stream
from gridsim.model.time import FloatArray, IntArray
from gridsim_papers import decisions
from gridsim_papers.decisions import resampled, signed
from gridsim_papers.grid.industrial import DRAWN
from gridsim_papers.grid.judges import (
    Claim,
    Evidence,
    Judge,
    Stored,
    Wanted,
    alike,
    as_printed,
    at_each_load,
    differs,
    drawn,
    load_of,
    logs_of,
    pooled,
    title,
)
from gridsim_papers.grid.orders import (
    Averages,
    Margin,
    at_deciles,
    at_loads,
    close,
    falling,
    flat,
    highest,
    highest_in,
    lowest,
    lowest_in,
    no_worse,
    ordered,
    over_loads,
    together,
    uptick,
)
from gridsim_papers.paired import by_window, changes
from gridsim_papers.verdicts import Answer, Finding, Part, decided, facts

__all__ = ["CLAIMS", "INDUSTRIAL_CLAIMS"]

FIVE = ("lrtf", "fair-share", "random", "fifo-task", "fifo-job")
"""Policies that P-SLR and SRTF are claimed to beat."""


def _level_at_each_load(metric: str) -> Evidence:
    """P-SLR and SRTF perform equally at every load."""

    def evidence(stored: Stored) -> tuple[list[Part], str]:
        cells = at_each_load(stored, metric, "srtf")
        family = [(_at(one), logs_of(stored, metric, "p-slr", "srtf", one.load)) for one in cells]
        shares = "; ".join(f"{100 * one.dominance:.0f}" for one in cells)
        return decisions.alike(family, stored.margin, ratio=True), f"dominance {shares} %"

    return evidence


def _at(one: PolicyComparison) -> str:
    return f"at {100 * load_of(one):g} %"


def _srtf_gains_with_load(stored: Stored) -> tuple[list[Part], str]:
    """Dominance over SRTF in mean SLR decreases at each load, and P-SLR is worse at the highest."""
    paired = stored.paired("mean_slr")
    wins = (paired.of("p-slr") <= paired.of("srtf")).astype(float)
    shares = wins.mean(axis=0)
    steps = -np.diff(bootstrap_means(wins), axis=1).max(axis=1)
    falls = resampled("dominance falls at each load", -np.diff(shares).max(), steps, len(wins), 0.0)
    last = paired.loads[-1]
    worse = (f"P-SLR worse than SRTF at {100 * last:g} %", logs_of(stored, "mean_slr", "p-slr", "srtf", last))
    told = "; ".join(f"{100 * share:.0f}" for share in shares)
    return [falls, *signed([worse], 1, ratio=True)], f"dominance {told} %"


def _srtf_better_at_high_loads(stored: Stored) -> tuple[list[Part], str]:
    """SRTF's mean SLR is better at 110 % and above, and no different at 80 %."""
    cells = {round(100 * load_of(one)): one for one in at_each_load(stored, "mean_slr", "srtf")}
    if not any(load >= 110 for load in cells) or 80 not in cells:
        raise InputError("loads of 80 % and of 110 % or more are needed", field="load")
    logs = {load: logs_of(stored, "mean_slr", "p-slr", "srtf", one.load) for load, one in cells.items()}
    parts = signed([(f"better at {load} %", logs[load]) for load in cells if load >= 110], 1, ratio=True)
    parts += decisions.alike([("equal at 80 %", logs[80])], stored.margin, ratio=True)
    return parts, "; ".join(f"{load} %: ratio {one.ratio:.3g}" for load, one in cells.items())


def _grouping(_: Stored) -> Finding:
    """Table 1, according to the descriptions of the metrics."""
    busy = ("makespan", "flow", "utilisation", "peak_in_flight")
    printed = {name: {"utilisation"} for name in busy}
    printed["cumulative_completion"] = {"utilisation", "responsiveness"}
    for name in ("stretch", "speedup", "slr"):
        printed |= {f"mean_{name}": {"responsiveness"}, f"worst_{name}": {"responsiveness"}, f"sd_{name}": {"fairness"}}
    right = [set(DAG_METRICS[name].classes) == classes for name, classes in printed.items()]
    return Finding(facts(right), n=len(printed), note=f"{sum(right)} of {len(printed)} metrics")


def _complete(stored: Stored) -> Finding:
    """5,250 schedules."""
    there = {(row["kind"], row["workload"], row["load"], row["policy"]) for row in stored.of("makespan")}
    stored.paired("makespan")
    answer: Answer = "holds" if len(there) == 5_250 else "not testable"
    return Finding(
        answer, len(there), n=len(there), note=f"{len(there):,} of 5,250 schedules, none of a workload missing"
    )


def _least_slr(stored: Stored) -> Finding:
    least = [row["value"] for row in stored.of("least_slr")]
    return Finding(
        "holds" if min(least) >= 1 else "does not hold", min(least), n=len(least), note="least SLR of all jobs"
    )


def _published_size(stored: Stored) -> None:
    """Raise `InputError` for a campaign with fewer jobs, where numbers that grow with the grid are meaningless."""
    if min(row["value"] for row in stored.of("jobs")) < 1_000:
        raise InputError("needs workloads and a grid of the published size", field="jobs")


def _by_workload(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], FloatArray]:
    """Values of each workload, in the order of the rows."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["kind"], row["workload"]), []).append(row["value"])
    return {workload: np.array(values) for workload, values in found.items()}


def _resampled_median(words: str, values: FloatArray, least: float, most: float) -> Part:
    """Test whether the median over all workloads (the first axis) lies in a range."""
    draws = np.median(values[_drawn(len(values))].reshape(_DRAWS, -1), axis=1)
    return resampled(words, float(np.median(values)), draws, len(values), least, most)


_DRAWS = 2_000


def _drawn(n: int) -> IntArray:
    rows: IntArray = stream(0, "campaign", "median").integers(n, size=(_DRAWS, n))
    return rows


def _completions(stored: Stored) -> Finding:
    """The 95 % quantile of gaps between completions in a cluster is at most a tenth of the median task."""
    _published_size(stored)
    kinds: dict[str, list[FloatArray]] = {}
    for (kind, _), values in _by_workload(stored.of("completion_gap")).items():
        kinds.setdefault(kind, []).append(values)
    parts = [_resampled_median(kind, np.array(values), 0.0, 0.1) for kind, values in kinds.items()]
    told = ", ".join(f"{part.words} {part.effect:.2g}" for part in parts)
    return decided(parts, note=f"95 % quantile of gaps over median task: {told}")


def _mean_cores(stored: Stored) -> Finding:
    """The median over all tasks, resampled by workload, is within half a core above 10."""
    cores, tasks = (
        np.array([values.mean() for values in _by_workload(stored.of(metric)).values()])
        for metric in ("mean_cores", "tasks")
    )
    rows = _drawn(len(cores))
    draws = (cores * tasks)[rows].sum(axis=1) / tasks[rows].sum(axis=1)
    mean = float(cores @ tasks / tasks.sum())
    return decided([resampled("mean cores", mean, draws, len(cores), 10.0, 10.5)])


def _lighter_side(stored: Stored) -> Finding:
    """Load of each kind of cluster divided by the nominal one, mean over workloads: 1.067 and 0.80."""
    kinds = []
    for kind in (1, 2):
        over = [{**row, "value": row["value"] / row["load"]} for row in stored.of(f"offered_load_kind{kind}")]
        kinds.append({(at, 0): float(values.mean()) for at, values in enumerate(_by_workload(over).values())})
    first, second = (float(by_window(kind).mean()) for kind in kinds)
    note = f"{first:.3f} and {second:.3f} of the nominal load, expected 1.067 and 0.80"
    return decided(signed([("first kind less second", changes(*kinds))], 1), note=note)


def _nominal_load(stored: Stored) -> Finding:
    rows = [row for row in stored.of("offered_load") if row["kind"].endswith("ind")]
    if not rows:
        raise InputError("no workload of independent jobs", field="kind")
    error = max(abs(row["value"] / row["load"] - 1) for row in rows)
    return Finding("holds" if error <= 0.01 else "does not hold", error, n=len(rows), note="largest relative error")


def _late_long_job(stored: Stored) -> Finding:
    """Utilisation up to the makespan is low; from 100 % load, that up to the last arrival is a fifth higher or more."""
    paired = stored.paired("utilisation")
    arrivals = stored.paired("utilisation_arrivals").values
    loads = [at for at, load in enumerate(paired.loads) if load >= 1]
    if not loads:
        raise InputError("a load of 100 % or more is needed", field="load")

    def least_ratio(rows: IntArray) -> FloatArray:
        """Medians over resampled workloads, at the load with the lowest median."""
        up_to, to_end = (np.median(values[:, loads][rows], axis=(-3, -1)) for values in (arrivals, paired.values))
        least: FloatArray = (up_to / to_end).min(axis=-1)
        return least

    n = len(paired.values)
    low = _resampled_median("median utilisation", paired.values, 0.0, 0.6)
    ratio = float(least_ratio(np.arange(n)))
    higher = resampled("up to the last arrival over it", ratio, least_ratio(_drawn(n)), n, 1.2)
    note = f"median {low.effect:.3f}; up to the last arrival at least {ratio:.2f} times that from 100 % load on"
    return decided([low, higher], note=note)


def _peak_of_lrtf(stored: Stored) -> Finding:
    """Median peak in-flight of LRTF over all schedules."""
    _published_size(stored)
    return decided([_resampled_median("median", stored.paired("peak_in_flight").of("lrtf"), 392, 450)])


FIFO_LIKE = ("random", "fair-share", "fifo-task", "fifo-job")
_BETTER: Mapping[str, Wanted] = dict.fromkeys(FIVE, "better")
_UTILISATION: Mapping[str, Wanted] = {**dict.fromkeys(FIVE, "worse"), "srtf": "better"}


def _cells(metric: str, first: int) -> list[Claim]:
    """Rows of Tables 3 and 4 except SRTF's."""
    order = ("lrtf", "srtf", "random", "fifo-task", "fifo-job", "fair-share")
    return [
        Claim(f"G-{first + at}", pooled(as_printed(metric, other))) for at, other in enumerate(order) if other != "srtf"
    ]


_FAIRER = differs("sd_slr", _BETTER)
_RESPONSIVE = differs("worst_slr", _BETTER, ("p-slr", "srtf"))
_LEVEL_UTILISATION = ordered(
    over_loads("utilisation"), {f"against {title(name)}": close("p-slr", name, 1.05) for name in ("srtf", *FIVE)}
)

CLAIMS: tuple[Claim, ...] = (
    Claim("G-09", _grouping),
    Claim("G-11", _mean_cores),
    Claim("G-12", _lighter_side),
    Claim("G-13", _nominal_load),
    Claim("G-14", _complete),
    Claim("G-15", _least_slr),
    Claim("G-18", _completions),
    Claim("G-20", drawn("sd_slr", "figure-6")),
    Claim("G-21", pooled(_FAIRER)),
    Claim("G-22", pooled(alike("sd_slr"))),
    Claim("G-23", drawn("mean_slr", "figure-7", by_decile=True)),
    Claim(
        "G-24",
        pooled(
            ordered(at_deciles(), {"highest in decile 1": highest(0, "lrtf"), "lowest in decile 10": lowest(9, "lrtf")})
        ),
    ),
    Claim(
        "G-25",
        pooled(
            ordered(at_deciles(), {"falling": falling(FIFO_LIKE), "within 2 of one another": together(FIFO_LIKE, 2.0)})
        ),
    ),
    Claim(
        "G-26",
        pooled(
            ordered(
                at_deciles(),
                {"lowest in 6 deciles": lowest_in(0.6, "srtf"), "highest in decile 10": highest(9, "srtf")},
            )
        ),
    ),
    Claim("G-27", pooled(ordered(at_deciles(), {"within 1.2 of one another": flat("p-slr", 1.2)}))),
    Claim("G-28", pooled(ordered(at_deciles(), {"decile 1 over the rest": uptick("p-slr")}))),
    Claim("G-29", drawn("worst_slr", "figure-7-worst", by_decile=True)),
    Claim("G-30", drawn("worst_slr", "figure-8")),
    Claim("G-31", pooled(_RESPONSIVE)),
    Claim("G-32", pooled(alike("worst_slr"))),
    Claim("G-33", drawn("worst_slr", "figure-9")),
    Claim("G-34", pooled(ordered(at_loads("worst_slr"), {"highest at 4 of 5 loads": highest_in(0.8, "lrtf")}))),
    Claim("G-35", pooled(ordered(at_loads("worst_slr"), {"lowest at every load": lowest_in(1.0, "srtf", "p-slr")}))),
    Claim(
        "G-36",
        pooled(
            *(
                ordered(
                    at_loads("worst_slr"),
                    {f"{words} against {title(name)}": no_worse("random", name, 1.1, 0.8) for name in FIFO_LIKE[1:]},
                    geometric=geometric,
                )
                for words, geometric in (("means", False), ("geometric means", True))
            )
        ),
    ),
    *_cells("worst_slr", 40),
    Claim("G-41", pooled(_level_at_each_load("worst_slr"), universal=True)),
    *_cells("mean_slr", 50),
    Claim("G-51", pooled(_srtf_gains_with_load)),
    Claim("G-56", pooled(_srtf_better_at_high_loads)),
    Claim("G-60", drawn("utilisation", "figure-10")),
    Claim("G-61", pooled(differs("utilisation", _UTILISATION))),
    Claim("G-62", pooled(_LEVEL_UTILISATION)),
    Claim("G-63", _late_long_job),
    Claim("G-64", drawn("cumulative_completion", "figure-11")),
    Claim("G-65", pooled(differs("cumulative_completion", _BETTER))),
    Claim("G-66", pooled(alike("cumulative_completion"))),
    Claim("G-67", drawn("peak_in_flight", "figure-12")),
    Claim("G-68", pooled(differs("peak_in_flight", _BETTER), alike("peak_in_flight"))),
    Claim("G-69", _peak_of_lrtf),
    Claim("G-70", pooled(_FAIRER, _RESPONSIVE, alike("worst_slr"), _LEVEL_UTILISATION)),
)
"""Claims decided by rows of the campaign."""


def _values(of: Averages) -> str:
    values = {policy: float(of.of(policy).mean()) for policy in of.policies}
    return ", ".join(f"{title(name)} {value:.4g}" for name, value in sorted(values.items(), key=lambda pair: pair[1]))


class Range(NamedTuple):
    """A number computed from averages, and its claimed range; *exact* for policies without random draws."""

    number: Margin
    least: float
    most: float = math.inf
    exact: bool = False

    def part(self, words: str, of: Averages) -> Part:
        """The part of the claim from the values of each draw: a fact, or decided by resampling the draws."""
        if self.exact:
            value = float(self.number(of)[0])
            inside = self.least <= value <= self.most
            return Part(words, float(not inside), float(inside), 1, value, exact=True)
        resamples = self.number(Averages(of.policies, bootstrap_means(of.values)))
        value = float(self.number(Averages(of.policies, of.values.mean(axis=0))))
        return resampled(words, value, resamples, len(of.values), self.least, self.most)


def _by_draw(stored: Stored, metric: str, deciles: Sequence[int | None]) -> Averages:
    """Values of each draw on the industrial log; policies without random draws have the same values in each."""
    rows = [row for row in stored.of(metric) if row["decile"] in deciles]
    policies = tuple(dict.fromkeys(row["policy"] for row in rows))
    value = {(row["policy"], row["workload"], row["decile"]): row["value"] for row in rows}
    draws = range(1, 1 + max((row["workload"] for row in rows), default=0))
    values = [
        [[value.get((policy, draw, decile), value[policy, 1, decile]) for decile in deciles] for policy in policies]
        for draw in draws
    ]
    return Averages(policies, np.array(values, dtype=np.float64))


def on_log(metric: str, parts: Mapping[str, Range], deciles: Sequence[int | None] = (None,)) -> Judge:
    """Parts of a claim about averages over the draws on one log."""

    def judge(stored: Stored) -> Finding:
        of = _by_draw(stored, metric, deciles)
        found = [part.part(words, of) for words, part in parts.items()]
        numbers = "; ".join(f"{part.words}: {part.effect:.3g}" for part in found)
        values = _values(of) if len(deciles) == 1 else ""
        return decided(found, note="; ".join(filter(None, (numbers, values))))

    return judge


def _ratio(policy: str, other: str) -> Margin:
    return lambda of: (of.of(policy) / of.of(other))[..., 0]


def _most_spread(most: float) -> dict[str, Range]:
    """Values of all policies differ by at most a part of their mean."""

    def spread(of: Averages) -> FloatArray:
        part: FloatArray = (np.ptp(of.values, axis=-2) / of.values.mean(axis=-2))[..., 0]
        return part

    return {"range over mean": Range(spread, 0.0, most + ROUNDING)}


ABOVE_ONE = float(np.nextafter(1.0, 2.0))
"""Smallest ratio of a value to a value that should be lower."""

SLIGHTLY_ABOVE = {"P-SLR/SRTF": Range(_ratio("p-slr", "srtf"), 1.0, 1.5, exact=True)}


def _above(*pairs: tuple[str, str]) -> dict[str, Range]:
    """The first policy of each pair has the higher value."""
    return {
        f"{title(high)}/{title(low)}": Range(_ratio(high, low), ABOVE_ONE, exact=not {high, low} & set(DRAWN))
        for high, low in pairs
    }


def _places(condition: Callable[[Averages], npt.NDArray[np.bool_]]) -> Margin:
    """The number of deciles at which a condition is true."""
    return lambda of: condition(of).sum(axis=-1).astype(np.float64)


_BY_DECILE = {
    "deciles with SRTF at most P-SLR": Range(_places(lambda of: of.of("srtf") <= of.of("p-slr")), 6, exact=True),
    "SRTF/P-SLR in deciles 9 and 10, largest change": Range(
        lambda of: abs(of.of("srtf") / of.of("p-slr") - 1)[..., 8:].max(axis=-1), 0.0, 0.05, exact=True
    ),
    "deciles with LRTF highest": Range(_places(lambda of: of.of("lrtf") > of.others("lrtf").max(axis=-2)), 6),
    "deciles 2 to 10 with Fair Share below Random": Range(
        _places(lambda of: (of.of("fair-share") < of.of("random"))[..., 1:]), 5
    ),
}


def _fifos_differ(stored: Stored) -> Finding:
    of = _by_draw(stored, "worst_slr", (None,))
    if (of.of("fifo-job") == of.of("fifo-task")).all():
        note = "jobs of one task: FIFO Job and FIFO Task make the same schedule"
        return Finding("not testable", note=f"{note}; {_values(of)}")
    return on_log("worst_slr", _above(("fifo-job", "random"), ("fifo-job", "fifo-task")))(stored)


def _starts_equal(stored: Stored) -> Finding:
    (value,) = stored.column("starts_equal", "fifo-job").tolist()
    note = "share of the jobs that start when the published FIFO schedule says"
    return Finding("holds" if value == 1 else "does not hold", value, n=1, note=note)


INDUSTRIAL_CLAIMS: tuple[Claim, ...] = (
    Claim("G-90", on_log("utilisation", _most_spread(0.0))),
    Claim("G-91", on_log("cumulative_completion", _most_spread(0.01))),
    Claim("G-92", on_log("peak_in_flight", _most_spread(0.5))),
    Claim(
        "G-93",
        on_log("sd_slr", {"next policy above 5 times both": Range(lowest(0, "p-slr", "srtf"), 5.0), **SLIGHTLY_ABOVE}),
    ),
    Claim(
        "G-94",
        on_log(
            "sd_slr",
            _above(
                ("p-slr", "srtf"),
                ("random", "p-slr"),
                ("fair-share", "random"),
                ("fifo-job", "fair-share"),
                ("lrtf", "fifo-job"),
                ("fifo-job", "random"),
            ),
        ),
    ),
    Claim(
        "G-95",
        on_log(
            "mean_slr",
            {
                "next policy above SRTF": Range(lowest(0, "srtf"), ABOVE_ONE),
                "P-SLR/SRTF": Range(_ratio("p-slr", "srtf"), 0.0, 1.2, exact=True),
            },
        ),
    ),
    Claim(
        "G-96",
        on_log("worst_slr", {"LRTF above all others": Range(highest(0, "lrtf"), ABOVE_ONE), **SLIGHTLY_ABOVE}),
    ),
    Claim("G-97", _fifos_differ),
    Claim("G-98", on_log("mean_slr", _BY_DECILE, deciles=range(1, 11))),
    Claim("G-B8", _starts_equal),
)
"""Claims decided by rows of the industrial log."""
