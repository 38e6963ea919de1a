"""gridsim workload audit: does a trace hold together, and does it fit its machine?"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from gridsim.cli import source
from gridsim.errors import CheckFailed, InputError

if TYPE_CHECKING:
    from gridsim.model.workload import Workload
    from gridsim.workload.audit import Audit, Machine

__all__ = ["audited", "machine_of", "run"]


def run(args: Namespace) -> None:
    """Audit, and say what was found; `CheckFailed` where rows or amounts got lost."""
    from gridsim.report import audit_text  # numpy: not needed for --help

    found = audited(args)
    if args.json:
        import json

        from gridsim.files import plain

        print(json.dumps(plain(audit_text.as_json(found)), indent=2, allow_nan=False))
    else:
        _print(found)
    if not found.conserved:
        raise CheckFailed("rows or amounts got lost")
    if args.strict and (odd := audit_text.findings(found)):
        raise CheckFailed(f"odd (--strict): {', '.join(odd)}")


def audited(args: Namespace) -> Audit:
    """What was found in the files that were given."""
    from gridsim.workload.audit import LogRows, TableRows, audit  # numpy: not needed for --help
    from gridsim.workload.formats.table import mapping_of

    if args.mapping is None:
        log = source.read(args.file, args)
        return audit(LogRows(log), machine_of(args, log))
    if rules := source.rules(args):
        given = ", ".join(f"--on-{name}" for name in rules)
        raise InputError(f"{given}: rows of a table are audited as they are; leave it out")
    mapping = mapping_of(args.mapping)
    if mapping.unverified:
        from gridsim.cli.terminal import tell  # rich: not needed for --help

        if not args.json:
            tell([f"mapping '{mapping.name}': {mapping.unverified}"])
    return audit(TableRows(args.file, mapping, args.timezone), machine_of(args))


def machine_of(args: Namespace, log: Workload | None = None) -> Machine:
    """What there is: as given, else as the mapping says, else as the log does."""
    from gridsim.workload.audit import Machine  # numpy: not needed for --help
    from gridsim.workload.formats.table import mapping_of

    if args.platform is not None:
        if args.cores is not None:
            raise InputError(f"--cores and --platform {args.platform} both give the machine; leave out one of them")
        return Machine.of_capacities(source.capacities(args.platform))
    said = Machine() if args.mapping is None else Machine.of_mapping(mapping_of(args.mapping))
    if args.cores is None and not said.totals and log is not None and log.cores_stated is not None:
        return Machine({"cores": float(log.cores_stated)})
    return said if args.cores is None else Machine({**said.totals, "cores": float(args.cores)}, said.kinds)


def _print(found: Audit) -> None:
    from rich.table import Table

    from gridsim.cli.terminal import Terminal
    from gridsim.report import audit_text

    console = Terminal()
    if not console.is_terminal:
        console.width = 120
    plain = Table(title=found.name, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in audit_text.facts(found):
        plain.add_row(name, text.replace("[", r"\["))
    console.print(plain)
    table = Table(*audit_text.COLUMNS, box=None, title="demand", title_justify="left")
    for row in audit_text.rows(found):
        table.add_row(*row)
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    for sentence in audit_text.verdict(found):
        console.print(sentence, markup=False)
