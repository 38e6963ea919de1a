"""Parameters of a whole site: scheduling, priorities, preemption, memory (slurm.conf(5), version 22.05)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from gridsim.model.site import Preemption, Priority, Scheduling
from gridsim.model.site.parameters import Weights
from gridsim.model.site.vocabulary import canonical, matters
from gridsim.model.site_file.syntax import ConfLine, integer, minutes
from gridsim.model.site_file.syntax import weights as tres_weights
from gridsim.model.time import MICROSECOND, NEVER


def _of_seconds(text: str) -> int:
    """Return a number of seconds in whole microseconds."""
    return integer(text) * MICROSECOND


_SCHEDULING: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "bf_interval": ("interval", _of_seconds),
    "bf_resolution": ("resolution", _of_seconds),
    "bf_window": ("window", lambda text: integer(text) * 60 * MICROSECOND),
    "bf_max_job_test": ("tests", integer),
    "max_job_bf": ("tests", integer),
    "bf_max_job_user": ("user_tests", integer),
    "bf_max_job_part": ("partition_tests", integer),
    "bf_max_job_assoc": ("association_tests", integer),
    "bf_max_job_start": ("starts", integer),
    "bf_max_job_user_part": ("both_tests", integer),
    "bf_max_job_array_resv": ("array_reserves", integer),
    "bf_job_part_count_reserve": ("partition_reserves", integer),
    "bf_min_age_reserve": ("least_age", _of_seconds),
    "bf_min_prio_reserve": ("least_priority", integer),
    "bf_window_linear": ("linear", _of_seconds),
    "default_queue_depth": ("queue_depth", integer),
    "partition_job_depth": ("partition_depth", integer),
    "sched_interval": ("full_interval", _of_seconds),
    "sched_min_interval": ("least_interval", integer),
    "batch_sched_delay": ("batch_delay", _of_seconds),
}
_FLAGS = {"defer": "defer", "assoc_limit_stop": "stop_at_limit", "bf_one_resv_per_job": "once"}
_OF_PREEMPTION = {"reorder_count": "reorder", "strict_order": "strict_order", "youngest_first": "youngest_first"}


def _scheduling(text: str, line: ConfLine, ignored: Counter[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        written, _, value = word.partition("=")
        name = written.lower()
        if name in _SCHEDULING:
            field, read = _SCHEDULING[name]
            found[field] = line.read(f"SchedulerParameters {name}", value, read, "a whole number")
        elif name in _FLAGS:
            found[_FLAGS[name]] = True
        elif matters("SchedulerParameters", name):
            ignored[f"SchedulerParameters {canonical('SchedulerParameters', written)}"] += 1
    return found


def _without_loops(found: dict[str, Any]) -> dict[str, Any]:
    """Disable backfill for an interval of -1, which means that there is no backfill cycle (slurm.conf(5))."""
    if found.get("interval", 0) < 0:
        return {key: value for key, value in found.items() if key != "interval"} | {"backfill": False}
    return found


_WEIGHTS = {
    "priorityweightage": "age",
    "priorityweightfairshare": "fair_share",
    "priorityweightjobsize": "size",
    "priorityweightpartition": "partition",
    "priorityweightqos": "qos",
}
_PRIORITY_FLAGS = {
    "SMALL_RELATIVE_TO_TIME": ("relative_size", True),
    "NO_FAIR_TREE": ("fair_tree", False),
    "FAIR_TREE": ("fair_tree", True),
    "ACCRUE_ALWAYS": ("always_accrue", True),
    "MAX_TRES": ("billed", "max"),
    "MAX_TRES_GRES": ("billed", "max gres"),
}
_RESETS = ("DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
_LISTS = (
    *("SchedulerType", "PriorityType", "PriorityFlags", "SelectType", "SelectTypeParameters"),
    *("PreemptType", "PreemptMode", "PreemptParameters"),
)
"""Keys whose values are words, which can be unknown."""


def _option_names(text: str) -> Iterator[str]:
    """Yield the words of a list, without their values."""
    return (word for part in text.split(",") if (word := part.partition("=")[0].strip()))


_NOTHING = ("", ConfLine(None, None, {}))
"""Value and line of a key that is not given."""


def general(keys: Mapping[str, tuple[str, ConfLine]], ignored: Counter[str]) -> dict[str, Any]:
    def text(key: str, default: str = "") -> str:
        return keys[key.lower()][0] if key.lower() in keys else default

    def alone(key: str) -> ConfLine:
        value, line = keys.get(key.lower(), _NOTHING)
        return ConfLine(line.path, line.number, {key: value})

    def time(key: str, default: int) -> int:
        return alone(key).time_of(key, default, minutes)

    def number(key: str, default: int) -> int:
        return alone(key).number_of(canonical("", key), default)

    def memory(key: str) -> int:
        return 0 if text(key).upper() == "UNLIMITED" else number(key, 0)

    ignored.update(key for key, (value, _) in keys.items() if matters("", key, value))
    for name in _LISTS:
        ignored.update(f"{name} {canonical(name, word)}" for word in _option_names(text(name)) if matters(name, word))
    parameters = keys.get("schedulerparameters", _NOTHING)
    if "SUSPEND" in text("PreemptMode").upper():
        ignored.pop("PreemptMode GANG", None)  # it resumes suspended jobs
    scheduling = Scheduling(
        **{
            "backfill": text("SchedulerType", "sched/backfill") == "sched/backfill",
            **_without_loops(_scheduling(parameters[0], parameters[1], ignored)),
        }
    )
    weights: dict[str, Any] = {field: number(key, 0) for key, field in _WEIGHTS.items()}
    weights["tres"] = _tres(*keys.get("priorityweighttres", _NOTHING), ignored=ignored)
    flags: dict[str, Any] = {}
    for flag in filter(None, text("PriorityFlags").upper().split(",")):
        if (meaning := _PRIORITY_FLAGS.get(flag.strip())) is not None:
            flags[meaning[0]] = meaning[1]
    kind = text("PriorityType", "priority/multifactor" if any(weights.values()) else "priority/basic")
    half_life, oldest = time("PriorityDecayHalfLife", 7 * 86_400 * MICROSECOND), time("PriorityMaxAge", -1)
    reset: Any = text("PriorityUsageResetPeriod").upper()
    priority = Priority(
        kind="basic" if kind == "priority/basic" else "multifactor",
        half_life=0 if half_life >= NEVER else half_life,
        oldest=7 * 86_400 * MICROSECOND if oldest < 0 else oldest,
        period=time("PriorityCalcPeriod", 300 * MICROSECOND),
        reset=reset if reset in _RESETS else "",
        favor_small=text("PriorityFavorSmall", "NO").upper() == "YES",
        dampening=max(1, number("FairShareDampeningFactor", 1)),
        **weights,
        **flags,
    )
    select, resources = text("SelectType", "select/cons_tres"), text("SelectTypeParameters").upper()
    enforce = text("AccountingStorageEnforce").lower().replace(" ", "").split(",")
    return {
        "scheduling": scheduling,
        "priority": priority,
        "memory": "MEMORY" in resources,
        "default_memory": memory("DefMemPerNode"),
        "default_core_memory": memory("DefMemPerCPU"),
        "most_memory": memory("MaxMemPerNode"),
        "least_loaded": "CR_LLN" in [word.strip() for word in resources.split(",")],
        "whole_nodes": select == "select/linear",
        "preemption": _preemption(text, time, number("MaxBatchRequeue", 5)),
        "enforce": bool({"limits", "safe", "all", "1"} & set(enforce)) or "qos" in enforce,
        "associations_only": bool({"associations", "limits", "qos", "safe", "wckeys", "all", "1"} & set(enforce)),
        "safe": "safe" in enforce,
        "licences": _licences(*keys.get("licenses", _NOTHING)),
    }


def _tres(text: str, line: ConfLine, *, ignored: Counter[str]) -> Weights:
    """Return ``PriorityWeightTRES``."""
    expected = "weights such as CPU=1000,Mem=2000,GRES/gpu=3000"
    found, unknown = line.read("PriorityWeightTRES", "" if text == "0" else text, tres_weights, expected)
    ignored.update(f"PriorityWeightTRES {name}" for name in unknown)
    return found


def _licences(text: str, line: ConfLine) -> dict[str, int]:
    """Return the number of each licence in a list such as ``matlab:20,ansys@server:4``; without a number one."""
    found: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in re.split("[,;]", text))):
        name = word.rpartition(":")[0] if ":" in word else word
        count = line.read("Licenses", word, _licence_count, "a name and a number, such as matlab:20")
        found[name] = found.get(name, 0) + count
    return found


def _licence_count(word: str) -> int:
    return integer(word.rpartition(":")[2]) if ":" in word else 1


def _preemption(text: Callable[..., str], time: Callable[[str, int], int], most_requeues: int) -> Preemption:
    """Return ``PreemptType``, ``PreemptMode`` and their parameters (in later versions, ``PreemptParameters``)."""
    kind: Literal["none", "partition", "qos"] = _KINDS.get(text("PreemptType", "preempt/none"), "none")
    modes = [word.strip() for word in text("PreemptMode", "OFF").upper().split(",")]
    parameters = dict(_parameters(text("SchedulerParameters"), "preempt_") | _parameters(text("PreemptParameters"), ""))
    exempt = time("PreemptExemptTime", 0)
    return Preemption(
        kind=kind,
        mode=next((mode for mode in modes if mode in ("REQUEUE", "CANCEL", "SUSPEND")), "OFF"),
        within="WITHIN" in modes,
        exempt=0 if exempt >= NEVER else exempt,  # -1 disables it
        requeue=text("JobRequeue", "1") != "0",
        most_requeues=most_requeues,
        reorder=int(count) if (count := parameters.get("reorder_count", "")).isdecimal() and len(count) < 16 else 1,
        strict_order="strict_order" in parameters,
        youngest_first="youngest_first" in parameters,
    )


_KINDS: Mapping[str, Literal["partition", "qos"]] = {"preempt/partition_prio": "partition", "preempt/qos": "qos"}


def _parameters(text: str, prefix: str) -> dict[str, str]:
    """Return the preemption parameters in a list, without their prefix."""
    found = {}
    for word in text.split(","):
        name, _, value = word.strip().partition("=")
        if name.startswith(prefix) and name.removeprefix(prefix) in _OF_PREEMPTION:
            found[name.removeprefix(prefix)] = value
    return found
