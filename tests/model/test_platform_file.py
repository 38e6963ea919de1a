"""Platforms from TOML: what is read, and every mistake by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.platform_file import platform_of, read_platform

GRID = """
[network]
kind = "shared"
ccr = "1/5"
capacity = 0.5
slots = 2

[shares]
"/eng" = 1
"/eng/ann" = 2

[platform]
router = "R"
children = [
    {cluster = "c1", kind = "Kind1", cores = 1000},
    {router = "R2", children = [{cluster = "c2", kind = "Kind2", cores = 8}, {cluster = "c3", cores = 4}]},
]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "grid.toml"


def test_a_file_is_a_tree_with_its_network_and_shares(file: Path) -> None:
    file.write_text(GRID)
    platform = read_platform(file)
    below = RouterSpec("R2", (ClusterSpec("c2", 8, "Kind2"), ClusterSpec("c3", 4)))
    assert platform.root == RouterSpec("R", (ClusterSpec("c1", 1000, "Kind1"), below))
    assert platform.network == Network(kind="shared", ccr="1/5", capacity="0.5", slots=2)
    assert platform.shares is not None
    assert platform.shares.leaves == ("/eng/ann",)
    assert platform.origin == str(file)


def test_network_and_shares_may_be_left_out(file: Path) -> None:
    file.write_text('[platform]\nrouter = "R"\nchildren = [{cluster = "c", cores = 4}]\n')
    platform = read_platform(file)
    assert (platform.cores, platform.network, platform.shares) == (4, Network(), None)


def test_a_cluster_has_a_price_of_a_core_second(file: Path) -> None:
    cheap, free = '{cluster = "cheap", cores = 4, rate = 0.25}', '{cluster = "free", cores = 4, rate = 0}'
    file.write_text(tree(f"{cheap}, {free}, {CLUSTER}"))
    assert [cluster.rate for cluster in read_platform(file).clusters()] == [0.25, 0.0, 1.0]


@pytest.mark.parametrize(
    ("rate", "told"),
    [
        ("-1", "has a rate of -1; a price of a core-second from 0 is needed"),
        ("nan", "has a rate of nan"),
        ("inf", "has a rate of inf"),
        ('"cheap"', "is 'cheap'; a number was expected"),
        ("true", "is True; a number was expected"),
    ],
)
def test_a_price_that_is_none_is_refused(file: Path, rate: str, told: str) -> None:
    file.write_text(tree(f'{{cluster = "c", cores = 4, rate = {rate}}}'))
    with pytest.raises(InputError, match=told) as error:
        read_platform(file)
    assert error.value.field == "platform.children[0].rate"


CLUSTER = '{cluster = "c", cores = 4}'


def tree(children: str, more: str = "") -> str:
    return f'[platform]\nrouter = "R"\nchildren = [{children}]\n{more}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[platform", "is no TOML"),
        ("", r"field 'platform': is not there; expected a table \[platform\]"),
        ("platform = 3", "field 'platform': is 3; a table was expected"),
        ("[platforms]", "unknown key of platform file in .*grid.toml 'platforms'; did you mean 'platform'"),
        ('[platform]\nrouter = "R"', "field 'platform.children': is not there; a list of tables was expected"),
        (tree(""), "field 'platform.children': router 'R' has no children"),
        (
            tree(f'{CLUSTER}, {{router = "R2", children = []}}'),
            r"'platform.children\[1\].children': router 'R2' has no",
        ),
        (tree("3"), r"field 'platform.children\[0\]': is 3; a table was expected"),
        (tree("{cores = 3}"), r"field 'platform.children\[0\]': names neither a router nor a cluster"),
        (tree('{cluster = "c", router = "d"}'), r"field 'platform.children\[0\]': names both a router and a cluster"),
        (tree('{cluster = "c"}'), r"'platform.children\[0\].cores': is not there; a whole number was expected"),
        (tree('{cluster = "c", cores = 0}'), r"'platform.children\[0\].cores': cluster 'c' has 0 cores"),
        (tree('{cluster = "c", cores = -2}'), r"'platform.children\[0\].cores': cluster 'c' has -2 cores"),
        (tree('{cluster = "c", cores = 2.5}'), r"'platform.children\[0\].cores': is 2.5; a whole number was expected"),
        (tree('{cluster = "c", cores = true}'), r"'platform.children\[0\].cores': is True"),
        (tree('{cluster = "c", cores = 2, kind = 7}'), r"'platform.children\[0\].kind': is 7; a text was expected"),
        (
            tree('{cluster = "c", cores = 2, kind = ""}'),
            r"'platform.children\[0\].kind': is empty; a name was expected",
        ),
        (tree('{cluster = "", cores = 2}'), r"'platform.children\[0\].cluster': is empty"),
        (
            tree('{cluster = "c", cors = 2}'),
            r"unknown key of platform.children\[0\] in .*grid.toml 'cors'; did you mean",
        ),
        (tree(f"{CLUSTER}, {CLUSTER}"), "field 'platform': 'c' names two nodes; names must differ"),
        (tree('{cluster = "R", cores = 2}'), "field 'platform': 'R' names two nodes"),
        ('[platform]\ncluster = "c"\ncores = 3', "field 'platform': is a cluster; expected a router"),
        (tree(CLUSTER, "[network]\nccr = true"), "field 'network.ccr': is True; a text or a number was expected"),
        (tree(CLUSTER, '[network]\nccr = "much"'), "field 'network.ccr': 'much' is no rational number"),
        (
            tree(CLUSTER, '[network]\nkind = "fluid"'),
            "field 'network.kind': 'fluid'; expected one of ccr, shared, fifo",
        ),
        (tree(CLUSTER, '[network]\nbandwidth = "fast"'), "field 'network.bandwidth': is 'fast'; a number was expected"),
        (tree(CLUSTER, "[network]\nslots = 0"), "field 'network.slots': 0; expected a whole number from 1"),
        (tree(CLUSTER, "[network]\nspeed = 3"), "unknown key of network in .*grid.toml 'speed'"),
        (tree(CLUSTER, "[network]\n_ratio = 3"), "unknown key of network in .*grid.toml '_ratio'"),
        ("network = 3\n" + tree(CLUSTER), "field 'network': is 3; a table was expected"),
        ("shares = 3\n" + tree(CLUSTER), "field 'shares': is 3; a table was expected"),
        (tree(CLUSTER, '[shares]\n"/a/b" = 1'), "field 'shares': '/a/b' is there but its parent '/a' is not"),
        (tree(CLUSTER, '[shares]\n"/a" = "half"'), "field 'shares.\"/a\"': is 'half'; a whole number was expected"),
        (tree(CLUSTER, "[shares]"), "field 'shares': has no node"),
    ],
)
def test_every_mistake_is_told_with_the_file_and_the_key(file: Path, text: str, told: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=told) as error:
        read_platform(file)
    assert "grid.toml" in str(error.value)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(InputError, match=r"grid\.toml: cannot be read: No such file or directory"):
        read_platform(file)
    file.write_bytes(b"\xff\x01")
    with pytest.raises(InputError, match=r"grid\.toml: is no TOML"):
        read_platform(file)


def test_tables_need_no_file() -> None:
    with pytest.raises(InputError, match=r"^field 'platform': is not there"):
        platform_of({})
