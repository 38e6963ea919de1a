"""Does a trace hold together, and does it fit its machine? Rows conserved, times in order, demand against capacity."""

from __future__ import annotations

from gridsim.workload.audit.passes import Audit, Demand, Infeasible, audit
from gridsim.workload.audit.rows import LogRows, Rows, TableRows
from gridsim.workload.audit.usage import Machine, Usage

__all__ = ["Audit", "Demand", "Infeasible", "LogRows", "Machine", "Rows", "TableRows", "Usage", "audit"]
