"""The gamma law cut off above: what logarithms of runtimes and of gaps between arrivals follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray

__all__ = ["TruncatedGamma"]


@dataclass(frozen=True, slots=True)
class TruncatedGamma:
    """Gamma law given that its value is at most *limit*: draw, and draw again while above.

    Attributes
    ----------
    shape : float
        Shape of the gamma law before the cut, above 0.
    scale : float
        Its scale (mean = shape x scale), between 0 and 1: the exponential of a wider one has no finite mean
        but for the cut.
    limit : float
        Largest value.
    """

    shape: float
    scale: float
    limit: float

    def __post_init__(self) -> None:
        for name, good, rule in (
            ("shape", self.shape > 0, "above 0"),
            ("scale", 0 < self.scale < 1, "between 0 and 1"),
            ("limit", self.limit > 0, "above 0"),
        ):
            if not good:
                raise InputError(f"is {getattr(self, name)}; expected a number {rule}", field=name)

    @property
    def kept(self) -> float:
        """Share of the uncut law at most the limit: what is not drawn again."""
        return float(_below(self.shape, self.limit / self.scale))

    @property
    def mean_exponential(self) -> float:
        """Mean of the exponential of a value, in closed form.

        Notes
        -----
        Weighting the density by the exponential gives a gamma law again, of scale ``b / (1 - b)``.
        """
        narrow = 1.0 - self.scale
        weight = narrow**-self.shape
        return float(weight * _below(self.shape, self.limit * narrow / self.scale) / self.kept)

    def cdf(self, value: Any) -> FloatArray:
        """Probability of at most *value*."""
        inside = np.clip(np.asarray(value, dtype=float), 0.0, self.limit)
        return np.asarray(_below(self.shape, inside / self.scale) / self.kept)

    def quantile(self, probability: Any) -> FloatArray:
        """Value that is not exceeded with *probability*."""
        from scipy.special import gammaincinv  # a fifth of a second: only where exact values are asked for

        return np.asarray(self.scale * gammaincinv(self.shape, np.asarray(probability, dtype=float) * self.kept))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """The first *n* values of *rng* that are at most the limit: more of them begin with the same ones."""
        parts = [np.empty(0)]
        while (missing := n - sum(map(len, parts))) > 0:
            values = rng.gamma(self.shape, self.scale, missing)
            parts.append(values[values <= self.limit])
        return np.concatenate(parts)


def _below(shape: float, value: Any) -> Any:
    """Probability that a gamma law of this shape and scale 1 is at most *value*."""
    from scipy.special import gammainc  # a fifth of a second: only where a workload is made

    return gammainc(shape, value)
