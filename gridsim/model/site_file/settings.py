"""Keys that change a site: ``PriorityWeightAge=5000``, ``partition.long.MaxTime=2-0``, ``qos.gpu.Priority=10``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gridsim.errors import InputError, UnknownNameError, require_known
from gridsim.model.site.vocabulary import check_known, known, sections
from gridsim.model.site_file.syntax import ConfLine

_OWNERS = {"partition": "PartitionName", "qos": "QOS"}

_LINES = ("NodeName", "PartitionName", "DownNodes", "NodeSet", "FrontendName", "Include")
"""Keywords that begin a line with other keywords."""

_OLD_NAMES = {"Shared": "OverSubscribe"}
"""Fields that Slurm has renamed."""

_LISTS = "lists of options"
"""Section of the keywords of ``slurm.conf`` whose values are lists of options."""


class Setting(NamedTuple):
    """Change of one keyword of ``slurm.conf``, or of one field of a partition or QOS.

    Attributes
    ----------
    section : str
        Kind of line (`gridsim.model.site.vocabulary`): ``PartitionName``, ``QOS``, or empty.
    owner : str
        Name of the partition or QOS; empty for a keyword.
    key : str
        Keyword or field as the manual spells it.
    sign : str
        ``+`` to add or replace options of a list, ``-`` to remove them; empty to replace the value.
    value : str
        The value.
    """

    section: str
    owner: str
    key: str
    sign: str
    value: str

    @classmethod
    def parsed(cls, text: str, value: str, parameters: Collection[str] = ()) -> Setting:
        """Return the setting of a key and a value; *parameters* are further known keys, for errors.

        Raises
        ------
        InputError
            For an unknown key, an empty value, and ``+`` or ``-`` on a keyword that is not a list of options.

        Examples
        --------
        >>> Setting.parsed("schedulerparameters+", "bf_interval=10")
        Setting(section='', owner='', key='SchedulerParameters', sign='+', value='bf_interval=10')
        >>> Setting.parsed("partition.v1.2.MaxTime", "2-0")[:3]
        ('PartitionName', 'v1.2', 'MaxTime')
        """
        key, sign = (text[:-1].strip(), text[-1]) if text.endswith(("+", "-")) else (text, "")
        kind, dot, rest = key.partition(".")
        owner, _, name = rest.rpartition(".")
        if not dot:
            section, word = "", check_known("", key, "key of a site", besides=parameters)
        elif kind.lower() not in _OWNERS:
            raise UnknownNameError(f"owner in '{key}'", kind, _OWNERS)
        elif not owner or not name:
            raise InputError(f"has no {'field' if owner else 'name'}; expected {kind}.NAME.KEY", field=text)
        else:
            section = _OWNERS[kind.lower()]
            word = check_known(section, name, f"field of a {kind.lower()}")
        if word.name in (*_LINES, "Name"):
            raise InputError(
                "defines a line, which a variant cannot change; expected a keyword of one value", field=key
            )
        if sign and (dot or not known(_LISTS, key)):
            raise InputError(f"is not a list of options; expected {key}=VALUE", field=text)
        if not value and (sign or not known(_LISTS, key)):
            raise InputError("is empty; expected a value", field=text)
        return cls(section, owner, _OLD_NAMES.get(word.name, word.name), sign, value)

    def __str__(self) -> str:
        """Return the key."""
        kind = next((kind for kind, section in _OWNERS.items() if section == self.section), "")
        return ".".join(filter(None, (kind, self.owner, self.key)))

    def applied(self, old: str) -> str:
        """Return the new value of a keyword.

        Raises
        ------
        InputError
            For an unknown option to add, and for one to remove that the old value does not have.

        Examples
        --------
        >>> Setting.parsed("SchedulerParameters+", "bf_interval=10,defer").applied("bf_interval=30,bf_window=60")
        'bf_interval=10,bf_window=60,defer'
        >>> Setting.parsed("SchedulerParameters-", "bf_interval").applied("bf_interval=30,bf_window=60")
        'bf_window=60'
        """
        if not self.sign:
            return self.value
        options = _options(old)
        for name, option in _options(self.value).items():
            if self.sign == "+":
                if self.key in sections():
                    check_known(self.key, name, f"option of {self.key}")
                options[name] = option
            elif name not in options or option.lower() not in (name, options[name].lower()):
                raise InputError(f"removes '{option}', which '{old}' does not contain", field=f"{self.key}-=")
            else:
                del options[name]
        return ",".join(options.values())

    def without_effect(self, old: str = "", new: str = "") -> Iterator[str]:
        """Yield the key, or the changed options, if the simulation does not model them."""
        word = known(self.section, self.key)
        if word is None or not word.followed:
            yield f"{self.section} {self.key}".strip()
        elif not self.section and self.key in sections():
            before, after = _options(old), _options(new)
            changed = [known(self.key, name) for name in before | after if before.get(name) != after.get(name)]
            yield from (f"{self.key} {option.name}" for option in changed if option and not option.followed)


def _options(text: str) -> dict[str, str]:
    """Return the options of a list by name, in lower case and without a value."""
    found = filter(None, (part.strip() for part in re.split("[,;]", text)))
    return {re.split("[=:]", option)[0].strip().lower(): option for option in found}


def settings_of(changes: Mapping[str, str], parameters: Collection[str] = ()) -> tuple[Setting, ...]:
    """Return the settings of a variant by key; a key with ``+`` or ``-`` at its end changes a list.

    Parameters
    ----------
    changes : mapping of str to str
        Values by key.
    parameters : collection of str
        Keys that are no settings.

    Raises
    ------
    InputError
        For an invalid key or value, and for a key that is given twice.
    """
    found = [Setting.parsed(key, value, parameters) for key, value in changes.items() if key not in parameters]
    signs: dict[str, list[str]] = {}
    for it in found:
        of_key = signs.setdefault(str(it), [])
        if it.sign in of_key or "" in of_key or (of_key and not it.sign):
            raise InputError("is given twice; expected one value", field=str(it))
        of_key.append(it.sign)
    return tuple(found)


def change_keywords(keys: dict[str, tuple[str, ConfLine]], settings: Iterable[Setting]) -> list[str]:
    """Change keywords of ``slurm.conf`` by their names in lower case; return those without effect."""
    found: list[str] = []
    for it in settings:
        if not it.section:
            old = keys[it.key.lower()][0] if it.key.lower() in keys else ""
            keys[it.key.lower()] = it.applied(old), ConfLine(None, None, {})
            found += it.without_effect(old, keys[it.key.lower()][0])
    return found


def change_partitions(
    lines: list[tuple[ConfLine, str, dict[str, str]]], settings: Iterable[Setting]
) -> tuple[list[str], str | None]:
    """Change fields in the lines of partitions; return those without effect, and the new default partition.

    Raises
    ------
    UnknownNameError
        For a partition that does not exist.
    """
    found: list[str] = []
    default = None
    for it in settings:
        if it.section == _OWNERS["partition"]:
            names = [name for _, name, _ in lines]
            require_known("partition", names, it.owner)
            at = names.index(it.owner)
            lines[at] = ConfLine(None, None, {}), it.owner, lines[at][2] | {it.key.lower(): it.value}
            found += it.without_effect()
            default = it.owner if (it.key, it.value.upper()) == ("Default", "YES") else default
    return found, default
