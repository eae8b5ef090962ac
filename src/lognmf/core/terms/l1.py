"""The ℓ1 norm ``Σ |m|`` as a penalty (``eq_obj_l1``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from lognmf.core.arrays import Array, namespace, repeated, take, total
from lognmf.core.terms.protocol import Halves


@dataclass(frozen=True, eq=False)
class L1Halves:
    """``pos = half``, the half weight (B,) for every entry."""

    F: Array
    half: Array

    @cached_property
    def _wide(self) -> Array:
        return repeated(self.half, self.F.shape[2])

    def __call__(self, rows: slice) -> tuple[None, Array]:
        return None, self._wide * namespace(self.F).ones_like(self.F[rows, ...])


@dataclass(frozen=True)
class L1:
    """``weight · Σ F`` for nonnegative ``F``."""

    weight: Array

    quadratic: ClassVar[bool] = False
    concavity: ClassVar[float] = 0.0
    fused: ClassVar[str] = "l1"

    def value(self, F: Array) -> Array:
        return self.weight * total(F, axis=(0, 2))

    def halves(self, F: Array) -> Halves:
        return L1Halves(F, self.weight / 2)

    def minimise(self, curvature: Array, slope: Array, weight: Array, at: Array) -> Array:
        xp = namespace(slope)
        rest = slope - weight / 2
        # Divided only where it counts: a dead part has hardly any curvature.
        return xp.where(rest > 0, rest / xp.where(rest > 0, curvature, xp.ones_like(curvature)), 0 * rest)

    def take(self, index: np.ndarray) -> L1:
        return replace(self, weight=take(self.weight, index, axis=0))

    @staticmethod
    def cost(x: float) -> float:
        return x

    @staticmethod
    def slope(_x: float) -> float:
        return 1.0

    @staticmethod
    def bend(x: float) -> float:
        return x

    @staticmethod
    def minimum(curvature: float, slope: float, weight: float, _at: float) -> float:
        return (slope - 0.5 * weight) / curvature
