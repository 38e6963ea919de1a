"""Limits of a site, set by one line of text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridsim.errors import InputError
from gridsim.model.site import Association, Node, Qos, Site, SitePartition, TresLimits
from gridsim.model.site_file import set_limits
from gridsim.model.time import MICROSECOND


def site() -> Site:
    """Return a site with GPUs, a licence, two QOS, and two accounts of one user."""
    users = (Association("bio", user="ann"), Association("physics", user="ann", most_jobs=4))
    return Site(
        nodes=(Node("n1", 8, gpus=2, gpu_kind="a100"),),
        partitions=(SitePartition("gpu", ("n1",)), SitePartition("long", ("n1",))),
        default_partition="gpu",
        qos=(Qos("gpu", tres=TresLimits(group=(("gres/gpu", 12), ("node", 3)))), Qos("low", group_jobs=2)),
        associations=(Association("root"), Association("bio", parent="root", group_cores=64), *users),
        licences={"matlab": 2},
    )


def test_a_limit_replaces_that_of_the_same_resource_and_leaves_the_others() -> None:
    found = set_limits(site(), "qos.gpu.GrpTRES=gres/gpu=14,cpu=32")
    assert found.qos[0] == replace(
        site().qos[0], group_cores=32, tres=TresLimits(group=(("gres/gpu", 14), ("node", 3)))
    )
    assert found.qos[1] == site().qos[1]


def test_minus_one_removes_a_limit() -> None:
    found = set_limits(site(), "qos.gpu.GrpTRES=gres/gpu=-1;qos.low.GrpJobs=-1;account.bio.GrpTRES=cpu=-1")
    assert dict(found.qos[0].tres.group) == {"node": 3}
    assert found.qos[1].group_jobs is None
    assert found.associations[1].group_cores is None


def test_limits_of_users_hold_in_all_their_accounts_or_in_one() -> None:
    assert [each.most_jobs for each in set_limits(site(), "user.ann.maxjobs=9").associations] == [None, None, 9, 9]
    one = set_limits(site(), "user.ann@bio.MaxJobs=9").associations
    assert [each.most_jobs for each in one] == [None, None, 9, 4]


def test_limits_of_a_partition_are_written_as_in_slurm_conf() -> None:
    first, second = set_limits(site(), "partition.gpu.MaxTime=2-0;partition.gpu.MaxCPUsPerNode=4").partitions
    assert (first.longest, first.node_cores) == (2 * 86_400 * MICROSECOND, 4)
    assert second == site().partitions[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu=14", "'gpu=14' sets no limit; expected for example qos.gpu.GrpTRES=gres/gpu=14"),
        ("qoss.gpu.GrpJobs=1", "unknown owner of a limit 'qoss'; did you mean 'qos'"),
        ("qos.gpu.GrpTRS=cpu=1", "unknown limit of a qos 'GrpTRS'; did you mean 'GrpTRES'"),
        ("qos.gpu.Priority=1", "unknown limit of a qos 'Priority'"),
        ("qos.gpus.GrpJobs=1", "unknown QOS 'gpus'; did you mean 'gpu'"),
        ("account.chem.GrpJobs=1", "unknown account 'chem'"),
        ("user.bob.MaxJobs=1", "unknown user 'bob'"),
        ("partition.gpus.MaxTime=1", "'gpus' is not a partition"),
        ("partition.gpu.MaxTime=soon", "expected a time such as 30"),
        ("qos.gpu.GrpJobs=many", "is 'many'; expected a number"),
        ("qos.gpu.GrpTRES=gres/gpu:h100=1", "unknown type of GPU 'gres/gpu:h100'; did you mean 'gres/gpu:a100'"),
        ("qos.gpu.GrpTRES=license/ansys=1", "unknown licence 'ansys'"),
        ("qos.gpu.GrpTRES=bb/cray=1", "is not modelled"),
    ],
)
def test_limits_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        set_limits(site(), text)


def test_a_site_that_enforces_no_limits_has_none_to_set() -> None:
    with pytest.raises(InputError, match="does not enforce limits"):
        set_limits(replace(site(), enforce=False), "qos.low.GrpJobs=1")
    with pytest.raises(InputError, match="give the file with these as slurm"):
        set_limits(replace(site(), qos=()), "qos.low.GrpJobs=1")
