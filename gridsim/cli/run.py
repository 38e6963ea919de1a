"""Command ``gridsim run``: one scenario from a scenario file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gridsim.cli import source

if TYPE_CHECKING:
    from gridsim.scenario import Scenario


def run(args: argparse.Namespace) -> int:
    """Simulate, write the result directory, print the metrics."""
    from gridsim.cli.folder import Earlier, check_inputs  # numpy and rich: not needed for --help
    from gridsim.cli.terminal import JobsProgress
    from gridsim.files import print_json
    from gridsim.policy.presets import SITE, policy, site_machine
    from gridsim.report import notices, pooling
    from gridsim.result import FILES
    from gridsim.scenario import Scenario
    from gridsim.tables import require_table

    require_table(args.table)
    scenario = Scenario.from_toml(args.recipe, site=source.site(args))
    scenario = replace(scenario, metrics=(*scenario.metrics, *args.metric), charges=(*scenario.charges, *args.charge))
    if args.engine is not None:
        scenario = replace(scenario, options=replace(scenario.options, engine=args.engine))
    if changes := source.site_changes(args):
        (changed,) = source.with_changes({"policy": policy(scenario.policy)}, changes, scenario.site).values()
        platform = scenario.platform
        if scenario.site is not None and platform == site_machine(scenario.site):
            (knowing,) = source.with_changes({SITE: policy(SITE, scenario.site)}, changes).values()
            platform = knowing.on_nodes()
        scenario = replace(scenario, policy=changed, platform=platform)
    logs = scenario.file if isinstance(scenario.file, list | tuple) else [scenario.file]
    check_inputs(args.out, filter(None, (args.recipe, scenario.mapping, *logs)))
    if args.stream:
        return _stream(args, scenario)
    with JobsProgress() as progress:
        result = scenario.run(progress=lambda jobs: progress.show(scenario.label or str(scenario.policy), jobs))
    earlier = Earlier.of(args.out)
    result.write(args.out, table=args.table)
    earlier.remove(kept=FILES)
    metrics = result.metrics()
    if args.json:
        print_json(metrics)
        return 0
    _print(metrics)
    told = source.failure_lines(scenario.options.failures, result.workload)
    for sentence in (*told, *pooling.of_one(result.record, result.platform)):
        print(sentence)
    for sentence in notices.left_aside(result.workload, result.platform):
        print(sentence)
    for sentence in notices.sentences({"the policy": result.notices}):
        print(sentence)
    print(f"\nwritten to {args.out}")
    return 0


def _print(metrics: Mapping[str, float | None]) -> None:
    width = max(map(len, metrics))
    for name, value in metrics.items():
        print(f"{name:{width}}  {float('nan') if value is None else value:,.6g}")


def _stream(args: argparse.Namespace, scenario: Scenario) -> int:
    """Simulate in blocks, or report existing results."""
    from gridsim.cli.folder import Earlier
    from gridsim.cli.terminal import JobsProgress
    from gridsim.files import print_json

    blocks, earlier = scenario.blocks(), Earlier.of(args.out)
    with JobsProgress(total=blocks.jobs) as progress:
        told = scenario.label or str(scenario.policy)
        found = scenario.stream(args.out, blocks, progress=lambda jobs: progress.show(told, jobs))
    earlier.remove(kept={"jobs.parquet", "metrics.json", "run.json"})
    if args.json:
        print_json(found.metrics)
        return 0
    _print(found.metrics)
    done = "written to" if found.simulated else "not simulated again; the record of this run exists in"
    print(f"\n{done} {args.out}")
    return 0
