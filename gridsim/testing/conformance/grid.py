"""Cases of the grid and DAG family: DAG jobs on a tree of clusters, every start and every metric exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gridsim.errors import InputError
from gridsim.model.network import Network
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.shares import ShareTree
from gridsim.model.tasks import Tasks
from gridsim.model.time import MICROSECOND
from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.testing.conformance.outcome import Comparison, Outcome, Run
from gridsim.testing.conformance.running import known_only
from gridsim.testing.grid_metrics_cases import check_metrics_case, compare_metrics
from gridsim.testing.policies import Wrapper

WORDS = {
    "arrival": "submit",
    "exec": "runtime",
    "finish": "end",
    "fit": "reserve",
    "fifo-job": "fifo",
    "fairshare_scope": "fair-share?scope",
    "fairshare_combine": "fair-share?combine",
    "fairshare_reeval": "fair-share?reeval",
    "random_hold": "random?hold",
    "work": "expected-queue?work",
    "include_candidate": "expected-queue?include_candidate",
    "advertise": "expected-queue?advertise",
    "network": "kind of the network",
}
"""The family's words for what gridsim calls otherwise; the rest are the same."""

PROSE = ("id", "kind", "title", "note")
_OPTIONS = (
    "fit",
    "ccr",
    "delay_levels_power",
    "transfer_start",
    "network",
    "capacity",
    "slots",
    "transfer_rate_cap",
    "work",
    "include_candidate",
    "split",
    "advertise",
    "rank",
    "fairshare_scope",
    "fairshare_combine",
    "fairshare_reeval",
    "random_hold",
)


_NETWORK = ("ccr", "delay_levels_power", "transfer_start", "capacity", "slots", "transfer_rate_cap")


def check_metrics(case: Mapping[str, Any]) -> Outcome:
    """A case of kind ``metrics``."""
    messages = tuple(check_metrics_case(case))
    return Outcome.of([Run("metrics", "failed" if messages else "passed", messages)])


def check_schedule(case: Mapping[str, Any]) -> Outcome:
    """A case of kind ``schedule``."""
    options = case.get("options", {})
    known = (*PROSE, "platform", "jobs", "policy", "options", "share_tree", "draws", "expected")
    known_only(case, known, "the case holds")
    known_only(options, _OPTIONS, "option")
    platform = _platform(case, options)
    names, workload = _jobs(case["jobs"], case.get("share_tree"))
    record = _run(case, options, workload, platform)
    comparison = Comparison()
    for part, value in case["expected"].items():
        if part == "tasks":
            _compare_tasks(comparison, record, names, [cluster.name for cluster in platform.clusters()], value)
        elif part in ("jobs", "workload"):
            jobs = list(dict.fromkeys(job for job, _ in names))
            for message in compare_metrics(record, jobs, {part: value}):
                comparison.differs(message)
        else:
            comparison.cannot(part)
    return Outcome.of([comparison.verdict(f"{case['policy']} {options.get('fit', 'strict')}")])


def _router(tree: Mapping[str, Any]) -> RouterSpec:
    children = (
        _router(child) if "router" in child else ClusterSpec(child["cluster"], child["cores"], child["kind"])
        for child in tree["children"]
    )
    return RouterSpec(tree["router"], tuple(children))


def _platform(case: Mapping[str, Any], options: Mapping[str, Any]) -> Platform:
    words = {name: options[name] for name in _NETWORK if name in options}
    words |= {"kind": options["network"]} if "network" in options else {}
    shares = case.get("share_tree")
    return Platform(_router(case["platform"]), network=Network(**words), shares=ShareTree(shares) if shares else None)


def _jobs(
    jobs: Sequence[Mapping[str, Any]], shares: Mapping[str, int] | None
) -> tuple[list[tuple[str, str]], Workload]:
    """Names of job and task in task order, and the workload."""
    ordered = sorted(jobs, key=lambda job: job["arrival"])
    names = [(job["id"], task["id"]) for job in ordered for task in job["tasks"]]
    rows = {name: row for row, name in enumerate(names)}
    for place, job in enumerate(ordered):
        for name in {name for edge in job["edges"] for name in edge}:
            if (job["id"], name) not in rows:
                raise InputError(f"names '{name}', which is not a task of {job['id']}", field=f"jobs[{place}].edges")
    every = [task for job in ordered for task in job["tasks"]]
    kinds = tuple(dict.fromkeys(task["kind"] for task in every))
    tasks = Tasks.from_edges(
        counts=[len(job["tasks"]) for job in ordered],
        runtime=[task["exec"] for task in every],
        cores=[task["cores"] for task in every],
        kind=[kinds.index(task["kind"]) for task in every],
        kinds=kinds,
        edges=[(rows[job["id"], one], rows[job["id"], other]) for job in ordered for one, other in job["edges"]],
        names=[task for _, task in names],
        jobs=[job["id"] for job in ordered],
    )
    labels: dict[str, Any] = {}
    paths: tuple[str, ...] = ()
    if shares:
        paths = ShareTree(shares).leaves
        labels["share"] = [paths.index(job["share"]) if job.get("share") else 0 for job in ordered]
    submits = [job["arrival"] for job in ordered]
    return names, Workload.from_tasks(tasks, submit=submits, labels=labels, names={"share": paths} if paths else None)


class _Scripted(Wrapper):
    """A scheduler whose cluster draws what a case says instead of at random."""

    _draws: Sequence[Sequence[int]]

    def setup(self, cluster: Any, rng: Any) -> None:
        self._scheduler.setup(cluster, _Draws(self._draws[cluster.index]))


class _Draws:
    """Numbers that were drawn, in the place of a generator."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = iter(numbers)

    def integers(self, n: int) -> int:
        drawn = next(self._numbers, n)
        if drawn >= n:
            raise InputError(f"the case draws {drawn} of {n} ready tasks, or ran out of draws", field="draws")
        return drawn


def _run(case: Mapping[str, Any], options: Mapping[str, Any], workload: Workload, platform: Platform) -> Record:
    from gridsim.policy.presets import policy as make_policy  # compiled kernels: only when something runs
    from gridsim.simulation import Run as Options
    from gridsim.simulation import run

    name = case["policy"]
    scheduler = make_policy(f"backfilling?ordering={_ordering(name, options)}&reserve={options.get('fit', 'strict')}")
    if "draws" in case:
        scheduler = _Scripted(
            scheduler, _draws=[case["draws"].get(cluster.name, ()) for cluster in platform.clusters()]
        )
    return run(workload, platform, scheduler, Options(balancer=_balancer(options), split=options.get("split", "task")))


def _ordering(policy: str, options: Mapping[str, Any]) -> str:
    words: dict[str, Any] = {}
    if policy == "fair-share":
        words = {name: options.get(f"fairshare_{name}") for name in ("scope", "combine", "reeval")}
    elif policy == "random":
        words = {"hold": options.get("random_hold")}
    elif policy in ("lrtf", "srtf"):
        words = {"rank_of": options.get("rank")}
    return _spec("fifo" if policy == "fifo-job" else policy, words)


def _balancer(options: Mapping[str, Any]) -> str:
    return _spec("expected-queue", {name: options.get(name) for name in ("work", "include_candidate", "advertise")})


def _spec(name: str, words: Mapping[str, Any]) -> str:
    given = ",".join(f"{key}={str(value).lower()}" for key, value in words.items() if value is not None)
    return f"{name}({given})" if given else name


def _compare_tasks(
    comparison: Comparison,
    record: Record,
    names: Sequence[tuple[str, str]],
    clusters: Sequence[str],
    expected: Mapping[str, Mapping[str, Any]],
) -> None:
    tasks = record.tasks
    assert tasks is not None
    assert record.rank is not None
    rows = {f"{job}/{task}": row for row, (job, task) in enumerate(names)}
    for name, fields in expected.items():
        if name not in rows:
            comparison.equal(f"tasks {name}", "not there", "there")
            continue
        row = rows[name]
        times = {"rank": record.rank, "ready": tasks.ready_us, "start": tasks.start_us, "finish": tasks.end_us}
        found: dict[str, Any] = {word: Fraction(int(column[row]), MICROSECOND) for word, column in times.items()}
        found["cluster"] = clusters[tasks.cluster[row]]
        for word, value in fields.items():
            if word in found:
                comparison.equal(f"tasks {name} {word}", found[word], value)
            else:
                comparison.cannot(f"tasks.{word}")
