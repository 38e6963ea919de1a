"""Who is in which group of the system, which Slurm asks the system for (slurm.conf(5), ``AllowGroups``)."""

from __future__ import annotations

import re
from pathlib import Path

from gridsim.errors import InputError
from gridsim.model.site_file.words import lines_of

__all__ = ["read_groups"]


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
