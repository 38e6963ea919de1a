"""Audit of a trace and its machine: conservation of rows, order of times, and demand compared with capacity."""

from __future__ import annotations

from gridsim.workload.audit.rows import LogRows, Rows, TableRows
from gridsim.workload.audit.scan import Audit, Demand, Infeasible, audit
from gridsim.workload.audit.usage import Machine, Usage

__all__ = ["Audit", "Demand", "Infeasible", "LogRows", "Machine", "Rows", "TableRows", "Usage", "audit"]
