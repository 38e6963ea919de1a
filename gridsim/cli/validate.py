"""Command ``gridsim validate``: check of a schedule, of any origin, against the invariants."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from gridsim.cli import source


def run(args: argparse.Namespace) -> int:
    """Check a schedule; return 1 for violations."""
    # numpy: not needed for --help
    from gridsim.cli.terminal import tell  # rich: not needed for --help
    from gridsim.files import plain
    from gridsim.model.platform import machine_cores
    from gridsim.scenario import transformed
    from gridsim.testing.schedule_reader import (
        node_fail_runs,
        nodes_of,
        overrun_of,
        parse_columns,
        read_allocations,
        read_jobs,
        read_schedule,
        validate,
    )
    from gridsim.testing.violation import DEMAND_KINDS, KINDS, PIECE_KINDS

    columns = parse_columns(args.columns) if args.columns else None
    schedule = read_schedule(args.schedule, columns=columns)
    if args.allocations is not None:
        schedule = replace(schedule, allocations=read_allocations(args.allocations))
    capacity = source.nodes_given(args) or (nodes_of(args.schedule) if args.cores is None else None)
    workload = read_jobs(args.schedule) if args.log is None else source.read(args.log, args)
    args.log = args.log or str(workload.provenance["source"])
    cores, origin = machine_cores(workload, args.cores)
    origin = args.platform or (args.site[0] if args.site else origin)
    workload = transformed(workload, args.transform or (), cores=cores)
    overrun = args.overrun or overrun_of(args.schedule)
    found = validate(schedule, workload, cores=cores, capacity=capacity, overrun=overrun, tolerance=args.tolerance)
    recorded = None if args.failures is None else node_fail_runs(args.schedule, args.failures)
    if args.json:
        facts = {
            "schedule": args.schedule,
            "workload": args.log,
            "rows": len(schedule),
            "jobs": len(workload),
            "cores": cores,
            "cores_from": origin,
            "overrun": overrun,
            **({} if recorded is None else {"node_fail": dict(zip(("runs", "interrupted"), recorded, strict=True))}),
            "violations": [violation.to_json() for violation in found],
        }
        print(json.dumps(plain(facts), indent=1, ensure_ascii=False))
        return 1 if found else 0
    print(f"schedule: {args.schedule}, {len(schedule):,} rows")
    print(f"workload: {args.log}, {len(workload):,} jobs; machine: {cores:,} cores ({origin})")
    tell(map(source.problem_line, source.problems(workload)))
    if recorded is not None:
        print(f"NODE_FAIL: {recorded[1]:,} of {recorded[0]:,} recorded runs are interrupted in the recorded second")
    for violation in found:
        print(f"violated  {violation}")
    kinds = "violation" if len(found) == 1 else "kinds of violations"
    looked_for = len(KINDS) + (0 if schedule.allocations is None else len(PIECE_KINDS))
    looked_for += 0 if workload.demands is None or capacity is None else len(DEMAND_KINDS)
    print(f"{len(found)} {kinds} found" if found else f"valid: none of {looked_for} kinds of violations found")
    return 1 if found else 0
