"""What the grid paper claims, and which stored rows decide it.

Identifiers are those of the ledger of claims, which states each, and what decides those that no row does.

References
----------
Burkimsher, Bate and Indrusiak, FGCS 29(8), 2013, sections 3 and 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gridsim import InputError
from gridsim.metrics.dag import DAG_METRICS
from gridsim.metrics.paired_tests import ROUNDING
from gridsim.model.streams import stream
from gridsim_papers.grid.orders import (
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
from gridsim_papers.verdicts import (
    DECISIVE,
    Answer,
    Claim,
    Finding,
    Judge,
    Stored,
    Wanted,
    alike,
    as_printed,
    at_each_load,
    both,
    compared,
    conjunction,
    counted,
    differs,
    drawn,
    load_of,
    opened,
    title,
)

__all__ = ["CLAIMS", "INDUSTRIAL_CLAIMS"]

FIVE = ("lrtf", "fair-share", "random", "fifo-task", "fifo-job")
"""Those that P-SLR and SRTF are claimed to beat."""


def _srtf_level_in_worst(stored: Stored) -> Finding:
    """No load shows a difference from SRTF in the worst SLR."""
    cells = at_each_load(stored, "worst_slr", "srtf")
    apart = [one for one in cells if one.verdict in ("better", "worse")]
    equal = [one for one in cells if one not in apart and (one.equivalent or one.workloads >= DECISIVE)]
    most = min(cells, key=lambda one: one.p_log_holm)
    note = f"dominance {'; '.join(f'{100 * one.dominance:.0f}' for one in cells)} %; a difference at {len(apart)} loads"
    if not apart and not equal:
        return compared("not testable here", most, note)
    return compared(counted(len(equal), len(apart), len(cells), most.workloads), most, note)


def _srtf_gains_with_load(stored: Stored) -> Finding:
    """Dominance over SRTF in mean SLR falls with load, and P-SLR is worse at the highest."""
    cells = at_each_load(stored, "mean_slr", "srtf")
    shares = [one.dominance for one in cells]
    falls = all(later <= earlier for earlier, later in itertools.pairwise(shares))
    last = cells[-1]
    note = f"dominance {'; '.join(f'{100 * share:.0f}' for share in shares)} %; at the highest load {last.verdict}"
    right = falls + (last.verdict == "worse")
    wrong = (not falls and shares[-1] >= shares[0]) + (last.verdict in ("better", "equivalent"))
    return compared(counted(right, wrong, 2, last.workloads), last, note)


def _srtf_better_at_high_loads(stored: Stored) -> Finding:
    """SRTF's mean SLR is better at 110 % and above, and no different at 80 %."""
    cells = {round(100 * load_of(one)): one for one in at_each_load(stored, "mean_slr", "srtf")}
    high = [one for load, one in cells.items() if load >= 110]
    first = cells.get(80)
    if not high or first is None:
        raise InputError("loads of 80 % and of 110 % or more are needed", field="load")
    right = sum(one.verdict == "worse" for one in high) + (first.verdict not in ("better", "worse"))
    wrong = sum(one.verdict in ("better", "equivalent") for one in high) + (first.verdict in ("better", "worse"))
    last = high[-1]
    note = "; ".join(f"{load} %: ratio {one.ratio:.3g}, {one.verdict}" for load, one in cells.items())
    return compared(counted(right, wrong, len(high) + 1, last.workloads), last, note)


def _grouping(_: Stored) -> Finding:
    """Table 1, as the descriptions of the metrics have it."""
    busy = ("makespan", "flow", "utilisation", "peak_in_flight")
    printed = {name: {"utilisation"} for name in busy}
    printed["cumulative_completion"] = {"utilisation", "responsiveness"}
    for name in ("stretch", "speedup", "slr"):
        printed |= {f"mean_{name}": {"responsiveness"}, f"worst_{name}": {"responsiveness"}, f"sd_{name}": {"fairness"}}
    right = sum(set(DAG_METRICS[name].classes) == classes for name, classes in printed.items())
    answer = counted(right, len(printed) - right, len(printed), DECISIVE)
    return Finding(answer, n=len(printed), note=f"{right} of {len(printed)} metrics")


def _complete(stored: Stored) -> Finding:
    """5,250 schedules."""
    there = {(row["kind"], row["workload"], row["load"], row["policy"]) for row in stored.of("makespan")}
    stored.paired("makespan")
    answer: Answer = "holds" if len(there) == 5_250 else "not testable here"
    return Finding(
        answer, len(there), n=len(there), note=f"{len(there):,} of 5,250 schedules, none of a workload missing"
    )


def _least_slr(stored: Stored) -> Finding:
    least = [row["value"] for row in stored.of("least_slr")]
    return Finding(
        "holds" if min(least) >= 1 else "does not hold", min(least), n=len(least), note="least SLR of all jobs"
    )


def _published_size(stored: Stored) -> None:
    """Raise `InputError` for a campaign with fewer jobs: numbers that grow with the grid say nothing there."""
    if min(row["value"] for row in stored.of("jobs")) < 1_000:
        raise InputError("needs workloads and a grid of the published size", field="jobs")


def _completions(stored: Stored) -> Finding:
    """The 95 % quantile of gaps between completions in a cluster is below a tenth of the median task."""
    _published_size(stored)
    kinds: dict[str, list[float]] = {}
    for row in stored.of("completion_gap"):
        kinds.setdefault(row["kind"], []).append(row["value"])
    medians = {kind: float(np.median(values)) for kind, values in kinds.items()}
    note = "95 % quantile of gaps over median task: " + ", ".join(f"{kind} {m:.2g}" for kind, m in medians.items())
    right = sum(value <= 0.1 for value in medians.values())
    answer = counted(right, len(medians) - right, len(medians), len(medians))
    return Finding(answer, max(medians.values()), n=sum(map(len, kinds.values())), note=note)


def _mean_cores(stored: Stored) -> Finding:
    cores, tasks = (stored.column(metric, "") for metric in ("mean_cores", "tasks"))
    mean, error = float(cores @ tasks / tasks.sum()), 6.794 / float(np.sqrt(tasks.sum() / _loads(stored)))
    answer: Answer = "holds" if abs(mean - 10.2) <= 3 * error else "does not hold"
    return Finding(answer, mean, mean - 1.96 * error, mean + 1.96 * error, n=len(cores) // _loads(stored))


def _loads(stored: Stored) -> int:
    return len({row["load"] for row in stored.of("mean_cores")})


def _lighter_side(stored: Stored) -> Finding:
    """Load of each kind of cluster over the nominal one, mean over workloads: 1.067 and 0.80."""
    nominal = np.array([row["load"] for row in stored.of("offered_load_kind1")])
    parts = [stored.column(f"offered_load_kind{kind}", "") / nominal for kind in (1, 2)]
    first, second = (float(part.mean()) for part in parts)
    error = 1.96 * float(parts[0].std(ddof=1) / np.sqrt(len(nominal) / _loads(stored)))
    note = f"{first:.3f} and {second:.3f} of the nominal load, expected 1.067 and 0.80"
    answer: Answer = "holds" if first > second else "does not hold"
    return Finding(answer, first, first - error, first + error, n=len(nominal) // _loads(stored), note=note)


def _nominal_load(stored: Stored) -> Finding:
    rows = [row for row in stored.of("offered_load") if row["kind"].endswith("ind")]
    if not rows:
        raise InputError("no workload of independent jobs", field="kind")
    error = max(abs(row["value"] / row["load"] - 1) for row in rows)
    return Finding("holds" if error <= 0.01 else "does not hold", error, n=len(rows), note="largest relative error")


def _late_long_job(stored: Stored) -> Finding:
    """Utilisation up to the makespan is low, that up to the last arrival far higher (by a fifth) from 100 % load on."""
    rows = stored.of("utilisation")
    loads = sorted({row["load"] for row in rows if row["load"] >= 1})
    low = float(np.median([row["value"] for row in rows]))
    medians = [
        [float(np.median([row["value"] for row in stored.of(name) if row["load"] == load])) for load in loads]
        for name in ("utilisation_arrivals", "utilisation")
    ]
    ratio = min(there / to_end for there, to_end in zip(*medians, strict=True))
    right = (low < 0.6) + (ratio > 1.2)
    note = f"median {low:.3f}; up to the last arrival at least {ratio:.2f} times that from 100 % load on"
    return Finding(counted(right, 2 - right, 2, len(rows)), low, n=len(rows), note=note)


def _peak_of_lrtf(stored: Stored) -> Finding:
    """Median peak in-flight of LRTF over all schedules, its interval over resampled workloads."""
    _published_size(stored)
    values = stored.paired("peak_in_flight").of("lrtf")
    median = float(np.median(values))
    rows = stream(0, "campaign", "median").integers(len(values), size=(2_000, len(values)))
    low, high = np.quantile(np.median(values[rows].reshape(2_000, -1), axis=1), [0.025, 0.975]).tolist()
    if 392 <= median <= 450:
        return Finding("holds", median, low, high, n=len(values))
    return Finding(
        "does not hold" if high < 392 or low > 450 else opened(len(values)), median, low, high, n=len(values)
    )


FIFO_LIKE = ("random", "fair-share", "fifo-task", "fifo-job")
_BETTER: Mapping[str, Wanted] = dict.fromkeys(FIVE, "better")
_UTILISATION: Mapping[str, Wanted] = {**dict.fromkeys(FIVE, "worse"), "srtf": "better"}


def _cells(metric: str, first: int) -> list[Claim]:
    """Rows of Tables 3 and 4 but SRTF's."""
    order = ("lrtf", "srtf", "random", "fifo-task", "fifo-job", "fair-share")
    return [Claim(f"G-{first + at}", as_printed(metric, other)) for at, other in enumerate(order) if other != "srtf"]


CLAIMS: tuple[Claim, ...] = (
    Claim("G-09", _grouping),
    Claim("G-11", _mean_cores),
    Claim("G-12", _lighter_side),
    Claim("G-13", _nominal_load),
    Claim("G-14", _complete),
    Claim("G-15", _least_slr),
    Claim("G-18", _completions),
    Claim("G-20", drawn("sd_slr", "figure-6")),
    Claim("G-21", differs("sd_slr", _BETTER)),
    Claim("G-22", alike("sd_slr")),
    Claim("G-23", drawn("mean_slr", "figure-7", by_decile=True)),
    Claim(
        "G-24",
        ordered(at_deciles(), {"highest in decile 1": highest(0, "lrtf"), "lowest in decile 10": lowest(9, "lrtf")}),
    ),
    Claim(
        "G-25",
        ordered(at_deciles(), {"falling": falling(FIFO_LIKE), "within 2 of one another": together(FIFO_LIKE, 2.0)}),
    ),
    Claim(
        "G-26",
        ordered(
            at_deciles(),
            {"lowest in 6 deciles": lowest_in(0.6, "srtf"), "highest in decile 10": highest(9, "srtf")},
        ),
    ),
    Claim(
        "G-27",
        ordered(at_deciles(), {"within 1.2 of one another": flat("p-slr", 1.2)}),
    ),
    Claim(
        "G-28",
        ordered(at_deciles(), {"decile 1 over the rest": uptick("p-slr")}),
    ),
    Claim("G-29", drawn("worst_slr", "figure-7-worst", by_decile=True)),
    Claim("G-30", drawn("worst_slr", "figure-8")),
    Claim(
        "G-31",
        differs("worst_slr", _BETTER, ("p-slr", "srtf")),
    ),
    Claim("G-32", alike("worst_slr")),
    Claim("G-33", drawn("worst_slr", "figure-9")),
    Claim(
        "G-34",
        ordered(at_loads("worst_slr"), {"highest at 4 of 5 loads": highest_in(0.8, "lrtf")}),
    ),
    Claim(
        "G-35",
        ordered(at_loads("worst_slr"), {"lowest at every load": lowest_in(1.0, "srtf", "p-slr")}),
    ),
    Claim(
        "G-36",
        both(
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
    Claim("G-41", _srtf_level_in_worst),
    *_cells("mean_slr", 50),
    Claim("G-51", _srtf_gains_with_load),
    Claim("G-56", _srtf_better_at_high_loads),
    Claim("G-60", drawn("utilisation", "figure-10")),
    Claim(
        "G-61",
        differs("utilisation", _UTILISATION),
    ),
    Claim(
        "G-62",
        ordered(
            over_loads("utilisation"),
            {f"against {title(name)}": close("p-slr", name, 1.05) for name in ("srtf", *FIVE)},
        ),
    ),
    Claim("G-63", _late_long_job),
    Claim("G-64", drawn("cumulative_completion", "figure-11")),
    Claim(
        "G-65",
        differs("cumulative_completion", _BETTER),
    ),
    Claim("G-66", alike("cumulative_completion")),
    Claim("G-67", drawn("peak_in_flight", "figure-12")),
    Claim(
        "G-68",
        both(differs("peak_in_flight", _BETTER), alike("peak_in_flight")),
    ),
    Claim("G-69", _peak_of_lrtf),
    Claim(
        "G-70",
        conjunction("G-21", "G-31", "G-32", "G-62"),
    ),
)
"""Claims that rows of the campaign decide."""


def _of_log(metric: str, stored: Stored) -> dict[str, float]:
    """Value of each policy on the industrial log, mean over draws."""
    policies = dict.fromkeys(row["policy"] for row in stored.of(metric) if row["decile"] is None)
    return {policy: float(stored.column(metric, policy).mean()) for policy in policies}


def _told(values: Mapping[str, float]) -> str:
    return ", ".join(f"{title(name)} {value:.4g}" for name, value in sorted(values.items(), key=lambda pair: pair[1]))


def spread(metric: str, most: float) -> Judge:
    """Values of all policies differ by at most a part of their mean."""

    def judge(stored: Stored) -> Finding:
        values = _of_log(metric, stored)
        part = (max(values.values()) - min(values.values())) / float(np.mean(list(values.values())))
        return Finding("holds" if part <= most + ROUNDING else "does not hold", part, n=len(values), note=_told(values))

    return judge


def on_log(metric: str, parts: Callable[[Mapping[str, float]], Sequence[bool]], note: str = "") -> Judge:
    """Parts of a claim about the values of the policies on one log; nothing to test, as there is one log."""

    def judge(stored: Stored) -> Finding:
        values = _of_log(metric, stored)
        found = parts(values)
        answer = counted(sum(found), len(found) - sum(found), len(found), 1)
        ratio = values["p-slr"] / values["srtf"]
        return Finding(answer, ratio, n=1, note=f"{sum(found)} of {len(found)} parts; {_told(values)}{note}")

    return judge


def _far_below(of: Mapping[str, float]) -> list[bool]:
    next_one = min(value for name, value in of.items() if name not in ("p-slr", "srtf"))
    return [next_one / max(of["p-slr"], of["srtf"]) > 5, 1 <= of["p-slr"] / of["srtf"] <= 1.5]


def _order(*names: str) -> Callable[[Mapping[str, float]], list[bool]]:
    """Each value is below the next."""
    return lambda of: [of[one] < of[other] for one, other in itertools.pairwise(names)]


def _deciles_of_log(stored: Stored) -> Finding:
    rows = [row for row in stored.of("mean_slr") if row["decile"] is not None]
    of = {
        policy: np.array(
            [np.mean([r["value"] for r in rows if r["policy"] == policy and r["decile"] == d]) for d in range(1, 11)]
        )
        for policy in dict.fromkeys(row["policy"] for row in rows)
    }
    others = np.array([column for policy, column in of.items() if policy != "lrtf"])
    parts = {
        "SRTF at most P-SLR in most deciles": int((of["srtf"] <= of["p-slr"]).sum()) >= 6,
        "SRTF within 5 % of P-SLR in deciles 9 and 10": bool((abs(of["srtf"] / of["p-slr"] - 1)[8:] <= 0.05).all()),
        "LRTF highest in most deciles": int((of["lrtf"] > others.max(axis=0)).sum()) >= 6,
        "Fair Share below Random in most deciles from the second on": int((of["fair-share"] < of["random"])[1:].sum())
        >= 5,
    }
    answer = counted(sum(parts.values()), len(parts) - sum(parts.values()), len(parts), 1)
    note = "; ".join(f"{name}: {'yes' if true else 'no'}" for name, true in parts.items())
    return Finding(answer, float((of["p-slr"] / of["srtf"]).max()), n=1, note=note)


def _starts_equal(stored: Stored) -> Finding:
    (value,) = stored.column("starts_equal", "fifo-job").tolist()
    note = "share of the jobs that start when the published FIFO schedule says"
    return Finding("holds" if value == 1 else "does not hold", value, n=1, note=note)


INDUSTRIAL_CLAIMS: tuple[Claim, ...] = (
    Claim("G-90", spread("utilisation", 0.0)),
    Claim("G-91", spread("cumulative_completion", 0.01)),
    Claim("G-92", spread("peak_in_flight", 0.5)),
    Claim("G-93", on_log("sd_slr", _far_below)),
    Claim(
        "G-94",
        on_log(
            "sd_slr",
            lambda of: [
                *_order("srtf", "p-slr", "random", "fair-share", "fifo-job", "lrtf")(of),
                of["random"] < of["fifo-job"],
            ],
        ),
    ),
    Claim(
        "G-95",
        on_log("mean_slr", lambda of: [min(of, key=lambda name: of[name]) == "srtf", of["p-slr"] / of["srtf"] < 1.2]),
    ),
    Claim(
        "G-96",
        on_log(
            "worst_slr",
            lambda of: [max(of, key=lambda name: of[name]) == "lrtf", 1 <= of["p-slr"] / of["srtf"] <= 1.5],
        ),
    ),
    Claim(
        "G-97",
        on_log(
            "worst_slr",
            lambda of: [of["fifo-job"] > of["random"], of["fifo-job"] > of["fifo-task"]],
            "; with jobs of one task both FIFOs make the same schedule",
        ),
    ),
    Claim("G-98", _deciles_of_log),
    Claim("G-B8", _starts_equal),
)
"""Claims that rows of the industrial log decide."""
