"""The experiment of Weng et al. (USENIX ATC 2023) on their nodes and tasks: allocated GPUs, and the order of rules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FGD = Path(__file__).resolve().parents[2] / "scenarios" / "published" / "fgd" / "fgd.py"

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{number:03},{cores},{memory},{gpus},{kind}\n"
    for number in range(24)
    for cores, memory, gpus, kind in [(64000, 262144, 8, "G2") if number % 3 else (16000, 65536, 2, "T4")]
)
TASKS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
TASKS += "".join(
    f"p{number},{cores},{1024 * (number % 5 + 1)},{gpus},{milli},,LS,Running,0,9,0\n"
    for number in range(120)
    for cores, gpus, milli in [
        [
            (4000, 1, 460),
            (11500, 1, 1000),
            (2000, 0, 0),
            (6000, 1, 250),
            (32000, 8, 1000),
            (7500, 1, 810),
            (3000, 1, 330),
        ][number % 7]
    ]
)


@pytest.fixture(scope="module")
def fgd() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fgd", FGD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fgd"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "seeds"),
    [
        ("made", 1),
        pytest.param("openb", 1, marks=[pytest.mark.others, pytest.mark.long]),
    ],
)
def test_rules_give_away_what_is_published(
    tmp_path: Path, fgd: ModuleType, source: str, seeds: int, others: Callable[[str], Path]
) -> None:
    if source == "openb":
        folder = others("openb")
    else:
        folder = tmp_path
        (folder / "openb_node_list_gpu_node.csv.gz").write_text(NODES)
        (folder / "openb_pod_list_default.csv.gz").write_text(TASKS)
    found = list(fgd.drawn(folder, fgd.JUDGED, list(fgd.SEEDS)[:seeds]))
    assert len(found) == 4 * seeds
    assert all(60 < it.allocated < 100 for it in found)
    if source == "made":
        return
    ranges = {"Random": (86.4, 87.9), "DotProd": (90.1, 91.2), "BestFit": (92.8, 93.5), "FGD": (95.0, 95.4)}
    for it in found:  # the ranges of ten orders of arrivals
        low, high = ranges[it.rule]
        assert low - 0.3 <= it.allocated <= high + 0.3, it


def test_the_verdict_says_what_does_not_hold(fgd: ModuleType) -> None:
    means = {name: fgd.RULES[name].published[0] for name in fgd.JUDGED}
    assert fgd.verdict([fgd.Drawn(name, 42, share, 1.0) for name, share in means.items()]) == []
    swapped = {**means, "FGD": means["BestFit"] - 0.1}
    told = fgd.verdict([fgd.Drawn(name, 42, share, 1.0) for name, share in swapped.items()])
    assert len(told) == 2
    assert told[0].startswith("FGD gives away 92.98 %, published are 95.39 %")
    assert told[1].startswith("seed 42: ")
