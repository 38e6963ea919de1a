"""Fair share: keys from the formula in exact rationals, and schedules calculated by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.workload import Workload
from gridsim.policy.fair_share import FairShare
from gridsim.policy.queue import ClusterView, Ledger, Queue, Requests
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.simulation import run

TREE = ShareTree({"/eng": 2, "/eng/ann": 1, "/eng/bob": 3, "/sci": 1, "/sci/eve": 1, "/op": 1})
LEAVES = TREE.leaves
CORES = 24


def jobs(shares: list[int], names: tuple[str, ...] = LEAVES, **columns: Any) -> Workload:
    n = len(shares)
    rows = {"submit": [0] * n, "runtime": [1] * n, "cores": [1] * n, **columns}
    return replace(Workload.from_columns(**rows, labels={"share": shares}), names={"share": names})


def kept(
    ordering: FairShare, running: list[int], tree: ShareTree | None = TREE, names: tuple[str, ...] = LEAVES
) -> Ledger:
    ledger = ordering.keep(ClusterView(CORES, Requests(jobs([0], names)), shares=tree))
    ledger.running[:] = running
    return ledger


def by_formula(combine: str, running: list[int], tree: ShareTree, names: tuple[str, ...]) -> list[Any]:
    """Return the key by the exact wording of the grid specification, section 10."""

    def used(node: str) -> Fraction:
        return Fraction(
            sum(cores for name, cores in zip(names, running, strict=True) if f"{name}/".startswith(f"{node}/"))
        )

    def entitled(path: tuple[str, ...]) -> Fraction:
        return math.prod((tree.fraction(node) for node in path), start=Fraction(1))

    keys: list[Any] = []
    for name in names:
        path = tree.path(name)
        if combine == "fair-tree":
            above = ["", *path[:-1]]
            keys.append(
                tuple(
                    (used(node) / used(parent) if used(parent) else 0) / tree.fraction(node)
                    for node, parent in zip(path, above, strict=True)
                )
            )
        else:
            ratios = [used(node) / CORES / entitled(path[: depth + 1]) for depth, node in enumerate(path)]
            keys.append(ratios[-1] if combine == "leaf" else math.prod(ratios))
    return keys


RUNNING = st.lists(st.integers(0, 6), min_size=len(LEAVES), max_size=len(LEAVES))


@pytest.mark.parametrize("combine", ["product", "leaf", "fair-tree"])
@given(running=RUNNING)
def test_leaves_are_ordered_by_the_formula(combine: Any, running: list[int]) -> None:
    ordering = FairShare(combine=combine)
    kept(ordering, running)
    places, keys = ordering.places(0).tolist(), by_formula(combine, running, TREE, LEAVES)
    for one in range(len(LEAVES)):
        for other in range(len(LEAVES)):
            assert (places[one] < places[other]) == (keys[one] < keys[other])
            assert (places[one] == places[other]) == (keys[one] == keys[other])


def test_users_without_usage_are_first_and_equal_ratios_are_equal() -> None:
    ordering = FairShare()
    kept(ordering, [1, 3, 0, 0])  # ann 1 of 1, bob 3 of 3
    places = ordering.places(0).tolist()
    assert places[0] == places[1] > places[2] == places[3]


@dataclass
class Plain(FairShare):
    """Fair share without the column of keys of one-level trees."""

    def _prepare(self, tree: ShareTree, paths: tuple[str, ...]) -> None:
        super()._prepare(tree, paths)
        self._column = None


ROW = st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(1, 4), st.integers(0, 3))


@pytest.mark.parametrize("combine", ["product", "leaf"])
@given(rows=st.lists(ROW, min_size=1, max_size=30), shares=st.lists(st.integers(1, 9), min_size=4, max_size=4))
@settings(max_examples=40)
def test_the_quick_column_orders_as_the_rationals_do(
    combine: Any, rows: list[tuple[int, int, int, int]], shares: list[int]
) -> None:
    names = ("/a", "/b", "/c", "/d")
    gap, runtime, cores, share = (list(column) for column in zip(*rows, strict=True))
    workload = jobs(share, names, submit=np.cumsum(gap), runtime=runtime, cores=cores)
    platform = replace(Platform.single(6), shares=ShareTree(dict(zip(names, shares, strict=True))))
    quick, plain = (
        run(workload, platform, Backfilling(ordering=kind(combine=combine), reserve=Strict())).start.tolist()
        for kind in (FairShare, Plain)
    )
    assert quick == plain


def test_keys_beyond_the_precision_of_floats_are_distinguished() -> None:
    names = ("/a", "/b", "/c")
    tree = ShareTree({"/a": 2**40 - 87, "/b": 2**40 - 167, "/c": 1})
    ordering = FairShare()
    ledger = ordering.keep(ClusterView(CORES, Requests(jobs([0, 1, 2], names)), shares=tree))
    ledger.running[:] = [1, 1, 0]
    ranks = ordering.rank(Queue(Requests(jobs([0, 1, 2], names)), np.arange(3)), 0.0)
    assert ranks[2] < ranks[0] < ranks[1]


# -- schedules ---------------------------------------------------------------------------------------------------------


def starts(workload: Workload, policy: str, cores: int, tree: ShareTree | None = None) -> list[float]:
    return list(run(workload, replace(Platform.single(cores), shares=tree), policy).start)


TWO = ("/ann", "/bob")


def test_the_share_with_fewer_cores_in_use_is_served_next() -> None:
    # ann uses a core until 10, so bob, who uses none, starts ahead of her other jobs
    workload = jobs([0, 0, 0, 1], TWO, runtime=[10, 10, 10, 10], submit=[0, 1, 1, 1])
    assert starts(workload, "fair-share", 2) == [0, 10, 11, 1]


def test_use_counts_what_was_started_in_the_same_pass_or_not() -> None:
    workload = jobs([0, 0, 1, 1], TWO, runtime=[10] * 4)
    assert starts(workload, "fair-share", 2) == [0, 10, 0, 10]
    assert starts(workload, "fair-share(reeval=pass)", 2) == [0, 0, 10, 10]


def test_shares_weigh_use() -> None:
    tree = ShareTree({"/ann": 3, "/bob": 1})
    workload = jobs([0, 0, 0, 1, 1], TWO, runtime=[10] * 5)
    assert starts(workload, "fair-share", 4, tree) == [0, 0, 0, 0, 10]
    assert starts(workload, "fair-share", 4) == [0, 0, 10, 0, 0]


def test_on_the_grid_use_elsewhere_counts() -> None:
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 1), ClusterSpec("b", 1))))
    # ann runs on a; on b her job and bob's wait for the third to end at 5
    workload = jobs([0, 1, 0, 1], TWO, submit=[0, 0, 1, 1], runtime=[20, 5, 4, 4])
    for scope, first in (("cluster", 2), ("grid", 3)):
        start = run(workload, platform, f"fair-share(scope={scope})").start.tolist()
        assert min(start[2:]) == start[first] == 5, scope


def test_decayed_use_remembers_and_forgets() -> None:
    # ann ran 100 s alone, bob 10 s; both want the one core at 200.
    workload = jobs([0, 1, 0, 1], TWO, submit=[0, 110, 115, 115], runtime=[100, 90, 5, 5])
    remembering = "fair-share(usage=decayed,half_life=10000.0)"
    assert starts(workload, remembering, 1) == [0, 110, 205, 200]
    forgetting = "fair-share(usage=decayed,half_life=10.0)"
    assert starts(workload, forgetting, 1) == [0, 110, 200, 205]
    assert starts(workload, "fair-share", 1) == [0, 110, 200, 205]


def test_a_ledger_decays_by_its_half_life() -> None:
    ledger = Ledger(4, half_life=10.0)
    ledger.open(1)
    ledger.change(0, 3, 0)
    ledger.decay(10_000_000)
    whole = 3 * 10 / math.log(2)  # core-seconds of the weight of three cores in constant use
    assert ledger.used[0] == pytest.approx(whole / 2, rel=1e-12)
    ledger.change(0, -3, 10_000_000)
    ledger.decay(30_000_000)
    assert ledger.used[0] == pytest.approx(whole / 8, rel=1e-12)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_jobs_without_shares_are_refused() -> None:
    with pytest.raises(InputError, match="the workload has none"):
        run(Workload.from_columns(submit=[0], runtime=[1], cores=[1]), Platform.single(1), "fair-share")


def test_a_job_without_a_share_is_refused() -> None:
    with pytest.raises(InputError, match="the job in row 2 has none"):
        run(jobs([0, -1], TWO), Platform.single(1), "fair-share")


def test_a_share_that_the_tree_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="'/bob' is not a leaf of the shares; known: /ann"):
        starts(jobs([0, 1], TWO), "fair-share", 1, ShareTree({"/ann": 1}))


def test_without_a_tree_all_shares_are_equal() -> None:
    workload = jobs([0, 1, 1], ("/x/ann", "/x/bob"), runtime=[10, 10, 10])
    assert starts(workload, "fair-share", 2) == [0, 0, 10]
