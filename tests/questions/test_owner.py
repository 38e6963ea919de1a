"""The owner of the job in a question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridsim.errors import InputError
from gridsim.forecasts.new_job import owned
from gridsim.model.site import Association, Site
from gridsim.model.workload import Workload
from gridsim.policy.scheduler.slurm import Slurm

NUMBERED = Workload.from_columns(submit=[0, 1], runtime=[5, 5], cores=[1, 2], labels={"user": [3, 12]})
LOG = replace(NUMBERED, labels={"user": NUMBERED.labels["user"] * 0 + 1}, names={"user": ("", "ann")})
SITE = Slurm(site=Site.of(nodes=1, cores=4, associations=(Association("physics", "bob"),)))


def test_a_name_of_the_log_has_its_number() -> None:
    workload, found = owned(LOG, {"user": "ann"})
    assert (workload, found) == (LOG, {"user": 1})


def test_jobs_of_a_log_without_names_are_selected_by_number() -> None:
    assert owned(NUMBERED, {"user": "12"})[1] == {"user": 12}
    with pytest.raises(InputError, match="'13' is not a user of the log, the state or the site; known: 3, 12"):
        owned(NUMBERED, {"user": "13"})


def test_a_name_that_only_the_site_knows_is_added() -> None:
    workload, found = owned(LOG, {"user": "bob", "account": "physics"}, [object(), SITE])
    assert found == {"user": 2, "account": 1}
    assert (workload.names["user"], workload.names["account"]) == (("", "ann", "bob"), ("", "physics"))
    assert workload.labels["account"].tolist() == [-1, -1]


def test_several_partitions_may_be_requested() -> None:
    workload, found = owned(LOG, {"partition": "batch,batch"}, [SITE])
    assert workload.names["partition"][found["partition"]] == "batch,batch"
    with pytest.raises(InputError, match="'big' is not a partition"):
        owned(LOG, {"partition": "batch,big"}, [SITE])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"user": "anm"}, "'anm' is not a user of the log, the state or the site; known: ann"),
        ({"user": ""}, "'' is not a user"),
        ({"qos": "high"}, "'high' is unknown: neither the log"),
        ({"colour": "red"}, "is not a property of a job"),
    ],
)
def test_unknown_resources_are_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        owned(LOG, names)
