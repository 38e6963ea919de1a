"""Factors of a sweep: values, placeholders in a scenario file, and substitution of values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gridsim import registry
from gridsim.errors import InputError, require_known
from gridsim.policy.presets import label_of as policy_label
from gridsim.policy.presets import site_of

MOST_COMBINATIONS = 1_000_000
"""Largest number of scenarios of a sweep."""

_PLACE = re.compile(r"\{(\w+)(?:\.(\w+))?\}")

_USUAL = {
    "policy": ("policy",),
    "log": ("workload", "file"),
    "cores": ("workload", "cores"),
    "seed": ("options", "seed"),
}
"""Default position of the value of a factor without a placeholder."""


def values_of(name: str, given: Any, path: Path) -> Sequence[Any]:
    """Return the values of a factor: a list, or whole numbers from ``first`` to ``last``.

    Raises
    ------
    InputError
        With the file, the key and the expected value.
    """
    if isinstance(given, Mapping):
        whole = all(type(part) is int for part in given.values())
        if set(given) - {"step"} != {"first", "last"} or not whole or given.get("step", 1) < 1:
            told = f"is {given!r}; expected a list, or whole numbers {{first = 1, last = 30}}"
            raise _wrong(told, path, name)
        first, last, step = given["first"], given["last"], given.get("step", 1)
        if (last - first) // step >= MOST_COMBINATIONS:
            raise _wrong(f"has more than {MOST_COMBINATIONS:,} values from first to last", path, name)
        given = list(range(first, last + 1, step))
    if not isinstance(given, list | tuple) or not given:
        raise _wrong(f"is {given!r}; expected a list of values", path, name)
    if name == "policy":
        given = [_policy(value) for value in given]
    for number, value in enumerate(given):
        label = value.get("name") if isinstance(value, Mapping) else value
        if not isinstance(label, str | int | float) or label in (math.inf, -math.inf) or label != label:
            told = f"is {value!r}; expected text, a number, or a table with a name"
            raise _wrong(told, path, f"{name}[{number}]")
    for label, times in Counter(map(label_of, given)).items():
        if times > 1:
            raise _wrong(f"has {label!r} twice", path, name)
    return tuple(given)


def _wrong(message: str, path: Path, name: str) -> InputError:
    return InputError(message, path=path, field=f"factors.{name}")


def check_exclude(exclude: Sequence[Mapping[str, Any]], factors: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Check that excluded combinations consist of factors and their values.

    Raises
    ------
    InputError
        With the file, the key and the expected value.
    """
    for number, combination in enumerate(exclude):
        place = f"exclude[{number}]"
        if not combination:
            raise InputError("is empty; expected for example {policy = 'easy', load = 1.2}", path=path, field=place)
        require_known(f"factor in {place} of {path.name}", factors, *combination)
        for name, value in combination.items():
            if value not in [label_of(known) for known in factors[name]]:
                told = f"is {value!r}, which is not a value of the factor"
                raise InputError(told, path=path, field=f"{place}.{name}")


def _policy(value: Any) -> Any:
    """Return a policy with a label (``today=slurm?conf=slurm.conf``) as a table with a name."""
    label, spec = policy_label(value) if isinstance(value, str) else (None, value)
    return value if label is None else {"name": label, "policy": spec}


def label_of(value: Any) -> Any:
    return value["name"] if isinstance(value, Mapping) else value


def used(recipe: Any) -> Iterator[str]:
    """Return the names of the factors with placeholders in a scenario."""
    if isinstance(recipe, Mapping):
        for value in recipe.values():
            yield from used(value)
    elif isinstance(recipe, list | tuple):
        for value in recipe:
            yield from used(value)
    elif isinstance(recipe, str):
        yield from (match[1] for match in _PLACE.finditer(recipe))


def with_places(recipe: Mapping[str, Any], factors: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the scenario with a placeholder for each factor; well-known factors need no explicit one.

    Raises
    ------
    InputError
        With the file, the key and the expected value.
    """
    found = {name: dict(value) if isinstance(value, Mapping) else value for name, value in recipe.items()}
    placed = set(used(recipe))
    for name in factors:
        if name in placed:
            continue
        if name not in _USUAL:
            raise _wrong(f"is never used; write {{{name}}} instead of its value", path, name)
        *tables, last = _USUAL[name]
        table = found
        for inner in tables:
            table = table.setdefault(inner, {})
        if last in table:
            told = f"also has a value in the recipe ({'.'.join(_USUAL[name])}); leave out one of them"
            raise _wrong(told, path, name)
        table[last] = f"{{{name}}}"
    return found


def filled(recipe: Any, chosen: Mapping[str, Any]) -> Any:
    """Return the scenario with values in its placeholders.

    Empty list entries, and lists that become empty, are removed.
    """
    if isinstance(recipe, Mapping):
        found = {name: filled(value, chosen) for name, value in recipe.items()}
        return {name: value for name, value in found.items() if value != [] or recipe[name] == []}
    if isinstance(recipe, list | tuple):
        entries = [(value, filled(value, chosen)) for value in recipe]
        return [entry for value, entry in entries if entry != "" or value == ""]
    if not isinstance(recipe, str) or "{" not in recipe:
        return recipe
    alone = _PLACE.fullmatch(recipe)
    if alone:
        return _value(alone, chosen)
    return _PLACE.sub(lambda match: str(_value(match, chosen)), recipe)


def _value(match: re.Match[str], chosen: Mapping[str, Any]) -> Any:
    value = chosen[match[1]]
    if match[2] is None:  # a table may have a key with the factor's name
        return value.get(match[1], value["name"]) if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping) or match[2] not in value:
        raise InputError(f"the value {value!r} of factor '{match[1]}' has no '{match[2]}'", field=f"factors.{match[1]}")
    return value[match[2]]


def files_in(recipe: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of the files that a filled scenario reads."""
    workload, platform = recipe.get("workload", {}), recipe.get("platform", {})
    if "file" in workload:
        yield from [workload["file"]] if isinstance(workload["file"], str) else workload["file"]
    if isinstance(platform, Mapping) and "file" in platform:
        yield platform["file"]
    if str(workload.get("mapping", "")).endswith(".toml"):
        yield workload["mapping"]
    balancer = recipe.get("options", {}).get("balancer")
    specs = (recipe.get("policy"), *map(workload.get, ("model", "format", "users")), balancer)
    if recipe.get("site"):
        yield from _files_of(str(site_of(recipe["site"])))
    parts = (*workload.get("transforms", ()), *recipe.get("metric", ()), *recipe.get("charge", ()))
    for spec in (*specs, *parts):
        if isinstance(spec, str):
            yield from _files_of(spec)


@lru_cache(maxsize=4096)
def _files_of(spec: str) -> tuple[str, ...]:
    return tuple(registry.files_named(spec))
