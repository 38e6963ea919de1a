"""Labels of policies in sentences, tables, figures, files and folders."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridsim import registry
from gridsim.errors import InputError
from gridsim.model.site import Notice
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.presets import SITE, checked_label, label_of, policy
from gridsim.run_setup import notices_of as notices_under

_WHEN = frozenset({"boot", "timezone", "epoch"})
"""Parameters that describe the dates of a log, not the policy."""

_LONGEST = 60
"""Largest number of characters in the name of a folder."""

_FOLDERS = re.compile(r"[^=&?(,]*/(?=[^/=&?(,]*\.py\b)")
"""Folders in the path of a plain file, in a spec."""


def labelled(policies: Any) -> dict[str, Any]:
    """Return policies by label: mapping key, part before the first ``=``, whole text, or ``repr`` of an object.

    A single text or object is one policy. Without a label, the shortest distinctive text is used. Plain files lose
    their folders. Omitted are parameters that name files, that describe the log (``boot``, ``timezone``, ``epoch``),
    and that are common to all policies if these are variants of one policy.

    Raises
    ------
    InputError
        If there is no policy, one is given twice, or a label is empty.
    """
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        policies = [policies]
    if isinstance(policies, Mapping):
        named = {checked_label(label): what for label, what in policies.items()}
    else:
        named = _named(policies)
    if not named:
        raise InputError("no policy is given", field="policy")
    return named


SITE_POLICIES = (SITE, "easy", "conservative")
"""Default policies if a site is given."""


def policies_of(policies: Any, site: Any = None, *, default: Sequence[str] = ()) -> dict[str, Any]:
    """Return schedulers by label (`labelled`), with the policy ``site`` of a site (`gridsim.policy.presets.site_of`).

    Without policies, or with the default ones, these are `SITE_POLICIES` if a site is given.
    """
    if policies is None or policies is default:
        policies = default if site is None else SITE_POLICIES
    return {label: policy(what, site) for label, what in labelled(policies).items()}


def _named(policies: Iterable[Any]) -> dict[str, Any]:
    """Return the result of `labelled` for policies that are not a mapping."""
    found = [label_of(what) if isinstance(what, str) else (None, what) for what in policies]
    given = [label for label, _ in found if label is not None]
    for one in given:
        if given.count(one) > 1:
            raise InputError(f"the label '{one}' is given twice; each policy needs a different one", field="policy")
    bare = [what if isinstance(what, str) else repr(what) for label, what in found if label is None]
    for text in bare:
        if bare.count(text) > 1:
            raise InputError(f"'{text}' is given twice; expected different policies", field="policy")
    shown = iter(_shown(bare, [what for _, what in found], given))
    named: dict[str, Any] = {}
    for label, what in found:
        name = next(shown) if label is None else label
        if name in named:
            raise InputError(f"'{name}' is the label of one policy and the name of another", field="policy")
        named[name] = what
    return named


def _shown(bare: Sequence[str], every: Sequence[Any], given: Sequence[str]) -> Sequence[str]:
    """Return names of the policies without a label, each shortened as far as all names remain distinct."""
    texts = [what if isinstance(what, str) else repr(what) for what in every]
    shared, sited = _of_one_kind(texts), [found for text in texts if any(map(_is_met, found := _parameters(text)))]
    of_all = frozenset.intersection(*sited) if sited else frozenset()
    for leave_out in (lambda part: part in of_all and _is_met(part), _is_when, _is_met, shared.__contains__):
        short = [_without(name, leave_out) for name in bare]
        if _apart(short, given):
            bare = short
    short = [_FOLDERS.sub("", name) for name in bare]
    return short if _apart(short, given) else bare


def _apart(names: Sequence[str], given: Sequence[str]) -> bool:
    return len({*names, *given}) == len(names) + len(given)


def _of_one_kind(texts: Sequence[str]) -> frozenset[str]:
    """Return the common parameters of several variants of one policy; empty for different policies.

    Without ``ordering=sjf``, the names ``easy?ordering=sjf`` and ``fcfs?ordering=sjf`` would denote other policies.
    """
    if len(texts) < 2 or len({text.partition("?")[0] for text in texts}) > 1:
        return frozenset()
    return frozenset.intersection(*map(_parameters, texts))


def _parameters(text: str) -> frozenset[str]:
    return frozenset(_parts(text)[1])


def _parts(text: str) -> tuple[str, list[str]]:
    """Return name and parameters of a spec; other text, such as the ``repr`` of an object, is a name as a whole."""
    name, mark, rest = text.partition("?")
    try:
        return name, registry.split(rest, raw=name in registry.RAW) if mark else []
    except InputError:  # reported when the policy is created
        return text, []


def _without(text: str, leave_out: Callable[[str], bool]) -> str:
    """Return a spec without the parameters in *leave_out*, unchanged if there are none."""
    name, parameters = _parts(text)
    if name == SITE:  # its parameters are what differs from the site
        return text
    kept = [part for part in parameters if not leave_out(part)]
    if len(kept) == len(parameters):
        return text
    return "?".join([name, *(["&".join(kept)] if kept else [])])


def _is_met(part: str) -> bool:
    """Return whether a parameter describes a site or a log instead of a policy."""
    return _is_when(part) or _is_file(part.partition("=")[2])


def _is_when(part: str) -> bool:
    return part.partition("=")[0].strip() in _WHEN


def _is_file(text: str) -> bool:
    try:
        return bool(text) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def folders(labels: Iterable[str]) -> dict[str, str]:
    """Return a distinct folder name for each label, of letters, digits, ``-`` and ``_``.

    Names differ in more than case, for file systems that ignore it.

    Examples
    --------
    >>> list(folders(["no preemption", "easy?ordering=sjf", "Easy-ordering-sjf", "../"]).values())
    ['no-preemption', 'easy-ordering-sjf', 'Easy-ordering-sjf-2', 'policy']
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        plain = (
            re.sub(r"[^\w-]+", "-", unicodedata.normalize("NFC", label)).strip("-")[:_LONGEST].strip("-") or "policy"
        )
        number = 1
        while (name := plain if number == 1 else f"{plain}-{number}").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        found[label] = name
    return found


def notices_of(policies: Mapping[str, Any], workload: Workload) -> dict[str, tuple[Notice, ...]]:
    """Return notices by label, for policies with a site configuration.

    The last job is expected to end as in the log.
    """
    latest, end = workload.submit + workload.estimate, workload.logged_end
    last = int((latest if end is None else np.where(end < NEVER, end, latest)).max(initial=0))
    return {
        label: notices_under(policy, workload, last)
        for label, policy in policies.items()
        if capabilities_of(policy).site
    }
