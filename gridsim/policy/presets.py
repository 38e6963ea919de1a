"""Named compositions of policies, and the parser of ``--policy``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gridsim import registry
from gridsim.errors import InputError, UnknownNameError
from gridsim.machine.njit import listen
from gridsim.model.platform import Platform
from gridsim.policy.capabilities import first_of
from gridsim.policy.reservation import Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.registry import Spec

_SPEC = frozenset("?(:&")
"""Characters that cannot occur in a label: before the first ``=`` they mark a parameter of a policy."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A named composition."""

    spec: str
    summary: str
    source: str = ""


PRESETS = {
    "fcfs": Preset("backfilling?ordering=fifo&reserve=strict", "First come, first served, in strict order."),
    "easy": Preset(
        "backfilling?ordering=fifo&reserve=easy",
        "Aggressive backfilling: only the first job in the queue has a reservation.",
        "Lifka 1995",
    ),
    "conservative": Preset(
        "planned?admission=conservative&compress=planned",
        "Conservative backfilling: every job has a reservation that compression never delays.",
        "Feitelson, Weil 1998",
    ),
    "msb": Preset(
        "guaranteed?admission=msb",
        "Guaranteed deadlines: the new job is tried at each position of the plan; the cheapest feasible one is used.",
        "Islam, Balaji, Sadayappan, Panda 2003",
    ),
    "mrt": Preset(
        "guaranteed?admission=mrt",
        "Guaranteed deadlines: a search over orders of all waiting jobs, with limited backtracking.",
        "Islam, Balaji, Sadayappan, Panda 2003",
    ),
    "qops": Preset(
        "guaranteed?admission=qops",
        "Guaranteed deadlines: the last jobs of the plan are rescheduled, with a limited number of repairs.",
        "Islam, Balaji, Sadayappan, Panda 2003",
    ),
    "fqops": Preset(
        "guaranteed?admission=feedback(inner=qops)",
        "QoPS with feedback: if a requested deadline is infeasible, it offers the earliest feasible one.",
        "Islam, Balaji, Sadayappan, Panda 2004",
    ),
    "moldable-greedy": Preset(
        "planned?partition=greedy",
        "Moldable jobs, sized on arrival: each job gets the number of cores with the earliest end.",
        "Cirne, Berman 2000",
    ),
    "moldable-submit": Preset(
        "planned?partition=fair-share(wf=2)",
        "Moldable jobs, sized on arrival, each limited to its share of the machine.",
        "Srinivasan et al. 2002",
    ),
    "moldable-start": Preset(
        "moldable?partition=fair-share(wf=2)&reserve=easy",
        "Moldable jobs, sized at their start, each limited to its share; the oldest blocked job has a reservation.",
        "Srinivasan et al. 2002",
    ),
    "moldable-base": Preset(
        "moldable?partition=fair-share(wf=1)&reserve=easy",
        "moldable-start with a weight factor of 1.",
        "Srinivasan, Krishnamoorthy, Sadayappan 2003",
    ),
    "moldable-combined": Preset(
        "moldable?partition=fair-share(wf=2,weight=sqrt-parallel)&reserve=xfactor(k=4,others=category)",
        "Moldable jobs by square-root shares; the oldest job of each category and long waiters have reservations.",
        "Srinivasan, Krishnamoorthy, Sadayappan 2003",
    ),
    "moldable-combined-2003": Preset(
        "moldable?partition=fair-share(wf=1,weight=sqrt-parallel)&reserve=xfactor(k=4,others=category)",
        "moldable-combined with a weight factor of 1, another reading of the paper: heavy jobs can wait longer.",
        "Srinivasan, Krishnamoorthy, Sadayappan 2003",
    ),
    "moldable-equal": Preset(
        "moldable?partition=fair-share(wf=1,gap=1,weight=equal)&reserve=easy",
        "Equi-partition: moldable jobs, sized at their start; each gets at most an equal share of the machine.",
        "Srinivasan, Krishnamoorthy, Sadayappan 2003, section 4.2",
    ),
    "sjbf": Preset(
        "backfilling?ordering=fifo&reserve=easy&backfill_order=shortest",
        "EASY backfilling, shortest job first.",
        "Tsafrir, Etsion, Feitelson 2007",
    ),
    "easy++": Preset(
        "backfilling?ordering=fifo&reserve=easy&backfill_order=shortest&predict=recent(n=2)&correct=steps",
        "EASY with predicted run times (mean of the user's last two jobs); backfills the shortest job first.",
        "Tsafrir, Etsion, Feitelson 2007",
    ),
    "first-fit": Preset("backfilling?ordering=fifo&reserve=first-fit", "First fit: wide jobs can starve."),
    "depth": Preset("backfilling?ordering=fifo&reserve=depth", "The first k blocked jobs get reservations."),
}


SITE = "site"
"""Name of the policy of the site that ``--site`` describes, with its files and parameters."""

_SITE_KEYS = ("assoc", "qos", "usage", "groups", "reservations", "boot", "epoch", "timezone")
"""Parameters of `Slurm` that describe a site, besides its ``slurm.conf``."""


def site_of(given: str | Mapping[str, Any] | Spec) -> Spec:
    """Return the policy of a site, from ``FILE[,KEY=PATH…]`` as in ``--site``, or a mapping with key ``conf``.

    Raises
    ------
    InputError
        Without a file, for an unknown key, and for a key that is given twice.

    Examples
    --------
    >>> site_of("slurm.conf,assoc=assoc.cfg").parameters
    {'conf': 'slurm.conf', 'assoc': 'assoc.cfg'}
    """
    if isinstance(given, Spec):
        return given
    if isinstance(given, str):
        found: dict[str, str] = {}
        for part in f"conf={given}".split(","):
            name, equals, value = map(str.strip, part.partition("="))
            if not equals or not value or (not found and "=" in value):
                message = f"'{value or part}' is not FILE[,KEY=PATH…]; expected for example slurm.conf,qos=qos.txt"
                raise InputError(message, field=SITE)
            if name in found:
                raise InputError(f"gives {name} twice; expected one value", field=SITE)
            found[name] = value
        given = found
    for name in given:
        if name not in ("conf", *_SITE_KEYS):
            raise UnknownNameError("key of the site", name, ("conf", *_SITE_KEYS))
    if "conf" not in given:
        raise InputError("has no conf; expected the path of a slurm.conf", field=SITE)
    return Spec("slurm", dict(given))


def site_machine(site: Any) -> Platform:
    """Return the machine of a site with its nodes, as for `site_of`."""
    found: Platform = policy(SITE, site).on_nodes()
    return found


def of_site(what: Any, site: Any = None) -> Any:
    """Return the policy ``site`` of a site (`site_of`) as a spec that records its changed keys; others unchanged."""
    spec = registry.parse(label_of(what)[1]) if isinstance(what, str) else what
    if not isinstance(spec, Spec) or spec.name != SITE:
        return what
    if site is None:
        raise InputError("needs a site: --site FILE, site=FILE in Python, or the key site of a recipe", field="site")
    described = site_of(site)
    return Spec(described.name, {**described.parameters, **spec.parameters, "changes": spec.parameters})


def policy(what: Any, site: str | Mapping[str, Any] | Spec | None = None) -> Any:
    """Return a scheduler from a name, specification or object.

    Parameters
    ----------
    what : str, Spec or object
        A preset (``easy``), a scheduler with parameters (``backfilling?ordering=sjf``), a bare ordering (that ordering
        without backfilling), ``file.py:Class`` of a scheduler or an ordering, or an object of one of these kinds. A
        label before a text (``today=slurm?conf=slurm.conf``, see `label_of`) is ignored here.
    site : str, mapping or Spec, optional
        The site of the policy ``site``, as for `site_of`.

    Raises
    ------
    UnknownNameError
        For an unknown name; the message has the nearest name and the list.

    Examples
    --------
    >>> policy("easy?ordering=sjf")
    Backfilling(ordering=ShortestEstimate(), reserve=Easy())
    >>> policy("wfp3")
    Backfilling(ordering=Wfp3(), reserve=Strict())
    """
    what = of_site(what, site)
    spec = registry.parse(label_of(what)[1]) if isinstance(what, str) else what
    if not isinstance(spec, Spec):
        return _as_scheduler(what)
    if spec.name in PRESETS:
        base = registry.parse(PRESETS[spec.name].spec)
        return registry.make("scheduler", _composed(base, spec))
    if registry.is_registered("scheduler", spec.name):
        return registry.make("scheduler", spec)
    if spec.name.endswith(".py") or ".py:" in spec.name or registry.is_registered("ordering", spec.name):
        return _as_scheduler(registry.make("ordering", spec))
    known = {SITE, *PRESETS, *registry.spellings("scheduler"), *registry.spellings("ordering")}
    raise UnknownNameError("policy", spec.name, known)


def label_of(text: str) -> tuple[str | None, str]:
    """Return label and policy of a ``--policy`` text: ``today=slurm?conf=slurm.conf``; None without a label.

    The text before the first ``=`` is a label if it has none of ``?``, ``(``, ``:`` and ``&``.

    Raises
    ------
    InputError
        For an empty label or policy.

    Examples
    --------
    >>> label_of("no preemption=slurm?conf=slurm.conf"), label_of("easy?ordering=sjf")
    (('no preemption', 'slurm?conf=slurm.conf'), (None, 'easy?ordering=sjf'))
    """
    before, equals, what = text.partition("=")
    if not equals or _SPEC.intersection(before):
        return None, text
    label = checked_label(before.strip())
    if not what.strip():
        raise InputError(f"'{text}' has a label but no policy; expected a value such as '{label}=easy'", field="policy")
    return label, what.strip()


def checked_label(label: str) -> str:
    """Return the label if it is valid: printable, with at least one character that is no space.

    Raises
    ------
    InputError
        Otherwise.
    """
    if not isinstance(label, str) or not label.isprintable():
        raise InputError(f"{label!r} is not a label of a policy; expected printable text", field="policy")
    if not label.strip():
        raise InputError("a policy's label is empty; expected a value such as 'today=easy'", field="policy")
    return label


def _composed(base: Spec, spec: Spec) -> Spec:
    """Return the scheduler of a preset with the parameters of a spec: its own, and those of its parts (``depth?k=4``).

    Parameters are applied to the chosen part, so ``easy?reserve=depth&k=4`` is ``depth?k=4``. Parts have parts
    themselves (``fqops?k_factor=3``).
    """
    composed = base
    # Parameters that choose a part precede those that only this part may have.
    for name in sorted(spec.parameters, key=lambda name: registry.kind_of(name) is None):
        known: list[str] = []
        changed = _with(composed, "scheduler", name, spec.parameters[name], known)
        if changed is None:
            raise UnknownNameError(f"parameter of {spec.name}", name, dict.fromkeys(known))
        composed = changed
    return composed


def _with(spec: Spec, kind: str, name: str, value: Any, known: list[str]) -> Spec | None:
    """Return a spec with one more parameter, its own or that of the first part that accepts it; None if none does.

    *known* collects the accepted names.
    """
    thing = registry.find(kind, spec.name)
    takes = registry.parameters(thing)
    registry.check_current(thing, name)
    if name in takes:
        return Spec(spec.name, {**spec.parameters, name: value})
    known += takes
    for slot in takes:
        part_kind, part = registry.kind_of(slot), spec.parameters.get(slot)
        if part_kind is None or not isinstance(part, str | Spec):
            continue
        changed = _with(registry.parse(part) if isinstance(part, str) else part, part_kind, name, value, known)
        if changed is not None:
            return Spec(spec.name, {**spec.parameters, slot: changed})
    return None


def _as_scheduler(what: Any) -> Any:
    listen()  # a user-defined class may have loaded the compiler
    if isinstance(what, type):
        raise InputError(f"{what.__name__} is a class; give an instance: {what.__name__}()", field="policy")
    form = first_of(what, "dispatch", "rank", "pick")
    if form == "dispatch":
        return what
    if form is not None:
        return Backfilling(ordering=what, reserve=Strict())
    raise InputError(f"{what!r} is neither a scheduler (dispatch) nor an ordering (rank or pick)")
