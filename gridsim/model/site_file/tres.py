"""Lists of trackable resources in Slurm's files: ``cpu=8,mem=100G,gres/gpu:a100=2``.

Sources: tres.html; slurm.conf(5), ``TRESBillingWeights`` and ``PriorityWeightTRES``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gridsim.model.site.tres import BILLING, CPU, GPUS, LICENCE, MEMORY, NO_LIMITS, NODE, TresLimits, Weights
from gridsim.model.site_file.words import decimal, integer

__all__ = ["limit", "mebibytes", "named", "weights", "with_limits"]

_BY_NUMBER = {"1": CPU, "2": MEMORY, "4": NODE, "5": BILLING}
"""Numbers of those that each accounting database has (tres.html, ``sacctmgr show tres``)."""
_UNITS = "KMGTP"


def named(word: str) -> str | None:
    """The name of a resource as it is known here; None for one that is not modelled.

    Examples
    --------
    >>> named("Mem"), named("GRES/gpu:A100"), named("license/Matlab"), named("bb/cray")
    ('mem', 'gres/gpu:A100', 'license/Matlab', None)
    """
    word = _BY_NUMBER.get(word, word)
    kind, slash, name = word.partition("/")
    if not slash:
        return kind.lower() if kind.lower() in (CPU, MEMORY, NODE, BILLING) else None
    if kind.lower() + slash == LICENCE:
        return LICENCE + name if name else None
    name, colon, rest = name.partition(":")
    plain = f"{kind}/{name}".lower()
    return plain + colon + rest if plain == GPUS and bool(colon) == bool(rest) else None


def words(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of a list."""
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        yield name.strip(), value.strip()


def weights(text: str) -> tuple[Weights, list[str]]:
    """Weights of a list, of memory for each MiB, and the names in it that are not modelled.

    "The weighted amount of a resource can be adjusted by adding a suffix of K,M,G,T or P after the billing weight"
    (slurm.conf(5)): ``Mem=0.25G`` is a quarter for each GiB.

    Raises
    ------
    ValueError
        For a weight that is none.

    Examples
    --------
    >>> weights("CPU=1.0,Mem=0.25G,GRES/gpu=2.0,bb/cray=1")
    ((('cpu', 1.0), ('mem', 0.000244140625), ('gres/gpu', 2.0)), ['bb/cray'])
    """
    found, unknown = {}, []
    for word, value in words(text):
        number = re.fullmatch(rf"([-+]?(?:\d+\.?\d*|\.\d+))([{_UNITS}]?)", value, re.IGNORECASE)
        if number is None:
            raise ValueError(value)
        weight, name = decimal(number[1]), named(word)
        if name is None:
            unknown.append(word)
        else:
            power = _UNITS.index(number[2].upper() or "M") - _UNITS.index("M")
            found[name] = weight / 1024**power if name == MEMORY else weight
    return tuple(found.items()), unknown


_OWN_FIELDS = {
    ("group", CPU): "group_cores",
    ("job", CPU): "most_cores",
    ("user", CPU): "user_cores",
    ("account", CPU): "account_cores",
}
"""Limits that have a field of their own."""


def limit(key: str, text: str, kind: str, found: dict[str, Any], ignored: Counter[str]) -> None:
    """Put down a limit such as ``cpu=8,mem=100G``; memory in MiB where it has no unit, below 0 for none.

    Parameters
    ----------
    key, text : str
        What the limit is told as where a resource of it is not modelled; and the list.
    kind : str
        Field of `TresLimits`.
    found : dict
        Where those go that have fields of their own; the others under ``tres``, by kind.

    Raises
    ------
    ValueError
        For an amount that is none.
    """
    for word, value in words(text):
        name = named(word)
        if name is None:
            ignored[f"{key} {word}"] += 1
            continue
        amount = _amount(value, memory=name == MEMORY)
        if (kind, name) in _OWN_FIELDS:
            found[_OWN_FIELDS[kind, name]] = amount
        else:
            found.setdefault("tres", {}).setdefault(kind, {})[name] = amount


def _amount(text: str, *, memory: bool) -> int | None:
    """A whole number, of memory MiB; None where it is below 0."""
    if text.startswith("-"):
        return None if _amount(text[1:], memory=memory) else 0
    if memory:
        return mebibytes(text)
    if not re.fullmatch(r"\d+", text):
        raise ValueError(text)
    return integer(text)


def mebibytes(text: str) -> int:
    """MiB of an amount of memory as Slurm writes it; a number alone is MiB already, and parts count as whole ones.

    Raises
    ------
    ValueError
        For a text that is no amount.

    Examples
    --------
    >>> mebibytes("4096"), mebibytes("32G"), mebibytes("1K")
    (4096, 32768, 1)
    """
    number = re.fullmatch(rf"(\d+)([{_UNITS}]?)", text, re.IGNORECASE)
    if number is None:
        raise ValueError(text)
    count, power = integer(number[1]), _UNITS.index(number[2].upper() or "M") - _UNITS.index("M")
    return integer(str(count * 1024**power)) if power >= 0 else -(-count // 1024)


def with_limits(found: dict[str, Any], before: TresLimits = NO_LIMITS) -> dict[str, Any]:
    """Fields of an owner; limits of resources replace those that it had *before*, and None removes one."""
    if not (kinds := found.pop("tres", {})):
        return found
    merged = {kind: dict(getattr(before, kind)) | each for kind, each in kinds.items()}
    kept = {
        kind: tuple((name, most) for name, most in each.items() if most is not None) for kind, each in merged.items()
    }
    return found | {"tres": replace(before, **kept)}
