"""Samples of any size that are made block by block, with parts, clusters and outliers that are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from lognmf.blocks.rows import RowBlocks, even_edges, float_type, most_rows
from lognmf.parameters import check_choice, check_integer, check_nonnegative, check_seed

MEMBERS = 1024
"""Samples that are drawn together, so that the samples do not depend on how they are cut into blocks."""


@dataclass(frozen=True)
class Planted:
    """Nonnegative samples ``V Uᵀ`` with noise, drawn anew whenever they are read.

    A sample is made mostly of the part of its cluster. Outliers are noise of the same norm.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Sizes n, p and k; there are k clusters.
    noise : float, default=0.05
        Standard deviation of the noise, as a share of the typical entry; negative entries become 0.
    outliers : float, default=0.0
        Share of the samples that are outliers.
    density : float, default=1.0
        Share of the entries that are kept; below 1 the samples are sparse matrices.
    dtype : {"float64", "float32"}, default="float64"
        Type of the entries.
    seed : int, default=0
        The same seed gives the same samples, whatever the blocks.

    Examples
    --------
    >>> from lognmf import LogSparseNMF
    >>> from planted import Planted
    >>> planted = Planted(3000, 20, 3)
    >>> model = LogSparseNMF(3, random_state=0).fit(planted.in_blocks(rows=1000))
    >>> model.embedding_.shape, len(planted.labels())
    ((3000, 3), 3000)
    """

    n_samples: int
    n_features: int
    n_components: int
    noise: float = 0.05
    outliers: float = 0.0
    density: float = 1.0
    dtype: str = "float64"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_samples", "n_features", "n_components"):
            check_integer(name, getattr(self, name), 1)
        for name in ("noise", "outliers", "density"):
            check_nonnegative(name, getattr(self, name))
        for name in ("outliers", "density"):
            if getattr(self, name) > 1:
                msg = f"{name} is a share of the samples or entries, from 0 to 1; got {getattr(self, name)}."
                raise ValueError(msg)
        check_choice("dtype", self.dtype, ("float64", "float32"))
        check_seed("seed", self.seed)

    @cached_property
    def parts(self) -> np.ndarray:
        """The parts U (p, k), of unit norm, a third of their entries positive."""
        rng = np.random.default_rng([self.seed, 0])
        shape = self.n_features, self.n_components
        U = rng.gamma(2.0, size=shape) * (rng.random(shape) < 1 / 3) + 1e-3
        return U / np.linalg.norm(U, axis=0)

    def in_blocks(self, rows: int | None = None) -> RowBlocks:
        """The samples, as what `fit` takes.

        Parameters
        ----------
        rows : int, optional
            Rows of a block; default: as many as take 128 MiB.

        Returns
        -------
        RowBlocks
            The samples in blocks of rows.
        """
        most = most_rows(rows, self.n_features, self.dtype)
        shape = self.n_samples, self.n_features
        return RowBlocks(
            shape, float_type(self.dtype), even_edges(self.n_samples, most), partial(_rows, self)
        )

    def labels(self) -> np.ndarray:
        """Cluster of every sample; −1 for outliers.

        Returns
        -------
        y : ndarray of shape (n,)
            Numbers from −1 to k − 1.
        """
        groups = range(-(-self.n_samples // MEMBERS))
        return np.concatenate([self._drawn(group)[0] for group in groups])[: self.n_samples]

    def _drawn(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Clusters and entries of a group of samples."""
        rng = np.random.default_rng([self.seed, 1, group])
        y = rng.integers(self.n_components, size=MEMBERS)
        V = rng.gamma(1.0, 0.1, size=(MEMBERS, self.n_components))
        V[np.arange(MEMBERS), y] += 0.5 + rng.random(MEMBERS)
        X = V @ self.parts.T
        X += self.noise * X.mean() * rng.standard_normal(X.shape)
        wild = rng.random(MEMBERS) < self.outliers
        X[wild] = rng.random((int(wild.sum()), self.n_features)) * np.linalg.norm(X) / X.size**0.5
        y[wild] = -1
        np.maximum(X, 0, out=X)
        if self.density < 1:
            X *= rng.random(X.shape) < self.density
        return y, X.astype(self.dtype)


def _rows(planted: Planted, start: int, stop: int) -> np.ndarray | sp.csr_array:
    """Rows ``start`` to ``stop`` of the samples."""
    first = start // MEMBERS
    X = np.concatenate([planted._drawn(group)[1] for group in range(first, -(-stop // MEMBERS))])
    X = X[start - first * MEMBERS : stop - first * MEMBERS]
    return sp.csr_array(X) if planted.density < 1 else X
