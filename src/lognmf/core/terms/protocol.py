"""The contracts of the terms, documented once here.

A term gives its value for every setting and *half* its gradient in two nonnegative
parts: ``gradient / 2 = pos − neg``. Halving keeps quadratic terms free of factors 2 and
does not change the update ``F ← F · Σneg / Σpos``. `halves` returns a function of a row slice, so that
the update of a large batch can stay in the cache; products and Gram matrices are computed once, for
the first slice at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from lognmf.core.arrays import Array, Matrix

Halves = Callable[[slice], tuple[Array, Array]]
"""``rows -> (neg, pos)``, each of the shape of the factor's rows; ``None`` stands for zero.

``pos`` is fresh, ``neg`` may be a view and is not to be changed in place."""


class Penalty(Protocol):
    """A term on one factor ``F`` of shape (rows, B, k), with one ``weight`` per setting."""

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
    arithmetic and the functions of `math` only. Two more make it faster:

    - ``bend(x)`` = ``x φ'(x) + x² φ''(x)``, if h(s) = φ(eˢ) is convex with ``|h'''| ≤ 2 h''``: components
      find their best scale in fewer steps;
    - ``joined(x, y)``, the number z with ``φ(z) = φ(x) + φ(y)``: φ is computed less often.
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
    """A penalty on the norm ``s ≥ 0`` of each sample's outlier part."""

    def value(self, s: Array) -> Array:
        """φ(s), elementwise."""

    def slope(self, s: Array) -> Array:
        """φ'(s), elementwise."""

    def shrink(self, r: Array, tau: Array) -> Array:
        """``argmin_{s ≥ 0} (s − r)²/2 + tau φ(s)``, elementwise, for r ≥ 0."""

    def dead_zone(self, tau: Array) -> Array:
        """A bound: `shrink` is 0 for every r below it, elementwise."""


class DataFit(Protocol):
    """The term that sees the data ``X`` (n, p).

    An iteration first separates the outlier part S from the factors at hand
    (``separate``), then updates U and V against that same S. S is never formed: it is
    described by what `separate` returns.
    """

    @property
    def X(self) -> Matrix:
        """The data (n, p)."""

    def separate(self, U: Array, V: Array, XU: Array) -> Array:
        """Share of each sample's residual that stays in the fit, (n, B); None for all of it."""

    def halves_U(self, U: Array, V: Array, kept: Array) -> Halves:
        """Half the gradient with respect to ``U``, S made from these same factors."""

    def halves_V(self, U: Array, V: Array, XU: Array, kept: Array, U_old: Array) -> Halves:
        """Half the gradient with respect to ``V``, S made from ``V`` and ``U_old``."""

    def squared_residuals(self, U: Array, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖²`` of every sample and setting, (n, B)."""

    def value(self, U: Array, V: Array, XU: Array) -> Array:
        """Value at the best S for these factors, shape (B,), float64."""

    def take(self, index: np.ndarray) -> DataFit:
        """The term for the settings ``index``."""
