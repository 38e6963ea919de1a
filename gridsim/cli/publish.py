"""gridsim workload publish: a trace without names, its description, checks and figures in one folder."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.cli import source
from gridsim.cli.folder import check_inputs
from gridsim.errors import InputError

if TYPE_CHECKING:
    from gridsim.model.workload import Workload
    from gridsim.workload.audit import Audit

__all__ = ["run"]


def run(args: Namespace) -> None:
    """Write the folder."""
    from gridsim.cli.terminal import tell  # rich: not needed for --help
    from gridsim.model.platform import machine_cores  # numpy: not needed for --help
    from gridsim.report.publication import PROMPTS, description
    from gridsim.workload.anonymise import anonymised
    from gridsim.workload.describe import describe
    from gridsim.workload.formats.swf_writer import write_swf
    from gridsim.workload.formats.table.writer import write_jobs

    check_inputs(args.out, source.input_files(args))
    folder, about = _folder(args.out), None if args.about is None else _text(args.about)
    key = _key(args)
    log = source.read(args.file, args)
    if log.tasks is not None:
        raise InputError("holds workflows, which no field of a published trace is for; expected independent jobs")
    public = anonymised(log, key, shift=args.shift)
    found = _audit(public, args)
    facts = describe(public, machine_cores(public, args.cores)[0])
    write_swf(anonymised(log, key, shift=args.shift, numbers=True), folder / "trace.swf.gz")
    columns = write_jobs(public, folder)
    drawn = _draw(public, found, folder)
    text = description(public, facts, found, columns, title=args.title, about=about, drawn=drawn, shifted=args.shift)
    _write(folder, text, found, facts, public)
    left = log.provenance.get("jobs_read", len(log)) - len(log)
    print(f"{args.out}: {len(public):,} jobs{f', {left:,} left out' if left else ''}; README.md describes them")
    if about is None:
        tell([f"README.md has {len(PROMPTS)} sections that only the site can write; give them as --about FILE.md"])
    tell(["Look at all of it before you give it away: who knows of a certain job can find it (see the description)."])


def _key(args: Namespace) -> bytes:
    from gridsim.workload.anonymise import check_key, read_key  # numpy: not needed for --help

    return check_key(args.key_text.encode()) if args.key is None else read_key(args.key)


def _folder(path: str) -> Path:
    """The folder, which holds nothing that somebody else put there: it is to be given away whole."""
    from gridsim.report.publication import FILES  # numpy: not needed for --help

    folder = Path(path)
    if folder.is_dir():
        others = sorted({it.name for it in folder.iterdir()}.difference(name.rstrip("/") for name in FILES))
        if others:
            told = f"holds {', '.join(others[:3])}, which publish did not write; expected a new or empty folder"
            raise InputError(told, path=path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _text(path: str) -> str:
    from gridsim.files import read_text

    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error}); expected a text in UTF-8", path=path) from error


def _audit(public: Workload, args: Namespace) -> Audit:
    from gridsim.cli.audit import machine_of  # numpy: not needed for --help
    from gridsim.workload.audit import LogRows, audit

    return audit(LogRows(public), machine_of(args, public))


def _draw(public: Workload, found: Audit, folder: Path) -> list[str]:
    from gridsim.report.gallery import FOLDER, Gallery
    from gridsim.report.publication import figures

    gallery = Gallery(lambda: figures(public, found))
    gallery.save(folder / FOLDER, "svg")
    gallery.save(folder / FOLDER, "pdf")
    return [*gallery]


def _write(folder: Path, text: str, found: Audit, facts: dict[str, Any], public: Workload) -> None:
    """The description, the checks as data, and the checksums of all."""
    from gridsim.files import checksum, write_json, write_text
    from gridsim.report import audit_text

    checks = {"facts": facts, "problems": public.provenance.get("problems", []), "audit": audit_text.as_json(found)}
    write_json(folder / "checks.json", checks)
    write_text(folder / "README.md", text)
    files = sorted(it for it in folder.rglob("*") if it.is_file() and it.name != "SHA256SUMS")
    write_text(folder / "SHA256SUMS", "".join(f"{checksum(it)}  {it.relative_to(folder).as_posix()}\n" for it in files))
