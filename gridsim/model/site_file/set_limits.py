"""Limits of a site set by one line of text, similar to ``sacctmgr modify``: ``qos.gpu.GrpTRES=gres/gpu=14``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gridsim.errors import InputError, UnknownNameError, located, require_known
from gridsim.model.site import Association, Site
from gridsim.model.site.parameters import gpu_type, licence
from gridsim.model.site.vocabulary import canonical
from gridsim.model.site_file.associations import ASSOCIATION_LIMITS, QOS_LIMITS, association_fields, qos_fields
from gridsim.model.site_file.conf import partition_of
from gridsim.model.site_file.settings import Setting
from gridsim.model.site_file.syntax import ConfLine, named, named_values, with_limits

_FIELD = "set-limit"

_PARTITION = {"maxtime": "longest", "maxnodes": "most_nodes", "minnodes": "least_nodes", "maxcpuspernode": "node_cores"}

_SECTIONS = {"qos": "QOS", "account": "association", "user": "association", "partition": "PartitionName"}


class SetLimit(NamedTuple):
    """A limit to set: the kind and name of its owner, the limit as the manual spells it, and the value.

    Examples
    --------
    >>> SetLimit.parsed("qos.gpu.grptres=gres/gpu=14")
    SetLimit(kind='qos', name='gpu', key='GrpTRES', value='gres/gpu=14')
    >>> print(SetLimit.parsed("user.jane.doe.MaxJobs=5"))
    MaxJobs=5 of user jane.doe
    """

    kind: str
    name: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value} of {'QOS' if self.kind == 'qos' else self.kind} {self.name}"

    @classmethod
    def parsed(cls, text: str) -> SetLimit:
        """Parse the limit in a text; dots in the name of the owner belong to the name.

        Raises
        ------
        InputError
            For another form, an unknown kind of owner and an unknown limit.
        """
        head, equals, value = text.strip().partition("=")
        kind, _, rest = head.partition(".")
        name, _, key = rest.rpartition(".")
        if not (equals and value and name and key):
            message = f"'{text}' sets no limit; expected for example qos.gpu.GrpTRES=gres/gpu=14 or user.ann.MaxJobs=-1"
            raise InputError(message, field=_FIELD)
        if kind.lower() not in _SECTIONS:
            raise UnknownNameError("owner of a limit", kind, _SECTIONS)
        section = _SECTIONS[kind.lower()]
        limits: Sequence[str] = {"QOS": QOS_LIMITS, "association": ASSOCIATION_LIMITS}.get(section, tuple(_PARTITION))
        if key.lower() not in limits:
            raise UnknownNameError(f"limit of a {kind.lower()}", key, {canonical(section, each) for each in limits})
        return cls(kind.lower(), name, canonical(section, key), value)


def set_limits(site: Site, text: str) -> Site:
    """Return the site with other limits, several separated by semicolons; a value of -1 removes a limit.

    Raises
    ------
    InputError
        For an owner, a limit or a resource that the site does not have, for an invalid value, and if the site does not
        enforce limits.

    Examples
    --------
    >>> from gridsim.model.site import Qos
    >>> site = Site.of(nodes=2, cores=8, qos=(Qos("low", group_cores=4),))
    >>> set_limits(site, "qos.low.GrpTRES=cpu=12,node=1;qos.low.GrpJobs=3").qos[0].group_cores
    12
    """
    for each in filter(None, (part.strip() for part in text.split(";"))):
        ignored: Counter[str] = Counter()
        it = SetLimit.parsed(each)
        site = set_field(site, it, ignored)
        if ignored:
            raise InputError(f"'{next(iter(ignored))}' is not modelled", field=it.key)
    return site


def with_qos(site: Site, settings: Iterable[Setting]) -> Site:
    """Return the site with changed fields of its QOS.

    Raises
    ------
    InputError
        For a QOS that does not exist, and for an invalid value.
    """
    for it in settings:
        if it.section == "QOS":
            ignored: Counter[str] = Counter()
            with located(field=str(it)):
                site = set_field(site, SetLimit("qos", it.owner, it.key, it.value), ignored)
            more = (*it.without_effect(), *(text for text in ignored if text not in it.without_effect()))
            site = replace(site, without_effect=(*site.without_effect, *more))
    return site


def set_field(site: Site, it: SetLimit, ignored: Counter[str]) -> Site:
    """Return the site with one limit, or another field of a QOS; count what is not modelled."""
    if it.kind == "partition":
        site.partition(it.name)  # raises for an unknown partition
        with located(field=it.key):
            made = partition_of(ConfLine(Path(), 0, {it.key: it.value}), it.name, [], ignored)
        value = {(field := _PARTITION[it.key.lower()]): getattr(made, field)}
        partitions = (replace(each, **value) if each.name == it.name else each for each in site.partitions)
        return replace(site, partitions=tuple(partitions))
    if not site.enforce and (it.kind != "qos" or it.key.lower() in QOS_LIMITS):
        message = f"{it}: the site does not enforce limits (AccountingStorageEnforce has no limits)"
        raise InputError(message, field=_FIELD)
    _check_resources(site, it)
    if it.kind == "qos":
        _check_known("QOS", it.name, [each.name for each in site.qos], "qos=FILE")
        return replace(
            site, qos=tuple(_with(each, it, qos_fields, ignored) if each.name == it.name else each for each in site.qos)
        )
    named_ones = [each for each in site.associations if _is_of(each, it)]
    if not named_ones:
        known = {each.user if it.kind == "user" else each.account for each in site.associations}
        _check_known(it.kind, it.name, sorted(known - {""}), "assoc=FILE")
    changed = (_with(each, it, association_fields, ignored) if _is_of(each, it) else each for each in site.associations)
    return replace(site, associations=tuple(changed))


def _is_of(each: Association, it: SetLimit) -> bool:
    """Return whether a limit applies to an association: an account, or all of a user (``ann@physics``: one of them)."""
    if it.kind == "account":
        return not each.user and each.account == it.name
    return bool(each.user) and it.name in (each.user, f"{each.user}@{each.account}")


def _with(owner: Any, it: SetLimit, fields_of: Any, ignored: Counter[str]) -> Any:
    found = fields_of({it.key.lower(): it.value}, ignored)
    return replace(owner, **with_limits(found, owner.tres))


def _check_known(what: str, name: str, known: Sequence[str], file: str) -> None:
    if not known:
        raise InputError(f"the site has no {what}: give the file with these as slurm?{file}", field=_FIELD)
    require_known(what, known, name)


def _check_resources(site: Site, it: SetLimit) -> None:
    """Raise for a limit of GPUs or licences that the site does not have."""
    if "TRES" not in it.key:
        return
    kinds = {node.gpu_kind for node in site.nodes if node.gpus}
    for word, _ in named_values(it.value):
        name = named(word) or ""
        if licence(name) and licence(name) not in site.licences:
            raise UnknownNameError("licence", licence(name), site.licences)
        if name.startswith("gres/gpu") and (not kinds or (gpu_type(name) and gpu_type(name) not in kinds)):
            raise UnknownNameError("type of GPU", word, [f"gres/gpu:{kind}" for kind in kinds])
