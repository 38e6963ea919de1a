"""Parts of the paper's claims: orders of averages over workloads, by decile or by load, and their certainty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gridsim import InputError
from gridsim.metrics.paired_tests import bootstrap_means
from gridsim.model.time import FloatArray
from gridsim_papers.decisions import resampled
from gridsim_papers.grid.judges import Evidence, Stored
from gridsim_papers.verdicts import Part

__all__ = [
    "Averages",
    "Margin",
    "Source",
    "at_deciles",
    "at_loads",
    "close",
    "falling",
    "flat",
    "highest",
    "highest_in",
    "lowest",
    "lowest_in",
    "no_worse",
    "ordered",
    "over_loads",
    "together",
    "uptick",
]


@dataclass(frozen=True, slots=True)
class Averages:
    """Averages over workloads, (…, policies, places); places are deciles, loads, or one."""

    policies: tuple[str, ...]
    values: FloatArray

    def of(self, policy: str) -> FloatArray:
        """Of one policy, (…, places)."""
        if policy not in self.policies:
            raise InputError(f"no row has the policy '{policy}'", field="policy")
        return self.values[..., self.policies.index(policy), :]

    def others(self, *but: str) -> FloatArray:
        """Of all policies but these, (…, policies, places)."""
        return self.values[..., [at for at, name in enumerate(self.policies) if name not in but], :]


Margin = Callable[[Averages], FloatArray]
"""Factor by which a part of a claim holds: it is true from 1 up."""

Source = Callable[[Stored], tuple[tuple[str, ...], FloatArray]]
"""Policies, and values as (workloads, policies, places)."""


def ordered(source: Source, parts: Mapping[str, Margin], *, geometric: bool = False) -> Evidence:
    """Test the order of averages over workloads, or a factor between them: every margin must be at least 1."""

    def evidence(stored: Stored) -> tuple[list[Part], str]:
        policies, values = source(stored)
        kept, back = (np.log(values), np.exp) if geometric else (values, np.asarray)
        point, draws = Averages(policies, back(kept.mean(axis=0))), Averages(policies, back(bootstrap_means(kept)))
        found = [
            resampled(name, float(margin(point)), margin(draws), len(values), 1.0) for name, margin in parts.items()
        ]
        return found, "; ".join(f"{part.words}: margin {part.effect:.3g}" for part in found)

    return evidence


def at_deciles(metric: str = "mean_slr", load: float = 1.2) -> Source:
    """Places are deciles at one load."""
    return lambda stored: stored.profile(metric, load)


def at_loads(metric: str) -> Source:
    """Places are loads."""

    def source(stored: Stored) -> tuple[tuple[str, ...], FloatArray]:
        paired = stored.paired(metric)
        return paired.policies, paired.values.transpose(0, 2, 1)

    return source


def over_loads(metric: str) -> Source:
    """One place: the mean over loads."""

    def source(stored: Stored) -> tuple[tuple[str, ...], FloatArray]:
        paired = stored.paired(metric)
        return paired.policies, paired.values.mean(axis=1)[:, :, np.newaxis]

    return source


def _most_of(margins: FloatArray, part: float) -> FloatArray:
    """Margin reached by at least a share *part* of the places."""
    places = margins.shape[-1]
    needed = int(np.ceil(part * places - 1e-9))
    sorted_margins: FloatArray = np.sort(margins, axis=-1)
    return sorted_margins[..., places - needed]


def lowest(at: int, *policies: str) -> Margin:
    """The policies are the lowest at one place."""
    return lambda of: (of.others(*policies).min(axis=-2) / _highest_of(of, policies))[..., at]


def highest(at: int, policy: str) -> Margin:
    """The policy is the highest at one place."""
    return lambda of: (of.of(policy) / of.others(policy).max(axis=-2))[..., at]


def lowest_in(part: float, *policies: str) -> Margin:
    """The policies are the lowest at this share of the places."""
    return lambda of: _most_of(of.others(*policies).min(axis=-2) / _highest_of(of, policies), part)


def highest_in(part: float, policy: str) -> Margin:
    """The policy is the highest at this share of the places."""
    return lambda of: _most_of(of.of(policy) / of.others(policy).max(axis=-2), part)


def _highest_of(of: Averages, policies: Sequence[str]) -> FloatArray:
    values: FloatArray = np.max([of.of(policy) for policy in policies], axis=0)
    return values


def falling(policies: Sequence[str]) -> Margin:
    """None of the policies rises from a place to the next."""
    return lambda of: np.min([(of.of(name)[..., :-1] / of.of(name)[..., 1:]).min(axis=-1) for name in policies], axis=0)


def together(policies: Sequence[str], factor: float) -> Margin:
    """From the second place on the policies are within a factor of one another."""

    def margin(of: Averages) -> FloatArray:
        values = np.stack([of.of(policy)[..., 1:] for policy in policies])
        least: FloatArray = factor / (values.max(axis=0) / values.min(axis=0)).max(axis=-1)
        return least

    return margin


def flat(policy: str, factor: float) -> Margin:
    """From the second place on the highest value is within a factor of the lowest."""
    return lambda of: factor / (of.of(policy)[..., 1:].max(axis=-1) / of.of(policy)[..., 1:].min(axis=-1))


def uptick(policy: str) -> Margin:
    """The first place is above the mean of the others."""
    return lambda of: of.of(policy)[..., 0] / of.of(policy)[..., 1:].mean(axis=-1)


def no_worse(policy: str, other: str, slack: float, part: float) -> Margin:
    """The policy is at most *slack* times the other at this share of the places."""
    return lambda of: _most_of(slack * of.of(other) / of.of(policy), part)


def close(policy: str, other: str, factor: float) -> Margin:
    """Two policies are within a factor of one another, at every place."""

    def margin(of: Averages) -> FloatArray:
        ratio = of.of(policy) / of.of(other)
        least: FloatArray = factor / np.maximum(ratio, 1 / ratio).max(axis=-1)
        return least

    return margin
