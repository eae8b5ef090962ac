"""The graph term ``Tr(Vᵀ L V)``, L = D − W (``eq_manifold``). L is never formed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import (
    Array,
    Matrix,
    double,
    like,
    operator_like,
    positive,
    product,
    repeated,
    scale_rows,
    take,
    total,
)
from lognmf.core.terms.protocol import Halves


@dataclass(frozen=True, eq=False)
class GraphHalves:
    """``neg = weight · W F`` and ``pos = weight · D F``, D the diagonal of ``degree`` (rows,)."""

    F: Array
    W: Matrix
    degree: Array
    weight: Array

    @cached_property
    def _products(self) -> tuple[Array, Array, Array]:
        WF, weight = product(self.W, self.F), repeated(self.weight, self.F.shape[2])
        return WF, weight, self.degree[:, None] * self.weight

    def __call__(self, rows: slice) -> tuple[Array, Array]:
        WF, weight, degree = self._products
        return weight * WF[rows, ...], scale_rows(self.F[rows, ...], degree[rows, :])


@dataclass(frozen=True)
class Laplacian:
    """``weight · Tr(Vᵀ L V)``: neighbours in the graph W get similar rows in ``V``."""

    W: Matrix
    degree: Array = field(repr=False)
    weight: Array
    exact_W: Matrix = field(repr=False)  # in float64, for values

    quadratic: ClassVar[bool] = True

    @classmethod
    def of(cls, W: sp.sparray, weight: Array) -> Laplacian:
        """The term for the symmetric sparse graph ``W`` (n, n)."""
        degree = np.asarray(W.sum(axis=1)).reshape(-1)
        return cls(operator_like(W, weight), like(degree, weight), weight, operator_like(W, double(weight)))

    def value(self, F: Array) -> Array:
        # Where V is all but constant along the graph, D V and W V all but cancel: float32 would
        # leave nothing of the difference, and even float64 may leave it slightly negative.
        F = double(F)
        roughness = (double(self.degree)[:, None, None] * F - product(self.exact_W, F)) * F
        return self.weight * positive(total(roughness, axis=(0, 2)))

    def halves(self, F: Array) -> Halves:
        return GraphHalves(F, self.W, self.degree, self.weight)

    def take(self, index: np.ndarray) -> Laplacian:
        return replace(self, weight=take(self.weight, index, axis=0))
