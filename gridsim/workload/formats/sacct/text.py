"""Lines of `sacct`: columns of the header, and positions of their texts in a block of lines.

If a text contains the delimiter, the valid values of the other columns determine its position (`align`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.fields import FREE, TEXTS, canonical

_SPANS = 6
"""Largest number of pieces of a time, a state or a name of tasks that contains the delimiter."""

_PARTS = 24
"""Largest number of pieces of a list of resources, whose parts are separated by commas."""

_COMMA = b","

MOST_TOKENS = 2000
"""Largest number of pieces of a line that can be aligned."""


def align(tokens: Sequence[bytes], kinds: Sequence[str], delimiter: bytes) -> list[bytes] | None:
    """Return the texts of the columns of these *kinds*, or None if no division of the *tokens* fits them all.

    If several divisions fit, columns of free text further right are as short as possible. The surplus goes to the
    first one, the name of the job.

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
    """Return the first token of each column, and the token after its last one; as `align`."""
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
    """Return bit masks of the tokens at which each column can begin, and at which the last one can end."""
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
    """Return the largest number of pieces of a column."""
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
    """Return the possible ends of a column that begins at a token."""
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
    """List of parts like ``cpu=4,mem=8000M``, matched part by part; one pattern would be slow on invalid lists."""

    def fullmatch(self, text: bytes) -> bool:
        return all(TEXTS["tres"].fullmatch(part) for part in text.split(b",")) if text else True


_TRES_LIST = _Tres()


def _begin(tokens: Sequence[bytes], kind: str, delimiter: bytes, wide: int, reached: int, end: int) -> int:
    """Return the begin of the column that ends before token *end*."""
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
    # Adjacent lists begin with the same name.
    again = [begin for begin in differing if first < begin < end and names[begin] == names[first]]
    return (again or differing or fitting[-1:])[0]


_MOST_LOOKS = 1 << 14
_SIGNS = (b"0123456789", b"=", b":", b"-", b".", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_+", b"abcdefghijklmnopqrstuvwxyz")
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9)


class LinePatterns:
    """Divisions of lines of one form with the delimiter in other columns, by their patterns.

    With ``--delimiter=,`` every line is such a line, because lists such as ``cpu=4,node=1`` contain commas. Aligning a
    line takes a millisecond, but lines are similar: they have equal numbers of pieces, and digits, words, times and
    names of resources in the same positions. One line of each pattern is aligned. The other lines of the pattern are
    divided in the same way and then validated column by column, like every line.
    """

    def __init__(self, header: Form) -> None:
        self.header = header
        self._places: dict[tuple[int, int], IntArray | None] = {}

    def divided(self, lines: TextLines, rows: IntArray) -> tuple[IntArray, Division]:
        """Return the lines with the pattern of a line that could be divided, and the positions of their columns."""
        rows = rows[lines.extra[rows] + len(self.header.names) <= MOST_TOKENS]
        if not len(rows):
            return rows, lines.division()
        begins, ends, counts = lines.tokens(rows)
        first = np.cumsum(counts) - counts
        looks = _looks(lines.data, begins, ends, first, counts)
        keys, example, which = np.unique(looks, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        if len(self._places) > _MOST_LOOKS:
            self._places.clear()
        columns = len(self.header.names)
        places, known = np.zeros((len(keys), columns, 2), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        for number, (look, row) in enumerate(zip(keys.tolist(), example.tolist(), strict=True)):
            key = (look, int(counts[row]))
            if key not in self._places:
                self._places[key] = self._aligned(lines.line(int(rows[row])))
            found = self._places[key]
            if found is not None and counts[row] == found[-1, 1]:
                places[number], known[number] = found, True
        known_rows = known[which]
        place_of = np.full(len(lines), -1, dtype=np.int64)
        place_of[rows] = np.arange(len(rows))

        def span(chosen: IntArray, name: str) -> tuple[IntArray, IntArray]:
            at = place_of[chosen]
            begin, end = places[which[at], self.header.names.index(name)].T
            return begins[first[at] + begin], ends[first[at] + end - 1]

        return rows[known_rows], Division(lines, span)

    def _aligned(self, line: bytes) -> IntArray | None:
        found = divisions(line.split(self.header.delimiter), self.header.kinds, self.header.delimiter)
        return None if found is None else np.array(found, dtype=np.int64)


def _looks(
    data: npt.NDArray[np.uint8], begins: IntArray, ends: IntArray, first: IntArray, counts: IntArray
) -> npt.NDArray[np.uint64]:
    """Return a number for the pattern of each line: number of pieces, and characters or name (``=``) of each."""
    kinds = np.zeros(len(begins), dtype=np.uint64)
    lengths = (ends - begins).astype(np.int64)
    for number, signs in enumerate(_SIGNS):
        one = np.zeros(256, dtype=np.int32)
        one[list(signs)] = 1
        before = np.concatenate(([0], np.cumsum(one[data], dtype=np.int32)))
        there = before[ends] - before[begins]
        kinds |= ((there > 0).astype(np.uint64) + (there == lengths)) << np.uint64(2 * number)
    equals = np.flatnonzero(data == ord("="))
    if len(equals):
        at = equals[np.minimum(np.searchsorted(equals, begins), len(equals) - 1)]
        named = (at >= begins) & (at < ends)
        name = (at - begins).astype(np.uint64) << np.uint64(24) | data[np.minimum(begins, len(data) - 1)].astype(
            np.uint64
        )
        kinds = np.where(named, (name << np.uint64(16)) | np.uint64(1), kinds)
    place = (np.arange(len(begins)) - np.repeat(first, counts)).astype(np.uint64)
    mixed = (kinds + np.uint64(1)) * np.uint64(_MIX[0]) ^ (place + np.uint64(1)) * np.uint64(_MIX[1])
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(_MIX[2])
    return np.add.reduceat(mixed, first) + counts.astype(np.uint64)


BREAKS_JOINED = 20
"""Number of lines that are combined into one record where a text contains line breaks."""

UNIT = b"\x1f"
"""Byte that replaces a delimiter of several bytes."""

_RULER = re.compile(rb" *-+(?: +-+)* *")
_FIRST_NAME = re.compile(rb"([A-Za-z]+)([^A-Za-z0-9\s]+| +|\t)?")
_HEADLESS = re.compile(rb"\d+(?:[_+.][^\s|]*)?([^\w\s.+\[\]-]).*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_WIDEST = 512
_LONGEST_NAME = 128


def is_ruler(line: bytes) -> bool:
    """Return whether a line is the line of dashes below the names of a table."""
    return _RULER.fullmatch(line) is not None


def looks_headless(line: bytes) -> bool:
    """Return whether a line is a line of values of `sacct -n -P`."""
    return _HEADLESS.match(line) is not None


@dataclass(frozen=True, slots=True)
class Form:
    """Columns of one form of the output of `sacct`.

    Attributes
    ----------
    names, kinds : tuple of str
        Names as `sacct` spells them, and the kind of each column (`fields.TEXTS`).
    delimiter : bytes
        Delimiter between the columns, one byte; empty for a table of fixed widths.
    spelt : bytes
        Delimiter in the file, which may be longer.
    spans : tuple of (int, int)
        Begin and end of the columns of a table.
    line : bytes
        The header line.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    delimiter: bytes
    spelt: bytes
    spans: tuple[tuple[int, int], ...]
    line: bytes

    def place(self, name: str) -> int | None:
        """Return the position of a column."""
        return self.names.index(name) if name in self.names else None

    @property
    def free(self) -> tuple[int, ...]:
        """Positions of the columns with free text by users, the most likely to contain the delimiter first."""
        return tuple(self.names.index(name) for name in FREE if name in self.names)

    def begins_record(self, line: bytes) -> bool:
        """Return whether a line certainly begins a record: its first column is the identity of a job."""
        return self.kinds[0] == "identity" and bool(
            _IDENTITY_FIRST.match(line[: self.spans[0][1]] if self.spans else line)
        )

    def record(self, lines: Sequence[bytes]) -> Mapping[str, bytes] | None:
        """Return the texts by column of one record on these lines; None if they are not a record."""
        text = b"\n".join(lines)
        texts = self._cut(text) if self.spans else self._divided(text)
        return None if texts is None else dict(zip(self.names, texts, strict=True))

    def _divided(self, text: bytes) -> list[bytes] | None:
        tokens = text.split(self.delimiter)
        return align(tokens, self.kinds, self.delimiter) if len(tokens) >= len(self.names) else None

    def _cut(self, text: bytes) -> list[bytes] | None:
        total, least = self.spans[-1][1], self.spans[-1][0]
        if least < len(text) <= total + 1:
            return [text[begin:end].strip() for begin, end in self.spans]
        letters = text.decode("utf-8", "replace")
        if least < len(letters) <= total + 1:
            return [letters[begin:end].strip().encode() for begin, end in self.spans]
        return None


_IDENTITY_FIRST = re.compile(rb" *\d+(?:[_+.][\w\[\],%:+-]*)?(?:[^\w]|$)")


def header_of(line: bytes, following: bytes = b"") -> Form | None:
    """Return the form that a header line defines, using the line below it; None if it is not a header.

    Examples
    --------
    >>> header_of(b"JobID|State|NCPUS").names, header_of(b"JobID;State").delimiter
    (('JobID', 'State', 'NCPUS'), b';')
    >>> header_of(b"41200|COMPLETED|4") is None
    True
    """
    line = line.rstrip(b"\r\n")
    if is_ruler(following) and following.strip():
        spans = [match.span() for match in re.finditer(rb"-+", following)]
        texts = [line[begin:end].strip() for begin, end in spans]
        return _header(texts, b"", tuple(spans), line)
    first = _FIRST_NAME.match(line)
    if first is None:
        return None
    delimiter = first[2] or b"|"
    return _header(line.split(delimiter), delimiter, (), line)


def _header(texts: Sequence[bytes], delimiter: bytes, spans: tuple[tuple[int, int], ...], line: bytes) -> Form | None:
    names, kinds, known = [], [], 0
    for place, text in enumerate(texts):
        name, _, _ = text.decode("latin-1").strip().partition("%")
        found = canonical(name)
        last_empty = not name and place == len(texts) - 1
        known += found is not None
        name, kind = found or (name, "word" if last_empty else "free")
        if name in names or not name:
            name = f"{name}#{place}"
        names.append(name)
        kinds.append(kind)
    if not known or known * 2 <= len(names) - 1 or (known < 2 and names[0] not in ("JobID", "JobIDRaw")):
        return None
    return Form(tuple(names), tuple(kinds), delimiter if len(delimiter) < 2 else UNIT, delimiter, spans, line)


def _gather(data: npt.NDArray[np.uint8], begins: IntArray, ends: IntArray, most: int) -> npt.NDArray[Any]:
    """Return the texts between pairs of positions, as a column of bytes, truncated to *most*."""
    lengths = np.clip(ends - begins, 0, most)
    width = max(int(lengths.max(initial=0)), 1)
    places = np.arange(width, dtype=np.int32)
    text = data[np.minimum(begins.astype(np.int32)[:, None] + places, len(data) - 1)]
    text[places >= lengths[:, None]] = 0
    return np.ascontiguousarray(text).view(f"S{width}").reshape(-1)


class Cells:
    """Texts of the columns of some lines; a column is created on first access."""

    def __init__(self, header: Form, texts: Any, count: int) -> None:
        self.names = header.names
        self._texts, self._count = texts, count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        column: npt.NDArray[Any] = self._texts(name)
        return column

    @classmethod
    def of_records(cls, header: Form, records: Sequence[Mapping[str, bytes]]) -> Cells:
        """Return the texts of records that were divided one by one."""

        def texts(name: str) -> npt.NDArray[Any]:
            most = _LONGEST_NAME if name == "JobName" else 4 * _WIDEST
            return np.array([record[name][:most] for record in records], dtype=bytes).reshape(len(records))

        return cls(header, texts, len(records))


class TextLines:
    """Block of lines, and the positions of their columns."""

    def __init__(self, header: Form, block: bytes) -> None:
        self.header, self.block = header, block
        self.data = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(self.data == ord("\n"))
        if len(block) and not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        self.ends = ends
        self.begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        if header.delimiter:
            self._delimiters = np.flatnonzero(self.data == header.delimiter[0])
            first = np.searchsorted(self._delimiters, self.begins)
            self._first = first
            self.extra = np.searchsorted(self._delimiters, ends) - first - (len(header.names) - 1)
        else:
            length = ends - self.begins
            fits = (length > header.spans[-1][0]) & (length <= header.spans[-1][1] + 1)
            self.extra = np.where(fits, 0, -1)

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, row: int) -> bytes:
        """Return one line, without its end."""
        return self.block[int(self.begins[row]) : int(self.ends[row])]

    def division(self, *, shared: bool = False) -> Division:
        """Return the columns according to the header.

        Parameters
        ----------
        shared : bool
            Whether two columns of free text share the surplus evenly; otherwise it goes to the first one.
        """
        return Division(self, lambda rows, name: self._span(rows, name, shared=shared))

    def tokens(self, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return begin and end of the pieces between delimiters in lines with enough fields, and counts per line."""
        counts = self.extra[rows] + len(self.header.names)
        last = np.cumsum(counts) - 1
        place = np.arange(int(counts.sum())) - np.repeat(last + 1 - counts, counts)
        at = np.minimum(np.repeat(self._first[rows], counts) + place, max(len(self._delimiters) - 1, 0))
        ends = self._delimiters[at] if len(self._delimiters) else np.zeros(len(place), dtype=np.int64)
        ends[last] = self.ends[rows]
        begins = np.concatenate(([0], ends[:-1] + 1))
        begins[last + 1 - counts] = self.begins[rows]
        return begins, ends, counts

    def _span(self, rows: IntArray, name: str, *, shared: bool = False) -> tuple[IntArray, IntArray]:
        place = self.header.names.index(name)
        if not self.header.delimiter:
            begin, end = self.header.spans[place]
            return self.begins[rows] + begin, np.minimum(self.begins[rows] + end, self.ends[rows])
        before, own = self._shifts(rows, place, shared)
        first, count = self._first[rows], len(self.header.names)
        delimiters = self._delimiters
        if not len(delimiters):
            return self.begins[rows], self.ends[rows]
        most = len(delimiters) - 1
        begins = self.begins[rows]
        if place:
            begins = delimiters[np.minimum(first + place - 1 + before, most)] + 1
        ends = self.ends[rows]
        if place < count - 1:
            ends = delimiters[np.minimum(first + place + before + own, most)]
        return begins, ends

    def _shifts(self, rows: IntArray, place: int, shared: bool) -> tuple[IntArray, IntArray]:
        """Return the surplus fields before a column and in it."""
        extra, free = self.extra[rows], self.header.free
        none = np.zeros(len(rows), dtype=np.int64)
        if shared and len(free) > 1:
            parts = dict.fromkeys(free, extra // 2)
        else:
            parts = {free[0]: extra} if free else {}
        before = sum((part for at, part in parts.items() if at < place), none)
        return before, parts.get(place, none)


class Division:
    """Begin and end of the columns of some lines."""

    def __init__(self, lines: TextLines, span: Callable[[IntArray, str], tuple[IntArray, IntArray]]) -> None:
        self._lines, self.span = lines, span

    def cells(self, rows: IntArray) -> Cells:
        """Return the texts of the columns of lines, by their positions in the block."""
        lines = self._lines

        def texts(name: str) -> npt.NDArray[Any]:
            begins, ends = self.span(rows, name)
            column = _gather(lines.data, begins, ends, _LONGEST_NAME if name == "JobName" else _WIDEST)
            return column if lines.header.delimiter else np.char.strip(column)

        return Cells(lines.header, texts, len(rows))
