"""Node constraints: permitted nodes, and nodes of which some are required.

Source: sbatch(1), ``--constraint`` ("node features are parsed strictly from left to right"), ``--nodelist``,
``--exclude``; gres.html.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gridsim.errors import InputError
from gridsim.model.capacity import GPU
from gridsim.model.site import Site, SitePartition
from gridsim.model.site_file import expanded

__all__ = ["Kind", "NodeRequest", "node_request_of"]


@dataclass
class Kind:
    """Permitted nodes of a job, and the number of required nodes among some; by index."""

    nodes: set[int]
    counts: list[tuple[set[int], int]] = field(default_factory=list)

    @property
    def fewest(self) -> int:
        return sum(many for _, many in self.counts)


@dataclass
class NodeRequest:
    """Kinds of nodes of which a job has one; `exact` if it has only counted nodes unless it requests a number."""

    kinds: list[Kind]
    exact: bool = False


class _Nonsense(Exception):
    """Invalid constraint."""


def node_request_of(words: Mapping[str, str], site: Site, partition: SitePartition) -> NodeRequest:
    """Return the node constraint of a job with these terms in a partition; without kinds if no node satisfies it."""
    try:
        excluded, listed = (set(expanded(words.get(label, ""))) for label in ("exclude", "nodelist"))
        terms = _terms(words.get("constraint", "").replace(" ", ""))
        plain = {
            place
            for place, node in enumerate(site.nodes)
            if node.name in partition.nodes
            and node.name not in excluded
            and (not words.get("gpu_type") or node.gpu_kind in (words["gpu_type"], GPU))
            and _holds([each for each in terms if each[1][0] != "[" and "*" not in each[1]], node.features)
        }
        kinds, exact = _kinds_of(terms, plain, site)
    except (_Nonsense, InputError):
        return NodeRequest([])
    found = [kind for kind in kinds if kind.nodes and all(len(nodes) >= many for nodes, many in kind.counts)]
    places = {place for place, node in enumerate(site.nodes) if node.name in listed}
    if len(places) < len(listed):
        return NodeRequest([])
    return NodeRequest([_with(kind, places) for kind in found if places <= kind.nodes], exact)


def _with(kind: Kind, listed: set[int]) -> Kind:
    """Return the constraint with required nodes: each counts as one of the first kind with remaining demand."""
    counts = [(nodes, many) for nodes, many in kind.counts]
    for place in sorted(listed):
        for row, (nodes, many) in enumerate(counts):
            if place in nodes and many:
                counts[row] = (nodes, many - 1)
                break
    first = [(listed, len(listed))] if listed else []
    return Kind(kind.nodes, first + [each for each in counts if each[1]])


def _kinds_of(terms: list[tuple[str, str]], plain: set[int], site: Site) -> tuple[list[Kind], bool]:
    """Return the kinds for bracketed and counted terms of a constraint; *plain* nodes satisfy the other terms."""

    def having(text: str) -> set[int]:
        return {place for place in plain if _holds(_terms(text), site.nodes[place].features)}

    kinds, exact, seen = [Kind(plain)], False, False
    for join, term in terms:
        special = term[0] == "[" or "*" in term
        if join == "|" and (special or seen):
            raise _Nonsense
        if term[0] == "[":
            if seen:
                raise _Nonsense
            inner = _terms(term[1:-1])
            if any("*" in each for _, each in inner):
                if any(not re.fullmatch(r".+\*\d+", each) for _, each in inner) or "|" in [it for it, _ in inner[1:]]:
                    raise _Nonsense
                counts = [_counted(each) for _, each in inner]
                known = [(having(text), many) for text, many in counts]
                kinds, exact = [Kind(set().union(*(nodes for nodes, _ in known)), known)], True
            else:
                kinds = [Kind(having(text)) for text in _alternatives(inner)]
        elif special:
            text, many = _counted(term)
            if exact:
                raise _Nonsense
            kinds = [Kind(kind.nodes, [*kind.counts, (having(text), many)]) for kind in kinds]
        seen = seen or special
    return kinds, exact


def _alternatives(inner: list[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    for join, term in inner:
        if join == "&":
            found[-1] += f"&{term}"
        else:
            found.append(term)
    return found


def _counted(term: str) -> tuple[str, int]:
    text, star, many = term.rpartition("*")
    if not star or not many.isdigit() or not int(many) or not text or "*" in text:
        raise _Nonsense
    return text, int(many)


def _terms(text: str) -> list[tuple[str, str]]:
    """Return adjacent terms, each with the operator before it; none for the first."""
    found, join, term, depth = list[tuple[str, str]](), "", "", 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter in "&|" and not depth:
            found.append((join, term))
            join, term = letter, ""
        else:
            term += letter
    found += [(join, term)] if text else []
    if any(not _is_term(each) for _, each in found):
        raise _Nonsense
    return found


def _is_term(text: str) -> bool:
    if text[:1] == "[":
        return text[-1:] == "]" and bool(_terms(text[1:-1])) and "[" not in text[1:]
    body = re.sub(r"\*\d+$", "", text)
    if body[:1] == "(":
        return body[-1:] == ")" and "*" not in body and bool(_terms(body[1:-1]))
    return bool(re.fullmatch(r"[^\[\]()&|*]+", body))


def _holds(terms: list[tuple[str, str]], features: Collection[str]) -> bool:
    """Return whether a node satisfies the terms, from left to right."""
    so_far = True
    for place, (join, term) in enumerate(terms):
        here = _holds(_terms(term[1:-1]), features) if term[0] == "(" else term in features
        so_far = here if not place else so_far and here if join == "&" else so_far or here
    return so_far
