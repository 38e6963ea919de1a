"""The machine."""

from __future__ import annotations

import pytest

from gridsim.errors import InputError
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec

TREE = Platform(
    RouterSpec(
        "root",
        (
            ClusterSpec("a", 1),
            RouterSpec("site", (ClusterSpec("b", 8), ClusterSpec("c", 2))),
            ClusterSpec("d", 4),
        ),
    )
)


def test_a_single_cluster_is_below_a_router() -> None:
    platform = Platform.single(4, name="main", origin="MaxProcs")
    assert [cluster.name for cluster in platform.clusters()] == ["main"]
    assert (platform.cores, platform.widest, platform.origin) == (4, 4, "MaxProcs")


def test_clusters_are_sorted_from_left_to_right() -> None:
    assert [cluster.name for cluster in TREE.clusters()] == ["a", "b", "c", "d"]


def test_a_tree_has_the_cores_of_all_and_the_width_of_its_largest_cluster() -> None:
    assert (TREE.cores, TREE.widest) == (15, 8)


def test_a_cluster_without_cores_is_refused() -> None:
    with pytest.raises(InputError, match="'cluster' has 0 cores"):
        Platform.single(0)


def test_a_router_without_children_is_refused() -> None:
    with pytest.raises(InputError, match="'empty' has no children"):
        RouterSpec("empty", ())


def test_two_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="'a' is the name of two nodes; names must differ"):
        Platform(RouterSpec("a", (ClusterSpec("b", 1), ClusterSpec("a", 1))))


def test_nodes_arrive_parents_first_from_left_to_right() -> None:
    assert [node.name for node in TREE.nodes()] == ["root", "a", "site", "b", "c", "d"]


def test_levels_are_counted_from_the_deeper_cluster_up_to_where_the_paths_meet() -> None:
    levels = TREE.levels()
    assert {levels[name, name] for name in "abcd"} == {0}
    assert (levels["a", "d"], levels["b", "c"], levels["a", "b"], levels["c", "d"]) == (1, 1, 2, 2)
    assert all(levels[one, other] == levels[other, one] for one, other in levels)
