"""Command ``gridsim forecast``: when waiting jobs will start, from a log or the live state of a Slurm cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.errors import InputError
from gridsim.model.dates import duration, instant

if TYPE_CHECKING:
    from gridsim.model.workload import Workload


def run(args: argparse.Namespace) -> int:
    """Read, forecast or test forecasts, and print the results."""
    if args.print_collect:
        from gridsim.workload.slurm_state import print_collect

        print(print_collect(), end="")
        return 0
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.forecasts.answers import backtest_forecasts, forecast
    from gridsim.forecasts.forecaster import MOMENTS, PARTS
    from gridsim.policy.presets import SITE, of_site
    from gridsim.policy.presets import policy as make_policy
    from gridsim.workers import Workers
    from gridsim.workload.slurm_state import check_history, read_slurm_state

    sited = source.site(args)
    policy = of_site(args.policy or ("easy" if sited is None else SITE), sited)
    options, where = source.options_of(args, source.failures(args)), sys.stderr if args.json else sys.stdout
    how: dict[str, Any] = {"policy": policy, "futures": args.futures, "horizon": args.horizon, "seed": args.seed}
    how |= {"options": options, "arrivals": not args.no_arrivals}
    state, folder = None, args.live
    if folder is not None:
        state = read_slurm_state(folder, timezone=args.timezone, rules=source.rules(args))
        history = Path(folder) / "sacct.txt"
        args.log = args.log or ([str(history)] if history.is_file() else [])
    elif not args.log:
        raise InputError("is missing; expected a job log, or --live FOLDER", field="log")
    log = platform = None
    if args.log:
        log, platform = source.load(args, options, [make_policy(policy)], usual={"still-waiting": "repair"})
        tell(source.summary_lines(log, platform), where)
    progress = JobsProgress(args.moments if args.backtest else MOMENTS)
    team = Workers(args.workers or 1) if log is None else source.workers_for(args, log, 2, progress)
    with team, progress:
        how |= {"workers": team, "progress": lambda made, many: progress.show("earlier forecasts", made)}
        if args.backtest:
            if log is None:
                raise InputError("needs a log; expected a job log", field="backtest")
            how |= {"platform": platform, "state": args.state, "ask": args.ask, "moments": args.moments}
            return _tell(args, backtest_forecasts(log, **how))
        how |= {"job": args.job, "calibrate": not args.no_calibration, "at_most": args.at_most}
        how |= {"instead": args.instead or (), "parts": PARTS if args.shapes else (), "until_empty": args.until_empty}
        if state is not None:
            if log is not None:
                check_history(state, log, args.log[0])
            return _tell(args, forecast(state, history=log, **how))
        assert log is not None
        how |= _question(args, log, make_policy(policy))
        return _tell(args, forecast(platform=platform, state=args.state, **how))


def _question(args: argparse.Namespace, log: Workload, policy: Any) -> dict[str, Any]:
    """Return the log with the names of labels, the moment, and the job that is not submitted yet, if there is one."""
    from gridsim.forecasts.forecaster import NewJob
    from gridsim.questions.quote import LABELS, owned

    log, labels = owned(log, {label: name for label in LABELS if (name := getattr(args, label)) is not None}, [policy])
    if args.at is None:
        raise InputError("is missing; expected a moment of the log, such as 51h or a date, or now", field="at")
    at = None if args.at == "now" else instant(args.at, "at", log.provenance)
    found: dict[str, Any] = {"log": log, "at": at, "new": None}
    if args.width is not None:
        if args.walltime is None:
            raise InputError("is missing; expected the requested walltime of the job, such as 2h", field="walltime")
        found["new"] = NewJob(args.width, duration(args.walltime, "walltime"), labels)
    return found


def _tell(args: argparse.Namespace, found: Any) -> int:
    """Print a forecast, or a back-test, and write its files."""
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.files import print_json, write_json, write_text
    from gridsim.report import forecast_text as text
    from gridsim.report.tables import csv_text

    content, console = found.to_dict(), Terminal()
    if args.json:
        print_json(content)
    elif args.backtest:
        console.print(text.backtest_table(content, width=console.width))
        console.say(*text.backtest_sentences(content))
    else:
        console.say(*text.state_lines(found), "")
        if found.jobs:
            console.print(text.table(found, width=console.width))
        console.say(*text.sentences(found))
    if args.out is not None:
        for name, header, rows in [text.backtest_file(found)] if args.backtest else text.files(found):
            write_text(Path(args.out) / name, csv_text(header, *rows))
        write_json(Path(args.out) / ("backtest.json" if args.backtest else "forecast.json"), content)
    return 0
