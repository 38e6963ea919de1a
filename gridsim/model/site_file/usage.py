"""Decayed usage with which a simulation begins, as ``sshare -alP`` prints it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gridsim.model.site import Association
from gridsim.model.site_file.associations import read_associations

__all__ = ["with_usage"]


def with_usage(associations: tuple[Association, ...], path: str | Path) -> tuple[Association, ...]:
    """Associations with the usage that a list of ``sshare`` has for them; none where it has nothing."""
    used = {(found.account, found.user): found.usage for found in read_associations(path)[0]}
    return tuple(replace(found, usage=used.get((found.account, found.user), 0.0)) for found in associations)
