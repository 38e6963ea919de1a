"""Common functions of commands with a workload: loading, summary lines and number of processes."""

from __future__ import annotations

import argparse
import gc
import math
import shlex
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.errors import InputError
from gridsim.workload.problems import Problem, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gridsim.cli.terminal import JobsProgress
    from gridsim.model.capacity import Capacity
    from gridsim.model.failures import Failures
    from gridsim.model.platform import Platform
    from gridsim.model.workload import Workload
    from gridsim.options import Run
    from gridsim.policy.site_policy import SiteChange
    from gridsim.registry import Spec
    from gridsim.workers import Workers


_GENERATOR = ("jobs", "load", "walltimes")


def site_changes(args: Namespace) -> list[SiteChange]:
    """Return the values of ``--add-nodes``, ``--add-pool`` and ``--set-limit``, one by one."""
    from gridsim.questions.changes import site_changes_of  # numpy: not needed for --help

    return site_changes_of(
        parse_list(args.add_nodes, "add-nodes"),
        parse_list(args.add_pool, "add-pool"),
        parse_list(getattr(args, "set_limit", None), "set-limit", separator=None),
    )


def parse_list(given: Iterable[str] | None, option: str, *, separator: str | None = ",") -> list[str]:
    """Return the values of a repeatable option, separated by commas; a given option has at least one.

    Limits contain commas (GrpTRES=cpu=8,mem=100G), so they have no *separator*.
    """
    found = [text.strip() for entry in given or () for text in (entry.split(separator) if separator else [entry])]
    if given and not any(found):
        raise InputError("is empty; expected at least one value", field=option)
    return [text for text in found if text]


def site(args: Namespace) -> Spec | None:
    """Return the site in ``--site``, None without the option."""
    from gridsim.policy.presets import site_of  # numpy: not needed for --help

    if not args.site:
        return None
    if len(args.site) > 1:
        raise InputError("is given twice; expected one site", field="site")
    return site_of(args.site[0])


def with_changes(
    policies: Mapping[str, Any], changes: Sequence[SiteChange], sited: Spec | None = None
) -> dict[str, Any]:
    """Apply changes of the site to policies with a site configuration; without a site, there must be at least one."""
    from gridsim.policy.site_policy import SiteChange, changed, machine_of  # numpy: not needed for --help

    together = reduce(SiteChange.and_then, changes, SiteChange())
    if sited is None and machine_of(policies.values()) is None:
        changed(next(iter(policies.values())), together)  # raises an error
    return {label: changed(it, together) if machine_of([it]) else it for label, it in policies.items()}


def rules(args: Namespace) -> dict[str, str]:
    """Return the requested rules by kind; of several for one kind, the last."""
    return dict(args.on or ())


def read(
    path: str | list[str], args: Namespace, usual: Mapping[str, str] | None = None, policies: Iterable[Any] = ()
) -> Workload:
    """Return the workload of a log with the options of `add_log_options`; *usual* are the default rules."""
    from gridsim.scenario import jobs_of  # numpy: not needed for --help

    asked = {**(usual or {}), **rules(args)}
    path = path[0] if isinstance(path, list) and len(path) == 1 else path
    how = {"format": args.format, "timezone": args.timezone, "cluster": args.cluster, "mapping": args.mapping}
    return jobs_of(path, policies, cores=args.cores, rules=asked, memory=args.memory, **how)


def generate(args: Namespace) -> Workload:
    """Return the built-in synthetic workload; options that were not given have its defaults."""
    from gridsim.workload.synthetic.lublin import default_workload  # numpy: not needed for --help

    asked = {} if args.walltimes is None else {"estimates": args.walltimes}
    return default_workload(jobs=args.jobs, load=args.load, seed=args.seed, cores=args.cores, **asked)


def load(
    args: Namespace,
    options: Run | None = None,
    policies: Iterable[Any] = (),
    *,
    usual: Mapping[str, str] | None = None,
    changes: Sequence[SiteChange] = (),
) -> tuple[Workload, Platform]:
    """Return the transformed workload and the machine given by the options of `add_arguments`.

    Parameters
    ----------
    options : Run, optional
        Options of the transforms' reference policies; by default only the seed of *args*.
    policies : iterable of object
        Policies to run. A site configuration of a policy defines the machine if no option does. If a policy models
        cancellations, jobs that were cancelled before their start are kept.
    usual : mapping of str to str, optional
        Default rules for damaged lines.
    changes : sequence of SiteChange
        Changes of the machine of ``--site``.

    Raises
    ------
    InputError
        If the log cannot be read, if the size of the machine is unknown, for options of the built-in workload together
        with a log, and for errors of a transform.
    """
    from gridsim.options import Run
    from gridsim.policy.pools import in_pools
    from gridsim.policy.site_policy import machine, machine_of  # numpy: not needed for --help
    from gridsim.scenario import transformed, with_users

    if getattr(args, "out", None):
        from gridsim.cli.folder import check_inputs  # numpy: not needed for --help

        check_inputs(args.out, input_files(args))
    platform, sites = _given_machine(args, changes)
    policies = list(policies)
    if platform is None and args.cores is None:
        platform = machine_of(policies)
    if platform is not None:
        args.cores = platform.widest if args.log else platform.cores
    if not args.log:
        workload = generate(args)
    else:
        given = [f"--{name}" for name in _GENERATOR if getattr(args, name, None) is not None]
        if given:
            raise InputError(
                f"{', '.join(given)} apply to the built-in workload; leave out these options or {' '.join(args.log)}"
            )
        workload = read(args.log, args, usual, policies)
    options = options or Run(seed=args.seed)
    transforms = with_users(getattr(args, "users", None), args.transform or ())
    if platform is not None:  # also the machine of reference policies of transforms
        platform = in_pools(workload, platform, [*policies, *sites], options.partitions)
    workload = transformed(workload, transforms, platform=platform, cores=args.cores, options=options)
    whole = platform or machine(workload, args.cores)
    return workload, in_pools(workload, whole, [*policies, *sites], options.partitions)


def options_of(args: Namespace, failures: Failures | None = None) -> Run:
    """Return the settings of a simulation from those options that the command has."""
    from gridsim.options import Run  # numpy: not needed for --help

    names = ("overrun", "instant", "seed", "balancer", "split", "partitions", "limits", "engine")
    return Run(failures=failures, **{name: getattr(args, name) for name in names if hasattr(args, name)})


def _given_machine(args: Namespace, changes: Sequence[SiteChange] = ()) -> tuple[Platform | None, list[Any]]:
    """Return the machine of ``--platform`` or of ``--site``, and the site if a slurm.conf describes it.

    The machine is None if neither gives it.
    """
    from gridsim.policy.presets import SITE, policy

    if args.platform is not None and args.cores is not None:
        raise InputError(f"--machine and --platform {args.platform} both give the machine; leave out one of them")
    if args.platform is not None:
        return machine_in(args.platform)
    described = site(args) if args.cores is None else None
    if described is None:
        return None, []
    (knowing,) = with_changes({SITE: policy(described)}, changes).values()
    return knowing.on_nodes(), [knowing]


def machine_in(path: str) -> tuple[Platform, list[Any]]:
    """Return the machine of a file, and the site that a slurm.conf describes."""
    from gridsim.model.platform_file import read_platform  # numpy: not needed for --help
    from gridsim.policy.presets import policy
    from gridsim.registry import Spec

    if not path.endswith(".conf"):
        return read_platform(path), []
    knowing = policy(Spec("slurm", {"conf": path}))
    return knowing.site.on_nodes(), [knowing]


def capacities(args: Namespace) -> list[Capacity]:
    """Return the capacities of the clusters of the machine in ``--platform`` or ``--site``; empty without them."""
    from gridsim.model.capacity import Capacity  # numpy: not needed for --help

    platform, sites = _given_machine(args)
    if platform is None or sites:
        return [site.capacity() for site in sites]
    return [it.capacity or Capacity.of([], {"cores": it.cores}) for it in platform.clusters()]


def nodes_given(args: Namespace) -> Capacity | None:
    """Return the nodes of the machine in ``--platform`` or ``--site``, which define its cores; None without nodes."""
    platform, sites = _given_machine(args)
    if platform is None:
        return None
    args.cores = platform.cores
    clusters = list(platform.clusters())
    found: Capacity | None = sites[0].capacity() if sites else clusters[0].capacity if len(clusters) == 1 else None
    return found


def failures(args: Namespace) -> Failures | None:
    """Return the failures, windows and checkpoints given by the options of a command; None without."""
    given = {"file": args.failures, **{name: getattr(args, name) for name in _FAILURES}}
    table = {name: value for name, value in given.items() if value is not None}
    saving = {"interval": args.checkpoint, "cost": args.checkpoint_cost, "restart": args.restart_cost}
    saving = {name: value for name, value in saving.items() if value is not None}
    if saving.keys() == {"cost"}:
        raise InputError("--checkpoint-cost has no effect without --checkpoint")
    if not table and args.maintenance is None and not saving:
        return None
    if (table or not saving) and args.maintenance is None and "file" not in table and "mtbf" not in table:
        raise InputError(f"--{next(iter(table))} has no effect without --failures, --mtbf or --maintenance")
    from gridsim.model.failures import failures_from  # numpy: not needed for --help
    from gridsim.model.windows import read_windows

    windows = [] if args.maintenance is None else read_windows(args.maintenance)
    return failures_from(table, windows=windows, checkpoint=saving)


_FAILURES = ("mtbf", "mttr", "repair", "requeue", "spares")


def with_and_without_checkpoints(found: Failures | None) -> list[Failures]:
    """Return the failures of a what-if question: first those without checkpoints, if there are both."""
    if found is None:
        return []
    plain = replace(found, checkpoints=None)
    return [plain, found] if found.checkpoints is not None and found.need_nodes else [found]


def failure_lines(found: Failures | None, workload: Workload) -> list[str]:
    """Return lines on the failures and the windows of a run."""
    if found is None:
        return []
    found = found.dated(workload.provenance)
    from gridsim.number_formatting import counted, duration  # numpy: not needed for --help

    times = [f"MTBF {duration(it.mtbf)} and MTTR {duration(it.mttr)} of each {it.scope}" for it in found.models]
    trace = [f"{counted(len(found.trace), 'failure')} of {found.origin}"] if found.origin else []
    trace += [f"{counted(len(found.inferred), 'failure')} inferred from NODE_FAIL runs"] if found.inferred else []
    lines = [f"failures: {', '.join([*trace, *times])}; repairs {found.repair}"] if trace or times else []
    for it in (it for it in found.events if it.damaged):
        shown = ", ".join([*map(str, it.damaged[:10]), *(["…"] if it.damaged[10:] else [])])
        lines.append(f"failures: {counted(len(it.damaged), 'damaged line')} of {it.path} left out: {shown}")
    kinds = Counter(it.kind for it in found.windows)
    windows = [counted(count, "maintenance window" if kind == "maintenance" else kind) for kind, count in kinds.items()]
    lines += [f"windows: {', '.join(windows)}"] if windows else []
    if (saving := found.checkpoints) is not None:
        every = saving.interval if isinstance(saving.interval, str) else duration(saving.interval or math.inf)
        costs = f"cost {duration(saving.cost)}, restart {duration(saving.restart)}"
        lines.append(f"checkpoints: {'none' if saving.interval is None else f'interval {every}'}; {costs}")
    return lines


def summary_lines(workload: Workload, platform: Platform) -> list[str]:
    """Return plain-text lines on the workload, the machine and its origin, and each problem with its rule."""
    from gridsim.report.pooling import origin_of, parts_of  # numpy: not needed for --help

    return [
        *_origin_lines(workload.provenance, workload.provenance.get("jobs_before_transforms", len(workload))),
        *_transform_lines(workload),
        f"machine: {platform.cores:,} cores{parts_of(platform)} ({origin_of(platform.origin)})",
        *map(problem_line, problems(workload)),
    ]


def notice_lines(workload: Workload, policies: Mapping[str, Any], platform: Platform | None = None) -> list[str]:
    """Return lines on ignored settings of site files and partitions of the log, for the end of the output."""
    from gridsim.model.applicable_demands import with_applicable_demands
    from gridsim.policy.capabilities import capabilities_of
    from gridsim.policy.pools import seen_by
    from gridsim.questions.labels import notices_of  # numpy: not needed for --help
    from gridsim.report.notices import left_aside, sentences
    from gridsim.report.pooling import pooled

    told = sentences(notices_of(policies, workload))
    if platform is None:
        return told
    plain = [it for it in policies.values() if not capabilities_of(it).site]
    told = [*(left_aside(with_applicable_demands(workload, platform), platform) if plain else []), *told]
    labels = [label for label, policy in policies.items() if seen_by(policy, platform).pooled]
    return [pooled(workload, platform, labels if len(labels) < len(policies) else ()), *told] if labels else told


def input_files(args: Namespace) -> Iterator[Path]:
    """Return files that a command may read: arguments, files in folders of logs, and tables joined by a mapping."""
    logs = getattr(args, "file", None) or getattr(args, "log", None) or []
    for name, value in vars(args).items():
        if name not in ("output", "out", "report"):
            yield from (Path(it) for it in (value if isinstance(value, list) else [value]) if isinstance(it, str))
    for folder in filter(Path.is_dir, map(Path, logs)):
        yield from folder.iterdir()
    if getattr(args, "site", None):
        from gridsim.registry import files_named

        yield from map(Path, files_named(str(site(args))))
    if logs and getattr(args, "mapping", None):
        from gridsim.workload.formats.table.cells import joined_files  # numpy: not needed for --help
        from gridsim.workload.formats.table.mapping import mapping_of

        first = Path(logs[0])
        yield from joined_files(mapping_of(args.mapping), first if first.is_dir() else first.parent)


def problems(workload: Workload) -> list[Problem]:
    """Return the problems found in the source of a workload."""
    return [Problem.from_json(entry) for entry in workload.provenance.get("problems", ())]


def problem_line(problem: Problem) -> str:
    """Return the text of one problem.

    Examples
    --------
    >>> problem_line(Problem("zero-runtime", 17, (8867, 8874), "skip"))
    'zero-runtime: 17 lines (8867, 8874, …) left out (--on zero-runtime=skip)'
    """
    noun = "line" if problem.count == 1 else "lines"
    return (
        f"{problem.kind}: {problem.count:,} {noun} ({problem.shown}) {problem.outcome} "
        f"({option(problem.kind, problem.rule)})"
    )


def _origin_lines(provenance: Any, jobs: int) -> Iterator[str]:
    from gridsim.number_formatting import listed  # numpy: not needed for --help

    if "jobs_read" not in provenance:
        seed = f", seed {provenance['seed']}" if "seed" in provenance else ""
        yield f"workload: {provenance.get('source', 'built-in')} model{seed}, {jobs:,} jobs"
        return
    yield f"workload: {provenance['source']}, {jobs:,} of {provenance['jobs_read']:,} jobs{_of_clusters(provenance)}"
    if provenance.get("unverified"):
        yield f"mapping '{provenance['mapping']}': {provenance['unverified']}"
    left = [f"{count:,} rows ({name})" for name, count in provenance.get("left_out", {}).items() if count]
    if left:
        yield f"left out by the filters of the mapping: {listed(left)}"
    if renumbered := [it for it in provenance.get("clusters", ()) if it["numbers_from"]]:
        added = listed([f"{it['numbers_from']:,} to those of {it['name']}" for it in renumbered])
        yield f"job numbers that occur in several clusters are made unique by adding {added}"
    fields = provenance["cores_field"]
    if provenance.get("cores_rule") == "allocated":
        if fields["requested"]:
            yield (
                f"cores of a job: allocated {fields['allocated']:,} times, requested {fields['requested']:,} times "
                f"without an allocation"
            )
    elif fields["allocated"]:
        yield (
            f"cores of a job: requested {fields['requested']:,} times, allocated {fields['allocated']:,} times "
            f"without a request"
        )


def _of_clusters(provenance: Any) -> str:
    """Return text on the clusters of the jobs, if the log has several and the choice is not obvious."""
    from gridsim.number_formatting import listed  # numpy: not needed for --help

    left = [f"{name}: {count:,} jobs" for name, count in provenance.get("clusters_left_out", {}).items()]
    names = [it["name"] for it in provenance.get("clusters", ())] or [provenance.get("cluster", "")]
    if not left and len(names) == 1:
        return ""
    of = f" of cluster{'' if len(names) == 1 else 's'} {listed(names)}"
    return of + (f" (left out: {', '.join(left)})" if left else "")


def _transform_lines(workload: Workload) -> Iterator[str]:
    """Return lines on the transforms and the resulting number of jobs."""
    transforms = workload.provenance.get("transforms", ())
    for entry in transforms:
        words = [f"{name} {_word(value)}" for name, value in entry.items() if name != "transform" and value is not None]
        yield ": ".join(["transform", str(entry["transform"]), *([", ".join(words)] if words else [])])
    if transforms:
        yield f"transformed: {len(workload):,} jobs"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else str(value)


_WORTH = 10_000
"""Number of jobs in all runs below which worker processes do not save time: about half a second of EASY."""


def workers_for(args: argparse.Namespace, workload: Workload, runs: int, progress: JobsProgress) -> Workers:
    """Return the workers for *runs* runs; enter the context before the display, whose thread prevents forking."""
    from gridsim.cli.terminal import hear_compiling  # numpy: not needed for --help
    from gridsim.machine.njit import preload
    from gridsim.workers import Workers, usable_cores

    requests = len(workload) if workload.tasks is None else len(workload.tasks)
    count = args.workers
    if count is None:
        count = min(usable_cores(), runs) if requests * runs >= _WORTH else 1

    def load() -> None:
        preload()
        gc.freeze()  # collections of garbage in all processes then skip the compiler's objects

    return Workers(count, share=[workload], say=progress.say, prepare=hear_compiling, preload=load)


def command(words: Sequence[str] | None = None) -> str:
    """Return the command line for results, without the number of workers, which does not affect them."""
    kept = iter(sys.argv[1:] if words is None else words)
    told = []
    for word in kept:
        name, equals, _ = word.partition("=")
        if not (name[:2] == "-j" or (name.startswith("--wo") and "--workers".startswith(name))):  # may be abbreviated
            told.append(word)
        elif not equals and not word[2:].isdecimal():
            next(kept, None)
    return shlex.join(["gridsim", *told])
