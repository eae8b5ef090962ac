"""The log-norm ``Σ log(1 + |m|)`` as a penalty (``eq_obj_log``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log1p, sqrt
from typing import ClassVar

import numpy as np

from lognmf.core.arrays import Array, namespace, positive, repeated, take, total
from lognmf.core.terms.protocol import Halves


@dataclass(frozen=True, eq=False)
class LogHalves:
    """``pos = half / (1 + F)``: the tangent of the concave penalty, half (B,) its half weight."""

    F: Array
    half: Array

    @cached_property
    def _wide(self) -> Array:
        return repeated(self.half, self.F.shape[2])

    def __call__(self, rows: slice) -> tuple[None, Array]:
        return None, self._wide / (1 + self.F[rows, ...])


@dataclass(frozen=True)
class Log:
    """``weight · Σ log(1 + F)``: closer to counting nonzeros than ℓ1 where entries are large."""

    weight: Array

    quadratic: ClassVar[bool] = False
    concavity: ClassVar[float] = 1.0
    fused: ClassVar[str] = "log"

    def value(self, F: Array) -> Array:
        return self.weight * total(namespace(F).log1p(F), axis=(0, 2))

    def halves(self, F: Array) -> Halves:
        return LogHalves(F, self.weight / 2)

    def minimise(self, curvature: Array, slope: Array, weight: Array, at: Array) -> Array:
        """Go to the larger stationary point where descent from ``at`` leads there, else to 0.

        With a = slope/curvature, the stationary points are
        ``[(a − 1) ± √((a + 1)² − 2 weight/curvature)] / 2``; below the smaller one the way
        down is to 0.
        """
        xp = namespace(slope)
        a = slope / curvature
        # The root as that of a product, since the square of a huge a would overflow.
        edge = xp.sqrt(2 * weight) / xp.sqrt(curvature)
        inside = a + 1 - edge
        root = xp.sqrt(positive(inside)) * xp.sqrt(positive(a + 1 + edge))
        # The point of larger size is a sum; the other follows from their product, weight/(2 curvature) − a.
        far = (xp.abs(a - 1) + root) / 2
        far = xp.where((inside > 0) & (far > 0), far, xp.ones_like(far))
        half = xp.where(inside > 0, edge, xp.zeros_like(edge)) / 2
        near = a / far - half * (half / far)
        upper, lower = xp.where(a > 1, far, near), xp.where(a > 1, -near, -far)
        reach = (inside > 0) & (upper > 0) & (at >= lower)
        return xp.where(reach, upper, xp.zeros_like(upper))

    def take(self, index: np.ndarray) -> Log:
        return replace(self, weight=take(self.weight, index, axis=0))

    @staticmethod
    def cost(x: float) -> float:
        return log1p(x)

    @staticmethod
    def joined(x: float, y: float) -> float:
        return x + y + x * y

    @staticmethod
    def slope(x: float) -> float:
        return 1.0 / (1.0 + x)

    @staticmethod
    def bend(x: float) -> float:
        y = 1.0 / (1.0 + x)
        return x * y * y

    @staticmethod
    def minimum(curvature: float, slope: float, weight: float, at: float) -> float:
        # Selections instead of branches: the compiled loop computes several rows at a time.
        inverse = 1.0 / curvature
        a = slope * inverse
        inside = (a + 1.0) * (a + 1.0) - 2.0 * weight * inverse
        root = sqrt(max(inside, 0.0))
        root = root if inside < 1e300 else a  # a + 1 is a there
        far = 0.5 * (abs(a - 1.0) + root)
        near = (a - 0.5 * weight * inverse) / far if far > 0.0 else 0.0
        upper = far if a > 1.0 else near
        lower = -near if a > 1.0 else -far
        return upper if (inside > 0.0) & (a > -1.0) & (at >= lower) else 0.0
