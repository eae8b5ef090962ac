"""Models whose fit starts from U and V: all but those that make their basis from the codes."""

from __future__ import annotations

from typing import Any, Self

from lognmf.core.arrays import Array
from lognmf.models.base import FactorModel


class BasisAndCodesModel(FactorModel):
    """A model whose fit starts from U and V."""

    def fit(self, X: Any, y: Any = None, *, mask: Any = None, U0: Any = None, V0: Any = None) -> Self:
        """Factorise ``X``, or what is known of it.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Samples in rows. float32 is computed in float32, anything else in float64. NaN
            marks a missing entry for `WeightedNMF` and `LogSparseNMF`; the others refuse it.
        y : ignored
            Present for scikit-learn.
        mask : array-like or sparse matrix of shape (n, p), optional
            Weight of every entry, ≥ 0: 0 (or False) for a missing one, 1 (or True) for a
            known one, or anything else. For sparse X a sparse matrix: what it does not
            store is missing. For `WeightedNMF` and `LogSparseNMF`; the others refuse it.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors. One that is missing comes from ``init``. In multiplicative
            updates entries that start at zero stay zero.

        Returns
        -------
        self
        """
        self._fit(X, {"U0": U0, "V0": V0}, mask)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, mask: Any = None, U0: Any = None, V0: Any = None
    ) -> Array:
        """Factorise ``X``, or what is known of it, and return its codes.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Samples in rows.
        y : ignored
            Present for scikit-learn.
        mask : array-like or sparse matrix of shape (n, p), optional
            Weight of every entry, as in `fit`.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors, as in `fit`.

        Returns
        -------
        V : array of shape (n, k)
            The codes of the training samples, also kept as ``embedding_``.
        """
        return self._fit(X, {"U0": U0, "V0": V0}, mask)
