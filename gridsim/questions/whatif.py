"""Simulation of changes (larger machine, higher load, better estimates) under one policy, one run per change.

For the changes see `gridsim.questions.changes`, for the text `gridsim.report.whatif_text`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gridsim.errors import InputError, UnknownNameError, name_of
from gridsim.metrics.agreement import model_failures
from gridsim.metrics.compare import Difference, paired
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import METRICS, cut, metrics
from gridsim.metrics.utilisation import keeps_up
from gridsim.model.platform import Platform
from gridsim.model.site.parameters import CPU, GPUS, JOBS, LICENCE, MEMORY, NODE
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import in_pools
from gridsim.policy.presets import SITE, of_site, site_machine
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import fitted, machine, nodes_to
from gridsim.questions.calibrate import own_policy, replay_of
from gridsim.questions.changes import (
    NOW,
    Change,
    Effect,
    LimitEffect,
    PartEffect,
    WhatIf,
    changes_of,
    job_parts,
    site_changes_of,
    sized,
)
from gridsim.questions.labels import labelled
from gridsim.questions.replications import settled
from gridsim.questions.run_replications import Arm, Family, PendingReplicas, families
from gridsim.record import Record
from gridsim.result import Result
from gridsim.run_setup import with_clock
from gridsim.scenario import jobs_of
from gridsim.simulation import run
from gridsim.workers import Awaited, Known, Workers, crew
from gridsim.workload.read import Paths
from gridsim.workload.transform.flurries import Flurries, WithoutFlurries, kept


def whatif(
    workload: Workload | Paths,
    changes: Sequence[Change] | None = None,
    *,
    policy: Any = None,
    platform: Platform | None = None,
    site: Any = None,
    options: Run | None = None,
    add_cores: Sequence[float | str] = (),
    add_nodes: Sequence[str] = (),
    add_pool: Sequence[str] = (),
    set_limit: Sequence[str] = (),
    load_times: Sequence[float] = (),
    estimates: Sequence[float] = (),
    together: bool = False,
    halve: str | None = None,
    node: int | None = None,
    now: Record | None = None,
    label: str | None = None,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    lenient: bool = False,
    shake: int = 0,
    shake_by: int | None = None,
    resample: int = 0,
    resample_load: float | None = None,
    flurries: Flurries = "keep",
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> WhatIf:
    """Simulate the unchanged workload and each change: a larger machine, a higher load, better estimates.

    Parameters
    ----------
    workload : Workload or path
        The jobs; a log file is read with the default rules.
    changes : sequence of Change, optional
        Changes from `changes_of`; by default those of the following parameters, and without any the default changes.
    policy : str or object, optional
        Policy of all runs; by default ``site`` if *site* is given, else ``easy``.
    platform : Platform, optional
        The unchanged machine; by default that of the policy's site, else of the size that the workload's source states.
    site : str or mapping, optional
        The site of the policy ``site``, as for `gridsim.compare`.
    options : Run, optional
        Options of all runs: overrun, instant, seed, partitions.
    add_cores : sequence of float or str
        Growth of the machine: a fraction of it, or as text a percentage or a number of cores (``25%``, ``-10%``,
        ``64``).
    add_nodes, add_pool, set_limit : sequence of str
        More nodes of a partition (``gpu:+4``), units of a licence or pool (``matlab:+10``), and limits, as in
        ``gridsim whatif``.
    load_times, estimates : sequence of float
        Factors of the load, and factors by which overestimation is divided.
    together : bool
        Whether *add_nodes*, *add_pool* and *set_limit* are one change.
    halve : str, optional
        Metric for which the smallest sufficient machine is searched, as by `cores_for`.
    node : int, optional
        Step of this search, cores.
    now : Record, optional
        Record of the unchanged case, if it exists.
    label : str, optional
        Label of the policy; by default from `gridsim.questions.labels.labelled`.
    bound, warmup, cooldown : float
        As for `gridsim.metrics.summary.metrics`, s.
    lenient : bool
        Whether a change that the policy rejects is reported and omitted instead of raising an error.
    shake, shake_by, resample, resample_load, flurries : int, float, str
        Additional runs on replicas of the workload, and without bursts of jobs by one user, as for `gridsim.compare`.
        Each change is applied to the shaken or resampled jobs.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    workers : int or Workers
        Number of worker processes, each with one change at a time; 1 uses only this process. Results do not depend on
        it.

    Returns
    -------
    WhatIf
        Metrics and paired differences for each change, the unchanged case first.

    Raises
    ------
    InputError
        For an invalid change, and a change that the policy rejects unless *lenient*.

    Examples
    --------
    >>> from gridsim.workload.synthetic.lublin import default_workload
    >>> log = default_workload(jobs=200, load=0.9, cores=64, seed=1)
    >>> [one.label for one in whatif(log).outcomes]  # doctest: +NORMALIZE_WHITESPACE
    ['as it is', '70 cores (+9.4 %)', '80 cores (+25 %)', '96 cores (+50 %)', 'load times 1.2',
     'estimates 2 times better']
    >>> found = whatif(log, add_cores=["25%"])
    >>> round(found["80 cores (+25 %)"].numbers["wait_mean"] / found["as it is"].numbers["wait_mean"], 2)
    0.32
    """
    policy = policy or ("easy" if site is None else SITE)
    label = label or next(iter(labelled([policy if isinstance(policy, str) else make_policy(policy)])))
    policy = of_site(policy, site)
    platform = site_machine(site) if platform is None and site is not None else platform
    options, cuts = options or Run(), {"bound": bound, "warmup": warmup, "cooldown": cooldown}
    scheduler = make_policy(policy)
    workload = jobs_of(workload, [scheduler])
    platform = platform or machine(workload, policies=[scheduler])
    platform = in_pools(workload, platform, [scheduler], options.partitions)
    if changes is None:
        sizes: dict[str, Any] = {"cores": add_cores, "loads": load_times, "estimates": estimates}
        sizes["site"] = site_changes_of(add_nodes, add_pool, set_limit)
        unasked = halve is not None and not any(sizes.values())
        changes = [] if unasked else changes_of(workload, platform, **sizes, together=together, policies=[scheduler])
    asked: dict[str, Any] = {"shake": shake, "shake_by": shake_by, "resample": resample}
    replicated = families(**asked, resample_load=resample_load, seed=options.seed)
    whole = kept(workload, flurries)
    if whole is not workload:
        changes = [each.of(workload, WithoutFlurries().apply) for each in changes]
        now = None
    how: dict[str, Any] = {"policy": policy, "platform": platform, "options": options, "progress": progress}
    with crew(workers, share=[whole]) as team:
        if halve is not None:
            told: dict[str, Any] = {"platform": platform, "options": options, "progress": progress}
            enough = cores_for(whole, policy=policy, metric=halve, node=node, workers=team, **told)
            changes = [*(one for one in changes if one.label != enough.label), enough]
        pending = Pending.of(whole, changes, team, now=now, name=label, **how)
        pending = pending.besides(whole, team, families=replicated, both=flurries == "both", cuts=cuts, **how)
        as_it_is = {label: Result(pending.records[NOW].result(), platform, name_of(scheduler))}
        about: Any = {"policies": {label: scheduler}, "options": options, "progress": progress}
        replay = team.submit(replay_of, as_it_is, own_policy({label: scheduler}), **about)
        return replace(pending.whatif(label, cuts, lenient=lenient), replay=replay.result())


@dataclass(frozen=True, slots=True)
class Pending:
    """Runs of `whatif`, submitted to workers immediately; `Pending.whatif` waits for the results.

    Attributes
    ----------
    changes : tuple of Change
        Changes, the unchanged case first.
    records : mapping of str to Awaited
        Pending records by label.
    replicated : tuple of PendingReplicas
        Runs on replicas of the workload.
    cleaned : Pending or None
        Runs without bursts of jobs by one user.
    policy : str or object
        Policy of changes that do not change the policy.
    """

    changes: tuple[Change, ...]
    records: Mapping[str, Awaited[Record]]
    replicated: tuple[PendingReplicas, ...] = ()
    cleaned: Pending | None = None
    policy: Any = "easy"

    @classmethod
    def of(
        cls,
        workload: Workload,
        changes: Sequence[Change] | None,
        workers: Workers,
        *,
        policy: Any,
        platform: Platform | None = None,
        options: Run | None = None,
        now: Record | None = None,
        name: str = "the policy",
        progress: Callable[[str, int], None] | None = None,
    ) -> Pending:
        """Submit the runs; parameters as for `whatif`; *name* is the name of the policy for the user."""
        platform, options = platform or machine(workload), options or Run()
        changes = changes_of(workload, platform) if changes is None else list(changes)
        labels = [each.label for each in changes]
        for each in labels:
            if labels.count(each) > 1:
                raise InputError(f"'{each}' is given twice; expected different changes")

        def record(change: Change) -> Awaited[Record]:
            told = None if progress is None else partial(progress, change.label)
            asked = policy if change.policy is None else change.policy
            own = options if change.failures is None else replace(options, failures=change.failures)
            what = (change.workload, change.platform, asked, own)
            return workers.submit(record_under, *what, name=name, progress=told)

        as_it_is = Change(NOW, platform, workload)
        given = {NOW: Known(now)} if now is not None else {}
        return cls(
            (as_it_is, *changes),
            given | {each.label: record(each) for each in (as_it_is, *changes) if each.label not in given},
            policy=policy,
        )

    def besides(
        self,
        workload: Workload,
        workers: Workers,
        *,
        families: Sequence[Family],
        both: bool,
        cuts: Mapping[str, Any],
        policy: Any,
        platform: Platform | None,
        options: Run,
        progress: Callable[[str, int], None] | None = None,
    ) -> Pending:
        """Add the runs of the same changes on replicas of the workload, and without bursts of jobs if *both*."""
        arms = {}
        for it in self.changes:
            scheduler = fitted(make_policy(policy if it.policy is None else it.policy), it.platform)
            change = it.transform
            if families and it.failures is not None:
                raise InputError("cannot be repeated on replicas; leave out --shake and --resample", field="failures")
            if families and change is None and it.workload is not workload:
                raise InputError(
                    f"'{it.label}' has another workload; give the transform that creates it", field="changes"
                )
            arms[it.label] = Arm(it.platform, scheduler, change)
        how: dict[str, Any] = {"options": options, "progress": progress}
        replicated = tuple(PendingReplicas.of(it, workload, arms, workers, cuts=cuts, **how) for it in families)
        if not both:
            return replace(self, replicated=replicated)
        clean = WithoutFlurries().apply
        changes = [each.of(workload, clean) for each in self.changes[1:]]
        told = None if progress is None else lambda label, jobs: progress(f"{label}, without flurries", jobs)
        how = {"policy": policy, "platform": platform, "options": options, "progress": told}
        return replace(self, replicated=replicated, cleaned=Pending.of(clean(workload), changes, workers, **how))

    def whatif(self, policy: str, cuts: Mapping[str, Any], *, lenient: bool = False) -> WhatIf:
        """Wait for the runs and return the results, as `whatif`; *policy* is the label."""
        as_it_is, *changes = self.changes
        records, refused = {NOW: self.records[NOW].result()}, []
        for change in changes:
            try:
                records[change.label] = self.records[change.label].result()
            except InputError as error:
                if not lenient:
                    raise
                refused.append((change.label, str(error)))
        bound, rows = cuts["bound"], cut(records[NOW], cuts["warmup"], cuts["cooldown"])
        numbers = {label: metrics(record, **cuts) for label, record in records.items()}
        replicated = tuple(each.found(numbers) for each in self.replicated)
        waits, slowdowns = (
            {one.policy: one for one in settled(_against(records, metric, bound, rows), replicated)}
            for metric in ("wait", "bounded_slowdown")
        )
        parts = part_effects(self.changes, records, rows, bound)
        outcomes = [
            Effect(
                each.label,
                each.platform.cores,
                numbers[each.label],
                waits.get(each.label),
                slowdowns.get(each.label),
                each.nodes,
                parts.get(each.label, ()),
                limit_effects(each, self.policy, records[each.label]),
                not keeps_up(records[each.label]),
            )
            for each in self.changes
            if each.label in records
        ]
        rounded = tuple(change.rounded for change in changes if change.rounded)
        return WhatIf(
            policy,
            tuple(outcomes),
            tuple(refused),
            as_it_is.workload.reactions is not None,
            rounded,
            records[NOW],
            replicated=replicated,
            cleaned=None if self.cleaned is None else self.cleaned.whatif(policy, cuts, lenient=lenient),
            ran={label: record.ran & rows for label, record in records.items()},
            kept=rows,
            failures=model_failures({policy: records[NOW]}, own_policy({policy: make_policy(self.policy)}), rows),
        )


def _against(records: Mapping[str, Record], metric: str, bound: float, rows: Any) -> list[Difference]:
    if len(records) < 2:
        return []
    return paired(records, metric=metric, baseline=NOW, bound=bound, rows=rows, moved=True)


def record_under(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run,
    progress: Callable[[int], None] | None = None,
) -> Record:
    """Return the record of the policy on a machine, with its site adjusted to that machine."""
    return run(workload, platform, fitted(make_policy(policy), platform), options, progress=progress)


MATTERS = 0.05
"""Share of the waiting time of jobs that request a resource, from which on a limit on it is reported."""

MOST_LIMITS = 3
"""Largest number of limits that are reported for a change."""


def part_effects(
    changes: Sequence[Change], records: Mapping[str, Record], rows: Any, bound: float
) -> dict[str, tuple[PartEffect, ...]]:
    """Return the waits of each part of the jobs under each change, against the baseline.

    Each part is a family (Holm).
    """
    found: dict[str, list[PartEffect]] = {each.label: [] for each in changes}
    if len(records) < 2:
        return {}
    concerned = {each.label: _concerned(each) for each in changes}
    for part in job_parts(records[NOW].workload, [it for each in changes for it in each.owners]):
        within = part.rows & rows
        if not (within & records[NOW].ran).any():
            continue
        for wait in paired(records, metric="wait", baseline=NOW, bound=bound, rows=within, moved=True):
            found[wait.policy].append(PartEffect(part, wait, (part.kind, part.value) in concerned[wait.policy]))
    return {label: tuple(parts) for label, parts in found.items()}


def _concerned(change: Change) -> set[tuple[str, str]]:
    """Return kinds and values of the parts of the jobs that a change is made for."""
    nodes = [each.node for each in change.nodes]
    found = {("partition", name) for node in nodes for name in node.partitions} | set(change.owners)
    found |= {("gpu", "") for node in nodes if node.gpus} | {("gpu type", node.gpu_kind) for node in nodes if node.gpus}
    return found | {("pool", name) for name, _ in change.pools}


def limit_effects(change: Change, policy: Any, record: Record) -> tuple[LimitEffect, ...]:
    """Return the limits that delay jobs although the change adds units of the limited resource, longest waits first.

    Only policies with a site configuration have such limits.
    """
    made = fitted(make_policy(policy if change.policy is None else change.policy), change.platform)
    added = _added(change)
    if not added or not capabilities_of(made).site:
        return ()
    requesting = {(it.kind, it.value): it.rows for it in job_parts(record.workload)}
    everybody = np.ones(len(record), dtype=np.bool_)
    waited, found = np.nan_to_num(record.wait), []
    for limit in with_clock(made, record.workload).binding_limits(record):
        if limit.resource not in added:
            continue
        name, _, value = limit.resource.partition(":" if limit.resource.startswith(GPUS) else "/")
        keys = {GPUS: [("gpu type", value), ("gpu", "")], LICENCE[:-1]: [("pool", value)]}.get(name, [])
        jobs = next((requesting[key] for key in keys if key in requesting), everybody)
        if limit.held.sum() < MATTERS * waited[jobs].sum():
            continue
        alone = limit.available is not None and not limit.each and not (jobs & ~limit.members).any()
        found.append(LimitEffect(limit, limit.available - limit.most if alone and limit.available else 0))
    return tuple(found[:MOST_LIMITS])


def _added(change: Change) -> set[str]:
    """Return the TRES names of the resources of which a change adds units.

    Limits on job counts concern each addition.
    """
    found: Counter[str] = Counter({f"{LICENCE}{name}": more for name, more in change.pools})
    for nodes, node in change.nodes:
        found[NODE] += nodes
        found[CPU] += nodes * node.capacity.get("cores", 0)
        found[MEMORY] += nodes * node.capacity.get("memory", 0)
        found[GPUS] += nodes * node.gpus
        found[f"{GPUS}:{node.gpu_kind}"] += nodes * node.gpus
    added = {name for name, more in found.items() if more > 0}
    return added | ({JOBS} if added else set())


_FINEST = 0.01
"""Default step of the search for a machine size, relative to the machine, if the node size is unknown."""

_LARGEST = 64
"""Largest searched size relative to the machine."""


def check_halved(metric: str | None) -> None:
    """Raise `UnknownNameError` for a metric that is unknown or for which lower is not better."""
    lower = [name for name, each in METRICS.items() if each.better == "lower"]
    if metric is not None and metric not in lower:
        raise UnknownNameError("metric to halve", metric, lower)


def cores_for(
    workload: Workload,
    platform: Platform,
    *,
    part: float = 0.5,
    metric: str = "wait_mean",
    node: int | None = None,
    policy: Any = "easy",
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Change:
    """Return the smallest machine, in steps of a node, on which a metric is at most a given part of its present value.

    Parameters
    ----------
    part : float
        Target relative to the present value, above 0 and below 1: 0.5 halves it.
    metric : str
        One of `gridsim.metrics.summary.METRICS` for which lower is better.
    node : int, optional
        Step of the size, cores; by default those of a node if the policy has a node configuration, else 1 % of the
        machine.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    workers : int or Workers
        Number of worker processes; likely next sizes are simulated in advance. The result does not depend on the
        number.

    Raises
    ------
    InputError
        If the metric is already 0 or unknown, if no machine up to 64 times as large is sufficient, or if *node* is not
        a whole number of nodes of the policy.

    Notes
    -----
    The size is found by doubling the addition and then by bisection. On most logs waits decrease as the machine grows,
    although not always from one step to the next.
    """
    options = options or Run()
    check_halved(metric)
    if not 0 < part < 1:
        raise InputError(f"a part of {part:g}; expected a fraction above 0 and below 1", field="part")
    if node is not None and node < 1:
        raise InputError(f"{node} cores; expected a step of at least 1", field="node")
    asked = [make_policy(policy)]
    known = nodes_to(asked, platform.cores)
    if known is not None and node is not None and node % known.each:
        raise InputError(f"{node} cores; expected a multiple of {known.each}, the cores of a node", field="node")
    step = node or (max(1, round(platform.cores * _FINEST)) if known is None else known.each)

    def tried(more: int, workers: Workers) -> Awaited[float]:
        change = sized(workload, platform, platform.cores + more * step, asked)
        told = None if progress is None else partial(progress, change.label)
        what = (change.workload, change.platform, policy, options, metric)
        return workers.submit(_value, *what, name="the policy", progress=told)

    with crew(workers, share=[workload]) as team:
        trials = _Trials(partial(tried, workers=team), team.count, _LARGEST * platform.cores // step)
        wanted = trials.value(0, [1, 2]) * part
        if not wanted > 0:
            why = "is already 0 on the present machine"
            why = why if wanted == 0 else "is unknown on this machine"
            raise InputError(f"{metric} {why}", field="metric")
        more = _least(trials, wanted)
        if more is None:
            raise InputError(
                f"{metric} does not fall to {part:g} of its present value on machines up to {_LARGEST} times as large"
            )
        return sized(workload, platform, platform.cores + more * step, asked)


@dataclass
class _Trials:
    """Metric by number of added steps, each simulated once; with several workers some sizes are simulated in advance.

    Attributes
    ----------
    begin : callable
        Starts the simulation of a machine.
    workers : int
        Number of simultaneous simulations.
    most : int
        Largest number of steps.
    """

    begin: Callable[[int], Awaited[float]]
    workers: int
    most: int
    _known: dict[int, Awaited[float]] = field(default_factory=dict)

    def value(self, more: int, then: Iterable[int]) -> float:
        """Return the value for *more* steps; *then* are possible next sizes, the likelier first."""
        later = [steps for steps in then if 0 < steps <= self.most]
        for steps in [more, *later][: self.workers]:
            if steps not in self._known:
                self._known[steps] = self.begin(steps)
        return self._known[more].result()


def _least(trials: _Trials, wanted: float) -> int | None:
    """Return the fewest steps for which a value is at most *wanted*; None up to the largest number."""
    low, more = 0, 1
    while trials.value(more, [2 * more, 4 * more]) > wanted:
        low, more = more, 2 * more
        if more > trials.most:
            return None
    while more - low > 1:
        middle = (low + more) // 2
        next_two = [(low + middle) // 2, (middle + more) // 2]
        low, more = (middle, more) if trials.value(middle, next_two) > wanted else (low, middle)
    return more


def _value(
    workload: Workload,
    platform: Platform,
    policy: Any,
    options: Run,
    metric: str,
    progress: Callable[[int], None] | None = None,
) -> float:
    return metrics(record_under(workload, platform, policy, options, progress))[metric]
