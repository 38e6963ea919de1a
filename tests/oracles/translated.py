"""Policies of gridsim in the words of the oracles of one pool of cores, and the schedules that these make."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from gridsim.model.streams import stream
from gridsim.model.time import whole
from gridsim.model.workload import Workload
from gridsim.policy.admission.conservative import Conservative
from gridsim.policy.correction import Double
from gridsim.policy.ordering import Fifo
from gridsim.policy.partition import Greedy, ShareOfWork
from gridsim.policy.prediction import Average, Recent, Requested
from gridsim.policy.presets import policy as scheduler_of
from gridsim.policy.reservation import Category, Depth, Easy, FirstFit, Selective, Strict
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.policy.scheduler.moldable_scheduler import Molding
from gridsim.policy.scheduler.planned import Planned
from gridsim.policy.tail import InQueue
from gridsim.record import Record, Status
from gridsim.registry import name_of
from gridsim.testing.moldable_oracle import AtStart, Rules, machine_of
from gridsim.testing.oracle import ORDERS, play, record_of, schedule
from tests.oracles.backfilling import DRAWN, KEYS, Beliefs, Key, Rule, listed

__all__ = ["MOST", "compared"]

MOST = 30
"""Jobs, above which the oracles are slow."""


def compared(record: Record, workload: Workload, policy: Any, cores: int, **options: Any) -> bool:
    """Compare a record with the oracle of its policy; whether one covers the run.

    A policy may name its key and its lanes for the oracle: attributes ``oracle_key`` of an ordering and ``oracle_rule``
    of a reservation rule that a test defines.
    """
    if len(workload) > MOST:
        return False
    options = {name: value for name, value in options.items() if value is not None}
    found = _expected(workload, scheduler_of(policy), cores, options)
    if found is None:
        return False
    expected, beliefs = found
    for name in ("start_us", "end_us", "status", *(["given"] if expected.cores_used is not None else [])):
        assert getattr(record, name).tolist() == getattr(expected, name).tolist(), f"{name}: engines and oracle differ"
    if record.predictions is not None and beliefs is not None:
        known = record.status != Status.rejected
        assert record.predictions.prediction_us[known].tolist() == np.array(beliefs[0])[known].tolist()
        assert record.predictions.corrections[known].tolist() == np.array(beliefs[1])[known].tolist()
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


def _of_list(workload: Workload, scheduler: Backfilling, cores: int, options: dict[str, Any]) -> Found | None:
    by, rule, behind = _key(scheduler.ordering), _rule(scheduler.reserve), scheduler.backfill_order
    ranks = None if isinstance(behind, InQueue) else _key(behind)
    if by is None or rule is None or (ranks is None and not isinstance(behind, InQueue)):
        return None
    if rule.strict and by is DRAWN:  # it draws one request at a time, and may hold it
        return None
    predictor, corrector = scheduler.predict, scheduler.correct
    users = workload.labels.get("user", np.full(len(workload), -1)).tolist()
    beliefs = Beliefs(users, name_of(type(predictor)), corrector=name_of(type(corrector)))
    beliefs.n = predictor.n if isinstance(predictor, Recent) else 2
    beliefs.alpha = predictor.alpha if isinstance(predictor, Average) else 0.5
    beliefs.cap = not isinstance(corrector, Double) or corrector.cap
    beliefs.tick = whole(options.get("tick", 1.0))
    record, jobs = listed(
        workload, cores, by, rule, beliefs, ranks, draws=stream(options.get("seed", 1), "cluster", 0), **options
    )
    known = [[of.get(job, 0) for job in jobs] for of in (beliefs.first, beliefs.times)]
    return record, None if isinstance(predictor, Requested) else (known[0], known[1])


def _of_plan(workload: Workload, scheduler: Planned, cores: int, options: dict[str, Any]) -> Found | None:
    if type(scheduler.admission) is not Conservative or not isinstance(scheduler.predict, Requested):
        return None
    if isinstance(scheduler.partition, Greedy | ShareOfWork):
        if scheduler.ordering is not None or scheduler.compress != "planned" or scheduler.compress_at != "early":
            return None
        given = _fields(scheduler.partition)
        algorithm = "submit-greedy" if isinstance(scheduler.partition, Greedy) else "submit-fair-share"
        return _molded(workload, cores, algorithm, given, options)
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
    if type(scheduler.ordering) is not Fifo or not isinstance(scheduler.partition, ShareOfWork):
        return None
    reserve, given = scheduler.reserve, _fields(scheduler.partition)
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
    workload: Workload, cores: int, algorithm: Any, given: dict[str, Any], options: dict[str, Any]
) -> Found | None:
    jobs, machine = machine_of(workload, cores, algorithm, Rules(**given))
    machine.extend, machine.tick = options.get("overrun") == "extend", whole(options.get("tick", 1.0))
    play(machine, options.get("instant", "batched"), None)
    sizes = np.array([job.cores for job in jobs], dtype=np.int64)
    return replace(record_of(workload, jobs, machine), cores_used=sizes), None
