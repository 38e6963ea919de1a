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
    from gridsim.ask import backtest_forecasts as backtest_forecasts
    from gridsim.ask import compare as compare
    from gridsim.ask import explain as explain
    from gridsim.ask import forecast as forecast
    from gridsim.ask import quote as quote
    from gridsim.ask import sweep as sweep
    from gridsim.campaign.paper import reproduce as reproduce
    from gridsim.errors import CheckFailed as CheckFailed
    from gridsim.errors import GridsimError as GridsimError
    from gridsim.errors import InputError as InputError
    from gridsim.errors import PolicyError as PolicyError
    from gridsim.forecasts.new_job import NewJob as NewJob
    from gridsim.model.capacity import NodeGroup as NodeGroup
    from gridsim.model.demand import Demand as Demand
    from gridsim.model.demand import Demands as Demands
    from gridsim.model.platform import Platform as Platform
    from gridsim.model.workload import Workload as Workload
    from gridsim.options import Run as Run
    from gridsim.questions.calibrate import calibrate as calibrate
    from gridsim.questions.whatif import whatif as whatif
    from gridsim.record import Record as Record
    from gridsim.report.comparison import Comparison as Comparison
    from gridsim.report.quotation import Quotation as Quotation
    from gridsim.result import Result as Result
    from gridsim.scenario import Scenario as Scenario
    from gridsim.simulation import simulate as simulate
    from gridsim.testing.conformance import verify as verify
    from gridsim.testing.schedule_reader import validate as validate
    from gridsim.workload.read import read_workload as read_workload
    from gridsim.workload.slurm_state import read_slurm_state as read_slurm_state
    from gridsim.workload.synthetic.lublin import Lublin as Lublin
    from gridsim.workload.synthetic.lublin import default_workload as default_workload
    from gridsim.world import World as World

_HOME = {
    "CheckFailed": "errors",
    "Comparison": "report.comparison",
    "Demand": "model.demand",
    "Demands": "model.demand",
    "GridsimError": "errors",
    "InputError": "errors",
    "Lublin": "workload.synthetic.lublin",
    "NewJob": "forecasts.new_job",
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
    "backtest_forecasts": "ask",
    "calibrate": "questions.calibrate",
    "compare": "ask",
    "default_workload": "workload.synthetic.lublin",
    "explain": "ask",
    "forecast": "ask",
    "quote": "ask",
    "read_workload": "workload.read",
    "read_slurm_state": "workload.slurm_state",
    "reproduce": "campaign.paper",
    "simulate": "simulation",
    "sweep": "ask",
    "validate": "testing.schedule_reader",
    "verify": "testing.conformance",
    "whatif": "questions.whatif",
}
"""Modules of the public names, imported on first access so that ``gridsim --help`` loads none of them."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gridsim' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"gridsim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
