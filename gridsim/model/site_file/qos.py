"""QOS of ``sacctmgr -P show qos``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.site import Qos
from gridsim.model.site.vocabulary import canonical, matters
from gridsim.model.site_file.tres import limit, with_limits
from gridsim.model.site_file.words import decimal, integer, lines_of, minutes, table

__all__ = ["QOS_LIMITS", "qos_fields", "read_qos"]

_QOS = {
    "grpjobs": "group_jobs",
    "grpsubmit": "group_submitted",
    "grpsubmitjobs": "group_submitted",
    "maxjobs": "user_jobs",
    "maxjobspu": "user_jobs",
    "maxjobsperuser": "user_jobs",
    "maxsubmit": "user_submitted",
    "maxsubmitjobs": "user_submitted",
    "maxsubmitpu": "user_submitted",
    "maxsubmitjobspu": "user_submitted",
    "maxsubmitjobsperuser": "user_submitted",
    "maxjobspa": "account_jobs",
    "maxjobsperaccount": "account_jobs",
    "grpcpus": "group_cores",
    "maxcpus": "most_cores",
    "maxcpusperjob": "most_cores",
    "maxcpuspu": "user_cores",
    "maxcpusperuser": "user_cores",
}
"""Limits by column. Of a QOS ``MaxJobs`` and ``MaxSubmit`` are those of a user (src/sacctmgr/qos_functions.c)."""

_QOS_TRES = {
    "grptres": "group",
    "maxtres": "job",
    "maxtresperjob": "job",
    "maxtrespu": "user",
    "maxtresperuser": "user",
    "maxtrespa": "account",
    "maxtresperaccount": "account",
    "maxtrespernode": "node",
    "mintres": "least",
    "mintresperjob": "least",
    "grptresmins": "group_minutes",
    "grptresrunmins": "group_run_minutes",
    "grptresrunmin": "group_run_minutes",
    "maxtresmins": "job_minutes",
    "maxtresminsperjob": "job_minutes",
}
_QOS_OLD = {
    "mincpus": ("least", "cpu"),
    "mincpusperjob": ("least", "cpu"),
    "grpnodes": ("group", "node"),
    "grpmemory": ("group", "mem"),
    "maxnodes": ("job", "node"),
    "maxnodesperjob": ("job", "node"),
    "maxnodespu": ("user", "node"),
    "maxnodesperuser": ("user", "node"),
    "grpcpumins": ("group_minutes", "cpu"),
    "grpcpurunmins": ("group_run_minutes", "cpu"),
    "maxcpumins": ("job_minutes", "cpu"),
    "maxcpuminsperjob": ("job_minutes", "cpu"),
}
"""What limits of one resource were called before version 15.08 (resource_limits.html)."""

QOS_LIMITS = ("maxwall", "maxwalldurationperjob", *_QOS, *_QOS_TRES, *_QOS_OLD)
"""Keys of limits."""


def read_qos(path: str | Path) -> tuple[tuple[Qos, ...], Counter[str]]:
    """QOS of ``sacctmgr -P show qos``, and how often each limit that is not modelled is set."""
    path = Path(path)
    lines = lines_of(path, "what 'sacctmgr -P show qos' printed")
    ignored: Counter[str] = Counter()
    found = [
        Qos(row["name"], **with_limits(qos_fields(row, ignored, (path, number))))
        for number, row in table(path, lines, ("name", "priority"))
    ]
    return tuple(found), ignored


def qos_fields(
    row: Mapping[str, str], ignored: Counter[str], where: tuple[Path | None, int | None] = (None, None)
) -> dict[str, Any]:
    """Fields of a QOS, from words with keys in lower case; limits of resources as `with_limits` takes them."""
    found: dict[str, Any] = {}
    for key, text in row.items():
        if not text:
            continue
        try:
            if key == "priority":
                found["priority"] = integer(text)
            elif key == "usagefactor":
                found["usage_factor"] = decimal(text)
            elif key in ("maxwall", "maxwalldurationperjob"):
                found["longest"] = minutes(text)
            elif key in _QOS:
                found[_QOS[key]] = None if (most := integer(text)) < 0 else most
            elif key in _QOS_TRES:
                limit(f"QOS {canonical('QOS', key)}", text, _QOS_TRES[key], found, ignored)
            elif key in _QOS_OLD:
                kind, name = _QOS_OLD[key]
                limit(f"QOS {canonical('QOS', key)}", f"{name}={text}", kind, found, ignored)
            elif key == "preempt":
                found["preempts"] = tuple(text.split(","))
            elif key == "preemptmode":
                found.update(_mode(text, ignored))
            elif key == "gracetime":
                found["grace"] = 0 if text == "00:00:00" else minutes(text)
            elif key == "preemptexempttime":
                found["exempt"] = None if text == "-1" else minutes(text)
            elif key == "flags":
                found["decays"] = "NODECAY" not in text.upper().split(",")
                ignored.update(f"QOS Flags {flag}" for flag in text.split(",") if matters("QOS Flags", flag))
            elif matters("QOS", key, text):
                ignored[f"QOS {canonical('QOS', key)}"] += 1
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=where[0], line=where[1], field=key) from error
    return found


def _mode(text: str, ignored: Counter[str]) -> dict[str, Any]:
    """``PreemptMode`` of a QOS: OFF, nothing or Cluster mean that of the site (sacctmgr(1))."""
    words = [word for word in text.upper().split(",") if word not in ("OFF", "", "CLUSTER", "GANG")]
    found: dict[str, Any] = {"within": True} if "WITHIN" in words else {}
    if "SUSPEND" in words:
        ignored["QOS PreemptMode=SUSPEND (its jobs are not preempted)"] += 1
        return found | {"mode": "SUSPEND"}
    return found | {"mode": next((word for word in words if word in ("REQUEUE", "CANCEL")), "")}
