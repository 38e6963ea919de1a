"""Shares, limits and usage of accounts and users (``sacctmgr``, ``sshare``); users of system groups (``getent``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.model.site import PARENT, Association
from gridsim.model.site.vocabulary import canonical, matters
from gridsim.model.site_file.tres import limit, with_limits
from gridsim.model.site_file.words import decimal, integer, lines_of, minutes, table

__all__ = ["ASSOCIATION_LIMITS", "association_fields", "read_associations", "read_groups", "with_usage"]

ASSOCIATION_COMMANDS = (
    "'sacctmgr dump CLUSTER file=assoc.cfg', 'sacctmgr -P show assoc tree' or 'sshare -alP' say who is below whom"
)


def read_associations(path: str | Path) -> tuple[tuple[Association, ...], Counter[str]]:
    """Accounts and users with shares and limits, and how often each limit that is not modelled is set.

    Four forms are read: the file of ``sacctmgr dump``, ``sacctmgr -P show assoc tree`` and ``sshare -alP`` (leading
    spaces say who is below whom; the latter knows shares and usage but no limits), and any ``|``-separated list with a
    column ``ParentName``. Plain ``sacctmgr -P show assoc`` does not say which account is below which; it is read where
    no account but the root has another one, and refused otherwise.
    """
    path = Path(path)
    lines = lines_of(path, "what sacctmgr or sshare printed")
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
"""What limits of one resource were called before version 15.08 (resource_limits.html)."""

ASSOCIATION_LIMITS = tuple(key for key in (*_NAMES, *_TRES, *_OLD) if "share" not in key and key != "defaultqos")
"""Keys of limits."""


def association_fields(
    words: Mapping[str, str], ignored: Counter[str], where: tuple[Path | None, int | None] = (None, None)
) -> dict[str, Any]:
    """Fields of an association, from words with keys in lower case; limits of resources as `with_limits` takes them."""
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
            elif key in _TRES:
                limit(f"association {canonical('association', key)}", text, _TRES[key], found, ignored)
                if "node" in (of_job := found.get("tres", {}).get("job", {})):
                    found["most_nodes"] = of_job.pop("node")
            elif key in _OLD:
                kind, name = _OLD[key]
                limit(f"association {canonical('association', key)}", f"{name}={text}", kind, found, ignored)
            elif matters("association", key):
                ignored[f"association {canonical('association', key)}"] += 1
        except ValueError as error:
            raise InputError(f"is '{text}'; expected a number", path=where[0], line=where[1], field=key) from error
    return found


def _dumped(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Associations of a file that ``sacctmgr dump`` wrote."""
    found: list[Association] = [Association("root")]
    parent = "root"
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        matched = re.match(r"(Cluster|Parent|Account|User) - '([^']*)'(.*)$", line)
        if matched is None:
            raise InputError(
                f"'{line[:60]}' is none of Cluster, Parent, Account and User - 'name':…", path=path, line=number
            )
        kind, name, rest = matched.groups()
        words = {key.lower(): value.strip("'") for key, value in re.findall(r":([^=:]+)=('[^']*'|[^:]*)", rest)}
        limits = with_limits(association_fields(words, ignored, (path, number)))
        if kind == "Parent":
            if name not in {each.account for each in found if not each.user}:
                raise InputError(f"'{name}' is no account named before", path=path, line=number, field="Parent")
            parent = name
        elif kind == "Cluster":
            found[0] = replace(found[0], **limits)
        elif kind == "Account":
            found.append(Association(name, parent=parent, **limits))
        else:
            found.append(Association(parent, user=name, **limits))
    return tuple(found)


def _listed(path: Path, lines: Sequence[str], ignored: Counter[str]) -> tuple[Association, ...]:
    """Associations of a list with columns."""
    rows = list(table(path, lines, ("account", "user")))
    if not rows:
        raise InputError("has no association; expected lines below the header", path=path)
    if "parentname" not in rows[0][1] and not any(row["account"].startswith(" ") for _, row in rows):
        deep = {row["account"] for _, row in rows if not row["user"] and row["account"] != "root"}
        if len(deep) > 1:
            raise InputError(f"does not say which account is below which; {ASSOCIATION_COMMANDS}", path=path)
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
    """Users of each group, as ``getent group`` prints them, or ``groups USER …``.

    The former does not name those whose first group it is; the latter does. Both may stand in one file.

    Raises
    ------
    InputError
        For a line of neither form, with file and line.
    """
    found: dict[str, set[str]] = {}
    for number, line in enumerate(lines_of(Path(path), "what 'getent group' printed"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if entry := re.fullmatch(r"([^:\s]+):[^:]*:\d*:(\S*)", line.strip()):
            found.setdefault(entry[1], set()).update(filter(None, entry[2].split(",")))
        elif entry := re.fullmatch(r"([^:\s]+)\s*:\s+([^:]*)", line.strip()):
            for group in entry[2].split():
                found.setdefault(group, set()).add(entry[1])
        else:
            expected = "expected group:x:number:user,user as 'getent group' prints it, or 'user : group group'"
            raise InputError(f"'{line.strip()[:60]}' says no group; {expected}", path=path, line=number, field="group")
    return {group: frozenset(users) for group, users in found.items()}


def with_usage(associations: tuple[Association, ...], path: str | Path) -> tuple[Association, ...]:
    """Associations with the usage that a list of ``sshare`` has for them; none where it has nothing."""
    used = {(found.account, found.user): found.usage for found in read_associations(path)[0]}
    return tuple(replace(found, usage=used.get((found.account, found.user), 0.0)) for found in associations)
