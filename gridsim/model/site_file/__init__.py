"""Slurm sites from their own files: ``slurm.conf``, and what ``sacctmgr``, ``sshare`` and ``scontrol`` print.

A room for each file. Words that are unknown, or not followed though they matter, are counted in `Site.ignored`; those
that have nothing to do with scheduling are not (`gridsim.model.site.vocabulary`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from gridsim.model.site import Site
from gridsim.model.site_file.associations import read_associations, read_groups, read_qos, with_usage
from gridsim.model.site_file.conf import GROUPS, read_slurm_conf
from gridsim.model.site_file.reservations import SiteClock, read_reservations
from gridsim.model.site_file.set_limits import SetLimit, set_limits
from gridsim.model.site_file.words import expanded, minutes

__all__ = [
    "SetLimit",
    "SiteClock",
    "expanded",
    "minutes",
    "read_associations",
    "read_groups",
    "read_qos",
    "read_reservations",
    "read_site",
    "read_slurm_conf",
    "set_limits",
]


def read_site(
    conf: str | Path,
    *,
    assoc: str | Path | None = None,
    qos: str | Path | None = None,
    usage: str | Path | None = None,
    groups: str | Path | None = None,
) -> Site:
    """Site of a ``slurm.conf`` and of what the accounting database says.

    Parameters
    ----------
    conf : path
        The configuration.
    assoc : path, optional
        Associations, as `read_associations` takes them; equal shares and no limits where left out.
    qos : path, optional
        Output of ``sacctmgr -P show qos``.
    usage : path, optional
        Output of ``sshare -alP``: the decayed usage with which the simulation begins.
    groups : path, optional
        Output of ``getent group``: who is in the groups of ``AllowGroups``, which is not followed where left out.

    Raises
    ------
    InputError
        Naming the file, the line and the field.

    Notes
    -----
    Reservations have dates; `read_reservations` adds them, once it is known when the simulation begins.
    """
    site = read_slurm_conf(conf)
    ignored = Counter(site.ignored)
    if assoc is not None:
        associations, more = read_associations(assoc)
        ignored.update(more)
        site = replace(site, associations=associations)
    if qos is not None:
        levels, more = read_qos(qos)
        ignored.update(more)
        site = replace(site, qos=levels)
    if usage is not None:
        site = replace(site, associations=with_usage(site.associations, usage))
    if groups is not None:
        site = replace(site, members=read_groups(groups))
        del ignored[GROUPS]
    return replace(site, ignored=dict(ignored))
