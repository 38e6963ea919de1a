"""The page of `gridsim whatif`: the answers in words and a table, one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.questions.changes import WhatIf
from gridsim.report import replicas_text, whatif_alike, whatif_parts
from gridsim.report.markup import breakable, environment, prose, style
from gridsim.report.whatif_figures import pictures
from gridsim.report.whatif_text import FILE, NOTE, SHOWN, lines, sentences

__all__ = ["render"]


def render(found: WhatIf, *, title: str, command: str, caveats: Sequence[str] = ()) -> str:
    """Text of the page.

    Parameters
    ----------
    title : str
        Of which log.
    command : str
        What it was made by.
    caveats : sequence of str
        What else to know, behind the answer.
    """
    templates = environment(prose=prose, breakable=breakable, lines=lines)
    return templates.get_template("whatif.html.j2").render(
        title=title,
        command=command,
        found=found,
        sentences=[*sentences(found), *caveats],
        columns=list(SHOWN.values()),
        note=NOTE,
        file=FILE,
        parts=whatif_parts.table_rows(found),
        parts_caption=f"{whatif_parts.CAPTION} under {found.policy}",
        parts_file=whatif_parts.FILE,
        pictures=[one.shown() for one in pictures(found)],
        replicated=[(replicas_text.caption(it), whatif_alike.lines(it), f"{it.role}.csv") for it in found.replicated],
        replicas_head=replicas_text.HEAD,
        style=style("page.css"),
    )
