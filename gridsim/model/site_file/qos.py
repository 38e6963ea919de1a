"""QOS of ``sacctmgr -P show qos``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.site import Qos
from gridsim.model.site_file.words import lines_of, minutes, resources, table

__all__ = ["read_qos"]

_QOS = {
    "grpjobs": "group_jobs",
    "grpsubmit": "group_submitted",
    "grpsubmitjobs": "group_submitted",
    "maxjobspu": "user_jobs",
    "maxjobsperuser": "user_jobs",
    "maxsubmitpu": "user_submitted",
    "maxsubmitjobsperuser": "user_submitted",
    "maxjobspa": "account_jobs",
}
_QOS_TRES = {"grptres": "group", "maxtres": "most", "maxtrespu": "user", "maxtrespa": "account"}
_QOS_QUIET = frozenset(["name", "usagethres", "description", "id"])


def read_qos(path: str | Path) -> tuple[tuple[Qos, ...], Counter[str]]:
    """QOS of ``sacctmgr -P show qos``, and how often each limit that is not modelled is set."""
    path = Path(path)
    lines = lines_of(path, "what 'sacctmgr -P show qos' printed")
    ignored: Counter[str] = Counter()
    return tuple(_qos(path, number, row, ignored) for number, row in table(path, lines, ("name", "priority"))), ignored


def _qos(path: Path, number: int, row: Mapping[str, str], ignored: Counter[str]) -> Qos:
    found: dict[str, Any] = {}
    for key, text in row.items():
        if not text or key in _QOS_QUIET:
            continue
        try:
            if key == "priority":
                found["priority"] = int(text)
            elif key == "usagefactor":
                found["usage_factor"] = float(text)
            elif key == "maxwall":
                found["longest"] = minutes(text)
            elif key in _QOS:
                found[_QOS[key]] = int(text)
            elif key in _QOS_TRES:
                resources(f"QOS {key}", text, _QOS_TRES[key], found, ignored)
            elif key == "preempt":
                found["preempts"] = tuple(text.split(","))
            elif key == "preemptmode":
                found.update(_mode(text, ignored))
            elif key == "gracetime":
                found["grace"] = 0 if text == "00:00:00" else minutes(text)
            elif key == "preemptexempttime":
                found["exempt"] = None if text == "-1" else minutes(text)
            else:
                ignored[f"QOS {key}"] += 1
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=path, line=number, field=key) from error
    found.pop("most_nodes", None)
    return Qos(row["name"], **found)


def _mode(text: str, ignored: Counter[str]) -> dict[str, Any]:
    """``PreemptMode`` of a QOS: OFF, nothing or Cluster mean that of the site (sacctmgr(1))."""
    words = [word for word in text.upper().split(",") if word not in ("OFF", "", "CLUSTER", "GANG")]
    found: dict[str, Any] = {"within": True} if "WITHIN" in words else {}
    if "SUSPEND" in words:
        ignored["QOS PreemptMode=SUSPEND (not modelled: jobs are not preempted)"] += 1
        return found | {"mode": "SUSPEND"}
    return found | {"mode": next((word for word in words if word in ("REQUEUE", "CANCEL")), "")}
