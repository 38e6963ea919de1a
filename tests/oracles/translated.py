"""Policies and balancers of gridsim in terms of the oracles, and comparisons with the schedules of these oracles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gridsim.model.platform import Platform
from gridsim.model.random_streams import stream
from gridsim.model.shares import ShareTree
from gridsim.model.time import NEVER, to_us
from gridsim.model.workload import Workload
from gridsim.policy import dag_ordering
from gridsim.policy.admission.plan import Conservative
from gridsim.policy.balancing import balancer as balancer_of
from gridsim.policy.fair_share import FairShare
from gridsim.policy.ordering import Fifo, InQueue, Random
from gridsim.policy.partition import Greedy, Rigid, ShareOfWork
from gridsim.policy.prediction import Average, Double, Recent, Requested
from gridsim.policy.presets import policy as scheduler_of
from gridsim.policy.reservation import Category, Depth, Easy, FirstFit, Selective, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_scheduler import MoldableBackfilling
from gridsim.policy.scheduler.plan_based import Planned
from gridsim.record import Record, Status
from gridsim.registry import Spec, name_of, parse
from gridsim.testing.admission_oracle import SEARCHES, Guarantor, terms_of
from gridsim.testing.moldable_oracle import Rules, shapes_of
from gridsim.testing.oracle import ORDERS, jobs_of, play, record_of, schedule
from tests.oracles import moldable
from tests.oracles.backfilling import (
    DRAWN,
    KEYS,
    Key,
    Predictions,
    Rule,
    listed,
    projected_slr,
    remaining,
    starvation_free,
)
from tests.oracles.grid import BALANCERS, Balancer, Tree, fair_share

__all__ = ["MOST", "compared", "deadlines_compared", "grid_compared", "of_list"]

MOST = 30
"""Number of jobs above which the oracles are slow."""


PROMISED = ("granted_us", "offer_us", "doublings", "broken", "killed", "killed_start_us", "killed_end_us")


class _Restarting(Guarantor):
    """Guarantor that kills a job to admit another one, but makes no offers."""

    def negotiate(self, job: Any, now: int) -> None:
        """Reject the job."""


def deadlines_compared(record: Record, workload: Workload, policy: str, cores: int, **options: Any) -> bool:
    """Compare a record with the oracle of guaranteed deadlines; return whether it covers the policy."""
    spec = parse(policy)
    name, given = spec.name, dict(spec.parameters)
    compress, at = given.pop("compress", "planned"), given.pop("compress_at", "early")
    order, around = given.pop("ordering", None), given.pop("admission", None)
    feedback, kind = name == "fqops", Guarantor
    if around is not None:  # feedback or restart, around another admission
        outer = around if isinstance(around, Spec) else parse(around)
        inner = outer.parameters.get("inner", "qops")
        inner = inner if isinstance(inner, Spec) else parse(inner)
        more = {key: value for key, value in outer.parameters.items() if key != "inner"}
        name, feedback, given = inner.name, True, given | dict(inner.parameters) | more
        if outer.name == "restart":
            kind, given = _Restarting, given | {"kill_restart": True}
        elif outer.name != "feedback":
            return False
    given = {key: None if value == "none" else value for key, value in given.items()}
    if len(workload) > MOST or name not in SEARCHES:
        return False
    if workload.tolerance is not None:  # every offer is accepted
        workload = replace(workload, tolerance=np.minimum(workload.tolerance, 1e9))
    if given.get("heuristic") == "fifo":
        given["heuristic"] = "fcfs"
    shared = {key: value for key, value in options.items() if value is not None}
    how: dict[str, Any] = {"overrun": shared.get("overrun", "kill"), "tick": to_us(shared.get("tick", 1.0))}
    how["compress_by"] = None if order is None else ORDERS[order]
    jobs = jobs_of(workload)
    search, terms = terms_of(name, given)
    terms = replace(terms, feedback=feedback)
    machine = kind(list(jobs), cores, search, terms, compress=compress, compress_at=at, **how)
    play(machine, shared.get("instant", "batched"), None)
    for job in jobs:  # an artificial deadline may exceed the time range of the engines
        if job.granted > NEVER // 8:
            job.granted = int(record.promises.granted_us[job.row])  # type: ignore[union-attr]
    expected = record_of(workload, jobs, machine, machine.promises(jobs))
    _same(record, expected, ("start_us", "end_us", "status"))
    _same(record.promises, expected.promises, PROMISED)
    return True


def _same(one: Any, other: Any, names: Sequence[str]) -> None:
    for name in names:
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), f"{name}: engines and oracle differ"


def compared(record: Record, workload: Workload, policy: Any, cores: int, **options: Any) -> bool:
    """Compare a record with the oracle of its policy; return whether one covers the run.

    A test-defined ordering provides its oracle key in ``oracle_key``, and a reservation rule in ``oracle_rule``.
    """
    if len(workload) > MOST:
        return False
    options = {name: value for name, value in options.items() if value is not None}
    found = _expected(workload, scheduler_of(policy), cores, options)
    if found is None:
        return False
    expected, predictions = found
    _same(record, expected, ("start_us", "end_us", "status", *(["given"] if expected.cores_used is not None else [])))
    if record.predictions is not None and predictions is not None:
        known = record.status != Status.rejected
        assert record.predictions.prediction_us[known].tolist() == np.array(predictions[0])[known].tolist()
        assert record.predictions.corrections[known].tolist() == np.array(predictions[1])[known].tolist()
    return True


Found = tuple[Record, tuple[list[int], list[int]] | None]


def _expected(workload: Workload, scheduler: Any, cores: int, options: dict[str, Any]) -> Found | None:
    if type(scheduler) is Backfilling:
        return _of_list(workload, scheduler, cores, options)
    if type(scheduler) is Planned:
        return _of_plan(workload, scheduler, cores, options)
    if type(scheduler) is MoldableBackfilling:
        return _of_starts(workload, scheduler, cores, options)
    return None


def _key(ordering: Any) -> Key | None:
    own: Key | None = getattr(ordering, "oracle_key", None)
    names = _names(ordering)
    match ordering:
        case dag_ordering.LongestRemaining():
            return remaining(-1, ordering.rank_of == "inclusive")
        case dag_ordering.ShortestRemaining():
            return remaining(1, ordering.rank_of == "inclusive")
        case dag_ordering.ProjectedSlr():
            return projected_slr(ordering.lateness)
        case dag_ordering.ProjectedSlrStarvationFree():
            return starvation_free(ordering.lateness)
    return own or (DRAWN if "random" in names else next((KEYS[name] for name in names if name in KEYS), None))


def _names(thing: Any) -> tuple[str, ...]:
    return (name_of(type(thing)), *getattr(thing, "aliases", ()))


def _draws(options: dict[str, Any], *names: str | int) -> Any:
    """Return the random numbers of a run for a purpose; those of the first cluster by default."""
    return stream(options.get("seed", 1), *(names or ("cluster", 0)))


def _rule(reserve: Any) -> Rule | None:
    if isinstance(reserve, Strict):
        return Rule((0,), strict=True)
    if isinstance(reserve, FirstFit | Easy | Depth):
        return Rule((0 if isinstance(reserve, FirstFit) else getattr(reserve, "k", 1),))
    own: Rule | None = getattr(reserve, "oracle_rule", None)
    return own


def of_list(scheduler: Any, workload: Workload, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return order, rule, predictions, backfill order and draws of a list policy; None if no oracle covers it."""
    behind, predictor, corrector = scheduler.backfill_order, scheduler.predict, scheduler.correct
    by, rule, ranks = _key(scheduler.ordering), _rule(scheduler.reserve), _key(behind)
    in_queue = isinstance(behind, InQueue)
    if by is None or rule is None or (ranks is None and not in_queue):
        return None
    users = workload.labels.get("user", np.full(len(workload), -1)).tolist()
    predictions = Predictions(users, name_of(type(predictor)), corrector=name_of(type(corrector)))
    predictions.n = predictor.n if isinstance(predictor, Recent) else 2
    predictions.alpha = predictor.alpha if isinstance(predictor, Average) else 0.5
    predictions.cap = not isinstance(corrector, Double) or corrector.cap
    predictions.tick = to_us(options.get("tick", 1.0))
    draws = _draws(options)
    given = {"by": by, "rule": rule, "predictions": predictions, "behind": None if in_queue else ranks, "draws": draws}
    afresh = isinstance(scheduler.ordering, dag_ordering.ProjectedSlrStarvationFree)
    hold = not isinstance(scheduler.ordering, Random) or scheduler.ordering.hold
    return given | {"afresh": afresh, "hold": hold}


def _of_list(workload: Workload, scheduler: Backfilling, cores: int, options: dict[str, Any]) -> Found | None:
    given = of_list(scheduler, workload, options)
    if given is None:
        return None
    record, jobs = listed(workload, cores, given, **options)
    predictions = given["predictions"]
    known = [[of.get(job, 0) for job in jobs] for of in (predictions.first, predictions.times)]
    return record, None if isinstance(scheduler.predict, Requested) else (known[0], known[1])


# -- trees -------------------------------------------------------------------------------------------------------------


def grid_compared(record: Record, workload: Workload, platform: Platform, policy: Any, **options: Any) -> bool:
    """Compare a record of a run on a tree with the oracle; return whether it covers the run.

    It covers list policies without predictions, and fixed delays.

    Parameters
    ----------
    **options
        Options of the run, and *draws*: a generator of random numbers for each cluster instead of its stream.
    """
    scheduler, draws = scheduler_of(policy), options.pop("draws", None)
    options = {name: value for name, value in options.items() if value is not None}
    balancer = _of_balancer(balancer_of(options.get("balancer", "expected-queue")), _draws(options, "router"))
    if balancer is None or platform.network.kind != "ccr" or type(scheduler) is not Backfilling:
        return False
    if not isinstance(scheduler.predict, Requested):
        return False
    ordering = scheduler.ordering
    shared = _of_shares(ordering, workload, platform) if isinstance(ordering, FairShare) else {}
    if shared is None:
        return False
    given = of_list(replace(scheduler, ordering=Fifo()) if shared else scheduler, workload, options)
    if given is None:
        return False
    tree = Tree(
        workload,
        platform,
        balancer,
        lambda k: given | {"draws": draws[k] if draws else _draws(options, "cluster", k)} | shared,
        split=options.get("split", "task"),
        overrun=options.get("overrun", "kill"),
        tick=to_us(options.get("tick", 1.0)),
        together=getattr(ordering, "scope", "cluster") == "grid",
    )
    tree.play(options.get("instant", "batched"))
    found = record if record.tasks is None else record.tasks
    names = ("start_us", "end_us") if record.tasks is None else ("start_us", "end_us", "ready_us")
    for name in names:
        expected = [getattr(task, name.removesuffix("_us")) for task in tree.tasks]
        assert getattr(found, name).tolist() == expected, f"{name}: engines and oracle differ"
    where = [-1 if task.cluster is None else task.cluster.index for task in tree.tasks]
    ran = np.array(where) >= 0
    assert found.cluster[ran].tolist() == [k for k in where if k >= 0], "cluster: engines and oracle differ"
    killed = [task.runtime > task.estimate and options.get("overrun") != "extend" for task in tree.tasks]
    ended = np.where(killed, Status.killed_walltime, Status.completed)
    assert found.status.tolist() == np.where(ran, ended, Status.rejected).tolist(), "status: engines and oracle differ"
    if record.rank is not None:
        assert record.rank.tolist() == [task.rank for task in tree.tasks], "rank: engines and oracle differ"
    return True


def _of_balancer(balancer: Any, draws: Any) -> Balancer | None:
    """Return the balancer of the oracle; None if it has none, as for balancers that compare quotes."""
    name, given = name_of(type(balancer)), _fields(balancer)
    if name not in BALANCERS:
        return None
    inner = _of_balancer(balancer_of(given["balancer"]), draws) if "balancer" in given else None
    return None if inner is None and "balancer" in given else Balancer(name, given, inner, draws)


def _of_shares(ordering: FairShare, workload: Workload, platform: Platform) -> dict[str, Any] | None:
    if ordering.usage != "running":
        return None
    paths = workload.names["share"]
    tree = platform.shares or ShareTree.equal(tuple(paths))
    key = fair_share(tree.shares, paths, ordering.combine, ordering.scope)
    return {"by": key, "afresh": ordering.reeval == "start"}


# -- plans and sizes ---------------------------------------------------------------------------------------------------


def _of_plan(workload: Workload, scheduler: Planned, cores: int, options: dict[str, Any]) -> Found | None:
    if type(scheduler.admission) is not Conservative or not isinstance(scheduler.predict, Requested):
        return None
    order, compress = "fifo", scheduler.compress
    if scheduler.ordering is not None:
        names = _names(scheduler.ordering)
        order = next((name for name in names if name in ORDERS), "")
        if order == "fifo" or "fifo-task" in names:
            order, compress = "fifo", "arrival"
        if not order:
            return None
    if isinstance(scheduler.partition, Greedy | ShareOfWork):
        algorithm: Any = "submit-greedy" if isinstance(scheduler.partition, Greedy) else "submit-fair-share"
        jobs, known, rules = jobs_of(workload), jobs_of(workload), Rules(**_fields(scheduler.partition))
        machine = moldable.AtSubmit(jobs, shapes_of(workload, cores), cores, rules, algorithm)
        machine.compress, machine.at_every_end = compress, scheduler.compress_at == "every"
        if order != "fifo":
            machine.compress_by = lambda job, now: ORDERS[order](known[job.row], now)
        return _molded(workload, jobs, machine, options)
    made = schedule(
        workload, cores, "conservative", compress=compress, compress_at=scheduler.compress_at, order=order, **options
    )
    return made, None


def _fields(thing: Any) -> dict[str, Any]:
    return {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}


def _of_starts(workload: Workload, scheduler: MoldableBackfilling, cores: int, options: dict[str, Any]) -> Found | None:
    by, partition, reserve = _key(scheduler.ordering), scheduler.partition, scheduler.reserve
    limit = getattr(partition, "oracle_limit", None)
    if by is None or not (limit or isinstance(partition, Rigid | Greedy | ShareOfWork)):
        return None
    given = {"choices": partition.choices, "grid": partition.grid} if limit else _fields(partition)
    if isinstance(partition, Rigid):
        workload = replace(workload, moldable=None)
    elif isinstance(partition, Greedy):
        given |= {"wf": 1e9, "gap": 1}  # the share of every job is the machine
    given |= {"backfill": scheduler.backfill, "promise_order": scheduler.promise_order}
    if isinstance(reserve, Selective):
        given["xfactor"], reserve = reserve.k, reserve.others
    if isinstance(reserve, Category) and reserve.key == "weight":
        given["category"] = {name: getattr(reserve, name) for name in ("count", "first", "ratio")}
    elif isinstance(reserve, Easy | FirstFit | Depth):
        given["head"] = not isinstance(reserve, FirstFit)
    else:
        return None
    how = {"by": by, "limit": limit, "depth": getattr(reserve, "k", 1), "draws": _draws(options)}
    jobs = jobs_of(workload)
    return _molded(workload, jobs, moldable.AtStart(workload, jobs, cores, Rules(**given), **how), options)


def _molded(workload: Workload, jobs: Any, machine: Any, options: dict[str, Any]) -> Found:
    machine.extend, machine.tick = options.get("overrun") == "extend", to_us(options.get("tick", 1.0))
    play(machine, options.get("instant", "batched"), None)
    sizes = np.array([job.cores for job in jobs], dtype=np.int64)
    made = record_of(workload, jobs, machine)
    status = np.where(made.start_us < NEVER, made.status, np.int8(Status.rejected))  # no size fits
    return replace(made, status=status, cores_used=sizes), None
