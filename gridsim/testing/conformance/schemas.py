"""Schemas of the cases of each family and kind: what they have to be to be run and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.schema import ANY, NUMBER, WHOLE, Number, Schema

_CORES = Number(1, MOST_CORES, whole=True)
_AMOUNT = Number(0, 2**53, whole=True)
_SECONDS = Number(0, 1e11)
_WHOLE_SECONDS = Number(0, 1e11, whole=True)
_INSTANT = Number(-1e11, 1e11)
_PART = Number(0, 1)
_RATIO = re.compile(r"-?[0-9]{1,30}([./][0-9]{1,30})?")
_DIGITS = re.compile("[0-9]{1,9}")
_PROBABILITY = re.compile(r"0?\.[0-9]{1,15}")
_FACTOR = Number(0, 1e6)
_SIZE = Number(1, 10_000, whole=True)
"""Cores of a moldable job or its machine: a size each is evaluated."""

_PARAMETER = (str, bool, NUMBER, None)
_EXPECTED_JOB = {"id": WHOLE}
_RIGID = {"id": WHOLE, "submit": _SECONDS, "runtime": _SECONDS, "estimate": _SECONDS, "cores": _CORES}
_RUN = {"algorithm": str, "parameters": {"instant?": str, str: ANY}}
_PLATFORM = {"cores": _CORES}

_DEADLINE = {
    "schedule": {
        "platform": _PLATFORM,
        "jobs": [{**_RIGID, "deadline?": (_SECONDS, None), "tolerance?": _FACTOR, "restartable?": bool}],
        "runs": [
            {
                **_RUN,
                "expected": {"jobs?": [_EXPECTED_JOB], "timeline?": [{"time": _INSTANT, "plan?": {str: _INSTANT}}]},
            }
        ],
    },
    "deadline_assignment": {
        "platform": _PLATFORM,
        "jobs": [_RIGID],
        "easy?": [{**_EXPECTED_JOB, "response?": _INSTANT}],
        "expected?": [{"stringency": _PART, "deadlines?": [{"id": WHOLE, "deadline": _INSTANT}]}],
        "relaxation?": [
            {"R": Number(1, 1e6), "floor": _SECONDS, "estimate": _SECONDS, "artificial_response": _SECONDS}
        ],
    },
    "charges": {
        "platform": _PLATFORM,
        "jobs": [
            {
                "id": WHOLE,
                "submit": _SECONDS,
                "runtime": _SECONDS,
                "cores": _CORES,
                "estimate?": _SECONDS,
                "easy_response": _SECONDS,
                "agreed_response": (_SECONDS, None),
            }
        ],
        "expected?": [{"id": WHOLE, str: (NUMBER, None)}],
        "totals?": {str: NUMBER},
        "core_class_bounds?": {_DIGITS: [(WHOLE, None)]},
    },
    "load_expansion": {
        "jobs": [{"id": WHOLE, "submit": _WHOLE_SECONDS, "runtime": _WHOLE_SECONDS, "cores": _CORES}],
        "expected": [{"load": Number(1e-6, 1e6), "runtimes": [_WHOLE_SECONDS]}],
    },
}

_RANGE = {
    "min?": _SIZE,
    "max?": _SIZE,
    "A?": Number(1, 10_000),
    "sigma?": _FACTOR,
    "table?": [[_SIZE, Number(1e-6, 1e9)]],
}
_MOLDABLE_JOB = {
    "id": WHOLE,
    "submit": _SECONDS,
    "runtime": _SECONDS,
    "estimate": _SECONDS,
    "processors": _SIZE,
    **_RANGE,
}
_PLACE = {"processors": _SIZE, "start": _INSTANT, "end": _INSTANT}
_MOLDABLE_EXPECTED = {"jobs": [{**_EXPECTED_JOB, "start?": _INSTANT, "end?": _INSTANT}]}
_MACHINE_SIZE = {"processors": _SIZE}
_LIMITED_JOB = {"id": WHOLE, "weight": Number(1e-6, 1e9), "min": _SIZE, "max": _SIZE}
_EXPECTED_LIMIT = {"id": WHOLE, "limit": WHOLE, "largest": WHOLE}
_CASE_OF_TABLES = {"tolerance?": _FACTOR}

_MOLDABLE = {
    "schedule": {
        **_CASE_OF_TABLES,
        "platform": _MACHINE_SIZE,
        "jobs": [_MOLDABLE_JOB],
        "runs": [
            {"algorithm": str, "parameters": {"category?": ({str: NUMBER}, None)}, "expected": _MOLDABLE_EXPECTED}
        ],
        "differences?": [[WHOLE]],
        "alternative?": {"change": str, "expected": _MOLDABLE_EXPECTED},
    },
    "lublin": {
        **_CASE_OF_TABLES,
        "cycle?": {re.compile("all|batch|interactive"): [NUMBER]},
        "clock?": [{"cumulative_seconds": Number(0, 1e9), "start_bucket": Number(0, 47, whole=True), "time": NUMBER}],
        "sizes?": [
            {"u_kind": _PART, "u_stage": _PART, "u_place": _PART, "kind": str, "exponent": NUMBER, "cores": WHOLE}
        ],
        "mixture?": [{"cores": _CORES, "p_raw": NUMBER, "p": NUMBER, "first_share_after_truncation": NUMBER}],
        "size_pmf?": {_DIGITS: NUMBER},
        "size_mean?": NUMBER,
        "runtime_quantiles_before_floor?": {_PROBABILITY: NUMBER},
        "gap_points?": {"quantiles?": {_PROBABILITY: NUMBER}, str: NUMBER},
    },
    "speedup": {
        **_CASE_OF_TABLES,
        "points": [{"n": _SIZE, "A": Number(1, 10_000), "sigma": _FACTOR, "speedup": NUMBER}],
    },
    "range": {**_CASE_OF_TABLES, "points": [{"platform": _SIZE, "requested": _SIZE, "rf": Number(1, 1e6)}]},
    "profile": {
        **_CASE_OF_TABLES,
        "table": [[_SIZE, Number(1e-6, 1e9)]],
        "points?": [{"processors": _SIZE, "seconds": NUMBER}],
        "jobs?": [
            {
                "requested": _SIZE,
                "runtime": _SECONDS,
                "min": WHOLE,
                "max": WHOLE,
                "weight": NUMBER,
                "seconds": [{"processors": _SIZE, "seconds": NUMBER}],
            }
        ],
    },
    "table": {
        **_CASE_OF_TABLES,
        "bounds?": [NUMBER],
        "points?": [{"weight": Number(1e-9, 1e15), "category": WHOLE}],
        "load?": [{"lf": Number(1e-6, 1e6), "submit": [_SECONDS], "expected": [NUMBER]}],
    },
    "choices": {"points": [{"min": _SIZE, "max": _SIZE, "count": _SIZE}]},
    "partition": {
        **_CASE_OF_TABLES,
        "cases": [
            {
                "free_blocks": [[_SECONDS, _SECONDS, Number(0, 10_000, whole=True)]],
                "afterwards": _SIZE,
                "limit": Number(0, 10_000, whole=True),
                "title?": str,
                "job": {"runtime": _SECONDS, "processors": _SIZE, "estimate?": _SECONDS, **_RANGE},
                "evaluated": [_PLACE],
                "chosen": _PLACE,
            }
        ],
    },
    "limits": {
        **_CASE_OF_TABLES,
        "platform": _MACHINE_SIZE,
        "jobs": [_LIMITED_JOB],
        "running": [{"id": WHOLE, "remaining": _PART}],
        "runs": [{"weight": str, "scope": str, "wf": NUMBER, "gap": NUMBER, "expected": [_EXPECTED_LIMIT]}],
        "alone?": {"jobs": [_LIMITED_JOB], "expected": [_EXPECTED_LIMIT]},
    },
}

_PREDICTION = {
    "schedule": {
        "platform": _PLATFORM,
        "jobs": [{**_RIGID, "user?": (Number(0, 10**9, whole=True), None)}],
        "runs": [{**_RUN, "expected": {"jobs": [_EXPECTED_JOB], "accuracy?": {str: NUMBER}}}],
        "differences?": [[WHOLE]],
    }
}

_TASK = {"id": str, "exec": _WHOLE_SECONDS, "cores": _CORES, "kind": str}
_DAG_JOB = {"id": str, "arrival": _WHOLE_SECONDS, "share?": (str, None), "tasks": [_TASK], "edges": [[str, str]]}
_ROUTER: dict[str, Schema] = {"router": str}
_ROUTER["children"] = [({"cluster": str, "cores": _CORES, "kind": str}, _ROUTER)]
_METRICS = {
    "jobs?": {str: {str: (_RATIO, NUMBER, None)}},
    "workload?": {"cumulative_completion_base?": (_WHOLE_SECONDS, None), str: (_RATIO, NUMBER, None)},
}
_GRID = {
    "schedule": {
        "platform": _ROUTER,
        "jobs": [_DAG_JOB],
        "policy": str,
        "options?": {str: _PARAMETER},
        "share_tree?": ({str: Number(1, 10**9, whole=True)}, None),
        "draws?": {str: [_AMOUNT]},
        "expected": {**_METRICS, "tasks?": {str: {str: (str, NUMBER)}}},
    },
    "metrics": {
        "cores": _CORES,
        "jobs": [{**_DAG_JOB, "tasks": [{**_TASK, "kind?": str}]}],
        "schedule": {str: {"start": _WHOLE_SECONDS}},
        "expected": _METRICS,
    },
}

_AMOUNTS = {str: _AMOUNT}
_TYPICAL = {"each?": _AMOUNTS, "gpu?": _AMOUNT, "gpu_kinds?": [str], "count": Number(1, 10**9, whole=True)}
_GROUP = {
    "group?": str,
    "count?": Number(1, 1000, whole=True),
    "capacity": _AMOUNTS,
    "gpus?": Number(0, 64, whole=True),
    "gpu_kind?": str,
    "features?": [str],
    "partitions?": [str],
    "weight?": WHOLE,
}
_NODE_JOB = {
    "id": WHOLE,
    "submit": _WHOLE_SECONDS,
    "runtime": _WHOLE_SECONDS,
    "estimate": _WHOLE_SECONDS,
    "cores?": _AMOUNT,
    "tasks?": Number(0, 10**6, whole=True),
    "gpu?": _AMOUNT,
    "each?": _AMOUNTS,
    "pools?": _AMOUNTS,
    **dict.fromkeys(("min_nodes?", "max_nodes?", "tasks_per_node?"), _AMOUNT),
    **{key: [str] for key in ("gpu_kinds?", "features?", "partitions?")},
    "exclusive?": bool,
}
_MACHINE = {
    "schedule": {
        "platform": {"nodes?": [{**_GROUP, "count": _GROUP["count?"]}], "pools?": _AMOUNTS},
        "jobs": [_NODE_JOB],
        "runs": [
            {
                "algorithm": str,
                "parameters": {
                    "placement?": str,
                    "align?": str,
                    "typical?": [_TYPICAL],
                    "resources?": [str],
                    "depth?": Number(0, 10**6, whole=True),
                    "compress?": str,
                },
                "expected": {"jobs": [_EXPECTED_JOB], "utilisation?": {str: (_RATIO, NUMBER)}},
            }
        ],
    },
    "fragmentation": {
        "typical": [_TYPICAL],
        "points": [{"node": _GROUP, "free": _AMOUNTS, "gpus_free": [Number(0, 1000, whole=True)], "fragments": WHOLE}],
    },
}

_OUTAGE: Schema = {
    "nodes?": [WHOLE],
    "gpus?": {_DIGITS: [Number(0, 64, whole=True)]},
    "down": _WHOLE_SECONDS,
    "up?": (_WHOLE_SECONDS, None),
}
_AVAILABILITY: dict[str, Schema] = {
    "schedule": {
        "platform": {"nodes": [(_CORES, {**_GROUP, "count": _GROUP["count?"]})], "pools?": _AMOUNTS},
        "jobs": [{**_NODE_JOB, "nodes?": _CORES, "node_cores?": _CORES, "max_restarts?": (_AMOUNT, None), str: ANY}],
        "runs": [
            {
                "algorithm": str,
                "parameters": {str: ANY},
                "failures?": [_OUTAGE],
                "windows?": [ANY],
                "expected": {"jobs": [_EXPECTED_JOB], "runs": [{"job": WHOLE, "run": WHOLE}]},
            }
        ],
    },
    "checkpoint": {
        "rows": [
            {
                "work": _WHOLE_SECONDS,
                "cost": _WHOLE_SECONDS,
                "interval": (_WHOLE_SECONDS, str, None),
                "restart?": _WHOLE_SECONDS,
                "mtbf?": (Number(1e-6, 1e11), None),
                "nodes?": _CORES,
                "final_checkpoint?": bool,
                "after?": (_WHOLE_SECONDS, None),
                "expected": {str: ANY},
            }
        ]
    },
}

SCHEMAS: Mapping[str, Mapping[str, Schema]] = {
    "deadline-admission": _DEADLINE,
    "moldable": _MOLDABLE,
    "prediction": _PREDICTION,
    "grid-dag": _GRID,
    "machine": _MACHINE,
    "availability": _AVAILABILITY,
}
"""Schemas by family and kind."""
