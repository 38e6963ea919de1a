"""Constraints of jobs, as sbatch(1) writes them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gridsim.model.site import Node, Site, SitePartition
from gridsim.model.workload import Workload
from gridsim.policy.queue import Requests
from gridsim.policy.slurm.constraints import constraint, meets
from gridsim.policy.slurm.node_requests import node_requests_of
from gridsim.policy.slurm.queue_entries import entries_of
from tests.oracles.slurm.node_requests import node_request_of


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("foo&bar|baz", {"foo bar", "baz"}),
        ("foo|bar&baz", {"foo baz", "bar baz"}),
        ("foo&(bar|baz)", {"foo bar", "foo baz"}),
        ("(a&b)|c", {"a b", "c"}),
        ("", {""}),
    ],
)
def test_features_are_read_from_left_to_right_and_by_parentheses(text: str, nodes: set[str]) -> None:
    wanted = constraint(text)
    assert wanted is not None
    (ways,) = wanted.kinds
    assert set(ways) == {frozenset(each.split()) for each in nodes}
    assert all(meets(each.split(), ways) for each in nodes)
    assert not text or not meets(("other",), ways)


def test_brackets_are_for_one_of_several_kinds_or_for_some_of_each() -> None:
    one, each, some = constraint("gpu&[rack1|rack2]"), constraint("[(rack1|rack2)*1&rack3*2]"), constraint("graphics*4")
    assert one is not None
    assert one.kinds == ((frozenset(["gpu", "rack1"]),), (frozenset(["gpu", "rack2"]),))
    assert each is not None
    assert ([many for _, many in each.counts], each.exact, len(each.kinds[0])) == ([1, 2], True, 3)
    assert some is not None
    assert (some.counts, some.exact) == ((((frozenset(["graphics"]),), 4),), False)


WRONG = ("[a", "a]", "[a*2&b]", "[a*1|b*2]", "a*0", "a&", "(a", "[]", "[a&]", "a||b", "a|[b]", "[a]&[b]", "a|b*2", "*3")


@pytest.mark.parametrize("text", WRONG)
def test_invalid_constraints_are_recognised(text: str) -> None:
    assert constraint(text) is None


def test_the_second_reading_of_constraints_and_lists_of_nodes_says_the_same() -> None:
    draw = random.Random(17)
    features = [tuple(each for each in "abc" if draw.random() < 0.5) for _ in range(8)]
    machines = tuple(Node(f"n{row}", 4, features=each) for row, each in enumerate(features))
    site = Site(machines, (SitePartition("p", tuple(node.name for node in machines[1:])),), "p")
    words = ["a", "b", "c", "a", "&", "|", "&", "|", "(", ")", "[", "]", "*1", "*2"]
    texts = ["".join(draw.choice(words) for _ in range(draw.randint(1, 9))) for _ in range(6000)]
    texts += [*WRONG, "", "[a|b]&c*2", "a&b*1&c*2", "[a*1&b*2]", "[(a|b)*2&c*1]"]
    lists, others = ("", "", "n1", "n[1-3]", "n0", "n9"), ("", "", "n3", "n[4-5]")
    rows = [(text, draw.choice(lists), draw.choice(others)) for text in texts]
    labels = {name: [each[place] for each in rows] for place, name in enumerate(("constraint", "nodelist", "exclude"))}
    names = {name: tuple(dict.fromkeys(filter(None, values))) for name, values in labels.items()}
    codes = {name: [names[name].index(it) if it else -1 for it in values] for name, values in labels.items()}
    plain = {"submit": [0.0] * len(rows), "runtime": [1.0] * len(rows), "cores": [1] * len(rows)}
    requests = Requests(replace(Workload.from_columns(**plain, labels=codes), names=names))
    found = node_requests_of(requests, site, entries_of(requests, site))
    some = 0
    for row, texts_of in enumerate(rows):
        fast = found.all[found.of[row]]
        slow = node_request_of(dict(zip(labels, texts_of, strict=True)), site, site.partitions[0])
        members = set().union(*(kind.nodes for kind in slow.kinds)) if slow.kinds else set()
        assert set(np.flatnonzero(fast.member).tolist()) == members, texts_of
        assert (fast.never is None) == bool(members)
        if fast.kinds:
            some += 1
            kinds = [(_places(each.member), [(_places(it), many) for it, many in each.counts]) for each in fast.kinds]
            assert kinds == [(kind.nodes, kind.counts) for kind in slow.kinds], texts_of
            assert fast.exact == slow.exact
        elif members:
            assert not any(kind.counts for kind in slow.kinds)
    assert some > 40


def _places(nodes: npt.NDArray[Any]) -> set[int]:
    return set(np.flatnonzero(nodes).tolist())
