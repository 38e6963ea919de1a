"""Command ``gridsim report``: HTML report of existing result directories, without simulation."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridsim.questions.evidence import Evidence
    from gridsim.questions.result_folders import Recorded


def run(args: argparse.Namespace) -> int:
    """Read, compare, draw and write the results."""
    from gridsim.cli import source
    from gridsim.cli.compare import tell_of
    from gridsim.cli.folder import Earlier
    from gridsim.errors import InputError
    from gridsim.files import print_json, write_json
    from gridsim.questions.result_folders import recorded
    from gridsim.report.comparison import PAGE, Comparison

    folder = Path(args.out)
    found = recorded(args.folders, names=not args.no_names)
    if (folder / "jobs.parquet").is_file() or (folder / "jobs.csv").is_file():
        raise InputError("is a result directory; expected another folder for the page", path=folder, field="out")
    earlier = Earlier.of(folder)
    made = _Made(folder / f".{PAGE}.parts", found)
    comparison = Comparison.view(_evidence(found, source.command(), made, args.title))
    drawn = comparison.draw(made)
    numbers = comparison.write(folder)
    page = comparison.page(folder / PAGE, drawn=drawn)
    earlier.remove(kept={*numbers, page.name})
    write_json(folder / "run.json", {**comparison.info, "folders": {}})
    made.remove()
    if args.json:
        print_json(comparison.to_dict())
        return 0
    tell_of(comparison)
    print(f"\nPage: {page}   (tables in {folder}/)")
    return 0


def _evidence(found: Recorded, command: str, made: _Made, title: str | None) -> Evidence:
    from gridsim.metrics.compare import Difference
    from gridsim.questions.compare import evidence_of
    from gridsim.questions.evidence import GroupRow

    def numbers(**there: Any) -> Evidence:
        return evidence_of(found.results, options=found.options, command=command, title=title, **there)

    evidence: list[Evidence] = []

    def compared() -> dict[str, Any]:
        evidence.append(numbers(known=found.metrics))
        return {
            "metrics": dict(evidence[0].metrics),
            "differences": [asdict(it) for it in evidence[0].differences],
            "groups": [asdict(it) for it in evidence[0].groups],
        }

    kept = made("numbers", compared)
    if not evidence:
        told = [Difference(**it) for it in kept["differences"]], [GroupRow(**it) for it in kept["groups"]]
        evidence.append(numbers(known=kept["metrics"], compared=told))
    info: Any = evidence[0].info
    info["versions"] = dict(found.versions)
    return evidence[0]


class _Made:
    """Cached parts of a page that is not yet complete; parts of other records or versions are rebuilt."""

    def __init__(self, folder: Path, found: Recorded) -> None:
        from gridsim.files import plain
        from gridsim.result import versions

        of_what: list[Any] = [versions()]
        for label, it in found.results.items():
            at = it.record.table.path.stat()  # type: ignore[attr-defined]
            names = {name: list(texts) for name, texts in it.workload.names.items()}
            of_what.append([label, plain(it.provenance()), names, at.st_size, at.st_mtime_ns])
        self._folder = folder
        self._key = hashlib.sha256(json.dumps(of_what, sort_keys=True).encode()).hexdigest()

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        """Return a part by name, cached or from *work*; JSON types."""
        from gridsim.files import write_text

        path = self._folder / f"{name}.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = None
        if not isinstance(kept, dict) or kept.get("of") != self._key:
            kept = {"part": work()}
            write_text(path, json.dumps({"of": self._key, **kept}))
        return kept["part"]

    def remove(self) -> None:
        """Remove the cache once the page is complete."""
        shutil.rmtree(self._folder, ignore_errors=True)
