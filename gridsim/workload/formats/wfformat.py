"""WfFormat, versions 1.5 and 1.6: workflows as DAG jobs, their measured runtimes, and the bytes between their tasks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.tasks import ANY_KIND, Tasks
from gridsim.workload.formats.dag_jobs import TICK, Graph, assembled, check_tick, first_in_cycle, in_ticks
from gridsim.workload.formats.json_path import Node
from gridsim.workload.formats.stream import opened
from gridsim.workload.problems import Problems

if True:  # Workload is only returned here
    from gridsim.model.workload import Workload

__all__ = ["VERSIONS", "looks_like_wfformat", "read_workflows"]
