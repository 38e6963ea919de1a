"""Write the page on the studies that go beyond the grid paper (G-B1 to G-B10), from the folders of their sweeps.

``for each in scenarios/published/grid/beyond/*.toml: gridsim sweep NAME.toml --out RESULTS/NAME``, then
``out_of_hours.py --out RESULTS/hours.json``, ``gridsim reproduce grid`` and its variant ``loguniform``, then this.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsim.files import write_text

NOTES = Path(__file__).parents[1] / "notes" / "grid-beyond.md"

Row = dict[str, str]


@dataclass(frozen=True)
class Study:
    """Comparisons of one sweep."""

    rows: Sequence[Row]

    @classmethod
    def read(cls, folder: Path) -> Study:
        """From ``comparisons.csv``."""
        with (folder / "comparisons.csv").open(newline="", encoding="utf-8") as file:
            return cls(tuple(csv.DictReader(file)))

    def of(self, **wanted: str) -> list[Row]:
        """Rows with these values."""
        return [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]


def answer(*parts: bool) -> str:
    """One word for a claim of several parts."""
    return "holds" if all(parts) else "holds partly" if any(parts) else "does not hold"


def ratio(row: Row) -> str:
    """Ratio with its interval, and a mark when it is significant."""
    sign = {"better": " *", "worse": " !", "equivalent": " ="}.get(row["verdict"], "")
    return f"{float(row['ratio']):.3f} ({float(row['ratio_low']):.3f} to {float(row['ratio_high']):.3f}){sign}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def grid_of(study: Study, metric: str, condition: str, factor: str = "policy") -> str:
    """A table with conditions as rows and values of the factor as columns."""
    rows = study.of(metric=metric, over="condition")
    values, conditions = (list(dict.fromkeys(row[name] for row in rows)) for name in (factor, condition))
    found = {(row[condition], row[factor]): ratio(row) for row in rows}
    return table([condition, *values], ([each, *(found[each, value] for value in values)] for each in conditions))


WITHIN = ("exact", "normal 10 %", "normal 50 %", "normal 100 %", "power of 2", "power of 5", "power of 10")
BEYOND = ("normal 1000 %", "power of 20", "power of 100")


def estimates(results: Path) -> tuple[str, str, str]:
    """G-B1."""
    study = Study.read(results / "estimates")
    rows = study.of(over="condition")
    leads = not any(row["verdict"] == "better" for row in rows if row["estimates"] in WITHIN)
    srtf = {row["estimates"] for row in rows if row["policy"] == "srtf" and row["verdict"] == "better"}
    said = answer(leads, bool(srtf & set(BEYOND)))
    return (
        said,
        "worst_slr",
        grid_of(study, "worst_slr", "estimates") + "\n\nMean SLR:\n\n" + grid_of(study, "mean_slr", "estimates"),
    )


def delays(results: Path) -> tuple[str, str, str]:
    """G-B2."""
    study = Study.read(results / "delays")
    rows = [row for row in study.of(over="condition") if row["metric"] in ("worst_slr", "sd_slr")]
    beaten = {row["delays"] for row in rows if row["verdict"] == "better"}
    every = {row["delays"] for row in rows}
    return answer(*(each not in beaten for each in every)), "worst_slr", grid_of(study, "worst_slr", "delays")


def starvation_free(results: Path) -> tuple[str, str, str]:
    """G-B3: the cost; tests decide that waits are bounded."""
    study = Study.read(results / "starvation_free")
    rows = study.of(over="condition", metric="mean_slr")
    told = table(
        ["load", "mean SLR", "worst SLR", "sd of SLR"],
        (
            [load, *(ratio(study.of(over="condition", metric=name, load=load)[0]) for name in SLRS)]
            for load in dict.fromkeys(row["load"] for row in rows)
        ),
    )
    return answer(*(row["equivalent"] == "True" or row["verdict"] == "better" for row in rows)), "mean_slr", told


SLRS = ("mean_slr", "worst_slr", "sd_slr")


def fit(results: Path) -> tuple[str, str, str]:
    """G-B4: a small effect with narrow tasks, a large one with wide tasks, which EASY recovers."""
    study = Study.read(results / "fit")
    rows = study.of(over="condition", metric="utilisation")
    machines = list(dict.fromkeys(row["machine"] for row in rows))

    def easy(machine: str) -> Row:
        return next(row for row in rows if row["machine"] == machine and row["policy"].startswith("easy"))

    told = grid_of(study, "utilisation", "machine") + "\n\nMean SLR:\n\n" + grid_of(study, "mean_slr", "machine")
    said = answer(easy(machines[0])["equivalent"] == "True", easy(machines[-1])["verdict"] == "better")
    return said, "utilisation", told


def split(results: Path) -> tuple[str, str, str]:
    """G-B5: the same verdict on every order with either way to split."""
    study = Study.read(results / "split")
    rows = study.of(over="condition")
    verdicts: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        verdicts.setdefault((row["metric"], row["policy"]), set()).add(row["verdict"])
    same = [len(found) == 1 for found in verdicts.values()]
    told = "\n\n".join(f"{name}:\n\n{grid_of(study, name, 'split')}" for name in ("mean_slr", "worst_slr"))
    return answer(*same), "mean_slr", f"{sum(same)} of {len(same)} verdicts are the same.\n\n{told}"


def links(results: Path) -> tuple[str, str, str]:
    """G-B7: reported."""
    study = Study.read(results / "links")
    rows = study.of(over="condition", metric="mean_slr")
    optimistic = [f"{row['network']} at CCR {row['ccr']}" for row in rows if row["verdict"] == "worse"]
    told = grid_of(study, "mean_slr", "ccr", "network")
    return "reported", "mean_slr", f"Fixed delays are optimistic against: {', '.join(optimistic) or 'none'}.\n\n{told}"


def hours(results: Path) -> tuple[str, str, str]:
    """G-B9."""
    told = json.loads((results / "hours.json").read_text(encoding="utf-8"))
    rows = [
        [
            one["kind"],
            one["policy"],
            str(one["workloads"]),
            f"{one['peak_hour']}:00",
            f"{one['peak_between_18_and_24']:.0%}",
            f"{one['evening_over_office_hours']:.3f} ({one['low']:.3f} to {one['high']:.3f})",
        ]
        for one in told
    ]
    head = ["kind", "order", "workloads", "longest at", "longest between 18 and 24 h", "18 to 24 h over 9 to 17 h"]
    said = answer(*(one["peak_hour"] >= 18 and one["low"] > 1 for one in told))
    return said, "waiting tasks", table(head, rows)


def balancers(results: Path) -> tuple[str, str, str]:
    """G-B10: whether any policy is significantly better."""
    study = Study.read(results / "balancers")
    rows = study.of(over="condition")
    better = {row["balancer"] for row in rows if row["verdict"] == "better"}
    told = "\n\n".join(f"{name}:\n\n{grid_of(study, name, 'load', 'balancer')}" for name in ("mean_slr", "worst_slr"))
    return (
        ("holds" if better else "does not hold"),
        "mean_slr",
        (f"Significantly better in at least one condition: {', '.join(sorted(better)) or 'none'}.\n\n{told}"),
    )


def loguniform(reproduction: Path) -> tuple[str, str, str]:
    """G-B6: the verdicts of the two campaigns in one table."""
    said: list[dict[str, Any]] = []
    for name in ("grid", "grid-loguniform"):
        told = json.loads((reproduction / f"{name}.json").read_text(encoding="utf-8"))
        said.append({claim["id"]: claim["overall"] for claim in told["claims"]})
    published, own = said
    untold = "not testable"
    both = [name for name in published if name in own and untold not in (published[name], own[name])]
    changed = [[name, published[name], own[name]] for name in both if published[name] != own[name]]
    head = ["claim", "sizes as published", "log-uniform sizes"]
    return (
        "reported",
        "verdicts",
        f"{len(both) - len(changed)} of {len(both)} verdicts are the same.\n\n" + table(head, changed),
    )


STUDIES = {
    "G-B1": ("P-SLR leads while estimates are within an order of magnitude", estimates),
    "G-B2": ("P-SLR leads over the range of network delays", delays),
    "G-B3": ("The starvation-free variant costs little", starvation_free),
    "G-B4": ("Head-of-line blocking costs little with narrow tasks, much with wide ones", fit),
    "G-B5": ("Splitting by kind changes no conclusion", split),
    "G-B6": ("Conclusions under log-uniform job sizes", loguniform),
    "G-B7": ("Where contended links make fixed delays optimistic", links),
    "G-B9": ("Queues are longest out of hours", hours),
    "G-B10": ("Better balancers than the shortest expected queue", balancers),
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="folder with a folder for each sweep, and hours.json")
    parser.add_argument("reproduction", type=Path, help="folder of gridsim reproduce")
    parser.add_argument("page", type=Path, help="page to write, such as docs/results/grid-beyond.md")
    parser.add_argument("--facts", default="", help="a sentence with date, commit, machine and run time")
    args = parser.parse_args()
    found = {name: study(args.reproduction if name == "G-B6" else args.results) for name, (_, study) in STUDIES.items()}
    parts = [
        "# Beyond the grid paper",
        "This page studies questions that the paper leaves open, or that its readers have. The campaign files are in "
        "`scenarios/published/grid/beyond`. " + args.facts,
        table(
            ["question", "", "answer"],
            ([name, title, f"**{found[name][0]}**"] for name, (title, _) in STUDIES.items()),
        ),
        NOTES.read_text(encoding="utf-8").strip() if NOTES.exists() else "",
        "The tables show ratios of geometric means, with 95 % intervals over workloads, Holm-corrected. `*` means "
        "significantly better than the first value, `!` significantly worse, and `=` equivalent within 5 %.",
    ]
    for name, (title, _) in STUDIES.items():
        said, metric, told = found[name]
        parts += [f"## {name}: {title}", f"**{said}** ({metric})", told]
    write_text(args.page, "\n\n".join(part for part in parts if part) + "\n")


if __name__ == "__main__":
    main()
