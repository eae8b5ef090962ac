"""Features and samples brought to one scale before a fit, and new samples in the same way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.cli.formats.shared import hint, parsing, say_left_out
from lognmf.preprocessing import normalize
from lognmf.reading import check_npz

_DROWNS = 0.9
"""Share of the sum of squares from which one feature is said to drown the others."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What happens to samples: ``log(1 + X)`` or ``(X − shift) · factor``, then unit norms if asked for."""

    feature_names: tuple[str, ...] | None = None
    log: bool = False
    shift: np.ndarray | None = None  # (p,)
    factor: np.ndarray | None = None  # (p,)
    unit: bool = True

    def __call__(self, X: Any) -> Any:
        """Samples (n, p) as the model sees them; missing entries stay missing."""
        if self.log:
            X = np.log1p(X)
        if self.shift is not None:
            X = np.maximum(X - self.shift, 0)  # a new sample may be smaller than any before
        if self.factor is not None:
            X = sp.csr_array(X.multiply(self.factor)) if sp.issparse(X) else X * self.factor
        return normalize(X) if self.unit else X

    def save(self, path: Path) -> None:
        """Write it to an npz file of plain arrays."""
        given: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        np.savez_compressed(path, **given)

    @classmethod
    def load(cls, path: Path) -> Preparation:
        """Read it back."""
        with parsing(path):
            check_npz(path)
            with np.load(path, allow_pickle=False) as file:
                given: dict[str, Any] = {name: file[name] for name in file.files}
            for flag in ("log", "unit"):
                given[flag] = bool(given[flag])
            if "feature_names" in given:
                given["feature_names"] = tuple(given["feature_names"].tolist())
            return cls(**given)

    def in_order(self, X: Any, names: Sequence[str] | None, path: str | os.PathLike[str]) -> Any:
        """The features of new samples, in the order of those of the fit where both have names."""
        if self.feature_names is None or names is None or tuple(names) == self.feature_names:
            return X
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            msg = f"{path} has several features called {twice!r}, so columns cannot be matched by name."
            raise ValueError(msg)
        place = {name: j for j, name in enumerate(names)}
        lost = [name for name in self.feature_names if name not in place]
        if lost:
            few = ", ".join(lost[:8]) + (", …" if len(lost) > 8 else "")
            msg = f"{path} lacks {len(lost)} of the {len(self.feature_names)} features of the model: {few}."
            raise ValueError(msg)
        known = set(self.feature_names)
        say_left_out([name for name in names if name not in known], path)
        return X[:, [place[name] for name in self.feature_names]]


def _minmax(X: Any) -> dict[str, Any]:
    """Each feature from 0 to 1; of a sparse matrix by its largest entry, so that zeros stay zeros."""
    if sp.issparse(X):
        return _max(X)
    low = np.nanmin(X, axis=0)
    return {"shift": low, "factor": 1 / _nonzero(np.nanmax(X, axis=0) - low)}


def _max(X: Any) -> dict[str, Any]:
    """Each feature divided by its largest entry."""
    largest = X.max(axis=0).toarray().reshape(-1) if sp.issparse(X) else np.nanmax(X, axis=0)
    return {"factor": 1 / _nonzero(largest)}


def _log1p(X: Any) -> dict[str, Any]:
    """Logarithm of 1 + X, for counts."""
    return {"log": True}


def _tfidf(X: Any) -> dict[str, Any]:
    """Inverse document frequencies, for counts of words."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return {"factor": TfidfTransformer(norm=None).fit(sp.csr_matrix(X)).idf_}


def _nonzero(scale: np.ndarray) -> np.ndarray:
    """Scales by which can be divided: a feature that is the same everywhere keeps its values."""
    return np.where(scale > 0, scale, 1.0)


SCALINGS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "minmax": _minmax,
    "max": _max,
    "log1p": _log1p,
    "tfidf": _tfidf,
}
"""Scalings of the features by name: ``X -> parameters of Preparation``."""


def hint_at_scale(X: Any, names: Sequence[str] | None) -> None:
    """Say so where one of several features has nearly all of the sum of squares."""
    if sp.issparse(X):  # a damaged file may promise more features than memory has room for
        columns, place = np.unique(X.indices, return_inverse=True)
        squares = np.bincount(place, X.data.astype(np.float64) ** 2, len(columns))
    else:
        columns, squares = np.arange(X.shape[1]), np.nansum(X.astype(np.float64) ** 2, axis=0)
    total = squares.sum()
    if X.shape[1] < 3 or not np.isfinite(total) or squares.max(initial=0) <= _DROWNS * total:
        return
    worst = int(squares.argmax())
    which = f"{columns[worst] + 1}" if names is None else f"{names[columns[worst]]!r}"
    hint(
        f"column {which} has {squares[worst] / total:.0%} of the sum of squares, so all parts will be about "
        "it; --scale-features minmax brings the columns to one scale."
    )
