"""Scales of the features, set right before a fit; and a word where one of them drowns the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.cli.formats.shared import hint

_DROWNS = 0.9
"""Share of the sum of squares from which one feature is said to drown the others."""


def _minmax(X: Any) -> Any:
    """Each feature from 0 to 1; of a sparse matrix by its largest entry, so that zeros stay zeros."""
    if sp.issparse(X):
        return _max(X)
    low = np.nanmin(X, axis=0)
    return (X - low) / _nonzero(np.nanmax(X, axis=0) - low)


def _max(X: Any) -> Any:
    """Each feature divided by its largest entry."""
    if sp.issparse(X):
        return sp.csr_array(X.multiply(1 / _nonzero(X.max(axis=0).toarray().reshape(-1))))
    return X / _nonzero(np.nanmax(X, axis=0))


def _log1p(X: Any) -> Any:
    """Logarithm of 1 + X, for counts."""
    return np.log1p(X)


def _tfidf(X: Any) -> Any:
    """Term frequency times inverse document frequency, for counts of words."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weighted = TfidfTransformer(norm=None).fit_transform(sp.csr_matrix(X))
    return sp.csr_array(weighted) if sp.issparse(X) else weighted.toarray()


def _nonzero(scale: np.ndarray) -> np.ndarray:
    """Scales by which can be divided: a feature that is the same everywhere keeps its values."""
    return np.where(scale > 0, scale, 1.0)


SCALINGS: dict[str, Callable[[Any], Any]] = {"minmax": _minmax, "max": _max, "log1p": _log1p, "tfidf": _tfidf}
"""Scalings by name: ``X -> X``, missing entries left as they are."""


def hint_at_scale(X: Any, names: Sequence[str] | None) -> None:
    """Say so where one of several features has nearly all of the sum of squares."""
    if sp.issparse(X):
        squares = np.asarray(X.power(2).sum(axis=0)).reshape(-1)
    else:
        squares = np.nansum(X.astype(np.float64) ** 2, axis=0)
    total = squares.sum()
    if len(squares) < 3 or not np.isfinite(total) or squares.max(initial=0) <= _DROWNS * total:
        return
    worst = int(squares.argmax())
    which = f"{worst + 1}" if names is None else f"{names[worst]!r}"
    hint(
        f"column {which} has {squares[worst] / total:.0%} of the sum of squares, so all parts will be about "
        "it; --scale-features minmax brings the columns to one scale."
    )
