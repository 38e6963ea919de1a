"""Slurm sites from their files: ``slurm.conf``, and the output of ``sacctmgr``, ``sshare`` and ``scontrol``.

Each file has a separate module. Words that are unknown, or that are relevant but not modelled, are counted in
`Site.ignored`; words without an effect on scheduling are not (`gridsim.model.site.vocabulary`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gridsim.model.site import Site
from gridsim.model.site_file.associations import read_associations, read_groups, read_qos, with_usage
from gridsim.model.site_file.conf import GROUPS, read_slurm_conf
from gridsim.model.site_file.reservations import SiteClock, read_reservations
from gridsim.model.site_file.set_limits import SetLimit, set_limits, with_qos
from gridsim.model.site_file.settings import Setting, settings_of
from gridsim.model.site_file.syntax import expanded, minutes

__all__ = [
    "SetLimit",
    "Setting",
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
    "settings_of",
]


def read_site(
    conf: str | Path,
    *,
    assoc: str | Path | None = None,
    qos: str | Path | None = None,
    usage: str | Path | None = None,
    groups: str | Path | None = None,
    settings: Sequence[Setting] = (),
) -> Site:
    """Return the site of a ``slurm.conf`` and of the contents of the accounting database.

    Parameters
    ----------
    conf : path
        Path of the configuration.
    assoc : path, optional
        Associations in a form that `read_associations` supports; by default equal shares and no limits.
    qos : path, optional
        Output of ``sacctmgr -P show qos``.
    usage : path, optional
        Output of ``sshare -alP``: the decayed usage at the start of the simulation.
    groups : path, optional
        Output of ``getent group``: members of the groups of ``AllowGroups``, which is not modelled without it.
    settings : sequence of Setting
        Changed keywords, and changed fields of partitions and QOS.

    Raises
    ------
    InputError
        With the file, the line and the field.

    Notes
    -----
    Reservations have dates; `read_reservations` adds them when the start of the simulation is known.
    """
    site = read_slurm_conf(conf, settings)
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
    return with_qos(replace(site, ignored=dict(ignored)), settings)
