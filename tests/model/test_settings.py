"""Keys of a variant of a site, and their raw values."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.site.vocabulary import known
from gridsim.model.site_file import read_site, settings_of
from gridsim.model.site_file.settings import Setting
from gridsim.policy.presets import label_of, of_site, policy, site_of
from gridsim.registry import Spec, parse

MINI = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mini"

RAW = st.text(string.ascii_letters + string.digits + ",()[]{}=+-*/.:; '\"", min_size=1).map(str.strip).filter(len)
OPTIONS = st.dictionaries(
    st.sampled_from(["bf_interval", "bf_window", "bf_resolution", "defer", "bf_max_job_test"]),
    st.integers(1, 99),
    min_size=1,
)


def joined(options: dict[str, int]) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items())


@given(st.dictionaries(st.sampled_from(["a", "b+", "c-", "partition.v1.2.K"]), RAW, min_size=1))
@pytest.mark.parametrize("name", ["slurm", "site"])
def test_a_value_is_raw_text_between_ampersands(name: str, values: dict[str, str]) -> None:
    text = f"{name}?" + "&".join(f"{key}={value}" for key, value in values.items())
    assert parse(text) == Spec(name, values)
    assert parse(str(parse(text))) == Spec(name, values)
    assert label_of(f"my label={text}") == ("my label", text)


@given(RAW)
def test_a_value_of_a_variant_is_recorded_unchanged(value: str) -> None:
    made = of_site(f"x=site?SchedulerParameters={value}&qos=other.txt", "slurm.conf,qos=qos.txt")
    assert made.parameters["changes"] == {"SchedulerParameters": value, "qos": "other.txt"}
    assert (made.parameters["conf"], made.parameters["qos"]) == ("slurm.conf", "other.txt")


@given(OPTIONS, OPTIONS)
def test_options_are_added_or_replaced_and_removed(before: dict[str, int], more: dict[str, int]) -> None:
    added = Setting.parsed("SchedulerParameters+", joined(more)).applied(joined(before))
    assert added == joined(before | more)
    assert Setting.parsed("schedulerparameters-", ",".join(more)).applied(added) == joined(
        {name: value for name, value in before.items() if name not in more}
    )


@given(OPTIONS, st.sampled_from(["sched_interval", "bf_max_job_user"]))
def test_an_absent_option_cannot_be_removed(before: dict[str, int], name: str) -> None:
    with pytest.raises(InputError, match=f"removes '{name}', which"):
        Setting.parsed("SchedulerParameters-", name).applied(joined(before))


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("PriorityFlags+", "MAX_TRES", "FAIR_TREE", "FAIR_TREE,MAX_TRES"),
        ("Licenses+", "matlab:5,ansys:1", "matlab:2", "matlab:5,ansys:1"),
        ("PriorityWeightTRES+", "CPU=10", "cpu=1,Mem=2", "CPU=10,Mem=2"),
        ("SchedulerParameters-", "bf_interval=30", "bf_interval=30,defer", "defer"),
        ("SchedulerParameters", "", "bf_interval=30", ""),
        ("PreemptMode+", "REQUEUE", "", "REQUEUE"),
    ],
)
def test_a_list_of_options_is_changed(key: str, value: str, before: str, after: str) -> None:
    assert Setting.parsed(key, value).applied(before) == after


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"SchedulerParameters+": "defer", "schedulerparameters+": "bf_window=9"}, "is given twice"),
        ({"SchedulerParameters+": "defer", "SchedulerParameters": "bf_window=9"}, "is given twice"),
        ({"qos.a.Priority": "1", "qos.a.priority": "2"}, "is given twice"),
    ],
)
def test_a_key_is_given_once(changes: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        settings_of(changes)


def test_options_can_be_removed_and_added() -> None:
    settings = settings_of(
        {"SchedulerParameters-": "bf_window", "SchedulerParameters+": "defer", "conf": "x"}, ["conf"]
    )
    site = read_site(MINI / "slurm.conf", settings=settings)
    before = read_site(MINI / "slurm.conf")
    assert site.scheduling.defer
    assert not before.scheduling.defer
    assert (before.scheduling.window, site.scheduling.window) == (3_600_000_000, 86_400_000_000)


def test_every_list_of_options_is_a_keyword() -> None:
    from gridsim.model.site.vocabulary import _sections

    assert all(known("", name) for name in _sections()["lists of options"])


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("slurm.conf", {"conf": "slurm.conf"}),
        (" etc/slurm.conf , boot = 0", {"conf": "etc/slurm.conf", "boot": "0"}),
        (
            "a.conf,usage=u,groups=g,reservations=r,epoch=5",
            {"conf": "a.conf", "usage": "u", "groups": "g", "reservations": "r", "epoch": "5"},
        ),
    ],
)
def test_a_site_is_a_file_and_its_parameters(text: str, parameters: dict[str, str]) -> None:
    assert site_of(text).parameters == parameters
    assert site_of(parameters) == site_of(text) == site_of(site_of(text))


def test_numbers_of_a_site_are_numbers() -> None:
    made = policy("site", f"{MINI}/slurm.conf,boot=3,epoch=1795244026")
    assert (made.boot, made.epoch) == (3, 1_795_244_026.0)
    assert policy(f"slurm?conf={MINI}/slurm.conf&boot=2026-11-21T06:53:40").boot == "2026-11-21T06:53:40"


def test_changes_need_the_files_of_the_site() -> None:
    from gridsim.model.site import Site
    from gridsim.policy.scheduler.slurm import Slurm

    with pytest.raises(InputError, match="give conf instead of site"):
        Slurm(site=Site.of(nodes=1, cores=4), changes={"PriorityWeightAge": "1"})
