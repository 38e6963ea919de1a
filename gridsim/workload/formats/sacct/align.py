"""Fields of a line to columns, where some text holds the delimiter: what a column may hold tells where it stands."""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.workload.formats.sacct.fields import TEXTS

__all__ = ["align"]

_SPANS = 6
"""Pieces that a time, a state or a name of tasks falls into at most, where the delimiter occurs in it."""

_MOST_TOKENS = 2000


def align(tokens: Sequence[bytes], kinds: Sequence[str], delimiter: bytes) -> list[bytes] | None:
    """Texts of the columns of these *kinds*, or None where no division of the *tokens* fits them all.

    Where several fit, columns of free text that stand further right are as short as can be: what is too much goes to
    the first one, the name of the job.

    Examples
    --------
    >>> align([b"7", b"fit", b"lr=0.1", b"12"], ["identity", "free", "count"], b"|")
    [b'7', b'fit|lr=0.1', b'12']
    >>> align([b"7", b"fit", b"12 s"], ["identity", "free", "count"], b"|") is None
    True
    """
    if len(tokens) > _MOST_TOKENS:
        return None
    wide = _SPANS if set(delimiter) & set(b" :-+_.=,[]T") else 1
    reached = _reached(tokens, kinds, delimiter, wide)
    if not reached or not reached[-1] >> len(tokens) & 1:
        return None
    texts: list[bytes] = []
    end = len(tokens)
    for column in range(len(kinds) - 1, -1, -1):
        begin = _begin(tokens, kinds[column], delimiter, wide, reached[column], end)
        texts.append(delimiter.join(tokens[begin:end]))
        end = begin
    return texts[::-1]


def _reached(tokens: Sequence[bytes], kinds: Sequence[str], delimiter: bytes, wide: int) -> list[int] | None:
    """Bit masks: at which tokens a column can begin, for each column, and where the last one can end."""
    every = (1 << len(tokens) + 1) - 1
    now, reached = 1, [1]
    for kind in kinds:
        if kind == "free":
            lowest = now & -now
            now = every & ~((lowest << 1) - 1)
        else:
            span = len(tokens) if kind == "tres" and wide > 1 else wide
            now = sum(1 << end for end in {end for p in _bits(now) for end in _ends(tokens, kind, delimiter, span, p)})
        if not now:
            return None
        reached.append(now)
    return reached


def _bits(mask: int) -> list[int]:
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _ends(tokens: Sequence[bytes], kind: str, delimiter: bytes, span: int, begin: int) -> list[int]:
    """Where a column that begins at a token may end."""
    if kind == "tres" and span > 1:
        ends = []
        for end in range(begin + 1, len(tokens) + 1):
            text = tokens[end - 1]
            if not TEXTS["tres"].fullmatch(text) or (not text and end > begin + 1):
                break
            ends.append(end)
            if not text:
                break
        return ends
    pattern = TEXTS[kind] if kind != "tres" else _TRES_LIST
    last = min(begin + span, len(tokens))
    return [end for end in range(begin + 1, last + 1) if pattern.fullmatch(delimiter.join(tokens[begin:end]))]


class _Tres:
    """A list of parts like ``cpu=4,mem=8000M``, part by part: one pattern for all would take its time on bad ones."""

    def fullmatch(self, text: bytes) -> bool:
        return all(TEXTS["tres"].fullmatch(part) for part in text.split(b",")) if text else True


_TRES_LIST = _Tres()


def _begin(tokens: Sequence[bytes], kind: str, delimiter: bytes, wide: int, reached: int, end: int) -> int:
    """Where the column that ends before token *end* begins."""
    if kind == "free":
        below = reached & ((1 << end) - 1)
        return below.bit_length() - 1
    span = len(tokens) if kind == "tres" and wide > 1 else wide
    fitting = [
        begin
        for begin in range(max(0, end - span), end)
        if reached >> begin & 1 and end in _ends(tokens, kind, delimiter, span, begin)
    ]
    if kind != "tres" or span == 1:
        return fitting[-1]
    names = [token.partition(b"=")[0] for token in tokens]
    differing = [begin for begin in fitting if len(set(names[begin:end])) == end - begin]
    return (differing or fitting[-1:])[0]
