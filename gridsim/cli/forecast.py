"""Command ``gridsim forecast``: when waiting jobs will start, from a log or the live state of a Slurm cluster."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.cli.quote import demand_of
from gridsim.errors import InputError
from gridsim.files import check_folder, check_output, print_json
from gridsim.model.dates import duration, instant
from gridsim.registry import Spec

if TYPE_CHECKING:
    from gridsim.forecasts.answer import Answer
    from gridsim.forecasts.backtest import Backtest
    from gridsim.forecasts.new_job import NewJob


def run(args: argparse.Namespace) -> int:
    """Read, forecast or test forecasts, and print the results."""
    if args.print_collect:
        from gridsim.workload.slurm_state import print_collect

        print(print_collect(), end="")
        return 0
    from gridsim.cli.terminal import JobsProgress, tell  # rich and numpy: not needed for --help
    from gridsim.forecasts.answers import backtest_forecasts, forecast
    from gridsim.forecasts.forecaster import PARTS
    from gridsim.policy.presets import SITE, of_site
    from gridsim.policy.presets import policy as make_policy
    from gridsim.workers import Workers
    from gridsim.workload.slurm_state import check_history, read_slurm_state

    sited = source.site(args)
    policy = of_site(args.policy or ("easy" if sited is None else SITE), sited)
    options, where = source.options_of(args, source.failures(args)), sys.stderr if args.json else sys.stdout
    how: dict[str, Any] = {"futures": args.futures, "horizon": args.horizon, "seed": args.seed}
    how |= {"options": options, "arrivals": not args.no_arrivals, "model": args.future_model}
    state, tested, folder = None, None, args.live
    _check_question(args)
    if args.report is not None:
        check_output(args.report, source.input_files(args), overwrite=args.overwrite)
    if args.out is not None:
        check_folder(args.out)
    new = _new_job(args)
    if folder is not None:
        state = read_slurm_state(folder, timezone=args.timezone, rules=source.rules(args))
        policy = _of_folder(Path(folder), args.timezone) if policy == "slurm" else policy
        history = Path(folder) / "sacct.txt"
        args.log = args.log or ([str(history)] if history.is_file() else [])
    elif not args.log:
        raise InputError("is missing; expected a job log, or --live FOLDER", field="log")
    log, platform, how["policy"] = None, None, policy
    if args.log:
        log, platform = source.load(args, options, [make_policy(policy)], usual={"still-waiting": "repair"})
        tell(source.summary_lines(log, platform), where)
    progress = JobsProgress(what="earlier forecasts")
    team = Workers(args.workers or 1) if log is None else source.workers_for(args, log, 2, progress)
    with team, progress:
        how |= {"workers": team, "progress": partial(progress.show, "forecasts")}
        if args.backtest:
            if log is None:
                raise InputError("needs a job log, such as sacct.txt in the folder of --live", field="backtest")
            asked = how | {"platform": platform, "state": args.state, "ask": args.ask or "new"}
            tested = backtest_forecasts(log, **asked, moments=args.moments or 600)
            if args.at is None and state is None:
                return _tell(args, None, tested)
        how |= {"job": None if args.job == "all" else args.job, "new": new, "calibrate": not args.no_calibration}
        how |= {"instead": args.instead or (), "parts": PARTS if args.shapes else (), "until_empty": args.until_empty}
        how |= {"at_most": args.at_most, "compare_without": args.compare_without}
        if state is not None:
            if log is not None:
                check_history(state, log, args.log[0])
            return _tell(args, forecast(state, history=log, **how), tested)
        assert log is not None
        if args.at is None:
            raise InputError("is missing; expected a moment of the log, such as 51h or a date, or now", field="at")
        at = None if args.at == "now" else instant(args.at, "at", log.provenance)
        return _tell(args, forecast(log, at=at, platform=platform, state=args.state, **how), tested)


def _check_question(args: argparse.Namespace) -> None:
    """Raise `InputError` for options that would have no effect together."""
    given = {"at": args.at, "state": args.state, "machine": args.cores, "platform": args.platform}
    if args.live is not None and (name := next((name for name, value in given.items() if value is not None), None)):
        raise InputError("is for a log; --live has its own moment, state and machine", field=name)
    if args.width is not None and args.job is not None:
        raise InputError("is a job that waits already, but --cores is one that is not submitted yet", field="job")
    if args.report == "-":
        raise InputError("is '-'; expected the name of a file", field="report")
    needs = {"ask moments": "backtest", "overwrite": "report", "walltime user account partition qos": "width"}
    needs["nodes tasks task_memory task_gpus gpu_kind feature exclusive pool"] = "width"
    if args.backtest and args.live is None:  # with a moment, its forecast is made too
        needs["job width instead shapes until_empty at_most compare_without no_calibration"] = "at"
    absent = {name for name, value in vars(args).items() if value is None or value is False}
    for name, other in ((name, other) for names, other in needs.items() for name in names.split()):
        if name not in absent and other in absent:
            raise InputError(f"--{name} has no effect without --{other}".replace("width", "cores").replace("_", "-"))


def _of_folder(folder: Path, timezone: str | None) -> Spec:
    """Return the policy ``slurm`` with the files of a live state."""
    names = {"conf": "slurm.conf", "assoc": "assoc.cfg", "qos": "qos.txt", "usage": "sshare.txt"}
    names |= {"reservations": "scontrol_reservation.txt"}
    found = {key: str(folder / name) for key, name in names.items() if (folder / name).is_file()}
    found |= {} if timezone is None else {"timezone": timezone}
    if "conf" not in found:
        raise InputError("does not exist; the policy slurm needs a copy", path=folder / names["conf"])
    return Spec("slurm", found)


def _new_job(args: argparse.Namespace) -> NewJob | None:
    """Return the job that is not submitted yet, if there is one."""
    from gridsim.forecasts.new_job import NewJob
    from gridsim.model.cluster_state import LABELS

    if args.width is None:
        return None
    if args.walltime is None:
        raise InputError("is missing; expected the requested walltime of the job, such as 2h", field="walltime")
    labels = {label: name for label in LABELS if (name := getattr(args, label)) is not None}
    return NewJob(args.width, duration(args.walltime, "walltime"), labels, demand_of(args))


def _tell(args: argparse.Namespace, found: Answer | None, tested: Backtest | None) -> int:
    """Print the forecast, the back-test or both, and write their files."""
    figures, where = {} if tested is None else tested.to_dict(), sys.stderr if args.json else sys.stdout
    if args.json:
        print_json(figures if found is None else found.to_dict() | ({"backtest": figures} if figures else {}))
    else:
        _print(found, figures)
    if args.out is not None or args.report is not None:
        from gridsim.report.forecast_page import PAGE, Forecast, ForecastTest  # matplotlib: only if a page is made

        how = {"title": Path(args.live or args.log[0]).name, "command": source.command()}
        output = ForecastTest.view(tested, **how) if found is None else Forecast.view(found, **how)
        if args.out is not None:
            output.write(args.out, backtest=tested)
            print(f"\nPage: {Path(args.out, PAGE)}   (tables in {Path(args.out)}/)", file=where)
        if args.report is not None:
            output.page(args.report, backtest=tested)
    return 0


def _print(found: Answer | None, figures: dict[str, Any]) -> None:
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed
    from gridsim.report import forecast_text as text

    console = Terminal()
    if found is not None:
        console.say(*text.state_lines(found), "")
        if found.jobs:
            console.print(text.table(found, width=console.width))
        console.say(*text.sentences(found))
    if figures:
        console.print(text.backtest_table(figures, width=console.width))
        console.say(*text.backtest_sentences(figures))
