"""Samples made comparable before a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.blocks.rows import library
from lognmf.core.arrays import Matrix, namespace
from lognmf.core.data import InMemory, entry_rows, stored_like
from lognmf.core.matrices import is_csr_tensor
from lognmf.models.validation import check_finite, is_anndata, read_samples


def normalize(X: Any) -> Any:
    """Divide every sample by its ℓ2 norm, so that all count the same in a fit.

    Unlike `sklearn.preprocessing.normalize` it takes missing entries: NaN stays NaN, and the sample is
    divided by the norm that it would have if its missing entries were like the known ones.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, AnnData or torch tensor of shape (n, p)
        Samples in rows. NaN, or the mask of a ``numpy.ma`` array, marks a missing entry.

    Returns
    -------
    array, csr_array, tensor, data frame or AnnData of shape (n, p)
        New values of float64, or of float32 if X is. Samples of zeros stay zero. Data frames of pandas and
        polars keep their names, and an AnnData object is copied with all that it holds.

    Raises
    ------
    ValueError, TypeError
        If X is no matrix of finite numbers.

    See Also
    --------
    LogSparseNMF : Warns where the norms of the samples differ by much.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import normalize
    >>> normalize([[3.0, 4.0], [2.0, np.nan]]).round(3)
    array([[0.6  , 0.8  ],
           [0.707,   nan]])

    Data frames keep the names of features and samples:

    >>> import pandas
    >>> words = pandas.DataFrame({"apple": [3.0, 1.0], "pear": [4.0, 0.0]})
    >>> normalize(words)
       apple  pear
    0    0.6   0.8
    1    1.0   0.0
    """
    samples = read_samples(X)
    check_finite("sparse data cannot hold", samples, missing=True)
    return _named_like(X, _scaled_rows(samples.data))


def _named_like(X: Any, values: Matrix) -> Any:
    """``values`` in a data frame or AnnData object with the names of ``X``, if it is one."""
    if is_anndata(X):
        cells = X.copy()
        cells.X = values
        return cells
    if hasattr(X, "iloc"):  # pandas
        make = type(X).sparse.from_spmatrix if sp.issparse(values) else type(X)
        return make(values, index=X.index, columns=X.columns)
    # polars would guess which way a square array lies.
    return type(X)(values, schema=X.columns, orient="row") if library(X) == "polars" else values


def _scaled_rows(data: InMemory) -> Matrix:
    """The rows over their norms; over their largest entries first, since squares may overflow or vanish."""
    X, M = data.X, data.M
    if sp.issparse(X):
        largest = abs(X).max(axis=1).toarray().reshape(-1)
        X, rows = sp.csr_array(X), entry_rows(X)
        # Divided entry by entry: SciPy would multiply by the inverse, which overflows next to zero.
        X = stored_like(X, X.data / np.where(largest > 0, largest, 1)[rows])
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)).reshape(-1)
        return stored_like(X, (X.data / np.where(norms > 0, norms, 1)[rows]).astype(X.dtype))
    if is_csr_tensor(X):
        from lognmf.core.torch.sparse import normalised

        return normalised(X)
    xp = namespace(X)
    one = xp.ones_like(X[:, :1])
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0, largest, one)
    squares = xp.sum(X**2, axis=1, keepdims=True)
    known = X.shape[1] * one if M is None else xp.sum(M, axis=1, keepdims=True)  # M holds 0 and 1
    norms = (squares * X.shape[1] / xp.where(known > 0, known, one)) ** 0.5
    X = X / xp.where(norms > 0, norms, one)
    return X if M is None else xp.where(M > 0, X, xp.full_like(X, xp.nan))
