"""Queue order: fair share, priorities, and preemption.

Sources: fair_tree.html, classic_fair_share.html, priority_multifactor.html (factors, and "jobs that can preempt, jobs
with an advanced reservation, partition PriorityTier, job priority, job submit time, job ID"), slurm.conf(5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from gridsim.model.site import PARENT, Association, Site
from gridsim.model.time import NEVER
from tests.oracles.slurm.entries import Entry
from tests.oracles.slurm.nodes import Held
from tests.oracles.slurm.tres import tres_term, weight

__all__ = ["Use", "fair_shares", "in_order", "priority_of"]

SECOND = 1_000_000
MINUTE = 60 * SECOND

Who = tuple[str, str]
"""Account and user."""


@dataclass
class Use:
    """Billed use of an association from an instant to another (`NEVER` if it still runs), weighted by its QOS."""

    who: Who
    cores: float
    held: Held
    begin: int
    end: int = NEVER


# -- fair share ------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Branch:
    """An account (no user) or a user in the tree of shares."""

    shares: int
    account: str = ""
    user: str = ""
    usage: float = 0.0
    children: list[Branch] = field(default_factory=list)

    def total(self) -> float:
        """Use of all users below the node."""
        return self.usage + sum(child.total() for child in self.children)


def _tree(site: Site, known: Iterable[Who]) -> Branch:
    """Return accounts and users; those that the site does not list have one share."""
    associations = list(site.associations)
    for account, user in dict.fromkeys(known):
        if account != "root" and not any(each.account == account and not each.user for each in associations):
            associations.append(Association(account, parent="root"))
        if not any((each.account, each.user) == (account, user) for each in associations):
            associations.append(Association(account, user=user))
    accounts = {each.account: each for each in associations if not each.user and each.account != "root"}
    root = Branch(1)
    branches = {name: Branch(max(each.shares, 0), name) for name, each in accounts.items()}

    def above(name: str) -> Branch:
        """Return the branch of an account; an account without its own shares uses the account above it."""
        if name not in accounts:
            return root
        return above(accounts[name].parent) if accounts[name].shares == PARENT else branches[name]

    for name, each in accounts.items():
        if each.shares != PARENT:
            above(each.parent).children.append(branches[name])
    for each in associations:
        if each.user:
            shares = 1 if each.shares == PARENT else max(each.shares, 0)
            above(each.account).children.append(Branch(shares, each.account, each.user, each.usage))
    return root


def _leaves(branch: Branch) -> list[Branch]:
    return [branch] if branch.user else [leaf for child in branch.children for leaf in _leaves(child)]


def fair_shares(site: Site, known: Iterable[Who], uses: Iterable[Use], first: int, at: int) -> dict[Who, float]:
    """Return the fair-share factor of each user at an instant, from decayed use since *first*."""
    root = _tree(site, known)
    half_life = site.priority.half_life
    users = {(leaf.account, leaf.user): leaf for leaf in _leaves(root)}
    for leaf in users.values():
        leaf.usage *= 2.0 ** (-(at - first) / half_life) if half_life else 1.0
    for use in uses:
        users[use.who].usage += use.cores * weight(use.begin, min(use.end, at), at, half_life)
    return _by_rank(root, len(users)) if site.priority.fair_tree else _classic(root, site.priority.dampening)


def _level(child: Branch, siblings: list[Branch]) -> float:
    """Return level fair share: the share among siblings over the part of the use among siblings."""
    if not child.shares:
        return 0.0
    used, all_used = child.total(), sum(sibling.total() for sibling in siblings)
    if not used:
        return math.inf
    part = Fraction(child.shares, sum(sibling.shares for sibling in siblings))
    return float(f"{float(part) / (used / all_used):.12g}")  # use is equal despite another order of summation


def _by_rank(root: Branch, count: int) -> dict[Who, float]:
    """Rank users by Fair Tree: down the tree, highest level fair share first; rank over number of users.

    Tied users have the same rank, and children of tied accounts are merged. A user tied with an account ranks with the
    children of the account that have no use.
    """
    ranked: dict[Who, int] = {}

    def visit(levels: list[tuple[float, Branch]]) -> None:
        for best in sorted({level for level, _ in levels}, reverse=True):
            tied = [child for level, child in levels if level == best]
            accounts = [child for child in tied if not child.user]
            users = [child for child in tied if child.user]
            if accounts:
                below = [(_level(child, each.children), child) for each in accounts for child in each.children]
                visit([*((math.inf, user) for user in users), *below])
            else:
                rank = count - len(ranked)
                ranked.update({(user.account, user.user): rank for user in users})

    visit([(_level(child, root.children), child) for child in root.children])
    return {who: rank / count for who, rank in ranked.items()}


def _classic(root: Branch, dampening: int) -> dict[Who, float]:
    """Return 2 to the power of minus effective use over normalised shares."""
    whole = root.total() or 1.0
    found: dict[Who, float] = {}

    def visit(branch: Branch, effective: float | None, shares: float) -> None:
        among = sum(child.shares for child in branch.children)
        for child in branch.children:
            part, own = (child.shares / among if among else 0.0), child.total() / whole
            mine = own if effective is None else own + (effective - own) * part
            if child.user:
                normal = shares * part
                found[child.account, child.user] = 2.0 ** (-mine / normal / dampening) if normal > 0 else 0.0
            else:
                visit(child, mine, shares * part)

    visit(root, None, 1.0)
    return found


# -- priorities ------------------------------------------------------------------------------------------------------


def priority_of(entry: Entry, site: Site, fair_share: float, at: int) -> int:
    """Return the weighted sum of factors from 0 to 1, less the nice value, truncated to an integer of at least 1."""
    weights = site.priority
    if weights.kind == "basic":
        return 0
    highest_factor = max(1, *(each.job_factor for each in site.partitions))
    levels = {each.name: max(each.priority, 0) for each in site.qos}
    total = (
        weights.age * min(max(at - entry.since, 0) / max(weights.oldest, 1), 1.0)
        + weights.fair_share * fair_share
        + weights.size * _size_factor(entry, site)
        + weights.partition * (entry.partition.job_factor / highest_factor)
        + weights.qos * (levels.get(entry.qos, 0) / max([1, *levels.values()]))
        + tres_term(entry, site)
    )
    nice = entry.job.numbers.get("priority_nice", 0)
    return max(math.floor(total + 1e-6) - (0 if nice == -1 else nice), 1)


def _size_factor(entry: Entry, site: Site) -> float:
    """Return the share of nodes and cores; for whole nodes, the share of the fewest nodes that hold the entry."""
    cores, nodes = entry.cores, max(entry.nodes, 1)
    if entry.exclusive:
        need = -(-cores // nodes)
        members = [node for node in site.nodes if node.name in entry.partition.nodes]
        fitting = [node.cores for node in members if node.cores >= need and node.memory >= entry.node_memory]
        cores = max(cores, nodes * min(fitting, default=need))
    factor = (nodes / len(site.nodes) + cores / site.cores) / 2
    if site.priority.relative_size:
        factor = min(cores / max(entry.limit / MINUTE, 1.0) / site.cores, 1.0)
    return min(max(1.0 - factor if site.priority.favor_small else factor, 0.0), 1.0)


# -- the queue -------------------------------------------------------------------------------------------------------


def in_order(queue: Iterable[Entry], goes_before: Callable[[Entry, Entry], bool]) -> list[Entry]:
    """Return the sorted queue; *goes_before* is whether an entry could preempt another one.

    A merge sort starts from the natural order (by job number, higher tiers first). A real Slurm 22.05 gave the same
    result where the preemption order is cyclic.
    """
    natural = sorted(queue, key=lambda entry: (entry.job.row, -entry.partition.tier, entry.place))
    place = {entry: number for number, entry in enumerate(natural)}

    def key(entry: Entry) -> tuple[int, ...]:
        free = 0 if entry.reservation else 1
        return free, -entry.partition.tier, -entry.priority, entry.job.came, place[entry]

    def after(one: Entry, other: Entry) -> bool:
        if goes_before(one, other) or goes_before(other, one):
            return not goes_before(one, other)
        return key(one) > key(other)

    def merged(entries: list[Entry]) -> list[Entry]:
        if len(entries) < 2:
            return entries
        left, right = merged(entries[: len(entries) // 2]), merged(entries[len(entries) // 2 :])
        found = []
        while left and right:
            found.append(right.pop(0) if after(left[0], right[0]) else left.pop(0))
        return found + left + right

    return merged(natural)
