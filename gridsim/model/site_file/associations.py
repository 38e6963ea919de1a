"""Accounts and users with shares, limits and usage; QOS (``sacctmgr``, ``sshare``); system groups (``getent``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Association, Qos
from gridsim.model.site.vocabulary import canonical, matters
from gridsim.model.site_file.syntax import decimal, integer, limit, lines_of, minutes, table, with_limits

ASSOCIATION_COMMANDS = (
    "'sacctmgr dump CLUSTER file=assoc.cfg', 'sacctmgr -P show assoc tree' or 'sshare -alP' show the hierarchy"
)


def read_associations(path: str | Path) -> tuple[tuple[Association, ...], Counter[str]]:
    """Return accounts and users with shares and limits, and the number of occurrences of limits that are not modelled.

    Four forms are supported: the file of ``sacctmgr dump``, ``sacctmgr -P show assoc tree`` and ``sshare -alP``
    (leading spaces define the hierarchy; the latter has shares and usage but no limits), and any ``|``-separated list
    with a column ``ParentName``. Plain ``sacctmgr -P show assoc`` does not contain the hierarchy of accounts. It is
    accepted only if no account but the root has another one.
    """
    path = Path(path)
    lines = lines_of(path, "the output of sacctmgr or sshare")
    ignored: Counter[str] = Counter()
    if any(line.startswith(("Cluster - ", "Parent - ")) for line in lines):
        return _dumped(path, lines, ignored), ignored
    return _listed(path, lines, ignored), ignored


_NAMES = {
    "fairshare": "shares",
    "share": "shares",
    "rawshares": "shares",
    "maxjobs": "most_jobs",
    "maxsubmitjobs": "most_submitted",
    "maxsubmit": "most_submitted",
    "grpjobs": "group_jobs",
    "grpsubmitjobs": "group_submitted",
    "grpsubmit": "group_submitted",
    "maxwalldurationperjob": "longest",
    "maxwall": "longest",
    "defaultqos": "default_qos",
    "grpcpus": "group_cores",
    "maxcpus": "most_cores",
    "maxcpusperjob": "most_cores",
    "maxnodes": "most_nodes",
    "maxnodesperjob": "most_nodes",
}
_TRES = {
    "grptres": "group",
    "maxtres": "job",
    "maxtresperjob": "job",
    "maxtrespernode": "node",
    "grptresmins": "group_minutes",
    "grptresrunmins": "group_run_minutes",
    "grptresrunmin": "group_run_minutes",
    "maxtresmins": "job_minutes",
    "maxtresminsperjob": "job_minutes",
}
_OLD = {
    "grpnodes": ("group", "node"),
    "grpmemory": ("group", "mem"),
    "grpcpumins": ("group_minutes", "cpu"),
    "grpcpurunmins": ("group_run_minutes", "cpu"),
    "maxcpumins": ("job_minutes", "cpu"),
    "maxcpuminsperjob": ("job_minutes", "cpu"),
}
"""Names of limits of one resource before version 15.08 (resource_limits.html)."""

ASSOCIATION_LIMITS = tuple(key for key in (*_NAMES, *_TRES, *_OLD) if "share" not in key and key != "defaultqos")
"""Keys of limits of an association."""


def association_fields(
    words: Mapping[str, str], ignored: Counter[str], where: tuple[Path | None, int | None] = (None, None)
) -> dict[str, Any]:
    """Return the fields of an association, from words with keys in lower case; for limits see `with_limits`."""
    found: dict[str, Any] = {}
    for key, text in words.items():
        if not text:
            continue
        field = _NAMES.get(key)
        try:
            if field == "shares":
                found[field] = PARENT if text.lower() == "parent" else int(decimal(text))
            elif field == "longest":
                found[field] = minutes(text)
            elif field == "default_qos":
                found[field] = text
            elif field is not None:
                found[field] = None if integer(text) < 0 else integer(text)
            else:
                _limit_resource("association", key, text, (_TRES, _OLD), found, ignored)
                if "node" in (of_job := found.get("tres", {}).get("job", {})):
                    found["most_nodes"] = of_job.pop("node")
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=where[0], line=where[1], field=key) from error
    return found


def _limit_resource(
    section: str,
    key: str,
    text: str,
    limits: tuple[Mapping[str, str], Mapping[str, tuple[str, str]]],
    found: dict[str, Any],
    ignored: Counter[str],
) -> None:
    """Set a limit of resources, under its current or an old name; count a key that is not modelled."""
    name, (lists, old) = f"{section} {canonical(section, key)}", limits
    if key in lists:
        limit(name, text, lists[key], found, ignored)
    elif key in old:
        kind, resource = old[key]
        limit(name, f"{resource}={text}", kind, found, ignored)
    elif matters(section, key, text):
        ignored[name] += 1


def _dumped(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Return the associations of a file written by ``sacctmgr dump``."""
    found: list[Association] = [Association("root")]
    parent = "root"
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        matched = re.match(r"(Cluster|Parent|Account|User) - '([^']*)'(.*)$", line)
        if matched is None:
            raise InputError(
                f"'{line[:60]}' does not match Cluster, Parent, Account or User - 'name':…", path=path, line=number
            )
        kind, name, rest = matched.groups()
        words = {key.lower(): value.strip("'") for key, value in re.findall(r":([^=:]+)=('[^']*'|[^:]*)", rest)}
        limits = with_limits(association_fields(words, ignored, (path, number)))
        if kind == "Parent":
            if name not in {each.account for each in found if not each.user}:
                raise InputError(f"'{name}' is not an earlier account", path=path, line=number, field="Parent")
            parent = name
        elif kind == "Cluster":
            found[0] = replace(found[0], **limits)
        elif kind == "Account":
            found.append(Association(name, parent=parent, **limits))
        else:
            found.append(Association(parent, user=name, **limits))
    return tuple(found)


def _listed(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Return the associations of a list with columns."""
    rows = list(table(path, lines, ("account", "user")))
    if not rows:
        raise InputError("has no association; expected lines below the header", path=path)
    if "parentname" not in rows[0][1] and not any(row["account"].startswith(" ") for _, row in rows):
        deep = {row["account"] for _, row in rows if not row["user"] and row["account"] != "root"}
        if len(deep) > 1:
            raise InputError(f"does not contain the hierarchy of accounts; {ASSOCIATION_COMMANDS}", path=path)
    clusters = sorted({row.get("cluster", "") for _, row in rows} - {""})
    if len(clusters) > 1:
        message = f"lists {len(clusters)} clusters ({', '.join(clusters)}); expected one"
        raise InputError(f"{message}: sacctmgr -P show assoc tree cluster=NAME", path=path, field="Cluster")
    found: list[Association] = []
    above: list[str] = []
    for number, row in rows:
        account, user = row["account"].strip(), row["user"].strip()
        depth = len(row["account"]) - len(row["account"].lstrip(" "))
        words = {key: value for key, value in row.items() if key not in ("account", "user", "parentname")}
        usage = words.pop("rawusage", "")
        if usage:  # a list of sshare, whose column FairShare is the factor, not the shares
            words.pop("fairshare", None)
            words = {key: value for key, value in words.items() if key == "rawshares"}
        limits = with_limits(association_fields(words, ignored, (path, number)))
        try:
            limits["usage"] = decimal(usage or "0")
        except ValueError as error:
            raise InputError(f"is '{usage}'; expected a number", path=path, line=number, field="rawusage") from error
        if user:
            found.append(Association(account, user=user, **limits))
            continue
        del above[depth:]
        named = row.get("parentname") or (above[-1] if above else "root" if account != "root" else "")
        found.append(Association(account, parent=named if account != "root" else "", **limits))
        above.append(account)
    if not any(each.account == "root" and not each.user for each in found):
        found.insert(0, Association("root"))
    return tuple(found)


def read_groups(path: str | Path) -> dict[str, frozenset[str]]:
    """Return the users of each group, from the output of ``getent group`` or ``groups USER …``.

    The former does not contain the users whose primary group it is; the latter does. A file can contain both.

    Raises
    ------
    InputError
        For a line of neither form, with file and line.
    """
    found: dict[str, set[str]] = {}
    for number, line in enumerate(lines_of(Path(path), "the output of 'getent group'"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if entry := re.fullmatch(r"([^:\s]+):[^:]*:\d*:(\S*)", line.strip()):
            found.setdefault(entry[1], set()).update(filter(None, entry[2].split(",")))
        elif entry := re.fullmatch(r"([^:\s]+)\s*:\s+([^:]*)", line.strip()):
            for group in entry[2].split():
                found.setdefault(group, set()).add(entry[1])
        else:
            expected = "expected group:x:number:user,user from 'getent group', or 'user : group group'"
            raise InputError(f"'{line.strip()[:60]}' is not a group; {expected}", path=path, line=number, field="group")
    return {group: frozenset(users) for group, users in found.items()}


def with_usage(associations: tuple[Association, ...], path: str | Path) -> tuple[Association, ...]:
    """Return the associations with their usage in a list of ``sshare``; 0 if it has none."""
    used = {(found.account, found.user): found.usage for found in read_associations(path)[0]}
    return tuple(replace(found, usage=used.get((found.account, found.user), 0.0)) for found in associations)


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
"""Limits by column. ``MaxJobs`` and ``MaxSubmit`` of a QOS are per user (src/sacctmgr/qos_functions.c)."""

_QOS_OF_TRES = {
    **_TRES,
    "maxtrespu": "user",
    "maxtresperuser": "user",
    "maxtrespa": "account",
    "maxtresperaccount": "account",
    "mintres": "least",
    "mintresperjob": "least",
}
_QOS_OLD = {
    **_OLD,
    "mincpus": ("least", "cpu"),
    "mincpusperjob": ("least", "cpu"),
    "maxnodes": ("job", "node"),
    "maxnodesperjob": ("job", "node"),
    "maxnodespu": ("user", "node"),
    "maxnodesperuser": ("user", "node"),
}

QOS_LIMITS = ("maxwall", "maxwalldurationperjob", *_QOS, *_QOS_OF_TRES, *_QOS_OLD)
"""Keys of limits of a QOS."""


def read_qos(path: str | Path) -> tuple[tuple[Qos, ...], Counter[str]]:
    """Return the QOS of ``sacctmgr -P show qos``, and the number of occurrences of limits that are not modelled."""
    path = Path(path)
    lines = lines_of(path, "the output of 'sacctmgr -P show qos'")
    ignored: Counter[str] = Counter()
    found = [
        Qos(row["name"], **with_limits(qos_fields(row, ignored, (path, number))))
        for number, row in table(path, lines, ("name", "priority"))
    ]
    return tuple(found), ignored


def qos_fields(
    row: Mapping[str, str], ignored: Counter[str], where: tuple[Path | None, int | None] = (None, None)
) -> dict[str, Any]:
    """Return the fields of a QOS, from words with keys in lower case; for limits of resources see `with_limits`."""
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
            elif key == "preempt":
                found["preempts"] = tuple(text.split(","))
            elif key == "preemptmode":
                found.update(_mode(text))
            elif key == "gracetime":
                found["grace"] = 0 if text == "00:00:00" else minutes(text)
            elif key == "preemptexempttime":
                found["exempt"] = None if text == "-1" else minutes(text)
            elif key == "flags":
                found["decays"] = "NODECAY" not in text.upper().split(",")
                ignored.update(f"QOS Flags {flag}" for flag in text.split(",") if matters("QOS Flags", flag))
            else:
                _limit_resource("QOS", key, text, (_QOS_OF_TRES, _QOS_OLD), found, ignored)
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=where[0], line=where[1], field=key) from error
    return found


def _mode(text: str) -> dict[str, Any]:
    """Return ``PreemptMode`` of a QOS: OFF, an empty value and Cluster mean that of the site (sacctmgr(1))."""
    words = [word for word in text.upper().split(",") if word not in ("OFF", "", "CLUSTER", "GANG")]
    found: dict[str, Any] = {"within": True} if "WITHIN" in words else {}
    return found | {"mode": next((word for word in words if word in ("REQUEUE", "CANCEL", "SUSPEND")), "")}
