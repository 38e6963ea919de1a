"""What if the machine were larger, the load higher, the estimates better? One policy, the same jobs, each change a run.

What may be changed is in `gridsim.questions.changes`; the answers in words are in `gridsim.report.whatif_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gridsim.errors import InputError
from gridsim.metrics.agreement import model_failures
from gridsim.metrics.compare import Difference, paired
from gridsim.metrics.responsiveness import BOUND
from gridsim.metrics.summary import cut, metrics
from gridsim.metrics.utilisation import keeps_up
from gridsim.model.platform import Platform
from gridsim.model.workload import Workload
from gridsim.options import Run
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import fitted, machine
from gridsim.questions.calibrate import own_policy
from gridsim.questions.change_effects import limit_effects, part_effects
from gridsim.questions.changes import NOW, Change, Effect, WhatIf, changes_of
from gridsim.questions.labels import labelled
from gridsim.questions.replicas import settled
from gridsim.questions.replicate import Arm, Family, PendingReplicas, families
from gridsim.record import Record
from gridsim.simulation import run
from gridsim.workers import Awaited, Known, Workers, crew
from gridsim.workload.transform.flurries import Flurries, WithoutFlurries, kept

__all__ = ["Pending", "record_under", "whatif"]


def whatif(
    workload: Workload,
    changes: Sequence[Change] | None = None,
    *,
    policy: Any = "easy",
    platform: Platform | None = None,
    options: Run | None = None,
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
    """Simulate the workload as it is and under each change.

    Parameters
    ----------
    workload : Workload
        The jobs.
    changes : sequence of Change, optional
        As `changes_of` makes them; the usual ones where left out.
    policy : str or object
        Under which all run.
    platform : Platform, optional
        The machine as it is; of the size that the workload's source states where left out.
    now : Record, optional
        What the policy does with the jobs as they are, where that is known already.
    label : str, optional
        What the policy is called; where left out, as `gridsim.questions.labels.labelled` does.
    bound, warmup, cooldown : float
        As `gridsim.metrics.summary.metrics` takes them, s.
    lenient : bool
        Whether a change that the policy does not take is left out and told, instead of an error.
    shake, shake_by, resample, resample_load, flurries : int, float, str
        The same on so many workloads made of this one, and without floods of jobs by one user, as `gridsim.compare`
        takes them: each change is made of the shaken jobs, or of those drawn anew.
    progress : callable, optional
        Told the label and the number of jobs released so far.
    workers : int or Workers
        Processes that simulate, a change each; 1 for none but this one. Answers are the same with any number.

    Examples
    --------
    >>> from gridsim.workload.synthetic.lublin import default_workload
    >>> log = default_workload(jobs=200, load=0.9, cores=64, seed=1)
    >>> [one.label for one in whatif(log).outcomes]  # doctest: +NORMALIZE_WHITESPACE
    ['as it is', '70 cores (+9.4 %)', '80 cores (+25 %)', '96 cores (+50 %)', 'load times 1.2',
     'estimates 2 times better']
    """
    options, cuts = options or Run(), {"bound": bound, "warmup": warmup, "cooldown": cooldown}
    asked: dict[str, Any] = {"shake": shake, "shake_by": shake_by, "resample": resample}
    alike = families(**asked, resample_load=resample_load, seed=options.seed)
    whole = kept(workload, flurries)
    if whole is not workload:
        changes = None if changes is None else [each.of(workload, WithoutFlurries().apply) for each in changes]
        now = None
    how: dict[str, Any] = {"policy": policy, "platform": platform, "options": options, "progress": progress}
    with crew(workers, share=[whole]) as team:
        pending = Pending.of(whole, changes, team, now=now, **how)
        pending = pending.besides(whole, team, families=alike, both=flurries == "both", cuts=cuts, **how)
        called = label or next(iter(labelled([policy if isinstance(policy, str) else make_policy(policy)])))
        return pending.whatif(called, lenient=lenient, **cuts)


@dataclass(frozen=True, slots=True)
class Pending:
    """The runs of `whatif`: workers have them at once, and they are waited for where `Pending.whatif` is called.

    Attributes
    ----------
    changes : tuple of Change
        What is now first.
    records : mapping of str to Awaited
        What comes of each, by label.
    alike : tuple of PendingReplicas
        The same on workloads made of this one.
    cleaned : Pending or None
        The same without floods of jobs by one user.
    policy : str or object
        Under which all run where a change has no policy of its own.
    """

    changes: tuple[Change, ...]
    records: Mapping[str, Awaited[Record]]
    alike: tuple[PendingReplicas, ...] = ()
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
        """Parameters as those of `whatif`; *name* is that of the policy, for the user."""
        platform, options = platform or machine(workload), options or Run()
        changes = changes_of(workload, platform) if changes is None else list(changes)
        labels = [each.label for each in changes]
        for each in labels:
            if labels.count(each) > 1:
                raise InputError(f"'{each}' is asked twice; a difference to itself says nothing")

        def record(change: Change) -> Awaited[Record]:
            told = None if progress is None else partial(progress, change.label)
            asked = policy if change.policy is None else change.policy
            what = (change.workload, change.platform, asked, options)
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
        """With the runs of the same changes on workloads made of this one, and without floods of jobs where *both*."""
        arms = {}
        for it in self.changes:
            scheduler = fitted(make_policy(policy if it.policy is None else it.policy), it.platform)
            change = it.transform
            if families and change is None and it.workload is not workload:
                raise InputError(
                    f"'{it.label}' has jobs of its own; say by which transform they are made", field="changes"
                )
            arms[it.label] = Arm(it.platform, scheduler, change)
        how: dict[str, Any] = {"options": options, "progress": progress}
        alike = tuple(PendingReplicas.of(it, workload, arms, workers, cuts=cuts, **how) for it in families)
        if not both:
            return replace(self, alike=alike)
        clean = WithoutFlurries().apply
        changes = [each.of(workload, clean) for each in self.changes[1:]]
        told = None if progress is None else lambda label, jobs: progress(f"{label}, without flurries", jobs)
        how = {"policy": policy, "platform": platform, "options": options, "progress": told}
        return replace(self, alike=alike, cleaned=Pending.of(clean(workload), changes, workers, **how))

    def whatif(
        self,
        policy: str,
        *,
        bound: float = BOUND,
        warmup: float = 0.0,
        cooldown: float = 0.0,
        lenient: bool = False,
    ) -> WhatIf:
        """The answers, as `whatif` gives them; *policy* is what it is called."""
        as_it_is, *changes = self.changes
        records, refused = {NOW: self.records[NOW].result()}, []
        for change in changes:
            try:
                records[change.label] = self.records[change.label].result()
            except InputError as error:
                if not lenient:
                    raise
                refused.append((change.label, str(error)))
        rows = cut(records[NOW], warmup, cooldown)
        cuts: dict[str, Any] = {"bound": bound, "warmup": warmup, "cooldown": cooldown}
        numbers = {label: metrics(record, **cuts) for label, record in records.items()}
        replicated = tuple(each.found(numbers) for each in self.alike)
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
            cleaned=None if self.cleaned is None else self.cleaned.whatif(policy, **cuts, lenient=lenient),
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
    """What the policy does on a machine that its site is made to fit."""
    return run(workload, platform, fitted(make_policy(policy), platform), options, progress=progress)
