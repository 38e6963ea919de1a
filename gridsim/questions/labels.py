"""What policies are called in everything that is told of them: sentences, tables, figures, files and folders."""

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
from gridsim.policy.presets import checked_label, label_of
from gridsim.run_setup import notices_of as notices_under

_WHEN = frozenset({"boot", "timezone", "epoch"})
"""Parameters that say when a log was, and not what a policy does."""

_LONGEST = 60
"""Letters of the name of a folder."""

_FOLDERS = re.compile(r"[^=&?(,]*/(?=[^/=&?(,]*\.py\b)")
"""Folders before the name of a plain file, in a spec."""


def labelled(policies: Any) -> dict[str, Any]:
    """Policies by label: a mapping's keys, what a text has before its first ``=``, a text itself, an object's ``repr``.

    A text or an object alone is one policy.
    Of what has no label as much is shown as tells it apart: plain files lose their folders; parameters are left out
    that name files, that say which log is met (``boot``, ``timezone``, ``epoch``), and that all policies have where
    all are variants of one.

    Raises
    ------
    InputError
        When there is none, one is given twice, or a label is empty.
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


def _named(policies: Iterable[Any]) -> dict[str, Any]:
    """As `labelled`, of what is no mapping."""
    found = [label_of(what) if isinstance(what, str) else (None, what) for what in policies]
    given = [label for label, _ in found if label is not None]
    for one in given:
        if given.count(one) > 1:
            raise InputError(f"the label '{one}' is given twice; each policy needs one of its own", field="policy")
    bare = [what if isinstance(what, str) else repr(what) for label, what in found if label is None]
    for text in bare:
        if bare.count(text) > 1:
            raise InputError(f"'{text}' is given twice; a difference to itself says nothing", field="policy")
    shown = iter(_shown(bare, [what for _, what in found], given))
    named: dict[str, Any] = {}
    for label, what in found:
        name = next(shown) if label is None else label
        if name in named:
            raise InputError(f"'{name}' is the label of one policy and the name of another", field="policy")
        named[name] = what
    return named


def _shown(bare: Sequence[str], every: Sequence[Any], given: Sequence[str]) -> Sequence[str]:
    """Names of the policies without a label, each shortened as far as all names stay apart."""
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
    """Parameters that several policies have in common which are variants of one; of others none.

    Without ``ordering=sjf`` the names ``easy?ordering=sjf`` and ``fcfs?ordering=sjf`` would be those of other policies.
    """
    if len(texts) < 2 or len({text.partition("?")[0] for text in texts}) > 1:
        return frozenset()
    return frozenset.intersection(*map(_parameters, texts))


def _parameters(text: str) -> frozenset[str]:
    return frozenset(_parts(text)[1])


def _parts(text: str) -> tuple[str, list[str]]:
    """Name and parameters of a spec; all of it is the name of what is none, such as the ``repr`` of an object."""
    name, mark, rest = text.partition("?")
    try:
        return name, registry.split(rest) if mark else []
    except InputError:  # told where the policy is made
        return text, []


def _without(text: str, leave_out: Callable[[str], bool]) -> str:
    """A spec without the parameters that are to be left out; as it is where there are none."""
    name, parameters = _parts(text)
    kept = [part for part in parameters if not leave_out(part)]
    if len(kept) == len(parameters):
        return text
    return "?".join([name, *(["&".join(kept)] if kept else [])])


def _is_met(part: str) -> bool:
    """Whether a parameter says what is met, a site or a log, and not what is done there."""
    return _is_when(part) or _is_file(part.partition("=")[2])


def _is_when(part: str) -> bool:
    return part.partition("=")[0].strip() in _WHEN


def _is_file(text: str) -> bool:
    try:
        return bool(text) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def folders(labels: Iterable[str]) -> dict[str, str]:
    """Name of a folder for each label: its letters, digits, ``-`` and ``_``, ``-`` for all else; each name once.

    Names differ in more than capitals, for file systems that know none.

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
    """Notices by label, of those policies that know a site; the last job is expected to end as in the log."""
    latest, end = workload.submit + workload.estimate, workload.logged_end
    last = int((latest if end is None else np.where(end < NEVER, end, latest)).max(initial=0))
    return {
        label: notices_under(policy, workload, last)
        for label, policy in policies.items()
        if capabilities_of(policy).site
    }
