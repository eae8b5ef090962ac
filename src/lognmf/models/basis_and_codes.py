"""Models whose fit starts from a basis U and codes V."""

from __future__ import annotations

import os
from typing import Any, Self

from lognmf.models.base import FactorModel


class BasisAndCodesModel(FactorModel):
    """A model whose fit starts from U and V: all but those that compute their basis from the codes."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        U0: Any = None,
        V0: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Factorise ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, AnnData or torch tensor of shape (n, p)
            Samples in rows. float32 is computed in float32, anything else in float64. NaN, or the mask
            of a ``numpy.ma`` array, marks a missing entry for `WeightedNMF`, `LogSparseNMF` and
            ``loss="kullback-leibler"``; the others refuse it.
            NMF, GNMF, LS-NMF, RLS-NMF and WNMF also take Dask, zarr and HDF5 arrays, and what
            `lognmf.in_blocks` and `lognmf.on_workers` make of files and arrays larger than memory.
        y : ignored
            Present for scikit-learn.
        mask : array-like or sparse matrix of shape (n, p), optional
            Weight of every entry, ≥ 0: 0 or False marks a missing one. For sparse X a sparse matrix; entries
            that it does not store are missing. Models that refuse NaN refuse a mask.
        U0, V0 : array-like of shape (p, k) and (n, k), optional
            First factors; the default comes from ``init``. In multiplicative updates zeros stay zero.
        checkpoint : path, optional
            Folder for the fit so far, written now and then. The same call, also in another process, goes on
            from there and ends with the same numbers; other data or parameters are refused. Remove the folder
            when it is not needed any more.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError, TypeError
            If X, a parameter or a first factor cannot be used; the message says what to do.
        """
        return self._fit(X, {"U0": U0, "V0": V0}, mask, checkpoint=checkpoint)
