"""Platforms from TOML: parsed values, and each error with file and key."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gridsim.errors import InputError
from gridsim.model.capacity import NodeGroup
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, RouterSpec
from gridsim.model.platform_file import platform_of, platform_of_tree, read_platform, tree_of

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
    ("rate", "message"),
    [
        ("-1", "has a rate of -1; a price per core-second from 0 is needed"),
        ("nan", "is nan; expected a number"),
        ("inf", "is inf; expected a number"),
        ('"cheap"', "is 'cheap'; expected a number"),
        ("true", "is True; expected a number"),
    ],
)
def test_a_price_that_is_none_is_refused(file: Path, rate: str, message: str) -> None:
    file.write_text(tree(f'{{cluster = "c", cores = 4, rate = {rate}}}'))
    with pytest.raises(InputError, match=message) as error:
        read_platform(file)
    assert error.value.field == "platform.children[0].rate"


CLUSTER = '{cluster = "c", cores = 4}'


def tree(children: str, more: str = "") -> str:
    return f'[platform]\nrouter = "R"\nchildren = [{children}]\n{more}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[platform", "is not valid TOML"),
        ("", r"field 'platform': is missing; expected a table \[platform\]"),
        ("platform = 3", "field 'platform': is 3; expected a table"),
        ("[platforms]", "unknown key of platform file in .*grid.toml 'platforms'; did you mean 'platform'"),
        ('[platform]\nrouter = "R"', "field 'platform.children': is missing; expected a list"),
        (tree(""), "field 'platform.children': router 'R' has no children"),
        (
            tree(f'{CLUSTER}, {{router = "R2", children = []}}'),
            r"'platform.children\[1\].children': router 'R2' has no",
        ),
        (tree("3"), r"field 'platform.children\[0\]': is 3; expected a table"),
        (tree("{cores = 3}"), r"field 'platform.children\[0\]': has neither a router nor a cluster"),
        (tree('{cluster = "c", router = "d"}'), r"field 'platform.children\[0\]': has both a router and a cluster"),
        (tree('{cluster = "c"}'), r"'platform.children\[0\].cores': is missing; expected a whole number"),
        (tree('{cluster = "c", cores = 0}'), r"'platform.children\[0\].cores': cluster 'c' has 0 cores"),
        (tree('{cluster = "c", cores = -2}'), r"'platform.children\[0\].cores': cluster 'c' has -2 cores"),
        (tree('{cluster = "c", cores = 2.5}'), r"'platform.children\[0\].cores': is 2.5; expected a whole number"),
        (tree('{cluster = "c", cores = true}'), r"'platform.children\[0\].cores': is True"),
        (tree('{cluster = "c", cores = 2, kind = 7}'), r"'platform.children\[0\].kind': is 7; expected a name"),
        (
            tree('{cluster = "c", cores = 2, kind = ""}'),
            r"'platform.children\[0\].kind': is ''; expected a name",
        ),
        (tree('{cluster = "", cores = 2}'), r"'platform.children\[0\].cluster': is ''; expected a name"),
        (
            tree('{cluster = "c", cors = 2}'),
            r"unknown key of \[platform.children\[0\]\] in .*grid.toml 'cors'; did you mean",
        ),
        (tree(f"{CLUSTER}, {CLUSTER}"), "field 'platform': 'c' is the name of two nodes; names must differ"),
        (tree('{cluster = "R", cores = 2}'), "field 'platform': 'R' is the name of two nodes"),
        (tree(CLUSTER, "[network]\nccr = true"), "field 'network.ccr': is True; expected a text or a number"),
        (tree(CLUSTER, '[network]\nccr = "much"'), "field 'network.ccr': 'much' is not a rational number"),
        (
            tree(CLUSTER, '[network]\nkind = "fluid"'),
            "field 'network.kind': is 'fluid'; expected one of ccr, shared, fifo",
        ),
        (tree(CLUSTER, '[network]\nbandwidth = "fast"'), "field 'network.bandwidth': is 'fast'; expected a number"),
        (tree(CLUSTER, "[network]\nslots = 0"), "field 'network.slots': is 0; expected a whole number from 1"),
        (tree(CLUSTER, "[network]\nspeed = 3"), r"unknown key of \[network\] in .*grid.toml 'speed'"),
        (tree(CLUSTER, "[network]\n_ratio = 3"), r"unknown key of \[network\] in .*grid.toml '_ratio'"),
        ("network = 3\n" + tree(CLUSTER), "field 'network': is 3; expected a table"),
        ("shares = 3\n" + tree(CLUSTER), "field 'shares': is 3; expected a table"),
        (tree(CLUSTER, '[shares]\n"/a/b" = 1'), "field 'shares': '/a/b' is listed, but its parent '/a' is not"),
        (tree(CLUSTER, '[shares]\n"/a" = "half"'), "field 'shares./a': is 'half'; expected a whole number"),
        (tree(CLUSTER, "[shares]"), "field 'shares': is empty"),
    ],
)
def test_every_mistake_is_reported_with_the_file_and_the_key(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_platform(file)
    assert "grid.toml" in str(error.value)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(InputError, match=r"grid\.toml: cannot be read: No such file or directory"):
        read_platform(file)
    file.write_bytes(b"\xff\x01")
    with pytest.raises(InputError, match=r"grid\.toml line 1: is not UTF-8"):
        read_platform(file)


def test_tables_need_no_file() -> None:
    with pytest.raises(InputError, match=r"^field 'platform': is missing"):
        platform_of({})


NODES = """
[platform]
cluster = "site"

[[platform.nodes]]
group = "thin"
count = 2
capacity = {cores = 64, memory = 262144}

[[platform.nodes]]
group = "fat"
capacity = {cores = 32, memory = 524288, scratch = 3}
gpus = 4
gpu_kind = "a100"
features = ["nvlink"]
partitions = ["gpu", "long"]
weight = 10

[platform.pools]
matlab = 20
"""


def test_a_machine_is_made_of_groups_of_nodes_and_pools(file: Path) -> None:
    file.write_text(NODES)
    platform = read_platform(file)
    (site,) = platform.clusters()
    thin, fat = site.nodes
    assert thin == NodeGroup(group="thin", count=2, capacity={"cores": 64, "memory": 262144})
    assert fat == NodeGroup(
        group="fat",
        capacity={"cores": 32, "memory": 524288, "scratch": 3},
        gpus=4,
        gpu_kind="a100",
        features=("nvlink",),
        partitions=("gpu", "long"),
        weight=10,
    )
    assert (site.cores, site.pools) == (160, {"matlab": 20})
    assert platform_of_tree(tree_of(platform.root)).root == platform.root


def test_cores_may_be_a_pool_among_others(file: Path) -> None:
    file.write_text('[platform]\ncluster = "c"\n[platform.pools]\ncores = 8\nmemory = 4096\n')
    (cluster,) = read_platform(file).clusters()
    assert (cluster.cores, cluster.pools) == (8, {"memory": 4096})


def nodes(text: str, more: str = "") -> str:
    return f'[platform]\ncluster = "c"\nnodes = {text}\n{more}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nodes("3"), "'platform.nodes': is 3; expected a list of groups of nodes"),
        (nodes("[]"), r"'platform.nodes': is \[\]; expected a list of groups"),
        (nodes("[3]"), r"'platform.nodes\[0\]': is 3; expected a table"),
        (nodes("[{count = 3}]"), r"'platform.nodes\[0\].group': is missing; expected a name"),
        (nodes('[{group = "a", memory = 3}]'), r"unknown key of \[platform.nodes\[0\]\] in .*grid.toml 'memory'"),
        (nodes('[{group = "a", count = 0, capacity = {cores = 1}}]'), r"nodes\[0\].count': group 'a' has 0 nodes"),
        (nodes('[{group = "a", capacity = {cores = -1}}]'), r"nodes\[0\].capacity.cores': group 'a' has -1 of cores"),
        (
            nodes('[{group = "a", capacity = {cores = 1.5}}]'),
            r"nodes\[0\].capacity.cores': is 1.5; expected a whole",
        ),
        (nodes('[{group = "a", capacity = {cores = 1, gpu = 2}}]'), r"nodes\[0\].capacity': .*use gpus"),
        (
            nodes('[{group = "a", capacity = {cores = 1}, gpus = 1.5}]'),
            r"nodes\[0\].gpus': is 1.5; expected a whole",
        ),
        (nodes('[{group = "a", capacity = {cores = 1}, gpus = -1}]'), r"nodes\[0\].gpus': group 'a' has -1 GPUs"),
        (
            nodes('[{group = "a", capacity = {cores = 1}, features = "x"}]'),
            r"nodes\[0\].features': is 'x'; expected a",
        ),
        (
            nodes('[{group = "a", capacity = {memory = 1}}]', "[platform.pools]\nmemory = 2"),
            "'platform.pools.memory': 'memory' is both a resource of nodes and a pool; names must differ",
        ),
        (nodes('[{group = "a", capacity = {cores = 1}}]', "[platform.pools]\nx = -2"), "'platform.pools.x': has -2"),
        (
            nodes('[{group = "a", capacity = {cores = 1}}, {group = "a", capacity = {cores = 1}}]'),
            "'platform.nodes': 'a' is the name of two nodes; names must differ",
        ),
        (
            nodes('[{group = "a", capacity = {cores = 1}}]', "cores = 3"),
            "'platform.cores': cluster 'c' has 3 cores, but its nodes have 1",
        ),
        (nodes('[{group = "a", capacity = {memory = 1}}]'), "'platform.cores': is missing; expected a whole number"),
        ('[platform]\ncluster = "c"\ncores = 3\npools = {cores = 3}', "'platform.cores': is also a pool; give it once"),
    ],
)
def test_nodes_and_pools_that_cannot_be_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_platform(file)
    assert "grid.toml" in str(error.value)


LIST = "sn,cpu_milli,ram,gpu,model\na1,64000,8,2,P100\na2,64000,8,2,P100\nb1,8000,4,0,\na3,64000,8,2,P100\n"
OF_LIST = (
    '{file = "nodes.csv", name = "sn", gpus = "gpu", gpu_kind = "model", '
    'capacity = {cores = {column = "cpu_milli", scale = 0.001}, memory = "ram"}}'
)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_nodes_are_read_from_a_table_in_its_order(file: Path, suffix: str) -> None:
    listed = file.with_name(f"nodes.csv{suffix}")
    listed.write_bytes(gzip.compress(LIST.encode()) if suffix else LIST.encode())
    file.write_text(nodes(OF_LIST.replace(".csv", f".csv{suffix}")))
    (site,) = read_platform(file).clusters()
    assert site.capacity is not None
    assert site.capacity.nodes == ("a1", "a2", "b1", "a3")
    assert site.capacity.amounts["cores"].tolist() == [64, 64, 8, 64]
    assert site.capacity.gpus.tolist() == [2, 2, 0, 2]
    assert [group.count for group in site.nodes] == [2, 1, 1]


@pytest.mark.parametrize(
    ("listed", "of_list", "message"),
    [
        (LIST, OF_LIST.replace("cpu_milli", "cpu"), "unknown column of .*nodes.csv 'cpu'; did you mean 'gpu'"),
        (
            LIST.replace("8000", "8500"),
            OF_LIST,
            r"line 4, field 'cpu_milli': is '8500 times 1/1000'; expected",
        ),
        (LIST.replace(",4,0", ",-4,0"), OF_LIST, r"line 4, field 'ram': is '-4'; expected a whole number from 0"),
        (LIST.replace(",4,0", ",4,1.5"), OF_LIST, r"line 4, field 'gpu': is '1.5'; expected a whole number from 0"),
        (LIST.splitlines()[0], OF_LIST, "nodes.csv: lists no node"),
        (LIST, OF_LIST.replace("nodes.csv", "none.csv"), r"none.csv: cannot be read: No such file"),
    ],
)
def test_a_table_of_nodes_that_is_none_is_refused(file: Path, listed: str, of_list: str, message: str) -> None:
    file.with_name("nodes.csv").write_text(listed)
    file.write_text(nodes(of_list))
    with pytest.raises(InputError, match=message):
        read_platform(file)
