"""A Slurm site that grows and shrinks by whole nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.site import Association, Node, Qos, Reservation, Site, SitePartition

THIN = tuple(Node(f"n{number}", 4, 1000) for number in range(1, 4))
FAT = (Node("fat1", 16, 9000, features=("big",)), Node("fat2", 16, 9000, features=("big",)))


def site(**more: Any) -> Site:
    """Return a site with three thin and two fat nodes; ``batch`` has all, ``thin`` the thin, ``two`` two thin ones."""
    names = tuple(node.name for node in (*FAT, *THIN))
    partitions = (
        SitePartition("batch", names),
        SitePartition("thin", ("n1", "n2", "n3")),
        SitePartition("two", ("n2", "n3")),
        SitePartition("fat", ("fat1", "fat2")),
    )
    return Site(nodes=(*FAT, *THIN), partitions=partitions, default_partition="batch", **more)


def test_the_commonest_node_of_the_default_partition_is_copied() -> None:
    grown = site().with_nodes(2)
    assert [(node.name, node.cores, node.features) for node in grown.nodes[-2:]] == [("more1", 4, ()), ("more2", 4, ())]
    assert grown.cores == site().cores + 8


def test_new_nodes_are_in_the_partitions_and_reservations_that_have_all_of_that_type() -> None:
    everything = Reservation("all", ("n1", "n2", "n3", "fat1", "fat2"), 0, 10)
    one = Reservation("one", ("n1",), 0, 10)
    grown = site(reservations=(everything, one)).with_nodes(1)
    assert [("more1" in each.nodes) for each in grown.partitions] == [True, True, False, False]
    assert [("more1" in each.nodes) for each in grown.reservations] == [True, False]


def test_a_type_that_other_partitions_have_too_is_that_of_the_default_partition() -> None:
    nodes = tuple(Node(f"n{number}", 4) for number in range(1, 5))
    parts = (SitePartition("batch", ("n1", "n2")), SitePartition("own", ("n3", "n4")))
    grown = Site(nodes=nodes, partitions=parts, default_partition="batch").with_nodes(1)
    assert grown.partitions[0].nodes == ("n1", "n2", "more1")
    assert grown.partitions[1].nodes == ("n3", "n4")


def test_the_last_of_the_type_are_taken_away_first() -> None:
    fewer = site(reservations=(Reservation("part", ("n2", "n3"), 0, 10, cores=(("n3", 2),)),)).with_nodes(-1)
    assert [node.name for node in fewer.nodes] == ["fat1", "fat2", "n1", "n2"]
    assert fewer.partition("two").nodes == ("n2",)
    assert (fewer.reservations[0].nodes, fewer.reservations[0].cores) == (("n2",), ())


def test_a_reservation_of_nodes_that_are_gone_is_gone() -> None:
    assert site(reservations=(Reservation("last", ("n3",), 0, 10),)).with_nodes(-1).reservations == ()


@pytest.mark.parametrize(
    ("fewer", "message"),
    [(2, "partition 'two' would be empty"), (4, "4 nodes fewer; the default partition has 3 of 4 cores")],
)
def test_more_than_there_is_cannot_be_taken_away(fewer: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        site().with_nodes(-fewer)


def test_a_new_node_takes_no_name_that_is_taken() -> None:
    nodes = (Node("more1", 4), Node("more3", 4))
    grown = Site(nodes=nodes, partitions=(SitePartition("batch", ("more1", "more3")),), default_partition="batch")
    assert [node.name for node in grown.with_nodes(2).nodes] == ["more1", "more3", "more2", "more4"]


@given(nodes=st.integers(1, 20), cores=st.integers(1, 64), wanted=st.floats(0.5, 2000))
def test_the_size_is_the_nearest_whole_number_of_nodes_but_never_the_old_one(
    nodes: int, cores: int, wanted: float
) -> None:
    here = Site.of(nodes=nodes, cores=cores)
    more = here.nodes_to(wanted)
    missing = wanted - here.cores
    assert (more == 0) == (missing == 0)
    assert more * missing >= 0
    assert abs(missing - more * cores) <= max(cores / 2, cores - abs(missing)) + 1e-6


def test_names_that_jobs_may_have_are_known() -> None:
    people = (Association("physics", parent="root"), Association("physics", "ann"), Association("bio", "ann"))
    known = site(associations=people, qos=(Qos("normal"),))
    assert [known.names(label) for label in ("user", "account", "partition", "qos")] == [
        ("ann",),
        ("physics", "bio"),
        ("batch", "thin", "two", "fat"),
        ("normal",),
    ]
