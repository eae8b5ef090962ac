"""The contracts of the terms, documented once here.

A term gives its value for every setting and *half* its gradient in two nonnegative
parts: ``gradient / 2 = pos − neg``. Halving keeps quadratic terms free of factors 2 and
does not change the update ``F ← F · Σneg / Σpos``. `halves` returns a function of a row slice, so that
the update of a large batch can stay in the cache; products and Gram matrices are computed once, for
the first slice at the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from lognmf.core.arrays import Array, blend, mix
from lognmf.core.data import InMemory

Halves = Callable[[slice], tuple[Array, Array]]
"""``rows -> (neg, pos)``, each of the shape of the factor's rows; ``None`` stands for zero.

``pos`` is fresh, ``neg`` may be a view and is not to be changed in place."""


class Penalty(Protocol):
    """A term on one factor ``F`` of shape (rows, B, k), with one ``weight`` per setting."""

    quadratic: ClassVar[bool]
    """Whether the term is quadratic in F; else it lies below its tangent."""

    @property
    def weight(self) -> Array:
        """Weight of every setting, shape (B,)."""

    def value(self, F: Array) -> Array:
        """``weight · penalty(F)``, shape (B,), float64."""

    def halves(self, F: Array) -> Halves:
        """Half the gradient with respect to ``F``, split."""

    def take(self, index: np.ndarray) -> Penalty:
        """The term for the settings ``index``."""


class SeparablePenalty(Penalty, Protocol):
    """A penalty ``weight · Σ φ(x)`` over the entries of a factor, φ concave and rising from φ(0) = 0.

    ``solver="cd"`` also needs the static methods: φ for one number. Numba compiles them, so they use
    arithmetic and the functions of `math` only. These make it faster:

    - ``bend(x)`` = ``x φ'(x) + x² φ''(x)``, if h(s) = φ(eˢ) is convex with ``|h'''| ≤ 2 h''``: components
      find their best scale in fewer steps;
    - ``joined(x, y)``, the number z with ``φ(z) = φ(x) + φ(y)``: φ is computed less often;
    - ``concavity``, the largest ``−φ''``, a number: `transform` then knows codes that nothing can improve;
    - ``fused``, the name of its formula in ``core/torch/kernels.py``, if it is there: "log" or "l1".
    """

    def minimise(self, curvature: Array, slope: Array, weight: Array, at: Array) -> Array:
        """Descend ``curvature·x² − 2·slope·x + weight·φ(x)`` over x ≥ 0 from ``at``.

        Elementwise, ``curvature > 0``.
        """

    def take(self, index: np.ndarray) -> SeparablePenalty:
        """The term for the settings ``index``."""

    @staticmethod
    def cost(x: float, /) -> float:
        """φ(x)."""

    @staticmethod
    def slope(x: float, /) -> float:
        """φ'(x)."""

    @staticmethod
    def minimum(curvature: float, slope: float, weight: float, at: float, /) -> float:
        """`minimise` for one number; a negative result stands for 0."""


class RowNorm(Protocol):
    """A penalty on the norm ``s ≥ 0`` of each sample's outlier part.

    One whose formula is in ``core/torch/kernels.py`` names it with ``fused``: "l2log" or "l21".
    """

    def value(self, s: Array) -> Array:
        """φ(s), elementwise."""

    def slope(self, s: Array) -> Array:
        """φ'(s), elementwise."""

    def shrink(self, r: Array, tau: Array) -> Array:
        """``argmin_{s ≥ 0} (s − r)²/2 + tau φ(s)``, elementwise, for r ≥ 0."""

    def dead_zone(self, tau: Array) -> Array:
        """A bound: `shrink` is 0 for every r below it, elementwise."""


class DataFit(Protocol):
    """The term that compares ``V Uᵀ`` with the data; it holds no data itself.

    All but `halves_U` are functions of one block of samples with its rows of V, ``XU`` and ``kept``, so that
    one pass over the blocks serves an iteration. The robust fit separates an outlier part S from the factors
    at hand (`separate`), then U and V are updated against that same S. S is never formed: it is described by
    the inlier weight ``kept`` of each sample.
    """

    quadratic: ClassVar[bool]
    """Whether the term is quadratic in either factor; else its bound is linear minus logarithms.

    Coordinate descent needs ``by_residual = True``, for a quadratic term that depends on ``V Uᵀ`` only
    through the norms of the residuals, or ``by_entry = True``, for the two that it minimises entry by entry.
    A term that is not four times as large where X and V are twice as large says so with ``degree``, which is
    2 by default.
    """

    def project(self, block: InMemory, U: Array) -> Array:
        """``X @ U`` (n, B, k), or an array without rows if the term has no use for it."""

    def separate(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        """Weight of each sample in the fit, (n, B) in [0, 1]; (0, B) if every sample counts in full."""

    def sums(self, block: InMemory, U: Array, V: Array, kept: Array) -> tuple[Array, ...]:
        """What the update of U needs of a block, to be added over blocks; the batch is in axis 1."""

    def halves_U(self, U: Array, sums: tuple[Array, ...]) -> Halves:
        """Half the gradient with respect to ``U``, S made from these same factors."""

    def halves_V(self, block: InMemory, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """Half the gradient with respect to ``V``, S made from ``V`` and ``U_old``."""

    def squared_residuals(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""

    def row_values(self, block: InMemory, U: Array, V: Array, XU: Array) -> Array:
        """The term's value for each sample, at the best S for these factors, (n, B)."""

    def take(self, index: np.ndarray) -> DataFit:
        """The term for the settings ``index``."""


def fused(term: object) -> str | None:
    """The name of a term's formula in the GPU kernels; None if it has none there.

    A class says so itself, with an attribute ``fused``. It is not inherited, since a subclass may have
    another formula, and then the plain one is computed.
    """
    return vars(type(term)).get("fused")


def degree_of(fit: object) -> int:
    """Degree of a data fit, or of a rule's objective, in X: if X is doubled, it is ``2**degree`` as large."""
    return int(getattr(fit, "degree", 2))


@dataclass(frozen=True, eq=False)
class FitHalves:
    """``pos = F P`` and ``neg`` one of three, for a factor F (rows, B, k).

    ``A`` without ``taken``; ``A + F taken``; or row by row, with ``kept`` (rows, B),
    ``kept · A + (1 − kept) · F taken``. A is (rows, B, k), P and ``taken`` are (B, k, k).
    A frozen value, like `LogHalves` and the others, so that a GPU kernel can read it and do a whole update
    in one pass over memory.
    """

    F: Array
    A: Array
    P: Array
    taken: Array | None = None
    kept: Array | None = None

    def __call__(self, rows: slice) -> tuple[Array, Array]:
        F, A = self.F[rows, ...], self.A[rows, ...]
        pos = mix(F, self.P)
        if self.taken is None:
            return A, pos
        neg = mix(F, self.taken)
        if self.kept is not None:
            return blend(neg, A, self.kept[rows, :]), pos
        neg += A
        return neg, pos


def summed(terms: Sequence[Halves], rows: slice) -> tuple[Array, Array]:
    """Σneg and Σpos of terms for some rows; Σpos may be changed in place."""
    negs, poss = zip(*(term(rows) for term in terms), strict=True)
    neg, *more = (part for part in negs if part is not None)
    for part in more:
        neg = neg + part
    pos = poss[0]
    for part in poss[1:]:
        pos += part
    return neg, pos


def of_rows(halves: Halves, rows: slice) -> Halves:
    """The halves of a block of rows, from those of all rows."""
    if rows == slice(None):
        return halves

    def of_part(part: slice) -> tuple[Array, Array]:
        places = range(rows.start, rows.stop)[part]
        return halves(slice(places.start, places.stop))

    return of_part
