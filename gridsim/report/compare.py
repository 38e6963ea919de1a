"""Several policies on one workload: simulate each, compare what they did. The main job of gridsim."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.metrics.responsiveness import BOUND
from gridsim.model.machine import machine
from gridsim.model.platform import Platform
from gridsim.model.time import whole
from gridsim.model.workload import Workload
from gridsim.policy.presets import policy
from gridsim.report.comparison import Comparison
from gridsim.report.trust import Trust
from gridsim.report.whatif import WhatIf, changes_beside, whatif
from gridsim.result import Result, versions
from gridsim.scenario import simulate_all
from gridsim.simulation import Run

__all__ = ["DEFAULT_POLICIES", "compare", "comparison_of", "labelled", "with_changes"]

DEFAULT_POLICIES = ("fcfs", "easy", "conservative")
"""What is compared when nobody says what."""


def labelled(policies: Iterable[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Policies by label: a mapping's keys, a text itself, or the ``repr`` of an object.

    Plain files lose their folders in labels, and parameters that name files are left out, where labels still differ;
    if they do not, those at least that all labels have.

    Raises
    ------
    InputError
        When there is none, or one is given twice.
    """
    if isinstance(policies, Mapping):
        named = dict(policies)
    else:
        named = {}
        for policy in policies:
            label = policy if isinstance(policy, str) else repr(policy)
            if label in named:
                raise InputError(f"'{label}' is given twice; a difference to itself says nothing", field="policy")
            named[label] = policy
        for shorter in (functools.partial(_FOLDERS.sub, ""), _without_shared(named), _without_files):
            short = [shorter(label) for label in named]
            if len(set(short)) == len(named):
                named = dict(zip(short, named.values(), strict=True))
    if not named:
        raise InputError("no policy is given", field="policy")
    return named


_FOLDERS = re.compile(r"[^=&?(,]*/(?=[^/=&?(,]*\.py\b)")
"""Folders before the name of a plain file, in a spec."""


def _without_shared(labels: Iterable[str]) -> Callable[[str], str]:
    """Makes a spec one without the parameters whose values are files that all specs name."""
    shared = functools.reduce(set.intersection, (set(label.partition("?")[2].split("&")) for label in labels))
    return lambda label: _without_files(label, shared)


def _without_files(label: str, among: Collection[str] | None = None) -> str:
    """A spec without the parameters whose values are files, such as ``slurm?conf=slurm.conf``; of *among*, if given."""
    name, _, text = label.partition("?")
    parameters = [
        part
        for part in text.split("&")
        if part and not ((among is None or part in among) and _is_file(part.partition("=")[2]))
    ]
    return "?".join([name, *(["&".join(parameters)] if parameters else [])]) if text else label


def _is_file(text: str) -> bool:
    try:
        return bool(text) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def compare(
    workload: Workload,
    policies: Iterable[Any] | Mapping[str, Any] = DEFAULT_POLICIES,
    *,
    platform: Platform | None = None,
    options: Run | None = None,
    bound: float = BOUND,
    warmup: float = 0.0,
    cooldown: float = 0.0,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Simulate *policies* on the same workload and compare what they did with its jobs.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policies : iterable or mapping
        As `gridsim.policy.presets.policy` takes them; the first is the baseline. Keys of a mapping are labels.
    platform : Platform, optional
        The machine; one cluster of the size that the workload's source states where left out.
    options : Run, optional
        Overrun, instant, seed, tick: the same for all.
    bound : float
        Runtimes below this many seconds count as this many in bounded slowdowns.
    warmup, cooldown : float
        Jobs submitted in the first and last so many seconds are simulated but left out of the numbers.
    progress : callable, optional
        Told the label and the number of jobs released so far.

    Examples
    --------
    >>> jobs = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
    >>> compare(jobs, ["fcfs", "easy"], platform=Platform.single(4)).metrics["easy"]["wait_mean"]
    3.0
    """
    made = {label: policy(what) for label, what in labelled(policies).items()}
    platform = platform or machine(workload, policies=made.values())
    options = options or Run()
    results = simulate_all(workload, made, platform=platform, options=options, progress=progress)
    return comparison_of(results, options=options, bound=bound, warmup=warmup, cooldown=cooldown)


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
    provenance = first.workload.provenance
    info = {
        "title": Path(str(provenance.get("source", "workload"))).name,
        "workload": dict(provenance),
        "platform": _platform(first.platform),
        "policies": {label: result.policy for label, result in results.items()},
        "plugins": _plugins(results.values()),
        "options": {
            **asdict(options),
            "tick": options.tick_of(first.workload),
            "bound": bound,
            "warmup": warmup,
            "cooldown": cooldown,
        },
        "versions": versions(),
        "command": command,
    }
    records = {label: result.record for label, result in results.items()}
    easy = repr(policy("easy"))  # what QoS charges are judged by
    return Comparison.of(
        records,
        info=info,
        bound=bound,
        warmup=warmup,
        cooldown=cooldown,
        platform=first.platform,
        tick=whole(options.tick_of(first.workload)),
        reference=next((label for label, result in results.items() if result.policy == easy), None),
        trust=trust,
    )


def with_changes(
    comparison: Comparison,
    policies: Mapping[str, Any],
    *,
    platform: Platform,
    options: Run,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """The comparison with what a larger machine, a higher load and better estimates would do.

    Asked under its first policy and under its best one.

    Parameters
    ----------
    policies : mapping
        Those that were compared, by label.
    progress : callable, optional
        Told the policy with the change, and the number of jobs released so far.

    Raises
    ------
    InputError
        For DAG jobs: what is changed and compared are waits of rigid jobs.
    """
    if comparison.of_dags:
        raise InputError("is asked of rigid jobs, and these are jobs of several tasks", field="what-if")
    workload = comparison.records[comparison.baseline].workload_given  # users react to each change anew
    asked_of = dict.fromkeys((comparison.baseline, comparison.best))
    changes = changes_beside(workload, platform, [policies[label] for label in asked_of])

    def asked(label: str) -> WhatIf:
        return whatif(
            workload,
            changes,
            policy=policies[label],
            platform=platform,
            options=options,
            now=comparison.records[label],
            label=label,
            bound=comparison.bound,
            warmup=comparison.warmup,
            cooldown=comparison.cooldown,
            lenient=True,
            progress=None if progress is None else lambda change, jobs: progress(f"{label}, {change}", jobs),
        )

    return replace(comparison, whatifs=tuple(asked(label) for label in asked_of))


def _platform(platform: Platform) -> dict[str, Any]:
    """Size and origin; of several clusters their names and sizes, and the network where it takes time."""
    told: dict[str, Any] = {"cores": platform.cores, "origin": platform.origin}
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
