"""Comparison of several policies on one workload: simulation of each, and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from gridsim import registry
from gridsim.errors import InputError, not_modelled
from gridsim.metrics.responsiveness import CUTS
from gridsim.metrics.summary import requested_measures
from gridsim.model.capacity import node_changes
from gridsim.model.platform import Platform
from gridsim.model.time import to_us
from gridsim.model.workload import Workload
from gridsim.number_formatting import counted
from gridsim.options import Run
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import in_pools
from gridsim.policy.presets import policy
from gridsim.policy.site_policy import machine, own_machine
from gridsim.questions.calibrate import own_policy, replay_of
from gridsim.questions.changes import changes_beside
from gridsim.questions.evidence import Evidence
from gridsim.questions.labels import policies_of
from gridsim.questions.replay import Replay
from gridsim.questions.run_replications import Arm, Family, PendingReplicas, with_replicas
from gridsim.questions.whatif import Pending
from gridsim.result import Result, versions
from gridsim.run_setup import in_site_zone
from gridsim.scenario import simulate_all
from gridsim.workers import Workers, crew
from gridsim.workload.transform.flurries import Flurries, WithoutFlurries, kept

DEFAULT_POLICIES = ("easy", "conservative", "fcfs")
"""Policies that are compared by default; the first is the baseline."""


def compare(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform | None = None,
    options: Run | None = None,
    cuts: Mapping[str, Any] = CUTS,
    own: str | None = None,
    metrics: Iterable[Any] = (),
    charges: Iterable[Any] = (),
    families: Sequence[Family] = (),
    flurries: Flurries = "keep",
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Evidence:
    """Simulate several policies on the same workload and compare the results.

    The parameters are those of `gridsim.compare`, which adds a view of the result; *cuts* is a mapping of ``bound``,
    ``warmup`` and ``cooldown``. *families* are derived workloads on
    which the same policies run.
    """
    made = policies_of(policies)
    workload = kept(in_site_zone(workload, made.values()), flurries)
    own = own_policy(made, own)
    measures = requested_measures(metrics, charges)
    options = options or Run()
    platform = in_pools(
        workload, platform or machine(workload, policies=made.values()), made.values(), options.partitions
    )
    how: dict[str, Any] = {"platform": platform, "options": options, "progress": progress}
    cleaned = None
    with crew(workers, share=[workload]) as team:
        results = simulate_all(workload, made, workers=team, **how)
        results = {label: result.with_measures(measures) for label, result in results.items()}
        arms = {label: Arm(platform, scheduler) for label, scheduler in made.items()}
        told: dict[str, Any] = {"options": options, "cuts": cuts, "progress": progress}
        pending = [PendingReplicas.of(it, workload, arms, team, **told) for it in families]
        if flurries == "both":
            cleaned = evidence_without_flurries(workload, made, team, own=own, measures=measures, cuts=cuts, **how)
        replay = replay_of(results, own, policies=made, options=options, progress=progress)
        evidence = evidence_of(results, options=options, own=own, cuts=cuts, replay=replay, policies=made)
        return replace(with_replicas(evidence, pending), cleaned=cleaned)


def evidence_without_flurries(
    workload: Workload,
    policies: Mapping[str, Any],
    workers: Workers,
    *,
    platform: Platform,
    options: Run,
    own: str | None = None,
    measures: Sequence[Any] = (),
    cuts: Mapping[str, Any],
    progress: Callable[[str, int], None] | None = None,
) -> Evidence:
    """Return the comparison without bursts of jobs by one user; of the same jobs if there are none."""
    told = None if progress is None else lambda label, jobs: progress(f"{label}, without flurries", jobs)
    how: dict[str, Any] = {"platform": platform, "options": options, "progress": told}
    results = simulate_all(WithoutFlurries().apply(workload), policies, workers=workers, **how)
    results = {label: result.with_measures(measures) for label, result in results.items()}
    return evidence_of(results, options=options, own=own, cuts=cuts)


def evidence_of(
    results: Mapping[str, Result],
    *,
    options: Run,
    own: str | None = None,
    cuts: Mapping[str, Any] = CUTS,
    command: str = "",
    replay: Replay | None = None,
    policies: Mapping[str, Any] | None = None,
    title: str | None = None,
    **there: Any,
) -> Evidence:
    """Return the comparison of existing results, with their provenance and agreement with the log.

    Parameters
    ----------
    policies : mapping, optional
        Policies of the results; if they have different site configurations, the comparison reports the differences.
    own : str, optional
        Label of the site's own policy, the baseline of every comparison.
    cuts : mapping
        ``bound``, ``warmup`` and ``cooldown`` as for `gridsim.metrics.summary.metrics`, s.
    title : str, optional
        Title of the page; by default the name of the log.
    **there
        Existing metrics, as for `Evidence.of`.
    """
    first = next(iter(results.values()))
    platforms = [result.platform for result in results.values()]
    # If policies model the machine differently, use the one with partitions or nodes that the page must show.
    platform = next((it for it in platforms if it.by is not None or it.pooled), first.platform)
    provenance = first.workload.provenance
    info: dict[str, Any] = {
        "title": title or _title(first.workload),
        "workload": dict(provenance),
        "platform": _platform(platform),
        "policies": {label: result.policy for label, result in results.items()},
        "plugins": _plugins(results.values()),
        "options": {**options.written(first.workload), **cuts},
        "versions": versions(),
        "command": command,
        **({"own": own} if own is not None else {}),
        **({"measures": [it.name for it in first.measures]} if first.measures else {}),
    }
    if policies is not None and (machines := _machines(policies, results)):
        info["machines"] = machines
    if any(result.notices for result in results.values()):
        info["not_followed"] = {label: [asdict(it) for it in result.notices] for label, result in results.items()}
    records = {label: result.record for label, result in results.items()}
    easy = repr(policy("easy"))  # reference of QoS charges
    return Evidence.of(
        records,
        info=info,
        cuts=cuts,
        platform=platform,
        platforms={label: result.platform for label, result in results.items() if result.platform != platform},
        tick=to_us(options.tick_of(first.workload)),
        reference=next((label for label, result in results.items() if result.policy == easy), None),
        replay=replay,
        measures=first.measures,
        order=_order({label: result.policy for label, result in results.items()}, own),
        **there,
    )


def _title(workload: Workload) -> str:
    """Return the name of the log, or of the model that generated the workload, with the number of jobs."""
    source = str(workload.provenance.get("source", "workload"))
    if "jobs_read" in workload.provenance or not registry.is_registered("model", source):
        return Path(source).name
    return f"Built-in workload ({source.capitalize()} model, {counted(len(workload), 'job')})"


def _order(policies: Mapping[str, str], own: str | None) -> list[str]:
    """Return the labels in the order of comparisons: the site's own policy, then the others, FCFS last.

    FCFS is saturated at loads that the others sustain, so it is not part of the main result if there are other
    policies.
    """
    fcfs = repr(policy("fcfs"))
    return sorted(policies, key=lambda label: (label != own, policies[label] == fcfs and len(policies) > 2))


def pending_changes(
    evidence: Evidence,
    policies: Mapping[str, Any],
    workers: Workers,
    *,
    platform: Platform,
    options: Run,
    progress: Callable[[str, int], None] | None = None,
) -> dict[str, Pending]:
    """Start the runs of a larger machine, a higher load and better estimates under the first and the best policy.

    Return the pending runs by policy; their results are collected later.

    Parameters
    ----------
    policies : mapping
        Compared policies, by label.
    workers : Workers
        Workers; each simulates one change.
    progress : callable, optional
        Called with the policy and the change, and the number of jobs released so far.

    Raises
    ------
    InputError
        For DAG jobs, since changes are defined for rigid jobs.
    """
    if evidence.of_dags:
        raise InputError(not_modelled("changes for DAG jobs"), field="what-if")
    workload = evidence.records[evidence.baseline].workload_given  # users react to each change again
    labels = dict.fromkeys((evidence.baseline, evidence.best))
    machines = {label: own_machine(policies[label], platform) for label in labels}

    def begun(label: str) -> Pending:
        now, own = evidence.records[label], machines[label]
        changes = changes_beside(workload, own, [policies[it] for it in labels if machines[it] == own])
        how: dict[str, Any] = {"policy": policies[label], "platform": own, "options": options, "now": now}
        return Pending.of(workload, changes, workers, **how, name=label, progress=_named(progress, label))

    return {label: begun(label) for label in labels}


def _named(progress: Callable[[str, int], None] | None, label: str) -> Callable[[str, int], None] | None:
    """Return the progress callback of changes under a policy."""
    return None if progress is None else lambda change, jobs: progress(f"{label}, {change}", jobs)


def _platform(platform: Platform) -> dict[str, Any]:
    """Return size and origin of the machine; for several clusters also names, sizes and the network."""
    told: dict[str, Any] = {"cores": platform.cores, "origin": platform.origin}
    told |= {} if platform.by is None else {"by": platform.by}
    told |= {"pooled": platform.pooled} if platform.pooled else {}
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        told["clusters"] = [{"name": it.name, "kind": it.kind, "cores": it.cores} for it in clusters]
        network = platform.network
        told["network"] = {it.name: getattr(network, it.name) for it in fields(network) if it.init}
    return told


def _machines(policies: Mapping[str, Any], results: Mapping[str, Result]) -> dict[str, Any]:
    """Return the machine size of each policy, and differences of its site from the first one.

    Empty for a single site.
    """
    sites = {label: next(it.on_nodes().clusters()) for label, it in policies.items() if capabilities_of(it).site}
    if not sites or all(each == next(iter(sites.values())) for each in sites.values()):
        return {}
    first = next(iter(sites.values()))
    found = {}
    for label, result in results.items():
        own = sites.get(label, first)
        pools = {name: own.pools.get(name, 0) - first.pools.get(name, 0) for name in {**first.pools, **own.pools}}
        found[label] = {
            "cores": result.platform.cores,
            "nodes": [each.to_dict() for each in node_changes(first.nodes, own.nodes)],
            "pools": {name: more for name, more in pools.items() if more},
        }
    return dict(sorted(found.items(), key=lambda it: it[0] != next(iter(sites))))


def _plugins(results: Iterable[Result]) -> list[dict[str, str]]:
    """Return the files and packages that define the policies, without duplicates."""
    found = [dict(plugin) for result in results for plugin in result.plugins]
    return [plugin for place, plugin in enumerate(found) if plugin not in found[:place]]
