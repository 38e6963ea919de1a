"""Command ``gridsim workload``: download, inspect, check, audit, convert, anonymise, cut and generate logs."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.cli.folder import check_inputs
from gridsim.errors import CheckFailed, InputError
from gridsim.workload.problems import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table

    from gridsim.cli.terminal import Terminal
    from gridsim.model.workload import Workload
    from gridsim.workload.archive import ArchiveLog
    from gridsim.workload.audit import Audit, Machine
    from gridsim.workload.problems import Problem


def _audit_files(args: Namespace) -> None:
    """Audit files and print the findings; raise `CheckFailed` if rows or amounts were lost."""
    from gridsim.report import audit_text  # numpy: not needed for --help

    found = _audited(args)
    if args.json:
        _print_json(audit_text.as_json(found))
    else:
        _print_audit(found)
    if not found.conserved:
        raise CheckFailed("rows or amounts were lost")
    if args.strict and (odd := audit_text.findings(found)):
        raise CheckFailed(f"suspicious (--strict): {', '.join(odd)}")


def _audited(args: Namespace) -> Audit:
    """Return the findings on the given files."""
    from gridsim.workload.audit import LogRows, TableRows, audit  # numpy: not needed for --help
    from gridsim.workload.formats.table import mapping_of

    if args.mapping is None:
        log = source.read(args.file, args)
        return audit(LogRows(log), _machine_of(args, log))
    if rules := source.rules(args):
        given = ", ".join(option(*rule) for rule in rules.items())
        raise InputError(f"{given}: audit reads the rows of a table unchanged; leave it out")
    mapping = mapping_of(args.mapping)
    if mapping.unverified:
        from gridsim.cli.terminal import tell  # rich: not needed for --help

        if not args.json:
            tell([f"mapping '{mapping.name}': {mapping.unverified}"])
    return audit(TableRows(args.file, mapping, args.timezone), _machine_of(args))


def _machine_of(args: Namespace, log: Workload | None = None) -> Machine:
    """Return the machine: as given, else from the mapping, else from the log."""
    from gridsim.workload.audit import Machine  # numpy: not needed for --help
    from gridsim.workload.formats.table import mapping_of

    if given := source.capacities(args):
        return Machine.of_capacities(given)
    said = Machine() if args.mapping is None else Machine.of_mapping(mapping_of(args.mapping))
    if args.cores is None and not said.totals and log is not None and log.cores_stated is not None:
        return Machine({"cores": float(log.cores_stated)})
    return said if args.cores is None else Machine({**said.totals, "cores": float(args.cores)}, said.kinds)


def _print_audit(found: Audit) -> None:
    from rich.table import Table

    from gridsim.report import audit_text

    console = _console()
    plain = Table(title=found.name, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in audit_text.facts(found):
        plain.add_row(name, text.replace("[", r"\["))
    console.print(plain)
    table = _numbers(audit_text.COLUMNS, slice(1, None), title="demand", title_justify="left")
    for row in audit_text.rows(found):
        table.add_row(*row)
    console.print(table)
    console.say(*audit_text.verdict(found))


def _publish(args: Namespace) -> None:
    """Write the folder."""
    from gridsim.cli.terminal import tell  # rich: not needed for --help
    from gridsim.files import read_text
    from gridsim.model.platform import machine_cores  # numpy: not needed for --help
    from gridsim.report.publication import PROMPTS, description
    from gridsim.workload.anonymise import anonymised
    from gridsim.workload.audit import LogRows, audit
    from gridsim.workload.describe import describe
    from gridsim.workload.formats.swf_writer import write_swf
    from gridsim.workload.formats.table.writer import write_jobs

    check_inputs(args.out, source.input_files(args))
    folder, about = _folder(args.out), None if args.about is None else read_text(args.about)
    key = _key(args)
    log = source.read(args.file, args)
    if log.tasks is not None:
        raise InputError("contains workflows, which a published trace cannot represent; expected independent jobs")
    public = anonymised(log, key, shift=args.shift)
    found = audit(LogRows(public), _machine_of(args, public))
    facts = describe(public, machine_cores(public, args.cores)[0])
    write_swf(anonymised(log, key, shift=args.shift, numbers=True), folder / "trace.swf.gz")
    columns = write_jobs(public, folder)
    drawn = _draw(public, found, folder)
    text = description(public, facts, found, columns, title=args.title, about=about, drawn=drawn, shifted=args.shift)
    _write_page(folder, text, found, facts, public)
    left = log.provenance.get("jobs_read", len(log)) - len(log)
    print(f"{args.out}: {len(public):,} jobs{f', {left:,} left out' if left else ''}; README.md describes them")
    if about is None:
        tell([f"README.md has {len(PROMPTS)} sections for the site to complete; give them as --about FILE.md"])
    tell(["Check all files before publication: known details of a job can identify it (see the description)."])


def _key(args: Namespace) -> bytes:
    from gridsim.workload.anonymise import check_key, read_key  # numpy: not needed for --help

    return check_key(args.key_text.encode()) if args.key is None else read_key(args.key)


def _folder(path: str) -> Path:
    """Return the folder, which must contain no foreign files, since it is published as a whole."""
    from gridsim.report.publication import FILES  # numpy: not needed for --help

    folder = Path(path)
    if folder.is_dir():
        others = sorted({it.name for it in folder.iterdir()}.difference(name.rstrip("/") for name in FILES))
        if others:
            message = f"contains {', '.join(others[:3])}, which publish did not write; expected a new or empty folder"
            raise InputError(message, path=path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _draw(public: Workload, found: Audit, folder: Path) -> list[str]:
    from gridsim.report.gallery import FOLDER, Gallery
    from gridsim.report.publication import figures

    gallery = Gallery(lambda: figures(public, found))
    gallery.save(folder / FOLDER, "svg")
    gallery.save(folder / FOLDER, "pdf")
    return [*gallery]


def _write_page(folder: Path, text: str, found: Audit, facts: dict[str, Any], public: Workload) -> None:
    """Write the description, the checks as data, and the checksums."""
    from gridsim.files import checksum, write_json, write_text
    from gridsim.report import audit_text

    checks = {"facts": facts, "problems": public.provenance.get("problems", []), "audit": audit_text.as_json(found)}
    write_json(folder / "checks.json", checks)
    write_text(folder / "README.md", text)
    files = sorted(it for it in folder.rglob("*") if it.is_file() and it.name != "SHA256SUMS")
    write_text(folder / "SHA256SUMS", "".join(f"{checksum(it)}  {it.relative_to(folder).as_posix()}\n" for it in files))


def run(args: Namespace) -> int:
    """Run a subcommand; return 0 on success."""
    if "output" in args:
        from gridsim.files import check_output

        check_output(args.output, source.input_files(args), overwrite=args.overwrite)
    _ACTIONS[args.action](args)
    return 0


def _describe(args: Namespace) -> None:
    from gridsim.model.platform import machine_cores  # numpy: not needed for --help
    from gridsim.workload.describe import describe

    workload = source.read(args.file, args)
    facts = describe(workload, machine_cores(workload, args.cores)[0])
    if args.json:
        _print_json(facts)
    else:
        _print_facts(str(workload.provenance["source"]), facts)


def _flurries(args: Namespace) -> None:
    from gridsim.number_formatting import percent, times
    from gridsim.report import flurries_text
    from gridsim.workload.transform.flurries import WithoutFlurries  # numpy: not needed for --help

    names = ("times", "share", "least", "window")
    rule = WithoutFlurries(**{name: getattr(args, name) for name in names if getattr(args, name) is not None})
    workload = source.read(args.file, args)
    found = flurries_text.rows(workload, rule)
    if args.json:
        _print_json({"rule": {name: getattr(rule, name) for name in names}, "flurries": found})
        return
    if not found:
        print("The log has no flurries." if "user" in workload.labels else "The log has no user names.")
        return
    heads = ("user", "from its first job to its last", "jobs", "median window", "of the window")
    table = _numbers(heads, slice(2, None))
    for it in found:
        cells = (f"{it['jobs']:,}", times(it["times"]), percent(it["share"]))
        table.add_row(it["user"], it["period"], *cells)
    _console().print(table)


def _check(args: Namespace) -> None:
    workload = source.read(args.file, args)
    findings = _findings(workload, args.cores)
    if args.json:
        _print_json(findings)
    else:
        _print_findings(findings, workload)


def _convert(args: Namespace) -> None:
    if args.anonymise is None:
        _write(source.read(args.file, args), args)
        return
    from gridsim.workload.anonymise import anonymised, read_key  # numpy: not needed for --help

    key = read_key(args.anonymise)
    _write(anonymised(source.read(args.file, args), key, numbers=True), args)


def _anonymise(args: Namespace) -> None:
    from gridsim.workload.anonymise import anonymised  # numpy: not needed for --help

    key = _key(args)
    if _stays_sacct(args):
        from gridsim.workload.formats.sacct.anonymise import anonymise_sacct

        lines, found = anonymise_sacct(args.file, args.output, key, shift=args.shift, timezone=args.timezone)
        _say(args, f"{lines:,} runs of jobs, as lines of sacct", found)
        return
    _write(anonymised(source.read(args.file, args), key, shift=args.shift, numbers=True), args)


def _slice(args: Namespace) -> None:
    from gridsim.workload.transform.slice import Slice, there  # numpy: not needed for --help

    period = [_date(args.since, "--from"), _date(args.until, "--to")]
    if _stays_sacct(args):
        _cut(args, period)
        return
    workload = source.read(args.file, args)
    if any(period):
        workload = there(workload, *_seconds(workload, period))
    part = Slice(first=args.first, jobs=args.jobs, start=args.start, end=args.end, origin=args.origin)
    _write(part.apply(workload), args)


def _stays_sacct(args: Namespace) -> bool:
    """Return whether to write a sacct log, if the input is one and the output file is not named as SWF."""
    from gridsim.workload.read import format_of  # numpy: not needed for --help

    names_swf = args.output.removesuffix(".gz").removesuffix(".xz").endswith(".swf")
    return not names_swf and (args.format or format_of(args.file, {})) == "sacct"


def _cut(args: Namespace, period: list[datetime | None]) -> None:
    """Write the lines of the jobs in a period."""
    from gridsim.workload.formats.sacct.cut import cut_sacct  # numpy: not needed for --help

    given = [f"--{name}" for name in ("first", "jobs", "start", "end", "origin") if getattr(args, name)]
    if given or not any(period):
        problem = f"{', '.join(given)} select from SWF" if given else "the part is not given"
        raise InputError(f"{problem}; for a log of sacct, use --from and --to; for SWF, give an output file named .swf")
    kept, of = cut_sacct(args.file, args.output, since=period[0], until=period[1], timezone=args.timezone)
    _say(args, f"{kept:,} of {of:,} jobs, as lines of sacct")


def _date(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"is '{text}'; expected a date such as 2026-01-31 or 2026-01-31T12:00", field=option
        ) from error


def _seconds(workload: Workload, period: list[datetime | None]) -> list[float | None]:
    """Return dates as seconds of the log's clock."""
    from gridsim.model.dates import calendar_of  # numpy: not needed for --help

    calendar = calendar_of(workload.provenance)
    if calendar is None:
        raise InputError("has no start date, so dates cannot be used", path=workload.provenance.get("source"))
    return [None if date is None else calendar.seconds(date) for date in period]


def _generate(args: Namespace) -> None:
    _write(source.generate(args), args)


def _fetch(args: Namespace) -> None:
    from gridsim.workload import archive  # pooch: not needed for --help

    if args.list or not args.name:
        _print_archive(archive.LOGS.values())
        if args.list:
            return
        raise InputError("is not a log of the archive; give a name from the first column", field="NAME")
    for log in [archive.find(name) for name in args.name]:
        with _Bar(log.file) as bar:
            path, fresh = archive.fetch(log, args.out, mirror=args.mirror, force=args.force, progress=bar)
        done = "fetched" if fresh else "already exists, not downloaded again"
        print(
            f"{path}: {done}; {log.size:,} bytes, {log.jobs:,} job lines, {log.cores:,} cores; thanks to {log.thanks}"
        )
    print(archive.CITATION)


class _Bar:
    """Progress bar of a download on a terminal, with the interface required by `pooch`."""

    total = 0

    def __init__(self, name: str) -> None:
        from rich.console import Console  # rich: only where something is downloaded
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bars.add_task(name, total=None)

    def __enter__(self) -> _Bar:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def update(self, size: int) -> None:
        """Add *size* written bytes."""
        self._bars.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        """Reset the count to 0."""
        self._bars.reset(self._task)

    def close(self) -> None:
        """Finish the display."""


def _print_archive(logs: Iterable[ArchiveLog]) -> None:
    table = _numbers(("name", "file", "job lines", "cores", "bytes", "description"), slice(2, 5))
    for log in logs:
        table.add_row(log.short, log.file, f"{log.jobs:,}", f"{log.cores:,}", f"{log.size:,}", log.summary)
    _console().print(table)


def _write(workload: Workload, args: Namespace) -> None:
    """Write the SWF file with the requested machine size, and print the result."""
    from dataclasses import replace

    from gridsim.workload.formats.swf_writer import write_swf  # numpy: not needed for --help

    if args.cores is not None:
        workload = replace(workload, cores_stated=args.cores)
    write_swf(workload, args.output)
    _say(args, f"{len(workload):,} jobs", source.problems(workload))


def _say(args: Namespace, written: str, problems: Iterable[Problem] = ()) -> None:
    """Print a summary of the written log; on standard error if the log is written to a stream."""
    from gridsim.cli.terminal import tell  # rich: not needed for --help
    from gridsim.files import is_stream

    to = sys.stderr if is_stream(args.output) else sys.stdout
    print(f"{args.output}: {written}", file=to)
    tell(map(source.problem_line, problems), file=to)


def _findings(workload: Workload, cores: int | None) -> dict[str, Any]:
    """Return the findings of `check`: counts of the reader, and missing fields of the log."""
    provenance = workload.provenance
    size = cores if cores is not None else workload.cores_stated
    kept = (
        "source",
        "format",
        "lines",
        "comments",
        "steps",
        "jobs_read",
        "jobs_kept",
        "cores_field",
        "statuses",
        "states",
        "origin_shift",
    )
    return {
        **{key: provenance[key] for key in kept if key in provenance},
        "cores": size,
        "cores_from": "given" if cores is not None else provenance.get("cores_from"),
        "problems": provenance.get("problems", []),
        "missing": list(_missing(workload, size)),
    }


def _missing(workload: Workload, cores: int | None) -> Iterator[str]:
    """Return the fields that are missing in the log."""
    if cores is None:
        yield "size of the machine (give --machine)"
    for problem in source.problems(workload):
        if problem.kind == "missing-estimate" and problem.count >= len(workload) and problem.rule == "repair":
            yield "requested walltimes (run times are used instead)"
    wait = workload.logged.get("wait")
    if wait is None or bool((wait != wait).all()):  # only NaN differs from itself
        yield "wait times"
    if "user" not in workload.labels:
        yield "users"
    yield from workload.provenance.get("missing", ())


def _print_json(content: dict[str, Any]) -> None:
    from gridsim.files import print_json

    print_json(content, indent=2)


def _console() -> Terminal:
    """Return standard output: terminal width on a terminal, 120 columns elsewhere."""
    from gridsim.cli.terminal import Terminal  # rich: only where a table is printed

    console = Terminal()
    if not console.is_terminal:
        console.width = 120
    return console


def _numbers(heads: Sequence[str], numbers: slice, **more: Any) -> Table:
    """Return an empty table with these heads and columns of numbers."""
    from rich.table import Table

    table = Table(*heads, box=None, **more)
    for column in table.columns[numbers]:
        column.justify = "right"
    return table


_COLUMNS = ("mean", "min", "p05", "p25", "median", "p75", "p95", "p99", "max")
_QUANTITIES = {"size": "size, cores", "runtime": "runtime, s", "estimate": "estimate, s", "gap": "gap, s"}


def _print_facts(path: str, facts: dict[str, Any]) -> None:
    from rich.table import Table

    console = _console()
    plain = Table(title=f"{path}: {facts['jobs']:,} jobs on {facts['cores']:,} cores", show_header=False, box=None)
    for name, text in _fact_rows(facts):
        plain.add_row(name, text)
    console.print(plain)
    spread = _numbers(("", *_COLUMNS), slice(1, None), title="spread")
    logged = facts["logged"] or {}
    for name, values in [*((text, facts[key]) for key, text in _QUANTITIES.items()), ("wait, s", logged.get("wait"))]:
        if values:
            spread.add_row(name, *(f"{values[column]:,.0f}" for column in _COLUMNS))
    console.print(spread)


def _fact_rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "users, groups, queues", ", ".join(_number(facts[name]) for name in ("users", "groups", "queues"))
    yield (
        "submits",
        f"{facts['first_submit']:,.0f} s to {facts['last_submit']:,.0f} s, {facts['span'] / 86400:,.1f} days",
    )
    load = facts["offered_load"]
    yield "offered load", "-" if load is None else f"{load:.3f} of the machine between the first and the last submit"
    yield "same instant", f"{facts['same_instant']:,} jobs are submitted at the same instant as the previous job"
    share = facts["share"]
    yield (
        "sizes",
        f"serial {share['serial']:.1%}, powers of two {share['power_of_two']:.1%}, other {share['other']:.1%}",
    )
    accuracy = facts["accuracy"]
    yield (
        "runtime over estimate",
        f"mean {accuracy['mean']:.3f}, median {accuracy['median']:.3f}; equal in {accuracy['exact']:,} jobs, "
        f"above in {accuracy['over']:,} ({accuracy['over_share']:.1%})",
    )
    logged = facts["logged"]
    if logged:
        starts = "submit + wait" if logged["waits_known"] else "submit times: the log has no wait times"
        yield (
            "logged schedule",
            f"load {logged['load']:.3f}, peak {logged['peak']:,} of {facts['cores']:,} cores, "
            f"above the machine {logged['above']:.2%} of the time (starts: {starts})",
        )


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _print_findings(findings: dict[str, Any], workload: Workload) -> None:
    from rich.table import Table

    from gridsim.workload.formats.swf_header import STATUSES

    console = _console()
    plain = Table(title=findings["source"], show_header=False, box=None)
    steps = f", {findings['steps']:,} steps of jobs" if findings.get("steps") else ""
    if "lines" in findings:
        plain.add_row("lines", f"{findings['lines']:,}, of them {findings['comments']:,} comments{steps}")
    plain.add_row("jobs", f"{findings['jobs_kept']:,} kept of {findings['jobs_read']:,}")
    size = findings["cores"]
    machine = "not known" if size is None else f"{size:,} cores (from: {findings['cores_from'] or 'the workload'})"
    plain.add_row("machine", machine)
    fields = findings["cores_field"]
    plain.add_row(
        "cores of a job", f"requested processors {fields['requested']:,} times, allocated {fields['allocated']:,} times"
    )
    statuses = (
        f"{code} ({STATUSES.get(int(code), 'no code of the format')}): {count:,}"
        for code, count in findings.get("statuses", {}).items()
    )
    plain.add_row("statuses", ", ".join(statuses) or "none in the log")
    if "states" in findings:
        plain.add_row("states", ", ".join(f"{state}: {count:,}" for state, count in findings["states"].items()))
    plain.add_row("first submit", findings.get("origin_shift", "0 s"))
    plain.add_row("missing", ", ".join(findings["missing"]) or "nothing")
    console.print(plain)
    found = Table("kind", "lines", "first", "outcome", "rule", box=None, title="problems")
    for problem in source.problems(workload):
        found.add_row(
            problem.kind,
            f"{problem.count:,}",
            problem.shown,
            problem.outcome,
            option(problem.kind, problem.rule),
        )
    console.print(found if found.row_count else "no problems")


_ACTIONS = {
    "describe": _describe,
    "check": _check,
    "audit": _audit_files,
    "flurries": _flurries,
    "convert": _convert,
    "anonymise": _anonymise,
    "publish": _publish,
    "slice": _slice,
    "generate": _generate,
    "fetch": _fetch,
}
