"""Policies of gridsim in terms of the oracles for one pool of cores, and the schedules of these oracles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gridsim.model.streams import stream
from gridsim.model.time import NEVER, whole
from gridsim.model.workload import Workload
from gridsim.policy.admission.conservative import Conservative
from gridsim.policy.correction import Double
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import Asked, Greedy, ShareOfWork
from gridsim.policy.prediction import Average, Recent, Requested
from gridsim.policy.presets import policy as scheduler_of
from gridsim.policy.reservation import Category, Depth, Easy, FirstFit, Selective, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_scheduler import Molding
from gridsim.policy.scheduler.planned import Planned
from gridsim.policy.tail import InQueue
from gridsim.record import Record, Status
from gridsim.registry import name_of, parse
from gridsim.testing.admission_oracle import SEARCHES, Guarantor, terms_of
from gridsim.testing.moldable_oracle import Rules, machine_of
from gridsim.testing.oracle import ORDERS, jobs_of, play, record_of, schedule
from tests.oracles.backfilling import DRAWN, KEYS, Key, Predictions, Rule, listed

__all__ = ["MOST", "compared", "deadlines_compared", "of_list"]

MOST = 30
"""Number of jobs above which the oracles are slow."""


PROMISED = ("granted_us", "offer_us", "doublings", "broken", "killed", "killed_start_us", "killed_end_us")


def deadlines_compared(record: Record, workload: Workload, policy: str, cores: int, **options: Any) -> bool:
    """Compare a record with the oracle of guaranteed deadlines; return whether it covers the policy."""
    spec = parse(policy)
    given = dict(spec.parameters)
    compress, at = given.pop("compress", "planned"), given.pop("compress_at", "early")
    order = given.pop("ordering", None)
    given = {name: None if value == "none" else value for name, value in given.items()}
    if len(workload) > MOST or spec.name not in SEARCHES:
        return False
    if workload.tolerance is not None:  # every offer is accepted
        workload = replace(workload, tolerance=np.minimum(workload.tolerance, 1e9))
    if given.get("heuristic") == "fifo":
        given["heuristic"] = "fcfs"
    shared = {name: value for name, value in options.items() if value is not None}
    how: dict[str, Any] = {"overrun": shared.get("overrun", "kill"), "tick": whole(shared.get("tick", 1.0))}
    how["compress_by"] = None if order is None else ORDERS[order]
    jobs = jobs_of(workload)
    machine = Guarantor(list(jobs), cores, *terms_of(spec.name, given), compress=compress, compress_at=at, **how)
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
    sizes = workload.moldable
    if sizes is not None and sizes.size_first is not None and (record.status == Status.rejected).any():
        return True  # the oracle does not reject jobs none of whose named sizes fits the machine
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
    if type(scheduler) is Molding:
        return _of_starts(workload, scheduler, cores, options)
    return None


def _key(ordering: Any) -> Key | None:
    own: Key | None = getattr(ordering, "oracle_key", None)
    names = _names(ordering)
    return own or (DRAWN if "random" in names else next((KEYS[name] for name in names if name in KEYS), None))


def _names(thing: Any) -> tuple[str, ...]:
    return (name_of(type(thing)), *getattr(thing, "aliases", ()))


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
    if rule.strict and by is DRAWN:  # it draws one request at a time, and may reserve it
        return None
    users = workload.labels.get("user", np.full(len(workload), -1)).tolist()
    predictions = Predictions(users, name_of(type(predictor)), corrector=name_of(type(corrector)))
    predictions.n = predictor.n if isinstance(predictor, Recent) else 2
    predictions.alpha = predictor.alpha if isinstance(predictor, Average) else 0.5
    predictions.cap = not isinstance(corrector, Double) or corrector.cap
    predictions.tick = whole(options.get("tick", 1.0))
    draws = stream(options.get("seed", 1), "cluster", 0)
    return {"by": by, "rule": rule, "predictions": predictions, "behind": None if in_queue else ranks, "draws": draws}


def _of_list(workload: Workload, scheduler: Backfilling, cores: int, options: dict[str, Any]) -> Found | None:
    given = of_list(scheduler, workload, options)
    if given is None:
        return None
    record, jobs = listed(workload, cores, given, **options)
    predictions = given["predictions"]
    known = [[of.get(job, 0) for job in jobs] for of in (predictions.first, predictions.times)]
    return record, None if isinstance(scheduler.predict, Requested) else (known[0], known[1])


def _of_plan(workload: Workload, scheduler: Planned, cores: int, options: dict[str, Any]) -> Found | None:
    if type(scheduler.admission) is not Conservative or not isinstance(scheduler.predict, Requested):
        return None
    if isinstance(scheduler.partition, Greedy | ShareOfWork):
        if scheduler.ordering is not None or scheduler.compress != "planned":
            return None
        algorithm = "submit-greedy" if isinstance(scheduler.partition, Greedy) else "submit-fair-share"
        every = scheduler.compress_at == "every"
        return _molded(workload, cores, algorithm, _fields(scheduler.partition), options, at_every_end=every)
    order, compress = "fifo", scheduler.compress
    if scheduler.ordering is not None:
        names = _names(scheduler.ordering)
        order = next((name for name in names if name in ORDERS), "")
        if order == "fifo" or "fifo-task" in names:
            order, compress = "fifo", "arrival"
        if not order:
            return None
    made = schedule(
        workload, cores, "conservative", compress=compress, compress_at=scheduler.compress_at, order=order, **options
    )
    return made, None


def _fields(thing: Any) -> dict[str, Any]:
    return {each.name: getattr(thing, each.name) for each in fields(thing)}


def _of_starts(workload: Workload, scheduler: Molding, cores: int, options: dict[str, Any]) -> Found | None:
    if type(scheduler.ordering) is not Fifo or not isinstance(scheduler.partition, Asked | Greedy | ShareOfWork):
        return None
    reserve, given = scheduler.reserve, _fields(scheduler.partition)
    if isinstance(scheduler.partition, Asked):
        workload = replace(workload, moldable=None)
    elif isinstance(scheduler.partition, Greedy):
        given |= {"wf": 1e9, "gap": 1}  # the share of every job is the machine
    given |= {"backfill": scheduler.backfill, "promise_order": scheduler.promise_order}
    if isinstance(reserve, Selective):
        given["xfactor"], reserve = reserve.k, reserve.others
    if isinstance(reserve, Category) and reserve.key == "weight":
        given["category"] = {name: getattr(reserve, name) for name in ("count", "first", "ratio")}
    elif isinstance(reserve, Easy | FirstFit):
        given["head"] = isinstance(reserve, Easy)
    else:
        return None
    return _molded(workload, cores, "aggressive-fair-share", given, options)


def _molded(
    workload: Workload,
    cores: int,
    algorithm: Any,
    given: dict[str, Any],
    options: dict[str, Any],
    at_every_end: bool = False,
) -> Found:
    jobs, machine = machine_of(workload, cores, algorithm, Rules(**given))
    machine.extend, machine.tick = options.get("overrun") == "extend", whole(options.get("tick", 1.0))
    machine.at_every_end = at_every_end
    play(machine, options.get("instant", "batched"), None)
    sizes = np.array([job.cores for job in jobs], dtype=np.int64)
    return replace(record_of(workload, jobs, machine), cores_used=sizes), None
