"""GPUs that can be allocated before no job fits, by placement rule: the table of Weng et al. 2023.

``python fgd.py FOLDER`` reads the two files of openb in that folder, simulates ten random orders of arrivals under each
rule, prints the table and the verdict, and draws the figure (``--figure FILE``). The results are in ``fgd.md``.

Source: Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent*,
USENIX ATC 2023; their results for 130 % requested, seeds 42 to 51.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gridsim as gs
from gridsim.files import read_toml
from gridsim.model.capacity import GPU
from gridsim.model.time import NEVER
from gridsim.record import Record
from gridsim.scenario import Scenario

HERE = Path(__file__).resolve().parent
SEEDS = range(42, 52)
WITHIN = 0.5
"""Maximum difference of a mean from the published one, percentage points."""

OF_GPU = "resources=cores+gpu"


@dataclass(frozen=True)
class Rule:
    """A placement rule: its name in a policy, and its published results, percent: mean and sample deviation."""

    placement: str
    published: tuple[float, float] | None = None


RULES: Mapping[str, Rule] = {
    "Random": Rule("random", (87.47, 0.32)),
    "DotProd": Rule(f"dot-product(align=low,{OF_GPU},whole=true)", (90.85, 0.20)),
    "BestFit": Rule(f"pack({OF_GPU},whole=true)", (93.08, 0.13)),
    "FGD": Rule("fragmentation(whole=true)", (95.39, 0.08)),
    "DotProd, exact scores": Rule(f"dot-product(align=low,{OF_GPU})"),
    "BestFit, exact scores": Rule(f"pack({OF_GPU})"),
    "FGD, exact scores": Rule("fragmentation"),
    "first": Rule("first"),
    "spread": Rule(f"spread({OF_GPU})"),
    "dot product, high": Rule(f"dot-product({OF_GPU})"),
}
"""The first four, from worst to best, determine the verdict."""

JUDGED = tuple(name for name, rule in RULES.items() if rule.published is not None)


@dataclass(frozen=True)
class Drawn:
    """Result of one rule on the arrivals of one seed: percent of the GPUs allocated, and CPU seconds of the run."""

    rule: str
    seed: int
    allocated: float
    seconds: float


def allocated(record: Record, capacity: int) -> float:
    """Percent of the GPU thousandths of the machine that jobs hold when the run can start no more jobs."""
    assert record.workload.demands is not None
    holds = (record.start_us < NEVER) & (record.end_us >= NEVER)
    return 100 * float(record.workload.demands.total(GPU)[holds].sum()) / capacity


def scenario(folder: Path, rule: str, seed: int) -> Scenario:
    """The recipe with another rule and seed, its data in *folder*."""
    recipe: dict[str, Any] = read_toml(HERE / "recipe.toml")
    recipe["workload"]["file"] = str((folder / recipe["workload"]["file"]).resolve())
    machine = read_toml(HERE / "openb.toml")["platform"]
    machine["nodes"]["file"] = str((folder / machine["nodes"]["file"]).resolve())
    recipe |= {"policy": f"first-fit?placement={RULES[rule].placement}", "platform": machine}
    recipe["options"]["seed"] = seed
    return Scenario.from_mapping(recipe, path=HERE / "recipe.toml")


def drawn(folder: Path, rules: Sequence[str], seeds: Sequence[int]) -> Iterator[Drawn]:
    """Every rule on the arrivals of every seed."""
    for seed in seeds:
        jobs: gs.Workload | None = None
        for rule in rules:
            asked = scenario(folder, rule, seed)
            jobs = asked.load() if jobs is None else jobs
            assert asked.platform is not None
            (cluster,) = asked.platform.clusters()
            assert cluster.capacity is not None
            began = time.process_time()
            record = asked.run(jobs).record
            seconds = time.process_time() - began
            yield Drawn(rule, seed, allocated(record, cluster.capacity.total(GPU)), seconds)


def verdict(found: Sequence[Drawn]) -> list[str]:
    """Failed checks: a mean too far from the published one, or another order of the rules on some seed."""
    wrong = []
    for rule in JUDGED:
        published = RULES[rule].published
        assert published is not None
        mean = float(np.mean(shares(found, rule)))
        if abs(mean - published[0]) > WITHIN:
            wrong.append(f"{rule} gives away {mean:.2f} %, published are {published[0]:.2f} %")
    for seed in sorted({it.seed for it in found}):
        row = [it.allocated for rule in JUDGED for it in found if it.rule == rule and it.seed == seed]
        if row != sorted(row) or len(set(row)) < len(row):
            wrong.append(f"seed {seed}: {', '.join(f'{share:.2f}' for share in row)} for {', '.join(JUDGED)}")
    return wrong


def shares(found: Sequence[Drawn], rule: str) -> list[float]:
    """Percent of each seed under a rule."""
    return [it.allocated for it in found if it.rule == rule]


def table(found: Sequence[Drawn]) -> str:
    """Means, deviations and ranges of the rules, in Markdown."""
    lines = ["| rule | `placement=` | published | gridsim | range | CPU, s |", "|---|---|---|---|---|---|"]
    for rule in dict.fromkeys(it.rule for it in found):
        here, known = shares(found, rule), RULES[rule].published
        spread = f"{np.std(here, ddof=1):.2f}" if len(here) > 1 else "-"
        published = "" if known is None else f"{known[0]:.2f} ({known[1]:.2f})"
        seconds = np.median([it.seconds for it in found if it.rule == rule])
        lines.append(
            f"| {rule} | `{RULES[rule].placement}` | {published} | {np.mean(here):.2f} ({spread}) "
            f"| {min(here):.2f} to {max(here):.2f} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def draw(found: Sequence[Drawn], file: Path) -> None:
    """Draw one point per seed and rule, and the published results as bars of one deviation."""
    from matplotlib.figure import Figure

    rules = list(dict.fromkeys(it.rule for it in found))
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for place, rule in enumerate(rules):
        here, known = shares(found, rule), RULES[rule].published
        axes.plot(here, [place] * len(here), "o", color="#0b6e99", alpha=0.6, markersize=4)
        if known is not None:
            axes.errorbar(known[0], place + 0.28, xerr=known[1], fmt="|", color="#b3461f", capsize=3)
    axes.set_yticks(range(len(rules)), rules)
    axes.invert_yaxis()
    axes.set_xlabel("GPUs given away, % (dots: here, a seed each; bars: published)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Simulate, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with the two files of openb")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many (default: %(default)s)")
    parser.add_argument("--judged", action="store_true", help="only the four rules that the verdict is about")
    parser.add_argument("--figure", type=Path, help="file to draw to")
    args = parser.parse_args()
    found = list(drawn(args.folder, JUDGED if args.judged else list(RULES), list(SEEDS)[: args.seeds]))
    print(table(found))
    if args.figure is not None:
        draw(found, args.figure)
    wrong = verdict(found)
    print("\nholds" if not wrong else "\ndoes not hold: " + "; ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
