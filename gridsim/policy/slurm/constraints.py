"""Constraints of jobs: features that their nodes must have, and numbers of nodes with given features.

Source: sbatch(1), ``--constraint``: "node features are parsed strictly from left to right"; "Matching OR"; "Multiple
Counts"; "brackets are only reserved for Multiple Counts and Matching OR syntax. AND operators require a count for each
feature inside square brackets"; "Slurm will only allow a single set of bracketed constraints per job".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

Features = tuple[frozenset[str], ...]
"""Alternatives: sets of features, of which a node must have one completely."""

ANY_NODE: Features = (frozenset(),)
"""Features of every node."""


class Constraint(NamedTuple):
    """A parsed constraint.

    Attributes
    ----------
    kinds : tuple of Features
        Features that all nodes must have; of several alternatives, all nodes the same one (``[a|b]``).
    counts : tuple of (Features, int)
        In addition, features and number of nodes that must have them (``[a*2&b*4]``, ``a*2``).
    exact : bool
        Whether these are all nodes, if the job requests no number.
    """

    kinds: tuple[Features, ...] = (ANY_NODE,)
    counts: tuple[tuple[Features, int], ...] = ()
    exact: bool = False


def constraint(text: str) -> Constraint | None:
    """Return a parsed constraint; None if it is invalid.

    Examples
    --------
    >>> [sorted(each) for each in constraint("foo|bar&baz").kinds[0]]
    [['baz', 'foo'], ['bar', 'baz']]
    >>> len(constraint("[rack1|rack2]").kinds), [many for _, many in constraint("[rack1*2&rack2*4]").counts]
    (2, [2, 4])
    >>> constraint("[rack1*2&rack2]") is None
    True
    """
    words = re.findall(r"[\[\]()&|]|\*\s*\d+|[^\s\[\]()&|*]+|\S", text)
    try:
        return _Reader(words).parse() if words else Constraint()
    except (ValueError, IndexError):
        return None


def meets(features: Sequence[str], wanted: Features) -> bool:
    """Return whether a node has the required features.

    Examples
    --------
    >>> meets(("intel", "gpu"), constraint("intel&gpu").kinds[0]), meets(("amd",), constraint("intel|amd").kinds[0])
    (True, True)
    """
    return any(each <= set(features) for each in wanted)


class _Reader:
    """Parser of a constraint, from left to right; raises *ValueError* or *IndexError* if it is invalid."""

    def __init__(self, words: list[str]) -> None:
        self._words, self._at = words, 0

    def parse(self) -> Constraint:
        plain, found, join = ANY_NODE, Constraint(), "&"
        while True:
            if self._next() == "[":
                if join != "&" or found.counts or found.kinds != (ANY_NODE,):
                    raise ValueError
                found = self._bracket()
            else:
                one, many = self._term()
                if many and (join != "&" or found.exact):
                    raise ValueError
                if many:
                    found = found._replace(counts=(*found.counts, (one, many)))
                else:
                    plain = _joined(plain, join, one)
            if self._at == len(self._words):
                break
            join = self._take("&", "|")
            if join == "|" and (found != Constraint() or plain == ANY_NODE):
                raise ValueError
        counts = tuple((_joined(plain, "&", each), many) for each, many in found.counts)
        return Constraint(tuple(_joined(plain, "&", each) for each in found.kinds), counts, found.exact)

    def _bracket(self) -> Constraint:
        """Parse ``[a|b]`` or ``[a*2&b*4]``."""
        self._take("[")
        kinds: list[Features] = []
        counts: list[tuple[Features, int]] = []
        join = ""
        while self._next() != "]":
            one, many = self._term()
            if many and join != "|":
                counts.append((one, many))
            elif many:
                raise ValueError
            elif join == "&":
                kinds[-1] = _joined(kinds[-1], "&", one)
            else:
                kinds.append(one)
            if self._next() != "]":
                join = self._take("&", "|")
                if self._next() == "]":
                    raise ValueError
        self._take("]")
        if bool(kinds) == bool(counts):
            raise ValueError
        if kinds:
            return Constraint(tuple(kinds))
        return Constraint((tuple(way for each, _ in counts for way in each),), tuple(counts), exact=True)

    def _term(self) -> tuple[Features, int]:
        """Parse a feature, or a group in parentheses, and the number of nodes that must have it; 0 for all."""
        word = self._next()
        self._at += 1
        if word == "(":
            found = self._group()
        elif word in tuple("[])&|*") or word.startswith("*"):
            raise ValueError(word)
        else:
            found = (frozenset([word]),)
        if self._at == len(self._words) or not self._words[self._at].startswith("*"):
            return found, 0
        many = int(self._words[self._at][1:])
        self._at += 1
        if many < 1:
            raise ValueError(many)
        return found, many

    def _group(self) -> Features:
        """Parse the text in parentheses after the opening one."""
        found, join = ANY_NODE, "&"
        while True:
            one, many = self._term()
            if many:
                raise ValueError
            found = _joined(found, join, one)
            join = self._take("&", "|", ")")
            if join == ")":
                return found

    def _next(self) -> str:
        return self._words[self._at]

    def _take(self, *known: str) -> str:
        word = self._next()
        if word not in known:
            raise ValueError(word)
        self._at += 1
        return word


def _joined(one: Features, how: str, other: Features) -> Features:
    if how == "|":
        return (*one, *other)
    return tuple(dict.fromkeys(each | more for each in one for more in other))
