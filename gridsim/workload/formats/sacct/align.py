"""Fields of a line to columns, where some text holds the delimiter: what a column may hold tells where it stands."""

from __future__ import annotations

from collections.abc import Sequence

from gridsim.workload.formats.sacct.fields import TEXTS

__all__ = ["MOST_TOKENS", "align", "divisions"]

_SPANS = 6
"""Pieces that a time, a state or a name of tasks falls into at most, where the delimiter occurs in it."""

_PARTS = 24
"""And a list of resources, whose parts stand between commas."""

_COMMA = b","

MOST_TOKENS = 2000
"""Of a line that can be aligned."""


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
    found = divisions(tokens, kinds, delimiter)
    return None if found is None else [delimiter.join(tokens[begin:end]) for begin, end in found]


def divisions(tokens: Sequence[bytes], kinds: Sequence[str], delimiter: bytes) -> list[tuple[int, int]] | None:
    """First token of each column, and the one behind its last; as `align`."""
    if len(tokens) > MOST_TOKENS:
        return None
    wide = _SPANS if set(delimiter) & set(b" :-+_.=,[]T") else 1
    reached = _reached(tokens, kinds, delimiter, wide)
    if not reached or not reached[-1] >> len(tokens) & 1:
        return None
    places: list[tuple[int, int]] = []
    end = len(tokens)
    for column in range(len(kinds) - 1, -1, -1):
        begin = _begin(tokens, kinds[column], delimiter, wide, reached[column], end)
        places.append((begin, end))
        end = begin
    return places[::-1]


def _reached(tokens: Sequence[bytes], kinds: Sequence[str], delimiter: bytes, wide: int) -> list[int] | None:
    """Bit masks: at which tokens a column can begin, for each column, and where the last one can end."""
    every = (1 << len(tokens) + 1) - 1
    now, reached = 1, [1]
    for kind in kinds:
        if kind == "free":
            lowest = now & -now
            now = every & ~((lowest << 1) - 1)
        else:
            span = _span(kind, delimiter, len(tokens), wide)
            now = sum(1 << end for end in {end for p in _bits(now) for end in _ends(tokens, kind, delimiter, span, p)})
        if not now:
            return None
        reached.append(now)
    return reached


def _span(kind: str, delimiter: bytes, tokens: int, wide: int) -> int:
    """Pieces that a column falls into at most."""
    if kind != "tres" or wide == 1:
        return wide
    return tokens if delimiter == _COMMA else _PARTS


def _bits(mask: int) -> list[int]:
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _ends(tokens: Sequence[bytes], kind: str, delimiter: bytes, span: int, begin: int) -> list[int]:
    """Where a column that begins at a token may end."""
    if kind == "tres" and delimiter == _COMMA:
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
    span = _span(kind, delimiter, len(tokens), wide)
    fitting = [
        begin
        for begin in range(max(0, end - span), end)
        if reached >> begin & 1 and end in _ends(tokens, kind, delimiter, span, begin)
    ]
    if kind != "tres" or delimiter != _COMMA:
        return fitting[-1]
    names = [token.partition(b"=")[0] for token in tokens]
    differing = [begin for begin in fitting if len(set(names[begin:end])) == end - begin]
    first = end
    while first and b"=" in tokens[first - 1]:
        first -= 1
    # Lists that stand side by side begin with the same name.
    again = [begin for begin in differing if first < begin < end and names[begin] == names[first]]
    return (again or differing or fitting[-1:])[0]
