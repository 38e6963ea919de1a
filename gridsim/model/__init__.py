"""Immutable data without simulation time: workloads, machines and their parts. No module here makes decisions."""
