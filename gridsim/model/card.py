"""What a notebook shows of a thing: a line on what it is, and a small table. Plain HTML that any front end takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["card"]


def card(
    title: str,
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str] = (),
    sentences: Iterable[str] = (),
    marked: str = "",
) -> str:
    """HTML of a thing.

    Parameters
    ----------
    title : str
        What it is.
    rows : iterable of sequence of str
        Cells; the first one names the row.
    head : sequence of str
        Names of the columns; none where left out.
    sentences : iterable of str
        Sentences between the title and the table.
    marked : str
        What stands behind the cells that are bold.

    Examples
    --------
    >>> card("<2 jobs>", [], sentences=["Nobody waits."])
    '<div><p><b>&lt;2 jobs&gt;</b></p><p>Nobody waits.</p><table></table></div>'
    """
    parts = [f"<p><b>{escape(title)}</b></p>", *(f"<p>{escape(sentence)}</p>" for sentence in sentences)]
    lines = ["<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"] if head else []
    for name, *cells in rows:
        lines.append(f"<tr>{_NAMING}{escape(name)}</th>{''.join(_cell(text, marked) for text in cells)}</tr>")
    return f"<div>{''.join(parts)}<table>{''.join(lines)}</table></div>"


_NAMING = '<th style="text-align: left">'


def _cell(text: str, marked: str) -> str:
    bold = bool(marked) and text.endswith(marked)
    return f"<td><b>{escape(text)}</b></td>" if bold else f"<td>{escape(text)}</td>"
