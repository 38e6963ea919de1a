"""Comparison of several policies on one workload, with all forms of output.

The data are in `gridsim.questions.evidence`, sentences in `sentences`, rows in `tables`, figures in `figures`, the
page in `page`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim.errors import require_known
from gridsim.files import plain, write_json, write_text
from gridsim.metrics.compare import Difference
from gridsim.metrics.summary import described
from gridsim.model.dataframes import frame, html_repr
from gridsim.questions.evidence import Evidence, GroupRow
from gridsim.report import caveats, curves, flurries_text, replications_text, robustness, sentences, tables, whatif_text
from gridsim.report.validation import trust, trust_in

if TYPE_CHECKING:
    from gridsim.report.gallery import Gallery
    from gridsim.report.page import PageParts


PAGE = "report.html"
"""Name of the page."""

_ALWAYS = ("metrics.json", "metrics.csv", "differences.csv", "groups.csv")
FILES = frozenset((PAGE, whatif_text.FILE, *_ALWAYS, *curves.FILES, *replications_text.FILES))
"""Names of all files that may be written next to the folders of policies."""

_FRAMES = ("metrics", "differences", "groups")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Evidence):
    """Comparison of several policies on one workload with its output; for the attributes see `Evidence`."""

    @classmethod
    def view(cls, evidence: Evidence) -> Comparison:
        """Return a comparison with output for existing data.

        Parameters
        ----------
        evidence : Evidence
            The data.

        Returns
        -------
        Comparison
            A view of the data.
        """
        return cls(*(getattr(evidence, it.name) for it in fields(evidence)))

    def table(self) -> list[tables.Row]:
        """Return the rows of the table, with the best values marked.

        Returns
        -------
        list of Row
            Rows in display order.
        """
        return tables.rows(self.metrics, moldable=self.of_moldable, measures=self.measures)

    def by_weight(self) -> list[robustness.WeightCategory]:
        """Return changes of the mean response by weight category, for moldable jobs only.

        Returns
        -------
        list of WeightCategory
            One row per category of effective sequential run time.
        """
        return robustness.categories(self)

    def sentences(self) -> list[str]:
        """Return the main results with their significance, followed by notes on the numbers.

        `warnings` are at the beginning.

        Returns
        -------
        list of str
            Sentences, the most important first.
        """
        answer = [*sentences.answer(self), *replications_text.answer(self), *flurries_text.answer(self)]
        return [*self.warnings(), *answer, *caveats.caveats(self)]

    def warnings(self) -> list[str]:
        """Return warnings to be read first, such as poor agreement of the site's own policy with the log.

        Returns
        -------
        list of str
            Warnings; empty if there are none.
        """
        return [] if self.replay is None else list(trust_in(self.replay).warnings)

    def __repr__(self) -> str:
        jobs = len(self.records[self.baseline])
        return f"<Comparison of {', '.join(self.labels)} on {jobs:,} job{'' if jobs == 1 else 's'}>"

    def __str__(self) -> str:
        """Return the subject of the comparison and the main results."""
        return "\n".join([repr(self), *sentences.answer(self)])

    def _repr_html_(self) -> str:
        """Return the main results and the table as HTML for notebooks, the best value of each row in bold."""
        rows = [
            (row.title, *(f"{cell.text} *" if cell.best else cell.text for cell in row.cells.values()))
            for row in self.table()
        ]
        lines = sentences.answer(self)
        return html_repr(repr(self).strip("<>"), rows, head=("", *self.labels), sentences=lines, marked="*")

    def to_pandas(self, what: str = "metrics") -> Any:
        """Return the numbers of the comparison as a tidy pandas data frame, one value per row.

        Parameters
        ----------
        what : {"metrics", "differences", "groups"}
            Columns ``policy``, ``metric``, ``value`` and ``unit``; attributes of `Difference`, one row per metric and
            pair; attributes of `GroupRow`, one row per group and pair.

        Returns
        -------
        pandas.DataFrame
            Data in seconds, cores and fractions.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        require_known("table of a comparison", _FRAMES, what)
        if what == "metrics":
            columns = [list(column) for column in zip(*self._values(), strict=True)]
            return frame(dict(zip(("policy", "metric", "value", "unit"), columns, strict=True)))
        rows: Sequence[Any] = self.differences if what == "differences" else self.groups
        kind = Difference if what == "differences" else GroupRow
        return frame({it.name: [getattr(row, it.name) for row in rows] for it in fields(kind)}, {})

    def _values(self) -> Iterator[tuple[str, str, float, str]]:
        """Return all metrics: policy, metric, value and unit."""
        for label, numbers in self.metrics.items():
            yield from ((label, name, value, described(name, self.measures).unit) for name, value in numbers.items())

    @property
    def figures(self) -> Gallery:
        """Figures of the page by name, each a matplotlib ``Figure``; ``save`` writes them as files for a paper."""
        from gridsim.report.gallery import of_comparison  # matplotlib: only if a figure is made

        return of_comparison(self)

    def draw(self, made: Callable[[str, Callable[[], Any]], Any] | None = None) -> PageParts:
        """Prepare the slow parts of the page: figures and schedules.

        Parameters
        ----------
        made : callable, optional
            Returns a part by name, with JSON types, from a cache or by running the work.

        Returns
        -------
        PageParts
            Parts for `page`, which can be used in another process.
        """
        from gridsim.report.page import draw  # matplotlib and Jinja2: only if a page is made

        return draw(self, made)

    def page(self, path: str | Path, *, drawn: PageParts | None = None) -> Path:
        """Write the self-contained HTML page, atomically; return its path.

        The data files that `write` has created in the same folder are embedded, so that the page works alone.

        Parameters
        ----------
        path : path
            The file.
        drawn : PageParts, optional
            Result of `draw`; by default drawn now.

        Returns
        -------
        Path
            The file.
        """
        from gridsim.report.page import render  # matplotlib and Jinja2: only if a page is made

        files = {file.name: file.read_bytes() for file in Path(path).parent.glob("*.csv") if file.name in FILES}
        write_text(path, render(self, files=files, drawn=drawn))
        return Path(path)

    def write(self, folder: str | Path) -> set[str]:
        """Write ``metrics.json`` and the numbers as tidy CSV files, one value per cell; return their names.

        The files are ``metrics.csv``, ``differences.csv``, ``groups.csv``, those of `gridsim.report.curves.FILES` with
        data, ``whatif.csv`` if there are changes, and those of `gridsim.report.replications_text.files` if there are
        replicas.

        Parameters
        ----------
        folder : path
            The folder; created if missing.

        Returns
        -------
        set of str
            Names of the files.
        """
        folder = Path(folder)
        written = {*_ALWAYS}
        write_text(folder / "metrics.csv", tables.csv_text(("policy", "metric", "value", "unit"), *self._values()))
        for name, kind, rows in (
            ("differences", Difference, [astuple(row) for row in self.differences]),
            ("groups", GroupRow, [astuple(row) for row in self.groups]),
        ):
            write_text(folder / f"{name}.csv", tables.csv_text([field.name for field in fields(kind)], *rows))
        for file, columns, numbers in curves.tables(self):
            write_text(folder / file, tables.csv_text(columns, *numbers))
            written.add(file)
        for file, names, cells in replications_text.files(self):
            write_text(folder / file, tables.csv_text(names, *cells))
            written.add(file)
        if self.whatifs:
            write_text(folder / whatif_text.FILE, whatif_text.csv_text(self.whatifs))
            written.add(whatif_text.FILE)
        write_json(folder / "metrics.json", self.metrics)
        return written

    def to_dict(self) -> dict[str, Any]:
        """Return all data with JSON types, as printed by ``--json``; missing numbers are None.

        Returns
        -------
        dict of str to object
            Data in seconds, cores and fractions.
        """
        found: dict[str, Any] = plain(
            {
                "sentences": self.sentences(),
                "baseline": self.baseline,
                "metrics": self.metrics,
                "differences": [asdict(row) for row in self.differences],
                "groups": [asdict(row) for row in self.groups],
                "validation": None if (known := trust(self)) is None else asdict(known),
                "what_if": [whatif_text.as_dict(found) for found in self.whatifs],
                "replicas": [replications_text.as_dict(self, found) for found in self.replicated],
                "without_flurries": None if self.cleaned is None else self.cleaned.metrics,
                "bound": self.bound,
                "warmup": self.warmup,
                "cooldown": self.cooldown,
                "info": self.info,
            }
        )
        return found
