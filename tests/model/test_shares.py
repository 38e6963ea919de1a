"""Share trees."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from gridsim.errors import InputError
from gridsim.model.shares import ShareTree

TREE = ShareTree({"/eng": 1, "/sci": 1, "/eng/ann": 1, "/eng/bob": 3})


def test_leaves_need_not_be_at_one_depth() -> None:
    assert TREE.leaves == ("/eng/ann", "/eng/bob", "/sci")


def test_entitlements_are_products_of_parts_among_siblings() -> None:
    assert [TREE.entitlement(leaf) for leaf in TREE.leaves] == [Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)]
    assert sum(TREE.entitlement(leaf) for leaf in TREE.leaves) == 1
    assert TREE.fraction("/eng/bob") == Fraction(3, 4)
    assert TREE.siblings("/sci") == 2


def test_a_path_goes_from_below_the_root_to_the_leaf() -> None:
    assert TREE.path("/eng/bob") == ("/eng", "/eng/bob")


@pytest.mark.parametrize("node", ["/eng", "/law", "sci", ""])
def test_a_path_to_what_is_no_leaf_is_refused(node: str) -> None:
    with pytest.raises(InputError, match="is not a leaf of the shares; known: /eng/ann, /eng/bob, /sci"):
        TREE.path(node)


def test_a_tree_may_be_made_of_its_leaves_with_equal_shares() -> None:
    equal = ShareTree.equal(("/a/one", "/a/two", "/b"))
    assert equal.shares == {"/a": 1, "/a/one": 1, "/a/two": 1, "/b": 1}
    assert equal.entitlement("/a/two") == Fraction(1, 4)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ({}, "is empty"),
        ({"eng": 1}, "'eng' is not a path; expected a path such as /eng/ann"),
        ({"/eng/": 1}, "is not a path"),
        ({"/a//b": 1}, "is not a path"),
        ({"/eng": 0}, "'/eng' has 0 shares"),
        ({"/eng": 1.5}, "has 1.5 shares"),
        ({"/eng/ann": 1}, "'/eng/ann' is listed, but its parent '/eng' is not"),
    ],
)
def test_an_impossible_tree_is_refused(shares: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        ShareTree(shares)
