"""Reproduce a paper: run missing campaigns, draw figures and tables, decide claims, and store all results in a folder.

``rows`` contains the stores of the campaigns, ``figures`` and ``tables`` the drawings, and ``NAME.json`` the results of
a paper. ``verdicts.csv`` and ``index.html`` combine all papers in the folder.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gridsim import InputError
from gridsim.campaign.paper import Claim, Drawn, Listener, Order, Reproduced
from gridsim.campaign.run import Finished, Progress, progress_of, run_campaign
from gridsim.campaign.store import Store
from gridsim.files import write_atomically, write_json, write_text
from gridsim.result import versions
from gridsim.testing.conformance import CASES, check
from gridsim_papers.cases import Cases
from gridsim_papers.deadline.figures import on_paper, save
from gridsim_papers.page import render
from gridsim_papers.paper import Paper, Part, Picture, Plan, Results, Rows, Tabled, store_name
from gridsim_papers.papers import PAPERS
from gridsim_papers.verdict_table import COLUMNS, Ruling, as_rows, markdown, numbers, rulings, write

__all__ = ["draw_alone", "reproduce", "rule", "write_page"]


class _Gathered(NamedTuple):
    rows: Rows
    units: int
    cpu: float
    failed: int


def reproduce(
    paper: Paper,
    order: Order,
    out: Path,
    *,
    cases: Path | None = None,
    workers: int = 1,
    kind: str = "png",
    listener: Listener | None = None,
) -> Reproduced:
    """Run missing campaigns of a paper, draw everything, decide its claims, and write everything to a folder.

    Parameters
    ----------
    out : Path
        The folder. Stores of rows in it are reused.
    cases : Path, optional
        Folder of exact cases; by default those that gridsim includes.
    kind : {"png", "svg"}
        Of figures.
    listener : callable, optional
        Called with each finished unit.

    Raises
    ------
    InputError
        For an unknown scale or variant, or a store of another campaign.
    """
    begun = time.perf_counter()
    exact = Cases(cases or CASES, lambda case: check(case).status == "passed")
    plan = paper.family.plan(paper, order)
    gathered = _gather(plan, out / "rows", order, workers, listener)
    results = paper.family.results(paper, gathered.rows, plan)
    name = store_name(paper.name, order.variant)
    drawn = _draw(paper.pictures.values(), results, plan, out, name, kind)
    tables = list(results.tables())
    found = rule(paper, results, plan, exact)
    _write_tables(out / "tables", name, tables, found)
    told_of = {
        "name": name,
        "paper": paper.name,
        "variant": order.variant,
        "scale": order.scale,
        "title": paper.citation.title,
        "authors": paper.citation.authors,
        "where": paper.citation.where,
        "synthetic": plan.synthetic,
        "absent": [one._asdict() for one in plan.absent],
        "figures": [one._asdict() for one in drawn],
        "tables": [{**table._asdict(), "file": f"tables/{name}-{table.name}.csv"} for table in tables],
        "claims": as_rows(found),
        "failed": gathered.failed,
        "campaigns": {part.store: asdict(part.campaign) for part in plan.parts},
        "ran": {"units": gathered.units, "cpu": round(gathered.cpu, 1), "took": round(time.perf_counter() - begun, 1)},
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": versions(),
    }
    write_json(out / f"{name}.json", told_of)
    claims = [_claim(one) for one in found]
    return Reproduced(name, plan.synthetic, plan.absent, drawn, claims, gathered.failed, write_page(out))


def _claim(one: Ruling) -> Claim:
    """A claim: its answer, and the numbers of the circumstance that supports it least."""
    weakest = one.weakest.verdict
    statement = one.entry.statement + (" [synthetic jobs]" if one.synthetic and weakest.n else "")
    return Claim(one.entry.id, one.answer, *numbers(weakest), str(weakest.n or ""), statement)


def rule(paper: Paper, results: Results, plan: Plan, cases: Cases) -> list[Ruling]:
    """A ruling on each claim of a paper."""
    ledger = paper.ledger
    judged = [*results.judged(), *paper.family.by_cases(ledger, cases)]
    found = [one for one in judged if one.verdict.claim in ledger]
    return rulings(found, ledger, lambda entry: paper.family.synthetic(entry, plan))


def draw_alone(
    paper: Paper,
    order: Order,
    number: str,
    out: Path,
    *,
    workers: int = 1,
    kind: str = "png",
    listener: Listener | None = None,
) -> Reproduced:
    """Draw one figure from all rows of the paper if they exist, otherwise from the rows of the figure only.

    Raises
    ------
    UnknownNameError
        When the paper has no such figure.
    """
    pictures = paper.asked(number)
    plan = _least(paper, order, pictures, out / "rows")
    gathered = _gather(plan, out / "rows", order, workers, listener)
    results = paper.family.results(paper, gathered.rows, plan)
    name = store_name(paper.name, order.variant)
    drawn = _draw(pictures, results, plan, out, name, kind)
    return Reproduced(name, plan.synthetic, plan.absent, drawn, failed=gathered.failed)


def _least(paper: Paper, order: Order, pictures: Sequence[Picture], folder: Path) -> Plan:
    plan = paper.family.plan(paper, order, pictures)
    whole = paper.family.plan(paper, order)
    names = {part.name for part in plan.parts}
    parts = [part for part in whole.parts if part.name in names]
    if all(_is_there(part, folder / part.store, order.data) for part in parts):
        return Plan(parts, plan.stand_ins, plan.absent)
    return plan


def _is_there(part: Part, folder: Path, data: Path | None) -> bool:
    """Return whether a store has every row of this campaign."""
    store = Store(folder)
    if not store.identity():
        return False
    try:
        store.claim({"version": versions()["gridsim"], **part.campaign.identity(data)})
    except InputError:
        return False
    at = progress_of(part.campaign, store)
    return at.finished == at.total


def _gather(plan: Plan, folder: Path, order: Order, workers: int, listener: Listener | None) -> _Gathered:
    """Run missing units, and read all rows."""
    rows, units, cpu, failed = {}, 0, 0.0, 0
    for part in plan.parts:
        place = folder / part.store
        of_store = None if listener is None else _of_store(listener, part.store)
        summary = run_campaign(
            part.campaign, place, data=order.data, workers=workers, retry_failed=True, listener=of_store
        )
        failed += progress_of(part.campaign, Store(place)).failed
        units, cpu = units + summary.units, cpu + summary.cpu
        rows[part.name] = part.campaign.table.read(place)
    return _Gathered(rows, units, cpu, failed)


def _of_store(listener: Listener, store: str) -> Callable[[Finished, Progress], None]:
    return lambda done, at: listener(store, done, at)


def _draw(pictures: Iterable[Picture], results: Results, plan: Plan, out: Path, name: str, kind: str) -> list[Drawn]:
    drawn = []
    for picture in pictures:
        caption = _caption(picture, plan)
        if picture.cases:
            note = f"decided by exact cases {picture.cases}"
            drawn.append(Drawn(picture.number, caption, "", note, True))
            continue
        number = picture.number.zfill(2) if picture.number.isdigit() else picture.number
        file = f"figures/{name}-figure-{number}.{kind}"
        try:
            with on_paper():
                save(results.draw(picture.number), out / file)
        except InputError as error:
            drawn.append(Drawn(picture.number, caption, "", str(error), False))
            continue
        drawn.append(Drawn(picture.number, caption, file, "", True))
    return drawn


def _caption(picture: Picture, plan: Plan) -> str:
    told = " and ".join(title for log, title in plan.stand_ins.items() if log in picture.logs)
    mark = f" (synthetic jobs instead of {told})" if told else ""
    number = f"Figure {picture.number}" if picture.number[0].isdigit() else picture.number
    return f"{number}: {picture.title}{mark}"


def _write_tables(folder: Path, name: str, tables: Iterable[Tabled], found: Sequence[Ruling]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        _write_lines(folder / f"{name}-{table.name}.csv", table.lines)
    write_text(folder / f"{name}-verdicts.md", markdown(found) + "\n")


def _write_lines(path: Path, lines: Sequence[Sequence[str]]) -> None:
    def write_them(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)

    write_atomically(path, write_them)


def write_page(out: Path) -> Path:
    """Write ``index.html`` and ``verdicts.csv`` of all papers in a folder."""
    papers = list(_stored(out))
    rows = [{**row, "paper": told["name"], "scale": told["scale"]} for told in papers for row in told["claims"]]
    write(out / "verdicts.csv", rows, (COLUMNS[0], "scale", *COLUMNS[1:]))
    page = out / "index.html"
    write_text(page, render(papers))
    return page


def _stored(out: Path) -> Iterator[dict[str, Any]]:
    """Results of each paper, in the order of the papers, without results decided by the rule of an older version."""
    for name in PAPERS:
        for path in sorted(out.glob("*.json"), key=lambda path: len(path.name)):
            told = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(told, dict) and told.get("paper") == name and all("margin" in row for row in told["claims"]):
                yield told
