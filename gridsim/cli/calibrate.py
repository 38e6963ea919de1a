"""Command ``gridsim calibrate``: validation of policies against the recorded schedule."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridsim.cli import source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gridsim.metrics.agreement import Agreement
    from gridsim.questions.replay import Calibration


def run(args: argparse.Namespace) -> int:
    """Read the log, simulate it, and compare with the recorded schedule."""
    from gridsim.cli.terminal import JobsProgress, tell  # numpy and rich: not needed for --help
    from gridsim.files import print_json
    from gridsim.questions.calibrate import DEFAULT_POLICIES, calibrate
    from gridsim.questions.labels import policies_of
    from gridsim.report.validation import as_dict

    failing = source.failures(args)
    options = source.options_of(args, failing)
    policies = policies_of(args.policy, source.site(args), default=DEFAULT_POLICIES)
    workload, platform = source.load(args, options, policies.values())
    told = sys.stderr if args.json else sys.stdout
    tell([*source.summary_lines(workload, platform), *source.failure_lines(failing, workload)], told)
    progress = JobsProgress(len(workload), len(policies))
    with source.workers_for(args, workload, len(policies), progress) as team, progress:
        how: Any = {"options": options, "progress": progress.show, "workers": team}
        found = calibrate(workload, policies, platform=platform, own=args.own, **how)
    caveats = source.notice_lines(workload, policies, platform)
    if args.json:
        print_json({**as_dict(found), "not_followed": caveats})
    else:
        _tell(found, caveats)
    return 0


def _tell(found: Calibration, caveats: Sequence[str]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.number_formatting import duration, number, percent
    from gridsim.report.text_table import columns_of, either
    from gridsim.report.validation import alone, sentences, why

    console = Terminal()

    def table(first: str, found: Mapping[str, Agreement]) -> None:
        columns = columns_of(
            {
                "jobs": number(one.jobs),
                "median error": duration(one.median),
                "90 %": duration(one.percentile_90),
                "in 5 s": percent(one.within_5),
                "in 1 min": percent(one.within_60),
                "wait": duration(one.wait),
                "in the log": duration(one.logged_wait),
            }
            for one in found.values()
        )
        console.print(either(list(found), columns, first=first, width=console.width))

    console.print()
    table("policy", found.overall)
    for kind, classes in found.by_class.items():
        console.say(f"Under {found.of}, by {kind}:")
        table("", {alone(name, kind): one for name, one in classes.items() if one.jobs})
    console.say(*sentences(found), *caveats)
    if found.apart:
        console.print("\nThe largest differences:")
    for (one, _), reasons in zip(found.apart, why(found), strict=True):
        late = "later" if one.error > 0 else "earlier"
        console.say(
            f"job {one.id} starts {duration(abs(one.error))} {late} than recorded. In simulation: {' '.join(reasons)}"
        )
