"""Syntax of Slurm's files: lists of hosts, times, ``Key=Value`` lines, lists printed with ``-P``, TRES.

Sources for TRES lists, such as ``cpu=8,mem=100G,gres/gpu:a100=2``: tres.html; slurm.conf(5), ``TRESBillingWeights``
and ``PriorityWeightTRES``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gridsim.errors import InputError, located
from gridsim.files import read_text
from gridsim.model.site.parameters import BILLING, CPU, GPUS, LICENCE, MEMORY, NO_LIMITS, NODE, TresLimits, Weights
from gridsim.model.time import MICROSECOND, NEVER

T = TypeVar("T")


def lines_of(path: Path, expected: str) -> list[str]:
    """Return the lines of a file; *expected* describes the expected file in errors."""
    if not path.exists():
        raise InputError(f"no such file; expected {expected}", path=path)
    return read_text(path, errors="replace").splitlines()


_MOST = 2**53
"""Largest number that is accepted; beyond it, floats cannot represent every integer."""


def integer(text: str) -> int:
    """Return an integer; raise `ValueError` for any other text, and for one beyond 2**53."""
    if abs(value := int(text)) > _MOST:
        raise ValueError(text)
    return value


def decimal(text: str) -> float:
    """Return a finite number; raise `ValueError` for any other text, and for one beyond 2**53."""
    if not abs(value := float(text)) <= _MOST:
        raise ValueError(text)
    return value


def expanded(names: str) -> list[str]:
    """Return the host names in a list in Slurm's syntax.

    Examples
    --------
    >>> expanded("n[1-3,7],login"), expanded("r[1-2]n[08-10]")[:4]
    (['n1', 'n2', 'n3', 'n7', 'login'], ['r1n08', 'r1n09', 'r1n10', 'r2n08'])
    """
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]+|\[[^\]]*\])+", names):
        heads = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            tails = [plain] if plain else [number for span in ranges.split(",") for number in _span(span)]
            if len(heads) * len(tails) > _MOST_NAMES:
                raise InputError(f"'{part[:60]}' lists more than {_MOST_NAMES:,} nodes", field="NodeName")
            heads = [head + tail for head in heads for tail in tails]
        found += heads
    return found


def _span(text: str) -> list[str]:
    low, dash, _ = text.strip().partition("-")
    if not dash:
        return [low]
    try:
        return [str(number).zfill(len(low)) for number in span(text)]
    except ValueError as error:
        raise InputError(f"'{text[:60]}' is not a range of numbers such as 1-8", field="NodeName") from error


_MOST_NAMES = 1_000_000


def span(text: str) -> range:
    """Return the numbers of a range such as ``0-5``, or of one number.

    Raises
    ------
    ValueError
        If the text is neither, or has more than a million numbers.
    """
    low, dash, high = text.strip().partition("-")
    first, last = integer(low), integer(high if dash else low)
    if not (low + (high or "0")).isdigit() or not 0 <= last - first < _MOST_NAMES:
        raise ValueError(text)
    return range(first, last + 1)


class ConfLine:
    """Words of a line by key, with keys in lower case; words that are not read stay in `rest`.

    `spelled` has the original spelling of the keys. Without a path, the words are not from a file.
    """

    def __init__(self, path: Path | None, number: int | None, words: Mapping[str, str]) -> None:
        self.path, self.number = path, number
        self.rest = {key.lower(): value for key, value in words.items()}
        self.spelled = {key.lower(): key for key in words}

    def text(self, key: str, default: str = "") -> str:
        return self.rest.pop(key.lower(), default)

    def number_of(self, key: str, default: int) -> int:
        text = self.text(key)
        return self.read(key, text, integer, "a whole number") if text else default

    def time_of(self, key: str, default: int, read: Callable[[str], int]) -> int:
        text = self.text(key)
        return self.read(key, text, read, "a time such as 30, 00:15:00, 7-0 or UNLIMITED") if text else default

    def read(self, key: str, text: str, reader: Callable[[str], T], expected: str) -> T:
        """Return the value of a text; a `ValueError` of the *reader* becomes an error with the line and *expected*."""
        try:
            return reader(text)
        except ValueError as error:
            raise self.wrong(key, text, expected) from error

    def names(self, key: str, text: str) -> list[str]:
        with located(self.path, line=self.number, field=key):
            return expanded(text)

    def wrong(self, key: str, value: str, expected: str) -> InputError:
        return InputError(f"is '{value}'; expected {expected}", path=self.path, line=self.number, field=key)


def minutes(text: str) -> int:
    """Return a time limit in microseconds, from minutes, minutes:seconds, hours:minutes:seconds or days-hours[:…].

    Examples
    --------
    >>> [minutes(text) // 1_000_000 for text in ("15", "15:30", "00:15:00", "1-0", "2-12:30")]
    [900, 930, 900, 86400, 217800]
    """
    if text.upper() in ("UNLIMITED", "INFINITE", "NONE", "-1"):
        return NEVER
    days, dash, rest = text.partition("-")
    parts = [integer(part) for part in (rest if dash else text).split(":")]
    if len(parts) > 3 or min(parts) < 0:
        raise ValueError(text)
    if dash:
        hours, minute, second = [*parts, 0, 0][:3]
        return _within(((integer(days) * 24 + hours) * 60 + minute) * 60 + second)
    hours, minute, second = (0, *parts, 0) if len(parts) == 1 else (0, *parts) if len(parts) == 2 else tuple(parts)
    return _within((hours * 60 + minute) * 60 + second)


def _within(seconds: int) -> int:
    if not 0 <= seconds < NEVER // MICROSECOND:
        raise ValueError(seconds)
    return seconds * MICROSECOND


_ASKED_FOR = {
    "nodename": "nodenames",
    "timestart": "start",
    "timeend": "end",
    "timeeligible": "eligible",
    "timesubmit": "submit",
    "assocs": "associations",
    "def qos": "defaultqos",
    "def acct": "defaultaccount",
    "def wckey": "defaultwckey",
    "descr": "description",
    "org": "organization",
    "admin": "adminlevel",
    "class": "classification",
    "coord accounts": "coordinators",
    "par name": "parentname",
    "par id": "parentid",
    "qos_raw": "qosrawlevel",
    "grpmem": "grpmemory",
}
"""Columns of `sacctmgr` whose header differs from their name in ``format=``, by header. Abbreviated names are printed
in full, these are not (Slurm, src/sacctmgr/common.c, ``sacctmgr_process_format_list``, 22.05)."""


def table(path: Path, lines: Sequence[str], needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the lines of a ``|``-separated list with a header; keys are in lower case, as in ``format=``."""
    header: list[str] = []
    for number, line in enumerate(lines, start=1):
        cells = line.split("|")
        if not header:
            header = [_ASKED_FOR.get(name, name) for name in (cell.strip().lower() for cell in cells)]
            lacking = [name for name in needed if name not in header]
            if lacking:
                raise InputError(
                    f"has no column {lacking[0]}; expected the header of a list printed with -P",
                    path=path,
                    line=number,
                    field=lacking[0],
                )
        elif line.strip():
            if len(cells) < len(header):
                raise InputError(f"has {len(cells)} fields, the header {len(header)}", path=path, line=number)
            yield number, dict(zip(header, cells, strict=False))


def records(path: Path, lines: Sequence[str], first: str, expected: str) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the line, and the keys and values, of each record in the output of ``scontrol show``.

    Parameters
    ----------
    first : str
        First key of each record; the other lines of a record are indented.
    expected : str
        The command, for errors.
    """
    found: list[tuple[int, list[tuple[str, str]]]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("No ", "#")):
            continue
        pairs = [(key, value.replace("(null)", "")) for key, value in re.findall(r"([A-Za-z][\w/]*)=(\S*)", line)]
        if pairs and pairs[0][0] == first:
            found.append((number, pairs))
        elif pairs and found and line[0].isspace():
            found[-1][1].extend(pairs)
        else:
            what = f"{first}=…" if pairs else "Key=Value"
            raise InputError(f"'{line[:60]}' is not {what}; expected {expected}", path=path, line=number)
    return found


_BY_NUMBER = {"1": CPU, "2": MEMORY, "4": NODE, "5": BILLING}
"""Numbers of the resources that every accounting database has (tres.html, ``sacctmgr show tres``)."""
_UNITS = "KMGTP"


def named(word: str) -> str | None:
    """Return the canonical name of a resource; None for one that is not modelled.

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


def named_values(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a list."""
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        yield name.strip(), value.strip()


def weights(text: str) -> tuple[Weights, list[str]]:
    """Return the weights of a list, of memory per MiB, and the names in it that are not modelled.

    "The weighted amount of a resource can be adjusted by adding a suffix of K,M,G,T or P after the billing weight"
    (slurm.conf(5)): ``Mem=0.25G`` is a quarter for each GiB.

    Raises
    ------
    ValueError
        For an invalid weight.

    Examples
    --------
    >>> weights("CPU=1.0,Mem=0.25G,GRES/gpu=2.0,bb/cray=1")
    ((('cpu', 1.0), ('mem', 0.000244140625), ('gres/gpu', 2.0)), ['bb/cray'])
    """
    found, unknown = {}, []
    for word, value in named_values(text):
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
"""Limits that have a separate field."""


def limit(key: str, text: str, kind: str, found: dict[str, Any], ignored: Counter[str]) -> None:
    """Store a limit such as ``cpu=8,mem=100G``; memory is in MiB without a unit, negative values mean no limit.

    Parameters
    ----------
    key, text : str
        Name of the limit in the counts of resources that are not modelled; and the list.
    kind : str
        Field of `TresLimits`.
    found : dict
        Receives the limits with separate fields, and the others under ``tres``, by kind.

    Raises
    ------
    ValueError
        For an invalid amount.
    """
    for word, value in named_values(text):
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
    """Return an integer, or MiB for memory; None if it is negative."""
    if text.startswith("-"):
        return None if _amount(text[1:], memory=memory) else 0
    if memory:
        return mebibytes(text)
    if not re.fullmatch(r"\d+", text):
        raise ValueError(text)
    return integer(text)


def mebibytes(text: str) -> int:
    """Return the MiB of an amount of memory in Slurm's syntax; a plain number is in MiB, fractions are rounded up.

    Raises
    ------
    ValueError
        For an invalid amount.

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
    """Return the fields of an owner; limits of resources replace those in *before*, and None removes one."""
    if not (kinds := found.pop("tres", {})):
        return found
    merged = {kind: dict(getattr(before, kind)) | each for kind, each in kinds.items()}
    kept = {
        kind: tuple((name, most) for name, most in each.items() if most is not None) for kind, each in merged.items()
    }
    return found | {"tres": replace(before, **kept)}
