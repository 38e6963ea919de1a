"""Several policies on one workload: simulate each, compare what they did. The main job of gridsim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import measures_asked
from gridsim.model.machine import machine
from gridsim.model.platform import Platform
from gridsim.model.pools import in_pools
from gridsim.model.time import whole
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy
from gridsim.questions.labels import labelled
from gridsim.report.calibration import own_policy, trust_of
from gridsim.report.comparison import Comparison
from gridsim.report.trust import Trust
from gridsim.report.whatif import Asked, changes_beside
from gridsim.result import Result, versions
from gridsim.scenario import simulate_all
from gridsim.simulation import Run
from gridsim.workers import Workers, crew

__all__ = ["DEFAULT_POLICIES", "asked_beside", "compare", "comparison_of", "with_changes"]

DEFAULT_POLICIES = ("fcfs", "easy", "conservative")
"""What is compared when nobody says what."""


def compare(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform | None = None,
    options: Run | None = None,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    own: str | None = None,
    metrics: Iterable[Any] = (),
    charges: Iterable[Any] = (),
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Comparison:
    """Simulate *policies* on the same workload and compare what they did with its jobs.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policies : iterable or mapping
        As `gridsim.policy.presets.policy` takes them; the first is the baseline. Keys of a mapping are labels,
        and so is what a text has before its first ``=`` (``today=slurm?conf=slurm.conf``).
    platform : Platform, optional
        The machine; one cluster of the size that the workload's source states where left out.
    options : Run, optional
        Overrun, instant, seed, tick: the same for all.
    bound : float
        Runtimes below this many seconds count as this many in bounded slowdowns.
    warmup, cooldown : float
        Jobs submitted in the first and last so many seconds are simulated but left out of the numbers.
    own : str, optional
        Label of the site's own policy, whose replay is held against the log; where left out, the first that knows its
        site.
    metrics, charges : iterable of str or object
        Beside the usual numbers: by name, ``file.py:Class``, or an object (`gridsim.metrics.measures`).
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate; 1 for none but this one. Results are the same with any number.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> compare(jobs, ["fcfs", "easy"], platform=Platform.single(4)).metrics["easy"]["wait_mean"]
    3.0
    """
    made = {label: policy(what) for label, what in labelled(policies).items()}
    own = own_policy(made, own)
    asked = measures_asked(metrics, charges)
    options = options or Run()
    platform = in_pools(
        workload, platform or machine(workload, policies=made.values()), made.values(), options.partitions
    )
    results = simulate_all(workload, made, platform=platform, options=options, progress=progress, workers=workers)
    results = {label: result.with_measures(asked) for label, result in results.items()}
    trust = None if own is None else trust_of(results, own, policies=made, options=options, progress=progress)
    return comparison_of(results, options=options, bound=bound, warmup=warmup, cooldown=cooldown, trust=trust)


def comparison_of(
    results: Mapping[str, Result],
    *,
    options: Run,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    command: str = "",
    trust: Trust | None = None,
) -> Comparison:
    """Comparison of results that are there, with what the page tells of their making and of how far to trust it."""
    first = next(iter(results.values()))
    platforms = [result.platform for result in results.values()]
    # Where policies see the machine in different ways, that of those who need to be told of its parts.
    platform = next((it for it in platforms if it.by is not None or it.pooled), first.platform)
    provenance = first.workload.provenance
    info: dict[str, Any] = {
        "title": Path(str(provenance.get("source", "workload"))).name,
        "workload": dict(provenance),
        "platform": _platform(platform),
        "policies": {label: result.policy for label, result in results.items()},
        "plugins": _plugins(results.values()),
        "options": {
            **options.written(first.workload),
            "bound": bound,
            "warmup": warmup,
            "cooldown": cooldown,
        },
        "versions": versions(),
        "command": command,
        **({"asked": [it.name for it in first.asked]} if first.asked else {}),
    }
    if any(result.notices for result in results.values()):
        info["not_followed"] = {label: [asdict(it) for it in result.notices] for label, result in results.items()}
    records = {label: result.record for label, result in results.items()}
    easy = repr(policy("easy"))  # what QoS charges are judged by
    return Comparison.of(
        records,
        info=info,
        bound=bound,
        warmup=warmup,
        cooldown=cooldown,
        platform=platform,
        platforms={label: result.platform for label, result in results.items() if result.platform != platform},
        tick=whole(options.tick_of(first.workload)),
        reference=next((label for label, result in results.items() if result.policy == easy), None),
        trust=trust,
        asked=first.asked,
    )


def with_changes(
    comparison: Comparison,
    policies: Mapping[str, Any],
    *,
    platform: Platform,
    options: Run,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> Comparison:
    """The comparison with what a larger machine, a higher load and better estimates would do.

    Asked under its first policy and under its best one.

    Parameters
    ----------
    policies : mapping
        Those that were compared, by label.
    progress : callable, optional
        Told the policy with the change, and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate, a change each; 1 for none but this one.

    Raises
    ------
    InputError
        For DAG jobs: what is changed and compared are waits of rigid jobs.
    """
    with crew(workers) as team:
        asked = asked_beside(comparison, policies, team, platform=platform, options=options, progress=progress)
        cuts = {"bound": comparison.bound, "warmup": comparison.warmup, "cooldown": comparison.cooldown}
        found = tuple(each.answer(label, **cuts, lenient=True) for label, each in asked.items())
    return replace(comparison, whatifs=found)


def asked_beside(
    comparison: Comparison,
    policies: Mapping[str, Any],
    workers: Workers,
    *,
    platform: Platform,
    options: Run,
    progress: Callable[[str, int], None] | None = None,
) -> dict[str, Asked]:
    """What `with_changes` asks, by policy, for who waits for the answers later. Parameters as there."""
    if comparison.of_dags:
        raise InputError("is asked of rigid jobs, and these are jobs of several tasks", field="what-if")
    workload = comparison.records[comparison.baseline].workload_given  # users react to each change anew
    asked_of = dict.fromkeys((comparison.baseline, comparison.best))
    changes = changes_beside(workload, platform, [policies[label] for label in asked_of])

    def asked(label: str) -> Asked:
        now, told = comparison.records[label], _named(progress, label)
        how: dict[str, Any] = {"policy": policies[label], "platform": platform, "options": options, "now": now}
        return Asked.of(workload, changes, workers, **how, name=label, progress=told)

    return {label: asked(label) for label in asked_of}


def _named(progress: Callable[[str, int], None] | None, label: str) -> Callable[[str, int], None] | None:
    """Progress of changes under a policy."""
    return None if progress is None else lambda change, jobs: progress(f"{label}, {change}", jobs)


def _platform(platform: Platform) -> dict[str, Any]:
    """Size and origin; of several clusters their names and sizes, and the network where it takes time."""
    told: dict[str, Any] = {"cores": platform.cores, "origin": platform.origin}
    told |= {} if platform.by is None else {"by": platform.by}
    told |= {"pooled": platform.pooled} if platform.pooled else {}
    clusters = list(platform.clusters())
    if len(clusters) > 1:
        told["clusters"] = [{"name": it.name, "kind": it.kind, "cores": it.cores} for it in clusters]
        network = platform.network
        told["network"] = {it.name: getattr(network, it.name) for it in fields(network) if it.init}
    return told


def _plugins(results: Iterable[Result]) -> list[dict[str, str]]:
    """Files and packages that any of the policies came from, each once."""
    found = [dict(plugin) for result in results for plugin in result.plugins]
    return [plugin for place, plugin in enumerate(found) if plugin not in found[:place]]
