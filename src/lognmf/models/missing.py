"""Missing entries, filled by a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, like, namespace, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.problem import Problem
from lognmf.core.solvers import encode
from lognmf.core.terms import LOSSES
from lognmf.models.validation import check_samples

LEAST_SHARE = 1e-3
"""A sample of whose square for a part less than this share is known says nothing about that part."""


def imputed(model: Any, X: Any) -> Any:
    """`FactorModel.impute` of a fitted model."""
    if not model.spec.takes_missing(model):
        msg = (
            f"{type(model).__name__} takes no missing entries, so it can fill none: use WeightedNMF or "
            "LogSparseNMF."
        )
        raise TypeError(msg)
    if sp.issparse(X):
        msg = "impute fills entries that are NaN, and those that a sparse X does not store are zeros."
        raise TypeError(msg)
    data = check_samples(model, X, reset=False)
    frame = hasattr(X, "iloc")
    if data.M is None:
        return X.copy() if frame or isinstance(X, np.ndarray) else like(to_numpy(data.X).copy(), data.X)
    _check_some_known(to_numpy(data.M))
    filled = _usual_codes(model, data) @ like(model.components_, data.X)
    if frame:  # it keeps its names, and complete columns of integers stay such
        known = X.notna()
        whole = zip(X.columns, X.dtypes, known.all(), strict=True)
        X = X.astype(
            {name: "float64" for name, dtype, all_known in whole if not all_known and dtype.kind in "biu"}
        )
        return X.where(known, type(X)(filled, index=X.index, columns=X.columns))
    return namespace(data.X).where(data.M > 0, data.X, filled)


def _usual_codes(model: Any, data: InMemory) -> Array:
    """Codes (m, k) of least squares with a prior: the median of the fit's codes, as wide as X suggests.

    A part's contribution is expected to have a k-th of the square of a sample, and an entry to err as much as
    in the fit. The prior has the form of k more features, each of which tells one code.
    """
    X, M, xp = data.X, data.M, namespace(data.X)
    V, U = to_numpy(model.embedding_), to_numpy(model.components_).T
    (n, k), p = V.shape, U.shape[0]
    square = (
        float(xp.sum(X**2)) / float(xp.sum(M)) * p
    )  # of a sample, if its missing entries are like the others
    noise = model.reconstruction_err_**2 / (n * p)
    share = max(LEAST_SHARE, noise * k / square) if square > 0 else LEAST_SHARE
    weight = np.sqrt(share) * np.linalg.norm(U, axis=0)
    told = xp.broadcast_to(like(weight * np.median(V, axis=0), X)[None, :], (X.shape[0], k))
    known = InMemory(xp.concat([X, told], axis=1), xp.concat([M, xp.ones_like(told)], axis=1))
    basis = np.concatenate([U, np.diag(weight)])
    return encode(Problem(known, LOSSES["frobenius"](known)), like(basis, X))


def _check_some_known(M: np.ndarray) -> None:
    """Refuse samples of which nothing is known."""
    unknown = np.flatnonzero(~(M > 0).any(axis=1))
    if unknown.size:
        msg = (
            f"X has samples without a known entry ({unknown.size}, the first is row {unknown[0]}), so there "
            "is nothing to fill them from: drop them."
        )
        raise ValueError(msg)
