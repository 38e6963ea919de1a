"""gridsim: what would another scheduling policy do to my users, on my own job log?

>>> import gridsim as gs
>>> jobs = gs.Workload.from_columns(submit=[0, 1, 2], runtime=[10, 10, 5], cores=[2, 4, 2])
>>> gs.simulate(jobs, platform=gs.Platform.single(cores=4), policy="easy").record.wait
array([0., 9., 0.])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridsim.ask import compare, explain, quote, sweep
    from gridsim.campaign.paper import reproduce
    from gridsim.errors import CheckFailed, GridsimError, InputError, PolicyError
    from gridsim.model.capacity import NodeGroup
    from gridsim.model.demand import Demand, Demands
    from gridsim.model.platform import Platform
    from gridsim.model.workload import Workload
    from gridsim.options import Run
    from gridsim.questions.calibrate import calibrate
    from gridsim.questions.whatif import whatif
    from gridsim.record import Record
    from gridsim.report.comparison import Comparison
    from gridsim.report.quotation import Quotation
    from gridsim.result import Result
    from gridsim.scenario import Scenario
    from gridsim.simulation import simulate
    from gridsim.testing.conformance import verify
    from gridsim.testing.schedules import validate
    from gridsim.workload.read import read_workload
    from gridsim.workload.synthetic.lublin import Lublin, default_workload
    from gridsim.world import World

__all__ = [
    "CheckFailed",
    "Comparison",
    "Demand",
    "Demands",
    "GridsimError",
    "InputError",
    "Lublin",
    "NodeGroup",
    "Platform",
    "PolicyError",
    "Quotation",
    "Record",
    "Result",
    "Run",
    "Scenario",
    "Workload",
    "World",
    "calibrate",
    "compare",
    "default_workload",
    "explain",
    "quote",
    "read_workload",
    "reproduce",
    "simulate",
    "sweep",
    "validate",
    "verify",
    "whatif",
]

_HOME = {
    "CheckFailed": "errors",
    "Comparison": "report.comparison",
    "Demand": "model.demand",
    "Demands": "model.demand",
    "GridsimError": "errors",
    "InputError": "errors",
    "Lublin": "workload.synthetic.lublin",
    "NodeGroup": "model.capacity",
    "Platform": "model.platform",
    "PolicyError": "errors",
    "Quotation": "report.quotation",
    "Record": "record",
    "Result": "result",
    "Run": "options",
    "Scenario": "scenario",
    "Workload": "model.workload",
    "World": "world",
    "calibrate": "questions.calibrate",
    "compare": "ask",
    "default_workload": "workload.synthetic.lublin",
    "explain": "ask",
    "quote": "ask",
    "read_workload": "workload.read",
    "reproduce": "campaign.paper",
    "simulate": "simulation",
    "sweep": "ask",
    "validate": "testing.schedules",
    "verify": "testing.conformance",
    "whatif": "questions.whatif",
}
"""Modules of the public names, imported on first access so that ``gridsim --help`` loads none of them."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gridsim' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"gridsim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
