"""The graph term ``Tr(Vᵀ L V)``, L = D − W (``eq_manifold``). L is never formed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import array_api_compat
import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import (
    Array,
    Matrix,
    double,
    like,
    namespace,
    on_gpu,
    product,
    repeated,
    scale_rows,
    take,
    total,
)
from lognmf.core.matrices import operator_like
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


BLOCK_NUMBERS, GPU_BLOCK_NUMBERS = 1 << 16, 1 << 27
"""How many differences along edges are formed together: a cache, a card full."""


@dataclass(frozen=True)
class Laplacian:
    """``weight · Tr(Vᵀ L V)``: neighbours in the graph W get similar rows in ``V``."""

    W: Matrix
    degree: Array = field(repr=False)
    weight: Array
    graph: sp.csr_array = field(repr=False)  # W as it was given, in float64
    edges: tuple[Array, Array, Array] = field(repr=False)  # both ends and the weight of each edge, (E,)

    quadratic: ClassVar[bool] = True

    @classmethod
    def of(cls, W: sp.sparray, weight: Array) -> Laplacian:
        """The term for the symmetric sparse graph ``W`` (n, n)."""
        graph = sp.csr_array(W, dtype=np.float64)
        degree = np.asarray(graph.sum(axis=1)).reshape(-1)
        upper = sp.triu(graph, 1, format="coo")
        xp, device = namespace(weight), array_api_compat.device(weight)
        ends = (xp.asarray(end.astype(np.int64), device=device) for end in upper.coords)
        edges = (*ends, like(upper.data, double(weight)))
        return cls(operator_like(graph, weight), like(degree, weight), weight, graph, edges)

    def value(self, F: Array) -> Array:
        # As the sum of w_ij ‖v_i − v_j‖² over the edges: with a large weight V is all but constant along
        # the graph, and of Tr(VᵀDV) − Tr(VᵀWV) no digit would be left.
        xp, (start, end, edge_weight) = namespace(F), self.edges
        n, B, k = F.shape
        wide, count = xp.reshape(F, (n, B * k)), start.shape[0]
        step = max(1, (GPU_BLOCK_NUMBERS if on_gpu(F) else BLOCK_NUMBERS) // (B * k))
        roughness = xp.zeros_like(double(wide[0, :]))
        for first in range(0, count, step):
            some = slice(first, min(first + step, count))
            difference = double(take(wide, start[some], axis=0))
            difference -= double(take(wide, end[some], axis=0))
            difference *= difference
            roughness = roughness + edge_weight[some] @ difference
        return self.weight * total(xp.reshape(roughness, (B, k)), axis=1)

    def halves(self, F: Array) -> Halves:
        return GraphHalves(F, self.W, self.degree, self.weight)

    def take(self, index: np.ndarray) -> Laplacian:
        return replace(self, weight=take(self.weight, index, axis=0))
